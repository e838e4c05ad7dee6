"""Superlatives in queries: as the data writes them, and as exact translations do."""

from __future__ import annotations

from collections.abc import Sequence

from kb.rdf.iri import decode
from kopl import functions as f
from kopl.program import Call
from kopl.sparql.ast import (
    Aggregate,
    Bind,
    Compare,
    Element,
    Named,
    Order,
    Select,
    SubSelect,
    Triple,
    Union,
    Var,
)
from kopl.sparql.conditions import OF_VALUES
from kopl.sparql.describe import Describer, Scope, program_of, rooted, variable_of, verb_of
from kopl.sparql.encoding import (
    NAME,
    UNIT,
    VALUE,
    integer,
)
from kopl.sparql.errors import NotInKoplError
from kopl.sparql.sets import (
    Description,
    either,
)


def superlative(query: Select, describer: Describer) -> Call:
    """As the data writes it: in the order of a number, the first."""
    if query.limit != 1 or len(query.order_by) != 1:
        raise NotInKoplError("ORDER BY, LIMIT: KoPL has superlatives: one key, and LIMIT 1")
    order = query.order_by[0]
    if len(query.items) != 1 or not isinstance(query.items[0], Var):
        raise NotInKoplError("ORDER BY, LIMIT: a superlative gives one node")
    node = query.items[0]
    if query.group_by or query.having is not None:
        raise NotInKoplError("GROUP BY, HAVING: only superlatives are read so")
    elements = list(query.where.elements)
    numbers = [
        e
        for e in elements
        if isinstance(e, Triple) and e.predicate == VALUE and e.object == order.expression
    ]
    value = numbers[0].subject if numbers else None
    edges = [e for e in elements if isinstance(e, Triple) and e.object == value]
    if len(numbers) != 1 or len(edges) != 1 or edges[0].subject != node:
        raise NotInKoplError(
            "ORDER BY: the number of one attribute of what is asked for is to be ordered"
        )
    key = decode(verb_of(edges[0]).text)
    for used in (numbers[0], edges[0]):
        elements.remove(used)
    describer.seen.add(variable_of(value, edges[0]))
    if len(elements) == 1 and isinstance(elements[0], Union):
        branches = elements[0].branches
        if len(branches) == 2:
            sides = describer.branches(node, elements[0])
            word = "greater" if order.descending else "less"
            inputs = tuple(program_of(side) for side in sides)
            return Call(f.SELECT_BETWEEN, inputs, (key, word))
    nodes = describer.whole(node, Scope(elements))
    return rooted(f.SELECT_AMONG, nodes, key, "largest" if order.descending else "smallest")


def exact_superlative(query: Select, describer: Describer) -> Call:
    """As exact translations write it: the unit and its extreme, then the nodes that have it."""
    reason = NotInKoplError(
        "a query inside the query: only superlatives are read so, as they are translated here"
    )
    found = [e for e in query.where.elements if isinstance(e, SubSelect)]
    rest = [e for e in query.where.elements if not isinstance(e, SubSelect)]
    best = found[0].query
    extreme = best.items[-1]
    if len(found) != 1 or not isinstance(extreme, Named) or best.limit != 1:
        raise reason
    if not isinstance(extreme.expression, Aggregate) or len(best.order_by) != 2:
        raise reason
    if query.order_by or query.group_by or query.having or query.limit is not None:
        raise reason
    unit, number = best.items[0], extreme.expression.argument
    if len(best.items) != 2 or len(query.items) != 1 or not isinstance(unit, Var):
        raise reason
    votes = best.order_by[0]
    counted = votes.expression
    if (
        best.group_by != (unit,)
        or best.order_by[1] != Order(unit)
        or not votes.descending
        or not isinstance(counted, Aggregate)
        or (counted.function, counted.distinct) != ("COUNT", True)
        or not isinstance(number, Var)
    ):
        raise reason
    counts = {
        (t.predicate, t.object)
        for t in best.where.elements
        if isinstance(t, Triple) and t.subject == counted.argument
    }
    if counts != {(UNIT, unit), (VALUE, number)}:
        raise reason
    largest = {"MAX": True, "MIN": False}.get(extreme.expression.function)
    numbers = [
        e
        for e in rest
        if isinstance(e, Triple) and e.predicate == VALUE and e.object == extreme.variable
    ]
    asked = query.items[0]
    if largest is None or len(numbers) != 1 or not isinstance(asked, Var):
        raise reason
    names = [e for e in rest if isinstance(e, Triple) and e.predicate == NAME and e.object == asked]
    key, node, together = _of_unit(
        describer, [e for e in rest if e not in names], unit, extreme.variable
    )
    if asked != node and [name.subject for name in names] != [node]:
        raise reason
    if best.having is None:
        inside = _of_unit(describer, best.where.elements, unit, number)
        if (inside[0], inside[2]) != (key, together):
            raise reason
        word = "largest" if largest else "smallest"
        return rooted(f.SELECT_AMONG, program_of(together), key, word)
    sides = _marked_sides(describer, best, key, reason)
    if either(*sides) != together:
        raise reason
    inputs = tuple(program_of(side) for side in sides)
    return Call(f.SELECT_BETWEEN, inputs, (key, "greater" if largest else "less"))


def _marked_sides(
    describer: Describer, best: Select, key: str, reason: NotInKoplError
) -> list[Description]:
    """The two sides of a SelectBetween: branches that are told apart by a number."""
    unions = [e for e in best.where.elements if isinstance(e, Union)]
    marked = {
        t.subject
        for t in best.where.elements
        if isinstance(t, Triple) and t.predicate not in OF_VALUES
    }
    if len(unions) != 1 or len(marked) != 1 or len(unions[0].branches) != 2:
        raise reason
    if len(best.where.elements) != 4:
        raise reason
    node = variable_of(marked.pop(), unions[0])
    marks = [e for branch in unions[0].branches for e in branch.elements if isinstance(e, Bind)]
    side = marks[0].variable if marks else node
    two = Compare("=", Aggregate("COUNT", side, distinct=True), integer(2))
    if best.having != two or marks != [Bind(integer(1), side), Bind(integer(2), side)]:
        raise reason
    edges = [t for t in best.where.elements if isinstance(t, Triple) and t.subject == node]
    if len(edges) != 1 or decode(verb_of(edges[0]).text) != key:
        raise reason
    sides = []
    for branch in unions[0].branches:
        describer.seen = set()
        scope = Scope([e for e in branch.elements if not isinstance(e, Bind)])
        sides.append(describer.described(node, scope))
        scope.finish()
    return sides


def _of_unit(
    describer: Describer, elements: Sequence[Element], unit: Var, number: Var
) -> tuple[str, Var, Description]:
    """The key, the nodes and their variable, of a group that looks for quantities."""
    units = [e for e in elements if isinstance(e, Triple) and e.predicate == UNIT]
    units = [e for e in units if e.object == unit]
    if len(units) != 1:
        raise NotInKoplError("a superlative looks at the quantities of one key")
    value = variable_of(units[0].subject, units[0])
    own = [e for e in elements if isinstance(e, Triple) and e.subject == value]
    edges = [e for e in elements if isinstance(e, Triple) and e.object == value]
    if len(edges) != 1 or {(t.predicate, t.object) for t in own} != {
        (UNIT, unit),
        (VALUE, number),
    }:
        raise NotInKoplError("a superlative looks at the quantities of one key")
    describer.seen = {value}
    scope = Scope([e for e in elements if e not in own and e not in edges])
    node = variable_of(edges[0].subject, edges[0])
    description = describer.described(node, scope)
    scope.finish()
    return decode(verb_of(edges[0]).text), node, description
