"""How well scores rank the answers of a query: filtered ranks, MRR, HIT@K, RA-Oracle, entailment.

The definitions are those of EFO-1-QA and EFOk-CQA. An answer is ranked among the entities that are
not answers; entities of equal score are *ties*, and how they count is always said:

- "optimistic": before all that are tied with it;
- "pessimistic": behind them;
- "realistic": in the middle, the mean of both, which no constant can profit from.

Everything of one free variable is here; `cqa.evaluation.tuple_metrics` does several.
"""

from __future__ import annotations

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


def ra_oracle(scores: Scores, easy: Ids, hard: Ids, ties: str = "realistic") -> float:
    """The share of the hard answers that a reader who knows their number finds at the top.

    The easy answers are dropped; of what is left, the best |hard| entities are looked at. Of those
    that are tied for the last places, a share that fits is taken: of hard answers first
    ("optimistic"), last ("pessimistic"), or by chance ("realistic").
    """
    check_ties(ties)
    there = np.ones(len(scores), np.bool_)
    there[easy] = False
    candidates = scores[there]
    wanted = len(hard)
    last = np.partition(candidates, len(candidates) - wanted)[len(candidates) - wanted]
    own = scores[hard]
    tied, tied_hard = int((candidates == last).sum()), int((own == last).sum())
    places = wanted - int((candidates > last).sum())
    taken = {
        "optimistic": min(places, tied_hard),
        "pessimistic": max(0, places - (tied - tied_hard)),
        "realistic": places * tied_hard / tied,
    }[ties]
    return (int((own > last).sum()) + taken) / wanted


def one_variable(
    scores: Scores, easy: Ids, hard: Ids, lost: Ids, *, ties: str = "realistic"
) -> tuple[Metrics, Ranks]:
    """The metrics of a query with one free variable, and the rank of each hard answer.

    ``easy``, ``hard`` and ``lost`` are sets of entities: the answers on the observed graph, those
    that only the full graph has, and those of ``easy`` that the full graph takes back, which a hard
    answer is ranked among as they are no answers. Keys: mrr, hit@1, hit@3, hit@10, ra_oracle where
    there is a hard answer; entailment where an easy answer is not lost: the share of these that
    stand before everything that is neither easy nor hard.
    """
    kept = easy[~np.isin(easy, lost)] if len(lost) else easy
    field = Field(scores, np.concatenate([kept, hard]))
    metrics: Metrics = {}
    found = field.ranks(hard, ties)
    if len(hard):
        metrics = ranked(found)
        metrics["ra_oracle"] = ra_oracle(scores, kept, hard, ties)
    if len(kept):
        outside = Field(scores, np.concatenate([easy, hard])) if len(lost) else field
        metrics["entailment"] = float(np.mean(outside.ranks(kept, ties) <= 1))
    return metrics, found


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
