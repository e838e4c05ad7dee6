"""Programs as flow charts: Mermaid and DOT text, with the value after every call when traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kopl.program import Call, linked

if TYPE_CHECKING:
    from kopl.executor import TraceStep

SHOWN = 3


def mermaid(program: Call, trace: Sequence[TraceStep] | None = None) -> str:
    """The program as a Mermaid flow chart, from its leaves down to its root."""
    lines = ["flowchart TD"]
    for number, (call, inputs) in enumerate(linked(program)):
        rows = _rows(call, trace[number] if trace else None)
        label = "<br/>".join(_escape_mermaid(row) for row in rows)
        lines.append(f'    n{number}["{label}"]')
        lines += [f"    n{at} --> n{number}" for at in inputs]
    return "\n".join(lines) + "\n"


def dot(program: Call, trace: Sequence[TraceStep] | None = None) -> str:
    """The program as a graph in Graphviz' DOT language."""
    lines = ["digraph program {", "    node [shape=box];"]
    for number, (call, inputs) in enumerate(linked(program)):
        rows = _rows(call, trace[number] if trace else None)
        label = "\\n".join(_escape_dot(row) for row in rows)
        lines.append(f'    n{number} [label="{label}"];')
        lines += [f"    n{at} -> n{number};" for at in inputs]
    return "\n".join([*lines, "}"]) + "\n"


def _rows(call: Call, step: TraceStep | None) -> list[str]:
    rows = [call.function.name]
    if call.arguments:
        rows.append(" · ".join(call.arguments))
    if step is not None:
        rows.append(values_given(step))
    return rows


def values_given(step: TraceStep) -> str:
    """How many values a call gave, and the first of them: ``12: Oslo, Bergen, Hamar, …``."""
    if not step.count:
        return "0"
    more = ", …" if step.count > SHOWN else ""
    return f"{step.count}: {', '.join(step.shown[:SHOWN])}{more}"


def _escape_mermaid(text: str) -> str:
    # Entities of Mermaid: a number sign, the code point, a semicolon.
    kept = (c if c.isalnum() or c in " ·,.:…-" else f"#{ord(c)};" for c in _one_line(text))
    return "".join(kept)


def _escape_dot(text: str) -> str:
    return _one_line(text).replace("\\", "\\\\").replace('"', '\\"')


def _one_line(text: str) -> str:
    return " ".join(text.split())
