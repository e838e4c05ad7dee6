"""What the tests of models over graphs share: a graph to memorise, training, ranks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from cqa.graphs.graph import Graph, from_triples
from cqa.models.model import QueryModel
from cqa.models.query_sets import QuerySet, sampled
from cqa.models.stream import StreamOptions, TrainingStream
from cqa.models.training import QueryTrainer
from cqa.types.tree import Tree
from kopl_base.settings import LoopSettings
from kopl_base.training.distributed import Distributed

ENTITIES, RELATIONS = 50, 4


def random_graph(entities: int = ENTITIES, links: int = 150, seed: int = 1) -> Graph:
    """A graph with all links in train, none at random in another split."""
    random = np.random.default_rng(seed)
    triples = np.stack(
        [random.integers(size, size=links) for size in (entities, RELATIONS, entities)], 1
    )
    triples = np.unique(triples, axis=0).astype(np.int32)
    nothing = np.zeros((0, 3), np.int32)
    parts = [triples, nothing, nothing]
    return from_triples(parts, entity_count=entities, relation_count=RELATIONS)


def queries_of(graph: Graph, counts: Mapping[str, int]) -> QuerySet:
    """Queries of some types over the training links."""
    return sampled(graph, counts, seed=1)


def stream_of(model: QueryModel, queries: QuerySet, batch: int) -> TrainingStream:
    """The stream that a model learns from."""
    options = StreamOptions(batch=batch, mix="all", negatives=32, dense=model.dense)
    return TrainingStream(queries, model.entity_count, options, seed=1)


def trainer(
    folder: Path, model: QueryModel, queries: QuerySet, epochs: int, rate: float, batch: int = 32
) -> QueryTrainer:
    """A training of so many epochs."""
    options = LoopSettings(
        batch=batch,
        epochs=epochs,
        learning_rate=rate,
        weight_decay=0.0,
        warm_up=0.0,
        schedule="constant",
    )
    stream = stream_of(model, queries, batch)
    alone = Distributed(torch.device("cpu"))
    folder.mkdir(exist_ok=True)
    return QueryTrainer(folder, model, options, alone, stream, seed=1)


def train_mrr(model: QueryModel, queries: QuerySet) -> dict[str, float]:
    """For each type the mean reciprocal rank of the answers among all that are none."""
    found = {}
    for own in queries.types:
        ranks = []
        anchors, relations = (
            torch.from_numpy(np.array(x)).long() for x in (own.anchors, own.relations)
        )
        model.eval()
        with torch.no_grad():
            [states] = model.states(own.plan, anchors, relations)
            scores = model.logits(states)
        for row in range(len(own)):
            answers = torch.from_numpy(np.array(own.answers_of(row))).long()
            others = scores[row].index_fill(0, answers, -torch.inf)
            better = (others[None] >= scores[row, answers][:, None]).sum(1)
            ranks.append(float((1 / (1 + better)).mean()))
        found[own.name] = float(np.mean(ranks))
    return found


def tree(name: str, anchors: list[int], relations: list[int]) -> Tree:
    """A query of one of BetaE's types; anchors and relations in the order of the formula."""
    from cqa.types.betae import named

    def filled(kind: Tree) -> Tree:
        if kind.op == "e":
            return Tree("e", entity=anchors.pop(0))
        relation = relations.pop(0) if kind.op == "p" else None
        return Tree(kind.op, tuple(filled(one) for one in kind.operands), relation)

    return filled(named(name))
