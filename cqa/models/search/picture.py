"""An explanation as a picture: entities and links as boxes, from the given ones to the answer.

Entities stand in rows by how many links they are away from the answer, which is below; a link has
a box of its own between its head and its tail.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kopl_base import svg
from kopl_base.svg import BELOW, BETWEEN, MARGIN, arrow, picture

# How what a box is looks.
LOOKS = {
    "answer": "answer",
    "entity": "given",
    "known": "plain",
    "predicted": "predicted",
    "not": "not",
}


class Box(svg.Box):
    """A box of the picture; ``kind`` is one of `LOOKS`, ``row`` counts from the top."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text, LOOKS[kind], title=kind)
        self.row = 0


def support_picture(
    entities: Sequence[Box], links: Sequence[tuple[int, int, Box]], answers: Iterable[int]
) -> str:
    """The text of an SVG file: entities, and links with the places of their heads and tails.

    ``answers`` are the places of the entities that are asked for.
    """
    away = _distances(len(entities), [(head, tail) for head, tail, _ in links], answers)
    rows = 2 * max(away, default=0) + 1
    for box, distance in zip(entities, away, strict=True):
        box.row = rows - 1 - 2 * distance
    for head, tail, box in links:
        ends = entities[head].row, entities[tail].row
        # Between two rows; the links of one row stand above it, or below the first.
        box.row = (min(ends) + 1) if ends[0] != ends[1] else max(ends[0] - 1, 0) or 1
    boxes = [*entities, *(box for _, _, box in links)]
    width, height = _place(boxes)
    parts = []
    for head, tail, box in links:
        parts += [_arrow(entities[head], box), _arrow(box, entities[tail])]
    return picture(width, height, [*parts, *(box.drawn() for box in boxes)])


def _distances(count: int, pairs: Sequence[tuple[int, int]], start: Iterable[int]) -> list[int]:
    """How many links each entity is away from the nearest of some; the farthest where from none."""
    found = dict.fromkeys(start, 0)
    step = 0
    while True:
        step += 1
        near = {b for one in pairs for a, b in (one, one[::-1]) if a in found and b not in found}
        if not near:
            return [found.get(at, step - 1) for at in range(count)]
        found.update(dict.fromkeys(near, step))


def _place(boxes: Sequence[Box]) -> tuple[int, int]:
    """Give each box its place, rows around one middle, and say how large the picture is."""
    rows: dict[int, list[Box]] = {}
    for box in boxes:
        rows.setdefault(box.row, []).append(box)
    widths = {
        row: sum(box.width for box in own) + BETWEEN * (len(own) - 1) for row, own in rows.items()
    }
    width = max(widths.values()) + 2 * MARGIN
    top: float = MARGIN
    for row in sorted(rows):
        left = (width - widths[row]) / 2
        for box in rows[row]:
            box.left, box.top = left, top
            left += box.width + BETWEEN
        top += max(box.height for box in rows[row]) + BELOW
    return round(width), round(top - BELOW + MARGIN)


def _arrow(one: Box, other: Box) -> str:
    """From one box to another, wherever they stand."""
    if one.row < other.row:
        return arrow((one.middle, one.low), (other.middle, other.top))
    return arrow((one.middle, one.top), (other.middle, other.low))
