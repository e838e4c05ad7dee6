"""A conjunction sorted by what its atoms say of each variable: rows, loops, edges, anti-joins.

Its relations and constants are the numbers of columns, which hold those of many queries
(`cqa.answering.template`).
"""

from __future__ import annotations

from dataclasses import dataclass

from cqa.query import Atom, Conjunction, Constant, Query, Variable


@dataclass(frozen=True, slots=True)
class Edge:
    """An atom between two ends as seen from one of them.

    ``column`` holds its relations, to be turned round where ``inverse`` is 1. ``bit`` stands for it
    among the positive atoms of its conjunction, 0 for a negated one.
    """

    column: int
    inverse: int
    positive: bool
    bit: int


class Pattern:
    """The atoms of a conjunction by the variables that they restrict.

    Variables are numbers here: the free ones first, as the query lists them, ``names`` tells which.
    ``rows`` and ``barred`` list for a variable (constant, edge to it): the rows that it must, or
    must not, be in; ``loops`` its edges to itself; ``edges[x][y]`` the edges from x to y, which
    stand inverted, in the same order, in ``edges[y][x]``. ``facts`` have no variable: (head, tail,
    edge). ``apart`` lists the anti-joins that share one variable, ``ties`` the others. A ``star``
    has nothing but rows, and perhaps barred ones, of its one variable. ``width`` is the number of
    positive atoms.
    """

    __slots__ = (
        "apart", "barred", "conjunction", "edges", "facts", "free", "loops", "names", "rows",
        "star", "ties", "variables", "width",
    )  # fmt: skip

    def __init__(self, conjunction: Conjunction, free: tuple[Variable, ...]) -> None:
        self.conjunction = conjunction
        self.names = tuple(dict.fromkeys([*free, *conjunction.variables]))
        self.variables, self.free = range(len(self.names)), tuple(range(len(free)))
        self.rows: dict[int, list[tuple[int, Edge]]] = {}
        self.barred: dict[int, list[tuple[int, Edge]]] = {}
        self.loops: dict[int, list[Edge]] = {}
        self.edges: dict[int, dict[int, list[Edge]]] = {}
        self.facts: list[tuple[int, int, Edge]] = []
        self.apart: dict[int, list[Patterns]] = {}
        self.ties: list[Patterns] = []
        self.width = 0
        numbers = {variable: number for number, variable in enumerate(self.names)}
        for atom in conjunction.atoms:
            self._add(atom, numbers)
        for part in conjunction.without:
            shared = tuple(numbers[variable] for variable in part.free)
            if len(shared) == 1:
                self.apart.setdefault(shared[0], []).append(Patterns(part, shared))
            else:
                self.ties.append(Patterns(part, shared))
        self.star = (
            len(self.names) == 1 and self.free == (0,) and 0 in self.rows
            and not (self.facts or self.loops or self.apart or self.ties)
        )  # fmt: skip

    def _add(self, atom: Atom, numbers: dict[Variable, int]) -> None:
        head, tail, column = atom.head, atom.tail, int(atom.relation)
        bit = 0
        if atom.positive:
            bit = 1 << self.width
            self.width += 1
        forward = Edge(column, 0, atom.positive, bit)
        backward = Edge(column, 1, atom.positive, bit)
        rows = self.rows if atom.positive else self.barred
        if isinstance(head, Constant):
            if isinstance(tail, Constant):
                self.facts.append((int(head.entity), int(tail.entity), forward))
            else:
                rows.setdefault(numbers[tail], []).append((int(head.entity), forward))
        elif isinstance(tail, Constant):
            rows.setdefault(numbers[head], []).append((int(tail.entity), backward))
        elif head == tail:
            self.loops.setdefault(numbers[head], []).append(forward)
        else:
            one, other = numbers[head], numbers[tail]
            self.edges.setdefault(one, {}).setdefault(other, []).append(forward)
            self.edges.setdefault(other, {}).setdefault(one, []).append(backward)

    def filters(self, variable: int) -> bool:
        """Whether the variable has filters that need candidates to look at."""
        return variable in self.barred or variable in self.loops or variable in self.apart


class Patterns:
    """A query as patterns, one for each disjunct.

    For a negated part ``shared`` are the numbers that its free variables have around it.
    """

    __slots__ = ("patterns", "shared")

    def __init__(self, query: Query, shared: tuple[int, ...] = ()) -> None:
        self.shared = shared
        self.patterns = tuple(Pattern(part, query.free) for part in query.disjuncts)


def any_positive(edges: list[Edge]) -> bool:
    """Whether an edge of several is positive."""
    return edges[0].positive or any(edge.positive for edge in edges)
