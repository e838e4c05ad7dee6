"""Exact match of programs, up to what says the same in another order.

The normal form of a program sorts the operands of `And` and of `Or` (nested ones are taken
together), the filters of a chain, each with its qualifier filters, and the qualifier filters of one
fact; it writes constants one way (``1e3`` and ``1000``, ``1998/6/27`` and ``1998-06-27``) and names
with single blanks; filters and verifications by time are those of a year or of a day, as their
constant is. All of these are equal in meaning on every knowledge base. Equal programs in another
construction, as ``FilterConcept(And(a, b), c)`` and ``And(FilterConcept(a, c), FilterConcept(b,
c))``, have different normal forms.
"""

from __future__ import annotations

from kb.store import normalise_name
from kb.values import Date, Quantity, Year
from kopl.errors import TypingError
from kopl.functions import AND, FILTER_CONCEPT, FUNCTIONS, OR, Function
from kopl.program import Call, linked
from kopl.traits import filters_by_value
from kopl.typecheck import typed_arguments
from kopl.types import Kind, Type

_NAMES = (Kind.NAME, Kind.CONCEPT)


def normal_form(program: Call) -> Call:
    """The program in its normal form; an ill-typed program keeps its arguments as they are."""
    calls = linked(program)
    # What a filter of qualifiers filters must not change, so a chain is sorted as a whole.
    inside = {at for call, inputs in calls if _is_in_chain(call) for at in inputs}
    made: list[Call] = []
    for at, (call, inputs) in enumerate(calls):
        function, arguments = _spelled(call)
        result = Call(function, tuple(made[given] for given in inputs), arguments)
        if function in (AND, OR):
            result = _sorted_operands(result)
        elif _is_in_chain(result) and at not in inside:
            result = _sorted_chain(result)
        made.append(result)
    return made[-1]


def exact_match(gold: Call, predicted: Call) -> bool:
    """Whether two programs have the same normal form."""
    return normal_form(gold) == normal_form(predicted)


def _sorted_operands(call: Call) -> Call:
    """The operands of an `And` or `Or` in order, the first two innermost."""
    first, *others = sorted(_operands(call, call.function), key=str)
    for operand in others:
        first = Call(call.function, (first, operand))
    return first


def _spelled(call: Call) -> tuple[Function, tuple[str, ...]]:
    """The function and the arguments of a call, in one spelling."""
    if len(call.arguments) != len(call.function.arguments):
        return call.function, call.arguments  # a model may write too many, or too few
    try:
        values = typed_arguments(call)
    except TypingError:
        return call.function, call.arguments
    texts, function = [], call.function
    for (_, kind), text, value in zip(function.arguments, call.arguments, values, strict=True):
        if kind in _NAMES:
            texts.append(normalise_name(text))
        elif isinstance(value, Quantity | Year | Date):
            texts.append(str(value))
            function = _of_time(function, value)
        else:
            texts.append(text)
    return function, tuple(texts)


def _of_time(function: Function, value: object) -> Function:
    """The twin of FilterYear, FilterDate and the like that the constant is written with."""
    for end, other in (("Year", "Date"), ("Date", "Year")):
        if function.name.endswith(end):
            wanted = "Year" if isinstance(value, Year) else "Date"
            return FUNCTIONS[function.name.removesuffix(end) + (end if wanted == end else other)]
    return function


def _operands(call: Call, function: Function) -> list[Call]:
    """The operands of a call and of calls of the same function right below it."""
    if call.function is not function:
        return [call]
    return [operand for part in call.inputs for operand in _operands(part, function)]


def _is_qualifier_filter(call: Call) -> bool:
    return call.function.output is Type.FACTS and call.function.inputs == (Type.FACTS,)


def _is_filter(call: Call) -> bool:
    return call.function is FILTER_CONCEPT or filters_by_value(call.function)


def _is_in_chain(call: Call) -> bool:
    return _is_filter(call) or _is_qualifier_filter(call)


def _sorted_chain(call: Call) -> Call:
    """The filters from a call down, sorted; a qualifier filter stays with what it filters."""
    groups: list[list[Call]] = []  # each a filter, then the filters of its facts' qualifiers
    waiting: list[Call] = []
    while _is_in_chain(call):
        if _is_filter(call):
            groups.append([call, *sorted(waiting, key=_written)])
            waiting = []
        else:
            waiting.append(call)
        call = call.inputs[0]
    # What waits still filters the facts of the innermost call, such as Relate.
    result = _applied(sorted(waiting, key=_written), call)
    for group in sorted(groups, key=lambda group: [_written(part) for part in group]):
        result = _applied(group, result)
    return result


def _written(call: Call) -> tuple[str, ...]:
    return (call.function.name, *call.arguments)


def _applied(calls: list[Call], result: Call) -> Call:
    for call in calls:
        result = Call(call.function, (result,), call.arguments)
    return result
