"""A query in two steps: a query inside of it first, then the rest with what that found.

Virtuoso multiplies the alternatives of a query by those of the queries inside of it before it
begins to search; a superlative among unions took it half a minute and two gigabytes.
"""

from __future__ import annotations

from dataclasses import replace

from kb.iri import XSD
from kopl.sparql.ast import (
    Ask,
    Iri,
    Literal,
    Named,
    Query,
    Select,
    SubSelect,
    Term,
    Var,
    mapped,
)
from kopl.sparql.dialects import DIGITS
from kopl.sparql.engine import Answer
from kopl.sparql.shape import is_orderless

_STRING = XSD + "string"


def first_step(query: Query) -> SubSelect | None:
    """A query inside that gives one row at most and can be asked by itself; None without one."""
    if isinstance(query, Ask) or any(isinstance(item, Named) for item in query.items):
        return None
    if query.group_by or query.having is not None or query.order_by:
        return None
    inside = [e for e in query.where.elements if isinstance(e, SubSelect) and e.query.limit == 1]
    if not inside or len(inside) == len(query.where.elements) or not is_orderless(query.where):
        return None
    if set(inside[0].query.variables) & set(query.variables):
        return None
    return inside[0]


def second_step(query: Select, first: SubSelect, answer: Answer) -> Select | Answer | None:
    """The rest of the query, or its answer where nothing was found.

    None for what cannot be said by constants: a node without a name, or a variable without a value.
    """
    rows = answer["results"]["bindings"]
    if not rows:
        head = {"vars": [variable.name for variable in query.variables]}
        return {"head": head, "results": {"bindings": []}}
    found = {var: _term(rows[0], var) for var in first.query.variables}
    if any(term is None for term in found.values()):
        return None
    elements = tuple(element for element in query.where.elements if element is not first)
    where = mapped(
        replace(query.where, elements=elements),
        lambda part: found.get(part, part) if isinstance(part, Var) else part,
    )
    return replace(query, where=where)


def _term(row: dict[str, dict[str, str]], var: Var) -> Term | None:
    cell = row.get(var.name)
    if cell is None or cell["type"] == "bnode":
        return None
    if cell["type"] == "uri":
        return Iri(cell["value"])
    kind = cell.get("datatype")
    text = cell["value"]
    digits = row.get(DIGITS.name)
    if kind is not None and kind.endswith("#double") and digits and digits["value"]:
        text = digits["value"]
    return Literal(text, None if kind == _STRING else kind, cell.get("xml:lang"))
