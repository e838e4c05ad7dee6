"""EFO-1's query types: operator trees with bounded negation, by anchors and depth.

The enumeration, the ids, and the figures that EFO-1-QA (Wang, Yin and Song 2021) publishes of it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from operator import itemgetter
from typing import TypeAlias

from cqa.errors import QueryError
from cqa.types.normal import binary, disjuncts, to_form
from cqa.types.tree import Tree, anchor, arranged, operators, project

# The limits of the published benchmark.
ANCHORS = 3
DEPTH = 3

# Trees of this depth are not yet nested too deeply for `cqa.types.tree.MAX_HEIGHT`.
DEEPEST = 150

# Larger spaces are refused: their types would not fit into memory.
MOST_RAW = 3_000_000

# Ids longer than this, after their prefix, are digests: they are to be names of files.
LONGEST_ID = 64

# The forms of Table 14, in its order.
COMPARED = ("Original", "DM", "DM+I", "DNF", "DNF+IU")

_Numbered: TypeAlias = tuple[int, Tree]
"""A tree and its place among all that the rules write."""


@lru_cache(maxsize=64)
def types(anchors: int = ANCHORS, depth: int = DEPTH) -> tuple[Tree, ...]:
    """The query types of up to so many anchors whose paths have up to so many p and n operators.

    In the Original form, in the order in which the rules first write them, which is that of the
    published table; 301 at the published limits. Raises QueryError for limits below 1, and for
    more than `MOST_RAW` trees.
    """
    return tuple(tree for _, tree in _numbered(anchors, depth))


@lru_cache(maxsize=64)
def _numbered(anchors: int, depth: int) -> tuple[_Numbered, ...]:
    """The types, each with its place among all the trees that the rules write."""
    if anchors < 1 or depth < 1:
        raise QueryError(f"anchors and depth are 1 or more, not {anchors} and {depth}")
    if depth > DEEPEST:
        raise QueryError(f"the depth is {DEEPEST} at most, not {depth}")
    # From 40 anchors on there are too many by far, unless there is no operator to join them.
    if depth > 1 and (anchors > 40 or raw_count(anchors, depth) > MOST_RAW):
        raise QueryError(
            f"{anchors} anchors and depth {depth} have too many types to list; lower one of them"
        )
    most = anchors if depth > 1 else 1
    found: list[_Numbered] = []
    before = 0
    for k in range(1, most + 1):
        found += ((before + place, tree) for place, tree in _generate(depth, k, False))
        before += _raw(depth, k, False)
    return tuple(sorted(found, key=itemgetter(0)))


@lru_cache(maxsize=1024)
def _generate(depth: int, anchors: int, negation: bool) -> tuple[_Numbered, ...]:
    """The trees with that many anchors, for a subtree with ``depth`` p and n operators left.

    Where ``negation`` is set, the tree is one operand of an intersection and may be a complement.
    Each stands there once, with the first of its places among all that the rules write: e, then p,
    i and u, then n, and of two operands all second ones after each first one.
    """
    made: dict[str, _Numbered] = {}
    before = 0

    def add(place: int, tree: Tree) -> None:
        known = made.get(tree.formula)
        if known is None or place < known[0]:
            made[tree.formula] = place, tree

    if anchors == 1:
        add(0, project(anchor()))
        before = 1
    if depth >= 2:
        below = _generate(depth - 1, anchors, False)
        for place, tree in below:
            add(before + place, project(tree))
        before += _raw(depth - 1, anchors, False)
        for op in "iu":
            for first in range(1, anchors):
                count = _raw(depth, anchors - first, op == "i")
                # A union is symmetric: with fewer anchors first it came before.
                if op == "i" or 2 * first <= anchors:
                    others = _generate(depth, anchors - first, op == "i")
                    for place, tree in _generate(depth, first, False):
                        row = before + place * count
                        for column, other in others:
                            add(row + column, arranged(op, (tree, other)))
                before += _raw(depth, first, False) * count
        if negation:
            for place, tree in below:
                add(before + place, Tree("n", (tree,)))
    return tuple(made.values())


def formula_id(tree: Tree) -> str:
    """The id of a tree's type, whatever order its operands stand in and whatever letters they have.

    The 301 types have the published ids, type0000 to type0530 with gaps: their places among the 633
    trees that the rules write at the published limits. Any other type has its formula without
    brackets, as in type-iiipepepepe for 4i, or a digest of it where it is long: no two types have
    the same, and a type has it wherever it is met.
    """
    original = binary(tree).formula
    number = _published().get(original)
    if number is not None:
        return f"type{number:04d}"
    # Each operator has a fixed number of operands, so that nothing is lost with the brackets.
    word = original.translate(_NO_BRACKETS)
    if len(word) > LONGEST_ID:
        word = hashlib.sha256(word.encode()).hexdigest()[:32]
    return f"type-{word}"


_NO_BRACKETS = str.maketrans("", "", "(),")


@lru_cache(maxsize=1)
def _published() -> dict[str, int]:
    return {tree.formula: place for place, tree in _numbered(ANCHORS, DEPTH)}


def raw_count(anchors: int = ANCHORS, depth: int = DEPTH) -> int:
    """How many trees the rules write before duplicates are dropped: 633 at the published limits."""
    return sum(_raw(depth, k, False) for k in range(1, anchors + 1))


@lru_cache(maxsize=4096)
def _raw(depth: int, anchors: int, negation: bool) -> int:
    count = int(anchors == 1)
    if depth >= 2:
        count += _raw(depth - 1, anchors, False) * (1 + negation)
        for first in range(1, anchors):
            others = _raw(depth, anchors - first, True) + _raw(depth, anchors - first, False)
            count += _raw(depth, first, False) * others
    return count


def by_anchors_and_depth(trees: Iterable[Tree]) -> dict[tuple[int, int], int]:
    """Table 2: how many types there are for each (anchors, depth in p)."""
    return dict(sorted(Counter((tree.anchors, tree.depth) for tree in trees).items()))


def has_negation(tree: Tree) -> bool:
    """Whether a complement or a difference occurs in a tree."""
    return not operators(tree).isdisjoint("ndD")


def has_union(tree: Tree) -> bool:
    """Whether a union occurs in a tree."""
    return not operators(tree).isdisjoint("uU")


def by_disjuncts(trees: Iterable[Tree]) -> dict[int, int]:
    """How many types have a disjunctive form of one disjunct, of two, …"""
    return dict(sorted(Counter(len(disjuncts(to_form(tree, "DNF"))) for tree in trees).items()))


def distinct(trees: Iterable[Tree], form: str, compat: str | None = None) -> int:
    """How many different formulas the types have in a form."""
    return len({to_form(tree, form, compat).formula for tree in trees})


def differing(trees: Sequence[Tree], forms: Sequence[str] = COMPARED) -> dict[tuple[str, str], int]:
    """Table 14: for each two forms, the number of types whose formulas differ.

    As published, only types count in which neither form has a union anywhere but at the root.
    """
    written = {form: [to_form(tree, form) for tree in trees] for form in forms}
    at_root = {
        form: [not any(has_union(operand) for operand in tree.operands) for tree in given]
        for form, given in written.items()
    }
    return {
        (one, other): sum(
            a.formula != b.formula
            for a, b, first, second in zip(
                written[one], written[other], at_root[one], at_root[other], strict=True
            )
            if first and second
        )
        for one, other in combinations(forms, 2)
    }
