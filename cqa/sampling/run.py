"""Running samplers into a file: several types, one after the other, and going on after a stop.

Blocks of queries (`cqa.sampling.makers`) are put together in order whoever makes them, so that the
file depends on the seed alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from cqa.formats import samples as formats
from cqa.formats.json_lines import from_line
from cqa.graphs.graph import Graph
from cqa.sampling.makers import NONE, Barred, Block, Plan, QueryMaker, executor_of
from cqa.sampling.most import check_count
from cqa.sampling.options import SamplingError
from cqa.sampling.sample import Sample
from cqa.sampling.source import check_split
from kopl_base.errors import KoplError, ReadError
from kopl_base.packages import version
from kopl_base.processes import Alone, Maker
from kopl_base.progress import Progress
from kopl_base.runs import FileJob, Gathering, in_order, work

__all__ = ["Plan", "SamplingReport", "run", "stream"]

# A type is given up after so many blocks in a row that brought less than a tenth of a block.
FRUITLESS = 3

# Which block: the number of its type, its own within the type, and what it may not have.
Number = tuple[int, int, Barred]


@dataclass
class SamplingReport:
    """What a run did: kept queries, attempts, and the types that yielded fewer than wanted.

    ``ended``: it ended with its time; what it has of the type under way and those behind it is no
    sign of what they can yield.
    """

    kept: int = 0
    attempts: int = 0
    short: dict[str, int] = field(default_factory=dict)
    ended: bool = False


def run(
    plan: Plan,
    graph: Graph,
    output: Path | str,
    *,
    format: str | None = None,
    workers: int = 1,
    resume: bool = False,
    name: str = "",
    until: float | None = None,
) -> SamplingReport:
    """Sample the queries of a plan into a file or folder.

    ``format`` is one of `cqa.vocabularies.SAMPLE_FORMATS`, else the name's ending says it. ``name``
    is the graph's, for the data card. The blocks are made by so many ``workers`` on this machine.
    ``until`` is a time (of `time.monotonic`) at which the run ends: the file has what there is
    then, and ``resume`` goes on.

    A type that yields fewer queries than wanted is no error: the report has it. Raises
    SamplingError for what cannot be sampled and when workers ended, ReadError for a stopped run
    that does not fit, WriteError for a file that cannot be written; what was made stays in
    ``FILE.part`` then, and ``resume`` goes on with it.
    """
    _check(plan, graph, workers)
    format = format or formats.format_named(output)
    target = Path(os.path.realpath(output))
    formats.check_target(target, format, plan.split)
    formats.check_kinds(plan.kinds, format)
    queries = Queries(plan)
    job = FileJob(queries, target, _about(plan, graph), resume=resume)
    executor = executor_of(partial(_maker, plan), graph, workers)
    bar = _bar(plan, until, "--minutes M ends it before, --resume goes on")
    work(job, in_order(job, executor, until), bar)
    origin = _origin(name, plan) if format == "parquet" else None

    def write(lines: Path) -> None:
        formats.write_samples(target, _samples(lines), format, plan.split, origin)

    (job.finish if queries.complete else job.give)(write)
    return SamplingReport(queries.kept, queries.attempts, queries.short, not queries.complete)


def stream(plan: Plan, graph: Graph, *, until: float | None = None) -> Iterator[Sample]:
    """The queries of a plan, one by one, made in this process; the same as `run` gives.

    They end at the time ``until`` (of `time.monotonic`).
    """
    _check(plan, graph, 1)
    queries = Queries(plan)
    bar = _bar(plan, until, "--minutes M ends it before", shown=False)
    executor = nullcontext(Alone(_maker(plan, graph)))
    for block, made in in_order(queries, executor, until):
        yield from map(_sample, queries.take(block, made))
        bar.reach(queries.kept)


def _maker(plan: Plan, graph: Graph) -> Maker[Block]:
    return QueryMaker(plan, graph).block


def _check(plan: Plan, graph: Graph, workers: int) -> None:
    if workers < 1:
        raise SamplingError(f"a number of workers from 1 on was expected, not {workers}")
    check_split(graph, plan.split)
    ordered = plan.options.draw == "betae"
    check_count(plan.kinds, plan.count, graph.full(plan.split), ordered=ordered)


def _bar(plan: Plan, until: float | None, advice: str, *, shown: bool | None = None) -> Progress:
    """The bar of a run; what takes long is told with the advice, unless its time has an end."""
    total = plan.count * len(plan.kinds)
    told = advice if until is None else None
    return Progress("sampling queries", total, shown=shown, advice=told)


# --- putting blocks together --------------------------------------------------------------------


class Queries(Gathering[Block]):
    """The queries of a plan so far, type by type.

    A line has what tells one query from others, and its JSON. ``attempts`` is how many were drawn;
    ``short`` has the types that yielded fewer queries than wanted, and how many.
    """

    unit, failure = "queries", SamplingError

    def __init__(self, plan: Plan) -> None:
        self.plan, self.attempts = plan, 0
        self.short: dict[str, int] = {}
        # The type that is under way, the block of it that comes next, and how many before that one
        # brought next to nothing.
        self._at = self._number = self._fruitless = 0
        self._type = plan.kept()

    @property
    def complete(self) -> bool:
        """Whether no type is left."""
        return self._at == len(self.plan.kinds)

    def blocks(self, workers: int) -> Iterator[Number]:
        first = range(self._number, self.plan.blocks)
        if self.complete:
            return
        if not first:  # its blocks had too little that may be kept
            yield self._at, self._number, self._type.barred
        yield from ((self._at, number, NONE) for number in first)
        for kind in range(self._at + 1, len(self.plan.kinds)):
            yield from ((kind, number, NONE) for number in range(self.plan.blocks))

    def take(self, block: Number, made: Block) -> list[str]:
        plan, new = self.plan, []
        for line in made.lines:
            if len(self._type) == plan.count:
                break
            if self._type.add(line.key, line.relations, line.anchors):
                new.append(f"{line.key}\t{line.text}")
        self.attempts += made.attempts
        self.kept += len(new)
        self._number += 1
        self._fruitless = self._fruitless + 1 if len(new) * 10 < plan.size else 0
        complete = len(self._type) == plan.count
        if complete or self._fruitless == FRUITLESS:
            if not complete:
                self.short[plan.kinds[self._at].id] = len(self._type)
            self._at, self._number, self._fruitless = self._at + 1, 0, 0
            self._type = plan.kept()
        return new

    @property
    def settled(self) -> bool:
        return self._number == 0  # a type begins

    def state(self) -> dict[str, Any]:
        place = {"type": self._at, "block": self._number, "fruitless": self._fruitless}
        return {**place, "short": self.short}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._at, self._number, self._fruitless, self.kept = (
            int(state[name]) for name in ("type", "block", "fruitless", "kept")
        )
        self.short = {str(name): int(count) for name, count in state["short"].items()}

    def recall(self, line: str) -> None:
        sample = _sample(line)
        self._type.add(line.partition("\t")[0], sample.relations, sample.anchors)


def _sample(line: str) -> Sample:
    return from_line(line.partition("\t")[2])


def _samples(path: Path) -> Iterator[Sample]:
    with open(path, encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, 1):
            try:
                yield _sample(line)
            except KoplError as error:
                raise ReadError(
                    f"{error}; remove it and {path.name}.json to begin anew",
                    place=f"line {number}",
                    source=str(path),
                ) from None


def _about(plan: Plan, graph: Graph) -> dict[str, object]:
    """What must be the same for a stopped run to go on."""
    types = json.dumps([[kind.id, kind.formula, kind.form] for kind in plan.kinds])
    digest = hashlib.blake2b(types.encode(), digest_size=8).hexdigest()
    return {
        "version of the toolkit": version(),
        "graph": graph.fingerprint,
        "list of types": f"{len(plan.kinds)} types, {digest}",
        "number of queries": plan.count,
        "seed": plan.seed,
        "split": plan.split,
        **asdict(plan.options),
    }


def _origin(name: str, plan: Plan) -> dict[str, object]:
    """What a data card says of how the queries were sampled, from the graph of that name."""
    return {
        "graph": name,
        "split": plan.split,
        "types": len(plan.kinds),
        "queries of a type": plan.count,
        "seed": plan.seed,
        **{name.replace("_", " "): value for name, value in asdict(plan.options).items()},
    }
