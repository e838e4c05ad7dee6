"""Judging what a reasoner says of some queries: the metrics of each, side by side.

A chunk of queries is judged at a time, in this process or in another one. Ranks of one free
variable come from blocks of scores, (B, E) of them at a time where a reasoner gives such.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cqa.errors import QueryError
from cqa.evaluation.metrics import Metrics, Ranks, Tally, one_variable_published, ranked
from cqa.evaluation.reasoner import Reasoner, as_scored, scores_of
from cqa.evaluation.tuple_metrics import packed, several_variables, several_variables_published
from cqa.graphs.graph import Graph
from cqa.hardness.hardness import Hardness
from cqa.query import Query
from cqa.sampling.sample import Sample
from cqa.types.tree import Tree
from kopl_base.errors import KoplError

Labels: TypeAlias = Callable[[Sequence[Sample]], Sequence[Sequence[str]]]
"""For each of some queries what each of its hard answers reduces to, in their order."""
Each: TypeAlias = dict[str, npt.NDArray[np.float64]]
"""Metrics by name, a number for each query; NaN where a query does not have one."""


@dataclass(frozen=True)
class Some:
    """The metrics of some of a chunk's queries: their places, each metric, how many answers."""

    own: npt.NDArray[np.int64]
    each: Each
    answers: int


@dataclass(frozen=True)
class Judged:
    """What became of the queries of one type in a chunk, in their order.

    ``first`` is the number of the first, from 1 among all that are evaluated; ``query`` it itself.
    ``own`` of the parts are places among the type's queries in the chunk; ``reduced`` has those
    with answers that reduce to each simpler type. ``marks`` tell queries apart from others.
    """

    type: str
    formula: str
    query: Tree | Query
    first: int
    all: Some
    reduced: dict[str, Some]
    marks: npt.NDArray[np.uint32]
    left_out: int


@dataclass
class Judge:
    """A reasoner under evaluation, and how its scores are judged; see `evaluate`."""

    reasoner: Reasoner
    entity_count: int
    ties: str = "realistic"
    compat: str | None = None
    labels: Labels | None = None

    def chunk(self, samples: Sequence[Sample], first: int = 1) -> list[Judged]:
        """The queries by type; the first of them has this number.

        Raises QueryError, with the number of the query, for what cannot be evaluated.
        """
        _check(samples, self.entity_count, first)
        one = [sample.hard.shape[1] == 1 and self.compat is None for sample in samples]
        tally = Tally(
            [
                (s.easy[:, 0], s.hard[:, 0], s.lost[:, 0])
                for s, plain in zip(samples, one, strict=True)
                if plain
            ],
            self.entity_count,
        )
        places = np.cumsum(one) - 1
        others: dict[int, tuple[Metrics, Ranks]] = {}
        for at, found in self._scores(samples, first, tally, one, places):
            others[at] = found
        each = self._each(len(samples), np.flatnonzero(one), tally, others)
        ranks = self._ranks(len(samples), np.flatnonzero(one), tally, others)
        names = None if self.labels is None else list(self.labels(samples))
        return [self._judged(samples, own, first, each, ranks, names) for own in _by_type(samples)]

    def _scores(
        self,
        samples: Sequence[Sample],
        first: int,
        tally: Tally,
        one: Sequence[bool],
        places: npt.NDArray[np.int64],
    ) -> Iterator[tuple[int, tuple[Metrics, Ranks]]]:
        """Ask the reasoner; queries of one variable are tallied, the others judged at once."""
        queries = [sample.query for sample in samples]
        blocks = getattr(self.reasoner, "blocks_of", None)
        if blocks is None:
            given = scores_of(self.reasoner, queries)
            for at, sample in enumerate(samples):
                try:
                    scored = as_scored(next(given), sample.hard.shape[1], self.entity_count)
                    if one[at]:
                        tally.add(int(places[at]), scored.scores[0])
                    else:
                        yield at, judged(scored.scores, sample, self, scored.tuples)
                except KoplError as error:
                    raise _told(error, sample, first + at) from error
            next(given, None)  # says so when there are more
            return
        seen = np.zeros(len(samples), np.int64)
        for own, scores in blocks(queries):
            seen[list(own)] += 1
            free = samples[own[0]].hard.shape[1]
            try:
                checked = _checked(scores, (len(own), free, self.entity_count))
            except KoplError as error:
                raise _told(error, samples[own[0]], first + own[0]) from error
            if one[own[0]]:
                tallied(tally, [int(places[at]) for at in own], checked)
                continue
            array = np.asarray(checked if isinstance(checked, np.ndarray) else checked.cpu())
            for at, row in zip(own, array, strict=True):
                try:
                    yield at, judged(row, samples[at], self)
                except KoplError as error:
                    raise _told(error, samples[at], first + at) from error
        if (seen != 1).any():
            at = int(np.argmax(seen != 1))
            raise QueryError(f"query {first + at}: the reasoner scored it {int(seen[at])} times")

    def _each(
        self,
        count: int,
        plain: npt.NDArray[np.int64],
        tally: Tally,
        others: dict[int, tuple[Metrics, Ranks]],
    ) -> Each:
        found: Each = {}
        if len(plain):
            for key, values in tally.metrics(self.ties).items():
                found[key] = np.full(count, np.nan)
                found[key][plain] = values
        for at, (metrics, _) in others.items():
            for key, value in metrics.items():
                if key not in found:
                    found[key] = np.full(count, np.nan)
                found[key][at] = value
        return found

    def _ranks(
        self,
        count: int,
        plain: npt.NDArray[np.int64],
        tally: Tally,
        others: dict[int, tuple[Metrics, Ranks]],
    ) -> list[Ranks]:
        """The ranks of each query's hard answers, where they are needed."""
        found: list[Ranks] = [np.empty(0)] * count
        if self.labels is not None:
            ranks = tally.ranks(self.ties)
            for number, at in enumerate(plain.tolist()):
                found[at] = ranks[tally.hard.part(number)]
            for at, (_, own) in others.items():
                found[at] = own
        return found

    def _judged(
        self,
        samples: Sequence[Sample],
        own: list[int],
        first: int,
        each: Each,
        ranks: Sequence[Ranks],
        names: Sequence[Sequence[str]] | None,
    ) -> Judged:
        sample = samples[own[0]]
        mine = {key: values[own] for key, values in each.items()}
        mine = {key: values for key, values in mine.items() if not np.isnan(values).all()}
        answers = sum(len(samples[at].hard) for at in own)
        lacking = np.ones(len(own), np.bool_)
        for values in mine.values():
            lacking &= np.isnan(values)
        left_out = sum(
            self.compat == "paper" and bool(none) and len(samples[at].hard) > 0
            for at, none in zip(own, lacking, strict=True)
        )
        reduced: dict[str, Some] = {}
        if names is not None:
            reduced = _reduced(
                [samples[at] for at in own], [ranks[at] for at in own], [names[at] for at in own]
            )
        return Judged(
            sample.type,
            sample.formula,
            sample.query,
            first + own[0],
            Some(np.arange(len(own)), mine, answers),
            reduced,
            np.array([_mark(samples[at]) for at in own], np.uint32),
            left_out,
        )


def judged(
    scores: npt.NDArray[Any], sample: Sample, judge: Judge, tuples: Any = None
) -> tuple[Metrics, Ranks]:
    """The metrics of one query, and the rank of each hard answer (joint, for several variables)."""
    easy, hard, lost = sample.easy, sample.hard, sample.lost
    if judge.compat != "paper":
        return several_variables(scores, easy, hard, lost, ties=judge.ties, tuples=tuples)
    if len(scores) == 1:
        return one_variable_published(scores[0], easy[:, 0], hard[:, 0])
    return several_variables_published(scores, easy, hard)


def _told(error: KoplError, sample: Sample, number: int) -> QueryError:
    return QueryError(f"query {number} ({sample.type}): {error}")


def _checked(scores: Any, shape: tuple[int, int, int]) -> Any:
    """A block of scores, an array or a tensor; raises QueryError unless it is one of numbers."""
    if tuple(scores.shape) != shape:
        raise QueryError(
            f"the reasoner gave a block of shape {tuple(scores.shape)}; {shape} was expected: for"
            " each query a row for each free variable, a score for each entity"
        )
    if isinstance(scores, np.ndarray):
        if scores.dtype.kind not in "fiub":
            raise QueryError(f"the reasoner gave scores of type {scores.dtype}, not numbers")
        if scores.dtype.kind != "f":
            scores = scores.astype(np.float64)
    elif not scores.is_floating_point():
        scores = scores.double()
    wrong = scores != scores
    if bool(wrong.any()):
        entity = wrong.any(0).any(0).tolist().index(True)
        raise QueryError(f"the reasoner gave no number (NaN) for entity {entity}")
    return scores


def tallied(tally: Tally, own: Sequence[int], block: Any) -> None:
    """Add a (B, 1, E) block: arrays and tensors of this machine row by row, others as they are."""
    if not isinstance(block, np.ndarray):
        if block.device.type != "cpu":
            from cqa.models.reasoner import tally_block

            tally_block(tally, own, block[:, 0])
            return
        # NumPy knows no bfloat16.
        block = (block.float() if block.element_size() < 4 else block).numpy()
    for place, row in zip(own, block[:, 0], strict=True):
        tally.add(place, row)


def _by_type(samples: Sequence[Sample]) -> list[list[int]]:
    found: dict[str, list[int]] = {}
    for at, sample in enumerate(samples):
        found.setdefault(sample.type, []).append(at)
    return list(found.values())


def _mark(sample: Sample) -> int:
    """What tells the answers of a query from those of most others."""
    return zlib.crc32(sample.hard.tobytes(), zlib.crc32(sample.easy.tobytes()))


def _reduced(
    samples: Sequence[Sample], ranks: Sequence[Ranks], names: Sequence[Sequence[str]]
) -> dict[str, Some]:
    """By what hard answers reduce to: the queries with such answers, and the metrics of these."""
    own: dict[str, list[int]] = {}
    metrics: dict[str, list[Metrics]] = {}
    answers: dict[str, int] = {}
    for at, (sample, found, given) in enumerate(zip(samples, ranks, names, strict=True)):
        if len(given) != len(sample.hard):
            raise QueryError(f"{len(given)} reduced types for {len(sample.hard)} hard answers")
        prefix = "joint_" if sample.hard.shape[1] > 1 else ""
        for name in sorted(set(given)):
            part = found[[one == name for one in given]]
            own.setdefault(name, []).append(at)
            metrics.setdefault(name, []).append(ranked(part, prefix))
            answers[name] = answers.get(name, 0) + len(part)
    return {
        name: Some(
            np.array(own[name], np.int64),
            {key: np.array([one[key] for one in metrics[name]]) for key in metrics[name][0]},
            answers[name],
        )
        for name in own
    }


# --- queries that cannot be evaluated -----------------------------------------------------------


def _check(samples: Sequence[Sample], entity_count: int, first: int) -> None:
    """Raise QueryError unless queries of one type are of one formula and their answers hold."""
    formulas: dict[str, str] = {}
    for at, sample in enumerate(samples):
        if formulas.setdefault(sample.type, sample.formula) != sample.formula:
            error = other_formula(sample.formula, formulas[sample.type])
            raise _told(error, sample, first + at)
    plain = [sample for sample in samples if sample.hard.shape[1] == 1]
    if plain and not _hold(plain, entity_count):
        _check_each(samples, entity_count, first)
    if len(plain) < len(samples):
        _check_each(samples, entity_count, first)


def other_formula(mine: str, before: str) -> QueryError:
    """What is wrong where queries of one type have several formulas."""
    return QueryError(
        f"the type is {mine} here and {before} before; queries of one type are averaged, so that"
        " they must be of one formula"
    )


def _hold(samples: Sequence[Sample], entity_count: int) -> bool:
    """Whether all answers of queries with one variable are of the graph, and each listed once."""
    sizes = [len(sample.easy) + len(sample.hard) for sample in samples]
    listed = [part[:, 0] for sample in samples for part in (sample.easy, sample.hard)]
    flat = np.concatenate([*listed, *(sample.lost[:, 0] for sample in samples)]).astype(np.int64)
    if len(flat) and not 0 <= int(flat.min()) <= int(flat.max()) < entity_count:
        return False
    keys = flat[: sum(sizes)] + np.repeat(np.arange(len(samples)), sizes) * entity_count
    keys.sort()
    return not (keys[1:] == keys[:-1]).any()


def _check_each(samples: Sequence[Sample], entity_count: int, first: int) -> None:
    for at, sample in enumerate(samples):
        try:
            _check_answers(sample, entity_count)
        except KoplError as error:
            raise _told(error, sample, first + at) from error


def _check_answers(sample: Sample, entity_count: int) -> None:
    """Raise QueryError unless the answers are of the graph, and each is listed once."""
    for rows in (sample.easy, sample.hard, sample.lost):
        if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < entity_count:
            wrong = int(rows.max()) if int(rows.max()) >= entity_count else int(rows.min())
            raise QueryError(
                f"the answer {wrong} is no entity of the graph, which has {entity_count}; is it"
                " the graph that the queries are of?"
            )
    rows = np.concatenate([sample.easy, sample.hard])
    keys, counts = np.unique(packed(rows, entity_count), return_counts=True)
    if len(keys) < len(rows):
        twice = rows[packed(rows, entity_count) == keys[counts > 1][0]][0]
        shown = ", ".join(map(str, twice.tolist()))
        raise QueryError(f"the answer {shown} is listed twice; an answer is easy or hard, once")


# --- what hard answers reduce to ----------------------------------------------------------------


class Reductions:
    """What tells for queries of a graph's split what their hard answers reduce to.

    The names are those of `cqa.hardness.hardness`; "no answer" is what the full graph does not
    confirm, "skipped" every answer of a query that the published program skips.
    """

    def __init__(self, graph: Graph, split: str = "test", compat: str | None = None) -> None:
        self._told = Hardness(graph, split, compat)

    def __call__(self, samples: Sequence[Sample]) -> list[list[str]]:
        """The names of the hard answers of each query."""
        found = self._told.label([one.query for one in samples], [one.hard for one in samples])
        return [
            [
                kind.name if kind else "skipped" if at in found.skipped else "no answer"
                for kind in found.of(at)
            ]
            for at in range(len(samples))
        ]
