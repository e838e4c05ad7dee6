"""Training queries by type: sampled, read from files of others, kept as arrays that are mapped.

A set has for each type columns of anchors and relations, and the answers on the train split.
"""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cqa.evaluation.plan import QueryPlan
from cqa.formats.json_lines import read_query
from cqa.formats.samples import read_samples
from cqa.graphs.graph import Graph
from cqa.graphs.links import places
from cqa.models.plan import columns, compiled
from cqa.query import Query
from cqa.sampling.kinds import kinds
from cqa.sampling.makers import Plan as SamplingPlan
from cqa.sampling.options import Options
from cqa.sampling.run import run
from cqa.sampling.sample import Sample
from cqa.types.betae import named
from cqa.types.efok_text import write_formula
from cqa.types.grounded import to_json
from cqa.types.tree import Tree
from kb.arrays import Ids
from kopl_base.errors import KoplError, ReadError, wrapped
from kopl_base.stream import read_text, writing
from kopl_base.training.optimizer import TrainingError

Rows: TypeAlias = npt.NDArray[np.int64]

# BetaE's training types; the second five are a tenth as many.
PLAIN = ("1p", "2p", "3p", "2i", "3i")
NEGATED = ("2in", "3in", "inp", "pin", "pni")
# Queries of train have any number of answers.
ANY = 10**9
ABOUT = "queries.json"


@dataclass(frozen=True, eq=False)
class TypeQueries:
    """Training queries of one type: columns in the order of its plan, and answers.

    ``shape`` is one of them; the answers of query n are ``answers[starts[n]:starts[n + 1]]``,
    sorted.
    """

    name: str
    shape: Tree | Query
    anchors: Ids
    relations: Ids
    starts: Rows
    answers: Ids

    def __len__(self) -> int:
        return len(self.anchors)

    @cached_property
    def plan(self) -> QueryPlan:
        """The steps of the type."""
        return compiled(self.shape)

    @cached_property
    def path(self) -> bool:
        """Whether the type is a chain of relations."""
        steps = self.plan.steps
        return all(step.op in ("entity", "project") for step in steps)

    def answers_of(self, row: int) -> Ids:
        """The answers of one query, sorted."""
        return self.answers[self.starts[row] : self.starts[row + 1]]


_ARRAYS = ("anchors", "relations", "starts", "answers")


@dataclass(frozen=True, eq=False)
class QuerySet:
    """Training queries of some types on a graph, of which ``fingerprint`` is."""

    types: tuple[TypeQueries, ...]
    fingerprint: str

    def __len__(self) -> int:
        return sum(map(len, self.types))

    def __repr__(self) -> str:
        return f"QuerySet({', '.join(f'{len(one):,} {one.name}' for one in self.types)})"

    @cached_property
    def mark(self) -> str:
        """A text that sets of other queries do not have."""
        found = 0
        for one in self.types:
            for name in _ARRAYS:
                found = zlib.crc32(np.ascontiguousarray(getattr(one, name)).data, found)
        return f"{self!r} {found:08x}"

    def save(self, folder: Path) -> None:
        """Write the set as arrays; raises WriteError."""
        folder.mkdir(parents=True, exist_ok=True)
        about: dict[str, Any] = {"graph": self.fingerprint, "types": []}
        for number, one in enumerate(self.types):
            for name in _ARRAYS:
                with writing(folder / f"{number}-{name}.npy", binary=True) as file:
                    np.save(file, getattr(one, name))
            shape = one.shape
            written = to_json(shape) if isinstance(shape, Tree) else write_formula(shape)
            about["types"].append({"name": one.name, "query": written})
        with writing(folder / ABOUT) as text:
            text.write(json.dumps(about, indent=2) + "\n")


def load(folder: Path, graph: Graph) -> QuerySet:
    """The set that `QuerySet.save` wrote, mapped.

    Raises ReadError for what is none, or is of another graph.
    """
    source = str(folder / ABOUT)
    try:
        about = json.loads(read_text(folder / ABOUT))
        found = []
        for number, one in enumerate(about["types"]):
            arrays = [np.load(folder / f"{number}-{name}.npy", mmap_mode="r") for name in _ARRAYS]
            found.append(TypeQueries(one["name"], read_query(one["query"]), *arrays))
        queries = QuerySet(tuple(found), about["graph"])
    except (KoplError, KeyError, TypeError, ValueError, OSError) as error:
        raise ReadError(f"is no set of training queries: {error}", source=source) from None
    if queries.fingerprint != graph.fingerprint:
        raise ReadError(
            f"the queries are of another graph ({queries.fingerprint}); remove the folder to make"
            " them anew",
            source=source,
        )
    return queries


def of_samples(samples: Iterable[Sample], graph: Graph) -> QuerySet:
    """Sampled queries as columns, by type in order of first appearance.

    Their answers are those that are both easy and on the full graph, or, where there is no easy one
    (files of queries for other splits), the hard ones. Raises TrainingError for a query of several
    free variables and for one without answers.
    """
    gathered: dict[Any, _Gathered] = {}
    for sample in samples:
        answers = sample.easy if len(sample.easy) else sample.hard
        if answers.shape[1] != 1 or not len(answers):
            what = "no answer" if not len(answers) else f"{answers.shape[1]} free variables"
            raise TrainingError(f"a training query has {what}: {sample.formula}")
        plan = compiled(sample.query)
        own = gathered.get(plan.key)
        if own is None:
            own = gathered[plan.key] = _Gathered(sample.type, sample.query, plan)
        own.add(sample.query, answers[:, 0])
    return QuerySet(tuple(own.queries(graph) for own in gathered.values()), graph.fingerprint)


class _Gathered:
    """Queries of one type on their way to columns."""

    def __init__(self, name: str, shape: Tree | Query, plan: QueryPlan) -> None:
        self._name, self._shape, self._plan = name, shape, plan
        self._anchors: list[tuple[int, ...]] = []
        self._relations: list[tuple[int, ...]] = []
        self._answers: list[Ids] = []

    def add(self, query: Tree | Query, answers: Ids) -> None:
        anchors, relations = columns(self._plan, query)
        self._anchors.append(anchors)
        self._relations.append(relations)
        self._answers.append(answers)

    def queries(self, graph: Graph) -> TypeQueries:
        counts = np.fromiter(map(len, self._answers), np.int64, len(self._answers))
        starts = np.concatenate([[0], counts.cumsum()])
        answers = np.concatenate(self._answers)
        anchors, relations = (
            np.array(rows, np.int32).reshape(len(rows), -1)
            for rows in (self._anchors, self._relations)
        )
        for given, bound, what in (
            (anchors, graph.entity_count, "entity"),
            (answers, graph.entity_count, "entity"),
            (relations, 2 * graph.relation_count, "relation"),
        ):
            if given.size and (given.min() < 0 or given.max() >= bound):
                raise TrainingError(
                    f"a training query of {self._name} has {what} {given.max()}; the graph has the"
                    f" numbers 0 to {bound - 1}"
                )
        return TypeQueries(self._name, self._shape, anchors, relations, starts, answers)


def read(
    path: Path | str, graph: Graph, format: str | None = None, most: int | None = None
) -> QuerySet:
    """The training queries of a file or folder in any form that is read here (`read_samples`).

    The folder that `QuerySet.save` wrote, as in another run, is read, too. ``most`` bounds the
    queries of a type otherwise: its first ones. Raises ReadError and TrainingError.
    """
    if (Path(path) / ABOUT).is_file():
        return load(Path(path), graph)
    samples = read_samples(path, format, graph.splits[0], graph)
    return of_samples(_first(samples, most), graph)


def _first(samples: Iterable[Sample], most: int | None) -> Iterator[Sample]:
    counts: dict[str, int] = {}
    for sample in samples:
        counts[sample.formula] = counts.get(sample.formula, 0) + 1
        if most is None or counts[sample.formula] <= most:
            yield sample


def betae_counts(graph: Graph, share: float = 1.0) -> dict[str, int]:
    """How many training queries of each type BetaE's sets have: as many as there are pairs.

    Pairs are those of an entity and a directed relation that it has in train; of types with a
    negation there is a tenth. ``share`` of all that.
    """
    pairs = len(graph.view(graph.splits[0]).heads)
    plain, negated = max(1, int(pairs * share)), max(1, int(pairs // 10 * share))
    return dict.fromkeys(PLAIN, plain) | dict.fromkeys(NEGATED, negated)


def sampled(
    graph: Graph, counts: Mapping[str, int], *, seed: int = 0, workers: int = 1
) -> QuerySet:
    """Training queries drawn on the train split: so many of each type, or as many as there are.

    Types are named as in `cqa.sampling.kinds`. Those of one relation are the pairs of the split
    themselves; the others are drawn as BetaE's. Says which types have fewer. Raises SamplingError.
    """
    found = []
    for text, count in counts.items():
        [kind, *others] = kinds([text])
        if others:
            raise TrainingError(f"one type was expected, not the {len(others) + 1} of {text}")
        if isinstance(kind.shape, Tree) and kind.shape.formula == named("1p").formula:
            found.append(_pairs(graph, kind.id, count, seed))
            continue
        tree = isinstance(kind.shape, Tree)
        options = Options(most=ANY, draw="betae" if tree else "efo1")
        plan = SamplingPlan((kind,), count, seed, graph.splits[0], options)
        with tempfile.TemporaryDirectory(prefix="kopl-queries-") as folder:
            file = Path(folder) / "queries.jsonl"
            report = run(plan, graph, file, workers=workers)
            if not report.kept:
                raise TrainingError(f"train has no query of the type {text}")
            found += of_samples(read_samples(file), graph).types
        if report.short:
            print(wrapped(f"train has {report.kept} queries of {text}, not {count}"), flush=True)
    return QuerySet(tuple(found), graph.fingerprint)


def _pairs(graph: Graph, name: str, count: int, seed: int) -> TypeQueries:
    """The queries of one relation: all pairs of train, or some by chance."""
    links = graph.view(graph.splits[0])
    number = len(links.heads)
    relations = np.repeat(np.arange(links.relation_count, dtype=np.int32), np.diff(links.rows))
    chosen = np.arange(number)
    if count < number:
        random = np.random.default_rng([seed, zlib.crc32(name.encode())])
        chosen = np.sort(random.choice(number, count, replace=False))
    begins = links.starts[:-1].astype(np.int64)[chosen]
    counts = np.diff(links.starts).astype(np.int64)[chosen]
    shape = Tree("p", (Tree("e", entity=0),), 0)
    answers = links.tails[places(begins, counts)]
    starts = np.concatenate([[0], counts.cumsum()])
    return TypeQueries(
        name, shape, links.heads[chosen, None], relations[chosen, None], starts, answers
    )
