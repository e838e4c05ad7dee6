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
from kopl_base.runs import FileJob, as_they_come, in_order, work


class OddError(KoplError):
    """The failure of a job."""


class Squares(FileJob[int]):
    """The squares of the numbers below a limit; those of some tens are given up at once."""

    failure = OddError

    def __init__(
        self, output: Path, limit: int, skipped: tuple[int, ...] = (), *, resume: bool = False
    ) -> None:
        self.limit, self.skipped, self.next, self.sum = limit, skipped, 0, 0
        super().__init__(output, {"skipped": skipped}, "squares", resume=resume)

    def restore(self, state: Mapping[str, Any]) -> None:
        self.next = int(state["next"])

    def recall(self, line: bytes) -> None:
        self.sum += int(line)

    def blocks(self, workers: int) -> Iterator[tuple[int]]:
        return ((number,) for number in range(self.next, self.limit))

    def take(self, block: tuple[int], made: int) -> None:
        (self.next,) = block
        self.next += 10 if self.next // 10 in self.skipped else 1
        self.sum += made
        self.write([str(made)])
        self.save(next=self.next)


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


def bring(job: Squares, executor: Several, until: float | None = None) -> None:
    progress = Progress("squares", job.limit)
    work(job, in_order(job, nullcontext(executor), until), progress)


def test_blocks_are_asked_for_ahead_and_dropped_when_nobody_wants_them(tmp_path: Path) -> None:
    executor = Several()
    job = Squares(tmp_path / "out", 32, (1, 2))
    bring(job, executor)
    job.finish()
    # 11 and 12, 21 and 22 were asked for when 10 and 20 were taken, and then given up.
    assert executor.asked == [*range(13), 20, 21, 22, 30, 31]
    wanted = [*range(11), 20, 30, 31]
    assert (tmp_path / "out").read_text() == "".join(f"{n**2}\n" for n in wanted)


@pytest.mark.parametrize("at", [0, 1, 5])
def test_a_stopped_job_goes_on(at: int, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(ZeroDivisionError):
        bring(Squares(out, 8), Several({at: ZeroDivisionError()}))
    executor = Several()
    job = Squares(out, 8, resume=at > 0)
    assert job.kept == job.done == at
    bring(job, executor)
    job.finish()
    assert job.sum == sum(n**2 for n in range(8)) and executor.asked == [*range(at, 8)]
    assert out.read_text() == "".join(f"{n**2}\n" for n in range(8))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_lost_worker_is_a_failure_of_the_job(tmp_path: Path) -> None:
    with pytest.raises(OddError) as caught:
        bring(Squares(tmp_path / "out", 8), Several({3: LostWorkerError("a worker was ended")}))
    assert str(caught.value) == (
        f"a worker was ended; {tmp_path}/out.part has 3 squares: go on with --resume (and fewer"
        " workers, if memory was short)"
    )


def test_an_error_before_the_first_line_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="nothing"):
        bring(Squares(tmp_path / "out", 8), Several({0: ReadError("nothing")}))
    assert not list(tmp_path.iterdir())
    with pytest.raises(ReadError, match="nothing"):
        bring(Squares(tmp_path / "out", 8), Several({1: ReadError("nothing")}))
    assert {path.name for path in tmp_path.iterdir()} == {"out.part", "out.part.json"}


def test_time_that_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(9))
    monkeypatch.setattr("kopl_base.runs.monotonic", lambda: next(clock))
    job = Squares(tmp_path / "out", 8)
    bring(job, Several(), until=3)
    assert job.kept == 3 and next(job.blocks(1)) == (3,)


def test_a_state_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ReadError):
        bring(Squares(tmp_path / "out", 8), Several({2: ReadError("stop")}))
    state = tmp_path / "out.part.json"
    text = state.read_text()
    for damaged in (text.replace('"next": 2', '"next": "x"'), text.replace('"bytes"', '"size"')):
        assert damaged != text
        state.write_text(damaged)
        with pytest.raises(ReadError, match="not the state of a run"):
            Squares(tmp_path / "out", 8, resume=True)


def test_threads_give_what_is_ready_first() -> None:
    """A slow block does not keep the others waiting, and nothing is begun behind the end."""
    free, stop = threading.Event(), threading.Event()
    begun = []

    def make(number: int) -> int:
        begun.append(number)
        if number == 0:
            free.wait(60)
        return number

    numbers = ((number,) for number in range(100))
    with closing(as_they_come(numbers, make, 2, stop)) as results:
        found = [next(results)[1] for _ in range(20)]
        free.set()
    assert 0 not in found and len(set(found)) == 20
    assert stop.is_set()
    before = len(begun)
    time.sleep(0.05)
    assert len(begun) == before < 100
    assert [made for _, made in as_they_come(iter([(5,)]), make, 2, stop)] == [5]
