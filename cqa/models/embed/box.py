"""GQE (Hamilton et al., 2018) and Query2box (Ren et al., 2020): points and boxes.

A state of GQE is a point [B, d]; one of Query2box is a centre and an offset that is nowhere
negative. Both intersect by attention and translate by relations; neither has a complement.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import NoReturn

import torch
from pydantic.dataclasses import dataclass
from torch import Tensor

from cqa.errors import QueryError
from cqa.graphs.graph import Graph
from cqa.models.embed.layers import (
    Gate,
    Perceptron,
    from_boxes,
    manhattan,
    stacked,
    table,
    weighted,
)
from cqa.models.model import QueryModel
from cqa.models.query_sets import PLAIN
from kopl_base.settings import CheckedSettings, Count, NotNegative

Box = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class GqeSettings(CheckedSettings):
    """``d``: numbers of a point; ``gamma``: the logit at distance 0."""

    d: Count = 800
    gamma: NotNegative = 24.0


@dataclass(frozen=True)
class Query2boxSettings(CheckedSettings):
    """``d``: numbers of a centre; ``gamma``: the logit at the centre; ``inside``: what a distance
    within the box counts."""

    d: Count = 400
    gamma: NotNegative = 24.0
    inside: NotNegative = 0.02


class _Positive(QueryModel):
    """A model without complements."""

    operators = "e p i u"
    negation = False
    negations = "none"
    form = "DNF+IU"
    defaults = MappingProxyType({**QueryModel.defaults, "queries.types": " ".join(PLAIN)})

    def not_(self, state: object) -> NoReturn:
        """Raise QueryError: there are no complements."""
        raise QueryError(f"{type(self).__name__} has no complement; ask queries without negation")


class Gqe(_Positive):
    """Sets as points."""

    paper = "Hamilton et al. 2018"
    cost = "E·d a query"
    own_settings = GqeSettings

    def __init__(self, settings: GqeSettings, graph: Graph) -> None:
        super().__init__(graph)
        self.gamma = settings.gamma
        bound = (settings.gamma + 2) / settings.d
        self.entities = table(self.entity_count, settings.d, -bound, bound)
        self.relations = table(self.relation_count, settings.d, -bound, bound)
        self.attention = Perceptron(settings.d, settings.d, settings.d, bias=False)

    def entity(self, entities: Tensor) -> Tensor:
        """The points of entities."""
        return self.entities[entities]

    def project(self, state: Tensor, relations: Tensor) -> Tensor:
        """The points, moved by the relations."""
        return state + self.relations[relations]

    def and_(self, states: Sequence[Tensor]) -> Tensor:
        """A mean of the points by attention."""
        points = torch.stack(list(states))
        return weighted(points, self.attention(points))

    def logits(self, state: Tensor, entities: Tensor | None = None) -> Tensor:
        """gamma less the sum of absolute differences."""
        return self.gamma - manhattan(state, entities, self.entities)


class Query2box(_Positive):
    """Sets as boxes."""

    paper = "Ren et al. 2020"
    cost = "E·d a query"
    own_settings = Query2boxSettings

    def __init__(self, settings: Query2boxSettings, graph: Graph) -> None:
        super().__init__(graph)
        d = settings.d
        self.gamma, self.inside = settings.gamma, settings.inside
        bound = (settings.gamma + 2) / d
        self.entities = table(self.entity_count, d, -bound, bound)
        self.relations = table(self.relation_count, d, -bound, bound)
        self.offsets = table(self.relation_count, d, 0.0, bound)
        self.attention = Perceptron(d, d, d, bias=False)
        self.gate = Gate(d, d)

    def entity(self, entities: Tensor) -> Box:
        """The entities' points as boxes of no extent."""
        centre = self.entities[entities]
        return centre, torch.zeros_like(centre)

    def project(self, state: Box, relations: Tensor) -> Box:
        """The boxes, moved and widened by the relations."""
        centre, offset = state
        return centre + self.relations[relations], offset + self.offsets[relations].relu()

    def and_(self, states: Sequence[Box]) -> Box:
        """A centre by attention, and a box that is narrower than each."""
        centres, offsets = stacked(states)
        centre = weighted(centres, self.attention(centres))
        return centre, offsets.amin(0) * self.gate(offsets)

    def logits(self, state: Box, entities: Tensor | None = None) -> Tensor:
        """gamma less the distance to the box, and a little of that within it."""
        return self.gamma - from_boxes(*state, self.inside, entities, self.entities)
