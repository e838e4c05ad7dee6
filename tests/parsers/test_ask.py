"""Asking a trained parser, from Python and from the command line; evaluating runs from files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kb import KoplError
from kopl.example import Example, write_examples
from kopl_cli import main
from parsers.evaluation.confidence import Decoding, Temperature, write_temperature
from tests.parsers.test_evaluation import AREA, COUNTRIES, written

ROOT = Path(__file__).parents[2]
QUESTION = "What is the area of Norway?"
UNTYPED = "Count(Count(FindAll()))"


@pytest.fixture
def run(trained: Path, tmp_path: Path, small_examples: list[Example]) -> Path:
    """A run of one's own to write into, with questions for validation and test."""
    folder = tmp_path / "run"
    shutil.copytree(trained, folder)
    write_examples(folder / "valid.jsonl", small_examples[:12])
    write_examples(folder / "test.jsonl", small_examples[12:24])
    return folder


@pytest.fixture
def told(run: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A parser with a beam of four: one does not type, one has several answers, two have one."""
    from parsers.parser import Parser

    parser = Parser.load(run)
    language = parser.model.language
    beam = [
        written(language, text, -float(n + 1))
        for n, text in enumerate((UNTYPED, COUNTRIES, AREA, 'QueryAttr(Find("Peru"), area)'))
    ]
    asked: list[tuple[int, bool]] = []

    def predict(
        questions: list[str], *, beams: int = 1, constrained: bool = True, guided: bool = False
    ) -> Any:
        asked.append((beams, constrained))
        return [beam[:beams]]

    monkeypatch.setattr(parser.model, "predict", predict)
    monkeypatch.setattr(parser, "asked", asked, raising=False)
    return parser


def test_guided_by_execution(told: Any) -> None:
    answers = told.ask(QUESTION, top=3)
    assert [one.text for one in answers] == [
        "323802 square kilometre", "1285216 square kilometre",
    ]  # fmt: skip
    assert [one.text for one in told.ask(QUESTION)] == ["323802 square kilometre"]
    # Where all would go, the least faulty one stays.
    [several] = told.ask(QUESTION, beams=2)
    assert several.text is None and several.result.state == "several"
    assert told.asked == [(4, True), (4, True), (2, True)]


def test_many_asked_together_are_answered_as_one_by_one(
    trained: Path, small_examples: list[Example]
) -> None:
    from parsers.parser import Parser

    parser = Parser.load(trained)
    questions = [example.question for example in small_examples[::6]]
    asked = [*questions[:3], "?!", *questions[3:]]
    for options in ({"top": 3}, {"guided": False, "beams": 2}, {"beams": 1, "guided": False}):
        many = list(parser.ask_many(asked, **options))
        assert isinstance(many.pop(3), KoplError)
        for question, found in zip(questions, many, strict=True):
            alone = parser.ask(question, **options)
            assert [one.prediction.text for one in found] == [one.prediction.text for one in alone]
            assert [one.answers for one in found] == [one.answers for one in alone]
            sure = [one.confidence for one in alone]
            assert [one.confidence for one in found] == pytest.approx(sure, rel=1e-4)
    assert list(parser.ask_many([])) == []


def test_not_guided(told: Any) -> None:
    answers = told.ask(QUESTION, top=3, guided=False, constrained=False)
    assert [str(one.program) for one in answers] == [
        UNTYPED, 'QueryName(FilterConcept(FindAll(), "country"))',
        'QueryAttr(Find("Norway"), "area")',
    ]  # fmt: skip
    assert answers[0].result is None and answers[0].error.kind == "type"
    assert told.asked == [(4, False)]


def test_trace(told: Any) -> None:
    [answer] = told.ask(QUESTION, trace=True)
    assert [step.shown for step in answer.result.trace] == [["Norway"], ["323802 square kilometre"]]
    assert told.ask(QUESTION)[0].result.trace is None


def test_confidences(told: Any, run: Path) -> None:
    """Not calibrated; by the temperature of another choice of programs; by its own."""
    from parsers.parser import Parser

    [bare] = told.ask(QUESTION)
    assert bare.confidence == bare.probability == pytest.approx(0.049787, abs=1e-6)
    assert not bare.is_calibrated
    model = told.model
    for kind, value, expected in (
        (Decoding(), 3.0, 0.367879),
        (Decoding(4, True, True), 6.0, 0.606531),
        (Decoding(4, False, True), 1.5, 0.606531),
    ):
        write_temperature(run, Temperature(value, "log-probability", kind.kind, 9, 4))
        parser = Parser(model, told.description, run)
        [answer] = parser.ask(QUESTION)
        assert answer.is_calibrated and answer.confidence == pytest.approx(expected, abs=1e-6)
    assert parser.ask(QUESTION, guided=False)[0].confidence == pytest.approx(0.716531, abs=1e-6)
    [free] = parser.ask(QUESTION, constrained=False)
    assert free.confidence == pytest.approx(0.135335, abs=1e-6)


def test_a_damaged_calibration_is_told(told: Any, run: Path) -> None:
    (run / "calibration.json").write_text("{")
    with pytest.raises(KoplError, match="damaged"):
        told.ask(QUESTION)


@pytest.mark.parametrize("wrong", [{"top": 0}, {"beams": 0}])
def test_numbers_that_cannot_be(told: Any, wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        told.ask(QUESTION, **wrong)


def test_the_command(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "--run", str(run), "--trace", "--top", "2", QUESTION]) == 0
    out, errors = capsys.readouterr()
    answer, program, first, *_ = out.splitlines()
    assert answer.startswith("answer: 323802 square kilometre  (") and "% confident" in answer
    assert program == 'program: QueryAttr(Find("Norway"), "area")'
    assert first == "#0\tFind('Norway')\t1\tNorway"
    assert "not calibrated; 'kopl eval" in errors and "--execution-guided" in errors
    write_temperature(run, Temperature(2.0, "log-odds", Decoding().kind, 9, 4))
    assert main(["ask", "--run", str(run), QUESTION]) == 0
    assert "calibrated for another choice" in capsys.readouterr().err
    assert main(["ask", "--run", str(run), "--no-execution-guided", QUESTION]) == 0
    assert capsys.readouterr().err == ""


def test_the_command_as_json(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "--run", str(run), "--json", "--trace", QUESTION]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["answer"] == "323802 square kilometre" and found["state"] == "unique"
    assert found["program"] == 'QueryAttr(Find("Norway"), "area")'
    assert found["confidence"] == found["probability"] and found["calibrated"] is False
    assert [step["text"] for step in found["trace"]] == ["Find('Norway')", "QueryAttr(#0, 'area')"]


def evaluated(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "eval.py", *arguments], cwd=ROOT, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


def test_a_file_of_questions(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line for each question, in their order; what goes wrong with one stops no other."""
    lines = [{"id": 7, "question": QUESTION}, {"question": "?!"}, QUESTION]
    path = tmp_path / "asked.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    command = ["ask", "--run", str(run), "--questions", str(path)]
    assert main([*command, "--json"]) == 1
    output = capsys.readouterr()
    first, second, third = map(json.loads, output.out.splitlines())
    assert (first["id"], first["question"]) == ("7", QUESTION)
    assert "the question is empty" in second["error"]["message"]
    del first["id"], first["ms"], third["ms"]
    assert first == third
    assert "1 of 3 questions could not be read" in output.err
    assert main(["ask", "--run", str(run), QUESTION, "--json"]) in (0, 1)
    alone = json.loads(capsys.readouterr().out)
    del alone["ms"]
    assert {"question": QUESTION, **alone} == first
    assert main(command) == 1
    assert capsys.readouterr().out.count(f"question: {QUESTION}\n") == 2


def test_more_programs_for_each_question_of_a_file(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "asked.json"
    path.write_text(json.dumps([{"question": QUESTION}]), "utf-8")
    command = ["ask", "--run", str(run), "--questions", str(path), "--json", "--top", "3"]
    assert main([*command, "--no-execution-guided"]) == 0
    [line] = map(json.loads, capsys.readouterr().out.splitlines())
    assert 1 <= len(line["more"]) <= 2 and all(one["program"] for one in line["more"])


@pytest.mark.parametrize("line", ['{"text": "what?"}', "7", "{", '{"question": null}'])
def test_what_is_no_file_of_questions(
    run: Path, tmp_path: Path, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "asked.jsonl"
    path.write_text(line + "\n", "utf-8")
    assert main(["ask", "--run", str(run), "--questions", str(path)]) != 0
    assert "asked.jsonl" in capsys.readouterr().err


def test_two_runs_are_compared(
    run: Path, runs: Callable[[str, str], Path], tmp_path: Path, small_examples: list[Example]
) -> None:
    """By the command: JSON, predictions and the HTML file; the temperature is stored once."""
    other = tmp_path / "other"
    shutil.copytree(runs("rnn", "kopl"), other)
    # Other answers than its own make it wrong now and then, so that there is a temperature.
    for part in ("valid", "test"):
        path = run / f"{part}.jsonl"
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for line in lines[::4]:
            line["answer"] = "nothing"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    data, html, lines_file = run / "test.jsonl", tmp_path / "r.html", tmp_path / "p.jsonl"
    arguments = [str(run), str(other), "--data", str(data), "--json", "--html", str(html),
                 "--predictions", str(lines_file)]  # fmt: skip
    done = evaluated(*arguments)
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)["runs"]
    assert first["accuracy"]["default"]["overall"]["count"] == 9
    assert first["calibration"]["temperature"]["questions"] == 12
    assert "not calibrated: " in second["notes"][0] and "valid.jsonl" in second["notes"][0]
    assert second["calibration"]["error after"] is None
    stored = (run / "calibration.json").read_bytes()
    assert not (other / "calibration.json").exists()
    assert len(lines_file.read_text("utf-8").splitlines()) == 24
    assert html.read_text("utf-8").startswith("<!DOCTYPE html>")
    # Again, guided: another temperature is added; the first is read, not fitted again.
    guided = evaluated(str(run), "--execution-guided", "--split", "valid")
    assert guided.returncode == 0, guided.stderr
    assert "4 beams, constrained, execution-guided" in guided.stdout
    assert "12 of the 12 questions are among those" in " ".join(guided.stdout.split())
    kept = json.loads((run / "calibration.json").read_text("utf-8"))["temperatures"]
    assert [one["kind"] for one in kept] == ["constrained", "constrained, execution-guided"]
    assert json.loads(stored)["temperatures"] == kept[:1]


def test_a_run_that_cannot_be_written_into_is_scored_all_the_same(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kopl_base.errors import WriteError
    from parsers.evaluation import Report, runs

    def refuse(*arguments: object) -> None:
        raise WriteError("calibration.json: cannot be written")

    monkeypatch.setattr(runs, "write_temperature", refuse)
    comparison, shown = runs.compare([run], [run / "test.jsonl"])
    assert isinstance(comparison.runs[0].report, Report) and shown == [[]]
    assert any("could not be stored" in note for note in comparison.runs[0].notes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--execution-guided", "--beams", "1"], "give --beams 2 or more"),
        (["--beams", "0"], "above 0"),
        (["--data", "none.jsonl"], "none.jsonl: cannot be opened"),
        (["--predictions", "{run}/test.jsonl"], "holds the questions"),
        (["--html", "{run}"], "it is a folder"),
        (["--html", "{run}/test.jsonl/x.html"], "cannot be written"),
        (["{run}/../trained"], "no such run"),
        (["--data", "{run}/empty.jsonl"], "there are no examples"),
    ],
)
def test_wrong_usage(
    run: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "empty.jsonl").write_text("")
    given = [argument.replace("{run}", str(run)) for argument in arguments]
    try:
        status = main(["eval", str(run), *given])
    except SystemExit as stopped:  # by argparse
        status = int(stopped.code or 0)
    assert status == 2 and message in capsys.readouterr().err
    assert not (run / "calibration.json").exists()
