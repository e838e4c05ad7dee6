"""Candidates for a balanced benchmark: queries drawn for a category, and what their answers are of.

A *category* of a type is what a pair may reduce to: the name of a simpler type, or "itself" for
full inference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from cqa.answering.answer import unchecked
from cqa.answering.template import Grounded, as_query, template_of
from cqa.balanced.draw import Drawing
from cqa.graphs.graph import Graph
from cqa.hardness.hardness import Hardness, masks_of
from cqa.hardness.reductions import Reduction
from cqa.hardness.report import ITSELF
from cqa.sampling.graphs import meaningful
from cqa.sampling.sample import rows_without
from cqa.types.tree import Tree, nodes
from kb.arrays import Ids

# Draws of a block.
TRIES = 256


@dataclass(frozen=True)
class Task:
    """A block to be made: for which categories, and with which relations and anchors left out.

    Relations are without direction.
    """

    number: int
    categories: tuple[str, ...]
    relations: frozenset[int] = frozenset()
    anchors: frozenset[int] = frozenset()


@dataclass(frozen=True, eq=False)
class Candidate:
    """A grounded query, its answers on the full graph, and its hard ones by category."""

    query: Grounded
    full: Ids
    pairs: dict[str, Ids]

    @property
    def relations(self) -> list[int]:
        """The relations without direction, each once."""
        if isinstance(self.query, Tree):
            found = [node.relation for node in nodes(self.query) if node.op == "p"]
        else:
            found = list(self.query.relations)
        return sorted({int(relation) >> 1 for relation in found if relation is not None})

    @property
    def anchors(self) -> list[int]:
        """The given entities, each once."""
        if isinstance(self.query, Tree):
            found = [node.entity for node in nodes(self.query) if node.op == "e"]
        else:
            found = list(self.query.constants)
        return sorted({int(entity) for entity in found if entity is not None})


def category(kind: Reduction) -> str:
    """The category of a reduction."""
    return ITSELF if kind.full else kind.name


class Maker:
    """Makes candidates of one type."""

    def __init__(
        self,
        shape: Grounded,
        graph: Graph,
        drawing: Drawing,
        hardness: Hardness,
        split: str,
        most: int,
    ) -> None:
        self.template = template_of(shape)
        self._query = self.template.query
        self._drawing, self._hardness, self._most = drawing, hardness, most
        self._full, self._observed = graph.full(split), graph.observed(split)
        self.ways: dict[str, list[tuple[int, int]]] = {}
        for disjunct, mask, kind in masks_of(self.template):
            self.ways.setdefault(category(kind), []).append((disjunct, mask))

    def block(self, task: Task, random: Random) -> list[Candidate]:
        """The candidates of some draws that have a hard answer of a wanted category."""
        found: list[tuple[Grounded, Ids, Ids]] = []
        seen: set[Grounded] = set()
        for number in range(TRIES):
            wanted = task.categories[number % len(task.categories)]
            ways = self.ways[wanted]
            made = self._drawn(random, ways[random.randrange(len(ways))], task)
            if made is not None and made[0] not in seen:
                seen.add(made[0])
                found.append(made)
        labels = self._hardness.label([query for query, *_ in found], [hard for *_, hard in found])
        candidates = []
        for number, (query, full, hard) in enumerate(found):
            kinds = labels.of(number)
            groups = [None if kind is None else category(kind) for kind in kinds]
            pairs = {
                name: hard[np.array([group == name for group in groups])]
                for name in task.categories
                if name in groups
            }
            if pairs:
                candidates.append(Candidate(query, full, pairs))
        return candidates

    def _drawn(
        self, random: Random, way: tuple[int, int], task: Task
    ) -> tuple[Grounded, Ids, Ids] | None:
        """A query with its answers and its hard answers; None when the try failed."""
        numbers = self._drawing.draw(self._query, random, way)
        if numbers is None:
            return None
        query = self.template.filled(numbers)
        candidate = Candidate(query, _NONE, {})
        if not task.relations.isdisjoint(candidate.relations) or not task.anchors.isdisjoint(
            candidate.anchors
        ):
            return None
        graph = as_query(query)
        full = unchecked(graph, self._full).tuples
        if not len(full):
            return None
        observed = unchecked(graph, self._observed).tuples
        hard = rows_without(full, observed)
        if not 0 < len(hard) <= self._most * len(graph.free):
            return None
        if not meaningful(graph, self._full, len(full)):
            return None
        return query, full, hard


_NONE: Ids = np.empty((0, 1), np.int32)


# The types by their names, the split, the seed, the most hard answers of a query.
Settings = tuple[Sequence[tuple[str, Grounded]], str, int, int]


class CandidateMaker:
    """Makes the blocks of several types, given by their names, from one graph."""

    def __init__(
        self, graph: Graph, shapes: Sequence[tuple[str, Grounded]], split: str, seed: int, most: int
    ) -> None:
        self.settings: Settings = shapes, split, seed, most
        self._graph = graph
        self._drawing, self._hardness = Drawing(graph, split), Hardness(graph, split)
        self._makers: dict[int, Maker] = {}

    def maker(self, kind: int) -> Maker:
        """What makes the candidates of a type."""
        if kind not in self._makers:
            shapes, split, _, most = self.settings
            self._makers[kind] = Maker(
                shapes[kind][1], self._graph, self._drawing, self._hardness, split, most
            )
        return self._makers[kind]

    def block(self, kind: int, task: Task) -> list[Candidate]:
        """One block; it depends on the seed, the type's name and the task alone."""
        shapes, _, seed, _ = self.settings
        random = Random(f"{seed}/{shapes[kind][0]}/{task.number}")
        return self.maker(kind).block(task, random)
