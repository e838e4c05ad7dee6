"""Runs into a file: workers, shards, stopping and going on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from generation import run as module
from generation.blocks import Options
from generation.pipeline import GenerationError
from generation.run import Plan, run
from kb import Builder, Quantity, write_lines
from kb.errors import ReadError, WriteError
from kopl.cli import main

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
    made = module._made
    calls = []

    def interrupted(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return made(*given)

    monkeypatch.setattr(module, "_made", interrupted)
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
    monkeypatch.setattr(module, "_made", made)
    report = run(plan("world", 70), stopped, resume=True)
    assert report.kept == 70
    assert stopped.read_bytes() == whole.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {whole.name, stopped.name}


@pytest.mark.usefixtures("small_blocks")
def test_a_run_may_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, part = tmp_path / "q.jsonl", tmp_path / "q.jsonl.part"
    monkeypatch.setattr(module._Part, "finish", lambda self: None)
    run(plan("world", 40), file)
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
    writing, calls = module.writing, []

    def full(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return writing(*given)

    monkeypatch.setattr(module, "writing", full)
    with pytest.raises(WriteError, match=r"No space left on device.*--resume"):
        run(plan("world", 60), file)
    monkeypatch.setattr(module, "writing", writing)
    assert all(json.loads(line)["question"] for line in part.read_text().splitlines())
    run(plan("world", 60), file, resume=True)
    run(plan("world", 60), tmp_path / "whole.jsonl")
    assert file.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_a_killed_worker(tmp_path: Path) -> None:
    """The run ends with a message, and what was made can be gone on with."""
    out = tmp_path / "q.jsonl"
    arguments = ["generate", "--kb", "world", "-n", "4000", "--workers", "2", "--verify", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "kopl", *arguments, "-o", str(out)],
        stderr=subprocess.PIPE,
        text=True,
    )
    children: list[int] = []
    begin = time.monotonic()
    while len(children) < 3 and time.monotonic() - begin < 60:  # two workers, one that counts them
        time.sleep(0.2)
        listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        if not listed.parent.exists():
            process.kill()
            pytest.skip("no list of processes on this system")
        children = [int(text) for text in listed.read_text().split()]
    os.kill(children[-1], signal.SIGKILL)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "--resume" in error and "Traceback" not in error


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


@pytest.mark.parametrize(
    "arguments", [["--shard", "3/2"], ["--shard", "1"], ["--verify", "2"], ["--workers", "0"]]
)
def test_wrong_usage(arguments: list[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["generate", "--kb", "world", "-n", "3", "-o", str(tmp_path / "q"), *arguments])
    assert caught.value.code == 2
