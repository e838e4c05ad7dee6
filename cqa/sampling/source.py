"""What queries are sampled from: the two views of a split, and ways into each entity."""

from __future__ import annotations

from bisect import bisect_right
from random import Random

from cqa.graphs.graph import Graph
from cqa.graphs.neighbours import Neighbours, Pairs
from cqa.sampling.options import SamplingError


class Source:
    """The graph as the samplers of all types use it, for the queries of one split."""

    def __init__(self, graph: Graph, split: str = "test", relations: str = "uniform") -> None:
        check_split(graph, split)
        self.full, self.observed = graph.full(split), graph.observed(split)
        self.trains = split == graph.splits[0]
        self._onward, self._by_links = relations == "onward", relations == "links"
        self._rows = Neighbours(self.full)

    def entity(self, random: Random) -> int:
        """An entity that has a link, each alike."""
        present = self._rows.present
        return present[int(random.random() * len(present))]

    def enter(self, random: Random, entity: int, before: int = -1) -> tuple[int, int]:
        """A relation that enters an entity, and one of the entities that it comes from.

        ``before`` is the relation that was drawn from here on the way to the answer. Gives -1 for
        both where "onward" leaves nothing to draw.
        """
        rows = self._rows
        first, last = rows.first[entity], rows.first[entity + 1]
        if first == last:
            return -1, -1
        if self._by_links:
            before_rows = rows.links_before
            low = before_rows[first]
            at = low + int(random.random() * (before_rows[last] - low))
            row = bisect_right(before_rows, at, first, last + 1) - 1
        elif self._onward and before >= 0:
            # The link that leads on to the answer, walked back, would enter from it.
            others = [row for row in range(first, last) if rows.relations[row] != before]
            if not others:
                return -1, -1
            row = others[int(random.random() * len(others))]
        else:
            row = first + int(random.random() * (last - first))
        begin, end = rows.span(row)
        return rows.relations[row] ^ 1, rows.tails[begin + int(random.random() * (end - begin))]

    @property
    def pairs(self) -> Pairs:
        """The links by the pair of their ends."""
        return self._rows.pairs


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
