"""Who makes the blocks of a run: this process, or several that map one copy of the graph.

Each process has a pipe of its own and ends when that is closed, so that none outlives a run that
was interrupted or killed.
"""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Generic, Protocol, TypeVar

from cqa.graphs import files as graph_files
from cqa.graphs.graph import Graph
from kb.errors import KoplError

# Blocks that are under way for each worker: one in work, one waiting.
AHEAD = 2

Barred = tuple[frozenset[int], frozenset[int]]
NONE: Barred = (frozenset(), frozenset())

Made = TypeVar("Made")
Given = TypeVar("Given", covariant=True)
Maker = Callable[[int, int, Barred], Made]
"""Makes a block: the number of the type, that of the block, what may not occur."""


class LostWorkerError(KoplError):
    """A worker that was ended from outside."""

    kind = "sampling"


class Crew(Protocol[Given]):
    """Makes blocks, at once or later; ``ahead`` is how many may wait."""

    ahead: int

    def submit(self, kind: int, number: int, barred: Barred = NONE) -> Callable[[], Given]:
        """What gives a block when it is called."""


class Alone(Generic[Made]):
    """This process itself."""

    ahead = 1

    def __init__(self, make: Maker[Made]) -> None:
        self._make = make

    def submit(self, kind: int, number: int, barred: Barred = NONE) -> Callable[[], Made]:
        return partial(self._make, kind, number, barred)


class Processes(Generic[Made]):
    """Several processes; ``prepare`` gives what makes blocks of a graph, in each of them."""

    def __init__(
        self, prepare: Callable[[Graph], Maker[Made]], graph: Graph, workers: int, stack: ExitStack
    ) -> None:
        self.ahead = AHEAD * workers
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kopl-graph-"))
        graph_files.save(graph, folder)
        # Fresh processes on every platform: a copy of this one may hold threads.
        context = multiprocessing.get_context("spawn")
        self._pipes: list[Connection] = []
        self._waiting: list[deque[int]] = [deque() for _ in range(workers)]
        self._made: dict[int, Made | BaseException] = {}
        self._count = 0
        for _ in range(workers):
            pipe, other = context.Pipe()
            process = context.Process(target=_serve, args=(other, prepare, folder), daemon=True)
            process.start()
            other.close()
            self._pipes.append(pipe)
            stack.callback(process.join)
            stack.callback(process.terminate)
            stack.callback(pipe.close)

    def submit(self, kind: int, number: int, barred: Barred = NONE) -> Callable[[], Made]:
        chosen = min(range(len(self._pipes)), key=lambda at: len(self._waiting[at]))
        try:
            self._pipes[chosen].send((kind, number, barred))
        except OSError:
            raise LostWorkerError("a worker was ended from outside") from None
        self._count += 1
        self._waiting[chosen].append(self._count)
        return partial(self._result, chosen, self._count)

    def _result(self, worker: int, token: int) -> Made:
        while token not in self._made:
            try:
                made = self._pipes[worker].recv()
            except (EOFError, OSError):
                raise LostWorkerError("a worker was ended from outside") from None
            self._made[self._waiting[worker].popleft()] = made
        found = self._made.pop(token)
        if isinstance(found, BaseException):
            raise found
        return found


def _serve(pipe: Connection, prepare: Callable[[Graph], Maker[object]], folder: str) -> None:
    """Make the blocks that are asked for until nobody asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends this
    make: Maker[object] | None = None
    with suppress(EOFError, OSError):
        while True:
            asked = pipe.recv()
            try:
                if make is None:
                    make = prepare(graph_files.load(folder))
                made = make(*asked)
            except Exception as error:
                made = error
            pipe.send(made)
