"""Link predictors: what scores all tails of a head by a relation."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from torch import Tensor


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
