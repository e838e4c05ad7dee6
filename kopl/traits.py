"""What a program shows by its form: names, hops, skills, the strategies of Table 8 of the paper."""

from __future__ import annotations

from collections.abc import Mapping

from kopl.functions import AND, FILTER_CONCEPT, FIND, FIND_ALL, OR, RELATE, Function
from kopl.program import Call, linked, post_order
from kopl.types import Kind, Type

# The columns of Table 5 that follow from a program, in their order.
SKILLS = ("multi-hop", "qualifier", "comparison", "logical", "count", "verify")

# The locating strategies of Table 8, in its order.
LOCATING = (
    "entity name",
    "concept name",
    "concept + literal",
    "concept + relational",
    "multi-hop",
    "intersection",
    "union",
)

# The asking strategies of Table 8, in its order.
ASKING = (
    "QueryName",
    "Count",
    "QueryAttribute",
    "Relation",
    "SelectAmong",
    "SelectBetween",
    "Verify",
    "QualifierLiteral",
    "QualifierRelational",
)

# What `asking` says of a program that only locates, such as Find("Norway").
NOTHING_ASKED = "none"

# Functions whose strategy has another name than they have.
_STRATEGY_OF = {
    "QueryAttr": "QueryAttribute",
    "QueryAttrUnderCondition": "QueryAttribute",
    "QueryRelation": "Relation",
    "QueryAttrQualifier": "QualifierLiteral",
    "QueryRelationQualifier": "QualifierRelational",
}


def names_in(program: Call) -> list[str]:
    """The names that a program finds, in post-order and as often as they stand in it."""
    return [call.arguments[0] for call in post_order(program) if call.function is FIND]


def with_found(program: Call, others: Mapping[str, Call]) -> Call:
    """The program with others in place of the calls that find some names."""
    if program.function is FIND:
        return others.get(program.arguments[0], program)
    inputs = tuple(with_found(given, others) for given in program.inputs)
    return Call(program.function, inputs, program.arguments)


def renamed(program: Call, others: Mapping[str, str]) -> Call:
    """The program with other names in place of some that it finds."""
    return with_found(program, {name: Call(FIND, (), (text,)) for name, text in others.items()})


def hops(program: Call) -> int:
    """The hops of a program: the sum of its functions' hops."""
    return sum(call.function.hops for call in post_order(program))


def skills(program: Call) -> tuple[str, ...]:
    """The columns of Table 5 that a program counts in, in the table's order."""
    used = {call.function.skill for call in post_order(program)}
    return tuple(skill for skill in SKILLS if skill in used)


def locating(program: Call) -> tuple[str, ...]:
    """The locating strategies of Table 8 that a program uses, in the table's order."""
    found: set[str] = set()
    described: list[bool] = []  # whether a relation or a value stands in the call or below it
    for call, inputs in linked(program):
        below = any(described[at] for at in inputs)
        relates, filters = call.function is RELATE, filters_by_value(call.function)
        described.append(below or relates or filters)
        if call.function is FIND:
            found.add("entity name")
        elif call.function is FILTER_CONCEPT:
            if any(given.function is FIND_ALL for given in call.inputs):
                found.add("concept name")
        elif filters:
            found.add("concept + literal")
        elif relates:
            found.add("concept + relational")
            if below:
                found.add("multi-hop")
        elif call.function is AND:
            found.add("intersection")
        elif call.function is OR:
            found.add("union")
    return tuple(strategy for strategy in LOCATING if strategy in found)


def asking(program: Call) -> str:
    """The asking strategy of Table 8 by a program's root, or `NOTHING_ASKED`."""
    root = program.function
    if root.output is Type.TRUTH:
        return "Verify"
    strategy = _STRATEGY_OF.get(root.name, root.name)
    return strategy if strategy in ASKING else NOTHING_ASKED


def filters_by_value(function: Function) -> bool:
    """Whether a function keeps the entities that have a fact of a key with some value."""
    return function.output is Type.FACTS and function.arguments[0][1] is Kind.KEY
