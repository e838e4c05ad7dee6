"""What runs that were killed leave beside their output, and what stays of runs that live."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kopl_base import temporary
from kopl_base.stream import writing

# Begins a file (or a folder), says so, and writes on when it is told to.
WRITER = """
import sys
from pathlib import Path
from kopl_base.stream import writing
from kopl_base.temporary import filling
path = Path(sys.argv[1])
with filling(path) if path.suffix == ".folder" else writing(path) as out:
    print("begun", flush=True)
    sys.stdin.readline()
    print("whole", file=(out / "file").open("w") if path.suffix == ".folder" else out)
"""


def writer(path: Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    begun = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdin=pipe, stdout=pipe, text=True
    )
    assert begun.stdout is not None and begun.stdout.readline() == "begun\n"
    return begun


@pytest.mark.parametrize("name", ["kb.json", "store.folder"])
def test_a_killed_run_is_tidied_up_by_the_next(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    mine = tmp_path / f".{name}.backup01"
    mine.write_text("not a temporary file")
    killed = writer(path)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    (left,) = {*tmp_path.iterdir()} - {mine}
    alive = writer(path)
    assert not left.exists()  # the next run took it away
    (busy,) = {*tmp_path.iterdir()} - {mine}
    temporary._swept.clear()
    with writing(tmp_path / "other.txt") as file:
        file.write("x")
    assert busy.exists()  # the one that is alive goes on
    alive.communicate("on\n")
    assert alive.returncode == 0 and path.exists() and not busy.exists()
    whole = path / "file" if path.is_dir() else path
    assert whole.read_text() == "whole\n" and mine.exists()


def test_many_files_of_a_folder_are_looked_through_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept: list[Path] = []
    monkeypatch.setattr(temporary, "sweep", swept.append)
    for number in range(5):
        with writing(tmp_path / f"{number}.txt") as file:
            file.write("x")
    assert len(swept) == 1 and len(list(tmp_path.iterdir())) == 5
