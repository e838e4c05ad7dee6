"""What each function does with a knowledge base: one small function for each declaration.

docs/language.md and docs/functions.md say the rules; a function here gets the running execution,
its inputs and its typed arguments, and gives an `Outcome`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kb import Condition, KnowledgeBase, Quantity
from kb.arrays import EMPTY, Ids, Mask, contains, unique
from kb.values import Operator, Time
from kopl import functions as f
from kopl.denotation import Located, Outcome, Values, Words
from kopl.errors import ExecutionError
from kopl.functions import Function


@dataclass(frozen=True, slots=True)
class Context:
    """What the functions of one execution share."""

    kb: KnowledgeBase
    strict: bool = False


Meaning = Callable[..., Outcome]
MEANINGS: dict[str, Meaning] = {}


def executes(*declared: Function) -> Callable[[Meaning], Meaning]:
    """Register a function's meaning; its parameters must fit the declaration."""

    def register(meaning: Meaning) -> Meaning:
        parameters = list(inspect.signature(meaning).parameters)
        for function in declared:
            names = [name for name, _ in function.arguments]
            if parameters[1 + function.arity :] != names:
                raise TypeError(f"{meaning.__name__} does not fit {function.signature}")
            MEANINGS[function.name] = meaning
        return meaning

    return register


def _only_string(value: str) -> Condition:
    return Condition((value,))


# --- locating ---------------------------------------------------------------------------------


@executes(f.FIND_ALL)
def find_all(run: Context) -> Located:
    return Located(run.kb, run.kb.entities)


@executes(f.FIND)
def find(run: Context, name: str) -> Located:
    return Located(run.kb, run.kb.named(name))


@executes(f.FILTER_CONCEPT)
def filter_concept(run: Context, nodes: Located, concept: str) -> Located:
    return Located(run.kb, run.kb.intersect(nodes.ids, run.kb.instances_of(concept)))


@executes(f.FILTER_STR)
def filter_str(run: Context, nodes: Located, key: str, value: str) -> Located:
    return _filter(run, nodes, key, _only_string(value))


@executes(f.FILTER_NUM, f.FILTER_YEAR, f.FILTER_DATE)
def filter_value(
    run: Context, nodes: Located, key: str, value: Quantity | Time, op: Operator
) -> Located:
    return _filter(run, nodes, key, Condition((value,), op))


def _filter(run: Context, nodes: Located, key: str, condition: Condition) -> Located:
    facts = run.kb.literals_where(nodes.ids, key, condition)
    return Located(run.kb, None, facts, run.kb.literals)


@executes(f.QFILTER_STR)
def qfilter_str(run: Context, nodes: Located, qkey: str, value: str) -> Located:
    return _qfilter(run, nodes, qkey, _only_string(value))


@executes(f.QFILTER_NUM, f.QFILTER_YEAR, f.QFILTER_DATE)
def qfilter_value(
    run: Context, nodes: Located, qkey: str, value: Quantity | Time, op: Operator
) -> Located:
    return _qfilter(run, nodes, qkey, Condition((value,), op))


def _qfilter(run: Context, nodes: Located, qkey: str, condition: Condition) -> Located:
    assert nodes.table is not None  # typing sees to it
    facts = run.kb.qualified(nodes.table, nodes.facts, qkey, condition)
    return Located(run.kb, None, facts, nodes.table, nodes.by_object)


@executes(f.RELATE)
def relate(run: Context, nodes: Located, relation: str, direction: str) -> Located:
    if direction == "forward":
        facts = run.kb.facts_from(nodes.ids, relation)
    else:
        facts = run.kb.facts_into(nodes.ids, relation)
    return Located(run.kb, None, facts, run.kb.relational, direction == "forward")


@executes(f.AND)
def both(run: Context, left: Located, right: Located) -> Located:
    return Located(run.kb, run.kb.intersect(left.ids, right.ids))


@executes(f.OR)
def either(run: Context, left: Located, right: Located) -> Located:
    return Located(run.kb, _union(run.kb, left.ids, right.ids))


def _union(kb: KnowledgeBase, left: Ids, right: Ids) -> Ids:
    if len(left) == 0 or len(right) == 0:
        return left if len(right) == 0 else right
    return unique(np.concatenate((left, right)))


# --- asking -----------------------------------------------------------------------------------


@executes(f.QUERY_NAME)
def query_name(run: Context, nodes: Located) -> Located:
    return Located(run.kb, nodes.ids)


@executes(f.COUNT)
def count(run: Context, nodes: Located) -> Words:
    return Words([str(len(nodes.ids))])


@executes(f.QUERY_ATTR)
def query_attr(run: Context, nodes: Located, key: str) -> Values:
    facts = run.kb.literals_of(nodes.ids, key)
    return Values(run.kb, unique(run.kb.literals.object[facts]))


@executes(f.QUERY_ATTR_UNDER_CONDITION)
def query_attr_under_condition(
    run: Context, nodes: Located, key: str, qkey: str, qvalue: Condition
) -> Values:
    facts = facts_under_condition(run.kb, nodes.ids, key, qkey, qvalue)
    return Values(run.kb, unique(run.kb.literals.object[facts]))


def facts_under_condition(
    kb: KnowledgeBase, nodes: Ids, key: str, qkey: str, qvalue: Condition
) -> Ids:
    """The literal facts of a key, of these nodes, with a qualifier that satisfies the condition."""
    return kb.qualified(kb.literals, kb.literals_of(nodes, key), qkey, qvalue)


@executes(f.QUERY_RELATION)
def query_relation(run: Context, heads: Located, tails: Located) -> Words:
    facts = facts_between(run.kb, heads.ids, tails.ids)
    numbers = run.kb.relational.predicates(facts).tolist()
    return Words([run.kb.relations[number] for number in numbers])


def facts_between(kb: KnowledgeBase, heads: Ids, tails: Ids, relation: str | None = None) -> Ids:
    """The relational facts from one set to another, of the relation if one is given."""
    facts = kb.relational.between(heads, tails, kb.node_count)
    if relation is not None:
        same: Mask = kb.relational.predicate[facts] == kb.relation_number(relation)
        facts = facts[same]
    return facts


@executes(f.QUERY_ATTR_QUALIFIER)
def query_attr_qualifier(
    run: Context, nodes: Located, key: str, value: Condition, qkey: str
) -> Values:
    facts = run.kb.literals_where(nodes.ids, key, value)
    return Values(run.kb, run.kb.qualifier_values(run.kb.literals, facts, qkey))


@executes(f.QUERY_RELATION_QUALIFIER)
def query_relation_qualifier(
    run: Context, heads: Located, tails: Located, relation: str, qkey: str
) -> Values:
    facts = facts_between(run.kb, heads.ids, tails.ids, relation)
    return Values(run.kb, run.kb.qualifier_values(run.kb.relational, facts, qkey))


@executes(f.VERIFY_STR)
def verify_str(run: Context, values: Values, value: str) -> Words:
    return _verify(run, values, _only_string(value))


@executes(f.VERIFY_NUM, f.VERIFY_YEAR, f.VERIFY_DATE)
def verify_value(run: Context, values: Values, value: Quantity | Time, op: Operator) -> Words:
    return _verify(run, values, Condition((value,), op))


def _verify(run: Context, values: Values, condition: Condition) -> Words:
    if run.strict and len(values) != 1:
        raise ExecutionError(f"strict: Verify needs exactly one value, found {len(values)}")
    return Words(["yes" if run.kb.satisfying(values.numbers, condition).any() else "no"])


# --- selecting --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Quantities:
    """The quantities of a key in a set: number, subject, value number and unit of every fact."""

    facts: Ids
    nodes: Ids
    values: Ids
    units: Ids

    @classmethod
    def of(cls, kb: KnowledgeBase, nodes: Ids, key: str) -> Quantities:
        facts = kb.literals_of(nodes, key)
        values = kb.literals.object[facts]
        keep = kb.values.is_quantity(values)
        facts, values = facts[keep], values[keep]
        return cls(facts, kb.literals.subject[facts], values, kb.values.units_of(values))

    def those(self, kept: Mask) -> Quantities:
        """The facts of a mask."""
        return Quantities(self.facts[kept], self.nodes[kept], self.values[kept], self.units[kept])

    def extreme(self, largest: bool, among: Ids | None = None) -> Ids:
        """The nodes with the extreme value in the unit that most facts have (of ``among``)."""
        units = self.units if among is None else self.units[contains(among, self.units)]
        if len(units) == 0:
            return EMPTY
        unit = units[0]
        if not (units == unit).all():
            # np.unique puts the smallest unit by code point first, argmax keeps it on a tie.
            names, counts = np.unique(units, return_counts=True)
            unit = names[counts.argmax()]
        here = self.units == unit
        values = self.values[here]  # in one unit the order of numbers is that of the values
        wanted = values.max() if largest else values.min()
        return unique(self.nodes[here][values == wanted])


@executes(f.SELECT_AMONG)
def select_among(run: Context, nodes: Located, key: str, op: str) -> Located:
    found = Quantities.of(run.kb, nodes.ids, key)
    winners = found.extreme(op == "largest")
    if run.strict:
        _one_quantity_each(found, "SelectAmong")
        if len(unique(found.nodes)) < 2:
            raise ExecutionError(f"strict: SelectAmong needs two or more entities with {key!r}")
        if len(winners) != 1:
            raise ExecutionError(f"strict: {len(winners)} entities have the {op} {key!r}")
    return Located(run.kb, winners)


@executes(f.SELECT_BETWEEN)
def select_between(run: Context, left: Located, right: Located, key: str, op: str) -> Located:
    sides = [Quantities.of(run.kb, side.ids, key) for side in (left, right)]
    if run.strict:
        _check_sides(left, right, sides, key)
    shared = shared_units(sides)
    if len(shared) == 0:
        return Located(run.kb, EMPTY)
    together = Quantities.of(run.kb, _union(run.kb, left.ids, right.ids), key)
    return Located(run.kb, together.extreme(op == "greater", shared))


def shared_units(sides: list[Quantities]) -> Ids:
    """The units that the quantities of both sides have."""
    return np.intersect1d(sides[0].units, sides[1].units).astype(np.int32)


def _one_quantity_each(found: Quantities, name: str) -> None:
    pairs = {*zip(found.nodes.tolist(), found.values.tolist(), strict=True)}
    if len(pairs) != len(unique(found.nodes)):
        raise ExecutionError(f"strict: {name} needs one quantity for each entity")
    if len(set(found.units.tolist())) > 1:
        raise ExecutionError(f"strict: {name} needs quantities of one unit")


def _check_sides(left: Located, right: Located, sides: list[Quantities], key: str) -> None:
    numbers: list[Any] = []
    for nodes, side in zip((left, right), sides, strict=True):
        if len(nodes) != 1:
            raise ExecutionError(
                f"strict: each side of SelectBetween must be one entity, found {len(nodes)}"
            )
        if len(values := set(side.values.tolist())) != 1:
            raise ExecutionError(
                f"strict: each side of SelectBetween needs one quantity of {key!r},"
                f" found {len(values)}"
            )
        numbers.append((side.units[0], values))
    if numbers[0][0] != numbers[1][0]:
        raise ExecutionError("strict: the two quantities of SelectBetween differ in their unit")
    if numbers[0][1] == numbers[1][1]:
        raise ExecutionError("strict: the two quantities of SelectBetween are equal")


if missing := [name for name in f.FUNCTIONS if name not in MEANINGS]:
    raise TypeError(f"functions without a meaning: {', '.join(missing)}")
