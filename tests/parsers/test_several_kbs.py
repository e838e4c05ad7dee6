"""One run over several knowledge bases: each question goes by its own one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kb import Builder, KnowledgeBase, Quantity, load, write_snapshot
from kopl.example import Example, write_examples
from kopl.executor import Executor
from kopl.text import read

ROOT = Path(__file__).parents[2]
SHELF = {
    "The Red Fox": ("Ada Hill", 210), "A Long Winter": ("Ben Moss", 340),
    "Two Rivers": ("Cora Vale", 96), "Glass Hills": ("Dan Reed", 515),
    "Salt": ("Eve Frost", 188), "Old Songs": ("Finn Ash", 402),
}  # fmt: skip


@pytest.fixture(scope="module")
def shelf() -> KnowledgeBase:
    """Six books with authors and pages: no word of the schema is one of the small one's."""
    builder = Builder()
    builder.add_concept("book", "book")
    builder.add_concept("writer", "writer")
    for title, (author, pages) in SHELF.items():
        builder.add_entity(title, title, ["book"])
        builder.add_entity(author, author, ["writer"])
        builder.add_attribute(title, "number of pages", Quantity(pages, "1"))
        builder.add_fact(title, "author", author)
    return builder.build()


@pytest.fixture(scope="module")
def shelf_examples(shelf: KnowledgeBase) -> list[Example]:
    """Questions of four kinds about every book."""
    executor, found = Executor(shelf), []
    for title, (author, _) in SHELF.items():
        for question, program in (
            (f"Who wrote {title}?", f'QueryName(Relate(Find("{title}"), author, forward))'),
            (f"What is by {author}?", f'QueryName(Relate(Find("{author}"), author, backward))'),
            (f"How many pages has {title}?", f'QueryAttr(Find("{title}"), "number of pages")'),
            (f"Which book did {author} write?",
             f'QueryName(FilterConcept(Relate(Find("{author}"), author, backward), book))'),
        ):  # fmt: skip
            tree = read(program)
            found.append(Example(question, tree, executor.run(tree).answer))
    return found


@pytest.fixture(scope="module")
def both(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], shelf: KnowledgeBase,
    shelf_examples: list[Example], tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, str]:  # fmt: skip
    """A run over both, trained by the command, and what that printed."""
    folder = tmp_path_factory.mktemp("both")
    write_snapshot(small, folder / "small.koplkb")
    write_snapshot(shelf, folder / "shelf.koplkb")
    write_examples(folder / "small.jsonl", small_examples)
    write_examples(folder / "shelf.jsonl", shelf_examples)
    pairs = (
        "model=pointer", f"kb={folder / 'small.koplkb'}", f"train={folder / 'small.jsonl'}",
        f"valid={folder / 'small.jsonl'}", "embedding=32", "hidden=64", "epochs=30", "batch=8",
        f"beside={folder / 'shelf.koplkb'}={folder / 'shelf.jsonl'}", "learning_rate=0.01",
        "threads=1", "plots=false", f"output={folder / 'run'}",
    )  # fmt: skip
    done = _kopl("train", "--config", str(_config(folder)), *(f"--set={pair}" for pair in pairs))
    assert done.returncode == 0, done.stderr
    return folder / "run", done.stdout


def _config(folder: Path) -> Path:
    path = folder / "empty.yaml"
    path.write_text("{}\n", "utf-8")
    return path


def _settings(run: Path) -> dict[str, Any]:
    """Those of a run, as ``--set`` takes them."""
    found: dict[str, Any] = json.loads((run / "settings.json").read_text("utf-8"))
    return {**found, "beside": json.dumps(found["beside"])}


def _kopl(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kopl", *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=900,
    )  # fmt: skip


def test_each_knowledge_base_is_asked_by_its_own_names(
    both: tuple[Path, str], small: KnowledgeBase, shelf: KnowledgeBase,
    small_examples: list[Example], shelf_examples: list[Example],
) -> None:  # fmt: skip
    from parsers.parser import Parser

    run, printed = both
    assert "beside: " in printed and "shelf.koplkb" in printed
    # The best epoch is chosen by the questions of both.
    written = (run / "beside-1.valid.jsonl").read_text("utf-8").splitlines()
    assert len(written) == 2
    assert f"on {len(small_examples) + 2} validation questions" in " ".join(printed.split())
    for kb, examples in ((small, small_examples), (shelf, shelf_examples)):
        parser = Parser.load(run, kb)  # no new_kb: the run knows both
        found = [parser.ask(one.question, guided=False)[0] for one in examples]
        right = sum(one.text == gold.answer for one, gold in zip(found, examples, strict=True))
        assert right >= 0.9 * len(examples)
        names = {text for _, text in parser.model.actions.entries}  # type: ignore[attr-defined]
        assert ("author" in names) == (kb is shelf) and ("capital" in names) == (kb is small)


def test_items_over_the_other_one_allow_only_what_that_has(
    both: tuple[Path, str], small: KnowledgeBase, shelf: KnowledgeBase,
    shelf_examples: list[Example],
) -> None:  # fmt: skip
    from parsers.checkpoint import restore

    model: Any = restore(both[0], small, weights=None)  # by all of them, as it is trained on
    items, left = model.prepare_over(shelf, shelf_examples)
    assert not left and len(items) == len(shelf_examples)
    strange = {
        number for number, (_, text) in enumerate(model.actions.entries)
        if text in ("capital", "area", "inception", "code", "city", "country")
    }  # fmt: skip
    assert len(strange) == 6
    for item in items:
        for step in item.steps:
            assert not strange & set(step.allowed)
            assert step.action < 0 or step.action in step.allowed
        assert not strange & {*item.asked.mentioned.items, *item.asked.mentioned.known[0]}
    chosen = {model.actions.entries[step.action] for step in items[0].steps if step.action >= 0}
    assert ("relation", "author") in chosen


def test_a_third_knowledge_base_still_needs_the_option(both: tuple[Path, str]) -> None:
    from kopl_base.training.checkpoint import CheckpointError
    from parsers.checkpoint import restore

    with pytest.raises(CheckpointError, match="--new-kb"):
        restore(both[0], load("world"))


def test_a_training_over_several_goes_on_as_if_unbroken(
    both: tuple[Path, str], tmp_path: Path
) -> None:
    folder = both[0].parent
    about = _settings(both[0])
    pairs = [
        f"--set={name}={about[name]}" for name in ("kb", "train", "valid", "beside", "threads")
    ]
    pairs += ["--set=plots=false", "--set=embedding=32", "--set=hidden=64", "--set=batch=8"]

    def losses(output: Path) -> list[float]:
        lines = (output / "history.jsonl").read_text("utf-8").splitlines()
        return [json.loads(line)["loss"] for line in lines]

    pairs += ["--set=schedule=constant"]

    def train(output: Path, epochs: int) -> None:
        own = [f"--set=epochs={epochs}", f"--set=output={output}"]
        done = _kopl("train", "--config", str(_config(folder)), *pairs, *own)
        assert done.returncode == 0, done.stderr

    train(tmp_path / "whole", 3)
    train(tmp_path / "part", 2)
    again = _kopl("train", "--resume", str(tmp_path / "part"), "--set=epochs=3")
    assert again.returncode == 0, again.stderr
    assert losses(tmp_path / "whole") == losses(tmp_path / "part")


def test_a_knowledge_base_beside_may_move_and_have_any_path(
    both: tuple[Path, str], tmp_path: Path
) -> None:
    about = _settings(both[0])
    odd = tmp_path / "a, b = c"
    odd.mkdir()
    for name in ("shelf.koplkb", "shelf.jsonl"):
        shutil.copyfile(both[0].parent / name, odd / name)
    beside = json.dumps([{"kb": str(odd / "shelf.koplkb"), "questions": str(odd / "shelf.jsonl")}])
    pairs = [f"--set={name}={about[name]}" for name in ("kb", "train", "valid", "threads")]
    pairs += ["--set=plots=false", "--set=embedding=32", "--set=hidden=64", "--set=epochs=1"]
    run = tmp_path / "run"
    done = _kopl("train", "--config", str(_config(tmp_path)), *pairs, f"--set=beside={beside}",
                 f"--set=output={run}")  # fmt: skip
    assert done.returncode == 0, done.stderr
    moved = tmp_path / "moved.koplkb"
    (odd / "shelf.koplkb").rename(moved)
    lost = _kopl("train", "--resume", str(run), "--set=epochs=2")
    assert lost.returncode == 2 and "--set beside=" in lost.stderr, lost.stderr
    for beside, told in (("", "1 knowledge base"), (str(both[0].parent / "small.koplkb"), "once")):
        wrong = _kopl("train", "--resume", str(run), "--set=epochs=2", f"--set=beside={beside}")
        assert wrong.returncode == 2 and told in wrong.stderr, wrong.stderr
    again = _kopl("train", "--resume", str(run), "--set=epochs=2", f"--set=beside={moved}")
    assert again.returncode == 0, again.stderr
    assert len((run / "history.jsonl").read_text("utf-8").splitlines()) == 2
    description = json.loads((run / "parser.json").read_text("utf-8"))
    assert list(description["beside"].values()) == [str(moved)]


def test_the_names_beside_are_read_in_every_form() -> None:
    from kopl_base.errors import SettingsError
    from parsers.settings import BesideKb, Settings, read_beside

    a, b = BesideKb("a.json"), BesideKb("b.json", "b.jsonl")
    for given in (
        "a.json, b.json=b.jsonl", "[a.json, {kb: b.json, questions: b.jsonl}]",
        ["a.json", {"kb": "b.json", "questions": "b.jsonl"}], [a, b],
    ):  # fmt: skip
        assert read_beside(given) == (a, b)
    assert read_beside("") == read_beside([]) == ()
    assert read_beside(["a,b=c"]) == (BesideKb("a,b=c"),)
    settings = Settings().changed({"beside": "a.json,b.json=b.jsonl"})
    assert Settings.from_json(settings.to_json()) == settings
    # As runs of before wrote it.
    assert Settings.from_json('{"model": "pointer", "beside": "a.json"}').beside == (a,)
    for given in ("=x", "[1]", "[{kb: a, file: b}]", "[", 7, [{"kb": ""}], "[{questions: b}]"):
        with pytest.raises(SettingsError, match=r"beside|YAML"):
            read_beside(given)


def test_what_learns_over_one_alone_says_so(both: tuple[Path, str], tmp_path: Path) -> None:
    about = _settings(both[0])
    pairs = [f"--set={name}={about[name]}" for name in ("kb", "train", "valid", "beside")]
    done = _kopl("train", *pairs, "--config", str(_config(tmp_path)), "--set=model=rnn",
                 f"--set=output={tmp_path / 'run'}")  # fmt: skip
    assert done.returncode != 0 and "beside" in done.stderr
    absent = _kopl("train", "--set=beside=world=nowhere.jsonl", f"--set=output={tmp_path / 'no'}")
    assert absent.returncode != 0 and "nowhere.jsonl" in absent.stderr


def test_what_cannot_stand_beside_is_told_before_any_work(
    both: tuple[Path, str], tmp_path: Path
) -> None:
    about = _settings(both[0])
    pairs = [f"--set={name}={about[name]}" for name in ("kb", "train", "valid")]
    pairs += ["--config", str(_config(tmp_path)), f"--set=output={tmp_path / 'run'}"]
    (tmp_path / "bad.jsonl").write_text("no JSON\n", "utf-8")
    shelf = json.loads((both[0] / "settings.json").read_text("utf-8"))["beside"][0]["kb"]
    for beside, told in (
        (f"{shelf},{shelf}", "once"), (about["kb"], "once"), ("=x", "KB=FILE"),
        (f"{shelf}={tmp_path / 'bad.jsonl'}", "not JSON"), ("nowhere.json", "in a list"),
    ):  # fmt: skip
        done = _kopl("train", *pairs, f"--set=beside={beside}")
        assert done.returncode == 2 and told in done.stderr, done.stderr
        assert not (tmp_path / "run").exists()
