"""Sets of masks by key: which links of a match are missing, for the fewest missing ones.

A semiring: the sum of two sets is their union, less those masks that have more bits than another of
the same key; the product joins every mask of the one with every mask of the other. The two have no
bit in common, as each edge of a query has a bit of its own, so that what has too many bits already
cannot be the best later on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from cqa.graphs.links import Places, places

Masks = npt.NDArray[np.int64]

# A conjunction of more positive atoms is refused: a mask has a bit for each.
MAX_ATOMS = 40


@dataclass(slots=True)
class Factor:
    """Sorted distinct keys with a set of masks each.

    The masks of key number i stand in ``masks[starts[i]:starts[i + 1]]``; ``masks`` None: the empty
    mask alone for every key, ``starts`` None: one mask for every key.
    """

    keys: Places
    masks: Masks | None = None
    starts: Places | None = None

    def kept(self, keep: npt.NDArray[np.bool_]) -> Factor:
        """The factor at the keys of a flag array."""
        if self.masks is None:
            return Factor(self.keys[keep])
        if self.starts is None:
            return Factor(self.keys[keep], self.masks[keep])
        counts = np.diff(self.starts)[keep]
        at = places(self.starts[:-1][keep], counts)
        return Factor(self.keys[keep], self.masks[at], np.append(0, np.cumsum(counts)))

    def spread(self, at: Places) -> tuple[Places | None, Masks | None]:
        """The masks of the keys at some places, and for each mask which of the places it is of.

        The first is None where each place has one mask, the second where each has the empty one.
        """
        if self.masks is None:
            return None, None
        if self.starts is None:
            return None, self.masks[at]
        begins = self.starts[at]
        counts = self.starts[at + 1] - begins
        return np.repeat(np.arange(len(at)), counts), self.masks[places(begins, counts)]

    def find(self, keys: Places) -> Places:
        """For each key its place, or -1."""
        if not len(self.keys):
            return np.full(len(keys), -1, np.int64)
        at = self.keys.searchsorted(keys)
        at[at == len(self.keys)] = 0
        at[self.keys[at] != keys] = -1
        return at

    def rows(self) -> tuple[Places, Masks]:
        """Keys and masks, a row for each mask."""
        if self.masks is None:
            return self.keys, np.zeros(len(self.keys), np.int64)
        if self.starts is None:
            return self.keys, self.masks
        return np.repeat(self.keys, np.diff(self.starts)), self.masks


def factor(keys: Places, masks: Masks | None, width: int) -> Factor:
    """The sum of rows of a key and a mask of so many bits (None: all empty)."""
    if masks is None or not len(keys):
        return Factor(_distinct(np.sort(keys)))
    pops = bit_counts(masks)
    shift = max(1, int(width).bit_length())
    if int(keys[-1] if _ascending(keys) else keys.max()) >> (62 - width - shift) == 0:
        packed = keys << shift
        packed |= pops
        packed <<= width
        packed |= masks
        if not _ascending(packed):
            packed.sort()
        packed = _distinct(packed)
        masks = packed & ((1 << width) - 1)
        packed >>= width
        pops = packed & ((1 << shift) - 1)
        keys = packed >> shift
    else:
        order = np.lexsort((masks, pops, keys))
        keys, masks, pops = keys[order], masks[order], pops[order]
        fresh = np.ones(len(keys), np.bool_)
        fresh[1:] = (keys[1:] != keys[:-1]) | (masks[1:] != masks[:-1])
        keys, masks, pops = keys[fresh], masks[fresh], pops[fresh]
    first = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    begins = np.flatnonzero(first)
    if len(begins) == len(keys):
        return Factor(keys, masks)
    counts = np.diff(np.append(begins, len(keys)))
    keep = pops == np.repeat(pops[begins], counts)
    keys, masks, first = keys[keep], masks[keep], first[keep]
    starts = np.flatnonzero(first)
    if len(starts) == len(keys):
        return Factor(keys, masks)
    return Factor(keys[starts], masks, np.append(starts, len(keys)))


def meet(left: Factor, right: Factor, width: int) -> Factor:
    """The keys of both; each has the product of its two sets."""
    if left.masks is None:
        left, right = right, left
    at = right.find(left.keys)
    both = at >= 0
    if right.masks is None:
        return left.kept(both)
    left, at = left.kept(both), at[both]
    if left.starts is None and right.starts is None:
        assert left.masks is not None
        return Factor(left.keys, left.masks | right.masks[at])
    keys, masks = left.rows()
    if left.starts is not None:
        at = np.repeat(at, np.diff(left.starts))
    rows, others = right.spread(at)
    assert others is not None
    if rows is not None:
        keys, masks = keys[rows], masks[rows]
    return factor(keys, masks | others, width)


def bit_counts(masks: Masks) -> Masks:
    """The number of bits of each mask."""
    table = _table()
    found: Masks = table[masks & 0xFFFF]
    rest = masks >> 16
    while rest.any():
        found = found + table[rest & 0xFFFF]
        rest = rest >> 16
    return found


@lru_cache(maxsize=1)
def _table() -> Masks:
    return np.array([number.bit_count() for number in range(1 << 16)], np.int64)


def _ascending(keys: Places) -> bool:
    return bool((keys[1:] >= keys[:-1]).all())


def _distinct(ordered: Places) -> Places:
    keep = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]
