"""Training models of queries: what a step learns from, what chooses the best epoch, going on.

The loop itself is `kopl_base.training.loop`, which the parsers train by, too.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cqa.models.model import QueryModel
from cqa.models.stream import QueryBatch, TrainingStream
from cqa.sampling.sample import Sample
from kopl_base.training.checkpoint import CheckpointError
from kopl_base.training.clock import Clock
from kopl_base.training.distributed import Distributed
from kopl_base.training.history import History
from kopl_base.training.loop import TrainingLoop
from kopl_base.training.optimizer import Item, Options, TrainingError

# Queries that are ranked at a time.
CHUNK = 256


class QueryLearner:
    """A model with the stream that it learns from, as the optimizer takes both."""

    def __init__(self, model: QueryModel, stream: TrainingStream, options: Options) -> None:
        self.network: nn.Module = model
        self._stream, self._options = stream, options

    def collate(self, items: Any) -> QueryBatch:
        """The batch of a draw, as tensors."""
        return self._stream.collate(items)

    def groups(self) -> list[dict[str, Any]]:
        """All parameters with one learning rate."""
        return [{"params": list(self.network.parameters()), "lr": self._options.learning_rate}]

    def compile(self) -> None:
        """Let torch compile the network."""
        self.network.compile()


class QueryTrainer(TrainingLoop):
    """Trains a model on a stream of queries; the epoch with the best MRR is kept.

    ``valid`` are queries with hard answers; without any the last epoch is the best. ``write``
    gives the history of a run in its folder, ``kept`` are the settings that another training must
    have to go on with this one.
    """

    def __init__(
        self,
        folder: Path,
        model: QueryModel,
        options: Options,
        distributed: Distributed,
        stream: TrainingStream,
        valid: Sequence[Sample] = (),
        *,
        seed: int,
        clock: Clock | None = None,
        after: int = 0,
        write: Callable[[Path], History] | None = None,
        kept: Mapping[str, Any] | None = None,
    ) -> None:
        self.model, self.stream, self.valid = model, stream, list(valid)
        self._write, self._kept = write, dict(kept or {})
        super().__init__(
            folder,
            QueryLearner(model, stream, options),
            options,
            distributed,
            (),
            seed=seed,
            clock=clock or Clock(distributed.device),
            validated=len(self.valid),
            after=after,
        )

    @property
    def examples(self) -> int:
        """The queries that an epoch draws."""
        return len(self.stream)

    def parts(self, epoch: int) -> Sequence[Sequence[Item]]:
        """The batches of an epoch."""
        return self.stream.epoch(epoch)

    def validate(self) -> tuple[float, int]:
        """The reciprocal ranks of this process's validation queries, and how many those are.

        Types count alike, whatever the number of their queries.
        """
        self.model.eval()
        own = self.distributed.share(self.valid)
        counts = Counter(sample.formula for sample in self.valid)
        with self.distributed.precise():
            ranks = reciprocal_ranks(self.model, own)
        share = len(self.valid) / max(1, len(counts))
        parts = zip(ranks, own, strict=True)
        return sum(rank * share / counts[sample.formula] for rank, sample in parts), len(own)

    def told(self, share: float) -> str:
        """The MRR of the validation queries, in words."""
        if not self.valid:
            return "no validation queries"
        return f"MRR {100 * share:.2f} on {len(self.valid)} validation queries"

    def history(self) -> History:
        """The history in the run's folder."""
        if self._write is not None:
            return self._write(self.folder)
        return History(self.folder, self.distributed.main)

    @cached_property
    def queries_mark(self) -> str:
        """A fingerprint of the queries that are learnt from and validated on."""
        found = hashlib.sha256(self.stream.queries.mark.encode())
        for sample in self.valid:
            found.update(f"{sample.query!r} {sample.hard[:, 0].tolist()}\n".encode())
        return found.hexdigest()

    def marks(self) -> dict[str, Any]:
        """The fingerprint of the queries, and the settings that must stay."""
        return {"queries": self.queries_mark, "settings": self._kept}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on where a training stopped.

        Raises CheckpointError when the queries are others, or the state is of another network.
        """
        if state.get("queries") != self.queries_mark:
            raise CheckpointError(
                f"{self.folder}: the queries are not those that the training began with; put them"
                " back, or begin a new run"
            )
        super().resume(state)


def reciprocal_ranks(model: QueryModel, samples: Sequence[Sample]) -> list[float]:
    """For each query the mean reciprocal rank of its hard answers among what is no answer.

    What scores alike counts half. Raises TrainingError where scores are no numbers.
    """
    found: list[float] = []
    for begin in range(0, len(samples), CHUNK):
        part = samples[begin : begin + CHUNK]
        ranks = [0.0] * len(part)
        for places, scores in model.blocks_of([sample.query for sample in part]):
            if not bool(scores.isfinite().all()):
                raise TrainingError("validation: the scores of a query are no numbers")
            for row, place in enumerate(places):
                sample = part[place]
                answers, hard = (
                    torch.from_numpy(one[:, 0]).long().to(scores.device)
                    for one in (sample.full, sample.hard)
                )
                ranks[place] = float((1 / _ranks(scores[row, 0].float(), hard, answers)).mean())
        found += ranks
    return found


def _ranks(scores: Tensor, hard: Tensor, answers: Tensor) -> Tensor:
    """The rank of each hard answer among the entities that are no answers."""
    own = scores[hard][:, None]
    others = scores.index_fill(0, answers, -torch.inf)[None]
    return 1 + (others > own).sum(1) + (others == own).sum(1) / 2
