"""What queries are drawn along: the links of a graph by the entity that they leave, and by pair.

The rows of `Links` are sorted by relation. Here they are listed by entity, so that "one of the
relations that leave this entity, then one of its tails" is two look-ups; as there is an inverse of
each relation, what leaves an entity tells what enters it.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from cqa.graphs.links import Links, Places, places
from kb.arrays import Ids, view


class Neighbours:
    """The rows of some links by their head.

    Those of an entity are numbered from ``first[entity]`` to ``first[entity + 1]``, in the order of
    their ``relations``; `span` tells where the tails of one stand in ``tails``. ``present`` are the
    entities that have a link.
    """

    def __init__(self, links: Links) -> None:
        self._links = links
        order = np.argsort(links.heads, kind="stable").astype(np.int32)
        counts = np.diff(links.rows)
        relations = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        first = np.searchsorted(links.heads[order], np.arange(links.entity_count + 1))
        self.relations, self.first = view(relations[order]), view(first)
        self._order, self._starts = view(order), view(links.starts)
        self.tails = view(links.tails)
        self.present: list[int] = np.flatnonzero(np.diff(first)).tolist()

    def span(self, row: int) -> tuple[int, int]:
        """Where the tails of a row begin and end."""
        at = self._order[row]
        return self._starts[at], self._starts[at + 1]

    @cached_property
    def links_before(self) -> memoryview[int]:
        """For each row the number of links in the rows before it, and at last that of all."""
        sizes = np.diff(self._links.starts)[np.asarray(self._order)]
        return view(np.append(0, np.cumsum(sizes, dtype=np.int64)))

    @cached_property
    def pairs(self) -> Pairs:
        """The links by the pair of their ends."""
        return Pairs(self._links)


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
