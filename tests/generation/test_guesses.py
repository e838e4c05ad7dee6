"""How names of other knowledge bases read when nobody has told: by classes of names."""

from __future__ import annotations

import pytest

from generation.lexicon import Direction, NoWords, QualifierWords, RelationWords, guesses
from generation.lexicon.phrases import parse, readable


@pytest.mark.parametrize(
    ("relation", "fact", "of_the_tail"),
    [
        ("sells", "X sells Y", "is sold by X"),
        ("seen with", "X was seen with Y", ""),
        ("married to", "X is married to Y", ""),
        ("died from", "X died from Y", ""),
        ("stars in", "X stars in Y", ""),
        ("follows", "X follows Y", "is followed by X"),
        ("cites work", "X cites Y", "is cited by X"),
        ("drafted by", "X was drafted by Y", "drafted X"),
        ("owned by", "X is owned by Y", "owns X"),
        ("nominated for", "X was nominated for Y", ""),
        ("named after", "X is named after Y", ""),
        ("physically interacts with", "X physically interacts with Y", ""),
        ("contains administrative territorial entity", "X contains Y", "is contained by X"),
        ("located in or next to body of water", "X is located in or next to Y", ""),
        ("said to be the same as", "X is said to be the same as Y", ""),
        ("licensed to broadcast to", "X is licensed to broadcast to Y", ""),
        ("set in period", "X is set in Y", ""),
        ("uses capitalization for", "X uses capitalization for Y", ""),
        ("different from", "X is different from Y", ""),
        ("indigenous to", "X is indigenous to Y", ""),
        ("present in work", "X is present in Y", ""),
        ("member of sports team", "X is a member of Y", "has X as a member"),
        ("part of the series", "X is part of Y", "has X as a part"),
        ("opposite of", "X is the opposite of Y", "has X as its opposite"),
        ("is capital of", "X is the capital of Y", ""),
        ("this taxon is source of", "X is a source of Y", ""),
        ("archives at", "X has archives at Y", ""),
        ("allergic to", "X is allergic to Y", ""),
        ("older than", "X is older than Y", ""),
        ("born in", "X was born in Y", ""),
        ("wrote music for", "X wrote music for Y", ""),
        ("insured by", "X was insured by Y", "insured X"),
        ("had as last meal", "X had Y as last meal", ""),
        ("has effect", "Y is an effect of X", ""),
        ("position held", "Y is a position held by X", ""),
        ("symptoms", "Y is a symptom of X", ""),
        ("twinned administrative body", "Y is a twinned administrative body of X", ""),
    ],
)
def test_relations(relation: str, fact: str, of_the_tail: str) -> None:
    words = RelationWords(relation, "forward", True)
    assert words.fact("X", "Y") == fact
    if of_the_tail:
        assert words.that("X") == f"that {of_the_tail}"


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_no_name_that_is_a_verb_is_a_noun(direction: Direction) -> None:
    for relation in ("sells", "seen with", "married to", "died from", "stars in"):
        words = RelationWords(relation, direction, True)
        assert words.entry.noun == ""
        with pytest.raises(NoWords):
            words.noun("X")


@pytest.mark.parametrize(
    ("name", "given", "question"),
    [
        ("follows", "following", "what does it follow"),
        ("replaces", "replacing", "what does it replace"),
        ("replaced by", "replaced by", "who or what was it replaced by"),
        ("for work", "for", "what is it for"),
        ("statement is subject of", "being the subject of", "what is it the subject of"),
        ("statement disputed by", "disputed by", "who or what was it disputed by"),
        ("determination method", "with the determination method",
         "what is the determination method"),
        ("applies to part", "applying to", "what does it apply to"),
        ("nominated for", "nominated for", "what was it nominated for"),
        ("together with", "together with", "who or what is it together with"),
        ("excluding", "excluding", "what does it exclude"),
        ("has cause", "with the cause", "what is the cause"),
        ("object has role", "with the role", "what is the role"),
        ("valid in period", "valid in", "when is it valid"),
        ("valid in place", "valid in", "where is it valid"),
        ("located on street", "located on", "where is it located"),
        ("named as", "named as", "how was it named"),
        ("educated at", "educated at", "where was it educated"),
        ("nominee", "with the nominee", "who is the nominee"),
        ("manufacturer", "with the manufacturer", "who or what is the manufacturer"),
        ("sourcing circumstances", "with the sourcing circumstances",
         "what are the sourcing circumstances"),
    ],
)  # fmt: skip
def test_qualifiers(name: str, given: str, question: str) -> None:
    words = QualifierWords(name)
    assert (words.given(), words.question()) == (given, question)
    assert guesses.qualifier(name).doubt == ""


@pytest.mark.parametrize("name", ["of", "student of", "central bank/issuer", "directedBy"])
def test_doubtful_qualifiers(name: str) -> None:
    assert guesses.qualifier(name).doubt


@pytest.mark.parametrize(
    "name",
    ["studies", "territory overlaps", "history of topic", "director/manager", "starring",
     "wrote", "may treat", "beats", "has won prize",
     "field of this occupation", "has works in the collection",
     "country for sport", "dissertation submitted to", "/film/film/directed_by", "P31", "hasChild"],
)  # fmt: skip
def test_doubtful_relations(name: str) -> None:
    assert guesses.relation(name).doubt


@pytest.mark.parametrize(
    ("name", "noun", "doubted"),
    [
        ("located at street address", "street address", False),
        ("has population", "population", False),
        ("copies sold", "copies sold", False),
        ("name in native language", "name in native language", False),
        ("born", "date of birth", True),
        ("sells", "sells", True),
        ("birth_date", "birth date", True),
    ],
)
def test_keys(name: str, noun: str, doubted: bool) -> None:
    guess = guesses.key(name)
    assert (guess.entry.noun, bool(guess.doubt)) == (noun, doubted)


@pytest.mark.parametrize("name", ["jazz music", "agnosticism", "computer hardware"])
def test_concepts_that_nobody_counts(name: str) -> None:
    entry = guesses.guess_concept(name)
    assert (entry.noun, entry.nouns, entry.a, entry.counted) == (name, name, name, False)
    assert guesses.guess_concept("prism").counted is None


def test_keys_of_what_happened() -> None:
    for name, said in (("born", "was born"), ("died", "died"), ("published", "was published")):
        event = guesses.key(name).entry.event
        assert event is not None and event.one == said


@pytest.mark.parametrize(
    ("name", "text", "coded"),
    [
        ("birthDate", "birth date", True),
        ("/people/person/place_of_birth", "place of birth", True),
        ("has dialect (DEPRECATED)", "has dialect", False),
        ("page(s)", "page", False),
        ("EThOS thesis ID", "EThOS thesis ID", False),
        ("InChI", "InChI", True),
        ("director/manager", "director or manager", True),
        ("capital", "capital", False),
    ],
)
def test_readable(name: str, text: str, coded: bool) -> None:
    assert readable(name) == (text, coded)


@pytest.mark.parametrize("name", ["", " ", "of", "of of", "is", "by", "-", "7", "é", "a" * 500])
def test_every_text_has_a_guess(name: str) -> None:
    assert parse(name).text is not None
    relation = guesses.relation(name).entry
    assert relation.noun or relation.backward or relation.forward or not name.strip()
    guesses.qualifier(name)
    guesses.key(name)
