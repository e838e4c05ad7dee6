"""The wording of whole questions: the paper's form row by row, and what all questions keep."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from random import Random

import pytest

from generation import english
from generation.blocks import Maker
from generation.derivation import Derivation
from generation.grammar import CANONICAL, ONE, ROOT, Rule
from generation.judge import is_overloaded, reads_badly
from generation.lexicon import (
    ComparisonWords,
    ConceptWords,
    KeyWords,
    Lexicon,
    NameWords,
    NoWords,
    OperatorWords,
    QualifierWords,
    RelationWords,
    ValueWords,
    Words,
)
from generation.rules_file import bundled
from kb import Builder, Date, KnowledgeBase, Quantity, Value, Year
from kb.values import read_quantity, read_time
from kopl import functions as f
from kopl.example import Example
from kopl.program import Call, post_order
from kopl.text import read
from tests.generation.spellings import unmentioned

# --- the tables of the paper -----------------------------------------------------------------


@cache
def _rules() -> dict[tuple[str, str], Rule]:
    """The rules by left side and program."""
    lines = resources.files("generation").joinpath("kqapro.scfg").read_text("utf-8").splitlines()
    found = {}
    for group in bundled().rules.values():
        for rule in group:
            text = lines[rule.line - 1].partition("->")[2]
            for line in lines[rule.line :]:
                if not line.startswith(" ") or line.lstrip().startswith("|"):
                    break
                text += line
            found[rule.left, re.sub(r"\s+", "", text)] = rule
    return found


def node(
    left: str, program: str, *parts: Derivation, person: bool = False, **words: Words
) -> Derivation:
    """A derivation with the rule of that left side and program; parts in their order in it."""
    rule = _rules()[left, re.sub(r"\s+", "", program)]
    symbols = re.findall(r"(?<![A-Za-z$])([A-Z]'*)(?=[,)\s]|$)", program)
    inside = dict(zip(symbols, parts, strict=True))
    return Derivation(rule, Call(f.FIND_ALL), dict(words), inside, 0, person)


def name(text: str, person: bool = False, left: str = "E") -> Derivation:
    found = node("N", "Find($name)", name=NameWords(text), person=person)
    return node(left, "M", node("M", "N", found, person=person), person=person)


def pair(text: str) -> Derivation:
    return name(text, left="P")


def condition(part: Derivation) -> Derivation:
    """Without qualifiers, for one node or a set."""
    return node("Q", "F", node("F", "B", part, person=part.person), person=part.person)


def number(key: str, text: str, op: str) -> Derivation:
    value = read_quantity(text)
    return node("B", "FilterNum(FindAll(), $key, $value, $op)", key=KeyWords(key),
                value=ValueWords(text, value), op=OperatorWords(op, value))  # fmt: skip


def time(program: str, key: str, text: str, op: str) -> Derivation:
    value = read_time(text)
    return node("B", program, key=KeyWords(key), value=ValueWords(text, value),
                op=OperatorWords(op, value))  # fmt: skip


def drafted(direction: str, who: str) -> Derivation:
    end = node("N", "Find($name)", name=NameWords(who))
    words = relation("drafted by", direction)
    return node("B", "Relate(N, $relation, $direction)", end, relation=words)


def relation(text: str, direction: str) -> RelationWords:
    return RelationWords(text, direction, False)  # type: ignore[arg-type]


def described(concept: str, part: Derivation, person: bool = False) -> Derivation:
    found = node("D", "FilterConcept(Q, $concept)", condition(part), concept=ConceptWords(concept),
                 person=person)  # fmt: skip
    return found


def qualified(concept: str, kind: str, key: str, value: Value, op: str = "") -> Derivation:
    """What drafted James, with a qualifier of that."""
    words: dict[str, Words] = {
        "qvalue": ValueWords(str(value), value),
        "qkey": QualifierWords(key),
        "relation": relation("drafted by", "forward"),
    }
    if op:
        words["qop"] = OperatorWords(op, value)
    program = kind.replace("F,", "Relate(N, $relation, $direction),")
    inner = node("Q", program, node("N", "Find($name)", name=NameWords(JAMES)), **words)
    return node("D", "FilterConcept(Q, $concept)", inner, concept=ConceptWords(concept))


CAVALIERS = "Cleveland Cavaliers"
FOLLOWERS = "social media follower number"
MORE = number(FOLLOWERS, "3000000", ">")
E_D = "E", "D"


def dated(op: str) -> Derivation:
    """The same of one year, or of those before it."""
    words = {**MORE.words, "qvalue": ValueWords("2021", Year(2021))}
    program = "FilterNum(FindAll(), $key, $value, $op), point in time, $qvalue, $qop"
    return node("B", f"QFilterYear({program})", qop=OperatorWords(op, Year(2021)), **words)


def asks(
    strategy_program: str, *parts: Derivation, person: bool = False, **words: Words
) -> Derivation:
    return node(ROOT, strategy_program, *parts, person=person, **words)


def some(d: Derivation) -> Derivation:
    return node("T", "D", d)


def verify(key: str, entity: Derivation) -> Derivation:
    return node("V", "QueryAttr(E, $key)", entity, key=KeyWords(key))


def conditional(key: str, entity: Derivation, year: int) -> Derivation:
    return node("V", "QueryAttrUnderCondition(E, $key, point in time, $qvalue)", entity,
                key=KeyWords(key), qvalue=ValueWords(str(year), Year(year)))  # fmt: skip


ATTRIBUTE = "QueryAttr(E, $key)"
UNDER = "QueryAttrUnderCondition(E, $key, point in time, $qvalue)"
UNDER_ANY = "QueryAttrUnderCondition(E, $key, $qkey, $qvalue)"
JAMES, JUNIOR = "LeBron James", "LeBron James Jr."
HEIGHT = {"value": ValueWords("180", Quantity(180, "centimetre")),
          "op": OperatorWords(">", Quantity(180, "centimetre"))}  # fmt: skip


def literal_fact(entity: Derivation, key: str, value: Value, qkey: str) -> Derivation:
    words = {"key": KeyWords(key), "value": ValueWords(str(value), value)}
    if qkey == "point in time":
        return asks("QueryAttrQualifier(L, $key, $value, point in time)", entity, **words)
    return asks("QueryAttrQualifier(L, $key, $value, $qkey)", entity, **words,
                qkey=QualifierWords(qkey))  # fmt: skip


# The rows of Tables 7 and 8, each with the question that the paper gives or that its pattern makes.
TABLE: list[tuple[str, Derivation]] = [
    # Asking: QueryName, Count.
    ("Who is the basketball player whose height is equal to 206 centimetres?",
     asks("QueryName(D)", described("basketball player", number("height", "206 centimetre", "="),
                                    person=True), person=True)),
    ("What is the team that drafted LeBron James?",
     asks("QueryName(D)", described("team", drafted("forward", JAMES)))),
    ("How many basketball players that were drafted by Cleveland Cavaliers are there?",
     asks("Count(T)", some(described("basketball player", drafted("backward", CAVALIERS))))),
    ("How many basketball players are there?",
     asks("Count(C)", node("C", "FilterConcept(FindAll(), $concept)",
                           concept=ConceptWords("basketball player")))),
    # QueryAttribute, with and without a qualifier.
    ("For Cleveland Cavaliers, what is its social media follower number?",
     asks(ATTRIBUTE, name(CAVALIERS), key=KeyWords(FOLLOWERS))),
    ("For Cleveland Cavaliers, what is its social media follower number (point in time is 2021)?",
     asks(UNDER, name(CAVALIERS), key=KeyWords(FOLLOWERS), qvalue=ValueWords("2021", Year(2021)))),
    ("For Akron, what is its population (source is census)?",
     asks(UNDER_ANY, name("Akron"), key=KeyWords("population"), qkey=QualifierWords("source"),
          qvalue=ValueWords("census", "census"))),
    # Relation.
    ("What is the relation from LeBron James Jr. to LeBron James?",
     asks("QueryRelation(P, P')", pair(JUNIOR), pair(JAMES))),
    # SelectAmong, SelectBetween.
    ("Among basketball players, which one has the largest mass?",
     asks("SelectAmong(C, $key, $op)",
          node("C", "FilterConcept(FindAll(), $concept)",
               concept=ConceptWords("basketball player")),
          key=KeyWords("mass"), op=ComparisonWords("largest", "mass"))),
    ("Which one has the larger mass, LeBron James Jr. or LeBron James?",
     asks("SelectBetween(P, P', $key, $op)", pair(JUNIOR), pair(JAMES), key=KeyWords("mass"),
          op=ComparisonWords("greater", "mass"))),
    ("Which one has the smaller mass, LeBron James Jr. or LeBron James?",
     asks("SelectBetween(P, P', $key, $op)", pair(JUNIOR), pair(JAMES), key=KeyWords("mass"),
          op=ComparisonWords("less", "mass"))),
    # Verify.
    ("For LeBron James Jr., is its height greater than 180 centimetres?",
     asks("VerifyNum(V, $value, $op)", verify("height", name(JUNIOR)), **HEIGHT)),
    ("For Akron, is its population equal to 199,110 (point in time is 2010)?",
     asks("VerifyNum(V, $value, $op)", conditional("population", name("Akron"), 2010),
          value=ValueWords("199110", Quantity(199110)), op=OperatorWords("=", Quantity(199110)))),
    ("For Akron, is its country code US?",
     asks("VerifyStr(V, $value)", verify("country code", name("Akron")),
          value=ValueWords("US", "US"))),
    ("For Akron, is its inception not in 1825?",
     asks("VerifyYear(V, $value, $op)", verify("inception", name("Akron")),
          value=ValueWords("1825", Year(1825)), op=OperatorWords("!=", Year(1825)))),
    ("For Akron, is its inception on 6 December 1825?",
     asks("VerifyDate(V, $value, $op)", verify("inception", name("Akron")),
          value=ValueWords("1825-12-06", Date(1825, 12, 6)),
          op=OperatorWords("=", Date(1825, 12, 6)))),
    # QualifierLiteral, QualifierRelational.
    ("For Akron, its population is 199,110, what is the point in time?",
     literal_fact(name("Akron", left="L"), "population", Quantity(199110), "point in time")),
    ("For Akron, its population is 199,110, what is the source?",
     literal_fact(name("Akron", left="L"), "population", Quantity(199110), "source")),
    ("LeBron James was drafted by Cleveland Cavaliers, what is the point in time?",
     asks("QueryRelationQualifier(P, P', $relation, point in time)", pair(JAMES), pair(CAVALIERS),
          relation=relation("drafted by", "forward"))),
    ("LeBron James was drafted by Cleveland Cavaliers, what is the start time?",
     asks("QueryRelationQualifier(P, P', $relation, start time)", pair(JAMES), pair(CAVALIERS),
          relation=relation("drafted by", "forward"))),
    ("LeBron James was drafted by Cleveland Cavaliers, what is the draft pick?",
     asks("QueryRelationQualifier(P, P', $relation, $qkey)", pair(JAMES), pair(CAVALIERS),
          relation=relation("drafted by", "forward"), qkey=QualifierWords("draft pick"))),
]  # fmt: skip

AKRON_OR = node("U", "FilterConcept(Or(Relate(N, $relation, $direction),"
                " Relate(N', $relation, $direction)), $concept)",
                node("N", "Find($name)", name=NameWords("Akron")),
                node("N", "Find($name)", name=NameWords("Cleveland")),
                concept=ConceptWords("basketball player"),
                relation=relation("place of birth", "backward"))  # fmt: skip
BETWEEN = node("D", "FilterConcept(And(B, Q), $concept)", number("height", "190 centimetre", ">"),
               condition(number("height", "220 centimetre", "<")),
               concept=ConceptWords("basketball player"))  # fmt: skip

LOCATING: list[tuple[str, Derivation, str]] = [
    ("LeBron James", name(JAMES), ONE),
    ("basketball players", node("C", "FilterConcept(FindAll(), $concept)",
                                concept=ConceptWords("basketball player")), "many"),
    ("the basketball team whose social media follower number is greater than 3,000,000",
     described("basketball team", MORE), ONE),
    ("the basketball team whose social media follower number is greater than 3,000,000"
     " (point in time is 2021)",
     described("basketball team", dated("=")), ONE),
    ("the basketball team whose social media follower number is greater than 3,000,000"
     " (point in time is before 2021)",
     described("basketball team", dated("<")), ONE),
    ("the basketball team that drafted LeBron James (point in time is 2003)",
     node("D", "FilterConcept(Q, $concept)",
          node("Q", "QFilterYear(Relate(N, $relation, $direction), point in time, $qvalue, $qop)",
               node("N", "Find($name)", name=NameWords(JAMES)),
               relation=relation("drafted by", "forward"),
               qvalue=ValueWords("2003", Year(2003)), qop=OperatorWords("=", Year(2003))),
          concept=ConceptWords("basketball team")), ONE),
    ("the basketball team that drafted LeBron James (start time is after 2003)",
     qualified("basketball team", "QFilterYear(F, $qkey, $qvalue, $qop)",
               "start time", Year(2003), ">"), ONE),
    ("the basketball team that drafted LeBron James (start time is 26 June 2003)",
     qualified("basketball team", "QFilterDate(F, $qkey, $qvalue, $qop)",
               "start time", Date(2003, 6, 26), "="), ONE),
    ("the basketball team that drafted LeBron James (bonus is less than 20,000 dollars)",
     qualified("basketball team", "QFilterNum(F, $qkey, $qvalue, $qop)",
               "bonus", Quantity(20000, "dollar"), "<"),
     ONE),
    ("the basketball team that drafted LeBron James (league is NBA)",
     qualified("basketball team", "QFilterStr(F, $qkey, $qvalue)", "league", "NBA"), ONE),
    ("the basketball player whose country code is US",
     described("basketball player", node("B", "FilterStr(FindAll(), $key, $value)",
                                         key=KeyWords("country code"),
                                         value=ValueWords("US", "US"))), ONE),
    ("the basketball team whose inception is in 1970",
     described("basketball team", time("FilterYear(FindAll(), $key, $value, $op)", "inception",
                                       "1970", "=")), ONE),
    ("the basketball team whose inception is on 4 July 1970",
     described("basketball team", time("FilterDate(FindAll(), $key, $value, $op)", "inception",
                                       "1970-07-04", "=")), ONE),
    ("the basketball player that was drafted by Cleveland Cavaliers",
     described("basketball player", drafted("backward", CAVALIERS), person=True), ONE),
    ("the one that was drafted by Cleveland Cavaliers",
     node("D", "Q", condition(drafted("backward", CAVALIERS))), ONE),
    ("the one that is the capital of Norway",
     node("D", "Relate(E, $relation, forward)", name("Norway"),
          relation=relation("capital", "forward")), ONE),
    ("the basketball player that was drafted by the basketball team whose social media follower"
     " number is greater than 3,000,000",
     node("D", "FilterConcept(Q, $concept)",
          node("Q", "F", node("F", "Relate(D, $relation, $direction)",
                              described("basketball team", MORE),
                              relation=relation("drafted by", "backward"))),
          concept=ConceptWords("basketball player")), ONE),
    ("basketball players whose height is greater than 190 centimetres and whose height is less"
     " than 220 centimetres", BETWEEN, "many"),
    ("basketball players that were born in Akron or Cleveland", AKRON_OR, "many"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "derivation"), TABLE, ids=[row[0] for row in TABLE])
def test_the_papers_form_of_asking(question: str, derivation: Derivation) -> None:
    assert derivation.question(None) == question


@pytest.mark.parametrize(("text", "derivation", "form"), LOCATING, ids=[row[0] for row in LOCATING])
def test_the_papers_form_of_locating(text: str, derivation: Derivation, form: str) -> None:
    speaker = Derivation(_said(form), Call(f.FIND_ALL), {}, {"X": derivation}, 0)
    assert english.tidy(speaker.question(None)).casefold() == text.casefold()


def _said(form: str) -> Rule:
    """A rule that says its only part in a form."""
    from generation.grammar import Slot, Symbol

    return Rule("T", Symbol("X"), {ONE: ((Slot("X", form),),)}, 0, {})


def test_his_and_her() -> None:
    builder = Builder()
    builder.add_concept("c", "human")
    builder.add_entity("a", "Ann", ["c"])
    builder.add_attribute("a", "sex or gender", "female")
    kb = builder.build()
    found = asks("VerifyNum(V, $value, $op)", verify("height", name("Ann", person=True)), **HEIGHT)
    assert found.question(None) == "For Ann, is its height greater than 180 centimetres?"
    for part in (found, found.parts["V"]):
        part.target, part.person = kb.node("a"), True
    assert found.question(None) == "For Ann, is their height greater than 180 centimetres?"
    found.lexicon = Lexicon(kb)
    assert found.question(None) == "For Ann, is her height greater than 180 centimetres?"


# --- variety ---------------------------------------------------------------------------------


def test_every_asking_rule_has_three_wordings() -> None:
    for rule in bundled().rules[ROOT]:
        wordings = set(rule.texts[ONE]) | set(rule.texts.get(CANONICAL, ()))
        assert len(wordings) >= 3, f"kqapro.scfg: line {rule.line}"


def test_every_description_has_three_wordings() -> None:
    """In all of its forms together: a description stands in different places."""
    for left in ("D", "U", "C", "Q", "B"):
        for rule in bundled().rules[left]:
            wordings = {text for texts in rule.texts.values() for text in texts}
            assert len(wordings) >= 3, f"kqapro.scfg: line {rule.line}"


@pytest.mark.parametrize(("question", "derivation"), TABLE, ids=[row[0] for row in TABLE])
def test_every_row_is_said_in_three_ways(question: str, derivation: Derivation) -> None:
    said = {question}
    for seed in range(40):
        said.add(derivation.question(Random(seed)))
    assert len(said) >= 3


# --- properties ------------------------------------------------------------------------------

COUNT = 300
_DOUBLED = re.compile(r"\b(?!that\b|had\b)([A-Za-z]{2,}) \1\b")
_ARTICLES = re.compile(
    r"\ba (?:[aeio]\w|u(?!ni(?!n)|s[ae]|r|t[ei]))|\ban (?![aeiouAEIOUFHLMNRSX8]|hour|hono|heir)"
    r"|\ban (?:uni(?!n)|eu|one\b)"
)


@pytest.fixture(scope="module")
def examples(world: KnowledgeBase) -> list[Example]:
    found = []
    for example in Maker(world).block(17, 0):
        found.append(example)
        if len(found) == COUNT:
            break
    return found


def _texts(example: Example) -> Iterator[str]:
    yield example.question
    assert example.canonical is not None
    yield example.canonical


def test_sentences_are_well_formed(examples: list[Example]) -> None:
    assert len(examples) == COUNT
    for example in examples:
        names = [str(c.arguments[0]) for c in post_order(example.program) if c.function is f.FIND]
        for text in _texts(example):
            assert text.endswith("?") and not text.endswith("??")
            assert text[0].isupper() or text.startswith(tuple(names)), text
            assert "  " not in text and " ," not in text and " ?" not in text, text
            assert text.count("(") == text.count(")"), text
            assert not re.search(r"\( |[,(]\)|,,|\(\(", text), text
            bare = text
            for known in sorted(names, key=len, reverse=True):
                bare = bare.replace(known, "X")
            assert not _DOUBLED.search(bare), text
            assert not _ARTICLES.search(bare), text
            assert not re.search(r"\bthe (?:the|a|an|those)\b|\b(?:a|an) the\b", bare), text
            assert not re.search(r"the one that is (?:a )?(?:human|person) that", text), text
        assert not reads_badly(example.question)


def test_every_constant_is_mentioned(world: KnowledgeBase, examples: list[Example]) -> None:
    lexicon = Lexicon(world)
    for example in examples:
        for text in _texts(example):
            assert unmentioned(lexicon, example.program, text) == [], text


@pytest.mark.parametrize(
    ("question", "bad"),
    [
        ("What is the anthem that is the anthem of Norway?", True),
        ("How many states have the natural resource tin as a natural resource?", True),
        ("Given that the ethnic group Sami is an ethnic group of Norway, when was that?", True),
        ("Given that the anthem of Jordan is the one that has lyrics by X, when was that?", False),
        ("What is Norway represented in in 2024?", True),
        ("What has the rank of tin (with a rank of 1) (for the allotrope gray)?", True),
        ("What borders Chad, the one with the area 5 (with a length of 1 mile)?", True),
        ("What borders Chad, the one in Amber (the city)?", False),
        ("Which independent country became independent in 1960?", False),
        ("Which is the independent country that became independent in 1960?", True),
        ("How many isotopes are there that are isotopes of tin?", True),
        ("How many states are there whose head of state is Ann?", True),
        (
            "Does the state that adjoins Chad or the state that adjoins Mali have more airports?",
            False,
        ),
        ("Who is the person who wrote the words of Amber?", True),
        ("What is the area of the country of the city of Amber Airport?", True),
        ("What is the area of the country of the city Amber?", False),
        (" ".join(["long"] * 33), True),
        (" ".join(["long"] * 32), False),
    ],
)
def test_what_reads_badly(question: str, bad: bool) -> None:
    assert reads_badly(question) == bad


def test_no_words(lands: KnowledgeBase) -> None:
    rule = Rule("T", _rules()["C", "FilterConcept(FindAll(),$concept)"].program, {}, 0, {})
    with pytest.raises(NoWords):
        Derivation(rule, Call(f.FIND_ALL), {}, {}, 0).question(None)


@pytest.mark.parametrize(
    ("question", "program", "over"),
    [
        ("what is the land that a, that b and that c?", 'QueryName(Find("A"))', True),
        ("what is the land that a and that b?", 'QueryName(Find("A"))', False),
        (
            "how is the land that a and that b related to the land that c and that d?",
            'QueryRelation(Find("A"), Find("B"))',
            False,
        ),
        (
            "which was founded after 2009 and independent before 2016?",
            'QueryName(And(FilterYear(FindAll(), "founding", 2009, ">"),'
            ' FilterYear(FindAll(), "independence", 2016, "<")))',
            True,
        ),
        (
            "which had an area of more than 5 and of less than 9 in 2020?",
            'QueryName(And(FilterNum(FindAll(), "area", 5, ">"),'
            ' QFilterYear(FilterNum(FindAll(), "area", 9, "<"), "point in time", 2020, "=")))',
            True,
        ),
        (
            "which has an area of more than 5 and was founded before 2016?",
            'QueryName(And(FilterNum(FindAll(), "area", 5, ">"),'
            ' FilterYear(FindAll(), "founding", 2016, "<")))',
            False,
        ),
    ],
)
def test_what_is_overloaded(question: str, program: str, over: bool) -> None:
    assert is_overloaded(question, read(program)) == over
