"""Clauses that may be dropped, and the choices that come of it."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generation import generate
from generation.blocks import Options
from generation.choices import CHOICES, Choices
from generation.judge import without_a_clause
from kb import Builder, KnowledgeBase, Quantity, Year
from kopl.answers import published_equal, same_answer
from kopl.executor import Executor
from kopl.functions import FILTER_CONCEPT, FIND
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
    """Without a clause the answer is another, a description fits several, or no choice is left.

    What a description calls its thing may change nothing: "the country that has Oslo as ...".
    """
    executor, count = Executor(world), 0
    for example in generate(world, 400, seed=3):
        for way in without_a_clause(example.program):
            if way.clause.function in (FILTER_CONCEPT, FIND):
                continue
            count += 1
            if executor.denote(way.program) == [example.answer]:
                if example.type == "SelectAmong" and executor.denote(
                    f"Count({way.program.inputs[0]})"
                ) == ["1"]:
                    continue
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


def test_what_fills_up_is_never_the_answer() -> None:
    builder = Builder()
    builder.add_entity("a", "unknown")
    builder.add_fact("a", "unknown", "a")
    choices = Choices(builder.build())
    for program in ("QueryName(FindAll())", 'QueryRelation(Find("unknown"), Find("unknown"))'):
        ten = choices.draw(read(program), "unknown", (), lambda program: [], Random(1))
        assert len(ten) == CHOICES
        assert [text for text in ten if same_answer("unknown", text)] == ["unknown"]


def draw(choices: Choices, program: str, answer: str) -> set[str]:
    """The choices of a program that nothing can be dropped from."""
    ten = choices.draw(read(program), answer, (), lambda program: [], Random(1))
    assert len(ten) == CHOICES and ten.count(answer) == 1
    return set(ten)


def test_values_of_the_same_type_come_before_others() -> None:
    """Where the key has too few of them: "for which allotrope" is no question for "5 metre"."""
    builder = Builder()
    for n in range(40):
        builder.add_entity(f"e{n}", f"thing {n}")
        builder.add_attribute(f"e{n}", "size", Quantity(n, "metre"), {"shape": "round"})
        builder.add_attribute(f"e{n}", "code", f"code {n}")
        builder.add_attribute(f"e{n}", "since", Year(1900 + n))
        builder.add_attribute(f"e{n}", "epoch", Year(1800), {"from": Year(1800)})
    choices = Choices(builder.build())
    found = draw(
        choices, 'QueryAttrQualifier(Find("thing 1"), "size", "1 metre", "shape")', "round"
    )
    assert all(text.startswith("code ") for text in found - {"round"})
    for program in (
        'QueryAttr(Find("thing 1"), "epoch")',
        'QueryAttrQualifier(Find("thing 1"), "epoch", "1800", "from")',
    ):
        assert all(
            text.startswith("19") and len(text) == 4
            for text in draw(choices, program, "1800") - {"1800"}
        )


@pytest.mark.parametrize("number", [1, 12, 3000, -4])
def test_whole_numbers_have_whole_ones_beside_them(number: int) -> None:
    """A rank of 1.55 could not be the answer."""
    builder = Builder()
    builder.add_entity("e", "thing")
    builder.add_attribute("e", "size", Quantity(number, "metre"))
    found = draw(Choices(builder.build()), 'QueryAttr(Find("thing"), "size")', f"{number} metre")
    numbers = [float(text.removesuffix(" metre")) for text in found]
    assert len(numbers) == CHOICES and all(each.is_integer() for each in numbers)
    assert number < 0 or min(numbers) >= 0


def test_names_are_of_what_has_the_same_relation() -> None:
    """Where concepts do not tell enough of them; what else there is comes last."""
    builder = Builder()
    for n in range(60):
        builder.add_entity(f"c{n}", f"city {n}")
        builder.add_entity(f"x{n}", f"film {n}")
        builder.add_entity(f"p{n}", f"person {n}")
        builder.add_fact(f"p{n}", "born in", f"c{n}", {"point in time": Year(1900 + n)})
        builder.add_attribute(f"c{n}", "height", Quantity(n, "metre"))
    builder.add_fact("x1", "set in", "c1")
    builder.add_fact("x1", "idea of", "p1")
    choices = Choices(builder.build())
    for program, kind in (
        ('QueryName(Relate(Find("person 1"), "born in", "forward"))', "city 1"),
        ('QueryName(Relate(Find("city 1"), "born in", "backward"))', "person 1"),
        (
            'QueryName(QFilterYear(Relate(Find("city 1"), "born in", "backward"), "point in time",'
            ' "1901", "="))',
            "person 1",
        ),
        ('QueryName(FilterNum(FindAll(), "height", "1 metre", "="))', "city 1"),
        # Few have this relation; what has the answer's other relations is of its kind, too.
        ('QueryName(Relate(Find("film 1"), "set in", "forward"))', "city 1"),
        ('QueryName(Relate(Find("film 1"), "idea of", "forward"))', "person 1"),
    ):
        assert all(text.startswith(kind[:4]) for text in draw(choices, program, kind))


def test_what_leaves_everything_is_no_near_miss(world: KnowledgeBase) -> None:
    """Without its only condition a question asks of all there is; its choices are of its kind."""
    executor = Executor(world)
    program = read('QueryName(FilterStr(FindAll(), "ISO 3166-1 alpha-2 code", "NO"))')
    ways = list(without_a_clause(program))
    assert [str(way.program) for way in ways] == ["QueryName(FindAll())"]
    ten = Choices(world).draw(program, "Norway", ways, executor.denote, Random(1))
    assert set(ten) <= set(executor.denote('FilterConcept(FindAll(), "country")'))


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(0, 10**9))
def test_counts_have_counts_near_them(seed: int, count: int) -> None:
    kb = Builder().build()
    ten = Choices(kb).draw(
        read("Count(FindAll())"), str(count), (), lambda program: [], Random(seed)
    )
    assert len(set(ten)) == CHOICES and all(int(text) >= 0 for text in ten)


# --- choices do not tell which one is the answer ------------------------------------------------


def kind(text: str) -> str:
    """What a value looks like: a text, a year, a day, or its unit."""
    if text.count("-") == 2 and text.replace("-", "").isdigit():
        return "day"
    number, _, unit = text.partition(" ")
    if not number.replace(".", "").replace("-", "").isdigit():
        return "text"
    return f"in {unit}" if unit else "year"


def test_qualifiers_are_of_the_kind_of_the_answer(world: KnowledgeBase) -> None:
    """A year stood among days, so that it was the answer."""
    shares = (("QualifierLiteral", 50.0), ("QualifierRelational", 50.0))
    seen = set()
    for example in generate(world, 150, seed=6, options=Options(shares=shares, sparql=False)):
        if (asked := kind(example.answer or "")) in ("year", "day", "in percent"):
            seen.add(asked)
            assert {kind(choice) for choice in example.choices} == {asked}, example.choices
    assert seen == {"year", "day", "in percent"}


def test_each_year_is_shown_as_often_as_others() -> None:
    """The first and the last ones, too: else a choice is known by how seldom it is one."""
    builder = Builder()
    years = range(1990, 2021)
    for year in years:
        builder.add_entity(f"e{year}", f"thing {year}")
        builder.add_attribute(f"e{year}", "size", Quantity(year), {"point in time": Year(year)})
    choices, random, shown = Choices(builder.build()), Random(2), Counter[str]()
    for year in years:
        program = f'QueryAttrQualifier(Find("thing {year}"), "size", "{year}", "point in time")'
        for _ in range(40):
            shown.update(choices.draw(read(program), str(year), (), lambda program: [], random))
    assert set(shown) == set(map(str, years))
    assert max(shown.values()) < 1.5 * min(shown.values())


@pytest.mark.parametrize("count", [100, 300, 5000])
def test_a_count_has_any_place_among_the_others(count: int) -> None:
    choices, random, places = Choices(Builder().build()), Random(3), Counter[int]()
    program = read("Count(FindAll())")
    for _ in range(400):
        ten = choices.draw(program, str(count), (), lambda program: [], random)
        places[sorted(map(int, ten)).index(count)] += 1
    assert set(places) == set(range(CHOICES)) and max(places.values()) < 100


def test_what_is_rarely_anything_else_stands_beside_other_answers() -> None:
    """The only thing that a relation leads to was known by being there."""
    builder = Builder()
    builder.add_entity("one", "the only one")
    for n in range(6):
        builder.add_entity(f"t{n}", f"thing {n}")
    for n in range(30):
        builder.add_entity(f"p{n}", f"person {n}")
        builder.add_fact(f"p{n}", "plays", f"t{n % 3}")
        builder.add_fact(f"p{n}", "likes", f"t{3 + n % 3}")
        builder.add_fact(f"p{n}", "adores", "one")
    choices, random, shown = Choices(builder.build()), Random(5), Counter[str]()
    program = read('QueryName(Relate(Find("person 1"), "adores", "forward"))')
    for _ in range(100):
        ten = choices.draw(program, "the only one", (), lambda program: [], random)
        shown.update(text.split()[0] for text in ten)
    # As much leads to each of the six things as to five people.
    assert shown["thing"] / 6 > 1.3 * shown["person"] / 30
