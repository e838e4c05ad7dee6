"""The learner that guesses answers from choices: it finds what is to be found, and nothing else."""

from __future__ import annotations

import importlib
from random import Random
from statistics import mean
from typing import Any

from kopl.example import Example
from kopl.text import read

benchmark: Any = importlib.import_module("benchmarks.choices")
NAMES = [f"{first}{last}" for first in "BDFGKLMNPRST" for last in ("ana", "ero", "ilu", "osk")]


def made(answer_of: Any, others: Any, count: int = 120) -> list[Example]:
    """Questions whose answer and whose nine other choices are drawn by these functions."""
    random, examples = Random(4), []
    program = read('QueryName(Find("x"))')
    for number in range(count):
        answer = answer_of(random)
        choices = [answer]
        while len(choices) < 10:
            if (other := others(random)) not in choices:
                choices.append(other)
        random.shuffle(choices)
        question = f"question {number} of {answer[::-1]}"
        examples.append(Example(question, program, answer, tuple(choices), type="QueryName"))
    return examples


def guessed(examples: list[Example], **options: Any) -> float:
    """The share of answers that the learner finds."""
    return mean(benchmark.guesses(examples, **options))


def test_what_is_drawn_alike_cannot_be_told() -> None:
    def draw(random: Random) -> str:
        return random.choice(NAMES)

    assert guessed(made(draw, draw)) < 0.2


def test_frequent_answers_are_found() -> None:
    found = guessed(
        made(lambda random: random.choice(NAMES[:3]), lambda random: random.choice(NAMES))
    )
    assert found > 0.6


def test_answers_in_the_middle_are_found() -> None:
    found = guessed(
        made(
            lambda random: str(random.randint(490, 510)),
            lambda random: str(random.choice((random.randint(1, 480), random.randint(520, 999)))),
        )
    )
    assert found > 0.6


def test_answers_that_are_written_otherwise_are_found() -> None:
    found = guessed(
        made(
            lambda random: f"{random.uniform(1, 100):.5f} metre",
            lambda random: f"{random.uniform(1, 100):.1f} metre",
        )
    )
    assert found > 0.9


def test_words_of_the_question_are_seen_only_where_they_are_asked_for() -> None:
    def draw(random: Random) -> str:
        return random.choice(NAMES)

    examples = made(draw, draw, 300)
    assert guessed(examples) < 0.2 and guessed(examples, words=True) > 0.4


def test_the_table_has_a_line_for_each_type() -> None:
    examples = made(lambda random: random.choice(NAMES), lambda random: random.choice(NAMES), 60)
    lines = list(benchmark.report(examples, False))
    assert [line.split(" | ")[0] for line in lines] == ["| type", "| ---", "| QueryName", "| all"]
