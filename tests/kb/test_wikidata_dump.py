"""Reading Wikidata's dumps: what is kept, what is left out and counted."""

from __future__ import annotations

import bz2
import datetime
import gzip
import json
import lzma
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb import Builder, Date, KnowledgeBase, Quantity, ReadError, Year
from kb.imports.common import Report
from kb.imports.snaks import snak_value
from kb.imports.wikidata import read_wikidata
from kb.valuetable import time_of_code
from tests.kb.strategies import document_of
from tests.kb.wikidata_dumps import (
    ENTITIES,
    GREGORIAN,
    JULIAN,
    item,
    names,
    property,
    thing,
    time,
    write,
)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return write(tmp_path / "dump.json", ENTITIES)


# --- what is read ----------------------------------------------------------------------------


def expected() -> KnowledgeBase:
    builder = Builder()
    builder.add_entity("Q1", "Oslo", ["Q100"])
    builder.add_attribute("Q1", "population", Quantity(709037))
    builder.add_fact("Q1", "country", "Q2")
    builder.add_entity("Q2", "Norway", ["Q101"])
    builder.add_fact(
        "Q2",
        "capital",
        "Q1",
        {"start time": [Date(1814, 5, 17), Year(1905)], "approved by": "Storting"},
    )
    builder.add_attribute("Q2", "area", Quantity(385207.5, "square kilometre"))
    builder.add_attribute("Q2", "motto", "Alt for Norge")
    builder.add_attribute("Q2", "website", "http://example.org/")
    builder.add_attribute("Q2", "native label", "Noreg")
    builder.add_fact("Q101", "country", "Q2")
    builder.add_entity("Q102", "Storting")
    builder.add_entity("Q103", "square kilometre")
    builder.add_entity("Q106", "Fram")
    builder.add_attribute("Q106", "start time", Year(1892))
    builder.add_concept("Q100", "city", ["Q104"])
    builder.add_concept("Q104", "place")
    builder.add_concept("Q105", "kind of place")
    builder.add_concept("Q101", "country", ["Q104"])
    return builder.build()


def test_a_dump_with_every_kind_of_statement(dump: Path) -> None:
    report = Report()
    kb = read_wikidata(dump, report=report)
    wanted = document_of(expected())
    found = document_of(kb)
    assert found["entities"] == wanted["entities"]
    assert found["concepts"] == wanted["concepts"]
    assert report == {
        "items left out: no label in the languages": 1,
        "statements left out: deprecated": 1,
        "statements left out: no value or an unknown one": 1,
        "statements left out: an external id": 1,
        "statements left out: of type commonsMedia": 1,
        "statements left out: of type globe-coordinate": 1,
        "statements left out: the unit has no label": 1,
        "statements left out: the property has no label": 1,
        "statements left out: the object is not kept or has no label": 1,
        "statements left out: attributes of concepts": 1,
        "qualifiers left out: no value or an unknown one": 1,
        "qualifiers left out: the item or unit has no label": 1,
        "class links left out: a concept is no instance": 1,
        "class links left out: the class is an entity": 1,
        "entities": 5,
        "concepts": 4,
        "relational facts": 3,
        "literal facts": 6,
    }


@pytest.mark.parametrize("packing", [gzip, bz2, lzma])
def test_compressed_is_the_same(dump: Path, tmp_path: Path, packing: Any) -> None:
    packed = tmp_path / "dump.json.packed"
    packed.write_bytes(packing.compress(dump.read_bytes()))
    assert read_wikidata(packed).fingerprint == read_wikidata(dump).fingerprint


def test_json_lines_other_field_orders_and_several_files(dump: Path, tmp_path: Path) -> None:
    wanted = read_wikidata(dump).fingerprint
    lines = tmp_path / "lines.json"
    lines.write_text("\n".join(json.dumps(e) for e in ENTITIES), "utf-8")
    assert read_wikidata(lines).fingerprint == wanted
    lines.write_text(
        "\r\n".join(json.dumps(dict(reversed(list(e.items())))) for e in ENTITIES) + "\r\n", "utf-8"
    )
    assert read_wikidata(lines).fingerprint == wanted
    page = [{"pageid": 1, "ns": 0, "title": "x", "lastrevid": 5, **e} for e in ENTITIES]
    assert read_wikidata(write(lines, page)).fingerprint == wanted
    halves = [write(tmp_path / f"{at}.json", ENTITIES[at * 8 :][:8]) for at in range(3)]
    assert read_wikidata(halves).fingerprint == wanted


def test_languages_in_their_order(dump: Path) -> None:
    assert "Norge" in names(read_wikidata(dump, languages=["nb", "mul", "en"]), concepts=False)
    assert "Stockholm" in names(read_wikidata(dump, languages=["en", "de"]), concepts=False)
    kb = read_wikidata(dump, languages=["mul"], labels={"P1": "folketall", "Q1": "Oslo  by"})
    assert names(kb, concepts=False) == {"Norway", "Oslo by"}
    assert [fact.key for fact in kb.attributes(kb.node("Q1"))] == ["folketall"]


def test_external_ids_when_asked_for(dump: Path) -> None:
    kb = read_wikidata(dump, external_ids=True)
    assert [f.value for f in kb.attributes(kb.node("Q2")) if f.key == "number"] == ["123"]


def test_only_some_properties(dump: Path) -> None:
    kb = read_wikidata(dump, properties=["P3"])
    assert kb.relations == ["capital"] and kb.attribute_keys == []
    (fact,) = kb.facts()
    assert fact.qualifiers["approved by"] == ["Storting"]
    assert kb.instances_of("city").tolist() == [kb.node("Q1")]


@pytest.mark.parametrize("shuffled", range(8))
def test_ids_bring_their_classes_units_and_qualifiers(tmp_path: Path, shuffled: int) -> None:
    entities = list(ENTITIES)
    random.Random(shuffled).shuffle(entities)
    dump = write(tmp_path / "dump.json", entities)
    report = Report()
    kb = read_wikidata(dump, ids=["Q2", "Q1", "Q3", "Q77"], report=report)
    assert names(kb, concepts=False) == {"Oslo", "Norway"}
    assert names(kb, concepts=True) == {"city", "country"}  # what is above them is not asked for
    (capital,) = (fact for fact in kb.facts() if fact.relation == "capital")
    assert sorted(map(str, capital.qualifiers["approved by"])) == ["Storting"]
    area = [fact.value for fact in kb.attributes(kb.node("Q2")) if fact.key == "area"]
    assert area == [Quantity(385207.5, "square kilometre")]
    assert report["ids of the list that are not in the files"] == 1
    assert report["items left out: no label in the languages"] == 1
    kb = read_wikidata(dump, ids=["Q2", "Q1", "Q104", "Q106"])
    assert names(kb, concepts=False) == {"Oslo", "Norway", "Fram", "place"}
    assert [kb.name_of(c) for c in kb.concepts_of(kb.node("Q106"))] == []
    kb = read_wikidata(dump, ids=["Q2", "Q100", "Q106"])
    assert names(kb, concepts=True) == {"country", "city", "place", "kind of place"}
    assert [kb.name_of(c) for c in kb.parents(kb.node("Q101"))] == ["place"]


def test_a_limit_keeps_the_first(dump: Path) -> None:
    kb = read_wikidata(dump, limit=2)
    assert names(kb, concepts=False) == {"Oslo", "Norway"}
    assert names(kb, concepts=True) == {"city", "country"}
    assert {f.key for f in kb.attributes(kb.node("Q2"))} >= {"area"}
    assert read_wikidata(dump, limit=1000).fingerprint == read_wikidata(dump).fingerprint


def test_every_order_of_lines_has_the_same_facts(tmp_path: Path) -> None:
    wanted = document_of(read_wikidata(write(tmp_path / "a.json", ENTITIES)))
    for seed in range(5):
        entities = list(ENTITIES)
        random.Random(seed).shuffle(entities)
        found = document_of(read_wikidata(write(tmp_path / "b.json", entities)))
        assert found["concepts"] == wanted["concepts"]
        assert found["entities"].keys() == wanted["entities"].keys()
        assert all(
            sorted(map(repr, found["entities"][id]["attributes"]))
            == sorted(map(repr, node["attributes"]))
            for id, node in wanted["entities"].items()
        )


# --- times -----------------------------------------------------------------------------------


def read_time_value(*arguments: Any) -> Any:
    value = snak_value(time("P1", *arguments))
    return time_of_code(value) if isinstance(value, int) else value


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("+1998-06-27", 11), Date(1998, 6, 27)),
        (("+1998-06-00", 10), Year(1998)),
        (("+1998-06-27", 10), Year(1998)),
        (("+1998-00-00", 9), Year(1998)),
        (("+1998-00-00", 11), Year(1998)),
        (("-0044-03-15", 9), Year(-43)),
        (("-0044-03-15", 11, GREGORIAN), Date(-43, 3, 15)),
        (("-0001-01-01", 9), Year(0)),
        (("+1498-06-22", 11, JULIAN), Date(1498, 7, 1)),
        (("+1582-10-05", 11, JULIAN), Date(1582, 10, 15)),
        (("+1700-02-29", 11, JULIAN), Date(1700, 3, 11)),
        (("-0044-03-15", 11, JULIAN), Date(-43, 3, 13)),
        (("+0000000000001998-06-27", 14), Date(1998, 6, 27)),
    ],
)
def test_times(arguments: Any, wanted: Any) -> None:
    assert read_time_value(*arguments) == wanted


@pytest.mark.parametrize(
    "arguments",
    [
        ("+1990-00-00", 8),
        ("+1998-02-30", 11),
        ("+1900-02-29", 11, GREGORIAN),
        ("+1998-13-01", 11),
        ("+0000-00-00", 9),
        ("-9999999999999999-00-00", 9),
    ],
)
def test_times_that_are_left_out(arguments: Any) -> None:
    assert "LeftOut" in repr(read_time_value(*arguments))


@given(st.dates(min_value=datetime.date(4, 3, 1), max_value=datetime.date(3999, 12, 1)))
@settings(max_examples=200, deadline=None)
def test_julian_days_follow_each_other(day: datetime.date) -> None:
    """The Julian calendar lags by one day more in each century year that 400 does not divide."""
    if (day.month, day.day) == (2, 29):
        return
    moment = f"+{day.year:04}-{day.month:02}-{day.day:02}"
    found = read_time_value(moment, 11, JULIAN)
    past = day.year if day.month > 2 else day.year - 1
    lag = past // 100 - past // 400 - 2
    wanted = day + datetime.timedelta(days=lag)
    # The Julian leap day of a century year lies between, where the Gregorian calendar has none.
    assert found == Date(wanted.year, wanted.month, wanted.day)


# --- random dumps ------------------------------------------------------------------------------

IDS = [f"Q{number}" for number in range(1, 9)]
RANDOM = st.fixed_dictionaries(
    {
        id: st.tuples(
            st.booleans(),
            st.lists(
                st.tuples(st.sampled_from(["P31", "P279", "P2", "P3"]), st.sampled_from(IDS)),
                max_size=3,
            ),
        )
        for id in IDS
    }
)


@given(RANDOM, st.permutations(IDS), st.none() | st.sets(st.sampled_from(IDS), min_size=1))
@settings(max_examples=150, deadline=None)
def test_random_graphs(
    tmp_path_factory: pytest.TempPathFactory, graph: Any, order: Any, ids: Any
) -> None:
    """What is kept, its kinds, links and relations, worked out from the graph as a whole."""
    kept = {id for id in IDS if graph[id][0] and (ids is None or id in ids)}
    links = {id: {(p, other) for p, other in graph[id][1]} for id in IDS}
    used = {other for id in kept for p, other in links[id] if p in ("P31", "P279")}

    def is_concept(id: str) -> bool:
        own = {p for p, _ in links[id]}
        return "P279" in own or (id in used and "P31" not in own)

    there = kept | {id for id in used if graph[id][0] and is_concept(id)}
    entities = [
        thing(id, f"name of {id}" if graph[id][0] else {}, *(item(p, o) for p, o in graph[id][1]))
        for id in order
    ]
    path = tmp_path_factory.mktemp("random") / "dump.json"
    write(path, [*entities, property("P2", "two"), property("P3", "three")])
    if not kept:
        with pytest.raises(ReadError):
            read_wikidata(path, ids=ids)
        return
    report = Report()
    kb = read_wikidata(path, ids=ids, report=report)
    every = range(kb.node_count)
    assert {kb.id_of(node) for node in every} == there
    assert {kb.id_of(n) for n in every if not kb.is_entity(n)} == set(filter(is_concept, there))
    relations = [(id, p, other) for id in kept for p, other in graph[id][1] if p in ("P2", "P3")]
    label = {"P2": "two", "P3": "three"}
    assert {(f.head, f.relation, f.tail) for f in kb.facts()} == {
        (id, label[p], other) for id, p, other in relations if other in there
    }
    left = sum(other not in there for _, _, other in relations)
    assert report["statements left out: the object is not kept or has no label"] == left
    for node in every:
        id, entity = kb.id_of(node), kb.is_entity(node)
        above = kb.concepts_of(node) if entity else kb.parents(node)
        wanted = "P31" if entity else "P279"
        assert Counter(map(kb.id_of, above)) == Counter(
            {o for p, o in links[id] if p == wanted and o in there and is_concept(o)}
        )
