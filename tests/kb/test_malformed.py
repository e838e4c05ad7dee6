"""Malformed knowledge bases: what is refused or repaired, with the message and the place."""

from __future__ import annotations

import bz2
import copy
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kb import (
    Problems,
    ReadError,
    check,
    check_file,
    from_kqapro,
    load,
    read,
    read_kqapro,
    read_lines,
    read_snapshot,
    write_kqapro,
    write_lines,
)
from tests.kb.strategies import clean_kb, relation, value

BASE: dict[str, Any] = {
    "concepts": {
        "c": {"name": "city", "subclassOf": ["p"]},
        "p": {"name": "place", "subclassOf": []},
    },
    "entities": {
        "e": {
            "name": "Paris",
            "instanceOf": ["c"],
            "attributes": [
                {
                    "key": "area",
                    "value": value("quantity", 105.4, "square kilometre"),
                    "qualifiers": {"on": [value("date", "2001-02-03")]},
                }
            ],
            "relations": [relation("twin", "forward", "f", since=[value("year", 1956)])],
        },
        "f": {"name": "Rome", "instanceOf": ["c"], "attributes": [], "relations": []},
    },
}


def changed(path: str, new: Any) -> dict[str, Any]:
    """BASE with another value at a path; ``...`` takes the field away."""
    document = copy.deepcopy(BASE)
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    at: Any = document
    for step in way:
        at = at[step]
    if new is ...:
        del at[last]
    else:
        at[last] = new
    return document


FACT = "entities.e.attributes.0"
LINK = "entities.e.relations.0"
ON = f"{FACT}.qualifiers.on"
IN_FACT, IN_LINK = "entities/e/attributes[0]", "entities/e/relations[0]"

# where, what stands there, the place, a part of the message
REFUSED: list[tuple[str, Any, str, str]] = [
    ("concepts", [], "concepts", "object of nodes"),
    ("entities", None, "entities", "object of nodes"),
    ("entities.e", [], "entities/e", "expected an object, found []"),
    ("concepts.c", "city", "concepts/c", "expected an object, found 'city'"),
    ("entities.e.name", ..., "entities/e", 'no "name"'),
    ("entities.e.name", None, "entities/e", 'no "name"'),
    ("entities.e.name", 5, "entities/e/name", "not a text: 5"),
    ("concepts.c.name", ["x"], "concepts/c/name", "not a text"),
    ("entities.e.instanceOf", "c", "entities/e/instanceOf", "expected a list of ids, found 'c'"),
    ("entities.e.instanceOf", [1], "entities/e/instanceOf", "expected a list of ids"),
    ("concepts.c.subclassOf", {}, "concepts/c/subclassOf", "expected a list of ids"),
    ("concepts.c.subclassOf", [None], "concepts/c/subclassOf", "expected a list of ids"),
    ("concepts.c.attributes", [1], "concepts/c/attributes", "concepts have no attributes"),
    ("entities.e.attributes", {}, "entities/e/attributes", "expected a list, found {}"),
    ("entities.e.relations", "x", "entities/e/relations", "expected a list, found 'x'"),
    (FACT, None, IN_FACT, "not of the form"),
    (FACT, "area", IN_FACT, "not of the form"),
    (f"{FACT}.key", ..., IN_FACT, "no 'key'"),
    (f"{FACT}.key", 1, IN_FACT, "key must be a text, not 1"),
    (f"{FACT}.value", ..., IN_FACT, "no 'value'"),
    (f"{FACT}.value", 105.4, IN_FACT, "not of the form"),
    (f"{FACT}.value.type", ..., IN_FACT, "no 'type'"),
    (f"{FACT}.value.type", "number", IN_FACT, "not 'number'"),
    (f"{FACT}.value.type", ["string"], IN_FACT, "not ['string']"),
    (f"{FACT}.value.value", "105", IN_FACT, "must be a number, not '105'"),
    (f"{FACT}.value.value", True, IN_FACT, "must be a number, not True"),
    (f"{FACT}.value.value", None, IN_FACT, "must be a number, not None"),
    (f"{FACT}.value.value", float("nan"), IN_FACT, "finite"),
    (f"{FACT}.value.value", float("inf"), IN_FACT, "finite"),
    (f"{FACT}.value.value", float("-inf"), IN_FACT, "finite"),
    (f"{FACT}.value.value", 10**400, IN_FACT, "finite"),
    (f"{FACT}.value.unit", 1, IN_FACT, "unit must be a text"),
    (f"{FACT}.value", value("string", 5), IN_FACT, "must be a text, not 5"),
    (f"{FACT}.value", value("string", None), IN_FACT, "must be a text, not None"),
    (f"{FACT}.value", value("year", "1999"), IN_FACT, "must be an integer, not '1999'"),
    (f"{FACT}.value", value("year", 1999.0), IN_FACT, "must be an integer, not 1999.0"),
    (f"{FACT}.value", value("year", True), IN_FACT, "must be an integer, not True"),
    (f"{FACT}.value", value("year", 10**13), IN_FACT, "out of range"),
    (f"{FACT}.value", value("date", 2001), IN_FACT, "must be a text, not 2001"),
    (f"{FACT}.value", value("date", "2001"), IN_FACT, "must be a day"),
    (f"{FACT}.value", value("date", "2001-02-30"), IN_FACT, "no day 2001-02-30"),
    (f"{FACT}.value", value("date", "1900/02/29"), IN_FACT, "no day 1900-02-29"),
    (f"{FACT}.value", value("date", "2001-13-01"), IN_FACT, "no day 2001-13-01"),
    (f"{FACT}.value", value("date", "2001-02/03"), IN_FACT, "neither a year nor a day"),
    (f"{FACT}.value", value("date", "2001-00/00"), IN_FACT, "neither a year nor a day"),
    (f"{FACT}.value", value("date", "--2001-00-00"), IN_FACT, "neither a year nor a day"),
    (f"{FACT}.value", value("date", "2001-xx-00"), IN_FACT, "neither a year nor a day"),
    (f"{FACT}.value", value("date", "next year"), IN_FACT, "neither a year nor a day"),
    (f"{FACT}.qualifiers", [], IN_FACT, "not of the form"),
    (f"{FACT}.qualifiers", "", IN_FACT, "not of the form"),
    (f"{FACT}.qualifiers", [1], IN_FACT, "not of the form"),
    (ON, value("year", 1), IN_FACT, "'on' must have a list of values"),
    (ON, [5], IN_FACT, "not of the form"),
    (f"{ON}.0.value", "2001-02-29", IN_FACT, "no day 2001-02-29"),
    (f"{ON}.0.type", "day", IN_FACT, "not 'day'"),
    (LINK, 5, IN_LINK, "not of the form"),
    (LINK, "x", IN_LINK, "not of the form"),
    (f"{LINK}.relation", ..., IN_LINK, "no 'relation'"),
    (f"{LINK}.relation", 5, IN_LINK, "must be texts"),
    (f"{LINK}.object", ["f"], IN_LINK, "must be texts"),
    (f"{LINK}.object", ..., IN_LINK, "no 'object'"),
    (f"{LINK}.direction", "Forward", IN_LINK, "not 'Forward'"),
    (f"{LINK}.direction", None, IN_LINK, "not None"),
    (f"{LINK}.qualifiers", 0, IN_LINK, "not of the form"),
    (f"{LINK}.qualifiers.since", None, IN_LINK, "'since' must have a list"),
    (f"{LINK}.qualifiers.since.0.value", 1e999, IN_LINK, "must be an integer"),
    ("concepts.e", {"name": "x", "subclassOf": []}, "entities/e", "an entity and a concept"),
    ("entities.e.name", "\ud800", r"'\ud800'", "lone surrogate"),
    (f"{FACT}.key", "x\udfff", r"'x\udfff'", "lone surrogate"),
    (f"{FACT}.value", value("string", "\ud800"), r"'\ud800'", "lone surrogate"),
    (f"{LINK}.relation", "\ud800", r"'\ud800'", "lone surrogate"),
    ("entities.\ud800", BASE["entities"]["f"], r"'\ud800'", "lone surrogate"),
]


@pytest.mark.parametrize(("path", "new", "place", "message"), REFUSED)
def test_refused_with_its_place(
    path: str, new: Any, place: str, message: str, tmp_path: Path
) -> None:
    document = changed(path, new)
    with pytest.raises(ReadError) as caught:
        from_kqapro(document)
    assert caught.value.place == place and message in caught.value.message
    # The same from a file: it is named, and nothing is lost on the way.
    file = tmp_path / "kb.json"
    file.write_text(json.dumps(document))
    with pytest.raises(ReadError) as caught:
        read(file)
    assert caught.value.source == str(file) and str(file) in str(caught.value)
    if path not in ("concepts", "entities"):
        assert caught.value.place == place and message in caught.value.message
        problems = check_file(file)
        assert [p.place for p in problems.found if p.severity == "error"] == [place]


# Lines have no sections and no bare nodes.
@pytest.mark.parametrize(("path", "new", "place", "message"), REFUSED[4:])
def test_refused_in_json_lines(
    path: str, new: Any, place: str, message: str, tmp_path: Path
) -> None:
    document = changed(path, new)
    file = tmp_path / "kb.jsonl"
    lines = [
        json.dumps({"id": id, "kind": kind, **node})
        for kind, section in (("concept", "concepts"), ("entity", "entities"))
        for id, node in document[section].items()
    ]
    file.write_text("\n".join(lines))
    with pytest.raises(ReadError) as caught:
        read(file)
    assert message in caught.value.message
    if "/" in place:
        _, id, *rest = place.split("/", 2)
        number = next(at for at, line in enumerate(lines, 1) if f'"id": "{id}"' in line)
        if message == "an entity and a concept":
            number = 4
        assert caught.value.place == "/".join([f"line {number} ({id})", *rest])


# repaired or kept: where, what, code of the warning, place, part of the message
REPAIRED: list[tuple[str, Any, str, str, str]] = [
    ("concepts.c.subclassOf", ["p", "x"], "dangling-id", "concepts/c/subclassOf", "'x' is not def"),
    ("entities.e.instanceOf", ["x"], "dangling-id", "entities/e/instanceOf", "'x' is not defined"),
    ("entities.e.instanceOf", ["f"], "dangling-id", "entities/e/instanceOf", "'f' is an entity"),
    ("concepts.c.subclassOf", ["e"], "dangling-id", "concepts/c/subclassOf", "'e' is an entity"),
    (f"{LINK}.object", "x", "dangling-id", "entities/e/relations/twin", "'x' is not defined"),
    (f"{FACT}.value.unit", ..., "missing-unit", IN_FACT, '"1" is assumed'),
    (f"{FACT}.value.unit", None, "missing-unit", IN_FACT, '"1" is assumed'),
    (f"{FACT}.qualifiers", ..., "missing-qualifiers", IN_FACT, "none are assumed"),
    (f"{LINK}.qualifiers", None, "missing-qualifiers", IN_LINK, "none are assumed"),
    (f"{FACT}.value", value("date", "1999-00-00"), "date-without-day", IN_FACT, "year 1999"),
    (f"{FACT}.value", value("date", "-44/03/00"), "date-without-day", IN_FACT, "year -44"),
    (f"{FACT}.value", value("date", "1999-0-5"), "date-without-day", IN_FACT, "year 1999"),
    (f"{ON}.0.value", "0000-00-01", "date-without-day", IN_FACT, "year 0"),
    ("entities.e.name", "", "empty-name", "entities/e", "empty name"),
    ("entities.e.name", " \u3000\n", "empty-name", "entities/e", "empty name"),
    ("concepts.c.name", "", "empty-name", "concepts/c", "empty name"),
    ("comment", {"made": "today"}, "unknown-field", "comment", "passed over"),
]


@pytest.mark.parametrize(("path", "new", "code", "place", "message"), REPAIRED)
def test_repaired_with_a_warning(
    path: str, new: Any, code: str, place: str, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "kb.json"
    file.write_text(json.dumps(changed(path, new)))
    problems = Problems()
    knowledge = read_kqapro(file, problems)
    (found,) = problems.found
    assert (found.severity, found.code, found.place) == ("warning", code, place)
    assert message in found.message
    assert knowledge.node_count == 4
    assert problems.warnings == 1 and problems.errors == 0
    reported = [p for p in check_file(file).found if p.code == code]
    assert [p.place for p in reported] == [place]


def test_what_the_repairs_leave() -> None:
    for path, kept in ((f"{LINK}.object", 0), (f"{LINK}.qualifiers", 1)):
        assert len(from_kqapro(changed(path, None if kept else "x")).relational) == kept
    knowledge = from_kqapro(changed(f"{FACT}.value", value("date", "-0044-00-15")))
    assert [str(fact.value) for fact in knowledge.attributes(knowledge.node("e"))] == ["-44"]
    knowledge = from_kqapro(changed(f"{FACT}.value.unit", ""))
    assert [str(fact.value) for fact in knowledge.attributes(knowledge.node("e"))] == ["105.4"]
    knowledge = from_kqapro(changed("entities.e.instanceOf", ["x", "c"]))
    assert [knowledge.id_of(c) for c in knowledge.concepts_of(knowledge.node("e"))] == ["c"]


def test_a_clean_file_has_no_problem(tmp_path: Path) -> None:
    (tmp_path / "kb.json").write_text(json.dumps(BASE))
    assert check_file(tmp_path / "kb.json").found == []


# --- damaged files ---------------------------------------------------------------------------

TEXT = json.dumps(BASE)


def test_cut_anywhere(tmp_path: Path) -> None:
    file = tmp_path / "kb.json"
    for cut in range(len(TEXT)):
        file.write_text(TEXT[:cut])
        with pytest.raises(ReadError) as caught:
            read_kqapro(file)
        assert "too early" in caught.value.message or cut == 0, cut


def test_lines_cut_anywhere(tmp_path: Path) -> None:
    write_lines(from_kqapro(BASE), tmp_path / "whole.jsonl")
    text = (tmp_path / "whole.jsonl").read_text()
    file = tmp_path / "kb.jsonl"
    ends = {at for at, character in enumerate(text) if character == "\n"}
    for cut in range(len(text)):
        if cut in ends or cut - 1 in ends or cut == 0:
            continue  # whole lines
        file.write_text(text[:cut])
        with pytest.raises(ReadError, match="not JSON") as caught:
            read_lines(file)
        assert caught.value.place == f"line {text[:cut].count(chr(10)) + 1}"


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_compressed_files_cut_short(
    compress: Callable[[bytes], bytes], form: str, tmp_path: Path
) -> None:
    write = write_kqapro if form == "json" else write_lines
    write(from_kqapro(clean_kb(1)), tmp_path / "whole")
    data = compress((tmp_path / "whole").read_bytes())
    file = tmp_path / f"kb.{form}.gz"
    for cut in (len(data) - 1, len(data) - 9, len(data) // 2, 30):
        file.write_bytes(data[:cut])
        with pytest.raises(ReadError, match="damaged or cut short"):
            read(file)
    for at in (len(data) // 2, len(data) - 6):
        file.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        with pytest.raises(ReadError):
            read(file)


# the bytes of a kb.json, a part of the message
BAD_DOCUMENTS: list[tuple[bytes, str]] = [
    (b"", "expected an object"),
    (b" \n", "expected an object"),
    (b"[]", "expected an object"),
    (b"null", "expected an object"),
    (b"{}", 'no "concepts"'),
    (b'{"concepts": {}}', 'no "entities"'),
    (TEXT.encode() + b"x", "text follows"),
    (TEXT.encode() + b"\n" + TEXT.encode(), "text follows"),
    (TEXT.encode("utf-16"), "not UTF-8"),
    (TEXT.replace("Paris", "Orl\u00e9ans").encode("latin-1"), "not UTF-8"),
    (TEXT.encode().replace(b'"Paris"', b"'Paris'"), "not JSON"),
    (TEXT.encode().replace(b'"Paris"', b'"Pa\nris"'), "not JSON"),
    (TEXT.encode().replace(b'"Paris"', b'"\\x"'), "not JSON"),
    (TEXT.encode().replace(b'"Paris",', b'"Paris",,'), "not JSON"),
    (TEXT.encode().replace(b'"entities":', b"entities:"), "expected '\"'"),
    (TEXT.encode().replace(b', "entities"', b' "entities"'), "expected ',' or '}'"),
    (TEXT.encode().replace(b'"entities": {', b'"entities": [{'), "must be an object of nodes"),
    (TEXT.encode().replace(b"105.4", b"NaN"), "finite"),
    (TEXT.encode().replace(b"105.4", b"Infinity"), "finite"),
    (TEXT.encode().replace(b"105.4", b"-Infinity"), "finite"),
    (TEXT.encode().replace(b"105.4", b"1e999"), "finite"),
    (TEXT.encode().replace(b"105.4", b"9" * 400), "finite"),
    (TEXT.encode().replace(b"105.4", b"9" * 5000), "not JSON of this kind"),
    (TEXT.encode().replace(b"1956", b"9" * 4000), "out of range"),
    (TEXT.encode().replace(b"105.4", b"[" * 100_000), "nested too deeply"),
    (TEXT.encode().replace(b'"f": {', b'"e": {'), "defined twice"),
    (TEXT.encode().replace(b'"f": {', b'"c": {'), "an entity and a concept"),
    (TEXT.encode().replace(b'"Paris"', b'"\\ud800"'), "lone surrogate"),
]


@pytest.mark.parametrize(("data", "message"), BAD_DOCUMENTS, ids=range(len(BAD_DOCUMENTS)))
def test_bad_documents(data: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "kb.json"
    file.write_bytes(data)
    with pytest.raises(ReadError) as caught:
        read(file)
    assert message in str(caught.value) and str(caught.value).startswith(str(file))
    if "UTF-8" not in message:
        assert caught.value.place
    with pytest.raises(ReadError, match=r"kb\.json"):
        load(file)


NODE = '{"id": "e", "kind": "entity", "name": "x"}'
# the second line of a file of JSON lines, a part of the message
BAD_LINES: list[tuple[str, str]] = [
    ("{", "not JSON"),
    ("[" * 100_000, "not JSON"),
    ('{"id": "f", "kind": "entity", "name": ' + "9" * 5000 + "}", "not JSON"),
    (NODE.replace('"e"', '"f"') + ",", "not JSON"),
    ("[]", 'with an "id"'),
    ("5", 'with an "id"'),
    ('{"kind": "entity", "name": "x"}', 'with an "id"'),
    ('{"id": 5, "kind": "entity", "name": "x"}', 'with an "id"'),
    ('{"id": "f", "name": "x"}', "not None"),
    ('{"id": "f", "kind": "thing", "name": "x"}', "not 'thing'"),
    ('{"id": "f", "kind": ["entity"], "name": "x"}', "not ['entity']"),
    ('{"id": "f", "kind": "entity"}', 'no "name"'),
    (NODE, "defined twice"),
    (NODE.replace("entity", "concept"), "an entity and a concept"),
]


@pytest.mark.parametrize(("line", "message"), BAD_LINES, ids=range(len(BAD_LINES)))
def test_bad_lines(line: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "kb.jsonl"
    file.write_text(f"{NODE}\n{line}\n")
    with pytest.raises(ReadError) as caught:
        read(file)
    assert message in caught.value.message and caught.value.place.startswith("line 2")


@pytest.mark.parametrize("depth", [10, 500, *range(900, 1001, 5), 5000])
@pytest.mark.parametrize("where", ["name", "attributes", "instanceOf"])
def test_nesting_of_any_depth_is_refused(where: str, depth: int, tmp_path: Path) -> None:
    for deep in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        fields = {"name": '"x"', "attributes": "[]", "instanceOf": "[]"}
        fact = '[{"key": "k", "value": {"type": "string", "value": %s}}]'
        fields[where] = fact % deep if where == "attributes" else deep
        node = "{" + ", ".join(f'"{field}": {text}' for field, text in fields.items()) + "}"
        (tmp_path / "kb.json").write_text(f'{{"concepts": {{}}, "entities": {{"e": {node}}}}}')
        with pytest.raises(ReadError):
            read(tmp_path / "kb.json")
        (tmp_path / "kb.jsonl").write_text('{"id": "e", "kind": "entity", ' + node[1:])
        with pytest.raises(ReadError):
            read(tmp_path / "kb.jsonl")


@pytest.mark.parametrize("opener", [load, read, check_file])
def test_no_such_file(opener: Callable[[Path], Any], tmp_path: Path) -> None:
    for name in ("kb.json", "kb.jsonl", "kb.kopl", "kb"):
        with pytest.raises(ReadError, match="no such file"):
            opener(tmp_path / name)
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(ReadError, match="folder"):
        opener(tmp_path / "folder.json")
    (tmp_path / "text").write_text("Paris is a city.")
    with pytest.raises(ReadError, match="not a knowledge base"):
        opener(tmp_path / "text")


@pytest.mark.parametrize("reader", [read_kqapro, read_lines, read_snapshot])
def test_readers_name_the_file_that_is_not_there(
    reader: Callable[[Path], Any], tmp_path: Path
) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(ReadError, match="cannot be opened") as caught:
            reader(path)
        assert caught.value.source == str(path)


# --- all problems at once --------------------------------------------------------------------


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_check_file_collects_all_problems(form: str, tmp_path: Path) -> None:
    fact = {"key": "k", "value": value("date", "2001-02-30"), "qualifiers": {}}
    other = {"key": "k", "value": value("quantity", "5"), "qualifiers": {}}
    nodes: dict[str, Any] = {
        "c": {"kind": "concept", "name": "", "subclassOf": ["d", "nowhere"]},
        "d": {"kind": "concept", "name": "d", "subclassOf": ["c"]},
        "e": {"kind": "entity", "name": 5},
        "f": {
            "kind": "entity",
            "name": "\ud800",
            "instanceOf": ["c"],
            "attributes": [
                fact,
                other,
                {"key": "k", "value": value("string", "2001-02-03")},
                {"key": "k", "value": value("quantity", 5, "m")},
                {"key": "k", "value": value("quantity", 5), "qualifiers": {}},
            ],
            "relations": [{"relation": "r", "direction": "up", "object": "c"}],
        },
    }
    file = tmp_path / f"kb.{form}"
    if form == "jsonl":
        file.write_text("\n".join(json.dumps({"id": id, **node}) for id, node in nodes.items()))
    else:
        concepts = {id: node for id, node in nodes.items() if node["kind"] == "concept"}
        entities = {id: node for id, node in nodes.items() if node["kind"] == "entity"}
        file.write_text(json.dumps({"concepts": concepts, "entities": entities}))
    problems = check_file(file)
    assert {(p.severity, p.code) for p in problems.found} == set(problems.counts)
    assert problems.counts == {
        ("warning", "empty-name"): 1,
        ("error", "wrong-type"): 2,  # the name 5, the lone surrogate
        ("error", "bad-date"): 1,
        ("error", "bad-value"): 2,  # the number "5", the direction
        ("warning", "missing-qualifiers"): 2,
        ("warning", "missing-unit"): 1,
        ("warning", "dangling-id"): 1,
        ("warning", "concept-cycle"): 1,
        ("warning", "mixed-types"): 1,
        ("warning", "mixed-units"): 1,
        ("warning", "unreachable-date"): 1,
    }
    assert (problems.errors, problems.warnings) == (5, 9)


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_counts_are_complete_when_lists_are_not(form: str, tmp_path: Path) -> None:
    nodes = {f"e{at}": {"name": "", "instanceOf": []} for at in range(20)}
    write = write_kqapro if form == "json" else write_lines
    write(from_kqapro({"concepts": {}, "entities": nodes}), tmp_path / f"kb.{form}")
    problems = check_file(tmp_path / f"kb.{form}", limit=3)
    assert problems.counts == {("warning", "empty-name"): 20, ("warning", "no-concept"): 20}
    assert len(problems.found) == 6
    assert len(check_file(tmp_path / f"kb.{form}", limit=None).found) == 40


def test_cycles_are_one_warning_each() -> None:
    def concept(*parents: str) -> dict[str, Any]:
        return {"name": "c", "subclassOf": list(parents)}

    concepts = {
        "a": concept("b", "top"),
        "b": concept("c"),
        "c": concept("a"),
        "self": concept("self"),
        "below": concept("a"),
        "top": concept(),
        "x": concept("y"),
        "y": concept("x", "top"),
    }
    knowledge = from_kqapro({"concepts": concepts, "entities": {}})
    found = [p for p in check(knowledge).found if p.code == "concept-cycle"]
    assert [(p.place, p.message.split(": ")[1]) for p in found] == [
        ("concepts/a", "a, b, c"),
        ("concepts/self", "self"),
        ("concepts/x", "x, y"),
    ]
    assert {p.severity for p in found} == {"warning"}


def test_check_keeps_what_it_found_before_an_unreadable_place(tmp_path: Path) -> None:
    path = tmp_path / "kb.json"
    path.write_text('{"concepts": {"c": {"name": 5}, "d": {"name": "d"}}, "entities": {')
    found = {(p.code, p.place) for p in check_file(path).found}
    assert ("wrong-type", "concepts/c/name") in found
    assert any(code == "unreadable" and place.startswith("line 1") for code, place in found)
