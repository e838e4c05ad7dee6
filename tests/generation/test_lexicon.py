"""Annotations: reading them, what they change, what is asked to be looked at, the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from generation.lexicon import (
    Direction,
    Lexicon,
    NoWords,
    parse_annotations,
    read_annotations,
)
from generation.lexicon.annotations import (
    CONCEPTS,
    KEYS,
    QUALIFIERS,
    RELATIONS,
    UNITS,
    annotations_for,
    names_of,
)
from generation.lexicon.draft import draft, scalar
from generation.lexicon.entries import read_verb
from generation.lexicon.review import review
from kb import Builder, KnowledgeBase, Quantity, ReadError, Year
from kopl_cli import main


@pytest.mark.parametrize(
    ("one", "base", "many", "asked"),
    [
        ("serves", "", "serve", "does serve"),
        ("carries", "", "carry", "does carry"),
        ("teaches at", "", "teach at", "does teach at"),
        ("is a member of", "", "are members of", "is a member of"),
        ("was drafted by", "", "were drafted by", "was drafted by"),
        ("has lyrics by", "", "have lyrics by", "does have lyrics by"),
        ("has its seat in", "", "have their seat in", "does have its seat in"),
        (
            "counts {} among its members",
            "",
            "count {} among their members",
            "does count {} among its members",
        ),
        ("received", "receive", "received", "did receive"),
    ],
)
def test_verbs(one: str, base: str, many: str, asked: str) -> None:
    verb = read_verb(one, base)
    assert verb is not None
    assert (verb.one, verb.many, f"{verb.auxiliary} {verb.base}") == (one, many, asked)


def test_what_stands_behind_a_noun() -> None:
    texts = {
        "was born in": "born in",
        "is part of": "",
        "has {} as its capital": "with {} as capital",
        "has {} among its members": "with {} among the members",
        "serves": "",
    }
    assert {text: verb.short for text in texts if (verb := read_verb(text))} == texts


def test_a_past_form_needs_its_base() -> None:
    assert read_verb("zorbed") is None
    drafted = read_verb("drafted")  # a verb that is known
    assert drafted is not None and drafted.base == "draft"


MALFORMED = [
    ("relations: [1", "line 2: not YAML"),
    ("[" * 100_000, "line 1: lists or maps inside of others"),
    ("keys: {}\n---\nkeys: {}", "line 2: not YAML: but found another document"),
    ("- a", "line 1: sections: names and their fields were expected"),
    ("relation: {}", "line 1: sections: there is no 'relation'; write relations, keys"),
    ("keys: 5", "line 1: keys: names and their fields were expected"),
    ("keys:\n  area: 5", "line 2: keys: area: names and their fields were expected"),
    ("keys:\n  area: {}\n  area: {}", "line 3: keys: 'area' stands twice"),
    ("keys:\n  area:\n    name: x", "line 3: keys: area: there is no 'name'; write noun, a"),
    ("keys:\n  area: {noun: ''}", "line 2: keys: area: noun: it is empty"),
    ("keys:\n  area: {noun: [a]}", "line 2: keys: area: noun: a text was expected"),
    ("keys:\n  area: {plural: maybe}", "plural: true or false was expected, not 'maybe'"),
    ("keys:\n  area: {comparison: [a, b]}", "an adjective was expected, or four"),
    ("keys:\n  area: {comparison: none}", "a key is always compared by some word"),
    ("keys:\n  area: {question: how large}", "write {} where stands what is asked about"),
    ("keys:\n  ? [a]\n  : {}", "line 2: keys: a name was expected"),
    ("relations:\n  capital: {backward: zorbed}", "what is the base form of 'zorbed'?"),
    ("relations:\n  capital:\n    forward: {base: a}", "line 3: relations: capital: forward:"),
]


@pytest.mark.parametrize(("text", "message"), MALFORMED, ids=[m for _, m in MALFORMED])
def test_malformed(text: str, message: str) -> None:
    with pytest.raises(ReadError) as caught:
        parse_annotations(text, "my.yaml")
    assert str(caught.value).startswith("my.yaml: line ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("keys:\n  aera: {}", "line 2: keys: 'aera' is no attribute key of the knowledge base;"
         " did you mean 'area'?"),
        ("relations:\n\n  capitol:", "line 3: relations: 'capitol' is no relation"),
        ("units: {mile: }", "'mile' is no unit"),
        ("concepts: {lake: {}}", "'lake' is no concept"),
        ("names: {Nowhere: {the: true}}", "'Nowhere' is the name of no entity"),
        ("qualifier keys: {area: }", "'area' is no qualifier key"),
        ("relations:\n  capital:\n    details:\n      start time: since when {head} {tail}\n"
         "      sart time: '{head} {tail}'", "my.yaml: line 5: relations: capital: details:"
         " 'sart time' is no qualifier key of the knowledge base; did you mean 'start time'?"),
    ],
)  # fmt: skip
def test_names_that_are_not_there(lands: KnowledgeBase, text: str, message: str) -> None:
    with pytest.raises(ReadError) as caught:
        Lexicon(lands, parse_annotations(text, "my.yaml"))
    assert message in str(caught.value)


def test_a_detail_that_is_not_there_leaves_the_rest_of_its_entry(lands: KnowledgeBase) -> None:
    text = "relations: {capital: {noun: seat, details: {area: '{head} {tail}'}}}"
    given = parse_annotations(text, "my.yaml")
    assert [one.reason for one in review(lands, given) if one.name == "capital"] == [
        "capital: details: 'area' is no qualifier key of the knowledge base"
    ]
    assert Lexicon(lands, given.only(lands)).relation("capital", "forward").entry.noun == "seat"


def test_an_empty_file(lands: KnowledgeBase) -> None:
    assert Lexicon(lands, parse_annotations("")).key("area").plain() == "area"
    assert Lexicon(lands, parse_annotations("keys:\n")).key("area").plain() == "area"


ANNOTATED = """\
relations:
  capital: {noun: seat of government, nouns: seats of government}
  member of: {forward: "has {} as a member", backward: belongs to}
  award received: {forward: was awarded to, backward: {one: won, base: win}}
keys:
  area: {noun: surface, comparison: great, adjective: vast}
  inception: {event: was set up, question: "since when has there been {}"}
  population: {counted: inhabitants, adjective: populous}
qualifier keys:
  start time: {noun: beginning, compared: beginning, question: when did it begin}
units:
  metre: {one: meter, many: meters}
concepts:
  club of nations: {noun: alliance}
  city: {the: true}
names:
  Dunmore: {the: false}
"""


def test_what_annotations_say(lands: KnowledgeBase) -> None:
    lexicon = Lexicon(lands, parse_annotations(ANNOTATED))
    capital = lexicon.relation("capital", "forward")
    assert capital.noun("X") == "the seat of government of X"
    assert lexicon.relation("capital", "backward").that("X") == "whose seat of government is X"
    league = lexicon.relation("member of", "forward")
    assert league.that("X") == "that has X as a member"
    assert league.does("X") == "does X belong to"
    assert league.does("the one that is X") == "has the one that is X as a member"
    assert lexicon.relation("member of", "backward").those("X") == "that belong to X"
    assert lexicon.relation("award received", "forward").was("X", "Y") == "did X win Y"
    assert lexicon.key("area").plain() == "surface"
    assert lexicon.comparison("smallest", "area").plain() == "smallest"
    assert lexicon.comparison("greater", "area").alone() == "more vast"
    assert lexicon.key("inception").events() == "were set up"
    assert lexicon.key("inception").question("X") == "since when has there been X"
    assert lexicon.qualifier("start time").question() == "when did it begin"
    assert lexicon.value(Quantity(5.0, "metre")).plain() == "5 meters"
    assert lexicon.value(Quantity(1.0, "metre")).plain() == "1 meter"
    assert lexicon.concept("club of nations").many() == "alliances"
    assert lexicon.concept("club of nations").a() == "an alliance"
    assert lexicon.name("Clover").plain() == "the Clover"
    assert lexicon.name("Dunmore").plain() == "Dunmore"
    assert lexicon.name("Amber").plain() == "Amber"  # there is a person of that name, too


def test_a_verb_can_be_taken_away(lands: KnowledgeBase) -> None:
    given = "relations: {place of birth: {noun: birthplace, backward: none}}"
    lexicon = Lexicon(lands, parse_annotations(given))
    assert lexicon.relation("place of birth", "backward").that("X") == "whose birthplace is X"


def people() -> KnowledgeBase:
    builder = Builder()
    builder.add_concept("c", "human")
    for name, gender in (("Ann", "female"), ("Ben", "male"), ("Cyd", "")):
        builder.add_entity(name, name, ["c"])
        if gender:
            builder.add_attribute(name, "sex or gender", gender)
    builder.add_concept("g", "gender")
    builder.add_entity("m", "male", ["g"])
    builder.add_entity("Dan", "Dan", ["c"])
    builder.add_fact("Dan", "gender", "m")
    return builder.build()


def test_his_her_and_their() -> None:
    kb = people()
    lexicon = Lexicon(kb)
    said = {name: lexicon.possessive(kb.node(name), True) for name in ("Ann", "Ben", "Cyd", "Dan")}
    assert said == {"Ann": "her", "Ben": "his", "Cyd": "their", "Dan": "his"}
    assert lexicon.possessive(kb.node("m"), False) == "its"


# --- world -----------------------------------------------------------------------------------


def test_world_is_annotated_completely(world: KnowledgeBase) -> None:
    found = annotations_for(world)
    assert found is not None
    for section in (RELATIONS, KEYS, QUALIFIERS, UNITS):
        assert sorted(found.of(section)) == names_of(world, section)
    assert list(found.strangers(world)) == []
    assert review(world) == []


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_every_relation_of_world_is_said_in_both_directions(
    world: KnowledgeBase, direction: Direction
) -> None:
    lexicon = Lexicon(world)
    for relation in world.relations:
        words = lexicon.relation(relation, direction)
        clauses = [words.that("X")]
        try:
            clauses.append(words.those("X"))
        except NoWords:
            assert words.entry.noun and not words.several
        for clause in clauses:
            assert clause.startswith(("that ", "whose ")) and " X" in clause, clause
            # No preposition is left at the end: each direction has words of its own.
            assert not clause.endswith((" of", " in", " by", " to", " with")), clause
        assert words.fact("X", "Y").count("X") == words.fact("X", "Y").count("Y") == 1


def test_other_knowledge_bases_do_not_get_the_words_of_world(lands: KnowledgeBase) -> None:
    assert annotations_for(lands) is None


# --- review and draft ------------------------------------------------------------------------


def odd() -> KnowledgeBase:
    """Names that a guess says badly."""
    builder = Builder()
    builder.add_concept("c", "colloquium")
    builder.add_concept("d", "films")
    builder.add_entity("a", "A", ["c"])
    builder.add_entity("b", "B", ["d"])
    builder.add_attribute("a", "birthDate", Year(1950), {"reported by": "C"})
    builder.add_attribute("a", "closing", Year(1960))
    builder.add_attribute("b", "span of", Quantity(5.0, "km²"))
    for relation in ("parent", "plays", "shelters in", "people/person/parents", "yes", "1", "首都"):
        builder.add_fact("a", relation, "b")
    return builder.build()


def test_review() -> None:
    found = {(doubt.section, doubt.name): doubt.reason for doubt in review(odd())}
    assert {name: part for (_, name), part in found.items() if name not in ("yes", "1")} == {
        "plays": "it was taken for a noun ('plays'); is it a verb or a plural?",
        "shelters in": "nothing is said of a tail: give noun or forward (forward: none, if it"
        " reads well)",
        "people/person/parents": "it is no English words; give the words that people use",
        "birthDate": "it is no English words; give the words that people use",
        "首都": "it is no English words; give the words that people use",
        "closing": "its values are times; give the event, if there is one (event: none, if not)",
        "span of": "it ends in a preposition; give a noun",
        "km²": "its plural is 'km²s'; give one and many",
        "colloquium": "is 'colloquiums' its plural?",
        "films": "it looks like a plural and stays as it is; give noun and nouns",
    }


def test_review_of_annotations() -> None:
    given = parse_annotations(
        "relations:\n  plays: {forward: none, backward: plays}\n  parent: {todo: look}\n"
        "  nothing: {}\nconcepts:\n  colloquium: {nouns: colloquium}\n",
        "f.yaml",
    )
    found = [(d.name, d.reason, d.place) for d in review(odd(), given)]
    assert ("parent", "todo: look", "f.yaml: line 3") in found
    assert ("nothing", "'nothing' is no relation of the knowledge base", "f.yaml: line 4") in found
    same = "its plural is the same as its singular, 'colloquium'"
    assert ("colloquium", same, "f.yaml: line 6") in found
    assert not any(name == "plays" for name, _, _ in found)


@pytest.mark.parametrize("which", ["lands", "odd", "world"])
def test_a_draft_says_what_would_be_said_without_it(
    which: str, request: pytest.FixtureRequest
) -> None:
    kb = odd() if which == "odd" else request.getfixturevalue(which)
    plain = Lexicon(kb)
    given = parse_annotations("".join(draft(plain)))
    drafted = Lexicon(kb, given)
    for relation in kb.relations:
        for direction in ("forward", "backward"):
            ours, theirs = (x.relation(relation, direction) for x in (plain, drafted))  # type: ignore[arg-type]
            assert ours == theirs
            assert plain.wordings(ours) == drafted.wordings(theirs)
    for section, one in (
        (KEYS, Lexicon.key), (QUALIFIERS, Lexicon.qualifier),
        (CONCEPTS, Lexicon.concept), (UNITS, Lexicon.unit),
    ):  # fmt: skip
        for name in names_of(kb, section):
            ours, theirs = one(plain, name), one(drafted, name)  # type: ignore[operator]
            assert ours == theirs
            assert plain.wordings(ours) == drafted.wordings(theirs)
    # Every doubt is marked, and nothing else.
    marked = {name for group in given.sections.values() for name, g in group.items() if g.todo}
    assert marked == {doubt.name for doubt in review(kb)}


@given(text=st.text(st.characters(exclude_categories=["Cs"])), flow=st.booleans())
@example(text="A ", flow=True)
def test_every_text_is_read_back(text: str, flow: bool) -> None:
    import yaml  # type: ignore[import-untyped]

    said = scalar(text, flow=flow)
    assert yaml.safe_load(f"[{said}]" if flow else f"a: {said}") == (
        [text] if flow else {"a": text}
    )
    assert yaml.safe_load(f"{said}: b") == {text: "b"}


# --- the command -----------------------------------------------------------------------------


def test_command(lands_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "words.yaml"
    assert main(["lexicon", "init", lands_file, "-o", str(out)]) == 0
    text = out.read_text("utf-8")
    assert "# Arlen – Amber" in text or "# Estavia – Elmsford" in text
    assert "given: with the title" in text
    assert main(["lexicon", "init", lands_file, "-o", str(out)]) == 2
    assert "--force" in capsys.readouterr().err
    assert main(["lexicon", "init", lands_file, "-o", str(out), "--force"]) == 0
    status = main(["lexicon", "check", lands_file, str(out)])
    assert status == (1 if "todo:" in text else 0)
    capsys.readouterr()
    out.write_text("relations:\n  capital:\n    todo: which city\n", "utf-8")
    assert main(["lexicon", "check", lands_file, str(out)]) == 1
    said = capsys.readouterr()
    assert f"{out}: line 3: relations: capital: todo: which city" in said.out
    assert "    the capital of " in said.out
    assert "name" in said.err
    assert main(["lexicon", "check", lands_file, str(tmp_path / "none.yaml")]) == 2


def test_command_for_world(world: KnowledgeBase, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lexicon", "check", "world"]) == 0
    assert main(["lexicon", "init", "world", "-o", "-"]) == 0
    assert parse_annotations(capsys.readouterr().out).of(RELATIONS)["capital"].todo == ""


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "words.yaml"
    path.write_bytes(b"\xff")
    with pytest.raises(ReadError):
        read_annotations(path)
