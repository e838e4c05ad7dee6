"""The published examples of KQA Pro: their programs parse, type and round-trip."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kopl.text import read, to_json, write_json, write_nested, write_serialised
from kopl.typecheck import check


@pytest.fixture(scope="module")
def gold(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    folder: Path = request.getfixturevalue("kopl_data")
    path = folder / "kqapro" / "gold_30.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_gold_programs(gold: list[dict[str, Any]]) -> None:
    assert len(gold) == 30
    for item in gold:
        program = read(item["program"])
        check(program)
        assert to_json(program, published=True) == item["program"]
        for write in (write_nested, write_serialised, write_json):
            assert read(write(program)) == program
