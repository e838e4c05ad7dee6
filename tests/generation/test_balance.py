"""Shares: of types, lengths, operators, functions and counts of nothing, within a block."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from random import Random

import pytest

from generation.blocks import SHORT, SIZE, Balance, Maker, Options
from generation.comparisons import OPERATORS
from generation.rules_file import bundled
from generation.stats import SHARES
from kb import Builder, KnowledgeBase, Quantity, Year
from kopl.example import Example
from kopl.executor import Executor
from kopl.functions import FUNCTIONS, Function
from kopl.program import post_order
from kopl.text import read


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
    assert sum(size <= SHORT for size in sizes) / len(sizes) < (bundled().short or 0) + 0.03
    assert sum(sizes) / len(sizes) >= 4.5


def test_some_counts_are_of_nothing(world: KnowledgeBase, block: list[Example]) -> None:
    counts = [example for example in block if example.type == "Count"]
    none = [example for example in counts if example.answer == "0"]
    assert 0.015 < len(none) / len(counts) < 0.1
    executor = Executor(world)
    for example in none:
        (asked,) = example.program.inputs
        assert len(executor.outcome(asked, {})) == 0
        assert "0" in example.choices


def test_without_a_share_nothing_is_counted_as_none(world: KnowledgeBase) -> None:
    shares = {**dict.fromkeys(SHARES, 0.1), "Count": 90.0}
    options = Options(sparql=False, zero=0.0, shares=tuple(shares.items()))
    made = list(islice(Maker(world, options=options).block(1, 0), 60))
    assert Counter(example.type for example in made)["Count"] >= 48
    assert all(example.answer != "0" for example in made)


@pytest.fixture(scope="module")
def blocks(world: KnowledgeBase) -> list[list[Example]]:
    """5,000 questions."""
    maker = Maker(world, options=Options(sparql=False))
    return [list(maker.block(6, number)) for number in range(10)]


@pytest.mark.parametrize("function", ["VerifyStr", "VerifyNum", "VerifyYear", "VerifyDate"])
def test_yes_and_no_are_even_for_each_operator(blocks: list[list[Example]], function: str) -> None:
    whole: Counter[str] = Counter()
    leads: list[int] = []
    for block in blocks:
        found = Counter(
            ("".join(example.program.arguments[1:]), example.answer)
            for example in block
            if example.program.function.name == function
        )
        for operator in dict.fromkeys(operator for operator, _ in found):
            yes, no = found[operator, "yes"], found[operator, "no"]
            assert abs(yes - no) <= 1, (operator, found)  # within a block the two come by turns
            whole[operator] += yes + no
            leads.append(yes - no)
    if whole.total() > 70:  # then one of ten lacks in one run of 1,500
        assert set(whole) == ({""} if function == "VerifyStr" else set(OPERATORS))
    # Which of the two is ahead is chance: 3.3 standard deviations are one case in a thousand.
    assert abs(sum(leads)) <= 3.3 * sum(map(abs, leads)) ** 0.5, leads


@pytest.mark.parametrize(
    "functions",
    [("FilterNum",), ("FilterYear", "FilterDate"), ("QFilterNum",), ("QFilterDate",)],
)
def test_operators_come_at_their_shares(
    blocks: list[list[Example]], functions: tuple[str, ...]
) -> None:
    found = Counter(
        call.arguments[-1]
        for block in blocks
        for example in block
        for call in post_order(example.program)
        if call.function.name in functions
    )
    shares = dict(OPERATORS)
    if any(function.endswith("Num") for function in functions):
        # Few numbers are known by heart, so that "=" describes nothing by the others.
        assert found.pop("=", 0) < shares["="] * found.total()
        del shares["="]
    whole = sum(shares.values())
    for operator, share in ((operator, share / whole) for operator, share in shares.items()):
        mean = share * found.total()
        spread = (mean * (1 - share)) ** 0.5
        # Two thirds of the share at least, but for chance (one case in a thousand).
        assert found[operator] > 2 / 3 * mean - 3.1 * spread, found
        assert found[operator] < 1.5 * mean + 3.1 * spread, found
        assert found[operator] or mean < 7, found


def test_types_without_a_share_are_not_drawn_for_their_functions(world: KnowledgeBase) -> None:
    options = Options(sparql=False, shares=(("Verify", 100.0),))
    made = list(islice(Maker(world, options=options).block(3, 0), 300))
    assert len(made) == 300
    assert {example.type for example in made} == {"Verify"}


def test_a_function_that_is_not_found_keeps_no_other_from_its_turn() -> None:
    grammar = bundled()
    balance = Balance(grammar, Random(3), levels=8, size=SIZE)
    program = read('Count(Find("Norway"))')  # all other functions are behind, for ever
    asked = Counter[Function]()
    for number in range(SIZE):
        order = next(balance.orders())
        asked.update([order.wanted] if order.wanted else [])
        balance.count("Count", program, str(number))
    assert set(asked) == set(FUNCTIONS.values()) - {call.function for call in post_order(program)}
    assert max(asked.values()) - min(asked.values()) <= 1


def test_programs_keep_to_the_number_of_calls(world: KnowledgeBase) -> None:
    options = Options(sparql=False, calls=5)
    made = list(islice(Maker(world, options=options).block(2, 0), 80))
    assert max(example.program.size for example in made) == 5


@pytest.mark.parametrize("least", [5, 9])
def test_deep_programs_come_when_asked_for(world: KnowledgeBase, least: int) -> None:
    maker = Maker(world, options=Options(sparql=False, levels=14, least=least))
    sizes = [example.program.size for example in islice(maker.block(4, 0), 12)]
    assert len(sizes) == 12 and min(sizes) == least


def test_no_answer_comes_most_of_the_time(block: list[Example]) -> None:
    """Though most figures of the knowledge base are of two years, and most counts are 1."""
    for strategy in ("Count", "QueryName", "QualifierLiteral", "QualifierRelational"):
        answers = Counter(
            example.answer
            for example in block
            if example.type == strategy and example.answer is not None
        )
        assert answers.most_common(1)[0][1] <= 0.15 * answers.total(), answers.most_common(3)


def test_a_knowledge_base_with_one_answer_has_questions() -> None:
    """Answers are spread as far as there are others."""
    builder = Builder()
    for number in range(25):
        builder.add_entity(f"e{number}", f"thing {number}")
        builder.add_attribute(
            f"e{number}", "size", Quantity(number + 1, "metre"), {"point in time": Year(2020)}
        )
    options = Options(sparql=False, shares=(("QualifierLiteral", 100.0),))
    made = list(islice(Maker(builder.build(), options=options).block(1, 0), 25))
    assert len(made) == 25 and {example.answer for example in made} == {"2020"}


@pytest.mark.parametrize("share", ["zero", "noise", "verify", "short"])
def test_a_share_is_from_none_to_all(share: str) -> None:
    with pytest.raises(ValueError, match=f"{share}=5: a share from 0 to 1"):
        Options(**{share: 5})  # type: ignore[arg-type]
