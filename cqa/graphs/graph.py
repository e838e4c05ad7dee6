"""A graph of integer triples, with a mark for each split: observed, full and missing views in one.

A graph is read by `cqa.graphs.readers`, made from a knowledge base by `cqa.graphs.from_kb`, or from
arrays by `from_triples`. `Graph.save` writes it as files that `load` maps, so that processes share
them.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cqa.errors import QueryError
from cqa.graphs.links import Links, Numbers
from cqa.graphs.names import Names
from kb.arrays import Ids
from kopl_base.errors import KoplError

SPLITS = ("train", "valid", "test")

Triples = npt.NDArray[np.integer]  # (n, 3): head, relation, tail


class Graph:
    """Entities, relations, and links that are marked with the split they belong to.

    ``links`` are all links; ``entities`` and ``relations`` their names, where there are some.
    Relations are named without direction: number r stands for the directed 2r and 2r + 1.
    """

    def __init__(
        self,
        links: Links,
        splits: Sequence[str] = SPLITS,
        entities: Names | None = None,
        relations: Names | None = None,
    ) -> None:
        self.links = links
        self.splits = tuple(splits)
        self.entities, self.relations = entities, relations
        self._views: dict[frozenset[int], Links] = {frozenset(range(len(splits))): links}

    def __repr__(self) -> str:
        counts = ", ".join(f"{n} {name}" for name, n in self.counts.items())
        sizes = f"{self.entity_count} entities, {self.relation_count} relations"
        return f"Graph({sizes}, triples: {counts})"

    @property
    def entity_count(self) -> int:
        """The number of entities."""
        return self.links.entity_count

    @property
    def relation_count(self) -> int:
        """The number of relations, not counting inverses."""
        return self.links.relation_count // 2

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of triples of each split, not counting inverses."""
        counts = np.bincount(self.links.marks, minlength=len(self.splits)) // 2
        return dict(zip(self.splits, counts.tolist(), strict=True))

    @cached_property
    def fingerprint(self) -> str:
        """A text that graphs with other links or splits do not have."""
        links = self.links
        found = 0
        for array in (links.rows, links.heads, links.starts, links.tails, links.marks):
            found = zlib.crc32(np.ascontiguousarray(array).data, found) if array.size else found
        return f"{self.entity_count} entities, {self.counts}, {found:08x}"

    def view(self, *splits: str) -> Links:
        """The links of some splits; made once.

        Raises QueryError for a split that the graph does not have.
        """
        wanted = frozenset(self._number(name) for name in splits)
        if wanted not in self._views:
            self._views[wanted] = _kept(self.links, self._marked(wanted))
        return self._views[wanted]

    def observed(self, split: str = "test") -> Links:
        """What queries of a split may use: the splits before it, or train itself for train."""
        return self.view(*self.splits[: max(1, self._number(split))])

    def full(self, split: str = "test") -> Links:
        """What queries of a split are answered on: the split and those before it."""
        return self.view(*self.splits[: self._number(split) + 1])

    def missing(self, split: str = "test") -> Links:
        """The links that are in `full` and not in `observed`."""
        at = self._number(split)
        return self.view(*self.splits[at : at + 1]) if at else self.view()

    def priced(self, split: str = "test") -> Links:
        """`full` with weight 1 for each link that is missing and 0 for one that is observed."""
        full, at = self.full(split), self._number(split)
        return full.weighted((full.marks >= max(1, at)).astype(np.int32))

    def triples(self, split: str | None = None) -> Ids:
        """The triples (head, relation, tail) of a split or of all, an (n, 3) array.

        Relations are directed numbers, all of them forward: 2r.
        """
        links = self.links if split is None else self.view(split)
        parts = []
        for relation in range(0, links.relation_count, 2):
            heads, tails = links.pairs(relation)
            middle = np.full(len(heads), relation, np.int32)
            parts.append(np.stack([heads, middle, tails], axis=1))
        return np.concatenate(parts) if parts else np.empty((0, 3), np.int32)

    def entity_name(self, number: int) -> str:
        """The name of an entity; its number where the graph has no names."""
        return str(number) if self.entities is None else self.entities[number]

    def relation_name(self, number: int) -> str:
        """The name of a relation by its number without direction, or that number."""
        return str(number) if self.relations is None else self.relations[number]

    def entity(self, name: str) -> int:
        """The number of an entity; raises QueryError with near names when there is none."""
        return _number_of(name, self.entities, self.entity_count, "entity")

    def relation(self, name: str) -> int:
        """The number of a relation without direction; raises QueryError as `entity`."""
        return _number_of(name, self.relations, self.relation_count, "relation")

    def _number(self, split: str) -> int:
        if split not in self.splits:
            raise QueryError(f"the graph has no split {split!r}; it has {', '.join(self.splits)}")
        return self.splits.index(split)

    def _marked(self, wanted: frozenset[int]) -> npt.NDArray[np.bool_]:
        table = np.zeros(len(self.splits), np.bool_)
        table[sorted(wanted)] = True
        return table[self.links.marks]


def _number_of(name: str, names: Names | None, count: int, what: str) -> int:
    if names is not None:
        number = names.find(name)
        if number < 0:
            near = names.near(name)
            hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
            raise QueryError(f"the graph has no {what} {name!r}{hint}")
        return number
    if not re.fullmatch("[0-9]{1,18}", name) or int(name) >= count:
        raise QueryError(
            f"the graph has no {what} {name[:60]!r}; it has no names, only numbers below {count}"
        )
    return int(name)


def from_triples(
    parts: Sequence[Triples],
    splits: Sequence[str] = SPLITS,
    *,
    entity_count: int | None = None,
    relation_count: int | None = None,
    entities: Names | None = None,
    relations: Names | None = None,
) -> Graph:
    """The graph of triples (head, relation, tail), one (n, 3) array for each split.

    Relations are numbered without direction. A triple of several splits belongs to the first.
    Raises KoplError for numbers out of range.
    """
    if len(parts) != len(splits):
        raise KoplError(f"{len(parts)} lists of triples for {len(splits)} splits")
    if entity_count is None:
        entity_count = len(entities) if entities is not None else _above(parts, (0, 2))
    if relation_count is None:
        relation_count = len(relations) if relations is not None else _above(parts, (1,))
    for part, split in zip(parts, splits, strict=True):
        _check_range(part, split, entity_count, relation_count)
    links = _linked(parts, entity_count, relation_count)
    return Graph(links, splits, entities, relations)


def scored(
    triples: Triples, scores: npt.NDArray[np.floating], entity_count: int, relation_count: int
) -> Links:
    """Links that weigh what a model says of them, such as its best tails for each head.

    ``triples``: distinct (head, relation, tail), an (n, 3) array, relations without direction;
    ``scores``: n numbers. What is not listed has no link, its score is zero. Raises KoplError for
    numbers out of range and for a triple that stands twice.
    """
    if len(scores) != len(triples):
        raise KoplError(f"{len(scores)} scores for {len(triples)} triples")
    graph = from_triples(
        [triples], ("scored",), entity_count=entity_count, relation_count=relation_count
    )
    links = graph.links
    if len(links) != len(triples):
        raise KoplError("a triple is listed twice; give each one score")
    weights = np.zeros(len(links.tails), scores.dtype)
    order = np.argsort(triples[:, 1], kind="stable")
    ends = np.searchsorted(triples[order, 1], np.arange(relation_count + 1))
    for relation in range(relation_count):
        rows = order[ends[relation] : ends[relation + 1]]
        heads, tails = triples[rows, 0], triples[rows, 2]
        weights[links.find(2 * relation, heads, tails)] = scores[rows]
        weights[links.find(2 * relation + 1, tails, heads)] = scores[rows]
    return links.weighted(weights)


def _above(parts: Sequence[Triples], columns: tuple[int, ...]) -> int:
    """One more than the largest number in the columns."""
    return 1 + max(
        (int(part[:, at].max()) for part in parts for at in columns if len(part)), default=-1
    )


def _check_range(part: Triples, split: str, entities: int, relations: int) -> None:
    for column, what, bound in (
        (0, "entity", entities),
        (1, "relation", relations),
        (2, "entity", entities),
    ):
        if not len(part):
            continue
        for found in (int(part[:, column].min()), int(part[:, column].max())):
            if not 0 <= found < bound:
                raise KoplError(
                    f"{split}: there is no {what} {found}; the numbers end below {bound}"
                )


def _linked(parts: Sequence[Triples], entities: int, relations: int) -> Links:
    """Both directions of all triples, sorted; one sort of packed keys where these fit 64 bits."""
    total = sum(map(len, parts))
    splits, base = len(parts), max(1, entities)
    if 2 * max(1, relations) * base * base * splits >= 1 << 63:
        raise KoplError(
            f"{entities} entities, {relations} relations and {splits} splits are more than the"
            " store can number"
        )
    keys = np.empty(2 * total, np.int64)
    at = 0
    for mark, part in enumerate(parts):
        for inverse in (0, 1):
            # ((relation * entities + head) * entities + tail) * splits + mark, in place
            own = keys[at : at + len(part)]
            own[:] = part[:, 1]
            own *= 2
            own += inverse
            own *= base
            own += part[:, 2 if inverse else 0]
            own *= base
            own += part[:, 0 if inverse else 2]
            own *= splits
            own += mark
            at += len(part)
    keys.sort()
    marks = (keys % splits).astype(np.uint8)
    keys //= splits
    if len(keys):
        fresh = np.empty(len(keys), np.bool_)
        fresh[0] = True
        np.not_equal(keys[1:], keys[:-1], out=fresh[1:])
        if not fresh.all():
            keys, marks = keys[fresh], marks[fresh]
        del fresh
    tails = (keys % base).astype(np.int32)
    keys //= base
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    keys = keys[first]
    width = np.int32 if len(tails) < 1 << 31 else np.int64
    starts = np.append(first, len(tails)).astype(width)
    heads = (keys % base).astype(np.int32)
    keys //= base
    rows = np.searchsorted(keys, np.arange(2 * relations + 1))
    return Links(entities, rows, heads, starts, tails, marks)


def _kept(links: Links, keep: npt.NDArray[np.bool_]) -> Links:
    """The links of a mask, as links of their own."""
    before = np.zeros(len(keep) + 1, links.starts.dtype)
    np.cumsum(keep, out=before[1:])
    starts: Numbers = before[links.starts]
    filled = starts[1:] > starts[:-1]
    above = np.zeros(len(filled) + 1, np.int64)
    np.cumsum(filled, out=above[1:])
    return Links(
        links.entity_count,
        above[links.rows],
        links.heads[filled],
        np.append(starts[:-1][filled], starts[-1:]).astype(starts.dtype),
        links.tails[keep],
        links.marks[keep],
    )
