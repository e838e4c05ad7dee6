"""Execution-guided choice among predictions: what does not run, or has no single answer, goes.

`by_evidence` knows what was asked: several answers, one, yes or no. `PartialRuns` tells while a
program is written that one of its calls finds nothing.

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

from kb.arrays import EMPTY, Ids
from kopl.answer_forms import Asking
from kopl.denotation import Located, Outcome
from kopl.executor import Executor
from kopl.functions import AND, COUNT, FILTER_CONCEPT, FIND, FIND_ALL, OR, QUERY_ATTR, RELATE
from kopl.program import Call, post_order
from kopl.types import Type
from kopl_base.errors import KoplError

# What may be wrong with a prediction: running it raises an error, or its answer is not one string.
# By what is asked also: it denies what nothing is known of ("unknown"), there is none, or a single
# one where several are asked for.
Fault: TypeAlias = OneOf["fails", "empty", "several", "unknown", "none", "single"]
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

    def nodes(self, call: Call) -> Ids:
        """The nodes that a call gives; none where it fails or gives no set of them."""
        if self.finds_nothing(call):
            return EMPTY
        found = self._outcomes[call]
        return found.ids if isinstance(found, Located) else EMPTY

    def says_nothing(self, program: Call) -> bool:
        """Whether a program finds nothing, or counts or denies what nothing is known of.

        So is a count of 0 where what is counted has no such relation, or has it to things of
        another kind: the relation was hardly meant.
        """
        if self.finds_nothing(program):
            return True
        return self.denies(program) and any(map(self._is_unknown, post_order(program)))

    def denies(self, program: Call) -> bool:
        """Whether a program counts nothing, or gives "no"."""
        if program.function is not COUNT and program.function.output is not Type.TRUTH:
            return False
        try:
            return self._executor.outcome(program, self._outcomes).strings() in (["0"], ["no"])
        except KoplError:
            return False

    def is_series(self, program: Call) -> bool:
        """Whether a program looks up a key of one thing, which may have a value for each year."""
        if program.function is not QUERY_ATTR:
            return False
        [things] = program.inputs
        return len(self.nodes(things)) == 1

    def _is_unknown(self, call: Call) -> bool:
        """Whether nothing is known of what a call looks up, or two sets are never of one kind."""
        if call.function is AND:
            left, right = call.inputs
            return self._never_meet(left, right) or self._never_meet(right, left)
        looks_up = call.function is RELATE or call.function.output is Type.VALUES
        if call.function is FILTER_CONCEPT and call.inputs:
            looks_up = call.inputs[0].function is RELATE
        found = not any(map(self.finds_nothing, call.inputs))
        return looks_up and found and self.finds_nothing(call)

    def _never_meet(self, related: Call, named: Call) -> bool:
        """Whether what is named is not of a kind that a relation leads to, or is its other end."""
        while related.function is not RELATE:
            if not related.inputs or related.function in (AND, OR):
                return False
            related = related.inputs[0]
        if named.function is not FIND:
            return False
        if named in related.inputs:
            return True
        kb, (relation, direction) = self._executor.kb, related.arguments
        nodes = [node for node in kb.named(named.arguments[0]).tolist() if kb.is_entity(node)]
        concepts = {kb.name_of(concept) for node in nodes for concept in kb.concepts_of(node)}
        back = (relation, "backward" if direction == "forward" else "forward")
        return bool(concepts) and all(
            self.finds_nothing(
                Call(RELATE, (Call(FILTER_CONCEPT, (Call(FIND_ALL),), (concept,)),), back)
            )
            for concept in sorted(concepts)
        )


# --- what was asked for --------------------------------------------------------------------------


class AskingPrediction(Scored, Protocol):
    """A prediction that may say what is asked of its program."""

    @property
    def program(self) -> Call | None:
        """The program, None for a query that no program says."""

    @property
    def asking(self) -> Asking | None:
        """What is asked of it, None where the model does not say."""


AnyAsking = TypeVar("AnyAsking", bound=AskingPrediction)

# By how much less a prediction counts for what running it gave, beside one that gives what is asked
# for: so many times as probable must it be. What finds nothing comes behind all that is plausible.
COSTS: dict[Fault, float] = {
    "fails": 10_000,
    "empty": 1_000,
    "unknown": 100,
    "several": 10,
    "none": 2,
    "single": 2,
}


def by_evidence(
    predictions: Sequence[AnyAsking], run: Callable[[AnyAsking], Result], runs: PartialRuns
) -> Judgement[AnyAsking]:
    """The `plausible` predictions, judged by what running them gives and by what is asked.

    The one stands first that is the most probable after `COSTS`. What fails or finds nothing goes;
    so does, where a model does not say whether several answers are asked for, what has several.
    When all would go, the first stays.
    """
    judged: list[Judged[AnyAsking]] = []
    for rank, one in enumerate(plausible(predictions)):
        result, fault, reason = _outcome(one, run)
        if result is not None:
            fault, reason = _as_asked(one, result, fault, reason, runs)
        judged.append(Judged(one, rank, result, fault, reason))
    order = sorted(judged, key=lambda one: (-_counting(one), one.rank))
    kept = [one for one in order if not _goes(one)] or order[:1]
    places = {one.rank for one in kept}
    return Judgement(tuple(kept), tuple(one for one in order if one.rank not in places))


def _counting(judged: Judged[AnyAsking]) -> float:
    """The logarithm of the probability, less what the fault costs."""
    cost = math.log(COSTS[judged.fault]) if judged.fault else 0.0
    return judged.prediction.log_probability - cost


def _goes(judged: Judged[AnyAsking]) -> bool:
    is_told = judged.prediction.asking is not None
    return judged.fault in ("fails", "empty") or (judged.fault == "several" and not is_told)


def _as_asked(
    prediction: AskingPrediction,
    result: Result,
    fault: Fault | None,
    reason: str,
    runs: PartialRuns,
) -> tuple[Fault | None, str]:
    """The fault of a prediction that runs, by what is asked of it."""
    program, asking = prediction.program, prediction.asking
    if fault == "empty" or program is None:
        return fault, reason
    if runs.says_nothing(program):
        return "unknown", "nothing is known of what it looks up"
    if runs.denies(program):
        return "none", "there is none"
    if asking is None:
        return fault, reason
    if asking.several and fault is None:
        return "single", f"{reason}, and several are asked for"
    if asking.several or asking.form is not None or runs.is_series(program):
        return None, reason
    return fault, reason


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
