"""KoPL in the paper's serialised spelling, as a language of terminals.

``Find <arg> Norway <func> Relate <arg> capital <arg> forward <func> QueryName``: only programs
that type, end with one value and name what the knowledge base has. Everything follows from the
declarations of the functions; nothing is said of any function by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Literal as OneOf
from typing import NamedTuple, TypeAlias

from kb import KnowledgeBase
from kb.schema import Key, Schema, ValueType
from kb.store import NameKind
from kb.values import NO_UNIT
from kopl.answer_forms import ASKED, IS, words_behind
from kopl.automaton import (
    KEYS,
    MOST_CALLS,
    MOST_OPEN,
    TYPE_OF,
    Automaton,
    Prefix,
    type_of_key,
)
from kopl.functions import FUNCTIONS, SPELLINGS, Function
from kopl.text import escape_marks
from kopl.types import Kind
from kopl_base.errors import KoplError
from parsers.constrain.freetext import FreeText
from parsers.constrain.machine import STOP, Constraint
from parsers.constrain.terminals import Literal, Names, Number, Place, Terminal, Time
from parsers.constrain.tokens import END, MARKS, TokenTable

Values: TypeAlias = OneOf["free", "kb"]

_LISTS: dict[Kind, NameKind] = {Kind.RELATION: "relation"}

# One blank on each side of a mark belongs to the mark (kopl.text). It may be left out, unless the
# name beside it has a blank there itself.
# A free text takes the blanks behind it as its own.
_MAY, _TAKEN, _MUST, _OWN = range(4)


class Outer(NamedTuple):
    """Where a program is: its part, how much of it is written, and the blanks at hand."""

    part: str
    written: Prefix
    blank: int = _MAY


_END = Outer("end", Prefix())


def kopl_constraint(
    kb: KnowledgeBase,
    table: TokenTable,
    *,
    values: Values = "free",
    most_calls: int = MOST_CALLS,
    most_open: int = MOST_OPEN,
    most_text: int = 120,
    asked: bool = False,
) -> Constraint:
    """The constraint of programs over a knowledge base, in the serialised spelling.

    ``values``: string arguments are any text of at most ``most_text`` bytes, or only values that
    the key has. A program has at most ``most_calls`` calls, and at most ``most_open`` sets wait
    for a call that takes them. ``asked``: behind a program may stand what is asked of it, as
    `kopl.text.write_asked` writes it. Raises KoplError when the tokens cannot spell any program.
    """
    language = ProgramTexts(
        kb,
        table,
        values=values,
        most_calls=most_calls,
        most_open=most_open,
        most_text=most_text,
        asked=asked,
    )
    return Constraint(language, table)


class ProgramTexts:
    """The serialised programs over a knowledge base; see `kopl_constraint`."""

    def __init__(
        self,
        kb: KnowledgeBase,
        table: TokenTable,
        *,
        values: Values = "free",
        most_calls: int = MOST_CALLS,
        most_open: int = MOST_OPEN,
        most_text: int = 120,
        asked: bool = False,
    ) -> None:
        if values not in ("free", "kb"):
            raise ValueError(f"values are 'free' or 'kb', not {values!r}")
        if min(most_calls, most_open, most_text) < 1:
            raise ValueError("most_calls, most_open and most_text must be at least 1")
        self.schema, self.table, self.values = Schema.of(kb), table, values
        self._blank = Literal(b" ")
        self._argument, self._next_call = (Literal(table.encoded(mark)) for mark in MARKS)
        self.follow = b" " + self._argument.data[:1] + self._next_call.data[:1] + END
        self._number, self._time = Number(), Time()
        marks = [mark.encode() for mark in MARKS]
        self._free = {
            blank: FreeText(most_text, marks=marks, blank=blank) for blank in (False, True)
        }
        # Caches of the instance, not of the class: a language is one of many.
        self._listed = cache(self._list_names)
        self._units = cache(self._list_units)
        self._texts = cache(self._list_texts)
        self._calls = cache(self._list_calls)
        self._asked: frozenset[str] = frozenset()
        if asked:
            named = bool(self._listed(Kind.NAME, None, True).texts)
            spelt = (word for word in ASKED if self._spelt([word]).texts)
            self._asked = frozenset(word for word in spelt if named or word != IS)
        self._automaton = Automaton(
            filter(self._is_feasible, FUNCTIONS.values()),
            self._has,
            most_calls=most_calls,
            most_open=most_open,
        )
        if not self._automaton.following(Prefix()):
            raise KoplError("the tokens spell no function that a program may begin with")

    # --- what may stand where -----------------------------------------------------------------

    def start(self) -> Outer:
        """Before the name of the first function."""
        return Outer("call", Prefix())

    def options(self, outer: Outer) -> Sequence[tuple[Terminal, Outer]]:
        """The terminals that may come next."""
        found: list[tuple[Terminal, Outer]] = []
        part, written, open_ = outer.part, outer.written, outer.blank != _MUST
        goes_on = part != "end"
        if part == "call":
            functions, words = self._automaton.following(written), self._words(written)
            found.append((self._calls(functions, words), outer))
        elif part == "name mark":
            if open_:
                found.append((self._argument, outer))
        elif part == "name":
            found.append((self._listed(Kind.NAME, None, bool(outer.blank)), outer))
        elif part == "asked":
            if outer.blank != _TAKEN:
                found.append((STOP, outer))
            goes_on = False
        elif part == "mark":
            if open_:
                found.append((self._argument, outer))
        elif part == "argument":
            found += [(terminal, outer) for terminal in self._terminals(outer)]
        elif part == "unit":
            found.append((self._units(written.key), outer))
            if written.key is None or NO_UNIT in self.schema.units(written.key):
                found += self.options(_argued(outer, "", _MAY))
            return found
        elif part == "done":
            if written.may_end and outer.blank != _TAKEN:
                found.append((STOP, outer))
            goes_on = bool(self._automaton.following(written) or self._words(written))
            if goes_on and open_:
                found.append((self._next_call, outer))
        if goes_on and outer.blank in (_MAY, _MUST):
            found.append((self._blank, outer._replace(blank=_TAKEN)))
        return found

    def after(self, outer: Outer, terminal: Terminal, place: Place) -> Outer:
        """Where a program is when a terminal ended."""
        if terminal is self._blank:
            return outer
        if terminal is STOP:
            return _END
        if outer.part == "call":
            assert isinstance(terminal, Names)
            if (word := terminal.found(place).decode()) in self._asked:
                return Outer("name mark" if word == IS else "asked", outer.written)
            return _behind(outer.written.begun(SPELLINGS[terminal.found(place).decode()]), _MAY)
        if terminal is self._argument:
            named = outer.part == "name mark"
            return outer._replace(part="name" if named else "argument", blank=_MAY)
        if terminal is self._next_call:
            return outer._replace(part="call", blank=_MAY)
        if terminal is self._number and outer.part == "argument":
            return outer._replace(part="unit", blank=_MAY)
        if not isinstance(terminal, Names):
            return _argued(outer, "", _OWN if isinstance(terminal, FreeText) else _MAY)
        text = terminal.found(place)
        if outer.part == "name":
            return outer._replace(part="asked", blank=_MAY)
        key = text.decode() if outer.written.kind in KEYS else ""
        # A backslash would escape a mark directly behind it.
        return _argued(outer, key, _MUST if text.endswith((b" ", b"\\")) else _MAY)

    def text_behind(self, outer: Outer) -> None:
        """Nothing: marks may have blanks on either side."""

    # --- functions ----------------------------------------------------------------------------

    def _words(self, written: Prefix) -> tuple[str, ...]:
        """What may be asked of a program that is written."""
        if not self._asked or not written.may_end:
            return ()
        return tuple(one for one in words_behind(written.ready[0].type) if one in self._asked)

    def _list_calls(self, functions: tuple[Function, ...], words: tuple[str, ...]) -> Names:
        return self._spelt([*(text for one in functions for text in _spellings(one)), *words])

    def _is_feasible(self, function: Function) -> bool:
        """Whether the tokens spell a function, and the knowledge base has what it needs."""
        return bool(self._spelt(_spellings(function)).texts) and all(
            kind in _VALUES or self._listed(kind, type_of_key(function, at), True).texts
            for at, (_, kind) in enumerate(function.arguments)
        )

    # --- arguments ----------------------------------------------------------------------------

    def _terminals(self, outer: Outer) -> Iterable[Terminal]:
        written, blank = outer.written, bool(outer.blank)
        kind, key = written.kind, written.key
        if kind not in _VALUES:
            assert written.function is not None
            return [self._listed(kind, type_of_key(written.function, written.at), blank)]
        if self.values == "kb" and key is not None and kind in (Kind.STRING, Kind.ANY_VALUE):
            return [self._texts(key, kind is Kind.STRING, False, blank)]
        types: Sequence[ValueType] = [TYPE_OF[kind]] if kind in TYPE_OF else _TYPES
        if kind not in TYPE_OF and key is not None:
            types = [type for type in types if self._has(key, type)]
        found: list[Terminal] = []
        if "string" in types:
            found.append(self._free[blank])
            if key is not None and (odd := self._texts(key, True, True, blank)).texts:
                found.append(odd)
        if "quantity" in types:
            found.append(self._number)
        if "time" in types:
            found.append(self._time)
        return found

    def _has(self, key: Key, type: ValueType) -> bool:
        """Whether a key has values of the type, of which the tokens can spell one."""
        if not self.schema.has(key, type):
            return False
        if type == "quantity" and not self.table.complete:
            return NO_UNIT in self.schema.units(key) or bool(self._units(key).texts)
        if self.values == "kb" and not self.table.complete:
            return bool(self._texts(key, type == "string", False, True).texts)
        return True

    def _list_names(self, kind: Kind, type: ValueType | None, blank: bool) -> Names:
        """What an argument that is no value may be; of keys those with values of the type."""
        if not blank:
            return _without_blanks(self._listed(kind, type, True))
        if kind.choices:
            return self._spelt(kind.choices)
        if kind is Kind.NAME:
            return self._spelt(self.schema.nodes)
        if kind is Kind.CONCEPT:
            return self._spelt(self.schema.concepts)
        if kind in KEYS:
            types: Sequence[ValueType] = [type] if type else _TYPES
            keys = self.schema.keys(KEYS[kind], type)
            return self._spelt(
                key for key in keys if any(self._has((key, KEYS[kind]), one) for one in types)
            )
        return self._spelt(self.schema.of_kind(_LISTS[kind]))

    def _list_units(self, key: Key | None) -> Names:
        """The units that a key's quantities have, each with the blank before it."""
        units = self.schema.units(key) if key else self.schema.of_kind("unit")
        spelt = [self.table.encoded(f" {escape_marks(u)}") for u in units if u != NO_UNIT]
        return Names(data for data in spelt if self.table.spells(data))

    def _list_texts(self, key: Key, strings: bool, odd: bool, blank: bool) -> Names:
        """The values of a key as they are printed; ``odd``: those that are no free text."""
        if not blank:
            return _without_blanks(self._texts(key, strings, odd, True))
        texts = self.schema.texts(key, "string" if strings else None)
        if odd:
            texts = [text for text in texts if not self._free[True].accepts(text.encode())]
        return self._spelt(texts)

    def _spelt(self, texts: Iterable[str]) -> Names:
        """The texts that the tokens can spell."""
        table = self.table
        spelt = (table.encoded(escape_marks(text)) for text in texts)
        return Names(data for data in spelt if table.spells(data) or table.spells(b" " + data))


def _without_blanks(names: Names) -> Names:
    """The names that do not begin with a blank: the same ones, nearly always."""
    kept = [text for text in names.texts if not text.startswith(b" ")]
    return names if len(kept) == len(names) else Names(kept)


_VALUES = (Kind.STRING, Kind.QUANTITY, Kind.TIME, Kind.ANY_VALUE)
_TYPES: tuple[ValueType, ...] = ("string", "quantity", "time")


def _spellings(function: Function) -> list[str]:
    """The spellings of a function that are read."""
    return [text for text, meant in SPELLINGS.items() if meant is function]


def _argued(outer: Outer, text: str, blank: int) -> Outer:
    """Behind an argument; only of a key the text matters."""
    return _behind(outer.written.argued(text), blank)


def _behind(written: Prefix, blank: int) -> Outer:
    """Behind a function or an argument: at the mark of the next argument, or of the next call."""
    return Outer("mark" if written.function is not None else "done", written, blank)
