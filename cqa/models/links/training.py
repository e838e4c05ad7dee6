"""Training link predictors: rows of links as batches, the MRR of unseen links, what came out.

The loop itself is `kopl_base.training.loop`, which the parsers train by, too.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from cqa.graphs.graph import Graph, from_triples
from cqa.graphs.links import Links, places
from cqa.models.checkpoint import begin_run, check_graph, fill, kept, saved_state
from cqa.models.links.evaluation import LinkReport, baseline, evaluate_links, rank_blocks
from cqa.models.links.network import LinkModel, RowBatch
from cqa.models.settings import Settings, model_class
from kb.arrays import Ids
from kopl_base.errors import SettingsError, counted, wrapped
from kopl_base.training.clock import Clock
from kopl_base.training.distributed import Distributed, use_threads
from kopl_base.training.history import History, check_trackers
from kopl_base.training.loop import TrainingLoop
from kopl_base.training.optimizer import TrainingError, too_large_explained

Index = npt.NDArray[np.int64]

# Fewer links than these are too few to learn from, and to measure with.
LEAST, LEAST_MEASURED = 1000, 100
# A relation with fewer links, and the share of such relations that is worth a warning.
RARE, MANY = 10, 0.5


class Row(NamedTuple):
    """A row of links, as messages show it."""

    relation: int
    head: int
    length: int

    @property
    def text(self) -> str:
        """The head and the relation."""
        return f"relation {self.relation} of entity {self.head}"


class RowItems(Sequence[Row]):
    """Some of the rows of links, by their numbers; a row is made when it is looked at."""

    def __init__(self, data: RowData, numbers: Index) -> None:
        self.data, self.numbers = data, numbers

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> RowItems: ...
    def __getitem__(self, at: int | slice) -> Row | RowItems:
        if isinstance(at, slice):
            return RowItems(self.data, self.numbers[at])
        row = int(self.numbers[at])
        links = self.data.links
        length = int(links.starts[row + 1]) - int(links.starts[row])
        return Row(int(self.data.relations[row]), int(links.heads[row]), length)


class RowData:
    """The rows of links that are learnt from, and how batches are made of them.

    ``candidates`` and ``pairs`` are drawn for each batch: entities that stand for all (0: all of
    them), and a tail for each row whose relation is predicted. What is drawn depends on the seed
    and the rows of the batch alone.
    """

    def __init__(self, links: Links, seed: int, candidates: int = 0, pairs: bool = False) -> None:
        self.links, self.seed = links, seed
        self.candidates = candidates if candidates < links.entity_count else 0
        self.pairs = pairs
        counts = np.diff(links.rows)
        self.relations = np.repeat(np.arange(links.relation_count), counts)

    def __len__(self) -> int:
        return len(self.links.heads)

    def epoch(self, number: int, batch: int) -> list[RowItems]:
        """All rows in batches, in an order of the epoch."""
        order = np.random.default_rng([self.seed, number]).permutation(len(self))
        return [RowItems(self, order[at : at + batch]) for at in range(0, len(order), batch)]

    def collate(self, items: RowItems) -> RowBatch:
        """The rows as tensors."""
        rows, links = items.numbers, self.links
        random = np.random.default_rng([self.seed, zlib.crc32(rows.astype(np.int64).tobytes())])
        begins = links.starts[rows].astype(np.int64)
        sizes = links.starts[rows + 1].astype(np.int64) - begins
        tails = links.tails[places(begins, sizes)]
        drawn: Index = np.empty(0, np.int64)
        if self.candidates:
            drawn = random.choice(links.entity_count, self.candidates, replace=False, shuffle=False)
        pairs = random.integers(len(tails), size=len(rows)) if self.pairs else np.empty(0)
        return RowBatch(
            len(tails), _tensor(links.heads[rows]), _tensor(self.relations[rows]), _tensor(sizes),
            _tensor(tails), _tensor(drawn), _tensor(pairs), len(pairs),
        )  # fmt: skip


def _tensor(numbers: np.ndarray[Any, Any]) -> torch.Tensor:
    return torch.from_numpy(numbers.astype(np.int64))


class LinkLearner:
    """A model of links with the rows that it learns from, as the optimizer takes both."""

    def __init__(self, model: LinkModel, data: RowData) -> None:
        self.network: nn.Module = model
        self.data = data
        self._rate = model.settings.training.learning_rate

    def collate(self, items: Any) -> RowBatch:
        """The rows as tensors."""
        return self.data.collate(items)

    def groups(self) -> list[dict[str, Any]]:
        """All vectors with one learning rate."""
        return [{"params": list(self.network.parameters()), "lr": self._rate}]

    def compile(self) -> None:
        """Let torch compile the network."""
        self.network.compile()


class LinkTrainer(TrainingLoop):
    """Trains a model of links; the epoch with the best MRR on links of ``valid`` is kept.

    Without links in it the last epoch is the best.
    """

    def __init__(
        self, folder: Path, model: LinkModel, graph: Graph, distributed: Distributed,
        clock: Clock | None = None,
    ) -> None:  # fmt: skip
        self.model, self.graph = model, graph
        settings, own = model.settings, model.own
        valid = chosen_triples(graph, settings.training.validation, settings.seed)
        self._validated = 2 * len(valid)
        self._valid = _links(distributed.share(valid.tolist()), graph) if len(valid) else None
        self.data = RowData(
            graph.view("train"), settings.seed, own.candidates if own.loss == "sampled" else 0,
            bool(own.relation_weight),
        )  # fmt: skip
        if not len(self.data):
            raise TrainingError("the graph has no links in train: there is nothing to learn")
        # Adagrad moves nothing where there is no gradient, so that it need not go over all vectors.
        # Several processes exchange whole gradients.
        training = settings.training
        model.sparse = (
            bool(self.data.candidates) and training.optimizer == "adagrad"
            and not (training.weight_decay or training.gradient_norm) and distributed.size == 1
        )  # fmt: skip
        if model.sparse:  # torch warns unless it is told
            torch.sparse.check_sparse_tensor_invariants.disable()  # type: ignore[no-untyped-call]
        super().__init__(
            folder, LinkLearner(model, self.data), settings.training, distributed, (),
            seed=settings.seed, clock=clock or Clock(distributed.device, settings.threads),
            validated=self._validated,
        )  # fmt: skip

    @property
    def examples(self) -> int:
        """The rows of an epoch."""
        return len(self.data)

    def parts(self, epoch: int) -> Sequence[RowItems]:
        """The batches of an epoch."""
        return self.data.epoch(epoch, self.options.batch)

    def validate(self) -> tuple[float, int]:
        """The reciprocal ranks of this process's links of valid, summed, and how many those are."""
        if self._valid is None:
            return 0.0, 0
        self.model.eval()
        blocks = rank_blocks(self.model, self._valid, self.graph.links)
        return sum(float((1 / ranks).sum()) for ranks in blocks), len(self._valid.tails)

    def told(self, share: float) -> str:
        """The MRR of the links of valid, in words."""
        if not self._validated:
            return "no links in valid"
        return f"MRR {100 * share:.2f} on {self._validated} links"

    def history(self) -> History:
        """The history in the run's folder, with the trackers that the settings ask for."""
        settings = self.model.settings
        return History(
            self.folder, self.distributed.main, tensorboard=settings.tensorboard,
            wandb=settings.wandb, settings=settings.by_name(),
        )  # fmt: skip

    def marks(self) -> dict[str, Any]:
        """The settings that must stay; the graph is in the run's folder."""
        return {"settings": kept(self.model.settings)}


def chosen_triples(graph: Graph, most: int, seed: int) -> Ids:
    """Triples of valid, at most so many (0: all), drawn by the seed; (n, 3)."""
    triples = graph.triples("valid") if "valid" in graph.splits else np.empty((0, 3), np.int32)
    if most and most < len(triples):
        random = np.random.default_rng([seed, 1])
        triples = triples[np.sort(random.choice(len(triples), most, replace=False))]
    return triples


def _links(triples: Sequence[Any], graph: Graph) -> Links:
    """The links of triples in both directions."""
    rows = np.array(triples, np.int64).reshape(-1, 3)
    rows[:, 1] //= 2
    return from_triples(
        [rows], ("valid",), entity_count=graph.entity_count, relation_count=graph.relation_count
    ).links


# --- whole trainings ----------------------------------------------------------------------------


@dataclass(frozen=True)
class TrainedLinks:
    """What came out of a training: how well splits are ranked, beside the most frequent tails.

    ``stopped`` says that the time ended it, ``warnings`` where its figures or its answers mean
    little. ``finished`` is False where a signal stopped it: then there are no figures.
    """

    folder: Path
    finished: bool
    reports: Mapping[str, tuple[LinkReport, LinkReport]]
    warnings: Sequence[str]
    stopped: str = ""

    def lines(self) -> Iterator[str]:
        """What to tell of it, a line each."""
        for split, (own, frequent) in self.reports.items():
            yield f"{split}, {own.links} links: {own}"
            yield f"  by the relation's most frequent tails: {frequent}"
        yield from (wrapped(f"warning: {one}") for one in self.warnings)
        if self.stopped:
            yield self.stopped


def train(
    settings: Settings, graph: Graph, folder: Path, *, distributed: Distributed | None = None,
    clock: Clock | None = None,
) -> TrainedLinks:  # fmt: skip
    """Train a new link predictor on a graph, in an empty or new folder, and rank unseen links.

    Raises SettingsError for settings that cannot be had here, and TrainingError where the graph has
    nothing to learn from, or the memory is not enough.
    """
    check_trackers(settings.tensorboard, settings.wandb)
    distributed, settings = begun(settings, distributed)
    distributed.first(lambda: begin_run(folder, settings, graph))
    model = _made(settings, graph)
    return _finished(LinkTrainer(folder, model, graph, distributed, clock), graph)


def go_on(
    folder: Path, graph: Graph, changes: Mapping[str, Any] | None = None, *,
    distributed: Distributed | None = None, clock: Clock | None = None,
) -> TrainedLinks:  # fmt: skip
    """Go on with the training in a folder, exactly where it stopped, perhaps with other settings.

    ``changes`` may be such as `cqa.models.checkpoint.MAY_CHANGE` has. Raises CheckpointError when
    there is nothing to go on from, it is damaged, or the graph or the settings are others.
    """
    before = check_graph(folder, graph)
    distributed, settings = begun(before.changed(changes or {}), distributed)
    state = saved_state(folder, settings)
    trainer = LinkTrainer(folder, _made(settings, graph), graph, distributed, clock)
    trainer.resume(state)
    if settings != before:
        distributed.first(lambda: begin_run(folder, settings, graph))
    return _finished(trainer, graph)


def begun(
    settings: Settings, distributed: Distributed | None
) -> tuple[Distributed, Settings]:  # fmt: skip
    """The processes of a training, seeded, and the settings that this machine can follow."""
    use_threads(settings.threads)
    training = settings.training
    distributed = distributed or Distributed.of(settings.device, training.precision)
    distributed.seed(settings.seed)
    if distributed.device.type == "cpu" and distributed.precision == "bfloat16" and not bfloat16():
        distributed.say("this processor has no products of bfloat16: computing with float32")
        distributed = replace(distributed, precision="float32")
    return distributed, settings


def bfloat16() -> bool:
    """Whether this processor multiplies numbers of bfloat16 itself; else they are slow."""
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    asked = [getattr(torch.cpu, name, None) for name in names]
    return any(ask() for ask in asked if ask is not None)


def _made(settings: Settings, graph: Graph) -> LinkModel:
    kind = model_class(settings.model)
    if not issubclass(kind, LinkModel):
        raise SettingsError(f"model={settings.model} is no link predictor")
    with too_large_explained("its rank"):
        return kind.create(settings, graph)


def _finished(trainer: LinkTrainer, graph: Graph) -> TrainedLinks:
    """Run a training to its end, and rank the links of valid and test by its best weights."""
    warnings = small_data(graph)
    if not trainer.run():
        return TrainedLinks(trainer.folder, False, {}, warnings)
    reports = {}
    if trainer.distributed.main:
        model = trainer.model.eval()
        fill(model, trainer.folder)
        for split in graph.splits[1:]:
            if graph.counts[split]:
                own = evaluate_links(model, graph, split, shown=None)
                reports[split] = own, baseline(graph, split)
        warnings += poor_figures(reports)
    return TrainedLinks(trainer.folder, True, reports, warnings, trainer.stopped)


def small_data(graph: Graph) -> list[str]:
    """What makes a graph too small to learn from, or to measure with, in words."""
    found = []
    links = graph.view("train")
    if len(links) < LEAST:
        found.append(
            f"train has {counted(len(links), 'link')}; below {LEAST} little but the most frequent"
            " tails can be learnt"
        )
    sizes = np.array([links.size(relation) for relation in range(0, links.relation_count, 2)])
    rare = int((sizes < RARE).sum())
    if len(sizes) and rare > MANY * len(sizes):
        found.append(
            f"{rare} of {counted(len(sizes), 'relation')} have fewer than {RARE} links in train;"
            " what is predicted of them is a guess"
        )
    unseen = graph.entity_count - len(np.unique(links.heads))
    if unseen:
        found.append(
            f"{unseen} of {counted(graph.entity_count, 'entity', 'entities')} have no link in"
            " train; nothing is learnt of them"
        )
    for split in graph.splits[1:]:
        if graph.counts[split] < LEAST_MEASURED:
            found.append(
                f"{split} has {counted(graph.counts[split], 'link')}; its figures mean little"
            )
    return found


def poor_figures(reports: Mapping[str, tuple[LinkReport, LinkReport]]) -> list[str]:
    """Where a model ranks no better than the relation's most frequent tails, in words."""
    return [
        f"on {split} the model is no better than the relation's most frequent tails; train it"
        " longer, or with other settings, before its answers are used"
        for split, (own, frequent) in reports.items()
        if own.mrr <= frequent.mrr
    ]
