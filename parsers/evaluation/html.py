"""An evaluation as one HTML file: its tables, and the worst errors with their flow charts.

The file holds everything: pictures are drawn inside it, no script, font or style comes from
elsewhere, and every text of the data is escaped. The same evaluation gives the same file. How it
looks is written in ``report.html``, a template.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

from kopl.diagram import SHOWN, chart
from kopl.executor import TraceStep
from kopl.program import Call, linked, post_order
from kopl.text import write_nested
from kopl_base.errors import KoplError
from kopl_base.packages import needs
from kopl_base.stream import writing
from kopl_base.svg import UNPRINTABLE
from parsers.evaluation.judging import KEPT, JudgedExample
from parsers.evaluation.report import PUBLISHED, Comparison, ScoredRun
from parsers.evaluation.tables import NONE, footnotes, sheets
from parsers.languages import OutputLanguage

# Larger programs (an unconstrained model may write such) are shown as text only.
_LARGEST_CHART = 60


@dataclass(frozen=True)
class Shown:
    """An error to be shown: what was judged, and the values of both programs' calls."""

    judged: JudgedExample
    confidence: float
    gold_trace: list[TraceStep] | None
    predicted_trace: list[TraceStep] | None


def worst_errors(scored: ScoredRun, language: OutputLanguage, count: int) -> list[Shown]:
    """The most confident errors of a run, their programs run again for their values."""
    found = []
    for number in scored.worst(count):
        one = scored.report.judged[number]
        found.append(
            Shown(
                one,
                scored.confidence(number),
                _trace(one.example.program, language),
                _trace(one.prediction.program, language),
            )
        )
    return found


def _trace(program: Call | None, language: OutputLanguage) -> list[TraceStep] | None:
    if program is None:
        return None
    try:
        return language.executor.run(program, trace=SHOWN).trace
    except KoplError:
        return None


def template() -> Any:
    """The template of reports; raises KoplError without the package Jinja2."""
    try:
        jinja2, markup = import_module("jinja2"), import_module("markupsafe").Markup
    except ImportError:
        raise KoplError(needs("HTML reports", "Jinja2", extra="html")) from None

    def escaped(value: object) -> Any:
        return value if isinstance(value, markup) else markup(text(str(value)))

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        finalize=escaped,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("report.html")


def write_html(path: Path, comparison: Comparison, errors: Sequence[Sequence[Shown]]) -> None:
    """Write the file; ``errors`` are those of each run.

    Raises WriteError, and KoplError without the package Jinja2.
    """
    numbers = count(1)
    pieces = template().generate(
        title=", ".join(run.name for run in comparison.runs),
        questions=len(comparison.runs[0].report.judged),
        data=comparison.data,
        sheets=sheets(comparison),
        footnotes=footnotes(comparison),
        sources="; ".join(dict.fromkeys(row.source for row in PUBLISHED)),
        runs=[
            (run, [_error(one, next(numbers)) for one in shown])
            for run, shown in zip(comparison.runs, errors, strict=True)
        ],
    )
    with writing(path) as file:
        file.writelines(pieces)


def _error(shown: Shown, number: int) -> dict[str, object]:
    """What the template shows of an error."""
    one = shown.judged
    wanted = one.example.program
    answers = "; ".join(one.denotation or ())
    if one.count > KEPT:
        answers += f"; … ({one.count} in all)"
    gold = "(the gold program has no single answer)" if one.gold is None else one.gold
    facts = {
        "id": one.example.id,
        "right answer": gold,
        "its answer": answers or NONE,
        "why": one.error,
        "gold program": None if wanted is None else write_nested(wanted),
        "it wrote": one.prediction.text or "(nothing that can be read)",
    }
    return {
        "number": number,
        "question": one.example.question,
        "verdict": one.verdict,
        "confidence": f"{shown.confidence:.1%}",
        "facts": [(name, fact) for name, fact in facts.items() if fact is not None],
        "charts": list(_charts(shown)),
    }


def _charts(shown: Shown) -> Iterator[tuple[str, str]]:
    """The headings and pictures of both programs, as far as there are any."""
    wanted, predicted = shown.judged.example.program, shown.judged.prediction.program
    if wanted is not None:
        yield _chart("gold program", wanted, shown.gold_trace, ())
    if predicted is not None:
        left = [] if wanted is None else departures(wanted, predicted)
        yield _chart("predicted program", predicted, shown.predicted_trace, left)


def departures(gold: Call, predicted: Call) -> list[int]:
    """The calls where a program leaves the gold one, by their numbers in post-order.

    These calls are not in the gold program with all that is below them, but their inputs are.
    """
    known = set(post_order(gold))
    return [
        number
        for number, (call, _) in enumerate(linked(predicted))
        if call not in known and all(given in known for given in call.inputs)
    ]


def _chart(
    title: str, program: Call, trace: list[TraceStep] | None, marked: Sequence[int]
) -> tuple[str, str]:
    if program.size > _LARGEST_CHART:
        return f"{title}: {program.size} calls, too many for a chart", ""
    values = "" if trace is not None else " (it does not run, so there are no values)"
    return f"{title}{values}", chart(program, trace, marked=marked)


def text(given: str) -> str:
    """A text of the data as HTML that shows it and does nothing else."""
    return escape(UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", given))
