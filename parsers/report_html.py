"""An evaluation as one HTML file: its tables, and the worst errors with their flow charts.

The file holds everything: pictures are drawn inside it, no script, font or style comes from
elsewhere, and every text of the data is escaped. The same evaluation gives the same file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from kopl.chart import UNPRINTABLE, chart
from kopl.diagram import SHOWN
from kopl.executor import TraceStep
from kopl.program import Call, linked, post_order
from kopl.text import write_nested
from kopl_base.errors import KoplError
from kopl_base.stream import writing
from parsers.calibration import Bin
from parsers.languages import Language
from parsers.report import Comparison, Scored
from parsers.report_paper import PUBLISHED
from parsers.report_tables import NONE, footnotes, sheets
from parsers.scoring import KEPT, Judged

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #222; margin: 2em auto; max-width: 80em;
       padding: 0 1em; }
table { border-collapse: collapse; margin: 1em 0 2em; font-variant-numeric: tabular-nums; }
th, td { padding: .2em .7em; text-align: right; border-bottom: 1px solid #ddd; }
th { border-bottom: 2px solid #888; } th:first-child, td:first-child { text-align: left; }
.wide, .charts > div { overflow-x: auto; }
details { border: 1px solid #ccc; border-radius: 5px; margin: .7em 0; padding: .5em 1em; }
summary { cursor: pointer; } dt { font-weight: bold; float: left; clear: left; width: 9em; }
dd { margin: 0 0 .2em 9.5em; overflow-wrap: anywhere; }
.charts { display: flex; flex-wrap: wrap; gap: 2em; } .charts > div { flex: 1 1 20em; }
.verdict { color: #a00; } code { overflow-wrap: anywhere; } .small { color: #666; }
"""
# Nothing may be loaded and nothing may run, whatever a text of the data may hold.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

# Larger programs (an unconstrained model may write such) are shown as text only.
_LARGEST_CHART = 60


@dataclass(frozen=True)
class Shown:
    """An error to be shown: what was judged, and the values of both programs' calls."""

    judged: Judged
    confidence: float
    gold_trace: list[TraceStep] | None
    predicted_trace: list[TraceStep] | None


def worst_errors(scored: Scored, language: Language, count: int) -> list[Shown]:
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


def _trace(program: Call | None, language: Language) -> list[TraceStep] | None:
    if program is None:
        return None
    try:
        return language.executor.run(program, trace=SHOWN).trace
    except KoplError:
        return None


def write_html(
    path: Path, comparison: Comparison, errors: Sequence[Sequence[Shown]]
) -> None:  # fmt: skip
    """Write the file; ``errors`` are those of each run. Raises WriteError."""
    with writing(path) as file:
        for piece in _page(comparison, errors):
            file.write(piece)


def _page(comparison: Comparison, errors: Sequence[Sequence[Shown]]) -> Iterator[str]:
    names = ", ".join(run.name for run in comparison.runs)
    yield (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{text(names)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{text(names)}</h1>\n<p>{len(comparison.runs[0].report.judged)} questions of"
        f" {text(comparison.data)}</p>\n"
    )
    for sheet in sheets(comparison):
        yield '<div class="wide"><table>\n'
        yield from _row(sheet.headings, "th")
        for row in sheet.rows:
            yield from _row(row, "td")
        yield "</table></div>\n"
    for note in footnotes(comparison):
        yield f"<p>{text(note)}</p>\n"
    yield '<p class="small">Published figures, measured on KQA Pro&#39;s own test questions: '
    yield f"{text('; '.join(dict.fromkeys(row.source for row in PUBLISHED)))}.</p>\n"
    number = 0
    for run, shown in zip(comparison.runs, errors, strict=True):
        yield f"<h2>{text(run.name)}</h2>\n<h3>Confidence and accuracy</h3>\n"
        yield _diagram(run.calibration.bins)
        yield f"<h3>The {len(shown)} most confident errors</h3>\n"
        if shown:
            yield (
                '<p class="small">Under every call stand how many values it gave and the first of'
                " them; a red frame marks where a prediction leaves the gold program.</p>\n"
            )
        for one in shown:
            number += 1
            yield from _error(one, number)
    yield "</body>\n</html>\n"


def _row(cells: Sequence[str], tag: str) -> Iterator[str]:
    yield "<tr>"
    for cell in cells:
        yield f"<{tag}>{text(cell)}</{tag}>"
    yield "</tr>\n"


def _error(shown: Shown, number: int) -> Iterator[str]:
    one = shown.judged
    wanted = one.example.program
    yield (
        f"<details{' open' if number == 1 else ''}><summary>{text(one.example.question)}"
        f' <span class="verdict">{one.verdict}</span>, {shown.confidence:.1%} confident'
        "</summary>\n<dl>\n"
    )
    answers = "; ".join(one.denotation or ())
    if one.count > KEPT:
        answers += f"; … ({one.count} in all)"
    gold = "(the gold program has no single answer)" if one.gold is None else one.gold
    facts = [
        ("id", one.example.id),
        ("right answer", gold),
        ("its answer", answers or NONE),
        ("why", one.error),
        ("gold program", None if wanted is None else write_nested(wanted)),
        ("it wrote", one.prediction.text or "(nothing that can be read)"),
    ]
    for name, fact in facts:
        if fact is not None:
            yield f"<dt>{name}</dt><dd>{text(fact)}</dd>\n"
    yield '</dl>\n<div class="charts">\n'
    if wanted is not None:
        yield _chart("gold program", wanted, shown.gold_trace, (), f"g{number}")
    predicted = one.prediction.program
    if predicted is not None:
        left = [] if wanted is None else departures(wanted, predicted)
        yield _chart("predicted program", predicted, shown.predicted_trace, left, f"p{number}")
    yield "</div></details>\n"


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
    title: str, program: Call, trace: list[TraceStep] | None, marked: Sequence[int], tip: str
) -> str:
    if program.size > _LARGEST_CHART:
        return f"<div><p>{title}: {program.size} calls, too many for a chart</p></div>\n"
    values = "" if trace is not None else " (it does not run, so there are no values)"
    return f"<div><p>{title}{values}</p>\n{chart(program, trace, marked=marked, tip=tip)}</div>\n"


def _diagram(bins: Sequence[Bin]) -> str:
    """A reliability diagram: the share that is right by confidence; the diagonal is perfect."""
    size, margin = 240, 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size + 2 * margin}"'
        f' height="{size + 2 * margin}" font-size="12" font-family="sans-serif">\n'
    ]
    for one in bins:
        left, width = margin + size * one.low, size * (one.high - one.low)
        high = size * one.accuracy
        told = (
            f"{one.low:.0%} to {one.high:.0%}: {one.count} predictions, {one.accuracy:.1%} right,"
            f" {one.confidence:.1%} confident"
        )
        if one.count:
            parts.append(
                f'<rect x="{left:.1f}" y="{margin + size - high:.1f}" width="{width:.1f}"'
                f' height="{high:.1f}" fill="#7aa6d8" stroke="#fff"><title>{told}</title></rect>\n'
                f'<circle cx="{margin + size * one.confidence:.1f}"'
                f' cy="{margin + size - high:.1f}" r="3" fill="#036"><title>{told}</title>'
                "</circle>\n"
            )
    end = margin + size
    parts.append(
        f'<path d="M{margin},{end} L{end},{margin}" stroke="#a00" stroke-dasharray="4"/>\n'
        f'<path d="M{margin},{margin} L{margin},{end} L{end},{end}" stroke="#555" fill="none"/>\n'
        f'<text x="{margin}" y="{end + 16}">0 % confident</text>\n'
        f'<text x="{end}" y="{end + 16}" text-anchor="end">100 %</text>\n'
        f'<text x="{margin}" y="{margin - 8}">100 % right</text>\n</svg>\n'
    )
    return "".join(parts)


def text(given: str) -> str:
    """A text of the data as HTML that shows it and does nothing else."""
    return escape(UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", given))
