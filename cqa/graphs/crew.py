"""Who makes pieces from a graph: this process, or several that map one copy of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from cqa.graphs import files as graph_files
from cqa.graphs.graph import Graph
from kopl_base.processes import Alone, Crew, Made, Maker, Processes

Prepare = Callable[[Graph], Maker[Made]]


def crew_of(prepare: Prepare[Made], graph: Graph, workers: int, stack: ExitStack) -> Crew[Made]:
    """A crew for what ``prepare`` gives for the graph, in each process; it ends with the stack."""
    if workers == 1:
        return Alone(prepare(graph))
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kopl-graph-"))
    graph_files.save(graph, folder)
    return Processes(partial(_opened, prepare, folder), workers, stack)


def _opened(prepare: Prepare[Made], folder: str) -> Maker[Made]:
    return prepare(graph_files.load(folder))
