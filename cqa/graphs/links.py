"""Links of a graph in sorted arrays: rows of tails by relation and head, in both directions.

Relation 2r is forward and 2r + 1 its inverse, so that one layout serves both directions. The links
of a relation stand side by side, sorted by head and then tail. A *row* is what one head has; the
heads without links have no row. Four bytes for a link, four to eight for a row, and one byte for
the mark of the link's split: memory near the data's own size, and every array can be a mapped file.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kb.arrays import EMPTY, Ids, Mask, unique_below, view

Places: TypeAlias = npt.NDArray[np.int64]
Numbers: TypeAlias = npt.NDArray[Any]

# Quick look-ups of a relation are made when it is first asked for, until they take this much.
CACHE_BYTES = 64 << 20
# A relation gets a pointer for every entity only while that is at most this many for a link.
SPARSEST = 64


class Links:
    """Read-only links between entities 0..entity_count-1 by directed relations.

    ``marks`` holds the number of each link's split, ``weights`` a number for each link where some
    were given (`weighted`).
    """

    def __init__(
        self,
        entity_count: int,
        rows: npt.NDArray[np.int64],
        heads: Ids,
        starts: Numbers,
        tails: Ids,
        marks: npt.NDArray[np.uint8],
        weights: Numbers | None = None,
    ) -> None:
        self.entity_count = entity_count
        self.rows, self.heads, self.starts = rows, heads, starts
        self.tails, self.marks, self.weights = tails, marks, weights
        self._rows: list[int] = rows.tolist()
        self._heads, self._starts = view(heads), view(starts)
        self._room = [CACHE_BYTES]  # shared by all that share the look-ups
        self._pointers: dict[int, tuple[Numbers, Numbers, memoryview] | None] = {}
        self._keys: dict[int, Places | None] = {}

    @property
    def relation_count(self) -> int:
        """The number of directed relations, inverses included."""
        return len(self._rows) - 1

    def __len__(self) -> int:
        return len(self.tails) // 2

    def weighted(self, weights: Numbers) -> Links:
        """The same links with a number for each, in the order of ``tails``."""
        if len(weights) != len(self.tails):
            raise ValueError(f"{len(weights)} weights for {len(self.tails)} links")
        found = Links(
            self.entity_count, self.rows, self.heads, self.starts, self.tails, self.marks, weights
        )
        found._pointers, found._keys, found._room = self._pointers, self._keys, self._room
        return found

    def size(self, relation: int) -> int:
        """The number of links of a relation."""
        first, last = self._rows[relation], self._rows[relation + 1]
        return int(self._starts[last]) - int(self._starts[first])

    def heads_of(self, relation: int) -> Ids:
        """The entities that have a link of the relation, sorted."""
        return self.heads[self._rows[relation] : self._rows[relation + 1]]

    def row(self, relation: int, head: int) -> Ids:
        """The tails of one head, sorted."""
        begin, end = self.place(relation, head)
        return self.tails[begin:end]

    def place(self, relation: int, head: int) -> tuple[int, int]:
        """Where the row of a head stands in ``tails``."""
        pointers = self._pointers_of(relation)
        if pointers is not None:
            return pointers[2][head], pointers[2][head + 1]
        first, last = self._rows[relation], self._rows[relation + 1]
        at = bisect_left(self._heads, head, first, last)
        if at == last or self._heads[at] != head:
            return 0, 0
        return self._starts[at], self._starts[at + 1]

    def spans(self, relation: int, heads: Ids) -> tuple[Numbers, Numbers]:
        """For each head where its row begins and how many tails it has."""
        pointers = self._pointers_of(relation)
        if pointers is not None:
            begins = pointers[0][heads]
            return begins, pointers[1][heads] - begins
        first, last = self._rows[relation], self._rows[relation + 1]
        at = self.heads[first:last].searchsorted(heads)
        at += first
        at[at == last] = first
        if first == last:
            return np.zeros(len(heads), np.int64), np.zeros(len(heads), np.int64)
        begins = self.starts[at]
        counts = self.starts[at + 1] - begins
        counts[self.heads[at] != heads] = 0
        return begins, counts

    def reached(self, relation: int, heads: Ids) -> Ids:
        """The tails of any of the heads, sorted, each once."""
        if len(heads) == 1:
            return self.row(relation, int(heads[0]))
        begins, counts = self.spans(relation, heads)
        return unique_below(self.tails[places(begins, counts)], self.entity_count)

    def has(self, relation: int, heads: Ids, tails: Ids) -> Mask:
        """For each pair of a head and a tail whether the link is there."""
        return self.find(relation, heads, tails) >= 0

    def find(self, relation: int, heads: Ids, tails: Ids) -> Places:
        """For each pair of a head and a tail the link's place in ``tails``, or -1."""
        keys = self._keys_of(relation)
        if keys is None:
            return self._searched(relation, heads, tails)
        if len(keys) == 0:
            return np.full(len(heads), -1)
        wanted = heads.astype(np.int64)
        wanted *= self.entity_count
        wanted += tails
        at = keys.searchsorted(wanted)
        at[at == len(keys)] = 0
        missing = keys[at] != wanted
        at += int(self._starts[self._rows[relation]])
        at[missing] = -1
        return at

    def pairs(self, relation: int) -> tuple[Ids, Ids]:
        """All links of a relation: their heads and tails, in order."""
        first, last = self._rows[relation], self._rows[relation + 1]
        counts = np.diff(self.starts[first : last + 1])
        heads = np.repeat(self.heads[first:last], counts)
        return heads, self.tails[int(self._starts[first]) : int(self._starts[last])]

    def first_place(self, relation: int) -> int:
        """Where the links of a relation begin in ``tails``."""
        return int(self._starts[self._rows[relation]])

    def _searched(self, relation: int, heads: Ids, tails: Ids) -> Places:
        """`find` by halving every row at once, without a table of keys."""
        begins, counts = self.spans(relation, heads)
        low = begins.astype(np.int64)
        end = low + counts
        high = end.copy()
        while (active := low < high).any():
            middle = (low + high) >> 1
            below = np.zeros(len(low), np.bool_)
            below[active] = self.tails[middle[active]] < tails[active]
            low = np.where(active & below, middle + 1, low)
            high = np.where(active & ~below, middle, high)
        found = low < end
        found[found] = self.tails[low[found]] == tails[found]
        return np.where(found, low, -1)

    def _pointers_of(self, relation: int) -> tuple[Numbers, Numbers, memoryview] | None:
        try:
            return self._pointers[relation]
        except KeyError:
            made = self._pointers[relation] = self._make_pointers(relation)
            return made

    def _make_pointers(self, relation: int) -> tuple[Numbers, Numbers, memoryview] | None:
        size = (self.entity_count + 1) * self.starts.itemsize
        if size > self._room[0] or self.entity_count > SPARSEST * self.size(relation):
            return None
        self._room[0] -= size
        first, last = self._rows[relation], self._rows[relation + 1]
        counts = np.zeros(self.entity_count + 1, self.starts.dtype)
        counts[self.heads[first:last].astype(np.int64) + 1] = np.diff(self.starts[first : last + 1])
        pointers = np.cumsum(counts, dtype=self.starts.dtype)
        pointers += self.starts[first]
        return pointers, pointers[1:], view(pointers)

    def _keys_of(self, relation: int) -> Places | None:
        try:
            return self._keys[relation]
        except KeyError:
            made = self._keys[relation] = self._make_keys(relation)
            return made

    def _make_keys(self, relation: int) -> Places | None:
        size = self.size(relation) * 8
        if size > self._room[0]:
            return None
        self._room[0] -= size
        heads, tails = self.pairs(relation)
        keys = heads.astype(np.int64)
        keys *= self.entity_count
        keys += tails
        return keys


def places(begins: Numbers, counts: Numbers) -> Places:
    """All numbers of the ranges that begin so and are so long, one range after the other."""
    if len(counts) == 0:
        return EMPTY.astype(np.int64)
    ends = counts.cumsum()
    found: Places = np.repeat(begins - (ends - counts), counts)
    found += np.arange(int(ends[-1]), dtype=found.dtype)
    return found
