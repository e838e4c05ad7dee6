"""Several wordings of one name: reading them, their forms, and drawing among them."""

from __future__ import annotations

from random import Random

import pytest

from generation.derivation import Derivation
from generation.lexicon import (
    ComparisonWords,
    ConceptWords,
    Direction,
    KeyWords,
    Lexicon,
    NameWords,
    NoWords,
    OperatorWords,
    RelationWords,
    ValueWords,
    Words,
    parse_annotations,
    say,
)
from generation.rules_file import read_grammar
from kb import Builder, KnowledgeBase, Quantity, ReadError
from kopl import functions as f
from kopl.program import Call

WORDS = """\
relations:
  capital:
    noun: capital
    tail question:
    - where does the government of {} sit
    - what do they call the capital of {}?
    head question: what is {} the capital of
    keyword: [capital, capital city]
    dates: state
    complete: yes
    also:
    - {noun: seat of government, nouns: seats of government}
    - {backward: is governed from}
    - tail question: from where is {} run
  place of birth:
    backward: was born in
    also: [birthplace]
keys:
  area:
    noun: area
    question: ["how large is {}", "how big is {}"]
    adjective: large
    dates: estimate
    complete: no
    also:
    - surface
    - {noun: extent, comparison: great}
    - {adjective: extensive, how: vast}
qualifier keys:
  start time:
    question: [when did that start, since when]
    also: [first day, {given: from}]
units:
  metre: {also: [{one: m, many: m}]}
concepts:
  city: {also: [town, {noun: metropolis, nouns: metropolises}]}
"""


@pytest.fixture(scope="module")
def lexicon(lands: KnowledgeBase) -> Lexicon:
    return Lexicon(lands, parse_annotations(WORDS, "my.yaml"))


# --- reading ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("keys:\n  area: {also: surface}", "line 2: keys: area: also: write a list"),
        ("keys:\n  area: {also: []}", "line 2: keys: area: also: write a list"),
        ("keys:\n  area:\n    also: [{dates: state}]", "keys: area: also: there is no 'dates'"),
        ("keys:\n  area:\n    also:\n    - {question: how}", "line 4: keys: area: also: write {}"),
        ("keys:\n  area:\n    also:\n    - {}", "line 4: keys: area: also: a further wording is"),
        ("concepts:\n  city:\n    also:\n    - {nouns: towns}", "wording is a text, or has noun"),
        ("units:\n  metre:\n    also:\n    - {many: m}", "wording is a text, or has one"),
        ("keys:\n  area: {question: []}", "question: the list is empty"),
        ("keys:\n  area: {question: [[how]]}", "question: a text was expected"),
        ("keys:\n  area: {question: ['how big is {}', how]}", "write {} where stands"),
        ("keys:\n  area: {dates: year}", "event or state or estimate or edition was expected"),
        ("keys:\n  area: {complete: forward}", "yes or no or partly was expected, not 'forward'"),
        ("relations:\n  capital: {complete: all}", "yes or no or forward or backward was"),
        ("relations:\n  capital: {tail question: who}", "tail question: write {} where stands"),
    ],
)  # fmt: skip
def test_malformed(text: str, message: str) -> None:
    with pytest.raises(ReadError) as caught:
        parse_annotations(text, "my.yaml")
    assert str(caught.value).startswith("my.yaml: line ")
    assert message in str(caught.value)


def test_entries_say_what_dates_mean_and_whether_all_is_there(lexicon: Lexicon) -> None:
    capital = lexicon.relation("capital", "forward").entry
    assert (capital.dates, capital.complete) == ("state", "yes")
    area = lexicon.key("area").entry
    assert (area.dates, area.complete) == ("estimate", "no")
    assert lexicon.relation("member of", "backward").entry.complete == ""


def _all(lexicon: Lexicon, words: Words, form: str, *texts: str) -> list[str]:
    """What all wordings say in a form."""
    found = lexicon.variants(words)
    assert found is not None
    return [say(found.words[at], form, *texts) for at in found.having((form or "plain",))]


def test_what_further_wordings_say(lexicon: Lexicon) -> None:
    capital = lexicon.relation("capital", "forward")
    assert _all(lexicon, capital, "noun", "X") == [
        "the capital of X",
        "the seat of government of X",
    ]
    assert _all(lexicon, capital, "asked", "X") == [
        "where does the government of X sit",
        "from where is X run",
        "what do they call the capital of X",
    ]
    assert _all(lexicon, capital, "keyword") == ["capital", "seat of government", "capital city"]
    governed = lexicon.relation("capital", "backward")
    assert _all(lexicon, governed, "that", "X") == [
        "whose capital is X",
        "whose seat of government is X",
        "that is governed from X",
    ]
    assert _all(lexicon, governed, "sought", "X") == ["what is X the capital of"]
    area = lexicon.key("area")
    assert _all(lexicon, area, "") == ["area", "surface", "extent"]
    assert _all(lexicon, area, "asked", "X") == ["how large is X", "how big is X"]
    assert _all(lexicon, area, "how") == ["large", "vast"]
    assert _all(lexicon, area, "a") == ["an area", "a surface", "an extent"]
    larger = lexicon.comparison("greater", "area")
    assert _all(lexicon, larger, "") == ["larger", "larger", "greater", "larger", "larger"]
    assert _all(lexicon, larger, "alone") == ["larger", "more extensive"]
    start = lexicon.qualifier("start time")
    assert _all(lexicon, start, "question") == ["when did that start", "since when"]
    assert _all(lexicon, start, "given") == ["with the start time", "with the first day", "from"]
    assert _all(lexicon, lexicon.value(Quantity(5.0, "metre")), "") == ["5 metres", "5 m"]
    assert _all(lexicon, lexicon.concept("city"), "many") == ["cities", "towns", "metropolises"]
    assert lexicon.variants(lexicon.name("Dunmore")) is None
    assert lexicon.variants(lexicon.relation("member of", "forward")) is None


# --- forms -----------------------------------------------------------------------------------


def _relation(text: str, direction: Direction = "forward", several: bool = False) -> RelationWords:
    return RelationWords(text, direction, several)


def test_forms_of_relations() -> None:
    capital, language = _relation("capital"), _relation("official language", several=True)
    border, lyrics = _relation("shares border with"), _relation("drafted by")
    assert capital.plainly() == capital.keyword() == "capital"
    assert capital.owned("Norway") == "Norway's capital"
    assert capital.owned("the Netherlands") == "the Netherlands' capital"
    assert language.many() == "official languages"
    assert language.listed("X") == "the official languages of X"
    assert language.owned_many("Laos") == "Laos's official languages"
    assert capital.is_("X", "Y") == capital.tail("X", "Y") == "is Y the capital of X"
    assert language.is_("X", "Y") == "is Y an official language of X"
    assert _relation("partner", several=True).is_("X", "garments") == "are garments partners of X"
    assert border.is_("X", "Y") == border.head("X", "Y") == "does X share a border with Y"
    assert border.tail("X", "Y") == "does Y share a border with X"
    assert lyrics.head("X", "Y") == "was X drafted by Y"
    assert lyrics.tail("X", "Y") == "did Y draft X"
    assert _relation("located in", "backward").short("X") == "located in X"
    lacking = [
        (capital, "many", 0), (capital, "listed", 1), (capital, "owned_many", 1),
        (capital, "head", 2), (capital, "asked", 1), (capital, "sought", 1), (capital, "short", 1),
        (border, "plainly", 0), (border, "keyword", 0), (_relation("located in"), "tail", 2),
        (_relation("capital", "backward"), "keyword", 0),
        (_relation("part of", "backward"), "short", 1),
    ]  # fmt: skip
    for words, form, takes in lacking:
        with pytest.raises(NoWords):
            getattr(words, form)(*("X", "Y")[:takes])
    for owner in ("the country that borders X", "the mouth of the river", "Ada, the one born"):
        with pytest.raises(NoWords):
            capital.owned(owner)


def test_forms_of_keys(lexicon: Lexicon) -> None:
    area = lexicon.key("area")
    assert area.owned("Norway") == "Norway's area"
    assert area.over() == "larger than"
    assert area.under() == "smaller than"
    assert KeyWords("length").how() == "long"
    more, less = (OperatorWords(sign, Quantity(5.0)) for sign in "><")
    assert more.over() == less.under() == ""
    longest = ComparisonWords("largest", "length")
    assert (longest.bare(), longest.alone()) == ("longest", "the longest")
    assert ComparisonWords("less", "number of seats").count() == "fewer"
    for words, form, takes in (
        (more, "under", 0), (less, "over", 0), (KeyWords("name"), "over", 0),
        (KeyWords("name"), "how", 0), (KeyWords("inception"), "asked", 1),
        (longest, "count", 0), (KeyWords("date of birth"), "owned", 1),
    ):  # fmt: skip
        with pytest.raises(NoWords):
            getattr(words, form)(*("X",)[:takes])


# --- drawing ---------------------------------------------------------------------------------

RULES = """\
ROOT[SelectAmong] -> SelectAmong(FilterConcept(FindAll(), $concept), $key, $op)
    | which {concept} has the {op} {key}?
    | which {concept} is {op.alone}{key.unsaid}?
ROOT[QueryName] -> QueryName(Relate(N, $relation, $direction))
    | {relation.asked N}?
    | who is {relation.noun N}?
ROOT[Count] -> Count(Relate(N, $relation, forward))
    | what is the number of those {relation.that N}?
N -> Find($name)
    | {name}
"""


def derivation(lexicon: Lexicon, at: int, near: str = "", **words: Words) -> Derivation:
    rules = read_grammar(RULES).rules
    name = {"name": ValueWords(near, near)}
    part = Derivation(rules["N"][0], Call(f.FIND_ALL), dict(name), {}, 0)
    parts = {"N": part} if near else {}
    return Derivation(rules["ROOT"][at], Call(f.FIND_ALL), words, parts, 0, lexicon=lexicon)


def _drawn(found: Derivation) -> set[str]:
    return {found.question(Random(seed)) for seed in range(200)}


def test_a_key_and_its_comparison_are_drawn_together(lexicon: Lexicon) -> None:
    found = derivation(
        lexicon, 0, concept=ConceptWords("city"), key=KeyWords("area"),
        op=ComparisonWords("largest", "area"),
    )  # fmt: skip
    superlatives = (
        "has the largest area", "has the largest surface", "has the greatest extent",
        "is the largest", "is the most extensive",
    )  # fmt: skip
    nouns = ("city", "town", "metropolis")
    assert _drawn(found) == {f"Which {noun} {end}?" for noun in nouns for end in superlatives}
    assert found.question(None) == "Which city has the largest area?"
    assert [found.question(Random(3)) for _ in range(3)] == [found.question(Random(3))] * 3


def test_a_wording_without_the_form_gives_way(lexicon: Lexicon) -> None:
    found = derivation(
        lexicon, 1, "Norway", relation=RelationWords("capital", "forward", False),
        direction=Words("forward"),
    )  # fmt: skip
    assert _drawn(found) == {
        "Where does the government of Norway sit?",
        "From where is Norway run?",
        "What do they call the capital of Norway?",
        "Who is the capital of Norway?",
        "Who is the seat of government of Norway?",
    }
    birth = RelationWords("place of birth", "forward", False)
    found.words["relation"] = birth
    assert _drawn(found) == {"Who is the birthplace of Norway?"}
    found.words["relation"] = RelationWords("member of", "forward", False)
    with pytest.raises(NoWords):
        found.question(Random(1))


def test_a_form_that_what_is_near_forbids_gives_way(lexicon: Lexicon) -> None:
    """What belongs to is no sentence about a description; the noun of another wording is."""
    given = parse_annotations(
        "relations:\n  member of: {several: true, backward: belongs to, also: [{noun: club}]}"
    )
    words = Lexicon(lexicon.kb, given)
    relation = RelationWords("member of", "forward", True)
    for name, said in (
        ("X", {"that X belongs to", "that is a club of X"}),
        ("the one that is X", {"that is a club of the one that is X"}),
    ):
        found = derivation(words, 2, name, relation=relation)
        assert _drawn(found) == {f"What is the number of those {clause}?" for clause in said}


# --- aliases ---------------------------------------------------------------------------------


def countries() -> KnowledgeBase:
    builder = Builder()
    builder.add_concept("country", "country")
    builder.add_concept("language", "language")
    builder.add_entity("gb", "United Kingdom", ["country"], ["UK", "Britain", "British", "the UK"])
    builder.add_attribute("gb", "demonym", "British")
    builder.add_entity("cd", "DR Congo", ["country"], ["Congo", "Zaire"])
    builder.add_entity("cg", "Congo Republic", ["country"], ["Congo"])
    builder.add_entity("nl", "Netherlands", ["country"])
    builder.add_entity("de", "German", ["language"], ["Deutsch"])
    for id in ("j1", "j2"):
        builder.add_entity(id, "Java", ["country"], [f"{id} land"])
    builder.add_entity("do", "Dominican Republic", ["country"], ["The Dominican", "Quisqueya"])
    builder.add_attribute("do", "demonym", "Dominican")
    builder.add_entity("bs", "Bahamas", ["country"], ["The Bahamas"])
    builder.add_entity("h", "The Hague", [], ["Hague", "Den Haag"])
    builder.add_entity("p", "Paul Airport West Airport", [], ["Paul Airport Airport", "Paul West"])
    builder.add_entity("w", "Walla Walla City Airport", [], ["Walla Walla Airport"])
    builder.add_entity("m", "Marcos, Jr.", [], ["Marcos,", "& Marcos", "Bongbong", "Yes!"])
    builder.add_entity("o", "Oslo", [], ["O\ufffdlo", "...", "Christiania"])
    builder.add_entity("k", "Cocos Islands", ["country"], ["Islands", "Keeling"])
    return builder.build()


ALIASES = """\
keys: {demonym: {called: false}}
concepts: {language: {called: false}}
names: {UK: {the: true}, Islands: {called: false}}
"""


@pytest.fixture(scope="module")
def called() -> Lexicon:
    return Lexicon(countries(), parse_annotations(ALIASES, "my.yaml"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("United Kingdom", ["the United Kingdom", "the UK", "Britain"]),  # no demonym
        ("DR Congo", ["DR Congo", "Zaire"]),  # what another one is called, too, is not said
        ("Congo Republic", ["the Congo Republic"]),
        ("Netherlands", ["the Netherlands"]),
        ("German", ["German"]),  # languages are not called by aliases
        ("Java", ["Java"]),  # nor is one of two
        ("Dominican Republic", ["the Dominican Republic", "Quisqueya"]),  # no adjective
        ("Bahamas", ["the Bahamas"]),  # which are The Bahamas
        ("The Hague", ["The Hague", "Den Haag"]),
        # What was left of a longer name is not said.
        ("Paul Airport West Airport", ["Paul Airport West Airport", "Paul West"]),
        ("Walla Walla City Airport", ["Walla Walla City Airport", "Walla Walla Airport"]),
        ("Marcos, Jr.", ["Marcos, Jr.", "Bongbong", "Yes!"]),
        ("Oslo", ["Oslo", "Christiania"]),  # what nobody can read is not said
        ("Cocos Islands", ["the Cocos Islands", "Keeling"]),  # kept silent by its own field
    ],
)
def test_what_things_are_called(called: Lexicon, name: str, said: list[str]) -> None:
    assert [say(words, "called") for words in called.wordings(NameWords(name))] == said


def test_aliases_stand_only_where_a_rule_asks_for_them(called: Lexicon) -> None:
    grammar = read_grammar(
        "ROOT[A] -> QueryName(Find($name))\n    | {name.called}? {name.called}\n"
        "    | canonical: {name}?\n"
        "ROOT[B] -> Count(Find($name))\n    | {name}, {name.bare}?\n"
    )
    program = Call(f.QUERY_NAME, (Call(f.FIND, (), ("United Kingdom",)),))
    first, second = (
        Derivation(rule, program, {"name": NameWords("United Kingdom")}, {}, 0, lexicon=called)
        for rule in grammar.rules["ROOT"]
    )
    drawn = {first.question(Random(seed)) for seed in range(40)}
    assert drawn == {
        "The United Kingdom? the United Kingdom", "The UK? the UK", "Britain? Britain",
    }  # fmt: skip
    assert first.question(None) == "The United Kingdom?"
    assert {second.question(Random(seed)) for seed in range(40)} == {
        "The United Kingdom, United Kingdom?"
    }


def test_the_article_of_an_alias_may_be_told(called: Lexicon) -> None:
    with pytest.raises(ReadError, match="is the name of no entity"):
        Lexicon(countries(), parse_annotations("names: {EU: {the: true}}", "my.yaml"))
    text = "names: {DR Congo: {the: true}, Zaire: {adjective: Zairian}}"  # tells none of its own
    told = Lexicon(countries(), parse_annotations(text, "my.yaml"))
    said = [say(words, "called") for words in told.wordings(NameWords("DR Congo"))]
    assert said == ["the DR Congo", "the Zaire"]


def test_a_key_has_another_noun_beside_its_comparison(lands: KnowledgeBase) -> None:
    text = """\
keys:
  area:
    compared: none
    also: [surface, {compared: expanse, comparison: wide}, {compared: land, comparison: none}]
"""
    with pytest.raises(ReadError):  # a key is always compared by some word
        parse_annotations(text)
    told = Lexicon(
        lands, parse_annotations(text.replace(", {compared: land, comparison: none}", ""))
    )
    area, largest = KeyWords("area"), ComparisonWords("largest", "area")
    compared = derivation(told, 0, concept=ConceptWords("city"), key=area, op=largest)
    assert _drawn(compared) == {"Which city has the widest expanse?", "Which city is the largest?"}
    assert compared.question(None) == "Which city has the largest area?"
    assert _all(told, told.key("area"), "") == ["area", "surface"]
    inherited = told.wordings(told.key("area"))[1].entry  # type: ignore[attr-defined]
    assert inherited.compared == ""


def test_a_kind_beside_a_name_is_its_plain_noun(lexicon: Lexicon) -> None:
    assert _all(lexicon, lexicon.concept("city"), "kind") == ["city"]
