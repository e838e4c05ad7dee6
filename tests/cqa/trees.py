"""Random operator trees for the tests, and what they mean, said naively over sets."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from cqa.types.tree import Tree, anchor, project

ENTITIES = frozenset(range(5))
RELATIONS = 3

Triples = frozenset[tuple[int, int, int]]

triples: st.SearchStrategy[Triples] = st.frozensets(
    st.tuples(
        st.integers(0, 4), st.integers(0, RELATIONS - 1), st.integers(0, 4)
    ),
    max_size=20,
)  # fmt: skip


def trees(ops: str = "pniudIUD", grounded: bool = True) -> st.SearchStrategy[Tree]:
    """Operator trees of up to some twelve nodes over these operators."""
    entities = st.integers(0, 4) if grounded else st.none()
    relations = st.integers(0, RELATIONS - 1) if grounded else st.none()

    def extend(below: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        def node(op: str) -> st.SearchStrategy[Tree]:
            if op == "p":
                return st.builds(project, below, relations)
            few, many = (1, 1) if op == "n" else (2, 2) if op.islower() else (3, 4)
            operands = st.lists(below, min_size=few, max_size=many)
            return operands.map(lambda given: Tree(op, tuple(given)))

        return st.sampled_from(ops).flatmap(node)

    return st.recursive(st.builds(anchor, entities), extend, max_leaves=6)


def meaning(tree: Tree, facts: Triples) -> frozenset[int]:
    """The answers of a grounded tree over a graph of five entities."""
    sets = [meaning(operand, facts) for operand in tree.operands]
    if tree.op == "e":
        assert isinstance(tree.entity, int)
        return frozenset({tree.entity}) & ENTITIES
    if tree.op == "p":
        return frozenset(o for s, r, o in facts if s in sets[0] and r == tree.relation)
    if tree.op == "n":
        return ENTITIES - sets[0]
    if tree.op in "iI":
        return frozenset.intersection(*sets)
    if tree.op in "uU":
        return frozenset.union(*sets)
    return sets[0].difference(*sets[1:])


WORKED: Mapping[str, str] = {
    "DM": "(i,(n,(n,(i,(n,(p,(e))),(n,(p,(p,(e))))))),(p,(e)))",
    "DM+I": "(i,(n,(n,(i,(n,(p,(e))),(n,(p,(p,(e))))))),(p,(e)))",
    "Original+d": "(d,(p,(e)),(u,(p,(e)),(p,(p,(e)))))",
    "DNF": "(i,(i,(n,(p,(e))),(n,(p,(p,(e))))),(p,(e)))",
    "DNF+d": "(d,(d,(p,(e)),(p,(e))),(p,(p,(e))))",
    "DNF+IU": "(I,(n,(p,(e))),(n,(p,(p,(e)))),(p,(e)))",
    "DNF+IUd": "(d,(d,(p,(e)),(p,(e))),(p,(p,(e))))",
    "DNF+IUD": "(D,(p,(e)),(p,(e)),(p,(p,(e))))",
}
"""The worked example: the forms of `(i,(n,(u,(p,(e)),(p,(p,(e))))),(p,(e)))`."""

PUBLISHED: Mapping[str, str] = {
    "DNF+d": WORKED["DNF"],
    "DNF+IUd": "(D,(D,(p,(e)),(p,(e))),(p,(p,(e))))",
}
"""What the published table has for it under other forms' names."""
