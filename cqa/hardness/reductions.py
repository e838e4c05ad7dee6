"""What a query reduces to: the type that the missing links of a match spell.

Of the edges of a match, those in the observed graph tell a reasoner nothing new. Two variables that
such an edge joins become one; what observed edges alone connect to a constant is known, and a
missing edge from there starts at a constant. What is left is a query graph of missing edges: the
simpler type.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cqa.query import Atom, Conjunction, Constant, Query, Term, Variable
from cqa.types.betae import HARDNESS, names
from cqa.types.canonical import canonical_order
from cqa.types.efok_text import write_formula
from cqa.types.registry import by_name, graph_types, names_of_graph
from cqa.types.tree import Tree, anchor, arranged, project

TRIVIAL = "trivial"

# An edge between two parts of a match, None standing for a constant of its own.
Edge = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class Reduction:
    """What a (query, answer) pair reduces to.

    ``name`` is the simpler type's: a published name (of several that of the hardness paper: 1p2i,
    not pi), else its formula; "trivial" where no link is missing, and the query's own type for full
    inference. ``hops`` is the largest distance of a node from the nearest free variable.
    """

    name: str
    missing: int
    hops: int
    existential: int
    full: bool = False

    @property
    def order(self) -> tuple[int, int, int, int, str]:
        """The least of several is kept: fewest missing links, then fewest hops (2i before 2p).

        The papers stop there. Here the fewest existential variables come next, then the shorter
        name, then the first by alphabet.
        """
        return self.missing, self.hops, self.existential, len(self.name), self.name


def shown_name(known: Sequence[str]) -> str:
    """Of a type's names that of the hardness paper, else the best known; "" for no names."""
    return next((name for name in known if name in HARDNESS), known[0] if known else "")


def own_name(query: Tree | Query) -> str:
    """The name of a query's own type; its formula where it has none."""
    if isinstance(query, Tree):
        return shown_name(names(query)) or query.formula
    found = shown_name(names_of_graph(query))
    if found or any(part.without for part in query.disjuncts):
        return found or "query graph"
    return _relabelled(query)


def spelled(atoms: tuple[Atom, ...], free: tuple[Variable, ...], missing: int) -> Reduction:
    """What a match reduces to when the atoms at the bits of ``missing`` have missing links.

    ``atoms`` are the positive ones of a conjunction.
    """
    count = missing.bit_count()
    if not count:
        return Reduction(TRIVIAL, 0, 0, 0)
    edges, parts = _contracted(atoms, free, missing)
    found = [
        Reduction(_name(edges, parts), count, _hops(edges, parts), len(_inner(edges, parts)))
        for edges in _settled(edges, parts)
    ]
    return min(found, key=lambda reduction: reduction.order)


@dataclass(frozen=True)
class _Parts:
    """Variables joined by observed edges: which parts are free, which touch a constant so."""

    free: frozenset[int]
    anchored: frozenset[int]


def _contracted(
    atoms: tuple[Atom, ...], free: tuple[Variable, ...], missing: int
) -> tuple[list[Edge], _Parts]:
    """The missing edges between the parts that observed edges make of the variables."""
    variables = dict.fromkeys([*free, *(v for atom in atoms for v in atom.variables)])
    number = {variable: at for at, variable in enumerate(variables)}
    into = list(range(len(number)))

    def part(variable: Variable) -> int:
        at = number[variable]
        while into[at] != at:
            at = into[at]
        return at

    for bit, atom in enumerate(atoms):
        if not missing >> bit & 1 and len(atom.variables) == 2:
            # The lower number stands for both: free variables come first.
            low, high = sorted(part(v) for v in atom.variables)
            into[high] = low
    anchored: set[int] = set()
    edges: list[Edge] = []
    for bit, atom in enumerate(atoms):
        ends = [part(end) if isinstance(end, Variable) else None for end in (atom.head, atom.tail)]
        if missing >> bit & 1:
            # A missing link inside what observed links connect starts from what is known there.
            loop = ends[0] == ends[1] and ends[0] is not None
            edges.append((None, ends[1]) if loop else (ends[0], ends[1]))
        elif None in ends:
            anchored.update(end for end in ends if end is not None)
    return edges, _Parts(frozenset(part(v) for v in free), frozenset(anchored))


def _settled(edges: list[Edge], parts: _Parts) -> list[list[Edge]]:
    """The edges after everything known became constants; several ways where the order matters."""
    known = [at for at in sorted(parts.anchored) if _is_known(at, edges, parts)]
    inner = [at for at in known if at not in parts.free]
    if inner:
        return _settled(_fixed(edges, inner[0]), parts)
    if known:
        # One of two free variables is known by the other: either may be.
        return [found for at in known for found in _settled(_fixed(edges, at), parts)]
    return _anchored(edges, parts)


def _is_known(part: int, edges: list[Edge], parts: _Parts) -> bool:
    """Whether all missing edges of a part lead on to free variables, so that none leads to it."""
    others = [b if a == part else a for a, b in edges if part in (a, b)]
    if not others or None in others:
        return False
    return all(
        not parts.free.isdisjoint(_reached(other, edges, part))
        for other in others
        if other is not None
    )


def _reached(start: int, edges: Iterable[Edge], without: int | None = None) -> set[int]:
    """The parts that edges connect to one, leaving out one of them."""
    found, waiting = {start}, [start]
    edges = list(edges)
    while waiting:
        at = waiting.pop()
        for a, b in edges:
            if at in (a, b) and without not in (a, b):
                other = b if a == at else a
                if other is not None and other not in found:
                    found.add(other)
                    waiting.append(other)
    return found


def _fixed(edges: list[Edge], part: int) -> list[Edge]:
    """The edges with a part turned into a constant at each of its edges."""
    return [(None if a == part else a, None if b == part else b) for a, b in edges]


def _anchored(edges: list[Edge], parts: _Parts) -> list[list[Edge]]:
    """Where edges hang together without a constant, some end of one becomes one.

    There the answer itself is known by observed links, and missing ones start from it: at an
    existential end of theirs, or, where they lead back to it, at the answer.
    """
    for start in sorted({end for edge in edges for end in edge if end is not None}):
        piece = _reached(start, edges)
        own = [edge for edge in edges if not piece.isdisjoint(edge)]
        if any(None in edge for edge in own):
            continue
        ends = [at for at in sorted(piece - parts.free) if sum(at in edge for edge in own) == 1]
        if ends:
            return [found for at in ends for found in _anchored(_fixed(edges, at), parts)]
        # Opened at one edge of a known part, a circle of missing edges becomes a path.
        ways = []
        for number, edge in enumerate(edges):
            for at in sorted(piece & parts.anchored & set(edge)):
                opened = [*edges[:number], *_fixed([edge], at), *edges[number + 1 :]]
                ways += _anchored(opened, parts)
        if ways:
            return ways
    return [edges]


def _inner(edges: list[Edge], parts: _Parts) -> list[int]:
    """The existential parts that edges touch, in order."""
    return sorted({end for edge in edges for end in edge if end is not None} - parts.free)


def _hops(edges: list[Edge], parts: _Parts) -> int:
    """The largest distance from a free part to another part or to a constant."""
    near = {end for edge in edges for end in edge if end in parts.free}
    seen, left, hops = set(near), list(edges), 0
    while touched := [edge for edge in left if not near.isdisjoint(edge)]:
        left = [edge for edge in left if near.isdisjoint(edge)]
        new = {end for edge in touched for end in edge if end is not None} - seen
        # An edge between two parts that are equally near leads no further.
        hops += bool(new) or any(None in edge for edge in touched)
        seen |= new
        near = new
    return hops


def _name(edges: list[Edge], parts: _Parts) -> str:
    query = _query(edges, parts)
    found = shown_name(names_of_graph(query))
    if found:
        return found
    tree = _tree(edges, parts)
    if tree is not None:
        return shown_name(names(tree)) or tree.formula
    return _relabelled(query)


def _query(edges: list[Edge], parts: _Parts) -> Query:
    """The query type of missing edges."""
    touched = sorted({end for edge in edges for end in edge if end is not None})
    free = [Variable(f"f{n}") for n, _ in enumerate((p for p in touched if p in parts.free), 1)]
    names_of = dict(zip((p for p in touched if p in parts.free), free, strict=True))
    names_of |= {p: Variable(f"e{n}") for n, p in enumerate(_inner(edges, parts), 1)}
    atoms = []
    constants = 0
    for number, edge in enumerate(edges, 1):
        ends: list[Term] = []
        for end in edge:
            constants += end is None
            ends.append(Constant(f"s{constants}") if end is None else names_of[end])
        atoms.append(Atom(f"r{number}", ends[0], ends[1]))
    return Query(tuple(free), (Conjunction(tuple(atoms)),))


def _tree(edges: list[Edge], parts: _Parts) -> Tree | None:
    """The operator tree of missing edges; None where they are no tree with constants as leaves."""
    roots = sorted({end for edge in edges for end in edge if end in parts.free})
    if len(roots) != 1:
        return None
    used: set[int] = set()

    def grown(at: int, edge: int | None) -> Tree | None:
        branches: list[Tree] = []
        for number, (a, b) in enumerate(edges):
            if number == edge or at not in (a, b):
                continue
            if number in used:
                return None
            used.add(number)
            other = b if a == at else a
            below = anchor() if other is None else grown(other, number)
            if below is None:
                return None
            branches.append(project(below))
        tree = branches[0] if branches else None
        for branch in branches[1:]:
            assert tree is not None
            tree = arranged("i", (tree, branch))
        return tree

    # Chains of i are bracketed from the left, longer branches last, whatever the edges' order.
    found = grown(roots[0], None)
    if found is None or len(used) < len(edges):
        return None
    return _sorted(found)


def _sorted(tree: Tree) -> Tree:
    """The tree with each chain of i bracketed anew, its branches in order."""
    if tree.op == "p":
        return project(_sorted(tree.operands[0]))
    if tree.op == "e":
        return tree
    branches: list[Tree] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node.op == "i":
            waiting += node.operands
        else:
            branches.append(_sorted(node))
    branches.sort(key=lambda branch: branch.formula)
    found = branches[0]
    for branch in branches[1:]:
        found = arranged("i", (found, branch))
    return found


def _relabelled(query: Query) -> str:
    """The formula of a query graph that all graphs of its type have.

    That of EFOk's complete space where the type is there, else one in canonical order.
    """
    return "|".join(sorted(_formula(conjunction, query.free) for conjunction in query.disjuncts))


@lru_cache(maxsize=4096)
def _formula(conjunction: Conjunction, free: tuple[Variable, ...]) -> str:
    atoms = conjunction.atoms
    variables = dict.fromkeys([*free, *(v for atom in atoms for v in atom.variables)])
    number = {variable: at for at, variable in enumerate(variables)}
    kinds = [0 if variable in free else 1 for variable in variables]
    pairs: list[tuple[int, int]] = []
    for atom in atoms:
        middle = len(kinds)
        kinds.append(3 if atom.positive else 4)
        for end in (atom.head, atom.tail):
            if isinstance(end, Variable):
                pairs.append((middle, number[end]))
            else:
                kinds.append(2)
                pairs.append((middle, len(kinds) - 1))
    # Both ends of an atom may be one variable: a simple graph has that pair once.
    place = canonical_order(kinds, sorted(set(pairs)))
    order = sorted(range(len(variables)), key=place.__getitem__)
    rank = {at: n for n, at in enumerate(order)}
    counts = {0: 0, 1: 0}
    named: dict[Variable, Variable] = {}
    listed = list(variables)
    for at in order:
        counts[kinds[at]] += 1
        named[listed[at]] = Variable(f"{'fe'[kinds[at]]}{counts[kinds[at]]}")
    rows: list[tuple[list[tuple[int, int, str]], bool]] = []
    for atom in atoms:
        sides = [
            (0, 0, "") if isinstance(end, Constant) else (1, -rank[number[end]], named[end].name)
            for end in (atom.head, atom.tail)
        ]
        sides.sort()
        rows.append((sides, not atom.positive))
    rows.sort()
    constants = 0
    made: list[Atom] = []
    for at, (sides, negative) in enumerate(rows, 1):
        terms: list[Term] = []
        for kind, _, name in sides:
            if kind:
                terms.append(Variable(name))
            else:
                constants += 1
                terms.append(Constant(f"s{constants}"))
        made.append(Atom(f"r{at}", terms[0], terms[1], not negative))
    named_free = tuple(Variable(f"f{n + 1}") for n in range(counts[0]))
    text = write_formula(Query(named_free, (Conjunction(tuple(made)),)))
    if not counts[0]:
        return text
    found = by_name(text).id
    return graph_types()[int(found.removeprefix("type"))].formula if found else text
