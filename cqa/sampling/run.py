"""Running samplers into a file: blocks by several processes, and going on after a stop.

A block is some queries of one type, drawn by a generator that the seed, the type and the block's
number begin. Blocks are put together in order whoever makes them, so that the file depends on the
seed alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from time import monotonic
from typing import NamedTuple

from cqa.formats.json_lines import to_line
from cqa.graphs.crew import crew_of
from cqa.graphs.graph import Graph
from cqa.sampling.kinds import Sampler, sampler
from cqa.sampling.most import check_count
from cqa.sampling.options import Options, SamplingError
from cqa.sampling.part import Kept, Line, Part
from cqa.sampling.sample import Kind, Sample
from cqa.sampling.source import Source, check_split
from kopl_base.processes import Alone, Crew, LostWorkerError, Maker
from kopl_base.progress import ProgressBar

# The relations and the anchors that a block may not have.
Barred = tuple[frozenset[int], frozenset[int]]
NONE: Barred = (frozenset(), frozenset())

# Queries of a block; small enough that a stopped run loses little.
BLOCK = 50
# A block is given up after so many attempts for each query that it is to have, or this many.
TRIES, FEWEST_TRIES = 100, 3000
# A type is given up after so many blocks in a row that brought less than a tenth of a block.
FRUITLESS = 3


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


class Block(NamedTuple):
    """A finished block: its lines, and how many queries were drawn for them."""

    lines: list[Line]
    attempts: int


@dataclass
class Report:
    """What a run did: kept queries, attempts, and the types that yielded fewer than wanted.

    ``ended``: it ended with its time; what it has of the type under way and those behind it is no
    sign of what they can yield.
    """

    kept: int = 0
    attempts: int = 0
    short: dict[str, int] = field(default_factory=dict)
    ended: bool = False


class Worker:
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


def _maker(plan: Plan, graph: Graph) -> Maker[Block]:
    return Worker(plan, graph).block


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
) -> Report:
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
    from cqa.formats.parquet import Origin
    from cqa.formats.samples import check_kinds, check_target, format_named, write_samples

    _check(plan, graph, workers)
    format = format or format_named(output)
    target = Path(os.path.realpath(output))
    check_target(target, format, plan.split)
    check_kinds(plan.kinds, format)
    part = Part(target, _about(plan, graph), plan.kept, resume=resume)
    try:
        report = _fill(part, plan, graph, workers, until)
    finally:
        part.close()
    origin = Origin(name, plan) if format == "parquet" else None
    give = part.give_to if report.ended else part.finish_with
    give(lambda samples: write_samples(target, samples, format, plan.split, origin))
    return report


def stream(plan: Plan, graph: Graph, *, until: float | None = None) -> Iterator[Sample]:
    """The queries of a plan, one by one, made in this process; the same as `run` gives.

    They end at the time ``until`` (of `time.monotonic`).
    """
    from cqa.formats.json_lines import from_line

    _check(plan, graph, 1)
    crew: Crew[Block] = Alone(_maker(plan, graph))
    done = 0
    bar = _bar(plan, until, "--minutes M ends it before", shown=False)
    for kind in range(len(plan.kinds)):
        kept = plan.kept()
        fruitless = number = 0
        while len(kept) < plan.count and fruitless < FRUITLESS:
            if _over(until):
                return
            barred = NONE if number < plan.blocks else kept.barred
            block = crew.submit(kind, number, barred)()
            before = len(kept)
            for line in block.lines:
                if len(kept) == plan.count:
                    break
                if kept.add(line.key, line.relations, line.anchors):
                    yield from_line(line.text)
            fruitless = _fruitless(fruitless, len(kept) - before, plan)
            number += 1
            bar.reach(done + len(kept))
        done += len(kept)


def _check(plan: Plan, graph: Graph, workers: int) -> None:
    if workers < 1:
        raise SamplingError(f"a number of workers from 1 on was expected, not {workers}")
    check_split(graph, plan.split)
    ordered = plan.options.draw == "betae"
    check_count(plan.kinds, plan.count, graph.full(plan.split), ordered=ordered)


def _fruitless(before: int, new: int, plan: Plan) -> int:
    """How many blocks in a row have brought next to nothing, after one more."""
    return before + 1 if new * 10 < plan.size else 0


def _over(until: float | None) -> bool:
    return until is not None and monotonic() >= until


def _bar(plan: Plan, until: float | None, advice: str, *, shown: bool | None = None) -> ProgressBar:
    """The bar of a run; what takes long is told with the advice, unless its time has an end."""
    total = plan.count * len(plan.kinds)
    told = advice if until is None else None
    return ProgressBar("sampling queries", total, shown=shown, advice=told)


def _fill(part: Part, plan: Plan, graph: Graph, workers: int, until: float | None) -> Report:
    """Bring the unfinished file to as many queries as its plan wants."""
    report = Report()
    try:
        with ExitStack() as stack:
            bar = stack.enter_context(
                _bar(plan, until, "--minutes M ends it before, --resume goes on")
            )
            crew = crew_of(partial(_maker, plan), graph, workers, stack)
            _put_together(part, plan, crew, bar, report, until)
    except LostWorkerError as error:
        raise SamplingError(
            f"{error}; {part.path} has {part.kept} queries: go on with"
            " --resume (and fewer workers, if memory was short)"
        ) from None
    report.kept, report.short = part.kept, part.short
    return report


def _put_together(
    part: Part,
    plan: Plan,
    crew: Crew[Block],
    bar: ProgressBar,
    report: Report,
    until: float | None,
) -> None:
    first, done = part.at, part.block
    units = (
        (kind, number)
        for kind in range(first, len(plan.kinds))
        for number in range(done if kind == first else 0, plan.blocks)
    )
    waiting: deque[tuple[int, int, Callable[[], Block]]] = deque()

    def more() -> None:
        for kind, number in islice(units, crew.ahead - len(waiting)):
            waiting.append((kind, number, crew.submit(kind, number)))

    more()
    while part.at < len(plan.kinds):
        if _over(until):
            report.ended = True
            return
        at, number = part.at, part.block
        if waiting and waiting[0][:2] == (at, number):
            result = waiting.popleft()[2]
        else:
            result = crew.submit(at, number, part.type.barred)
        more()
        block = result()
        new = part.add(block.lines, plan.count)
        report.attempts += block.attempts
        part.fruitless = _fruitless(part.fruitless, new, plan)
        bar.reach(part.kept)
        complete = len(part.type) == plan.count
        if complete or part.fruitless == FRUITLESS:
            if not complete:
                part.short[plan.kinds[at].id] = len(part.type)
            part.next_type()
            # Blocks of the type that are not wanted any more.
            while waiting and waiting[0][0] == at:
                waiting.popleft()
        part.save_place()


def _about(plan: Plan, graph: Graph) -> dict[str, object]:
    """What must be the same for a stopped run to go on."""
    from kopl_base.packages import version

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
