"""EFOk's query types as small graphs: variables by number, edges, and constants at variables.

Directions do not matter to a type, because every relation has an inverse; a formula is written from
constants over existential to free variables, as published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from cqa.errors import QueryError
from cqa.query import Atom, Conjunction, Constant, Query, Term, Variable
from cqa.types.efok_text import write_formula

Edge: TypeAlias = tuple[int, int, bool]
"""Two variables, the smaller number first, and whether the edge is positive."""


@dataclass(frozen=True)
class Shape:
    """A conjunctive query type: existential variables 0, 1, …, then the free ones.

    ``constants`` has the variable and the sign of each constant's only edge.
    """

    existential: int
    free: int
    edges: tuple[Edge, ...]
    constants: tuple[tuple[int, bool], ...]

    @property
    def negations(self) -> int:
        """The number of negative edges."""
        return sum(not sign for *_, sign in (*self.edges, *self.constants))

    @property
    def topology(self) -> str:
        """What it is: "cyclic" with a cycle of variables, "multi" with parallel edges, or "SDAG".

        A type of both kinds (none at the published limits) is called cyclic.
        """
        return _topology([(low, high) for low, high, _ in self.edges])

    @cached_property
    def query(self) -> Query:
        """The type in the package's form, with atoms in the order of the published formulas.

        Constants come first; then edges by their smaller variable, then by their larger one, of two
        parallel ones the positive first; but a lone negative edge stands last at its variable.
        """
        parallel = Counter((low, high) for low, high, _ in self.edges)
        edges = sorted(
            self.edges,
            key=lambda edge: (
                edge[0],
                not edge[2] and parallel[edge[:2]] == 1,
                edge[1],
                not edge[2],
            ),
        )
        ends: list[tuple[Term, int, bool]] = [
            (Constant(f"s{number}"), at, sign)
            for number, (at, sign) in enumerate(sorted(self.constants), 1)
        ]
        ends += [(self._variable(low), high, sign) for low, high, sign in edges]
        atoms = tuple(
            Atom(f"r{number}", head, self._variable(tail), sign)
            for number, (head, tail, sign) in enumerate(ends, 1)
        )
        free = tuple(Variable(f"f{number}") for number in range(1, self.free + 1))
        return Query(free, (Conjunction(atoms),))

    @cached_property
    def formula(self) -> str:
        """The formula, such as `(r1(s1,e1))&(r2(e1,f1))`."""
        return write_formula(self.query)

    def _variable(self, number: int) -> Variable:
        if number < self.existential:
            return Variable(f"e{number + 1}")
        return Variable(f"f{number - self.existential + 1}")


def topology(query: Query) -> str:
    """The topology of a query graph: "SDAG", "multi" or "cyclic", as `Shape.topology` says.

    Raises QueryError for a query of several disjuncts or with a negated part.
    """
    if len(query.disjuncts) != 1 or query.disjuncts[0].without:
        raise QueryError("a topology is of one conjunction of atoms")
    pairs = [atom.variables for atom in query.disjuncts[0].atoms]
    return _topology([tuple(sorted(pair)) for pair in pairs if len(pair) == 2])


def _topology(pairs: Sequence[tuple[Hashable, ...]]) -> str:
    simple = set(pairs)
    # Pairs make a cycle when one of them joins variables that the others already join.
    cluster: dict[Hashable, Hashable] = {}

    def root(node: Hashable) -> Hashable:
        while node in cluster:
            node = cluster[node]
        return node

    for one, other in simple:
        first, second = root(one), root(other)
        if first == second:
            return "cyclic"
        cluster[first] = second
    return "multi" if len(pairs) > len(simple) else "SDAG"
