"""Sets of keys with values, and the sums and products of a semiring over them.

A *key* is an entity beside the number of its query: query * entities + entity. Keys of one query
are the entities themselves. They are sorted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cqa.answering.pattern import Edge
from cqa.answering.semiring import Semiring, Values
from cqa.graphs.links import Links, Places, places
from kb.arrays import Mask, contains, mask_of, unique_below

# More rows than this are refused: a query whose answers are a product of large sets.
MAX_ROWS = 1 << 27

Keys = npt.NDArray[Any]


@dataclass(slots=True)
class Factor:
    """Sorted distinct keys with a value for each; ``values`` None: all are one.

    Where ``starts`` is given a key has a set of values: key number i those of
    ``values[starts[i]:starts[i + 1]]``.
    """

    keys: Keys
    values: Values | None = None
    starts: Places | None = None

    def kept(self, keep: Mask) -> Factor:
        """The factor at the keys of a mask."""
        # Many times faster than indexing by the mask where keys are many.
        keys = self.keys.compress(keep)
        if self.values is None:
            return Factor(keys)
        if self.starts is None:
            return Factor(keys, self.values.compress(keep))
        counts = np.diff(self.starts)[keep]
        at = places(self.starts[:-1][keep], counts)
        return Factor(keys, self.values[at], np.append(0, np.cumsum(counts)))

    def spread(self, at: Places | Mask) -> tuple[Places | None, Values | None]:
        """The values of the keys at some places, and for each value which of the places it is of.

        The first is None where each place has one value, the second where that is one.
        """
        if self.values is None:
            return None, None
        if self.starts is None:
            return None, self.values[at]
        begins = self.starts[:-1][at]
        counts = np.diff(self.starts)[at]
        return np.repeat(np.arange(len(counts)), counts), self.values[places(begins, counts)]

    def find(self, keys: Keys) -> Places:
        """For each key its place, or -1."""
        if not len(self.keys):
            return np.full(len(keys), -1, np.int64)
        at: Places = self.keys.searchsorted(keys)
        at[at == len(self.keys)] = 0
        at[self.keys[at] != keys] = -1
        return at

    def rows(self) -> tuple[Keys, Values | None]:
        """Keys and values, a row for each value."""
        if self.starts is None:
            return self.keys, self.values
        return np.repeat(self.keys, np.diff(self.starts)), self.values


class Algebra:
    """What a walk adds up and multiplies: the values of a semiring.

    ``plain``: there are none. ``directed``: a link weighs something, and perhaps something else
    than its inverse; then an atom must not stand twice in a conjunction.
    """

    def __init__(self, semiring: Semiring) -> None:
        self.semiring = semiring
        self.plain = semiring.plus is None
        self.directed = semiring.weighted
        # Sums over what has no link need the values of all (`cqa.answering.unlinked`).
        self.sums_unlinked = True

    @property
    def crisp(self) -> bool:
        """Whether a negated part only excludes, whatever its value."""
        return self.semiring.complement is None

    def ones(self, count: int) -> Values:
        """The value of that many empty products."""
        return self.semiring.ones(count)

    def weights(self, links: Links, at: Places | slice, edge: Edge) -> Values | None:
        """The values of links by their places; None when all are one."""
        return self.semiring.weights(links, at)

    def times(self, left: Values | None, right: Values | None) -> Values | None:
        """The products of two columns of values."""
        return self.semiring.multiply(left, right)

    def linked(self, links: Links, at: Places, edge: Edge) -> tuple[Mask, Values | None]:
        """For places of links (-1: none) which of them satisfy an edge, with the values of those.

        For a negated edge these are the complements.
        """
        there: Mask = at >= 0
        if edge.positive:
            return there, None if self.plain else self.weights(links, at[there], edge)
        if self.crisp:
            return ~there, None
        return self.complemented(there, self.weights(links, at[there], edge))

    def complemented(self, there: Mask, values: Values | None) -> tuple[Mask, Values | None]:
        """For what is there with these values, and what is not: what its negation is."""
        semiring = self.semiring
        if semiring.complement is None:
            return ~there, None
        found = semiring.ones(len(there))
        found[there] = semiring.complement(
            semiring.ones(int(there.sum())) if values is None else values
        )
        keep: Mask = found != semiring.zero
        return keep, found[keep]

    def summed(self, keys: Keys, values: Values | None, bound: int) -> Factor:
        """The distinct keys, sorted, with their values added up; keys are below ``bound``."""
        if self.plain:
            return Factor(distinct(keys, bound))
        if values is None:
            values = self.semiring.ones(len(keys))
        if not len(keys):
            return Factor(keys, values)
        if not ascending(keys):
            order = np.argsort(keys, kind="stable")
            keys, values = keys[order], values[order]
        first = run_starts(keys)
        if len(first) == len(keys):
            return Factor(keys, values)
        return Factor(keys[first], self.semiring.added(values, first))

    def meet(self, left: Factor | None, right: Factor) -> Factor:
        """What is in both factors, values multiplied; None stands for everything."""
        if left is None:
            return right
        if left.values is None:
            left, right = right, left
        if right.values is None and left.values is None and len(left.keys) > len(right.keys):
            left, right = right, left
        if right.values is None:
            return left.kept(contains(right.keys, left.keys))
        at = right.find(left.keys)
        left = left.kept(at >= 0)
        return Factor(left.keys, self.times(left.values, right.values[at[at >= 0]]))


def distinct(keys: Keys, bound: int) -> Keys:
    """The keys sorted, each once; they are below ``bound``."""
    if keys.dtype == np.int32:
        return unique_below(keys, bound)
    ordered = keys if ascending(keys) else np.sort(keys)
    keep = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered if keep.all() else ordered.compress(keep)


def ascending(keys: Keys) -> bool:
    """Whether the keys are sorted already."""
    return bool((keys[1:] >= keys[:-1]).all())


def run_starts(ordered: Keys) -> Places:
    """Where each run of equal keys begins."""
    changed = np.empty(len(ordered), np.bool_)
    changed[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=changed[1:])
    return changed.nonzero()[0]


def within(keys: Keys, needles: Keys, bound: int) -> Mask:
    """For each needle whether it is among the keys; marks a table when that is cheaper."""
    if len(needles) * 8 > bound:
        return mask_of(keys, bound)[needles]
    return contains(keys, needles)
