"""A second answerer for small graphs: every assignment of every variable, one after the other.

It shares nothing with the package but the form of a query. Triples are (head, relation, tail) with
relations without direction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import product

from cqa.query import Atom, Conjunction, Constant, Query, Term, Variable
from cqa.types.tree import Tree

Triple = tuple[int, int, int]
Assignment = dict[Variable, int]


class Brute:
    """Answers by trying out; only for graphs of a few entities."""

    def __init__(self, triples: Collection[Triple], entities: int) -> None:
        self.triples, self.entities = frozenset(triples), range(entities)

    def answers(self, query: Query) -> list[tuple[int, ...]]:
        """The answers, sorted."""
        return sorted(
            row
            for row in product(self.entities, repeat=len(query.free))
            if self.holds(query, dict(zip(query.free, row, strict=True)))
        )

    def holds(self, query: Query, given: Assignment) -> bool:
        """Whether an assignment of the free variables is an answer."""
        return any(True for part in query.disjuncts for _ in self.matches(part, query.free, given))

    def matches(
        self, part: Conjunction, free: tuple[Variable, ...], given: Assignment
    ) -> Iterator[Assignment]:
        """The assignments of a conjunction's variables that go on from one of the free ones."""
        own = {variable: given[variable] for variable in free}
        names = [v for atom in part.atoms for v in (atom.head, atom.tail)]
        names += [v for negated in part.without for v in negated.free]
        others = sorted({v for v in names if isinstance(v, Variable)} - own.keys())
        yield from self._extend(part, others, own)

    def _extend(
        self, part: Conjunction, others: list[Variable], own: Assignment
    ) -> Iterator[Assignment]:
        if any(
            self.linked(atom, own) != atom.positive
            for atom in part.atoms
            if all(isinstance(end, Constant) or end in own for end in (atom.head, atom.tail))
        ):
            return
        if others:
            for entity in self.entities:
                yield from self._extend(part, others[1:], {**own, others[0]: entity})
        elif not any(self.holds(negated, own) for negated in part.without):
            yield own

    def linked(self, atom: Atom, own: Assignment) -> bool:
        """Whether the triple of an atom stands in the graph."""
        relation = int(atom.relation)
        head, tail = self.entity(atom.head, own), self.entity(atom.tail, own)
        if relation % 2:
            head, tail = tail, head
        return (head, relation // 2, tail) in self.triples

    @staticmethod
    def entity(term: Term, own: Assignment) -> int:
        """What a term stands for."""
        return int(term.entity) if isinstance(term, Constant) else own[term]

    def values(
        self,
        query: Query,
        weight: Callable[[Triple], float],
        times: Callable[[float, float], float],
        plus: Callable[[float, float], float],
        one: float,
        fuzzy: bool = False,
    ) -> dict[tuple[int, ...], float]:
        """The semiring's value of each answer; ``fuzzy``: a negated atom weighs 1 - weight.

        For fuzzy values the query must have no anti-joins.
        """
        found: dict[tuple[int, ...], float] = {}
        for row in product(self.entities, repeat=len(query.free)):
            given = dict(zip(query.free, row, strict=True))
            for part in query.disjuncts:
                atoms = sorted(set(map(_forward, part.atoms)), key=repr)
                crisp = [atom for atom in atoms if atom.positive or not fuzzy]
                names = Conjunction(part.atoms).variables
                for own in self._all(Conjunction(tuple(crisp), part.without), names, given):
                    value = one
                    for atom in atoms:
                        if atom.positive:
                            value = times(value, weight(self._triple(atom, own)))
                        elif fuzzy and self.linked(atom, own):
                            value = times(value, 1 - weight(self._triple(atom, own)))
                    found[row] = plus(found[row], value) if row in found else value
        return found

    def _all(
        self, part: Conjunction, names: tuple[Variable, ...], given: Assignment
    ) -> Iterator[Assignment]:
        others = sorted({*names, *part.variables} - given.keys())
        yield from self._extend(part, others, given)

    def _triple(self, atom: Atom, own: Assignment) -> Triple:
        ends = self.entity(atom.head, own), self.entity(atom.tail, own)
        return ends[0], int(atom.relation) // 2, ends[1]


def _forward(atom: Atom) -> Atom:
    """The atom with its relation forward, so that equal ones are equal."""
    if int(atom.relation) % 2:
        return Atom(int(atom.relation) - 1, atom.tail, atom.head, atom.positive)
    return atom


def tree_set(tree: Tree, triples: Collection[Triple], entities: int) -> set[int]:
    """What an operator tree means, set by set."""
    sets = [tree_set(operand, triples, entities) for operand in tree.operands]
    if tree.op == "e":
        assert tree.entity is not None
        return {int(tree.entity)}
    if tree.op == "p":
        assert tree.relation is not None
        number, inverse = divmod(int(tree.relation), 2)
        links = {(t, h) if inverse else (h, t) for h, r, t in triples if r == number}
        return {end for start, end in links if start in sets[0]}
    if tree.op == "n":
        return set(range(entities)) - sets[0]
    if tree.op in "iI":
        return set.intersection(*sets)
    if tree.op in "uU":
        return set.union(*sets)
    return sets[0].difference(*sets[1:])
