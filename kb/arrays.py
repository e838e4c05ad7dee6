"""Small operations on sorted integer arrays that the indexes are made of.

A *set of ids* is a sorted ``int32`` array without repeats. Ranges are half-open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ids: TypeAlias = npt.NDArray[np.int32]
Mask: TypeAlias = npt.NDArray[np.bool_]
Interval: TypeAlias = tuple[int, int]

EMPTY: Ids = np.empty(0, np.int32)
EMPTY.setflags(write=False)

# Below this many elements Python's own set and sort beat a chain of numpy calls.
SMALL = 24


def view(column: npt.NDArray[np.generic]) -> memoryview[Any]:
    """A column for look-ups of single numbers, several times faster than by the array itself."""
    return np.ascontiguousarray(column).data


def as_ids(numbers: Iterable[int]) -> Ids:
    """The numbers as an ``int32`` array, in the order given."""
    return np.array(list(numbers), np.int32)


def unique(numbers: Ids) -> Ids:
    """The numbers sorted, each once."""
    size = len(numbers)
    if size < 2:
        return numbers
    if size <= SMALL:
        return np.array(sorted(set(numbers.tolist())), np.int32)
    ordered = np.sort(numbers)
    keep = np.empty(size, np.bool_)
    keep[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]


def unique_below(numbers: Ids, bound: int) -> Ids:
    """The same for numbers in ``[0, bound)``: marks a table when that is cheaper than sorting."""
    if len(numbers) * 16 < bound:
        return unique(numbers)
    return as_ids_of(mask_of(numbers, bound))


def first_by(keys: Ids, numbers: Ids, limit: int) -> Ids:
    """The numbers with the smallest keys, in the order of the keys, equal ones as they stand."""
    if limit < len(keys):
        bound = np.partition(keys, limit)[limit] if limit else 0
        kept = np.flatnonzero(keys <= bound)
        return numbers[kept[np.argsort(keys[kept], kind="stable")[:limit]]]
    return numbers[np.argsort(keys, kind="stable")]


def mask_of(numbers: Ids, bound: int) -> Mask:
    """A table of ``bound`` flags that is true at the numbers."""
    mask = np.zeros(bound, np.bool_)
    mask[numbers] = True
    return mask


def as_ids_of(mask: Mask) -> Ids:
    """The places at which a table of flags is true, as a set of ids."""
    return np.flatnonzero(mask).astype(np.int32)


def contains(haystack: Ids, needles: Ids) -> Mask:
    """For each needle whether it is in the haystack (a set of ids)."""
    if len(haystack) == 0:
        return np.zeros(len(needles), np.bool_)
    if len(haystack) == 1:
        single: Mask = needles == haystack[0]
        return single
    at = haystack.searchsorted(needles)
    at[at == len(haystack)] = 0
    found: Mask = haystack[at] == needles
    return found


def intersect(left: Ids, right: Ids) -> Ids:
    """The ids that are in both sets."""
    if len(left) > len(right):
        left, right = right, left
    return left[contains(right, left)]


def unite(parts: Sequence[Ids]) -> Ids:
    """The ids that are in any of the sets."""
    filled = [part for part in parts if len(part)]
    if len(filled) < 2:
        return filled[0] if filled else EMPTY
    return unique(np.concatenate(filled))


def expand(starts: Ids, stops: Ids) -> Ids:
    """All numbers of the ranges ``[starts[i], stops[i])``, one range after the other."""
    if len(starts) <= 2:
        parts = [
            np.arange(a, b, dtype=np.int32) for a, b in zip(starts, stops, strict=True) if b > a
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else EMPTY
    counts = stops - starts
    ends = np.cumsum(counts)
    total = int(ends[-1])
    return (np.repeat(starts - (ends - counts), counts) + np.arange(total)).astype(np.int32)


def in_intervals(numbers: Ids, intervals: Sequence[Interval]) -> Mask:
    """For each number whether it lies in one of the half-open intervals."""
    result = np.zeros(len(numbers), np.bool_)
    for low, high in intervals:
        if high - low == 1:
            result |= numbers == low
        elif high > low:
            result |= (numbers >= low) & (numbers < high)
    return result


def offsets_of(sorted_groups: Ids, groups: int) -> Ids:
    """Where each group 0..groups-1 begins in an array sorted by group; one more for the end."""
    return np.searchsorted(sorted_groups, np.arange(groups + 1)).astype(np.int32)


def changes(*columns: npt.NDArray[Any]) -> Mask:
    """For each row of the columns whether it differs from the row before; the first one does."""
    different = np.zeros(len(columns[0]), np.bool_)
    different[:1] = True
    for column in columns:
        different[1:] |= column[1:] != column[:-1]
    return different


def grouped(lists: Sequence[Sequence[int]]) -> tuple[Ids, Ids]:
    """Lists of numbers as (offsets, all numbers): list i stands at offsets[i] to offsets[i+1]."""
    counts = np.fromiter((len(part) for part in lists), np.int32, len(lists))
    offsets = np.zeros(len(lists) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    flat = np.fromiter((n for part in lists for n in part), np.int32, int(offsets[-1]))
    return offsets, flat


def bit_counts(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The number of bits of each number, none of them negative."""
    if hasattr(np, "bitwise_count"):  # since NumPy 2
        found: npt.NDArray[Any] = np.bitwise_count(numbers)
        return found
    left = numbers.astype(np.uint64)
    for shift, mask in _HALVES:
        left = (left & mask) + ((left >> shift) & mask)
    return left.astype(np.uint8)


# Neighbouring bits are added up, then pairs of bits, then fours, and so on.
_HALVES = [
    (np.uint64(1 << at), np.uint64(((1 << 64) - 1) // ((1 << (1 << at)) + 1))) for at in range(6)
]
