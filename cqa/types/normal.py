"""The nine forms of an operator tree (EFO-1-QA, Table 3), of types and of grounded queries.

All forms of a tree have the same answers; they differ in the operators that a model must know.
Relations and anchors are carried along.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cqa.errors import QueryError
from cqa.types.tree import NARROW, Tree, arrange, arranged, in_order, joined, operators

# A disjunctive form of more disjuncts than this is refused: distributing can grow exponentially.
MAX_DISJUNCTS = 10_000

# Operator systems: the operators that a form may use. Those for three operands or more bring the
# ones for two with them.
SYSTEMS: dict[str, frozenset[str]] = {
    "epiun": frozenset("epiun"),
    "epin": frozenset("epin"),
    "epIn": frozenset("epinI"),
    "epiud": frozenset("epiud"),
    "epIUn": frozenset("epiunIU"),
    "epIUd": frozenset("epiudIU"),
    "epIUD": frozenset("epiudIUD"),
}


def binary(tree: Tree) -> Tree:
    """The tree over e, p, i, u and n alone, sorted: I and U as chains, d and D by i and n."""
    operands = [binary(operand) for operand in tree.operands]
    if tree.op in "IU":
        return _chain(tree.op.lower(), operands)
    if tree.op in "dD":
        kept, *taken = operands
        for part in in_order(taken):
            kept = arranged("i", (kept, Tree("n", (part,))))
        return kept
    if tree.op in "iu":
        return arranged(tree.op, operands)
    return Tree(tree.op, tuple(operands), tree.relation, tree.entity)


def _chain(op: str, operands: list[Tree]) -> Tree:
    first, *others = in_order(operands)
    if op == "i":
        # Complements last, so that each of them is bounded by a set.
        first, *others = sorted([first, *others], key=lambda operand: operand.op == "n")
    for operand in others:
        first = arranged(op, (first, operand))
    return first


def de_morgan(tree: Tree) -> Tree:
    """Every `(u,a,b)` as `(n,(i,(n,a),(n,b)))`, from the leaves up; double negations stay.

    Published: with double negations cancelled, DM+I would have 247 types, not 266.
    """
    operands = tuple(de_morgan(operand) for operand in tree.operands)
    if tree.op == "u":
        return Tree("n", (arranged("i", (Tree("n", (part,)) for part in operands)),))
    if tree.op == "i":
        return arranged("i", operands)
    return Tree(tree.op, operands, tree.relation, tree.entity)


def flatten(tree: Tree, ops: str = "iu") -> Tree:
    """Chains of the operators as one node each: I and U from three operands on."""
    operands = [flatten(operand, ops) for operand in tree.operands]
    if tree.op in ops:
        parts: list[Tree] = []
        for operand in operands:
            same = NARROW.get(operand.op, operand.op) == tree.op
            parts += operand.operands if same else (operand,)
        return joined(tree.op, in_order(parts))
    if tree.op in "iu":
        return arranged(tree.op, operands)
    return Tree(tree.op, tuple(operands), tree.relation, tree.entity)


def _with_plain_difference(tree: Tree) -> Tree:
    """Every `(i,a,(n,b))` as `(d,a,b)`; an intersection of two complements stays."""
    operands = [_with_plain_difference(operand) for operand in tree.operands]
    if tree.op == "i":
        kept = [operand for operand in operands if operand.op != "n"]
        taken = [operand.operands[0] for operand in operands if operand.op == "n"]
        if len(kept) == len(taken) == 1:
            return Tree("d", (kept[0], taken[0]))
        return arranged("i", operands)
    if tree.op == "u":
        return arranged("u", operands)
    return Tree(tree.op, tuple(operands), tree.relation, tree.entity)


def with_difference(tree: Tree) -> Tree:
    """Every `(i,a,(n,b))` as `(d,a,b)`, every `(i,a,(i,(n,b),(n,c)))` as `(d,(d,a,b),c)`.

    An intersection of nothing but complements stays, as there is no set to take from.
    """
    if tree.op != "i":
        operands = [with_difference(operand) for operand in tree.operands]
        if tree.op == "u":
            return arranged("u", operands)
        return Tree(tree.op, tuple(operands), tree.relation, tree.entity)
    first, second = tree.operands
    for one, other in ((first, second), (second, first)):
        taken = _complements(other)
        if taken and not _complements(one):
            kept = with_difference(one)
            for part in in_order(with_difference(part) for part in taken):
                kept = Tree("d", (kept, part))
            return kept
    return arranged("i", [with_difference(operand) for operand in tree.operands])


def _complements(tree: Tree) -> list[Tree]:
    """What a chain of i over nothing but complements takes away; empty for any other tree."""
    if tree.op == "n":
        return list(tree.operands)
    if tree.op != "i":
        return []
    parts = [_complements(operand) for operand in tree.operands]
    return [part for found in parts for part in found] if all(parts) else []


def disjunctive(tree: Tree) -> Tree:
    """The disjunctive form of a tree over e, p, i, u and n: u stands at the root only.

    n goes over i and u by De Morgan, two n drop out, p goes over u with its relation copied, i is
    distributed over u; p does not pass i or n. Raises QueryError for more than `MAX_DISJUNCTS`.
    """
    return _disjunctive(tree, True)[0]


def _disjunctive(tree: Tree, positive: bool) -> tuple[Tree, int]:
    """The disjunctive form of a tree, or of its complement, and the number of its disjuncts."""
    if tree.op == "n":
        return _disjunctive(tree.operands[0], not positive)
    if tree.op == "e":
        return tree if positive else Tree("n", (tree,)), 1
    if tree.op == "p":
        below, count = _disjunctive(tree.operands[0], True)
        return _projected(below, tree.relation, positive), count if positive else 1
    (first, one), (second, other) = (_disjunctive(part, positive) for part in tree.operands)
    joins = (tree.op == "u") == positive
    count = one + other if joins else one * other
    if count > MAX_DISJUNCTS:
        raise QueryError(f"the disjunctive form has more than {MAX_DISJUNCTS:,} disjuncts")
    return arranged("u", (first, second)) if joins else _distributed(first, second), count


def _projected(tree: Tree, relation: int | str | None, positive: bool) -> Tree:
    if tree.op == "u":
        parts = (_projected(operand, relation, positive) for operand in tree.operands)
        return arranged("u" if positive else "i", parts)
    made = Tree("p", (tree,), relation)
    return made if positive else Tree("n", (made,))


def _distributed(first: Tree, second: Tree) -> Tree:
    if first.op == "u":
        return arranged("u", (_distributed(part, second) for part in first.operands))
    if second.op == "u":
        return arranged("u", (_distributed(first, part) for part in second.operands))
    return arranged("i", (first, second))


def disjuncts(tree: Tree) -> list[Tree]:
    """The operands of the unions at a tree's root; the tree itself where there is none."""
    if tree.op not in "uU":
        return [tree]
    return [part for operand in tree.operands for part in disjuncts(operand)]


def _one_difference(tree: Tree) -> Tree:
    """A flat tree's intersections with complements as d or D; those of complements only stay."""
    operands = [_one_difference(operand) for operand in tree.operands]
    if tree.op in "iI":
        kept = [operand for operand in operands if operand.op != "n"]
        taken = [operand.operands[0] for operand in operands if operand.op == "n"]
        if kept and taken:
            return joined("d", [joined("i", in_order(kept)), *in_order(taken)])
    if tree.op in "iuIU":
        return arranged(tree.op, operands)
    return Tree(tree.op, tuple(operands), tree.relation, tree.entity)


def _difference_chains(tree: Tree) -> Tree:
    """Every `(D,x,b,c)` as `(d,(d,x,b),c)`."""
    operands = [_difference_chains(operand) for operand in tree.operands]
    if tree.op == "D":
        kept, *taken = operands
        for part in in_order(taken):
            kept = Tree("d", (kept, part))
        return kept
    if tree.op in "iuIU":
        return arranged(tree.op, operands)
    return Tree(tree.op, tuple(operands), tree.relation, tree.entity)


@dataclass(frozen=True, slots=True)
class Form:
    """One of the nine forms: its published name, its operator system, and how it is made."""

    name: str
    system: str
    make: Callable[[Tree], Tree]


def _flat(tree: Tree) -> Tree:
    return flatten(disjunctive(tree))


# Each from a tree over e, p, i, u and n.
_FORMS = (
    Form("Original", "epiun", arrange),
    Form("DM", "epin", de_morgan),
    Form("DM+I", "epIn", lambda tree: flatten(de_morgan(tree), "i")),
    Form("Original+d", "epiud", with_difference),
    Form("DNF", "epiun", disjunctive),
    Form("DNF+d", "epiud", lambda tree: with_difference(disjunctive(tree))),
    Form("DNF+IU", "epIUn", _flat),
    Form("DNF+IUd", "epIUd", lambda tree: _difference_chains(_one_difference(_flat(tree)))),
    Form("DNF+IUD", "epIUD", lambda tree: _one_difference(_flat(tree))),
)

FORMS: dict[str, Form] = {form.name: form for form in _FORMS}


def _wide(tree: Tree) -> Tree:
    """The tree with D for every d."""
    operands = tuple(_wide(operand) for operand in tree.operands)
    return Tree("D" if tree.op == "d" else tree.op, operands, tree.relation, tree.entity)


# What the published files hold under a form's name, where it is not the form.
_PUBLISHED = {
    "Original+d": Form("Original+d", "epiun", _with_plain_difference),
    "DNF+d": Form("DNF+d", "epiun", lambda tree: _with_plain_difference(disjunctive(tree))),
    "DNF+IUd": Form("DNF+IUd", "epIUD", lambda tree: _wide(FORMS["DNF+IUd"].make(tree))),
    "DNF+IUD": Form("DNF+IUD", "epIUD", lambda tree: _wide(FORMS["DNF+IUD"].make(tree))),
}


def to_form(tree: Tree, name: str, compat: str | None = None) -> Tree:
    """A tree in one of the nine forms, with its operands in order.

    The tree may use any operator. An intersection of nothing but complements keeps its n in any
    form, since there is no set to take from.

    With ``compat="paper"`` the form is as in the published table of the 301 types. There DNF+d
    keeps n in the nine types whose DNF holds such an intersection; DNF+IUD has D for two operands
    as well, and DNF+IUd has chains of such a D instead of d, against its operator system.

    Raises QueryError for an unknown name, and for a disjunctive form of more than `MAX_DISJUNCTS`.
    """
    if name not in FORMS:
        raise QueryError(f"there is no form {name!r}; the forms are {', '.join(FORMS)}")
    if compat not in (None, "paper"):
        raise QueryError(f"compat is 'paper' or nothing, not {compat!r}")
    form = FORMS[name]
    if compat == "paper":
        form = _PUBLISHED.get(name, form)
    return form.make(binary(tree))


def fits(tree: Tree, system: str) -> bool:
    """Whether a tree uses no operator outside the system, such as "epIUd"."""
    if system not in SYSTEMS:
        raise QueryError(f"there is no operator system {system!r}; choose of {', '.join(SYSTEMS)}")
    return operators(tree) <= SYSTEMS[system]
