"""The shares of a hardness report as a heat map, a PNG file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kopl_base.errors import KoplError
from kopl_base.packages import figure_class, save_png

if TYPE_CHECKING:
    from cqa.hardness.report import Report

CELL = (0.75, 0.34)  # inches
MARGIN = (2.2, 1.4)
LONGEST = 28  # of a formula that stands at an axis
LARGEST = 400  # inches; beyond, pictures cannot be drawn
# Darker than this, figures are white.
DARK = 60


def draw(report: Report, path: Path | str) -> Path:
    """Draw a row for each type and a column for each type that some reduce to.

    Raises KoplError without the package matplotlib or where nothing is to be drawn, WriteError
    where the file cannot be written.
    """
    new_figure = figure_class()
    types, columns = report.types, report.columns
    if not types:
        raise KoplError("there are no pairs to draw")
    shares = [[report.share(name, column) for column in columns] for name in types]
    size = [
        min(LARGEST, margin + cell * count)
        for margin, cell, count in zip(MARGIN, CELL, (len(columns), len(types)), strict=True)
    ]
    figure = new_figure(figsize=tuple(size), layout="constrained")
    axes = figure.subplots()
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=100, aspect="auto")
    axes.set_xticks(range(len(columns)), [_short(name) for name in columns], rotation=45,
                    ha="left", rotation_mode="anchor")  # fmt: skip
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(types)), [_short(name) for name in types])
    axes.set_xlabel("percent of (query, answer) pairs that reduce to")
    for row, values in enumerate(shares):
        for column, share in enumerate(values):
            if share:
                axes.text(
                    column, row, f"{share:.1f}", ha="center", va="center", fontsize=8,
                    color="white" if share > DARK else "black",
                )  # fmt: skip
    path = Path(path)
    save_png(figure, path, 120)
    return path


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
