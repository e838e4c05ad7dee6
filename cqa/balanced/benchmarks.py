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
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cqa.answering.template import Grounded
from cqa.balanced.blocks import Candidate, CandidateMaker, Settings, Task
from cqa.balanced.fill import Filling, capped
from cqa.balanced.journal import Journal
from cqa.formats.json_lines import to_object
from cqa.graphs.graph import Graph
from cqa.sampling.makers import executor_of
from cqa.sampling.most import LARGEST
from cqa.sampling.options import SamplingError
from cqa.sampling.sample import Sample, rows_without
from cqa.types.efok_text import write_formula
from cqa.types.registry import TreeType, by_name
from cqa.types.tree import Tree
from kopl_base.errors import KoplError, WriteError
from kopl_base.processes import Alone, Executor, Maker
from kopl_base.progress import Progress
from kopl_base.runs import in_order, work
from kopl_base.stream import writing
from kopl_base.unfinished import GO_ON

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
class BenchmarkPlan:
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
    plan: BenchmarkPlan,
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
    maker = CandidateMaker(graph, shapes, plan.split, plan.seed, plan.most)
    fillings = [
        Filling(kind, sorted(maker.maker(at).ways), plan.pairs, plan.share, plan.seed)
        for at, (kind, _) in enumerate(shapes)
    ]
    journal = Journal(folder, about, resume=resume)
    total = plan.pairs * sum(len(filling.categories) for filling in fillings)
    job = Building(fillings, plan.share, journal)
    executor: AbstractContextManager[Executor[list[Candidate]]] = nullcontext(Alone(maker.block))
    if workers > 1:
        executor = executor_of(partial(_maker, maker.settings), graph, workers)
    bar = Progress("building the benchmark", total, advice=ADVICE)
    work(job, in_order(job, executor), bar)
    outcomes: dict[str, Outcome] = {}
    with writing(folder / QUERIES) as file:
        for filling, kept, (_, shape) in zip(fillings, job.capped, shapes, strict=True):
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
    return CandidateMaker(graph, *settings).block


class Building:
    """The types of a benchmark, brought one after the other to as many pairs as they can have.

    ``capped`` has the queries of the types that are complete.
    """

    failure = SamplingError
    remains = GO_ON

    def __init__(self, fillings: Sequence[Filling], share: float, journal: Journal) -> None:
        self._fillings, self._share, self._journal = fillings, share, journal
        self.capped: list[list[Candidate]] = []
        # Of the round that is under way: the blocks that are still to come, and what was added.
        self._round: deque[tuple[int, Task]] = deque()
        self._added: list[Candidate] = []
        for filling in fillings:
            journal.restore(filling)
        self._begin_round()

    @property
    def done(self) -> int:
        """The number of pairs."""
        return sum(filling.total for filling in self._fillings)

    def blocks(self, workers: int) -> Iterator[tuple[int, Task]]:
        """The rest of the round; what the next one is to bring follows from it."""
        return iter(self._round)

    def take(self, block: tuple[int, Task], made: list[Candidate]) -> None:
        kind, task = self._round.popleft()
        filling = self._fillings[kind]
        self._added += filling.add(made, task.number)
        if not self._round:
            filling.end_round()
            self._journal.save(filling, self._added)
            self._begin_round()

    def _begin_round(self) -> None:
        self._added = []
        while not self._round and len(self.capped) < len(self._fillings):
            kind = len(self.capped)
            filling = self._fillings[kind]
            relations, anchors = filling.barred()
            if wanted := tuple(filling.open):
                for number in range(filling.round * ROUND, (filling.round + 1) * ROUND):
                    self._round.append((kind, Task(number, wanted, relations, anchors)))
            else:
                self.capped.append(capped(filling, self._share))

    def stop(self, error: BaseException | None) -> None:
        """Nothing is open: the journal has what was added in the rounds before."""


def _outcome(kept: Sequence[Candidate], filling: Filling, plan: BenchmarkPlan) -> Outcome:
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
