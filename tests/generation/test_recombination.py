"""Longer training questions made of shorter ones."""

from __future__ import annotations

import pytest

from generation.recombination import (
    Description,
    counted,
    descriptions,
    joined,
    recombined,
    substituted,
)
from kopl.example import Example
from kopl.program import post_order
from kopl.text import read
from kopl.typecheck import check

CAPITAL = Example(
    "What is the capital of Norway?",
    read('QueryName(Relate(Find("Norway"), capital, forward))'),
)
BORDERS = Example(
    "What is the country that borders Sweden?",
    read('QueryName(FilterConcept(Relate(Find("Sweden"), borders, forward), country))'),
)
COLD = Example(
    "Who is the one whose area is over 5?",
    read('QueryName(FilterNum(FindAll(), area, "5", ">"))'),
)
AREA = Example("What is the area of the Netherlands?", read('QueryAttr(Find("Netherlands"), area)'))
APPOSED = Example(
    "What is the area of Peru (the country)?",
    read('QueryAttr(FilterConcept(Find("Peru"), country), area)'),
)
ALL = [CAPITAL, BORDERS, COLD, AREA, APPOSED]


def test_descriptions_are_taken_from_questions_for_names() -> None:
    found = {one.text: str(one.program) for one in descriptions(ALL)}
    assert found == {
        "the capital of Norway": str(CAPITAL.program.inputs[0]),
        "the country that borders Sweden": str(BORDERS.program.inputs[0]),
        "the one whose area is over 5": str(COLD.program.inputs[0]),
    }


def test_two_descriptions_are_joined_where_they_are_of_one_kind() -> None:
    capital, borders, cold = descriptions(ALL)
    both = joined(borders, cold)
    assert both == Description(
        "the country that borders Sweden and whose area is over 5",
        read(
            'FilterConcept(And(Relate(Find("Sweden"), borders, forward),'
            ' FilterNum(FindAll(), area, "5", ">")), country)'
        ),
    )
    assert joined(capital, cold) is None  # it has no clause
    assert joined(cold, cold) is None
    river = Description("the river that is long", read('FilterConcept(FindAll(), "river")'))
    assert joined(borders, river) is None


@pytest.mark.parametrize(
    ("host", "question"),
    [
        (CAPITAL, "What is the capital of the country that borders Sweden?"),
        (AREA, "What is the area of the country that borders Sweden?"),
        (APPOSED, None),
        (COLD, None),
    ],
)
def test_a_description_takes_the_place_of_a_name(host: Example, question: str | None) -> None:
    from random import Random

    description = list(descriptions(ALL))[1]
    made = substituted(host, description, Random(1))
    assert (made and made.question) == question
    if made is not None:
        assert description.program in list(post_order(made.program))
        assert check(made.program)


def test_two_questions_for_a_number_are_joined() -> None:
    from random import Random

    numbers = [
        Description(
            "that border Sweden",
            read('FilterConcept(Relate(Find("Sweden"), borders, forward), country)'),
        ),
        Description(
            "whose area is over 5",
            read('FilterConcept(FilterNum(FindAll(), area, "5", ">"), country)'),
        ),
    ]
    made = {
        example.question: str(example.program)
        for seed in range(20)
        if (example := counted("How many countries", numbers, Random(seed)))
    }
    inside = (
        'Relate(Find("Sweden"), "borders", "forward")',
        'FilterNum(FindAll(), "area", "5", ">")',
    )
    for word, function in (("and", "And"), ("or", "Or")):
        question = f"How many countries that border Sweden {word} whose area is over 5?"
        expected = f'Count(FilterConcept({function}({inside[0]}, {inside[1]}), "country"))'
        assert made[question] == expected
    rivers = [numbers[0], Description("that are long", read("FilterConcept(FindAll(), river)"))]
    assert counted("How many", rivers, Random(1)) is None


def test_the_same_seed_gives_the_same_and_all_are_of_the_training_part() -> None:
    made = [(one.question, one.program) for one in recombined(ALL, 6, 3)]
    assert made == [(one.question, one.program) for one in recombined(ALL, 6, 3)]
    assert made != [(one.question, one.program) for one in recombined(ALL, 6, 4)]
    words = {word for example in ALL for word in example.question.split()}
    for question, program in made:
        assert check(program)
        assert set(question.split()) <= words | {"and", "Norway", "Sweden?"} | {
            word.rstrip("?") for word in words
        } | {f"{word.rstrip('?')}?" for word in words}


def test_nothing_can_be_made_of_nothing() -> None:
    assert list(recombined([], 5, 1)) == []
    assert list(recombined([AREA], 5, 1)) == []
    assert list(recombined([COLD], 5, 1)) == []
