"""Typed programs while they are written, call by call in post-order: what may come next.

An *argument* is written behind the arguments before it; a call is *ready* when all of its arguments
are written, and waits for a later call that takes it as an input. All follows from the declarations
of the functions: nothing is said of any function by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple, TypeAlias

from kb.schema import Key, ValueType
from kb.store import NameKind
from kopl.functions import Function
from kopl.types import Kind, Type

# A program has at most so many calls, of which at most so many sets wait at a time.
MOST_CALLS, MOST_OPEN = 20, 4

# What a textual argument of a kind must be the value of; an untyped one may be any.
TYPE_OF: dict[Kind, ValueType] = {
    Kind.STRING: "string",
    Kind.QUANTITY: "quantity",
    Kind.TIME: "time",
    # Who compares without a constant compares quantities.
    Kind.EXTREME: "quantity",
    Kind.COMPARATIVE: "quantity",
}

# The kinds of arguments that name items of a knowledge base's schema.
ITEMS: dict[Kind, NameKind] = {
    Kind.KEY: "key",
    Kind.QUALIFIER_KEY: "qualifier key",
    Kind.RELATION: "relation",
    Kind.CONCEPT: "concept",
}

# The kinds of arguments that are keys, and whether a qualifier's.
KEYS = {Kind.KEY: False, Kind.QUALIFIER_KEY: True}


@cache
def type_of_key(function: Function, at: int) -> ValueType | None:
    """The type that the values of a key argument must have, by the arguments behind it."""
    for _, kind in function.arguments[at + 1 :]:
        if kind in TYPE_OF:
            return TYPE_OF[kind]
        if kind in KEYS:
            break
    return None


@cache
def types_without_key(function: Function) -> tuple[ValueType, ...]:
    """The types of values that are compared with those of the input, as Verify does."""
    kinds = [kind for _, kind in function.arguments]
    if not KEYS.keys().isdisjoint(kinds):
        return ()
    return tuple(TYPE_OF[kind] for kind in kinds if kind in TYPE_OF)


class Ready(NamedTuple):
    """A call that no later one takes yet: its output, and the attribute whose values it gives."""

    type: Type
    key: Key | None


class Prefix(NamedTuple):
    """A program as far as it is written: up to between two calls, or to an argument of one.

    ``key`` is what the argument at hand would be a value of, ``asked`` the attribute whose values
    the call would give, each None where there is none.
    """

    ready: tuple[Ready, ...] = ()
    calls: int = 0
    function: Function | None = None
    at: int = 0
    key: Key | None = None
    asked: Key | None = None

    def begun(self, function: Function) -> Prefix:
        """At the first argument of a call; behind the call where it takes none."""
        # A value may be one of the key whose values an input gives.
        inputs = self.ready[len(self.ready) - len(function.inputs) :]
        key = next((one.key for one in inputs if one.key), None)
        prefix = Prefix(self.ready, self.calls, function, 0, key)
        return prefix if function.arguments else prefix.closed()

    def argued(self, text: str) -> Prefix:
        """Behind an argument; behind the call where it is the last one."""
        function, at, key, asked = self.function, self.at, self.key, self.asked
        assert function is not None
        kind = function.arguments[at][1]
        if kind in KEYS:
            key = (text, KEYS[kind])
            asked = asked if KEYS[kind] else key
        prefix = Prefix(self.ready, self.calls, function, at + 1, key, asked)
        return prefix if at + 1 < len(function.arguments) else prefix.closed()

    def closed(self) -> Prefix:
        """Behind the call at hand, whichever of its arguments are written."""
        function = self.function
        assert function is not None
        key = self.asked if function.output is Type.VALUES else None
        waiting = self.ready[: len(self.ready) - len(function.inputs)]
        return Prefix((*waiting, Ready(function.output, key)), self.calls + 1)

    @property
    def may_end(self) -> bool:
        """Whether a program that is written up to between two calls may end there."""
        return len(self.ready) == 1

    @property
    def kind(self) -> Kind:
        """The kind of the argument at hand; there must be one."""
        assert self.function is not None
        return self.function.arguments[self.at][1]


# The calls that wait, and how many more may be made, as far as it matters.
Waiting: TypeAlias = tuple[tuple[Ready, ...], int]


class Automaton:
    """Which calls may follow, so that a program can always be brought to a well-typed end.

    ``functions`` are those whose arguments can be written at all; ``has`` tells whether a key has
    values of a type. Of ``most_calls`` calls so many are kept for those that join the sets which
    wait; with ``joins_beyond`` these come beyond the most, so that none is kept.
    """

    def __init__(
        self,
        functions: Iterable[Function],
        has: Callable[[Key, ValueType], bool] = lambda key, type: True,
        *,
        most_calls: int = MOST_CALLS,
        most_open: int = MOST_OPEN,
        joins_beyond: bool = False,
    ) -> None:
        self.most_calls, self.most_open, self.joins_beyond = most_calls, most_open, joins_beyond
        self._functions, self._has = tuple(functions), has
        self._joinable = _joinable(self._functions)
        self._found: dict[Waiting, tuple[Function, ...]] = {}

    def waiting(self, prefix: Prefix) -> Waiting:
        """What decides between two calls which may follow; equal where the same ones may."""
        # More calls are not needed for any sets that may wait.
        return prefix.ready, min(max(self.most_calls - prefix.calls, 0), self.most_open)

    def following(self, prefix: Prefix) -> tuple[Function, ...]:
        """The functions that may be called next, between two calls."""
        key = self.waiting(prefix)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = tuple(
                one for one in self._functions if self._fits(one, *key)
            )
        return found

    def _fits(self, function: Function, ready: tuple[Ready, ...], left: int) -> bool:
        """Whether a function may come next, and the program still end with ``left`` more calls."""
        waiting = len(ready) - len(function.inputs)
        if waiting < 0:
            return False
        types = types_without_key(function)
        for wanted, (given, key) in zip(function.inputs, ready[waiting:], strict=True):
            if not wanted.accepts(given):
                return False
            if key is not None and not all(self._has(key, type) for type in types):
                return False
        beside = [given for given, _ in ready[:waiting]] + [function.output]
        if len(beside) > 1 and not self._joinable.issuperset(beside):
            return False
        if len(beside) > self.most_open:
            return False
        if self.joins_beyond:
            return left > 0 or len(function.inputs) == 2
        # This call, and as each call that joins two leaves one less, one for each but the last.
        return len(beside) <= left


def _joinable(functions: Iterable[Function]) -> frozenset[Type]:
    """The types of which two may become one: only they may stand beside others."""
    pairs = [function for function in functions if len(function.inputs) == 2]
    return frozenset(
        type
        for type in Type
        for function in pairs
        if all(w.accepts(type) and w.accepts(function.output) for w in function.inputs)
    )
