"""Long runs: which blocks are made, in which order they are taken, and what is left of a stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kopl_base.errors import KoplError, ReadError
from kopl_base.processes import LostWorkerError
from kopl_base.progress import Progress
from kopl_base.runs import FileJob, Gathering, as_they_come, in_order, work


class OddError(KoplError):
    """The failure of a job."""


class Squares(Gathering[int]):
    """The squares of the numbers below a limit; those of some tens are given up at once."""

    unit, failure = "squares", OddError

    def __init__(self, limit: int, skipped: tuple[int, ...] = ()) -> None:
        self.limit, self.skipped, self.next, self.recalled = limit, skipped, 0, list[int]()

    def blocks(self, workers: int) -> Iterator[tuple[int]]:
        return ((number,) for number in range(self.next, self.limit))

    def take(self, block: tuple[int], made: int) -> list[str]:
        (self.next,) = block
        self.next += 10 if self.next // 10 in self.skipped else 1
        self.kept += 1
        return [str(made)]

    @property
    def settled(self) -> bool:
        return self.next % 5 == 0

    def state(self) -> dict[str, Any]:
        return {"next": self.next}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.next, self.kept = int(state["next"]), int(state["kept"])

    def recall(self, line: str) -> None:
        self.recalled.append(int(line))


class Several:
    """Makes squares when they are called for, with three asked for ahead."""

    workers, ahead = 2, 3

    def __init__(self, fails: Mapping[int, Exception] | None = None) -> None:
        self.asked: list[int] = []
        self.fails = fails or {}

    def submit(self, *piece: Any) -> Callable[[], int]:
        self.asked.append(piece[0])
        return partial(self._made, piece[0])

    def _made(self, number: int) -> int:
        if number in self.fails:
            raise self.fails[number]
        return number**2


def bring(
    squares: Squares, output: Path, executor: Several, until: float | None = None,
    *, resume: bool = False,
) -> FileJob[int]:  # fmt: skip
    job = FileJob(squares, output, {"skipped": squares.skipped}, resume=resume)
    progress = Progress("squares", squares.limit)
    work(job, in_order(job, nullcontext(executor), until), progress)
    return job


def test_blocks_are_asked_for_ahead_and_dropped_when_nobody_wants_them(tmp_path: Path) -> None:
    executor = Several()
    bring(Squares(32, (1, 2)), tmp_path / "out", executor).finish()
    # 11 and 12, 21 and 22 were asked for when 10 and 20 were taken, and then given up.
    assert executor.asked == [*range(13), 20, 21, 22, 30, 31]
    wanted = [*range(11), 20, 30, 31]
    assert (tmp_path / "out").read_text() == "".join(f"{n**2}\n" for n in wanted)


@pytest.mark.parametrize(
    ("at", "recalled"), [(0, []), (1, [0]), (4, [0, 1, 4, 9]), (5, []), (6, [25])]
)
def test_a_stopped_job_goes_on(at: int, recalled: list[int], tmp_path: Path) -> None:
    """Lines without influence on others are not looked at again."""
    out = tmp_path / "out"
    with pytest.raises(ZeroDivisionError):
        bring(Squares(8), out, Several({at: ZeroDivisionError()}))
    executor, squares = Several(), Squares(8)
    bring(squares, out, executor, resume=at > 0).finish()
    assert squares.recalled == recalled and executor.asked == [*range(at, 8)]
    assert out.read_text() == "".join(f"{n**2}\n" for n in range(8))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_lost_worker_is_a_failure_of_the_job(tmp_path: Path) -> None:
    with pytest.raises(OddError) as caught:
        bring(Squares(8), tmp_path / "out", Several({3: LostWorkerError("a worker was ended")}))
    assert str(caught.value) == (
        f"a worker was ended; {tmp_path}/out.part has 3 squares: go on with --resume (and fewer"
        " workers, if memory was short)"
    )


def test_an_error_before_the_first_line_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="nothing"):
        bring(Squares(8), tmp_path / "out", Several({0: ReadError("nothing")}))
    assert not list(tmp_path.iterdir())
    with pytest.raises(ReadError, match="nothing"):
        bring(Squares(8), tmp_path / "out", Several({1: ReadError("nothing")}))
    assert {path.name for path in tmp_path.iterdir()} == {"out.part", "out.part.json"}


def test_time_that_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(9))
    monkeypatch.setattr("kopl_base.runs.monotonic", lambda: next(clock))
    squares = Squares(8)
    job = bring(squares, tmp_path / "out", Several(), until=3)
    assert job.kept == squares.kept == 3 and next(squares.blocks(1)) == (3,)


def test_a_state_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ReadError):
        bring(Squares(8), tmp_path / "out", Several({2: ReadError("stop")}))
    state = tmp_path / "out.part.json"
    text = state.read_text()
    for damaged in (text.replace('"next": 2', '"next": "x"'), text.replace('"bytes"', '"size"')):
        assert damaged != text
        state.write_text(damaged)
        with pytest.raises(ReadError, match="not the state of a run"):
            bring(Squares(8), tmp_path / "out", Several(), resume=True)


def test_threads_give_what_is_ready_first() -> None:
    """A slow block does not keep the others waiting, and nothing is begun behind the end."""
    free, stop = threading.Event(), threading.Event()
    begun = []

    def make(number: int) -> int:
        begun.append(number)
        if number == 0:
            free.wait(60)
        return number

    with closing(as_they_come(Squares(100), make, 2, stop)) as results:
        found = [next(results)[1] for _ in range(20)]
        free.set()
    assert 0 not in found and len(set(found)) == 20
    assert stop.is_set()
    before = len(begun)
    time.sleep(0.05)
    assert len(begun) == before < 100
    assert sorted(made for _, made in as_they_come(Squares(2), make, 2, stop)) == [0, 1]
