"""Answers of logical queries on a graph, and what a semiring says of each of them.

>>> from cqa.query import Atom, Conjunction, Constant, Query, Variable
>>> x, y = Variable("x"), Variable("y")
>>> two_hops = Query((y,), (Conjunction((Atom(0, Constant(3), x), Atom(2, x, y))),))
>>> answers(two_hops, graph.full())                                     # doctest: +SKIP
array([[5], [8]], dtype=int32)

Variables range over all entities of the graph. A negated atom, and a negated part (an anti-join),
leaves out what it matches. A query must be *safe* (`cqa.query.check`): each variable stands in a
positive atom. With ``universe`` an unsafe one is answered all the same, a variable that nothing
binds being any entity: the complement of operator trees such as those of De Morgan forms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cqa.answering.semiring import BOOLEAN, COUNTING, Semiring, Values
from cqa.answering.walk import Walk
from cqa.graphs.links import Links
from cqa.query import Query, check, check_form
from kb.arrays import Ids


@dataclass(frozen=True)
class Answers:
    """Distinct answers, sorted, a row each, with the semiring's value of each.

    ``tuples`` has the shape (n, k) for k free variables. ``values`` is None for the Boolean
    semiring.
    """

    tuples: Ids
    values: Values | None

    def __len__(self) -> int:
        return len(self.tuples)


def evaluate(
    query: Query, links: Links, semiring: Semiring = BOOLEAN, *, universe: bool = False
) -> Answers:
    """The answers of a grounded query with their values in a semiring.

    The disjuncts' values are added up: counting counts the matches of all disjuncts. A query
    without free variables has one answer, the empty tuple, or none. Raises QueryError for a query
    that is not grounded, not of this graph, or not safe (unless ``universe``), and when it has
    more matches than can be held.
    """
    (check_form if universe else check)(
        query, entities=links.entity_count, relations=links.relation_count
    )
    return unchecked(query, links, semiring)


def unchecked(query: Query, links: Links, semiring: Semiring = BOOLEAN) -> Answers:
    """`evaluate` for queries that are known to be well formed, as those that were sampled here."""
    table = Walk(links, semiring).evaluate(query)
    if len(query.free) == 1:
        tuples = table.columns[0].astype(np.int32, copy=False).reshape(-1, 1)
    elif query.free:
        tuples = np.stack(table.columns, axis=1).astype(np.int32, copy=False)
    else:
        tuples = np.empty((len(table), 0), np.int32)
    if table.values is None or not len(tuples):
        return Answers(tuples, table.values)
    there = table.values != semiring.zero
    if there.all():
        return Answers(tuples, table.values)
    return Answers(tuples[there], table.values[there])


def answers(query: Query, links: Links, *, universe: bool = False) -> Ids:
    """The answers of a grounded query, sorted, an (n, k) array; see `evaluate`."""
    return evaluate(query, links, universe=universe).tuples


def count_matches(query: Query, links: Links, *, universe: bool = False) -> Answers:
    """The answers with the number of assignments of the existential variables for each."""
    return evaluate(query, links, COUNTING, universe=universe)
