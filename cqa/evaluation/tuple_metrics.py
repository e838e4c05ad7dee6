"""How well scores rank the answers of a query with several free variables, in three ways.

The metrics of EFOk-CQA (2023). With A the answers, A^i what they have for variable i:

- marginal: for each variable the entities that are hard for it (in A^i, in no observed answer) are
  ranked among those outside A^i; the mean over the variables that have such entities.
- multiply: a hard tuple is a hit at K when each component has a marginal rank of K or better; its
  reciprocal rank is the geometric mean of its components'.
- joint: the position of a hard tuple in all of E^k, other answers left out. Where a reasoner scores
  tuples (`cqa.evaluation.reasoner.TupleScores`), by these scores; else by the sum of the
  components' ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cqa.errors import QueryError
from cqa.evaluation.joint_ranks import Order, check_size
from cqa.evaluation.metrics import (
    HITS,
    SHARE,
    Field,
    Metrics,
    Ranks,
    Scores,
    filtered_positions,
    positions,
    ranked,
)
from kb.arrays import Ids


@dataclass(frozen=True, eq=False)
class TupleScores:
    """Scores of some tuples of entities; every other tuple has the score ``rest``.

    ``tuples``: distinct rows, an (n, k) array; ``scores``: n numbers.
    """

    tuples: Ids
    scores: Scores
    rest: float = 0.0


def several_variables(
    scores: Scores,
    easy: Ids,
    hard: Ids,
    lost: Ids,
    *,
    ties: str = "realistic",
    tuples: TupleScores | None = None,
) -> tuple[Metrics, Ranks]:
    """The metrics of a query with k > 1 free variables, and the joint rank of each hard answer.

    ``scores`` is a (k, E) array; ``easy``, ``hard`` and ``lost`` are (n, k) arrays of distinct
    rows, as `cqa.evaluation.metrics.one_variable` says. Keys: marginal_mrr, marginal_hit@1, …,
    multiply_mrr, …, joint_mrr, … and entailment, the mean over the variables. Those that are not
    defined, as marginal ones may be, are absent. Raises QueryError where |E|^k is beyond 64 bits.
    """
    kept = without(easy, lost)
    columns = range(scores.shape[0])
    answers = np.concatenate([kept, hard])
    fields = [Field(scores[at], answers[:, at]) for at in columns]
    metrics: Metrics = {}
    joint = np.empty(0)
    if len(hard):
        metrics = _marginal(fields, kept, hard, ties)
        own = np.stack([fields[at].ranks(hard[:, at], ties) for at in columns])
        metrics |= _multiply(own)
        if tuples is None:
            joint = Order(scores).filtered(answers, len(kept), SHARE[ties])
        else:
            joint = scored_ranks(tuples, scores.shape[1], answers, len(kept), SHARE[ties])
        metrics |= ranked(joint, "joint_")
    if len(kept):
        listed = np.concatenate([easy, hard])
        shares = [
            np.mean(Field(scores[at], listed[:, at]).ranks(np.unique(kept[:, at]), ties) <= 1)
            for at in columns
        ]
        metrics["entailment"] = float(np.mean(shares))
    return metrics, joint


def _marginal(fields: list[Field], kept: Ids, hard: Ids, ties: str) -> Metrics:
    found = []
    for at, field in enumerate(fields):
        own = np.setdiff1d(hard[:, at], kept[:, at])
        if len(own):
            found.append(ranked(field.ranks(own, ties), "marginal_"))
    return {key: float(np.mean([one[key] for one in found])) for key in (found or [{}])[0]}


def _multiply(own: Ranks) -> Metrics:
    """From the marginal ranks of the hard tuples' components, a (k, n) array."""
    mean = np.exp(-np.log(own).mean(axis=0))
    metrics = {"multiply_mrr": float(mean.mean())}
    for bound in HITS:
        metrics[f"multiply_hit@{bound}"] = float(np.mean((own <= bound).all(axis=0)))
    return metrics


def scored_ranks(given: TupleScores, size: int, rows: Ids, answers: int, share: float) -> Ranks:
    """The rank of each row from ``answers`` on, by scores of tuples, all rows but itself left out.

    ``rows``: distinct tuples of entities below ``size``, an (n, k) array.
    """
    check_size(size, rows.shape[1])
    keys, listed = packed(rows, size), packed(given.tuples, size)
    order = np.argsort(listed, kind="stable")
    at = np.minimum(listed[order].searchsorted(keys), max(0, len(listed) - 1))
    own = np.full(len(rows), given.rest, np.float64)
    if len(listed):
        known = listed[order][at] == keys
        own[known] = given.scores[order][at[known]]
    others = np.sort(given.scores[~np.isin(listed, keys)].astype(np.float64))
    wanted = own[answers:]
    below, not_above = others.searchsorted(wanted, "left"), others.searchsorted(wanted, "right")
    above, alike = len(others) - not_above, not_above - below
    unlisted = size ** rows.shape[1] - len(np.union1d(keys, listed))
    above = above + np.where(given.rest > wanted, unlisted, 0)
    alike = alike + np.where(given.rest == wanted, unlisted, 0)
    found: Ranks = 1.0 + above + share * alike
    return found


def packed(rows: npt.NDArray[np.integer], size: int) -> npt.NDArray[np.int64]:
    """One number for each row of entities below ``size``."""
    keys = np.zeros(len(rows), np.int64)
    for column in rows.T:
        keys = keys * size + column
    return keys


def without(rows: Ids, others: Ids) -> Ids:
    """The rows that are not among others; both (n, k) arrays."""
    if not len(rows) or not len(others):
        return rows
    size = 1 + max(int(rows.max()), int(others.max()))
    return rows[~np.isin(packed(rows, size), packed(others, size))]


def several_variables_published(scores: Scores, easy: Ids, hard: Ids) -> tuple[Metrics, Ranks]:
    """The metrics of two free variables as EFOk-CQA's evaluator has them, faults included.

    Entities are put in one order, ties by their number. The joint position is the formula for an
    endless E. Marginal values are added up with wrong indices: of the second variable HIT@1 takes
    the MRR, HIT@3 the HIT@1, HIT@10 the HIT@3 besides the HIT@10 (so that values above 1 come
    out), and the MRR is half of the first variable's. A query whose variables do not both have hard
    entities is left out of the main table: it has no metrics here. Raises QueryError for k > 2.
    """
    if scores.shape[0] != 2:
        raise QueryError(
            f"the published formulas are for two free variables, not for {scores.shape[0]}"
        )
    answers = np.concatenate([easy, hard])
    places = np.stack([positions(row) for row in scores])
    # float32 in the published program; whole numbers here.
    first, second = places[0][answers[:, 0]], places[1][answers[:, 1]]
    total = first + second
    joint = filtered_positions(total * (total + 1) // 2 + first)[len(easy) :]
    marginal, own = [], []
    for at in range(2):
        entities = np.unique(answers[:, at])
        filtered = filtered_positions(places[at][entities])
        own.append(filtered[entities.searchsorted(hard[:, at])])
        fresh = ~np.isin(entities, easy[:, at])
        if fresh.any():
            marginal.append(ranked(filtered[fresh]))
    if len(marginal) < 2 or not len(hard):
        return {}, joint
    one, other = marginal
    metrics = {
        "marginal_mrr": one["mrr"] / 2,
        "marginal_hit@1": (one["hit@1"] + other["mrr"]) / 2,
        "marginal_hit@3": (one["hit@3"] + other["hit@1"]) / 2,
        "marginal_hit@10": (one["hit@10"] + other["hit@10"] + other["hit@3"]) / 2,
    }
    return metrics | _multiply(np.stack(own)) | ranked(joint, "joint_"), joint
