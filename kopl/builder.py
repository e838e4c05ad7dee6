"""Programs written as Python: ``find("Norway").relate("capital").query_name()``.

Every function of the language is a method, named as the function in snake case (``filter_num``,
``query_attr``; ``and_`` and ``or_``); functions without inputs are ``find`` and ``find_all``. The
methods are made from the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kb.values import Date, Quantity, Year
from kopl.errors import TypingError
from kopl.functions import FUNCTIONS, Function
from kopl.program import Call
from kopl.typecheck import check
from kopl.types import Kind

# Arguments that may be left out, with what they are then.
DEFAULTS = {Kind.DIRECTION: "forward", Kind.OPERATOR: "="}


class Expression:
    """A program under construction; methods add a call on top. Raises TypingError at once.

    >>> find("Norway").relate("capital").query_name().program
    <program QueryName(Relate(Find("Norway"), "capital", "forward"))>
    """

    def __init__(self, program: Call) -> None:
        check(program)
        self.program = program

    def __getattr__(self, name: str) -> Callable[..., Expression]:
        function = _METHODS.get(name)
        if function is None or not function.inputs:
            raise AttributeError(f"KoPL has no function for the method {name!r}")

        def method(*parts: Any, **named: Any) -> Expression:
            return _apply(function, (self, *parts), named)

        method.__doc__ = function.doc
        return method

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name, f in _METHODS.items() if f.inputs)]

    def __str__(self) -> str:
        return str(self.program)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.program == other.program

    def __hash__(self) -> int:
        return hash(self.program)


def find(name: str) -> Expression:
    """The entities and concepts with that name."""
    return _apply(FUNCTIONS["Find"], (name,), {})


def find_all() -> Expression:
    """All entities."""
    return _apply(FUNCTIONS["FindAll"], (), {})


def _apply(function: Function, parts: tuple[Any, ...], named: dict[str, Any]) -> Expression:
    inputs, given = parts[: function.arity], list(parts[function.arity :])
    for part in inputs:
        if not isinstance(part, Expression):
            raise TypingError(f"{function.name} expects a program as input, found {part!r}")
    texts = []
    for name, kind in function.arguments:
        if given:
            if name in named:
                raise TypingError(f"{function.name} got {name!r} twice")
            value = given.pop(0)
        elif name in named:
            value = named.pop(name)
        elif kind in DEFAULTS:
            value = DEFAULTS[kind]
        else:
            raise TypingError(f"{function.name} needs {name!r}; write {function.signature}")
        texts.append(_text(function, name, value))
    if given or named:
        extra = [*map(repr, given), *named]
        raise TypingError(f"{function.name} does not take {', '.join(extra)}")
    return Expression(Call(function, tuple(part.program for part in inputs), tuple(texts)))


def _text(function: Function, name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(Quantity(value))
    if isinstance(value, Quantity | Year | Date):
        return str(value)
    raise TypingError(f"{function.name}: {name} must be a text or a value, not {value!r}")


def _method_name(function: Function) -> str:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", function.name).lower()
    return f"{name}_" if name in ("and", "or") else name


_METHODS = {_method_name(function): function for function in FUNCTIONS.values()}
