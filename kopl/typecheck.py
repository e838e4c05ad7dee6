"""Typing: whether the calls of a program fit together, and what its textual arguments mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kb.values import Condition, Quantity, Time, ValueReadError, read_quantity, read_time
from kopl.errors import TypingError
from kopl.functions import FUNCTIONS, Function, meant
from kopl.program import Call, linked
from kopl.types import Kind
from kopl_base.errors import counted

# What a textual argument becomes: names and words stay texts, constants become values.
Argument: TypeAlias = str | Quantity | Time | Condition


@dataclass(frozen=True, slots=True)
class Step:
    """A call that was checked: its function, the numbers of its inputs, its typed arguments."""

    call: Call
    function: Function
    inputs: tuple[int, ...]
    arguments: tuple[Argument, ...]


def check(program: Call) -> list[Step]:
    """The program as steps in post-order, ready to be executed.

    Raises TypingError that names the call, what was expected and what was found.
    """
    steps: list[Step] = []
    for number, (call, inputs) in enumerate(linked(program)):
        function = call.function
        if len(inputs) != len(function.inputs):
            raise TypingError(wrong_count(function, len(call.inputs), call.arguments), number)
        for place, at in enumerate(inputs):
            if (message := mismatch(function, place, steps[at].function)) is not None:
                raise TypingError(message, number)
        if len(call.arguments) != len(function.arguments):
            raise TypingError(wrong_count(function, len(call.inputs), call.arguments), number)
        steps.append(Step(call, function, inputs, typed_arguments(call, number)))
    return steps


def typed_arguments(call: Call, number: int | None = None) -> tuple[Argument, ...]:
    """The textual arguments of a call with as many as its function takes; raises TypingError."""
    function = call.function
    try:
        return tuple(
            [read(text) for read, text in zip(_readers(function), call.arguments, strict=True)]
        )
    except ValueReadError as error:
        raise TypingError(f"{function.name}: {error}", number) from None


def mismatch(function: Function, place: int, given: Function) -> str | None:
    """Why a function cannot take what another gives as its input of that place, from 0; or None."""
    expected = function.inputs[place]
    if expected.accepts(given.output):
        return None
    return (
        f"{function.name} expects {expected.value} as input"
        f"{f' {place + 1}' if function.arity > 1 else ''}, found {given.output.value}"
        f" (given by {given.name}){_input_hint(function)}"
    )


def read_argument(function: Function, place: int, text: str) -> Argument:
    """What a text means as a function's argument of that place, from 0; raises ValueReadError."""
    return _readers(function)[place](text)


def misread(function: Function, place: int, text: str) -> str | None:
    """Why a text cannot be a function's argument of that place, from 0; None where it can."""
    try:
        read_argument(function, place, text)
    except ValueReadError as error:
        return f"{function.name}: {error}"
    return None


def is_well_typed(program: Call) -> bool:
    """Whether `check` accepts the program."""
    try:
        check(program)
    except TypingError:
        return False
    return True


def wrong_count(function: Function, inputs: int, arguments: Sequence[str]) -> str:
    """What is said of a call with another number of inputs or arguments than its function takes."""
    return (
        f"{function.name} takes {_count(function.arity, 'input')} and"
        f" {_count(len(function.arguments), 'textual argument')}, found"
        f" {_count(inputs, 'input')} and"
        f" {_count(len(arguments), 'textual argument')}; write {function.signature}"
        f"{_bare_hint(arguments)}"
    )


def _bare_hint(arguments: Sequence[str]) -> str:
    """Says which textual arguments are names of functions: a call has parentheses."""
    named = {text: function for text in arguments if (function := meant(text))}
    return "".join(
        f"; {text!r} is a text here, the call is {function.signature}"
        for text, function in named.items()
    )


def _count(number: int, noun: str) -> str:
    return counted(number, noun) if number else f"no {noun}s"


def _input_hint(function: Function) -> str:
    if function.name.startswith("QFilter"):
        return "; apply it directly to a Filter of a value, a Relate or another QFilter"
    if function.name.startswith("Verify"):
        return "; apply it to QueryAttr or QueryAttrUnderCondition"
    return ""


def _text(text: str) -> Argument:
    return text


def _choice(kind: Kind) -> Callable[[str], Argument]:
    allowed = frozenset(kind.choices)

    def read(text: str) -> Argument:
        if text not in allowed:
            raise ValueReadError(f"{kind.value} was expected, found {text!r}")
        return text

    return read


_READERS: dict[Kind, Callable[[str], Argument]] = {
    **{kind: _choice(kind) if kind.choices else _text for kind in Kind},
    Kind.QUANTITY: read_quantity,
    Kind.TIME: read_time,
    Kind.ANY_VALUE: Condition.untyped,
}
_READERS_OF = {
    name: tuple(_READERS[kind] for _, kind in function.arguments)
    for name, function in FUNCTIONS.items()
}


def _readers(function: Function) -> tuple[Callable[[str], Argument], ...]:
    return _READERS_OF[function.name]
