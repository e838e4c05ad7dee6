"""The naive executor against answers worked out by hand, sentence by sentence."""

import copy
from typing import Any

import pytest

from .naive import (
    Naive,
    NaiveExecutionError,
    NaiveLoadError,
    NaiveTypeError,
    Value,
    is_real_day,
    load_value,
    normal_name,
    print_value,
    read_quantity,
    read_time,
    read_untyped,
)


def text(value: str) -> dict[str, Any]:
    return {"type": "string", "value": value}


def num(value: float, unit: str = "1") -> dict[str, Any]:
    return {"type": "quantity", "value": value, "unit": unit}


def year(value: int) -> dict[str, Any]:
    return {"type": "year", "value": value}


def date(value: str) -> dict[str, Any]:
    return {"type": "date", "value": value}


def attr(key: str, value: dict[str, Any], **qualifiers: list[Any]) -> dict[str, Any]:
    return {"key": key, "value": value, "qualifiers": qualifiers}


def rel(relation: str, direction: str, other: str, **qualifiers: list[Any]) -> dict[str, Any]:
    return {
        "relation": relation,
        "direction": direction,
        "object": other,
        "qualifiers": qualifiers,
    }


def entity(name: str, classes: list[str], *facts: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "instanceOf": classes,
        "attributes": [fact for fact in facts if "key" in fact],
        "relations": [fact for fact in facts if "relation" in fact],
    }


KB = {
    "concepts": {
        "c_being": {"name": "being", "subclassOf": []},
        "c_human": {"name": "human", "subclassOf": ["c_being", "c_gone"]},
        "c_team": {"name": "team", "subclassOf": []},
        "c_bird": {"name": "Jordan", "subclassOf": ["c_being"]},
        "c_a": {"name": "loop a", "subclassOf": ["c_b"]},
        "c_b": {"name": "loop b", "subclassOf": ["c_a"]},
        "c_in": {"name": "in the loop", "subclassOf": ["c_a"]},
    },
    "entities": {
        "ann": entity(
            "Ann",
            ["c_human", "c_gone"],
            attr("height", num(170, "centimetre")),
            attr("height", num(1.7, "metre")),
            attr("born", date("1980-06-01")),
            attr("gender", text("female")),
            attr("job", text("coach"), start=[year(2000)], end=[year(2001)]),
            attr("job", text("player"), start=[year(1990)], end=[year(1995)]),
            attr("nick", text("A")),
            attr("nick", text("a")),
            attr("mass", num(60, "kg")),
            attr("load", num(3, "b")),
            attr("load", num(3, "b")),
            attr("span", num(1, "u")),
            attr("mix", num(1, "u")),
            attr("mix", num(2, "v")),
            attr("mix", num(3, "v")),
            attr("rank", num(1)),
            rel("spouse", "forward", "bob", start=[year(2010), year(2012)], place=[text("x")]),
            rel("owns", "forward", "c_team"),
            rel("owns", "forward", "gone"),
            rel("likes", "forward", "ann"),
        ),
        "bob": entity(
            "Bob",
            ["c_human"],
            attr("height", num(180, "centimetre")),
            attr("born", year(1980)),
            attr("gender", text("male")),
            attr("job", text("coach")),
            attr("mass", num(9, "lb")),
            attr("load", num(9, "a")),
            attr("span", num(2, "u")),
            attr("span", num(7, "v")),
            attr("span", num(8, "v")),
            attr("mix", num(9, "u")),
            attr("rank", num(2)),
            rel("spouse", "backward", "ann", place=[text("x")], start=[year(2012), year(2010)]),
            rel("studied by", "backward", "c_human"),
            rel("plays for", "forward", "team", since=[year(2000)]),
            rel("plays for", "forward", "team", since=[year(2005)]),
        ),
        "cid": entity(
            "Cid",
            ["c_in"],
            attr("height", num(180, "centimetre")),
            attr("born", date("-0044/03/15")),
            attr("mass", num(5, "lb")),
            attr("span", num(3, "u")),
            attr("span", num(4, "v")),
            attr("mix", num(4, "w")),
            attr("rank", num(2)),
            rel("knows", "backward", "ann"),
        ),
        "team": entity(
            "Bulls",
            ["c_team"],
            attr("value", text("5")),
            attr("value", num(5)),
            attr("value", num(5.0)),
            attr("value", year(5)),
            attr("value", num(10, "m")),
            attr("value", num(9, "m")),
            attr("value", num(11, "M")),
            attr("value", date("0005-01-01")),
            attr("value", date("-0005-12-31")),
            attr("value", year(-5)),
            attr("value", text("\U0001f600")),
            attr("value", text("\ufb01")),
            attr("value", text("B")),
            attr("value", text("a")),
            attr("code", text("2001"), seen=[text("2001"), num(1), date("2001-05-06")]),
            attr("code", num(2001), seen=[num(2)]),
            attr("code", year(2001), seen=[num(3)]),
            attr("code", date("2001-05-06"), seen=[num(4)]),
            attr("code", num(2001, "m"), seen=[num(5)]),
            attr("code", date("2002-00-00"), seen=[num(6)]),
        ),
        "jordan1": entity("Jordan", ["c_human"], attr("gender", text("male"))),
        "jordan2": entity(" Jordan\n", ["c_b"], attr("gender", text("female"))),
        "odd": entity('tab\t"and" \u00a0 blank', []),
    },
}

ALL = ("FindAll",)
ANN, BOB, CID = ("Find", "Ann"), ("Find", "Bob"), ("Find", "Cid")
BULLS, JORDAN, GONE = ("Find", "Bulls"), ("Find", "Jordan"), ("Find", "Nobody")
ODD = 'tab "and" blank'
ANN_OR_BOB, BOB_OR_CID = ("Or", ANN, BOB), ("Or", BOB, CID)
COACHES = ("FilterStr", ALL, "job", "coach")


def program(tree: tuple[Any, ...]) -> list[dict[str, Any]]:
    """The JSON list of a nested tuple (function, inputs and texts)."""
    calls: list[dict[str, Any]] = []

    def write(node: tuple[Any, ...]) -> int:
        dependencies = [write(part) for part in node[1:] if isinstance(part, tuple)]
        texts = [part for part in node[1:] if isinstance(part, str)]
        calls.append({"function": node[0], "inputs": texts, "dependencies": dependencies})
        return len(calls) - 1

    write(tree)
    return calls


CASES: list[tuple[tuple[Any, ...], list[str]]] = [
    # FindAll: all entities, no concepts; a set denotes its names, equal strings once
    (ALL, ["Ann", "Bob", "Bulls", "Cid", "Jordan", ODD]),
    (("Count", ALL), ["7"]),
    # Find: entities and concepts with that name; white space in names
    (("Count", JORDAN), ["3"]),
    (("Find", "  Jordan\t"), ["Jordan"]),
    (("Find", 'tab\n"and"\u3000blank '), [ODD]),
    (("Find", "human"), ["human"]),
    (("Find", "ann"), []),
    (GONE, []),
    (("What", ANN), ["Ann"]),
    (("QueryName", JORDAN), ["Jordan"]),
    # FilterConcept: descendants, cycles, entities only
    (("FilterConcept", ALL, "being"), ["Ann", "Bob", "Jordan"]),
    (("FilterConcept", ALL, " being\u00a0"), ["Ann", "Bob", "Jordan"]),
    (("FilterConcept", ("Find", "human"), "being"), []),
    (("FilterConcept", JORDAN, "human"), ["Jordan"]),
    (("Count", ("FilterConcept", JORDAN, "being")), ["1"]),
    (("FilterConcept", ALL, "loop a"), ["Cid", "Jordan"]),
    (("FilterConcept", ALL, "loop b"), ["Cid", "Jordan"]),
    (("FilterConcept", ALL, "in the loop"), ["Cid"]),
    (("FilterConcept", ALL, "Ann"), []),
    (("FilterConcept", ALL, "Jordan"), []),
    (("FilterConcept", ALL, "unknown"), []),
    # Filters are existential, over mixed sets, exact
    (("FilterStr", ALL, "gender", "male"), ["Bob", "Jordan"]),
    (("FilterStr", ALL, "gender", "Male"), []),
    (("FilterStr", ALL, "gender", "male "), []),
    (("FilterStr", JORDAN, "gender", "male"), ["Jordan"]),
    (("FilterNum", ALL, "height", "180 centimetre", "="), ["Bob", "Cid"]),
    (("FilterNum", ALL, "height", "1.80e2 centimetre", "<"), ["Ann"]),
    (("FilterNum", ALL, "height", "170 centimetre", "!="), ["Bob", "Cid"]),
    (("FilterNum", ALL, "height", "1.7 metre", "!="), []),
    (("FilterNum", ALL, "height", "0", ">"), []),
    (("FilterYear", ALL, "born", "1980", "="), ["Ann", "Bob"]),
    (("FilterDate", ALL, "born", "1980", "="), ["Ann", "Bob"]),
    (("FilterYear", ALL, "born", "1980/6/1", "="), ["Ann"]),
    (("FilterDate", ALL, "born", "1980-06-01", "!="), ["Bob", "Cid"]),
    (("FilterDate", ALL, "born", "1979-12-31", "<"), ["Cid"]),
    (("FilterYear", ALL, "born", "-45", ">"), ["Ann", "Bob", "Cid"]),
    (("FilterNum", ALL, "gender", "5", "!="), []),
    (("FilterStr", ALL, "value", "5"), ["Bulls"]),
    (("FilterStr", ALL, "value", "10 m"), []),
    # QFilter: one and the same fact; unqualified facts are never kept
    (("QFilterYear", COACHES, "start", "2000", "="), ["Ann"]),
    (("QFilterYear", COACHES, "start", "1990", "!="), ["Ann"]),
    (("QFilterYear", COACHES, "start", "2000", "!="), []),
    (("QFilterYear", COACHES, "start", "1990", "="), []),
    (("QFilterYear", ("QFilterYear", COACHES, "start", "2000", "="), "end", "2001", "="), ["Ann"]),
    (("QFilterYear", ("QFilterYear", COACHES, "start", "2000", "="), "end", "1995", "="), []),
    (("QFilterStr", ("Relate", ANN, "spouse", "forward"), "place", "x"), ["Bob"]),
    (("QFilterYear", ("Relate", ANN, "spouse", "forward"), "start", "2010", "!="), ["Bob"]),
    (("QFilterStr", ("Relate", ANN, "spouse", "forward"), "unknown", "x"), []),
    # Relate: forward gives objects, backward subjects; one-ended facts; concepts; self loops
    (("Relate", ANN, "spouse", "forward"), ["Bob"]),
    (("Relate", ANN, "spouse", "backward"), []),
    (("Relate", BOB, "spouse", "backward"), ["Ann"]),
    (("Relate", ANN, "knows", "forward"), ["Cid"]),
    (("Relate", ANN, "owns", "forward"), ["team"]),
    (("Relate", ("Find", "team"), "owns", "backward"), ["Ann"]),
    (("Relate", BOB, "studied by", "backward"), ["human"]),
    (("Relate", ("Find", "human"), "studied by", "forward"), ["Bob"]),
    (("Relate", ANN, "likes", "backward"), ["Ann"]),
    (("Count", ("Relate", BOB, "plays for", "forward")), ["1"]),
    (("Relate", ANN, "plays", "forward"), []),
    # And, Or by ids; Count of distinct ids
    (("And", ("FilterStr", ALL, "gender", "male"), JORDAN), ["Jordan"]),
    (("Count", ("And", ("FilterStr", ALL, "gender", "male"), JORDAN)), ["1"]),
    (("Count", ("Or", JORDAN, JORDAN)), ["3"]),
    (("Or", CID, ANN), ["Ann", "Cid"]),
    (("And", ANN, BOB), []),
    (("Count", GONE), ["0"]),
    # QueryAttr: distinct values, ordered strings, quantities by unit and number, times
    (("QueryAttr", ANN, "height"), ["170 centimetre", "1.7 metre"]),
    (
        ("QueryAttr", BULLS, "value"),
        ["5", "B", "a", "\ufb01", "\U0001f600", "11 M", "9 m", "10 m"]
        + ["-5", "-0005-12-31", "0005-01-01"],
    ),
    (("QueryAttr", ALL, "born"), ["-0044-03-15", "1980", "1980-06-01"]),
    (("QueryAttr", ANN_OR_BOB, "Height"), []),
    (("QueryAttr", ("Find", "human"), "height"), []),
    # Untyped constants: every reading, one matching is enough
    (("QueryAttrUnderCondition", ANN, "job", "start", "2000"), ["coach"]),
    (("QueryAttrUnderCondition", ANN, "job", "start", "2000-01-01"), []),
    (("QueryAttrUnderCondition", BULLS, "code", "seen", "2001"), ["2001"]),
    (("QueryAttrUnderCondition", BULLS, "code", "seen", "1.0"), ["2001"]),
    (("QueryAttrUnderCondition", BOB, "job", "start", "2000"), []),
    (("QueryAttrQualifier", BULLS, "code", "2001", "seen"), "2001 1 2 3 4 2001-05-06".split()),
    (("QueryAttrQualifier", BULLS, "code", "2001.0", "seen"), ["2"]),
    (("QueryAttrQualifier", BULLS, "code", "2001 m", "seen"), ["5"]),
    (("QueryAttrQualifier", BULLS, "code", "2001/5/6", "seen"), ["4"]),
    (("QueryAttrQualifier", BULLS, "code", "2002", "seen"), ["6"]),
    (("QueryAttrQualifier", ANN, "job", "coach", "end"), ["2001"]),
    # QueryRelation and QueryRelationQualifier: head first
    (("QueryRelation", ANN, BOB), ["spouse"]),
    (("QueryRelation", BOB, ANN), []),
    (("QueryRelation", ANN, ALL), ["knows", "likes", "spouse"]),
    (("QueryRelation", ANN, ("Find", "human")), []),
    (("QueryRelation", ("Find", "human"), BOB), ["studied by"]),
    (("QueryRelationQualifier", ANN, BOB, "spouse", "start"), ["2010", "2012"]),
    (("QueryRelationQualifier", BOB, ANN, "spouse", "start"), []),
    (("QueryRelationQualifier", BOB, BULLS, "plays for", "since"), ["2000", "2005"]),
    # SelectAmong: majority unit, smallest unit on a tie, ties of winners, no candidate
    (("SelectAmong", ALL, "height", "largest"), ["Bob", "Cid"]),
    (("SelectAmong", ALL, "height", "smallest"), ["Ann"]),
    (("SelectAmong", ANN_OR_BOB, "mass", "largest"), ["Ann"]),
    (("SelectAmong", ("Or", ANN_OR_BOB, CID), "mass", "largest"), ["Bob"]),
    (("SelectAmong", ("Or", ANN_OR_BOB, CID), "mass", "smallest"), ["Cid"]),
    (("SelectAmong", ANN_OR_BOB, "load", "largest"), ["Ann"]),
    (("SelectAmong", ALL, "gender", "largest"), []),
    (("SelectAmong", JORDAN, "height", "largest"), []),
    (("SelectAmong", ALL, "value", "smallest"), ["Bulls"]),
    # SelectBetween: units both have; an id in both counts once
    (("SelectBetween", ANN, BOB, "height", "greater"), ["Bob"]),
    (("SelectBetween", ANN, BOB, "height", "less"), ["Ann"]),
    (("SelectBetween", BOB, CID, "height", "less"), ["Bob", "Cid"]),
    (("SelectBetween", ANN, BOB, "mix", "greater"), ["Bob"]),
    (("SelectBetween", ANN, BOB, "mix", "less"), ["Ann"]),
    (("SelectBetween", ANN, CID, "mix", "less"), []),
    (("SelectBetween", ANN_OR_BOB, BOB_OR_CID, "span", "greater"), ["Cid"]),
    (("SelectBetween", ANN, ANN, "rank", "greater"), ["Ann"]),
    (("SelectBetween", ANN, GONE, "rank", "greater"), []),
    # Verify: some value; of no value it is "no"
    (("VerifyStr", ("QueryAttr", ANN, "nick"), "a"), ["yes"]),
    (("VerifyStr", ("QueryAttr", ANN, "nick"), "b"), ["no"]),
    (("VerifyNum", ("QueryAttr", ANN, "height"), "1 metre", ">"), ["yes"]),
    (("VerifyNum", ("QueryAttr", ANN, "height"), "1", "!="), ["no"]),
    (("VerifyYear", ("QueryAttr", ANN, "born"), "1981", "<"), ["yes"]),
    (("VerifyDate", ("QueryAttr", BOB, "born"), "1980-06-01", "="), ["no"]),
    (("VerifyDate", ("QueryAttr", BOB, "born"), "1980-06-01", "!="), ["yes"]),
    (("VerifyStr", ("QueryAttr", GONE, "nick"), "a"), ["no"]),
    (("VerifyNum", ("QueryAttr", ANN, "unknown"), "1", "!="), ["no"]),
    (("VerifyStr", ("QueryAttrUnderCondition", ANN, "job", "start", "1990"), "player"), ["yes"]),
    (("VerifyStr", ("QueryAttrUnderCondition", ANN, "job", "start", "1990"), "coach"), ["no"]),
]


@pytest.mark.parametrize(("tree", "expected"), CASES, ids=[str(tree) for tree, _ in CASES])
def test_denotation(tree: tuple[Any, ...], expected: list[str]) -> None:
    assert Naive(KB).denotation(program(tree)) == expected


# A fact, a constant and the operators that the fact satisfies.
COMPARED = [
    (num(5, "m"), "VerifyNum", "5.0 m", "="),
    (num(5, "m"), "VerifyNum", "6 m", "!= <"),
    (num(5, "m"), "VerifyNum", "-6 m", "!= >"),
    (num(5, "m"), "VerifyNum", "5 M", ""),
    (num(5, "m"), "VerifyNum", "6", ""),
    (num(5), "VerifyNum", "5 1", "="),
    (num(-0.0), "VerifyNum", "0", "="),
    (num(0.1 + 0.2), "VerifyNum", "0.3", "!= >"),
    (year(2001), "VerifyYear", "2001", "="),
    (year(2001), "VerifyDate", "2002", "!= <"),
    (year(-44), "VerifyDate", "-45", "!= >"),
    (date("2001-05-06"), "VerifyYear", "2001", "="),
    (date("2001-05-06"), "VerifyYear", "2002", "!= <"),
    (date("2001-05-06"), "VerifyDate", "2000", "!= >"),
    (year(2001), "VerifyDate", "2001-05-06", "!="),
    (year(2000), "VerifyDate", "2001-05-06", "!= <"),
    (year(2002), "VerifyYear", "2001-05-06", "!= >"),
    (date("2001-05-06"), "VerifyYear", "2001/5/6", "="),
    (date("2001-05-06"), "VerifyDate", "2001-05-07", "!= <"),
    (date("-0002-05-06"), "VerifyDate", "-2-05-05", "!= >"),
    (date("-0002-05-06"), "VerifyDate", "-3-12-31", "!= >"),
    (text("5"), "VerifyNum", "5", ""),
    (num(2001), "VerifyYear", "2001", ""),
    (year(2001), "VerifyNum", "2001", ""),
    (text("2001"), "VerifyDate", "2002", ""),
]


@pytest.mark.parametrize(("value", "function", "constant", "satisfied"), COMPARED)
def test_comparison(value: Any, function: str, constant: str, satisfied: str) -> None:
    kb = {"concepts": {}, "entities": {"e": entity("E", [], attr("k", value, q=[value]))}}
    for op in ("=", "!=", "<", ">"):
        holds = op in satisfied.split()
        verified: tuple[Any, ...] = (function, ("QueryAttr", ("Find", "E"), "k"), constant, op)
        assert Naive(kb).denotation(program(verified)) == ["yes" if holds else "no"]
        filtered = (function.replace("Verify", "Filter"), ALL, "k", constant, op)
        assert Naive(kb).denotation(program(filtered)) == (["E"] if holds else [])
        qualified = (function.replace("Verify", "QFilter"), filtered, "q", constant, op)
        assert Naive(kb).denotation(program(qualified)) == (["E"] if holds else [])


@pytest.mark.parametrize("constant", ["5", "5 m", "2001", "2001-05-06"])
@pytest.mark.parametrize("value", [num(5), num(5, "m"), year(2001), date("2001-05-06")])
def test_a_string_constant_equals_strings_only(value: Any, constant: str) -> None:
    kb = {"concepts": {}, "entities": {"e": entity("E", [], attr("k", value))}}
    tree = ("VerifyStr", ("QueryAttr", ("Find", "E"), "k"), constant)
    assert Naive(kb).denotation(program(tree)) == ["no"]


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (num(1e22), "10000000000000000000000"),
        (num(1e-7), "0.0000001"),
        (num(-0.0), "0"),
        (num(0.1), "0.1"),
        (num(100000.0), "100000"),
        (num(-3.50, "kg"), "-3.5 kg"),
        (num(206, "centimetre"), "206 centimetre"),
        (num(9007199254740993), "9007199254740992"),
        (num(123456789.125), "123456789.125"),
        (num(-1.5e-10), "-0.00000000015"),
        (num(1.7976931348623157e308), "17976931348623157" + "0" * 292),
        ({"type": "quantity", "value": 7}, "7"),
        (year(2001), "2001"),
        (year(0), "0"),
        (year(-44), "-44"),
        (date("2001/02/03"), "2001-02-03"),
        (date("-0044-03-15"), "-0044-03-15"),
        (date("0000-02-29"), "0000-02-29"),
        (date("10000-01-01"), "10000-01-01"),
        (date("1582-10-10"), "1582-10-10"),
        (date("2001-00-00"), "2001"),
        (date("-0044-03-00"), "-44"),
        (text(" x  y\n"), " x  y\n"),
    ],
)
def test_printed(value: dict[str, Any], printed: str) -> None:
    assert print_value(load_value(value)) == printed


def test_constants_are_read_by_their_readings() -> None:
    assert read_quantity("+1.50e1 dollar per hour") == Value("quantity", 15.0, "dollar per hour")
    assert read_quantity("007") == Value("quantity", 7.0, "1")
    assert read_time("2001/2/3") == read_time("2001-02-03") == Value("date", (2001, 2, 3))
    assert read_time("-4-2-29") == Value("date", (-4, 2, 29))
    assert [value.kind for value in read_untyped("2001")] == ["string", "quantity", "year"]
    assert [value.kind for value in read_untyped("2001-02-03")] == ["string", "date"]
    assert [value.kind for value in read_untyped("2001-02-30")] == ["string"]
    assert [value.kind for value in read_untyped("5 metre")] == ["string", "quantity"]
    assert [value.kind for value in read_untyped("1,000")] == ["string"]


def test_days_are_proleptic_gregorian() -> None:
    assert is_real_day(0, 2, 29) and is_real_day(-4, 2, 29) and is_real_day(-400, 2, 29)
    assert not is_real_day(-100, 2, 29) and not is_real_day(1900, 2, 29)
    assert is_real_day(2000, 2, 29) and not is_real_day(2001, 4, 31)


def test_names_are_normalised() -> None:
    assert normal_name(" a\t\n b\u00a0\u2003c\u3000") == "a b c"
    assert normal_name(" \n") == ""


ILL_TYPED = [
    ("FindAll", "x"),
    ("Find",),
    ("Find", "a", "b"),
    ("Search", "a"),
    ("Count",),
    ("And", ANN),
    ("Or", ANN, BOB, CID),
    ("FilterNum", ALL, "height", "180 centimetre"),
    ("FilterNum", ALL, "height", "180 centimetre", "=="),
    ("FilterNum", ALL, "height", "180 centimetre", ">="),
    ("FilterNum", ALL, "height", "1,000", "="),
    ("FilterNum", ALL, "height", "nan", "="),
    ("FilterNum", ALL, "height", "inf", "="),
    ("FilterNum", ALL, "height", "1e999", "="),
    ("FilterNum", ALL, "height", "1_000", "="),
    ("FilterNum", ALL, "height", "0x10", "="),
    ("FilterNum", ALL, "height", "\u0661", "="),
    ("FilterNum", ALL, "height", "180\tcentimetre", "="),
    ("FilterNum", ALL, "height", " 180", "="),
    ("FilterNum", ALL, "height", "", "="),
    ("FilterNum", ALL, "height", "tall", "="),
    ("FilterDate", ALL, "born", "2001-02-30", "="),
    ("FilterDate", ALL, "born", "1900-02-29", "="),
    ("FilterYear", ALL, "born", "2001-02", "="),
    ("FilterYear", ALL, "born", "2001.5", "="),
    ("FilterYear", ALL, "born", "2001-001-01", "="),
    ("FilterStr", ALL, "gender", "male", "="),
    ("Relate", ANN, "spouse", "sideways"),
    ("SelectAmong", ALL, "height", "greater"),
    ("SelectBetween", ANN, BOB, "height", "largest"),
    ("QFilterStr", ALL, "place", "x"),
    ("QFilterStr", ANN, "place", "x"),
    ("QFilterStr", ("And", COACHES, COACHES), "place", "x"),
    ("QFilterStr", ("Or", COACHES, COACHES), "place", "x"),
    ("QFilterStr", ("FilterConcept", COACHES, "human"), "place", "x"),
    ("VerifyStr", ("QueryAttrQualifier", ANN, "job", "coach", "start"), "x"),
    ("VerifyYear", ("QueryRelationQualifier", ANN, BOB, "spouse", "start"), "2010", "="),
    ("VerifyStr", ("QueryName", ANN), "Ann"),
    ("VerifyNum", ("Count", ALL), "7", "="),
    ("VerifyStr", ANN, "Ann"),
    ("Count", ("QueryName", ANN)),
    ("QueryAttr", ("QueryAttr", ANN, "height"), "height"),
]


@pytest.mark.parametrize("tree", ILL_TYPED, ids=str)
def test_ill_typed(tree: tuple[Any, ...]) -> None:
    with pytest.raises(NaiveTypeError):
        Naive(KB).denotation(program(tree))


def test_an_ill_typed_root_is_found_before_anything_runs() -> None:
    # under strict the inner call would fail when run
    verify = ("VerifyStr", ("QueryAttr", ANN, "nick"), "a")
    with pytest.raises(NaiveTypeError):
        Naive(KB, strict=True).denotation(program(("Count", verify)))


@pytest.mark.parametrize("dependencies", [[0, 0], [0, 5], [0, -1], [0, 1]])
def test_dependencies_are_earlier_calls_each_used_once(dependencies: list[int]) -> None:
    calls = program(("Or", ANN, BOB))
    calls[2]["dependencies"] = dependencies
    if dependencies == [0, 1]:
        assert Naive(KB).denotation(calls) == ["Ann", "Bob"]
        return
    with pytest.raises(NaiveTypeError):
        Naive(KB).denotation(calls)


STRICT = [
    (("VerifyStr", ("QueryAttr", ANN, "gender"), "female"), ["yes"]),
    (("VerifyStr", ("QueryAttr", BOB, "gender"), "female"), ["no"]),
    (("VerifyStr", ("QueryAttr", ANN, "nick"), "a"), None),
    (("VerifyStr", ("QueryAttr", GONE, "nick"), "a"), None),
    (("SelectBetween", ANN, BOB, "rank", "greater"), ["Bob"]),
    (("SelectBetween", BOB, CID, "rank", "greater"), None),
    (("SelectBetween", ANN, ANN, "rank", "greater"), None),
    (("SelectBetween", ANN, GONE, "rank", "greater"), None),
    (("SelectBetween", ANN, BOB, "height", "greater"), None),
    (("SelectBetween", ANN, BOB, "mass", "greater"), None),
    (("SelectBetween", ANN, BOB_OR_CID, "rank", "greater"), None),
    (("SelectAmong", ALL, "rank", "smallest"), ["Ann"]),
    (("SelectAmong", ALL, "rank", "largest"), None),
    (("SelectAmong", ANN, "rank", "largest"), None),
    (("SelectAmong", ALL, "height", "smallest"), None),
    (("SelectAmong", ALL, "mass", "smallest"), None),
    (("SelectAmong", GONE, "rank", "smallest"), None),
    (("QueryAttr", GONE, "rank"), []),
]


@pytest.mark.parametrize(("tree", "expected"), STRICT, ids=[str(tree) for tree, _ in STRICT])
def test_strict(tree: tuple[Any, ...], expected: list[str] | None) -> None:
    if expected is None:
        with pytest.raises(NaiveExecutionError):
            Naive(KB, strict=True).denotation(program(tree))
    else:
        assert Naive(KB, strict=True).denotation(program(tree)) == expected


def test_relational_facts_are_merged_and_attribute_facts_are_not() -> None:
    naive = Naive(KB)
    assert [f.tail for f in naive.relation_facts if f.key == "spouse"] == ["bob"]
    assert len([f for f in naive.relation_facts if f.key == "plays for"]) == 2
    assert len([f for f in naive.attribute_facts if f.key == "load" and f.head == "ann"]) == 2
    assert [f.tail for f in naive.relation_facts if f.key == "owns"] == ["c_team"]


def test_the_knowledge_base_is_not_changed() -> None:
    before = copy.deepcopy(KB)
    naive = Naive(KB)
    first = [naive.denotation(program(tree)) for tree, _ in CASES]
    assert [naive.denotation(program(tree)) for tree, _ in CASES] == first
    assert KB == before


@pytest.mark.parametrize(
    "value",
    [
        date("2001-02-30"),
        date("soon"),
        num(float("nan")),
        num(float("inf")),
        num(10**400),
        {"type": "quantity", "value": "5"},
        {"type": "quantity", "value": True},
        {"type": "string", "value": 5},
        {"type": "year", "value": "2001"},
        {"type": "time", "value": 5},
    ],
)
def test_refused_values(value: dict[str, Any]) -> None:
    with pytest.raises(NaiveLoadError):
        Naive({"concepts": {}, "entities": {"e": entity("E", [], attr("k", value))}})


def test_an_id_is_not_both_concept_and_entity() -> None:
    concepts = {"e": {"name": "E", "subclassOf": []}}
    with pytest.raises(NaiveLoadError):
        Naive({"concepts": concepts, "entities": {"e": entity("E", [])}})


def test_there_are_sixty_cases() -> None:
    assert len(CASES) >= 60
