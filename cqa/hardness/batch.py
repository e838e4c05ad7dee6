"""Queries of one type side by side: a template, and the relations and constants of each query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, count
from typing import Any, TypeAlias

import numpy as np

from cqa.errors import QueryError
from cqa.graphs.links import Places
from cqa.notation.trees import from_tree
from cqa.query import Atom, Conjunction, Constant, Query, Term, Variable
from cqa.types.tree import Tree

Grounded: TypeAlias = Tree | Query


@dataclass(frozen=True, eq=False)
class Batch:
    """Grounded queries of one form.

    ``template`` has the number of a column of ``numbers`` for each relation and constant; ``own``
    the places of its queries in the list that they came from.
    """

    template: Grounded
    numbers: Places
    own: list[int]


def batches(queries: Iterable[Grounded]) -> list[Batch]:
    """The queries by their form, in order of first appearance.

    Raises QueryError for a query that is not grounded, with its number, from 1.
    """
    numbers: dict[Any, list[list[int]]] = {}
    own: dict[Any, list[int]] = {}
    first: dict[Any, Grounded] = {}
    for at, query in enumerate(queries):
        row: list[Any] = []
        key = _tree_key(query, row) if isinstance(query, Tree) else _query_key(query, row)
        if not all(type(number) is int for number in row):
            raise QueryError(f"query {at + 1}: some relation or constant is no number")
        if key not in first:
            first[key], numbers[key], own[key] = query, [], []
        numbers[key].append(row)
        own[key].append(at)
    return [
        Batch(template_of(query), np.array(numbers[key], np.int64), own[key])
        for key, query in first.items()
    ]


def _tree_key(tree: Tree, row: list[Any]) -> str:
    if tree.op == "p":
        row.append(tree.relation)
    elif tree.op == "e":
        row.append(tree.entity)
    for operand in tree.operands:
        _tree_key(operand, row)
    return tree.formula


def _query_key(query: Query, row: list[Any]) -> tuple[Any, ...]:
    parts = []
    for disjunct in query.disjuncts:
        atoms = []
        for atom in disjunct.atoms:
            row.append(atom.relation)
            ends: list[str | None] = []
            for end in (atom.head, atom.tail):
                if isinstance(end, Variable):
                    ends.append(end.name)
                else:
                    row.append(end.entity)
                    ends.append(None)
            atoms.append((*ends, atom.positive))
        without = tuple(_query_key(part, row) for part in disjunct.without)
        parts.append((tuple(atoms), without))
    return tuple(variable.name for variable in query.free), tuple(parts)


def template_of(query: Grounded) -> Grounded:
    """The query, or query type, with the number of its column for each relation and constant.

    Each occurrence has a number of its own.
    """
    columns = count()
    return _tree(query, columns) if isinstance(query, Tree) else _query(query, columns)


def _tree(tree: Tree, columns: count[int]) -> Tree:
    relation = next(columns) if tree.op == "p" else None
    entity = next(columns) if tree.op == "e" else None
    return Tree(tree.op, tuple(_tree(o, columns) for o in tree.operands), relation, entity)


def _query(query: Query, columns: count[int]) -> Query:
    def term(end: Term) -> Term:
        return end if isinstance(end, Variable) else Constant(next(columns))

    parts = []
    for disjunct in query.disjuncts:
        atoms = tuple(
            Atom(next(columns), term(atom.head), term(atom.tail), atom.positive)
            for atom in disjunct.atoms
        )
        parts.append(Conjunction(atoms, tuple(_query(part, columns) for part in disjunct.without)))
    return Query(query.free, tuple(parts))


def as_query(template: Grounded) -> Query:
    """The template as disjuncts of query graphs."""
    return from_tree(template) if isinstance(template, Tree) else template


def intersected(tree: Tree) -> Tree:
    """The tree with each union that no complement covers made an intersection.

    So the published program for the hardness of queries looks at unions.
    """
    if tree.op == "n":
        return tree
    operands = list(tree.operands)
    kept = 1 if tree.op in "dD" else len(operands)
    operands[:kept] = [intersected(operand) for operand in operands[:kept]]
    op = {"u": "i", "U": "I"}.get(tree.op, tree.op)
    return Tree(op, tuple(operands), tree.relation, tree.entity)


def without_repeats(conjunction: Conjunction, numbers: Places) -> list[tuple[Conjunction, Places]]:
    """The conjunction without atoms that say the same twice, for the queries that have such.

    An atom and its like the other way round are one link of a match. Gives for each way of
    repeating the conjunction without repeats, and the numbers of the queries.
    """
    alike = [
        (one, other, pairs)
        for (one, first), (other, second) in combinations(enumerate(conjunction.atoms), 2)
        if first.positive == second.positive
        for pairs in _ways(first, second)
    ]
    if not alike:
        return [(conjunction, np.arange(len(numbers)))]
    same = np.stack([_equal(pairs, numbers) for *_, pairs in alike], axis=1)
    if not same.any():
        return [(conjunction, np.arange(len(numbers)))]
    found = []
    patterns, which = np.unique(same, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        gone = {other for (_, other, _), repeated in zip(alike, pattern, strict=True) if repeated}
        atoms = tuple(atom for at, atom in enumerate(conjunction.atoms) if at not in gone)
        rows = np.flatnonzero(which.reshape(-1) == number)
        found.append((Conjunction(atoms, conjunction.without), rows))
    return found


# Columns that are to be equal, and what the second is to be turned over with.
_Pairs: TypeAlias = list[tuple[int, int, int]]


def _ways(first: Atom, second: Atom) -> list[_Pairs]:
    """How numbers have to agree for two atoms to say the same, as they stand and turned round."""
    assert isinstance(first.relation, int) and isinstance(second.relation, int)
    ways = []
    for turn, ends in ((0, (second.head, second.tail)), (1, (second.tail, second.head))):
        pairs = [(first.relation, second.relation, turn)]
        for mine, theirs in zip((first.head, first.tail), ends, strict=True):
            if isinstance(mine, Constant) and isinstance(theirs, Constant):
                assert isinstance(mine.entity, int) and isinstance(theirs.entity, int)
                pairs.append((mine.entity, theirs.entity, 0))
            elif mine != theirs:
                break
        else:
            ways.append(pairs)
    return ways


def _equal(pairs: Sequence[tuple[int, int, int]], numbers: Places) -> np.ndarray[Any, Any]:
    found = np.ones(len(numbers), np.bool_)
    for one, other, turn in pairs:
        found &= numbers[:, one] == numbers[:, other] ^ turn
    return found
