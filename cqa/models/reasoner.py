"""Reasoners of models: operators on batches answer lists of queries, type by type.

What a reasoner holds at a time is bounded: the queries of a type are asked so many at once that the
states of a plan fit the memory, and the scores of a long list are given window by window. Blocks of
scores are ranked where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Generic, TypeAlias

import numpy as np
import torch
from torch import Tensor

from cqa.answering.template import Grounded
from cqa.evaluation.metrics import Ragged, Tally
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
                # A model may read the plan in a way of its own.
                walk = getattr(self.operators, "states", partial(run, self.operators))
                states = walk(plan, anchors, relations)
                found = torch.stack([logits(self.operators, state) for state in states], 1)
                # NumPy knows no bfloat16, and ranks in half a precision would tie.
                return found if found.dtype == torch.float64 else found.float()
        finally:
            if network is not None and learning:
                network.train()


# --- ranks on the device that scores are on -----------------------------------------------------


def tally_block(tally: Tally, own: Sequence[int], scores: Tensor) -> None:
    """Add the scores (B, E) of the queries at these places of a tally.

    What comes out is what `Tally.add` gives row by row. It is for devices other than a CPU, where a
    row that NumPy sorts stays in its cache and takes a fraction of torch's time.
    """
    hard, kept, lost = (
        _pairs(part, own, scores.device) for part in (tally.hard, tally.kept, tally.lost)
    )
    field = scores.clone()
    for rows, entities, _ in (hard, kept):
        field[rows, entities] = -torch.inf
    rows, entities, places = kept
    tally.kept_scores[places] = _array(scores[rows, entities])
    if len(lost[0]):
        without = field.clone()
        without[lost[0], lost[1]] = -torch.inf
        best = without.amax(1)
    else:
        best = field.amax(1)
    tally.best[list(own)] = _array(best)
    field = field.sort(1).values
    rows, entities, places = hard
    values = scores[rows, entities]
    tally.hard_scores[places] = own_scores = _array(values)
    if not len(rows):
        return
    # One column for each hard answer of a row, as searching goes row by row.
    column = torch.arange(len(rows), device=rows.device)
    sizes = torch.bincount(rows, minlength=len(own))
    column -= (torch.cumsum(sizes, 0) - sizes)[rows]
    wanted = torch.zeros(len(own), int(sizes.max()), dtype=scores.dtype, device=scores.device)
    wanted[rows, column] = values
    below, not_above = (
        _array(torch.searchsorted(field, wanted, right=right)[rows, column]).astype(np.int64)
        for right in (False, True)
    )
    tally.above[places] = field.shape[1] - not_above
    left_out = (tally.hard.sizes + tally.kept.sizes)[tally.hard.owner[places]]
    left_out = np.where(np.isneginf(own_scores), left_out, 0)
    tally.alike[places] = not_above - below - left_out


def _pairs(
    part: Ragged, own: Sequence[int], device: torch.device
) -> tuple[Tensor, Tensor, np.ndarray]:
    """Rows of a block with their entities, as the queries at some places have them.

    Also where these stand in the arrays of all queries.
    """
    places = np.concatenate(
        [np.arange(0), *(np.arange(part.part(at).start, part.part(at).stop) for at in own)]
    )
    rows = np.repeat(np.arange(len(own)), part.sizes[list(own)])
    return (
        torch.from_numpy(rows).to(device),
        torch.from_numpy(part.flat[places]).long().to(device),
        places,
    )


def _array(given: Tensor) -> np.ndarray:
    return (given.float() if given.element_size() < 4 else given).cpu().numpy()
