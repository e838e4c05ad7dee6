"""BetaE (Ren and Leskovec, 2020): a set as a Beta distribution of each of d numbers.

A state [B, 2d] has their parameters, alpha first, then beta.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from pydantic.dataclasses import dataclass
from torch import Tensor

from cqa.graphs.graph import Graph
from cqa.models.embed.layers import Perceptron, table, weighted
from cqa.models.model import QueryModel
from kopl_base.settings import CheckedSettings, Count, NotNegative

# What parameters of a distribution are kept within.
LEAST, MOST = 0.05, 1e9


@dataclass(frozen=True)
class BetaSettings(CheckedSettings):
    """``d``: distributions of a set; ``hidden``: the width of the projection's layers; ``gamma``:
    the logit at no divergence."""

    d: Count = 400
    hidden: Count = 1600
    gamma: NotNegative = 60.0


class BetaE(QueryModel):
    """Sets as Beta distributions; a complement has the inverse parameters."""

    paper = "Ren and Leskovec 2020"
    form = "DNF+IU"
    cost = "E·d a query, after the logarithms of E·d gamma functions"
    own_settings = BetaSettings

    def __init__(self, settings: BetaSettings, graph: Graph) -> None:
        super().__init__(graph)
        d, hidden = settings.d, settings.hidden
        self.gamma = settings.gamma
        bound = (settings.gamma + 2) / d
        self.entities = table(self.entity_count, 2 * d, -bound, bound)
        self.relations = table(self.relation_count, d, -bound, bound)
        self.projection = Perceptron(3 * d, hidden, hidden, 2 * d)
        self.attention = Perceptron(2 * d, 2 * d, d, bias=False)

    def entity(self, entities: Tensor) -> Tensor:
        """The distributions of entities."""
        return _parameters(self.entities[entities])

    def project(self, state: Tensor, relations: Tensor) -> Tensor:
        """What a network makes of the distributions and the relations."""
        return _parameters(self.projection(torch.cat([state, self.relations[relations]], -1)))

    def and_(self, states: Sequence[Tensor]) -> Tensor:
        """A mean of the parameters by attention, the same for alpha and beta."""
        operands = torch.stack(list(states))
        return weighted(operands, self.attention(operands).repeat(1, 1, 2))

    def not_(self, state: Tensor) -> Tensor:
        """The inverse parameters: high density where there was low."""
        return 1 / state

    def logits(self, state: Tensor, entities: Tensor | None = None) -> Tensor:
        """gamma less the summed divergence KL(entity || state).

        It is a constant of the entity, one of the state, and a sum of products of the two, so that
        one product of matrices gives it for all entities.
        """
        with torch.autocast(state.device.type, enabled=False):
            state = state.float()
            own = _log_beta(state)[:, None]
            if entities is None:
                vectors, constants = _terms(_parameters(self.entities))
                return self.gamma - (own + constants - state @ vectors.T)
            # Gamma functions take longest: once for each entity of the batch.
            numbers, places = torch.unique(entities, return_inverse=True)
            vectors, constants = _terms(_parameters(self.entities[numbers]))
            products = torch.einsum("bd,bmd->bm", state, vectors[places])
            return self.gamma - (own + constants[places] - products)


def _parameters(numbers: Tensor) -> Tensor:
    return (numbers + 1).clamp(LEAST, MOST)


def _log_beta(parameters: Tensor) -> Tensor:
    """The logarithms of the Beta functions of [n, 2d] parameters, summed: [n]."""
    alpha, beta = parameters.chunk(2, -1)
    return (alpha.lgamma() + beta.lgamma() - (alpha + beta).lgamma()).sum(-1)


def _terms(parameters: Tensor) -> tuple[Tensor, Tensor]:
    """What entities [n, 2d] bring to a divergence: factors [n, 2d] of a state, and constants [n].

    KL((a, b) || (a', b')) = log B(a', b') - log B(a, b) + (a - a') (F(a) - F(a + b))
    + (b - b') (F(b) - F(a + b)), where F is the derivative of the logarithm of the gamma function.
    """
    alpha, beta = parameters.chunk(2, -1)
    both = (alpha + beta).digamma()
    factors = torch.cat([alpha.digamma() - both, beta.digamma() - both], -1)
    return factors, (parameters * factors).sum(-1) - _log_beta(parameters)
