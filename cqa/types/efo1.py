"""EFO-1's query types: operator trees with bounded negation, by anchors and depth.

The enumeration, and the figures that EFO-1-QA (Wang, Yin and Song 2021) publishes of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations

from cqa.errors import QueryError
from cqa.types.normal import disjuncts, to_form
from cqa.types.tree import Tree, anchor, arranged, operators, project

# The limits of the published benchmark.
ANCHORS = 3
DEPTH = 3

# Trees of this depth are not yet nested too deeply for `cqa.types.tree.MAX_HEIGHT`.
DEEPEST = 150

# Larger spaces are refused: their types would not fit into memory.
MOST_RAW = 3_000_000

# The forms of Table 14, in its order.
COMPARED = ("Original", "DM", "DM+I", "DNF", "DNF+IU")


@lru_cache(maxsize=64)
def types(anchors: int = ANCHORS, depth: int = DEPTH) -> tuple[Tree, ...]:
    """The query types of up to so many anchors whose paths have up to so many p and n operators.

    In the Original form, by anchors, then depth, then formula; 301 at the published limits.
    Raises QueryError for limits below 1, and for more than `MOST_RAW` trees.
    """
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
    found = (tree for k in range(1, most + 1) for tree in _generate(depth, k, False))
    return tuple(sorted(found, key=lambda tree: (tree.anchors, tree.depth, tree.formula)))


@lru_cache(maxsize=1024)
def _generate(depth: int, anchors: int, negation: bool) -> tuple[Tree, ...]:
    """The trees with that many anchors, for a subtree with ``depth`` p and n operators left.

    Where ``negation`` is set, the tree is one operand of an intersection and may be a complement.
    """
    # A dictionary drops duplicates and keeps the order.
    made: dict[str, Tree] = {}

    def add(tree: Tree) -> None:
        made.setdefault(tree.formula, tree)

    if anchors == 1:
        add(project(anchor()))
    if depth >= 2:
        for below in _generate(depth - 1, anchors, False):
            add(project(below))
            if negation:
                add(Tree("n", (below,)))
        for first in range(1, anchors):
            others = _generate(depth, anchors - first, True)
            unions = _generate(depth, anchors - first, False) if 2 * first <= anchors else ()
            for tree in _generate(depth, first, False):
                for other in others:
                    add(arranged("i", (tree, other)))
                # A union is symmetric: the smaller operand first is enough.
                for other in unions:
                    add(arranged("u", (tree, other)))
    return tuple(made.values())


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
