"""Evaluation of a reasoner on sampled queries: the metrics of each query type.

Figures are means over the answers of a query, then over the queries of a type, then over types. A
metric that a query does not have (an easy answer, a hard one of some variable) is a mean over the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, product
from typing import TypeAlias

import numpy as np

from cqa.errors import FormulaError, QueryError
from cqa.evaluation.metrics import (
    Metrics,
    Ranks,
    check_ties,
    one_variable,
    one_variable_published,
    ranked,
)
from cqa.evaluation.reasoner import Reasoner, Scored, as_scored, scores_of
from cqa.evaluation.tuple_metrics import packed, several_variables, several_variables_published
from cqa.graphs.graph import Graph
from cqa.hardness.hardness import Hardness
from cqa.query import Query
from cqa.sampling.sample import Sample
from cqa.types import betae
from cqa.types.efok_text import read_formula as read_graph
from cqa.types.normal import FORMS, binary, to_form
from cqa.types.registry import betae_types, efo1_types, names_of_graph
from cqa.types.shape import topology
from cqa.types.tree import Tree, arrange, read_formula
from kopl_base.errors import KoplError

Group: TypeAlias = tuple[tuple[str, int | str], ...]
"""What types are grouped by: names and values, such as anchors 2, depth 3."""
Labels: TypeAlias = Callable[[Sequence[Sample]], Sequence[Sequence[str]]]
"""For each of some queries what each of its hard answers reduces to, in their order."""

# So many queries at a time are told what they reduce to.
CHUNK = 512


@dataclass(frozen=True)
class Part:
    """The figures of some answers of a type: of all, or of those that reduce to a simpler type.

    ``metrics`` are means over queries, as fractions of 1.
    """

    queries: int
    answers: int
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class TypeResult:
    """The figures of a query type; ``reduced`` has those of its hard answers by simpler type."""

    type: str
    formula: str
    names: tuple[str, ...]
    group: Group
    all: Part
    reduced: Mapping[str, Part] = field(default_factory=dict)


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


@dataclass
class _Sums:
    """Metrics of queries, added up."""

    queries: int = 0
    answers: int = 0
    sums: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, metrics: Metrics, answers: int) -> None:
        self.queries += 1
        self.answers += answers
        for key, value in metrics.items():
            self.sums[key] = self.sums.get(key, 0.0) + value
            self.counts[key] = self.counts.get(key, 0) + 1

    def part(self) -> Part:
        means = {key: self.sums[key] / self.counts[key] for key in self.sums}
        return Part(self.queries, self.answers, means)


@dataclass
class _Type:
    formula: str
    query: Tree | Query
    all: _Sums = field(default_factory=_Sums)
    reduced: dict[str, _Sums] = field(default_factory=dict)


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
    found: dict[str, _Type] = {}
    left_out = number = 0
    given = iter(samples)
    while chunk := list(islice(given, CHUNK)):
        ranked_chunk: list[tuple[_Type, Sample, Ranks]] = []
        scores = scores_of(reasoner, [sample.query for sample in chunk])
        for sample in chunk:
            number += 1
            try:
                kind = _type_of(found, sample)
                _check_answers(sample, entity_count)
                scored = as_scored(next(scores), sample.hard.shape[1], entity_count)
                metrics, ranks = judge(scored, sample, ties, compat)
            except KoplError as error:
                raise QueryError(f"query {number} ({sample.type}): {error}") from error
            left_out += compat == "paper" and not metrics and len(sample.hard) > 0
            kind.all.add(metrics, len(sample.hard))
            ranked_chunk.append((kind, sample, ranks))
        next(scores, None)  # says so when there are more
        if labels is not None:
            for own, names in zip(ranked_chunk, labels(chunk), strict=True):
                _add_reduced(*own, names)
    if not found:
        raise QueryError("there is no query to evaluate on")
    types = tuple(_result(kind, found[kind]) for kind in found)
    return Evaluation(name or type(reasoner).__name__, ties, compat, types, left_out)


def _type_of(found: dict[str, _Type], sample: Sample) -> _Type:
    kind = found.setdefault(sample.type, _Type(sample.formula, sample.query))
    if kind.formula != sample.formula:
        raise QueryError(
            f"the type is {sample.formula} here and {kind.formula} before; queries of one type are"
            " averaged, so that they must be of one formula"
        )
    return kind


def judge(
    scored: Scored, sample: Sample, ties: str = "realistic", compat: str | None = None
) -> tuple[Metrics, Ranks]:
    """The metrics of one query, and the rank of each hard answer (joint, for several variables)."""
    easy, hard, lost = sample.easy, sample.hard, sample.lost
    if len(scored.scores) == 1:
        sets = easy[:, 0], hard[:, 0], lost[:, 0]
        if compat == "paper":
            return one_variable_published(scored.scores[0], *sets[:2])
        return one_variable(scored.scores[0], *sets, ties=ties)
    if compat == "paper":
        return several_variables_published(scored.scores, easy, hard)
    return several_variables(scored.scores, easy, hard, lost, ties=ties, tuples=scored.tuples)


def _check_answers(sample: Sample, entity_count: int) -> None:
    """Raise QueryError unless the answers are of the graph, and each is listed once."""
    for rows in (sample.easy, sample.hard, sample.lost):
        if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < entity_count:
            wrong = int(rows.max()) if int(rows.max()) >= entity_count else int(rows.min())
            raise QueryError(
                f"the answer {wrong} is no entity of the graph, which has {entity_count}; is it"
                " the graph that the queries are of?"
            )
    rows = np.concatenate([sample.easy, sample.hard])
    keys, counts = np.unique(packed(rows, entity_count), return_counts=True)
    if len(keys) < len(rows):
        twice = rows[packed(rows, entity_count) == keys[counts > 1][0]][0]
        shown = ", ".join(map(str, twice.tolist()))
        raise QueryError(f"the answer {shown} is listed twice; an answer is easy or hard, once")


def _add_reduced(kind: _Type, sample: Sample, ranks: Ranks, names: Sequence[str]) -> None:
    if len(names) != len(sample.hard):
        raise QueryError(f"{len(names)} reduced types for {len(sample.hard)} hard answers")
    prefix = "joint_" if sample.hard.shape[1] > 1 else ""
    for name in sorted(set(names)):
        own = ranks[[given == name for given in names]]
        kind.reduced.setdefault(name, _Sums()).add(ranked(own, prefix), len(own))


def _result(type: str, kind: _Type) -> TypeResult:
    group, names = described(type, kind.formula, kind.query)
    reduced = {name: kind.reduced[name].part() for name in sorted(kind.reduced)}
    return TypeResult(type, kind.formula, names, group, kind.all.part(), reduced)


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


def reductions(graph: Graph, split: str = "test", compat: str | None = None) -> Labels:
    """What tells for queries of a graph's split what their hard answers reduce to, for `evaluate`.

    The names are those of `cqa.hardness.hardness`; "no answer" is what the full graph does not
    confirm, "skipped" every answer of a query that the published program skips.
    """
    told = Hardness(graph, split, compat)

    def labels(samples: Sequence[Sample]) -> list[list[str]]:
        found = told.label([one.query for one in samples], [one.hard for one in samples])
        return [
            [
                kind.name if kind else "skipped" if at in found.skipped else "no answer"
                for kind in found.of(at)
            ]
            for at in range(len(samples))
        ]

    return labels


def limited(samples: Iterable[Sample], most: int) -> Iterator[Sample]:
    """The first queries of each type, in their order."""
    counts: dict[str, int] = {}
    for sample in samples:
        counts[sample.type] = counts.get(sample.type, 0) + 1
        if counts[sample.type] <= most:
            yield sample
