"""Runs into a file: workers, shards, stopping and going on."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from generation.blocks import GenerationError, Options
from generation.formats import open_examples
from generation.makers import BlockMaker
from generation.parquet import Origin
from generation.run import Plan, run
from generation.stats import Statistics
from kb import Builder, KnowledgeBase, Quantity, load, write_lines
from kopl_base import unfinished
from kopl_base.errors import KoplError, ReadError, WriteError
from kopl_base.runs import FileJob
from kopl_base.stream import writing
from kopl_cli import generate, main

QUICK = Options(verify=0.0)


def plan(kb: str, count: int, **given: Any) -> Plan:
    return Plan(kb, count, 5, QUICK, **given)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 20 questions, so that few questions are many blocks."""
    monkeypatch.setattr("generation.blocks.SIZE", 20)


def test_the_number_of_workers_does_not_matter(tmp_path: Path) -> None:
    files = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for workers, file in enumerate(files, 1):
        report = run(plan("world", 510), file, workers=workers)
        assert report.kept == 510 and report.reasons
    assert files[0].read_bytes() == files[1].read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"one.jsonl", "two.jsonl"}


@pytest.mark.usefixtures("small_blocks")
def test_a_stopped_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, stopped = tmp_path / "whole.jsonl.gz", tmp_path / "stopped.jsonl.gz"
    run(plan("world", 70), whole)
    made = BlockMaker.block
    calls = []

    def interrupted(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return made(*given)

    monkeypatch.setattr(BlockMaker, "block", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(plan("world", 70), stopped)
    part = tmp_path / "stopped.jsonl.gz.part"
    assert not stopped.exists()
    assert len([json.loads(line) for line in part.read_text().splitlines()]) == 40
    # Whatever was written after the last block that is known to be complete is made again.
    with open(part, "a", encoding="utf-8") as file:
        file.write('{"question": "half a li')
    with pytest.raises(WriteError, match="--resume"):
        run(plan("world", 70), stopped)
    with pytest.raises(ReadError, match="another seed: 5, not 6"):
        run(Plan("world", 70, 6, QUICK), stopped, resume=True)
    monkeypatch.setattr(BlockMaker, "block", made)
    report = run(plan("world", 70), stopped, resume=True)
    assert report.kept == 70
    assert stopped.read_bytes() == whole.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {whole.name, stopped.name}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("count", [40, 30])
def test_a_run_may_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """To what a run has that was to be as large from the beginning; also from within a block."""
    file, part = tmp_path / "q.jsonl", tmp_path / "q.jsonl.part"
    monkeypatch.setattr(FileJob, "finish", lambda self: None)
    run(plan("world", count), file)
    monkeypatch.undo()
    monkeypatch.setattr("generation.blocks.SIZE", 20)
    assert part.exists()
    run(plan("world", 60), file, resume=True)
    run(plan("world", 60), tmp_path / "whole.jsonl")
    assert file.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


@pytest.mark.usefixtures("small_blocks")
def test_shards_share_no_work(tmp_path: Path) -> None:
    run(plan("world", 80), tmp_path / "all.jsonl")
    parts = []
    for number in range(2):
        file = tmp_path / f"{number}.jsonl"
        run(plan("world", 40, shard=(number, 2)), file)
        parts += file.read_text().splitlines()
    whole = (tmp_path / "all.jsonl").read_text().splitlines()
    # All of them, but for the few that two blocks have in common.
    assert len(set(whole) & set(parts)) >= 76


@pytest.mark.usefixtures("small_blocks")
def test_a_full_disk_leaves_a_readable_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, part = tmp_path / "q.jsonl", tmp_path / "q.jsonl.part"
    calls = []

    def full(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return writing(*given)

    monkeypatch.setattr(unfinished, "writing", full)
    with pytest.raises(WriteError, match=r"No space left on device.*--resume"):
        run(plan("world", 60), file)
    monkeypatch.setattr(unfinished, "writing", writing)
    assert all(json.loads(line)["question"] for line in part.read_text().splitlines())
    run(plan("world", 60), file, resume=True)
    run(plan("world", 60), tmp_path / "whole.jsonl")
    assert file.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


@pytest.mark.parametrize("workers", [1, 2])
def test_wrong_sources(lands_file: str, tmp_path: Path, workers: int) -> None:
    """What is wrong with a plan's own files is said once, with the line."""
    bad = tmp_path / "bad"
    for name, text, message in (
        ("rules", "ROOT[Count] -> Count(E)\n  | how many?\n", "line 1: there is no rule for E"),
        ("lexicon", "relations: {nope: {noun: x}}\n", "bad: line 1: relations: 'nope'"),
        ("lexicon", "relations: [\n", "bad"),
    ):
        bad.write_text(text, "utf-8")
        with pytest.raises(ReadError, match=message):
            run(plan(lands_file, 5, **{name: str(bad)}), tmp_path / "q.jsonl", workers=workers)


@pytest.mark.usefixtures("small_blocks")
def test_a_lexicon_changes_the_words_alone(lands_file: str, tmp_path: Path) -> None:
    words = tmp_path / "words.yaml"
    words.write_text("relations:\n  capital: {noun: seat, nouns: seats}\n", "utf-8")
    run(plan(lands_file, 60), tmp_path / "a.jsonl")
    run(plan(lands_file, 60, lexicon=str(words)), tmp_path / "b.jsonl")
    plain, said = (list(open_examples(tmp_path / f"{name}.jsonl")) for name in "ab")
    assert any(" seat" in one.question for one in said)
    assert not any(" seat" in one.question for one in plain)


def test_a_killed_worker(tmp_path: Path) -> None:
    """The run ends with a message, and what was made can be gone on with."""
    out = tmp_path / "q.jsonl"
    arguments = ["generate", "--kb", "world", "-n", "4000", "--workers", "2", "--verify", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "kopl", *arguments, "-o", str(out)],
        stderr=subprocess.PIPE,
        text=True,
    )
    children = children_of(process, 3)  # two workers, one that counts them
    os.kill(children[-1], signal.SIGKILL)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "--resume" in error and "Traceback" not in error


def test_a_killed_run_leaves_no_workers(tmp_path: Path) -> None:
    arguments = ["generate", "--kb", "world", "-n", "4000", "--workers", "2", "--verify", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "kopl", *arguments, "-o", str(tmp_path / "q.jsonl")],
        stderr=subprocess.DEVNULL,
    )
    children = children_of(process, 3)
    time.sleep(1)
    process.kill()
    process.wait()
    begin = time.monotonic()
    while (left := [id for id in children if is_running(id)]) and time.monotonic() - begin < 30:
        time.sleep(0.2)
    for id in left:
        os.kill(id, signal.SIGKILL)
    assert not left


def children_of(process: subprocess.Popen[Any], count: int) -> list[int]:
    """The ids of a process's children, once there are so many."""
    children: list[int] = []
    begin = time.monotonic()
    while len(children) < count and time.monotonic() - begin < 60:
        time.sleep(0.2)
        listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        if not listed.parent.exists():
            process.kill()
            pytest.skip("no list of processes on this system")
        children = [int(text) for text in listed.read_text().split()]
    return children


def is_running(id: int) -> bool:
    """Whether there is such a process that has not ended."""
    try:
        return Path(f"/proc/{id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("name", ["/dev/null", "folder"])
def test_what_is_no_file_is_not_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(WriteError, match="no ordinary file"):
        run(plan("world", 3), tmp_path / name)
    assert not Path("/dev/null").is_file() and (tmp_path / "folder").is_dir()


def test_a_knowledge_base_that_has_no_more(tmp_path: Path) -> None:
    builder = Builder()
    builder.add_concept("c", "city")
    builder.add_entity("a", "Amber", ["c"])
    builder.add_attribute("a", "area", Quantity(3, "square kilometre"))
    write_lines(builder.build(), tmp_path / "small.jsonl")
    out = tmp_path / "q.jsonl"
    with pytest.raises(GenerationError, match=r"yields \d+ different questions, not 100000"):
        run(Plan(str(tmp_path / "small.jsonl"), 100000, 1, QUICK), out)
    assert not out.exists() and (tmp_path / "q.jsonl.part").exists()


def test_a_knowledge_base_that_has_nothing(tmp_path: Path) -> None:
    """There is nothing to go on with, and nothing in the way of another run."""
    write_lines(Builder().build(), tmp_path / "empty.jsonl")
    with pytest.raises(GenerationError) as caught:
        run(Plan(str(tmp_path / "empty.jsonl"), 10, 1, QUICK), tmp_path / "q.jsonl")
    assert str(caught.value) == (
        "the knowledge base yields no question with these rules and options; kopl kb info shows"
        " what it holds"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["empty.jsonl"]


# --- forms -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_blocks")
def test_every_form_holds_the_same(lands_file: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    run(plan(lands_file, 50), tmp_path / "q.jsonl")
    wanted = list(open_examples(tmp_path / "q.jsonl"))
    for name, form in (
        ("q.csv", None),
        ("q.parquet", None),
        ("q.jsonl.gz", None),
        ("folder", "parquet"),
        ("no-ending", None),
        ("table.txt", "csv"),
    ):
        report = run(plan(lands_file, 50), tmp_path / name, form=form)
        assert report.kept == 50
        source = tmp_path / name
        if name == "table.txt":
            source = source.rename(tmp_path / "table.csv")
        found = list(open_examples(source))
        assert found == wanted and [one.extra for one in found] == [one.extra for one in wanted]
    run(plan(lands_file, 50), tmp_path / "train.json")
    items = json.loads((tmp_path / "train.json").read_text("utf-8"))
    assert [item["question"] for item in items] == [one.question for one in wanted]
    assert not [path for path in tmp_path.iterdir() if ".part" in path.name]


@pytest.mark.usefixtures("small_blocks")
def test_the_card_tells_how_it_was_made(lands_file: str, tmp_path: Path) -> None:
    """The command in the card makes the same questions."""
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    options = Options(verify=0.0, canonical=True, clauses=False, levels=6, sparql=False)
    of = Plan(lands_file, 30, 9, options, shard=(1, 3))
    run(of, tmp_path / "set", form="parquet", licence="cc0-1.0")
    card = (tmp_path / "set" / "README.md").read_text("utf-8")
    assert 'license: "cc0-1.0"' in card and "| seed | 9 |" in card
    match = re.search(r"```\nkopl (generate --kb lands.jsonl .*) -o FILE\n```", card)
    assert match
    again = tmp_path / "again.jsonl"
    words = shlex.split(match[1].replace("lands.jsonl", lands_file))
    assert main([*words, "-q", "-o", str(again)]) == 0
    assert list(open_examples(again)) == list(open_examples(tmp_path / "set"))
    match = re.search(r"its fingerprint \| (\w+) \|", card)
    assert match and match[1] == load(lands_file).fingerprint


@pytest.mark.parametrize("name", [one.name for one in fields(Options)])
def test_every_option_has_its_words(name: str) -> None:
    """The command in a card gives back the options of its plan."""
    usual = Options()
    match getattr(usual, name):
        case bool(value):
            other: Any = not value
        case int(value):
            other = value + 1
        case float(value):
            other = value / 2
        case None:
            other = 0.25
        case str():
            other = "people"
        case _:
            other = (("Count", 20.0), ("Verify", 5.5))
    options = replace(usual, **{name: other})
    words = shlex.split(Origin(Plan("world", 5, 1, options), "", 0).command)
    parser = argparse.ArgumentParser()
    generate.add_arguments(parser)
    assert generate.options_of(parser.parse_args(words[2:])) == options


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("name", "form"), [("q.csv", None), ("q.jsonl.xz", None), ("q", "parquet")]
)
def test_a_conversion_that_fails_loses_nothing(
    lands_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, form: str | None
) -> None:
    """The questions stay where they are, and another run only writes them."""
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    run(plan(lands_file, 45), tmp_path / "whole.jsonl")
    target = tmp_path / name

    def full(*_: Any, **__: Any) -> None:
        raise WriteError(f"{target}: cannot be written: No space left on device")

    for place in ("conversion.to_row", "parquet.to_row", "conversion.write_examples"):
        monkeypatch.setattr(f"generation.{place}", full)
    with pytest.raises(WriteError, match=r"No space left .* has all 45 questions: --resume writes"):
        run(plan(lands_file, 45), target, form=form)
    assert not target.exists()
    assert len((tmp_path / f"{name}.part").read_text("utf-8").splitlines()) == 45
    monkeypatch.undo()
    monkeypatch.setattr(BlockMaker, "block", None)  # nothing is made again
    report = run(plan(lands_file, 45), target, form=form, resume=True)
    assert report.statistics.questions == 45
    assert list(open_examples(target)) == list(open_examples(tmp_path / "whole.jsonl"))
    assert {path.name for path in tmp_path.iterdir()} == {name, "whole.jsonl", "lands.jsonl"}


def test_refusals_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BlockMaker, "block", None)
    (tmp_path / "file").touch()
    (tmp_path / "set" / "data").mkdir(parents=True)
    (tmp_path / "set" / "data" / "test.parquet").touch()
    for name, form, message in (
        ("file", "parquet", "is a file"),
        ("set", "parquet", r"has other parts .*data/test\.parquet"),
        ("set", "csv", "no ordinary file"),
        ("new", "arrow", "there is no form 'arrow'"),
    ):
        with pytest.raises(KoplError, match=message):
            run(plan("world", 3), tmp_path / name, form=form)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(KoplError, match=r"install it with: pip install .*\[parquet\]"):
        run(plan("world", 3), tmp_path / "new.parquet")
    assert {path.name for path in tmp_path.iterdir()} == {"file", "set"}


# --- what is known of a run --------------------------------------------------------------------


@pytest.mark.usefixtures("small_blocks")
def test_statistics_are_those_of_the_file(
    lands_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after a stop, and whoever made the blocks."""
    monkeypatch.setattr(FileJob, "finish", lambda self, *_: None)
    run(plan(lands_file, 30), tmp_path / "q.jsonl")
    monkeypatch.undo()
    monkeypatch.setattr("generation.blocks.SIZE", 20)
    report = run(plan(lands_file, 70), tmp_path / "q.jsonl", resume=True)
    found = Statistics.of(open_examples(tmp_path / "q.jsonl"))
    assert report.statistics.to_json() == found.to_json()
    assert found.questions == 70


@pytest.mark.usefixtures("small_blocks")
def test_a_stopped_run_that_does_not_fit(
    lands_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FileJob, "finish", lambda self, *_: None)
    out = tmp_path / "q.jsonl"
    run(plan(lands_file, 40), out)
    monkeypatch.undo()
    with pytest.raises(ReadError, match=r"has 40 questions already, more than 30"):
        run(plan(lands_file, 30), out, resume=True)
    with pytest.raises(ReadError, match="another canonical: False, not True"):
        run(Plan(lands_file, 40, 5, Options(verify=0.0, canonical=True)), out, resume=True)
    part = tmp_path / "q.jsonl.part"
    text = part.read_bytes()
    for damaged in (text[:-9], text.replace(b": ", b":  ", 1), b"{}\n" + text):
        part.write_bytes(damaged)
        with pytest.raises(ReadError, match="cannot go on with it"):
            run(plan(lands_file, 40), out, resume=True)
        assert part.read_bytes() == damaged
    part.write_bytes(text)
    # It was stopped after its last step but one.
    os.replace(tmp_path / "q.jsonl.part", out)
    with pytest.raises(ReadError, match=r"the run was complete, and q\.jsonl is there"):
        run(plan(lands_file, 40), out, resume=True)
    assert len(out.read_text("utf-8").splitlines()) == 40


@pytest.mark.usefixtures("small_blocks")
def test_what_a_poor_knowledge_base_gave_can_be_had(lands_file: str, tmp_path: Path) -> None:
    out = tmp_path / "q.jsonl"
    rules = tmp_path / "few.scfg"
    rules.write_text(
        "ROOT[Count] -> Count(FilterConcept(FindAll(), $concept))\n  | how many {concept.many}?\n"
    )
    with pytest.raises(GenerationError, match=r"-n (\d+) --resume makes a whole file") as caught:
        run(plan(lands_file, 1000, rules=str(rules)), out)
    match = re.search(r"-n (\d+)", str(caught.value))
    assert match
    assert run(plan(lands_file, int(match[1]), rules=str(rules)), out, resume=True).kept > 0
    assert len(list(open_examples(out))) == int(match[1])


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--shard", "3/2", "a shard is I/N with I from 1 to N"),
        ("--shard", "1", "a shard is I/N with I from 1 to N"),
        ("--shard", "a/b", "a shard is I/N with I from 1 to N"),
        ("--verify", "2", "a share is a number from 0 to 1"),
        ("--zero", "none", "a share is a number from 0 to 1"),
        ("--shares", "Count=many", "a share is a number above 0, up to 100"),
        ("--workers", "0", "a number above 0 was expected"),
    ],
)
def test_wrong_usage(
    option: str, value: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["generate", "--kb", "world", "-n", "3", "-o", str(tmp_path / "q"), option, value])
    assert caught.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: argument {option}: {message}\n")


def test_all_queries_cannot_be_compared_without_an_engine(
    tmp_path: Path, world: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kopl.sparql.engines.oxigraph import Oxigraph
    from kopl.sparql.errors import MissingPackageError

    def missing(*_: object, **__: object) -> None:
        raise MissingPackageError("pyoxigraph is not installed")

    monkeypatch.setattr(Oxigraph, "of", missing)
    plan = Plan("world", 5, 1, Options(verify=1.0))
    with pytest.raises(MissingPackageError):
        run(plan, tmp_path / "out.jsonl", kb=world)
    assert run(Plan("world", 5, 1, Options(verify=0.5)), tmp_path / "out.jsonl", kb=world).kept == 5
