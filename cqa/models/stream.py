"""The batches that are drawn from sets of training queries: the same for a seed.

`QuerySettings` says which queries there are (`cqa.models.query_sets`); `TrainingStream` draws
batches: of each query one answer, and entities that are none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass as checked_dataclass
from torch import Tensor

from cqa.evaluation.plan import QueryPlan
from cqa.graphs.graph import Graph
from cqa.graphs.links import places
from cqa.models.query_sets import QuerySet, Rows, betae_counts
from kb.arrays import Ids
from kopl_base.errors import SettingsError
from kopl_base.settings import Bool, CheckedSettings, Count, Int
from kopl_base.training.optimizer import Batch, Tensors, TrainingError

Mix = Literal["paths", "all"]
Loss = Literal["sigmoid", "softmax"]

# Redraws of an entity that is an answer, before the others are listed.
TRIES = 10


@checked_dataclass(frozen=True)
class QuerySettings(CheckedSettings):
    """The queries that a model learns from, and how batches are drawn from them.

    ``data`` is a file or folder of queries in any form that is read here, or the folder ``queries``
    of another run; "" samples them on the train split: ``count`` of each of the ``types``, named
    with blanks between (0: as many as BetaE's sets have, a tenth of them with a negation), or as
    many as stand behind a type, as in ``1p 2p=50000``; "betae" are its ten types.
    ``valid_data`` is a file or folder of queries of valid that choose the best epoch; "" samples
    ``valid`` of each type (0: none, and the last epoch is the best). ``workers`` sample.

    ``steps``: the steps of the optimizer in an epoch (0: as many as it takes to see each query
    once). ``mix``: two batches of chains of relations for each of the other types, in turn, as
    published ("paths"), or all types together ("all"). ``negatives`` entities are drawn for each
    query, alike among all that are no answers, or, with ``rejecting`` false, among all, as later
    programs do; ``shared``: they are drawn once for a whole batch, so that many more cost little,
    and those that are a query's answers are left out for it. ``loss``: "sigmoid" as published,
    where each entity is judged alone, or "softmax", the cross-entropy of the answer among the
    others. ``weighted``: a query weighs 1 / sqrt(4 + answers).
    """

    types: str = "betae"
    count: Annotated[Int, Field(ge=0)] = 0
    data: str = ""
    valid: Annotated[Int, Field(ge=0)] = 100
    valid_data: str = ""
    workers: Count = 1
    steps: Annotated[Int, Field(ge=0)] = 0
    mix: Mix = "paths"
    negatives: Count = 128
    rejecting: Bool = True
    shared: Bool = False
    loss: Loss = "sigmoid"
    weighted: Bool = True

    def counts(self, graph: Graph) -> dict[str, int]:
        """How many queries of each type are sampled."""
        published = betae_counts(graph)
        if self.types == "betae":
            names = list(published)
        else:
            names = [word for word in self.types.split() if word]
        found: dict[str, int] = {}
        for word in names:
            name, _, count = word.partition("=")
            if not re.fullmatch("[0-9]{0,9}", count):
                raise SettingsError(
                    f"queries.types has {word!r}; a number of queries stands behind a type as in"
                    " 2p=50000"
                )
            found[name] = int(count or self.count) or published.get(name, published["1p"])
        if not found:
            raise SettingsError("queries.types names no type")
        return found

    def stream(self, batch: int, dense: bool) -> StreamOptions:
        """How batches of so many queries are drawn."""
        return StreamOptions(
            batch, self.steps, self.mix, self.negatives, self.rejecting, self.weighted, dense,
            self.shared, self.loss,
        )  # fmt: skip


# --- batches ------------------------------------------------------------------------------------


class TrainingQuery(NamedTuple):
    """One query of a batch, as messages show it."""

    text: str
    length: int = 1


@dataclass(frozen=True, eq=False)
class Draw(Sequence[TrainingQuery]):
    """The queries of one batch: for each the number of its type and its row there.

    ``step`` is the batch's number in the training; what else is drawn depends on it and the seed.
    """

    set: QuerySet
    types: Rows
    rows: Rows
    step: int

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> TrainingQuery: ...
    @overload
    def __getitem__(self, at: slice) -> list[TrainingQuery]: ...

    def __getitem__(self, at: int | slice) -> TrainingQuery | list[TrainingQuery]:
        if isinstance(at, slice):
            return [self[n] for n in range(*at.indices(len(self)))]
        own = self.set.types[self.types[at]]
        row = self.rows[at]
        anchors, relations = own.anchors[row].tolist(), own.relations[row].tolist()
        text = f"{own.name} of entities {anchors} and relations {relations}"
        return TrainingQuery(text, len(own.plan.steps))


@dataclass(frozen=True)
class Pool(Tensors):
    """Entities (m,) that all queries of a batch share, whichever of its rows are taken."""

    entities: Tensor

    def rows(self, index: Tensor) -> Pool:
        """The same entities."""
        return self


@dataclass(frozen=True)
class QueryBatch(Batch):
    """Queries of several types as tensors, with what the loss needs.

    ``kinds`` are numbers in ``plans``; columns beyond those of a query's type are 0. ``weights``
    have the mean 1 over the whole batch. ``negatives`` (B, m) are no answers. Where they are shared
    they stand in ``pool`` (m,) instead, and ``taken`` (B, m) says which of them are answers all the
    same. ``answers`` (B, E) says which entities are, and has no elements where nobody asked for it.
    """

    plans: tuple[QueryPlan, ...]
    kinds: Tensor
    anchors: Tensor
    relations: Tensor
    positives: Tensor
    negatives: Tensor
    weights: Tensor
    answers: Tensor
    pool: Pool
    taken: Tensor
    loss: Loss


@dataclass(frozen=True)
class StreamOptions:
    """How batches are drawn, as `QuerySettings` says; ``dense``: with all answers of each query."""

    batch: int = 512
    steps: int = 0
    mix: Mix = "paths"
    negatives: int = 128
    rejecting: bool = True
    weighted: bool = True
    dense: bool = False
    shared: bool = False
    loss: Loss = "sigmoid"


class TrainingStream:
    """Batches of a set of queries: epochs of so many steps, each query as often as any other.

    Whatever was drawn before, the batch of a step is the same; it depends on the seed.
    """

    def __init__(
        self, queries: QuerySet, entity_count: int, options: StreamOptions, seed: int = 0
    ) -> None:
        self.queries, self.entity_count = queries, entity_count
        self.options, self.seed = options, seed
        paths = [n for n, one in enumerate(queries.types) if one.path]
        others = [n for n, one in enumerate(queries.types) if not one.path]
        # Which group of types a step takes: in turn.
        self._groups = [paths, others, paths] if options.mix == "paths" and others else []
        if not self._groups or not paths:
            self._groups = [[*paths, *others]]
        self._orders: dict[tuple[int, int], Rows] = {}
        self._ends = np.cumsum([len(one) for one in queries.types])
        if not len(queries):
            raise TrainingError("there are no training queries")

    @property
    def steps(self) -> int:
        """The steps of an epoch."""
        return self.options.steps or -(-len(self.queries) // self.options.batch)

    def __len__(self) -> int:
        return self.steps * self.options.batch

    def epoch(self, number: int) -> Sequence[Draw]:
        """The batches of an epoch, each made when it is looked up."""
        return _Epoch(self, number)

    def draw(self, step: int) -> Draw:
        """The queries of the batch of a step, counted over all epochs."""
        turn = step % len(self._groups)
        group = self._groups[turn]
        # How many batches of this group came before; both turns of the chains are one group.
        own = [n for n, one in enumerate(self._groups) if one is group]
        before = step // len(self._groups) * len(own) + own.index(turn)
        size = sum(len(self.queries.types[n]) for n in group)
        begin = before * self.options.batch
        numbers: list[Rows] = []
        wanted = self.options.batch
        while wanted:
            rest = self._order(own[0], begin // size)[begin % size :][:wanted]
            numbers.append(rest)
            begin, wanted = begin + len(rest), wanted - len(rest)
        chosen = np.concatenate(numbers)
        types = self._ends.searchsorted(chosen, "right")
        rows = chosen - np.concatenate([[0], self._ends])[types]
        return Draw(self.queries, types, rows, step)

    def _order(self, group: int, time: int) -> Rows:
        """All queries of a group, as numbers in the set, in the order of one time through."""
        key = group, time
        if key not in self._orders:
            for old in [old for old in self._orders if old[0] == group and old[1] < time - 1]:
                del self._orders[old]
            starts = np.concatenate([[0], self._ends])
            own = np.concatenate([np.arange(starts[n], starts[n + 1]) for n in self._groups[group]])
            np.random.default_rng([self.seed, 1, group, time]).shuffle(own)
            self._orders[key] = own
        return self._orders[key]

    # --- tensors -------------------------------------------------------------------------------

    def collate(self, draw: Draw) -> QueryBatch:
        """A batch as tensors, with drawn answers and other entities."""
        options, size = self.options, len(draw)
        random = np.random.default_rng([self.seed, 2, draw.step])
        types = self.queries.types
        present = np.unique(draw.types)
        anchors = np.zeros((size, max(types[n].plan.anchors for n in present)), np.int64)
        relations = np.zeros((size, max(types[n].plan.relations for n in present)), np.int64)
        begins, counts = np.empty(size, np.int64), np.empty(size, np.int64)
        parts: list[Ids] = []
        order = np.concatenate([np.flatnonzero(draw.types == number) for number in present])
        for number in present:
            own, at = types[number], np.flatnonzero(draw.types == number)
            rows = draw.rows[at]
            anchors[at, : own.plan.anchors] = own.anchors[rows]
            relations[at, : own.plan.relations] = own.relations[rows]
            starts = own.starts[rows]
            counts[at] = own.starts[rows + 1] - starts
            parts.append(own.answers[places(starts, counts[at])])
        # The answers of all queries, one query after the other in ``order``.
        found = np.concatenate(parts)
        begins[order] = np.concatenate([[0], counts[order].cumsum()[:-1]])
        chosen = begins + (random.random(size) * counts).astype(np.int64)
        place = np.empty(size, np.int64)
        place[order] = np.arange(size)
        keys = np.repeat(np.arange(size), counts[order]) * self.entity_count + found
        pool, negatives = np.zeros(0, np.int64), np.zeros((0, 0), np.int64)
        taken: npt.NDArray[np.bool_] = np.zeros((0, 0), np.bool_)
        if options.shared:
            pool = random.integers(self.entity_count, size=options.negatives)
            own = place[:, None] * self.entity_count + pool
            taken = _among(own.reshape(-1), keys).reshape(own.shape)
        else:
            negatives = self._negatives(random, place, keys)
        weights = 1 / np.sqrt(4 + counts) if options.weighted else np.ones(size)
        answers = np.zeros((size if options.dense else 0, self.entity_count), np.bool_)
        if options.dense:
            answers[np.repeat(order, counts[order]), found] = True
        return QueryBatch(
            size,
            tuple(one.plan for one in types),
            torch.from_numpy(draw.types.astype(np.int64)),
            torch.from_numpy(anchors),
            torch.from_numpy(relations),
            torch.from_numpy(found[chosen].astype(np.int64)),
            torch.from_numpy(negatives),
            torch.from_numpy((weights * (size / weights.sum())).astype(np.float32)),
            torch.from_numpy(answers),
            Pool(torch.from_numpy(pool)),
            torch.from_numpy(taken),
            options.loss,
        )

    def _negatives(self, random: np.random.Generator, place: Rows, keys: Rows) -> Rows:
        """Entities for each query, (B, m), that are none of its answers.

        ``keys``: sorted, a query's place * entities + answer. Where all entities are answers, they
        are drawn among all.
        """
        count = self.entity_count
        found = random.integers(count, size=(len(place), self.options.negatives))
        if not self.options.rejecting or not found.size:
            return found
        own = np.repeat(place, found.shape[1]) * count
        flat = found.reshape(-1)
        for _ in range(TRIES):
            wrong = np.flatnonzero(_among(own + flat, keys))
            if not len(wrong):
                return found
            flat[wrong] = random.integers(count, size=len(wrong))
        wrong = np.flatnonzero(_among(own + flat, keys))
        for query in np.unique(wrong // found.shape[1]):
            mine = wrong[wrong // found.shape[1] == query]
            every = np.arange(count)
            others = every[~_among(place[query] * count + every, keys)]
            if len(others):
                flat[mine] = random.choice(others, len(mine))
        return found


def _among(wanted: Rows, keys: Rows) -> npt.NDArray[np.bool_]:
    """For each number whether it is among some sorted ones."""
    found: npt.NDArray[np.bool_] = keys.take(keys.searchsorted(wanted), mode="clip") == wanted
    return found


class _Epoch(Sequence[Draw]):
    """The batches of an epoch, made when they are looked up."""

    def __init__(self, stream: TrainingStream, number: int) -> None:
        self._stream, self._first = stream, number * stream.steps

    def __len__(self) -> int:
        return self._stream.steps

    @overload
    def __getitem__(self, at: int) -> Draw: ...
    @overload
    def __getitem__(self, at: slice) -> list[Draw]: ...

    def __getitem__(self, at: int | slice) -> Draw | list[Draw]:
        if isinstance(at, slice):
            return [self[n] for n in range(*at.indices(len(self)))]
        if not 0 <= at < len(self):
            raise IndexError(at)
        return self._stream.draw(self._first + at)
