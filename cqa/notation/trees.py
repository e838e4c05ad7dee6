"""Operator trees as queries: unions become disjuncts, complements negated atoms or anti-joins."""

from __future__ import annotations

from itertools import count, product

from cqa.errors import QueryError
from cqa.query import Atom, Conjunction, Constant, Query, Variable
from cqa.types.tree import Tree

FREE = Variable("f1")

# A tree whose unions multiply to more disjuncts than this is refused.
MAX_DISJUNCTS = 4096


def from_tree(tree: Tree) -> Query:
    """The query of an operator tree; its only free variable is f1.

    Relations and anchors that a tree lacks get the names r1, s1, … in the order of its leaves, so
    that a type becomes a query type. A union becomes disjuncts wherever no complement stands above
    it. ``n`` over one projection of an anchor becomes a negated atom, over a union the complements
    of its operands, over ``n`` nothing; over anything else an anti-join of the whole subtree, so
    that its inner variables stay inside. The query is safe where every complement is bounded by an
    intersection; other trees, such as those of De Morgan forms, are answered with ``universe``.
    Raises QueryError for an anchor that no relation leads from, and for too many disjuncts.
    """
    return Query((FREE,), _Builder().alternatives(tree, FREE))


class _Builder:
    def __init__(self) -> None:
        self._variables, self._relations, self._constants = count(1), count(1), count(1)

    def alternatives(self, tree: Tree, at: Variable) -> tuple[Conjunction, ...]:
        """The conjunctions of which one must hold for a variable to be in the tree's set."""
        if tree.op == "e":
            raise QueryError("an anchor stands alone; only below p can it be part of a query")
        if tree.op == "p":
            return self._projected(tree, at)
        if tree.op == "n":
            return self._complement(tree.operands[0], at)
        if tree.op in "uU":
            parts = [self.alternatives(operand, at) for operand in tree.operands]
            return _limited(tuple(one for part in parts for one in part))
        parts = [
            self._complement(operand, at)
            if tree.op in "dD" and number
            else self.alternatives(operand, at)
            for number, operand in enumerate(tree.operands)
        ]
        return _all_of(parts)

    def _projected(self, tree: Tree, at: Variable) -> tuple[Conjunction, ...]:
        below = tree.operands[0]
        if below.op == "e":
            return (Conjunction((self._atom(tree, self._anchor(below), at),)),)
        inner = Variable(f"x{next(self._variables)}")
        parts = self.alternatives(below, inner)
        link = self._atom(tree, inner, at)
        return tuple(Conjunction((*part.atoms, link), part.without) for part in parts)

    def _complement(self, tree: Tree, at: Variable) -> tuple[Conjunction, ...]:
        if tree.op == "n":
            return self.alternatives(tree.operands[0], at)
        if tree.op in "uU":
            return _all_of([self._complement(operand, at) for operand in tree.operands])
        if tree.op in "iI" and all(operand.op == "n" for operand in tree.operands):
            inner = [self.alternatives(operand.operands[0], at) for operand in tree.operands]
            return _limited(tuple(one for part in inner for one in part))
        if tree.op == "p" and tree.operands[0].op == "e":
            atom = self._atom(tree, self._anchor(tree.operands[0]), at)
            return (Conjunction((Atom(atom.relation, atom.head, atom.tail, False),)),)
        return (Conjunction((), (Query((at,), self.alternatives(tree, at)),)),)

    def _atom(self, tree: Tree, head: Variable | Constant, tail: Variable) -> Atom:
        relation = tree.relation
        return Atom(f"r{next(self._relations)}" if relation is None else relation, head, tail)

    def _anchor(self, tree: Tree) -> Constant:
        entity = tree.entity
        return Constant(f"s{next(self._constants)}" if entity is None else entity)


def _all_of(parts: list[tuple[Conjunction, ...]]) -> tuple[Conjunction, ...]:
    size = 1
    for part in parts:
        size *= len(part)
    _check_size(size)
    return tuple(
        Conjunction(
            tuple(atom for part in chosen for atom in part.atoms),
            tuple(negated for part in chosen for negated in part.without),
        )
        for chosen in product(*parts)
    )


def _limited(parts: tuple[Conjunction, ...]) -> tuple[Conjunction, ...]:
    _check_size(len(parts))
    return parts


def _check_size(size: int) -> None:
    if size > MAX_DISJUNCTS:
        raise QueryError(f"the unions multiply to {size} disjuncts; {MAX_DISJUNCTS} is the limit")
