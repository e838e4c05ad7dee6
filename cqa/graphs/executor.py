"""Who makes pieces from a graph: this process, or several that map one copy of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from cqa.graphs import files as graph_files
from cqa.graphs.graph import Graph
from kopl_base.processes import Alone, Executor, Made, Maker, Processes

Prepare = Callable[[Graph], Maker[Made]]


@contextmanager
def executor_of(prepare: Prepare[Made], graph: Graph, workers: int) -> Iterator[Executor[Made]]:
    """What makes pieces by what ``prepare`` gives for the graph, in each of so many processes."""
    if workers == 1:
        yield Alone(prepare(graph))
        return
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kopl-graph-"))
        graph_files.save(graph, folder)
        yield Processes(partial(_opened, prepare, folder), workers, stack)


def _opened(prepare: Prepare[Made], folder: str) -> Maker[Made]:
    return prepare(graph_files.load(folder))
