"""Running programs for the page."""

from __future__ import annotations

from typing import Any

from kopl.program import Call, linked
from kopl_cli.serve.bases import Base, Playground
from kopl_cli.serve.routes import (
    MAYBE,
    OBJECT,
    TEXT,
    TRUTH,
    WHOLE,
    Field,
    Route,
    listed,
    record,
)


def view(call: Call) -> dict[str, Any]:
    """A program as the page draws it."""
    paths: dict[int, list[int]] = {}
    found = linked(call)
    paths[len(found) - 1] = []
    for number in reversed(range(len(found))):
        for place, at in enumerate(found[number][1]):
            paths[at] = [*paths[number], place]
    calls = [
        {
            "number": number,
            "path": paths[number],
            "function": one.function.name,
            "arguments": [*one.arguments],
            "inputs": [*inputs],
            "doc": one.function.doc,
            "output": one.function.output.value,
        }
        for number, (one, inputs) in enumerate(found)
    ]
    return {
        "text": str(call), "draft": _draft(call), "complete": True, "calls": calls, "holes": [],
        "problems": [],
    }  # fmt: skip


def _draft(call: Call) -> dict[str, Any]:
    inputs = [_draft(one) for one in call.inputs]
    return {"function": call.function.name, "arguments": [*call.arguments], "inputs": inputs}


def _run(playground: Playground, given: dict[str, Any]) -> dict[str, Any]:
    base = playground.base(given["kb"])
    call = base.read(given["program"])
    return run(base, call, given["shown"])


def run(base: Base, call: Call, shown: int) -> dict[str, Any]:
    """What a program gives, call by call."""
    result = base.executor.run(call, trace=shown)
    seen = view(call)
    steps = [
        {
            "number": step.number, "path": seen["calls"][step.number]["path"],
            "state": "ok" if step.count else "empty", "count": step.count,
            "values": [{"text": text, "id": None, "kind": "value"} for text in step.shown],
            "ms": 0, "became_empty": not step.count, "message": None,
        }
        for step in result.trace or ()
    ]  # fmt: skip
    return {
        "view": seen, "steps": steps, "why_empty": None, "evidence": None,
        "answer": answer(base, result.denotation, result.ms, result.hints),
    }  # fmt: skip


def answer(base: Base, strings: list[str], ms: float, hints: list[str]) -> dict[str, Any]:
    """What a program denotes, as the page shows it."""
    state = "unique" if len(strings) == 1 else "several" if strings else "empty"
    return {
        "answers": strings[: base.limits.rows], "count": len(strings), "state": state,
        "ms": round(ms, 3), "hints": hints,
    }  # fmt: skip


ANSWER = record(
    answers=listed(TEXT), count=WHOLE, state=TEXT, ms={"type": "number"}, hints=listed(TEXT)
)
VIEW = record(
    text=TEXT, draft=MAYBE, complete=TRUTH, calls=listed(OBJECT), holes=listed(OBJECT),
    problems=listed(OBJECT),
)  # fmt: skip
PROGRAM = Field("program", "program", "a program in any spelling, or a tree with holes", True)

ROUTES = [
    Route(
        "POST",
        "/api/run",
        "Run a program, call by call.",
        _run,
        (
            PROGRAM,
            Field("engine", "text", "what runs it", default="kopl", most=100),
            Field("shown", "integer", "values of each call", default=10, least=0, most=100),
            Field("from", "list", "the path of the call that changed"),
            Field("evidence", "truth", "also the facts that the answer rests on", default=False),
        ),
        record(view=VIEW, steps=listed(OBJECT), answer=MAYBE, why_empty=MAYBE, evidence=MAYBE),
    ),
]
