"""An evaluation as tables of texts, with all that is known of each figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from parsers.evaluation import SHARES, Table
from parsers.report import Comparison, Scored
from parsers.report_paper import PUBLISHED, Published
from parsers.scoring import PARTS, VERDICTS
from parsers.scoring_statistics import DIFFERENCE_INTERVAL, DIFFERENCE_TEST, INTERVAL, Share

NONE = "–"
TITLES = {
    "skills": "execution accuracy by skill, %",
    "hops": "execution accuracy by hops, %",
    "length": "execution accuracy by calls of the gold program, %",
}


@dataclass(frozen=True)
class Sheet:
    """A table of texts; the first heading says what it is about."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def sheets(comparison: Comparison) -> Iterator[Sheet]:
    """The tables of an evaluation, in the order in which they are read."""
    for part in PARTS:
        yield _accuracy(comparison, part)
    names = tuple(run.name for run in comparison.runs)
    yield Sheet(("share of the questions, %", *names), tuple(_shares(comparison.runs)))
    counts = [run.report.verdicts() for run in comparison.runs]
    told = [verdict for verdict in VERDICTS if any(verdict in one for one in counts)]
    yield Sheet(
        ("how predictions end", *names),
        tuple((verdict, *(str(one.get(verdict, 0)) for one in counts)) for verdict in told),
    )
    yield Sheet(("confidence", *names), tuple(_calibration(comparison.runs)))
    if len(comparison.runs) > 1:
        yield _differences(comparison)


def _accuracy(comparison: Comparison, part: str) -> Sheet:
    """A part's table: for every run both rules, the intervals, the questions; then the paper."""
    columns = PARTS[part]
    rows: list[tuple[str, ...]] = []
    for run in comparison.runs:
        found = _cells(run.report.table("default"), part)
        rows.append((run.name, *map(percent, found)))
        rows.append((f"  {INTERVAL}", *map(interval, found)))
        published = _cells(run.report.table("published"), part)
        rows.append(("  by the published rule", *map(percent, published)))
        rows.append(("  questions", *(str(share.of) for share in found)))
    rows += [_published(row, part) for row in PUBLISHED if _has(row, part)]
    return Sheet((TITLES[part], "overall", *columns), tuple(rows))


def _cells(table: Table, part: str) -> list[Share]:
    return [table.overall, *table.parts[part].values()]


def _has(row: Published, part: str) -> bool:
    return bool(row.hops) if part == "hops" else part == "skills" and row.overall is not None


def _published(row: Published, part: str) -> tuple[str, ...]:
    figures = row.hops if part == "hops" else row.skills
    cells = (row.overall, *(figures.get(column) for column in PARTS[part]))
    return (row.title, *(NONE if figure is None else f"{figure:.2f}" for figure in cells))


def _shares(runs: Sequence[Scored]) -> Iterator[tuple[str, ...]]:
    found = [run.report.shares() for run in runs]
    for name in SHARES:
        yield (name, *(f"{percent(one[name])} ({interval(one[name])})" for one in found))


def _calibration(runs: Sequence[Scored]) -> Iterator[tuple[str, ...]]:
    yield ("decoding", *(str(run.decoding) for run in runs))
    temperatures = [run.temperature for run in runs]
    yield (
        "temperature",
        *(
            NONE if one is None or not one.is_fitted else f"{one.value:.3f} of the {one.scale}"
            for one in temperatures
        ),
    )
    yield (
        "expected calibration error before, %",
        *(_hundredfold(run.calibration.before) for run in runs),
    )
    yield (
        "expected calibration error after, %",
        *(_hundredfold(run.calibration.after) for run in runs),
    )


def _hundredfold(figure: float | None) -> str:
    return NONE if figure is None else f"{100 * figure:.2f}"


def _differences(comparison: Comparison) -> Sheet:
    rows = []
    for first, second, found in comparison.differences():
        low, high = found.interval
        rows.append((
            f"{second.name} less {first.name}",
            f"{100 * found.value:+.2f}", f"{100 * low:+.2f} to {100 * high:+.2f}",
            f"{found.p_value:.3g}", str(found.both), str(found.only_first),
            str(found.only_second), str(found.neither),
        ))  # fmt: skip
    headings = (
        "paired difference, points", "difference", "95 % interval", "McNemar p", "both right",
        "only the first", "only the second", "neither",
    )  # fmt: skip
    return Sheet(headings, tuple(rows))


def percent(share: Share) -> str:
    """The share in percent, or a dash of no questions."""
    return NONE if share.value is None else f"{100 * share.value:.2f}"


def interval(share: Share) -> str:
    """The share's interval in percent, or a dash of no questions."""
    if share.interval is None:
        return NONE
    low, high = share.interval
    return f"{100 * low:.1f} to {100 * high:.1f}"


def footnotes(comparison: Comparison) -> list[str]:
    """What the tables do not say: of each run, and of how differences were worked out."""
    found = [f"{run.name}: {note}" for run in comparison.runs for note in run.notes]
    if len(comparison.runs) > 1:
        found.append(f"differences: {DIFFERENCE_INTERVAL}; {DIFFERENCE_TEST}")
    return found
