"""Queries in any notation: which one a text is in, and the query that it says.

- JSON of a grounded operator tree: `{"o": "p", "a": [[0], {"o": "e", "a": [12]}]}`
- BetaE's nested tuple: `((12, (0, 4)), (7, (3,)))`
- an EFOk formula with numbers: `(0(12,e1))&(4(e1,f1))`
- SPARQL: `SELECT ?y WHERE { … }`
- first-order text: `exists x. r(a,x) & !s(x,?y)`, names or numbers of the graph
- with the knowledge base that the graph was made of, the set part of KoPL
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from cqa.errors import FormulaError, QueryError
from cqa.graphs.graph import Graph
from cqa.notation.kopl import from_kopl
from cqa.notation.sparql import read_sparql, write_sparql
from cqa.notation.text import read_text, write_text
from cqa.notation.trees import from_tree
from cqa.query import Atom, Conjunction, Constant, Query, Variable, check_form
from cqa.types import betae
from cqa.types.efok_text import read_formula as read_graph
from cqa.types.efok_text import write_formula as write_graph
from cqa.types.grounded import from_json, write_json
from cqa.types.tree import Tree, anchor, nodes, project
from kb import KnowledgeBase
from kopl.functions import SPELLINGS
from kopl_base.errors import KoplError

_SPARQL = re.compile(
    r"\s*(?:(?:BASE|PREFIX)\b|SELECT\s*\((?!.*,)|(?:SELECT|ASK)\b\s*(?:DISTINCT|\?|\{|\*|WHERE))",
    re.I,
)
_TYPE = re.compile(r"\s*\(\s*[epniudIUD]\s*(?:[,)]|$)")
_NAME = re.compile(r"\s*[0-9A-Za-z-]{1,12}\s*")
# Constants, existential and free variables of EFOk's formulas.
_EFOK = re.compile(r"[\s()&|!]*\w+\s*\(\s*(?:[sef]?[0-9]+)\s*,\s*(?:[sef]?[0-9]+)\s*\)")
# A function of KoPL, which is no relation of first-order text unless something is free in it.
_KOPL = re.compile(rf"\s*(?:{'|'.join(SPELLINGS)})\s*\((?!.*\?\w)", re.DOTALL)
# What has a free variable of first-order text has the mark that EFOk's formulas lack.
_FREE = re.compile(r"\?\w")


@dataclass(frozen=True)
class Read:
    """A grounded query, the notation that it was in, and its operator tree where it has one."""

    notation: str
    query: Query
    tree: Tree | None = None


def read_query(text: str, graph: Graph, kb: KnowledgeBase | None = None) -> Read:
    """The query of a text in any notation; names and numbers are those of the graph.

    ``kb`` is the knowledge base that the graph was made of; KoPL is read only with it.

    Raises QueryError, or FormulaError with the place, of the notation that the text looks like; for
    a query type, which has no relations and anchors; for numbers that the graph does not have.
    """
    if not text.strip():
        raise QueryError(f"the query is empty; {_known(graph)}")
    found = _read(text, graph, kb)
    if not found.query.grounded:
        raise QueryError(
            f"this {found.notation} is a query type: it has no numbers for its relations and"
            " constants; write a query, or sample one of this type"
        )
    check_form(found.query, entities=graph.entity_count, relations=graph.links.relation_count)
    return found


def _read(text: str, graph: Graph, kb: KnowledgeBase | None) -> Read:
    if _KOPL.match(text):
        if kb is None:
            raise QueryError("this is KoPL: name the knowledge base that the graph was made of")
        return Read("KoPL", from_kopl(text, graph, kb))
    start = text.lstrip()[:1]
    if start == "{":
        return _tree("JSON of an operator tree", from_json(text))
    if _SPARQL.match(text):
        return Read("SPARQL", read_sparql(text, graph))
    if _TYPE.match(text):
        example = examples(graph)["JSON of an operator tree"]
        raise QueryError(
            "this formula is a query type: it has no relations and no anchors; write the query as"
            f" JSON such as {example}, or sample one of this type"
        )
    if start in ("(", "["):
        structure = _literal(text)
        if structure is not None:
            return _tree("BetaE tuple", betae.from_tuples(structure))
    if not _FREE.search(text) and _EFOK.match(text):
        return Read("EFOk formula", read_graph(text))
    if _NAME.fullmatch(text) and _is_type(text.strip()):
        raise QueryError(
            f"{text.strip()} is the name of a query type; write a query, or sample one of this type"
        )
    try:
        return Read("first-order text", read_text(text, graph))
    except FormulaError as error:
        hint = "" if _has_atom(text) else f"; {_known(graph)}"
        raise FormulaError(f"read as first-order text: {error}{hint}") from None


def _has_atom(text: str) -> bool:
    """Whether something looks like an atom, (…,…); a text without one is in no notation."""
    comma = text.find(",", text.find("(")) if "(" in text else -1
    return comma >= 0 and ")" in text[comma:]


def _tree(notation: str, tree: Tree) -> Read:
    if not tree.grounded:
        missing = next(
            node.op
            for node in nodes(tree)
            if node.op in "pe" and node.relation is None and node.entity is None
        )
        what = "a relation" if missing == "p" else "an anchor"
        raise QueryError(f"this {notation} is a query type: {what} is missing; write a query")
    return Read(notation, from_tree(tree), tree)


def _literal(text: str) -> object | None:
    """The tuple or list that a text is in Python's notation; None if it is none."""
    try:
        found: object = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return found if isinstance(found, tuple | list) else None


def _is_type(name: str) -> bool:
    try:
        betae.named(name)
    except KoplError:
        return False
    return True


def examples(graph: Graph) -> dict[str, str]:
    """A query in each notation that runs on the graph: two links that lead on from an entity."""
    start, first, second = _path(graph)
    middle, end = Variable("x"), Variable("y")
    atoms = (Atom(first, Constant(start), middle), Atom(second, middle, end))
    hops = Query((end,), (Conjunction(atoms),))
    tree = project(project(anchor(start), first), second)
    return {
        "JSON of an operator tree": write_json(tree),
        "BetaE tuple": repr(betae.to_tuples(tree)),
        "EFOk formula": write_graph(from_tree(tree)),
        "SPARQL": write_sparql(hops, graph),
        "first-order text": write_text(hops, graph, ascii=True),
    }


def _path(graph: Graph) -> tuple[int, int, int]:
    """An entity and two relations one after the other, not straight back where that can be."""
    triples = graph.triples()[:1].tolist()
    if not triples:
        return 0, 0, 0
    start, first, middle = triples[0]
    links = graph.full(graph.splits[-1])
    after = [r for r in range(links.relation_count) if len(links.row(r, middle))]
    return start, first, next((r for r in after if r != first ^ 1), first ^ 1)


def _known(graph: Graph) -> str:
    shown = "; ".join(f"{name}: {example}" for name, example in examples(graph).items())
    return f"known notations are, by example, {shown}"
