"""Scoring a parser by executing its programs: Tables 5 and 9 of the paper, and how far they get.

Intervals of shares are Wilson's (1927, "Probable inference, the law of succession, and statistical
inference"); of paired differences Newcombe's method 10 (1998, "Improved confidence intervals for
the difference between binomial proportions based on paired data"); the test is McNemar's, exact.
All follow from the counts alone: nothing is drawn at random.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

from kopl.errors import ParseError
from kopl.example import Asked, Example
from kopl.executor import Denoted
from kopl.sparql.errors import MissingPackageError
from kopl_base.errors import counted
from parsers.constrain.rerank import Judgement, PartialRuns, by_evidence
from parsers.evaluation.judging import PARTS, RULES, VERDICTS, JudgedExample, columns_of, judge
from parsers.languages import OutputLanguage, Prediction

LEVEL = 0.95
INTERVAL = "95 % Wilson score interval"
DIFFERENCE_INTERVAL = "95 % interval by Newcombe's method 10 for paired proportions"
DIFFERENCE_TEST = "McNemar's exact test, two-sided"

# The quantile of the normal distribution that leaves 2.5 % above it.
_Z = 1.959963984540054

PART = 128
NOTHING = Prediction("", float("-inf"), None, ParseError("nothing was written"))

# Shares that tell how far predictions get and how often the program itself is right.
SHARES: dict[str, Callable[[JudgedExample], bool]] = {
    "parses": lambda one: one.parses,
    "types": lambda one: one.types,
    "runs": lambda one: one.runs,
    "one answer": lambda one: one.count == 1,
    "same program": lambda one: one.same_program,
    "same program up to order": lambda one: one.same_form,
}
# Those that need a program to compare with.
OF_PROGRAMS = ("same program", "same program up to order")


class Predicts(Protocol):
    """What evaluation needs of a model."""

    language: OutputLanguage

    def predict(
        self, questions: Sequence[str], *, beams: int = 1, constrained: bool = True,
        guided: bool = False,
    ) -> list[list[Prediction]]:  # fmt: skip
        """For each question some predictions, the most probable first."""


class Judges(Protocol):
    """What says how sure answers are (`parsers.refusals.silence`)."""

    def sure(self, question: str, judgement: Judgement[Prediction]) -> float:
        """How sure the first one is that was kept of a beam, from 0 to 1."""


@dataclass(frozen=True)
class Share:
    """``count`` of ``of`` questions."""

    count: int
    of: int

    @property
    def value(self) -> float | None:
        """The share, from 0 to 1; None of no questions."""
        return self.count / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The lower and upper end of its Wilson interval; None of no questions."""
        return wilson(self.count, self.of) if self.of else None

    def to_json(self) -> dict[str, Any]:
        """The count, the share and its interval as plain numbers."""
        low, high = self.interval or (None, None)
        return {"count": self.count, "of": self.of, "share": self.value, "low": low, "high": high}


def wilson(count: int, of: int) -> tuple[float, float]:
    """The Wilson score interval at `LEVEL` of a share; raises ValueError for no share."""
    if not 0 <= count <= of or of == 0:
        raise ValueError(f"{count} of {of} is no share")
    share, square = count / of, _Z * _Z
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = _Z / (1 + square / of) * math.sqrt(share * (1 - share) / of + square / (4 * of * of))
    # Rounding must not leave 0 or 1 outside where nothing or all was counted.
    return (max(0.0, middle - half) if count else 0.0), (
        min(1.0, middle + half) if count < of else 1.0
    )


@dataclass(frozen=True)
class Table:
    """Execution accuracy by one answer rule: overall, and for the columns of each part."""

    overall: Share
    parts: dict[str, dict[str, Share]]

    def to_json(self) -> dict[str, Any]:
        """The table as plain numbers."""
        parts = {
            part: {column: share.to_json() for column, share in columns.items()}
            for part, columns in self.parts.items()
        }
        return {"overall": self.overall.to_json(), **parts}


@dataclass(frozen=True)
class Report:
    """The judged predictions of one parser, in the order of the examples, and their scores."""

    judged: list[JudgedExample] = field(repr=False)
    seen_answers: frozenset[str] = field(repr=False)

    @cached_property
    def compared(self) -> list[JudgedExample]:
        """Those whose questions say what is right; the others are only predicted."""
        return [one for one in self.judged if one.compared]

    def confidences(self, fitted: Callable[[float], float] | None) -> list[float]:
        """Of those compared: how sure they are, else what was ``fitted`` to their probability."""
        return [
            one.sure if one.sure is not None
            else fitted(one.prediction.probability) if fitted else one.prediction.probability
            for one in self.compared
        ]  # fmt: skip

    @property
    def accuracy(self) -> float:
        """Execution accuracy by the default rule (0 of none). What failed is never right."""
        return self.share(RULES["default"], among=self.compared).value or 0.0

    def share(
        self, holds: Callable[[JudgedExample], bool], among: Iterable[JudgedExample] | None = None
    ) -> Share:
        """Of how many of the predictions something holds."""
        chosen = self.judged if among is None else list(among)
        return Share(sum(map(holds, chosen)), len(chosen))

    def table(self, rule: str = "default") -> Table:
        """Execution accuracy by one of `RULES`, overall and by the columns of `PARTS`."""
        holds = RULES[rule]
        parts = {
            part: {
                column: self.share(holds, among=found[column]) for column in PARTS[part]
            }
            for part, found in self._columns.items()
        }  # fmt: skip
        return Table(self.share(holds, among=self.compared), parts)

    @cached_property
    def _columns(self) -> dict[str, dict[str, list[JudgedExample]]]:
        found: dict[str, dict[str, list[JudgedExample]]] = {
            part: {column: [] for column in columns} for part, columns in PARTS.items()
        }
        for one in self.compared:
            for part, columns in columns_of(one, self.seen_answers).items():
                for column in columns:
                    found[part][column].append(one)
        return found

    def shares(self) -> dict[str, Share]:
        """How far the predictions get, and how often the program itself is right."""
        with_programs = [one for one in self.judged if one.example.program is not None]
        return {
            name: self.share(holds, among=with_programs if name in OF_PROGRAMS else self.judged)
            for name, holds in SHARES.items()
        }

    def verdicts(self) -> dict[str, int]:
        """How many predictions end in which way; together they are all.

        "not compared" is left out where there are none such.
        """
        counts = Counter(one.verdict for one in self.judged)
        return {one: counts[one] for one in VERDICTS if one != "not compared" or counts[one]}

    def notes(self) -> list[str]:
        """What a reader of the scores must know of the questions and of failed runs."""
        found = []
        if bare := len(self.judged) - len(self.compared):
            found.append(
                f"{bare} of {len(self.judged)} questions have neither a program nor an answer: they"
                " are predicted, not compared"
            )
        if unknown := sum(one.example.program is None for one in self.compared):
            found.append(
                f"{counted(unknown, 'question has', 'questions have')} an answer and no program:"
                " counted overall and for zero-shot, in no other column"
            )
        if golden := sum(one.gold is None for one in self.compared):
            found.append(
                f"{counted(golden, 'question stores', 'questions store')} no answer, nor does the"
                " program have a single one on this knowledge base: never right"
            )
        forms = [one for one in self.compared if _reads_form(one)]
        if forms:
            found.append(
                f"{counted(len(forms), 'question wants', 'questions want')} yes or no of what the"
                " program denotes: read so for a model that does not say what is asked"
            )
        missing = [one for one in self.judged if one.error_kind == MissingPackageError.kind]
        if missing:
            were = counted(len(missing), "query was", "queries were")
            found.append(f"{were} not run: {missing[0].error}")
        return found

    def to_json(self) -> dict[str, Any]:
        """All scores as plain numbers."""
        return {
            "questions": len(self.judged),
            "compared": len(self.compared),
            "accuracy": {rule: self.table(rule).to_json() for rule in RULES},
            **{name: share.to_json() for name, share in self.shares().items()},
            "verdicts": self.verdicts(),
        }


def _reads_form(judged: JudgedExample) -> bool:
    """Whether a prediction that does not say what is asked was read by the question's form."""
    example, prediction = judged.example, judged.prediction
    has_form = isinstance(example, Example) and example.answer_form is not None
    return has_form and judged.runs and prediction.asking is None


def evaluate(
    model: Predicts, examples: Sequence[Asked], seen_answers: Iterable[str],
    advance: Callable[[int], None] = lambda count: None,
    *, beams: int = 1, constrained: bool = True, guided: bool = False,
    silence: Judges | None = None,
) -> Report:  # fmt: skip
    """Predict for every question, run the best prediction and compare its answer.

    ``guided``: the best is the first by what running them gives (`by_evidence`). Where the best of
    a beam finds nothing, a model that writes programs call by call searches once more without calls
    that find nothing. ``silence`` says then how sure the best is.
    """
    # Questions of similar length go together; the judgements come in the order of the examples.
    order = sorted(range(len(examples)), key=lambda n: (len(examples[n].question), n))
    judged: list[JudgedExample | None] = [None] * len(examples)
    for begin in range(0, len(order), PART):
        part = order[begin : begin + PART]
        questions = [examples[n].question for n in part]
        found = model.predict(questions, beams=beams, constrained=constrained, guided=guided)
        for n, predictions in zip(part, found, strict=True):
            if not guided or not predictions:
                best, outcome, sure = (predictions or [NOTHING])[0], None, None
            else:
                language = model.language
                runs = PartialRuns(language.executor)
                found_out = by_evidence(predictions, language.run, runs)
                first = found_out.kept[0]
                best = first.prediction
                outcome = first.result if isinstance(first.result, Denoted) else None
                sure = silence.sure(examples[n].question, found_out) if silence else None
            one = judge(examples[n], best, model.language, outcome)
            judged[n] = one if sure is None else replace(one, sure=sure)
        advance(len(part))
    return Report([one for one in judged if one is not None], frozenset(seen_answers))


@dataclass(frozen=True)
class Difference:
    """Which of the same questions two parsers have right: both, one alone, neither."""

    both: int
    only_first: int
    only_second: int
    neither: int

    @classmethod
    def of(cls, first: Sequence[bool], second: Sequence[bool]) -> Difference:
        """Counted from what is right, question by question; raises ValueError for two lengths."""
        pairs = list(zip(first, second, strict=True))
        return cls(*(pairs.count(pair) for pair in _PAIRS))

    @property
    def questions(self) -> int:
        """How many questions there are."""
        return self.both + self.only_first + self.only_second + self.neither

    @property
    def value(self) -> float:
        """The accuracy of the second less that of the first (0 of no questions)."""
        gained = self.only_second - self.only_first
        return gained / self.questions if self.questions else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The lower and upper end of the difference's interval; all there can be of none."""
        if not self.questions:
            return -1.0, 1.0
        count = self.questions
        first, second = self.both + self.only_first, self.both + self.only_second
        share_1, share_2 = first / count, second / count
        low_1, high_1 = wilson(first, count)
        low_2, high_2 = wilson(second, count)
        below = _apart(share_2 - low_2, high_1 - share_1, self._correlation)
        above = _apart(high_2 - share_2, share_1 - low_1, self._correlation)
        return self.value - below, self.value + above

    @property
    def p_value(self) -> float:
        """How probable so uneven a split of the disagreements is, if both were equally good."""
        disagreements = self.only_first + self.only_second
        fewer = min(self.only_first, self.only_second)
        term = total = 1  # binomial coefficients, exactly
        for number in range(fewer):
            term = term * (disagreements - number) // (number + 1)
            total += term
        return min(1.0, 2 * total / (1 << disagreements))

    @property
    def _correlation(self) -> float:
        """The phi coefficient of the two (0 where one of them has all right, or all wrong).

        Where it is positive, it is corrected for continuity, as the method says.
        """
        count = self.questions
        first, second = self.both + self.only_first, self.both + self.only_second
        product = first * (count - first) * second * (count - second)
        if not product:
            return 0.0
        cross: float = self.both * self.neither - self.only_first * self.only_second
        if cross > 0:
            cross = max(0.0, cross - count / 2)
        return cross / math.sqrt(product)

    def to_json(self) -> dict[str, Any]:
        """The counts, the difference, its interval and the test as plain numbers."""
        low, high = self.interval
        return {
            "both right": self.both,
            "only the first right": self.only_first,
            "only the second right": self.only_second,
            "neither right": self.neither,
            "difference": self.value,
            "low": low,
            "high": high,
            "p": self.p_value,
        }


_PAIRS = ((True, True), (True, False), (False, True), (False, False))


def _apart(one: float, other: float, correlation: float) -> float:
    squared = one * one - 2 * correlation * one * other + other * other
    return math.sqrt(max(0.0, squared))
