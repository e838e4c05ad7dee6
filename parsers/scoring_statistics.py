"""Shares with intervals, and the difference of two parsers on the same questions.

Intervals of shares are Wilson's (1927, "Probable inference, the law of succession, and statistical
inference"); of paired differences Newcombe's method 10 (1998, "Improved confidence
intervals for the difference between binomial proportions based on paired data"); the test is
McNemar's, exact. All follow from the counts alone: nothing is drawn at random.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LEVEL = 0.95
INTERVAL = "95 % Wilson score interval"
DIFFERENCE_INTERVAL = "95 % interval by Newcombe's method 10 for paired proportions"
DIFFERENCE_TEST = "McNemar's exact test, two-sided"

# The quantile of the normal distribution that leaves 2.5 % above it.
_Z = 1.959963984540054


@dataclass(frozen=True)
class Share:
    """``count`` of ``of`` questions."""

    count: int
    of: int

    @property
    def value(self) -> float | None:
        """The share, from 0 to 1; None of no questions."""
        return self.count / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The lower and upper end of its Wilson interval; None of no questions."""
        return wilson(self.count, self.of) if self.of else None

    def to_json(self) -> dict[str, Any]:
        """The count, the share and its interval as plain numbers."""
        low, high = self.interval or (None, None)
        return {"count": self.count, "of": self.of, "share": self.value, "low": low, "high": high}


def wilson(count: int, of: int) -> tuple[float, float]:
    """The Wilson score interval at `LEVEL` of a share; raises ValueError for no share."""
    if not 0 <= count <= of or of == 0:
        raise ValueError(f"{count} of {of} is no share")
    share, square = count / of, _Z * _Z
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = _Z / (1 + square / of) * math.sqrt(share * (1 - share) / of + square / (4 * of * of))
    # Rounding must not leave 0 or 1 outside where nothing or all was counted.
    return (max(0.0, middle - half) if count else 0.0), (
        min(1.0, middle + half) if count < of else 1.0
    )


@dataclass(frozen=True)
class Difference:
    """Which of the same questions two parsers have right: both, one alone, neither."""

    both: int
    only_first: int
    only_second: int
    neither: int

    @classmethod
    def of(cls, first: Sequence[bool], second: Sequence[bool]) -> Difference:
        """Counted from what is right, question by question; raises ValueError for two lengths."""
        pairs = list(zip(first, second, strict=True))
        return cls(*(pairs.count(pair) for pair in _PAIRS))

    @property
    def questions(self) -> int:
        """How many questions there are."""
        return self.both + self.only_first + self.only_second + self.neither

    @property
    def value(self) -> float:
        """The accuracy of the second less that of the first (0 of no questions)."""
        gained = self.only_second - self.only_first
        return gained / self.questions if self.questions else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The lower and upper end of the difference's interval; all there can be of none."""
        if not self.questions:
            return -1.0, 1.0
        count = self.questions
        first, second = self.both + self.only_first, self.both + self.only_second
        share_1, share_2 = first / count, second / count
        low_1, high_1 = wilson(first, count)
        low_2, high_2 = wilson(second, count)
        below = _apart(share_2 - low_2, high_1 - share_1, self._correlation)
        above = _apart(high_2 - share_2, share_1 - low_1, self._correlation)
        return self.value - below, self.value + above

    @property
    def p_value(self) -> float:
        """How probable so uneven a split of the disagreements is, if both were equally good."""
        disagreements = self.only_first + self.only_second
        fewer = min(self.only_first, self.only_second)
        term = total = 1  # binomial coefficients, exactly
        for number in range(fewer):
            term = term * (disagreements - number) // (number + 1)
            total += term
        return min(1.0, 2 * total / (1 << disagreements))

    @property
    def _correlation(self) -> float:
        """The phi coefficient of the two (0 where one of them has all right, or all wrong).

        Where it is positive, it is corrected for continuity, as the method says.
        """
        count = self.questions
        first, second = self.both + self.only_first, self.both + self.only_second
        product = first * (count - first) * second * (count - second)
        if not product:
            return 0.0
        cross: float = self.both * self.neither - self.only_first * self.only_second
        if cross > 0:
            cross = max(0.0, cross - count / 2)
        return cross / math.sqrt(product)

    def to_json(self) -> dict[str, Any]:
        """The counts, the difference, its interval and the test as plain numbers."""
        low, high = self.interval
        return {
            "both right": self.both,
            "only the first right": self.only_first,
            "only the second right": self.only_second,
            "neither right": self.neither,
            "difference": self.value,
            "low": low,
            "high": high,
            "p": self.p_value,
        }


_PAIRS = ((True, True), (True, False), (False, True), (False, False))


def _apart(one: float, other: float, correlation: float) -> float:
    squared = one * one - 2 * correlation * one * other + other * other
    return math.sqrt(max(0.0, squared))
