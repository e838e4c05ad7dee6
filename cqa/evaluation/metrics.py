"""How well scores rank the answers of a query: filtered ranks, MRR, HIT@K, RA-Oracle, entailment.

The definitions are those of EFO-1-QA and EFOk-CQA. An answer is ranked among the entities that are
not answers; entities of equal score are *ties*, and how they count is always said:

- "optimistic": before all that are tied with it;
- "pessimistic": behind them;
- "realistic": in the middle, the mean of both, which no constant can profit from.

Everything of one free variable is here; `cqa.evaluation.tuple_metrics` does several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cqa.errors import QueryError
from cqa.vocabularies import TIES
from kb.arrays import Ids

COMPAT = (None, "paper")
HITS = (1, 3, 10)

Scores: TypeAlias = npt.NDArray[np.floating[Any]]
"""A score for each entity, the higher the better."""
Ranks: TypeAlias = npt.NDArray[np.float64]
Metrics: TypeAlias = dict[str, float]

# How far into its ties an answer is put: nothing, half or all of them come first.
SHARE = {"optimistic": 0.0, "realistic": 0.5, "pessimistic": 1.0}


def check_ties(ties: str, compat: str | None = None) -> None:
    """Raise QueryError for a way to count ties, or a compatibility, that does not exist."""
    if ties not in TIES:
        raise QueryError(f"there are no {ties!r} ties; choose of {', '.join(TIES)}")
    if compat not in COMPAT:
        raise QueryError(f"compat is 'paper' or nothing, not {compat!r}")


class Field:
    """The scores of the entities that answers are ranked among, sorted once."""

    def __init__(self, scores: Scores, answers: Ids) -> None:
        """``scores``: one for each entity; ``answers``: the entities that are left out."""
        there = np.ones(len(scores), np.bool_)
        there[answers] = False
        self.scores = scores
        self.others = np.sort(scores[there])

    def ranks(self, entities: Ids, ties: str = "realistic") -> Ranks:
        """The rank of each entity, from 1, had it alone joined the field."""
        own = self.scores[entities]
        below = self.others.searchsorted(own, "left")
        not_above = self.others.searchsorted(own, "right")
        above = len(self.others) - not_above
        found: Ranks = 1.0 + above + SHARE[ties] * (not_above - below)
        return found


def ranks(scores: Scores, entities: Ids, answers: Ids, ties: str = "realistic") -> Ranks:
    """The filtered rank of each entity among those that are not answers.

    1 + the number of non-answers scored above, + none, half or all of those scored alike.

    >>> ranks(np.array([3.0, 1.0, 1.0, 1.0]), np.array([1]), np.array([0, 1])).tolist()
    [2.0]
    """
    check_ties(ties)
    return Field(scores, answers).ranks(entities, ties)


def ranked(found: Ranks, prefix: str = "") -> Metrics:
    """MRR and HIT@1, 3 and 10 of some ranks: means over the answers."""
    metrics = {f"{prefix}mrr": float(np.mean(1.0 / found))}
    for bound in HITS:
        metrics[f"{prefix}hit@{bound}"] = float(np.mean(found <= bound))
    return metrics


class Tally:
    """How the answers of several queries with one free variable stand among all entities.

    ``answers`` are each query's easy, hard and lost ones, as `one_variable` has them. The scores of
    each query are added in any order; metrics and ranks are those of all queries side by side.
    """

    def __init__(self, answers: Sequence[tuple[Ids, Ids, Ids]], entity_count: int) -> None:
        easy, hard, lost = ([one[at] for one in answers] for at in range(3))
        kept = [e[~np.isin(e, gone)] if len(gone) else e for e, _, gone in answers]
        self.entity_count = entity_count
        self.hard, self.kept, self.lost = Ragged(hard), Ragged(kept), Ragged(lost)
        # The scores of these; of what is no answer, how much is above and how much alike each hard
        # answer; the best score of what is neither easy nor hard, and how much that is.
        self.hard_scores = np.full(len(self.hard.flat), np.nan)
        self.kept_scores = np.full(len(self.kept.flat), np.nan)
        self.above = np.zeros(len(self.hard.flat), np.int64)
        self.alike = np.zeros(len(self.hard.flat), np.int64)
        self.best = np.full(len(answers), -np.inf)
        self.outside = entity_count - np.array([len(e) for e in easy], np.int64) - self.hard.sizes

    def add(self, at: int, scores: Scores) -> None:
        """Add the scores of the query at this place, a number for each entity."""
        hard, kept = self.hard.part(at), self.kept.part(at)
        own = scores[self.hard.flat[hard]]
        self.hard_scores[hard] = own
        self.kept_scores[kept] = scores[self.kept.flat[kept]]
        # Sorted with what is left out at the very end, where it is above nothing.
        field = scores.copy()
        field[self.hard.flat[hard]] = field[self.kept.flat[kept]] = -np.inf
        lost = self.lost.flat[self.lost.part(at)]
        if len(lost):
            without = field.copy()
            without[lost] = -np.inf
            self.best[at] = without.max(initial=-np.inf)
        field.sort()
        if not len(lost):
            self.best[at] = field[-1]
        below = field.searchsorted(own, "left")
        not_above = field.searchsorted(own, "right")
        self.above[hard] = len(field) - not_above
        self.alike[hard] = not_above - below
        if below.min(initial=1) == 0:
            left_out = hard.stop - hard.start + kept.stop - kept.start
            self.alike[hard] -= np.where(np.isneginf(own), left_out, 0)

    def ranks(self, ties: str = "realistic") -> Ranks:
        """The rank of each hard answer, query by query."""
        found: Ranks = 1.0 + self.above + SHARE[ties] * self.alike
        return found

    def metrics(self, ties: str = "realistic") -> dict[str, npt.NDArray[np.float64]]:
        """Each metric of each query; NaN where a query does not have it."""
        found = self.ranks(ties)
        metrics = {"mrr": self.hard.means(1.0 / found)}
        for bound in HITS:
            metrics[f"hit@{bound}"] = self.hard.means(found <= bound)
        metrics["ra_oracle"] = self.hard.means(self._taken(ties))
        best = self.best[self.kept.owner]
        first = self.kept_scores >= best if ties == "optimistic" else self.kept_scores > best
        metrics["entailment"] = self.kept.means(first | (self.outside[self.kept.owner] == 0))
        return metrics

    def _taken(self, ties: str) -> npt.NDArray[np.float64]:
        """The share of each hard answer that is among the best |hard| entities that are not easy.

        Those tied for the last places share what is left of them.
        """
        order = np.lexsort((-self.hard_scores, self.hard.owner))
        owner, scores = self.hard.owner[order], self.hard_scores[order]
        # Runs of hard answers of one query that score alike: where each begins, how long it is.
        starts = np.ones(len(order), np.bool_)
        starts[1:] = (owner[1:] != owner[:-1]) | (scores[1:] != scores[:-1])
        begin = np.flatnonzero(starts)
        run = np.cumsum(starts) - 1
        tied_hard = np.diff(np.append(begin, len(order)))[run]
        above = self.above[order] + begin[run] - self.hard.starts[owner]
        tied = self.alike[order] + tied_hard
        places = np.clip(self.hard.sizes[owner] - above, 0, None)
        if ties == "optimistic":
            share = np.minimum(places, tied_hard) / tied_hard
        elif ties == "pessimistic":
            share = np.clip(places - (tied - tied_hard), 0, tied_hard) / tied_hard
        else:
            share = np.minimum(places, tied) / tied
        found = np.empty(len(order))
        found[order] = share
        return found


class Ragged:
    """Arrays of several lengths behind each other: ``owner`` has for each item whose it is."""

    def __init__(self, parts: Sequence[Ids]) -> None:
        self.flat: Ids = np.concatenate([np.empty(0, np.int32), *parts])
        self.sizes = np.array([len(part) for part in parts], np.int64)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.owner = np.repeat(np.arange(len(parts)), self.sizes)
        self._ends = self.starts + self.sizes

    def part(self, at: int) -> slice:
        """Where the items of an array are."""
        return slice(int(self.starts[at]), int(self._ends[at]))

    def means(self, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """The mean of each array's values; NaN of an empty one."""
        sums = np.bincount(self.owner, values, len(self.sizes))
        found = np.full(len(self.sizes), np.nan)
        np.divide(sums, self.sizes, out=found, where=self.sizes > 0)
        return found


def one_variable(
    scores: Scores, easy: Ids, hard: Ids, lost: Ids, *, ties: str = "realistic"
) -> tuple[Metrics, Ranks]:
    """The metrics of one query with one free variable, and the rank of each hard answer.

    ``easy``, ``hard`` and ``lost`` are sets of entities: the answers on the observed graph, those
    that only the full graph has, and those of ``easy`` that the full graph takes back, which a hard
    answer is ranked among as they are no answers. Keys: mrr, hit@1, hit@3, hit@10, ra_oracle where
    there is a hard answer; entailment where an easy answer is not lost: the share of these that
    stand before everything that is neither easy nor hard.

    RA-Oracle is the share of the hard answers that a reader who knows their number finds at the
    top: the easy answers are dropped; of what is left, the best |hard| entities are looked at. Of
    those that are tied for the last places, a share that fits is taken: of hard answers first
    ("optimistic"), last ("pessimistic"), or by chance ("realistic").
    """
    check_ties(ties)
    tally = Tally([(easy, hard, lost)], len(scores))
    tally.add(0, scores if scores.dtype.kind == "f" else scores.astype(np.float64))
    metrics = {key: float(values[0]) for key, values in tally.metrics(ties).items()}
    return {key: value for key, value in metrics.items() if value == value}, tally.ranks(ties)


def one_variable_published(scores: Scores, easy: Ids, hard: Ids) -> tuple[Metrics, Ranks]:
    """`one_variable` as the published evaluators have it.

    Entities are put in one order, ties by their number, and all that is listed as easy is left out
    of the field, lost or not.
    """
    position = positions(scores)
    answers = np.concatenate([easy, hard])
    found = filtered_positions(position[answers])[len(easy) :]
    return (ranked(found) if len(hard) else {}), found


def positions(scores: Scores) -> npt.NDArray[np.int64]:
    """The position of each entity, from 0, in the order of their scores, ties by number."""
    order = np.argsort(-scores, kind="stable")
    found = np.empty(len(scores), np.int64)
    found[order] = np.arange(len(scores))
    return found


def filtered_positions(places: npt.NDArray[np.int64]) -> Ranks:
    """The ranks of answers, from 1, by their positions from 0 among all: other answers left out.

    Positions that stand twice, as faulty formulas give them, are counted in their order.
    """
    order = np.argsort(places, kind="stable")
    found = np.empty(len(places))
    found[order] = places[order] - np.arange(len(places)) + 1.0
    return found
