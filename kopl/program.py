"""The syntax tree: one frozen node type, shared freely between programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar

from kopl.functions import Function


class Tree(Protocol):
    """Something made of others like it, as a program is of calls."""

    @property
    def inputs(self) -> Sequence[Any]:
        """The parts right below, in their order."""


Node = TypeVar("Node", bound=Tree)


class Call:
    """A function applied to inputs (calls) and textual arguments (strings as they were written).

    Immutable, hashable, compared by content. ``size`` counts the calls of the tree and ``depth``
    its longest path. A `Call` may be ill-typed; `kopl.typecheck` tells.
    """

    __slots__ = ("_hash", "arguments", "depth", "function", "inputs", "size")

    function: Function
    inputs: tuple[Call, ...]
    arguments: tuple[str, ...]
    size: int
    depth: int
    _hash: int

    def __init__(
        self, function: Function, inputs: tuple[Call, ...] = (), arguments: tuple[str, ...] = ()
    ) -> None:
        put = object.__setattr__
        put(self, "function", function)
        put(self, "inputs", inputs)
        put(self, "arguments", arguments)
        size, depth = 1, 0
        for part in inputs:
            size += part.size
            if part.depth > depth:
                depth = part.depth
        put(self, "size", size)
        put(self, "depth", depth + 1)
        put(self, "_hash", hash((function.name, arguments, *[part._hash for part in inputs])))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a program cannot be changed; build a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a program cannot be changed; build a new one")

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Call):
            return NotImplemented
        pairs = [(self, other)]
        while pairs:
            left, right = pairs.pop()
            if left is right:
                continue
            if (
                left.function is not right.function
                or left.arguments != right.arguments
                or len(left.inputs) != len(right.inputs)
                or left.size != right.size
            ):
                return False
            pairs.extend(zip(left.inputs, right.inputs, strict=True))
        return True

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.function.name, self.inputs, self.arguments)

    def __str__(self) -> str:
        """The program in the nested spelling, all texts quoted."""
        stack: list[str] = []
        for call in post_order(self):
            arity = len(call.inputs)
            parts = stack[len(stack) - arity :] if arity else []
            del stack[len(stack) - arity :]
            parts += [json.dumps(text, ensure_ascii=False) for text in call.arguments]
            stack.append(f"{call.function.name}({', '.join(parts)})")
        return stack[0]

    def __repr__(self) -> str:
        return f"<program {self}>"


def _rebuild(name: str, inputs: tuple[Call, ...], arguments: tuple[str, ...]) -> Call:
    from kopl.functions import FUNCTIONS

    return Call(FUNCTIONS[name], inputs, arguments)


def post_order(program: Node) -> Iterator[Node]:
    """The calls of a program, inputs before the call that takes them; the root comes last."""
    stack: list[tuple[Node, int]] = [(program, 0)]
    while stack:
        call, at = stack.pop()
        if at < len(call.inputs):
            stack.append((call, at + 1))
            stack.append((call.inputs[at], 0))
        else:
            yield call


def linked(program: Node) -> list[tuple[Node, tuple[int, ...]]]:
    """The calls in post-order, each with the places of its inputs in that list."""
    result: list[tuple[Node, tuple[int, ...]]] = []
    ready: list[int] = []
    for call in post_order(program):
        arity = len(call.inputs)
        inputs = tuple(ready[len(ready) - arity :]) if arity else ()
        del ready[len(ready) - arity :]
        ready.append(len(result))
        result.append((call, inputs))
    return result
