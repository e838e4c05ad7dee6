"""``/api/openapi.json``: the declared routes as an OpenAPI document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kopl_base.packages import version
from kopl_cli.serve.routes import MAYBE_TEXT, QUIET, QUIETED, TEXT, Route, record

PATH = "/api/openapi.json"

# What every error looks like.
ERROR = record(
    error=record(
        kind=TEXT,
        message=TEXT,
        call={"type": ["integer", "null"], "description": "the call's number in post-order"},
        field=MAYBE_TEXT,
        to_try=MAYBE_TEXT,
    )
)
# What any route may answer instead.
ERRORS = {
    "400": "a field is missing, unknown or wrong",
    "401": "a token is needed",
    "403": "a page of another address asks",
    "404": "there is no such knowledge base or thing",
    "421": "the server is not called so",
    "422": "the program, the question or the query is wrong; the kind says how",
    "500": "something went wrong in the server",
    "501": "a package or a file is missing",
    "503": "too much is asked for at once",
}
OF_BODIES = {"413": "the body is too large", "415": "the body is not application/json"}


def with_document(routes: Sequence[Route]) -> list[Route]:
    """The routes, and the one that describes them and itself."""
    every: list[Route] = [*routes]
    every.append(
        Route(
            "GET", PATH, "This document.", lambda *_: document(every),
            response=record(openapi=TEXT, info={"type": "object"}, paths={"type": "object"}),
        )
    )  # fmt: skip
    return every


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """The OpenAPI document of the routes."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(template(route.path), {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "The playground of the KoPL toolkit",
            "version": version(),
            "description": "What the page of `kopl serve` asks; nothing else is used by it.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Error": ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def template(path: str) -> str:
    """A path as the document writes it: ``/a/{id:path}`` as ``/a/{id}``."""
    return "/".join(
        part.partition(":")[0] + "}" if part.startswith("{") and ":" in part else part
        for part in path.split("/")
    )


def _operation(route: Route) -> dict[str, Any]:
    in_path = route.in_path
    in_body = route.method == "POST"
    fields = route.all_fields
    parameters = [
        {
            "name": name,
            "in": "path" if name in in_path else "query",
            "required": name in in_path or one.required,
            "description": one.doc,
            "schema": one.schema(),
        }
        for name, one in fields.items()
        if name in in_path or not in_body
    ]
    parameters.append({
        "name": QUIET,
        "in": "header",
        "required": False,
        "description": f"with 200, errors of the statuses {', '.join(map(str, QUIETED))} come with"
        " the status 200: then a browser writes nothing to its console",
        "schema": {"type": "string", "enum": ["200"]},
    })  # fmt: skip
    operation: dict[str, Any] = {"summary": route.summary, "parameters": parameters}
    if in_body:
        own = {name: one for name, one in fields.items() if name not in in_path}
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {name: one.schema() for name, one in own.items()},
            "additionalProperties": False,
        }
        if required := [name for name, one in own.items() if one.required]:
            schema["required"] = required
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema}},
            "description": f"at most {route.body:,} bytes",
        }
    media = "text/event-stream" if route.events else "application/json"
    schema = {"type": "string"} if route.events else dict(route.response)
    answered = {str(route.status): {"description": "done", "content": {media: {"schema": schema}}}}
    wrong = {"$ref": "#/components/schemas/Error"}
    for status, said in sorted((ERRORS | (OF_BODIES if in_body else {})).items()):
        answered[status] = {
            "description": said,
            "content": {"application/json": {"schema": wrong}},
        }
    operation["responses"] = answered
    if not route.open:
        operation["security"] = [{"token": []}]
    return operation
