"""Conversations: what follow-ups ask is found in the last question, and said."""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import SimpleNamespace
from typing import Any

import pytest

from kb import Builder, KnowledgeBase, Quantity, Year
from kopl.answer_forms import Asking, Is
from kopl.text import read
from parsers import follow_ups
from parsers.conversation import Conversation, Turn
from parsers.follow_ups import pronouns, put_for
from parsers.languages import KoplLanguage
from parsers.refusals import Refusal
from parsers.tokens import Question

CAPITAL = 'QueryName(Relate(Find("{}"), capital, forward))'
HEAD = 'QueryName(Relate(Find("{}"), "head of state", forward))'
POPULATION = 'QueryAttr(Find("{}"), population)'
IN_YEAR = 'QueryAttrUnderCondition(Find("{}"), population, "point in time", "{}")'
LONGER = 'SelectBetween(Find("{}"), Find("{}"), length, greater)'
# What a parser makes of words that it has never seen: something.
NONSENSE = "Count(FindAll())"


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    """Countries with capitals, heads of state and populations, rivers with lengths."""
    builder = Builder()
    for concept in ("country", "city", "human", "river", "lake"):
        builder.add_concept(concept, concept)
    for name, capital, head, people in (
        ("Norway", "Oslo", "Harald V", 5), ("Sweden", "Stockholm", "Carl XVI Gustaf", 10),
        ("United Kingdom", "London", "Charles III", 68), ("Netherlands", "Amsterdam", "", 17),
    ):  # fmt: skip
        builder.add_entity(name, name, ["country"])
        builder.add_entity(capital, capital, ["city"])
        builder.add_fact(name, "capital", capital)
        for node, count in ((name, people), (capital, people / 10)):
            for year in (1990, 2000):
                builder.add_attribute(
                    node, "population", Quantity(count + year), {"point in time": Year(year)}
                )
        if head:
            builder.add_entity(head, head, ["human"])
            builder.add_fact(name, "head of state", head)
            builder.add_attribute(head, "date of birth", Year(1930 + people))
    for river, length in (("Rhine", 1233), ("Elbe", 1091), ("Danube", 2850)):
        builder.add_entity(river, river, ["river"])
        builder.add_attribute(river, "length", Quantity(length, "kilometre"))
    builder.add_entity("Vattern", "Vattern", ["lake"])
    return builder.build()


Script = dict[str, str | tuple[str, float]]
Talks = Callable[..., Conversation]


@pytest.fixture
def talks(torch: Any, kb: KnowledgeBase) -> Talks:
    """Conversations with a parser that knows some questions by heart, and what is asked by them."""
    from parsers.parser import Answer

    language = KoplLanguage(kb)

    def make(
        script: Script, asking: Asking | None = None, refused: Collection[str] = ()
    ) -> Conversation:
        asked: list[str] = []

        def ask(question: str, *, trace: bool = False, **options: Any) -> list[Answer]:
            asked.append(question)
            known = script.get(question, (NONSENSE, -5.0))
            text, log_probability = known if isinstance(known, tuple) else (known, -0.1)
            form = asking if known != (NONSENSE, -5.0) else None
            prediction = language.of_program(read(text), log_probability, form)
            why = Refusal("schema", "no relation here says so", ()) if question in refused else None
            found = language.run(prediction, trace=trace)
            return [Answer(prediction, found, None, refused=why)]

        model = SimpleNamespace(language=language)
        talk = Conversation(SimpleNamespace(kb=kb, model=model, ask=ask))  # type: ignore[arg-type]
        talk.asked = asked  # type: ignore[attr-defined]
        return talk

    return make


def said(turn: Turn) -> tuple[str | None, tuple[str, ...]]:
    return turn.read_as, turn.answers[0].answers


# --- something else in the last program ----------------------------------------------------------


@pytest.mark.parametrize(
    ("follow_up", "read_as", "answer"),
    [
        ("and of Sweden?", "what is the capital of Sweden?", "Stockholm"),
        ("And of sweden", "what is the capital of sweden?", "Stockholm"),
        ("what about the Netherlands?", "what is the capital of the Netherlands?", "Amsterdam"),
        ("how about Swedn?", "what is the capital of Swedn?", "Stockholm"),
        ("Sweden?", "what is the capital of Sweden?", "Stockholm"),
        ("OK and the United Kingdom", "what is the capital of the United Kingdom?", "London"),
    ],
)
def test_another_name(talks: Talks, follow_up: str, read_as: str, answer: str) -> None:
    talk = talks({"what is the capital of Norway?": CAPITAL.format("Norway")})
    assert said(talk.ask("what is the capital of Norway?")) == (None, ("Oslo",))
    turn = talk.ask(follow_up)
    assert said(turn) == (read_as, (answer,)) and turn.how == "program"
    assert talk.asked == ["what is the capital of Norway?"]  # type: ignore[attr-defined]
    assert turn.answers[0].confidence == talk.turns[0].answers[0].confidence


def test_one_after_the_other(talks: Talks) -> None:
    talk = talks({"what is Norway's capital?": CAPITAL.format("Norway")})
    for line, answer in (
        ("what is Norway's capital?", "Oslo"), ("and Sweden?", "Stockholm"),
        ("and the Netherlands", "Amsterdam"), ("and Norway?", "Oslo"),
    ):  # fmt: skip
        turn = talk.ask(line)
        assert turn.answers[0].answers == (answer,)
    assert turn.read_as == "what is Norway's capital?"


def test_which_of_two_names_is_meant(talks: Talks) -> None:
    """The first one; the one behind the same word; the one of the same kind."""
    question = "is the Rhine longer than the Elbe?"
    script: Script = {question: LONGER.format("Rhine", "Elbe")}
    talk = talks(script, Asking(Is("Rhine")))
    assert said(talk.ask(question)) == (None, ("yes",))
    assert said(talk.ask("and the Danube?")) == ("is the Danube longer than the Elbe?", ("yes",))
    talk = talks(script, Asking(Is("Rhine")))
    talk.ask(question)
    assert said(talk.ask("and than the Danube?")) == (
        "is the Rhine longer than the Danube?", ("no",),
    )  # fmt: skip
    question = "since when is Oslo the capital of Norway?"
    talk = talks({question: 'QueryRelation(Find("Norway"), Find("Oslo"))'})
    talk.ask(question)
    turn = talk.ask("and Sweden?")
    assert turn.read_as == "since when is Oslo the capital of Sweden?"


def test_another_kind_year_and_number(talks: Talks) -> None:
    question = "how many rivers are there with a length above 1,100 kilometres?"
    longer = 'Count(FilterConcept(FilterNum(FindAll(), length, "1100 kilometre", ">"), river))'
    talk = talks({question: longer})
    assert talk.ask(question).answers[0].answers == ("2",)
    assert said(talk.ask("and above 2,000?")) == (
        "how many rivers are there with a length above 2,000 kilometres?", ("1",),
    )  # fmt: skip
    assert said(talk.ask("and lakes?")) == (
        "how many lakes are there with a length above 2,000 kilometres?", ("0",),
    )  # fmt: skip
    question = "what was the population of Norway in 1990?"
    talk = talks({question: IN_YEAR.format("Norway", 1990)})
    talk.ask(question)
    turn = talk.ask("and in 2000?")
    assert said(turn) == ("what was the population of Norway in 2000?", ("2005",))
    assert said(talk.ask("of Oslo?")) == ("what was the population of Oslo in 2000?", ("2000.5",))


def test_a_year_that_no_constant_stands_for(talks: Talks) -> None:
    """It is put behind the question, which the parser reads; if it sees the year, that counts."""
    question, longer = "what is the population of Norway?", "what is the population of Norway in "
    script: Script = {
        question: POPULATION.format("Norway"), f"{longer}1990?": IN_YEAR.format("Norway", 1990),
    }  # fmt: skip
    talk = talks(script)
    talk.ask(question)
    turn = talk.ask("and in 1990?")
    assert said(turn) == (f"{longer}1990?", ("1995",)) and turn.how == "words"
    talk = talks(script)
    talk.ask(question)
    assert talk.ask("and in 2000?").read_as is None  # of which the parser makes nonsense


def test_a_name_of_another_kind_is_read_anew(talks: Talks) -> None:
    """Where the last program finds nothing with it, the parser may know how to ask it."""
    question = "what is the head of state of Norway?"
    talk = talks({
        question: HEAD.format("Norway"),
        "what is the head of state of Rhine?": 'QueryAttr(Find("Rhine"), length)',
    })  # fmt: skip
    talk.ask(question)
    turn = talk.ask("and of Rhine?")
    assert said(turn) == ("what is the head of state of Rhine?", ("1233 kilometre",))
    assert turn.how == "words"
    turn = talk.ask("and of Vattern?")
    assert turn.how == "program" and not turn.is_answered


def test_after_a_refusal(talks: Talks) -> None:
    """Its program says something else; what it names itself may be spoken of all the same."""
    question = "who is the prime minister of Norway?"
    talk = talks(
        {question: HEAD.format("Norway"), "Norway's population?": POPULATION.format("Norway")},
        refused=[question, "who is the prime minister of Sweden?"],
    )
    assert talk.ask(question).is_refused
    turn = talk.ask("and of Sweden?")
    assert turn.is_refused and turn.read_as == "who is the prime minister of Sweden?"
    talk = talks(
        {question: HEAD.format("Sweden"), "Norway's population?": POPULATION.format("Norway")},
        refused=[question],
    )
    talk.ask(question)
    assert talk.ask("its population?").read_as is None  # the program's Sweden was not named


# --- pronouns ------------------------------------------------------------------------------------


def test_what_was_found_comes_before_what_was_named(talks: Talks) -> None:
    question = "what is the capital of Norway?"
    talk = talks({question: CAPITAL.format("Norway"),
                  "Oslo's population?": POPULATION.format("Oslo")})  # fmt: skip
    talk.ask(question)
    turn = talk.ask("its population?")
    assert turn.read_as == "Oslo's population?" and turn.how == "words"
    assert talk.asked[1:] == ["Oslo's population?"]  # type: ignore[attr-defined]


def test_what_has_an_answer_is_meant(talks: Talks) -> None:
    """Oslo has no head of state, so Norway is asked for its; he is a person, and no city."""
    question = "what is the capital of Norway?"
    talk = talks({
        question: CAPITAL.format("Norway"),
        "who is Oslo's head of state?": HEAD.format("Oslo"),
        "who is Norway's head of state?": HEAD.format("Norway"),
        "when was Harald V born?": 'QueryAttr(Find("Harald V"), "date of birth")',
        "how many people live in Norway?": POPULATION.format("Norway"),
    })  # fmt: skip
    talk.ask(question)
    assert said(talk.ask("who is its head of state?")) == (
        "who is Norway's head of state?", ("Harald V",),
    )  # fmt: skip
    assert said(talk.ask("when was he born?")) == ("when was Harald V born?", ("1935",))
    turn = talk.ask("how many people live there?")
    assert turn.read_as == "how many people live in Norway?"


def test_that_country(talks: Talks) -> None:
    question = "which country has Oslo as its capital?"
    back = 'QueryName(FilterConcept(Relate(Find("Oslo"), capital, backward), country))'
    talk = talks({question: back, "what is the population of Norway?": POPULATION.format("Norway")})
    # Its own words say whose capital is meant, also behind another question.
    talk.ask(question)
    assert talk.ask(question).read_as is None
    turn = talk.ask("what is the population of that country?")
    assert turn.read_as == "what is the population of Norway?"
    assert talk.ask("what is the population of that river?").read_as is None


def test_several_are_not_one(talks: Talks) -> None:
    """No name stands for all countries that were found, but a question may be asked of them."""
    question = "which countries have a capital?"
    set_of = 'FilterConcept(Relate(Or(Find("Oslo"), Find("London")), capital, backward), country)'
    largest = "SelectAmong(FilterConcept(FindAll(), country), population, largest)"
    talk = talks({question: f"QueryName({set_of})",
                  "which of the countries is the largest?": largest})  # fmt: skip
    assert talk.ask(question).answers[0].answers == ("Norway", "United Kingdom")
    assert talk.ask("what is their capital?").read_as is None
    turn = talk.ask("which of them is the largest?")
    assert turn.answers[0].answers == ("United Kingdom",)
    assert turn.read_as == "which of the countries is the largest? (of those listed)"
    assert str(turn.program) == (
        'SelectAmong(And(FilterConcept(FindAll(), "country"), FilterConcept(Relate(Or('
        'Find("Oslo"), Find("London")), "capital", "backward"), "country")), "population",'
        ' "largest")'
    )


CITIES = 'Relate(Or(Find("Norway"), Find("United Kingdom")), capital, forward)'
OF_CITIES: Script = {
    "which cities are capitals here?": f"QueryName({CITIES})",
    "which of the cities is the largest?":
        "SelectAmong(FilterConcept(FindAll(), city), population, largest)",
    "how many of the cities are there?": "Count(FilterConcept(FindAll(), city))",
    "what is Norway's code?": CAPITAL.format("Norway"),
    "what is the capital of Norway?": CAPITAL.format("Norway"),
    "Norway's capitals?": CAPITAL.format("Norway"), "Oslo's capitals?": CAPITAL.format("Norway"),
}  # fmt: skip


def test_a_list_without_a_concept_is_of_the_kind_that_its_question_says(talks: Talks) -> None:
    talk = talks(OF_CITIES)
    assert talk.ask("which cities are capitals here?").answers[0].answers == ("London", "Oslo")
    turn = talk.ask("which of them is the largest?")
    assert said(turn) == ("which of the cities is the largest? (of those listed)", ("London",))
    assert talk.ask("how many of them are there?").answers[0].answers == ("2",)


def test_a_list_that_no_noun_is_said_of_is_told(talks: Talks) -> None:
    talk = talks({"what has a mayor?": f"QueryName({CITIES})"})
    talk.ask("what has a mayor?")
    turn = talk.ask("which of them is the largest?")
    assert (turn.read_as, turn.unresolved) == (None, "them")


def test_a_refused_turn_behind_a_list_names_nothing_for_several(talks: Talks) -> None:
    talk = talks(OF_CITIES, refused=["what is Norway's code?"])
    talk.ask("which cities are capitals here?")
    assert talk.ask("what is Norway's code?").is_refused
    turn = talk.ask("their capitals?")
    assert (turn.read_as, turn.unresolved) == (None, "their")


def test_of_them_is_no_single_thing(talks: Talks) -> None:
    talk = talks(OF_CITIES)
    talk.ask("what is the capital of Norway?")
    turn = talk.ask("how many of them are there?")
    assert (turn.read_as, turn.unresolved) == (None, "them")


def test_a_pronoun_that_nothing_fits_is_told(talks: Talks) -> None:
    talk = talks({"what is the capital of Norway?": CAPITAL.format("Norway")})
    talk.ask("what is the capital of Norway?")
    turn = talk.ask("where was he born?")
    assert (turn.read_as, turn.unresolved) == (None, "he")


def test_a_noun_phrase_asks_of_what_was_named(talks: Talks) -> None:
    question = "what is the capital of Norway?"
    talk = talks({question: CAPITAL.format("Norway"),
                  "Norway's population?": POPULATION.format("Norway")})  # fmt: skip
    talk.ask(question)
    assert talk.ask("and the population?").read_as == "Norway's population?"


def test_another_extreme(talks: Talks) -> None:
    longest = "SelectAmong(FilterConcept(FindAll(), river), length, {})"
    talk = talks({"what is the longest river?": longest.format("largest"),
                  "what is the shortest river?": longest.format("smallest")})  # fmt: skip
    talk.ask("what is the longest river?")
    assert said(talk.ask("and the shortest?")) == ("what is the shortest river?", ("Elbe",))


# --- questions of their own ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "question",
    [
        "what is the capital of Sweden?", "and what is the capital of Sweden?",
        "who is the head of state of Sweden?", "how many rivers are there?", "is there a river?",
        "which country has Oslo as its capital?", "in which country is Oslo?",
        "the population of Sweden", "and the population of Sweden?", "why?",
    ],
)  # fmt: skip
def test_questions_that_stand_by_themselves(talks: Talks, question: str) -> None:
    """Words that might go on from something are read as they are where nothing else answers."""
    own = question.removeprefix("and ")
    talk = talks({"what is the capital of Norway?": CAPITAL.format("Norway"),
                  own: CAPITAL.format("Sweden")})  # fmt: skip
    talk.ask("what is the capital of Norway?")
    turn = talk.ask(question)
    assert said(turn) == (None, ("Stockholm",)) and turn.how == "itself"


def test_nothing_to_go_on_from(talks: Talks) -> None:
    talk = talks({})
    for line in ("and of Sweden?", "its capital?", "in 1990?"):
        assert talks({}).ask(line).read_as is None
    talk.ask("its capital?")
    assert talk.asked == ["its capital?"]  # type: ignore[attr-defined]


# --- the words -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("and of Sweden?", ("and", "of", "Sweden")),
        ("What about, the Rhine ?!", ("what about", "", "Rhine")),
        ("in 1990", ("", "in", "1990")),
        ("and", ("and", "", "")),
        ("of", ("", "", "of")),
        ("the area", ("", "", "area")),
        ("?", ("", "", "")),
    ],
)
def test_texts_are_taken_apart(text: str, parts: tuple[str, str, str]) -> None:
    found = follow_ups.read(text)
    assert (found.lead, found.preposition, found.new) == parts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("who is her father?", "who is X's father?"),
        ("who married her?", "who married X?"),
        ("who lives there, and who comes from there?", "who lives in X, and who comes from X?"),
        ("is there a river in it?", "is there a river in X?"),
        ("how long is this river?", "how long is X?"),
        ("who said that rivers are long?", "who said that rivers are long?"),
    ],
)
def test_pronouns_are_replaced(text: str, expected: str) -> None:
    question = Question.of(text)
    found = pronouns(question, lambda noun: noun == "river")
    assert put_for(question, found, "X") == expected


def test_a_pronoun_before_anything_is_named_is_told(talks: Talks) -> None:
    talk = talks({}, refused=["its population?", "who rules?", "how big is it?"])
    assert talk.ask("its population?").unresolved == "its"
    assert talk.ask("who rules?").unresolved == ""
    fresh = talks({"how many are there?": "Count(FindAll())"})
    assert fresh.ask("how many are there?").unresolved == ""
