"""What the queries of each type reduce to, counted: a table like Table 1 of the hardness paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from cqa.hardness.hardness import Hardness, Labels
from cqa.hardness.reductions import TRIVIAL, Reduction, shown_name
from cqa.sampling.sample import Sample
from cqa.types.registry import betae_types
from cqa.vocabularies import NO_ANSWER
from kopl_base.errors import KoplError
from kopl_base.packages import figure_class, save_png
from kopl_base.progress import Progress
from kopl_base.tables import write_csv

ITSELF = "itself"

# So many queries are looked at together.
TOGETHER = 1 << 14

# With more columns than this a table has a line for each share instead.
WIDEST = 12

# Table 1 of "Is Complex Query Answering Really Complex?": percent of a type's pairs.
PUBLISHED: dict[str, dict[str, dict[str, float]]] = {
    "fb15k-237": {
        "2p": {"1p": 98.1, ITSELF: 1.9},
        "3p": {"1p": 97.2, "2p": 2.7, ITSELF: 0.1},
        "2i": {"1p": 96.0, ITSELF: 4.0},
        "3i": {"1p": 91.6, "2i": 8.2, ITSELF: 0.2},
        "1p2i": {"1p": 86.8, "2p": 1.0, "2i": 12.0, ITSELF: 0.2},
        "2i1p": {"1p": 96.7, "2p": 1.8, "2i": 1.4, ITSELF: 0.1},
        "2u1p": {"1p": 98.3, "2p": 0.0, "2u": 1.6, ITSELF: 0.1},
        "2in": {ITSELF: 100.0}, "3in": {ITSELF: 4.6}, "2pi1pn": {ITSELF: 1.6},
        "2nu1p": {ITSELF: 100.0}, "2in1p": {ITSELF: 2.6},
    },
    "nell995": {
        "2p": {"1p": 97.6, ITSELF: 2.4},
        "3p": {"1p": 95.6, "2p": 4.3, ITSELF: 0.1},
        "2i": {"1p": 94.0, ITSELF: 6.0},
        "3i": {"1p": 87.4, "2i": 12.1, ITSELF: 0.5},
        "1p2i": {"1p": 49.5, "2p": 0.6, "2i": 49.0, ITSELF: 0.9},
        "2i1p": {"1p": 96.2, "2p": 2.4, "2i": 1.2, ITSELF: 0.2},
        "2u1p": {"1p": 98.5, "2p": 0.0, "2u": 1.4, ITSELF: 0.1},
        "2in": {ITSELF: 100.0}, "3in": {ITSELF: 6.1}, "2pi1pn": {ITSELF: 2.2},
        "2nu1p": {ITSELF: 100.0}, "2in1p": {ITSELF: 4.4},
    },
}  # fmt: skip


class Report:
    """Counts of pairs by type and by what they reduce to.

    ``skipped`` has the numbers of queries, by type, that the published program skips.
    """

    def __init__(self, published: str | None = None) -> None:
        if published is not None and published not in PUBLISHED:
            raise KoplError(
                f"there is no published table of {published!r}; there are {', '.join(PUBLISHED)}"
            )
        self.published = PUBLISHED[published] if published else {}
        self.counts: dict[str, Counter[str]] = {}
        self.skipped: Counter[str] = Counter()
        self._orders: dict[str, tuple[int, int, int, int, str]] = {}

    def add(self, labels: Labels) -> None:
        """Count the pairs of some queries."""
        self.skipped.update(labels.types[at] for at in labels.skipped)
        for name, counter in labels.tally().items():
            own = self.counts.setdefault(name, Counter())
            for kind, number in counter.items():
                own[_column(kind)] += number
                if kind is not None and not kind.full:
                    self._orders.setdefault(kind.name, kind.order)

    @property
    def types(self) -> list[str]:
        """The types: those with names in the papers' order, then the others as they came."""
        named = [shown_name(row.names) for row in betae_types()]
        return [name for name in named if name in self.counts] + [
            name for name in self.counts if name not in named
        ]

    @property
    def columns(self) -> list[str]:
        """What pairs reduce to: fewest missing links first, the type itself last."""
        found = {column for counter in self.counts.values() for column in counter}
        for name in self.counts:
            found.update(self.published.get(name, ()))
        last = [ITSELF, NO_ANSWER]
        types = sorted(found - {*last, TRIVIAL}, key=self._order)
        return [column for column in (TRIVIAL, *types, *last) if column in found]

    def _order(self, column: str) -> tuple[int, int, int, int, str]:
        # A published column that nothing here reduces to stands behind those that are found.
        return self._orders.get(column, (99, 0, 0, len(column), column))

    def pairs(self, name: str) -> int:
        """The number of pairs of a type, without those that are no answers."""
        counter = self.counts[name]
        return counter.total() - counter[NO_ANSWER]

    def share(self, name: str, column: str) -> float:
        """Percent of a type's pairs; of what is no answer, percent of all that were asked about."""
        if column == NO_ANSWER:
            return 100 * self.counts[name][column] / max(1, self.counts[name].total())
        return 100 * self.counts[name][column] / max(1, self.pairs(name))

    def rows(self) -> Iterator[tuple[str, str, int, float, float | None]]:
        """Type, what it reduces to, pairs, percent, and published percent where there is one."""
        for name in self.types:
            published = self.published.get(name, {})
            for column in self.columns:
                if self.counts[name][column] or column in published:
                    number = self.counts[name][column]
                    yield name, column, number, self.share(name, column), published.get(column)


def _column(kind: Reduction | None) -> str:
    if kind is None:
        return NO_ANSWER
    return ITSELF if kind.full else kind.name


def report(
    samples: Iterable[Sample],
    hardness: Hardness,
    *,
    published: str | None = None,
    easy: bool = False,
) -> Report:
    """Count what the hard answers of sampled queries reduce to, with ``easy`` the others, too."""
    found = Report(published)
    for part, labels in labelled(samples, hardness, easy=easy):
        del part
        found.add(labels)
    return found


def labelled(
    samples: Iterable[Sample], hardness: Hardness, *, easy: bool = False
) -> Iterator[tuple[Sequence[Sample], Labels]]:
    """Sampled queries, some thousand at once, and what their answers reduce to."""
    waiting: list[Sample] = []
    total = len(samples) if isinstance(samples, Sequence) else None
    with Progress("labelling answers", total) as bar:
        for sample in samples:
            waiting.append(sample)
            if len(waiting) >= TOGETHER:
                yield waiting, _labels(waiting, hardness, easy)
                bar.advance(len(waiting))
                waiting = []
        if waiting:
            yield waiting, _labels(waiting, hardness, easy)


def _labels(samples: Sequence[Sample], hardness: Hardness, easy: bool) -> Labels:
    answers = [sample.full if easy else sample.hard for sample in samples]
    return hardness.label([sample.query for sample in samples], answers)


def table(found: Report) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of the report as a table: a row for each type, shares in percent.

    Published shares stand in a row of their own below. With very many columns, or types that have
    next to none in common, each share is a row instead.
    """
    columns = found.columns
    if len(columns) > WIDEST:
        rows = [
            [name, column, f"{number:,}", f"{share:.1f}", "" if other is None else f"{other:.1f}"]
            for name, column, number, share, other in found.rows()
        ]
        return ["type", "reduces to", "pairs", "%", "published"], rows
    rows = []
    for name in found.types:
        shares = [
            f"{found.share(name, column):.1f}" if found.counts[name][column] else ""
            for column in columns
        ]
        rows.append([name, f"{found.pairs(name):,}", *shares])
        if name in found.published:
            rows.append(["", "published", *_shown(found.published[name], columns)])
    return ["type", "pairs", *columns], rows


def _shown(published: Mapping[str, float], columns: Sequence[str]) -> list[str]:
    return [f"{published[column]:.1f}" if column in published else "" for column in columns]


def to_csv(found: Report, file: TextIO) -> None:
    """Write a row for each type and what it reduces to, percent with three decimals."""
    rows = (
        (name, column, number, f"{share:.3f}", "" if other is None else other)
        for name, column, number, share, other in found.rows()
    )
    write_csv(file, ("type", "reduces_to", "pairs", "percent", "published"), rows)


# Of the heat map.
CELL = (0.75, 0.34)  # inches
MARGIN = (2.2, 1.4)
LONGEST = 28  # of a formula that stands at an axis
LARGEST = 400  # inches; beyond, pictures cannot be drawn
# Darker than this, figures are white.
DARK = 60


def write_heat_map(report: Report, path: Path | str) -> Path:
    """Draw the shares as a PNG: a row for each type, a column for each that some reduce to.

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
    axes.set_xticks(range(len(columns)), [_cut(name) for name in columns], rotation=45,
                    ha="left", rotation_mode="anchor")  # fmt: skip
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(types)), [_cut(name) for name in types])
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


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
