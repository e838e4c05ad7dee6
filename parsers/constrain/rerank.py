"""Execution-guided choice among predictions: what does not run, or has no single answer, goes.

`PartialRuns` tells while a program is written that one of its calls finds nothing.

executor = Executor(kb)
judged = by_execution(predictions, lambda found: executor.run(found.program))
best = judged.kept[0].prediction
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar
from typing import Literal as OneOf

from kopl.denotation import Outcome
from kopl.executor import Executor
from kopl.program import Call
from kopl_base.errors import KoplError

# What may be wrong with a prediction: running it raises an error, or its answer is not one string.
Fault: TypeAlias = OneOf["fails", "empty", "several"]
FAULTS: tuple[Fault, ...] = ("fails", "empty", "several")


class Result(Protocol):
    """What running a prediction gives: a list of different strings."""

    @property
    def denotation(self) -> list[str]:
        """The strings."""


Prediction = TypeVar("Prediction")


@dataclass(frozen=True)
class Judged(Generic[Prediction]):
    """A prediction with what running it gave, or why that failed.

    ``rank`` is its place among the predictions, from 0; ``fault`` None for a single answer.
    """

    prediction: Prediction
    rank: int
    result: Result | None
    fault: Fault | None
    reason: str


@dataclass(frozen=True)
class Judgement(Generic[Prediction]):
    """The predictions that are kept, the best first, and those that are not."""

    kept: tuple[Judged[Prediction], ...]
    dropped: tuple[Judged[Prediction], ...]


def by_execution(
    predictions: Sequence[Prediction],
    run: Callable[[Prediction], Result],
    *,
    drop: Collection[Fault] = FAULTS,
    rerank: bool = True,
    at_least_one: bool = True,
) -> Judgement[Prediction]:
    """The predictions (the best first) judged by what running them gives.

    ``run`` gives a result with its ``denotation``, or raises a KoplError; any other error is one
    of the caller's. ``drop``: the faults for which a prediction goes. ``rerank``: faulty ones that
    stay come behind all others, those with several answers before empty ones before those that
    fail; otherwise all keep their places. ``at_least_one``: when all would go, the first of the
    least fault stays. Raises ValueError for an unknown fault.
    """
    if unknown := set(drop) - set(FAULTS):
        raise ValueError(f"unknown faults {sorted(unknown)}; there are {', '.join(FAULTS)}")
    judged = [
        Judged(prediction, rank, *_outcome(prediction, run))
        for rank, prediction in enumerate(predictions)
    ]
    order = sorted(judged, key=_severity) if rerank else judged
    kept = [one for one in order if one.fault is None or one.fault not in drop]
    if not kept and judged and at_least_one:
        kept = [min(judged, key=_severity)]
    places = {one.rank for one in kept}
    return Judgement(tuple(kept), tuple(one for one in judged if one.rank not in places))


class Scored(Protocol):
    """A prediction with the logarithm of its probability."""

    @property
    def log_probability(self) -> float:
        """The logarithm of the probability that the model gives it."""


AnyScored = TypeVar("AnyScored", bound=Scored)

# A prediction may take the place of a better one if it is at least one hundredth as probable.
# Anything that runs can be found far enough down: it answers, but not the question.
PLAUSIBLE = math.log(100)


def plausible(predictions: Sequence[AnyScored]) -> list[AnyScored]:
    """The predictions, the best first, that may take the place of the best one."""
    ranked = sorted(predictions, key=lambda one: -one.log_probability)
    return [one for one in ranked if one.log_probability >= ranked[0].log_probability - PLAUSIBLE]


class PartialRuns:
    """Runs parts of the programs that are considered for one question; no part runs twice."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._outcomes: dict[Call, Outcome] = {}
        self._failed: set[Call] = set()

    def finds_nothing(self, call: Call) -> bool:
        """Whether a call fails or gives an empty set."""
        if call in self._failed:
            return True
        try:
            return self._executor.outcome(call, self._outcomes).weight() == 0
        except KoplError:
            self._failed.add(call)
            return True


def _severity(judged: Judged[Prediction]) -> tuple[int, int]:
    faults = (None, *reversed(FAULTS))
    return faults.index(judged.fault), judged.rank


def _outcome(
    prediction: Prediction, run: Callable[[Prediction], Result]
) -> tuple[Result | None, Fault | None, str]:
    try:
        result = run(prediction)
    except KoplError as error:
        return None, "fails", f"it does not run: {error}"
    count = len(result.denotation)
    if count == 0:
        return result, "empty", "it has no answer"
    if count > 1:
        return result, "several", f"it has {count} answers"
    return result, None, "it has one answer"
