"""What a route of the server is: declared once, as data.

The application serves the declared routes and `kopl_cli.serve.openapi` describes them. A module
that offers some has a list ``ROUTES`` and stands in `kopl_cli.serve.application.MODULES`. A handler
is a plain function of the playground and of what was given, run in a worker thread. It returns what
becomes JSON, a `Reply` for another status, a `Download`, `Events`, or a future of one of these for
what has to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from kopl.errors import ProgramError
from kopl.sparql.errors import MissingPackageError
from kopl_base.errors import KoplError, near_names

# Bytes that a request's body may have.
BODY = 64 * 1024
# The header, with the value 200, by which a client asks that errors of these statuses come with the
# status 200: a browser writes each other one to its console, though a person only mistyped.
QUIET = "X-Errors"
QUIETED = (400, 404, 422)
# The longest text of a program or a query.
LONGEST = 60_000
# Characters of a question.
LONGEST_QUESTION = 2000

FieldType: TypeAlias = Literal[
    "text", "integer", "number", "truth", "object", "list", "program", "any"
]
Schema: TypeAlias = Mapping[str, Any]

_SCHEMAS: dict[FieldType, dict[str, Any]] = {
    "text": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "truth": {"type": "boolean"},
    "object": {"type": "object"},
    "list": {"type": "array", "items": {}},
    # Any spelling: a text, KQA Pro's list, a tree of calls with holes.
    "program": {"type": ["string", "array", "object", "null"]},
    "any": {},
}
_FORMS: dict[FieldType, tuple[type, ...]] = {
    "text": (str,),
    "integer": (int,),
    "number": (int, float),
    "truth": (bool,),
    "object": (dict,),
    "list": (list,),
    "program": (str, list, dict, type(None)),
}
_CALLED: dict[FieldType, str] = {
    "text": "a text",
    "integer": "a whole number",
    "number": "a number",
    "truth": "true or false",
    "object": "an object",
    "list": "a list",
    "program": "a program in any spelling",
}


class RequestError(KoplError):
    """A request that is refused: its HTTP status, the field that is wrong, and what to do."""

    kind = "request"
    status = 400

    def __init__(
        self, message: str, *, status: int | None = None, field: str | None = None,
        to_try: str | None = None,
    ) -> None:  # fmt: skip
        self.message, self.field, self.to_try = message, field, to_try
        if status is not None:
            self.status = status
        super().__init__(message)


class BusyError(RequestError):
    """More is asked for at once than is done at once."""

    kind = "busy"
    status = 503


class MissingPartError(RequestError):
    """A package, a file or a trained run that is not there; ``to_try`` says how to get it."""

    kind = "missing"
    status = 501


def told(error: KoplError) -> tuple[int, dict[str, Any]]:
    """The status and the object that tell of an error."""
    kind, status = error.kind, getattr(error, "status", 422)
    if isinstance(error, MissingPackageError):
        kind, status = MissingPartError.kind, MissingPartError.status
    shown = {
        "kind": kind,
        "message": str(getattr(error, "message", None) or error),
        "call": error.call if isinstance(error, ProgramError) else None,
        "field": getattr(error, "field", None),
        "to_try": getattr(error, "to_try", None),
    }
    return status, {"error": shown}


@dataclass(frozen=True)
class Field:
    """One field of a request: in the body of a POST, else in the query or in the path.

    ``least`` and ``most`` bound a number, and the length of a text or a list.
    """

    name: str
    type: FieldType
    doc: str
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    # Of an object: what its parts are, as JSON Schema.
    parts: Schema = field(default_factory=dict)

    def schema(self) -> dict[str, Any]:
        """The field as JSON Schema."""
        schema = {**_SCHEMAS[self.type], "description": self.doc}
        if self.choices:
            schema["enum"] = [*self.choices]
        bounds = {"text": ("minLength", "maxLength"), "list": ("minItems", "maxItems")}
        least, most = bounds.get(self.type, ("minimum", "maximum"))
        schema |= {least: self.least} if self.least is not None else {}
        schema |= {most: self.most} if self.most is not None else {}
        if self.parts:
            schema |= {"properties": dict(self.parts), "additionalProperties": False}
        return schema | ({"default": self.default} if self.default is not None else {})

    def read(self, given: Any, *, written: bool = False) -> Any:
        """The field's value; ``written``: it stands as a text in a query or a path.

        Raises RequestError that names the field.
        """
        value = self._unwritten(given) if written else given
        if value is None and not self.required:
            return self.default
        forms = _FORMS.get(self.type)
        wrong = forms is not None and not isinstance(value, forms)
        if wrong or (isinstance(value, bool) and self.type in ("integer", "number")):
            raise self._refused(f"{_CALLED[self.type]} was expected")
        if self.choices and value not in self.choices:
            near = near_names(str(value), self.choices, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise self._refused(f"it must be one of {', '.join(self.choices)}{hint}")
        size, what = value, ""
        if isinstance(value, str | list):
            size, what = len(value), " characters" if isinstance(value, str) else " items"
        if self.least is not None and size < self.least:
            raise self._refused(f"at least {self.least:g}{what} are expected")
        if self.most is not None and size > self.most:
            raise self._refused(f"at most {self.most:g}{what} are allowed")
        return value

    def _unwritten(self, text: str) -> Any:
        try:
            if self.type == "integer":
                return int(text)
            if self.type == "number":
                return float(text)
        except ValueError:
            return text
        return {"true": True, "false": False}.get(text, text) if self.type == "truth" else text

    def _refused(self, message: str) -> RequestError:
        return RequestError(f"{self.name}: {message}", field=self.name)


# Every request may say which knowledge base it is about.
KB = Field("kb", "text", "the id of the knowledge base; without it the server's first one")


@dataclass(frozen=True)
class Reply:
    """What is answered with another status than 200, or with cookies and the like."""

    data: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Download:
    """A text that is answered as a file of that name and media type."""

    name: str
    media: str
    text: str


@dataclass(frozen=True)
class Event:
    """A server-sent event."""

    name: str
    data: Any


@dataclass(frozen=True)
class Events:
    """A stream of server-sent events.

    Whoever waits for the next event gives None once a second or so: the connection may be gone.
    """

    source: Iterator[Event | None]


# Takes the `kopl_cli.serve.bases.Playground` and the fields that were given.
Handler: TypeAlias = Callable[[Any, dict[str, Any]], Any]


@dataclass(frozen=True)
class Route:
    """A route: ``path`` may have parts in braces, which are among its fields.

    ``response`` is the JSON Schema of what comes back, ``body`` how many bytes may be sent, and
    ``events`` says that it is a stream. A route that is ``open`` is answered without the token.
    """

    method: Literal["GET", "POST", "DELETE"]
    path: str
    summary: str
    handler: Handler
    fields: tuple[Field, ...] = ()
    response: Schema = field(default_factory=lambda: {"type": "object"})
    body: int = BODY
    status: int = 200
    events: bool = False
    open: bool = False

    @property
    def all_fields(self) -> dict[str, Field]:
        """The fields by their names, with that of the knowledge base."""
        return {one.name: one for one in (*self.fields, KB)}

    @property
    def in_path(self) -> list[str]:
        """The names of the parts of the path that are fields."""
        parts = (part for part in self.path.split("/") if part.startswith("{"))
        return [part[1:-1].partition(":")[0] for part in parts]

    def read(self, given: Mapping[str, Any], *, written: bool) -> dict[str, Any]:
        """The fields of a request with their values, those left out with their defaults.

        Raises RequestError for a field that there is not, that is missing or that is wrong.
        """
        known = self.all_fields
        for name in given:
            if name not in known:
                near = near_names(name, known, 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise RequestError(f"there is no field {name!r}{hint}", field=name)
        found = {}
        for name, one in known.items():
            if name in given:
                found[name] = one.read(given[name], written=written or name in self.in_path)
            elif one.required:
                raise RequestError(f"the field {name!r} is missing: {one.doc}", field=name)
            else:
                found[name] = one.default
        return found


def listed(of: Schema) -> dict[str, Any]:
    """The JSON Schema of a list."""
    return {"type": "array", "items": of}


def record(**fields: Schema) -> dict[str, Any]:
    """The JSON Schema of an object that has all these fields."""
    return {"type": "object", "properties": fields, "required": [*fields]}


TEXT: Schema = {"type": "string"}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
TRUTH: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
MAYBE: Schema = {"type": ["object", "null"]}
