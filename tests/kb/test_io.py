"""Reading and writing: nothing is lost, whatever the spelling, the form and the compression."""

from __future__ import annotations

import bz2
import copy
import gzip
import json
import logging
import lzma
import random
from pathlib import Path
from typing import Any

import pytest

import kopl_base.stream
from kb import (
    Builder,
    ReadError,
    WriteError,
    from_kqapro,
    read,
    read_kqapro,
    read_lines,
    read_snapshot,
    write_kqapro,
    write_lines,
    write_snapshot,
)
from kopl_base.stream import TextReader, writing
from tests.kb.strategies import clean_kb, document_of, relation, spelling_b, value
from tests.reference.random_kb import random_kb

SEEDS = range(40)


def same(one: Any, other: Any) -> None:
    """Equal as JSON, in the same order everywhere (5 and 5.0 are one number)."""
    assert one == other
    assert list(_orders(one)) == list(_orders(other))


def _orders(document: Any) -> Any:
    if isinstance(document, dict):
        yield [key for key in document if key not in ("type", "value", "unit")]
    for child in document.values() if isinstance(document, dict) else document:
        if isinstance(child, dict | list):
            yield from _orders(child)


def write_json(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document, ensure_ascii=False), "utf-8")
    return path


# --- round trips -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_spelling_a_round_trip(seed: int, tmp_path: Path) -> None:
    document = clean_kb(seed)
    source = write_json(tmp_path / "source.json", document)
    write_kqapro(read_kqapro(source), tmp_path / "again.json")
    same(json.loads((tmp_path / "again.json").read_text("utf-8")), document)


@pytest.mark.parametrize("seed", SEEDS)
def test_spelling_b_round_trip(seed: int, tmp_path: Path) -> None:
    document = spelling_b(clean_kb(seed))
    source = write_json(tmp_path / "source.json", document)
    knowledge = read_kqapro(source)
    write_kqapro(knowledge, tmp_path / "again.json", spelling="B")
    same(json.loads((tmp_path / "again.json").read_text("utf-8")), document)
    same(document_of(knowledge), clean_kb(seed))


def test_the_random_knowledge_bases_have_everything() -> None:
    text = "".join(json.dumps(clean_kb(seed)) for seed in SEEDS)
    for part in ("string", "quantity", "date", "year", "backward", "forward"):
        assert f'"{part}"' in text
    ends = [ends_of(clean_kb(seed)) for seed in SEEDS]
    assert sum(one for one, _ in ends) > 100 and sum(both for _, both in ends) > 100


def ends_of(document: Any) -> tuple[int, int]:
    """How many facts between entities are recorded at one end, and at both."""
    knowledge = from_kqapro(document)
    table = knowledge.relational
    both = int(((table.head_order >= 0) & (table.tail_order >= 0)).sum())
    return len(table) - both, both


@pytest.mark.parametrize("seed", SEEDS)
def test_chain_of_all_forms(seed: int, tmp_path: Path) -> None:
    document = clean_kb(seed)
    knowledge = read_kqapro(write_json(tmp_path / "a.json", document))
    write_kqapro(knowledge, tmp_path / "b.json.gz", spelling="B")
    write_lines(read_kqapro(tmp_path / "b.json.gz"), tmp_path / "c.jsonl.bz2")
    write_snapshot(read_lines(tmp_path / "c.jsonl.bz2"), tmp_path / "d.kopl")
    write_kqapro(read_snapshot(tmp_path / "d.kopl"), tmp_path / "e.json.xz")
    again = read_kqapro(tmp_path / "e.json.xz")
    same(document_of(again), document)
    assert again.fingerprint == knowledge.fingerprint


@pytest.mark.parametrize("seed", SEEDS)
def test_an_awkward_knowledge_base_is_settled_after_one_reading(seed: int, tmp_path: Path) -> None:
    once = from_kqapro(random_kb(random.Random(seed)))
    write_kqapro(once, tmp_path / "kb.json")
    twice = read_kqapro(tmp_path / "kb.json")
    same(document_of(twice), document_of(once))
    assert len(twice.relational) == len(once.relational)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("ends", ["head", "both"])
def test_the_facts_are_the_same_at_any_ends(seed: int, ends: Any, tmp_path: Path) -> None:
    knowledge = from_kqapro(clean_kb(seed))
    write_kqapro(knowledge, tmp_path / "kb.json", ends=ends)
    write_lines(knowledge, tmp_path / "kb.jsonl", ends=ends)
    for path in (tmp_path / "kb.json", tmp_path / "kb.jsonl"):
        again = read(path)
        assert sorted(map(repr, again.facts())) == sorted(map(repr, knowledge.facts()))
        table = again.relational
        assert (table.head_order >= 0).all()
        assert ((table.tail_order >= 0) == (ends == "both")).all()


def test_lines_hold_one_node_each(tmp_path: Path) -> None:
    document = clean_kb(3)
    write_lines(from_kqapro(document), tmp_path / "kb.jsonl")
    lines = [
        json.loads(line) for line in (tmp_path / "kb.jsonl").read_text("utf-8").split("\n")[:-1]
    ]
    expected = [
        {"id": id, "kind": kind, **node}
        for kind, section in (("concept", "concepts"), ("entity", "entities"))
        for id, node in document[section].items()
    ]
    same(lines, expected)


@pytest.mark.parametrize("seed", range(10))
def test_lines_may_come_in_any_order(seed: int, tmp_path: Path) -> None:
    document = clean_kb(seed)
    write_lines(from_kqapro(document), tmp_path / "kb.jsonl")
    lines = (tmp_path / "kb.jsonl").read_text("utf-8").split("\n")[:-1]
    random.Random(seed).shuffle(lines)
    (tmp_path / "mixed.jsonl").write_text("\r\n\n".join(lines), "utf-8")
    assert document_of(read_lines(tmp_path / "mixed.jsonl")) == document


def test_the_tiny_knowledge_base(tiny: Any, tiny_document: Any) -> None:
    same(document_of(tiny), tiny_document)


def test_concepts_with_facts_and_self_loops(tmp_path: Path) -> None:
    loop = [relation("r", "backward", "q"), relation("r", "forward", "q")]
    document = {
        "concepts": {
            "c": {"name": "c", "subclassOf": [], "relations": [relation("r", "forward", "q")]},
            "d": {"name": "d", "subclassOf": ["c"], "relations": [relation("s", "backward", "c")]},
        },
        "entities": {"q": {"name": "q", "instanceOf": ["d"], "attributes": [], "relations": loop}},
    }
    knowledge = from_kqapro(document)
    same(document_of(knowledge), document)
    assert len(knowledge.relational) == 3
    write_lines(knowledge, tmp_path / "kb.jsonl")
    assert read_lines(tmp_path / "kb.jsonl").fingerprint == knowledge.fingerprint


def test_empty_knowledge_base(tmp_path: Path) -> None:
    empty = Builder().build()
    write_kqapro(empty, tmp_path / "kb.json")
    write_lines(empty, tmp_path / "kb.jsonl")
    write_snapshot(empty, tmp_path / "kb.kopl")
    for name in ("kb.json", "kb.jsonl", "kb.kopl"):
        again = read(tmp_path / name)
        assert (again.node_count, again.fingerprint) == (0, empty.fingerprint)
    assert json.loads((tmp_path / "kb.json").read_text()) == {"concepts": {}, "entities": {}}


# --- reading ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_the_callers_object_is_not_changed(seed: int) -> None:
    document = random_kb(random.Random(seed))
    before = copy.deepcopy(document)
    from_kqapro(document)
    same(document, before)


@pytest.mark.parametrize("seed", range(10))
def test_sections_in_either_order(seed: int, tmp_path: Path) -> None:
    document = clean_kb(seed)
    turned = {section: document[section] for section in ("entities", "concepts")}
    first = read_kqapro(write_json(tmp_path / "first.json", document))
    second = read_kqapro(write_json(tmp_path / "second.json", turned))
    same(document_of(second), document)
    assert second.fingerprint == first.fingerprint


@pytest.mark.parametrize("chunk", [1, 7, 64, 1000])
@pytest.mark.parametrize("indent", [None, 3])
def test_pieces_of_any_size(
    chunk: int, indent: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = clean_kb(5, "tiny")
    path = tmp_path / "kb.json"
    path.write_text(json.dumps(document, indent=indent), "utf-8")
    whole = read_kqapro(path).fingerprint
    monkeypatch.setattr(kopl_base.stream, "CHUNK", chunk)
    assert read_kqapro(path).fingerprint == whole


@pytest.mark.parametrize("chunk", range(1, 20))
def test_values_of_other_fields_may_be_cut_anywhere(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kopl_base.stream, "CHUNK", chunk)
    path = tmp_path / "kb.json"
    numbers = '1.5 -0.25e-10 1e5 12E+7 -Infinity NaN true false null "\\ud83d\\ude00" [1.5] 0'
    fields = ",".join(f'"f{at}": {number}' for at, number in enumerate(numbers.split(" ")))
    path.write_text("{" + fields + ', "concepts": {}, "entities": {}, "end": -1.25e-7}')
    assert read_kqapro(path).node_count == 0


@pytest.mark.parametrize("chunk", [1, 3, 50, 1 << 20])
@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"concepts":\n {"c": {"name"! 1}}, "entities": {}}' + " " * 50, "line 2, column 15"),
        ('{\n\n"concepts": 5, "entities": {}}', "line 3, column 13"),
        ('{"concepts": {}\n "entities": {}}', "line 2, column 2"),
        ('{"concepts": {}, "entities": {}}\n\n x', "line 3, column 2"),
    ],
)
def test_places_do_not_depend_on_the_pieces(
    chunk: int, text: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kopl_base.stream, "CHUNK", chunk)
    (tmp_path / "kb.json").write_text(text)
    with pytest.raises(ReadError) as caught:
        read_kqapro(tmp_path / "kb.json")
    assert caught.value.place == place


COMPRESSIONS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("ending", COMPRESSIONS)
@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_compressed_files(form: str, ending: str, tmp_path: Path) -> None:
    knowledge = from_kqapro(clean_kb(8))
    write = write_kqapro if form == "json" else write_lines
    write(knowledge, tmp_path / f"kb.{form}")
    plain = (tmp_path / f"kb.{form}").read_bytes()
    other = tmp_path / f"other.{form}{ending}"
    other.write_bytes(COMPRESSIONS[ending](plain))
    assert read(other).fingerprint == knowledge.fingerprint
    # The ending decides how a file is written; its first bytes decide how it is read.
    write(knowledge, other)
    assert (other.read_bytes() == plain) == (ending == "")
    bare = other.rename(tmp_path / "bare")
    assert read(bare).fingerprint == knowledge.fingerprint


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_the_same_bytes_every_time(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    knowledge = from_kqapro(clean_kb(9))
    for folder in ("x", "y"):
        write_lines(knowledge, tmp_path / folder / f"kb.jsonl{ending}")
        monkeypatch.setattr("time.time", lambda: 1e9)  # another day
    write_lines(knowledge, tmp_path / f"other name.jsonl{ending}")
    first = (tmp_path / "x" / f"kb.jsonl{ending}").read_bytes()
    assert first == (tmp_path / "y" / f"kb.jsonl{ending}").read_bytes()
    assert first == (tmp_path / f"other name.jsonl{ending}").read_bytes()


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_byte_order_mark(form: str, tmp_path: Path) -> None:
    knowledge = from_kqapro(clean_kb(8))
    path = tmp_path / f"kb.{form}"
    (write_kqapro if form == "json" else write_lines)(knowledge, path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read(path).fingerprint == knowledge.fingerprint


def test_both_spellings_of_a_value(tmp_path: Path) -> None:
    dates = ["2001-02-03", "2001/2/3", "2001/02/03", "2001-2-03"]
    facts = [{"key": "k", "value": value("date", date), "qualifiers": {}} for date in dates]
    facts.append({"key": "n", "value": value("quantity", 5, ""), "qualifiers": {}})
    node = {"name": "e", "instanceOf": [], "attributes": facts, "relations": []}
    knowledge = from_kqapro({"concepts": {}, "entities": {"e": node}})
    assert [str(fact.value) for fact in knowledge.attributes(0)] == ["2001-02-03"] * 4 + ["5"]
    assert len(knowledge.values) == 2


def test_reading_logs_how_many_warnings_there_were(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    document = {"concepts": {"c": {"name": "", "subclassOf": ["x"]}}, "entities": {}}
    with caplog.at_level(logging.WARNING):
        read(write_json(tmp_path / "kb.json", document))
    assert "2 warnings" in caplog.text


# --- writing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["f", "f.gz", "f.bz2", "f.xz"])
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("older", [False, True])
def test_a_failure_leaves_the_older_file(
    name: str, binary: bool, older: bool, tmp_path: Path
) -> None:
    path = tmp_path / name
    if older:
        path.write_text("older")
    with pytest.raises(ZeroDivisionError), writing(path, binary=binary) as file:
        file.write((b"x" if binary else "x") * 100_000)
        raise ZeroDivisionError
    assert [file.name for file in tmp_path.iterdir()] == ([name] if older else [])
    assert not older or path.read_text() == "older"


def test_a_full_disk_is_a_write_error(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("older")
    with pytest.raises(WriteError, match="no room"), writing(tmp_path / "f"):
        raise OSError(28, "no room")
    assert [file.name for file in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_text() == "older"


@pytest.mark.parametrize("write", [write_kqapro, write_lines, write_snapshot])
def test_no_place_to_write(write: Any, tmp_path: Path, tiny: Any) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "file" / "kb", tmp_path / "folder"):
        with pytest.raises(WriteError, match="cannot be written") as caught:
            write(tiny, path)
        assert str(path) in str(caught.value)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "folder"]


def test_new_folders_and_ordinary_rights(tmp_path: Path, tiny: Any) -> None:
    path = tmp_path / "new" / "folder" / "kb.json"
    write_kqapro(tiny, path)
    (tmp_path / "plain").write_text("")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_lines_go_on_where_they_were_left(tmp_path: Path) -> None:
    """One iterator gives the first line, another the rest, as readers of one's own files do."""
    (tmp_path / "lines").write_text("one\ntwo\nthree", "utf-8")
    with TextReader(tmp_path / "lines") as reader:
        assert reader.read(1) == "o"
        assert next(reader.lines()) == "ne"
        assert list(reader.lines()) == ["two", "three"]
