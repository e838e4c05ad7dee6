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
from kb.store import NameKind
from kb.values import NO_UNIT
from kopl.functions import FUNCTIONS, SPELLINGS, Function
from kopl.text import escape_marks
from kopl.types import Kind, Type
from kopl_base.errors import KoplError
from parsers.constrain.freetext import FreeText
from parsers.constrain.machine import STOP, Constraint
from parsers.constrain.schema import (
    KEYS,
    TYPE_OF,
    Key,
    Schema,
    ValueType,
    type_of_key,
    types_without_key,
)
from parsers.constrain.terminals import Literal, Names, Number, Place, Terminal, Time
from parsers.constrain.tokens import END, MARKS, TokenTable

Values: TypeAlias = OneOf["free", "kb"]

_LISTS: dict[Kind, NameKind] = {Kind.RELATION: "relation"}

# One blank on each side of a mark belongs to the mark (kopl.text). It may be left out, unless the
# name beside it has a blank there itself.
# A free text takes the blanks behind it as its own.
_MAY, _TAKEN, _MUST, _OWN = range(4)

# A set that a program has ready, with the key whose values it is: (name of the type, key).
Ready: TypeAlias = tuple[str, Key | None]


class Outer(NamedTuple):
    """Where a program is: its part, the values that are ready, and the call being written."""

    part: str
    ready: tuple[Ready, ...]
    left: int  # calls that may still be begun
    function: str = ""
    at: int = 0  # the argument being written
    key: Key | None = None  # the key that a value would be of
    asked: Key | None = None  # the attribute whose values the call gives
    blank: int = _MAY


_END = Outer("end", (), 0)


def kopl_constraint(
    kb: KnowledgeBase,
    table: TokenTable,
    *,
    values: Values = "free",
    most_calls: int = 20,
    most_open: int = 4,
    most_text: int = 120,
) -> Constraint:
    """The constraint of programs over a knowledge base, in the serialised spelling.

    ``values``: string arguments are any text of at most ``most_text`` bytes, or only values that
    the key has. A program has at most ``most_calls`` calls, and at most ``most_open`` sets wait
    for a call that takes them. Raises KoplError when the tokens cannot spell any program.
    """
    language = KoplLanguage(
        kb, table, values=values, most_calls=most_calls, most_open=most_open, most_text=most_text
    )
    return Constraint(language, table)


class KoplLanguage:
    """The serialised programs over a knowledge base; see `kopl_constraint`."""

    def __init__(
        self,
        kb: KnowledgeBase,
        table: TokenTable,
        *,
        values: Values = "free",
        most_calls: int = 20,
        most_open: int = 4,
        most_text: int = 120,
    ) -> None:
        if values not in ("free", "kb"):
            raise ValueError(f"values are 'free' or 'kb', not {values!r}")
        if min(most_calls, most_open, most_text) < 1:
            raise ValueError("most_calls, most_open and most_text must be at least 1")
        self.schema, self.table, self.values = Schema(kb), table, values
        self.most_calls, self.most_open = most_calls, most_open
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
        self._joinable: frozenset[str] = frozenset()
        self._feasible = [name for name in FUNCTIONS if self._is_feasible(FUNCTIONS[name])]
        self._joinable = _joinable(
            [FUNCTIONS[name] for name in self._feasible if self._spelt(_spellings(name)).texts]
        )
        self._calls.cache_clear()
        if not self._calls((), most_calls).texts:
            raise KoplError("the tokens spell no function that a program may begin with")

    # --- what may stand where -----------------------------------------------------------------

    def start(self) -> Outer:
        """Before the name of the first function."""
        return Outer("call", (), self.most_calls)

    def options(self, outer: Outer) -> Sequence[tuple[Terminal, Outer]]:
        """The terminals that may come next."""
        found: list[tuple[Terminal, Outer]] = []
        part, open_ = outer.part, outer.blank != _MUST
        goes_on = part != "end"
        if part == "call":
            found.append((self._calls(outer.ready, outer.left), outer))
        elif part == "mark":
            if open_:
                found.append((self._argument, outer))
        elif part == "argument":
            found += [(terminal, outer) for terminal in self._terminals(outer)]
        elif part == "unit":
            found.append((self._units(outer.key), outer))
            if outer.key is None or NO_UNIT in self.schema.units(outer.key):
                found += self.options(self._argued(outer))
            return found
        elif part == "done":
            if len(outer.ready) == 1 and outer.blank != _TAKEN:
                found.append((STOP, outer))
            goes_on = bool(self._calls(outer.ready, outer.left).texts)
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
            return self._begun(outer, SPELLINGS[terminal.found(place).decode()])
        if terminal is self._argument:
            return outer._replace(part="argument", blank=_MAY)
        if terminal is self._next_call:
            return outer._replace(part="call", blank=_MAY)
        if terminal is self._number and outer.part == "argument":
            return outer._replace(part="unit", blank=_MAY)
        function = FUNCTIONS[outer.function]
        kind = function.arguments[outer.at][1]
        if not isinstance(terminal, Names):
            return self._argued(outer, _OWN if isinstance(terminal, FreeText) else _MAY)
        text = terminal.found(place)
        if kind in KEYS:
            key = (text.decode(), KEYS[kind])
            outer = outer._replace(key=key, asked=outer.asked if KEYS[kind] else key)
        # A backslash would escape a mark directly behind it.
        return self._argued(outer, _MUST if text.endswith((b" ", b"\\")) else _MAY)

    def text_behind(self, outer: Outer) -> None:
        """Nothing: marks may have blanks on either side."""

    def _begun(self, outer: Outer, function: Function) -> Outer:
        """Behind the name of a function; a key may come from the input whose values it looks at."""
        arity = function.arity
        key = next((key for _, key in outer.ready[len(outer.ready) - arity :] if key), None)
        outer = Outer("mark", outer.ready, outer.left - 1, function.name, 0, key)
        return outer if function.arguments else self._closed(outer)

    def _argued(self, outer: Outer, blank: int = _MAY) -> Outer:
        at, function = outer.at + 1, FUNCTIONS[outer.function]
        outer = outer._replace(part="mark", at=at, blank=blank)
        return outer if at < len(function.arguments) else self._closed(outer)

    def _closed(self, outer: Outer) -> Outer:
        function = FUNCTIONS[outer.function]
        ready = outer.ready[: len(outer.ready) - function.arity]
        key = outer.asked if function.output is Type.VALUES else None
        ready = (*ready, (function.output.name, key))
        return Outer("done", ready, outer.left, blank=outer.blank)

    # --- functions ----------------------------------------------------------------------------

    def _list_calls(self, ready: tuple[Ready, ...], left: int) -> Names:
        fit = [name for name in self._feasible if self._fits(FUNCTIONS[name], ready, left)]
        return self._spelt(text for name in fit for text in _spellings(name))

    def _fits(self, function: Function, ready: tuple[Ready, ...], left: int) -> bool:
        """Whether a function may come next, and the program still end in time."""
        arity = function.arity
        if left < 1 or arity > len(ready):
            return False
        taken = ready[len(ready) - arity :]
        for wanted, (given, key) in zip(function.inputs, taken, strict=True):
            if not wanted.accepts(Type[given]):
                return False
            if key is not None and not all(
                self._has(key, type) for type in types_without_key(function)
            ):
                return False
        beside = [given for given, _ in ready[: len(ready) - arity]] + [function.output.name]
        if len(beside) > 1 and not self._joinable.issuperset(beside):
            return False
        # Every call that joins two leaves one less.
        return len(beside) <= self.most_open and left - 1 >= len(beside) - 1

    def _is_feasible(self, function: Function) -> bool:
        """Whether the knowledge base has what the textual arguments of a function need."""
        return all(
            kind in _VALUES or self._listed(kind, type_of_key(function, at), True).texts
            for at, (_, kind) in enumerate(function.arguments)
        )

    # --- arguments ----------------------------------------------------------------------------

    def _terminals(self, outer: Outer) -> Iterable[Terminal]:
        function, blank, key = FUNCTIONS[outer.function], bool(outer.blank), outer.key
        kind = function.arguments[outer.at][1]
        if kind not in _VALUES:
            return [self._listed(kind, type_of_key(function, outer.at), blank)]
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


def _spellings(name: str) -> list[str]:
    """The spellings of a function that are read."""
    return [text for text, function in SPELLINGS.items() if function.name == name]


def _joinable(functions: Iterable[Function]) -> frozenset[str]:
    """The types of which two may become one: only they may stand beside others."""
    return frozenset(
        type.name
        for type in Type
        for function in functions
        if function.arity == 2
        and all(w.accepts(type) and w.accepts(function.output) for w in function.inputs)
    )
