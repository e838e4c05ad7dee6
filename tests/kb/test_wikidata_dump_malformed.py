"""Reading Wikidata's dumps: what is refused, and what is left out because it is malformed."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kb import ReadError
from kb.imports.common import Report
from kb.imports.wikidata import read_wikidata
from tests.kb.wikidata_dumps import (
    ENTITIES,
    amount,
    array,
    item,
    labelled,
    names,
    property,
    snak,
    statement,
    text,
    thing,
    time,
    write,
)

# --- what is malformed -------------------------------------------------------------------------

Break = Callable[[list[str]], None]


def cut(lines: list[str]) -> None:
    lines[2] = lines[2][:80]


def twice(lines: list[str]) -> None:
    lines.insert(2, lines[1])


def no_object(lines: list[str]) -> None:
    lines[2] = "17,"


def two_on_a_line(lines: list[str]) -> None:
    lines[2] = "[" + lines[2].rstrip(",") + "],"


def bad_labels(lines: list[str]) -> None:
    lines[2] = '{"type":"item","id":"Q2","labels":"x","claims":{}},'


def bad_label(lines: list[str]) -> None:
    lines[2] = '{"type":"item","id":"Q2","labels":{"en":{"value":5}},"claims":{}},'


def bad_claims(lines: list[str]) -> None:
    lines[2] = '{"type":"item","id":"Q2","labels":{},"claims":[1]},'


def two_ids(lines: list[str]) -> None:
    lines[2] = '{"type":"item","id":"Q2","labels":{},"id":"Q3"},'


def deep(lines: list[str]) -> None:
    lines[2] = '{"type":"item","id":"Q2","labels":' + "[" * 100_000


def huge_number(lines: list[str]) -> None:
    lines[2] = '{"type":"item","id":"Q2","lastrevid":' + "9" * 5000 + "},"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut, "not JSON"),
        (twice, "second time"),
        (no_object, "expected an entity"),
        (two_on_a_line, "one a line"),
        (bad_labels, '"labels" is no object'),
        (bad_label, "not as expected"),
        (bad_claims, '"claims" is no object'),
        (two_ids, "two ids"),
        (deep, "not JSON"),
        (huge_number, "not JSON"),
    ],
)
def test_a_malformed_line(tmp_path: Path, damage: Break, message: str) -> None:
    lines = array(ENTITIES).splitlines()
    damage(lines)
    path = tmp_path / "dump.json"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    with pytest.raises(ReadError, match=message) as caught:
        read_wikidata(path)
    assert caught.value.place == "line 3" and caught.value.source == str(path)
    report = Report()
    kb = read_wikidata(path, skip_malformed=True, report=report)
    assert report["lines left out: malformed"] == 1
    assert "Oslo" in names(kb, concepts=False)
    if damage is not twice:
        assert "Norway" not in names(kb, concepts=False)
        assert [f for f in kb.facts() if f.relation == "capital"] == []


def test_a_file_that_was_cut_between_lines(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text(array(ENTITIES).removesuffix("]\n"), "utf-8")
    with pytest.raises(ReadError, match="cut short") as caught:
        read_wikidata(path)
    assert caught.value.place == f"line {len(ENTITIES) + 1}"
    assert read_wikidata(path, skip_malformed=True).entity_count == 5
    path.write_text(array(ENTITIES) + '{"id":"Q7"}\n', "utf-8")
    with pytest.raises(ReadError, match="follows the end"):
        read_wikidata(path)
    packed = tmp_path / "dump.json.gz"
    packed.write_bytes(gzip.compress(array(ENTITIES).encode())[:-20])
    with pytest.raises(ReadError, match="damaged or cut short"):
        read_wikidata(packed)


@pytest.mark.parametrize(
    "bad",
    [
        {"rank": "normal"},
        {"mainsnak": {"snaktype": "value"}},
        {"mainsnak": {"snaktype": "strange"}},
        {"mainsnak": {"snaktype": "value", "datavalue": {"type": "time", "value": "1998"}}},
        {"mainsnak": {"snaktype": "value", "datavalue": {"type": "string", "value": 5}}},
        statement(amount("P7", "many")),
        statement(amount("P7", "+5", "metre")),
        statement(time("P7", "yesterday")),
        statement(snak("P7", "wikibase-entityid", {"entity-type": "form"})),
        {**statement(text("P7", "x")), "qualifiers": [1]},
        {**statement(text("P7", "x")), "qualifiers-order": ["P8"]},
        "text",
        None,
    ],
)
def test_a_malformed_statement(tmp_path: Path, bad: Any) -> None:
    entity = thing("Q1", "Oslo", text("P7", "first"))
    entity["claims"]["P7"].append(bad)
    path = write(tmp_path / "dump.json", [property("P7", "motto", "string"), entity])
    with pytest.raises(ReadError) as caught:
        read_wikidata(path)
    assert caught.value.place == "line 3 (Q1/P7)"
    report = Report()
    kb = read_wikidata(path, skip_malformed=True, report=report)
    assert [fact.value for fact in kb.attributes(0)] == ["first"]
    assert report["statements left out: malformed"] == 1


def test_what_is_no_dump(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for content in ("", "[\n]\n", '{"id": "C1", "kind": "concept", "name": "x"}\n'):
        path.write_text(content, "utf-8")
        with pytest.raises(ReadError, match="no item with a label in en or mul"):
            read_wikidata(path)
    with pytest.raises(ReadError, match="folder"):
        read_wikidata(tmp_path)
    with pytest.raises(ReadError, match="cannot be opened"):
        read_wikidata(tmp_path / "missing.json")
    with pytest.raises(ReadError, match="no item of the list"):
        read_wikidata(write(path, ENTITIES), ids=["Q77"])


def test_redirects_and_older_forms(tmp_path: Path) -> None:
    old = thing("Q5", "five", item("P2", "Q6"), text("P9", "1", "external-id"))
    for group in old["claims"].values():
        del group[0]["mainsnak"]["datatype"]
    del old["claims"]["P2"][0]["mainsnak"]["datavalue"]["value"]["id"]
    redirect = {"type": "item", "id": "Q7", "redirect": "Q6", "labels": labelled("seven")}
    entities = [property("P2", "next"), property("P9", "n", "external-id"), old, redirect]
    kb = read_wikidata(write(tmp_path / "dump.json", [*entities, thing("Q6", "six")]))
    assert names(kb, concepts=False) == {"five", "six"}
    (fact,) = kb.facts()
    assert (fact.relation, fact.tail) == ("next", "Q6")
    assert kb.attribute_keys == []
