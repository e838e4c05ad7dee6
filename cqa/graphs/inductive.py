"""Inductive splits: queries are asked on a graph with entities that training never saw.

The entities of a graph are divided into those of train and two sets of new ones, for valid and for
test. The *inference graph* of test has the entities of train and the new ones of test; a share of
its links to new entities is missing (Galkin, Zhu, Ren and Tang 2022, whose ratio of 175 % EFOk-CQA
takes over: the inference graph has 1.75 times the entities of train).
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

from cqa.graphs.graph import Graph, from_triples
from cqa.sampling.options import SamplingError
from kb.arrays import Ids, Mask, mask_of

RATIO = 1.75
# Of the links to new entities what is to be found.
MISSING = 0.15


@dataclass(frozen=True)
class Inductive:
    """An inductive split; all three graphs number entities and relations as the first graph did.

    ``train`` has the split train alone. ``valid`` and ``test`` have the splits train (the same
    links), inference (links to new entities that are observed) and valid or test (those that are
    missing), so that `Graph.observed` and `Graph.full` are the inference graph without and with
    what is missing. ``entities`` are the entities of train, ``new`` those of valid and of test.
    """

    train: Graph
    valid: Graph
    test: Graph
    entities: Ids
    new: dict[str, Ids]

    def of(self, split: str) -> Graph:
        """The graph that queries of a split are asked on; raises SamplingError for no split."""
        if split not in ("train", "valid", "test"):
            raise SamplingError(f"there is no split {split!r}; it has train, valid, test")
        found: Graph = getattr(self, split)
        return found


def inductive(
    graph: Graph, ratio: float = RATIO, *, missing: float = MISSING, seed: int = 0
) -> Inductive:
    """An inductive split of a graph's entities, at random by the seed.

    ``ratio``: the entities of an inference graph for each entity of train. Only links with both
    ends in an inference graph are left; links whose relation train lacks are left out. Every
    entity keeps an observed link: what would lose its last one is not missing. Raises SamplingError
    for a ratio or share out of range, and for a graph too small to be split so.
    """
    if not 1 < ratio < float("inf"):
        raise SamplingError(f"the ratio of entities is a number above 1 (175 % is 1.75): {ratio}")
    if not 0 < missing < 1:
        raise SamplingError(f"the share of missing links lies between 0 and 1, not {missing}")
    random = Random(seed)
    triples = graph.triples()
    triples[:, 1] >>= 1
    present = np.unique(triples[:, [0, 2]])
    order = present.tolist()
    random.shuffle(order)
    count = round(len(order) / (1 + 2 * (ratio - 1)))
    added = (len(order) - count) // 2
    bound = graph.entity_count
    trained = mask_of(np.array(order[:count], np.int32), bound)
    both = trained[triples[:, 0]] & trained[triples[:, 2]]
    train = triples[both]
    known = np.unique(train[:, 1])
    if not len(train) or not added:
        raise SamplingError(
            f"the graph is too small: {len(order)} entities leave {len(train)} links in train"
        )
    # Entities that lost all links are of no use, as they would be unseen by accident.
    trained = mask_of(train[:, [0, 2]].ravel(), bound)
    graphs: dict[str, Graph] = {}
    new: dict[str, Ids] = {}
    for number, split in enumerate(("valid", "test")):
        begin = count + number * added
        own = mask_of(np.array(order[begin : begin + added], np.int32), bound)
        parts = _inference(triples, trained, own, known, missing, random)
        if not len(parts[1]):
            raise SamplingError(f"the graph is too small: no link of {split} could be missing")
        new[split] = np.unique(parts[0][:, [0, 2]][own[parts[0][:, [0, 2]]]]).astype(np.int32)
        graphs[split] = _graph(graph, [train, *parts], ("train", "inference", split))
    entities = np.flatnonzero(trained).astype(np.int32)
    alone = _graph(graph, [train], ("train",))
    return Inductive(alone, graphs["valid"], graphs["test"], entities, new)


def _inference(
    triples: Ids, trained: Mask, own: Mask, known: Ids, missing: float, random: Random
) -> tuple[Ids, Ids]:
    """The links to new entities: those observed, and those that are missing."""
    inside = trained | own
    ends = triples[:, [0, 2]]
    chosen = inside[ends].all(axis=1) & own[ends].any(axis=1) & np.isin(triples[:, 1], known)
    links = triples[chosen]
    order = list(range(len(links)))
    random.shuffle(order)
    uses = np.bincount(links[:, [0, 2]].ravel(), minlength=len(own))
    hidden = np.zeros(len(links), np.bool_)
    wanted = round(missing * len(links))
    for at in order:
        if not wanted:
            break
        ends_of = [e for e in {int(links[at, 0]), int(links[at, 2])} if own[e]]
        if all(uses[end] > 1 for end in ends_of) and links[at, 0] != links[at, 2]:
            hidden[at] = True
            wanted -= 1
            for end in ends_of:
                uses[end] -= 1
    return links[~hidden], links[hidden]


def _graph(graph: Graph, parts: list[Ids], splits: tuple[str, ...]) -> Graph:
    return from_triples(
        parts, splits, entity_count=graph.entity_count, relation_count=graph.relation_count,
        entities=graph.entities, relations=graph.relations,
    )  # fmt: skip
