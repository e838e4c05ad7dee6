"""Pictures of a question set's statistics, as PNG files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from generation.stats import PAPER_TYPES, Statistics
from kopl.traits import ASKING
from kopl_base.packages import figure_class, save_png

SIZE = (6.0, 3.6)  # inches
BARS = 40  # of a histogram


def write_plots(statistics: Statistics, folder: Path | str) -> list[Path]:
    """Draw hops, lengths, types and top answers into a folder, and say which files were written.

    Raises KoplError without the package matplotlib, WriteError where nothing can be written.
    """
    new_figure = figure_class()
    drawn: dict[str, Callable[[Statistics, Any], None]] = {
        "hops": _hops,
        "lengths": _lengths,
        "types": _types,
        "answers": _answers,
    }
    written = []
    for name, draw in drawn.items():
        figure = new_figure(figsize=SIZE, layout="constrained")
        draw(statistics, figure)
        path = Path(folder) / f"{name}.png"
        save_png(figure, path)
        written.append(path)
    return written


def _hops(statistics: Statistics, figure: Any) -> None:
    _histogram(figure.subplots(), statistics.hops, "hops")


def _lengths(statistics: Statistics, figure: Any) -> None:
    left, middle, right = figure.subplots(1, 3)
    _histogram(left, statistics.words, "words of the question")
    _histogram(middle, statistics.calls, "calls of the program")
    _histogram(right, statistics.tokens, "tokens of the query")


def _histogram(axes: Any, counts: Counter[int], title: str) -> None:
    """Bars for single numbers, or for ranges of equal width where the numbers lie far apart."""
    total, width = max(1, counts.total()), 1
    if counts:
        width += (max(counts) - min(counts)) // BARS
    bars: Counter[int] = Counter()
    for number, count in counts.items():
        bars[number // width] += count
    places = [at * width + (width - 1) / 2 for at in bars]
    axes.bar(places, [100 * count / total for count in bars.values()], width=0.9 * width)
    axes.set_xlabel(title)
    axes.set_ylabel("percent")
    axes.xaxis.get_major_locator().set_params(integer=True)


def _types(statistics: Statistics, figure: Any) -> None:
    axes = figure.subplots()
    places = range(len(ASKING))
    own = [100 * statistics.share(statistics.types[name]) for name in ASKING]
    axes.barh([at - 0.2 for at in places], own, height=0.4, label="this set")
    paper = [100 * PAPER_TYPES[name] for name in ASKING]
    axes.barh([at + 0.2 for at in places], paper, height=0.4, label="KQA Pro")
    axes.set_yticks(list(places), ASKING)
    axes.invert_yaxis()
    axes.set_xlabel("percent")
    figure.legend(loc="outside upper right", ncols=2)


def _answers(statistics: Statistics, figure: Any) -> None:
    axes = figure.subplots()
    top = statistics.to_json()["top answers"]
    # A dollar sign would begin a formula.
    names = [(text if len(text) <= 30 else text[:29] + "…").replace("$", r"\$") for text in top]
    axes.barh(range(len(top)), [100 * statistics.share(count) for count in top.values()])
    axes.set_yticks(range(len(top)), names)
    axes.invert_yaxis()
    axes.set_xlabel("percent")
