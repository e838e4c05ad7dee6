"""A sampled query with its answers, and the types that samplers are made for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cqa.notation.trees import from_tree
from cqa.query import Query
from cqa.types.tree import Tree, nodes
from kb.arrays import Ids


@dataclass(frozen=True)
class Kind:
    """A query type to be sampled.

    ``id`` is what its queries are filed under, ``formula`` its formula; ``shape`` the operator tree
    or the query graph that is to be grounded. A grounded tree is written in the ``form``, one of
    the nine of `cqa.types.normal`, or as it is.
    """

    id: str
    formula: str
    shape: Tree | Query
    form: str | None = None


@dataclass(frozen=True, eq=False)
class Sample:
    """A grounded query and its answers.

    ``easy``: the answers on the observed graph; ``hard``: those on the full graph that are not
    easy; ``lost``: those of ``easy`` that the full graph does not confirm, as a link that it adds
    makes a negated part hold. All are sorted, (n, k) arrays for k free variables.
    """

    type: str
    formula: str
    query: Tree | Query
    easy: Ids
    hard: Ids
    lost: Ids

    @property
    def graph(self) -> Query:
        """The query as disjuncts of query graphs."""
        return from_tree(self.query) if isinstance(self.query, Tree) else self.query

    @property
    def full(self) -> Ids:
        """The answers on the full graph, sorted."""
        kept = rows_without(self.easy, self.lost)
        return sorted_rows(np.concatenate([kept, self.hard]))

    @property
    def relations(self) -> tuple[int, ...]:
        """The relations, without direction, each once, sorted."""
        if isinstance(self.query, Tree):
            given = [node.relation for node in nodes(self.query) if node.op == "p"]
        else:
            given = list(self.query.relations)
        return tuple(sorted({int(r) >> 1 for r in given if r is not None}))

    @property
    def anchors(self) -> tuple[int, ...]:
        """The given entities, each once, sorted."""
        if isinstance(self.query, Tree):
            given = [node.entity for node in nodes(self.query) if node.op == "e"]
        else:
            given = list(self.query.constants)
        return tuple(sorted({int(e) for e in given if e is not None}))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sample):
            return NotImplemented
        same = (self.type, self.formula, self.query) == (other.type, other.formula, other.query)
        return same and all(
            np.array_equal(mine, theirs)
            for mine, theirs in (
                (self.easy, other.easy),
                (self.hard, other.hard),
                (self.lost, other.lost),
            )
        )

    __hash__ = None  # type: ignore[assignment]


def sorted_rows(rows: Ids) -> Ids:
    """The rows of an (n, k) array in order, each once."""
    if rows.shape[1] == 1:
        column = rows[:, 0]
        return rows if (column[1:] > column[:-1]).all() else np.unique(column)[:, None]
    found: Ids = np.unique(rows, axis=0) if len(rows) else rows
    return found


def rows_without(rows: Ids, others: Ids) -> Ids:
    """The rows of a sorted array that are not in another."""
    if not len(rows) or not len(others):
        return rows
    if rows.shape[1] == 1:
        return rows[~np.isin(rows[:, 0], others[:, 0])]
    # Entities are below 2**31: two of them fit one key; further columns are numbered by rank.
    both = np.concatenate([rows, others])
    keys = both[:, 0].astype(np.int64)
    for column in both.T[1:]:
        keys = (np.unique(keys, return_inverse=True)[1].reshape(-1) << 32) | column
    return rows[~np.isin(keys[: len(rows)], keys[len(rows) :])]
