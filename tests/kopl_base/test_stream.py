"""A field that an object of JSON has twice: found wherever it stands, and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb import ReadError, check_file, read
from kopl_base.stream import JsonDecoder

AWKWARD = st.sampled_from(["", "a", "b", ":", '":', '" :', "\\", '"', "a: b", '\\":', "\n:"])
SPACE = st.sampled_from(["", "", " ", "\n", "\t ", "\r\n"])


@st.composite
def texts(draw: st.DrawFn, depth: int = 3) -> tuple[str, bool]:
    """A JSON text with white space anywhere, and whether one of its objects has a field twice."""
    kind = draw(st.sampled_from(["text", "number", "object", "list"] if depth else ["text"]))
    if kind == "text":
        return json.dumps(draw(AWKWARD)), False
    if kind == "number":
        return draw(st.sampled_from(["0", "-1.5e3", "true", "null"])), False
    parts = draw(st.lists(texts(depth=depth - 1), max_size=3))
    twice = any(inside for _, inside in parts)
    written = [text for text, _ in parts]
    if kind == "object":
        names = [draw(AWKWARD) for _ in parts]
        twice = twice or len(set(names)) < len(names)
        written = [
            f"{json.dumps(name)}{draw(SPACE)}:{draw(SPACE)}{text}"
            for name, text in zip(names, written, strict=True)
        ]
    comma = f"{draw(SPACE)},{draw(SPACE)}"
    opening, closing = "{}" if kind == "object" else "[]"
    return f"{opening}{draw(SPACE)}{comma.join(written)}{draw(SPACE)}{closing}", twice


@given(st.lists(texts(), min_size=1, max_size=4))
def test_fields_that_are_there_twice(drawn: list[tuple[str, bool]]) -> None:
    decoder = JsonDecoder()  # one for all: nothing stays of the texts before
    for text, twice in drawn:
        assert decoder.decode(text) == json.loads(text)
        assert bool(decoder.twice) == twice
        assert decoder.raw_decode(f'": {text} ":', 3) == (json.loads(text), 3 + len(text))
        assert bool(decoder.twice) == twice
        with pytest.raises(ValueError):
            decoder.decode(text + ', {"a": {"b": 1}, ')


NODE = (
    '{"name": "Rome", "instanceOf": [], "attributes": [{"key": "area", "value": '
    '{"type": "quantity", "value": 5, "unit": "1"}, "qualifiers": {"on": []}}], "relations": []}'
)

# what is put in front of which text of the node, the place of the field
TWICE = [
    ('"name": "Roma", ', '"name"', "name"),
    ('"name" :"Rome",', '"name"', "name"),
    ('"relations": [],', '"name"', "relations"),
    ('"key": "a", ', '"key"', "attributes[0]/key"),
    ('"value": 1, ', '"value": 5', "attributes[0]/value/value"),
    ('"on": [{"type": "string", "value": "\\": a"}], ', '"on"', "attributes[0]/qualifiers/on"),
]


@pytest.mark.parametrize(("more", "before", "field"), TWICE)
def test_a_node_with_a_field_twice(more: str, before: str, field: str, tmp_path: Path) -> None:
    node = NODE.replace(before, more + before)
    lines = f'\n{{"id": "e", "kind": "entity", {node[1:]}\n'
    document = f'{{"concepts": {{}}, "entities": {{\n"e": {node},\n"f": {NODE}}}}}'
    for name, text, place in (
        ("kb.json", document, "entities/e"),
        ("kb.jsonl", lines, "line 2 (e)"),
    ):
        file = tmp_path / name
        file.write_text(text)
        with pytest.raises(ReadError, match="the field is there twice") as caught:
            read(file)
        assert caught.value.source == str(file)
        assert caught.value.place == f"{place}/{field}"
        found: list[Any] = check_file(file).found
        assert [p.place for p in found if p.severity == "error"] == [f"{place}/{field}"]


def test_what_only_looks_like_a_field_twice(tmp_path: Path) -> None:
    node = NODE.replace('"Rome"', '"\\"name\\": \\"name\\" : http://a:b"')
    (tmp_path / "kb.jsonl").write_text(f'{{"id": "e", "kind": "entity", {node[1:]}\n')
    assert read(tmp_path / "kb.jsonl").name_of(0) == '"name": "name" : http://a:b'
