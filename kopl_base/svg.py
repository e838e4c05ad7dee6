"""Pictures as the text of SVG files: boxes of text with arrows between them.

They are made of text alone, the same on every machine: no font is measured, letters are taken for
wide. All lengths are pixels.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from xml.sax.saxutils import escape

FONT = 13
LINE = 17
PADDING = 9
BETWEEN = 22  # boxes beside one another
BELOW = 34  # rows below one another; room for the arrow
MARGIN = 12
WIDEST = 30  # characters of a line before it is broken

# What XML cannot hold.
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")

# The fill and the frame of what a box is. Pages that show a picture may have colours of their own
# for the class of the same name.
LOOKS = {
    "plain": ("#fff", 'stroke="#8c867c"'),
    "given": ("#e3f1ef", 'stroke="#0f6a6a"'),
    "answer": ("#fff", 'stroke="#1f1e1b" stroke-width="2"'),
    "wrong": ("#fcebe9", 'stroke="#b3261e" stroke-width="2"'),
    "predicted": ("#fbf1dc", 'stroke="#7f5200" stroke-dasharray="4 3"'),
    "not": ("#fff", 'stroke="#b3261e" stroke-dasharray="4 3"'),
    "value": ("#fff", 'stroke="#d5d0c8"'),
    "nothing": ("#fcebe9", 'stroke="#b3261e"'),
}
_TIP = 8  # how long the head of an arrow is

_HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}"'
    ' font-family="Helvetica, Arial, sans-serif" font-size="{2}" fill="#1f1e1b">\n'
    '<rect class="paper" width="{0}" height="{1}" fill="#fff"/>\n'
)


def picture(width: int, height: int, parts: Iterable[str]) -> str:
    """The text of an SVG file with these parts."""
    return "".join([_HEAD.format(width, height, FONT), *parts, "</svg>\n"])


@dataclass
class Box:
    """Text in a frame, with a line in bold above it; ``left`` and ``top`` are known when placed.

    ``look`` is one of `LOOKS`, ``title`` is told of the box to who points at it. A ``flat`` box has
    round ends and one line, the bold part before the rest; longer texts are cut.
    """

    text: str
    look: str = "plain"
    head: str = ""
    title: str = ""
    flat: bool = False
    left: float = field(default=0, kw_only=True)
    top: float = field(default=0, kw_only=True)

    @cached_property
    def lines(self) -> list[str]:
        """The text below the bold line, broken."""
        text = printable(self.text)
        if self.flat:
            return [shortened(text)]
        return broken(text) if text or not self.head else []

    @cached_property
    def width(self) -> int:
        """As wide as the widest line, which is taken for wide, as no font is measured."""
        head = wide(self.head, bold=True)
        if self.flat:
            return 2 * PADDING + round(head + wide(self.lines[0]) + (PADDING if self.head else 0))
        return 2 * PADDING + round(max([head, *map(wide, self.lines)]))

    @property
    def height(self) -> int:
        """As high as the lines."""
        return 22 if self.flat else 2 * PADDING + LINE * (bool(self.head) + len(self.lines))

    @property
    def middle(self) -> float:
        """Where arrows begin and end."""
        return self.left + self.width / 2

    @property
    def low(self) -> float:
        """The lower end."""
        return self.top + self.height

    def drawn(self) -> str:
        """The box as SVG."""
        fill, frame = LOOKS[self.look]
        parts = [
            "<g>",
            f"<title>{escape(printable(self.title))}</title>" if self.title else "",
            f'<rect class="{self.look}" x="{self.left:g}" y="{self.top:g}" width="{self.width}"'
            f' height="{self.height}" rx="{self.height / 2 if self.flat else 8:g}" fill="{fill}"'
            f" {frame}/>",
        ]
        if self.flat:
            parts.append(centred(self.middle, self.top + 15.5, self.lines[0], bold=self.head))
        else:
            lines = [("", line) for line in self.lines]
            for number, (bold, line) in enumerate([(self.head, "")] * bool(self.head) + lines):
                baseline = self.top + PADDING + FONT + LINE * number
                parts.append(centred(self.middle, baseline, line, bold=bold))
        return "".join([*parts, "</g>\n"])


def arrow(
    start: tuple[float, float],
    end: tuple[float, float] | None,
    *,
    straight: float = 0,
    wrong: bool = False,
) -> str:
    """An arrow that leaves and arrives upright, dashed and red where something is ``wrong``.

    The first pixels are ``straight``; without an ``end`` it is they alone, and has no head.
    """
    kind, colour = ("wrong", "#b3261e") if wrong else ("way", "#8c867c")
    dashes = ' stroke-dasharray="4 4"' if wrong else ""
    style = f'fill="none" stroke="{colour}" stroke-width="1.5"{dashes}'
    (x, y) = start
    if end is None:
        return f'<path class="{kind}" d="M{x:g},{y:g} v{straight:g}" {style}/>\n'
    down = 1 if end[1] >= y else -1
    to, tip = end
    leaves, stop = y + down * straight, tip - down * (_TIP - 1)
    bend = (stop - leaves) * 0.5
    return (
        f'<path class="{kind}" d="M{x:g},{y:g} V{leaves:g} C{x:g},{leaves + bend:g}'
        f' {to:g},{stop - bend:g} {to:g},{stop:g}" {style}/>'
        f'<path class="{kind} tip" d="M{to:g},{tip:g} l-5,{-down * _TIP} h10 z" fill="{colour}"/>\n'
    )


def centred(middle: float, baseline: float, text: str, *, bold: str = "") -> str:
    """A line of text around a middle; what is ``bold`` stands before the rest."""
    head = f'<tspan font-weight="bold">{escape(bold)}</tspan>' if bold else ""
    between = "\N{EN SPACE}" if bold and text else ""
    return (
        f'<text x="{middle:g}" y="{baseline:g}" text-anchor="middle">'
        f"{head}{between}{escape(text)}</text>"
    )


def printable(text: str) -> str:
    """The text on one line, with a mark in place of what XML cannot hold."""
    return " ".join(UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text).split())


def broken(text: str) -> list[str]:
    """The text in lines that are not too wide: at blanks, else anywhere."""
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if columns(joined) <= WIDEST:
            lines[-1] = joined
            continue
        if lines[-1]:
            lines.append("")
        for character in word:
            if columns(lines[-1] + character) > WIDEST:
                lines.append("")
            lines[-1] += character
    return lines


def shortened(text: str) -> str:
    """As much of the text as stands on one line."""
    if columns(text) <= WIDEST:
        return text
    while columns(text) >= WIDEST:
        text = text[: min(len(text) - 1, WIDEST)]
    return f"{text.rstrip(' ,')}\N{HORIZONTAL ELLIPSIS}"


def columns(text: str) -> int:
    """How many Latin letters wide a text is."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def wide(text: str, bold: bool = False) -> float:
    """How wide a line of text is at most."""
    return (0.72 if bold else 0.6) * FONT * columns(text)
