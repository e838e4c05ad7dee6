"""Exact match: what says the same in another order is equal, and nothing else."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb import from_kqapro
from kopl.executor import Executor
from kopl.functions import AND, FILTER_CONCEPT, FUNCTIONS, OR
from kopl.program import Call
from kopl.text import read, read_serialised
from kopl.traits import filters_by_value
from kopl.types import Type
from parsers.matching import exact_match, normal_form

from ..kopl.strategies import calls, documents, programs

A, B, C = 'Find("A")', 'Find("B")', 'Find("C")'


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (f"And({A}, {B})", f"And({B}, {A})"),
        (f"Or(Or({A}, {B}), {C})", f"Or({C}, Or({B}, {A}))"),
        (
            f'Count(FilterStr(FilterConcept({A}, "x"), "k", "v"))',
            f'Count(FilterConcept(FilterStr({A}, "k", "v"), "x"))',
        ),
        (
            f'QFilterStr(QFilterYear(Relate({A}, "r", "forward"), "t", "1998", "<"), "q", "v")',
            f'QFilterYear(QFilterStr(Relate({A}, "r", "forward"), "q", "v"), "t", "1998", "<")',
        ),
        (
            f'FilterStr(QFilterStr(FilterStr({A}, "k", "1"), "q", "x"), "k", "2")',
            f'QFilterStr(FilterStr(FilterStr({A}, "k", "2"), "k", "1"), "q", "x")',
        ),
        (
            f'FilterNum({A}, "k", "1e3 metre", "=")',
            f'FilterNum({A}, "k", "1000.0 metre", "=")',
        ),
        (f'FilterDate({A}, "k", "1998", "=")', f'FilterYear({A}, "k", "1998", "=")'),
        (f'FilterYear({A}, "k", "1998/6/2", "=")', f'FilterDate({A}, "k", "1998-06-02", "=")'),
        ('Find("a  b")', 'Find(" a b ")'),
    ],
)
def test_another_order_matches(left: str, right: str) -> None:
    assert read(left) != read(right)
    assert exact_match(read(left), read(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (f"And({A}, {B})", f"Or({A}, {B})"),
        (f"And(Or({A}, {B}), {C})", f"Or(And({A}, {B}), {C})"),
        (f"QueryRelation({A}, {B})", f"QueryRelation({B}, {A})"),
        (f'SelectBetween({A}, {B}, "k", "less")', f'SelectBetween({B}, {A}, "k", "less")'),
        (
            f'QFilterStr(FilterStr(FilterStr({A}, "k", "1"), "k", "2"), "q", "x")',
            f'QFilterStr(FilterStr(FilterStr({A}, "k", "2"), "k", "1"), "q", "x")',
        ),
        (
            f'Relate(FilterConcept({A}, "x"), "r", "forward")',
            f'FilterConcept(Relate({A}, "r", "forward"), "x")',
        ),
        (f'FilterStr({A}, "k", "1e3")', f'FilterStr({A}, "k", "1000")'),
        (f'FilterStr({A}, "k", "a  b")', f'FilterStr({A}, "k", "a b")'),
        ('Find("a")', 'Find("A")'),
    ],
)
def test_another_meaning_does_not_match(left: str, right: str) -> None:
    assert not exact_match(read(left), read(right))


def test_ill_typed_programs_have_a_normal_form() -> None:
    wrong = read(f'FilterNum({A}, "k", "many", "=")')
    assert normal_form(wrong) == wrong


@st.composite
def chains(draw: st.DrawFn) -> Call:
    """Filters and filters of qualifiers in any order that is well-typed, over some set."""
    made = draw(programs(Type.ENTITIES, 2))
    for _ in range(draw(st.integers(2, 5))):
        fitting = [
            function
            for function in FUNCTIONS.values()
            if len(function.inputs) == 1
            and function.inputs[0].accepts(made.function.output)
            and (function.output is Type.FACTS or function is FILTER_CONCEPT)
        ]
        drawn = draw(calls(draw(st.sampled_from(fitting)), 1))
        made = Call(drawn.function, (made,), drawn.arguments)
    return made


@given(documents(), programs() | chains())
def test_the_normal_form_keeps_the_meaning(document: dict[str, Any], program: Call) -> None:
    executor = Executor(from_kqapro(document))
    normal = normal_form(program)
    assert executor.run(normal).denotation == executor.run(program).denotation
    assert normal_form(normal) == normal


@given(programs() | chains(), st.integers(0, 2**32))
def test_shuffled_programs_match(program: Call, seed: int) -> None:
    assert exact_match(program, shuffled(program, random.Random(seed)))


def shuffled(call: Call, chance: random.Random) -> Call:
    """The program with the operands of sets and the filters of chains in a random order."""
    if call.function in (AND, OR):
        inputs = [shuffled(part, chance) for part in call.inputs]
        chance.shuffle(inputs)
        return Call(call.function, tuple(inputs))
    blocks: list[list[Call]] = []  # a filter with its filters of qualifiers, the outermost first
    kept: list[Call] = []
    while (kind := _kind(call)) is not None:
        kept.append(call)
        if kind == "filter":
            blocks.append(kept)
            kept = []
        call = call.inputs[0]
    result = Call(
        call.function, tuple(shuffled(part, chance) for part in call.inputs), call.arguments
    )
    chance.shuffle(kept)
    chance.shuffle(blocks)
    for block in blocks:
        *qualifiers, first = block
        chance.shuffle(qualifiers)
        kept += [first, *qualifiers]
    for part in kept:
        result = Call(part.function, (result,), part.arguments)
    return result


def _kind(call: Call) -> str | None:
    function = call.function
    if function.inputs == (Type.FACTS,) and function.output is Type.FACTS:
        return "qualifier"
    if function is FILTER_CONCEPT or (function.arguments and filters_by_value(function)):
        return "filter"
    return None


@pytest.mark.parametrize(
    "written", ["Find", "Find <arg> A <arg> B", "Find <arg> A <arg> 1 <arg> 2"]
)
def test_a_wrong_number_of_arguments_is_another_program(written: str) -> None:
    """As a model writes whose decoding is not constrained; it does not type, but it is compared."""
    gold = read(f"Count({A})")
    predicted = read_serialised(f"{written} <func> Count")
    assert not exact_match(gold, predicted)
    assert exact_match(predicted, predicted)
