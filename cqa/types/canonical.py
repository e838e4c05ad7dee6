"""Canonical forms: equal for two queries if and only if they are the same up to isomorphism.

Colour refinement, then individualisation where it leaves nodes alike (as in McKay's nauty); of
choices that a symmetry turns into one another a single one is followed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from cqa.query import Conjunction, Constant, Query, Term, Variable, atoms

Colour: TypeAlias = tuple[str, int]
Links: TypeAlias = Sequence[Mapping[int, int]]
"""For each node its neighbours, and the label of the link as seen from it."""

Code: TypeAlias = tuple[tuple[int, int, int], ...]
Form: TypeAlias = tuple[tuple[Colour, ...], Code]

# Labels of links. An atom is a node, too: linked to its ends, its relation and its conjunction.
_HEAD, _TAIL, _END, _PART, _NAME = range(1, 6)


def canonical(query: Query, *, numbers: bool = True) -> Form:
    """A value that two queries share if they differ only in names and in the order of their parts.

    Names of relations and constants stand for any relation and constant, so that directions do not
    matter; numbers stand for themselves, 2r+1 being 2r the other way round. Free variables may be
    exchanged for one another. A relation's name that occurs twice keeps its directions. Without
    ``numbers`` each stands for any, too: the form is that of a grounded query's type, in which
    every atom has a relation and a constant of its own.
    """
    graph = _Graph(query, numbers)
    kinds = sorted(set(graph.colours))
    rank = {colour: number for number, colour in enumerate(kinds)}
    code, _ = _search(
        _refined([rank[colour] for colour in graph.colours], graph.links), graph.links
    )
    return tuple(sorted(graph.colours)), code


def isomorphic(one: Query, other: Query) -> bool:
    """Whether two queries have the same canonical form."""
    return canonical(one) == canonical(other)


def canonical_order(kinds: Sequence[int], pairs: Sequence[tuple[int, int]]) -> list[int]:
    """The place of each node of a simple graph in its canonical order, smaller kinds first."""
    links: list[dict[int, int]] = [{} for _ in kinds]
    for a, b in pairs:
        links[a][b] = links[b][a] = 1
    return _search(_refined(list(kinds), links), links)[1]


def automorphisms(kinds: Sequence[int], pairs: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
    """The permutations of a simple graph's nodes that keep their kinds and all pairs."""
    size = len(kinds)
    near: list[set[int]] = [set() for _ in kinds]
    for a, b in pairs:
        near[a].add(b)
        near[b].add(a)
    found: list[tuple[int, ...]] = [()]
    for node in range(size):
        found = [
            (*images, image)
            for images in found
            for image in range(size)
            if image not in images
            and kinds[image] == kinds[node]
            and len(near[image]) == len(near[node])
            and all((images[k] in near[image]) == (k in near[node]) for k in range(node))
        ]
    return found


class _Graph:
    """A query as one coloured graph: nodes for terms, atoms, conjunctions and negated parts."""

    def __init__(self, query: Query, numbers: bool) -> None:
        self._numbers = numbers
        self.colours: list[Colour] = []
        self.links: list[dict[int, int]] = []
        self._uses = Counter(atom.relation for atom in atoms(query))
        self._constants: dict[Constant, int] = {}
        self._relations: dict[str, int] = {}
        free = {variable: self._node("free") for variable in query.free}
        for conjunction in query.disjuncts:
            self._add(conjunction, free, self._node("disjunct"))

    def _node(self, kind: str, number: int = 0) -> int:
        self.colours.append((kind, number))
        self.links.append({})
        return len(self.colours) - 1

    def _link(self, node: int, other: int, label: int, back: int) -> None:
        # Both ends of an atom may be one term.
        self.links[node][other] = label + 8 * self.links[node].get(other, 0)
        self.links[other][node] = back + 8 * self.links[other].get(node, 0)

    def _add(self, conjunction: Conjunction, known: dict[Variable, int], node: int) -> None:
        scope = dict(known)
        for atom in conjunction.atoms:
            relation, head, tail = atom.relation, atom.head, atom.tail
            number, directed = -1, False
            if isinstance(relation, str):
                directed = self._uses[relation] > 1
            elif self._numbers:
                number, directed = relation - relation % 2, True
                if relation % 2:
                    head, tail = tail, head
            own = self._node("atom" if atom.positive else "not atom", number)
            self._link(node, own, _PART, _PART)
            for end, label in ((head, _HEAD), (tail, _TAIL)):
                self._link(own, self._term(end, scope), label if directed else _END, _END)
            if isinstance(relation, str) and directed:
                if relation not in self._relations:
                    self._relations[relation] = self._node("relation")
                self._link(own, self._relations[relation], _NAME, _NAME)
        for part in conjunction.without:
            negated = self._node("without")
            self._link(node, negated, _PART, _PART)
            shared = {v: self._term(v, scope) for v in part.free}
            for inner in part.disjuncts:
                below = self._node("conjunction")
                self._link(negated, below, _PART, _PART)
                self._add(inner, shared, below)

    def _term(self, term: Term, scope: dict[Variable, int]) -> int:
        if isinstance(term, Variable):
            if term not in scope:
                scope[term] = self._node("existential")
            return scope[term]
        if not isinstance(term.entity, str) and not self._numbers:
            return self._node("constant", -1)
        if term not in self._constants:
            number = -1 if isinstance(term.entity, str) else term.entity
            self._constants[term] = self._node("constant", number)
        return self._constants[term]


def _refined(colours: list[int], links: Links) -> list[int]:
    """The coarsest colours, finer than those given, by which alike nodes have alike neighbours."""
    count = len(set(colours))
    while True:
        signatures = [
            (colours[node], sorted((label, colours[other]) for other, label in near.items()))
            for node, near in enumerate(links)
        ]
        ordered = sorted(range(len(links)), key=signatures.__getitem__)
        number = -1
        refined = [0] * len(links)
        for at, node in enumerate(ordered):
            if at == 0 or signatures[node] != signatures[ordered[at - 1]]:
                number += 1
            refined[node] = number
        colours = refined
        if number + 1 == count:
            return colours
        count = number + 1


def _search(colours: list[int], links: Links) -> tuple[Code, list[int]]:
    """The least code of a graph over all orders that its colours leave open, and such an order."""
    cell = _open_cell(colours)
    if not cell:
        return _code(colours, links), colours
    best: tuple[Code, list[int]] | None = None
    seen: set[Code] = set()
    for node in cell:
        chosen = _individual(colours, node, links)
        # Equal codes at the end of a way mean a symmetry that turns one choice into the other.
        end = chosen
        while open_cell := _open_cell(end):
            end = _individual(end, open_cell[0], links)
        code = _code(end, links)
        if code in seen:
            continue
        seen.add(code)
        found = _search(chosen, links)
        if best is None or found[0] < best[0]:
            best = found
    assert best is not None
    return best


def _open_cell(colours: list[int]) -> list[int]:
    """The nodes of the first colour that several have."""
    cells: dict[int, list[int]] = {}
    for node, colour in enumerate(colours):
        cells.setdefault(colour, []).append(node)
    return min((cell for cell in cells.values() if len(cell) > 1),
               key=lambda cell: colours[cell[0]], default=[])  # fmt: skip


def _individual(colours: list[int], node: int, links: Links) -> list[int]:
    """The colours with one node told apart from its like, refined."""
    return _refined([2 * c + (at != node) for at, c in enumerate(colours)], links)


def _code(colours: list[int], links: Links) -> Code:
    """A graph with a colour of its own for each node, as the list of its links."""
    edges = [
        (colours[node], colours[other], label)
        for node, near in enumerate(links)
        for other, label in near.items()
    ]
    return tuple(sorted(edges))
