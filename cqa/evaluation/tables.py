"""Evaluations as tables: by type, by group of types, by what hard answers reduce to.

Several runs and published results stand side by side. Metrics are shown in percent.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cqa.errors import QueryError
from cqa.evaluation.evaluation import Evaluation, Part, TypeResult, mean
from cqa.evaluation.metrics import HITS
from cqa.evaluation.published import PUBLISHED, Column, Row
from cqa.vocabularies import ROWS, TABLE_FORMATS
from kopl_base.tables import aligned, markdown, write_csv

ALL = "all"

_PLAIN = ("mrr", *(f"hit@{bound}" for bound in HITS))
METRICS = (
    *_PLAIN, "ra_oracle",
    *(f"{kind}_{metric}" for kind in ("marginal", "multiply", "joint") for metric in _PLAIN),
    "entailment",
)  # fmt: skip
"""All metrics, in the order in which tables have them."""

# What a table has where nothing else is asked for, and what several runs are compared in.
_SUMMARY = (
    *_PLAIN, "ra_oracle", "marginal_mrr", "marginal_hit@10", "multiply_hit@10", "joint_mrr",
    "joint_hit@10", "entailment",
)  # fmt: skip
_COMPARED = ("mrr", "hit@10", "marginal_hit@10", "multiply_hit@10", "joint_hit@10")


@dataclass(frozen=True)
class Table:
    """A table: its headings, and rows of texts, counts and percentages (None: no value)."""

    headings: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


@dataclass(frozen=True)
class _Line:
    """A row before its metrics are chosen: what it is of, and each run's part of it."""

    key: Row
    parts: tuple[Part | None, ...]
    more: Mapping[str, object]
    names: tuple[str, ...] = ()


def tabulate(
    evaluations: Sequence[Evaluation],
    by: str = "group",
    *,
    metrics: Sequence[str] | None = None,
    published: str | None = None,
) -> Table:
    """The table of one evaluation, or of several side by side; the last line is of all types.

    ``by``: "type"; "group", which is anchors × depth for operator trees and constants ×
    existential × topology for query graphs, with means over constants where there are several;
    "hardness", the simpler types that hard answers reduce to. ``metrics`` are of `METRICS`; None:
    a summary, of several runs a shorter one. ``published`` is one of
    `cqa.evaluation.published.PUBLISHED`. Raises QueryError for what does not exist, and for a table
    by hardness of runs without it.
    """
    check_table(by, metrics, published)
    lines = {"type": _by_type, "group": _by_group, "hardness": _by_hardness}[by](evaluations)
    names = distinct([one.reasoner for one in evaluations])
    had = {key for line in lines for part in line.parts if part is not None for key in part.metrics}
    default = _SUMMARY if len(evaluations) == 1 else _COMPARED
    found = list(dict.fromkeys(metrics or ()) or (metric for metric in default if metric in had))
    columns = [
        column
        for column in PUBLISHED.get(published or "", ())
        if column.metric in found and any(_beside(column, line) is not None for line in lines)
    ]
    head = list(dict.fromkeys(name for line in lines for name, _ in line.key))
    more = list(dict.fromkeys(name for line in lines for name in line.more))
    headings = [*head, *more]
    for metric in found:
        several = len(evaluations) > 1
        headings += [f"{title(metric)} {name}" if several else title(metric) for name in names]
        headings += [
            f"{title(metric)} {column.title} (published)"
            for column in columns
            if column.metric == metric
        ]
    rows = []
    for line in lines:
        row: list[object] = [dict(line.key).get(name) for name in head]
        row += [line.more.get(name) for name in more]
        for metric in found:
            row += [
                None if part is None or metric not in part.metrics else 100 * part.metrics[metric]
                for part in line.parts
            ]
            row += [_beside(column, line) for column in columns if column.metric == metric]
        rows.append(tuple(row))
    return Table(tuple(headings), tuple(rows))


def title(metric: str) -> str:
    """How a table calls a metric: "joint HIT@10"."""
    kind, _, name = metric.rpartition("_")
    if metric == "ra_oracle":
        return "RA-Oracle"
    if metric == "entailment":
        return metric
    return f"{kind} {name.upper()}".strip()


def check_table(by: str, metrics: Sequence[str] | None, published: str | None) -> None:
    """Raise QueryError for options of `tabulate` that do not exist or do not go together."""
    if by not in ROWS:
        raise QueryError(f"there is no table by {by!r}; choose of {', '.join(ROWS)}")
    for metric in metrics or ():
        if metric not in METRICS:
            raise QueryError(f"there is no metric {metric!r}; choose of {', '.join(METRICS)}")
    if published is None:
        return
    if published not in PUBLISHED:
        raise QueryError(
            f"there are no published results {published!r}; choose of {', '.join(PUBLISHED)}"
        )
    if (known := PUBLISHED[published][0].by) != by:
        raise QueryError(f"the published results {published} are by {known}, not by {by}")


def _beside(column: Column, line: _Line) -> float | None:
    if column.by == "group":
        return column.values.get(line.key)
    found = [column.values.get((("type", name),)) for name in line.names]
    return next((value for value in found if value is not None), None)


def distinct(names: Sequence[str]) -> list[str]:
    """The names of runs, those that occur again with a number."""
    found: list[str] = []
    for given in names:
        name, number = given, 2
        while name in found:
            name, number = f"{given} ({number})", number + 1
        found.append(name)
    return found


# --- lines ------------------------------------------------------------------------------------


def _by_type(evaluations: Sequence[Evaluation]) -> list[_Line]:
    runs = [{(r.type, r.formula): r for r in run.types} for run in evaluations]
    keys = dict.fromkeys(key for run in runs for key in run)
    lines = []
    for key in keys:
        given = [run.get(key) for run in runs]
        one = next(result for result in given if result is not None)
        more = {
            "names": ", ".join(name for name in one.names if name != one.type),
            "formula": one.formula,
            "queries": one.all.queries,
            "answers": one.all.answers,
        }
        parts = tuple(None if result is None else result.all for result in given)
        lines.append(_Line((("type", one.type),), parts, more, (one.type, *one.names)))
    everything = _mean_line((("type", ALL),), [run.types for run in evaluations])
    counts = {name: everything.more[name] for name in ("queries", "answers")}
    return [*lines, _Line(everything.key, everything.parts, counts)]


def _by_group(evaluations: Sequence[Evaluation]) -> list[_Line]:
    groups = sorted({r.group for run in evaluations for r in run.types}, key=_order)
    keys: dict[Row, Callable[[Row], bool]] = {}
    for group in groups:
        keys[group] = _matches(group)
    means: dict[Row, None] = {}
    if _several(groups, "constants"):
        means.update(dict.fromkeys(_averaged(group, ("constants",)) for group in groups))
    if groups and all(dict(group).keys() >= {"free", "topology"} for group in groups):
        rest = ("existential", "topology")
        means.update(dict.fromkeys(_averaged(group, rest) for group in groups))
        means.update(dict.fromkeys(_averaged(group, ("constants", *rest)) for group in groups))
    for key in means:
        keys[key] = _matches(key)
    names = list(dict.fromkeys(name for group in groups for name, _ in group))
    everything = tuple((name, ALL) for name in names)
    keys[everything] = lambda group: True
    return [
        _mean_line(key, [[r for r in run.types if fits(r.group)] for run in evaluations])
        for key, fits in keys.items()
    ]


def _several(groups: Sequence[Row], name: str) -> bool:
    return len({dict(group).get(name) for group in groups}) > 1


def _averaged(group: Row, names: Iterable[str]) -> Row:
    return tuple((name, ALL if name in names else value) for name, value in group)


def _matches(key: Row) -> Callable[[Row], bool]:
    wanted = {name: value for name, value in key if value != ALL}
    given = {name for name, _ in key}

    def fits(group: Row) -> bool:
        found = dict(group)
        return found.keys() == given and all(found[name] == wanted[name] for name in wanted)

    return fits


def _order(group: Row) -> tuple[tuple[str, bool, int, str], ...]:
    topologies = {"SDAG": 0, "multi": 1, "cyclic": 2}
    return tuple(
        (name, isinstance(value, str), topologies.get(value, 3), value)
        if isinstance(value, str)
        else (name, False, value, "")
        for name, value in group
    )


def _mean_line(key: Row, given: Sequence[Sequence[TypeResult]]) -> _Line:
    """The means over some types of each run; counts are of the first run that has any."""
    parts = tuple(
        Part(
            sum(result.all.queries for result in results),
            sum(result.all.answers for result in results),
            mean(result.all.metrics for result in results),
        )
        if results
        else None
        for results in given
    )
    first = next((at for at, part in enumerate(parts) if part is not None), None)
    counted = None if first is None else parts[first]
    more = {
        "types": 0 if first is None else len(given[first]),
        "queries": 0 if counted is None else counted.queries,
        "answers": 0 if counted is None else counted.answers,
    }
    return _Line(key, parts, more)


def _by_hardness(evaluations: Sequence[Evaluation]) -> list[_Line]:
    runs = [
        {(result.type, name): part for result in run.types for name, part in result.reduced.items()}
        for run in evaluations
    ]
    if not any(runs):
        raise QueryError("the evaluation was made without hardness: no answer has a simpler type")
    keys = list(dict.fromkeys(key for run in runs for key in run))
    lines = []
    for type, reduced in keys:
        parts = tuple(run.get((type, reduced)) for run in runs)
        lines.append(_line(type, reduced, parts))
    for reduced in dict.fromkeys(name for _, name in keys):
        own = [[part for (_, name), part in run.items() if name == reduced] for run in runs]
        lines.append(_line(ALL, reduced, tuple(map(_mean_part, own))))
    return lines


def _line(type: str, reduced: str, parts: tuple[Part | None, ...]) -> _Line:
    one = next(part for part in parts if part is not None)
    more = {"queries": one.queries, "answers": one.answers}
    return _Line((("type", type), ("reduces to", reduced)), parts, more)


def _mean_part(parts: Sequence[Part]) -> Part | None:
    if not parts:
        return None
    metrics = mean(part.metrics for part in parts)
    return Part(sum(p.queries for p in parts), sum(p.answers for p in parts), metrics)


# --- writing ----------------------------------------------------------------------------------


def write(table: Table, format: str = "text") -> str:
    """The text of a table: aligned columns, CSV (percentages with four places) or Markdown."""
    if format == "csv":
        file = io.StringIO()
        write_csv(file, table.headings, ([_cell(cell, 4) for cell in row] for row in table.rows))
        return file.getvalue()
    if format not in TABLE_FORMATS:
        raise QueryError(
            f"there is no format {format!r} of tables; choose of {', '.join(TABLE_FORMATS)}"
        )
    cells = [[_cell(cell, 2) for cell in row] for row in table.rows]
    right = [
        any(isinstance(row[at], float | int) for row in table.rows)
        for at in range(len(table.headings))
    ]
    if format == "markdown":
        return markdown(table.headings, cells, right)
    return "".join(f"{line}\n" for line in aligned([table.headings, *cells], right))


def _cell(cell: object, places: int) -> str:
    if cell is None:
        return ""
    return f"{cell:.{places}f}" if isinstance(cell, float) else str(cell)
