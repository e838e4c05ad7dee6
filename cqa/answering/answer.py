"""Answers of logical queries on a graph, and what a semiring says of each of them.

>>> from cqa.query import Atom, Conjunction, Constant, Query, Variable
>>> x, y = Variable("x"), Variable("y")
>>> two_hops = Query((y,), (Conjunction((Atom(0, Constant(3), x), Atom(2, x, y))),))
>>> answers(two_hops, graph.full())                                     # doctest: +SKIP
array([[5], [8]], dtype=int32)

Queries of one form, which `batches` puts side by side, are answered together by `evaluate_batch`:
much faster for thousands of them. `compiled` does once for a single query what is the same each
time that it is answered.

Variables range over all entities of the graph. A negated atom, and a negated part (an anti-join),
leaves out what it matches. A query must be *safe* (`cqa.query.check`): each variable stands in a
positive atom. With ``universe`` an unsafe one is answered all the same, a variable that nothing
binds being any entity: the complement of operator trees such as those of De Morgan forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cqa.answering.block import One, QueryBlock
from cqa.answering.factor import Algebra
from cqa.answering.join import Matches
from cqa.answering.search import GivenRows
from cqa.answering.semiring import BOOLEAN, COUNTING, Semiring, Values
from cqa.answering.template import Batch, Compiled, Template, abstracted, as_query
from cqa.answering.walk import CRISP, FIRST, Walk, parted
from cqa.graphs.links import Links, Places
from cqa.query import Query, check, check_form
from kb.arrays import Ids


@dataclass(frozen=True, slots=True)
class Answers:
    """Distinct answers, sorted, a row each, with the semiring's value of each.

    ``tuples`` has the shape (n, k) for k free variables. ``values`` is None for the Boolean
    semiring.
    """

    tuples: Ids
    values: Values | None

    def __len__(self) -> int:
        return len(self.tuples)


@dataclass(frozen=True, slots=True)
class BatchAnswers:
    """The answers of the queries of a batch, one query after the other.

    Those of query i are the rows ``starts[i]`` to ``starts[i + 1]`` of ``tuples`` and ``values``.
    """

    starts: Places
    tuples: Ids
    values: Values | None

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, query: int) -> Answers:
        own = slice(self.starts[query], self.starts[query + 1])
        return Answers(self.tuples[own], None if self.values is None else self.values[own])


def evaluate(
    query: Query | Compiled,
    links: Links,
    semiring: Semiring = BOOLEAN,
    *,
    universe: bool = False,
) -> Answers:
    """The answers of a grounded query with their values in a semiring.

    The disjuncts' values are added up: counting counts the matches of all disjuncts. A query
    without free variables has one answer, the empty tuple, or none. Raises QueryError for a query
    that is not grounded, not of this graph, or not safe (unless ``universe``), and when it has
    more matches than can be held.
    """
    row: Sequence[int]
    if isinstance(query, Compiled):
        template, row = query.template, query.row
    else:
        template, row = abstracted(query)
    if not template.fits(row, links, universe):
        if isinstance(query, Compiled):
            query = as_query(template.filled(dict(enumerate(row))))
        _refuse(query, links, universe)
    return _single(template, row, links, semiring)


def unchecked(query: Query, links: Links, semiring: Semiring = BOOLEAN) -> Answers:
    """`evaluate` for queries that are known to be well formed, as those that were sampled here."""
    return _single(*abstracted(query), links, semiring)


def answers(query: Query | Compiled, links: Links, *, universe: bool = False) -> Ids:
    """The answers of a grounded query, sorted, an (n, k) array; see `evaluate`."""
    return evaluate(query, links, universe=universe).tuples


def answers_among(query: Query, links: Links, rows: Ids) -> Ids:
    """Those of some rows that are answers of a query known to be well formed, an (n, k) array.

    ``rows`` are sorted and distinct.
    """
    template, row = abstracted(query)
    given = GivenRows(np.zeros(len(rows), np.int64), list(rows.T.astype(np.int32)))
    found: Ids = rows[Walk(One(links, row)).matched(template.plan, given).keys]
    return found


def count_matches(query: Query, links: Links, *, universe: bool = False) -> Answers:
    """The answers with the number of assignments of the existential variables for each."""
    return evaluate(query, links, COUNTING, universe=universe)


def evaluate_batch(
    batch: Batch, links: Links, semiring: Semiring = BOOLEAN, *, universe: bool = False
) -> BatchAnswers:
    """The answers of all queries of a batch with their values in a semiring; see `evaluate`."""
    template = batch.template
    wrong = batch.misfit(links, universe)
    if wrong is not None:
        row = batch.numbers[wrong].tolist()
        _refuse(as_query(template.filled(dict(enumerate(row)))), links, universe)
    algebra = _algebra(semiring)
    counts = np.zeros(len(batch), np.int64)
    tuples: list[Ids] = []
    values: list[Values] = []

    def walked(block: QueryBlock, begin: int) -> Matches:
        return Walk(block, algebra).answers(template.plan, np.arange(block.count))

    for begin, block, table in parted(links, batch.numbers, walked):
        table = _there(table, semiring)
        counts[begin : begin + block.count] = np.bincount(table.owners, minlength=block.count)
        tuples.append(_tuples(table, block))
        if table.values is not None:
            values.append(table.values)
    starts = np.append(0, counts.cumsum())
    width = len(template.query.free)
    return BatchAnswers(
        starts,
        np.concatenate(tuples) if tuples else np.empty((0, width), np.int32),
        None if semiring.plus is None else np.concatenate([*values, semiring.ones(0)]),
    )


def _single(template: Template, row: Sequence[int], links: Links, semiring: Semiring) -> Answers:
    block = One(links, row)
    table = Walk(block, _algebra(semiring)).answers(template.plan, FIRST)
    columns = list(table.columns.values())
    if semiring.plus is None and len(columns) == 1:
        return Answers(columns[0].astype(np.int32, copy=False).reshape(-1, 1), None)
    table = _there(table, semiring)
    return Answers(_tuples(table, block), table.values)


def _algebra(semiring: Semiring) -> Algebra:
    return CRISP if semiring is BOOLEAN else Algebra(semiring)


def _there(table: Matches, semiring: Semiring) -> Matches:
    """The rows whose value is not that of what is not there."""
    if semiring.plus is None:
        return table
    if table.values is None:
        table.values = semiring.ones(len(table))
    there = table.values != semiring.zero
    return table if there.all() else table.at(there)


def _tuples(table: Matches, block: QueryBlock) -> Ids:
    """The rows as entities."""
    columns = list(table.columns.values())
    found = np.empty((len(table), len(columns)), np.int32)
    for number, column in enumerate(columns):
        found[:, number] = block.entities(column, table.owners)
    return found


def _refuse(query: Query, links: Links, universe: bool) -> None:
    """Raise QueryError for what is wrong with a query."""
    (check_form if universe else check)(
        query, entities=links.entity_count, relations=links.relation_count
    )
    raise AssertionError("the query is well formed")
