"""Training models of queries: what a step learns from, what chooses the best epoch, going on.

The loop itself is `kopl_base.training.loop`, which the parsers train by, too.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from torch import nn

from cqa.errors import QueryError
from cqa.evaluation.judging import tallied
from cqa.evaluation.metrics import Tally
from cqa.formats.samples import read_samples, write_samples
from cqa.graphs.graph import Graph
from cqa.models.checkpoint import begin_run, check_graph, fill, kept, saved_state
from cqa.models.links.training import begun, small_data
from cqa.models.model import FrequentAnswers, QueryModel
from cqa.models.plan import check_operators, compiled
from cqa.models.query_sets import load, read, sampled
from cqa.models.reasoner import Block
from cqa.models.settings import Settings, model_class
from cqa.models.stream import QueryBatch, QuerySettings, TrainingStream
from cqa.query import Query
from cqa.sampling.kinds import kinds
from cqa.sampling.makers import Plan
from cqa.sampling.run import stream as sample_stream
from cqa.sampling.sample import Sample
from cqa.types.tree import Tree
from kopl_base.errors import SettingsError, wrapped
from kopl_base.training.checkpoint import CheckpointError
from kopl_base.training.clock import Clock
from kopl_base.training.distributed import Distributed
from kopl_base.training.history import History, check_trackers
from kopl_base.training.loop import TrainingLoop
from kopl_base.training.optimizer import Item, Options, TrainingError, too_large_explained

# Queries that are ranked at a time.
CHUNK = 256
# Where a run keeps its queries.
QUERIES, VALID = "queries", "valid.jsonl"


class Asked(Protocol):
    """What gives scores of queries by type: a model, or a reasoner of operators on batches."""

    def blocks_of(self, queries: Sequence[Query | Tree]) -> Iterator[Block]:
        """The scores (B, k, E) of queries by their types, with their places in the list."""


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


def reciprocal_ranks(model: Asked, samples: Sequence[Sample]) -> list[float]:
    """For each query the mean reciprocal rank of its hard answers among what is no answer.

    What scores alike counts half. Raises TrainingError where scores are no numbers.
    """
    found: list[float] = []
    for begin in range(0, len(samples), CHUNK):
        part = samples[begin : begin + CHUNK]
        tally = None
        for places, scores in model.blocks_of([sample.query for sample in part]):
            if not bool(scores.isfinite().all()):
                raise TrainingError("validation: the scores of a query are no numbers")
            if tally is None:
                sets = ((sample.easy, sample.hard, sample.lost) for sample in part)
                answers = [(easy[:, 0], hard[:, 0], lost[:, 0]) for easy, hard, lost in sets]
                tally = Tally(answers, scores.shape[-1])
            tallied(tally, places, scores)
        if tally is not None:
            found += tally.metrics()["mrr"].tolist()
    return found


# --- whole trainings ----------------------------------------------------------------------------


@dataclass(frozen=True)
class TrainedQueries:
    """What came out of a training: for each type the MRR of its queries of valid.

    ``reports`` has that of the model and that of `FrequentAnswers`, as fractions of 1. ``stopped``
    says that the time ended it, ``warnings`` where its answers mean little. ``finished`` is False
    where a signal stopped it: then there are no figures.
    """

    folder: Path
    finished: bool
    reports: Mapping[str, tuple[float, float]]
    warnings: Sequence[str]
    stopped: str = ""

    def lines(self) -> Iterator[str]:
        """What to tell of it, a line each."""
        if self.reports:
            yield f"{'valid':12}{'MRR':>7}  by the relations' most frequent tails"
        for name, (own, frequent) in self.reports.items():
            yield f"{name:12}{100 * own:7.2f}  {100 * frequent:.2f}"
        yield from (wrapped(f"warning: {one}") for one in self.warnings)
        if self.stopped:
            yield self.stopped


def train(
    settings: Settings,
    graph: Graph,
    folder: Path,
    *,
    distributed: Distributed | None = None,
    clock: Clock | None = None,
) -> TrainedQueries:
    """Train a new model of queries on a graph, in an empty or new folder, with all that it needs.

    Raises SettingsError for settings that cannot be had here, KoplError for queries that cannot be
    sampled or read, and TrainingError where there is nothing to learn from.
    """
    return _finished(begin(settings, graph, folder, distributed=distributed, clock=clock), graph)


def begin(
    settings: Settings,
    graph: Graph,
    folder: Path,
    *,
    distributed: Distributed | None = None,
    clock: Clock | None = None,
) -> QueryTrainer:
    """What `train` runs: a trainer with a new run, in whose folder its queries are kept, too."""
    check_trackers(settings.tensorboard, settings.wandb)
    if not issubclass(model_class(settings.model), QueryModel):
        raise SettingsError(f"model={settings.model} learns from links, not from queries")
    if not settings.others["queries"].data:
        _check_types(settings, graph)
    model_class(settings.model).check(settings)
    distributed, settings = begun(settings, distributed)
    distributed.first(lambda: folder.mkdir(parents=True, exist_ok=True))
    distributed.first(lambda: begin_run(folder, settings, graph))
    distributed.first(lambda: _make_queries(folder, settings, graph))
    return _trainer(folder, settings, graph, distributed, clock)


def go_on(
    folder: Path,
    graph: Graph,
    changes: Mapping[str, Any] | None = None,
    *,
    distributed: Distributed | None = None,
    clock: Clock | None = None,
) -> TrainedQueries:
    """Go on with the training in a folder, exactly where it stopped, perhaps with other settings.

    ``changes`` may be such as `cqa.models.checkpoint.MAY_CHANGE` has. Raises CheckpointError when
    there is nothing to go on from, it is damaged, or the graph, the queries or the settings are
    others.
    """
    before = check_graph(folder, graph)
    distributed, settings = begun(before.changed(changes or {}), distributed)
    state = saved_state(folder, settings)
    trainer = _trainer(folder, settings, graph, distributed, clock)
    trainer.resume(state)
    if settings != before:
        distributed.first(lambda: begin_run(folder, settings, graph))
    return _finished(trainer, graph)


def _trainer(
    folder: Path, settings: Settings, graph: Graph, distributed: Distributed, clock: Clock | None
) -> QueryTrainer:
    with too_large_explained("its sizes"):
        model = model_class(settings.model).create(settings, graph)
    own: QuerySettings = settings.others["queries"]
    options = own.stream(settings.training.batch, model.dense)
    queries = load(folder / QUERIES, graph)
    stream = TrainingStream(queries, graph.entity_count, options, settings.seed)

    def write(folder: Path) -> History:
        return History(
            folder,
            distributed.main,
            tensorboard=settings.tensorboard,
            wandb=settings.wandb,
            settings=settings.by_name(),
        )

    return QueryTrainer(
        folder,
        model,
        settings.training,
        distributed,
        stream,
        list(read_samples(folder / VALID, "jsonl")),
        seed=settings.seed,
        clock=clock or Clock(distributed.device, settings.threads),
        write=write,
        kept=kept(settings),
    )


def _check_types(settings: Settings, graph: Graph) -> None:
    """Raise SettingsError for a type that the model cannot answer: before any is sampled."""
    for name in settings.others["queries"].counts(graph):
        for kind in kinds([name]):
            try:
                check_operators(model_class(settings.model), compiled(kind.shape))
            except QueryError as error:
                raise SettingsError(f"queries.types has {name}: {error}") from None


def _make_queries(folder: Path, settings: Settings, graph: Graph) -> None:
    """Sample or read the queries of a run, and keep them in its folder."""
    own: QuerySettings = settings.others["queries"]
    if own.data:
        queries = read(own.data, graph, most=own.count or None)
    else:
        queries = sampled(graph, own.counts(graph), seed=settings.seed, workers=own.workers)
    queries.save(folder / QUERIES)
    valid: list[Sample] = []
    split = graph.splits[1] if len(graph.splits) > 1 else ""
    if own.valid_data:
        valid = list(read_samples(own.valid_data, split=split, graph=graph))
    elif own.valid and split and graph.counts[split]:
        shapes = [one.shape for one in queries.types]
        trees = [shape.formula for shape in shapes if isinstance(shape, Tree)]
        words = trees if own.data else list(own.counts(graph))
        plan = Plan(tuple(kinds(words)), own.valid, settings.seed, split)
        valid = list(sample_stream(plan, graph))
    write_samples(folder / VALID, valid, "jsonl", split)


def _finished(trainer: QueryTrainer, graph: Graph) -> TrainedQueries:
    """Run a training to its end, and tell how well its best weights answer the queries of valid."""
    warnings = small_data(graph)
    if not trainer.run():
        return TrainedQueries(trainer.folder, False, {}, warnings)
    reports: dict[str, tuple[float, float]] = {}
    if trainer.distributed.main and trainer.valid:
        fill(trainer.model, trainer.folder)
        own = by_type(trainer.model.eval(), trainer.valid)
        frequent = by_type(FrequentAnswers(graph).reasoner(), trainer.valid)
        reports = {name: (own[name], frequent[name]) for name in own}
        poor = [name for name, (mrr, least) in reports.items() if mrr <= least]
        if poor:
            warnings.append(
                f"on {', '.join(poor)} the model is no better than the relations' most frequent"
                " tails; train it longer, or with other settings, before its answers are used"
            )
    return TrainedQueries(trainer.folder, True, reports, warnings, trainer.stopped)


def by_type(model: Asked, samples: Sequence[Sample]) -> dict[str, float]:
    """The MRR of the queries of each type, in order of first appearance."""
    found: dict[str, list[float]] = {}
    for sample, rank in zip(samples, reciprocal_ranks(model, samples), strict=True):
        found.setdefault(sample.type, []).append(rank)
    return {name: sum(ranks) / len(ranks) for name, ranks in found.items()}
