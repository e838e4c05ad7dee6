"""Running programs on a knowledge base: denotations, answers, traces, limits, batches."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from kb import KnowledgeBase
from kopl.denotation import Outcome, Words
from kopl.errors import LimitError, ProgramError
from kopl.hints import hints_for
from kopl.meaning import MEANINGS, Context
from kopl.program import Call
from kopl.text import MAX_DEPTH, read
from kopl.typecheck import Step, check, typed_arguments

if TYPE_CHECKING:
    from kopl.evidence import Evidence

State = Literal["unique", "empty", "several"]
Program = str | Sequence[Any] | Call

# How much a batch may keep for sharing: numbers held by the outcomes of shared calls.
SHARED_WEIGHT = 20_000_000


@dataclass(frozen=True)
class Limits:
    """What a program may use: seconds, ids (or facts) held by one call, calls on one path.

    None means no limit. Time and ids are looked at after every call, so a program is over its time
    by one call at most.
    """

    seconds: float | None = None
    ids: int | None = None
    depth: int = MAX_DEPTH


@dataclass(frozen=True)
class TraceStep:
    """What one call gave: its number in post-order, its text, how many, and the first of them.

    ``facts`` are the first facts that the answer rests on and the call uses, where the evidence was
    asked for.
    """

    number: int
    function: str
    inputs: tuple[int, ...]
    arguments: tuple[str, ...]
    count: int
    shown: list[str]
    facts: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The call with its inputs by number, such as ``Relate(#0, capital, forward)``."""
        parts = [f"#{at}" for at in self.inputs] + [repr(text) for text in self.arguments]
        return f"{self.function}({', '.join(parts)})"


@dataclass(frozen=True)
class Denoted:
    """The strings that running something gave, after ``ms`` milliseconds.

    ``trace`` has the values of a program's calls, where they were asked for.
    """

    denotation: list[str]
    ms: float
    trace: list[TraceStep] | None = field(default=None, repr=False)

    @property
    def state(self) -> State:
        """Whether the denotation has exactly one string, none or several."""
        return "unique" if len(self.denotation) == 1 else "several" if self.denotation else "empty"

    @property
    def answer(self) -> str | None:
        """The only string of the denotation, or None when it has none or several."""
        return self.denotation[0] if len(self.denotation) == 1 else None

    def to_json(self) -> dict[str, Any]:
        """The object that commands print with ``--json``."""
        return {
            "denotation": self.denotation,
            "answer": self.answer,
            "state": self.state,
            "ms": round(self.ms, 3),
        }


@dataclass(frozen=True)
class Result(Denoted):
    """What a program denotes. ``ms`` runs from the program's text to the printed denotation.

    ``evidence`` has the facts that the answer rests on, where they were asked for.
    """

    program: Call = field(kw_only=True)
    evidence: Evidence | None = field(default=None, repr=False, compare=False, kw_only=True)
    kb: KnowledgeBase | None = field(default=None, repr=False, compare=False, kw_only=True)

    @cached_property
    def hints(self) -> list[str]:
        """For names of the program that the knowledge base does not have, what may be meant."""
        return hints_for(self.kb, self.program) if self.kb is not None else []


class Executor:
    """Runs programs on one knowledge base; may be shared between threads.

    >>> executor = Executor(kb.load("world"))
    >>> executor.run('QueryName(Relate(Find("Norway"), "capital", "forward"))').answer
    'Oslo'

    ``strict`` turns doubtful comparisons into ExecutionError (docs/language.md, "What comes
    back").
    """

    def __init__(
        self, kb: KnowledgeBase, *, strict: bool = False, limits: Limits | None = None
    ) -> None:
        self.kb, self.strict = kb, strict
        self.limits = limits or Limits()
        self._context = Context(kb, strict)

    def run(self, program: Program, *, trace: bool | int = False, evidence: bool = False) -> Result:
        """The denotation of a program in any spelling.

        ``trace`` adds what every call gave (a number: how many of each are shown, else 10), and
        ``evidence`` the facts that the answer rests on. Raises ParseError, TypingError,
        ExecutionError or LimitError.
        """
        begin = time.perf_counter()
        call = read(program, max_depth=self.limits.depth)
        checked = check(call)
        outcomes = self._outcomes(checked, begin, None)
        denotation = outcomes[-1].strings()
        ms = (time.perf_counter() - begin) * 1000
        found = None
        if evidence:
            from kopl.evidence import evidence_of

            found = evidence_of(self.kb, checked, outcomes)
        shown = 10 if trace is True else int(trace)
        steps = _trace(checked, outcomes, shown, found) if trace else None
        return Result(denotation, ms, steps, program=call, evidence=found, kb=self.kb)

    def evidence(self, program: Program) -> Evidence:
        """The facts that the answer of a program rests on; raises what `run` raises."""
        found = self.run(program, evidence=True).evidence
        assert found is not None
        return found

    def run_many(
        self, programs: Iterable[Program | ProgramError]
    ) -> Iterator[Result | ProgramError]:
        """The results in order; a program that fails gives its error and the rest go on.

        An error in place of a program (one that a reader met) is handed on.

        Equal calls of different programs are executed once, so ``ms`` of a later program does not
        hold what an earlier one paid.
        """
        shared: dict[Call, Outcome] = {}
        weight = 0
        for program in programs:
            if isinstance(program, ProgramError):
                yield program
                continue
            begin = time.perf_counter()
            try:
                call = read(program, max_depth=self.limits.depth)
                outcomes = self._outcomes(check(call), begin, shared)
                denotation = outcomes[-1].strings()
            except ProgramError as error:
                yield error
                continue
            weight += sum(outcome.weight() for outcome in outcomes)
            if weight > SHARED_WEIGHT:
                shared.clear()
                weight = 0
            ms = (time.perf_counter() - begin) * 1000
            yield Result(denotation, ms, program=call, kb=self.kb)

    def close(self) -> None:
        """Nothing is held but the knowledge base; engines elsewhere hold processes."""

    def denote(self, program: Program) -> list[str]:
        """The denotation alone."""
        return self.run(program).denotation

    def outcome(self, call: Call, shared: dict[Call, Outcome]) -> Outcome:
        """What a well-typed call gives, for those who run many programs with calls in common.

        ``shared`` keeps what calls gave, and grows. Types and limits are not checked here. Raises
        TypingError for a constant that cannot be read, and ExecutionError.
        """
        found = shared.get(call)
        if found is None:
            inputs = [self.outcome(given, shared) for given in call.inputs]
            meaning = MEANINGS[call.function.name]
            found = shared[call] = meaning(self._context, *inputs, *typed_arguments(call))
        return found

    def _outcomes(
        self, steps: list[Step], begin: float, shared: dict[Call, Outcome] | None
    ) -> list[Outcome]:
        """What every step gives, in order; ``shared`` holds outcomes of calls seen before."""
        outcomes: list[Outcome] = []
        context, limits = self._context, self.limits
        limited = limits.seconds is not None or limits.ids is not None
        for step in steps:
            outcome = shared.get(step.call) if shared is not None else None
            if outcome is None:
                inputs = [outcomes[at] for at in step.inputs]
                try:
                    outcome = MEANINGS[step.function.name](context, *inputs, *step.arguments)
                except ProgramError as error:
                    raise type(error)(error.message, len(outcomes)) from None
                if shared is not None:
                    shared[step.call] = outcome
            if limited:
                self.enforce(outcome, begin, len(outcomes))
            outcomes.append(outcome)
        return outcomes

    def enforce(self, outcome: Outcome, begin: float, number: int) -> None:
        """Raise LimitError where the call of that number gave too much, or took too long.

        ``begin`` is when its program began, by `time.perf_counter`.
        """
        limits = self.limits
        if limits.ids is not None and outcome.weight() > limits.ids:
            raise LimitError(f"it gives {outcome.weight()} ids; the limit is {limits.ids}", number)
        if limits.seconds is not None and time.perf_counter() - begin > limits.seconds:
            raise LimitError(f"the program took longer than {limits.seconds:g} s", number)


def _trace(
    steps: list[Step], outcomes: list[Outcome], shown: int, evidence: Evidence | None
) -> list[TraceStep]:
    result = []
    for number, (step, outcome) in enumerate(zip(steps, outcomes, strict=True)):
        strings = outcome.strings() if len(outcome) <= 1000 or isinstance(outcome, Words) else None
        if strings is None:
            # A large set: name only the first of it, the rest is not shown anyway.
            strings = _first_strings(outcome, shown)
        result.append(
            TraceStep(
                number,
                step.function.name,
                step.inputs,
                step.call.arguments,
                len(outcome),
                strings[:shown],
                tuple(fact.text for fact in islice(evidence.facts(number), shown))
                if evidence
                else (),
            )
        )
    return result


def _first_strings(outcome: Outcome, shown: int) -> list[str]:
    from kopl.denotation import Located, Values

    if isinstance(outcome, Located):
        return outcome.kb.names(outcome.ids[:shown])
    assert isinstance(outcome, Values)
    return outcome.kb.value_texts(outcome.numbers[:shown].tolist())
