"""Who does the pieces of a long work: this process, or several at a time.

A piece is asked for by its number or whatever else says which it is; an executor gives results in
the order in which they are called for, whoever made them.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any, Generic, Protocol, TypeVar

from kopl_base.errors import KoplError

# Pieces that are under way for each process: one in work, one waiting.
AHEAD = 2

Made = TypeVar("Made")
Given = TypeVar("Given", covariant=True)
Maker = Callable[..., Made]
"""Makes a piece from what says which it is."""


class LostWorkerError(KoplError):
    """A worker that was ended from outside, or could not be had any more."""

    kind = "worker"


class Executor(Protocol[Given]):
    """Makes pieces, at once or later, as many ``workers`` at a time.

    More than ``ahead`` of them need not be asked for before the first is called for.
    """

    @property
    def workers(self) -> int: ...

    @property
    def ahead(self) -> int: ...

    def submit(self, *piece: object) -> Callable[[], Given]:
        """What gives a piece when it is called; it raises what making the piece raised."""


class Alone(Generic[Made]):
    """This process itself; a piece is made when it is called for."""

    workers = ahead = 1

    def __init__(self, make: Maker[Made]) -> None:
        self._make = make

    def submit(self, *piece: object) -> Callable[[], Made]:
        return partial(self._make, *piece)


class Processes(Generic[Made]):
    """Several processes; ``prepare`` gives what makes pieces, once in each of them.

    A thread of this process hands one process its pieces, so that none waits for another or for
    whoever takes the results. All end with the ``stack``, and when this process is killed.
    """

    def __init__(self, prepare: Callable[[], Maker[Made]], workers: int, stack: ExitStack) -> None:
        self.workers, self.ahead = workers, AHEAD * workers
        # Fresh processes on every platform: a copy of this one may hold threads and open stores.
        context = multiprocessing.get_context("spawn")
        self._local = threading.local()
        free: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        self._threads = ThreadPoolExecutor(workers, initializer=self._take, initargs=(free,))
        # Last in, first out: the processes end, which frees their threads, then the rest goes.
        pipes = stack.enter_context(ExitStack())
        stack.callback(self._threads.shutdown, wait=True, cancel_futures=True)
        for _ in range(workers):
            pipe, other = context.Pipe()
            pipes.callback(pipe.close)
            with other, _undisturbed():
                process = context.Process(target=_serve, args=(other, prepare), daemon=True)
                process.start()
                stack.callback(process.join)
                stack.callback(process.terminate)
            free.put(pipe)
        # A thread in line for a piece that was never begun need not take it up any more.
        stack.callback(self._threads.shutdown, wait=False, cancel_futures=True)

    def submit(self, *piece: object) -> Callable[[], Made]:
        return self._threads.submit(self._made, piece).result

    def _take(self, free: queue.SimpleQueue[Connection]) -> None:
        self._local.pipe = free.get()

    def _made(self, piece: tuple[object, ...]) -> Made:
        pipe: Connection = self._local.pipe
        try:
            pipe.send(piece)
            found: Made | _Raised = pipe.recv()
        except (EOFError, OSError):
            raise LostWorkerError("a worker was ended from outside") from None
        return _or_raise(found)


class TimedProcess(Generic[Made]):
    """One process, which is ended when a piece takes too long; the next piece has another one.

    ``source`` says in this process what prepares the maker of pieces in the other one. Safe to
    share between threads, whose pieces are made one after the other. Unlike those of `Processes` it
    does not run the user's script again, which need not be made for that.
    """

    def __init__(self, source: Callable[[], Callable[[], Maker[Made]]]) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None

    def make(self, *piece: object, timeout: float) -> Made:
        """A piece, within so many seconds; those in which the process is prepared do not count.

        Raises TimeoutError, and LostWorkerError when the process ends meanwhile.
        """
        late = time.monotonic() + timeout
        if not self._lock.acquire(timeout=timeout):
            raise TimeoutError
        try:
            begin = time.monotonic()
            pipe = self._prepared()
            late += time.monotonic() - begin
            pipe.send(piece)
            if not pipe.poll(max(0.0, late - time.monotonic())):
                self._end()
                raise TimeoutError
            found: Made | _Raised = pipe.recv()
        except (EOFError, ConnectionError):
            self._end()
            raise LostWorkerError("a worker was ended from outside") from None
        finally:
            self._lock.release()
        return _or_raise(found)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _prepared(self) -> Connection:
        if self._pipe is not None and self._process is not None and self._process.poll() is None:
            return self._pipe
        self._end()
        pipe, other = multiprocessing.Pipe()
        with other:
            self._pipe = pipe
            self._process = subprocess.Popen(
                [sys.executable, "-c", _SERVE, str(other.fileno()), *sys.path],
                stdin=subprocess.PIPE,  # which ends with this process, and the other one with it
                pass_fds=[other.fileno()],
                start_new_session=True,  # an interrupt from the keyboard is for this one alone
            )
        pipe.send(self._source())
        pipe.send(None)
        found: _Raised | None = pipe.recv()
        if isinstance(found, _Raised):
            self._end()
        _or_raise(found)
        return pipe

    def _end(self) -> None:
        process, self._process = self._process, None
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            pipe.close()
        if process is not None:
            process.kill()
            process.wait()
            assert process.stdin is not None
            process.stdin.close()


# Modules are looked for where this process looks for them, and not first in the folder at hand,
# which is what Python does for a text that it is given.
_SERVE = (
    "import sys; sys.path[:] = sys.argv[2:];"
    " from kopl_base.processes import serve; serve(int(sys.argv[1]))"
)


def serve(handle: int) -> None:
    """Be the process of a `TimedProcess`."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    with Connection(handle) as pipe, suppress(EOFError, OSError):
        _serve(pipe, pipe.recv())


def _end_with_input() -> None:
    os.read(sys.stdin.fileno(), 1)  # no buffer, which would be locked when this process ends
    os._exit(1)


def _or_raise(found: Made | _Raised) -> Made:
    if isinstance(found, _Raised):
        raise found.error from _InWorker(found.trace)
    return found


@contextmanager
def _undisturbed() -> Iterator[None]:
    """An interrupt meanwhile comes afterwards, and processes begin deaf to interrupts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    resource_tracker.ensure_running()  # which hears interrupts again when it has been started
    came: list[object] = []
    handler = signal.signal(signal.SIGINT, lambda *given: came.append(given))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        if came:
            signal.raise_signal(signal.SIGINT)


class _Raised:
    """What making a piece raised, and where in the worker."""

    def __init__(self, error: Exception) -> None:
        self.error, self.trace = error, traceback.format_exc()


class _InWorker(Exception):
    """The place of an error in the worker, as the cause of what is raised here."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def _serve(pipe: Connection, prepare: Callable[[], Maker[object]]) -> None:
    """Make the pieces that are asked for until nobody asks; for None only prepare to."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends this
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    make: Maker[object] | None = None
    with suppress(EOFError, OSError):
        while True:
            piece = pipe.recv()
            try:
                if make is None:
                    make = prepare()
                data = ForkingPickler.dumps(None if piece is None else make(*piece))
            except Exception as error:
                data = _pickled(error)
            pipe.send_bytes(data)


def _pickled(error: Exception) -> Any:
    """An error as `Processes` reads it; a plain one in place of one that cannot be sent."""
    try:
        data = ForkingPickler.dumps(_Raised(error))
        pickle.loads(data)
        return data
    except Exception:
        return ForkingPickler.dumps(_Raised(RuntimeError(f"{type(error).__name__}: {error}")))


def _end_with_parent() -> None:
    """End this process when its parent has ended, also by a kill, after which nobody would."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
