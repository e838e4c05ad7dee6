"""An evaluation as tables: a text of lines that fit 80 columns, and sheets with all that is known.

The text begins with the runs' own figures; the sheets hold every figure with its interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kopl_base.errors import counted, wrapped
from kopl_base.tables import aligned
from parsers.evaluation.accuracy import (
    DIFFERENCE_INTERVAL,
    DIFFERENCE_TEST,
    INTERVAL,
    SHARES,
    Difference,
    Share,
    Table,
)
from parsers.evaluation.coverage import COVERAGES
from parsers.evaluation.judging import HOPS, PARTS, SKILLS, VERDICTS
from parsers.evaluation.report import LATER, PUBLISHED, TABLE_9, Comparison, Published, ScoredRun

NONE = "–"
# Runs that stand side by side; more follow below.
BESIDE = 5
# The published rows have eight columns beside their names.
SHORT = {
    "multi-hop": "m-hop", "qualifier": "qual.", "comparison": "comp.", "logical": "logic",
    "count": "count", "verify": "ver.", "zero-shot": "zero",
}  # fmt: skip
TITLES = {
    "skills": "right, %, by skill",
    "hops": "right, %, by hops",
    "length": "right, %, by the program's calls",
}


def text_of(comparison: Comparison, *, paper: bool = False, brief: bool = False) -> str:
    """The evaluation as a text; ``brief`` is the first table.

    ``paper`` adds published figures, with the runs beside them by the published rule.

    A line is longer than 80 columns only where a name in it is.
    """
    if not any(run.report.compared for run in comparison.runs):
        return _only_predicted(comparison)
    parts = [_heads(comparison)]
    runs = list(enumerate(comparison.runs))
    for at in range(0, len(runs), BESIDE):
        some = runs[at : at + BESIDE]
        if len(some) == 1:
            parts += list(_alone(some[0][1], brief))
        else:
            parts += list(_beside(some, brief))
    if len(runs) > 1:
        parts.append(_differences(comparison))
    if paper:
        parts += _published(comparison)
    parts.append([line for note in footnotes(comparison) for line in _wrapped(note)])
    return "\n".join("\n".join(part) + "\n" for part in parts if part)


def _heads(comparison: Comparison) -> list[str]:
    """What share of the questions each run has right."""
    several = len(comparison.runs) > 1
    found = []
    for number, run in enumerate(comparison.runs):
        overall = run.report.table("default").overall
        published = run.report.table("published").overall
        name = f"{letter(number)}  {run.name}" if several else run.name
        found += _wrapped(
            f"{name}: {percent(overall)} % of {overall.of} questions right"
            f" (95 %: {interval(overall)}; by the published rule {percent(published)} %)"
        )
    return found


def _only_predicted(comparison: Comparison) -> str:
    """What is to be said of questions that say neither program nor answer: how predictions end."""
    parts = []
    for run in comparison.runs:
        judged = run.report.judged
        answered = sum(one.first is not None for one in judged)
        parts.append([
            *_wrapped(
                f"{run.name}: {counted(len(judged), 'question')} predicted: {answered} have an"
                f" answer, {len(judged) - answered} failed or found none"
            ),
            "",
            *_ends(run, brief=True),
        ])  # fmt: skip
    parts.append([line for note in footnotes(comparison) for line in _wrapped(note)])
    return "\n".join("\n".join(part) + "\n" for part in parts if part)


def letter(number: int) -> str:
    """What stands for a run in the tables: A, B, …, Z, A1, …"""
    return chr(ord("A") + number % 26) + (str(number // 26) if number >= 26 else "")


def _alone(run: ScoredRun, brief: bool) -> Iterator[list[str]]:
    table = run.report.table("default")
    for part in ("skills",) if brief else PARTS:
        rows = [
            (column, percent(share), interval(share), str(share.of))
            for column, share in table.parts[part].items()
        ]
        yield aligned([(TITLES[part], "right", "95 % interval", "questions"), *rows])
    if not brief:
        shares = run.report.shares()
        reached = [(name, percent(shares[name]), interval(shares[name])) for name in SHARES]
        yield aligned([("share of the questions, %", "share", "95 % interval"), *reached])
    yield _ends(run, brief)
    yield _confidence(run)


def _ends(run: ScoredRun, brief: bool) -> list[str]:
    counts = run.report.verdicts().items()
    rows = [(verdict, str(count)) for verdict, count in counts if count or not brief]
    return aligned([("how predictions end", "questions"), *rows])


def _beside(runs: Sequence[tuple[int, ScoredRun]], brief: bool) -> Iterator[list[str]]:
    names = [letter(number) for number, _ in runs]
    tables = [run.report.table("default") for _, run in runs]
    for part in ("skills",) if brief else PARTS:
        rows = [
            (column, *(percent(table.parts[part][column]) for table in tables),
             str(tables[0].parts[part][column].of))
            for column in PARTS[part]
        ]  # fmt: skip
        yield aligned([(TITLES[part], *names, "questions"), *rows])
    shares = [run.report.shares() for _, run in runs]
    rows = [(name, *(percent(one[name]) for one in shares)) for name in SHARES]
    yield aligned([("share of the questions, %", *names), *rows])
    ends = [run.report.verdicts() for _, run in runs]
    shown = [verdict for verdict in VERDICTS if any(verdict in one for one in ends)]
    rows = [(verdict, *(str(one.get(verdict, 0)) for one in ends)) for verdict in shown]
    yield aligned([("how predictions end", *names), *rows])
    for number, run in runs:
        yield _confidence(run, f"{letter(number)}: ")


def _confidence(run: ScoredRun, begin: str = "") -> list[str]:
    found, temperature = run.calibration, run.temperature
    before, after = (
        NONE if one is None else f"{100 * one:.2f} %" for one in (found.before, found.after)
    )
    fitted = ""
    if temperature is not None and temperature.is_fitted:
        fitted = f", at the temperature {temperature.value:.3f} of the {temperature.scale} {after}"
    area = run.selective.auroc
    told = "" if area is None else f"; area under the curve of right against wrong {area:.3f}"
    return _wrapped(f"{begin}{run.decoding}; expected calibration error {before}{fitted}{told}")


def _differences(comparison: Comparison) -> list[str]:
    rows = [
        (f"{letter(number)} less {letter(0)}", *_difference(found))
        for number, (_, _, found) in enumerate(comparison.differences(), 1)
    ]
    headings = ("points", "difference", "95 % interval", "McNemar p", "both", "first", "second",
                "neither")  # fmt: skip
    return aligned([headings, *rows])


def _difference(found: Difference) -> tuple[str, ...]:
    """The cells of a difference, behind its name."""
    low, high = found.interval
    return (
        f"{100 * found.value:+.2f}", f"{100 * low:+.2f} to {100 * high:+.2f}",
        f"{found.p_value:.3g}", str(found.both), str(found.only_first), str(found.only_second),
        str(found.neither),
    )  # fmt: skip


def _published(comparison: Comparison) -> list[list[str]]:
    """The runs by the published rule, and what others measured on KQA Pro's test questions."""
    skills = [row for row in PUBLISHED if row.overall is not None]
    hops = [row for row in PUBLISHED if row.hops]
    several = len(comparison.runs) > 1
    own = [
        (f"run {letter(number)}" if several else "this run", run.report.table("published"))
        for number, run in enumerate(comparison.runs)
    ]

    def cells(row: Published, columns: Iterable[str]) -> list[str]:
        figures = {**row.skills, **row.hops}
        return [f"{figures[one]:.2f}" if one in figures else NONE for one in columns]

    rows = [
        (name, percent(table.overall), *map(percent, table.parts["skills"].values()))
        for name, table in own
    ]
    rows += [
        (row.name.removesuffix(" split") + (" *" if row.source == LATER else ""),
         f"{row.overall:.2f}", *cells(row, SKILLS))
        for row in skills
    ]  # fmt: skip
    by_hops = [(name, *map(percent, table.parts["hops"].values())) for name, table in own]
    by_hops += [(row.name, *cells(row, HOPS)) for row in hops]
    return [
        _wrapped(
            "By the published rule, beside the published figures, which are of KQA Pro's own test"
            " questions; beside other questions they are for orientation only:"
        ),
        aligned([("right, %", "all", *(SHORT[skill] for skill in SKILLS)), *rows], gap=1),
        _wrapped(f"Source: {next(row.source for row in skills)}. * {LATER}"),
        aligned([("right, %, by hops", *HOPS), *by_hops]),
        _wrapped(f"Source: {TABLE_9}"),
    ]


def _wrapped(text: str) -> list[str]:
    return wrapped(text).split("\n")


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


# --- sheets ---------------------------------------------------------------------------------------

SHEET_TITLES = {
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
        yield _difference_sheet(comparison)


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
    rows += [_published_row(row, part) for row in PUBLISHED if _has(row, part)]
    return Sheet((SHEET_TITLES[part], "overall", *columns), tuple(rows))


def _cells(table: Table, part: str) -> list[Share]:
    return [table.overall, *table.parts[part].values()]


def _has(row: Published, part: str) -> bool:
    return bool(row.hops) if part == "hops" else part == "skills" and row.overall is not None


def _published_row(row: Published, part: str) -> tuple[str, ...]:
    figures = row.hops if part == "hops" else row.skills
    cells = (row.overall, *(figures.get(column) for column in PARTS[part]))
    return (row.title, *(NONE if figure is None else f"{figure:.2f}" for figure in cells))


def _shares(runs: Sequence[ScoredRun]) -> Iterator[tuple[str, ...]]:
    found = [run.report.shares() for run in runs]
    for name in SHARES:
        yield (name, *(f"{percent(one[name])} ({interval(one[name])})" for one in found))


def _calibration(runs: Sequence[ScoredRun]) -> Iterator[tuple[str, ...]]:
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
    areas = [run.selective.auroc for run in runs]
    yield (
        "area under the curve of right against wrong",
        *(NONE if one is None else f"{one:.3f}" for one in areas),
    )
    for coverage in COVERAGES:
        points = [run.selective.at(coverage) for run in runs]
        yield (
            f"wrong of the surest {coverage:.0%}, %",
            *(_hundredfold(None if one is None else one.risk) for one in points),
        )


def _hundredfold(figure: float | None) -> str:
    return NONE if figure is None else f"{100 * figure:.2f}"


def _difference_sheet(comparison: Comparison) -> Sheet:
    rows = [
        (f"{second.name} less {first.name}", *_difference(found))
        for first, second, found in comparison.differences()
    ]
    headings = (
        "paired difference, points", "difference", "95 % interval", "McNemar p", "both right",
        "only the first", "only the second", "neither",
    )  # fmt: skip
    return Sheet(headings, tuple(rows))
