"""What a question asks for, beside what a program gives: openings, kinds, ordinals, languages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kb import KnowledgeBase
from kopl.example import Example
from kopl.text import read
from parsers.actions import Actions
from parsers.languages import Prediction
from parsers.linking import Linker, Mentions
from parsers.refusals.evidence import Evidencer, Tried
from parsers.refusals.openings import Openings, openings_of
from parsers.refusals.premises import Premise, Premises
from parsers.refusals.refusal import missing_name
from parsers.refusals.silence import CLASSES, kind_of
from parsers.refusals.wording import Wording, stems
from parsers.spelling import is_slip
from parsers.tokens import Question


@pytest.fixture(scope="module")
def evidencer(small: KnowledgeBase, small_examples: list[Example]) -> Evidencer:
    linker = Linker(small)
    mentions = Mentions(Actions.of(small).entries, linker)
    return Evidencer(linker, mentions, Wording.of(small_examples, linker))


def tried(program: str, *said: str) -> Tried:
    return Tried(Prediction(program, -0.1, read(program)), said)


def test_the_first_word_that_asks_opens_a_question() -> None:
    def opened(text: str) -> tuple[str, ...]:
        return openings_of(stems(Question.of(text)))

    assert opened("When was it?") == ("when",)
    assert opened("In which year was it?") == ("which year", "which")
    assert opened("how long is it") == ("how long", "how")
    assert opened("Is it there?") == ("?",)
    assert opened("the length of it") == ()


def test_an_answer_of_another_sort_than_the_opening_has_is_told() -> None:
    when, which = ["when", "wa", "it"], ["which", "one"]
    found = Openings.of([(when, "time")] * 300 + [(which, "name")] * 300 + [(which, "time")] * 30)
    assert found.contradicts(when, "quantity") and not found.contradicts(when, "time")
    assert not found.contradicts(which, "time") and found.contradicts(which, "quantity")
    assert found.seldom(when, "quantity") > found.seldom(when, "time")
    assert not found.contradicts(["the", "length"], "quantity")
    # What came too few times tells nothing.
    assert Openings.of([(when, "time")] * 3).counts == {}


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("What is the second largest city in Norway?", ["second"]),
        ("the 3rd-highest city", ["3rd"]),
        ("Which is the second city of Norway?", []),
        ("What is the largest city?", []),
    ],
)
def test_an_ordinal_is_left_out(evidencer: Evidencer, question: str, left: list[str]) -> None:
    best = tried('SelectAmong(FilterConcept(FindAll(), "city"), "population", "largest")', "Oslo")
    assert evidencer.of(question, [best], best).left_out == left


def test_programs_that_say_the_same_agree(evidencer: Evidencer) -> None:
    first = tried('QueryName(Relate(Find("Norway"), capital, forward))', "Oslo")
    same = tried('QueryName(Relate(Find("Peru"), capital, forward))', "Oslo")
    other = tried('QueryAttr(Find("Norway"), area)', "1")
    found = evidencer.of("What is the capital of Norway?", [first, same, other], first)
    assert found.values["agreement"] == pytest.approx(2 / 3)


def test_what_is_asked_of_a_name_is_its_head(evidencer: Evidencer) -> None:
    best = tried('QueryName(Relate(Find("Norway"), capital, forward))', "Oslo")
    wage = evidencer.of("What is the lowest wage in Norway?", [best], best)
    capital = evidencer.of("What is the capital of Norway?", [best], best)
    assert wage.values["head unknown"] == 1 and capital.values["head unknown"] == 0


def test_a_name_mended_by_more_than_a_slip_is_doubted(evidencer: Evidencer) -> None:
    best = tried('QueryName(Relate(Find("Norway"), capital, forward))', "Oslo")
    reader = Evidencer(
        evidencer.linker, evidencer.mentions, evidencer.wording,
        lambda text: Question.of(text.replace("Norvarway", "Norway")),
    )  # fmt: skip
    found = reader.of("What is the capital of Norvarway?", [best], best)
    assert found.values["name fit"] == 1 and found.values["name edits beyond one"] == 1
    assert missing_name(found, reader) == "Norvarway"


@pytest.mark.parametrize(
    "question",
    [
        "Wie heißt die Hauptstadt von Norway?",
        "Quelle est la superficie du pays Norway ?",
        "¿Cuál es la capital de Norway?",
        "Qual è la superficie di Norway?",
        "Hoeveel mensen wonen er in Norway?",
        "Hvad er hovedstaden i Norway?",
        "Jaka jest stolica kraju Norway?",
        "Apa ibu kota Norway?",
        "Какова площадь Norway?",
        "Norwayの首都はどこですか",
        "Norway'ın komşuları hangi ülkelerdir?",
        "¿Superficie Norway?",
    ],
)
def test_other_languages_are_refused_as_such(evidencer: Evidencer, question: str) -> None:
    best = tried('QueryName(Relate(Find("Norway"), capital, forward))', "Oslo")
    found = evidencer.of(question, [best], best)
    shares = np.full(len(CLASSES), 1 / len(CLASSES))
    assert kind_of(found, shares, [best], best, missing_name(found, evidencer)) == "language"


# --- what the program leaves out -------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "unused"),
    [
        ("What is the capital of Norway?", []),
        ("What is the capital of both Norway and Peru?", ["Peru"]),
        ("capital of norway and peru", ["peru"]),
        ("Is Oslo the capital of Norway?", ["Oslo"]),
        ("what capital has norway", []),
    ],
)
def test_names_that_the_program_does_not_say(
    evidencer: Evidencer, question: str, unused: list[str]
) -> None:
    best = tried('QueryName(Relate(Find("Norway"), capital, forward))', "Oslo")
    found = evidencer.of(question, [best], best)
    assert found.unused == unused
    beside = found.values["names beside not used"], found.values["names not used"]
    assert beside == ((0.5, 0.0) if " and " in question else (0.0, len(unused) / 2))


def test_numbers_that_the_program_does_not_say(evidencer: Evidencer) -> None:
    best = tried('FilterNum(FindAll(), "area", "2300000 square kilometre", ">")', "Norway")

    def left(question: str) -> float:
        return evidencer.of(question, [best], best).values["numbers not used"]

    assert left("What is larger than 2.3 million square kilometres?") == 0
    assert left("What is larger than 2,300,000 square kilometres?") == 0
    assert left("Which 5 are larger than 2,300,000 square kilometres?") == 0.5
    assert left("What is larger than 5 and 7 square kilometres?") == 1


@pytest.mark.parametrize(
    ("question", "again"),
    [
        ("What is the capital of Norway and who is its king?", 1),
        ("What is the capital of Norway? And of Peru?", 1),
        ("And what is the capital of Norway?", 0),
        ("What is the capital of Bosnia and Herzegovina?", 0),
    ],
)
def test_a_second_question(evidencer: Evidencer, question: str, again: float) -> None:
    best = tried('QueryName(Relate(Find("Norway"), capital, forward))', "Oslo")
    assert evidencer.of(question, [best], best).values["asks again"] == again


@pytest.mark.parametrize(
    ("written", "name", "slip"),
    [
        ("lativa", "latvia", True),
        ("latveria", "latvia", False),
        ("phillipines", "philippines", True),
        ("morroco", "morocco", True),
        ("european", "europe", True),
        ("ruritania", "mauritania", False),
        ("slovvenias", "slovenia", True),
        ("wakanda", "rwanda", False),
        ("lichtenstien", "liechtenstein", True),
        ("tomorrow", "omoro", False),
    ],
)
def test_what_may_be_a_slip_of_the_pen_for_a_name(written: str, name: str, slip: bool) -> None:
    assert is_slip(written, name) is slip


# --- false premises --------------------------------------------------------------------------


def premise(evidencer: Evidencer, question: str, *readings: Tried) -> Premise | None:
    best = next((one for one in readings if one.said), readings[0])
    shares = {"schema": 0.2, "premise": 0.6}
    found = evidencer.of(question, readings, best)
    return Premises(evidencer).of(question, readings, best, found, shares)


def test_only_what_was_understood_is_called_false(evidencer: Evidencer) -> None:
    no_capital = tried('QueryName(Relate(Find("Peru"), capital, forward))')
    found = premise(evidencer, "What is the capital of Peru?", no_capital)
    assert found == Premise(nothing=no_capital)
    # Nothing says the relation, a word is unknown, the name is not said.
    for question in ("What about Peru?", "What is the frobnicated capital of Peru?",
                     "What is the capital of Ruritania?"):  # fmt: skip
        assert premise(evidencer, question, no_capital) is None, question
    # No town has a capital: it was misread.
    of_a_town = tried('QueryName(Relate(Find("Oslo"), capital, forward))')
    assert premise(evidencer, "What is the capital of Oslo?", of_a_town) is None
    # Another reading is far more probable, and finds something.
    sure = tried('QueryName(Relate(Find("Peru"), currency, forward))', "Sol")
    unlikely = Tried(replace(no_capital.prediction, log_probability=-4.0), ())
    assert premise(evidencer, "What is the capital of Peru?", sure, unlikely) is None
