"""The profile of short questions: its mix, its forms of answers, its wordings."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from generation.blocks import SHORT, SIZE, Maker, Options
from generation.check import Checker
from generation.grammar import bundled
from kb import load
from kopl.answer_forms import Exists, Is, answer_of
from kopl.example import Example
from kopl.executor import Executor
from kopl.sparql.engines.oxigraph import Oxigraph
from kopl.sparql.evaluate import SparqlExecutor


@pytest.fixture(scope="module")
def block() -> list[Example]:
    return list(Maker(load("world"), options=Options(profile="people")).block(1, 0))


def test_types_come_as_the_rules_say(block: list[Example]) -> None:
    types = Counter(example.type for example in block)
    shares = bundled("people").shares
    assert sum(shares.values()) == 100
    for name, share in shares.items():
        assert abs(types[name] / SIZE - share / 100) < 0.03, name


def test_half_of_the_programs_are_short(block: list[Example]) -> None:
    assert abs(sum(example.program.size <= SHORT for example in block) / SIZE - 0.5) < 0.05


def test_programs_queries_and_answers_agree(block: list[Example]) -> None:
    world = load("world")
    checker = Checker(Executor(world), SparqlExecutor(Oxigraph.of(world), kb=world))
    assert [list(checker.faults(example)) for example in block] == [[] for _ in block]


def test_lists_have_several_answers_and_no_choices(block: list[Example]) -> None:
    lists = [example for example in block if example.type == "List"]
    assert lists and all(
        len(example.answers) > 1 and example.answer is None and not example.choices
        for example in lists
    )
    others = [example for example in block if example.type != "List"]
    assert all(example.answer and len(example.choices) == 10 for example in others)


def test_yes_and_no_are_even_for_each_form(block: list[Example]) -> None:
    answers = Counter(
        (type(example.answer_form), example.answer) for example in block if example.answer_form
    )
    for form in (Exists, Is):
        assert answers[form, "yes"] and answers[form, "no"]
        assert abs(answers[form, "yes"] - answers[form, "no"]) <= 10
    assert answers.total() == sum(answers[form, a] for form in (Exists, Is) for a in ("yes", "no"))


def test_a_claim_is_answered_by_what_there_is(block: list[Example]) -> None:
    executor = Executor(load("world"))
    for example in block:
        if example.answer_form is not None:
            found = executor.run(example.program).denotation
            assert answer_of(found, example.answer_form) == [example.answer]


def test_a_name_that_says_yes_stands_in_the_question(block: list[Example]) -> None:
    named = [example for example in block if isinstance(example.answer_form, Is)]
    assert named
    for example in named:
        assert isinstance(example.answer_form, Is)
        assert example.answer_form.name.lower() in example.question.lower()


def test_some_are_typed_in_small_letters(block: list[Example]) -> None:
    small = [e.question for e in block if e.question == e.question.lower()]
    assert 0.08 < len(small) / SIZE < 0.35
    assert not any(question.startswith("~") for question in small)


def test_no_signs_are_left_behind(block: list[Example]) -> None:
    for example in block:
        assert not re.search(r"[{}~]|,[.?]|\.\.|  | [,?]|\(\)", example.question), example.question
