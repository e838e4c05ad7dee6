"""The programs of sets that are described."""

from __future__ import annotations

from kb.values import Condition, Date, Quantity
from kopl import functions as f
from kopl.functions import Function
from kopl.program import Call
from kopl.sparql.errors import NotInKoplError
from kopl.sparql.sets import (
    Alternatives,
    Attribute,
    Description,
    Qualifiers,
    Relation,
)


def program_of(description: Description) -> Call:
    """The program of a set; raises NotInKoplError for the set of all nodes."""
    sources: list[Call] = []
    attributes: list[Attribute] = []
    for part in description.parts:
        if isinstance(part, Relation):
            word = "forward" if part.forward else "backward"
            related = Call(f.RELATE, (program_of(part.other),), (part.relation, word))
            sources.append(_qualified(related, part.qualifiers))
        elif isinstance(part, Alternatives):
            either, *others = [program_of(branch) for branch in part.branches]
            for other in others:
                either = Call(f.OR, (either, other))
            sources.append(either)
        else:
            attributes.append(part)
    sources += [Call(f.FIND, (), (name,)) for name in description.names]
    known_entity = attributes or description.concepts
    if not sources and not known_entity and not description.entity:
        raise NotInKoplError(
            "a variable of which nothing is said stands for any entity or concept; KoPL has no"
            ' such set (say <pred:kind> "entity" for all entities)'
        )
    if not sources or (description.entity and not known_entity):
        sources.insert(0, Call(f.FIND_ALL))
    nodes = sources[0]
    for source in sources[1:]:
        nodes = Call(f.AND, (nodes, source))
    for attribute in attributes:
        functions = (f.FILTER_STR, f.FILTER_NUM, f.FILTER_YEAR)
        if len(attribute.condition.constants) > 1:
            # Alternatives of one value: of the facts that satisfy either, one is enough.
            nodes = _any_reading(nodes, attribute)
            continue
        nodes = typed(functions, nodes, [attribute.key], attribute.condition)
        nodes = _qualified(nodes, attribute.qualifiers)
    for concept in description.concepts:
        nodes = Call(f.FILTER_CONCEPT, (nodes,), (concept,))
    return nodes


def rooted(function: Function, nodes: Call, *arguments: str) -> Call:
    """The program of a function of one set."""
    return Call(function, (nodes,), arguments)


def _any_reading(nodes: Call, attribute: Attribute) -> Call:
    functions = (f.FILTER_STR, f.FILTER_NUM, f.FILTER_YEAR)
    found: Call | None = None
    for constant in attribute.condition.constants:
        one = typed(functions, nodes, [attribute.key], Condition((constant,)))
        one = _qualified(one, attribute.qualifiers)
        found = one if found is None else Call(f.OR, (found, one))
    assert found is not None
    return found


def _qualified(nodes: Call, qualifiers: Qualifiers) -> Call:
    for key, condition in qualifiers:
        if len(condition.constants) > 1:
            raise NotInKoplError(
                f"the qualifier {key!r} has several readings; a QFilter has one type"
            )
        functions = (f.QFILTER_STR, f.QFILTER_NUM, f.QFILTER_YEAR)
        nodes = typed(functions, nodes, [key], condition)
    return nodes


_DAYS = {f.FILTER_YEAR: f.FILTER_DATE, f.QFILTER_YEAR: f.QFILTER_DATE, f.VERIFY_YEAR: f.VERIFY_DATE}


def typed(
    functions: tuple[Function, Function, Function],
    nodes: Call,
    arguments: list[str],
    condition: Condition,
) -> Call:
    """The function of the constant's type: of strings, of numbers, of years and days."""
    constant, operator = condition.constants[0], condition.operator
    if isinstance(constant, str):
        if operator != "=":
            raise NotInKoplError(f"strings are compared by = only, not by {operator}")
        return Call(functions[0], (nodes,), (*arguments, constant))
    function = functions[1] if isinstance(constant, Quantity) else functions[2]
    if isinstance(constant, Date):
        function = _DAYS[function]
    return Call(function, (nodes,), (*arguments, str(constant), operator))
