"""The scripts and the command as a user types them."""

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

from kopl.example import Example, write_examples
from kopl_cli import main

ROOT = Path(__file__).parents[2]


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
    changes = [f"kb={kb_file}", f"data={data}", f"output={run}", "device=cpu", "hidden=64",
               "epochs=25", "batch=8", "learning_rate=0.01", "validation=5", "threads=1",
               "dropout=0", "embedding=32"]  # fmt: skip
    done = script("train.py", *(part for change in changes for part in ("--set", change)))
    assert done.returncode == 0, done.stderr
    assert "execution accuracy" in done.stdout and "kopl ask --run" in done.stdout
    scored = script("eval.py", str(run), "--json", "--predictions", str(tmp_path / "p.jsonl"))
    assert scored.returncode == 0, scored.stderr
    [report] = json.loads(scored.stdout)["runs"]
    lines = [json.loads(x) for x in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert report["questions"] == len(lines) > 0
    share = report["accuracy"]["default"]["overall"]["share"]
    assert share == pytest.approx(sum(x["right"] for x in lines) / len(lines))
    shown = script("eval.py", str(run), "--split", "train", "--paper")
    assert max(map(len, shown.stdout.splitlines()[1:])) <= 80
    assert "RNN KoPL" in shown.stdout and "43.85" in shown.stdout
    kinds = {
        one["kind"] for one in json.loads((run / "calibration.json").read_text())["temperatures"]
    }
    assert kinds == {"constrained", "constrained, execution-guided"}  # of what `kopl ask` does, too
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
               "embedding=32", "epochs=25", "batch=8", "validation=5", "threads=1"]  # fmt: skip
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
    done = script(
        "train.py", "--resume", str(run), "--set", "training.minutes=9", "--set", "plots=false"
    )
    assert done.returncode == 0, done.stderr
    settings = json.loads((run / "settings.json").read_text())
    assert settings["training"]["minutes"] == 9 and settings["plots"] is False
    epochs = [json.loads(x)["epoch"] for x in (run / "history.jsonl").read_text().splitlines()]
    assert epochs == list(range(1, 26))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--set", "epoch=1"], "did you mean epochs"),
        (["train", "--config", "none.yaml"], "no such file, and no config of that name"),
        (["train", "--resume", "none", "--config", "x.yaml"], "leave out --config"),
        (["train", "--set", "kb=none.json"], "no such file"),
        (["train", "--set", "start_from=none"], "no such run"),
        (["train", "--set", "output="], "output must name a folder"),
        (["train", "--set", "pretrained=__main__"], "the encoder '__main__' cannot be loaded"),
        (["train", "--set", "model=rnn", "--set", "glove=none"], "cannot be opened"),
        (["train", "--set", "train=none", "--set", "valid=none"], "cannot be opened"),
        (["train", "--resume", "none"], "no such run"),
        (["eval", "none"], "no such run"),
        (["ask", "--run", "none", "why?"], "no such run"),
    ],
)
def test_wrong_usage(
    torch: Any, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(arguments)
    except SystemExit as stop:  # argparse
        status = stop.code
    assert status in (1, 2)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["train.py", "--resume", "none"], ["eval.py", "none"]])
def test_wrong_usage_of_the_scripts(torch: Any, arguments: list[str]) -> None:
    done = script(*arguments)
    assert done.returncode in (1, 2)
    assert "no such run" in done.stderr and "Traceback" not in done.stderr


def test_too_few_questions_leave_nothing_behind(
    torch: Any, tmp_path: Path, small_examples: list[Example]
) -> None:
    data, run = tmp_path / "data.jsonl", tmp_path / "run"
    write_examples(data, small_examples[:2])
    done = script("train.py", "--set", f"data={data}", "--set", f"output={run}")
    assert done.returncode == 2 and "2 questions are too few to split" in done.stderr
    assert not run.exists() or not any(run.iterdir())


def test_resuming_on_another_knowledge_base_advises_what_train_py_can_do(
    torch: Any, tmp_path: Path, trained: Path, small_examples: list[Example]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    settings = json.loads((run / "settings.json").read_text())
    (run / "settings.json").write_text(json.dumps({**settings, "kb": "world"}))
    for part in ("train", "valid"):
        write_examples(run / f"{part}.jsonl", small_examples)
    done = script("train.py", "--resume", str(run))
    assert done.returncode == 2 and "test.jsonl: there is no such file; put it" in done.stderr
    write_examples(run / "test.jsonl", small_examples)
    done = script("train.py", "--resume", str(run))
    assert done.returncode == 2 and "began with another knowledge base" in done.stderr
    assert "--new-kb" not in done.stderr


def test_without_torch_the_scripts_say_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('No module named torch', name='torch')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    for arguments in (["train.py"], ["eval.py", "x"], ["-m", "kopl", "ask", "--run", "x", "y"]):
        done = script(*arguments, env=environment)
        assert done.returncode in (1, 2)
        assert "pip install" in done.stderr and "Traceback" not in done.stderr
