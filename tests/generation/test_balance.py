"""Shares: of types, lengths, operators, functions and counts of nothing, within a block."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from generation.blocks import SHORT, Maker, Options
from generation.stats import SHARES
from kb import KnowledgeBase
from kopl.example import Example
from kopl.executor import Executor
from kopl.functions import FUNCTIONS
from kopl.program import post_order
from kopl.types import Kind


@pytest.fixture(scope="module")
def block(world: KnowledgeBase) -> list[Example]:
    return list(Maker(world, options=Options(sparql=False)).block(5, 0))


def test_types_follow_their_shares(block: list[Example]) -> None:
    found = Counter(example.type for example in block)
    whole = sum(SHARES.values())
    for strategy, share in SHARES.items():
        assert abs(100 * found[strategy] / len(block) - 100 * share / whole) < 2


def test_every_function_occurs_in_a_block(block: list[Example]) -> None:
    used = {call.function.name for example in block for call in post_order(example.program)}
    assert used == set(FUNCTIONS)


def test_few_programs_are_short(block: list[Example]) -> None:
    sizes = [example.program.size for example in block]
    assert sum(size <= SHORT for size in sizes) / len(sizes) < Options().short + 0.03
    assert sum(sizes) / len(sizes) >= 4.5


def test_some_counts_are_of_nothing(world: KnowledgeBase, block: list[Example]) -> None:
    counts = [example for example in block if example.type == "Count"]
    none = [example for example in counts if example.answer == "0"]
    assert 0.05 < len(none) / len(counts) < 0.15
    executor = Executor(world)
    for example in none:
        (asked,) = example.program.inputs
        assert len(executor.outcome(asked, {})) == 0
        assert "0" in example.choices


def test_without_a_share_nothing_is_counted_as_none(world: KnowledgeBase) -> None:
    shares = {**dict.fromkeys(SHARES, 0.1), "Count": 90.0}
    options = Options(sparql=False, zero=0.0, shares=tuple(shares.items()))
    made = list(islice(Maker(world, options=options).block(1, 0), 60))
    assert Counter(example.type for example in made)["Count"] > 50
    assert all(example.answer != "0" for example in made)


def test_operators_are_about_as_frequent(block: list[Example]) -> None:
    found = Counter(
        text
        for example in block
        for call in post_order(example.program)
        for text, (_, kind) in zip(call.arguments, call.function.arguments, strict=True)
        if kind is Kind.OPERATOR
    )
    assert min(found[operator] for operator in "=<>") > 0.2 * found.total()
    assert found["!="] > 0


def test_programs_keep_to_the_number_of_calls(world: KnowledgeBase) -> None:
    options = Options(sparql=False, calls=5)
    made = list(islice(Maker(world, options=options).block(2, 0), 80))
    assert max(example.program.size for example in made) == 5


def test_deep_programs_come_when_asked_for(world: KnowledgeBase) -> None:
    maker = Maker(world, options=Options(sparql=False, levels=14, least=8))
    made = list(islice(maker.block(4, 0), 40))
    assert min(example.program.size for example in made) == 8
    assert max(example.program.size for example in made) >= 11
