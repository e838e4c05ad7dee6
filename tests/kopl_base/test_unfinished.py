"""The file of a run that is under way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kopl_base import unfinished
from kopl_base.errors import ReadError, WriteError
from kopl_base.unfinished import Unfinished


def begun(output: Path, lines: int = 3) -> Unfinished:
    """A run that was stopped after so many lines."""
    file = Unfinished(output, {"seed": 1, "caps": (2, None)}, "lines", resume=False)
    assert file.state is None
    file.begin()
    for number in range(lines):
        file.append(f"{number}\n", 1)
        file.save(bytes=file.size, next=number + 1)
    file.close()
    return file


def again(output: Path, **changes: Any) -> Unfinished:
    about = {"seed": 1, "caps": (2, None), **changes}
    return Unfinished(output, about, "lines", resume=True)


def test_a_run_goes_on_where_its_state_says(tmp_path: Path) -> None:
    output = tmp_path / "out"
    before = begun(output)
    with before.path.open("a") as file:
        file.write("to be forg")
    now = again(output)
    assert now.state is not None and now.state["next"] == 3
    now.begin(now.state["bytes"], 3)
    now.append("3\n4\n", 2)
    now.save(bytes=now.size, next=5)
    assert now.kept == 5
    now.finish()
    assert output.read_text() == "0\n1\n2\n3\n4\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_that_is_shorter_than_it_was(tmp_path: Path) -> None:
    """What became of it, how much is missing, and what to do."""
    output = tmp_path / "out"
    path = begun(output).path
    path.write_text("0\n1\n")
    now = again(output)
    assert now.state is not None
    with pytest.raises(ReadError) as caught:
        now.read_again(now.state["bytes"], lambda line: None)
    assert str(caught.value) == (
        f"{path}: cannot go on with it: something cut it off: it has 4 bytes, and 6 were written;"
        " put it back as it was, or remove it and out.part.json to begin anew"
    )
    path.unlink()
    with pytest.raises(ReadError, match=r"out\.part: .*: No such file or directory; put it back"):
        now.read_again(now.state["bytes"], lambda line: None)


def test_what_is_in_the_way(tmp_path: Path) -> None:
    output = tmp_path / "out"
    file = begun(output)
    with pytest.raises(WriteError, match=r"out\.part: a stopped run is there; --resume goes on"):
        Unfinished(output, {}, "lines", resume=False)
    with pytest.raises(ReadError, match=r"another seed: 1, not 2; .* or remove it and out\.part"):
        again(output, seed=2)
    with pytest.raises(ReadError, match=r"another workers: None, not 'x+\.\.\.; give"):
        again(output, workers="x" * 200)
    with pytest.raises(ReadError, match="another seed: 1, not None"):
        Unfinished(output, {"caps": [2, None]}, "lines", resume=True)
    state = tmp_path / "out.part.json"
    for damaged in ("{", "[]", '{"about": 3}', '{"about": [[1, 2]]}', "\0", "[" * 10**5):
        state.write_text(damaged)
        with pytest.raises(ReadError, match="not the state of a run"):
            again(output)
    file.discard()
    assert not list(tmp_path.iterdir())


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was counted last is what a run that goes on finds."""
    file = begun(tmp_path / "out", 2)
    file = again(tmp_path / "out")
    assert file.state is not None
    file.begin(file.state["bytes"], 2)

    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(unfinished, "writing", full)
        file.append("2\n3\n", 2)
        with pytest.raises(WriteError, match="No space left on device; it has 2 lines: go on"):
            file.save(bytes=file.size, next=4)
    file.close()
    found = again(tmp_path / "out")
    assert found.state is not None and found.state["next"] == 2


class Short:
    """A file on a disk that has room for some bytes, and perhaps cannot be cut off."""

    def __init__(self, file: Any, room: int, *, stuck: bool = False) -> None:
        self.file, self.room, self.stuck = file, room, stuck

    def write(self, data: memoryview) -> int:
        if not self.room:
            raise OSError(28, "No space left on device")
        written: int = self.file.write(data[: self.room])
        self.room -= written
        return written

    def truncate(self, size: int) -> None:
        if self.stuck:
            raise OSError(5, "Input/output error")
        self.file.truncate(size)

    def close(self) -> None:
        self.file.close()
        self.write = self.file.write  # type: ignore[method-assign]


def test_a_line_that_does_not_fit_is_not_in_the_file(tmp_path: Path) -> None:
    """Nor does it come later, nor hide what is written when there is room again."""
    file = begun(tmp_path / "out", 1)
    file = again(tmp_path / "out")
    file.begin(2, 1)
    short = Short(vars(file)["_file"], 3)
    file._file = short  # type: ignore[assignment]
    with pytest.raises(WriteError, match="No space left on device; it has 1 lines: go on with"):
        file.append("a long line\n", 1)
    assert file.path.read_text() == "0\n" and (file.size, file.kept) == (2, 1)
    short.room = 4
    file.append("1\n", 1)
    with pytest.raises(WriteError):
        file.append("another\n", 1)
    assert file.path.read_text() == "0\n1\n" and file.kept == 2
    short.room, short.stuck = 1, True
    with pytest.raises(WriteError, match="No space left"):
        file.append("2\n", 1)
    with pytest.raises(WriteError, match="closed file"):
        file.append("3\n", 1)
    assert file.path.read_text() == "0\n1\n2"
    file = again(tmp_path / "out")
    file.begin(4, 2)
    file.finish()
    assert (tmp_path / "out").read_text() == "0\n1\n"


def test_a_conversion_that_fails(tmp_path: Path) -> None:
    output = tmp_path / "out"
    begun(output)
    file = again(output)
    file.begin(6, 3)

    def fails(path: Path) -> None:
        assert path.read_text() == "0\n1\n2\n"
        raise WriteError("out: cannot be written: no room")

    with pytest.raises(WriteError, match=r"no room; .*out\.part has all 3 lines: --resume writes"):
        file.finish(fails)
    file = again(output)
    file.begin(6, 3)
    file.finish(lambda path: output.write_text(path.read_text()[::-1]) and None)
    assert output.read_text() == "\n2\n1\n0"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_two_runs_of_one_file(tmp_path: Path) -> None:
    output = tmp_path / "out"
    begun(output)
    first, second = again(output), again(output)
    for file in (first, second):
        file.begin(6, 3)
    first.finish()
    with pytest.raises(WriteError, match="is gone; does another run write the same file"):
        second.finish()
    assert output.read_text() == "0\n1\n2\n"


def test_a_complete_run_whose_state_stayed(tmp_path: Path) -> None:
    output = tmp_path / "out"
    begun(output).path.rename(output)
    with pytest.raises(ReadError, match="the run was complete, and out is there"):
        again(output)
