"""Positions of tuples among all of E^k, ordered by the sum of their components' ranks.

The joint rank of EFOk-CQA: a tuple (a1, …, ak) stands where the sum of the unfiltered ranks of its
components puts it, tuples of equal sum in the lexicographic order of their ranks. Nothing of the
size of E^k is made: tuples before a given one are counted, in 64-bit integers.
"""

from __future__ import annotations

from math import comb
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cqa.errors import QueryError
from cqa.evaluation.metrics import Ranks, Scores

Counts: TypeAlias = npt.NDArray[np.int64]

# Distributions of so few distinct values are folded one value after the other.
FEW = 32
# Counts are folded by Fourier transforms in digits of so many bits, which keeps floats exact.
DIGIT = 18


def at_most(total: Counts, size: int, parts: int) -> Counts:
    """How many tuples of ``parts`` numbers of 1..size have a sum of at most ``total``, for each.

    By inclusion and exclusion, bounded at ``size``: Σ_j (-1)^j C(parts, j) C(total - j·size,
    parts). Raises QueryError when the counts do not fit 64 bits.
    """
    check_size(size, parts)
    total = np.clip(total, 0, parts * size)
    found = np.zeros(total.shape, np.int64)
    for j in range(parts + 1):
        found += (-1) ** j * comb(parts, j) * _choose(total - j * size, parts)
    return found


def _choose(given: Counts, parts: int) -> Counts:
    """The binomial coefficients C(given, parts); nothing for numbers below ``parts``."""
    given = np.maximum(given, 0)
    found = np.ones(given.shape, np.int64)
    for step in range(parts):
        found = found * np.maximum(given - step, 0) // (step + 1)
    return found


def check_size(size: int, parts: int) -> None:
    """Raise QueryError when tuples of so many entities cannot be counted in 64 bits."""
    # The largest product on the way to a binomial coefficient; sums of them may wrap around.
    if parts * comb(parts * size, parts) >= 1 << 63:
        raise QueryError(
            f"{size} entities make more tuples of {parts} than 64-bit numbers can count; the joint"
            " rank is not defined for them here"
        )


def before(ranks: Counts, size: int) -> Counts:
    """How many tuples stand before each given one, where ranks are 1..size without ties.

    ``ranks``: an (n, k) array. For k = 2 this is, less one, the published formula where r1 + r2 ≤
    size + 1, and its mirror image elsewhere.
    """
    parts = ranks.shape[1]
    left = ranks.sum(axis=1)
    found = at_most(left - 1, size, parts)
    for column in range(parts - 1):
        # Those of the same sum that agree so far and have a smaller rank here.
        rest = parts - column - 1
        found += at_most(left - 1, size, rest) - at_most(left - ranks[:, column], size, rest)
        left = left - ranks[:, column]
    return found


class Component:
    """The ranks of one variable's entities; tied ones share the mean of their ranks.

    Ranks are doubled, so that means are whole numbers: 2 … 2·E.
    """

    def __init__(self, scores: Scores) -> None:
        values, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
        above = len(scores) - np.cumsum(counts)
        self._doubled = 2 * above + counts + 1
        self._counts, self._place = counts, place.reshape(-1)
        self.size = len(scores)
        self.tied = len(values) < len(scores)
        # Distinct ranks, the best first, and how many entities have each.
        self.values: Counts = self._doubled[::-1].astype(np.int64)
        self.counts: Counts = counts[::-1].astype(np.int64)

    def doubled(self, entities: npt.NDArray[np.integer]) -> Counts:
        """Twice the rank of each entity."""
        found: Counts = self._doubled[self._place[entities]]
        return found

    def ties(self, entities: npt.NDArray[np.integer]) -> Counts:
        """How many entities have the rank of each, itself counted."""
        found: Counts = self._counts[self._place[entities]]
        return found

    def histogram(self) -> Counts:
        """How many entities have each doubled rank, by that rank."""
        found = np.zeros(2 * self.size + 1, np.int64)
        found[self.values] = self.counts
        return found


class Order:
    """The order of all tuples of several variables' entities."""

    def __init__(self, scores: Scores) -> None:
        """``scores``: a (k, E) array. Raises QueryError where E^k is too large to be counted."""
        check_size(scores.shape[1], len(scores))
        self.components = [Component(row) for row in scores]
        self.tied = any(component.tied for component in self.components)
        self.size = scores.shape[1]
        self._sums: list[Counts] | None = None

    def filtered(self, rows: npt.NDArray[np.integer], answers: int, share: float) -> Ranks:
        """The rank of each row from ``answers`` on, all rows but itself left out.

        ``rows``: distinct answers, an (n, k) array. ``share``: how much of the tuples with the same
        ranks comes first.
        """
        key = self._key(rows)
        kinds, kind, number = np.unique(key, axis=0, return_inverse=True, return_counts=True)
        kind = kind.reshape(-1)
        wanted = np.unique(kind[answers:])
        first = np.zeros(len(kinds), np.int64)
        same = np.zeros(len(kinds), np.int64)
        first[wanted] = self._before(kinds[wanted, 1:])
        examples = np.zeros(len(kinds), np.int64)
        examples[kind] = np.arange(len(rows))
        same[wanted] = self._alike(rows[examples[wanted]])
        others = np.cumsum(number) - number
        found: Ranks = 1.0 + (first - others) + share * (same - number)
        return found[kind[answers:]]

    def _key(self, rows: npt.NDArray[np.integer]) -> Counts:
        """What tuples are ordered by: the sum of the doubled ranks, then these."""
        ranks = [part.doubled(rows[:, at]) for at, part in enumerate(self.components)]
        return np.stack([sum(ranks, np.zeros(len(rows), np.int64)), *ranks], axis=1)

    def _alike(self, rows: npt.NDArray[np.integer]) -> Counts:
        """How many tuples have the same ranks as each row, itself counted."""
        found = np.ones(len(rows), np.int64)
        for at, part in enumerate(self.components):
            found *= part.ties(rows[:, at])
        return found

    def _before(self, doubled: Counts) -> Counts:
        if not self.tied:
            return before(doubled // 2, self.size)
        if self._sums is None:
            self._sums = self._distributions()
        smaller = np.cumsum(self._sums[0])
        return np.array([self._before_tied(row, smaller) for row in doubled.tolist()], np.int64)

    def _before_tied(self, ranks: list[int], smaller: Counts) -> int:
        assert self._sums is not None
        left, alike = sum(ranks), 1
        found = int(smaller[left - 1])
        for at, part in enumerate(self.components[:-1]):
            rest = self._sums[at + 1]
            better = int(part.values.searchsorted(ranks[at]))
            wanted = left - part.values[:better]
            # What the others would have to sum up to may be more than they can.
            fits = int(wanted[::-1].searchsorted(len(rest)))
            wanted, counts = wanted[better - fits :], part.counts[better - fits : better]
            found += alike * int(counts @ rest[wanted])
            alike *= int(part.counts[better])
            left -= ranks[at]
        return found

    def _distributions(self) -> list[Counts]:
        """For each variable how many tuples of it and those after it have each sum."""
        found = [self.components[-1].histogram()]
        for part in reversed(self.components[:-1]):
            found.append(_folded(part, found[-1]))
        return found[::-1]


def _folded(part: Component, rest: Counts) -> Counts:
    """How many pairs of an entity and a tuple have each sum."""
    length = 2 * part.size + len(rest)
    found = np.zeros(length, np.int64)
    if len(part.values) <= FEW:
        for value, count in zip(part.values.tolist(), part.counts.tolist(), strict=True):
            found[value : value + len(rest)] += count * rest
        return found
    width = 1 << (length - 1).bit_length()
    own = np.fft.rfft(part.histogram(), width)
    shift, mask = 0, (1 << DIGIT) - 1
    while (digits := rest >> shift).any():
        product = np.fft.irfft(own * np.fft.rfft(digits & mask, width), width)[:length]
        found += np.rint(product).astype(np.int64) << shift
        shift += DIGIT
    return found
