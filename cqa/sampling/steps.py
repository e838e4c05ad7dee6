"""The order in which the positive part of a query graph is grounded, fixed once for a type.

One node (a variable or a constant) after the other is placed on an entity. A node that hangs on one
placed node by one edge is drawn by a relation; one that closes a cycle or stands on parallel edges
is drawn from the entities that all of its placed neighbours leave open.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from cqa.query import Atom, Conjunction, Constant, Query, Term, Variable, check
from cqa.sampling.options import SamplingError


@dataclass(frozen=True)
class Step:
    """A node to be placed.

    ``edges``: the placed neighbours, each with its atoms' numbers. ``loops``: the atoms that lead
    from the node to itself. ``ahead``: the most parallel edges to a node that comes later.
    """

    node: Term
    edges: tuple[tuple[Term, tuple[int, ...]], ...]
    loops: tuple[int, ...] = ()
    ahead: int = 1


@dataclass(frozen=True)
class Steps:
    """How a conjunction is grounded: its positive atoms in steps, then its negated ones."""

    conjunction: Conjunction
    steps: tuple[Step, ...]
    negative: tuple[int, ...]

    @property
    def positive(self) -> tuple[int, ...]:
        """The numbers of the positive atoms."""
        atoms = enumerate(self.conjunction.atoms)
        return tuple(number for number, atom in atoms if atom.positive)


def check_type(query: Query) -> None:
    """Raise SamplingError for what is no type that can be grounded here.

    Raises QueryError for a query that is not safe.
    """
    check(query)
    if any(part.without for part in query.disjuncts):
        raise SamplingError(
            "a negated part of several atoms is sampled as an operator tree only; write the type as"
            " one, such as (i,(n,(p,(p,(e)))),(p,(e)))"
        )
    seen: set[str] = set()
    for part in query.disjuncts:
        for atom in part.atoms:
            given = [atom.relation, *(t.entity for t in (atom.head, atom.tail)
                                      if isinstance(t, Constant))]  # fmt: skip
            if numbers := [name for name in given if not isinstance(name, str)]:
                raise SamplingError(
                    f"{numbers[0]} is a number: a type has names (r1, s1) where a query has numbers"
                )
            if atom.relation in seen:
                raise SamplingError(
                    f"the relation {atom.relation} stands twice; give each atom one of its own"
                )
            seen.add(str(atom.relation))
            if isinstance(atom.head, Constant) and isinstance(atom.tail, Constant):
                raise SamplingError(f"{atom.relation} links two constants, so that it asks nothing")
    shared = [_constants(part) for part in query.disjuncts]
    if len(set().union(*shared)) < sum(map(len, shared)):
        raise SamplingError("a constant stands in two disjuncts; give each disjunct its own")


def _constants(part: Conjunction) -> set[Constant]:
    ends = (end for atom in part.atoms for end in (atom.head, atom.tail))
    return {end for end in ends if isinstance(end, Constant)}


def steps_of(conjunction: Conjunction, free: tuple[Variable, ...]) -> Steps:
    """The steps of a conjunction: from a cycle or parallel edges where it has some."""
    near: dict[Term, dict[Term, list[int]]] = defaultdict(lambda: defaultdict(list))
    loops: dict[Term, list[int]] = defaultdict(list)
    nodes: dict[Term, None] = {}
    for number, atom in enumerate(conjunction.atoms):
        if not atom.positive:
            continue
        nodes.update(dict.fromkeys((atom.head, atom.tail)))
        if atom.head == atom.tail:
            loops[atom.head].append(number)
            continue
        near[atom.head][atom.tail].append(number)
        near[atom.tail][atom.head].append(number)
    core = _core(near)
    steps: list[Step] = []
    placed: set[Term] = set()
    while len(placed) < len(nodes):

        def rank(node: Term) -> tuple[int, ...]:
            links = [len(numbers) for other, numbers in near[node].items() if other in placed]
            parallel = max((len(numbers) for numbers in near[node].values()), default=0)
            # Nodes next to placed ones; those that close most first, then those of the core.
            return (
                bool(links), len(links), max(links, default=0), len(loops[node]),
                node in core, parallel if node in core else 0, node in free,
            )  # fmt: skip

        node = max((n for n in nodes if n not in placed), key=rank)
        edges = tuple((other, tuple(near[node][other])) for other in near[node] if other in placed)
        placed.add(node)
        ahead = [len(numbers) for other, numbers in near[node].items() if other not in placed]
        steps.append(Step(node, edges, tuple(loops[node]), max(ahead, default=1)))
    negative = tuple(n for n, atom in enumerate(conjunction.atoms) if not atom.positive)
    return Steps(conjunction, tuple(steps), negative)


def _core(near: dict[Term, dict[Term, list[int]]]) -> set[Term]:
    """The nodes on cycles or on parallel edges, and those between them."""
    kept = {node: {other: len(numbers) for other, numbers in near[node].items()} for node in near}
    while leaf := next((node for node, others in kept.items() if sum(others.values()) < 2), None):
        for other in kept.pop(leaf):
            del kept[other][leaf]
    return set(kept)


def replaced(atom: Atom, relation: int, places: dict[Term, int]) -> Atom:
    """An atom with numbers for its relation and for its constants."""

    def end(term: Term) -> Term:
        return term if isinstance(term, Variable) else Constant(places[term])

    return Atom(relation, end(atom.head), end(atom.tail), atom.positive)
