"""English inflection and the wording of relations, keys, values and comparisons."""

from __future__ import annotations

import pytest

from generation import english
from generation.lexicon import (
    ComparisonWords,
    ConceptWords,
    Direction,
    KeyWords,
    NoWords,
    OperatorWords,
    QualifierWords,
    RelationWords,
    ValueWords,
)
from generation.lexicon.guesses import guess_concept, guess_relation
from kb import Date, Quantity, Value, Year


@pytest.mark.parametrize(
    ("singular", "plural"),
    [
        ("country", "countries"),
        ("member state of NATO", "member states of NATO"),
        ("city with more than a million people", "cities with more than a million people"),
        ("body of water", "bodies of water"),
        ("person", "people"),
        ("island state", "island states"),
        ("church", "churches"),
        ("highway", "highways"),
        ("Nobel laureate in physics", "Nobel laureates in physics"),
    ],
)
def test_plural(singular: str, plural: str) -> None:
    assert english.plural(singular) == plural


@pytest.mark.parametrize(
    "phrase",
    ["an area", "a university", "an ISO code", "a unit", "a European", "an hour", "a GDP",
     "an uninhabited territory", "foreign exchange reserves"],
)  # fmt: skip
def test_article(phrase: str) -> None:
    bare = phrase.removeprefix("an ").removeprefix("a ")
    assert english.with_article(bare) == phrase


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Quantity(300_000, "square kilometre"), "300,000 square kilometres"),
        (Quantity(1, "metre"), "1 metre"),
        (Quantity(1234), "1234"),
        (Quantity(-12345.5), "-12,345.5"),
        (Quantity(7.9, "gram per cubic centimetre"), "7.9 grams per cubic centimetre"),
        (Quantity(2.1, "child per woman"), "2.1 children per woman"),
        (Quantity(3, "percent"), "3 percent"),
        (Quantity(219_090_000_000, "dollar"), "219.09 billion dollars"),
        (Quantity(379_000_000, "dollar"), "379 million dollars"),
        (Quantity(379_000_001, "dollar"), "379,000,001 dollars"),
        (Quantity(-2_500_000, "dollar"), "-2.5 million dollars"),
        (Quantity(3_000_000), "3,000,000"),
        (Quantity(8_100_000_000), "8.1 billion"),
        (Quantity(8_100_000_123), "8,100,000,123"),
        (Quantity(4, "per thousand"), "4 per thousand"),
        (Year(1921), "1921"),
        (Date(1921, 7, 4), "4 July 1921"),
        ("white", "white"),
    ],
)
def test_values(value: Value, said: str) -> None:
    assert english.say(value) == said


@pytest.mark.parametrize(
    "name", ["United States", "Solomon Islands", "University of Oxford", "Ottoman Empire"]
)
def test_names_with_the(name: str) -> None:
    assert english.name_in_sentence(name) == f"the {name}"
    assert english.name_in_sentence("Norway") == "Norway"
    assert english.name_in_sentence("The Netherlands") == "The Netherlands"


@pytest.mark.parametrize(
    ("relation", "direction", "several", "that", "do"),
    [
        ("capital", "forward", False, "that is the capital of X", None),
        ("capital", "backward", False, "whose capital is X", "have X as their capital"),
        ("official language", "forward", True, "that is an official language of X",
         "are official languages of X"),
        ("export partner", "backward", True, "whose export partners include X",
         "have X as an export partner"),
        ("located in", "backward", False, "that is located in X", "are located in X"),
        ("located in", "forward", False, "that X is located in", "is X located in"),
        ("member of", "backward", True, "that is a member of X", "are members of X"),
        ("member of", "forward", True, "that has X as a member", "is X a member of"),
        ("shares border with", "backward", True, "that shares a border with X",
         "share a border with X"),
        ("decays to", "forward", False, "that X decays to", "does X decay to"),
        ("place of birth", "backward", False, "that was born in X", "were born in X"),
        ("award received", "forward", False, "that X received", "did X receive"),
        ("notable works", "backward", True, "whose notable works include X",
         "have X as a notable work"),
    ],
)  # fmt: skip
def test_relations(
    relation: str, direction: Direction, several: bool, that: str, do: str | None
) -> None:
    words = RelationWords(relation, direction, several)
    assert words.that("X") == that
    if do is None:
        with pytest.raises(NoWords):
            words.do("X")
    else:
        assert words.do("X") == do


def test_a_name_in_the_plural_is_its_plural() -> None:
    assert guess_concept("films").nouns == "films"
    assert guess_relation("notable works").nouns == "notable works"
    assert guess_relation("created", "works").nouns == "works"
    assert guess_relation("bus").nouns == "buses"


def test_relations_as_facts() -> None:
    capital, partner = (RelationWords(r, "forward", r != "capital") for r in ("capital", "partner"))
    assert capital.fact("X", "Y") == "the capital of X is Y"
    assert capital.told("X", "Y") == "Y is the capital of X"
    assert partner.fact("X", "Y") == "Y is a partner of X"
    assert partner.fact("X", "garments") == "garments are partners of X"
    assert partner.been("X", "garments") == "have garments been partners of X"
    assert RelationWords("member of", "forward", True).fact("X", "Y") == "X is a member of Y"
    assert RelationWords("anthem", "forward", False).been("X", "Y") == "has Y been the anthem of X"
    assert RelationWords("award received", "forward", True).was("X", "Y") == "did X receive Y"


def test_comparisons() -> None:
    assert OperatorWords("=", Year(1990)).plain() == "in"
    assert OperatorWords("<", Date(1990, 1, 1)).plain() == "before"
    assert OperatorWords(">", Quantity(3)).plain() == "greater than"
    assert OperatorWords("=", Quantity(3)).of() == "of"
    assert OperatorWords("=", Quantity(3)).table() == "equal to"
    assert OperatorWords("=", Date(1990, 1, 1)).table() == "on"
    assert OperatorWords("!=", Year(1990)).table() == "not in"
    assert OperatorWords("=", Year(1990)).bracket() == ""
    assert OperatorWords("!=", Year(1990)).time() == "in a year other than"
    assert OperatorWords("<", Quantity(3)).count() == "fewer than"
    assert ComparisonWords("largest", "area").plain() == "largest"
    assert ComparisonWords("less", "birth rate").plain() == "lower"
    assert ComparisonWords("less", "birth rate").table() == "smaller"
    assert ComparisonWords("greater", "length").alone() == "longer"
    assert ComparisonWords("smallest", "length").alone() == "the shortest"
    with pytest.raises(NoWords):
        ComparisonWords("greater", "birth rate").alone()


def test_comparison() -> None:
    assert english.comparison("large") == ("larger", "largest", "smaller", "smallest")
    assert english.comparison("heavy") == ("heavier", "heaviest", "lighter", "lightest")
    assert english.comparison("populous")[2:] == ("less populous", "least populous")


def test_keys_and_values() -> None:
    assert KeyWords("carbon dioxide emissions").verb() == "are"
    assert KeyWords("value of exports").verb() == "is"
    assert KeyWords("date of birth").question("X") == "when was X born"
    assert KeyWords("number of seats").counted() == "seats"
    with pytest.raises(NoWords):
        KeyWords("number of seats").a()  # never "a number of seats of 5"
    assert QualifierWords("separated from").given() == "separated from"
    assert QualifierWords("separated from").question() == "what was it separated from"
    assert QualifierWords("allotrope").given() == "with the allotrope"
    assert QualifierWords("start time").compared() == "starting"
    assert ValueWords("2019", Year(2019)).at() == "in 2019"
    assert ValueWords("2019-05-01", Date(2019, 5, 1)).at() == "on 1 May 2019"
    with pytest.raises(NoWords):
        QualifierWords("point in time").other()
    with pytest.raises(NoWords):
        ConceptWords("member state of NATO").short()


def test_capital() -> None:
    assert english.capitalised("cabbages are") == "Cabbages are"
    assert english.capitalised("iodine-113 decays") == "Iodine-113 decays"
    assert english.capitalised("iPhone is") == "iPhone is"
    assert english.capitalised("") == ""


@pytest.mark.parametrize(
    ("text", "tidied"),
    [
        ("is  it , or not ?", "is it, or not?"),
        (
            "Bursa, the one whose time zone is X, or Oslo?",
            "Bursa, the one whose time zone is X, or Oslo?",
        ),
        (
            "Oslo or Bursa, the one whose time zone is X,?",
            "Oslo or Bursa, the one whose time zone is X?",
        ),
        ("of Bursa, the one in X,, what is it?", "of Bursa, the one in X, what is it?"),
        ("( a )", "(a)"),
        ("the lake, the one in X, (in 1990), is", "the lake, the one in X (in 1990), is"),
    ],
)
def test_tidy(text: str, tidied: str) -> None:
    assert english.tidy(text) == tidied
