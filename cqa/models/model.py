"""Models that learn from queries: what training and evaluation ask of each of them.

A model is a network with the operators of `cqa.models.plan.BatchOperators`. Other than these it
needs nothing: `QueryModel` walks the plans, and has the loss that most published ones share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from cqa.evaluation.plan import QueryPlan
from cqa.evaluation.reasoner import Scored
from cqa.graphs.graph import Graph
from cqa.models.checkpoint import check_graph, fill
from cqa.models.plan import Union, logits, run
from cqa.models.reasoner import BatchReasoner, Block
from cqa.models.settings import Settings
from cqa.models.stream import QueryBatch, QuerySettings
from cqa.query import Query
from cqa.types.tree import Tree
from kopl_base.training.optimizer import Scores

AnyModel = TypeVar("AnyModel", bound="QueryModel")


class QueryModel(nn.Module):
    """A network that answers queries by operators on states, and learns from queries.

    A model below it has the operators and declares what tables of models show: its ``paper``, the
    form that trees are put in, what it does with negation, unions, cycles and several free
    variables, whether it is exact, and what a step costs. ``dense`` says whether its loss needs all
    answers of a query, ``needs_training`` whether new weights mean nothing; ``own_settings``,
    ``query_settings`` and ``defaults`` are what `cqa.models.settings` asks for. A model is made of
    its own settings and a graph.
    """

    paper: ClassVar[str] = ""
    operators: ClassVar[str] = "e p i u n"
    negation: bool = True
    union: Union = "max"
    form: str | None = None
    negations: ClassVar[str] = "complement"
    cycles: ClassVar[str] = "unrolled"
    free_variables: ClassVar[str] = "each alone"
    exact: ClassVar[bool] = False
    cost: ClassVar[str] = ""
    dense: ClassVar[bool] = False
    needs_training: ClassVar[bool] = True

    own_settings: ClassVar[type[Any] | None] = None
    query_settings: ClassVar[type[Any]] = QuerySettings
    # BetaE's training, which most models share: 450,000 times three steps of 512 queries each.
    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {
            "training.batch": 512,
            "training.epochs": 45,
            "training.optimizer": "adam",
            "training.learning_rate": 1e-4,
            "training.weight_decay": 0.0,
            "training.gradient_norm": 0.0,
            "training.warm_up": 0.0,
            "training.schedule": "fifths",
            "queries.steps": 30_000,
        }
    )

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.entity_count, self.relation_count = graph.entity_count, 2 * graph.relation_count

    @classmethod
    def create(cls: type[AnyModel], settings: Settings, graph: Graph) -> AnyModel:
        """The model with new weights; they depend on torch's generator."""
        return cls(settings.own, graph)  # type: ignore[call-arg]

    @classmethod
    def check(cls, settings: Settings) -> None:
        """Raise KoplError for settings that no model can be made of, before anything is made."""

    @classmethod
    def load(cls: type[AnyModel], folder: Path, graph: Graph) -> AnyModel:
        """The model of a run with its best weights.

        Raises CheckpointError for what is no run, is damaged, or was trained on another graph.
        """
        model = cls.create(check_graph(folder, graph), graph)
        fill(model, folder)
        return model.eval()

    @property
    def network(self) -> nn.Module:
        """What has the weights: the model itself."""
        return self

    # --- operators, given by the models -------------------------------------------------------

    def entity(self, entities: Tensor) -> Any:
        """The sets of one given entity each."""
        raise NotImplementedError

    def project(self, state: Any, relations: Tensor) -> Any:
        """What directed relations reach from sets."""
        raise NotImplementedError

    def and_(self, states: Sequence[Any]) -> Any:
        """The intersections of two or more sets each."""
        raise NotImplementedError

    def or_(self, states: Sequence[Any]) -> Any:
        """The unions of two or more sets each."""
        raise NotImplementedError

    def not_(self, state: Any) -> Any:
        """The complements of sets."""
        raise NotImplementedError

    def logits(self, state: Any, entities: Tensor | None = None) -> Tensor:
        """How well entities fit the sets: (B, m), or (B, E) for all."""
        raise NotImplementedError

    # --- answering ----------------------------------------------------------------------------

    def states(self, plan: QueryPlan, anchors: Tensor, relations: Tensor) -> list[Any]:
        """The states of the free variables of B queries of one type."""
        return run(self, plan, anchors, relations)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def blocks_of(self, queries: Sequence[Query | Tree]) -> Iterator[Block]:
        """The scores (B, k, E) of queries by their types, with their places in the list.

        Raises QueryError for a query that the model cannot answer.
        """
        return self._reasoner().blocks_of(queries)

    def scores_of(self, queries: Sequence[Query | Tree]) -> Iterator[Scored]:
        """The scores of each query, as `cqa.evaluation.reasoner.Reasoner` has them."""
        return self._reasoner().scores_of(queries)

    def scores(self, query: Query | Tree) -> Scored:
        """The scores of one query."""
        return self._reasoner().scores(query)

    def _reasoner(self) -> BatchReasoner[Any]:
        return BatchReasoner(self, self.entity_count, device=self.device)

    # --- learning -----------------------------------------------------------------------------

    def forward(self, batch: QueryBatch) -> Scores:
        """The weighted losses of a batch, summed, and whose answer is before all others drawn."""
        right = torch.zeros(len(batch.kinds), dtype=torch.bool, device=batch.kinds.device)
        # All parameters take part in each step, as if their gradients were 0: the optimizer moves
        # them on all the same, and processes need one from each.
        total = torch.stack([one.reshape(-1)[0] * 0 for one in self.parameters()]).sum()
        for kind in torch.unique(batch.kinds).tolist():
            at = (batch.kinds == kind).nonzero()[:, 0]
            part, plan = batch.rows(at), batch.plans[kind]
            columns = part.anchors[:, : plan.anchors], part.relations[:, : plan.relations]
            [state] = self.states(plan, *columns)
            losses, found = self.losses(state, part)
            total = total + (losses * part.weights).sum()
            right[at] = found
        return Scores(total, right)

    def losses(self, state: Any, batch: QueryBatch) -> tuple[Tensor, Tensor]:
        """The loss of each query of a type, (B,), and whether its answer is scored best, (B,).

        As published -1/2 (log sg(logit of the answer) + mean of log sg(-logit) of the others); with
        softmax the cross-entropy of the answer among them.
        """
        answer, others, taken = self._drawn(state, batch)
        right = (answer[:, None] > others).all(1)
        if batch.loss == "softmax":
            return others.logsumexp(1).logaddexp(answer) - answer, right
        log = nn.functional.logsigmoid
        # What is taken has the logit -inf, whose logarithm counts nothing in the sum.
        count = others.shape[1] - taken.sum(1) if taken.numel() else others.shape[1]
        return -(log(answer) + log(-others).sum(1) / count) / 2, right

    def _drawn(self, state: Any, batch: QueryBatch) -> tuple[Tensor, Tensor, Tensor]:
        """The logits of the answers (B,) and of the entities drawn (B, m), and which are taken."""
        first = batch.positives[:, None]
        if not batch.taken.numel():
            found = logits(self, state, torch.cat([first, batch.negatives], 1)).float()
            return found[:, 0], found[:, 1:], batch.taken
        answer = logits(self, state, first).float()[:, 0]
        others = logits(self, state, batch.pool.entities[None]).float()
        return answer, others.masked_fill(batch.taken, -torch.inf), batch.taken


class FrequentAnswers:
    """The least that a model must beat: answers that the relations often lead to, wherever from.

    A state has for each entity the logarithm of the share of the last relation's links in train
    that lead to it, of an intersection the sum of these; complements count nothing. These are
    operators as a model has them, without anything to learn.
    """

    negation = True
    union: Union = "max"
    form: str | None = "DNF+IU"

    def __init__(self, graph: Graph) -> None:
        links = graph.view(graph.splits[0])
        self.entity_count = graph.entity_count
        counts = torch.zeros(links.relation_count, self.entity_count)
        for relation in range(links.relation_count):
            tails = torch.from_numpy(links.pairs(relation)[1]).long()
            counts[relation] = tails.bincount(minlength=self.entity_count)
        # An entity that no link leads to stands behind all others, and counts as half a link.
        self._shares = ((counts + 0.5) / (counts.sum(1, keepdim=True) + 1)).log()

    def reasoner(self) -> BatchReasoner[Tensor]:
        """What gives the scores of queries."""
        return BatchReasoner(self, self.entity_count)

    def entity(self, entities: Tensor) -> Tensor:
        """Nothing is known of an entity alone."""
        return torch.zeros(len(entities), self.entity_count)

    def project(self, state: Tensor, relations: Tensor) -> Tensor:
        """What the relations lead to, whatever the state."""
        return self._shares[relations]

    def and_(self, states: Sequence[Tensor]) -> Tensor:
        """The product of the shares."""
        return torch.stack(list(states)).sum(0)

    def or_(self, states: Sequence[Tensor]) -> Tensor:
        """Not asked for: unions are at the root."""
        raise NotImplementedError

    def not_(self, state: Tensor) -> Tensor:
        """Nothing is known of what is not there."""
        return torch.zeros_like(state)

    def logits(self, state: Tensor, entities: Tensor | None = None) -> Tensor:
        """The logarithms themselves."""
        return state if entities is None else state.gather(1, entities)
