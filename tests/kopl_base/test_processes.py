"""Processes that do the pieces of a long work."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import pytest

from kopl_base.errors import ReadError
from kopl_base.processes import Alone, LostWorkerError, Processes, TimedProcess
from tests.conftest import ROOT

LARGE = 1 << 20  # more than a pipe holds


class OddError(Exception):
    """An error that does not survive being sent."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"odd {first}")


def prepared(place: str) -> Callable[[int, bytes], tuple[str, int, bytes]]:
    """What makes a piece: it says where and of what it was made."""
    if place == "nowhere":
        raise ReadError("is not there", place="line 3", source=place)

    def make(number: int, given: bytes = b"") -> tuple[str, int, bytes]:
        if number < 0:
            raise ReadError("below zero", source=place)
        if number == 9:
            time.sleep(60)
        if number == 10:
            raise OddError(1, 2)
        if number == 11:
            return place, 0, lambda: 0  # type: ignore[return-value]
        return place, os.getpid(), given

    return make


def test_results_come_as_they_are_called_for() -> None:
    """Large pieces both ways, many more than anybody waits for, in any order of calling."""
    with ExitStack() as stack:
        crew = Processes(functools.partial(prepared, "x"), 2, stack)
        made = [crew.submit(0, bytes([number]) * LARGE) for number in range(12)]
        found = {number: made[number]() for number in reversed(range(12))}
    assert all(found[n][2] == bytes([n]) * LARGE for n in range(12))
    assert len({pid for _, pid, _ in found.values()} - {os.getpid()}) == 2
    assert not multiprocessing.active_children()
    assert Alone(prepared("x")).submit(0, b"a")() == ("x", os.getpid(), b"a")


def test_what_a_worker_raises_is_raised() -> None:
    with ExitStack() as stack:
        crew = Processes(functools.partial(prepared, "x"), 1, stack)
        bad, good = crew.submit(-1), crew.submit(0)
        with pytest.raises(ReadError, match=r"^x: below zero$"):
            bad()
        assert good()[0] == "x"
    with ExitStack() as stack:
        crew = Processes(functools.partial(prepared, "nowhere"), 1, stack)
        for _ in range(2):
            with pytest.raises(ReadError, match="nowhere: line 3: is not there") as caught:
                crew.submit(0)()
        assert caught.value.place == "line 3"


def test_what_cannot_be_sent_is_told() -> None:
    with ExitStack() as stack:
        crew = Processes(functools.partial(prepared, "x"), 1, stack)
        with pytest.raises(RuntimeError, match="OddError: odd 1") as caught:
            crew.submit(10)()
        assert "in make" in str(caught.value.__cause__)  # where it was raised in the worker
        with pytest.raises(Exception, match="pickle"):
            crew.submit(11)()
        assert crew.submit(0)()[0] == "x"


def test_what_stops_the_start_ends_what_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker is waited for that nobody has ended."""
    start, begun = SpawnProcess.start, []

    def failing(self: SpawnProcess) -> None:
        if len(begun) == 2:
            raise OSError(24, "Too many open files")
        begun.append(self)
        start(self)

    monkeypatch.setattr(SpawnProcess, "start", failing)
    begin = time.monotonic()
    with pytest.raises(OSError, match="Too many open files"), ExitStack() as stack:
        Processes(functools.partial(prepared, "x"), 4, stack)
    assert len(begun) == 2 and not multiprocessing.active_children()
    assert time.monotonic() - begin < 30


@contextmanager
def handling(handler: Any) -> Iterator[None]:
    """What an interrupt does meanwhile; a process that a script starts behind it ignores them."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def interrupted_starts(monkeypatch: pytest.MonkeyPatch) -> list[SpawnProcess]:
    """The workers that were started, each with an interrupt just before."""
    start, begun = SpawnProcess.start, []

    def interrupted(self: SpawnProcess) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        start(self)
        begun.append(self)

    monkeypatch.setattr(SpawnProcess, "start", interrupted)
    return begun


def test_an_interrupt_comes_when_a_worker_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = interrupted_starts(monkeypatch)
    with handling(signal.default_int_handler):
        with pytest.raises(KeyboardInterrupt), ExitStack() as stack:
            Processes(functools.partial(prepared, "x"), 2, stack)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert len(begun) == 1 and not multiprocessing.active_children()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_interrupts_that_are_ignored_stay_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with nohup, and for what a script starts in the background."""
    begun = interrupted_starts(monkeypatch)
    with handling(signal.SIG_IGN), ExitStack() as stack:
        crew = Processes(functools.partial(prepared, "x"), 2, stack)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert crew.submit(0)()[0] == "x"
    assert len(begun) == 2 and not multiprocessing.active_children()


def test_work_that_is_given_up_is_not_waited_for() -> None:
    begin = time.monotonic()
    with ExitStack() as stack:
        crew = Processes(functools.partial(prepared, "x"), 2, stack)
        ready, *_ = crew.submit(0), *(crew.submit(9) for _ in range(6))
        ready()
    assert time.monotonic() - begin < 30
    assert not multiprocessing.active_children()


def test_a_worker_that_is_killed() -> None:
    with ExitStack() as stack:
        crew = Processes(functools.partial(prepared, "x"), 1, stack)
        _, pid, _ = crew.submit(0)()
        sleeping, after = crew.submit(9), crew.submit(0)
        os.kill(pid, signal.SIGKILL)
        for made in (sleeping, after):
            with pytest.raises(LostWorkerError, match="ended from outside"):
                made()


@pytest.fixture
def timed() -> Iterator[TimedProcess[tuple[str, int, bytes]]]:
    process = TimedProcess(lambda: functools.partial(prepared, "x"))
    yield process
    process.close()


def test_a_piece_that_takes_too_long_ends_its_process(timed: TimedProcess[Any]) -> None:
    _, pid, given = timed.make(0, b"a" * LARGE, timeout=60)
    assert given == b"a" * LARGE and pid != os.getpid()
    assert timed.make(0, timeout=60)[1] == pid
    with pytest.raises(TimeoutError):
        timed.make(9, timeout=0.1)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert timed.make(0, timeout=60)[1] != pid


def test_what_happens_in_a_timed_process_is_told(timed: TimedProcess[Any]) -> None:
    with pytest.raises(ReadError, match=r"^x: below zero$"):
        timed.make(-1, timeout=60)
    _, pid, _ = timed.make(0, timeout=60)
    threading.Timer(0.2, os.kill, (pid, signal.SIGKILL)).start()
    with pytest.raises(LostWorkerError):
        timed.make(9, timeout=60)
    bad = TimedProcess(lambda: functools.partial(prepared, "nowhere"))
    for _ in range(2):
        with pytest.raises(ReadError, match="is not there"):
            bad.make(0, timeout=60)
    bad.close()


def test_who_waits_for_others_too_long_is_told_so(timed: TimedProcess[Any]) -> None:
    timed.make(0, timeout=60)
    ended: list[object] = []

    def sleeping() -> None:
        with pytest.raises(TimeoutError):
            timed.make(9, timeout=1)
        ended.append(True)

    thread = threading.Thread(target=sleeping)
    thread.start()
    while not timed._lock.locked():
        time.sleep(0.01)
    with pytest.raises(TimeoutError):
        timed.make(0, timeout=0.1)
    assert not ended
    assert timed.make(0, timeout=60)[0] == "x"
    thread.join()
    assert ended


def test_a_timed_process_runs_no_script_again_and_ends_with_its_own(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import functools, os, sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from kopl_base.processes import TimedProcess\n"
        "from tests.kopl_base.test_processes import prepared\n"
        "process = TimedProcess(lambda: functools.partial(prepared, 'x'))\n"
        "print(process.make(0, timeout=60)[1], flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, script], stdout=subprocess.PIPE, text=True, check=False)
    [pid] = done.stdout.split()
    late = time.monotonic() + 20
    while time.monotonic() < late:
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    pytest.fail("the process has not ended")


def test_a_timed_process_takes_no_module_from_the_folder_at_hand(tmp_path: Path) -> None:
    """No more than the process that begins it does."""
    for name in ("random", "queue", "pickle", "kopl_base"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a file of the user')\n")
    (tmp_path / "scripts").mkdir()
    script = tmp_path / "scripts" / "script.py"
    script.write_text(
        "import functools, sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from kopl_base.processes import TimedProcess\n"
        "from tests.kopl_base.test_processes import prepared\n"
        "process = TimedProcess(lambda: functools.partial(prepared, 'x'))\n"
        "print(process.make(0, timeout=60)[0])\n"
        "process.close()\n"
    )
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("x\n", 0), done.stderr
