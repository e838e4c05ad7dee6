"""What a run leaves on disk, damaged or changed: loading and resuming it say what is wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kb import KnowledgeBase, KoplError
from kopl.example import Example
from tests.parsers.conftest import quick


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("settings.json", "{", "damaged"),
        ("settings.json", "{}", r"settings.json: no model is named"),
        ("settings.json", '{"speed": 1}', r"settings.json: there is no setting 'speed'"),
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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answers": 5}, "answers is 5"),
        ({"answers": None}, "answers is null"),
        ({"answers": [5]}, "answers are not all strings"),
        ({"kb": 5}, "kb is 5"),
        ({"kb": None}, "kb is null"),
        ({"fingerprint": 5}, "fingerprint is 5"),
        ({"state": []}, r"state is \[\]"),
        ({"more": 1}, "more"),
        ({"answers": ["Oslo"]}, "not what the training wrote"),
        ({"answers": ["Oslo"], "mark": 5}, "not what the training wrote"),
    ],
)
def test_damaged_descriptions(
    trained: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    from kopl_base.training.checkpoint import CheckpointError
    from parsers.checkpoint import read_run

    copy = tmp_path / "copy"
    shutil.copytree(trained, copy)
    found = json.loads((copy / "parser.json").read_text("utf-8"))
    (copy / "parser.json").write_text(json.dumps({**found, **changes}), "utf-8")
    with pytest.raises(CheckpointError, match=f"copy: the run is damaged.*{message}"):
        read_run(copy)


@pytest.mark.parametrize("kind", ["doubled", "misnamed"])
def test_damaged_actions(trained: Path, small: KnowledgeBase, tmp_path: Path, kind: str) -> None:
    from kopl_base.training.checkpoint import CheckpointError
    from parsers.checkpoint import restore

    copy = tmp_path / "copy"
    shutil.copytree(trained, copy)
    found = json.loads((copy / "parser.json").read_text("utf-8"))
    actions = found["state"]["actions"]
    at = actions.index(["relation", "capital"])
    actions[at] = ["relation", "capitol"] if kind == "misnamed" else actions[at - 1]
    (copy / "parser.json").write_text(json.dumps(found), "utf-8")
    with pytest.raises(CheckpointError, match="damaged"):
        restore(copy, small)
    if kind == "doubled":  # a run of before, without the mark
        del found["mark"]
        (copy / "parser.json").write_text(json.dumps(found), "utf-8")
        with pytest.raises(CheckpointError, match="an action stands twice"):
            restore(copy, small)


@pytest.fixture(scope="module")
def stopped(
    torch: Any, small: KnowledgeBase, small_examples: list[Example],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:  # fmt: skip
    """A run of one epoch."""
    from parsers.training import begin

    folder = tmp_path_factory.mktemp("stopped") / "run"
    settings = quick("pointer", "kopl", "epochs=1")
    assert begin(folder, settings, small, small_examples[:20], small_examples[20:25]).run()
    return folder


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([], "no saved state of a training"),
        ("text", "or no training wrote it"),
        ({}, "lacks network, optimizer"),
        ({"progress": None}, "lacks progress"),
        ({"questions": None}, "lacks questions"),
        ({"settings": None}, "lacks settings"),
        ({"settings": 5}, "its settings are no mapping"),
        ({"progress": 5}, "does not fit the run"),
        ({"progress": {"speed": 5}}, "does not fit the run"),
        ({"progress": {"epoch": "one"}}, "the progress has the epoch 'one'"),
        ({"progress": {"step": -1}}, "the progress has the step -1"),
        ({"network": {}}, "does not fit the run"),
        ({"network": 5}, "does not fit the run"),
        ({"optimizer": {}}, "does not fit the run"),
        ({"progress": {"left": -2}}, "the progress has the left -2"),
    ],
)
def test_damaged_states(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], stopped: Path,
    tmp_path: Path, changes: Any, message: str,
) -> None:  # fmt: skip
    from kopl_base.training.checkpoint import CheckpointError
    from parsers.training import go_on

    copy = tmp_path / "copy"
    shutil.copytree(stopped, copy)
    path = copy / "resume.pt"
    if isinstance(changes, str):
        path.write_text(changes)
    else:
        state = torch.load(path, weights_only=True)
        if changes:
            changed = {**state, **changes}
            changes = {name: value for name, value in changed.items() if value is not None}
        torch.save(changes, path)
    with pytest.raises(CheckpointError, match=rf"resume.pt: .*{message}") as raised:
        go_on(copy, small, small_examples[:20], small_examples[20:25])
    assert "weights_only" not in str(raised.value)


def test_going_on_with_other_settings_is_refused(
    small: KnowledgeBase, small_examples: list[Example], stopped: Path, tmp_path: Path
) -> None:
    """But for those that say how long, where and what is told."""
    from kopl_base.training.checkpoint import CheckpointError
    from parsers.checkpoint import read_run
    from parsers.training import go_on

    copy = tmp_path / "copy"
    shutil.copytree(stopped, copy)
    settings, _ = read_run(copy)

    def change(**changes: Any) -> None:
        changed = settings.changed({n.replace("__", "."): v for n, v in changes.items()})
        (copy / "settings.json").write_text(changed.to_json())

    parts = small_examples[:20], small_examples[20:25]
    for changes, message in (
        ({"batch": 4}, r"training.batch \(was 8, is 4\)"),
        ({"seed": 4}, r"seed \(was 3, is 4\)"),
        ({"optimizer": "adamw"}, "training.optimizer"),
        ({"forget_items": 0.5, "seed": 5}, r"seed.*, pointer.forget_items"),
        ({"hidden": 32}, r"pointer.hidden \(was 64, is 32\)"),
        ({"model": "rnn"}, "model"),
    ):
        change(**changes)
        with pytest.raises(CheckpointError, match=rf"settings.json: .*other settings: {message}"):
            go_on(copy, small, *parts)
    change(epochs=2, minutes=3, part=4, threads=2, output="elsewhere", kb="moved", plots=True)
    trainer = go_on(copy, small, *parts)
    assert trainer.settings.training.epochs == 2 and trainer.progress.epoch == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"epoch": 1, "step": 3, "accuracy": 1, "validation": 1}', "line 2: .*no number 'loss'"),
        ('{"step": 3}', "line 2: .*no number 'epoch'"),
        ("[]", "line 2: .*no number 'epoch'"),
        ('{"epoch": "one"}', "line 2: .*no number 'epoch'"),
    ],
)
def test_damaged_histories(stopped: Path, tmp_path: Path, line: str, message: str) -> None:
    from kopl_base.training.history import read_history

    first = (stopped / "history.jsonl").read_text()
    (tmp_path / "history.jsonl").write_text(f"{first}{line}\n")
    with pytest.raises(KoplError, match=rf"history.jsonl: {message}"):
        read_history(tmp_path)
    # A line that the machine stopped in the middle of is none.
    (tmp_path / "history.jsonl").write_text(first + line[:1])
    assert len(read_history(tmp_path)) == 1


def test_going_on_with_other_questions_is_refused(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path
) -> None:
    from kopl_base.training.checkpoint import CheckpointError
    from parsers.training import begin, go_on

    train, valid = small_examples[:20], small_examples[20:25]
    settings = quick("pointer", "kopl", "epochs=1")
    assert begin(tmp_path / "run", settings, small, train, valid).run()
    for others in ((train[:-1], valid), (train[::-1], valid), (train, valid[:-1])):
        with pytest.raises(CheckpointError, match="not what the training began with"):
            go_on(tmp_path / "run", small, *others)
    go_on(tmp_path / "run", small, train, valid)


@pytest.mark.parametrize("model", ["pointer", "rnn", "seq2seq"])
def test_weights_of_other_sizes_are_told_in_a_sentence(
    model: str, runs: Any, tmp_path: Path, small: KnowledgeBase, small_examples: list[Example]
) -> None:
    """Loading them, starting from them, resuming; for the first difference stands its name."""
    from kopl_base.training.checkpoint import CheckpointError
    from parsers.checkpoint import restore
    from parsers.training import begin, go_on

    first = tmp_path / "first"
    settings = quick(model, "kopl", "epochs=1")
    assert begin(first, settings, small, small_examples[:20], small_examples[20:25]).run()
    copy = tmp_path / "copy"
    shutil.copytree(first, copy)
    if model == "seq2seq":
        config = json.loads((copy / "pretrained" / "config.json").read_text())
        (copy / "pretrained" / "config.json").write_text(json.dumps({**config, "d_model": 32}))
    else:
        shutil.copy(first / "settings.json", copy)
        found = json.loads((copy / "settings.json").read_text())
        found[model]["hidden"] = 40
        (copy / "settings.json").write_text(json.dumps(found))
    message = r"the weights are those of another network: [\w.]+ is [\d×]+ there, but [\d×]+ in"
    with pytest.raises(CheckpointError, match=message) as raised:
        restore(copy, small)
    assert len(str(raised.value)) < 500 and "\n" not in str(raised.value)
    other = quick(
        model, "kopl", f"start_from={copy}", *([] if model == "seq2seq" else ["hidden=40"])
    )
    with pytest.raises(CheckpointError, match=message):
        begin(tmp_path / "new", other, small, small_examples[:20], small_examples[20:25])
    if model != "seq2seq":  # settings that do not fit are told before
        with pytest.raises(CheckpointError, match=rf"{model}.hidden \(was \d+, is 40\)"):
            go_on(copy, small, small_examples[:20], small_examples[20:25])
        return
    with pytest.raises(CheckpointError, match=message) as raised:
        go_on(copy, small, small_examples[:20], small_examples[20:25])
    assert "resume.pt" in str(raised.value) and "\n" not in str(raised.value)


def test_a_run_finds_its_knowledge_base_from_any_folder(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Trained with a relative path; where the file is gone, the error says what to give."""
    from kb import write_snapshot
    from kopl_base.training.checkpoint import CheckpointError
    from parsers.parser import Parser
    from parsers.training import begin

    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    write_snapshot(small, Path("own.kopl"))
    settings = quick("pointer", "kopl", "epochs=1", "kb=own.kopl")
    assert begin(Path("run"), settings, small, small_examples[:20], small_examples[20:25]).run()
    monkeypatch.chdir(tmp_path)
    assert Parser.load("here/run").ask("What is the area of Fiji?")
    Path("here/own.kopl").rename("moved.kopl")
    with pytest.raises(CheckpointError, match=r"here/run: .*own.kopl.* where it is: --kb KB"):
        Parser.load("here/run")
    assert Parser.load("here/run", "moved.kopl").ask("What is the area of Fiji?")
