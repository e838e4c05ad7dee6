"""Scoring a parser by executing its programs: Tables 5 and 9 of the paper, and how far they get."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from kopl.errors import ParseError
from kopl.example import Asked
from kopl.executor import Denoted
from kopl.sparql.errors import MissingPackageError
from kopl_base.wording import counted
from parsers.constrain.rerank import by_execution, plausible
from parsers.languages import Language
from parsers.prediction import Prediction
from parsers.scoring import PARTS, RULES, VERDICTS, Judged, columns_of, judge, skills_of
from parsers.scoring_statistics import Share

PART = 128
NOTHING = Prediction("", float("-inf"), None, ParseError("nothing was written"))

# Shares that tell how far predictions get and how often the program itself is right.
SHARES: dict[str, Callable[[Judged], bool]] = {
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

    language: Language

    def predict(
        self, questions: Sequence[str], *, beams: int = 1, constrained: bool = True,
        guided: bool = False,
    ) -> list[list[Prediction]]:  # fmt: skip
        """For each question some predictions, the most probable first."""


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

    judged: list[Judged] = field(repr=False)
    seen_answers: frozenset[str] = field(repr=False)

    @cached_property
    def compared(self) -> list[Judged]:
        """Those whose questions say what is right; the others are only predicted."""
        return [one for one in self.judged if one.compared]

    @property
    def accuracy(self) -> float:
        """Execution accuracy by the default rule (0 of none). What failed is never right."""
        return self.share(RULES["default"], among=self.compared).value or 0.0

    def share(
        self, holds: Callable[[Judged], bool], among: Iterable[Judged] | None = None
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
    def _columns(self) -> dict[str, dict[str, list[Judged]]]:
        found: dict[str, dict[str, list[Judged]]] = {
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


def evaluate(
    model: Predicts, examples: Sequence[Asked], seen_answers: Iterable[str],
    advance: Callable[[int], None] = lambda count: None,
    *, beams: int = 1, constrained: bool = True, guided: bool = False,
) -> Report:  # fmt: skip
    """Predict for every question, run the best prediction and compare its answer.

    ``guided``: the best is the first of the `plausible` ones that has exactly one answer, if one
    has. Where the best of a beam finds nothing, a model that writes programs call by call searches
    once more without calls that find nothing.
    """
    # Questions of similar length go together; the judgements come in the order of the examples.
    order = sorted(range(len(examples)), key=lambda n: (len(examples[n].question), n))
    judged: list[Judged | None] = [None] * len(examples)
    for begin in range(0, len(order), PART):
        part = order[begin : begin + PART]
        questions = [examples[n].question for n in part]
        found = model.predict(questions, beams=beams, constrained=constrained, guided=guided)
        for n, predictions in zip(part, found, strict=True):
            best, outcome = _best(predictions, model.language, guided)
            judged[n] = judge(examples[n], best, model.language, outcome)
        advance(len(part))
    return Report([one for one in judged if one is not None], frozenset(seen_answers))


def _best(
    predictions: list[Prediction], language: Language, guided: bool
) -> tuple[Prediction, Denoted | None]:
    """The prediction that counts, and what running it gave where that is known already."""
    if not predictions:
        return NOTHING, None
    if not guided:
        return predictions[0], None
    chosen = by_execution(plausible(predictions), language.run).kept[0]
    return chosen.prediction, chosen.result if isinstance(chosen.result, Denoted) else None


__all__ = [
    "Judged", "Predicts", "Report", "Table", "evaluate", "judge", "skills_of",
]  # fmt: skip
