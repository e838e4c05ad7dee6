"""Typed actions that build a program call by call: what the pointer model chooses among.

A program is written in post-order. A *step* has a slot (what is expected) and an action: a
function, a word of a fixed choice, an item of the knowledge base's schema, a token of the question
(where a copied text starts or ends), or a *known text*, which questions mean without saying it.
Which actions a slot allows follows from the automaton of typed programs (`kopl.automaton`), the
knowledge base and the question, so that whatever a decoder chooses is a well-typed program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from kb import KnowledgeBase
from kb.schema import Key
from kb.values import NO_UNIT
from kopl.answer_forms import ASKED, IS, PLAIN, Asking, asked_of, words_behind
from kopl.automaton import ITEMS, KEYS, MOST_CALLS, Prefix, type_of_key, types_without_key
from kopl.errors import ParseError
from kopl.functions import FUNCTIONS, Function
from kopl.program import Call
from kopl.types import Kind, Type
from parsers.linking import Linker
from parsers.tokens import Question, as_constant, is_number, is_time

Ids = npt.NDArray[np.int64]

START, END = "span start", "span end"
FUNCTION, UNIT = "function", "unit"
POINTERS = (START, END)
# Known texts: what may be chosen instead of copying, by the kind of the argument.
KNOWN: dict[Kind, str] = {
    Kind.NAME: "known name",
    Kind.STRING: "known string",
    Kind.ANY_VALUE: "known string",
}
# What is asked of a program (`ASKED`) is chosen behind it, like a function; a name that is asked
# about is written as if a function took it.
IS_NAME = Function(
    IS, (), (("name", Kind.NAME),), Type.TRUTH, None, 0, "Whether a name is what is found.", "", IS
)


@cache
def slots_of(kind: Kind) -> tuple[str, ...]:
    """The slots that a textual argument of a kind is written in."""
    if kind.choices:
        return (kind.name.lower(),)
    if kind in ITEMS:
        return (ITEMS[kind],)
    if kind in (Kind.QUANTITY, Kind.ANY_VALUE):
        return (START, END, UNIT)
    return (START, END)


SLOTS = (
    FUNCTION, START, END, UNIT, *(kind.name.lower() for kind in Kind if kind.choices),
    *ITEMS.values(),
)  # fmt: skip


def constant_of(kind: Kind) -> str:
    """What a copied text of a kind must read as: "text" (anything), "quantity" or "time"."""
    return {Kind.QUANTITY: "quantity", Kind.TIME: "time"}.get(kind, "text")


@cache
def copied_by(function: Function) -> frozenset[str]:
    """What the texts that a function's arguments are copied from must read as."""
    kinds = [kind for _, kind in function.arguments]
    return frozenset(constant_of(kind) for kind in kinds if START in slots_of(kind))


@dataclass(frozen=True)
class Actions:
    """The actions other than copying, numbered: functions, words, schema items, known texts.

    An entry is (slot, text), of a known text (its sort in `KNOWN`, text). The first one, a function
    without a name, ends the program; what is asked of the program (`ASKED`) is chosen like one.
    """

    entries: tuple[tuple[str, str], ...]
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict, compare=False, repr=False)
    _allowed: dict[object, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)
    _of_slot: dict[str, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        self._numbers.update({entry: number for number, entry in enumerate(self.entries)})

    @classmethod
    def of(
        cls,
        kb: KnowledgeBase,
        known: Iterable[tuple[str, str]] = (),
        asked: Iterable[str] = ASKED,
    ) -> Actions:
        """The actions for programs over a knowledge base; ``known`` texts as entries.

        A known name that the knowledge base does not have is left out. ``asked``: the words of
        `ASKED` that may be chosen; a model that learns none does not say what is asked.
        """
        entries = [(FUNCTION, name) for name in ("", *FUNCTIONS, *asked)]
        for kind in Kind:
            entries += [(kind.name.lower(), word) for word in kind.choices]
        for names in ITEMS.values():
            entries += [(names, name) for name in kb.names_of_kind(names)]
        entries += [(UNIT, unit) for unit in sorted({NO_UNIT, *kb.units})]
        for slot, text in sorted(set(known)):
            if slot != KNOWN[Kind.NAME] or len(kb.named(text)):
                entries.append((slot, text))
        return cls(tuple(dict.fromkeys(entries)))

    def with_those_of(self, other: Actions) -> Actions:
        """These actions, and behind them those that another one has alone."""
        return Actions(tuple(dict.fromkeys([*self.entries, *other.entries])))

    def __len__(self) -> int:
        return len(self.entries)

    def number(self, slot: str, text: str) -> int | None:
        """The number of an action, or None when there is none."""
        return self._numbers.get((slot, text))

    @property
    def asked(self) -> tuple[str, ...]:
        """The words of `ASKED` that may be chosen."""
        return tuple(word for word in ASKED if (FUNCTION, word) in self._numbers)

    def of_slot(self, slot: str) -> tuple[int, ...]:
        """All actions of a slot or of a sort of known texts (none for a slot that copies)."""
        if slot not in self._of_slot:
            numbers = (n for n, entry in enumerate(self.entries) if entry[0] == slot)
            self._of_slot[slot] = tuple(numbers)
        return self._of_slot[slot]

    def _of(self, slot: str, texts: Sequence[str]) -> tuple[int, ...]:
        """The actions of a slot for some texts."""
        return tuple(sorted({self._numbers[slot, text] for text in texts}))

    def allowed(self, draft: Draft) -> tuple[int, ...]:
        """The actions that the slot at hand allows; beside copying, the known texts.

        They are remembered by what the draft is at, not by its linker: all drafts over these
        actions share one.
        """
        key = draft.signature()
        if key not in self._allowed:
            if draft.slot == FUNCTION:
                names = draft.functions()
                names += [word for word in draft.asked() if word in self.asked]
                found = tuple(self._numbers[FUNCTION, name] for name in names)
            elif draft.slot == START:
                found = self.of_slot(KNOWN.get(draft.kind, ""))
            elif draft.kind in KEYS:
                found = self._of(draft.slot, draft.keys())
            elif draft.slot == UNIT:
                found = self._of(UNIT, draft.units())
            else:
                found = self.of_slot(draft.slot)
            self._allowed[key] = found
        return self._allowed[key]


AnyDraft = TypeVar("AnyDraft", bound="Draft")


class Draft:
    """A program under construction: calls that are ready, and the call being written.

    ``slot`` is what the next action must be; ``function`` that of the call being written, None
    between two calls; ``start`` the token at which the text being copied begins, -1 where none is;
    ``done`` whether the program is ended; ``asking`` what was chosen behind its last call, None
    where nothing is.
    """

    __slots__ = (
        "_parts",
        "_texts",
        "asking",
        "done",
        "function",
        "linker",
        "prefix",
        "question",
        "ready",
        "slot",
        "start",
    )

    def __init__(self, question: Question, linker: Linker) -> None:
        self.question, self.linker = question, linker
        self.prefix = Prefix()
        self.ready: tuple[Call, ...] = ()
        self.function: Function | None = None
        self.slot, self.start, self.done = FUNCTION, -1, False
        self.asking: Asking | None = None
        self._texts: tuple[str, ...] = ()  # the arguments that are ready
        self._parts: tuple[int, ...] = ()  # of the argument being copied: first token, last token

    def copy(self: AnyDraft) -> AnyDraft:
        """The same, to be gone on with in another way."""
        other = type(self)(self.question, self.linker)
        other.prefix, other.ready = self.prefix, self.ready
        other.function = self.function
        other.slot, other.start, other.done = self.slot, self.start, self.done
        other.asking = self.asking
        other._texts, other._parts = self._texts, self._parts
        return other

    @property
    def kind(self) -> Kind:
        """The kind of the argument being written; there must be one."""
        assert self.function is not None
        return self.function.arguments[self.prefix.at][1]

    def tokens(self) -> list[int]:
        """The tokens that the slot at hand may point to (none for a slot that does not copy).

        A number is copied from where the question has one, a time from where it has a time.
        """
        if self.slot not in POINTERS:
            return []
        spans = self.question.copyable(self.constant())
        return list(spans) if self.slot == START else spans[self.start]

    def constant(self) -> str:
        """What the text being copied must read as; of a key with one type of values, that one."""
        if self.kind is not Kind.ANY_VALUE or (key := self.key) is None:
            return constant_of(self.kind)
        types = self.linker.schema.types(key)
        only = next(iter(types)) if len(types) == 1 else "text"
        return only if only in self.question.readable else "text"

    @property
    def key(self) -> Key | None:
        """The key that the argument being written is a value of, None where none is named."""
        return self.prefix.key

    def keys(self) -> list[str]:
        """The keys that the slot at hand allows: those with values of the type compared with."""
        assert self.function is not None
        type = type_of_key(self.function, self.prefix.at)
        return self.linker.schema.keys(KEYS[self.kind], type)

    def units(self) -> list[str]:
        """The units that the slot at hand allows: those of the key's quantities, and none."""
        key, schema = self.key, self.linker.schema
        if not self._copies_number():
            return [NO_UNIT]
        if key is None or not schema.types(key):
            return _with_none(self.linker.kb.units)
        return _with_none(schema.units(key) if schema.has(key, "quantity") else ())

    def _copies_number(self) -> bool:
        """Whether the copied span reads as a number, which a unit may stand behind."""
        return is_number(as_constant(self.question.span(self._parts[0], self._parts[1])))

    def signature(self) -> object:
        """Equal for drafts that allow the same actions, tokens left aside."""
        if self.function is None:
            readable, is_asked = self.question.readable, self.asking is not None
            return self.linker.automaton.waiting(self.prefix), readable, is_asked
        slot, kind = self.slot, self.kind
        if kind in KEYS:
            return slot, type_of_key(self.function, self.prefix.at)
        return (slot, kind, self.key, self._copies_number()) if slot == UNIT else (slot, kind)

    def functions(self) -> list[str]:
        """The functions that may come next; "" ends the program."""
        if self.asking is not None:
            return [""]
        found = self.linker.automaton.following(self.prefix)
        names = [one.name for one in found if copied_by(one) <= self.question.readable]
        return ["", *names] if self.prefix.may_end else names

    def asked(self) -> list[str]:
        """The words of `ASKED` that may come next: those that fit the program, once."""
        if self.asking is not None or not self.prefix.may_end:
            return []
        words = words_behind(self.prefix.ready[0].type)
        can_copy = copied_by(IS_NAME) <= self.question.readable
        return [word for word in words if can_copy or word != IS]

    def take(self, action: tuple[str, str] | int) -> None:
        """Go on by an action: an entry of `Actions`, or the number of a token."""
        if self.function is None:
            assert not isinstance(action, int)
            if not action[1]:
                self.done = True
                return
            if action[1] == IS:
                self.function, self.slot = IS_NAME, START
                return
            if action[1] in ASKED:
                self.asking = Asking.of_words([action[1]])
                return
            function = FUNCTIONS[action[1]]
            self._go_on(function, self.prefix.begun(function))
        elif isinstance(action, int):
            self._parts = (*self._parts, action)
            self.start = self._parts[0]
            slots = slots_of(self.kind)
            if len(self._parts) < len(slots):
                self.slot = slots[len(self._parts)]
            else:
                self._add(self._copied(NO_UNIT))
        elif action[0] == UNIT:
            self._add(self._copied(action[1]))
        else:  # a schema item, a word of a choice, a known text
            self._add(action[1])

    def _add(self, text: str) -> None:
        assert self.function is not None
        self._parts, self.start = (), -1
        if self.function is IS_NAME:
            self.asking = Asking.of_words([IS, text])
            self.function, self.slot = None, FUNCTION
            return
        self._texts = (*self._texts, text)
        self._go_on(self.function, self.prefix.argued(text))

    def _go_on(self, function: Function, prefix: Prefix) -> None:
        """Write on from behind a part of a call of the function."""
        self.prefix, self.function = prefix, prefix.function
        if self.function is not None:
            self.slot = slots_of(self.kind)[0]
            return
        cut = len(self.ready) - len(function.inputs)
        self.ready = (*self.ready[:cut], Call(function, self.ready[cut:], self._texts))
        self.slot, self._texts = FUNCTION, ()

    def _copied(self, unit: str) -> str:
        """The argument that the copied span stands for."""
        assert self.function is not None
        text = self.question.span(self._parts[0], self._parts[1])
        return meant(self.function, self.kind, text, unit, self.key, self.linker)

    def program(self) -> Call:
        """The program, once it is done."""
        return self.ready[-1]


class FreeDraft(Draft):
    """The same without constraints: any function may follow, any span may be copied as it is.

    `take` raises ParseError where a function finds too few inputs or too many calls are left over.
    """

    __slots__ = ()

    def tokens(self) -> list[int]:
        """All tokens; for the end of a span, those from its start on."""
        if self.slot not in POINTERS:
            return []
        return list(range(self.start if self.slot == END else 0, len(self.question.places)))

    def signature(self) -> object:
        """Equal for drafts that allow the same actions."""
        kind = self.kind if self.function is not None else None
        late, is_asked = self.prefix.calls >= MOST_CALLS, self.asking is not None
        return "free", self.slot, kind, late, bool(self.question.places), is_asked

    def keys(self) -> list[str]:
        """All keys of the kind."""
        return self.linker.schema.keys(KEYS[self.kind])

    def units(self) -> list[str]:
        """All units, and none."""
        return _with_none(self.linker.kb.units)

    def functions(self) -> list[str]:
        """The functions that have something to choose, until there are too many calls.

        "" ends the program.
        """
        if self.asking is not None:
            return [""]
        return [
            "",
            *(
                name
                for name, function in FUNCTIONS.items()
                if self.prefix.calls < MOST_CALLS
                and self.linker.has_items_of(function)
                and (self.question.places or not copied_by(function))
            ),
        ]

    def asked(self) -> list[str]:
        """The words of `ASKED`, once."""
        if self.asking is not None:
            return []
        return [word for word in ASKED if self.question.places or word != IS]

    def take(self, action: tuple[str, str] | int) -> None:
        """Go on by an action."""
        if self.function is None:
            assert not isinstance(action, int)
            is_end = not action[1] or action[1] in ASKED
            if is_end and len(self.ready) != 1:
                raise ParseError(f"{len(self.ready)} calls are left over at the end")
            if action[1] in ASKED:
                words = (IS, "") if action[1] == IS else (action[1],)
                try:
                    asked_of(self.ready[0], words)
                except ValueError as error:
                    raise ParseError(str(error), self.prefix.calls) from None
            elif action[1] and FUNCTIONS[action[1]].arity > len(self.ready):
                raise ParseError(f"{action[1]} finds too few inputs", self.prefix.calls)
        super().take(action)


def _with_none(units: Iterable[str]) -> list[str]:
    """No unit, then the others."""
    return [NO_UNIT, *(unit for unit in units if unit != NO_UNIT)]


def is_string(kind: Kind, key: Key | None, linker: Linker) -> bool:
    """Whether an untyped argument can only be a string, as all values of its key are."""
    return kind is Kind.ANY_VALUE and key is not None and linker.schema.types(key) == {"string"}


def meant(
    function: Function, kind: Kind, text: str, unit: str, key: Key | None, linker: Linker
) -> str:
    """The textual argument that a copied text stands for: a name that exists, a value.

    ``key`` is what it is a value of. A string that is no value, nor nearly one, stays as it is; one
    that is to be verified stays, too, where it is nearly one: it may be wrong on purpose.
    """
    if kind is Kind.NAME:
        return linker.name(text)
    if kind is Kind.STRING:
        return linker.string(text, key, near=not types_without_key(function))
    if is_string(kind, key, linker):
        return linker.string(text, key)
    constant = as_constant(text)
    if unit != NO_UNIT:
        return f"{constant} {unit}"
    if kind is Kind.ANY_VALUE and not is_number(constant) and not is_time(constant):
        return linker.string(text, key)
    return constant


class Drafting:
    """The programs that may be written for a question, for a search that numbers its choices.

    A choice numbers an action or, behind all of these, a token of the question. ``known`` keeps
    the numbers of the actions that drafts allow; no call is gone on with that ``finds_nothing``.
    """

    def __init__(
        self,
        draft: Draft,
        actions: Actions,
        known: dict[object, Ids],
        finds_nothing: Callable[[Call], bool] | None = None,
    ) -> None:
        self._draft, self._actions, self._known = draft, actions, known
        self._finds_nothing, self._size = finds_nothing, len(actions)

    def start(self) -> Draft:
        """Nothing is written yet."""
        return self._draft

    def allowed(self, draft: Draft) -> Ids:
        """The choices that may come next."""
        key = draft.signature()
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = np.array(self._actions.allowed(draft), np.int64)
        if draft.slot not in POINTERS:
            return found
        return np.concatenate([found, np.array(draft.tokens(), np.int64) + self._size])

    def advance(self, draft: Draft, choice: int) -> Draft | None:
        """The draft behind a choice, None where that ends a call that finds nothing.

        Raises ParseError where a free draft becomes no program.
        """
        after, token = draft.copy(), choice - self._size
        after.take(token if token >= 0 else self._actions.entries[choice])
        finds_nothing = self._finds_nothing
        if finds_nothing is not None and after.function is None and finds_nothing(after.ready[-1]):
            return None
        return after


@dataclass(frozen=True)
class Ended:
    """A program that is written, and what is asked of it."""

    program: Call
    asking: Asking = PLAIN


def outcome(draft: Draft | ParseError) -> Ended | ParseError:
    """The program of a draft that is to end, or why it is none."""
    if isinstance(draft, ParseError):
        return draft
    ended = draft.copy()
    try:
        ended.take((FUNCTION, ""))
    except ParseError as error:  # of a free draft
        return error
    return Ended(ended.program(), ended.asking or PLAIN)


def said(draft: Draft | ParseError) -> object:
    """What makes drafts one that are to end: a program may be copied from several places."""
    ended = outcome(draft)
    return ended if isinstance(ended, Ended) else str(ended)
