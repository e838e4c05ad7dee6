"""Rewrites of a query for an engine's weaknesses, none of which changes what it asks.

An engine's dialect lists those that it needs, in their order. Each is a plain function of the query
and of what is known of the knowledge base. `first_step` and `second_step` are for engines that are
better asked for a query inside of another first: Virtuoso multiplies the alternatives of a query by
those of the queries inside of it before it begins to search; a superlative among unions took it
half a minute and two gigabytes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

from kb.rdf.iri import XSD
from kopl.sparql.ast import (
    Aggregate,
    Apply,
    Ask,
    Element,
    Expression,
    Filter,
    Group,
    Iri,
    Literal,
    Maybe,
    Named,
    Query,
    Select,
    SubSelect,
    Term,
    Triple,
    Union,
    Var,
    mapped,
    walk,
)
from kopl.sparql.encoding import VALUE_VARS
from kopl.sparql.engine import Answer
from kopl.sparql.order import Statistics, in_order, is_orderless

# Where the digits of a number come back, for engines that print doubles cut short.
DIGITS = Var("value_digits")

# Triples from which on a join order is given rather than searched for.
LONG = 10


def with_digits(query: Query, _: Statistics) -> Query:
    """The query asking for numbers as text too, where doubles come back with too few digits."""
    if isinstance(query, Ask):
        return query
    if VALUE_VARS[0] in query.variables:
        return replace(query, items=(*query.items, Named(_digits(VALUE_VARS[0]), DIGITS)))
    extremes = [item.variable for item in query.items if _is_extreme(item)]
    if len(extremes) == 1:
        # Inside a query with an aggregate its compiler fails at the function.
        items: tuple[Var | Named, ...]
        items = (*query.variables, Named(_digits(extremes[0]), DIGITS))
        return Select(items, Group((SubSelect(query),)))
    return query


def _is_extreme(item: Var | Named) -> TypeGuard[Named]:
    if isinstance(item, Var) or not isinstance(item.expression, Aggregate):
        return False
    return item.expression.function in ("MAX", "MIN")


def _digits(number: Var) -> Expression:
    text = Apply("bif:sprintf", (Literal("%.17g"), number))
    return Apply("IF", (Apply("bif:isnumeric", (number,)), text, Literal("")))


def in_order_when_long(query: Query, statistics: Statistics) -> Query:
    """The query in order, where an engine's own search for an order takes seconds."""
    return in_order(query, statistics) if _is_long(query) else query


def order_when_long(query: Query) -> str:
    """What tells Virtuoso to join the patterns of a long query as they are written."""
    return 'DEFINE sql:select-option "order" ' if _is_long(query) else ""


def _is_long(query: Query) -> bool:
    return sum(isinstance(part, Triple) for part in walk(query)) > LONG


def one_by_one(query: Query, _: Statistics) -> Query:
    """The query with every triple in braces, so that they are joined in the order written.

    rdflib puts triples with two constants first, connected or not. It also gives a row without
    values for a grouped query that finds nothing; a filter takes it out again.
    """
    return replace(query, where=_one_by_one(query.where))


def _one_by_one(group: Group) -> Group:
    found: list[Element] = []
    for element in group.elements:
        if isinstance(element, Triple):
            found.append(Group((element,)))
        elif isinstance(element, Group):
            found.append(_one_by_one(element))
        elif isinstance(element, Union):
            found.append(Union(tuple(_one_by_one(branch) for branch in element.branches)))
        elif isinstance(element, Maybe):
            found.append(Maybe(_one_by_one(element.group)))
        elif isinstance(element, SubSelect):
            inner: Select = replace(element.query, where=_one_by_one(element.query.where))
            some = Apply("BOUND", (inner.variables[0],))
            found.append(Group((SubSelect(inner), Filter(some))))
        else:
            found.append(element)
    return Group(tuple(found))


# --- two steps ---------------------------------------------------------------------------------

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
