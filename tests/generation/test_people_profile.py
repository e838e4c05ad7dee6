"""The profile of short questions: its mix, its forms of answers, its wordings."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from itertools import islice

import pytest

from generation.blocks import SHORT, SIZE, Maker, Options
from generation.check import Checker
from generation.grammar import EXISTS, ROOT, Rule
from generation.judge import LEAD
from generation.lexicon import Lexicon
from generation.pools import Pools
from generation.rules_file import bundled
from generation.taste import LISTED, MOSTLY_ONE, Taste
from kb import load
from kopl.answer_forms import Exists, Is, answer_of
from kopl.example import Example
from kopl.executor import Executor
from kopl.functions import COUNT, FILTER_CONCEPT, FIND, FIND_ALL, QUERY_NAME, RELATE
from kopl.program import post_order
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


def claims(form: type[Exists] | type[Is]) -> tuple[list[Rule], list[Example]]:
    """The rules whose answer is read in a form, and questions by these alone."""
    grammar = bundled("people")
    rules = [
        rule
        for rule in grammar.rules[ROOT]
        if (rule.asks == EXISTS if form is Exists else bool(rule.named))
    ]
    of_form = replace(grammar, rules={**grammar.rules, ROOT: tuple(rules)})
    maker = Maker(load("world"), grammar=of_form, options=Options(profile="people", sparql=False))
    return rules, list(islice(maker.block(2, 0), 120))


@pytest.mark.parametrize("form", [Exists, Is])
def test_yes_and_no_are_even_for_each_form(form: type[Exists] | type[Is]) -> None:
    rules, examples = claims(form)
    answers = Counter(example.answer for example in examples)
    assert answers.total() == answers["yes"] + answers["no"] == 120
    # One of the two may be ahead by one for each rule.
    assert abs(answers["yes"] - answers["no"]) <= len(rules) * LEAD
    assert all(type(example.answer_form) is form for example in examples)


def test_a_claim_is_answered_by_what_there_is(block: list[Example]) -> None:
    executor = Executor(load("world"))
    for example in block:
        if example.answer_form is not None:
            found = executor.run(example.program).denotation
            assert answer_of(found, example.answer_form) == [example.answer]


def test_a_name_that_says_yes_stands_in_the_question() -> None:
    """Or what it is called: an alias of it."""
    lexicon = Lexicon(load("world"))
    for example in claims(Is)[1]:
        assert isinstance(example.answer_form, Is)
        words = lexicon.wordings(lexicon.name(example.answer_form.name))
        called = [one.text.lower() for one in words]
        assert any(one in example.question.lower() for one in called), (called, example.question)


def test_some_are_typed_in_small_letters(block: list[Example]) -> None:
    small = [e.question for e in block if e.question == e.question.lower()]
    assert 0.08 < len(small) / SIZE < 0.35
    assert not any(question.startswith("~") for question in small)


def test_no_signs_are_left_behind(block: list[Example]) -> None:
    for example in block:
        assert not re.search(r"[{}~]|,[.?]|\.\.|  | [,?]|\(\)", example.question), example.question


def test_whole_lists_are_of_what_people_go_through(block: list[Example]) -> None:
    world = load("world")
    taste = Taste(Pools(world), Lexicon(world))
    assert not taste.listed("isotope") and taste.listed("continent")
    seen = 0
    for example in block:
        (given, *_), asking = example.program.inputs, example.program.function
        narrowed = [call.function for call in (given, *given.inputs)]
        if asking is QUERY_NAME and narrowed == [FILTER_CONCEPT, FIND_ALL]:
            assert len(world.instances_of(given.arguments[0])) <= LISTED, example.question
            seen += 1
    assert seen


def test_what_is_one_is_not_counted(block: list[Example]) -> None:
    table = (world := load("world")).relational
    seen = 0
    for example in block:
        if example.type != "Count":
            continue
        (given,) = example.program.inputs
        found = given.inputs[0] if given.function is FILTER_CONCEPT else given
        if example.program.function is COUNT and found.function is RELATE:
            facts = table.of_predicate(world.relation_number(found.arguments[0]))
            near = table.subject if found.arguments[1] == "forward" else table.object
            assert len(facts) > MOSTLY_ONE * len(set(near[facts].tolist())), example.question
            seen += 1
    assert seen


def test_nothing_is_described_by_an_isotope(block: list[Example]) -> None:
    for example in block:
        for call in post_order(example.program):
            below = [given for given in call.inputs if given.function is RELATE]
            if call.function is RELATE:
                for inner in below:
                    (end, *_) = inner.inputs
                    coded = end.function is FIND and re.fullmatch(r"\w+-\d+", end.arguments[0])
                    assert not coded, example.question


def test_things_are_described_by_what_people_know_them_by(block: list[Example]) -> None:
    lexicon = Lexicon(load("world"))
    seen = 0
    for example in block:
        for call in post_order(example.program):
            for inner in call.inputs if call.function is RELATE else ():
                found = inner.inputs[0] if inner.function is FILTER_CONCEPT else inner
                if found.function is RELATE:
                    relation, toward = found.arguments
                    told = lexicon.relation(relation, "forward").entry.identifies
                    seen += told in ("", "yes", toward)
                    assert relation != "country" or toward == "backward", example.question
    assert seen


def test_yes_and_no_questions_have_one_verb_and_claim_no_figures_of_people() -> None:
    options = Options(profile="people", sparql=False, shares=(("Verify", 100.0),))
    asked = [example.question for example in Maker(load("world"), options=options).block(31, 0)]
    assert not [text for text in asked if re.search(r"(?i)^do any .*\b(?:are|is|were|was)\b", text)]
    # An employer or a language has no figures, and the date beside it is that of the prize.
    of_lists = [text for text in asked if re.search(r"(?i), according to the figures for", text)]
    assert all(re.match(r"(?i)what|how|(?:is|are|was|were) the", text) for text in of_lists)
