"""Intervals and tests against published examples, hand-worked cases and brute force."""

from __future__ import annotations

from itertools import product
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.evaluation.accuracy import Difference, Share, wilson


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [
        # Newcombe (1998), Statistics in Medicine 17, 857-872, Table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),  # by hand: 1 - 3.8415 / (29 + 3.8415)
    ],
)
def test_wilson(count: int, of: int, low: float, high: float) -> None:
    assert wilson(count, of) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 5000), st.data())
def test_wilson_holds_the_share_and_is_symmetric(of: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, of))
    low, high = wilson(count, of)
    assert 0 <= low <= count / of <= high <= 1 and low < high
    other = wilson(of - count, of)
    assert other == pytest.approx((1 - high, 1 - low))


@pytest.mark.parametrize(("count", "of"), [(1, 0), (0, 0), (-1, 3), (4, 3)])
def test_no_share(count: int, of: int) -> None:
    with pytest.raises(ValueError, match="no share"):
        wilson(count, of)


def test_a_share_of_nothing() -> None:
    assert Share(0, 0).to_json() == {"count": 0, "of": 0, "share": None, "low": None, "high": None}


@pytest.mark.parametrize(
    ("counts", "low", "high"),
    [
        # Both, only the first, only the second, neither. Newcombe (1998), Statistics in Medicine
        # 17, 2635-2650: his example, method 10.
        ((36, 2, 12, 0), 0.0569, 0.3404),
        ((27, 0, 3, 0), -0.0310, 0.2562),
        ((27, 0, 0, 3), -0.1097, 0.1097),
    ],
)
def test_paired_intervals(
    counts: tuple[int, int, int, int], low: float, high: float
) -> None:  # fmt: skip
    both, first, second, neither = counts
    found = Difference(*counts)
    assert found.value == pytest.approx((second - first) / sum(counts))
    assert found.interval == pytest.approx((low, high), abs=5e-5)
    swapped = Difference(both, second, first, neither)
    assert swapped.interval == pytest.approx((-high, -low), abs=5e-5)


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [(0, 0, 1.0), (1, 1, 1.0), (0, 5, 2 / 32), (2, 12, 2 * (1 + 14 + 91) / 2**14), (3, 4, 1.0)],
)
def test_mcnemar_by_hand(first: int, second: int, p: float) -> None:
    assert Difference(7, first, second, 9).p_value == pytest.approx(p)
    assert Difference(7, second, first, 9).p_value == pytest.approx(p)


@given(st.integers(0, 12), st.integers(0, 12))
def test_mcnemar_by_counting_outcomes(first: int, second: int) -> None:
    """All ways to toss a coin for each disagreement that are at least as uneven."""
    total, apart = first + second, abs(first - second)
    uneven = sum(comb(total, k) for k in range(total + 1) if abs(total - 2 * k) >= apart)
    assert Difference(0, first, second, 0).p_value == pytest.approx(uneven / 2**total)


def test_many_disagreements() -> None:
    assert Difference(0, 5000, 6000, 0).p_value < 1e-20
    assert Difference(0, 10_000, 10_000, 0).p_value == 1.0


def test_counted_from_what_is_right() -> None:
    pairs = [*product([True, False], repeat=2), (False, True)]
    found = Difference.of([a for a, _ in pairs], [b for _, b in pairs])
    assert found == Difference(1, 1, 2, 1)
    assert found.value == pytest.approx(0.2)
    assert Difference.of([], []).interval == (-1.0, 1.0)
    with pytest.raises(ValueError):
        Difference.of([True], [])


@given(st.tuples(*[st.integers(0, 60)] * 4).filter(any))
def test_intervals_hold_the_difference(counts: tuple[int, int, int, int]) -> None:
    found = Difference(*counts)
    low, high = found.interval
    assert -1 - 1e-9 <= low <= found.value <= high <= 1 + 1e-9
