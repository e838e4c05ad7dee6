"""A query rewritten for an engine's weaknesses, without changing what it asks."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

from kopl.sparql.ast import (
    Aggregate,
    Apply,
    Ask,
    Element,
    Expression,
    Filter,
    Group,
    Literal,
    Maybe,
    Named,
    Query,
    Select,
    SubSelect,
    Triple,
    Union,
    Var,
    walk,
)
from kopl.sparql.encoding import VALUE_VARS
from kopl.sparql.engine import Dialect
from kopl.sparql.order import in_order, laterally
from kopl.sparql.statistics import Statistics

# Where the digits of a number come back, for engines that print doubles cut short.
DIGITS = Var("value_digits")

# Triples from which on a join order is given rather than searched for.
LONG = 10


def prepared(query: Query, dialect: Dialect, statistics: Statistics) -> Query:
    """The query as the engine needs it, its patterns in the order that the statistics advise."""
    if dialect.digits:
        query = _with_digits(query)
    if dialect.joins == "lateral":
        return laterally(query, statistics)
    if dialect.joins == "long as written" and _is_long(query):
        return in_order(query, statistics)
    if dialect.joins == "in braces":
        query = in_order(query, statistics)
        return replace(query, where=_one_by_one(query.where))
    return query


def pragma(query: Query, dialect: Dialect) -> str:
    """What stands before the text of a prepared query."""
    if dialect.joins == "long as written" and _is_long(query):
        return 'DEFINE sql:select-option "order" '
    return ""


def _is_long(query: Query) -> bool:
    return sum(isinstance(part, Triple) for part in walk(query)) > LONG


def _with_digits(query: Query) -> Query:
    """The query asking for numbers as text too."""
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


def _one_by_one(group: Group) -> Group:
    """The group with every triple in braces, so that they are joined in the order written.

    rdflib puts triples with two constants first, connected or not. It also gives a row without
    values for a grouped query that finds nothing; a filter takes it out again.
    """
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
