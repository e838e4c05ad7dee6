"""Training, saving, going on, scoring and asking, on examples that are learnt in seconds."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kb import Builder, KnowledgeBase, KoplError
from kopl.example import Example, write_examples

ROOT = Path(__file__).parents[2]


def test_learns_its_examples_by_heart(trained: Path, small_examples: list[Example]) -> None:
    from parsers.evaluation import evaluate
    from parsers.parser import Parser

    parser = Parser.load(trained)
    report = evaluate(parser.decoder, small_examples, parser.description.answers)
    assert report.accuracy == 1.0
    assert report.to_json()["same program"] >= 0.95
    assert report.to_json()["runs"] == 1.0


def test_asks(trained: Path) -> None:
    from parsers.parser import Parser

    parser = Parser.load(trained)
    answers = parser.ask("What is the capital of Papua New Guinea?", top=3, trace=True)
    assert answers[0].text == "Port Moresby"
    assert answers[0].result is not None and answers[0].result.trace
    assert len(answers) <= 3
    assert 0 < answers[0].probability <= 1
    with pytest.raises(KoplError, match="empty"):
        parser.ask("  ")


def test_greedy_and_beam_of_one_agree(trained: Path, small_examples: list[Example]) -> None:
    from parsers.parser import Parser
    from parsers.tokens import Question

    decoder = Parser.load(trained).decoder
    questions = [Question.of(example.question) for example in small_examples]
    greedy = decoder.greedy(questions)
    for question, prediction in zip(questions, greedy, strict=True):
        best = decoder.beam(question, 1)[0]
        assert best.program == prediction.program
        assert best.probability == pytest.approx(prediction.probability, rel=1e-3)


def test_an_untrained_network_writes_programs_that_type(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], settings: Any, tmp_path: Path
) -> None:
    from kopl.typecheck import check
    from parsers.tokens import Question
    from parsers.training import begin

    for seed in range(3):
        trainer = begin(
            tmp_path / str(seed), settings.changed({"seed": seed}), small, small_examples,
            small_examples[:5],
        )  # fmt: skip
        questions = [Question.of(e.question) for e in small_examples] + [Question.of("?")]
        for prediction in trainer.decoder.greedy(questions):
            check(prediction.program)


def losses(trainer: Any) -> list[float]:
    found: list[float] = []
    original = trainer._batch

    def noted(*arguments: Any) -> Any:
        result = original(*arguments)
        found.append(result[0])
        return result

    trainer._batch = noted
    trainer.run()
    return found


def test_resuming_gives_the_losses_of_an_unbroken_run(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], settings: Any, tmp_path: Path
) -> None:
    """Stopped in the middle of an epoch; dropout on, so that the random state matters."""
    from parsers.training import begin, go_on

    short = settings.changed({"epochs": 3, "dropout": 0.3})
    data = (small_examples, small_examples[:5])
    whole = losses(begin(tmp_path / "whole", short, small, *data))
    first = begin(tmp_path / "parts", short, small, *data)
    original, count = first._batch, 0

    def stopping(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        first._stop = count == 10
        return original(*arguments)

    first._batch = stopping  # type: ignore[method-assign]
    assert first.run() is False
    rest = losses(go_on(tmp_path / "parts", small, *data))
    assert rest == whole[10:]


def test_the_same_seed_gives_the_same_network(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], settings: Any, tmp_path: Path
) -> None:
    from parsers.training import begin

    short = settings.changed({"epochs": 2, "batch": 56, "hidden": 256, "embedding": 128})
    torch.set_num_threads(2)
    try:
        runs = [
            losses(begin(tmp_path / name, short, small, small_examples, small_examples[:5]))
            for name in ("a", "b", "c")
        ]
    finally:
        torch.set_num_threads(1)
    assert runs[0] == runs[1] == runs[2]


def test_a_loss_that_is_no_number_stops(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], settings: Any, tmp_path: Path
) -> None:
    from parsers.training import TrainingError, begin

    trainer = begin(tmp_path / "run", settings, small, small_examples, small_examples[:5])
    with torch.no_grad():
        trainer.network.joined.weight.fill_(float("nan"))
    with pytest.raises(TrainingError, match=r"learning_rate.*batch began with"):
        trainer.run()


def test_a_run_on_another_knowledge_base_is_refused(trained: Path) -> None:
    from parsers.checkpoint import CheckpointError
    from parsers.parser import Parser

    other = Builder()
    other.add_entity("x", "X")
    with pytest.raises(CheckpointError, match="another knowledge base"):
        Parser.load(trained, other.build())


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("settings.json", "{", "damaged"),
        ("settings.json", '{"speed": 1}', "no setting 'speed'"),
        ("parser.json", "[]", "damaged"),
        ("parser.json", '{"format": 99}', "another format"),
        ("best.safetensors", "xx", "damaged"),
        ("best.safetensors", None, "did not finish"),
        ("settings.json", None, "not a run"),
    ],
)
def test_damaged_runs(
    trained: Path, tmp_path: Path, file: str, content: str | None, message: str
) -> None:
    from parsers.parser import Parser

    copy = tmp_path / "copy"
    shutil.copytree(trained, copy)
    (copy / file).unlink()
    if content is not None:
        (copy / file).write_text(content)
    with pytest.raises(KoplError, match=message):
        Parser.load(copy)


def test_settings() -> None:
    from parsers.settings import Settings, SettingsError, read_settings

    assert read_settings(ROOT / "configs" / "tiny.yaml").hidden == 64
    assert read_settings(None, ["epochs=3", "dropout=0"]).epochs == 3
    assert Settings.from_json(Settings(epochs=4).to_json()) == Settings(epochs=4)
    for pair, message in [
        ("epoch=3", "no setting 'epoch'; did you mean epochs"),
        ("epochs=many", "must be of type int"),
        ("epochs", "key=value"),
        ("epochs=0", "at least 1"),
        ("dropout=1", "below 1"),
        ("hidden=65", "even"),
    ]:
        with pytest.raises(SettingsError, match=message):
            read_settings(None, [pair])


def test_bad_config_files(tmp_path: Path) -> None:
    pytest.importorskip("yaml", reason="PyYAML is not installed (extra 'train')")
    from parsers.settings import SettingsError, read_settings

    for text, message in (("a: [", "not YAML"), ("- a", "name: value"), ("speed: 1", "no setting")):
        path = tmp_path / "config.yaml"
        path.write_text(text)
        with pytest.raises(SettingsError, match=message):
            read_settings(path)
    with pytest.raises(SettingsError, match="cannot be opened"):
        read_settings(tmp_path / "none.yaml")


def test_scores_by_skill(small_examples: list[Example]) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed (extra 'train')")
    from parsers.evaluation import skills_of

    by_question = {example.question: example for example in small_examples}
    verify = by_question["Was Norway founded in 1905?"]
    assert skills_of(verify, frozenset(["yes"])) == {"verify"}
    assert skills_of(verify, frozenset(["no"])) == {"verify", "zero-shot"}
    count = by_question["How many countries are larger than 18,274 square kilometres?"]
    assert skills_of(count, frozenset(["7"])) == {"count", "multi-hop"}
    qualifier = by_question["Since when is Oslo the capital of Norway?"]
    assert skills_of(qualifier, frozenset(["1905"])) == {"qualifier"}


def test_a_failed_program_scores_nothing(small: KnowledgeBase) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed (extra 'train')")
    from kopl.executor import Executor
    from kopl.text import read
    from parsers.evaluation import judge

    gold = Example("?", read("VerifyStr(QueryAttr(Find(Norway), code), x)"), "no")
    wrong = judge(gold, read("Count(Count(FindAll()))"), 1.0, Executor(small))
    assert (wrong.right, wrong.published) == (False, False)
    assert wrong.error is not None and wrong.error.startswith("type")


# --- the scripts -----------------------------------------------------------------------------


def script(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120,
        check=False, **options,
    )  # fmt: skip


def test_train_eval_and_ask(torch: Any, tmp_path: Path, trained: Path,
                            small_examples: list[Example]) -> None:  # fmt: skip
    """The three commands that a user types, one after the other, on a data file of one's own."""
    data, run = tmp_path / "data.jsonl", tmp_path / "run"
    write_examples(data, small_examples)
    kb_file = trained.parent / "small.kopl"
    changes = [f"kb={kb_file}", f"data={data}", f"output={run}", "embedding=32", "hidden=64",
               "epochs=25", "batch=8", "learning_rate=0.01", "validation=5", "threads=1",
               "dropout=0"]  # fmt: skip
    done = script("train.py", *(part for change in changes for part in ("--set", change)))
    assert done.returncode == 0, done.stderr
    assert "execution accuracy" in done.stdout and "kopl ask --run" in done.stdout
    scored = script("eval.py", str(run), "--json", "--predictions", str(tmp_path / "p.jsonl"))
    assert scored.returncode == 0, scored.stderr
    report = json.loads(scored.stdout)
    lines = [json.loads(x) for x in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert report["questions"] == len(lines) > 0
    assert report["accuracy"] == pytest.approx(sum(x["right"] for x in lines) / len(lines))
    shown = script("eval.py", str(run), "--split", "train")
    assert "RNN KoPL (paper, KQA Pro)\t43.85" in shown.stdout
    asked = script("-m", "kopl", "ask", "--run", str(run), "--trace", "What is the area of Fiji?")
    assert "program: " in asked.stdout and "Traceback" not in asked.stderr
    as_json = script("-m", "kopl", "ask", "--run", str(run), "--json", "--top", "2", "Fiji?")
    assert all("program" in json.loads(line) for line in as_json.stdout.splitlines())
    # A second run does not overwrite the first.
    again = script("train.py", *(p for c in [*changes, "epochs=1"] for p in ("--set", c)))
    assert f"run: {run}-2" in again.stdout


def test_interrupted_and_resumed(torch: Any, tmp_path: Path, trained: Path,
                                 small_examples: list[Example]) -> None:  # fmt: skip
    """An interrupt saves first; --resume goes on to the end."""
    data, run = tmp_path / "data.jsonl", tmp_path / "run"
    write_examples(data, small_examples)
    changes = [f"kb={trained.parent / 'small.kopl'}", f"data={data}", f"output={run}", "hidden=64",
               "embedding=32", "epochs=60", "batch=8", "validation=5", "threads=1"]  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-u", "train.py", *(p for c in changes for p in ("--set", c))], cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("epoch 2/"):
            process.send_signal(signal.SIGINT)
            break
    rest, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "--resume" in rest and "Traceback" not in errors
    done = script("train.py", "--resume", str(run))
    assert done.returncode == 0, done.stderr
    epochs = [json.loads(x)["epoch"] for x in (run / "history.jsonl").read_text().splitlines()]
    assert epochs == list(range(1, 61))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train.py", "--set", "epoch=1"], "did you mean epochs"),
        (["train.py", "--config", "none.yaml"], "cannot be opened"),
        (["train.py", "--resume", "none"], "no such run"),
        (["train.py", "--resume", "none", "--set", "epochs=1"], "leave out"),
        (["train.py", "--set", "kb=none.json"], "no such file"),
        (["eval.py", "none"], "no such run"),
        (["-m", "kopl", "ask", "--run", "none", "why?"], "no such run"),
    ],
)
def test_wrong_usage(torch: Any, arguments: list[str], message: str) -> None:
    done = script(*arguments)
    assert done.returncode in (1, 2)
    assert message in done.stderr and "Traceback" not in done.stderr


def test_without_torch_the_scripts_say_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('No module named torch', name='torch')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    for arguments in (["train.py"], ["eval.py", "x"], ["-m", "kopl", "ask", "--run", "x", "y"]):
        done = script(*arguments, env=environment)
        assert done.returncode in (1, 2)
        assert "pip install" in done.stderr and "Traceback" not in done.stderr
