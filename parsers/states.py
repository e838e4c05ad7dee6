"""A program under construction: which actions may come next, and what they amount to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from kb.schema import Key
from kb.values import NO_UNIT
from kopl.automaton import KEYS, type_of_key, types_without_key
from kopl.errors import ParseError
from kopl.functions import FUNCTIONS, Function
from kopl.program import Call
from kopl.types import Kind, Type
from parsers.linking import Linker
from parsers.target import (
    END,
    FUNCTION,
    MOST_CALLS,
    POINTERS,
    START,
    UNIT,
    functions_after,
    slots_of,
)
from parsers.tokens import Question, as_constant, is_number, is_time

# What a copied text must read as; "text" is anything.
CONSTANTS = ("text", "quantity", "time")

AnyState = TypeVar("AnyState", bound="State")


def constant_of(kind: Kind) -> str:
    """What a copied text of a kind must read as: one of `CONSTANTS`."""
    return {Kind.QUANTITY: "quantity", Kind.TIME: "time"}.get(kind, "text")


def key_of_values(call: Call) -> Key | None:
    """The attribute whose values a call gives, None where it gives no values of an attribute."""
    if call.function.output is not Type.VALUES:
        return None
    return next(
        (
            (text, False)
            for (_, kind), text in zip(call.function.arguments, call.arguments, strict=True)
            if kind is Kind.KEY
        ),
        None,
    )


class State:
    """A program under construction: calls that are ready, and the call being written."""

    def __init__(self, question: Question, linker: Linker) -> None:
        self.question, self.linker = question, linker
        self.ready: list[Call] = []
        self.function: Function | None = None
        self.calls = 0
        self.done = False
        self._at = 0  # of the arguments of the function
        self._texts: list[str] = []  # the arguments that are ready
        self._parts: list[int] = []  # of the argument being copied: first token, last token

    def copy(self: AnyState) -> AnyState:
        """The same, to be gone on with in another way."""
        other = type(self)(self.question, self.linker)
        other.ready, other.function = list(self.ready), self.function
        other.calls, other.done, other._at = self.calls, self.done, self._at
        other._texts, other._parts = list(self._texts), list(self._parts)
        return other

    @property
    def slot(self) -> str:
        """What the next action must be."""
        return FUNCTION if self.function is None else slots_of(self.kind)[len(self._parts)]

    @property
    def kind(self) -> Kind:
        """The kind of the argument being written; there must be one."""
        assert self.function is not None
        return self.function.arguments[self._at][1]

    @property
    def start(self) -> int:
        """The token at which the text being copied begins, -1 where none is."""
        return self._parts[0] if self._parts else -1

    def tokens(self) -> list[int]:
        """The tokens that the slot at hand may point to (none for a slot that does not copy).

        A number is copied from where the question has one, a time from where it has a time.
        """
        slot = self.slot
        if slot not in POINTERS:
            return []
        spans = self.question.copyable(self.constant())
        return list(spans) if slot == START else spans[self.start]

    def constant(self) -> str:
        """What the text being copied must read as; of a key with one type of values, that one."""
        if self.kind is not Kind.ANY_VALUE or (key := self.key) is None:
            return constant_of(self.kind)
        types = self.linker.schema.types(key)
        only = next(iter(types)) if len(types) == 1 else "text"
        return only if only in CONSTANTS and self.question.copyable(only) else "text"

    @property
    def key(self) -> Key | None:
        """The key that the argument being written is a value of, None where none is named."""
        assert self.function is not None
        if (key := key_before(self.function, self._at, self._texts)) is not None:
            return key
        inputs = self.ready[len(self.ready) - self.function.arity :]
        return next((key for call in inputs if (key := key_of_values(call))), None)

    def keys(self) -> list[str]:
        """The keys that the slot at hand allows: those with values of the type compared with."""
        assert self.function is not None
        return self.linker.schema.keys(KEYS[self.kind], type_of_key(self.function, self._at))

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
        """Equal for states that allow the same actions, tokens left aside."""
        if self.function is not None:
            slot, kind = self.slot, self.kind
            if kind in KEYS:
                return slot, type_of_key(self.function, self._at)
            return (slot, kind, self.key, self._copies_number()) if slot == UNIT else (slot, kind)
        readable = [bool(self.question.copyable(name)) for name in CONSTANTS]
        types = [call.function.output for call in self.ready]
        key = key_of_values(self.ready[-1]) if self.ready else None
        return (*types, key, *readable, self.calls >= MOST_CALLS)

    def functions(self) -> list[str]:
        """The functions that may come next; "" ends the program."""
        types = [call.function.output for call in self.ready]
        return [
            name
            for name in functions_after(types, self.calls)
            if not name or self._sayable(FUNCTIONS[name])
        ]

    def _sayable(self, function: Function) -> bool:
        """Whether the question and the knowledge base have what a function's texts must be."""
        kinds = [kind for _, kind in function.arguments]
        wanted = {constant_of(kind) for kind in kinds if START in slots_of(kind)}
        if not all(self.question.copyable(constant) for constant in wanted):
            return False
        if types := types_without_key(function):
            key = key_of_values(self.ready[-1])
            # Of a key without any values nothing is known, so nothing is forbidden.
            if key is not None and (own := self.linker.schema.types(key)):
                return own.issuperset(types)
        return self.linker.has_items_of(function)

    def take(self, action: tuple[str, str] | int) -> None:
        """Go on by an action: an entry of `Actions`, or the number of a token."""
        if self.function is None:
            assert not isinstance(action, int)
            if not action[1]:
                self.done = True
                return
            self.function = FUNCTIONS[action[1]]
            self._at, self._texts, self._parts = 0, [], []
        elif isinstance(action, int):
            self._parts.append(action)
            if len(self._parts) == len(slots_of(self.kind)):
                self._add(self._copied(NO_UNIT))
        elif action[0] == UNIT:
            self._add(self._copied(action[1]))
        else:  # a schema item, a word of a choice, a known text
            self._add(action[1])
        if self._at == len(self.function.arguments):
            self._close()

    def _add(self, text: str) -> None:
        self._texts.append(text)
        self._at, self._parts = self._at + 1, []

    def _close(self) -> None:
        function = self.function
        assert function is not None
        cut = len(self.ready) - function.arity
        self.ready[cut:] = [Call(function, tuple(self.ready[cut:]), tuple(self._texts))]
        self.function = None
        self.calls += 1

    def _copied(self, unit: str) -> str:
        """The argument that the copied span stands for."""
        assert self.function is not None
        text = self.question.span(self._parts[0], self._parts[1])
        return meant(self.function, self.kind, text, unit, self.key, self.linker)

    def program(self) -> Call:
        """The program, once it is done."""
        return self.ready[-1]


class FreeState(State):
    """The same without constraints: any function may follow, any span may be copied as it is.

    `take` raises ParseError where a function finds too few inputs or too many calls are left over.
    """

    def tokens(self) -> list[int]:
        """All tokens; for the end of a span, those from its start on."""
        slot = self.slot
        if slot not in POINTERS:
            return []
        return list(range(self.start if slot == END else 0, len(self.question.places)))

    def signature(self) -> object:
        """Equal for states that allow the same actions."""
        kind = self.kind if self.function is not None else None
        return ("free", self.slot, kind, self.calls >= MOST_CALLS, bool(self.question.places))

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
        return [
            "",
            *(
                name
                for name, function in FUNCTIONS.items()
                if self.calls < MOST_CALLS
                and self.linker.has_items_of(function)
                and (self.question.places or not _copies(function))
            ),
        ]

    def take(self, action: tuple[str, str] | int) -> None:
        """Go on by an action."""
        if self.function is None:
            assert not isinstance(action, int)
            if not action[1] and len(self.ready) != 1:
                raise ParseError(f"{len(self.ready)} calls are left over at the end")
            if action[1] and FUNCTIONS[action[1]].arity > len(self.ready):
                raise ParseError(f"{action[1]} finds too few inputs", self.calls)
        super().take(action)


def _with_none(units: Iterable[str]) -> list[str]:
    """No unit, then the others."""
    return [NO_UNIT, *(unit for unit in units if unit != NO_UNIT)]


def _copies(function: Function) -> bool:
    """Whether some argument of a function is copied from the question."""
    return any(START in slots_of(kind) for _, kind in function.arguments)


def key_before(function: Function, at: int, texts: list[str]) -> Key | None:
    """The key that the argument ``at`` of a function is a value of, by the arguments before it."""
    for before in range(at - 1, -1, -1):
        kind = function.arguments[before][1]
        if kind in KEYS:
            return texts[before], KEYS[kind]
    return None


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
