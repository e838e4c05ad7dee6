"""ConE (Zhang et al., 2021): a set as a sector of the plane for each of d numbers.

A state is the axes in [-pi, pi) and the apertures in [0, pi], both [B, d]; a sector reaches from
axis - aperture to axis + aperture.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi
from types import MappingProxyType

import torch
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from cqa.graphs.graph import Graph
from cqa.models.embed.layers import Gate, Perceptron, among, stacked, table
from cqa.models.model import QueryModel
from kopl_base.settings import CheckedSettings, Count, NotNegative, Share

Cone = tuple[Tensor, Tensor]

# A mean direction whose cosine is nearer to 0 is taken as so far away: its angle has a slope there.
LEAST = 1e-3


@dataclass(frozen=True)
class ConeSettings(CheckedSettings):
    """``d``: sectors of a set; ``hidden``: the width of the projection's layers; ``gamma``: the
    logit at distance 0; ``dropout``: of apertures as sets are intersected; ``inside``: what a
    distance within a sector counts."""

    d: Count = 800
    hidden: Count = 1600
    gamma: NotNegative = 30.0
    dropout: Share = 0.1
    inside: NotNegative = 0.02


class ConE(QueryModel):
    """Sets as sectors; a complement is the rest of the plane."""

    paper = "Zhang et al. 2021"
    form = "DNF+IU"
    cost = "E·d a query"
    own_settings = ConeSettings
    defaults = MappingProxyType(
        {**QueryModel.defaults, "training.learning_rate": 5e-5, "training.epochs": 30}
    )

    def __init__(self, settings: ConeSettings, graph: Graph) -> None:
        super().__init__(graph)
        d, hidden = settings.d, settings.hidden
        self.gamma, self.inside = settings.gamma, settings.inside
        self.range = (settings.gamma + 2) / d
        self.entities = table(self.entity_count, d, -self.range, self.range)
        self.relations = table(self.relation_count, 2 * d, -self.range, self.range)
        self.projection = Perceptron(2 * d, hidden, hidden, 2 * d)
        self.attention = Perceptron(2 * d, d, d, bias=False)
        self.gate = Gate(2 * d, d)
        self.dropout = nn.Dropout(settings.dropout)
        self.scale = nn.Parameter(torch.tensor([self.range / 2]))

    def entity(self, entities: Tensor) -> Cone:
        """The entities' directions as sectors of no width."""
        axis = self._angles(self.entities[entities])
        return axis, torch.zeros_like(axis)

    def project(self, state: Cone, relations: Tensor) -> Cone:
        """What a network makes of the sectors, turned and widened by the relations."""
        moved = torch.cat(state, -1) + self._angles(self.relations[relations])
        axis, aperture = self.projection(moved).chunk(2, -1)
        return pi * axis.tanh(), pi / 2 * ((2 * aperture).tanh() + 1)

    def and_(self, states: Sequence[Cone]) -> Cone:
        """A mean direction by attention, and a sector that is narrower than each."""
        axes, apertures = stacked(states)
        ends = torch.cat([axes - apertures, axes + apertures], -1)
        attention = self.attention(ends).softmax(0)
        x, y = (attention * axes.cos()).sum(0), (attention * axes.sin()).sum(0)
        x = torch.where(x.abs() < LEAST, x.sign().masked_fill(x == 0, 1) * LEAST, x)
        aperture = self.dropout(apertures.amin(0)) * self.gate(ends)
        return torch.atan2(y, x), aperture

    def not_(self, state: Cone) -> Cone:
        """The opposite direction and the rest of the plane."""
        axis, aperture = state
        return torch.where(axis >= 0, axis - pi, axis + pi), pi - aperture

    def logits(self, state: Cone, entities: Tensor | None = None) -> Tensor:
        """gamma less the scaled distance to the sectors, and a little of that within them.

        Distances are sines of half the angles: outside to the nearer end, inside to the axis. An
        entity's direction enters by its half's sine and cosine, so that no sine is taken for each
        pair.
        """
        axis, aperture = state[0][:, None] / 2, state[1][:, None] / 2
        width = aperture.sin().abs()
        ends = [(one.sin(), one.cos()) for one in (axis - aperture, axis + aperture)]
        sine, cosine = axis.sin(), axis.cos()

        def distance(points: Tensor) -> Tensor:
            own_sine, own_cosine = points.sin(), points.cos()
            away = (own_sine * cosine - own_cosine * sine).abs()
            first, second = ((own_sine * c - own_cosine * s).abs() for s, c in ends)
            outside = torch.minimum(first, second).masked_fill(away < width, 0)
            return (outside + self.inside * torch.minimum(away, width)).sum(-1)

        halves = self._angles(self.entities) / 2
        return self.gamma - self.scale * among(halves, entities, distance, len(axis))

    def _angles(self, numbers: Tensor) -> Tensor:
        return pi * (numbers / self.range).tanh()
