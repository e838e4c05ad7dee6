"""What Python callers and unusual files may get wrong: refused by name, never a traceback."""

from __future__ import annotations

import copy
import json
import os
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kb import (
    Builder,
    Condition,
    Date,
    Quantity,
    ReadError,
    SnapshotError,
    ValueReadError,
    WriteError,
    Year,
    check,
    check_file,
    from_kqapro,
    load,
    read,
    read_snapshot,
    write_snapshot,
)
from kb.snapshot import Source
from kopl_base.stream import read_text
from tests.kb.strategies import clean_kb, document_of, value

# --- values made in Python --------------------------------------------------------------------


@pytest.mark.parametrize("number", ["5", "1_000", "abc", None, [5], True, 1j], ids=repr)
def test_a_quantity_has_a_number(number: Any) -> None:
    with pytest.raises(ValueReadError, match="a number"):
        Quantity(number)


@pytest.mark.parametrize("number", [1998.5, 1998.0, "1998", None, True, np.float64(5)], ids=repr)
def test_years_months_and_days_are_integers(number: Any) -> None:
    for make in (
        lambda: Year(number),
        lambda: Date(number, 1, 1),
        lambda: Date(2000, number, 1),
        lambda: Date(2000, 1, number),
    ):
        with pytest.raises(ValueReadError, match="must be an integer"):
            make()


def test_numbers_of_numpy_become_pythons_own() -> None:
    whole: Any = np.int64(5)
    half: Any = np.float32(0.5)
    assert repr(Year(whole)) == repr(Year(5))
    assert repr(Date(whole, whole, whole)) == repr(Date(5, 5, 5))
    assert repr(Quantity(half)) == repr(Quantity(0.5))
    assert repr(Quantity(whole)) == repr(Quantity(5.0))


def test_values_of_numpy_can_be_stored() -> None:
    whole: Any = np.int64(5)
    values = [Year(whole), Date(whole, whole, whole), Quantity(whole), "5"]
    builder = Builder()
    builder.add_entity("e", "e")
    for one in values:
        builder.add_attribute("e", "key", one)
    assert [fact.value for fact in builder.build().attributes(0)] == values


# --- documents made in Python -----------------------------------------------------------------


def fact(**qualifiers: Any) -> dict[str, Any]:
    return {"key": "k", "value": value("year", 1), "qualifiers": qualifiers}


@pytest.mark.parametrize("section", ["concepts", "entities"])
def test_ids_are_texts(section: str) -> None:
    document: dict[str, Any] = {"concepts": {}, "entities": {}}
    document[section][5] = {"name": "five"}
    with pytest.raises(ReadError, match=f"{section}/5: the id must be a text"):
        from_kqapro(document)


def test_qualifier_keys_are_texts() -> None:
    odd: Any = fact() | {"qualifiers": {3: [value("year", 1)]}}
    document = {"concepts": {}, "entities": {"e": {"name": "e", "attributes": [odd]}}}
    with pytest.raises(ReadError, match=r"entities/e/attributes\[0\]: .*key must be a text, not 3"):
        from_kqapro(document)


# --- sections ---------------------------------------------------------------------------------


@pytest.mark.parametrize("section", ["concepts", "entities"])
def test_a_section_stands_once(section: str, tmp_path: Path) -> None:
    """JSON's own rule, that the last one wins, would lose nodes without a word."""
    text = json.dumps(clean_kb(1))
    file = tmp_path / "kb.json"
    file.write_text(text[:-1] + f', "{section}": {{"new": {{"name": "new"}}}}}}')
    with pytest.raises(ReadError, match=f'{section}: .*"{section}" twice'):
        read(file)
    assert ("error", "duplicate-section") in check_file(file).counts


# --- names of files ---------------------------------------------------------------------------


@pytest.mark.parametrize("opener", [read, load, check_file])
@pytest.mark.parametrize("name", ["x" * 300, "x/" * 5000, "a\0b", "x" * 300 + ".json"])
def test_a_name_that_no_file_can_have(opener: Any, name: str) -> None:
    with pytest.raises(ReadError):
        opener(name)


def test_a_long_name_of_a_file_is_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setenv("KOPL_CACHE_DIR", str(cache))
    file = tmp_path / ("é" * 120 + ".json")
    file.write_text(json.dumps(clean_kb(1)))
    first = load(file)
    assert len(list(cache.iterdir())) == 1
    assert load(file).fingerprint == first.fingerprint


@pytest.mark.skipif(sys.platform != "linux", reason="names must be Unicode elsewhere")
def test_a_name_that_is_not_unicode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOPL_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / os.fsdecode(b"kb\xff.json")
    file.write_text(json.dumps(clean_kb(1)))
    first = load(file)
    assert load(file).fingerprint == first.fingerprint
    assert len(list((tmp_path / "cache").iterdir())) == 1


# --- snapshots --------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited by RLIMIT_AS")
def test_a_header_longer_than_the_file_takes_no_memory(tmp_path: Path) -> None:
    import resource

    file = tmp_path / "kb.kopl"
    write_snapshot(from_kqapro(clean_kb(1)), file)
    data = bytearray(file.read_bytes())
    struct.pack_into("<I", data, 12, 2**32 - 1)  # the length of the header
    file.write_bytes(data)
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + 2**30
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        with pytest.raises(SnapshotError, match="header is damaged"):
            read_snapshot(file)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


# --- check ------------------------------------------------------------------------------------


def test_days_written_as_strings_in_qualifiers() -> None:
    """QFilterDate passes over them, as FilterDate does in facts."""
    facts = [fact(on=[value("string", "2001-02-03")], by=[value("string", "x")]) for _ in range(2)]
    node = {"name": "e", "instanceOf": ["c"], "attributes": facts}
    document = {"concepts": {"c": {"name": "c"}}, "entities": {"e": node}}
    before = copy.deepcopy(document)
    (found,) = check(from_kqapro(document)).found
    assert (found.code, found.place) == ("unreachable-date", "qualifier keys/on")
    assert "'2001-02-03'" in found.message and "QFilterDate" in found.message
    assert document == before


def test_readers_and_writers_agree_on_what_is_left_out() -> None:
    """No list of facts, no parents: the same as empty ones."""
    document = {"concepts": {"c": {"name": "c"}}, "entities": {"e": {"name": "e"}}}
    assert document_of(from_kqapro(document)) == {
        "concepts": {"c": {"name": "c", "subclassOf": []}},
        "entities": {"e": {"name": "e", "instanceOf": [], "attributes": [], "relations": []}},
    }


# --- places ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[]", "line 1, column 1"),
        ('{"concepts": x}', "line 1, column 14"),
        ('{"concepts": {}, 5}', "line 1, column 18"),
        ('{"concepts": {},\n"entities": 5}', "line 2, column 13"),
        ('{\n\n "concepts": {}\n  "entities": {}}', "line 4, column 3"),
        ('{"concepts": {}, "entities": {}}\n x', "line 2, column 2"),
    ],
)
@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_places_count_from_one(
    text: str, place: str, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kopl_base.stream.CHUNK", chunk)
    file = tmp_path / "kb.json"
    file.write_text(text)
    with pytest.raises(ReadError) as caught:
        read(file)
    assert caught.value.place == place


def test_check_goes_on_behind_bad_lines(tmp_path: Path) -> None:
    file = tmp_path / "kb.jsonl"
    lines = ["{", "[]", '{"id": "f", "kind": "x"}', '{"id": "e", "kind": "entity", "name": ""}']
    file.write_text("\n".join(lines))
    found = [(p.severity, p.code, p.place) for p in check_file(file).found]
    assert found == [
        ("error", "not-json", "line 1"),
        ("error", "wrong-type", "line 2"),
        ("error", "wrong-type", "line 3 (f)"),
        ("warning", "empty-name", "line 4 (e)"),
        ("warning", "no-concept", "entities/e"),
    ]


# --- the store's ways out ------------------------------------------------------------------------


def test_unknown_names_give_the_empty_set() -> None:
    kb = from_kqapro(clean_kb(1))
    everything, condition = kb.entities, Condition(("x",), "!=")
    before = document_of(kb)
    for found in (
        kb.named("nobody"),
        kb.instances_of("nothing"),
        kb.literals_of(everything, "no key"),
        kb.literals_where(everything, "no key", condition),
        kb.facts_from(everything, "no relation"),
        kb.facts_into(everything, "no relation"),
        kb.qualified(kb.literals, kb.literals.of_predicate(0), "no key", condition),
        kb.qualifier_values(kb.literals, kb.literals.of_predicate(0), "no key"),
    ):
        assert len(found) == 0 and found.dtype == np.int32
    assert document_of(kb) == before


def test_types_and_units_of_numbered_values() -> None:
    values = ["5", "x", Quantity(5), Quantity(5, "m"), Quantity(6, "m"), Year(5), Date(5, 1, 1)]
    builder = Builder()
    builder.add_entity("e", "e")
    for one in values:
        builder.add_attribute("e", "key", one)
    kb = builder.build()
    every = np.arange(len(kb.values), dtype=np.int32)
    quantities = kb.values.is_quantity(every)
    assert quantities.tolist() == [isinstance(one, Quantity) for one in values]
    units = [kb.strings[unit] for unit in kb.values.units_of(every[quantities]).tolist()]
    assert units == ["1", "m", "m"]


# --- what cannot be opened or written ------------------------------------------------------------


@pytest.mark.parametrize("opener", [read, load, check_file])
def test_a_file_that_may_not_be_read(
    opener: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kb.json"
    file.write_text("{}")

    def refused(path: Path, *_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(ReadError, match=r"kb\.json: cannot be opened: Permission denied"):
        opener(file)


def test_a_snapshot_that_cannot_be_made_again_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    source, file = tmp_path / "kb.json", tmp_path / "kb.kopl"
    source.write_text(json.dumps(clean_kb(1)))
    write_snapshot(from_kqapro(clean_kb(1)), file, Source.of(source))
    file.write_bytes(file.read_bytes()[:-64])

    def full(*_: Any) -> None:
        raise WriteError("no space")

    monkeypatch.setattr(sys.modules["kb.load"], "write_snapshot", full)
    assert document_of(load(file)) == clean_kb(1)
    assert "could not be written again: no space" in caplog.text


def test_empty_keys_and_relations() -> None:
    builder = Builder()
    builder.add_concept("c", "c")
    builder.add_entity("e", "e", ["c"])
    builder.add_attribute("e", " ", Year(1), {"": Year(2)})
    builder.add_fact("e", "\t", "c")
    assert [(p.code, p.place) for p in check(builder.build()).found] == [
        ("empty-name", "keys/ "),
        ("empty-name", "qualifier keys/"),
        ("empty-name", "relations/\t"),
    ]


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_no_name_of_a_file(name: str) -> None:
    with pytest.raises(ReadError, match="no name that a file can have"):
        read_text(name)
