"""A conjunction sorted by what its atoms say of each variable: rows, loops, edges, anti-joins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from cqa.query import Atom, Conjunction, Constant, Query, Variable

# A directed relation and whether the link must be there (else: must not).
Edge: TypeAlias = tuple[int, bool]


class Pattern:
    """The atoms of a conjunction; each stands once, however often and in whichever direction.

    ``rows`` and ``barred`` list for a variable the (relation, entity) whose row it must, or must
    not, be in; ``loops`` its edges to itself; ``edges[x][y]`` the edges from x to y, which stand
    inverted in ``edges[y][x]``. ``facts`` have no variable. ``apart`` lists the anti-joins that
    share one variable, ``ties`` the others.
    """

    __slots__ = ("apart", "barred", "edges", "facts", "loops", "rows", "ties", "variables")

    def __init__(self, conjunction: Conjunction, others: Iterable[Variable]) -> None:
        self.rows: dict[Variable, list[tuple[int, int]]] = {}
        self.barred: dict[Variable, list[tuple[int, int]]] = {}
        self.loops: dict[Variable, list[Edge]] = {}
        self.edges: dict[Variable, dict[Variable, list[Edge]]] = {}
        self.facts: list[tuple[int, int, int, bool]] = []
        self.apart: dict[Variable, list[Query]] = {}
        self.ties: list[Query] = []
        self.variables: dict[Variable, None] = {}
        for atom in conjunction.atoms:
            self._add(atom)
        for part in conjunction.without:
            self.variables.update(dict.fromkeys(part.free))
            if len(part.free) == 1:
                self.apart.setdefault(part.free[0], []).append(part)
            else:
                self.ties.append(part)
        self.variables.update(dict.fromkeys(others))

    def _add(self, atom: Atom) -> None:
        head, tail, relation = atom.head, atom.tail, int(atom.relation)
        if type(head) is Constant:
            if type(tail) is Constant:
                ends = int(head.entity), int(tail.entity)
                fact = (relation, *ends, atom.positive)
                inverse = (relation ^ 1, *ends[::-1], atom.positive)
                if fact not in self.facts and inverse not in self.facts:
                    self.facts.append(fact)
                return
            variable, given = tail, head
        elif type(tail) is Constant:
            variable, given, relation = head, tail, relation ^ 1
        else:
            assert isinstance(head, Variable) and isinstance(tail, Variable)
            self._add_edge(relation, head, tail, atom.positive)
            return
        assert isinstance(variable, Variable)
        rows = (self.rows if atom.positive else self.barred).setdefault(variable, [])
        row = relation, int(given.entity)
        if row not in rows:
            rows.append(row)
        self.variables[variable] = None

    def _add_edge(self, relation: int, head: Variable, tail: Variable, positive: bool) -> None:
        self.variables[head] = self.variables[tail] = None
        if head == tail:
            loops = self.loops.setdefault(head, [])
            if (relation, positive) not in loops and (relation ^ 1, positive) not in loops:
                loops.append((relation, positive))
            return
        edges = self.edges.setdefault(head, {}).setdefault(tail, [])
        if (relation, positive) not in edges:
            edges.append((relation, positive))
            back = self.edges.setdefault(tail, {}).setdefault(head, [])
            back.append((relation ^ 1, positive))

    def filters(self, variable: Variable) -> bool:
        """Whether the variable has filters that need no other variable."""
        return variable in self.barred or variable in self.loops or variable in self.apart
