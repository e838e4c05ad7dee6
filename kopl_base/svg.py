"""Pictures as the text of SVG files: boxes of text with arrows between them.

They are made of text alone, the same on every machine: no font is measured, letters are taken for
wide. All lengths are pixels.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
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

_HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}"'
    ' font-family="Helvetica, Arial, sans-serif" font-size="{2}">\n'
    '<defs><marker id="{3}" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
    '<path d="M0,0 L9,4 L0,8 z" fill="#555"/></marker></defs>\n'
    '<rect width="{0}" height="{1}" fill="#fff"/>\n'
)


def picture(width: int, height: int, parts: Iterable[str], tip: str = "tip") -> str:
    """The text of an SVG file with these parts; ``tip`` is the id of its arrow head."""
    return "".join([_HEAD.format(width, height, FONT, tip), *parts, "</svg>\n"])


def arrow(
    start: tuple[float, float], end: tuple[float, float], tip: str = "tip", more: str = ""
) -> str:
    """A straight arrow; ``more`` are attributes, beginning with a blank."""
    return (
        f'<path d="M{start[0]:g},{start[1]:g} L{end[0]:g},{end[1]:g}" stroke="#555"'
        f' marker-end="url(#{tip})"{more}/>\n'
    )


def centred(middle: float, baseline: float, text: str, more: str = "") -> str:
    """A line of text around a middle; ``more`` are attributes, beginning with a blank."""
    return f'<text x="{middle:g}" y="{baseline:g}" text-anchor="middle"{more}>{escape(text)}</text>'


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


def columns(text: str) -> int:
    """How many Latin letters wide a text is."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def wide(text: str, bold: bool = False) -> float:
    """How wide a line of text is at most."""
    return (0.64 if bold else 0.58) * FONT * columns(text)
