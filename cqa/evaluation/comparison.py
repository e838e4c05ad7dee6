"""Runs beside each other: intervals over queries, and paired tests on the same queries.

A figure is a mean over queries, then over types, as in `cqa.evaluation.evaluation`. Its interval is
that of the bootstrap: queries are drawn again, with replacement, within each type. Two runs on the
same queries differ by the mean of their differences; its p-value is that of the randomisation test,
which turns each query's difference round or not. Of a type with many queries both distributions are
taken for normal ones, which they hardly differ from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cqa.errors import QueryError
from cqa.evaluation.evaluation import Evaluation, Part, TypeResult
from cqa.evaluation.tables import ALL, METRICS, Table, distinct, title
from cqa.vocabularies import ROWS

# Draws of the bootstrap and of the randomisation test; above so many queries of a type the
# distribution of their mean is taken for normal.
DRAWS, TURNS, MANY = 2_000, 10_000, 1_000
# The share of the draws that an interval holds.
SHARE = 0.95

Values: TypeAlias = npt.NDArray[np.float64]
Key: TypeAlias = tuple[tuple[str, str | int], ...]


@dataclass(frozen=True)
class Figure:
    """A mean with its interval, as fractions of 1."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """How much a run is above the first: the mean, its interval, and the p-value of there being
    none."""

    mean: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class Compared:
    """A row: what it is of, the queries that have the metric, each run's figure.

    ``differences`` are those of the second run and on; None where the runs were not on the same
    queries.
    """

    key: Key
    queries: int
    figures: tuple[Figure | None, ...]
    differences: tuple[Difference | None, ...]


def compare(
    runs: Sequence[Evaluation], by: str = "type", metric: str = "mrr", seed: int = 0
) -> list[Compared]:
    """The runs by type, group or what answers reduce to; the last row is of all types.

    Raises QueryError for fewer than two runs, for runs without the figures of single queries, for a
    metric or a table that there is not, and where no run has the metric.
    """
    if by not in ROWS:
        raise QueryError(f"there is no table by {by!r}; choose of {', '.join(ROWS)}")
    if metric not in METRICS:
        raise QueryError(f"there is no metric {metric!r}; choose of {', '.join(METRICS)}")
    if len(runs) < 2:
        raise QueryError("two runs at least can be compared")
    for run in runs:
        if not any(result.all.each for result in run.types):
            raise QueryError(
                f"{run.reasoner}: the report has no figures of single queries; make it again with"
                " kopl cqa evaluate --format json"
            )
    rows: dict[Key, dict[str, None]] = {}
    for run in runs:
        for result in run.types:
            for key, name in _places(result, by):
                rows.setdefault(key, {})[name] = None
    if not rows:
        raise QueryError("no run tells what its answers reduce to; evaluate with --by hardness")
    found = [_row(runs, key, list(names), by, metric, seed) for key, names in rows.items()]
    found = [row for row in found if any(figure is not None for figure in row.figures)]
    if not found:
        raise QueryError(f"no run has the metric {metric}")
    if by != "hardness":
        names = list(dict.fromkeys(result.type for run in runs for result in run.types))
        every = tuple((name, ALL) for name, _ in found[0].key)
        found.append(_row(runs, every, names, by, metric, seed))
    return found


def _places(result: TypeResult, by: str) -> list[tuple[Key, str]]:
    """The rows that a type is part of, and what it is called there."""
    if by == "type":
        return [((("type", result.names[0] if result.names else result.type),), result.type)]
    if by == "group":
        return [(result.group, result.type)]
    shown = result.names[0] if result.names else result.type
    return [((("type", shown), ("reduces to", name)), result.type) for name in result.reduced]


def _row(
    runs: Sequence[Evaluation], key: Key, names: Sequence[str], by: str, metric: str, seed: int
) -> Compared:
    reduced = str(dict(key)["reduces to"]) if by == "hardness" else None
    parts = [_parts(run, names, reduced) for run in runs]
    random = np.random.default_rng(seed)
    held = [[_values(part, metric) for _, part in own.values()] for own in parts]
    held = [[values for values in own if len(values)] for own in held]
    figures = tuple(_figure(own, random) if own else None for own in held)
    queries = max(sum(map(len, own)) for own in held)
    differences = tuple(_difference(parts[0], other, metric, random) for other in parts[1:])
    return Compared(key, queries, figures, differences)


def _parts(
    run: Evaluation, names: Sequence[str], reduced: str | None
) -> dict[str, tuple[int, Part]]:
    """The parts of some types, with the marks of their queries."""
    found = {}
    for result in run.types:
        if result.type in names:
            part = result.all if reduced is None else result.reduced.get(reduced)
            if part is not None:
                found[result.type] = result.mark, part
    return found


def _values(part: Part, metric: str) -> Values:
    found = part.each.get(metric, np.empty(0))
    return found[~np.isnan(found)]


def _figure(types: Sequence[Values], random: np.random.Generator) -> Figure:
    mean = float(np.mean([values.mean() for values in types]))
    return Figure(mean, *_interval([_drawn(values, random) for values in types]))


def _interval(draws: Sequence[Values]) -> tuple[float, float]:
    """Of the means over types."""
    means = np.mean(draws, axis=0)
    low, high = np.quantile(means, [(1 - SHARE) / 2, (1 + SHARE) / 2])
    return float(low), float(high)


def _drawn(values: Values, random: np.random.Generator) -> Values:
    """Means of the values, drawn with replacement."""
    count = len(values)
    if count > MANY:
        scale = float(values.std() / np.sqrt(count))
        return float(values.mean()) + scale * random.standard_normal(DRAWS)
    found: Values = values[random.integers(count, size=(DRAWS, count))].mean(axis=1)
    return found


def _difference(
    first: Mapping[str, tuple[int, Part]],
    other: Mapping[str, tuple[int, Part]],
    metric: str,
    random: np.random.Generator,
) -> Difference | None:
    """The paired difference; None where types, queries or answers are others."""
    if not first or list(first) != list(other):
        return None
    pairs = []
    for name, (mark, one) in first.items():
        own_mark, two = other[name]
        if mark != own_mark or not np.array_equal(_own(one), _own(two)):
            return None
        left, right = (part.each.get(metric, np.full(part.queries, np.nan)) for part in (one, two))
        both = ~(np.isnan(left) | np.isnan(right))
        if both.any():
            pairs.append(right[both] - left[both])
    if not pairs:
        return None
    mean = float(np.mean([values.mean() for values in pairs]))
    low, high = _interval([_drawn(values, random) for values in pairs])
    turned = np.mean([_turned(values, random) for values in pairs], axis=0)
    # A rounding error below what is there, so that the same difference is as large as itself.
    beyond = int((np.abs(turned) >= abs(mean) * (1 - 1e-12)).sum())
    return Difference(mean, low, high, (1 + beyond) / (1 + TURNS))


def _own(part: Part) -> npt.NDArray[np.int64]:
    return np.arange(part.queries) if part.own is None else part.own


def _turned(values: Values, random: np.random.Generator) -> Values:
    """Means of the values, each turned round or not."""
    count = len(values)
    if count > MANY:
        scale = float(np.sqrt(np.square(values).mean() / count))
        return random.standard_normal(TURNS) * scale
    found = np.empty(TURNS)
    step = max(1, (1 << 22) // count)
    for begin in range(0, TURNS, step):
        size = min(step, TURNS - begin)
        signs = random.integers(2, size=(size, count), dtype=np.int8) * 2 - 1
        found[begin : begin + size] = (signs @ values) / count
    return found


# --- as tables ----------------------------------------------------------------------------------


def comparison_table(rows: Sequence[Compared], names: Sequence[str], metric: str) -> Table:
    """The rows in percent: each run with its interval, then how far each is above the first."""
    head = list(dict.fromkeys(name for row in rows for name, _ in row.key))
    headings = [*head, "queries"]
    shown = distinct(names)
    for name in shown:
        headings += [f"{title(metric)} {name}", "95 %"]
    for name in shown[1:]:
        headings += [f"{name} above {shown[0]}", "95 %", "p"]
    table = []
    for row in rows:
        cells: list[object] = [dict(row.key).get(name) for name in head]
        cells.append(row.queries)
        for figure in row.figures:
            cells += [None, ""] if figure is None else [100 * figure.mean, _between(figure)]
        for one in row.differences:
            if one is None:
                cells += [None, "", ""]
            else:
                cells += [100 * one.mean, _between(one), _shown(one.p)]
        table.append(tuple(cells))
    return Table(tuple(headings), tuple(table))


def _between(one: Figure | Difference) -> str:
    return f"{100 * one.low:.2f} to {100 * one.high:.2f}"


def _shown(p: float) -> str:
    return f"{p:.4f}" if p > 1 / TURNS else f"< {1 / TURNS:g}"


def comparison_json(
    rows: Sequence[Compared], names: Sequence[str], metric: str, by: str
) -> dict[str, Any]:
    """The rows as a JSON object, in fractions of 1."""

    def as_object(one: Figure | Difference | None) -> dict[str, Any] | None:
        return None if one is None else asdict(one)

    return {
        "runs": list(names),
        "metric": metric,
        "by": by,
        "rows": [
            {
                **dict(row.key),
                "queries": row.queries,
                "figures": [as_object(one) for one in row.figures],
                "differences": [as_object(one) for one in row.differences],
            }
            for row in rows
        ],
    }
