"""Questions as tokens, arguments found in questions, and steps that always build programs."""

from __future__ import annotations

import random

import pytest

from kb import KnowledgeBase
from kopl.example import Example
from kopl.functions import FUNCTIONS
from kopl.text import read
from kopl.typecheck import check
from parsers.target import Actions, NotExpressible, State, steps_of
from parsers.tokens import Question, Vocabulary, as_constant, pieces


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What's 1,000.5 km?", ["What", "'", "s", "1,000.5", "km", "?"]),
        ("neptunium-244 at -5", ["neptunium", "-", "244", "at", "-5"]),
        ("in 1998.", ["in", "1998", "."]),
        ("Thủ Đức, N'Djamena", ["Thủ", "Đức", ",", "N", "'", "Djamena"]),
        ("", []),
    ],
)
def test_tokens(text: str, words: list[str]) -> None:
    question = Question.of(text)
    assert list(question.words) == words
    assert all(text[start:end] == w for (start, end), w in zip(question.places, words, strict=True))


@pytest.mark.parametrize(
    ("wording", "constant"),
    [
        ("1,234,567", "1234567"),
        ("-1,000.5", "-1000.5"),
        ("27 June 1998", "1998-06-27"),
        ("3 May 843", "0843-05-03"),
        ("1998", "1998"),
        ("12,34", "12,34"),
        ("June 1998", "June 1998"),
        ("Norway", "Norway"),
        ("10.863 billion", "10863000000"),
        ("-1,210.5 million", "-1210500000"),
        ("0.5 thousand", "500"),
        ("1.23456 thousand", "1234.56"),
        ("1.0000 thousand", "1000"),
        ("0.0000001 million", "0.1"),
        ("1.318 trillion", "1318000000000"),
        ("12,34 million", "12,34 million"),
        ("million", "million"),
        ("", ""),
    ],
)
def test_wordings_of_constants(wording: str, constant: str) -> None:
    assert as_constant(wording) == constant


def replay(steps: list, question: Question, actions: Actions, kb: KnowledgeBase) -> State:
    state = State(question, kb)
    for step in steps:
        if step.token >= 0:
            assert step.token in state.tokens()
            state.take(step.token)
        else:
            assert step.action in actions.allowed(state)
            state.take(actions.entries[step.action])
    return state


@pytest.mark.parametrize(
    ("question", "program"),
    [
        ("Is the area 1.5 thousand?", 'VerifyNum(QueryAttr(FindAll(), area), "1500", "=")'),
        ("Country of what?", 'Count(Find("country"))'),
    ],
)
def test_wordings_that_differ_from_the_argument(
    small: KnowledgeBase, question: str, program: str
) -> None:
    actions, asked, tree = Actions.of(small), Question.of(question), read(program)
    state = replay(steps_of(tree, asked, actions, small), asked, actions, small)
    assert state.program() == tree


def test_steps_build_the_program_again(small: KnowledgeBase, small_examples: list[Example]) -> None:
    actions = Actions.of(small)
    for example in small_examples:
        question = Question.of(example.question)
        state = replay(
            steps_of(example.program, question, actions, small), question, actions, small
        )
        assert state.done and state.program() == example.program


@pytest.mark.parametrize(
    ("question", "program", "reason"),
    [
        ("Where?", 'Find("Norway")', "name 'Norway'"),
        ("In Norway?", 'QueryAttr(Find("Norway"), "height")', "key 'height'"),
        ("Over 5?", 'Count(FilterNum(FindAll(), area, "6", ">"))', "quantity '6'"),
        ("Over 5 furlongs?", 'FilterNum(FindAll(), area, "5 furlong", ">")', "unit 'furlong'"),
    ],
)  # fmt: skip
def test_what_cannot_be_said_is_told(
    small: KnowledgeBase, question: str, program: str, reason: str
) -> None:
    with pytest.raises(NotExpressible, match=reason):
        steps_of(read(program), Question.of(question), Actions.of(small), small)


@pytest.mark.parametrize("text", ["Is Oslo older than 5, or 27 June 1998?", "no number here", "5"])
def test_random_choices_always_give_programs_that_type(small: KnowledgeBase, text: str) -> None:
    """Whatever an untrained network chooses: the program ends, types and reads back."""
    actions, question = Actions.of(small), Question.of(text)
    seen = set()
    for seed in range(400):
        rng, state = random.Random(seed), State(question, small)
        for _ in range(200):
            tokens = state.tokens()
            if tokens:
                state.take(rng.choice(tokens))
            else:
                state.take(actions.entries[rng.choice(actions.allowed(state))])
            if state.done:
                break
        assert state.done
        steps = check(read(str(state.program())))
        seen |= {step.function.name for step in steps}
    needs_number = {"FilterNum", "QFilterNum", "VerifyNum"}
    needs_time = {f"{verb}{kind}" for verb in ("Filter", "QFilter", "Verify") for kind in
                  ("Year", "Date")}  # fmt: skip
    if text == "no number here":
        assert not seen & (needs_number | needs_time)
    elif len(text) > 10:
        assert len(seen) >= len(FUNCTIONS) - 6


def test_vocabulary_and_pieces() -> None:
    vocabulary = Vocabulary.of([Question.of("a b b A")], ["Extra"])
    assert vocabulary.words == ["a", "b", "extra"]
    assert vocabulary.number("B") == 3 and vocabulary.number("c") == 1
    assert pieces("Oslo") == pieces("oslo") and len(pieces("x" * 100)) <= 12
