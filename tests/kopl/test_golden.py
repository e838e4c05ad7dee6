"""Programs on the tiny knowledge base with the denotations that one reads off by eye."""

from __future__ import annotations

import json

import pytest

from kb import KnowledgeBase
from kopl.executor import Executor
from kopl.functions import FUNCTIONS
from kopl.program import post_order
from kopl.text import read, to_json
from tests.conftest import DATA
from tests.reference.naive import Naive

GOLDEN = [json.loads(line) for line in (DATA / "golden.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["program"][:60])
def test_denotation(tiny: KnowledgeBase, case: dict) -> None:
    assert Executor(tiny).denote(case["program"]) == case["denotation"]


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["program"][:60])
def test_naive_executor_agrees(tiny_document: dict, case: dict) -> None:
    assert Naive(tiny_document).denotation(to_json(read(case["program"]))) == case["denotation"]


def test_every_function_is_in_the_golden_file() -> None:
    used = {c.function.name for case in GOLDEN for c in post_order(read(case["program"]))}
    assert used == set(FUNCTIONS)
