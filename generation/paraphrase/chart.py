"""The flow chart of a program as an SVG picture: made of text alone, the same on every machine.

Calls that take nothing stand on top, the last call at the bottom; each call stands below those
whose results it takes.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from dataclasses import dataclass
from xml.sax.saxutils import escape

from kopl.program import Call, linked

FONT = 13  # pixels; so are all lengths
LINE = 17
PADDING = 9
BETWEEN = 22  # boxes beside one another
BELOW = 34  # rows below one another; room for the arrow
MARGIN = 12
WIDEST = 30  # characters of a line before it is broken

# What XML cannot hold.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")

_HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}"'
    ' font-family="Helvetica, Arial, sans-serif" font-size="{2}">\n'
    '<defs><marker id="tip" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
    '<path d="M0,0 L9,4 L0,8 z" fill="#555"/></marker></defs>\n'
    '<rect width="{0}" height="{1}" fill="#fff"/>\n'
)


@dataclass
class _Box:
    """A call in the picture; ``left`` and ``top`` are known last."""

    call: Call
    inputs: tuple[int, ...]
    lines: list[str]
    row: int = 0  # rows above the last call
    span: float = 0  # width of the box and all that stands above it
    left: float = 0
    top: float = 0

    @property
    def width(self) -> int:
        """The box alone; letters are taken for wide, as no font is measured."""
        widest = max(0.64 * FONT * _columns(self.call.function.name), *map(_wide, self.lines), 0)
        return 2 * PADDING + round(widest)

    @property
    def height(self) -> int:
        return 2 * PADDING + LINE * (1 + len(self.lines))


def chart(program: Call) -> str:
    """The picture of a program as the text of an SVG file."""
    boxes = [_Box(call, inputs, _lines(call)) for call, inputs in linked(program)]
    heights = _place(boxes)
    width = round(max(box.left + box.width for box in boxes) + MARGIN)
    parts = [_HEAD.format(width, heights + MARGIN, FONT)]
    for box in boxes:
        for at in box.inputs:
            above = boxes[at]
            parts.append(
                f'<path d="M{_middle(above)},{above.top + above.height:g}'
                f' L{_middle(box)},{box.top:g}" stroke="#555" marker-end="url(#tip)"/>\n'
            )
    parts += map(_draw, boxes)
    return "".join([*parts, "</svg>\n"])


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
    parts = [
        f"<g><title>{escape(box.call.function.doc)}</title>",
        f'<rect x="{left}" y="{top:g}" width="{box.width}" height="{box.height}" rx="5"'
        f' fill="{fill}" stroke="#555"/>',
        _text(middle, top + PADDING + FONT, box.call.function.name, ' font-weight="bold"'),
    ]
    for number, line in enumerate(box.lines, 1):
        parts.append(_text(middle, top + PADDING + FONT + LINE * number, line))
    return "".join([*parts, "</g>\n"])


def _text(middle: str, baseline: float, text: str, more: str = "") -> str:
    return f'<text x="{middle}" y="{baseline:g}" text-anchor="middle"{more}>{escape(text)}</text>'


def _middle(box: _Box) -> str:
    return f"{box.left + box.width / 2:g}"


def _lines(call: Call) -> list[str]:
    """The arguments of a call, a few on a line, long ones broken."""
    lines: list[str] = []
    for argument in call.arguments:
        text = " ".join(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", argument).split())
        if lines and _columns(lines[-1]) + _columns(text) + 3 <= WIDEST:
            lines[-1] += f" · {text}"
        else:
            lines += _broken(text)
    return lines


def _broken(text: str) -> list[str]:
    """The text in lines that are not too wide: at blanks, else anywhere."""
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if _columns(joined) <= WIDEST:
            lines[-1] = joined
            continue
        if lines[-1]:
            lines.append("")
        for character in word:
            if _columns(lines[-1] + character) > WIDEST:
                lines.append("")
            lines[-1] += character
    return lines


def _columns(text: str) -> int:
    """How many Latin letters wide a text is."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def _wide(text: str) -> float:
    return 0.58 * FONT * _columns(text)
