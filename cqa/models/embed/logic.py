"""LogicE (Luus et al., 2021): a set as d truth values, or as an interval for each of d.

A state [B, 2d] has 2d values in (0, 1), or d lower bounds and d upper ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from pydantic.dataclasses import dataclass
from torch import Tensor

from cqa.graphs.graph import Graph
from cqa.models.embed.layers import Perceptron, manhattan, table
from cqa.models.model import QueryModel
from kopl_base.settings import Bool, CheckedSettings, Count, NotNegative


@dataclass(frozen=True)
class LogicSettings(CheckedSettings):
    """``d``: half the numbers of a set; ``hidden``: the width of the projection's layers;
    ``gamma``: the distance at which the logit is 0, where a state's numbers differ by at most 1.
    ``bounded``: lower and upper bounds, as its own paper has them, instead of values."""

    d: Count = 400
    hidden: Count = 1600
    gamma: NotNegative = 0.375
    bounded: Bool = False


class LogicE(QueryModel):
    """Sets as truth values, joined by a t-norm of Lukasiewicz."""

    paper = "Luus et al. 2021"
    form = "DNF+IU"
    cost = "E·d a query"
    own_settings = LogicSettings

    def __init__(self, settings: LogicSettings, graph: Graph) -> None:
        super().__init__(graph)
        d, hidden = settings.d, settings.hidden
        self.gamma, self.bounded = settings.gamma, settings.bounded
        bound = (settings.gamma + 2) / d
        self.entities = table(self.entity_count, 2 * d, 0.0, 1.0)
        self.relations = table(self.relation_count, d, -bound, bound)
        self.projection = Perceptron(3 * d, hidden, hidden, 2 * d)
        self.attention = Perceptron(2 * d, 2 * d, d if self.bounded else 2 * d, bias=False)

    def entity(self, entities: Tensor) -> Tensor:
        """The values of entities."""
        return self._values(self.entities[entities])

    def project(self, state: Tensor, relations: Tensor) -> Tensor:
        """What a network makes of the values and the relations."""
        inputs = torch.cat([state, self.relations[relations]], -1)
        return self._values(self.projection(inputs).sigmoid())

    def and_(self, states: Sequence[Tensor]) -> Tensor:
        """max(0, 1 - sum of a (1 - x)), where the largest attention a of each number is 1."""
        operands = torch.stack(list(states))
        attention = self.attention(operands).softmax(0)
        attention = attention / attention.amax(0)
        if self.bounded:
            attention = attention.repeat(1, 1, 2)
        lacking: Tensor = (attention * (1 - operands)).sum(0)
        return (1 - lacking).clamp(0, 1)

    def not_(self, state: Tensor) -> Tensor:
        """What is missing to 1; of bounds, the upper one's is the lower one."""
        if not self.bounded:
            return 1 - state
        lower, upper = state.chunk(2, -1)
        return torch.cat([1 - upper, 1 - lower], -1)

    def logits(self, state: Tensor, entities: Tensor | None = None) -> Tensor:
        """100 times gamma less the mean absolute difference."""
        distance = manhattan(state, entities, self._values(self.entities))
        return 100 * (self.gamma - distance / state.shape[-1])

    def _values(self, numbers: Tensor) -> Tensor:
        """Numbers as they are, or as lower bounds and shares of what is above them."""
        if not self.bounded:
            return numbers
        lower, share = numbers.chunk(2, -1)
        return torch.cat([lower, lower + share * (1 - lower)], -1)
