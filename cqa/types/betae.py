"""BetaE's query structures: nested tuples, and the names of query types.

A structure is a chain `(input, (relation, …))` over an anchor or another structure, a tuple of
structures (their intersection), or a tuple of structures that ends in a union marker. Types have
"e", "r", "n", "u" where queries have an entity, a relation, -2 for negation and -1 for union.
"""

from __future__ import annotations

import re
from functools import reduce
from operator import index
from typing import Any, SupportsIndex, TypeAlias

from cqa.errors import FormulaError, QueryError
from cqa.types.normal import binary, flatten
from cqa.types.tree import (
    MAX_HEIGHT,
    Tree,
    anchor,
    arranged,
    nodes,
    operators,
    project,
    read_formula,
)

Structure: TypeAlias = tuple[Any, ...]

NEGATION, UNION = -2, -1

# BetaE's 14 types, in the order of its tables.
BETAE: dict[str, str] = {
    "1p": "(p,(e))",
    "2p": "(p,(p,(e)))",
    "3p": "(p,(p,(p,(e))))",
    "2i": "(i,(p,(e)),(p,(e)))",
    "3i": "(i,(i,(p,(e)),(p,(e))),(p,(e)))",
    "ip": "(p,(i,(p,(e)),(p,(e))))",
    "pi": "(i,(p,(e)),(p,(p,(e))))",
    "2in": "(i,(n,(p,(e))),(p,(e)))",
    "3in": "(i,(i,(p,(e)),(p,(e))),(n,(p,(e))))",
    "inp": "(p,(i,(n,(p,(e))),(p,(e))))",
    "pin": "(i,(n,(p,(e))),(p,(p,(e))))",
    "pni": "(i,(n,(p,(p,(e)))),(p,(e)))",
    "2u": "(u,(p,(e)),(p,(e)))",
    "up": "(p,(u,(p,(e)),(p,(e))))",
}

# Types that later work names beside them.
LONGER: dict[str, str] = {
    "4p": "(p,(p,(p,(p,(e)))))",
    "5p": "(p,(p,(p,(p,(p,(e))))))",
    "4i": "(i,(i,(i,(p,(e)),(p,(e))),(p,(e))),(p,(e)))",
}

# The two ways to answer a union without an operator for it. As its name says and as in EFO-1-QA,
# up-DNF is the union of two chains; BetaE gives the tuple of up itself under that name.
UNIONS: dict[str, str] = {
    "2u-DNF": "(u,(p,(e)),(p,(e)))",
    "2u-DM": "(n,(i,(n,(p,(e))),(n,(p,(e)))))",
    "up-DNF": "(u,(p,(p,(e))),(p,(p,(e))))",
    "up-DM": "(p,(n,(i,(n,(p,(e))),(n,(p,(e))))))",
}

# The names in "Is Complex Query Answering Really Complex?" (2025). In 2nu1p the negation covers the
# whole branch of two projections.
HARDNESS: dict[str, str] = {
    "2i1p": "ip",
    "1p2i": "pi",
    "2u1p": "up",
    "2in1p": "inp",
    "2pi1pn": "pin",
    "2nu1p": "pni",
}

_NAMED = BETAE | LONGER | UNIONS
_CHAIN = re.compile(r"([1-9][0-9]?)([pi])")


def named(name: str) -> Tree:
    """The query type of a name: BetaE's, 4p, 5p, 4i (or any Np and Ni), 2u-DM, 2i1p, …

    Raises QueryError for an unknown name.
    """
    formula = _NAMED.get(HARDNESS.get(name, name))
    if formula is not None:
        return read_formula(formula)
    match = _CHAIN.fullmatch(name)
    if match is None or name == "1i":
        known = ", ".join([*_NAMED, *HARDNESS])
        raise QueryError(f"there is no query type named {name!r}; known are {known}")
    tree = branch = project(anchor())
    for _ in range(int(match[1]) - 1):
        tree = project(tree) if match[2] == "p" else arranged("i", (tree, branch))
    return tree


def names(tree: Tree) -> tuple[str, ...]:
    """The names of a tree's type, the best known first; none for most types.

    How chains of i or u are bracketed makes no difference, nor whether I and U or d stand there.
    """
    # Most types are told apart from those with names by their size alone.
    if (tree.anchors, tree.depth) not in _SIZES and 1 not in (tree.anchors, tree.depth):
        return ()
    key, count = _key(tree), max(tree.depth, tree.anchors)
    found = _BY_KEY.get(key, ())
    if found or not 1 < count < 100:
        return found
    return tuple(name for name in (f"{count}p", f"{count}i") if _key(named(name)) == key)


def _key(tree: Tree) -> str:
    return flatten(binary(tree)).formula


def _by_key() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, formula in _NAMED.items():
        key = _key(read_formula(formula))
        found[key] = (*found.get(key, ()), name)
    for other, name in HARDNESS.items():
        key = _key(read_formula(BETAE[name]))
        found[key] = (*found[key], other)
    return found


_BY_KEY = _by_key()
_SIZES = {(tree.anchors, tree.depth) for tree in map(read_formula, _BY_KEY)}


def from_tuples(structure: object) -> Tree:
    """The tree of a BetaE structure, a type or a query.

    `(("e", ("r", "r")), ("e", ("r",)))` gives pi. Operands are sorted; those that are alike stay in
    the structure's order. Raises FormulaError that names the place in the tuple, such as `[1][0]`.
    """
    return _read(structure, "", 0)


def _read(value: object, place: str, height: int) -> Tree:
    if height > MAX_HEIGHT:
        raise FormulaError(f"nested deeper than {MAX_HEIGHT} tuples")
    if not isinstance(value, (tuple, list)) or len(value) < 2:
        raise _wrong(place, f"a tuple of two parts or more was expected, not {value!r}")
    if len(value) == 2 and _is_flat(value[1]) and not _is_union(value[1]):
        return _read_chain(value[0], value[1], place, height)
    union = _is_union(value[-1])
    parts = [
        _read(part, f"{place}[{at}]", height + 1)
        for at, part in enumerate(value[:-1] if union else value)
    ]
    if len(parts) < 2:
        raise _wrong(place, "a union takes two parts or more")
    # (i,… sorts before other operators and (u,… after them: so branches keep their order.
    if union:
        return reduce(lambda tree, part: _stable("u", part, tree), reversed(parts))
    return reduce(lambda tree, part: _stable("i", tree, part), parts)


def _read_chain(start: object, steps: Any, place: str, height: int) -> Tree:
    if start == "e":
        tree = anchor()
    elif isinstance(start, (tuple, list)):
        tree = _read(start, f"{place}[0]", height + 1)
    else:
        entity = _id(start)
        if entity is None:
            raise _wrong(f"{place}[0]", f"'e', an entity or a tuple was expected, not {start!r}")
        tree = anchor(entity)
    if not steps:
        raise _wrong(f"{place}[1]", "a relation or a negation was expected")
    for at, step in enumerate(steps):
        if step == "r":
            tree = project(tree)
        elif step == "n" or step == NEGATION:
            tree = Tree("n", (tree,))
        else:
            relation = _id(step)
            if relation is None:
                where = f"{place}[1][{at}]"
                raise _wrong(where, f"'r', 'n', a relation or -2 was expected, not {step!r}")
            tree = project(tree, relation)
    return tree


def _stable(op: str, first: Tree, second: Tree) -> Tree:
    if second.formula < first.formula:
        first, second = second, first
    return Tree(op, (first, second))


def _is_flat(value: object) -> bool:
    return isinstance(value, (tuple, list)) and not any(
        isinstance(part, (tuple, list)) or part == "e" for part in value
    )


def _is_union(value: object) -> bool:
    return isinstance(value, (tuple, list)) and tuple(value) in (("u",), (UNION,))


def _id(value: object) -> int | None:
    """The number that a value is (one of NumPy's, too), or None."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    number = index(value)
    return number if number >= 0 else None


def to_tuples(tree: Tree) -> Structure:
    """The BetaE structure of a tree over e, p, i, u, n, I and U: a type, or a query if grounded.

    Branches are in BetaE's order: more projections first, then those without negation; branches
    that are alike keep the tree's order. Raises QueryError for a tree that has no structure: with
    d or D, partly grounded, or with an anchor that is not under p.
    """
    if operators(tree) & set("dD"):
        raise QueryError(f"{tree}: BetaE's tuples have no difference; take a form with n")
    if not tree.grounded and any(
        node.relation is not None or node.entity is not None for node in nodes(tree)
    ):
        raise QueryError(f"{tree}: some relations or anchors are missing")
    return _write(tree, tree.grounded)


def _write(tree: Tree, grounded: bool) -> Structure:
    if tree.op == "e":
        raise QueryError("(e) alone, or directly under i or u, has no BetaE tuple")
    if tree.op in "pn":
        steps: list[Any] = []
        below = tree
        while below.op in "pn":
            if below.op == "n":
                steps.insert(0, NEGATION if grounded else "n")
            else:
                steps.insert(0, below.relation if grounded else "r")
            below = below.operands[0]
        if below.op == "e":
            return (below.entity if grounded else "e"), tuple(steps)
        return _write(below, grounded), tuple(steps)
    branches = _branches(tree, tree.op.lower())
    branches.sort(key=lambda branch: (-branch.depth, branch.op == "n", branch.formula))
    written = tuple(_write(branch, grounded) for branch in branches)
    if tree.op in "uU":
        return (*written, (UNION if grounded else "u",))
    return written


def _branches(tree: Tree, op: str) -> list[Tree]:
    if tree.op.lower() != op:
        return [tree]
    return [part for operand in tree.operands for part in _branches(operand, op)]


def _wrong(place: str, message: str) -> FormulaError:
    return FormulaError(f"{place}: {message}" if place else message)
