"""Programs as flow charts, with the value after every call when traced: Mermaid, DOT and SVG.

The SVG picture is made of text alone, the same on every machine. Calls that take nothing stand on
top, the last call at the bottom; each call stands below those whose results it takes.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kopl.program import Call, linked
from kopl.types import Type
from kopl_base.svg import BELOW, BETWEEN, MARGIN, Box, arrow, picture

if TYPE_CHECKING:
    from kopl.executor import TraceStep

SHOWN = 3  # values that are shown of what a call gave


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


# --- SVG --------------------------------------------------------------------------------------

DROP = 8  # from a call to what it gave
# What is one by its nature is not counted.
_SINGLE = (Type.NUMBER, Type.TRUTH)


@dataclass
class _Step:
    """A call in the picture, with what it gave."""

    inputs: tuple[int, ...]
    box: Box
    given: Box | None
    row: int = 0  # rows above the last call
    span: float = 0  # width of the step and all that stands above it

    @property
    def width(self) -> int:
        return max(self.box.width, self.given.width if self.given else 0)

    @property
    def low(self) -> float:
        """The lower end, with what it gave."""
        return self.given.low if self.given else self.box.low

    @property
    def leaves(self) -> tuple[float, float]:
        """Where the arrow to the next call begins."""
        return self.box.middle, self.box.low

    @property
    def is_empty(self) -> bool:
        return self.given is not None and self.given.look == "nothing"


def chart(
    program: Call, trace: Sequence[TraceStep] | None = None, *, marked: Collection[int] = ()
) -> str:
    """The picture of a program as the text of an SVG file.

    ``trace`` adds what every call gave, on the way to the next one; calls whose numbers in
    post-order are ``marked`` are red.
    """
    calls = linked(program)
    steps = []
    for at, (call, inputs) in enumerate(calls):
        look = "answer" if at == len(calls) - 1 else "plain" if inputs else "given"
        words = " ".join(word.text or "?" for word in call.function.phrase(call.arguments))
        look = "wrong" if at in marked else look
        box = Box(words, look, call.function.name, call.function.doc)
        steps.append(_Step(inputs, box, _given(call, trace[at]) if trace else None))
    height = _place(steps)
    width = round(max(step.box.middle + step.width / 2 for step in steps) + MARGIN)
    return picture(width, height + MARGIN, _drawn(steps))


def data_uri(svg: str) -> str:
    """The picture as an address that holds it, for files that must not point elsewhere."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode("ascii")


def _given(call: Call, step: TraceStep) -> Box:
    """What a call gave: how many, and the first of them."""
    if not step.count:
        return Box("nothing", "nothing", "0", flat=True)
    counted = "" if call.function.output in _SINGLE else f"{step.count:,}"
    more = ", \N{HORIZONTAL ELLIPSIS}" if step.count > SHOWN else ""
    return Box(", ".join(step.shown[:SHOWN]) + more, "value", counted, flat=True)


def _drawn(steps: Sequence[_Step]) -> Iterator[str]:
    for step in steps:
        taken = step.inputs
        for number, at in enumerate(taken):
            above = steps[at]
            # Arrows that end at one call end beside one another.
            aside = (number - (len(taken) - 1) / 2) * min(60, step.box.width / len(taken))
            end = step.box.middle + aside, step.box.top
            yield arrow(above.leaves, end, straight=above.low - above.box.low, wrong=above.is_empty)
    last = steps[-1]
    if last.given:
        yield arrow(last.leaves, None, straight=DROP, wrong=last.is_empty)
    for step in steps:
        yield step.box.drawn()
        if step.given:
            yield step.given.drawn()


def _place(steps: list[_Step]) -> int:
    """Give each box its place and say how high the picture is."""
    for step in steps:  # what a call takes comes before it
        above = sum(steps[at].span for at in step.inputs) + BETWEEN * max(0, len(step.inputs) - 1)
        step.span = max(step.width, above)
    starts = {len(steps) - 1: float(MARGIN)}
    for number in reversed(range(len(steps))):
        step = steps[number]
        taken = [steps[at] for at in step.inputs]
        free = step.span - sum(one.span for one in taken) - BETWEEN * max(0, len(taken) - 1)
        start = starts[number] + free / 2
        for at, one in zip(step.inputs, taken, strict=True):
            one.row, starts[at] = step.row + 1, start
            start += one.span + BETWEEN
        middle = starts[number] + step.span / 2
        for box in (step.box, step.given):
            if box:
                box.left = middle - box.width / 2
    rows = [0] * (max(step.row for step in steps) + 1)
    for step in steps:
        rows[step.row] = max(rows[step.row], step.box.height)
    given = max(DROP + step.given.height if step.given else 0 for step in steps)
    lows = [0] * len(rows)
    top = MARGIN
    for row in reversed(range(len(rows))):
        lows[row] = top + rows[row]
        top = lows[row] + given + BELOW
    for step in steps:
        # At the lower end of its row, so that arrows are of one length at least.
        step.box.top = lows[step.row] - step.box.height
        if step.given:
            step.given.top = lows[step.row] + DROP
    return top - BELOW
