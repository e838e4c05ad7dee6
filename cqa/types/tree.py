"""Operator trees: the set operations of EFO-1 queries, and their LISP-like formulas.

The operators are those of EFO-1-QA (Wang, Yin and Song 2021): ``e`` a given entity (an anchor),
``p`` all entities that a relation reaches from a set, ``n`` complement, ``i`` and ``u`` the
intersection and union of two sets, ``I`` and ``U`` of three or more, ``d`` the first set without
the second, ``D`` without each of two or more others. A tree is a query type while its relations
and anchors are None, and a grounded query when they are numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from cqa.errors import FormulaError, QueryError

# Operator -> the fewest and the most operands (None: no limit).
ARITY: dict[str, tuple[int, int | None]] = {
    "e": (0, 0), "p": (1, 1), "n": (1, 1), "i": (2, 2), "u": (2, 2), "d": (2, 2),
    "I": (3, None), "U": (3, None), "D": (2, None),
}  # fmt: skip

# The operators of two operands and those of more. The notation is read with either letter, as
# published files write D for two operands and i for three. A D of two is what is written for them.
WIDE = {"i": "I", "u": "U", "d": "D"}
NARROW = {wide: narrow for narrow, wide in WIDE.items()}

# Trees nested deeper than this are refused, so that walks over them may call themselves.
MAX_HEIGHT = 200


@dataclass(frozen=True, slots=True)
class Tree:
    """An operator over its operands; ``relation`` belongs to p, ``entity`` to e.

    Raises QueryError for an operator that does not exist or has the wrong number of operands.
    """

    op: str
    operands: tuple[Tree, ...] = ()
    relation: int | str | None = None
    entity: int | str | None = None
    formula: str = field(init=False, compare=False, repr=False)
    """The formula of the type, `(i,(p,(e)),(p,(e)))`: without relations and anchors."""
    depth: int = field(init=False, compare=False, repr=False)
    """The most p operators on a way from the root to an anchor."""
    anchors: int = field(init=False, compare=False, repr=False)
    """The number of anchors."""
    height: int = field(init=False, compare=False, repr=False)
    """The most operators on a way from the root to an anchor, the anchor counted."""
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        op, operands = self.op, self.operands
        if op not in ARITY:
            raise QueryError(f"there is no operator {op!r}; the operators are {' '.join(ARITY)}")
        fewest, most = ARITY[op]
        if len(operands) < fewest or (most is not None and len(operands) > most):
            raise QueryError(f"{op} takes {_number(op)}, not {len(operands)}")
        if (op != "p" and self.relation is not None) or (op != "e" and self.entity is not None):
            raise QueryError(f"only p has a relation and only e an entity, not {op}")
        height = 1 + max((operand.height for operand in operands), default=0)
        if height > MAX_HEIGHT:
            raise QueryError(f"nested deeper than {MAX_HEIGHT} operators")
        store = object.__setattr__
        store(self, "formula", f"({','.join([op, *(operand.formula for operand in operands)])})")
        store(
            self,
            "depth",
            (op == "p") + max((operand.depth for operand in operands), default=0),
        )
        store(self, "anchors", sum(o.anchors for o in operands) if operands else 1)
        store(self, "height", height)
        store(self, "_hash", hash((op, operands, self.relation, self.entity)))

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return self.formula

    def __reduce__(self) -> tuple[object, ...]:
        # The stored hash holds for one process only.
        return Tree, (self.op, self.operands, self.relation, self.entity)

    @property
    def grounded(self) -> bool:
        """Whether every p has a relation and every e an entity."""
        return all(
            (node.op != "p" or node.relation is not None)
            and (node.op != "e" or node.entity is not None)
            for node in nodes(self)
        )

    @property
    def abstract(self) -> Tree:
        """The type of the query: the same tree without relations and anchors."""
        return Tree(self.op, tuple(operand.abstract for operand in self.operands))


def nodes(tree: Tree) -> Iterator[Tree]:
    """The nodes of a tree, every node before its operands, from left to right."""
    yield tree
    for operand in tree.operands:
        yield from nodes(operand)


def operators(tree: Tree) -> frozenset[str]:
    """The operators that occur in a tree."""
    return frozenset(node.op for node in nodes(tree))


def anchor(entity: int | str | None = None) -> Tree:
    """The tree of one given entity, `(e)`."""
    return Tree("e", entity=entity)


def project(tree: Tree, relation: int | str | None = None) -> Tree:
    """The tree of all that a relation reaches from a set, `(p,…)`."""
    return Tree("p", (tree,), relation)


def joined(op: str, operands: Iterable[Tree]) -> Tree:
    """Operands under i, u or d, or under I, U or D from three on; a single one as it is.

    The order is kept. Raises QueryError when there is no operand.
    """
    given = tuple(operands)
    if not given:
        raise QueryError(f"{op} over nothing")
    narrow = NARROW.get(op, op)
    if len(given) < 2:
        return given[0]
    return Tree(narrow if len(given) == 2 else WIDE[narrow], given)


def order(tree: Tree) -> tuple[object, ...]:
    """What trees are sorted by: their formulas as ASCII, then relations and anchors, left to right.

    Published types are sorted by formula alone; the rest makes grounded queries come out the same
    from whatever order they were read in. Names stand after numbers, absent ones before.
    """
    given: list[tuple[int, int, str]] = []
    for node in nodes(tree):
        label = node.relation if node.op == "p" else node.entity
        if node.op in "pe":
            given.append(_label_order(label))
    return tree.formula, *given


def _label_order(label: int | str | None) -> tuple[int, int, str]:
    if label is None:
        return 0, 0, ""
    return (1, label, "") if isinstance(label, int) else (2, 0, label)


def in_order(operands: Iterable[Tree]) -> list[Tree]:
    """The operands in the order of `order`."""
    given = list(operands)
    # Relations and anchors matter only where formulas are alike.
    alike = len({operand.formula for operand in given}) < len(given)
    return sorted(given, key=order if alike else _formula)


def _formula(tree: Tree) -> str:
    return tree.formula


def arranged(op: str, operands: Iterable[Tree]) -> Tree:
    """A node with its operands in order: all of i, u, I and U, from the second on of D.

    The operands themselves are taken as they are.
    """
    given = list(operands)
    if op in "iuIU":
        given = in_order(given)
    elif op == "D":
        given = [given[0], *in_order(given[1:])]
    return Tree(op, tuple(given))


def arrange(tree: Tree) -> Tree:
    """The tree with the operands of every node in order, from the leaves up."""
    if not tree.operands:
        return tree
    operands = [arrange(operand) for operand in tree.operands]
    if tree.op in "pn":
        return Tree(tree.op, tuple(operands), tree.relation)
    return arranged(tree.op, operands)


def read_formula(text: str) -> Tree:
    """The tree of a formula such as `(i,(p,(e)),(p,(p,(e))))`; blanks are skipped.

    Operands stay in their order (`arrange` sorts them). i, u and d with three operands or more are
    read as I, U and D, and the other way round. Raises FormulaError with the character's place.
    """
    opened: list[tuple[str, int, list[Tree]]] = []  # operator, place, operands so far
    expected = "("  # or "op", or what may follow an operand: ","
    for at, mark in enumerate(text):
        place = at + 1
        if mark.isspace():
            continue
        if expected == "end":
            raise FormulaError(f"the formula ended before {mark!r}", place)
        if expected == "op":
            if mark not in ARITY:
                raise FormulaError(
                    f"an operator ({' '.join(ARITY)}) was expected, not {mark!r}", place
                )
            opened.append((mark, place, []))
            if len(opened) > MAX_HEIGHT:
                raise FormulaError(f"nested deeper than {MAX_HEIGHT} operators", place)
            expected = ","
        elif expected == "(":
            if mark != "(":
                raise FormulaError(f"'(' was expected, not {mark!r}", place)
            expected = "op"
        elif mark == ",":
            expected = "("
        elif mark == ")":
            tree = _closed(*opened.pop())
            if opened:
                opened[-1][2].append(tree)
                expected = ","
            else:
                expected = "end"
        else:
            raise FormulaError(f"',' or ')' was expected, not {mark!r}", place)
    if expected == "end":
        return tree
    if not opened and expected == "(":
        raise FormulaError("the formula is empty")
    raise FormulaError(
        "the formula ends too early"
        + (f"; {opened[-1][0]} from character {opened[-1][1]} is open" if opened else ""),
        len(text) + 1,
    )


def _closed(op: str, place: int, operands: list[Tree]) -> Tree:
    narrow = NARROW.get(op, op)
    if narrow in WIDE and len(operands) >= 2:
        return joined(narrow, operands)
    try:
        return Tree(op, tuple(operands))
    except QueryError as error:
        raise FormulaError(str(error), place) from None


def _number(op: str) -> str:
    fewest, most = ARITY[op]
    if most == 0:
        return "no operand"
    count = f"{fewest} operand{'s' if fewest > 1 else ''}"
    return count if most is not None else f"{count} or more"
