"""Questions without programs: predicted, and scored where they have an answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kb import KnowledgeBase
from kopl.example import Asked, BareQuestion, Example, read_questions, write_examples
from kopl.text import read, to_json
from kopl_base.errors import ReadError
from parsers.evaluation import Report, evaluate
from parsers.evaluation.confidence import Decoding
from parsers.evaluation.html import worst_errors, write_html
from parsers.evaluation.report import Comparison, ScoredRun, write_answers, write_predictions
from parsers.evaluation.tables import footnotes, sheets
from parsers.languages import KoplLanguage
from tests.parsers.test_evaluation import AREA, CAPITAL, COUNT, COUNTRIES, VERIFY, Told

FAILS = "Count(Count(FindAll()))"
NEITHER = BareQuestion("Which?", choices=("a", "b"))
QUESTIONS: list[Asked] = [
    Example("area?", read(AREA), "323802 square kilometre"),
    BareQuestion("capital?", "Oslo"),
    BareQuestion("how many?", "7"),
    NEITHER,
    BareQuestion("Which fail?"),
    BareQuestion("Which are there?"),
]


@pytest.fixture
def report(small: KnowledgeBase) -> Report:
    """Of three that are compared two are right; of three that are not, one has an answer."""
    predicted = [AREA, CAPITAL, COUNT, VERIFY, FAILS, COUNTRIES]
    texts = {one.question: [text] for one, text in zip(QUESTIONS, predicted, strict=True)}
    return evaluate(Told(KoplLanguage(small), texts), QUESTIONS, ["8"])


def test_scores_are_those_of_what_can_be_compared(report: Report) -> None:
    verdicts = [one.verdict for one in report.judged]
    assert verdicts == [
        "right", "right", "wrong answer", "not compared", "did not type", "several answers",
    ]  # fmt: skip
    table = report.table()
    assert (table.overall.count, table.overall.of) == (2, 3)
    assert report.accuracy == pytest.approx(2 / 3)
    # Without a program only zero-shot is known: "Oslo" and "7" are no answer of the training.
    assert table.parts["skills"]["zero-shot"].of == 3
    assert table.parts["skills"]["multi-hop"].of == 0
    assert sum(share.of for share in table.parts["hops"].values()) == 1
    shares = report.shares()
    assert (shares["types"].of, shares["same program"].of) == (6, 1)
    assert report.to_json()["questions"] == 6 and report.to_json()["compared"] == 3
    notes = " ".join(report.notes())
    assert "3 of 6 questions have neither" in notes and "2 questions have an answer and no" in notes


def test_all_reports_can_be_written(report: Report, small: KnowledgeBase, tmp_path: Path) -> None:
    run = ScoredRun("runs/a", Decoding(), report)
    comparison = Comparison("test.json", [run, run])
    assert comparison.differences()[0][2].both == 2
    cells = {row[0]: row[1] for sheet in sheets(comparison) for row in sheet.rows}
    assert cells["not compared"] == "1"
    write_predictions(tmp_path / "p.jsonl", comparison)
    line = json.loads((tmp_path / "p.jsonl").read_text().splitlines()[3])
    assert (line["gold"], line["gold_answer"], line["verdict"]) == (None, None, "not compared")
    assert (line["hops"], line["length"], line["skills"]) == (None, None, [])
    shown = worst_errors(run, KoplLanguage(small), 9)
    assert [one.judged.example.question for one in shown] == ["how many?"]
    pytest.importorskip("jinja2")
    write_html(tmp_path / "r.html", comparison, [shown, shown])
    assert "predicted program" in (tmp_path / "r.html").read_text()


def test_of_nothing_that_is_compared_there_are_no_scores(small: KnowledgeBase) -> None:
    model = Told(KoplLanguage(small), {NEITHER.question: [VERIFY]})
    run = ScoredRun("runs/a", Decoding(), evaluate(model, [NEITHER], ()))
    comparison = Comparison("test.json", [run])
    accuracy, *_ = sheets(comparison)
    assert accuracy.rows[0][1] == "–"
    assert json.loads(json.dumps(comparison.to_json()))["runs"][0]["compared"] == 0
    assert footnotes(comparison)


def test_the_leaderboard_gets_a_line_for_each_question(report: Report, tmp_path: Path) -> None:
    """The first of several answers; what failed has none, and is no "no"."""
    write_answers(tmp_path / "a.txt", ScoredRun("runs/a", Decoding(), report))
    lines = (tmp_path / "a.txt").read_text("utf-8").splitlines()
    first = report.judged[-1].denotation
    assert first is not None
    assert lines == ["323802 square kilometre", "Oslo", "8", "no", "None", first[0]]


def test_questions_are_read_with_and_without_programs(tmp_path: Path) -> None:
    path = tmp_path / "test.json"
    items = [
        {"question": "Which?", "choices": ["a", "b"]},
        {"question": "a?", "answer": "Oslo", "program": None, "level": 3},
        {"question": "b?", "program": to_json(read(COUNT))},
    ]
    path.write_text(json.dumps(items))
    bare, answered, example = read_questions(path)
    assert bare == BareQuestion("Which?", choices=("a", "b"))
    assert isinstance(answered, BareQuestion) and answered.answer == "Oslo"
    assert answered.extra == {"level": 3}
    assert isinstance(example, Example)
    write_examples(tmp_path / "again.jsonl", [bare, answered, example])
    assert list(read_questions(tmp_path / "again.jsonl")) == [bare, answered, example]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"choices": []}, "item 0: not an example: there is no 'question'"),
        ({"question": 5}, "the question is 5, but must be a text"),
        ({"question": "a", "answer": 5}, "'answer' is 5, but must be a text"),
        ({"question": "a", "choices": [1]}, "'choices' must be a list of texts"),
        ({"question": "a", "program": [{}]}, "item 0: program: "),
    ],
)
def test_malformed_questions(tmp_path: Path, item: object, message: str) -> None:
    path = tmp_path / "test.json"
    path.write_text(json.dumps([item]))
    with pytest.raises(ReadError, match=message):
        list(read_questions(path))
