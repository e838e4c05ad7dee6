"""Evaluation of a reasoner on sampled queries: the metrics of each query type.

Figures are means over the answers of a query, then over the queries of a type, then over types. A
metric that a query does not have (an easy answer, a hard one of some variable) is a mean over the
others.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cqa.errors import FormulaError, QueryError
from cqa.evaluation.judging import Judge, Judged, Labels, Some, other_formula
from cqa.evaluation.metrics import Metrics, check_ties
from cqa.evaluation.reasoner import Reasoner
from cqa.formats.samples import Piece
from cqa.graphs.graph import Graph
from cqa.query import Query
from cqa.sampling.makers import executor_of
from cqa.sampling.sample import Sample
from cqa.types import betae
from cqa.types.efok_text import read_formula as read_graph
from cqa.types.normal import FORMS, binary, to_form
from cqa.types.registry import betae_types, efo1_types, names_of_graph
from cqa.types.shape import topology
from cqa.types.tree import Tree, arrange, read_formula
from kopl_base.processes import Alone, Executor

Group: TypeAlias = tuple[tuple[str, int | str], ...]
"""What types are grouped by: names and values, such as anchors 2, depth 3."""
# So many queries are judged at a time.
CHUNK = 512


@dataclass(frozen=True)
class Part:
    """The figures of some answers of a type: of all, or of those that reduce to a simpler type.

    ``metrics`` are means over queries, as fractions of 1; ``each`` has the number of each query,
    NaN where it does not have the metric, and ``own`` which of the type's queries these are. Both
    are empty where they were not kept.
    """

    queries: int
    answers: int
    metrics: Mapping[str, float]
    each: Mapping[str, npt.NDArray[np.float64]] = field(
        default_factory=dict, compare=False, repr=False
    )
    own: npt.NDArray[np.int64] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class TypeResult:
    """The figures of a query type; ``reduced`` has those of its hard answers by simpler type.

    ``mark`` is the same for the same queries in the same order.
    """

    type: str
    formula: str
    names: tuple[str, ...]
    group: Group
    all: Part
    reduced: Mapping[str, Part] = field(default_factory=dict)
    mark: int = 0


@dataclass(frozen=True)
class Evaluation:
    """What a reasoner reached on a set of queries, by type.

    ``left_out`` is the number of queries that the published main table leaves out, with ``compat``.
    """

    reasoner: str
    ties: str
    compat: str | None
    types: tuple[TypeResult, ...]
    left_out: int = 0

    @property
    def queries(self) -> int:
        """The number of queries that were asked."""
        return sum(result.all.queries for result in self.types)

    @property
    def metrics(self) -> Metrics:
        """The means over all types."""
        return mean([result.all.metrics for result in self.types])


def mean(parts: Iterable[Mapping[str, float]]) -> Metrics:
    """The mean of each metric over those that have it."""
    sums: dict[str, list[float]] = {}
    for part in parts:
        for key, value in part.items():
            sums.setdefault(key, []).append(value)
    return {key: sum(values) / len(values) for key, values in sums.items()}


def evaluate(
    reasoner: Reasoner,
    samples: Iterable[Sample],
    entity_count: int,
    *,
    name: str = "",
    ties: str = "realistic",
    compat: str | None = None,
    labels: Labels | None = None,
) -> Evaluation:
    """What a reasoner reaches on queries of a graph with so many entities.

    ``ties`` is one of `cqa.vocabularies.TIES`; with ``compat="paper"`` the metrics are those
    of the published programs, faults included, and ties are in the order of the entities' numbers.
    ``labels`` tells for each hard answer what it reduces to. Raises QueryError, with the number of
    the query, for what the reasoner cannot answer and for scores that are none.
    """
    check_ties(ties, compat)
    judge = Judge(reasoner, entity_count, ties, compat, labels)
    alone = Alone(partial(_judged, judge))
    pieces: Iterable[Piece] = _chunks(samples)
    return _gathered(alone, pieces, name or type(reasoner).__name__, ties, compat)


def evaluate_by(
    prepare: Callable[[Graph], Judge],
    graph: Graph,
    pieces: Iterable[Piece],
    *,
    name: str,
    workers: int = 1,
) -> Evaluation:
    """The same by so many workers, each with a judge of its own; the figures are the same.

    ``prepare`` makes the judge of the graph; where there are several workers it must be something
    that can be pickled, and so must be the pieces: lists of queries, or what reads them
    (`cqa.formats.samples.pieces`). Raises what `evaluate` does, and KoplError where a worker ends.
    """
    if workers < 1:
        raise QueryError(f"a number of workers from 1 on was expected, not {workers}")
    with executor_of(partial(_prepared, prepare), graph, workers) as executor:
        ties, compat = executor.submit(None, 0)()
        return _gathered(executor, pieces, name, ties, compat)


def _prepared(prepare: Callable[[Graph], Judge], graph: Graph) -> Callable[..., Any]:
    return partial(_judged, prepare(graph))


def _judged(judge: Judge, piece: Piece | None, first: int) -> Any:
    """What the judge says of a piece; of none how it judges, once it has been prepared."""
    if piece is None:
        check_ties(judge.ties, judge.compat)
        return judge.ties, judge.compat
    samples = piece if isinstance(piece, list) else piece.samples()
    return judge.chunk(samples, first)


def _chunks(samples: Iterable[Sample]) -> Iterator[list[Sample]]:
    given = iter(samples)
    while chunk := list(islice(given, CHUNK)):
        yield chunk


def _gathered(
    executor: Executor[Any], pieces: Iterable[Piece], name: str, ties: str, compat: str | None
) -> Evaluation:
    """All pieces together, in their order, whoever judges them."""
    found: dict[str, _Type] = {}
    waiting: deque[Callable[[], list[Judged]]] = deque()
    given, number = iter(pieces), 1
    while True:
        while len(waiting) < executor.ahead and (piece := next(given, None)) is not None:
            waiting.append(executor.submit(piece, number))
            number += len(piece)
        if not waiting:
            break
        for part in waiting.popleft()():
            own = found.setdefault(part.type, _Type(part.formula, part.query))
            if own.formula != part.formula:
                error = other_formula(part.formula, own.formula)
                raise QueryError(f"query {part.first} ({part.type}): {error}")
            own.parts.append(part)
    if not found:
        raise QueryError("there is no query to evaluate on")
    types = tuple(_result(kind, found[kind]) for kind in found)
    left_out = sum(part.left_out for kind in found.values() for part in kind.parts)
    return Evaluation(name, ties, compat, types, left_out)


@dataclass
class _Type:
    formula: str
    query: Tree | Query
    parts: list[Judged] = field(default_factory=list)


def _result(type: str, kind: _Type) -> TypeResult:
    group, names = described(type, kind.formula, kind.query)
    starts = np.cumsum([0, *(len(part.all.own) for part in kind.parts)]).tolist()
    reduced = {}
    for name in sorted({name for part in kind.parts for name in part.reduced}):
        some = [
            (start, part.reduced[name])
            for start, part in zip(starts, kind.parts, strict=False)
            if name in part.reduced
        ]
        reduced[name] = _part(some)
    every = _part([(start, part.all) for start, part in zip(starts, kind.parts, strict=False)])
    mark = zlib.crc32(np.concatenate([part.marks for part in kind.parts]).tobytes())
    return TypeResult(type, kind.formula, names, group, every, reduced, mark)


def _part(parts: Sequence[tuple[int, Some]]) -> Part:
    """Some queries of several chunks together; each chunk's places begin at a number."""
    own = np.concatenate([part.own + start for start, part in parts])
    each = {}
    for key in dict.fromkeys(key for _, part in parts for key in part.each):
        each[key] = np.concatenate(
            [part.each.get(key, np.full(len(part.own), np.nan)) for _, part in parts]
        )
    means = {key: float(np.nanmean(values)) for key, values in each.items()}
    return Part(len(own), sum(part.answers for _, part in parts), means, each, own)


def described(type: str, formula: str, query: Tree | Query) -> tuple[Group, tuple[str, ...]]:
    """What a type is grouped by, and its names.

    Operator trees: anchors and depth of the form Original, which the id tells where the formula is
    another form of that type; query graphs: free, constants, existential and topology, as EFOk-CQA
    groups them. The query stands in for a formula that is none; where it has a constant twice, it
    counts once.
    """
    if isinstance(query, Tree):
        with suppress(FormulaError):
            query = read_formula(formula)
        tree = _original(type, query)
        return (("anchors", tree.anchors), ("depth", tree.depth)), betae.names(tree)
    with suppress(FormulaError):
        query = read_graph(formula)
    plain = len(query.disjuncts) == 1 and not query.disjuncts[0].without
    group = (
        ("free", len(query.free)),
        ("constants", len(query.constants)),
        ("existential", len(query.existential)),
        ("topology", topology(query) if plain else "none"),
    )
    return group, names_of_graph(query)


def _original(type: str, tree: Tree) -> Tree:
    """The binary tree of a type; disjunctive forms have copies of anchors, which do not count."""
    shown = arrange(tree).formula
    for row in (*betae_types(), *efo1_types()):
        if row.id == type:
            ways = product(FORMS, (None, "paper"))
            if any(to_form(row.tree, *way).formula == shown for way in ways):
                return row.tree
    return binary(tree)


def limited(samples: Iterable[Sample], most: int) -> Iterator[Sample]:
    """The first queries of each type, in their order."""
    counts: dict[str, int] = {}
    for sample in samples:
        counts[sample.type] = counts.get(sample.type, 0) + 1
        if counts[sample.type] <= most:
            yield sample
