"""Links of a graph in sorted arrays: rows of tails by relation and head, in both directions.

Relation 2r is forward and 2r + 1 its inverse, so that one layout serves both directions. The links
of a relation stand side by side, sorted by head and then tail. A *row* is what one head has; the
heads without links have no row. Four bytes for a link, four to eight for a row, and one byte for
the mark of the link's split: memory near the data's own size, and every array can be a mapped file.

Where a method takes a relation, it takes an array of relations as well, one for each head: so many
queries are looked up at once. The tables behind both are made when they are first asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kb.arrays import EMPTY, Ids, Mask, bit_counts, unique_below, view

Places: TypeAlias = npt.NDArray[np.int64]
Numbers: TypeAlias = npt.NDArray[Any]

# Quick look-ups are made when they are first asked for, until they take this much.
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
        self._tables: dict[str, Any] = {}

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
        found._tables = self._tables
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

    def spans(self, relation: int | Places, heads: Numbers) -> tuple[Numbers, Numbers]:
        """For each head where its row begins and how many tails it has."""
        if isinstance(relation, np.ndarray):
            return self.spans_of(*self.find_rows(relation * self.entity_count + heads))
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

    def find(self, relation: int | Places, heads: Numbers, tails: Numbers) -> Places:
        """For each pair of a head and a tail the link's place in ``tails``, or -1."""
        if isinstance(relation, np.ndarray):
            return self.find_links(relation * self.entity_count + heads, tails)
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

    # --- many relations at once -----------------------------------------------------------------

    def find_rows(self, keys: Places) -> tuple[Mask, Places]:
        """For each key, relation * entities + head, whether it has a row, and which.

        Where there is none the number is that of the next row, which may be one too large.
        """
        table = self._table("rows", self._row_table_bytes, self._make_row_table)
        if table is not None:
            return table.find(keys)  # type: ignore[no-any-return]
        own = self._table("row keys", lambda: 0, self._make_row_keys)
        at = own.searchsorted(keys)
        if not len(own):
            return np.zeros(len(keys), np.bool_), at
        return own.take(at, mode="clip") == keys, at

    def spans_of(self, there: Mask, rows: Places) -> tuple[Numbers, Numbers]:
        """What `find_rows` found as where the rows begin and how many tails they have."""
        if not len(self.heads):
            return np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        begins = self.starts.take(rows)
        counts = self.starts.take(rows + 1, mode="clip")
        counts -= begins
        counts *= there
        return begins, counts

    def find_links(self, keys: Places, tails: Numbers) -> Places:
        """For each key of a row, relation * entities + head, and tail its place, or -1."""
        own = self._table("keys", lambda: 8 * len(self.tails), self._make_link_keys)
        if own is None:
            return self._halved(*self.spans_of(*self.find_rows(keys)), tails)
        wanted = keys * self.entity_count
        wanted += tails
        at: Places = own.searchsorted(wanted)
        return np.where(own.take(at, mode="clip") == wanted, at, -1) if len(own) else at - 1

    def has_links(self, keys: Places, tails: Numbers) -> Mask:
        """For each key of a row, relation * entities + head, and tail whether the link is there."""
        own = self._table("keys", lambda: 8 * len(self.tails), self._make_link_keys)
        if own is None or not len(own):
            return self.find_links(keys, tails) >= 0
        wanted = keys * self.entity_count
        wanted += tails
        found: Mask = own.take(own.searchsorted(wanted), mode="clip") == wanted
        return found

    @property
    def rows_of_tails(self) -> Ids | None:
        """For each link the number of its tail's row by the inverse relation.

        None where the table would take too much memory.
        """
        found: Ids | None = self._table(
            "ends", lambda: 4 * len(self.tails), self._make_rows_of_tails
        )
        return found

    def _table(self, name: str, size: Callable[[], int], make: Callable[[], Any]) -> Any:
        """A table that is made when it is first asked for; None where it has no room."""
        try:
            return self._tables[name]
        except KeyError:
            taken = size()
            if taken <= self._room[0]:
                self._room[0] -= taken
                self._tables[name] = make()
            else:
                self._tables[name] = None
            return self._tables[name]

    def _make_row_keys(self) -> Places:
        relations = np.repeat(np.arange(self.relation_count), np.diff(self.rows))
        relations *= self.entity_count
        relations += self.heads
        return relations

    def _row_table_bytes(self) -> int:
        return self.relation_count * self.entity_count * 16 // 64

    def _make_row_table(self) -> _Ranks:
        return _Ranks(self._make_row_keys(), self.relation_count * self.entity_count)

    def _make_link_keys(self) -> Places:
        keys = np.repeat(self._make_row_keys(), np.diff(self.starts))
        keys *= self.entity_count
        keys += self.tails
        return keys

    def _make_rows_of_tails(self) -> Ids:
        found = np.empty(len(self.tails), np.int32)
        for relation in range(self.relation_count):
            begin, end = self.first_place(relation), self.first_place(relation + 1)
            inverse = self.heads_of(relation ^ 1)
            found[begin:end] = inverse.searchsorted(self.tails[begin:end])
            found[begin:end] += self._rows[relation ^ 1]
        return found

    def _searched(self, relation: int, heads: Ids, tails: Ids) -> Places:
        """`find` without a table of keys."""
        return self._halved(*self.spans(relation, heads), tails)

    def _halved(self, begins: Numbers, counts: Numbers, tails: Numbers) -> Places:
        """The places of tails in rows, or -1: all rows are halved at once."""
        low = begins.astype(np.int64)
        high = low + counts
        end = high.copy()
        active: Places = np.flatnonzero(low < high)
        while len(active):
            middle = (low[active] + high[active]) >> 1
            below = self.tails[middle] < tails[active]
            low[active[below]] = middle[below] + 1
            high[active[~below]] = middle[~below]
            active = active[low[active] < high[active]]
        found = np.flatnonzero(low < end)
        found = found[self.tails[low[found]] == tails[found]]
        result = np.full(len(low), -1, np.int64)
        result[found] = low[found]
        return result

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


class _Ranks:
    """Finds the places of numbers among sorted distinct ones: a bit for each, and counts of bits.

    Numbers that stand close together are looked up in the same few words.
    """

    def __init__(self, keys: Places, bound: int) -> None:
        words = self._words = np.zeros((bound >> 6) + 1, np.uint64)
        bits = np.left_shift(np.uint64(1), (keys & 63).astype(np.uint64))
        at = keys >> 6
        first = np.flatnonzero(np.diff(at, prepend=-1))
        if len(first):
            words[at[first]] = np.bitwise_or.reduceat(bits, first)
        self._up_to = np.cumsum(bit_counts(words), dtype=np.int64)

    def find(self, keys: Places) -> tuple[Mask, Places]:
        at = keys >> 6
        # The key's own bit comes first, then those above it.
        words = self._words.take(at)
        words >>= (keys & 63).view(np.uint64)
        rows: Places = self._up_to.take(at)
        rows -= bit_counts(words)
        words &= np.uint64(1)
        there: Mask = words.astype(np.bool_)
        return there, rows


def places(begins: Numbers, counts: Numbers) -> Places:
    """All numbers of the ranges that begin so and are so long, one range after the other."""
    if len(counts) == 0:
        return EMPTY.astype(np.int64)
    ends = counts.cumsum()
    found: Places = np.repeat(begins - (ends - counts), counts)
    found += np.arange(int(ends[-1]), dtype=found.dtype)
    return found
