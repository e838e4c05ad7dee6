"""Training models of queries: what a step learns from, what chooses the best epoch, going on.

The loop itself is `kopl_base.training.loop`, which the parsers train by, too.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from cqa.formats.samples import read_samples, write_samples
from cqa.graphs.graph import Graph
from cqa.models.checkpoint import begin_run, check_graph
from cqa.models.model import QueryModel
from cqa.models.settings import Settings, model_class
from cqa.models.stream import (
    QueryBatch,
    QuerySet,
    QuerySettings,
    TrainingStream,
    load,
    read,
    sampled,
)
from cqa.sampling.kinds import kinds
from cqa.sampling.makers import Plan
from cqa.sampling.run import stream as sample_stream
from cqa.sampling.sample import Sample
from cqa.types.tree import Tree
from kopl_base.training.checkpoint import CheckpointError, read_state
from kopl_base.training.clock import Clock
from kopl_base.training.distributed import Distributed
from kopl_base.training.history import History
from kopl_base.training.loop import TrainingLoop
from kopl_base.training.optimizer import Item, Options, TrainingError

# Queries that are ranked at a time.
CHUNK = 256
# Where a run keeps its queries.
QUERIES, VALID = "queries", "valid.jsonl"


# What a training may be gone on with although it began with another one: how long it goes on,
# where things are, what is told of it. That the graph and the queries are the same is checked.
MAY_CHANGE = frozenset(
    [
        "graph",
        "kb",
        "output",
        "device",
        "threads",
        "tensorboard",
        "wandb",
        "queries.workers",
        "training.epochs",
        "training.minutes",
        "training.checkpoint",
        "training.part",
    ]
)


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


# --- runs ---------------------------------------------------------------------------------------


def begin(
    folder: Path,
    settings: Settings,
    graph: Graph,
    distributed: Distributed | None = None,
    clock: Clock | None = None,
) -> QueryTrainer:
    """A trainer with a new run in an empty or new folder, where its queries are kept, too.

    Raises KoplError for settings, queries or a device that are not there.
    """
    distributed = distributed or Distributed.of(settings.device, settings.training.precision)
    distributed.first(lambda: _make_queries(folder, settings, graph))
    queries, valid = _read_queries(folder, graph)
    distributed.seed(settings.seed)
    model = model_class(settings.model).create(settings, graph)
    distributed.first(lambda: begin_run(folder, settings, graph))
    return _trainer(folder, settings, model, distributed, queries, valid, clock)


def go_on(
    folder: Path,
    graph: Graph,
    distributed: Distributed | None = None,
    clock: Clock | None = None,
    settings: Settings | None = None,
) -> QueryTrainer:
    """A trainer that goes on with the run in a folder.

    ``settings`` are kept with the run in place of its own; they may differ in `MAY_CHANGE`. Raises
    CheckpointError when there is nothing to go on from, it is damaged, or the graph, the queries or
    the settings are not those that the training began with.
    """
    own = check_graph(folder, graph)
    settings = settings or own
    state = read_state(folder / "resume.pt", ("network", "optimizer", "progress", "settings"))
    before, now = state["settings"], kept(settings)
    if names := [name for name in {**now, **before} if now.get(name) != before.get(name)]:
        told = ", ".join(f"{n} (was {before.get(n)!r}, is {now.get(n)!r})" for n in names)
        raise CheckpointError(
            f"{folder / 'settings.json'}: the training began with other settings: {told}; put them"
            " back, or begin a new run"
        )
    distributed = distributed or Distributed.of(settings.device, settings.training.precision)
    queries, valid = _read_queries(folder, graph)
    distributed.seed(settings.seed)
    model = model_class(settings.model).create(settings, graph)
    trainer = _trainer(folder, settings, model, distributed, queries, valid, clock)
    trainer.resume(state)
    if settings != own:
        distributed.first(lambda: begin_run(folder, settings, graph))
    return trainer


def kept(settings: Settings) -> dict[str, Any]:
    """The settings that a training must be gone on with, by name."""
    every = settings.flat(settings.by_name(), settings.model)
    return {name: value for name, value in every if name not in MAY_CHANGE}


def _trainer(
    folder: Path,
    settings: Settings,
    model: QueryModel,
    distributed: Distributed,
    queries: QuerySet,
    valid: Sequence[Sample],
    clock: Clock | None,
) -> QueryTrainer:
    own: QuerySettings = settings.others["queries"]
    options = own.stream(settings.training.batch, model.dense)
    stream = TrainingStream(queries, model.entity_count, options, settings.seed)

    def write(folder: Path) -> History:
        return History(
            folder,
            distributed.main,
            tensorboard=settings.tensorboard,
            wandb=settings.wandb,
            settings=json.loads(settings.to_json()),
        )

    return QueryTrainer(
        folder,
        model,
        settings.training,
        distributed,
        stream,
        valid,
        seed=settings.seed,
        clock=clock or Clock(distributed.device, settings.threads),
        write=write,
        kept=kept(settings),
    )


def _make_queries(folder: Path, settings: Settings, graph: Graph) -> None:
    """Sample or read the queries of a run, and keep them in its folder."""
    own: QuerySettings = settings.others["queries"]
    if own.data:
        queries = read(own.data, graph, most=own.count or None)
    else:
        queries = sampled(graph, own.counts(graph), seed=settings.seed, workers=own.workers)
    queries.save(folder / QUERIES)
    if own.valid_data:
        valid = list(read_samples(own.valid_data, split=graph.splits[1], graph=graph))
    elif own.valid and graph.counts[graph.splits[1]]:
        shapes = [one.shape for one in queries.types]
        trees = [shape.formula for shape in shapes if isinstance(shape, Tree)]
        words = trees if own.data else list(own.counts(graph))
        plan = Plan(tuple(kinds(words)), own.valid, settings.seed, graph.splits[1])
        valid = list(sample_stream(plan, graph))
    else:
        valid = []
    write_samples(folder / VALID, valid, "jsonl", graph.splits[1])


def _read_queries(folder: Path, graph: Graph) -> tuple[QuerySet, list[Sample]]:
    return load(folder / QUERIES, graph), list(read_samples(folder / VALID, "jsonl"))
