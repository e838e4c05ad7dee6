"""Reasoners of models: operators on batches answer lists of queries, type by type.

What a reasoner holds at a time is bounded: the queries of a type are asked so many at once that the
states of a plan fit the memory, and the scores of a long list are given window by window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeAlias

import numpy as np
import torch
from torch import Tensor

from cqa.answering.template import Grounded
from cqa.evaluation.plan import QueryPlan
from cqa.evaluation.reasoner import Scored
from cqa.models.plan import BatchOperators, State, grouped, logits, run

# Bytes of scores and of states that are held at a time; states count as scores do.
MEMORY = 256 << 20
# More queries than this at a time gain nothing.
MOST = 512

Block: TypeAlias = tuple[tuple[int, ...], Tensor]
"""Places of some queries in their list, and their scores (B, k, E)."""


class BatchReasoner(Generic[State]):
    """The reasoner of operators on batches, over so many entities.

    ``device`` is where the operators' tensors are, ``memory`` how many bytes of states and scores
    may be held at a time. A network is asked in evaluation mode, without gradients.
    """

    def __init__(
        self,
        operators: BatchOperators[State],
        entity_count: int,
        *,
        device: torch.device | str = "cpu",
        memory: int = MEMORY,
    ) -> None:
        self.operators, self.entity_count = operators, entity_count
        self.device, self.memory = device, memory

    def scores(self, query: Grounded) -> Scored:
        """The scores of one query, a batch of one."""
        return next(self.scores_of([query]))

    def scores_of(self, queries: Sequence[Grounded]) -> Iterator[Scored]:
        """The scores of each query, in their order."""
        window = max(MOST, self.memory // (4 * max(1, self.entity_count)))
        for begin in range(0, len(queries), window):
            part = queries[begin : begin + window]
            found: list[Any] = [None] * len(part)
            for places, scores in self.blocks_of(part):
                array = scores.cpu().numpy()
                for row, place in enumerate(places):
                    found[place] = Scored(np.ascontiguousarray(array[row]))
            yield from found

    def blocks_of(self, queries: Sequence[Grounded]) -> Iterator[Block]:
        """The scores of queries of one type together, as they come.

        Each query is in one block. Raises QueryError for a query that the model cannot answer.
        """
        for group in grouped(queries, self.operators.form):
            size = self.rows(group.plan)
            for begin in range(0, len(group.own), size):
                anchors, relations = (
                    torch.from_numpy(one[begin : begin + size]).to(self.device)
                    for one in (group.anchors, group.relations)
                )
                yield group.own[begin : begin + size], self._block(group.plan, anchors, relations)

    def rows(self, plan: QueryPlan) -> int:
        """How many queries of a plan are asked at a time."""
        held = plan.width + len(plan.free)
        return min(MOST, max(1, self.memory // (4 * held * max(1, self.entity_count))))

    def _block(self, plan: QueryPlan, anchors: Tensor, relations: Tensor) -> Tensor:
        network = self.operators if isinstance(self.operators, torch.nn.Module) else None
        learning = network is not None and network.training
        if network is not None and learning:
            network.eval()
        try:
            with torch.inference_mode():
                states = run(self.operators, plan, anchors, relations)
                found = torch.stack([logits(self.operators, state) for state in states], 1)
                # NumPy knows no bfloat16, and ranks in half a precision would tie.
                return found if found.dtype == torch.float64 else found.float()
        finally:
            if network is not None and learning:
                network.train()
