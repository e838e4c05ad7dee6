"""Graph networks that project fuzzy sets: Bellman-Ford message passing, GNN-QE (Zhu et al., 2022).

A set is a number in [0, 1] for each entity. A projection starts a network with the set times a
vector of the relation, passes messages along the links of the training graph, and reads a
probability off each node. Intersection is the product, union a + b - ab, complement 1 - a.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Annotated, Any, Literal, cast

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from cqa.graphs.graph import Graph
from cqa.graphs.links import Links
from cqa.models.embed.passing import Adjacency, blocks
from cqa.models.model import QueryModel
from cqa.models.stream import QueryBatch
from kopl_base.settings import Bool, CheckedSettings, Count, Float, Share

# So many numbers of states are held at a time where no gradient is asked for.
STATES, STATES_GPU = 1 << 22, 1 << 29
# From so many numbers of messages on, training computes a layer again instead of keeping it.
KEPT = 1 << 24
# The smallest probability that has a logarithm, and the smallest distance from 1.
LEAST, NEAR = 1e-30, 6e-8

Aggregation = Literal["sum", "pna"]


class FuzzyModel(QueryModel):
    """Operators on fuzzy sets: states are (B, E) tensors of numbers in [0, 1].

    A model below it says in `_project` what its network makes of sets.
    """

    union = "own"
    dense = True

    # Numbers a node of what the network holds at a time.
    width: int
    # The lower, the more the hardest of the entities that are no answers count in training.
    temperature = 0.2

    def __init__(self, graph: Graph, links: Links) -> None:
        super().__init__(graph)
        self._adjacency = Adjacency.of(links)

    @property
    def adjacency(self) -> Adjacency:
        """The links that messages pass along, where the weights are."""
        if self._adjacency.sources.device != self.device:
            self._adjacency = self._adjacency.to(self.device)
        return self._adjacency

    def entity(self, entities: Tensor) -> Tensor:
        """The sets that hold one entity each."""
        shape = len(entities), self.entity_count
        return torch.zeros(shape, device=entities.device).scatter_(1, entities[:, None], 1.0)

    def project(self, state: Tensor, relations: Tensor) -> Tensor:
        """The sets that relations reach; what comes before them learns nothing through them."""
        state = state.detach()
        if torch.is_grad_enabled():
            return self._project(state, relations).sigmoid()
        most = STATES_GPU if state.is_cuda else STATES
        size = max(1, most // max(1, self.entity_count * self.width))
        pairs = zip(torch.split(state, size), torch.split(relations, size), strict=True)
        return torch.cat([self._project(*pair).sigmoid() for pair in pairs])

    def _project(self, sets: Tensor, relations: Tensor) -> Tensor:
        """The logits (B, E) of the projections of a few sets."""
        raise NotImplementedError

    def and_(self, states: Sequence[Tensor]) -> Tensor:
        """The products."""
        return reduce(torch.mul, states)

    def or_(self, states: Sequence[Tensor]) -> Tensor:
        """The probabilistic sums, a + b - ab."""
        return reduce(lambda one, other: one + other - one * other, states)

    def not_(self, state: Tensor) -> Tensor:
        """One less each."""
        return 1 - state

    def logits(self, state: Tensor, entities: Tensor | None = None) -> Tensor:
        """The logits of the numbers."""
        if entities is not None:
            state = state.gather(1, entities)
        return state.clamp_min(LEAST).log() - (1 - state).clamp_min(NEAR).log()

    def losses(self, state: Tensor, batch: QueryBatch) -> tuple[Tensor, Tensor]:
        """Cross-entropy: the mean over the answers, and that over all else by how hard it is."""
        logits, answers = self.logits(state), batch.answers
        others = logits.masked_fill(answers, -torch.inf)
        hard = (others.detach() / self.temperature).softmax(1)
        counts = answers.sum(1).clamp_min(1)
        right = (functional.softplus(-logits) * answers).sum(1) / counts
        wrong = (functional.softplus(logits) * hard).sum(1)
        best = logits.gather(1, batch.positives[:, None]) > others
        return (right + wrong) / 2, best.all(1)


class Layer(nn.Module):
    """A layer of message passing: linear of [state; aggregate], layer norm, ReLU, plus the state.

    The aggregate of a node is over its messages and its own boundary: their sum, or (PNA) mean,
    least, largest and standard deviation, each times three scalers of the node's degree. A subclass
    says in `scales` what scales a message, a vector for each relation and query.
    """

    def __init__(self, width: int, aggregation: Aggregation = "sum") -> None:
        super().__init__()
        self.aggregation = aggregation
        self.layer_norm = nn.LayerNorm(width)
        self.linear = nn.Linear((2 if aggregation == "sum" else 13) * width, width)

    def scales(self, given: Tensor) -> Tensor:
        """The scales of the messages, (relations, B, width)."""
        raise NotImplementedError

    def forward(
        self, states: Tensor, boundary: Tensor, scales: Tensor, adjacency: Adjacency
    ) -> Tensor:
        """The states (nodes, B, width) after the layer."""
        if torch.is_grad_enabled():
            return self._block(states, boundary, scales, adjacency)
        found = torch.empty_like(states)
        for part in blocks(adjacency, states[0].numel()):
            found[part.first : part.first + part.node_count] = self._block(
                states, boundary, scales, part
            )
        return found

    def _block(self, states: Tensor, boundary: Tensor, scales: Tensor, part: Adjacency) -> Tensor:
        """The new states of the nodes of a part."""
        nodes = slice(part.first, part.first + part.node_count)
        own, width = states[nodes], states.shape[2]
        aggregate = self._aggregate(states, boundary[nodes], scales, part)
        # Two products instead of one of [state; aggregate], which would be copied first.
        weight = self.linear.weight
        hidden = functional.linear(own, weight[:, :width], self.linear.bias)
        taken = aggregate.flatten(0, 1), weight[:, width:].t()
        if hidden.requires_grad:
            hidden = torch.addmm(hidden.flatten(0, 1), *taken).view(own.shape)
        else:
            hidden.view(-1, width).addmm_(*taken)
        found: Tensor = self.layer_norm(hidden)
        return own + found.relu() if found.requires_grad else found.relu_().add_(own)

    def _aggregate(
        self, states: Tensor, boundary: Tensor, scales: Tensor, part: Adjacency
    ) -> Tensor:
        """What the nodes of a part take in: their messages and boundary, (nodes, B, features)."""
        shape = boundary.shape
        flat, scale = states.flatten(1), scales.flatten(1)
        sums: Tensor = part.sums(flat, scale).view(shape)
        sums = sums + boundary if sums.requires_grad else sums.add_(boundary)
        if self.aggregation == "sum":
            return sums
        degrees = (part.degrees + 1).to(states.dtype)[:, None, None]
        mean = sums / degrees
        squares = part.sums(flat * flat, scale * scale).view(shape) + boundary * boundary
        spread = (squares / degrees - mean * mean).clamp_min(1e-6).sqrt()
        low, high = (found.view(shape) for found in part.extremes(flat, scale))
        linked = degrees > 1
        low = torch.where(linked, torch.minimum(low, boundary), boundary)
        high = torch.where(linked, torch.maximum(high, boundary), boundary)
        features = torch.stack([mean, low, high, spread], -1)
        scaler = (degrees.log() / part.mean_logarithm).unsqueeze(-1)
        parts = [features, features * scaler, features / scaler.clamp_min(1e-2)]
        return torch.cat(parts, -1).flatten(2)


class PassingNetwork(nn.Module):
    """Layers of message passing from a boundary, (nodes, B, width).

    ``joined``: the states of all layers side by side come out instead of the last ones.
    """

    def __init__(self, layers: Sequence[Layer], joined: bool = False) -> None:
        super().__init__()
        self.layers: Iterable[Any] = nn.ModuleList(layers)
        self.joined = joined

    def forward(self, boundary: Tensor, given: Tensor, adjacency: Adjacency) -> Tensor:
        """The states after all layers; ``given`` is what the layers make their scales of."""
        states, found = boundary, []
        again = torch.is_grad_enabled() and boundary[0].numel() * len(adjacency.sources) > KEPT
        for layer in self.layers:
            arguments = states, boundary, layer.scales(given), adjacency
            if again:
                states = checkpoint(layer, *arguments, use_reentrant=False)
            else:
                states = layer(*arguments)
            if self.joined:
                found.append(states)
        return torch.cat(found, -1) if self.joined else states


class ReadingNetwork(PassingNetwork):
    """Message passing whose last states and the query's vector give a logit for each node."""

    def __init__(self, layers: Sequence[Layer], width: int, joined: bool = False) -> None:
        super().__init__(layers, joined)
        self.state_width = width * (len(layers) if joined else 1)
        size = self.state_width + width
        self.mlp = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, 1))

    def read(self, sets: Tensor, queries: Tensor, given: Tensor, adjacency: Adjacency) -> Tensor:
        """The logits (B, nodes) of sets (B, nodes) projected by the queries' vectors."""
        boundary = sets.t().to(queries.dtype).unsqueeze(-1) * queries
        states = self(boundary, given, adjacency)
        first, last = cast(nn.Linear, self.mlp[0]), cast(nn.Linear, self.mlp[2])
        width = self.state_width
        own = functional.linear(queries, first.weight[:, width:], first.bias)
        if torch.is_grad_enabled():
            return self._read(states, own, first.weight[:, :width], last).t()
        found = torch.empty(sets.shape, device=sets.device)
        for part in blocks(adjacency, states[0].numel()):
            nodes = slice(part.first, part.first + part.node_count)
            found[:, nodes] = self._read(states[nodes], own, first.weight[:, :width], last).t()
        return found

    @staticmethod
    def _read(states: Tensor, own: Tensor, weight: Tensor, last: nn.Linear) -> Tensor:
        hidden = functional.linear(states, weight)
        hidden = (hidden + own).relu() if hidden.requires_grad else hidden.add_(own).relu_()
        # In float32 whatever the states are: eight bits would tie thousands of entities.
        logits = functional.linear(hidden.float(), last.weight.float(), last.bias.float())
        return logits.squeeze(-1)


# --- GNN-QE --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GnnQeSettings(CheckedSettings):
    """``width``: of a state; ``layers``: of message passing; ``aggregation``: of the messages of a
    node, four statistics with three scalers of its degree (pna), or their sum, which takes a ninth
    of the time; ``joined``: read the states of all
    layers, not only the last ones; ``dropout``: the share of links that answer a step of a training
    query and are left out for it; ``temperature``: the lower, the more the hardest of the entities
    that are no answers count."""

    width: Count = 32
    layers: Count = 4
    aggregation: Aggregation = "pna"
    joined: Bool = False
    dropout: Share = 0.25
    temperature: Annotated[Float, Field(gt=0)] = 0.2


class _RelationLayer(Layer):
    """A layer whose scales are linear in the vector of the relation that is asked."""

    def __init__(self, width: int, relations: int, aggregation: Aggregation) -> None:
        super().__init__(width, aggregation)
        self.relation_linear = nn.Linear(width, relations * width)

    def scales(self, given: Tensor) -> Tensor:
        found: Tensor = self.relation_linear(given)
        return found.view(len(given), -1, given.shape[1]).transpose(0, 1)


class GnnQe(FuzzyModel):
    """GNN-QE: a Bellman-Ford network with trained relations projects fuzzy sets."""

    paper = "Zhu et al. 2022"
    cost = "layers · (links + E) · width a projection"
    own_settings = GnnQeSettings
    defaults = MappingProxyType(
        {
            **QueryModel.defaults,
            "training.batch": 48,
            "training.epochs": 10,
            "training.learning_rate": 5e-3,
            "training.schedule": "constant",
            "queries.steps": 1000,
            "queries.mix": "all",
            "queries.weighted": False,
        }
    )

    def __init__(self, settings: GnnQeSettings, graph: Graph) -> None:
        super().__init__(graph, graph.view("train"))
        self.dropout, self.temperature = settings.dropout, settings.temperature
        width = self.width = settings.width
        self.queries = nn.Embedding(self.relation_count, width)
        layers = [
            _RelationLayer(width, self.relation_count, settings.aggregation)
            for _ in range(settings.layers)
        ]
        self.passing = ReadingNetwork(layers, width, settings.joined)

    def _project(self, sets: Tensor, relations: Tensor) -> Tensor:
        adjacency = self.adjacency
        if self.training and self.dropout:
            adjacency = without_answers(adjacency, sets > 0, relations, self.dropout)
        queries = self.queries(relations)
        return self.passing.read(sets, queries, queries, adjacency)


def without_answers(
    adjacency: Adjacency, sets: Tensor, relations: Tensor, share: float
) -> Adjacency:
    """The links without a share of those that answer the projections of some sets, (B, nodes).

    A link and its inverse go together; those of all queries of the batch are left out for all.
    """
    asked = torch.zeros(
        adjacency.relation_count, adjacency.node_count, dtype=torch.bool, device=sets.device
    )
    for relation, members in zip(relations.tolist(), sets, strict=True):
        asked[relation] |= members
    answering = asked[adjacency.link_relations, adjacency.link_nodes]
    drop = answering & (torch.rand(answering.shape, device=sets.device) < share)
    return adjacency.kept(~(drop | drop[adjacency.inverse]))
