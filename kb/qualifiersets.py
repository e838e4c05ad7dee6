"""Qualifier sets as facts gave them, equal ones found by sorting instead of by looking each up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kb.arrays import Ids, changes, expand

Codes = npt.NDArray[np.int64]

TIME = -1  # in place of a unit's number: the number is the code of a time


@dataclass(frozen=True)
class UsedSets:
    """The distinct sets that facts have, in the order of their first use; the empty one first."""

    number: Ids  # by old number, 0 for what is not used
    starts: Ids
    keys: Ids  # the pairs of set i stand from starts[i] to starts[i + 1]
    values: Ids


class QualifierSets:
    """Sets of pairs (key, value), one for each fact that has some.

    ``ends`` says where the pairs of each set end, the first one being empty. A value of 0 and more
    is a place in the columns ``units`` and ``numbers``, in which equal values may stand often.
    """

    def __init__(self, ends: Ids, pairs: Ids, units: Ids, numbers: npt.NDArray[np.float64]) -> None:
        self._starts = np.concatenate([ends[:1], ends]).astype(np.int32)
        self._keys, self._values = pairs[:, 0], pairs[:, 1]
        below = int(self._values.min(initial=0))
        value = self._values.copy()
        places = np.flatnonzero(value >= 0)
        unit, number = units[value[places]], numbers[value[places]]
        by = np.lexsort((number, unit))
        value[places[by]] = np.cumsum(changes(unit[by], number[by])) - 1
        width = int(value.max(initial=0)) - below + 1
        self._codes: Codes = self._keys.astype(np.int64) * width + (value - below)

    def regardless_of_order(self) -> Ids:
        """For each set a number that sets of the same pairs share, in whatever order."""
        sets = np.repeat(np.arange(len(self._starts) - 1), np.diff(self._starts))
        by = np.lexsort((self._codes, sets))
        once = by[changes(sets[by], self._codes[by])]
        starts = np.searchsorted(sets[once], np.arange(len(self._starts))).astype(np.int32)
        return _same_lists(starts, self._codes[once])

    def used(self, sets: Ids) -> UsedSets:
        """The sets in use, by the numbers that facts have, in the order of the facts."""
        same = _same_lists(self._starts, self._codes)
        of_facts = np.concatenate([same[:1], same[sets]])
        never = len(of_facts)
        first = np.full(int(same.max()) + 1, never, np.int64)
        first[of_facts[::-1]] = np.arange(never - 1, -1, -1)  # the last one written is the first
        found = np.flatnonzero(first < never)
        found = found[np.argsort(first[found])]
        number = np.zeros(len(first), np.int32)
        number[found] = np.arange(len(found), dtype=np.int32)
        # Of equal sets all have equal keys and values; any one stands for them.
        one = np.zeros(len(first), np.int32)
        one[same] = np.arange(len(same), dtype=np.int32)
        low, high = self._starts[one[found]], self._starts[one[found] + 1]
        starts = np.zeros(len(found) + 1, np.int32)
        np.cumsum(high - low, out=starts[1:])
        at = expand(low, high)
        return UsedSets(number[same], starts, self._keys[at], self._values[at])


def _same_lists(starts: Ids, codes: Codes) -> Ids:
    """For each list, from starts[i] to starts[i + 1] of the codes, a number that equal ones share.

    Lists of one length are rows of a table, which is sorted.
    """
    lengths = np.diff(starts)
    same = np.zeros(len(lengths), np.int32)
    groups = 0
    for length in np.unique(lengths).tolist():
        lists = np.flatnonzero(lengths == length)
        if length == 0:
            same[lists] = groups
            groups += 1
            continue
        columns = [codes[starts[lists] + at] for at in range(length)]
        by = np.lexsort(columns)
        different = changes(*(column[by] for column in columns))
        same[lists[by]] = groups + np.cumsum(different) - 1
        groups += int(different.sum())
    return same
