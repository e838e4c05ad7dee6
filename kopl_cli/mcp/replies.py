"""How results and errors are told: as much of a list as fits, long texts cut, and what to try."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from kopl.errors import ParseError, TypingError
from kopl_base.errors import KoplError
from kopl_cli.mcp import results as r

# What lists may take of an answer by default, in bytes of JSON; with the rest of it less than 2 KB.
ROOM = 1600
# A list is never longer.
MOST = 1000

Model = TypeVar("Model", bound=r.Capped)


def told(error: KoplError) -> r.ErrorTold:
    """What is wrong with an argument, and what to try."""
    message = str(getattr(error, "message", None) or error)
    to_try = getattr(error, "to_try", None) or _TO_TRY.get(error.kind)
    if isinstance(error, ParseError | TypingError):
        to_try = to_try and f"{to_try}; resource kopl://function/NAME explains a function"
    return r.ErrorTold(
        kind=error.kind,
        message=short(message, 800) or "",
        call=getattr(error, "call", None),
        to_try=to_try,
    )


_TO_TRY = {
    "parse": "write nested calls with quoted texts, such as"
    ' Count(Relate(Find("Norway"), "shares border with", "forward"))',
    "type": "check_program shows what each call gives",
    "limit": "narrow the program: filter by a concept or a name before the call that is too large",
    "timed out": "make the query smaller, or add LIMIT",
    "query not understood": "translate(program, to='sparql') shows the form of queries",
    "engine missing": "run_program answers the same without another package",
    "not in KoPL": "run_sparql answers queries that no program says",
}


def capped(result: Model, field: str, rows: Sequence[Any], limit: int | None, count: int) -> Model:
    """The result with as many of the rows as are asked for, or as fit, with long texts cut."""
    more = []
    chosen = list(rows[:limit])
    if limit is None:
        chosen = fitting(cut(list(rows)), ROOM - len(_json(result)))
        if chosen != list(rows[: len(chosen)]):
            more.append("long texts are cut, not with a limit")
    if len(chosen) < count:
        most = f"at most {MOST}" if count > MOST else f"up to {count}"
        more.append(f"{len(chosen)} of {count} shown; give limit ({most})")
    setattr(result, field, chosen)
    result.more = "; ".join(more) or result.more
    return result


def cut(value: Any) -> Any:
    """The value with the texts in it cut."""
    if isinstance(value, str):
        return short(value)
    if isinstance(value, BaseModel):
        return type(value)(**{name: cut(getattr(value, name)) for name in value.model_fields_set})
    if isinstance(value, list):
        return [cut(one) for one in value]
    if isinstance(value, dict):
        return {name: cut(one) for name, one in value.items()}
    return value


def fitting(rows: Sequence[Any], room: int) -> list[Any]:
    """As many of the first rows as fit, one at least."""
    kept: list[Any] = []
    for row in rows:
        room -= len(_json(row)) + 2
        if room < 0 and kept:
            break
        kept.append(row)
    return kept


def _json(value: Any) -> bytes:
    if isinstance(value, BaseModel):
        return value.model_dump_json(exclude_none=True).encode()
    return json.dumps(value, ensure_ascii=False).encode()


def short(text: str | None, most: int = 300) -> str | None:
    """The text, cut where it is longer than ``most`` characters."""
    return text if text is None or len(text) <= most else text[:most] + "…"
