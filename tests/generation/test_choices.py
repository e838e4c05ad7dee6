"""Clauses that may be dropped, and the choices that come of it."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generation import generate
from generation.choices import CHOICES, Choices
from generation.clauses import without_a_clause
from kb import Builder, KnowledgeBase, Quantity
from kopl.answers import published_equal, same_answer
from kopl.executor import Executor
from kopl.text import read
from kopl.typecheck import check

AREA = 'FilterNum(FindAll(), "area", "5 metre", ">")'


@pytest.mark.parametrize(
    ("program", "left"),
    [
        ("QueryName(FindAll())", []),
        # What a question is about is no clause.
        ('Count(FilterConcept(FindAll(), "city"))', []),
        (f"Count({AREA})", ["Count(FindAll())"]),
        (
            f'Count(FilterConcept({AREA}, "city"))',
            ['Count(FilterConcept(FindAll(), "city"))', f"Count({AREA})"],
        ),
        # A filter of a value goes together with the qualifiers of its fact.
        (
            f'Count(QFilterStr(QFilterStr({AREA}, "a", "b"), "c", "d"))',
            [
                "Count(FindAll())",
                f'Count(QFilterStr({AREA}, "c", "d"))',
                f'Count(QFilterStr({AREA}, "a", "b"))',
            ],
        ),
        # A relation is no clause unless it stands beside another; its qualifier is one.
        (
            'Count(QFilterStr(Relate(Find("x"), "r", "forward"), "a", "b"))',
            ['Count(Relate(Find("x"), "r", "forward"))'],
        ),
        (
            'Count(And(Relate(Find("x"), "r", "forward"), Find("y")))',
            ['Count(Find("y"))', 'Count(Relate(Find("x"), "r", "forward"))'],
        ),
        (
            f'SelectBetween({AREA}, Find("y"), "area", "less")',
            ['SelectBetween(FindAll(), Find("y"), "area", "less")'],
        ),
        (
            f'QueryName(Relate(FilterConcept({AREA}, "city"), "r", "forward"))',
            [
                'QueryName(Relate(FilterConcept(FindAll(), "city"), "r", "forward"))',
                f'QueryName(Relate({AREA}, "r", "forward"))',
            ],
        ),
    ],
)
def test_what_may_be_dropped(program: str, left: list[str]) -> None:
    found = list(without_a_clause(read(program)))
    assert [str(way.program) for way in found] == left
    for way in found:
        check(way.program)
        # The last call that held the clause is the whole program, unless that is left as it was.
        assert way.changed[read(program)] == way.program


def test_no_clause_is_too_many(world: KnowledgeBase) -> None:
    """Dropping a clause gives other answers, or a description that fits several."""
    executor, count = Executor(world), 0
    for example in generate(world, 400, seed=3):
        for way in without_a_clause(example.program):
            count += 1
            if executor.denote(way.program) == [example.answer]:
                sizes = [
                    executor.denote(f"Count({left})")
                    for whole, left in way.changed.items()
                    if whole.function.output.name in ("ENTITIES", "FACTS")
                ]
                assert any(size != ["1"] for size in sizes), (str(example.program), str(way.clause))
    assert count > 150


def test_choices_hold_the_answer_once(world: KnowledgeBase) -> None:
    full = 0
    for example in generate(world, 400, seed=4):
        choices, answer = example.choices, example.answer
        assert answer is not None and len(choices) == CHOICES
        assert [c for c in choices if same_answer(answer, c) or published_equal(answer, c)] == [
            answer
        ]
        if example.type == "Verify":
            assert sorted(choices) == sorted(["yes", "no", *["unknown"] * 8])
        else:
            full += len(set(choices)) == CHOICES and "unknown" not in choices
    assert full > 300


def test_near_misses_come_first(world: KnowledgeBase) -> None:
    program = read('QueryName(And(FilterConcept(FindAll(), "country"), Find("Norway")))')
    ways = [way for way in without_a_clause(program) if "country" not in str(way.clause)]
    choices, executor = Choices(world), Executor(world)
    ten = choices.draw(program, "Norway", ways, executor.denote, Random(1))
    countries = set(executor.denote('FilterConcept(FindAll(), "country")'))
    assert set(ten) <= countries | {"Norway"}


def test_a_small_knowledge_base_fills_up() -> None:
    builder = Builder()
    builder.add_concept("c", "thing")
    builder.add_entity("a", "one", ["c"])
    builder.add_attribute("a", "size", Quantity(5, "metre"))
    kb = builder.build()
    choices, executor = Choices(kb), Executor(kb)
    for program, answer in (
        ("QueryName(FindAll())", "one"),
        ('QueryAttr(Find("one"), "size")', "5 metre"),
        ("Count(FindAll())", "1"),
    ):
        ten = choices.draw(read(program), answer, (), executor.denote, Random(1))
        assert len(ten) == CHOICES and ten.count(answer) == 1


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(0, 10**9))
def test_counts_have_counts_near_them(seed: int, count: int) -> None:
    kb = Builder().build()
    ten = Choices(kb).draw(
        read("Count(FindAll())"), str(count), (), lambda program: [], Random(seed)
    )
    assert len(set(ten)) == CHOICES and all(int(text) >= 0 for text in ten)
