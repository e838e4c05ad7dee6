"""A graph of fifty entities that every model can learn, and how it learns it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cqa.graphs.graph import Graph, from_triples
from cqa.models.model import QueryModel
from cqa.models.query_sets import sampled
from cqa.models.stream import StreamOptions, TrainingStream
from cqa.models.training import QueryTrainer
from cqa.sampling.sample import Sample
from cqa.types.tree import Tree
from kopl_base.training.distributed import Distributed

WIDTH, HEIGHT = 10, 5
# Each relation leads from a place to those so many steps right and up.
STEPS = (((1, 0),), ((0, 1),), ((2, 1), (3, 1)))


def grid() -> Graph:
    """Places of a grid, with three relations; one leads to two places."""
    triples = [
        (HEIGHT * x + y, relation, HEIGHT * (x + right) + y + up)
        for x in range(WIDTH)
        for y in range(HEIGHT)
        for relation, steps in enumerate(STEPS)
        for right, up in steps
        if x + right < WIDTH and y + up < HEIGHT
    ]
    train = np.array(triples)
    return from_triples(
        [train, train[:0], train[:0]], entity_count=WIDTH * HEIGHT, relation_count=len(STEPS)
    )


def single_links(graph: Graph) -> list[Sample]:
    """Each pair of an entity and a relation that it has, as a query whose answers are all hard."""
    links = graph.view("train")
    none = np.empty((0, 1), np.int32)
    found = []
    for relation in range(links.relation_count):
        for head in links.heads_of(relation).tolist():
            query = Tree("p", (Tree("e", entity=head),), relation)
            hard = links.row(relation, head)[:, None]
            found.append(Sample("1p", "(p,(e))", query, none, hard, none))
    return found


@dataclass(frozen=True)
class Options:
    """Those of a short training."""

    batch: int = 64
    part: int = 0
    epochs: int = 4
    minutes: float = 0.0
    checkpoint: float = 0.0
    optimizer: str = "adam"
    learning_rate: float = 0.02
    weight_decay: float = 0.0
    decay: str = "all"
    gradient_norm: float = 0.0
    warm_up: float = 0.0
    schedule: str = "fifths"
    falls: tuple[int, ...] = ()
    floor: float = 0.1
    compile: bool = False


def learn(
    model: QueryModel,
    graph: Graph,
    folder: Path,
    types: Mapping[str, int],
    steps: int,
    negatives: int = 32,
    **options: Any,
) -> None:
    """Train a model for so many steps on queries of some types."""
    torch.set_num_threads(1)
    group, chosen = Distributed.of("cpu"), Options(**options)
    group.seed(1)
    drawing = StreamOptions(
        batch=chosen.batch, steps=steps // chosen.epochs, negatives=negatives, mix="all",
        dense=model.dense,
    )  # fmt: skip
    stream = TrainingStream(sampled(graph, types, seed=1), graph.entity_count, drawing, 1)
    assert QueryTrainer(folder, model, chosen, group, stream, seed=1).run()
