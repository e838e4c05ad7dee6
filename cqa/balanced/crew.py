"""Who makes the blocks of a benchmark: this process, or several that map one copy of the graph."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from typing import Any

from cqa.balanced.blocks import Candidate, Task, Worker
from cqa.graphs import files as graph_files
from cqa.graphs.graph import Graph
from cqa.sampling.options import SamplingError

Make = Callable[[int, Sequence[Task]], Iterator[list[Candidate]]]
"""Makes the blocks of some tasks of one type, in their order."""


def alone(worker: Worker) -> Make:
    """This process makes the blocks."""

    def make(kind: int, tasks: Sequence[Task]) -> Iterator[list[Candidate]]:
        for task in tasks:
            yield worker.block(kind, task)

    return make


def processes(worker: Worker, graph: Graph, workers: int, stack: ExitStack) -> Make:
    """Several processes make the blocks; they end with the stack.

    Iterating raises SamplingError when one of them has ended before its time.
    """
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kopl-graph-"))
    graph_files.save(graph, folder)
    # Fresh processes on every platform: a copy of this one may hold threads.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_begin, initargs=(folder, *worker.settings)
    )
    stack.callback(pool.shutdown, wait=True, cancel_futures=True)

    def make(kind: int, tasks: Sequence[Task]) -> Iterator[list[Candidate]]:
        try:
            yield from pool.map(_work, [kind] * len(tasks), tasks)
        except BrokenProcessPool:
            raise SamplingError(
                "a worker process ended; go on with --resume (and fewer workers, if memory was"
                " short)"
            ) from None

    return make


_WORKER: Worker


def _begin(folder: str, *settings: Any) -> None:
    """Prepare a process."""
    global _WORKER
    _WORKER = Worker(graph_files.load(folder), *settings)


def _work(kind: int, task: Task) -> list[Candidate]:
    return _WORKER.block(kind, task)
