"""An evaluation as a text of lines that fit 80 columns: the runs' own figures first."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from kopl_base.wording import counted
from parsers.evaluation import SHARES
from parsers.report import Comparison, Scored
from parsers.report_paper import LATER, PUBLISHED, TABLE_9, Published
from parsers.report_tables import NONE, footnotes, interval, percent
from parsers.scoring import HOPS, PARTS, SKILLS, VERDICTS

WIDTH = 80
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


def _alone(run: Scored, brief: bool) -> Iterator[list[str]]:
    table = run.report.table("default")
    for part in ("skills",) if brief else PARTS:
        rows = [
            (column, percent(share), interval(share), str(share.of))
            for column, share in table.parts[part].items()
        ]
        yield _table((TITLES[part], "right", "95 % interval", "questions"), rows)
    if not brief:
        shares = run.report.shares()
        reached = [(name, percent(shares[name]), interval(shares[name])) for name in SHARES]
        yield _table(("share of the questions, %", "share", "95 % interval"), reached)
    yield _ends(run, brief)
    yield _confidence(run)


def _ends(run: Scored, brief: bool) -> list[str]:
    return _table(("how predictions end", "questions"), [
        (verdict, str(count)) for verdict, count in run.report.verdicts().items()
        if count or not brief
    ])  # fmt: skip


def _beside(runs: Sequence[tuple[int, Scored]], brief: bool) -> Iterator[list[str]]:
    names = [letter(number) for number, _ in runs]
    tables = [run.report.table("default") for _, run in runs]
    for part in ("skills",) if brief else PARTS:
        rows = [
            (column, *(percent(table.parts[part][column]) for table in tables),
             str(tables[0].parts[part][column].of))
            for column in PARTS[part]
        ]  # fmt: skip
        yield _table((TITLES[part], *names, "questions"), rows)
    shares = [run.report.shares() for _, run in runs]
    rows = [(name, *(percent(one[name]) for one in shares)) for name in SHARES]
    yield _table(("share of the questions, %", *names), rows)
    ends = [run.report.verdicts() for _, run in runs]
    shown = [verdict for verdict in VERDICTS if any(verdict in one for one in ends)]
    rows = [(verdict, *(str(one.get(verdict, 0)) for one in ends)) for verdict in shown]
    yield _table(("how predictions end", *names), rows)
    for number, run in runs:
        yield _confidence(run, f"{letter(number)}: ")


def _confidence(run: Scored, begin: str = "") -> list[str]:
    found, temperature = run.calibration, run.temperature
    before, after = (
        NONE if one is None else f"{100 * one:.2f} %" for one in (found.before, found.after)
    )
    fitted = ""
    if temperature is not None and temperature.is_fitted:
        fitted = f", at the temperature {temperature.value:.3f} of the {temperature.scale} {after}"
    return _wrapped(f"{begin}{run.decoding}; expected calibration error {before}{fitted}")


def _differences(comparison: Comparison) -> list[str]:
    rows = []
    for number, (_, _, found) in enumerate(comparison.differences(), 1):
        low, high = found.interval
        rows.append((
            f"{letter(number)} less {letter(0)}",
            f"{100 * found.value:+.2f}", f"{100 * low:+.2f} to {100 * high:+.2f}",
            f"{found.p_value:.3g}", str(found.both), str(found.only_first),
            str(found.only_second), str(found.neither),
        ))  # fmt: skip
    headings = ("points", "difference", "95 % interval", "McNemar p", "both", "first", "second",
                "neither")  # fmt: skip
    return _table(headings, rows)


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
        _table(("right, %", "all", *(SHORT[skill] for skill in SKILLS)), rows, gap=1),
        _wrapped(f"Source: {next(row.source for row in skills)}. * {LATER}"),
        _table(("right, %, by hops", *HOPS), by_hops),
        _wrapped(f"Source: {TABLE_9}"),
    ]


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], gap: int = 2) -> list[str]:
    """Lines of columns, the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    space = " " * gap
    return [
        space.join(
            (cell.rjust(width) if n else cell.ljust(width))
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (headings, *rows)
    ]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
