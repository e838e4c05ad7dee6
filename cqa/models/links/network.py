"""What the models of links share: vectors of entities and relations, and the losses of rows.

A row is a head with a directed relation and all its tails that are known. Relations 2r and 2r + 1
have vectors of their own (reciprocals), so that only tails are ever predicted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass as checked
from torch import Tensor, nn

from cqa.graphs.graph import Graph
from cqa.models.checkpoint import check_graph, fill
from cqa.models.links.predictor import check_relation
from cqa.models.settings import Settings
from kopl_base.settings import CheckedSettings, Count, NotNegative
from kopl_base.training.optimizer import Batch, Scores

Own = TypeVar("Own", bound="LinkModel")
LossName = Literal["full", "sampled"]

# Where a square root is taken, so that its gradient at 0 is a number.
TINY = 1e-20


@checked(frozen=True)
class LinkSettings(CheckedSettings):
    """Sizes and losses of a link predictor.

    ``rank`` is the number of dimensions, complex ones where the model is complex. ``loss``: the
    softmax over all entities (full), or over ``candidates`` that are drawn for each batch, with the
    tails of each row (sampled). ``regularizer`` is the weight of the cubes of all moduli of head,
    relation and tail (N3), ``relation_weight`` that of predicting the relation of a head and a tail
    (0 of either: none). Vectors begin with normal numbers times ``init``.
    """

    rank: Count = 128
    loss: LossName = "full"
    candidates: Count = 1000
    regularizer: NotNegative = 0.05
    relation_weight: NotNegative = 0.0
    init: Annotated[NotNegative, Field(le=10)] = 1e-3


@dataclass(frozen=True)
class RowBatch(Batch):
    """Rows of links, B of them with n tails in all; ``count`` is n of the whole batch.

    Tails stand row by row. ``candidates`` are entities to be told from them (empty: all), the same
    for all rows; ``pairs`` places among the tails whose relation is predicted.
    """

    heads: Tensor  # B
    relations: Tensor  # B
    counts: Tensor  # B: tails of each row
    tails: Tensor  # n
    candidates: Tensor  # m
    pairs: Tensor  # p
    drawn: int  # p of the whole batch

    def rows(self, index: Tensor) -> RowBatch:
        """Some of the rows with their tails; the candidates stay."""
        ends = self.counts.cumsum(0)
        counts = self.counts[index]
        places = ragged((ends - self.counts)[index], counts)
        new = torch.full((len(self.tails),), -1, dtype=torch.long)
        new[places] = torch.arange(len(places))
        pairs = new[self.pairs]
        return RowBatch(
            self.count, self.heads[index], self.relations[index], counts, self.tails[places],
            self.candidates, pairs[pairs >= 0], self.drawn,
        )  # fmt: skip

    def drawn_tails(self, entities: int) -> tuple[Tensor, Tensor]:
        """The rows and candidates where the candidate is a tail of the row; numbers are below."""
        place = torch.full((entities,), -1, device=self.tails.device)
        place[self.candidates] = torch.arange(len(self.candidates), device=place.device)
        at = place[self.tails]
        return self.row_of[at >= 0], at[at >= 0]

    @property
    def row_of(self) -> Tensor:
        """The row of each tail."""
        rows = torch.arange(len(self.heads), device=self.heads.device)
        return torch.repeat_interleave(rows, self.counts)


def ragged(begins: Tensor, counts: Tensor) -> Tensor:
    """All numbers of the ranges that begin so and are so long, one range after the other."""
    before = counts.cumsum(0) - counts
    shifts = torch.repeat_interleave(begins - before, counts)
    return shifts + torch.arange(len(shifts), device=shifts.device)


class LinkModel(nn.Module):
    """A link predictor (`cqa.models.links.predictor.LinkPredictor`) that learns from rows.

    A model below it says how a head and a relation make a query, and how queries score tails.
    """

    own_settings: ClassVar[type[LinkSettings]] = LinkSettings
    defaults: ClassVar[dict[str, Any]] = {}
    paper: ClassVar[str] = ""
    # Whether the gradients of entities hold only those of a batch, where the loss is sampled.
    sparse = False

    def __init__(self, settings: Settings, graph: Graph) -> None:
        super().__init__()
        self.settings, self.own = settings, settings.own
        self.entity_count, self.relation_count = graph.entity_count, 2 * graph.relation_count
        entities, relations = self.widths(self.own.rank)
        self.entities = nn.Parameter(torch.randn(self.entity_count, entities) * self.own.init)
        self.relations = nn.Parameter(torch.randn(self.relation_count, relations) * self.own.init)

    @classmethod
    def create(cls: type[Own], settings: Settings, graph: Graph) -> Own:
        """The model with new weights, drawn from torch's own generator."""
        return cls(settings, graph)

    @classmethod
    def load(cls: type[Own], folder: Path, graph: Graph, *, other_links: bool = False) -> Own:
        """The model of a run with its best weights, to predict with.

        ``other_links``: a graph with the same entities and relations suffices. Raises
        CheckpointError for what is no run, is damaged, or was trained on another graph.
        """
        settings = check_graph(folder, graph, other_links)
        model = cls(settings, graph)
        fill(model, folder)
        return model.eval().requires_grad_(False)

    # --- what the models are about --------------------------------------------------------------

    def widths(self, rank: int) -> tuple[int, int]:
        """How many numbers the vector of an entity has, and that of a relation."""
        raise NotImplementedError

    def queries(self, heads: Tensor, relations: Tensor) -> Tensor:
        """What is compared with tails: (n, width) for the vectors of n heads and relations."""
        raise NotImplementedError

    def against(self, queries: Tensor, tails: Tensor) -> Tensor:
        """The logits (n, m) of n queries for each of m tails' vectors."""
        raise NotImplementedError

    def beside(self, queries: Tensor, tails: Tensor) -> Tensor:
        """The logits (n,) of n queries, each for a tail's vector of its own."""
        raise NotImplementedError

    def cubes(self, vectors: Tensor) -> Tensor:
        """The cubes of the moduli of n vectors, summed for each (n,)."""
        return vectors.abs().pow(3).sum(1)

    def relation_losses(self, heads: Tensor, tails: Tensor, relations: Tensor) -> Tensor:
        """The summed loss of telling the relations of heads and tails, where the model can."""
        raise NotImplementedError

    # --- predicting -----------------------------------------------------------------------------

    @torch.no_grad()
    def scores(self, relation: int, heads: Tensor) -> Tensor:
        """The logits (B, E) of all tails of B heads by a directed relation.

        Raises QueryError for a relation that there is not.
        """
        check_relation(relation, self)
        heads = heads.to(self.entities.device)
        own = self.relations[relation].expand(len(heads), -1)
        return self.against(self.queries(self.entities[heads], own), self.entities)

    # --- learning -------------------------------------------------------------------------------

    def forward(self, batch: RowBatch) -> Scores:
        """The losses of all tails of a batch, summed, and which rows have a known tail first.

        Among the candidates, where the loss is sampled.
        """
        sampled = batch.candidates.numel() > 0
        entities, batch = self._used(batch) if sampled else (self.entities, batch)
        heads, relations = entities[batch.heads], self.relations[batch.relations]
        queries = self.queries(heads, relations)
        if sampled:
            loss, right = self.sampled_loss(queries, entities, batch)
        else:
            loss, right = self.full_loss(queries, batch)
        own = self.own
        if own.regularizer:
            tails, counts = torch.unique(batch.tails, return_counts=True)
            weights = batch.counts.to(loss.dtype)
            cubes = (self.cubes(heads) + self.cubes(relations)) @ weights
            cubes = cubes + self.cubes(entities[tails]) @ counts.to(loss.dtype)
            loss = loss + own.regularizer * cubes
        if own.relation_weight and batch.drawn:
            rows = batch.row_of[batch.pairs]
            told = self.relation_losses(
                heads[rows], entities[batch.tails[batch.pairs]], batch.relations[rows]
            )
            loss = loss + own.relation_weight * batch.count / batch.drawn * told
        return Scores(loss, right)

    def full_loss(self, queries: Tensor, batch: RowBatch) -> tuple[Tensor, Tensor]:
        """The cross-entropies of all tails over all entities, summed, and the rows that are right.

        One softmax a row, however many tails it has.
        """
        logits = self.against(queries, self.entities)
        own = logits[batch.row_of, batch.tails]
        loss = torch.logsumexp(logits, 1) @ batch.counts.to(logits.dtype) - own.sum()
        return loss, _largest(own.detach(), batch) >= logits.detach().amax(1)

    def sampled_loss(
        self, queries: Tensor, entities: Tensor, batch: RowBatch
    ) -> tuple[Tensor, Tensor]:
        """The same over candidates that stand for all entities, and the row's own tails.

        ``entities`` are the vectors that the batch numbers.
        """
        row_of = batch.row_of
        logits = self.against(queries, entities[batch.candidates])
        logits = logits + self.stands_for(batch)
        logits = logits.index_put(batch.drawn_tails(len(entities)), logits.new_tensor(-torch.inf))
        own = self.beside(queries[row_of], entities[batch.tails])
        best = torch.maximum(logits.amax(1), _largest(own, batch)).detach()
        total = torch.exp(logits - best[:, None]).sum(1)
        total = total.index_add(0, row_of, torch.exp(own - best[row_of]))
        loss = (best + total.log()) @ batch.counts.to(logits.dtype) - own.sum()
        return loss, _largest(own.detach(), batch) >= best

    def stands_for(self, batch: RowBatch) -> float:
        """What is added to the logit of a candidate: the log of how many entities it stands for."""
        return math.log(self.entity_count / len(batch.candidates))

    def _used(self, batch: RowBatch) -> tuple[Tensor, RowBatch]:
        """The vectors of the entities of a batch, and the batch with their places for numbers."""
        parts = batch.heads, batch.tails, batch.candidates
        ids, places = torch.unique(torch.cat(parts), return_inverse=True)
        heads, tails, candidates = places.split([len(part) for part in parts])
        own = replace(batch, heads=heads, tails=tails, candidates=candidates)
        return nn.functional.embedding(ids, self.entities, sparse=self.sparse), own


def _largest(numbers: Tensor, batch: RowBatch) -> Tensor:
    """The largest number of each row's tails."""
    found = numbers.new_full((len(batch.heads),), -torch.inf)
    return found.scatter_reduce_(0, batch.row_of, numbers.detach(), "amax")
