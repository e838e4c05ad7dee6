"""Random small graphs and random grounded queries on them, for differential tests."""

from __future__ import annotations

from random import Random

from cqa.query import Atom, Conjunction, Constant, Query, Term, Variable
from cqa.types.tree import Tree
from tests.cqa.brute import Triple

ENTITIES, RELATIONS = 7, 3


def random_triples(random: Random) -> list[Triple]:
    """Some triples on few entities, so that most queries have answers; loops among them."""
    share = random.choice((0.15, 0.3, 0.45))
    return [
        (head, relation, tail)
        for head in range(ENTITIES)
        for relation in range(RELATIONS)
        for tail in range(ENTITIES)
        if random.random() < share
    ]


def random_tree(random: Random, depth: int = 3) -> Tree:
    """A grounded operator tree; n stands only as one operand of i, and d, I, U, D occur."""
    op = random.choice("eppppiiuudIUDnn") if depth else "e"
    if op == "e":
        anchor = Tree("e", entity=random.randrange(ENTITIES))
        return Tree("p", (anchor,), random.randrange(2 * RELATIONS))
    if op == "p":
        return Tree("p", (random_tree(random, depth - 1),), random.randrange(2 * RELATIONS))
    if op == "n":
        sides = random_tree(random, depth - 1), Tree("n", (random_tree(random, depth - 1),))
        return Tree("i", sides[:: random.choice((1, -1))])
    count = 2 if op in "iud" else 3
    return Tree(op, tuple(random_tree(random, depth - 1) for _ in range(count)))


def random_complement(random: Random) -> Tree:
    """A tree with n wherever it likes, as De Morgan forms have it, at the root too."""
    return _wild(random, 3)


def _wild(random: Random, depth: int) -> Tree:
    op = random.choice("eppinnu") if depth else "e"
    if op == "e":
        anchor = Tree("e", entity=random.randrange(ENTITIES))
        return Tree("p", (anchor,), random.randrange(2 * RELATIONS))
    if op == "p":
        return Tree("p", (_wild(random, depth - 1),), random.randrange(2 * RELATIONS))
    if op == "n":
        return Tree("n", (_wild(random, depth - 1),))
    return Tree(op, (_wild(random, depth - 1), _wild(random, depth - 1)))


def random_query(random: Random) -> Query:
    """A safe query graph: cycles, parallel edges, loops, several free variables, negated parts."""
    free = tuple(Variable(f"f{n}") for n in range(1, 1 + random.choice((1, 1, 1, 2, 2, 3))))
    disjuncts = tuple(
        _conjunction(random, free, (), "e", 2) for _ in range(random.choice((1, 1, 1, 2)))
    )
    return Query(free, disjuncts)


def _conjunction(
    random: Random, free: tuple[Variable, ...], given: tuple[Variable, ...], name: str, depth: int
) -> Conjunction:
    """``given``: variables that the surroundings bind."""
    existential = [Variable(f"{name}{n}") for n in range(random.choice((0, 1, 1, 2)))]
    variables = [*free, *existential]
    atoms = [_atom(random, variable, variables) for variable in variables if variable not in given]
    for _ in range(random.choice((0, 1, 1, 2)) if atoms else 1):
        atoms.append(_atom(random, random.choice(variables), variables))
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        found = _atom(random, random.choice(variables), variables)
        atoms.append(Atom(found.relation, found.head, found.tail, False))
    without = []
    if depth and random.random() < 0.4:
        shared = tuple(random.sample(variables, min(len(variables), random.choice((0, 1, 1, 2)))))
        parts = tuple(
            _conjunction(random, shared, shared, f"{name}{n}_", depth - 1)
            if shared
            else Conjunction((_atom(random, Variable(f"{name}{n}_"), []),))
            for n in range(random.choice((1, 1, 2)))
        )
        without.append(Query(shared, parts))
    random.shuffle(atoms)
    return Conjunction(tuple(atoms), tuple(without))


def _atom(random: Random, variable: Variable, others: list[Variable]) -> Atom:
    other: Term = Constant(random.randrange(ENTITIES))
    if others and random.random() < 0.65:
        other = random.choice(others)
    ends = (variable, other) if random.random() < 0.5 else (other, variable)
    return Atom(random.randrange(2 * RELATIONS), *ends)
