"""Benchmarks that are balanced by hardness: as many pairs for each thing that a type reduces to.

After "Is Complex Query Answering Really Complex?" (2025): for every type the same number of (query,
answer) pairs for each simpler type that it can reduce to and for full inference; no relation and no
anchor in more than a fifth of a type's pairs, each counted once for a query. All answers of a query
are taken while there is room, and a random part at the end.

Blocks of candidates are made by whoever is free and put together in the order of their numbers; for
which categories they are drawn is decided once a round. So the benchmark depends on the seed alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cqa.balanced.blocks import Candidate, Settings, Task, Worker
from cqa.balanced.fill import Filling, capped
from cqa.balanced.journal import Journal
from cqa.formats.json_lines import to_object
from cqa.graphs.crew import crew_of
from cqa.graphs.graph import Graph
from cqa.hardness.batch import Grounded
from cqa.sampling.most import LARGEST
from cqa.sampling.options import SamplingError
from cqa.sampling.sample import Sample, rows_without
from cqa.types.efok_text import write_formula
from cqa.types.registry import TreeType, by_name
from cqa.types.tree import Tree
from kopl_base.errors import KoplError, WriteError
from kopl_base.processes import Alone, Crew, LostWorkerError, Maker
from kopl_base.progress import ProgressBar
from kopl_base.stream import writing

# The types of the hardness paper, 4p and 4i among them. 1p, 2in, 2nu1p and 2u have one positive
# link in each disjunct and so full inference alone.
TYPES = (
    "1p", "2p", "3p", "4p", "2i", "3i", "4i", "1p2i", "2i1p", "2u", "2u1p",
    "2in", "3in", "2in1p", "2pi1pn", "2nu1p",
)  # fmt: skip

# name -> the reader's format (None: found), triples of train, valid and test as published.
BENCHMARKS: dict[str, tuple[str | None, tuple[int, int, int]]] = {
    "fb15k237+": (None, (272_115, 17_526, 20_438)),
    "nell995+": (None, (114_213, 14_324, 14_267)),
    "icews18+": ("temporal", (213_304, 25_048, 24_689)),
}

QUERIES, ABOUT = "queries.jsonl", "about.json"

NOTE = (
    "each line of queries.jsonl is a query for one category, which reduces_to names; hard has its"
    " answers that reduce to it, easy all its other answers on the full graph, to be filtered"
)

ADVICE = "it can be stopped at any time, and --resume goes on"

# Blocks of a round.
ROUND = 8


@dataclass(frozen=True)
class Plan:
    """What a benchmark is to hold.

    ``pairs``: of each type for each category; ``share``: the largest share of a type's pairs that
    one relation (in either direction) or anchor is in; ``most``: the most hard answers of a query
    for each free variable. Raises SamplingError for figures out of range.
    """

    types: tuple[str, ...] = TYPES
    pairs: int = 10_000
    seed: int = 0
    split: str = "test"
    share: float = 0.2
    most: int = 100

    def __post_init__(self) -> None:
        if self.pairs < 1 or self.most < 1:
            raise SamplingError("the numbers of pairs and of hard answers are 1 or more")
        if self.pairs > LARGEST:
            raise SamplingError(f"at most {LARGEST:,} pairs of each category can be asked for")
        if not 0 < self.share <= 1:
            raise SamplingError(f"a share lies above 0 and is at most 1, not {self.share}")
        if len(set(self.types)) < len(self.types) or not self.types:
            raise SamplingError("the types of a benchmark are different ones, one at least")

    def shapes(self) -> list[tuple[str, Grounded]]:
        """The types by their names; raises QueryError for one that is not known."""
        rows = [(name, by_name(name)) for name in self.types]
        return [(name, row.tree if isinstance(row, TreeType) else row.query) for name, row in rows]


@dataclass(frozen=True)
class Outcome:
    """What a benchmark holds of one type.

    ``pairs`` by category, ``wanted`` of each; ``relation`` and ``anchor`` are the largest shares of
    the pairs that one is in.
    """

    queries: int
    pairs: dict[str, int]
    wanted: int
    relation: float
    anchor: float

    @property
    def short(self) -> dict[str, int]:
        """The categories with fewer pairs than wanted."""
        return {name: count for name, count in self.pairs.items() if count < self.wanted}


def run(
    plan: Plan,
    graph: Graph,
    folder: Path | str,
    *,
    workers: int = 1,
    resume: bool = False,
    name: str = "",
) -> dict[str, Outcome]:
    """Build a benchmark in a folder: `queries.jsonl`, and `about.json` with what is in it.

    A line of `queries.jsonl` is a sampled query (`cqa.formats.json_lines`) for one category, named
    in "reduces_to": "hard" has the answers that reduce to it, "easy" all other answers, which an
    evaluation filters. What is done of each type lies in the folder until all is done, and
    ``resume`` goes on with it.

    Raises SamplingError for a graph without missing links, for caps that cannot be held, ReadError
    for a stopped run that does not fit, WriteError.
    """
    if workers < 1:
        raise KoplError(f"{workers} workers cannot build anything; give 1 or more")
    shapes = plan.shapes()
    if plan.split not in graph.splits or not len(graph.missing(plan.split)):
        raise SamplingError(f"the graph has no missing links for queries of {plan.split!r}")
    folder = Path(folder)
    about = {**asdict(plan), "types": list(plan.types), "graph": graph.fingerprint}
    if folder.exists() and not folder.is_dir():
        raise WriteError(f"{folder}: cannot be written: it is no folder")
    if (folder / QUERIES).exists():
        raise WriteError(f"{folder}: has a benchmark already; give another folder or remove it")
    worker = Worker(graph, shapes, plan.split, plan.seed, plan.most)
    fillings = [
        Filling(kind, sorted(worker.maker(at).ways), plan.pairs, plan.share, plan.seed)
        for at, (kind, _) in enumerate(shapes)
    ]
    journal = Journal(folder, about, resume=resume)
    outcomes: dict[str, Outcome] = {}
    with ExitStack() as stack:
        crew: Crew[list[Candidate]] = Alone(worker.block)
        if workers > 1:
            crew = crew_of(partial(_maker, worker.settings), graph, workers, stack)
        total = plan.pairs * sum(len(filling.categories) for filling in fillings)
        bar = stack.enter_context(ProgressBar("building the benchmark", total, advice=ADVICE))
        held = []
        for at, filling in enumerate(fillings):
            journal.restore(filling)
            _fill(filling, at, crew, journal, bar)
            held.append(capped(filling, plan.share))
        with writing(folder / QUERIES) as file:
            for filling, kept, (_, shape) in zip(fillings, held, shapes, strict=True):
                outcomes[filling.name] = _outcome(kept, filling, plan)
                for line in _lines(filling.name, shape, kept):
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
    shown = {kind: {**asdict(found), "short": found.short} for kind, found in outcomes.items()}
    with writing(folder / ABOUT) as file:
        json.dump(
            {"name": name, "note": NOTE, **about, "content": shown},
            file,
            indent=1,
            ensure_ascii=False,
        )
        file.write("\n")
    journal.finish()
    return outcomes


def _maker(settings: Settings, graph: Graph) -> Maker[list[Candidate]]:
    return Worker(graph, *settings).block


def _fill(
    filling: Filling,
    kind: int,
    crew: Crew[list[Candidate]],
    journal: Journal,
    bar: ProgressBar,
) -> None:
    """Bring one type to as many pairs as it can have."""
    before = filling.total
    bar.advance(before)
    while filling.open:
        relations, anchors = filling.barred()
        wanted = tuple(filling.open)
        tasks = [
            Task(filling.round * ROUND + number, wanted, relations, anchors)
            for number in range(ROUND)
        ]
        blocks = [crew.submit(kind, task) for task in tasks]
        try:
            added = [
                candidate
                for task, block in zip(tasks, blocks, strict=True)
                for candidate in filling.add(block(), task.number)
            ]
        except LostWorkerError as error:
            raise SamplingError(
                f"{error}; go on with --resume (and fewer workers, if memory was short)"
            ) from None
        filling.end_round()
        journal.save(filling, added)
        bar.advance(filling.total - before)
        before = filling.total


def _outcome(kept: Sequence[Candidate], filling: Filling, plan: Plan) -> Outcome:
    pairs = dict.fromkeys(filling.categories, 0)
    uses: tuple[Counter[int], Counter[int]] = Counter(), Counter()
    for candidate in kept:
        size = sum(map(len, candidate.pairs.values()))
        for name, rows in candidate.pairs.items():
            pairs[name] += len(rows)
        for counter, numbers in zip(uses, (candidate.relations, candidate.anchors), strict=True):
            counter.update(dict.fromkeys(numbers, size))
    total = max(1, sum(pairs.values()))
    relation, anchor = (max(counter.values(), default=0) / total for counter in uses)
    return Outcome(len(kept), pairs, plan.pairs, round(relation, 4), round(anchor, 4))


def _lines(name: str, shape: Grounded, kept: Sequence[Candidate]) -> Iterator[dict[str, Any]]:
    """A query of the type for each of its categories."""
    formula = shape.formula if isinstance(shape, Tree) else write_formula(shape)
    for candidate in kept:
        for category, hard in sorted(candidate.pairs.items()):
            others = rows_without(candidate.full, hard)
            sample = Sample(name, formula, candidate.query, others, hard, hard[:0])
            yield {**to_object(sample), "reduces_to": category}
