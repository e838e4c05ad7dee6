"""The query types of the three benchmarks, by family and by name.

- "efo1": EFO-1-QA's operator trees, 301 at the published limits;
- "efok": EFOk-CQA's query graphs, the complete space or the published list;
- "betae": BetaE's 14 types, and 4p, 5p and 4i, which later work adds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from cqa.errors import QueryError
from cqa.notation.trees import from_tree
from cqa.query import Query, constants_of
from cqa.types import betae, efo1, efok, efok_paper
from cqa.types.canonical import Form, canonical
from cqa.types.efok_text import read_formula as read_graph
from cqa.types.efok_text import write_formula as write_graph
from cqa.types.normal import binary, to_form
from cqa.types.shape import topology
from cqa.types.tree import Tree, read_formula
from cqa.vocabularies import FAMILIES, GRAPH_FAMILIES, SPACES

# A space of more graphs than this is not listed.
MOST_GRAPHS = 500_000


@dataclass(frozen=True, slots=True)
class TreeType:
    """A query type that is an operator tree, in one of the nine forms."""

    id: str
    names: tuple[str, ...]
    tree: Tree
    """The tree in the form asked for."""
    anchors: int
    depth: int
    """In p, of the Original form."""

    @property
    def formula(self) -> str:
        """The formula of the form asked for."""
        return self.tree.formula

    @property
    def columns(self) -> tuple[str | int, ...]:
        """What a listing shows: formula, id, names, anchors, depth."""
        return self.formula, self.id, ",".join(self.names), self.anchors, self.depth


@dataclass(frozen=True, slots=True)
class GraphType:
    """A query type that is a conjunctive query graph."""

    id: str
    names: tuple[str, ...]
    formula: str
    query: Query
    constants: int
    existential: int
    free: int
    topology: str
    """"SDAG", "multi" or "cyclic"."""

    @property
    def columns(self) -> tuple[str | int, ...]:
        """What a listing shows: formula, id, names, constants, existential, free, topology."""
        return (
            self.formula, self.id, ",".join(self.names),
            self.constants, self.existential, self.free, self.topology,
        )  # fmt: skip


def types(
    family: str,
    *,
    form: str | None = None,
    space: str | None = None,
    compat: str | None = None,
    anchors: int = efo1.ANCHORS,
    depth: int = efo1.DEPTH,
    limits: efok.Limits = efok.PUBLISHED,
) -> Sequence[TreeType] | Sequence[GraphType]:
    """All types of a family, in a fixed order.

    Ids are those of `cqa.types.efo1.formula_id` for "efo1", which the published table has, too;
    type0000, type0001, … in the order of the list for "efok"; names for "betae".

    ``form`` and ``compat`` are those of `cqa.types.normal.to_form` (default: Original) for operator
    trees, ``anchors`` and ``depth`` the limits of "efo1". ``space`` is "complete" (default) or
    "paper" for "efok", within ``limits``. Raises QueryError for an unknown family, form or space,
    for what a family does not have, and for limits under which there are too many types.
    """
    if family not in FAMILIES:
        raise QueryError(f"there is no family {family!r}; choose of {', '.join(FAMILIES)}")
    if family in GRAPH_FAMILIES:
        check_form(form)
        return graph_types(space or "complete", limits)
    if space is not None:
        raise QueryError(f"a space (complete, paper) is of efok; {family} has none")
    if family == "betae":
        return betae_types(form or "Original", compat)
    return efo1_types(form or "Original", compat, anchors, depth)


def check_form(form: str | None) -> None:
    """Raise QueryError for a form of query graphs."""
    if form is not None:
        raise QueryError("forms are of operator trees; query graphs (efok) have none")


@lru_cache(maxsize=64)
def efo1_types(
    form: str = "Original",
    compat: str | None = None,
    anchors: int = efo1.ANCHORS,
    depth: int = efo1.DEPTH,
) -> tuple[TreeType, ...]:
    """EFO-1's types in a form: one for each Original type, even where formulas coincide."""
    return tuple(
        TreeType(
            efo1.formula_id(tree), betae.names(tree), to_form(tree, form, compat),
            tree.anchors, tree.depth,
        )
        for tree in efo1.types(anchors, depth)
    )  # fmt: skip


@lru_cache(maxsize=64)
def betae_types(form: str = "Original", compat: str | None = None) -> tuple[TreeType, ...]:
    """BetaE's 14 types in the order of its tables, then 4p, 5p and 4i, in a form."""
    trees = {name: betae.named(name) for name in (*betae.BETAE, *betae.LONGER)}
    return tuple(
        TreeType(name, betae.names(tree), to_form(tree, form, compat), tree.anchors, tree.depth)
        for name, tree in trees.items()
    )


@lru_cache(maxsize=8)
def graph_types(
    space: str = "complete", limits: efok.Limits = efok.PUBLISHED
) -> tuple[GraphType, ...]:
    """EFOk's types: every graph within the limits once, or the list that the paper's program makes.

    The published list has 741 rows for 552 graphs: 189 are copies with other names of variables.
    """
    if space not in SPACES:
        raise QueryError(f"there is no space {space!r}; choose of {', '.join(SPACES)}")
    shapes = efok.complete(limits) if space == "complete" else efok_paper.paper(limits)
    found = list(islice(shapes, MOST_GRAPHS + 1))
    if len(found) > MOST_GRAPHS:
        raise QueryError(f"the limits allow more than {MOST_GRAPHS:,} types; lower one of them")
    return tuple(
        GraphType(
            f"type{number:04d}", names_of_graph(shape.query), shape.formula, shape.query,
            len(shape.constants), shape.existential, shape.free, shape.topology,
        )
        for number, shape in enumerate(found)
    )  # fmt: skip


def by_name(name: str, form: str | None = None) -> TreeType | GraphType:
    """The type of a name (1p, 2i1p, 2u-DM, …), of a family and an id (efo1:type0016), or of a
    formula, an operator tree's or EFOk's.

    An operator tree has the id of `cqa.types.efo1.formula_id`, a query graph the one that it has in
    EFOk's complete space, and none ("") if it is not there. ``form`` is of operator trees. Raises
    QueryError for an unknown name or form, and for an id without its family, as EFO-1's and EFOk's
    have one form; FormulaError for a malformed formula.
    """
    family, colon, part = name.partition(":")
    if colon and family in FAMILIES:
        return by_id(family, part, form)
    if _LISP.match(name):
        return _tree_type(read_formula(name), form)
    if "(" in name:
        check_form(form)
        return _graph_type(read_graph(name))
    if _ID.fullmatch(name):
        raise QueryError(_hint(name))
    return _tree_type(betae.named(name), form)


def by_id(family: str, given: str, form: str | None = None) -> TreeType | GraphType:
    """The type of an id in the published limits of "efo1", in EFOk's complete space, or a name.

    Raises QueryError for an id that the family does not have, and what `types` raises.
    """
    for row in types(family, form=form):
        if row.id == given:
            return row
    raise QueryError(f"{family} has no type {given!r}; kopl cqa types lists them")


# What EFO-1's ids and EFOk's look like.
_ID = re.compile(r"type(?:[0-9]+|-[a-zA-Z0-9]+)")


def _hint(given: str) -> str:
    """What to write for an id that stands without its family."""
    found = [
        f"{family}:{given}" for family in FAMILIES if any(row.id == given for row in types(family))
    ]
    message = f"{given!r} is an id, which needs its family"
    if len(found) > 1:
        return f"{message}: write {' or '.join(found)}, which are different types"
    if found:
        return f"{message}: write {found[0]}"
    if given.startswith("type-"):
        return f"{given!r} is in no family's list; write the formula, such as (i,(p,(e)),(p,(e)))"
    return f"{given!r} is in no family's list; kopl cqa types lists them"


# Operator trees and EFOk's formulas differ in what follows the first bracket.
_LISP = re.compile(r"\s*\(\s*[A-Za-z]?\s*(?:[,)]|$)")


def _tree_type(tree: Tree, form: str | None) -> TreeType:
    original = binary(tree)
    shown = tree if form is None else to_form(tree, form)
    found = efo1.formula_id(original)
    return TreeType(found, betae.names(tree), shown, original.anchors, original.depth)


def _graph_type(query: Query) -> GraphType:
    form = canonical(query)
    found = _complete_types().get(form)
    if found is not None:
        return replace(found, formula=write_graph(query), query=query)
    return GraphType(
        "", names_of_graph(query), write_graph(query), query,
        len(query.constants), len(query.existential), len(query.free), topology(query),
    )  # fmt: skip


@lru_cache(maxsize=1)
def _complete_types() -> dict[Form, GraphType]:
    return {canonical(row.query): row for row in graph_types()}


def names_of_graph(query: Query) -> tuple[str, ...]:
    """The names of the type that a query, grounded or not, is of; none for most types.

    A name of several edges below one negation (pni) is not of a query graph, nor is one of a union.
    """
    if len(query.disjuncts) != 1 or _size(query) not in _named_sizes():
        return ()
    return _graph_names().get(canonical(query, numbers=False), ())


def _size(query: Query) -> tuple[int, ...]:
    """What is quickly told of a query graph and sets most types apart from those with names."""
    given = query.disjuncts[0].atoms
    constants = sum(len(constants_of(atom)) for atom in given)
    return len(query.free), len(given), constants


@lru_cache(maxsize=1)
def _named_sizes() -> frozenset[tuple[int, ...]]:
    return frozenset(_size(query) for query in _named_graphs().values())


@lru_cache(maxsize=1)
def _graph_names() -> dict[Form, tuple[str, ...]]:
    graphs = _named_graphs().items()
    return {canonical(query): betae.names(betae.named(name)) for name, query in graphs}


@lru_cache(maxsize=1)
def _named_graphs() -> dict[str, Query]:
    """Those types with a name that are one query graph: without union or anti-join."""
    graphs = {name: from_tree(betae.named(name)) for name in (*betae.BETAE, *betae.LONGER)}
    return {
        name: query
        for name, query in graphs.items()
        if len(query.disjuncts) == 1 and not query.disjuncts[0].without
    }
