"""The clauses of a program: what may be dropped from it, and whether each of them matters.

A clause is a Filter of a value (with the QFilters that restrict its fact), a QFilter, a
FilterConcept, or one operand of And and Or. FilterConcept directly on FindAll is what a question
is about, and always needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kopl.functions import (
    AND,
    FILTER_CONCEPT,
    FILTER_DATE,
    FILTER_NUM,
    FILTER_STR,
    FILTER_YEAR,
    FIND_ALL,
    OR,
    QFILTER_DATE,
    QFILTER_NUM,
    QFILTER_STR,
    QFILTER_YEAR,
)
from kopl.program import Call

FILTERS = frozenset((FILTER_STR, FILTER_NUM, FILTER_YEAR, FILTER_DATE))
QFILTERS = frozenset((QFILTER_STR, QFILTER_NUM, QFILTER_YEAR, QFILTER_DATE))


@dataclass(frozen=True)
class Dropped:
    """A program without one of its clauses.

    ``clause`` is the call that was dropped, or the operand. ``changed`` maps each call of the whole
    program that held the clause to what became of it, the innermost first.
    """

    program: Call
    clause: Call
    changed: dict[Call, Call]


def without_a_clause(program: Call) -> Iterator[Dropped]:
    """The program without each of its clauses, in the order in which they are executed."""
    for inner, clause, changed in _dropped(program):
        yield Dropped(inner, clause, changed)


def _dropped(call: Call) -> Iterator[tuple[Call, Call, dict[Call, Call]]]:
    """(what is left, the clause, what each call became) for each clause of a call."""
    function = call.function
    if function in QFILTERS:
        # What a QFilter restricts goes with its fact: a relation stays, a filter of a value is one
        # clause together with its qualifiers.
        for inner, clause, changed in _dropped(call.inputs[0]):
            left = Call(function, (inner,), call.arguments)
            if clause in _chain(call) and clause.function in FILTERS:
                left = inner
            yield left, clause, {**changed, call: left}
        yield call.inputs[0], call, {call: call.inputs[0]}
        return
    for place, given in enumerate(call.inputs):
        for inner, clause, changed in _dropped(given):
            inputs = (*call.inputs[:place], inner, *call.inputs[place + 1 :])
            left = Call(function, inputs, call.arguments)
            yield left, clause, {**changed, call: left}
    if function in FILTERS or (
        function is FILTER_CONCEPT and call.inputs[0].function is not FIND_ALL
    ):
        yield call.inputs[0], call, {call: call.inputs[0]}
    elif function in (AND, OR):
        for place in (0, 1):
            left = call.inputs[1 - place]
            yield left, call.inputs[place], {call: left}


def _chain(call: Call) -> Iterator[Call]:
    """The calls below a QFilter that lead to the fact which it restricts."""
    while call.function in QFILTERS:
        call = call.inputs[0]
        yield call
