"""Making blocks of queries: what is to be sampled, and what makes its blocks.

A block is some queries of one type, drawn by a generator that the seed, the type and the block's
number begin.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import NamedTuple

from cqa.formats.json_lines import to_line
from cqa.graphs import files as graph_files
from cqa.graphs.graph import Graph
from cqa.sampling.kinds import Sampler, sampler
from cqa.sampling.options import Options
from cqa.sampling.sample import Kind
from cqa.sampling.source import Source
from kopl_base.processes import Alone, Executor, Made, Maker, Processes

# The relations and the anchors that a block may not have.
Barred = tuple[frozenset[int], frozenset[int]]
NONE: Barred = (frozenset(), frozenset())

# Queries of a block; small enough that a stopped run loses little.
BLOCK = 50
# A block is given up after so many attempts for each query that it is to have, or this many.
TRIES, FEWEST_TRIES = 100, 3000


class Kept:
    """What is kept of the queries of one type: no two alike, no relation or anchor too often."""

    def __init__(self, relation_cap: int | None, anchor_cap: int | None) -> None:
        self._caps = relation_cap, anchor_cap
        self._keys: set[str] = set()
        self._uses: tuple[Counter[int], Counter[int]] = Counter(), Counter()

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def barred(self) -> tuple[frozenset[int], frozenset[int]]:
        """The relations and the anchors that may not occur again."""
        found = []
        for cap, uses in zip(self._caps, self._uses, strict=True):
            full = () if cap is None else (n for n, count in uses.items() if count >= cap)
            found.append(frozenset(full))
        return found[0], found[1]

    def add(self, key: str, relations: Iterable[int], anchors: Iterable[int]) -> bool:
        """Keep a query if it may be kept; whether it was."""
        if key in self._keys:
            return False
        given = tuple(relations), tuple(anchors)
        for cap, uses, numbers in zip(self._caps, self._uses, given, strict=True):
            if cap is not None and any(uses[number] >= cap for number in numbers):
                return False
        self._keys.add(key)
        for uses, numbers in zip(self._uses, given, strict=True):
            uses.update(numbers)
        return True


@dataclass(frozen=True)
class Plan:
    """What is to be sampled: ``count`` queries of each type for a split, by the seed."""

    kinds: tuple[Kind, ...]
    count: int
    seed: int = 0
    split: str = "test"
    options: Options = field(default_factory=Options)

    @property
    def size(self) -> int:
        """The queries of a block."""
        return min(BLOCK, self.count)

    @property
    def blocks(self) -> int:
        """The blocks that a type needs if nothing of them is left out."""
        return -(-self.count // self.size) if self.count else 0

    def kept(self) -> Kept:
        """What keeps a type's queries apart, and shares within their limits."""
        options = self.options
        relations, anchors = (
            None if share is None else max(1, int(share * self.count + 1e-9))
            for share in (options.relation_share, options.anchor_share)
        )
        return Kept(relations, anchors)


class Line(NamedTuple):
    """A query as a line of a file, what tells it from others, its relations and anchors."""

    key: str
    text: str
    relations: tuple[int, ...]
    anchors: tuple[int, ...]


class Block(NamedTuple):
    """A finished block: its lines, and how many queries were drawn for them."""

    lines: list[Line]
    attempts: int


class QueryMaker:
    """Makes blocks of a plan from one graph."""

    def __init__(self, plan: Plan, graph: Graph) -> None:
        self._plan = plan
        self._source = Source(graph, plan.split, plan.options.walk)
        self._last: tuple[int, Sampler] | None = None

    def block(self, kind: int, number: int, barred: Barred = NONE) -> Block:
        """A block of one type."""
        if self._last is None or self._last[0] != kind:
            self._last = kind, sampler(self._plan.kinds[kind], self._source, self._plan.options)
        plan, drawn = self._plan, self._last[1]
        random = Random(f"{plan.seed}/{plan.kinds[kind].formula}/{number}")
        keys: set[str] = set()
        lines: list[Line] = []
        attempts = 0
        while len(lines) < plan.size and attempts < max(FEWEST_TRIES, TRIES * plan.size):
            attempts += 1
            found = drawn.attempt(random)
            if found is None or found[0] in keys:
                continue
            key, sample = found
            relations, anchors = sample.relations, sample.anchors
            if not barred[0].isdisjoint(relations) or not barred[1].isdisjoint(anchors):
                continue
            keys.add(key)
            lines.append(Line(key, to_line(sample), relations, anchors))
        return Block(lines, attempts)


# --- who makes blocks --------------------------------------------------------------------------

Prepare = Callable[[Graph], Maker[Made]]
"""Gives what makes blocks from a graph."""


@contextmanager
def executor_of(prepare: Prepare[Made], graph: Graph, workers: int) -> Iterator[Executor[Made]]:
    """This process, or so many that map one copy of the graph; each prepares for itself."""
    if workers == 1:
        yield Alone(prepare(graph))
        return
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kopl-graph-"))
        graph_files.save(graph, folder)
        yield Processes(partial(_opened, prepare, folder), workers, stack)


def _opened(prepare: Prepare[Made], folder: str) -> Maker[Made]:
    return prepare(graph_files.load(folder))
