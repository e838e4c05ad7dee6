"""What the dates of facts mean, and how questions speak of them."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from generation import generate
from generation.blocks import Options
from generation.comparisons import Years, years_of
from generation.lexicon import Lexicon, NoWords, RelationWords, ValueWords, parse_annotations
from generation.lexicon.entries import RelationEntry, read_verb
from generation.lexicon.guesses import DateGuesser
from generation.pools import Pools
from generation.scope import Goal, Source
from generation.verbs import past
from kb import Builder, KnowledgeBase, Quantity, Year
from kb.values import read_quantity
from kopl import functions as f
from kopl.example import Example
from kopl.executor import Executor
from kopl.program import post_order
from kopl.text import read

FILTERS = ("FilterStr", "FilterNum", "FilterYear", "FilterDate")


def facts() -> KnowledgeBase:
    """Clubs with a yearly count, a rank that two lists of a year tell, and what befell them."""
    builder = Builder()
    builder.add_concept("c", "club")
    for n, name in enumerate(("Ants", "Bees", "Crows")):
        builder.add_entity(name, name, ["c"])
        for year in (2010, 2020):
            at = {"point in time": Year(year)}
            builder.add_attribute(name, "members", Quantity(100 * n + year), at)
            for place in (1, 2):
                builder.add_attribute(name, "rank", Quantity(n + place), at)
            builder.add_attribute(name, "label", f"L{n}{year}", at)
    builder.add_fact("Ants", "rival", "Bees", {"point in time": Year(2011)})
    builder.add_fact("Ants", "award received", "Bees", {"point in time": Year(2012)})
    builder.add_fact("Bees", "owner", "Crows", {"start time": Year(2013)})
    builder.add_fact("Bees", "part of", "Crows")
    return builder.build()


def test_what_dates_mean_is_told_by_names_and_facts() -> None:
    kb = facts()
    keys = {"members": "estimate", "rank": "", "label": "", "no such key": ""}
    for key, dates in keys.items():
        assert DateGuesser(kb).guess(key, relational=False) == dates, key
    relations = {"rival": "", "award received": "event", "owner": "state", "part of": ""}
    for relation, dates in relations.items():
        assert DateGuesser(kb).guess(relation, relational=True) == dates, relation


def test_annotations_say_what_dates_mean() -> None:
    given = parse_annotations(
        "relations:\n  rival: {noun: rival, dates: state, also: [{noun: enemy}]}\n"
        "keys:\n  rank: {dates: edition}\n"
    )
    lexicon = Lexicon(facts(), given)
    words = lexicon.relation("rival", "forward")
    assert words.entry.dates == "state"
    variants = lexicon.variants(words)
    assert variants is not None
    assert {one.entry.dates for one in variants.words} == {"state"}  # type: ignore[attr-defined]
    assert lexicon.key("rank").lists() == ""
    with pytest.raises(NoWords):
        lexicon.key("rank").timed()


# What stands in the program, and what each meaning of its dates must and must not say.
SAID = {
    "event": (("when was", "in 2015"), ("as of", "figures", "dated")),
    "state": (("when was", "in 2015"), ("as of", "figures", "dated")),
    "estimate": (("as of", "year", "in 2015"), ("dated", "when was that?")),
    "edition": (("figures", "date"), ("in 2015", "when", "as of")),
    "": (("date",), ("in 2015", "when", "as of", "figures")),
}


def wordings(program: str, dates: str) -> set[str]:
    """The questions of an asking rule about facts whose dates mean this."""
    from dataclasses import replace

    from generation.lexicon import KeyWords, OperatorWords
    from generation.lexicon.guesses import guess_key
    from tests.generation.test_wording import asks, name, pair, relation

    words = {
        "relation": replace(
            relation("rival", "forward"), entry=RelationEntry("rival", "rivals", dates=dates)
        ),
        "key": KeyWords("area", replace(guess_key("area"), dates=dates)),
        "value": ValueWords("5", Quantity(5)),
        "qvalue": ValueWords("2015", Year(2015)),
        "op": OperatorWords("=", Quantity(5)),
    }
    left = "L" if "(L," in program else "E"
    ends = [pair("Ants"), pair("Bees")] if "P'" in program else [name("Ants", left=left)]
    used = {word: found for word, found in words.items() if f"${word}" in program}
    derivation = asks(program, *ends, **used)
    random, found = Random(0), set()
    for _ in range(80):
        try:
            found.add(derivation.question(random))
        except NoWords:
            break
    return found


@pytest.mark.parametrize("dates", SAID)
@pytest.mark.parametrize(
    "program",
    [
        "QueryAttrUnderCondition(E, $key, point in time, $qvalue)",
        "QueryAttrQualifier(L, $key, $value, point in time)",
        "QueryRelationQualifier(P, P', $relation, point in time)",
    ],
)
def test_wordings_follow_from_what_dates_mean(program: str, dates: str) -> None:
    found = wordings(program, dates)
    if dates == "edition" and "Relation" in program:
        assert not found  # nobody asks which edition of a list has a fact
        return
    assert len(found) >= 2
    wanted, barred = SAID[dates]
    for question in found:
        usual = "in what year", "in which year", "what is the date"
        assert (
            any(one in question.lower() for one in (*usual, *wanted)) or "when" in question.lower()
        ), question
        if dates != "estimate":
            assert not any(one in question.lower() for one in barred), question


@pytest.mark.parametrize(
    ("one", "base", "said", "many"),
    [
        ("is part of", "", "was part of X", "were part of X"),
        ("exports", "", "exported X", "exported X"),
        ("has its source in", "", "had its source in X", "had their source in X"),
        ("received", "receive", "received X", "received X"),
        ("lies in", "", "lay in X", "lay in X"),
        ("was born in", "", "was born in X", "were born in X"),
    ],
)
def test_verbs_in_the_past(one: str, base: str, said: str, many: str) -> None:
    verb = read_verb(one, base)
    assert verb is not None
    assert verb.past.of_one("X") == said
    if "source" not in one:
        assert verb.past.of_many("X") == many


def test_relations_in_the_past() -> None:
    noun = RelationWords("rival", "forward", False, RelationEntry("rival", "rivals"))
    assert noun.then("X") == "that was the rival of X"
    assert noun.once("X", "Y") == "the rival of X was Y"
    other = RelationWords("rival", "backward", True, RelationEntry("rival", "rivals"))
    assert other.then("X") == "whose rivals included X"
    assert other.had("X") == "had X as a rival"
    assert other.had_many("X") == "had X as a rival"
    with pytest.raises(NoWords):
        noun.had_many("X")


@pytest.mark.parametrize(
    ("base", "said"),
    [("plan", "planned"), ("carry", "carried"), ("write", "wrote"), ("pay", "paid"),
     ("share", "shared"), ("visit", "visited")],
)  # fmt: skip
def test_the_past_of_verbs(base: str, said: str) -> None:
    assert past(base) == said


@pytest.fixture(scope="module")
def made(world: KnowledgeBase) -> list[Example]:
    return list(generate(world, 1000, 21, options=Options(sparql=False)))


def test_dated_figures_are_not_conditions_without_their_date(
    world: KnowledgeBase, made: list[Example]
) -> None:
    dated = {
        key
        for key in world.keys
        if DateGuesser(world).guess(key, relational=False) == "estimate" and key != "population"
    }
    assert len(dated) > 15
    found = 0
    for example in made:
        calls = list(post_order(example.program))
        for call in calls:
            if call.function.name in FILTERS and call.arguments[0] in dated:
                (outer,) = [other for other in calls if call in other.inputs]
                assert outer.function.name == "QFilterYear", example.question
                assert outer.arguments[0] == "point in time"
                found += 1
    assert found > 15  # figures describe few things, as people name things by them seldom


def test_estimates_are_of_a_year_not_before_or_after_it(
    world: KnowledgeBase, made: list[Example]
) -> None:
    lexicon, found = Lexicon(world), 0
    for example in made:
        for call in post_order(example.program):
            if call.function.name.startswith("QFilter") and call.arguments[0] == "point in time":
                (fact,) = call.inputs
                of_key = fact.function.name in FILTERS
                entry = (
                    lexicon.key(fact.arguments[0]).entry
                    if of_key
                    else lexicon.relation(fact.arguments[0], "forward").entry
                )
                if entry.dates in ("estimate", "edition"):
                    assert call.arguments[2] == "=", example.question
                    found += 1
    assert found > 15


def test_figures_of_a_time_are_told_in_the_past(world: KnowledgeBase, made: list[Example]) -> None:
    lexicon, found = Lexicon(world), 0
    for example in made:
        call = example.program
        if call.function is f.QUERY_ATTR_QUALIFIER and call.arguments[2] == "point in time":
            said = lexicon.value(read_quantity(call.arguments[1])).plain()
            assert f" is {said}" not in example.question
            assert f" are {said}" not in example.question
            found += 1
    assert found > 50


# --- years -----------------------------------------------------------------------------------


def test_a_year_is_full_when_it_came_too_often() -> None:
    years = Years(100)
    program = read('QueryAttrUnderCondition(Find("2023"), "area", "point in time", "2023-05-06")')
    assert not years.is_full(2023)
    for _ in range(3):
        years.count(program, "2019")
    assert years.is_full(2023)  # names are no dates
    assert not years.is_full(2020)
    assert not Years(2).is_full(2023)


def test_years_come_about_as_often_whatever_number_of_facts_they_have() -> None:
    builder = Builder()
    builder.add_concept("c", "club")
    for n in range(300):
        builder.add_entity(f"c{n}", f"Club {n}", ["c"])
        at = {"point in time": Year(2023 if n >= 30 else 2000 + n % 3)}
        builder.add_attribute(f"c{n}", "members", Quantity(n + 7), at)
    kb = builder.build()
    source = Source(kb, Random(1), Lexicon(kb), lambda *_: pytest.fail("nothing is drawn"))
    goal = Goal(None, "any", ("point in time", "any"))
    drawn = Counter(
        str(source.qualifier(("literal", source.literal("members", "any", goal)),
                             "point in time", "any")[1])
        for _ in range(400)
    )  # fmt: skip
    assert set(drawn) == {"2000", "2001", "2002", "2023"}
    assert max(drawn.values()) < 300  # of 270 in 300 facts


def test_no_year_is_in_all_questions(made: list[Example]) -> None:
    found = Counter(year for e in made for year in years_of(e.program, e.answer or ""))
    ((_, most),) = found.most_common(1)
    assert found.total() > 300
    assert most < 0.11 * found.total(), found.most_common(5)


# --- choices among figures of several dates -------------------------------------------------------

# Clubs with their figures by year; the one that is ahead of all by the last ones, if it is so by
# those of any time.
GROWING = ({"Ants": (10, 90), "Bees": (20, 30)}, "Ants", None)
OVERTAKEN = ({"Ants": (99, 20), "Bees": (10, 30)}, None, None)
ONE_EACH = ({"Ants": (5,), "Bees": (7,)}, "Bees", "Ants")
ALONE = ({"Ants": (5, 6)}, None, None)


@pytest.mark.parametrize(("figures", "largest", "smallest"), [GROWING, OVERTAKEN, ONE_EACH, ALONE])
def test_a_choice_is_clear_where_what_is_now_says_the_same(
    figures: dict[str, tuple[int, ...]], largest: str | None, smallest: str | None
) -> None:
    builder = Builder()
    builder.add_concept("c", "club")
    for name, own in figures.items():
        builder.add_entity(name, name, ["c"])
        for year, figure in enumerate(own, 2020):
            at = {"point in time": Year(year)} if len(own) > 1 else {}
            builder.add_attribute(name, "members", Quantity(figure), at)
    kb = builder.build()
    pools, executor = Pools(kb), Executor(kb)
    clubs = kb.instances_of("club")
    for word, first in (("largest", largest), ("smallest", smallest)):
        assert pools.is_clear(clubs, "members", word == "largest") == (first is not None)
        if first is not None:
            program = f'SelectAmong(FilterConcept(FindAll(), "club"), "members", "{word}")'
            assert executor.denote(read(program)) == [first]


def test_superlatives_are_asked_of_figures_that_change(world: KnowledgeBase) -> None:
    keys = Counter(
        call.arguments[0]
        for example in generate(world, 300, 1, options=Options(profile="people"))
        for call in post_order(example.program)
        if call.function is f.SELECT_AMONG
    )
    assert keys.keys() & {"population", "GDP per person", "life expectancy", "value of exports"}
