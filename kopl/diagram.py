"""Programs as flow charts, with the value after every call when traced: Mermaid, DOT and SVG.

The SVG picture is made of text alone, the same on every machine. Calls that take nothing stand on
top, the last call at the bottom; each call stands below those whose results it takes.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from kopl.program import Call, linked
from kopl_base.svg import (
    BELOW,
    BETWEEN,
    FONT,
    LINE,
    MARGIN,
    PADDING,
    WIDEST,
    arrow,
    broken,
    centred,
    columns,
    picture,
    printable,
    wide,
)

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

MOST_LINES = 6  # of what a call gave


@dataclass
class _Box:
    """A call in the picture; ``left`` and ``top`` are known last."""

    call: Call
    inputs: tuple[int, ...]
    lines: list[str]
    values: list[str] = field(default_factory=list)  # what the call gave
    marked: bool = False
    row: int = 0  # rows above the last call
    span: float = 0  # width of the box and all that stands above it
    left: float = 0
    top: float = 0

    @property
    def width(self) -> int:
        """The box alone; letters are taken for wide, as no font is measured."""
        name = wide(self.call.function.name, bold=True)
        return 2 * PADDING + round(max([name, *map(wide, self.lines + self.values)]))

    @property
    def height(self) -> int:
        return 2 * PADDING + LINE * (1 + len(self.lines) + len(self.values))


def chart(
    program: Call,
    trace: Sequence[TraceStep] | None = None,
    *,
    marked: Collection[int] = (),
    tip: str = "tip",
) -> str:
    """The picture of a program as the text of an SVG file.

    ``trace`` adds what every call gave, in italics; calls whose numbers in post-order are
    ``marked`` have a red frame. ``tip`` is the id of the arrow head: pictures that stand in one
    HTML page need different ones.
    """
    boxes = [
        _Box(call, inputs, _lines(call), _values(trace[at]) if trace else [], at in marked)
        for at, (call, inputs) in enumerate(linked(program))
    ]
    heights = _place(boxes)
    width = round(max(box.left + box.width for box in boxes) + MARGIN)
    parts = []
    for box in boxes:
        for at in box.inputs:
            above = boxes[at]
            start = _middle(above), above.top + above.height
            parts.append(arrow(start, (_middle(box), box.top), tip))
    parts += map(_draw, boxes)
    return picture(width, heights + MARGIN, parts, tip)


def data_uri(svg: str) -> str:
    """The picture as an address that holds it, for files that must not point elsewhere."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode("ascii")


def _place(boxes: list[_Box]) -> int:
    """Give each box its place and say how high the picture is."""
    for box in boxes:  # what a call takes comes before it
        above = sum(boxes[at].span for at in box.inputs) + BETWEEN * max(0, len(box.inputs) - 1)
        box.span = max(box.width, above)
    boxes[-1].left = MARGIN
    for box in reversed(boxes):  # until here "left" is where the box's span begins
        taken = [boxes[at] for at in box.inputs]
        free = box.span - sum(one.span for one in taken) - BETWEEN * max(0, len(taken) - 1)
        start = box.left + free / 2
        for one in taken:
            one.row, one.left = box.row + 1, start
            start += one.span + BETWEEN
        box.left += (box.span - box.width) / 2
    rows = [0] * (max(box.row for box in boxes) + 1)
    for box in boxes:
        rows[box.row] = max(rows[box.row], box.height)
    top = MARGIN
    tops = [0] * len(rows)
    for row in reversed(range(len(rows))):
        tops[row] = top
        top += rows[row] + BELOW
    for box in boxes:
        # At the lower end of its row, so that all arrows of a row are of one length at least.
        box.top = tops[box.row] + rows[box.row] - box.height
    return top - BELOW


def _draw(box: _Box) -> str:
    left, top, middle = f"{box.left:g}", box.top, _middle(box)
    fill = "#fff6d6" if box.inputs else "#e3eefb"
    stroke = 'stroke="#c22" stroke-width="3"' if box.marked else 'stroke="#555"'
    parts = [
        f"<g><title>{escape(box.call.function.doc)}</title>",
        f'<rect x="{left}" y="{top:g}" width="{box.width}" height="{box.height}" rx="5"'
        f' fill="{fill}" {stroke}/>',
        centred(middle, top + PADDING + FONT, box.call.function.name, ' font-weight="bold"'),
    ]
    for number, line in enumerate(box.lines + box.values, 1):
        style = ' font-style="italic" fill="#163"' if number > len(box.lines) else ""
        parts.append(centred(middle, top + PADDING + FONT + LINE * number, line, style))
    return "".join([*parts, "</g>\n"])


def _middle(box: _Box) -> float:
    return box.left + box.width / 2


def _lines(call: Call) -> list[str]:
    """The arguments of a call, a few on a line, long ones broken."""
    lines: list[str] = []
    for argument in call.arguments:
        text = printable(argument)
        if lines and columns(lines[-1]) + columns(text) + 3 <= WIDEST:
            lines[-1] += f" · {text}"
        else:
            lines += broken(text)
    return lines


def _values(step: TraceStep) -> list[str]:
    """What a call gave, long texts cut: a picture has room for a hint only."""
    lines = broken(printable(values_given(step)))
    return lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], "…"]
