"""The builder, the report of `check`, the guard against the other package, progress, doctests."""

from __future__ import annotations

import doctest
import importlib
import io
import json
import pkgutil
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import kb
import kopl_base.progress
from kb import (
    Builder,
    Date,
    KoplError,
    LiteralFact,
    Problem,
    Problems,
    Quantity,
    ReadError,
    RelationalFact,
    Year,
    check,
    check_file,
    from_kqapro,
    load,
    write_snapshot,
)
from kb.store import suggest
from kopl_base.errors import Comparable, near_names
from kopl_base.progress import Progress
from tests.kb.strategies import document_of

DAY = Date(2001, 2, 3)


def paris() -> Builder:
    builder = Builder()
    builder.add_fact("paris", "capital of", "france", {"since": Year(987)})  # named before added
    builder.add_entity("paris", "Paris", ["city"])
    builder.add_entity("france", "France", ("country",))
    builder.add_concept("city", "city", ["place"])
    builder.add_concept("country", "country", iter(["place"]))
    builder.add_concept("place", "place")
    builder.add_attribute(
        "paris", "area", Quantity(105.4, "km\u00b2"), {"on": [DAY, "x"], "by": "y"}
    )
    builder.add_attribute("paris", "motto", "Fluctuat")
    return builder


# --- the builder -----------------------------------------------------------------------------


def test_what_was_added_is_there() -> None:
    builder = paris()
    knowledge = builder.build()
    assert builder.problems.found == []
    assert list(knowledge.attributes(knowledge.node("paris"))) == [
        LiteralFact("paris", "area", Quantity(105.4, "km\u00b2"), {"on": [DAY, "x"], "by": ["y"]}),
        LiteralFact("paris", "motto", "Fluctuat", {}),
    ]
    (fact,) = knowledge.facts()
    assert fact == RelationalFact("paris", "capital of", "france", {"since": [Year(987)]})
    assert [knowledge.id_of(n) for n in range(5)] == ["paris", "france", "city", "country", "place"]
    assert [knowledge.id_of(c) for c in knowledge.parents(knowledge.node("city"))] == ["place"]
    assert knowledge.instances_of("place").tolist() == [0, 1]
    assert "2 entities, 3 concepts, 1 relational and 2 literal" in repr(knowledge)


def test_built_and_read_are_the_same() -> None:
    knowledge = paris().build()
    assert document_of(from_kqapro(document_of(knowledge))) == document_of(knowledge)


def test_built_and_read_have_one_fingerprint() -> None:
    knowledge = paris().build()
    assert from_kqapro(document_of(knowledge)).fingerprint == knowledge.fingerprint


def test_a_builder_is_empty_after_building() -> None:
    builder = paris()
    builder.build()
    assert builder.build().node_count == 0
    builder.add_entity("paris", "again")
    assert builder.build().name_of(0) == "again"


def test_built_facts_dangle_with_a_warning() -> None:
    builder = paris()
    builder.add_fact("paris", "twin", "rome")
    builder.add_fact("rome", "twin", "paris")
    builder.add_entity("seine", "Seine", ["river"])
    knowledge = builder.build()
    assert len(knowledge.relational) == 1
    found = [(p.code, p.place) for p in builder.problems.found]
    assert found == [
        ("dangling-id", "entities/seine/instanceOf"),
        ("dangling-id", "entities/paris/relations/twin"),
        ("dangling-id", "entities/rome/relations/twin"),
    ]


# what is done with the builder, a part of the message
WRONG: list[tuple[Any, str]] = [
    (lambda b: b.add_entity("paris", "again"), "defined twice"),
    (lambda b: b.add_concept("paris", "again"), "an entity and a concept"),
    (lambda b: b.add_entity("city", "again"), "an entity and a concept"),
    (lambda b: b.add_entity("rome", "Rome", "city"), "a list of ids was expected"),
    (lambda b: b.add_concept("town", "town", [1]), "a text was expected, not 1"),
    (lambda b: b.add_entity(5, "five"), "a text was expected, not 5"),
    (lambda b: b.add_entity("rome", None), "a text was expected, not None"),
    (lambda b: b.add_attribute("rome", "area", Quantity(1)), "add the entity 'rome' before"),
    (lambda b: b.add_attribute("city", "area", Quantity(1)), "add the entity 'city' before"),
    (lambda b: b.add_attribute("paris", 5, "x"), "a text was expected, not 5"),
    (lambda b: b.add_attribute("paris", "area", 105), "a value is a str, Quantity"),
    (lambda b: b.add_attribute("paris", "area", None), "a value is a str, Quantity"),
    (lambda b: b.add_attribute("paris", "motto", "x", {"on": 5}), "a value is a str, Quantity"),
    (lambda b: b.add_attribute("paris", "motto", "x", {"on": [5]}), "a value is a str, Quantity"),
    (lambda b: b.add_attribute("paris", "motto", "x", {5: "y"}), "a text was expected, not 5"),
    (lambda b: b.add_fact("paris", "twin", 5), "a text was expected, not 5"),
    (lambda b: b.add_fact("paris", None, "france"), "a text was expected, not None"),
    (lambda b: b.add_fact("paris", "twin", "france", {"on": None}), "a value is a str, Quantity"),
]


@pytest.mark.parametrize(("act", "message"), WRONG, ids=range(len(WRONG)))
def test_mistakes_are_errors_and_leave_nothing(act: Any, message: str) -> None:
    builder = paris()
    with pytest.raises(KoplError) as caught:
        act(builder)
    assert message in str(caught.value)
    assert builder.build().fingerprint == paris().build().fingerprint


def test_a_lone_surrogate_is_refused_when_building() -> None:
    builder = Builder()
    builder.add_entity("e", "\ud800")
    with pytest.raises(ReadError, match="lone surrogate"):
        builder.build()


# --- problems and check ------------------------------------------------------------------------


def test_problems_are_counted_beyond_what_is_kept() -> None:
    problems = Problems(keep_going=True, limit=2)
    for at in range(5):
        problems.warning("w", str(at), "x")
    problems.error("e", "there", "y")
    assert [p.place for p in problems.found] == ["0", "1", "there"]
    assert (problems.warnings, problems.errors) == (5, 1)
    assert str(problems.found[2]) == "error: there: y [e]"


def test_an_error_stops_unless_all_are_collected() -> None:
    with pytest.raises(ReadError) as caught:
        Problems(source="file").error("code", "there", "what")
    assert str(caught.value) == "file: there: what"


def attributes(*values: Any) -> Any:
    builder = Builder()
    builder.add_concept("c", "c")
    builder.add_entity("e", "e", ["c"])
    for one in values:
        builder.add_attribute("e", "k", one)
    return builder.build()


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ([Year(2001), DAY], []),
        ([Quantity(1), Quantity(2)], []),
        ([Quantity(1), Quantity(1, "m")], ["mixed-units"]),
        (["x", Quantity(1)], ["mixed-types"]),
        ([Year(1), Quantity(1)], ["mixed-types"]),
        (["x", Quantity(1), Quantity(1, "m")], ["mixed-types", "mixed-units"]),
        (["2001-02-03"], ["unreachable-date"]),
        (["-0044/03/15", "2001-02-03"], ["unreachable-date"] * 2),
        (["2001-02-30", "2001", "7440-01-9", "on 2001-02-03", "2001-02/03"], []),
    ],
)
def test_what_check_finds_in_a_key(values: list[Any], codes: list[str]) -> None:
    assert [p.code for p in check(attributes(*values)).found] == codes


def test_days_written_as_texts_in_order() -> None:
    """By day; of each its facts, then the qualifier keys."""
    builder = Builder()
    builder.add_concept("c", "c")
    for entity in ("e", "f"):
        builder.add_entity(entity, entity, ["c"])
        builder.add_attribute(entity, "k", "2002-02-03", {"q": ["2001-02-03", "x"]})
    builder.add_attribute("f", "k", "2001-02-03", {"p": ["2001-02-03"], "q": [Year(1)]})
    found = [p for p in check(builder.build()).found if p.code == "unreachable-date"]
    assert [(p.place, p.message[:12]) for p in found] == [
        ("entities/f/attributes/k", "'2001-02-03'"),
        ("qualifier keys/p", "'2001-02-03'"),
        ("qualifier keys/q", "'2001-02-03'"),
        ("entities/e/attributes/k", "'2002-02-03'"),
        ("entities/f/attributes/k", "'2002-02-03'"),
    ]


def test_many_days_written_as_texts() -> None:
    builder = Builder()
    builder.add_entity("e", "e")
    for number in range(20_000):
        day = f"{1000 + number // 28 % 900}-01-{1 + number % 28:02}"
        builder.add_attribute("e", f"k{number % 50}", day)
    knowledge = builder.build()
    begin = time.process_time()
    assert check(knowledge).counts["warning", "unreachable-date"] == 20_000
    assert time.process_time() - begin < 5


def test_forms_of_values() -> None:
    rng = random.Random(1)
    some = ["x", "y", Year(1), Year(2), DAY, Quantity(1), Quantity(1, "m"), Quantity(2, "m")]
    for size in (0, 1, 7, 50):
        knowledge = attributes(*rng.choices(some, k=size))
        numbers = knowledge.literals.object
        counted = Counter(knowledge.values.form(number) for number in numbers.tolist())
        assert knowledge.values.forms(numbers).most_common() == counted.most_common()


def test_mixed_qualifiers() -> None:
    builder = Builder()
    builder.add_concept("c", "c")
    builder.add_entity("e", "e", ["c"])
    builder.add_fact("e", "r", "c", {"q": [Quantity(1), Quantity(2, "m"), "x"]})
    assert [(p.code, p.place) for p in check(builder.build()).found] == [
        ("mixed-types", "qualifier keys/q"),
        ("mixed-units", "qualifier keys/q"),
    ]


def test_nodes_without_name_or_concept(tmp_path: Path) -> None:
    builder = Builder()
    builder.add_concept("c", " ")
    builder.add_entity("e", "", ["c"])
    builder.add_entity("f", "f")
    knowledge = builder.build()
    expected = [
        Problem("warning", "empty-name", "entities/e", "'e' has an empty name"),
        Problem("warning", "no-concept", "entities/f", "the entity is an instance of no concept"),
        Problem("warning", "empty-name", "concepts/c", "'c' has an empty name"),
    ]
    assert check(knowledge).found == expected
    write_snapshot(knowledge, tmp_path / "kb.kopl")
    assert check_file(tmp_path / "kb.kopl").found == expected


# --- near names ----------------------------------------------------------------------------------


def test_near_names() -> None:
    assert near_names("Pariss", ["Rome", "Paris", "Perth"])[0] == "Paris"
    assert near_names("Zzz", ["Rome", "Paris"]) == []
    ready = Comparable(["Rome", "Paris", "Perth"])
    for text in ("Pariss", "Zzz", "ROME!", ""):
        assert near_names(text, ready) == near_names(text, ready.names)
    knowledge = paris().build()
    assert suggest(knowledge, "capitol of", ["relation"]) == ["capital of"]
    assert suggest(knowledge, "citty", ["concept", "entity"])[0] == "city"
    assert suggest(knowledge, "Paris", ["entity"]) == []  # not the name itself


# --- progress ------------------------------------------------------------------------------------


def test_no_bar_without_a_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "kb.json").write_text(json.dumps(document_of(paris().build())))
    kb.read(tmp_path / "kb.json")
    assert capsys.readouterr() == ("", "")


def test_a_bar_on_long_work(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr("sys.stderr", screen)
    with Progress("counting", 10, shown=True) as bar:
        bar.advance(1)
        assert bar._bar is None  # not yet: the work is young
        monkeypatch.setattr(kopl_base.progress, "PATIENCE", 0.0)
        bar.advance(2)
        assert bar._bar is not None
        drawn: Any = bar._bar.drawn
        assert drawn.tasks[0].completed == 3 and drawn.tasks[0].total == 10
        bar.reach(7)
        assert drawn.tasks[0].completed == 7
    assert drawn.live.is_started is False


# --- examples in the code ------------------------------------------------------------------------

MODULES = sorted(f"kb.{module.name}" for module in pkgutil.iter_modules(kb.__path__))


@pytest.mark.parametrize("module", ["kb", *MODULES])
def test_examples(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module)).failed == 0


def test_there_are_examples() -> None:
    assert doctest.testmod(importlib.import_module("kb.model")).attempted > 3


def test_everything_public_is_there() -> None:
    assert all(hasattr(kb, name) for name in kb.__all__)
    assert list(kb.__all__) == sorted(kb.__all__)


def test_misspelt_names_of_the_world() -> None:
    """The name that was meant comes before short pieces of the text and longer names."""
    names = sorted(
        {name for kind in ("entity", "concept") for name in load("world").names_of_kind(kind)}
    )
    meant = {
        "Norwai": "Norway",
        "Grmany": "Germany",
        "germany": "Germany",
        "Swizerland": "Switzerland",
        "Untied Kingdom": "United Kingdom",
        "Lodnon": "London",
        "Brasil": "Brazil",
        "Pariss": "Paris",
        "New Yrok": "New York",
        "Albert Einstien": "Albert Einstein",
        "Phillipines": "Philippines",
        "Kazahkstan": "Kazakhstan",
        "Saudi Arabai": "Saudi Arabia",
        "Marie Cury": "Marie Curie",
        "Hydrogn": "hydrogen",
        "contry": "country",
    }
    assert {text: near_names(text, names)[0] for text in meant} == meant
    assert "Rwa" not in near_names("Norwai", names)
    assert any("Obama" in name for name in near_names("Obama", names))
