"""NewLook (Liu et al., 2021) as EFO-1-QA has it: boxes, and which groups of entities they may hold.

Entities are in groups by chance; of each relation it is known which groups its links in train lead
to from which. A state is a centre, an offset, and for each group whether the set may hold some of
it. There are differences, but no complements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import torch
from pydantic.dataclasses import dataclass
from torch import Tensor

from cqa.errors import QueryError
from cqa.graphs.graph import Graph
from cqa.models.embed.layers import Gate, Perceptron, from_boxes, stacked, table, weighted
from cqa.models.model import QueryModel
from kopl_base.settings import CheckedSettings, Count, NotNegative

Look = tuple[Tensor, Tensor, Tensor]

# Keeps the weight of an operand finite whose groups are all in the intersection.
LEAST = 0.01


@dataclass(frozen=True)
class NewLookSettings(CheckedSettings):
    """``d``: numbers of a centre; ``hidden``: the width of the projection's layers; ``groups``: of
    entities, drawn by ``group_seed``; ``gamma``: the logit at distance 0; ``inside`` and
    ``outside``: what a distance within the box counts, and one from the groups."""

    d: Count = 400
    hidden: Count = 1600
    groups: Count = 200
    group_seed: Count = 1
    gamma: NotNegative = 24.0
    inside: NotNegative = 0.2
    outside: NotNegative = 0.02


class NewLook(QueryModel):
    """Sets as boxes with groups; differences instead of complements."""

    paper = "Liu et al. 2021, in the version of EFO-1-QA"
    operators = "e p i d u"
    negation = False
    negations = "difference"
    form = "DNF+IUD"
    cost = "E·d a query, and groups² a projection"
    own_settings = NewLookSettings
    linked: Tensor
    group: Tensor

    def __init__(self, settings: NewLookSettings, graph: Graph) -> None:
        super().__init__(graph)
        d, hidden, groups = settings.d, settings.hidden, settings.groups
        self.gamma, self.inside = settings.gamma, settings.inside
        self.outside, self.groups = settings.outside, groups
        bound = (settings.gamma + 2) / d
        self.entities = table(self.entity_count, d, -bound, bound)
        self.relations = table(self.relation_count, d, -bound, bound)
        self.offsets = table(self.relation_count, d, 0.0, bound)
        self.from_centre = Perceptron(d, hidden, d)
        self.from_offset = Perceptron(d, hidden, d)
        self.projection = Perceptron(2 * d + groups, hidden, 2 * d)
        self.attention = Perceptron(2 * d, 2 * d, d)
        self.gate = Gate(2 * d, d)
        self.difference_attention = Perceptron(2 * d, 2 * d, d, bias=False)
        group = np.random.default_rng(settings.group_seed).integers(groups, size=self.entity_count)
        # Both follow from the settings and the graph, so that no file has to hold them.
        self.register_buffer("group", torch.from_numpy(group), persistent=False)
        linked = _linked(graph, group, groups)
        self.register_buffer("linked", torch.from_numpy(linked), persistent=False)

    def entity(self, entities: Tensor) -> Look:
        """The entities' points as boxes of no extent, with their groups."""
        centre = self.entities[entities]
        groups = torch.nn.functional.one_hot(self.group[entities], self.groups).to(centre.dtype)
        return centre, torch.zeros_like(centre), groups

    def project(self, state: Look, relations: Tensor) -> Look:
        """What a network makes of the moved centre, the relation's offset and the groups reached.

        The offset of the state is dropped, as published.
        """
        centre, _, groups = state
        links = self.linked[relations].to(groups.dtype)
        reached = torch.bmm(groups[:, None], links)[:, 0].clamp(0, 1)
        parts = [
            self.from_centre(centre + self.relations[relations]),
            self.from_offset(self.offsets[relations]),
            reached,
        ]
        centre, offset = self.projection(torch.cat(parts, -1)).chunk(2, -1)
        return centre, torch.nn.functional.softplus(offset), reached

    def and_(self, states: Sequence[Look]) -> Look:
        """A box by attention; operands count more the fewer groups they have besides."""
        centres, offsets, groups = stacked(states)
        shared = groups.prod(0)
        besides = (groups - shared).relu().sum(-1, keepdim=True)
        both = torch.cat([centres, offsets], -1)
        centre = weighted(centres, self.attention(both) / (besides + LEAST))
        return centre, offsets.amin(0) * self.gate(both), shared

    def difference(self, state: Look, taken: Sequence[Look]) -> Look:
        """A set without each of some others, whatever the order of these."""
        centres, offsets, groups = stacked([state, *taken])
        both = torch.cat([centres, offsets], -1)
        # The first operand is told from the others by its sign in what decides their weights.
        signs = both.new_ones(len(both), 1, 1)
        signs[1:] = -1
        scores = self.difference_attention(both * signs)
        rest = (groups[0] - groups[1:].sum(0)).relu()
        return weighted(centres, scores), weighted(offsets, scores), rest

    def not_(self, state: Look) -> NoReturn:
        """Raise QueryError: there are no complements."""
        raise QueryError("NewLook has no complement, but differences; write queries with d or D")

    def logits(self, state: Look, entities: Tensor | None = None) -> Tensor:
        """gamma less the distance to the box, some of that within it, and whether a group lacks."""
        if entities is None:
            there = state[2][:, self.group]
        else:
            there = state[2].gather(1, self.group[entities].expand(len(state[2]), -1))
        found = from_boxes(*state[:2], self.inside, entities, self.entities)
        return self.gamma - found - self.outside * (1 - there).relu()


def _linked(graph: Graph, group: npt.NDArray[np.int64], groups: int) -> npt.NDArray[np.uint8]:
    """For each directed relation which groups [groups, groups] its links in train connect."""
    links = graph.view(graph.splits[0])
    found = np.zeros((links.relation_count, groups, groups), np.uint8)
    for relation in range(links.relation_count):
        heads, tails = links.pairs(relation)
        found[relation, group[heads], group[tails]] = 1
    return found
