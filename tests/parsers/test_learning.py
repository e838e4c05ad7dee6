"""Learning from corrections: a new run that knows them and forgets nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kb import KnowledgeBase
from kopl.example import Example, read_examples, write_examples
from kopl.text import read
from kopl_base.training.loop import TrainingLoop
from kopl_cli import main
from parsers.corrections import FILE, Correction, append, read_corrections
from parsers.linking import Linker
from tests.parsers.test_refusals import outside

AREA = 'QueryAttr(Find("Norway"), "area")'
QUESTION = "How much turf has Norway got?"
# A lesson that the small network learns in seconds.
QUICK = ["--each", "4", "--replay", "56", "--set", "epochs=12", "--set", "learning_rate=0.005"]


@pytest.fixture
def run(trained: Path, tmp_path: Path, small_examples: list[Example]) -> Path:
    """A run with its questions and two corrections."""
    folder = tmp_path / "run"
    shutil.copytree(trained, folder)
    write_examples(folder / "train.jsonl", small_examples)
    write_examples(folder / "valid.jsonl", small_examples[:12])
    write_examples(folder / "test.jsonl", small_examples[12:24])
    answers = ("323802 square kilometre",)
    append(folder / FILE, Correction(QUESTION, "corrected", read(AREA), answers))
    append(folder / FILE, Correction("Who am I?", "unclear"))
    return folder


def learn(*arguments: str | Path) -> int:
    return main(["learn", *map(str, arguments)])


def weights(run: Path) -> bytes:
    return (run / "best.safetensors").read_bytes()


def test_a_new_run_learns_and_the_old_one_stays(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from parsers.parser import Parser

    before = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    assert learn("--run", run, *QUICK) == 0
    assert {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()} == before
    new = tmp_path / "run-learned"
    assert Parser.load(new).ask(QUESTION)[0].text == "323802 square kilometre"
    told = capsys.readouterr().out
    assert "corrections: " in told and "of 1 right before, 1 after" in told
    # What follows the last epoch takes long without a line of its own.
    behind = told[told.rindex("epoch ") :]
    steps = ["fitting what kopl ask goes by", "asking 1 correction and", "of 1 right before"]
    assert sorted(steps, key=behind.index) == steps
    about = json.loads((new / "learned.json").read_text("utf-8"))
    assert about["report"]["corrections"]["after"] == about["report"]["corrections"]["asked"] == 1
    old = about["report"]["old"]
    assert old["asked"] == 12 and old["after"] >= old["before"] - 1
    changes = [json.loads(line) for line in (new / "changes.jsonl").read_text().splitlines()]
    assert len(changes) == old["changed"] + about["report"]["corrections"]["changed"]
    # What it learnt: others are asked the same, and the words are noted for the lexicon.
    learnt = [one.question for one in read_examples(new / "train.jsonl")]
    assert learnt.count(QUESTION) > 1
    assert any("turf" in one.lower() and "peru" in one.lower() for one in learnt)
    assert "how much turf has {} got" in (new / "lexicon.yaml").read_text("utf-8")
    assert len(read_corrections(new / FILE)) == 2


def test_confidences_are_fitted_on_more_old_questions_than_choose(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from parsers import learning

    assert learning.VALIDATED >= 250 > learning.CHOOSING
    monkeypatch.setattr(learning, "CHOOSING", 5)
    monkeypatch.setattr(learning, "VALIDATED", 9)
    lesson = learning.prepared(run, learning.taught(run / FILE), [], 4, 1)
    learning.write_lesson(tmp_path / "new", run, lesson, {"from": str(run)}, run / FILE)
    assert len(list(read_examples(tmp_path / "new" / "valid.jsonl"))) == 9
    _, choosing = learning._parts(tmp_path / "new")
    assert [one.question for one in choosing[5:]] == [QUESTION] and len(choosing) == 6


def test_refusals_stay_with_words_of_all_that_was_learnt(
    run: Path, tmp_path: Path, small_examples: list[Example]
) -> None:
    from parsers.evaluation.runs import calibrate_refusals
    from parsers.parser import Parser

    calibrate_refusals(run, Parser.load(run), small_examples, outside(), 4)
    assert learn("--run", run, "--each", "4", "--replay", "2", "--set", "epochs=1") == 0
    before, after = (Parser.load(one).silence for one in (run, tmp_path / "run-learned"))
    assert before is not None and after is not None
    assert (after.least, after.fitted) == (before.least, before.fitted)
    assert after.classifier.to_json() == before.classifier.to_json()
    # No word became strange because it is not among the few questions that were learnt again.
    assert all(
        after.wording.knows(word) for word in before.wording.counts if before.wording.knows(word)
    )
    assert after.wording.knows("turf") and not before.wording.knows("turf")


def test_it_learns_again_from_what_it_learnt(run: Path, tmp_path: Path) -> None:
    assert learn("--run", run, "-o", tmp_path / "one", *QUICK) == 0
    more = Correction("Norway's seat of power?", "corrected", read(
        'QueryName(Relate(Find("Norway"), "capital", "forward"))'), ("Oslo",))  # fmt: skip
    append(tmp_path / "one" / FILE, more)
    assert learn("--run", tmp_path / "one", "-o", tmp_path / "two", *QUICK) == 0
    lesson = [one.question for one in read_examples(tmp_path / "two" / "lesson.jsonl")]
    assert lesson == [QUESTION, more.question]
    # What may be replayed are the questions of the first run, not those of the lesson between.
    whole = (run / "train.jsonl").read_bytes()
    assert (tmp_path / "two" / "replay.jsonl").read_bytes() == whole
    report = json.loads((tmp_path / "two" / "learned.json").read_text("utf-8"))["report"]
    assert report["corrections"]["after"] == 2


def test_a_stopped_lesson_goes_on(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert learn("--run", run, "-o", tmp_path / "whole", *QUICK) == 0
    step = TrainingLoop.step

    def stopping(loop: Any, items: Any, done: int, *others: Any) -> Any:
        loop._stop = done == 20
        return step(loop, items, done, *others)

    monkeypatch.setattr(TrainingLoop, "step", stopping)
    assert learn("--run", run, "-o", tmp_path / "stopped", *QUICK) == 130
    monkeypatch.undo()
    assert not (tmp_path / "stopped" / "changes.jsonl").exists()
    assert learn("--resume", tmp_path / "stopped") == 0
    assert weights(tmp_path / "stopped") == weights(tmp_path / "whole")
    changes = [(tmp_path / name / "changes.jsonl").read_text() for name in ("stopped", "whole")]
    assert changes[0] == changes[1]


def test_a_lesson_that_was_stopped_before_training_goes_on(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from parsers import learning

    def failing(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(learning, "go_on", failing)
    assert learn("--run", run, "-o", tmp_path / "new", *QUICK) == 130
    monkeypatch.undo()
    assert learn("--resume", tmp_path / "new") == 0
    assert (tmp_path / "new" / "changes.jsonl").exists()


def test_what_cannot_be_learnt_from(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert learn("--resume", run) == 2
    assert "no lesson was begun there" in capsys.readouterr().err
    assert learn("--run", run, "--set", "epoch=3") == 2
    assert "did you mean" in capsys.readouterr().err
    (run / FILE).unlink()
    assert learn("--run", run) == 2
    assert "make some with 'kopl correct'" in capsys.readouterr().err
    assert not list(tmp_path.glob("run-learned*"))


def test_a_model_with_new_words_predicts_as_before(
    run: Path, small: KnowledgeBase, small_examples: list[Example], torch: Any
) -> None:
    from parsers.checkpoint import restore

    model = restore(run, small)
    more = Example("Hwo mcuh turf turf Norway", read(AREA))
    other = model.extended([more, more])
    assert set(other.vocabulary.words) - set(model.vocabulary.words) == {"hwo", "mcuh", "turf"}  # type: ignore[attr-defined]
    asked = [one.question for one in small_examples[:8]] + [more.question]
    assert [[one.text for one in found] for found in model.predict(asked)] == [
        [one.text for one in found] for found in other.predict(asked)
    ]


def test_half_of_the_replay_is_about_what_was_corrected(
    small_examples: list[Example], tmp_path: Path
) -> None:
    from parsers.learning import replayed

    pool = tmp_path / "train.jsonl"
    write_examples(pool, small_examples)
    lesson = [Example(QUESTION, read('QueryAttr(Find("Norway"), "inception")'))]
    found = replayed(pool, lesson, 16, 1)
    about = ["inception" in str(one.program) for one in found]
    assert len(found) == 16 and sum(about) >= 8
    assert found == replayed(pool, lesson, 16, 1) != replayed(pool, lesson, 16, 2)
    assert replayed(pool, lesson, 999, 1) == small_examples


def test_names_are_found_where_a_question_says_them(small: KnowledgeBase) -> None:
    from parsers.actions import Actions
    from parsers.learning import said_names

    program = read('SelectBetween(Find("Papua New Guinea"), Find("Chad"), "area", "greater")')
    question = "is papua new guinae bigger than chad"
    places = said_names(question, program, Linker(small), Actions.of(small))
    assert {name: question[slice(*place)] for name, place in places.items()} == {
        "Papua New Guinea": "papua new guinae", "Chad": "chad"
    }  # fmt: skip
    assert said_names("which is it", program, Linker(small), Actions.of(small)) == {}
