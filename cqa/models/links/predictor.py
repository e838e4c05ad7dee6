"""Link predictors: what scores all tails of a head by a relation, and the least that one must beat.

Every model of links is a `LinkPredictor`; what searches, calibrates or evaluates asks for no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from cqa.errors import QueryError
from cqa.graphs.links import Links


@runtime_checkable
class LinkPredictor(Protocol):
    """Scores of tails, both directions apart: relation 2r is forward, 2r + 1 its inverse."""

    @property
    def entity_count(self) -> int:
        """The number of entities, E."""

    @property
    def relation_count(self) -> int:
        """The number of directed relations, inverses included."""

    def scores(self, relation: int, heads: Tensor) -> Tensor:
        """The logits of all tails: a (B, E) tensor of floats for B heads, integers.

        The higher the better; only differences within a row mean anything. It is on the
        predictor's device and without gradients.
        """


class FrequentTails:
    """The baseline: a tail scores as often as the relation leads to it, whatever the head.

    ``links`` are those that are known, as ``graph.view("train")``. Memory: one row of scores.
    """

    def __init__(self, links: Links) -> None:
        self._links = links

    @property
    def entity_count(self) -> int:
        """The number of entities, E."""
        return self._links.entity_count

    @property
    def relation_count(self) -> int:
        """The number of directed relations, inverses included."""
        return self._links.relation_count

    def scores(self, relation: int, heads: Tensor) -> Tensor:
        """The number of links of the relation to each entity, the same row for all heads.

        Raises QueryError for a relation that there is not.
        """
        check_relation(relation, self)
        _, tails = self._links.pairs(relation)
        counts = torch.bincount(
            torch.from_numpy(tails.astype("int64")), minlength=self.entity_count
        )
        return counts.float().expand(len(heads), -1)


def check_relation(relation: int, predictor: LinkPredictor) -> None:
    """Raise QueryError for a number that is no directed relation of the predictor."""
    if not 0 <= relation < predictor.relation_count:
        raise QueryError(
            f"there is no directed relation {relation}; the numbers end below"
            f" {predictor.relation_count}"
        )


def in_blocks(
    predictor: LinkPredictor, relation: int, heads: Tensor, numbers: int = 1 << 24
) -> Iterator[tuple[slice, Tensor]]:
    """The scores of heads in blocks of at most so many numbers: which rows, and their scores."""
    size = max(1, numbers // max(1, predictor.entity_count))
    for begin in range(0, len(heads), size):
        rows = slice(begin, min(begin + size, len(heads)))
        yield rows, predictor.scores(relation, heads[rows])
