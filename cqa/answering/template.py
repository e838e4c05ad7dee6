"""Queries of one form side by side: a template, and columns of their relations and constants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, count
from typing import Any, TypeAlias

import numpy as np

from cqa.answering.pattern import Patterns
from cqa.errors import QueryError
from cqa.graphs.links import Links, Places
from cqa.notation.trees import from_tree
from cqa.query import (
    Atom,
    Conjunction,
    Constant,
    Query,
    Term,
    Variable,
    atoms,
    check,
    check_form,
    constants_of,
    ground,
)
from cqa.types.tree import Tree

Grounded: TypeAlias = Tree | Query

# So many forms of queries are remembered with how they are to be walked.
MAX_TEMPLATES = 4096


class Template:
    """The form of grounded queries: relations and constants are the numbers of columns.

    ``form`` is a query or an operator tree in which each occurrence of a relation or a constant has
    a number of its own, from 0 in order; ``query`` the same as disjuncts of query graphs.
    """

    def __init__(self, form: Grounded) -> None:
        self.form = form
        self.query = as_query(form)

    @cached_property
    def plan(self) -> Patterns:
        """How its queries are walked."""
        return Patterns(self.query)

    @cached_property
    def relations(self) -> tuple[int, ...]:
        """The columns of relations."""
        return tuple(int(atom.relation) for atom in atoms(self.query))

    @cached_property
    def entities(self) -> tuple[int, ...]:
        """The columns of constants."""
        return tuple(int(one.entity) for atom in atoms(self.query) for one in constants_of(atom))

    @cached_property
    def well_formed(self) -> bool:
        """Whether `cqa.query.check_form` finds nothing wrong, whatever the numbers."""
        return _passes(check_form, self.query)

    @cached_property
    def safe(self) -> bool:
        """Whether `cqa.query.check` finds nothing wrong, whatever the numbers."""
        return _passes(check, self.query)

    def fits(self, row: Sequence[Any], links: Links, universe: bool) -> bool:
        """Whether a query of such numbers is well formed, safe or ``universe``, and of a graph."""
        if not (self.well_formed if universe else self.safe):
            return False
        bound = links.relation_count
        for at in self.relations:
            if not (type(row[at]) is int and 0 <= row[at] < bound):
                return False
        bound = links.entity_count
        return all(type(row[at]) is int and 0 <= row[at] < bound for at in self.entities)

    def filled(self, numbers: Mapping[int, int]) -> Grounded:
        """The form with a number for each column."""
        if isinstance(self.form, Tree):
            return _filled(self.form, numbers)
        table: dict[int | str, int] = dict(numbers.items())
        return ground(self.form, table, table)


def _filled(tree: Tree, numbers: Mapping[int, int]) -> Tree:
    relation = None if tree.relation is None else numbers[int(tree.relation)]
    entity = None if tree.entity is None else numbers[int(tree.entity)]
    operands = tuple(_filled(operand, numbers) for operand in tree.operands)
    return Tree(tree.op, operands, relation, entity)


def _passes(check: Callable[[Query], None], query: Query) -> bool:
    try:
        check(query)
    except QueryError:
        return False
    return True


@dataclass(frozen=True, eq=False, slots=True)
class Compiled:
    """A grounded query as a batch of one: its template, and its number for each column."""

    template: Template
    row: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Batch:
    """Grounded queries of one form.

    ``numbers`` has a row for each query and a column for each number of the template; ``own`` are
    the places of its queries in the list that they came from.
    """

    template: Template
    numbers: Places
    own: Sequence[int]

    def __len__(self) -> int:
        return len(self.numbers)

    def misfit(self, links: Links, universe: bool) -> int | None:
        """The first query that does not fit (`Template.fits`), or None where all do."""
        template = self.template
        if not (template.well_formed if universe else template.safe):
            return 0
        wrong = np.zeros(len(self), np.bool_)
        for columns, bound in (
            (template.relations, links.relation_count),
            (template.entities, links.entity_count),
        ):
            own = self.numbers[:, list(columns)]
            wrong |= ((own < 0) | (own >= bound)).any(axis=1)
        return int(wrong.argmax()) if wrong.any() else None


def template_of(query: Grounded) -> Template:
    """The template of a query, or of a query type."""
    return Template(numbered(query))


def numbered(query: Grounded) -> Grounded:
    """The query with a number of its own, from 0 in order, for each relation and each constant."""
    columns = count()
    return _tree(query, columns) if isinstance(query, Tree) else _query(query, columns)


def structure(query: Grounded) -> tuple[Any, list[Any]]:
    """What queries of one form have in common, and a query's own labels.

    The labels are its relations and constants, None where it has none, in the order of `numbered`.
    """
    row: list[Any] = []
    if isinstance(query, Tree):
        _tree_numbers(query, row)
        return query.formula, row
    return _query_key(query, row), row


def abstracted(query: Grounded) -> tuple[Template, list[Any]]:
    """The template of a query, and its relations and constants in the order of the columns.

    Queries of one form get one template, while it is remembered.
    """
    key, row = structure(query)
    found = _TEMPLATES.get(key)
    if found is None:
        if len(_TEMPLATES) >= MAX_TEMPLATES:
            _TEMPLATES.clear()
        found = _TEMPLATES[key] = template_of(query)
    return found, row


_TEMPLATES: dict[Any, Template] = {}


def batches(queries: Iterable[Grounded]) -> list[Batch]:
    """The queries by their form, in order of first appearance.

    Raises QueryError for a query that is not grounded, with its number, from 1.
    """
    numbers: dict[Template, list[list[int]]] = {}
    own: dict[Template, list[int]] = {}
    for at, query in enumerate(queries):
        template, row = abstracted(query)
        if not all(type(number) is int for number in row):
            raise QueryError(f"query {at + 1}: some relation or constant is no number")
        numbers.setdefault(template, []).append(row)
        own.setdefault(template, []).append(at)
    return [
        Batch(template, np.array(rows, np.int64).reshape(len(rows), -1), own[template])
        for template, rows in numbers.items()
    ]


def compiled(query: Grounded) -> Compiled:
    """A query as it is answered; raises QueryError for one that is not grounded."""
    template, row = abstracted(query)
    if not all(type(number) is int for number in row):
        raise QueryError("some relation or constant is no number")
    return Compiled(template, tuple(row))


def _tree_numbers(tree: Tree, row: list[Any]) -> None:
    if tree.op == "p":
        row.append(tree.relation)
    elif tree.op == "e":
        row.append(tree.entity)
    for operand in tree.operands:
        _tree_numbers(operand, row)


def _query_key(query: Query, row: list[Any]) -> Any:
    found: list[Any] = [variable.name for variable in query.free]
    for disjunct in query.disjuncts:
        found.append(None)
        for atom in disjunct.atoms:
            head, tail = atom.head, atom.tail
            row.append(atom.relation)
            if isinstance(head, Variable):
                found.append(head.name)
            else:
                row.append(head.entity)
                found.append(0)
            if isinstance(tail, Variable):
                found.append(tail.name)
            else:
                row.append(tail.entity)
                found.append(0)
            found.append(atom.positive)
        for part in disjunct.without:
            found.append(_query_key(part, row))
    return tuple(found)


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


def as_query(form: Grounded) -> Query:
    """The form as disjuncts of query graphs."""
    return from_tree(form) if isinstance(form, Tree) else form


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
