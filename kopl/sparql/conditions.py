"""Conditions on values, read back from the patterns that say them.

They are written by `kopl.sparql.encoding.Encoding.condition`.
"""

from __future__ import annotations

from collections.abc import Sequence

from kb.rdf.iri import XSD
from kb.values import (
    OPERATORS,
    Condition,
    Date,
    Operator,
    Quantity,
    Value,
    ValueReadError,
    read_quantity,
    read_time,
    read_year,
    readings,
)
from kopl.sparql.ast import (
    DATE,
    DOUBLE,
    INTEGER,
    Compare,
    Element,
    Filter,
    Group,
    Iri,
    Literal,
    Maybe,
    Term,
    Triple,
    Union,
    Var,
    walk,
    write_element,
)
from kopl.sparql.encoding import DAY, UNIT, VALUE, YEAR, Encoding, Names
from kopl.sparql.errors import NotInKoplError

OF_VALUES = (VALUE, UNIT, YEAR, DAY)
_NUMBERS = {DOUBLE, INTEGER, XSD + "decimal", XSD + "float"}
_FLIPPED: dict[str, Operator] = {"=": "=", "!=": "!=", "<": ">", ">": "<"}


def about_value(element: Element, value: Var) -> bool:
    """Whether an element says something of a value only: triples of it, alone or in groups."""
    if isinstance(element, Triple):
        return element.subject == value and element.predicate in OF_VALUES
    if isinstance(element, Maybe):
        return all(about_value(part, value) for part in element.group.elements)
    if isinstance(element, Group):
        return all(about_value(p, value) or isinstance(p, Filter) for p in element.elements)
    if isinstance(element, Union):
        return all(about_value(branch, value) for branch in element.branches)
    return False


def condition_of(value: Var, elements: Sequence[Element]) -> Condition:
    """The condition that the elements put on a value, in either style.

    Raises NotInKoplError for what no condition of KoPL says.
    """
    if len(elements) == 1 and isinstance(elements[0], Union | Group):
        only = elements[0]
        branches = only.branches if isinstance(only, Union) else (only,)
        found = [condition_of(value, branch.elements) for branch in branches]
        if any(one.operator != "=" for one in found) and len(found) > 1:
            raise _refused(elements[0], "alternatives of one value are constants that it equals")
        constants = tuple(constant for one in found for constant in one.constants)
        return Condition(constants, found[0].operator)
    if not elements:
        raise NotInKoplError(f"nothing is said of the value ?{value.name}")
    said: dict[Iri, Term] = {}
    filters: list[Filter] = []
    for element in elements:
        if isinstance(element, Filter):
            filters.append(element)
            continue
        triple: Element = element
        if isinstance(element, Maybe):
            if _is_optional_day(element):
                continue  # looked at below
            raise _refused(element, "what is optional is no condition")
        if not isinstance(triple, Triple) or not isinstance(triple.predicate, Iri):
            raise _refused(element, "it is not a condition on a value")
        if triple.predicate in said:
            raise _refused(element, f"<{triple.predicate.text}> is asked for twice")
        said[triple.predicate] = triple.object
    if len(filters) > 1:
        raise _refused(filters[1], "KoPL compares a value once; a chain is about several facts")
    if any(isinstance(element, Maybe) for element in elements):
        return _against_day(value, elements, filters)
    if not filters:
        number = said.get(VALUE)
        if isinstance(number, Literal) and number.datatype not in (None, DOUBLE):
            raise _refused(elements[0], "the numbers of the encoding are xsd:double")
        return Condition((_constant(said, elements),))
    compared = [verb for verb, what in said.items() if isinstance(what, Var)]
    if len(compared) != 1:
        raise _refused(filters[0], "one number, year or day is to be compared")
    operator, constant = _comparison(filters[0], said[compared[0]])
    return Condition((_constant({**said, compared[0]: constant}, elements),), operator)


def is_plain(literal: Literal) -> bool:
    """Whether a literal is a text of no other type and no language."""
    return literal.datatype is None and literal.language is None


def _is_optional_day(element: Maybe) -> bool:
    only = element.group.elements[0] if len(element.group.elements) == 1 else None
    return isinstance(only, Triple) and only.predicate == DAY and isinstance(only.object, Var)


def _comparison(element: Filter, variable: Term) -> tuple[Operator, Literal]:
    condition = element.condition
    if isinstance(condition, Compare) and condition.operator in OPERATORS:
        if condition.left == variable and isinstance(condition.right, Literal):
            return _FLIPPED[_FLIPPED[condition.operator]], condition.right
        if condition.right == variable and isinstance(condition.left, Literal):
            return _FLIPPED[condition.operator], condition.left
    raise _refused(element, "KoPL compares a value with a constant, by one of = != < >")


def _constant(said: dict[Iri, Term], elements: Sequence[Element]) -> Value:
    """The constant that the terms spell: text, number and unit, year, or day."""
    verbs = set(said)
    literals = {verb: what for verb, what in said.items() if isinstance(what, Literal)}
    try:
        if len(literals) == len(said):
            if verbs == {VALUE} and is_plain(literals[VALUE]):
                return literals[VALUE].text
            if verbs == {VALUE, UNIT} and literals[VALUE].datatype in _NUMBERS:
                number = read_quantity(literals[VALUE].text).number
                if is_plain(literals[UNIT]):
                    return Quantity(number, literals[UNIT].text)
            # As the encoding writes them: other spellings find nothing in a graph.
            if verbs == {YEAR} and literals[YEAR].datatype == INTEGER:
                year = read_year(literals[YEAR].text)
                if str(year) == literals[YEAR].text:
                    return year
            if verbs == {DAY} and literals[DAY].datatype == DATE:
                day = read_time(literals[DAY].text)
                if isinstance(day, Date) and str(day) == literals[DAY].text:
                    return day
    except (ValueReadError, ValueError) as error:
        raise _refused(elements[0], str(error)) from None
    reason = "it is not equality with, or a comparison with, one constant"
    if verbs == {VALUE}:
        reason = "KoPL compares numbers in a unit; say which with <pred:unit>"
    if verbs == {YEAR, DAY}:
        reason = "KoPL compares a year or a day, not both"
    raise _refused(elements[0], reason)


def _against_day(value: Var, elements: Sequence[Element], filters: list[Filter]) -> Condition:
    """The comparison of years and days with a day, as exact translations write it."""
    reason = "years and days are compared in a way that KoPL does not know"
    if not filters:
        raise _refused(elements[0], reason)
    compares = [part for part in walk(filters[0]) if isinstance(part, Compare)]
    constants = [part.right for part in compares if isinstance(part.right, Literal)]
    years = [part.text for part in constants if part.datatype == INTEGER]
    days = [part.text for part in constants if part.datatype is None]
    try:
        sign, digits = ("-", years[0][1:]) if years[0].startswith("-") else ("", years[0])
        day = read_time(f"{sign}{digits:0>4}-{days[0]}")
    except (IndexError, ValueReadError):
        raise _refused(filters[0], reason) from None
    assert isinstance(day, Date)
    operator: Operator
    for operator in ("<", ">", "!="):
        condition = Condition((day,), operator)
        expected = Encoding().condition(value, condition, Names())
        if _same_up_to_names(expected, elements, value):
            return condition
    raise _refused(filters[0], reason)


def _same_up_to_names(left: Sequence[Element], right: Sequence[Element], fixed: Var) -> bool:
    from kopl.sparql.ast import Ask, renamed

    first, second = (renamed(Ask(Group(tuple(elements)))) for elements in (left, right))
    return first == second and fixed is not None


def untyped(condition: Condition) -> str | None:
    """The text whose readings the condition's constants are (or one of them), or None."""
    if condition.operator != "=":
        return None
    texts = [one if isinstance(one, str) else str(one) for one in condition.constants]
    # Of "05 metre" and 5 metre the text is the former.
    for text, one in zip(texts, condition.constants, strict=True):
        if isinstance(one, str) and set(readings(text)) >= set(condition.constants):
            return text
    for text in texts:
        if set(readings(text)) >= set(condition.constants):
            return text
    return None


def _refused(element: Element, reason: str) -> NotInKoplError:
    return NotInKoplError(f"{write_element(element)} — {reason}")
