"""How well a link predictor ranks the tails of links that it has not seen.

Both directions of each link are asked. A tail's rank is among the entities that are not known to
be tails in any split; of those that score alike, half count as better.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cqa.graphs.graph import Graph
from cqa.graphs.links import Links, places
from cqa.models.links.predictor import FrequentTails, LinkPredictor
from kopl_base.progress import Progress
from kopl_base.training.optimizer import TrainingError

# Numbers of a block of scores.
BLOCK = 1 << 23
HITS = (1, 3, 10)


@dataclass(frozen=True)
class LinkReport:
    """The ranks of the tails of a split: the number of links, the MRR and HITS, from 0 to 1.

    ``links`` counts both directions. Without any, all are 0.
    """

    links: int
    mrr: float
    hits: dict[int, float]

    @classmethod
    def of(cls, ranks: Tensor) -> LinkReport:
        """That of ranks, from 1 on."""
        count = max(1, len(ranks))
        hits = {most: float((ranks <= most).sum()) / count for most in HITS}
        return cls(len(ranks), float((1 / ranks.double()).sum()) / count, hits)

    def __str__(self) -> str:
        hits = ", ".join(f"HITS@{most} {100 * share:.1f}" for most, share in self.hits.items())
        return f"MRR {100 * self.mrr:.1f}, {hits}"


def evaluate_links(
    predictor: LinkPredictor, graph: Graph, split: str = "valid", *, shown: bool | None = False
) -> LinkReport:
    """The ranks of a split's links in both directions, filtered by all splits.

    ``shown``: whether to show how far it is (None: where there is a terminal). Raises QueryError
    for a split that the graph does not have, TrainingError where scores are no numbers.
    """
    links = graph.view(split)
    with Progress(f"ranking {split}", len(links.tails), shown=shown) as bar:
        found = []
        for ranks in rank_blocks(predictor, links, graph.links):
            found.append(ranks)
            bar.advance(len(ranks))
    return LinkReport.of(torch.cat(found) if found else torch.empty(0))


def baseline(graph: Graph, split: str = "valid") -> LinkReport:
    """The ranks by the relation's most frequent tails in train, whatever the head."""
    return evaluate_links(FrequentTails(graph.view("train")), graph, split)


def rank_blocks(predictor: LinkPredictor, links: Links, known: Links) -> Iterator[Tensor]:
    """The ranks of all links' tails, in their order, among what ``known`` has not as tails."""
    size = max(1, BLOCK // max(1, predictor.entity_count))
    for relation in range(links.relation_count):
        heads = links.heads_of(relation)
        for begin in range(0, len(heads), size):
            part = heads[begin : begin + size]
            yield _ranks(predictor, relation, part, links, known)


def _ranks(
    predictor: LinkPredictor, relation: int, heads: np.ndarray, links: Links, known: Links
) -> Tensor:
    scores = predictor.scores(relation, torch.from_numpy(heads.astype(np.int64))).float()
    device = scores.device
    if not bool(torch.isfinite(scores).all()):
        raise TrainingError(f"the scores of relation {relation} are no numbers")

    def of(wanted: Links) -> tuple[Tensor, Tensor]:
        begins, counts = wanted.spans(relation, heads)
        tails = wanted.tails[places(begins, counts)].astype(np.int64)
        rows = np.repeat(np.arange(len(heads)), counts)
        return torch.from_numpy(rows).to(device), torch.from_numpy(tails).to(device)

    rows, tails = of(links)
    own = scores[rows, tails]
    scores = scores.index_put(of(known), scores.new_tensor(-torch.inf))
    ranks = torch.empty(len(own), device=device)
    step = max(1, len(heads))  # a row may have thousands of tails
    for begin in range(0, len(own), step):
        at = slice(begin, begin + step)
        others = scores[rows[at]]
        better = (others > own[at, None]).sum(1)
        ranks[at] = 1 + better + (others == own[at, None]).sum(1) / 2
    return ranks.cpu()
