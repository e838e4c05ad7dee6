"""``kopl report``: programs with their charts, values, answers and evidence as one HTML file.

The page is for reading only and needs nothing else: no script, no picture, font or style from
elsewhere. It has the colours of the playground, light and dark. The same programs give the same
file, and every text of the data is escaped.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Any

from kopl.answer_forms import answer_of, read_form
from kopl.answers import same_answer
from kopl.diagram import chart
from kopl.errors import ParseError, ProgramError
from kopl.hints import Emptied, why_empty
from kopl.program import Call
from kopl.text import read
from kopl_base.errors import KoplError, ReadError, counted
from kopl_base.svg import UNPRINTABLE
from kopl_cli.common import add_kb, open_kb, positive, seconds

if TYPE_CHECKING:
    from kb import KnowledgeBase
    from kopl.denotation import Outcome
    from kopl.executor import Executor, Result, TraceStep

# Values of a call, and facts, that are shown; how many there are is always said.
VALUES, FACTS = 10, 50
# Longer texts are cut.
LONGEST = 300
# Larger programs have no chart.
LARGEST_CHART = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_kb(parser, option=True)
    parser.add_argument(
        "--programs",
        required=True,
        metavar="FILE",
        help="JSON lines (or a JSON list) of objects with a field 'program', and perhaps 'question'"
        " and 'answer', as question sets have them; '-': standard input",
    )
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the HTML file")
    parser.add_argument("--title", metavar="TEXT", help="what stands on top (default: the file)")
    parser.add_argument("--timeout", type=seconds, metavar="S", help="seconds for one program")
    parser.add_argument("--max-ids", type=positive, metavar="N", help="ids that one call may give")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from kopl.executor import Executor, Limits
    from kopl_base.stream import writing

    limits = Limits(seconds=arguments.timeout, ids=arguments.max_ids)
    executor = Executor(open_kb(arguments), limits=limits)
    given = "standard input" if arguments.programs == "-" else arguments.programs
    found = [report(executor, item) for item in items(arguments.programs)]
    with writing(arguments.output) as file:
        file.writelines(page(executor.kb, found, arguments.title or f"Programs of {given}"))
    failed = sum(one.error is not None for one in found)
    print(f"{arguments.output}: {counted(len(found), 'program')}", end="")
    print(f", of which {failed} failed" if failed else "")
    if failed:
        print(f"kopl: {failed} of {len(found)} programs failed", file=sys.stderr)
    return 1 if failed else 0


# --- what is reported -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Reported:
    """A program that was run, or why it could not be: one of ``result`` and ``error`` is there.

    ``given`` is the program as it came, ``answers`` what is answered, ``expected`` what a question
    set says it should be, ``emptied`` the first call that finds nothing.
    """

    question: str | None
    given: str
    result: Result | None = None
    error: KoplError | None = None
    answers: Sequence[str] = ()
    expected: Sequence[str] = ()
    emptied: Emptied | None = None

    @property
    def heading(self) -> str:
        """The question, else the program."""
        return self.question or (str(self.result.program) if self.result else self.given)

    @property
    def is_expected(self) -> bool:
        """Whether the answer is the expected one, or none is."""
        if not self.expected:
            return True
        return len(self.answers) == len(self.expected) and all(
            any(same_answer(one, other) for other in self.answers) for one in self.expected
        )


def items(path: str) -> Iterator[Any]:
    """The objects of a file; for what cannot be read the error in its place."""
    from kopl.example import read_objects

    for place, item in read_objects("/dev/stdin" if path == "-" else path):
        if isinstance(item, ReadError):
            yield ParseError(f"{place}: {item.message}")
        elif not isinstance(item, dict):
            yield ParseError(f"{place}: an object with a field 'program' was expected")
        else:
            yield item


def report(executor: Executor, item: Mapping[str, Any] | KoplError) -> Reported:
    """An object with a ``program`` in any spelling, and perhaps its question and answer, run."""
    if isinstance(item, KoplError):
        return Reported(None, "", error=item)
    question, program = item.get("question"), item.get("program")
    question = question if isinstance(question, str) and question.strip() else None
    given = program if isinstance(program, str) else ""
    try:
        if not isinstance(program, str | list | dict | Call):
            raise ParseError("there is no program in the field 'program'")
        call = read(program, max_depth=executor.limits.depth)
        result = executor.run(call, trace=VALUES, evidence=True)
        answers = answer_of(result.denotation, read_form(item.get("answer_form"), call), call)
    except ProgramError as error:
        return Reported(question, given, error=error)
    except ValueError as error:
        return Reported(question, given, error=ParseError(str(error)))
    known: dict[Call, Outcome] = {}
    emptied = why_empty(executor.kb, call, lambda one: executor.outcome(one, known))
    expected = item.get("answers") or ([item["answer"]] if item.get("answer") is not None else [])
    said = [*map(str, expected)]
    return Reported(question, given, result, None, answers, said, emptied)


def one_page(executor: Executor, program: Call, question: str | None = None) -> str:
    """The page of one program alone."""
    found = report(executor, {"program": program, "question": question})
    return "".join(page(executor.kb, [found], shorter(found.heading)))


# --- the page -------------------------------------------------------------------------------------


def page(kb: KnowledgeBase, found: Sequence[Reported], title: str) -> Iterator[str]:
    """The HTML file in pieces."""
    from kopl_base.packages import version

    title = shown(title)
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta http-equiv="Content-Security-Policy"'
        " content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{title}</title>\n<style>\n{tokens()}\n{_STYLE}</style>\n</head>\n<body>\n"
    )
    facts = len(kb.relational) + len(kb.literals)
    failed = sum(one.error is not None for one in found)
    other = sum(one.error is None and not one.is_expected for one in found)
    said = [f"{counted(len(found), 'program')}"]
    said += [f"{failed} failed"] if failed else []
    said += [f"{other} with another answer than expected"] if other else []
    yield (
        f"<header>\n<h1>{title}</h1>\n<p>{'; '.join(said)}. The knowledge base has"
        f" {kb.entity_count:,} entities, {kb.concept_count:,} concepts and {facts:,} facts"
        f" (<code>{kb.fingerprint[:12]}</code>).</p>\n</header>\n"
    )
    if len(found) > 1:
        yield from _contents(found)
    yield "<main>\n"
    for number, one in enumerate(found, 1):
        yield from _article(number, one, len(found) > 1)
    yield f"</main>\n<footer>Made by kopl-toolkit {shown(version())}.</footer>\n</body>\n</html>\n"


def _contents(found: Sequence[Reported]) -> Iterator[str]:
    yield '<nav aria-labelledby="contents">\n<h2 id="contents">Contents</h2>\n<ol>\n'
    for number, one in enumerate(found, 1):
        state = ' class="bad"' if one.error or not one.answers else ""
        brief = "failed" if one.error else _listed(one.answers, 3) or "no answer"
        heading = shown(one.heading or f"Program {number}")
        yield (
            f'<li><a href="#program-{number}"><bdi>{heading}</bdi></a>'
            f" <span{state}>{brief}</span></li>\n"
        )
    yield "</ol>\n</nav>\n"


def _article(number: int, one: Reported, numbered: bool) -> Iterator[str]:
    label = f"{number}. " if numbered else ""
    yield f'<article id="program-{number}" aria-labelledby="heading-{number}">\n'
    heading = f"{label}<bdi>{shown(one.heading)}</bdi>" if one.heading else f"Program {number}"
    yield f'<h2 id="heading-{number}">{heading}</h2>\n'
    if one.result is None:
        assert one.error is not None
        if one.given and one.question:
            yield f"<pre><code>{shown(one.given, cut=False)}</code></pre>\n"
        yield f'<p class="answer bad"><strong>{shown(one.error.kind)} error</strong>: '
        yield f"{shown(str(one.error))}</p>\n</article>\n"
        return
    trace = one.result.trace or []
    empty = _empty(trace)
    yield from _answer(one, trace, empty)
    if one.question:
        yield f"<pre><code>{shown(str(one.result.program), cut=False)}</code></pre>\n"
    if one.result.program.size <= LARGEST_CHART:
        picture = chart(one.result.program, trace, marked=empty)
        names = shown(str(one.result.program))
        yield f'<figure class="chart" role="img" aria-label="{names}" tabindex="0">\n'
        yield f"{picture}</figure>\n"
    yield from _steps(trace, empty, number)
    yield from _evidence(one.result)
    yield "</article>\n"


def _empty(trace: Sequence[TraceStep]) -> list[int]:
    """The calls at which nothing was left."""
    return [
        step.number
        for step in trace
        if not step.count and all(trace[at].count for at in step.inputs)
    ]


def _answer(one: Reported, trace: Sequence[TraceStep], empty: Sequence[int]) -> Iterator[str]:
    assert one.result is not None
    if one.answers:
        word = "Answer" if len(one.answers) == 1 else f"{len(one.answers):,} answers"
        yield f'<p class="answer">{word}: <strong>{_listed(one.answers, VALUES)}</strong></p>\n'
    else:
        calls = ", ".join(f"<code>{shown(trace[at].text)}</code>" for at in empty)
        yield f'<p class="answer bad"><strong>No answer</strong>: nothing is left at {calls}.</p>\n'
        if one.emptied is not None and one.emptied.there:
            yield f"<p>What there is instead: {_listed(one.emptied.there, VALUES)}.</p>\n"
    if not one.is_expected:
        yield f'<p class="bad">Expected: {_listed(one.expected, VALUES)}</p>\n'
    for hint in one.result.hints:
        yield f"<p>{shown(hint)}</p>\n"


def _steps(trace: Sequence[TraceStep], empty: Sequence[int], number: int) -> Iterator[str]:
    yield "<details open>\n<summary>What each call gives</summary>\n"
    label = f"Calls of program {number}"
    yield f'<div class="wide" role="region" aria-label="{label}" tabindex="0"><table>\n'
    yield '<thead><tr><th scope="col">#</th><th scope="col">Call</th><th scope="col">Count</th>'
    yield '<th scope="col">First values</th></tr></thead>\n<tbody>\n'
    for step in trace:
        state = ' class="bad"' if step.number in empty else ""
        yield (
            f"<tr{state}><td>{step.number}</td><td><code>{shown(step.text)}</code></td>"
            f"<td>{step.count:,}</td><td>{_listed(step.shown, VALUES, step.count)}</td></tr>\n"
        )
    yield "</tbody>\n</table></div>\n</details>\n"


def _evidence(result: Result) -> Iterator[str]:
    evidence = result.evidence
    if evidence is None or not len(evidence):
        return
    yield f"<details>\n<summary>It rests on {counted(len(evidence), 'fact')}</summary>\n"
    if not evidence.is_minimal:
        yield "<p>Some may not be needed: there are too many ways to the answer.</p>\n"
    yield "<ul>\n"
    for fact in islice(evidence.facts(), FACTS):
        yield f"<li><bdi>{shown(fact.text)}</bdi> <small>(call {fact.call})</small></li>\n"
    if len(evidence) > FACTS:
        yield f"<li>and {len(evidence) - FACTS:,} more</li>\n"
    yield "</ul>\n</details>\n"


def _listed(texts: Sequence[str], most: int, count: int | None = None) -> str:
    """The first texts as HTML, each for itself in its direction of writing."""
    said = "; ".join(f"<bdi>{shown(text)}</bdi>" for text in texts[:most])
    left = (len(texts) if count is None else count) - len(texts[:most])
    return f"{said}; … and {left:,} more" if left > 0 else said


def shown(text: str, *, cut: bool = True) -> str:
    """A text as HTML shows it, long ones cut, with a mark for what no page can hold."""
    text = UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    return escape(shorter(text) if cut else text)


def shorter(text: str) -> str:
    """The text, or the beginning of a long one."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


@cache
def tokens() -> str:
    """The colours, sizes and distances of the playground's page."""
    style = (
        files("kopl_cli")
        .joinpath("serve")
        .joinpath("page")
        .joinpath("style.css")
        .read_text("utf-8")
    )
    found = re.search(r"^:root \{.*?^\}", style, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[0]


# The chart's own colours stand in its attributes, for light paper; here they follow the scheme, by
# the names of `kopl_base.svg.LOOKS`.
_STYLE = """
*, *::before, *::after { box-sizing: border-box; }
body { margin: 0 auto; padding: var(--s5) var(--s4); max-width: 60rem; background: var(--page);
  color: var(--text); font: var(--size-m)/1.55 var(--font); overflow-wrap: anywhere; }
h1 { font-size: var(--size-xxl); line-height: 1.2; margin: 0 0 var(--s2); }
h2 { font-size: var(--size-l); line-height: 1.35; margin: 0 0 var(--s3); }
header p, footer, small { color: var(--muted); }
a { color: var(--accent); }
a:focus-visible, summary:focus-visible, [tabindex]:focus-visible {
  outline: 2px solid var(--accent); outline-offset: 2px; }
nav, article { background: var(--surface); border: 1px solid var(--line);
  border-radius: var(--round-l); padding: var(--s5); margin: var(--s5) 0; }
nav ol { margin: 0; padding-left: var(--s6); }
nav span { color: var(--muted); }
code, pre { font-family: var(--mono); font-size: var(--size-s); }
pre { background: var(--sunk); border-radius: var(--round); padding: var(--s3); margin: var(--s3) 0;
  white-space: pre-wrap; }
.answer { font-size: var(--size-l); }
.bad, nav .bad { color: var(--bad); }
.chart { margin: var(--s4) 0; overflow-x: auto; }
.chart svg { display: block; margin: 0 auto; }
.chart text { fill: var(--text); }
.chart rect { fill: var(--surface); stroke: var(--line-strong); }
.chart .paper { fill: none; stroke: none; }
.chart .given { fill: var(--accent-soft); stroke: var(--accent); }
.chart .answer { stroke: var(--text); }
.chart .value { stroke: var(--line); }
.chart .wrong, .chart .nothing { fill: var(--bad-soft); stroke: var(--bad); }
.chart path { fill: none; stroke: var(--line-strong); }
.chart path.wrong { stroke: var(--bad); }
.chart .tip { fill: var(--line-strong); stroke: none; }
.chart .tip.wrong { fill: var(--bad); stroke: none; }
details { margin: var(--s3) 0; }
summary { cursor: pointer; font-weight: 600; padding: var(--s1) 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: var(--size-s); }
th, td { text-align: left; vertical-align: top; padding: var(--s1) var(--s3) var(--s1) 0;
  border-top: 1px solid var(--line); }
th { color: var(--muted); font-weight: 600; border-top: 0; }
td:nth-child(1), td:nth-child(3), th { white-space: nowrap; }
td:nth-child(3), th:nth-child(3) { text-align: right; font-variant-numeric: tabular-nums; }
td:nth-child(2), td:nth-child(4) { min-width: 12rem; }
footer { font-size: var(--size-s); }
@media (max-width: 30rem) { body { padding: var(--s3); } nav, article { padding: var(--s4); } }
@media print {
  :root { color-scheme: light; }
  body { max-width: none; padding: 0; background: none; font-size: 10.5pt; }
  nav, article { border: 0; padding: 0; background: none; }
  article { break-before: page; }
  figure, tr, li { break-inside: avoid; }
  .chart, .wide { overflow: visible; }
  .chart svg { max-width: 100%; height: auto; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
"""
