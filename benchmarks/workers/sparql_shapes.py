"""The questions of the SPARQL benchmark: shapes of programs, grounded by chance.

A shape draws a fact and asks for it in one way; what it draws is kept when its answer is not empty.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from kb import Date, KnowledgeBase, Quantity, Year
from kb.store import LiteralFact, Record
from kopl.builder import Expression, find, find_all
from kopl.executor import Executor
from kopl_base.errors import KoplError

Shape = Callable[["Draw"], Expression]
# name -> (shape, whether it starts from a name or another rare constant)
SHAPES: dict[str, tuple[Shape, bool]] = {}


def shape(name: str, *, selective: bool) -> Callable[[Shape], Shape]:
    """Register a shape."""

    def register(function: Shape) -> Shape:
        SHAPES[name] = (function, selective)
        return function

    return register


class Draw:
    """Draws nodes and facts; `IndexError` stands for "not here, draw again"."""

    def __init__(self, kb: KnowledgeBase, rng: random.Random) -> None:
        self.kb, self.rng, self.number = kb, rng, 0

    def entity(self) -> int:
        return self.rng.randrange(self.kb.entity_count)

    def find(self, node: int) -> Expression:
        found = find(self.kb.name_of(node))
        if len(self.kb.named(self.kb.name_of(node))) > 1:
            found = found.filter_concept(self.concept(node))
        return found

    def concept(self, node: int) -> str:
        if not self.kb.is_entity(node):
            raise IndexError("a concept")
        return self.kb.name_of(self.rng.choice(self.kb.all_concepts_of(node)))

    def record(self, node: int, *, qualified: bool = False) -> tuple[Record, int]:
        """A fact at the node, and the node at its other end."""
        records = [r for r in self.kb.records(node, "both") if r.qualifiers or not qualified]
        found = self.rng.choice(records)
        return found, self.kb.node(found.other)

    def fact(self, node: int, *kinds: type, qualified: bool = False) -> LiteralFact:
        """An attribute of the node, with a value of these types."""
        return self.rng.choice(
            [
                fact
                for fact in self.kb.attributes(node)
                if isinstance(fact.value, kinds or object) and (fact.qualifiers or not qualified)
            ]
        )

    def qualifier(self, qualifiers: dict[str, list[Any]], *kinds: type) -> tuple[str, Any]:
        """A qualifier, with a value of these types."""
        pairs = [
            (key, value)
            for key, values in qualifiers.items()
            for value in values
            if isinstance(value, kinds or object)
        ]
        return self.rng.choice(pairs)

    def among(self, numbers: Any) -> int:
        """One of these facts, by number."""
        return int(numbers[self.rng.randrange(len(numbers))])

    def commonest(self, table: Any, most: int = 3) -> int:
        """One of the relations or keys with the most qualified facts."""
        counts = np.bincount(table.predicate[np.asarray(table.qualifiers) > 0])
        return int(self.rng.choice(counts.argsort()[::-1][:most].tolist()))

    def bound(self, value: Any) -> tuple[Any, str]:
        """A constant and an operator that the value satisfies."""
        if isinstance(value, str):
            return value, "="
        op = self.rng.choice("<>")
        sign = 1 if op == "<" else -1
        if isinstance(value, Quantity):
            step = sign * (abs(value.number) * 0.2 + 1)
            return Quantity(round(value.number + step, 2), value.unit), op
        return Year(value.year + 4 * sign), op


def filtered(
    nodes: Expression, key: str, value: Any, op: str = "=", *, qualifier: bool = False
) -> Expression:
    """The filter that suits the value's type."""
    kind = {str: "str", Quantity: "num", Year: "year", Date: "date"}[type(value)]
    method = getattr(nodes, ("q" if qualifier else "") + f"filter_{kind}")
    expression: Expression = method(key, value) if kind == "str" else method(key, value, op)
    return expression


def verified(values: Expression, value: Any, op: str = "=") -> Expression:
    """The verification that suits the value's type."""
    kind = {str: "str", Quantity: "num", Year: "year", Date: "date"}[type(value)]
    method = getattr(values, f"verify_{kind}")
    expression: Expression = method(value) if kind == "str" else method(value, op)
    return expression


def other_way(record: Record) -> str:
    return "backward" if record.direction == "forward" else "forward"


# --- the shapes ---------------------------------------------------------------------------------


@shape("name by relation", selective=True)
def _(d: Draw) -> Expression:
    node = d.entity()
    record, _ = d.record(node)
    return d.find(node).relate(record.relation, record.direction).query_name()


@shape("attribute of an entity", selective=True)
def _(d: Draw) -> Expression:
    node = d.entity()
    return d.find(node).query_attr(d.fact(node).key)


@shape("superlative with a numeric filter", selective=False)
def _(d: Draw) -> Expression:
    node = d.entity()
    first, second = d.fact(node, Quantity), d.fact(node, Quantity)
    nodes = find_all().filter_concept(d.concept(node))
    nodes = filtered(nodes, first.key, *d.bound(first.value))
    return nodes.select_among(second.key, d.rng.choice(("largest", "smallest")))


@shape("superlative over a concept", selective=False)
def _(d: Draw) -> Expression:
    node = d.entity()
    nodes = find_all().filter_concept(d.concept(node))
    key = d.fact(node, Quantity).key
    return nodes.select_among(key, d.rng.choice(("largest", "smallest")))


@shape("comparison (UNION)", selective=True)
def _(d: Draw) -> Expression:
    first = d.entity()
    key = d.fact(first, Quantity).key
    second = int(d.kb.literals.subject[d.among(d.kb.literals_of(d.kb.entities, key))])
    return d.find(first).select_between(d.find(second), key, d.rng.choice(("greater", "less")))


@shape("ASK, true and false", selective=True)
def _(d: Draw) -> Expression:
    node = d.entity()
    fact = d.fact(node)
    values = d.find(node).query_attr(fact.key)
    if d.number % 2 == 0:
        return verified(values, fact.value)
    if isinstance(fact.value, str):
        return verified(values, "no such value")
    return verified(values, fact.value, d.rng.choice(("<", ">", "!=")))


@shape("attribute with a qualifier", selective=True)
def _(d: Draw) -> Expression:
    node = d.entity()
    fact = d.fact(node, qualified=True)
    key, value = d.qualifier(fact.qualifiers)
    return d.find(node).query_attr_under_condition(fact.key, key, value)


@shape("two hops with a qualifier", selective=True)
def _(d: Draw) -> Expression:
    first = d.entity()
    to_second, second = d.record(first)
    to_third, third = d.record(second, qualified=True)
    nodes = d.find(first).relate(to_second.relation, to_second.direction)
    nodes = nodes.filter_concept(d.concept(second))
    nodes = nodes.relate(to_third.relation, to_third.direction)
    nodes = filtered(nodes, *d.qualifier(to_third.qualifiers), qualifier=True)
    return nodes.filter_concept(d.concept(third)).query_name()


@shape("two hops", selective=True)
def _(d: Draw) -> Expression:
    first = d.entity()
    to_second, second = d.record(first)
    to_third, _ = d.record(second)
    nodes = d.find(first).relate(to_second.relation, to_second.direction)
    return nodes.relate(to_third.relation, to_third.direction).query_name()


@shape("count", selective=True)
def _(d: Draw) -> Expression:
    node = d.entity()
    record, other = d.record(node)
    nodes = d.find(other).relate(record.relation, other_way(record))
    return nodes.filter_concept(d.concept(node)).count()


@shape("union", selective=True)
def _(d: Draw) -> Expression:
    sides = []
    for _ in range(2):
        node = d.entity()
        record, _ = d.record(node)
        sides.append(d.find(node).relate(record.relation, record.direction))
    return sides[0].or_(sides[1]).query_name()


@shape("intersection", selective=True)
def _(d: Draw) -> Expression:
    node, sides = d.entity(), []
    for _ in range(2):
        record, other = d.record(node)
        sides.append(d.find(other).relate(record.relation, other_way(record)))
    if sides[0] == sides[1]:
        raise IndexError("the same fact")
    return sides[0].and_(sides[1]).query_name()


@shape("relation between two entities", selective=True)
def _(d: Draw) -> Expression:
    node = d.entity()
    record, other = d.record(node)
    ends = [d.find(node), d.find(other)]
    head, tail = ends if record.direction == "forward" else ends[::-1]
    return head.query_relation(tail)


@shape("qualifier of a relation", selective=True)
def _(d: Draw) -> Expression:
    node = d.entity()
    record, other = d.record(node, qualified=True)
    ends = [d.find(node), d.find(other)]
    head, tail = ends if record.direction == "forward" else ends[::-1]
    key = d.qualifier(record.qualifiers)[0]
    return head.query_relation_qualifier(tail, record.relation, key)


@shape("qualifier of an attribute", selective=True)
def _(d: Draw) -> Expression:
    node = d.entity()
    fact = d.fact(node, qualified=True)
    key = d.qualifier(fact.qualifiers)[0]
    return d.find(node).query_attr_qualifier(fact.key, fact.value, key)


@shape("unselective qualifier, relations", selective=False)
def _(d: Draw) -> Expression:
    facts = d.kb.relational.of_predicate(d.commonest(d.kb.relational))
    fact = d.kb.relational_fact(d.among(facts))
    key, value = d.qualifier(fact.qualifiers)
    nodes = find_all().relate(fact.relation, d.rng.choice(("forward", "backward")))
    return filtered(nodes, key, *d.bound(value), qualifier=True).query_name()


@shape("unselective qualifier, attributes", selective=False)
def _(d: Draw) -> Expression:
    facts = d.kb.literals.of_predicate(d.commonest(d.kb.literals, 10))
    fact = d.among(facts)
    qualifiers = d.kb.qualifier_map(int(d.kb.literals.qualifiers[fact]))
    key, value = d.qualifier(qualifiers)
    attribute = d.kb.values[int(d.kb.literals.object[fact])]
    if isinstance(attribute, str):
        raise IndexError("strings are not compared")
    predicate = d.kb.keys[int(d.kb.literals.predicate[fact])]
    nodes = filtered(find_all(), predicate, *d.bound(attribute))
    return filtered(nodes, key, *d.bound(value), qualifier=True).query_name()


@shape("concept and number", selective=False)
def _(d: Draw) -> Expression:
    node = d.entity()
    fact = d.fact(node, Quantity)
    nodes = find_all().filter_concept(d.concept(node))
    return filtered(nodes, fact.key, *d.bound(fact.value)).query_name()


@shape("date filter", selective=False)
def _(d: Draw) -> Expression:
    node = d.entity()
    fact = d.fact(node, Date)
    assert isinstance(fact.value, Date)
    year = d.bound(fact.value)
    day = Date(year[0].year, fact.value.month, min(fact.value.day, 28))
    return find_all().filter_date(fact.key, day, year[1]).query_name()


@shape("string anywhere", selective=True)
def _(d: Draw) -> Expression:
    fact = d.fact(d.entity(), str)
    return filtered(find_all(), fact.key, fact.value).query_name()


def grounded(
    kb: KnowledgeBase, executor: Executor, groundings: int, seed: int
) -> dict[str, list[tuple[Expression, list[str]]]]:
    """For each shape its programs with their denotations; fewer where there are none."""
    found: dict[str, list[tuple[Expression, list[str]]]] = {}
    for name, (function, _) in SHAPES.items():
        draw = Draw(kb, random.Random(f"{seed} {name}"))
        kept = found.setdefault(name, [])
        for _ in range(300 * groundings):
            if len(kept) == groundings:
                break
            draw.number = len(kept)
            try:
                program = function(draw)
                denotation = executor.denote(program.program)
            except (IndexError, ValueError, KoplError):
                continue
            wanted = ["yes", "no"][draw.number % 2] if name.startswith("ASK") else None
            if denotation not in ([], ["0"]) and wanted in (None, *denotation):
                kept.append((program, denotation))
    return found
