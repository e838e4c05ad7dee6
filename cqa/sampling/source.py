"""What queries are sampled from: the two views of a split, and what enters each entity.

The rows of `Links` are sorted by relation. Here they are listed by entity, too, so that "one of the
relations that enter this entity, then one of its sources" is two look-ups.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from random import Random

import numpy as np
import numpy.typing as npt

from cqa.graphs.graph import Graph
from cqa.graphs.links import Links, Places, places
from cqa.sampling.options import SamplingError
from kb.arrays import Ids, view


class Source:
    """The graph as the samplers of all types use it, for the queries of one split."""

    def __init__(self, graph: Graph, split: str = "test", relations: str = "uniform") -> None:
        check_split(graph, split)
        self.full, self.observed = graph.full(split), graph.observed(split)
        self.trains = split == graph.splits[0]
        self._onward, self._by_links = relations == "onward", relations == "links"
        links = self.full
        order = np.argsort(links.heads, kind="stable").astype(np.int32)
        first = np.searchsorted(links.heads[order], np.arange(links.entity_count + 1))
        counts = np.diff(links.rows)
        relation_of = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        self._rows, self._first = view(order), view(first)
        self._relation_of, self._begin = view(relation_of), view(links.starts)
        self._tails = view(links.tails)
        self.present: list[int] = np.flatnonzero(np.diff(first)).tolist()
        if self._by_links:
            sizes = np.diff(links.starts)[order]
            self._before = view(np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]))

    def entity(self, random: Random) -> int:
        """An entity that has a link, each alike."""
        return self.present[int(random.random() * len(self.present))]

    def enter(self, random: Random, entity: int, before: int = -1) -> tuple[int, int]:
        """A relation that enters an entity, and one of the entities that it comes from.

        ``before`` is the relation that was drawn from here on the way to the answer. Gives -1 for
        both where "onward" leaves nothing to draw.
        """
        first, last = self._first[entity], self._first[entity + 1]
        if first == last:
            return -1, -1
        if self._by_links:
            low = self._before[first]
            at = low + int(random.random() * (self._before[last] - low))
            row = self._rows[bisect_right(self._before, at, first, last + 1) - 1]
        elif self._onward and before >= 0:
            # The link that leads on to the answer, walked back, would enter from it.
            rows = [
                row for row in self._rows[first:last].tolist() if self._relation_of[row] != before
            ]
            if not rows:
                return -1, -1
            row = rows[int(random.random() * len(rows))]
        else:
            row = self._rows[first + int(random.random() * (last - first))]
        begin, end = self._begin[row], self._begin[row + 1]
        return self._relation_of[row] ^ 1, self._tails[begin + int(random.random() * (end - begin))]

    # --- pairs of entities, for query graphs ------------------------------------------------------

    @cached_property
    def pairs(self) -> Pairs:
        """The links by the pair of their ends."""
        return Pairs(self.full)


def check_split(graph: Graph, split: str) -> None:
    """Raise SamplingError for a split whose queries have no answers, or no hard ones.

    Raises QueryError for a split that the graph does not have.
    """
    full = graph.full(split)
    if not len(full):
        raise SamplingError(f"the graph has no links for queries of {split}")
    if split != graph.splits[0] and len(full) == len(graph.observed(split)):
        raise SamplingError(
            f"the split {split!r} adds no link to those before it: no query of it has a hard answer"
        )


class Pairs:
    """Links by the pair of their ends: which entities are linked, and by which relations.

    ``keys`` are the packed pairs (head * entities + tail), sorted, each once.
    """

    def __init__(self, links: Links) -> None:
        size = self._size = links.entity_count
        keys = np.empty(len(links.tails), np.int64)
        relations = np.empty(len(links.tails), np.int32)
        for relation in range(links.relation_count):
            heads, tails = links.pairs(relation)
            begin = links.first_place(relation)
            own = keys[begin : begin + len(tails)]
            own[:] = heads
            own *= size
            own += tails
            relations[begin : begin + len(tails)] = relation
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        self._relations = relations[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        self.keys: Places = keys[starts]
        self._starts = np.append(starts, len(keys))
        self._tails: Ids = (self.keys % size).astype(np.int32)
        self._first = np.searchsorted(self.keys, np.arange(size + 1, dtype=np.int64) * size)
        self._counts = np.diff(self._starts)

    def near(self, entity: int, times: int = 1) -> Ids:
        """The entities that as many relations lead to from an entity, sorted."""
        begin, end = self._first[entity], self._first[entity + 1]
        tails = self._tails[begin:end]
        return tails if times < 2 else tails[self._counts[begin:end] >= times]

    def relations(self, head: int, tail: int) -> list[int]:
        """The relations that lead from one entity to another, sorted."""
        key = head * self._size + tail
        at = int(self.keys.searchsorted(key))
        if at == len(self.keys) or self.keys[at] != key:
            return []
        found: list[int] = self._relations[self._starts[at] : self._starts[at + 1]].tolist()
        return found

    def linked(self, heads: Ids, tails: Ids) -> npt.NDArray[np.bool_]:
        """For each pair of entities whether any relation links them."""
        wanted = heads.astype(np.int64) * self._size + tails
        at = self.keys.searchsorted(wanted)
        at[at == len(self.keys)] = 0
        found: npt.NDArray[np.bool_] = self.keys[at] == wanted
        return found

    def around(self, entities: Ids) -> tuple[Ids, Ids]:
        """The pairs that begin at some entities: their heads and tails."""
        begins = self._first[entities]
        counts = self._first[entities.astype(np.int64) + 1] - begins
        return np.repeat(entities, counts), self._tails[places(begins, counts)]
