"""Aliases in questions: what they stand for, and when a word is none."""

from __future__ import annotations

import re

import pytest

from kb import Builder, KnowledgeBase
from kopl.executor import Executor
from kopl.text import read
from parsers.actions import Actions
from parsers.linking import Linker, Mentions, stem, unsaid
from parsers.names import NodeNames, _holding, with_others
from parsers.refusals.wording import WordsOfNames
from parsers.spelling import Index, letters
from parsers.steps import NotExpressible, steps_of
from parsers.tokens import Question


def world() -> KnowledgeBase:
    builder = Builder()
    for concept in ("country", "city", "language", "element", "party", "person", "state"):
        builder.add_concept(concept, concept)
    builder.add_entity("gb", "United Kingdom", ["country"], ["UK", "Britain", "British"])
    builder.add_entity("us", "United States", ["country"], ["US", "USA", "America"])
    builder.add_entity("fr", "France", ["country"], ["French"])
    builder.add_entity("fr-language", "French", ["language"])
    builder.add_entity("cd", "DR Congo", ["country"], ["Congo", "Zaire"])
    builder.add_entity("cg", "Congo Republic", ["country"], ["Congo"])
    builder.add_entity("he", "helium", ["element"], ["He"])
    builder.add_entity("co", "cobalt", ["element"], ["Co"])
    builder.add_entity("o", "oxygen", ["element"], ["O"])
    builder.add_entity("s", "sulfur", ["element"], ["S"])
    builder.add_entity("i", "iodine", ["element"], ["I"])
    builder.add_entity("isa", "Internal Security Alliance", ["party"], ["ISA", "UK"])
    builder.add_entity("king", "Martin Luther King", ["person"], ["King"])
    builder.add_entity("einstein", "Albert Einstein", ["person"], ["Einstein"])
    builder.add_entity("usd", "US Dollar", ["state"])
    builder.add_entity("in", "India", ["country"], ["in", ".in"])
    for at in range(6):
        city = f"city{at}"
        builder.add_entity(city, f"City {'ABCDEF'[at]}", ["city"])
        builder.add_fact(city, "country", "gb")
        builder.add_fact(city, "country", "us")
        builder.add_fact(city, "country", "cd")
    builder.add_fact("cg", "capital", "city1")
    return builder.build()


KB = world()
LINKER = Linker(KB)
MENTIONS = Mentions([], LINKER)


def said(text: str) -> list[str]:
    question = Question.of(text)
    return [question.span(*span) for span in MENTIONS.of(question).names]


# --- what a text stands for --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("UK", ("United Kingdom", "Internal Security Alliance")),  # the best known first
        ("uk", ("United Kingdom", "Internal Security Alliance")),
        ("Congo", ("DR Congo", "Congo Republic")),
        ("the congo", ("DR Congo", "Congo Republic")),
        ("French", ("French", "France")),  # a name before an alias
        ("french", ("French", "France")),
        ("Britain's", ("United Kingdom",)),
        ("United Kingdom", ("United Kingdom",)),
        ("Einstien", ("Albert Einstein",)),
        ("Amerca", ("United States",)),
        ("cobolt", ("cobalt",)),
        ("Unitd Kingdom", ("United Kingdom",)),
    ],
)
def test_names_that_a_text_may_stand_for(text: str, names: tuple[str, ...]) -> None:
    assert LINKER.names.meant(text) == names
    assert LINKER.name(text) == names[0]


def test_a_short_alias_is_not_near_anything() -> None:
    assert LINKER.name("Hf") not in ("helium",)
    builder = Builder()
    builder.add_entity("x", "Chandra Someone", aliases=["Chan"])
    builder.add_entity("y", "China")
    assert Linker(builder.build()).name("Chian") == "China"


def test_an_alias_of_what_has_no_name_means_nothing() -> None:
    builder = Builder()
    builder.add_entity("x", "", aliases=["Nameless"])
    builder.add_entity("y", "Y")
    names = NodeNames(builder.build(), ["Y"])
    assert names.meant("Nameless") == ("Y",)
    empty = NodeNames(Builder().build(), [])
    assert empty.meant("UK") == ()


# --- what a question says ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who rules Britain?", ["Britain"]),
        ("population of the UK", ["UK"]),
        ("population uk", ["uk"]),
        ("Is he from the US?", ["US"]),
        ("tell us of america", ["america"]),
        ("TELL US", []),
        ("US cities", ["US"]),
        ("What is the mass of He?", ["He"]),
        ("He was king of co and so", []),
        ("How heavy is O?", ["O"]),
        ("may I ask of the UK's dog", ["UK"]),  # neither iodine nor sulfur
        ("Where was King born?", ["King"]),
        ("Where was the king born?", []),
        ("Is a town here in it?", []),
        ("How strong is the US Dollar?", ["US Dollar"]),
        ("the french president", ["french"]),
        ("who was einstein", ["einstein"]),
    ],
)
def test_words_that_are_aliases(question: str, names: list[str]) -> None:
    assert said(question) == names


def test_a_question_tells_what_its_aliases_may_mean() -> None:
    mentioned = MENTIONS.of(Question.of("Is the capital of Congo in Britain or the French one?"))
    assert mentioned.several == (("DR Congo", "Congo Republic"), ("French", "France"))


def test_what_is_said_by_an_alias_is_said() -> None:
    program = read("And(Find(United Kingdom), Find(DR Congo))")
    assert unsaid(program, "Are the uk and zaire one?", KB) == []
    assert unsaid(program, "Are britain and France one?", KB) == ["DR Congo"]


# --- programs ----------------------------------------------------------------------------------


def test_programs_with_the_others_of_an_alias() -> None:
    program = read("QueryName(Relate(Find(DR Congo), capital, forward))")
    several = [("DR Congo", "Congo Republic"), ("French", "France")]
    (other,) = with_others(program, several)
    assert other == read("QueryName(Relate(Find(Congo Republic), capital, forward))")
    executor = Executor(KB)
    assert executor.run(program).answer is None
    assert executor.run(other).answer == "City B"
    assert [*with_others(program, [])] == []


def test_every_place_of_a_name_gets_the_other() -> None:
    program = read("Or(Find(French), And(Find(French), Find(DR Congo)))")
    found = [str(one) for one in with_others(program, [("French", "France")])]
    assert found == [str(read("Or(Find(France), And(Find(France), Find(DR Congo)))"))]


@pytest.mark.parametrize(
    ("question", "name", "copied"),
    [
        ("Which cities are in Britain?", "United Kingdom", "Britain"),
        ("cities in the uk", "United Kingdom", "uk"),
        ("cities of Zaire", "DR Congo", "Zaire"),
        ("cities of Congo", "DR Congo", "Congo"),
    ],
)
def test_steps_copy_an_alias_and_write_the_name(question: str, name: str, copied: str) -> None:
    asked = Question.of(question)
    program = read(f"QueryName(Relate(Find({name}), country, backward))")
    steps = steps_of(program, asked, Actions.of(KB), LINKER)
    first, last = (step.token for step in steps if step.token >= 0)
    assert asked.span(first, last) == copied


def test_an_alias_is_not_copied_for_what_it_is_not_likely_to_mean() -> None:
    program = read("QueryName(Relate(Find(Congo Republic), capital, forward))")
    with pytest.raises(NotExpressible):
        steps_of(program, Question.of("capital of Congo"), Actions.of(KB), LINKER)


def test_a_name_within_a_longer_one_is_none() -> None:
    builder = Builder()
    builder.add_concept("lake", "lake")
    builder.add_entity("town", "Victoria", ["lake"])
    builder.add_entity("lake-victoria", "Lake Victoria", ["lake"], ["Nyanza"])
    builder.add_entity("both", "Trinidad and Tobago", ["lake"], ["Trinidad"])
    linker = Linker(builder.build())
    actions = Actions.of(linker.kb)
    question = Question.of("Is lake victoria larger than trinidad and tobago?")
    found = Mentions(actions.entries, linker).of(question)
    assert [question.span(*span) for span in found.names] == [
        "lake victoria", "trinidad and tobago",
    ]  # fmt: skip
    # Nor is it taught as what the longer one is called by.
    steps = steps_of(read('QueryName(Find("Trinidad and Tobago"))'), question, actions, linker)
    spans = [(step.start, step.token) for step in steps if step.slot == "span end"]
    assert [question.span(*span) for span in spans] == ["trinidad and tobago"]


def test_the_items_of_what_is_named_are_known() -> None:
    linker = Linker(world())
    actions = Actions.of(linker.kb)
    found = Mentions(actions.entries, linker).of(Question.of("Which cities lie in Britain?"))
    has, leads = ([actions.entries[number] for number in numbers] for numbers in found.known)
    assert ("relation", "country") in leads
    assert ("relation", "country") not in has
    found = Mentions(actions.entries, linker).of(Question.of("Where is City A?"))
    has, leads = ([actions.entries[number] for number in numbers] for numbers in found.known)
    assert ("relation", "country") in has
    assert not leads


# --- lists that are made once give what going through all names gives ---------------------------


@pytest.mark.parametrize("name", ["city", "City B", "i", "u.s", "king", "a (b", "congo", "X_"])
def test_names_that_hold_others_are_those_that_have_the_words(name: str) -> None:
    texts = ["city", "City B", "the city.", "Citycity city city", "U.S", "a (b", "X_", "xI", "i_i"]
    held = re.compile(rf"(?<!\w){re.escape(name.lower())}(?!\w)")
    wanted = [text for text in texts for _ in held.finditer(text.lower())]
    assert [*_holding("\n".join(texts).lower(), texts, name)] == wanted


@pytest.mark.parametrize(
    "text",
    ["Martin", "Luther Martin", "United King", "internal-alliance", "Peru", "", "city cities"],
)
def test_a_part_of_a_name_has_words_of_one_name(text: str) -> None:
    def words(called: str) -> set[str]:
        return {stem(letters(word)) for word in called.replace("-", " ").split()}

    called = [*KB.called("entity"), *KB.called("concept")]
    known = WordsOfNames(KB)
    assert known.have(text) == any(words(text) <= words(one) for one in called)
    assert set(known.begin_small) == {word for one in called for word in words(one)}


def test_a_nearer_alias_is_the_nearest_where_that_is_near_enough() -> None:
    index = Index(["Britain", "Zaire", "Einstein", "French", "America", "British"])
    for text in ("Britan", "einstien", "frensh toast", "q", "brit", "Zaire"):
        nearest, similar = index.nearest(text)
        fresh = Index(index.texts)
        assert fresh.nearer(text, similar - 1) == nearest
        assert fresh.nearer(text, similar) is None
        assert fresh.nearest(text) == (nearest, similar)
