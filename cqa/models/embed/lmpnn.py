"""LMPNN (Wang et al., 2023): messages between the nodes of a query, over a frozen link predictor.

The nodes of a query graph have states in the predictor's space: constants their vectors, free and
existential variables one that is trained for each kind. An atom r(h, t) tells t what h makes
likely, h * r, and h what t does, t * conj(r); with the sign turned where the atom is negated. What
a variable is told is summed, and one small network makes its next state of it. Any query graph will
do, with cycles and several free variables; the walk's plan is read as the graph that it came from.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any
from weakref import WeakKeyDictionary

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass as checked
from torch import Tensor, nn
from torch.nn import functional

from cqa.errors import QueryError
from cqa.evaluation.plan import Disjuncts, QueryPlan, check_operators
from cqa.graphs.graph import Graph
from cqa.models.checkpoint import WEIGHTS, check_graph, fill, load_run, located, read_run
from cqa.models.model import QueryModel
from cqa.models.settings import Settings
from kopl_base.settings import CheckedSettings, Count, Float, NotNegative
from kopl_base.training.checkpoint import CheckpointError, weight_shapes

# What an edge without a relation has for one: a node that must be another one.
SAME = -1


@checked(frozen=True)
class LmpnnSettings(CheckedSettings):
    """``predictor``: a run of ComplEx on the same graph; ``hidden``: the width of the network;
    ``residual``: what a node's own state counts beside its messages; ``temperature``: of the
    cosines."""

    predictor: str = ""
    hidden: Count = 4096
    residual: NotNegative = 0.1
    temperature: Annotated[Float, Field(gt=0)] = 0.05


@dataclass(frozen=True)
class MessageEdge:
    """An atom between two nodes, by the column of its relation; ``sign`` -1: it is negated."""

    source: int
    target: int
    slot: int
    turned: bool
    sign: int


@dataclass
class MessageGraph:
    """The nodes and atoms of one disjunct of a plan.

    ``anchors`` has a column for each node that is a constant; ``free`` are the nodes of the free
    variables, in their order.
    """

    anchors: dict[int, int] = field(default_factory=dict)
    edges: list[MessageEdge] = field(default_factory=list)
    free: tuple[int, ...] = ()
    nodes: int = 0

    @property
    def depth(self) -> int:
        """The longest way from a node to a free variable: so many layers tell it of all nodes."""
        beside: dict[int, set[int]] = {node: set() for node in range(self.nodes)}
        for edge in self.edges:
            beside[edge.source].add(edge.target)
            beside[edge.target].add(edge.source)
        longest = 1
        for free in self.free:
            far, queue = {free: 0}, deque([free])
            while queue:
                node = queue.popleft()
                for other in beside[node] - far.keys():
                    far[other] = far[node] + 1
                    queue.append(other)
            longest = max(longest, *far.values())
        return longest


def message_graphs(plan: QueryPlan) -> tuple[MessageGraph, ...]:
    """The disjuncts of a plan as graphs.

    Raises QueryError for a union below the root.
    """
    parts = [_disjuncts(plan, root) for root in plan.free]
    return tuple(_Reading(plan).graph(roots) for roots in zip(*parts, strict=True))


def _disjuncts(plan: QueryPlan, step: int) -> list[int]:
    if plan.steps[step].op != "or":
        return [step]
    return [part for place in plan.steps[step].inputs for part in _disjuncts(plan, place)]


class _Reading:
    """The reading of steps as nodes and edges; a step that is used twice is one node."""

    def __init__(self, plan: QueryPlan) -> None:
        self._plan, self._found = plan, MessageGraph()
        self._nodes: dict[int, int] = {}

    def graph(self, roots: Sequence[int]) -> MessageGraph:
        self._found.free = tuple(self._node(root) for root in roots)
        return self._found

    def _node(self, place: int) -> int:
        if place in self._nodes:
            return self._nodes[place]
        node = self._nodes[place] = self._found.nodes
        self._found.nodes += 1
        step = self._plan.steps[place]
        if step.op == "entity":
            self._found.anchors[node] = step.slot
        else:
            self._told(node, place, 1)
        return node

    def _told(self, node: int, place: int, sign: int) -> None:
        """Add what a step says of a node."""
        step = self._plan.steps[place]
        if step.op == "project":
            source = self._node(step.inputs[0])
            self._found.edges.append(MessageEdge(source, node, step.slot, step.turned, sign))
        elif step.op == "entity":
            self._found.edges.append(MessageEdge(self._node(place), node, SAME, False, sign))
        elif step.op == "not":
            self._told(node, step.inputs[0], -sign)
        elif step.op == "and":
            for at, part in enumerate(step.inputs):
                self._told(node, part, -sign if at in step.taken else sign)
        else:
            raise QueryError("the query has a union below its root, and the model has none there")


class Lmpnn(QueryModel):
    """Logical message passing over the vectors of ComplEx, (E, 2d) and (K, 2d), real parts first.

    A state is a vector [B, 2d] for each query; scores are cosines with the entities' vectors.
    """

    paper = "Wang et al. 2023"
    form = "DNF+IU"
    negations = "sign of the message"
    cycles = "as they are"
    free_variables = "together"
    cost = "atoms · layers · d · hidden a query, and E · d"
    own_settings = LmpnnSettings
    defaults = MappingProxyType(
        {
            **QueryModel.defaults,
            "training.batch": 1024,
            "training.epochs": 100,
            "training.optimizer": "adamw",
            "training.weight_decay": 1e-4,
            "training.schedule": "steps",
            "training.drops": "50",
            "queries.steps": 0,
            "queries.mix": "all",
            "queries.loss": "softmax",
            "queries.weighted": False,
        }
    )

    def __init__(
        self, settings: LmpnnSettings, graph: Graph, entities: Tensor, relations: Tensor
    ) -> None:
        super().__init__(graph)
        self.settings = settings
        width = entities.shape[1]
        # They are saved with the network: a run needs no other one beside it.
        self.register_buffer("entities", entities.detach().clone())
        self.register_buffer("relations", relations.detach().clone())
        scale = float(entities.std())
        self.existential = nn.Parameter(scale * torch.randn(width))
        self.free = nn.Parameter(scale * torch.randn(width))
        self.update = nn.Sequential(
            nn.Linear(width, settings.hidden), nn.ReLU(), nn.Linear(settings.hidden, width)
        )
        self._graphs: WeakKeyDictionary[QueryPlan, Any] = WeakKeyDictionary()

    entities: Tensor
    relations: Tensor

    @classmethod
    def check(cls, settings: Settings) -> None:
        """Raise CheckpointError where the settings name no run of ComplEx."""
        name = settings.own.predictor
        if not name:
            raise CheckpointError(
                "lmpnn needs a trained ComplEx; train one with model complex, and name its run in"
                " lmpnn.predictor"
            )
        run, _ = read_run(located(name))
        if run.model != "complex":
            raise CheckpointError(
                f"{name}: lmpnn multiplies complex vectors; give a run of complex, not of"
                f" {run.model}"
            )

    @classmethod
    def create(cls, settings: Settings, graph: Graph) -> Lmpnn:
        """The model with new weights over the vectors of the predictor's run.

        Raises CheckpointError where the settings name no run of ComplEx on the graph.
        """
        cls.check(settings)
        predictor = load_run(settings.own.predictor, graph)
        return cls(settings.own, graph, predictor.entities, predictor.relations)

    @classmethod
    def load(cls, folder: Path, graph: Graph) -> Lmpnn:
        """The model of a run, which has the predictor's vectors with it; raises as the others."""
        settings = check_graph(folder, graph)
        # Where the file is damaged, `fill` says so.
        width = weight_shapes(folder / WEIGHTS).get("entities", (0, 2))[1]
        counts = graph.entity_count, 2 * graph.relation_count
        model = cls(settings.own, graph, *(torch.ones(count, width) for count in counts))
        fill(model, folder)
        return model.eval()

    def states(self, plan: QueryPlan, anchors: Tensor, relations: Tensor) -> list[Any]:
        """The states of the free variables after as many layers as the graph is deep."""
        if plan not in self._graphs:
            check_operators(self, plan)
            self._graphs[plan] = message_graphs(plan)
        parts = [self._passed(graph, anchors, relations) for graph in self._graphs[plan]]
        if len(parts) == 1:
            return parts[0]
        return [Disjuncts(states) for states in zip(*parts, strict=True)]

    def _passed(self, graph: MessageGraph, anchors: Tensor, relations: Tensor) -> list[Tensor]:
        """The states of the free nodes of one disjunct."""
        size = len(relations)
        states = [
            self.entities[anchors[:, graph.anchors[node]]]
            if node in graph.anchors
            else (self.free if node in graph.free else self.existential).expand(size, -1)
            for node in range(graph.nodes)
        ]
        vectors = [
            None
            if edge.slot == SAME
            else self.relations[relations[:, edge.slot] ^ int(edge.turned)]
            for edge in graph.edges
        ]
        variables = [node for node in range(graph.nodes) if node not in graph.anchors]
        for _ in range(graph.depth):
            told = {node: self.settings.residual * states[node] for node in variables}
            for edge, vector in zip(graph.edges, vectors, strict=True):
                head, tail = states[edge.source], states[edge.target]
                if edge.target in told:
                    told[edge.target] = told[edge.target] + edge.sign * multiplied(head, vector)
                if edge.source in told:
                    back = multiplied(tail, vector, conjugate=True)
                    told[edge.source] = told[edge.source] + edge.sign * back
            for node in variables:
                states[node] = self.update(told[node])
        return [states[node] for node in graph.free]

    def logits(self, state: Tensor, entities: Tensor | None = None) -> Tensor:
        """The cosines by the temperature."""
        state = functional.normalize(state, dim=-1) / self.settings.temperature
        table = functional.normalize(self.entities, dim=-1)
        if entities is None:
            return state @ table.t()
        return torch.einsum("bd,bmd->bm", state, table[entities])


def multiplied(state: Tensor, vector: Tensor | None, conjugate: bool = False) -> Tensor:
    """The products of complex numbers, real parts first; None stands for ones."""
    if vector is None:
        return state
    a, b = state.chunk(2, -1)
    c, d = vector.chunk(2, -1)
    d = -d if conjugate else d
    return torch.cat([a * c - b * d, a * d + b * c], -1)
