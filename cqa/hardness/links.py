"""The links of a graph for many queries at once: look-ups by arrays of relations and entities."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cqa.graphs.graph import Graph
from cqa.graphs.links import Numbers, Places
from kb.arrays import Mask


class PricedLinks:
    """The full graph of a split, and which of its links are missing.

    `cqa.graphs.links.Links` answers for one relation at a time; here every row of a question may
    have another one. It takes 8 bytes for a row of links beside the graph.
    """

    def __init__(self, graph: Graph, split: str = "test") -> None:
        full = graph.full(split)
        self.size = full.entity_count
        self.relation_count = full.relation_count
        relations = np.repeat(np.arange(full.relation_count), np.diff(full.rows))
        self._keys: Places = relations * self.size + full.heads
        self._starts, self.tails = full.starts, full.tails
        at = graph.splits.index(split)
        self.missing: Mask = full.marks >= max(1, at)

    def spans(self, relations: Places, heads: Numbers) -> tuple[Numbers, Numbers]:
        """For each relation and head where the row begins in ``tails`` and how long it is."""
        keys = self._keys
        if not len(keys):
            return np.zeros(len(heads), np.int64), np.zeros(len(heads), np.int64)
        wanted = relations * self.size
        wanted += heads
        at = keys.searchsorted(wanted)
        at[at == len(keys)] = 0
        begins = self._starts[at]
        counts = self._starts[at + 1] - begins
        counts[keys[at] != wanted] = 0
        return begins, counts

    def starts_of(self, relations: Places) -> tuple[Places, Places]:
        """For each relation where its heads begin in `heads`, and how many it has."""
        begins = self._keys.searchsorted(relations * self.size)
        return begins, self._keys.searchsorted((relations + 1) * self.size) - begins

    def heads(self, at: Places) -> Places:
        """The heads of rows of links by their places."""
        found: Places = self._keys[at] % self.size
        return found

    def find(self, relations: Places, heads: Numbers, tails: Numbers) -> Places:
        """For each triple its place in ``tails``, or -1: all rows are halved at once."""
        begins, counts = self.spans(relations, heads)
        low = begins.astype(np.int64)
        high = low + counts
        end = high.copy()
        active: npt.NDArray[np.int64] = np.flatnonzero(low < high)
        while len(active):
            middle = (low[active] + high[active]) >> 1
            below = self.tails[middle] < tails[active]
            low[active[below]] = middle[below] + 1
            high[active[~below]] = middle[~below]
            active = active[low[active] < high[active]]
        found = np.flatnonzero(low < end)
        found = found[self.tails[low[found]] == tails[found]]
        result = np.full(len(heads), -1, np.int64)
        result[found] = low[found]
        return result
