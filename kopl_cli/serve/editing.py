"""Changing programs with holes for the page, and what may stand in a hole."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeGuard, get_args
from weakref import WeakKeyDictionary

from kopl.completion import Completer, Scope
from kopl.drafts import Draft, Path, Slot, SlotKind
from kopl_cli.serve.bases import Base, Playground
from kopl_cli.serve.programs import VIEW
from kopl_cli.serve.routes import (
    MAYBE_TEXT,
    TEXT,
    WHOLE,
    Field,
    RequestError,
    Route,
    listed,
    record,
)

# --- completing -----------------------------------------------------------------------------------


class Completers:
    """One completer for each knowledge base, which keeps what it worked out."""

    def __init__(self, playground: Playground) -> None:
        self._lock = threading.Lock()
        self._made: WeakKeyDictionary[Base, Completer] = WeakKeyDictionary()

    def of(self, base: Base) -> Completer:
        """That of a knowledge base; made when it is first asked for."""
        with self._lock:
            if base not in self._made:
                self._made[base] = Completer(base.executor)
            return self._made[base]


def _complete(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    base = playground.base(given["kb"])
    draft, slot = base.draft(given["program"]), _slot(given["hole"])
    found = (
        playground.part(Completers)
        .of(base)
        .complete(draft, slot, given["prefix"], limit=given["limit"], scope=given["scope"])
    )
    return {
        "suggestions": [one.to_json() for one in found.suggestions],
        "count": found.count,
        "scope": given["scope"],
    }


def _slot(given: Mapping[str, Any]) -> Slot:
    kind, index = given.get("slot"), given.get("index", 0)
    if kind is None or kind not in get_args(SlotKind):
        expected = ", ".join(get_args(SlotKind))
        raise RequestError(f"hole: 'slot' must be one of {expected}", field="hole")
    if not _is_place(index):
        raise RequestError("hole: 'index' must be a number from 0", field="hole")
    return Slot(_path(given, "path", "hole"), kind, index)


def _is_place(number: Any) -> TypeGuard[int]:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def _path(given: Mapping[str, Any], name: str, field: str) -> Path:
    path = given.get(name)
    if not isinstance(path, list) or not all(map(_is_place, path)):
        raise RequestError(
            f"{field}: {name!r} must be a list of the numbers of inputs, from the last call down",
            field=field,
        )
    return tuple(path)


# --- changing -------------------------------------------------------------------------------------

Operation: TypeAlias = "Callable[[Draft, _Given], Draft]"


class _Given:
    """The fields of an operation, read as what they should be; raises RequestError."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def path(self, name: str = "path") -> Path:
        return _path(self._fields, name, "operation")

    def number(self, name: str, *, needed: bool = True) -> int | None:
        number = self._fields.get(name)
        if number is None and not needed:
            return None
        if not _is_place(number):
            raise RequestError(f"operation: {name!r} must be a number from 0", field="operation")
        return number

    def index(self) -> int:
        number = self.number("index")
        assert number is not None
        return number

    def text(self, name: str, *, needed: bool = True) -> str | None:
        text = self._fields.get(name)
        if text is None and not needed:
            return None
        if not isinstance(text, str):
            raise RequestError(f"operation: {name!r} must be a text", field="operation")
        return text

    def function(self) -> str:
        return str(self.text("function"))

    def truth(self, name: str) -> bool:
        return self._fields.get(name) is True


# What may be done to a program, and the fields that say where.
OPERATIONS: dict[str, Operation] = {
    "read": lambda draft, given: draft,
    "set": lambda draft, given: draft.with_argument(
        given.path(), given.index(), given.text("text", needed=False)
    ),
    "function": lambda draft, given: draft.with_function(given.path(), given.function()),
    "fill": lambda draft, given: draft.filled(given.path(), given.index(), given.function()),
    "wrap": lambda draft, given: draft.wrapped(
        given.path(), given.function(), given.number("at", needed=False)
    ),
    "delete": lambda draft, given: draft.without(given.path(), all=given.truth("all")),
    "move": lambda draft, given: draft.moved(given.path(), given.path("to")),
}
# To put a call before another is to put it around what the other takes.
OPERATIONS["insert"] = OPERATIONS["wrap"]


def _edit(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    base, operation = playground.base(given["kb"]), given["operation"]
    draft, done = base.draft(given["program"]), operation.get("do")
    if done not in OPERATIONS:
        raise RequestError(
            f"operation: 'do' must be one of {', '.join(OPERATIONS)}", field="operation"
        )
    return {"view": base.draft(OPERATIONS[done](draft, _Given(operation))).view()}


SUGGESTION = record(
    text=TEXT,
    kind=TEXT,
    count={"type": ["integer", "null"]},
    example=MAYBE_TEXT,
    doc=MAYBE_TEXT,
    also=MAYBE_TEXT,
    sets=listed(record(index=WHOLE, text=TEXT)),
)

ROUTES = [
    Route(
        "POST",
        "/api/complete",
        "What may stand in a place of a program: nothing of it leads to an empty set.",
        _complete,
        (
            Field("program", "program", "a program with holes; without one: a single hole"),
            Field("hole", "object", "the place: its path, slot and index", True),
            Field("prefix", "text", "what is typed already", default="", most=500),
            Field("limit", "integer", "at most so many", default=30, least=1, most=200),
            Field(
                "scope",
                "text",
                "what is there at this point, or all of the schema",
                default="here",
                choices=get_args(Scope),
            ),
        ),
        record(suggestions=listed(SUGGESTION), count=WHOLE, scope=TEXT),
    ),
    Route(
        "POST",
        "/api/edit",
        "Change a program: one operation, which gives another program.",
        _edit,
        (
            Field("program", "program", "a program with holes; without one: a single hole"),
            Field(
                "operation",
                "object",
                f"what to 'do' ({', '.join(OPERATIONS)}), at which path, and with what",
                True,
            ),
        ),
        record(view=VIEW),
    ),
]
