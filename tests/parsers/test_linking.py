"""From wordings to names and values: exact, folded, nearest; and what questions mention."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb import Builder, KnowledgeBase, Quantity
from kopl.text import read
from parsers.actions import Actions, Draft
from parsers.linking import MARKS, Linker, Mentions, stem, unsaid
from parsers.spelling import Index, foldings, letters, similarity
from parsers.tokens import Question


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    """Names that are alike, addresses, and a unit."""
    builder = Builder()
    builder.add_concept("club", "football club")
    builder.add_concept("city", "city")
    for name in ("F.C. Dallas", "The Hague", "São Tomé", "US", "Us", "Tom Hanks", "Tom Hank"):
        builder.add_entity(name, name, ["club" if "F.C." in name else "city"])
    builder.add_attribute("The Hague", "official website", "http://www.denhaag.nl/")
    builder.add_attribute("The Hague", "motto", "Peace and Justice")
    builder.add_attribute("The Hague", "area", Quantity(98, "square kilometre"))
    builder.add_attribute("The Hague", "area growth rate", Quantity(2, "percent"))
    builder.add_attribute("The Hague", "ISO 639 code", "nl")
    builder.add_fact("The Hague", "located in the state", "US", {"stated as": "Den Haag"})
    return builder.build()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("F.C. Dallas", "F.C. Dallas"),
        ("fc dallas", "F.C. Dallas"),
        ("F. C. Dallas", "F.C. Dallas"),
        ("Hague", "The Hague"),
        ("the hague's", "The Hague"),
        ("Sao Tome", "São Tomé"),
        ("US", "US"),
        ("Us", "Us"),
        ("Tom Hanks", "Tom Hanks"),
        ("tom hank", "Tom Hank"),
        ("Hanks Tom", "Tom Hanks"),
        ("Tomm Hanks", "Tom Hanks"),
        ("club for football", "football club"),
    ],
)
def test_names(kb: KnowledgeBase, text: str, name: str) -> None:
    assert Linker(kb).name(text) == name


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("www.denhaag.nl", ("official website", False), "http://www.denhaag.nl/"),
        ("denhaag.nl", ("official website", False), "http://www.denhaag.nl/"),
        ("peace and justice", ("motto", False), "Peace and Justice"),
        ("Peace and Justic", None, "Peace and Justice"),
        ("War and Justice", ("motto", False), "War and Justice"),
        ("www.denhaag.nl", ("motto", False), "www.denhaag.nl"),
        ("den haag", ("stated as", True), "Den Haag"),
        ("den haag", ("stated as", False), "den haag"),
        ("98", ("area", False), "98"),
        ("x", ("no such key", False), "x"),
    ],
)
def test_values(kb: KnowledgeBase, text: str, key: tuple[str, bool] | None, value: str) -> None:
    assert Linker(kb).string(text, key) == value


def test_numbers_and_what_is_verified_are_not_corrected(kb: KnowledgeBase) -> None:
    linker = Linker(kb)
    builder = Builder()
    builder.add_entity("x", "X")
    builder.add_attribute("x", "code", "7440-09-7, of the second edition")
    coded = Linker(builder.build())
    key = ("code", False)
    assert coded.string("7440-09-7, of the second editon", key).endswith("edition")
    other = "7440-09-8, of the second edition"
    assert coded.string(other, key) == other
    motto = ("motto", False)
    assert linker.string("Peace and Justic", motto) == "Peace and Justice"
    assert linker.string("Peace and Justic", motto, near=False) == "Peace and Justic"
    assert linker.string("peace and justice", motto, near=False) == "Peace and Justice"
    question = Question.of("Is the motto of The Hague Peace and Justic?")
    state = Draft(question, linker)
    for action in (
        ("function", "Find"), 4, 5, ("function", "QueryAttr"), ("key", "motto"),
        ("function", "VerifyStr"), 6, 8,
    ):  # fmt: skip
        state.take(action)
    state.take(("function", ""))
    assert state.program() == read(
        'VerifyStr(QueryAttr(Find("The Hague"), motto), "Peace and Justic")'
    )


def linker_of(*values: str) -> Linker:
    builder = Builder()
    builder.add_entity("x", "X")
    for value in values:
        builder.add_attribute("x", "key", value)
    return Linker(builder.build())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("74404-0-6", "7440-40-6"),
        ("11.0", "1.10"),
        ("5", "-5"),
        ("at 5", "at -5"),
        ("A+", "A-"),
        ("C++", "C"),
        ("C", "C#"),
        ("½", "12"),
        ("1/2", "12"),
        ("1.69", "16:9"),
        ("10²", "102"),
        ("का", "कि"),  # they differ in a mark
        ("Henry VII of England, the King", "Henry VIII of England, the King"),
        ("the South Atlantic Treaty Organisation", "the North Atlantic Treaty Organisation"),
        ("a negative outcome is to be expected", "a positive outcome is to be expected"),
        ("east of the Atlantic and the Pacific", "west of the Atlantic and the Pacific"),
        ("legal in all of the member countries", "illegal in all of the member countries"),
        ("it is to be expected by everyone", "it is not to be expected by everyone"),
    ],
)
def test_a_value_is_not_taken_for_another(text: str, value: str) -> None:
    key = ("key", False)
    for wanted, there in ((text, value), (value, text)):
        for near in (True, False):
            assert linker_of(there).string(wanted, key, near=near) == wanted
        assert linker_of(there, wanted).string(wanted, key) == wanted


@pytest.mark.parametrize(
    ("text", "value", "verified"),
    [
        ("sao  tome", "São Tomé", True),
        ("WWW.nba.com/suns", "http://www.nba.com/suns/", True),
        ("A−", "A-", False),
        ("F.C. Dallas", "FC Dallas", False),
        ("Saint Denis", "Saint-Denis", False),
        ("the 7440-40-6", "7440-40-6", False),
        ("Henry VIII of Englnd, the King", "Henry VIII of England, the King", False),
    ],
)
def test_what_wordings_of_a_value_differ_in(text: str, value: str, verified: bool) -> None:
    linker, key = linker_of(value), ("key", False)
    assert linker.string(text, key) == value
    assert linker.string(text, key, near=False) == (value if verified else text)


def test_names_that_a_question_does_not_say() -> None:
    builder = Builder()
    builder.add_entity("h", "The Hague")
    builder.add_entity("s", "São Tomé")
    kb = builder.build()
    program = read('And(Find("The Hague"), Relate(Find("São Tomé"), r, forward))')
    assert unsaid(program, "Is the hague's twin Sao Tome?", kb) == []
    assert unsaid(program, "Is the hague a city?", kb) == ["São Tomé"]
    assert unsaid(program, "?", kb) == ["The Hague", "São Tomé"]


def test_an_empty_knowledge_base_has_nothing_to_link_to() -> None:
    linker = Linker(Builder().build())
    assert linker.name("Oslo") == "Oslo"
    # As nothing has a name, none is asked for.
    assert "Find" not in Draft(Question.of("Oslo"), linker).functions()


def test_the_nearest_is_what_comparing_with_every_text_finds() -> None:
    """Bounds leave out only what cannot be the nearest, and of equal ones the first is taken."""
    import random

    from rapidfuzz import fuzz, process

    from parsers.spelling import SORTED

    draw = random.Random(7)
    letters = "aabcdeé ß1漢 "
    texts = ["".join(draw.choices(letters, k=draw.randrange(12))) for _ in range(600)]
    texts += ["a" * 300, "a" * 299 + "b", "b a", "a b"]
    index = Index(texts)
    asked = ["".join(draw.choices(letters, k=draw.randrange(14))) for _ in range(300)]
    for text in [*asked, "a" * 280, "b a c"]:
        if index.folded(text) is not None:
            continue
        wanted = " ".join(text.casefold().split())
        plain = [" ".join(one.casefold().split()) for one in index.texts]
        found = process.extractOne(wanted, plain, scorer=fuzz.ratio)
        best, most = found[2], found[1]
        other = process.extractOne(wanted, plain, scorer=fuzz.token_sort_ratio)
        if other[1] * SORTED > most:
            best, most = other[2], other[1] * SORTED
        assert index.nearest(text) == (index.texts[best], pytest.approx(most))


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=8), st.text(max_size=12))
def test_the_nearest_is_as_similar_as_any(names: list[str], text: str) -> None:
    index = Index(names)
    found, similar = index.nearest(text)
    assert found in names
    if index.folded(text) is None:
        assert similar == pytest.approx(max(similarity(text, name) for name in names))
    for name in names:
        assert index.nearest(name)[0] == name


@given(st.text(max_size=20))
def test_letters_are_stable(text: str) -> None:
    assert letters(letters(text)) == letters(text)
    assert foldings(text)[0] == letters(text)


def test_mentions(kb: KnowledgeBase) -> None:
    linker = Linker(kb)
    actions = Actions.of(kb)
    question = Question.of("Which football clubs of Sao Tome are located in the state with 5?")
    found = Mentions(actions.entries, linker).of(question)
    words = question.words
    marked = {
        mark: [word for word, row in zip(words, found.marks, strict=True) if row[at]]
        for at, mark in enumerate(MARKS)
    }
    assert marked["name goes on"] == ["Sao", "Tome"]
    assert (marked["name begins"], marked["name ends"]) == (["Sao"], ["Tome"])
    assert marked["concept"] == ["football", "clubs"]
    assert marked["relation"] == ["located", "in", "the", "state"]
    assert marked["number begins"] == ["5"]
    assert {actions.entries[n] for n in found.items} == {
        ("concept", "football club"), ("relation", "located in the state"),
    }  # fmt: skip


def test_of_mentions_within_each_other_the_longest_counts(kb: KnowledgeBase) -> None:
    linker, actions = Linker(kb), Actions.of(kb)
    question = Question.of("Is the area growth rate of The Hague over 2, with ISO 639 code nl?")
    found = Mentions(actions.entries, linker).of(question)
    assert {actions.entries[n] for n in found.items} == {
        ("key", "area growth rate"), ("key", "ISO 639 code"),
    }  # fmt: skip
    # The number within a mention is none to be copied.
    begins = [
        word
        for word, row in zip(question.words, found.marks, strict=True)
        if row[MARKS.index("number begins")]
    ]
    assert begins == ["2"]


def test_a_key_is_marked_by_the_type_of_its_values(kb: KnowledgeBase) -> None:
    question = Question.of("motto, area, stated as")
    found = Mentions(Actions.of(kb).entries, Linker(kb)).of(question)
    for word, mark in (
        ("motto", "key of string"), ("area", "key of quantity"),
        ("stated", "qualifier key of string"),
    ):  # fmt: skip
        row = found.marks[question.words.index(word)]
        assert [name for name, on in zip(MARKS, row, strict=True) if on] == [mark]


@pytest.mark.parametrize(
    ("one", "other"), [("cities", "city"), ("rivers", "river"), ("countries", "country")]
)
def test_plurals_have_the_stem_of_the_singular(one: str, other: str) -> None:
    assert stem(one) == stem(other)
    assert stem("glass") == "glass" and stem("gas") == "gas"
