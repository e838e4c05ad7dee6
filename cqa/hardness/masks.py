"""Sets of masks by key: which links of a match are missing, for the fewest missing ones.

A semiring: the sum of two sets is their union, less those masks that have more bits than another of
the same key; the product joins every mask of the one with every mask of the other. The two have no
bit in common, as each edge of a query has a bit of its own, so that what has too many bits already
cannot be the best later on.
"""

from __future__ import annotations

import numpy as np

from cqa.answering.factor import Algebra, Factor, Keys, ascending, distinct, run_starts
from cqa.answering.pattern import Edge
from cqa.answering.semiring import FEWEST_MISSING, Values
from cqa.graphs.links import Links, Places
from kb.arrays import bit_counts

# A conjunction of more positive atoms is refused: a mask has a bit for each.
MAX_ATOMS = 40


class MissingLinks(Algebra):
    """The sets of masks of a conjunction, on `cqa.graphs.graph.Graph.priced`.

    The bits of a mask are those of the edges (`cqa.answering.pattern.Edge`) whose links a match
    lacks; ``width`` is the number of edges that have one. No value stands for the empty mask alone.
    """

    def __init__(self, width: int) -> None:
        super().__init__(FEWEST_MISSING)
        self._width = width
        # A link is missing in both directions, and repeated atoms are looked for beforehand.
        self.directed = False
        self.sums_unlinked = False

    def ones(self, count: int) -> Values:
        """That many empty masks."""
        return np.zeros(count, np.int64)

    def weights(self, links: Links, at: Places | slice, edge: Edge) -> Values | None:
        """The masks of links by their places."""
        assert links.weights is not None
        found: Values = links.weights[at] * np.int64(edge.bit)
        return found

    def times(self, left: Values | None, right: Values | None) -> Values | None:
        """The masks joined one by one."""
        if left is None or right is None:
            return right if left is None else left
        return left | right

    def summed(self, keys: Keys, values: Values | None, bound: int) -> Factor:
        """The keys with the masks that have the fewest bits."""
        if values is None or not len(keys):
            return Factor(distinct(keys, bound))
        width, dtype = self._width, keys.dtype
        keys, masks, pops = keys.astype(np.int64, copy=False), values, bit_counts(values)
        shift = max(1, int(width).bit_length())
        if int(keys[-1] if ascending(keys) else keys.max()) >> (62 - width - shift) == 0:
            packed = keys << shift
            packed |= pops
            packed <<= width
            packed |= masks
            packed = distinct(packed, 1 << 62)
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
        begins = run_starts(keys)
        if len(begins) == len(keys):
            return Factor(keys.astype(dtype, copy=False), masks)
        counts = np.diff(np.append(begins, len(keys)))
        keep = pops == np.repeat(pops[begins], counts)
        keys, masks = keys[keep], masks[keep]
        starts = run_starts(keys)
        keys = keys.astype(dtype, copy=False)
        if len(starts) == len(keys):
            return Factor(keys, masks)
        return Factor(keys[starts], masks, np.append(starts, len(keys)))

    def meet(self, left: Factor | None, right: Factor) -> Factor:
        """The keys of both; each has the product of its two sets."""
        if left is None:
            return right
        if left.values is None:
            left, right = right, left
        at = right.find(left.keys)
        both = at >= 0
        left, at = left.kept(both), at[both]
        if right.values is None:
            return left
        if left.starts is None and right.starts is None:
            return Factor(left.keys, self.times(left.values, right.values[at]))
        keys, masks = left.rows()
        if left.starts is not None:
            at = np.repeat(at, np.diff(left.starts))
        again, others = right.spread(at)
        if again is not None:
            keys = keys[again]
            masks = None if masks is None else masks[again]
        return self.summed(keys, self.times(masks, others), 1 << 62)
