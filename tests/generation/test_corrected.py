"""Corrected questions as rules, and as wordings of schema items."""

from __future__ import annotations

from itertools import islice

import pytest

from generation.corrected import (
    ItemPhrase,
    Wording,
    annotated,
    drafted,
    phrase_of,
    questions,
    rule_of,
)
from generation.lexicon import Lexicon, parse_annotations
from kb import KnowledgeBase
from kopl.answer_forms import AnswerForm, Exists, Is, answer_of
from kopl.executor import Executor
from kopl.functions import FIND
from kopl.program import post_order
from kopl.text import read

HEAD = 'QueryName(Relate(Find("Arlen"), "head of state", "forward"))'
AREA = 'QueryAttr(Find("Arlen"), "area")'
LARGER = 'SelectBetween(Find("Arlen"), Find("Borovia"), "area", "greater")'


def wording(
    question: str, program: str, form: AnswerForm | None = None, *, several: bool = False
) -> Wording:
    """A question whose names stand in it as they are."""
    call = read(program)
    names = [one.arguments[0] for one in post_order(call) if one.function is FIND]
    places = {name: (at, at + len(name)) for name in names if (at := question.find(name)) >= 0}
    return Wording(question, call, places, form, several)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (wording("Who's the boss in Arlen?", HEAD),
         'ROOT[A] -> QueryName(Relate(X, "head of state", forward))'
         "\n    | one: Who's the boss in {X}?\n    | one: ~who's the boss in {X}"),
        (wording("Is Arlen wider than the Borovia?", LARGER, Is("Arlen")),
         'ROOT[A = is X] -> SelectBetween(X, X\', "area", greater)'
         "\n    | one: Is {X} wider than {X'}?\n    | one: ~is {X} wider than {X'}"),
        (wording("Who all bosses Arlen", HEAD, several=True),
         'ROOT[A = several] -> QueryName(Relate(X, "head of state", forward))'
         "\n    | one: Who all bosses {X}\n    | one: ~who all bosses {X}"),
    ],
)  # fmt: skip
def test_names_become_places_of_a_rule(given: Wording, rule: str) -> None:
    assert rule_of(given, "A") == rule


@pytest.mark.parametrize(
    "given",
    [
        wording("Who's the boss there?", HEAD),  # no name is said
        wording("Is Arlen wider than {Borovia}?", LARGER),  # not what rules can hold
        wording("Is Arlen wider?", LARGER, Is("Borovia")),  # who says yes is not said
        wording("Is Arlen wider than itself?",
                'SelectBetween(Find("Arlen"), Find("Arlen"), "area", "greater")'),
    ],
)  # fmt: skip
def test_what_makes_no_rule(given: Wording) -> None:
    assert rule_of(given, "A") is None


@pytest.mark.parametrize(
    ("given", "phrase"),
    [
        (wording("Who's the boss in Arlen?", HEAD),
         ItemPhrase("relations", "head of state", "tail_question", "who's the boss in {}")),
        (wording("How wide is the Arlen please?", AREA),
         ItemPhrase("keys", "area", "question", "how wide is {} please")),
        (wording("Arlen ground", AREA), ItemPhrase("keys", "area", "keyword", "ground")),
        (wording("Acres of Arlen", AREA), ItemPhrase("keys", "area", "keyword", "acres")),
        (wording("Please let me know about the ground of Arlen", AREA), None),
        (wording("Is Arlen wider?", LARGER, Is("Arlen")), None),
    ],
)  # fmt: skip
def test_what_a_question_says_of_an_item(given: Wording, phrase: ItemPhrase | None) -> None:
    assert phrase_of(given) == phrase


def test_phrases_are_drafted_for_the_lexicon(lands: KnowledgeBase) -> None:
    before = Lexicon(lands)
    phrases = [
        ItemPhrase("relations", "head of state", "tail_question", "who's the boss in {}"),
        ItemPhrase("keys", "area", "question", "how wide is {} please"),
    ]
    found = annotated(before, [*phrases, phrases[0]])
    lines = "".join(drafted(lands, found))
    again = parse_annotations(lines, "lexicon.yaml")
    assert {section: list(own) for section, own in again.sections.items()} == {
        "relations": ["head of state"], "keys": ["area"]
    }  # fmt: skip
    given = again.of("relations")["head of state"]
    assert given.also == ({"tail_question": "who's the boss in {}"},)
    assert "who's the boss in {}" in given.todo
    after = Lexicon(lands, again)
    main = before.relation("head of state", "forward")
    assert main.entry.noun == after.relation("head of state", "forward").entry.noun
    assert len(after.wordings(main)) == len(before.wordings(main)) + 1


def test_the_same_is_asked_of_others(lands: KnowledgeBase) -> None:
    given = [
        wording("Who's the boss in Arlen these days?", HEAD),
        wording("Is Arlen wider than Borovia?", LARGER, Is("Arlen")),
        wording("Does Anna Berg boss Arlen?",
                'Count(And(Relate(Find("Arlen"), "head of state", "forward"), Find("Anna Berg")))',
                Exists()),
    ]  # fmt: skip
    found = list(questions(lands, given, 5, 1))
    assert found == list(questions(lands, given, 5, 1))
    executor = Executor(lands)
    kinds = {"Corrected0": 0, "Corrected1": 0, "Corrected2": 0}
    for one in found:
        kinds[one.type or ""] += 1
        assert one.question not in [before.question for before in given]
        answers = answer_of(executor.run(one.program).denotation, one.answer_form)
        assert tuple(answers) == (one.answers or (one.answer,))
    assert set(kinds.values()) == {5}
    assert {one.answer for one in found if one.type == "Corrected2"} <= {"yes", "no"}
    assert len(list(islice(questions(lands, given[:1], 100, 1), 100))) < 100  # eight lands
