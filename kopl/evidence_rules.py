"""Why each function gives what it gives: the rules by which evidence is found.

A rule (`explains`) turns what is wanted of a call into rows: something it gives, the fact that puts
it there, and what that takes of the call's inputs (`kopl.evidence`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from kb import Condition, KnowledgeBase
from kb.arrays import EMPTY, Ids, Mask, contains, intersect, unite
from kb.facts import FactTable
from kopl import functions as f
from kopl.denotation import Located, Outcome
from kopl.functions import Function
from kopl.meaning import Quantities, facts_between, facts_under_condition, shared_units

Kind: TypeAlias = Literal["attribute", "relation", "membership", "name"]

NONE = -1  # of a row: nothing is taken of that input


@dataclass(frozen=True, slots=True)
class Rows:
    """Why a call gives something, in columns of one length: one derivation of it a row.

    ``gives`` is a node, a value or a fact; ``facts`` (of ``kind``) put it there, with what
    ``inputs`` have of each input, or `NONE`.
    """

    gives: Ids
    inputs: tuple[Ids, ...] = ()
    facts: Ids | None = None
    kind: Kind = "attribute"


@dataclass(frozen=True, slots=True)
class Given:
    """A call that ran: what it gave, its inputs, arguments, and what of an input needs no fact.

    ``by_fact``: what is wanted of it are facts that it carries, not the nodes they put there.
    """

    kb: KnowledgeBase
    outcome: Outcome
    inputs: tuple[Any, ...]
    arguments: tuple[Any, ...]
    free: tuple[Ids, ...]
    by_fact: bool = False


Rule: TypeAlias = Callable[[Given, Ids], Rows]
# For each function why it gives what it gives.
RULES: dict[str, Rule] = {}


def explains(*declared: Function) -> Callable[[Rule], Rule]:
    """Register the rule of functions."""

    def register(rule: Rule) -> Rule:
        RULES.update({function.name: rule for function in declared})
        return rule

    return register


@explains(f.FIND_ALL, f.FIND)
def _by_name(call: Given, wanted: Ids) -> Rows:
    return Rows(wanted)


@explains(f.FILTER_CONCEPT)
def _by_membership(call: Given, wanted: Ids) -> Rows:
    found = call.kb.memberships_in(wanted, *call.arguments)
    members = call.kb.members(found)
    return Rows(members, (members,), found, "membership")


@explains(f.FILTER_STR, f.FILTER_NUM, f.FILTER_YEAR, f.FILTER_DATE)
def _by_value(call: Given, wanted: Ids) -> Rows:
    facts, gives = _carried(call, wanted)
    return Rows(gives, (call.kb.literals.subject[facts],), facts)


@explains(f.QFILTER_STR, f.QFILTER_NUM, f.QFILTER_YEAR, f.QFILTER_DATE)
def _by_carried(call: Given, wanted: Ids) -> Rows:
    facts, gives = _carried(call, wanted)
    return Rows(gives, (facts,))


@explains(f.RELATE)
def _by_relation(call: Given, wanted: Ids) -> Rows:
    assert isinstance(call.outcome, Located)
    facts, gives = _carried(call, wanted)
    table = call.kb.relational
    start = table.subject if call.outcome.by_object else table.object
    return Rows(gives, (start[facts],), facts, "relation")


def _carried(call: Given, wanted: Ids) -> tuple[Ids, Ids]:
    """The facts that put what is wanted there, and what each of them puts there."""
    located = call.outcome
    assert isinstance(located, Located) and located.table is not None
    facts = located.facts
    ends = (located.table.object if located.by_object else located.table.subject)[facts]
    gives = facts if call.by_fact else ends
    kept: Mask = np.isin(gives, wanted)
    return facts[kept], gives[kept]


@explains(f.AND)
def _by_both(call: Given, wanted: Ids) -> Rows:
    return Rows(wanted, (wanted, wanted))


@explains(f.OR)
def _by_either(call: Given, wanted: Ids) -> Rows:
    # What one input has by its name rests on nothing that the other has.
    free = intersect(wanted, unite(call.free))
    rest = wanted[~contains(free, wanted)]
    left, right = (rest[contains(given.ids, rest)] for given in call.inputs)
    return Rows(
        np.concatenate([free, left, right]),
        (
            np.concatenate([_nothing(free), left, _nothing(right)]),
            np.concatenate([_nothing(free), _nothing(left), right]),
        ),
    )


def _nothing(like: Ids) -> Ids:
    return np.full(len(like), NONE, np.int32)


@explains(f.QUERY_NAME, f.COUNT)
def _by_node(call: Given, wanted: Ids) -> Rows:
    return Rows(wanted, (wanted,), wanted, "name")


@explains(f.QUERY_ATTR)
def _by_attribute(call: Given, wanted: Ids) -> Rows:
    return _values(call, call.kb.literals_of(call.inputs[0].ids, *call.arguments), wanted)


@explains(f.QUERY_ATTR_UNDER_CONDITION)
def _by_attribute_under_condition(call: Given, wanted: Ids) -> Rows:
    facts = facts_under_condition(call.kb, call.inputs[0].ids, *call.arguments)
    return _values(call, facts, wanted)


def _values(call: Given, facts: Ids, wanted: Ids) -> Rows:
    table = call.kb.literals
    facts = facts[contains(wanted, table.object[facts])]
    return Rows(table.object[facts], (table.subject[facts],), facts)


@explains(f.QUERY_RELATION)
def _by_any_relation(call: Given, wanted: Ids) -> Rows:
    table = call.kb.relational
    heads, tails = call.inputs
    facts = facts_between(call.kb, heads.ids, tails.ids)
    ends = table.subject[facts], table.object[facts]
    return Rows(table.predicate[facts], ends, facts, "relation")


@explains(f.QUERY_ATTR_QUALIFIER)
def _by_qualifier_of_attribute(call: Given, wanted: Ids) -> Rows:
    key, value, qkey = call.arguments
    table = call.kb.literals
    facts = call.kb.literals_where(call.inputs[0].ids, key, value)
    facts, values = _qualifiers(call.kb, table, facts, qkey)
    return Rows(values, (table.subject[facts],), facts)


@explains(f.QUERY_RELATION_QUALIFIER)
def _by_qualifier_of_relation(call: Given, wanted: Ids) -> Rows:
    relation, qkey = call.arguments
    heads, tails = call.inputs
    table = call.kb.relational
    facts = facts_between(call.kb, heads.ids, tails.ids, relation)
    facts, values = _qualifiers(call.kb, table, facts, qkey)
    return Rows(values, (table.subject[facts], table.object[facts]), facts, "relation")


def _qualifiers(kb: KnowledgeBase, table: FactTable, facts: Ids, qkey: str) -> tuple[Ids, Ids]:
    """The facts that have a qualifier, once for each of its values, and that value."""
    values = [kb.qualifier_values(table, facts[at : at + 1], qkey) for at in range(len(facts))]
    counts = [len(found) for found in values]
    return np.repeat(facts, counts), np.concatenate([EMPTY, *values])


@explains(f.SELECT_AMONG)
def _by_comparing(call: Given, wanted: Ids) -> Rows:
    key, _ = call.arguments
    found = Quantities.of(call.kb, call.inputs[0].ids, key)
    return Rows(found.facts, (found.nodes,), found.facts)


@explains(f.SELECT_BETWEEN)
def _by_comparing_sides(call: Given, wanted: Ids) -> Rows:
    key, _ = call.arguments
    sides = [Quantities.of(call.kb, side.ids, key) for side in call.inputs]
    units = shared_units(sides)
    left, right = (side.those(contains(units, side.units)) for side in sides)
    # That a fact is compared on either side, each rests on something of its own.
    return Rows(
        np.concatenate([2 * left.facts, 2 * right.facts + 1]),
        (
            np.concatenate([left.nodes, _nothing(right.nodes)]),
            np.concatenate([_nothing(left.nodes), right.nodes]),
        ),
        np.concatenate([left.facts, right.facts]),
    )


@explains(f.VERIFY_STR, f.VERIFY_NUM, f.VERIFY_YEAR, f.VERIFY_DATE)
def _by_values(call: Given, wanted: Ids) -> Rows:
    [values] = call.inputs
    constant, *operator = call.arguments
    fitting = call.kb.satisfying(values.numbers, Condition((constant,), *operator))
    # "no" rests on every value, "yes" on any that fits.
    compared = values.numbers[fitting] if fitting.any() else values.numbers
    gives = np.zeros(len(compared), np.int32) if fitting.any() else compared
    return Rows(gives, (compared,))


if missing := [name for name in f.FUNCTIONS if name not in RULES]:
    raise TypeError(f"functions without a rule of evidence: {', '.join(missing)}")
