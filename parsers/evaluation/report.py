"""What an evaluation found: one or several runs on the same questions, beside the paper."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

from kopl.answers import published_text
from kopl.example import Asked
from kopl_base.errors import KoplError
from kopl_base.stream import writing
from parsers.evaluation.accuracy import (
    DIFFERENCE_INTERVAL,
    DIFFERENCE_TEST,
    INTERVAL,
    Difference,
    Report,
)
from parsers.evaluation.confidence import Calibration, Decoding, Temperature
from parsers.evaluation.coverage import SelectiveRisk
from parsers.evaluation.judging import HOPS, SKILLS

# What stands for the answer of a prediction that has none; the published programs for queries write
# it, too. Those for programs write "no", which is the right answer of some questions.
NO_ANSWER = "None"
_LINE_ENDS = re.compile(r"[\r\n]+")


class EvaluationError(KoplError):
    """Runs that cannot be evaluated together, or outputs that cannot be written."""

    kind = "evaluation"


@dataclass(frozen=True)
class ScoredRun:
    """A run and its report; ``temperature`` is None where none could be had."""

    name: str
    decoding: Decoding
    report: Report = field(repr=False)
    temperature: Temperature | None = None
    remarks: tuple[str, ...] = ()

    @cached_property
    def calibration(self) -> Calibration:
        """How far the confidences are from what is right."""
        return Calibration.of(self.report, self.temperature)

    @cached_property
    def selective(self) -> SelectiveRisk:
        """What staying silent below a confidence gains."""
        fitted = self.temperature.confidence if self.temperature else None
        right = [one.right for one in self.report.compared]
        return SelectiveRisk.of(self.report.confidences(fitted), right)

    def confidence(self, number: int) -> float:
        """The confidence of a prediction, calibrated where a temperature is known."""
        one = self.report.judged[number]
        if one.sure is not None:
            return one.sure
        probability = one.prediction.probability
        return self.temperature.confidence(probability) if self.temperature else probability

    @property
    def notes(self) -> list[str]:
        """What a reader of the scores must know."""
        calibration = [self.temperature.note] if self.temperature and self.temperature.note else []
        return [*self.report.notes(), *calibration, *self.remarks]

    def worst(self, count: int) -> list[int]:
        """The numbers of the questions that it has wrong, the most confident first."""
        judged = self.report.judged
        wrong = [n for n, one in enumerate(judged) if one.compared and not one.right]
        return sorted(wrong, key=lambda n: (-self.confidence(n), n))[:count]

    def to_json(self) -> dict[str, Any]:
        """All scores as plain numbers."""
        return {
            "run": self.name,
            "decoding": asdict(self.decoding),
            **self.report.to_json(),
            "calibration": {
                "temperature": None if self.temperature is None else asdict(self.temperature),
                **self.calibration.to_json(),
            },
            "selective": self.selective.to_json(),
            "notes": self.notes,
        }


@dataclass(frozen=True)
class Comparison:
    """Runs on the same questions; ``data`` says where these came from."""

    data: str
    runs: Sequence[ScoredRun]

    def differences(self) -> list[tuple[ScoredRun, ScoredRun, Difference]]:
        """The first run beside each other one, question by question, by the default rule."""
        first, *others = self.runs
        right = [one.right for one in first.report.compared]
        return [
            (first, other, Difference.of(right, [one.right for one in other.report.compared]))
            for other in others
        ]

    def to_json(self) -> dict[str, Any]:
        """Everything as plain numbers: what ``kopl eval --json`` prints."""
        return {
            "data": self.data,
            "intervals": INTERVAL,
            "runs": [run.to_json() for run in self.runs],
            "differences": [
                {"first": first.name, "second": second.name, **found.to_json()}
                for first, second, found in self.differences()
            ],
            "difference intervals": DIFFERENCE_INTERVAL,
            "difference test": DIFFERENCE_TEST,
            "published, percent": [row.to_json() for row in PUBLISHED],
        }

    def lines(self) -> Iterator[dict[str, Any]]:
        """A line of a predictions file for each question and run."""
        for run in self.runs:
            for number, one in enumerate(run.report.judged):
                yield {"run": run.name, **one.to_json(), "confidence": run.confidence(number)}


def write_predictions(path: Path, comparison: Comparison) -> int:
    """Write the predictions as JSON lines, and return how many; raises WriteError."""
    with writing(path) as file:
        for line in comparison.lines():
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return sum(len(run.report.judged) for run in comparison.runs)


def write_answers(path: Path, run: ScoredRun) -> int:
    """Write the first answer of each prediction, a line each, as KQA Pro's leaderboard takes them.

    Numbers are spelled as the programs published with it print them; a prediction without an answer
    is the line `NO_ANSWER`. Returns how many lines it wrote; raises WriteError.
    """
    with writing(path) as file:
        for one in run.report.judged:
            answer = NO_ANSWER if one.first is None else published_text(one.first)
            file.write(_LINE_ENDS.sub(" ", answer) + "\n")
    return len(run.report.judged)


def same_questions(first: Sequence[Asked], second: Sequence[Asked], sources: str) -> None:
    """Raise EvaluationError, naming the first difference, unless the examples are the same."""
    for number, (one, other) in enumerate(zip_longest(first, second), 1):
        if one != other:
            raise EvaluationError(
                f"{sources}: the runs have questions of their own, which differ from question"
                f" {number} on; say with --data FILE on which to compare them"
            )


# --- published figures, declared once, each with its source. They were measured on KQA Pro's own
# test questions, so beside other questions they are for orientation only.

_KQA_PRO = (
    "Cao et al. (2022), KQA Pro: A Dataset with Explicit Compositional Programs for Complex"
    " Question Answering over Knowledge Base, ACL"
)
TABLE_5 = f"{_KQA_PRO}, Table 5"
TABLE_9 = f"{_KQA_PRO}, Table 9"
LATER = "later work, as its authors report it"


@dataclass(frozen=True)
class Published:
    """A row of published accuracies, in percent; columns as `PARTS` names them."""

    name: str
    source: str
    overall: float | None = None
    skills: Mapping[str, float] = field(default_factory=dict)
    hops: Mapping[str, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The name with where it comes from, in a word."""
        return f"{self.name} ({'paper' if self.source != LATER else 'later work'}, KQA Pro)"

    def to_json(self) -> dict[str, Any]:
        """The row as plain numbers, in percent."""
        return {
            "name": self.name,
            "source": self.source,
            "overall": self.overall,
            "skills": dict(self.skills),
            "hops": dict(self.hops),
        }


def _row(name: str, overall: float, *by_skill: float) -> Published:
    return Published(name, TABLE_5, overall, dict(zip(SKILLS, by_skill, strict=True)))


PUBLISHED = (
    _row("KVMemNet", 16.61, 16.50, 18.47, 1.17, 14.99, 27.31, 54.70, 0.06),
    _row("EmbedKGQA", 28.36, 26.41, 25.20, 11.93, 23.95, 32.88, 61.05, 0.06),
    _row("RGCN", 35.07, 34.00, 27.61, 30.03, 35.85, 41.91, 65.88, 0.00),
    _row("RNN SPARQL", 41.98, 36.01, 19.04, 66.98, 37.74, 50.26, 58.84, 26.08),
    _row("RNN KoPL", 43.85, 37.71, 22.19, 65.90, 47.45, 50.04, 42.13, 34.96),
    _row("BART SPARQL", 89.68, 88.49, 83.09, 96.12, 88.67, 85.78, 92.33, 87.88),
    _row("BART KoPL", 90.55, 89.46, 84.76, 95.51, 89.30, 86.68, 93.30, 89.59),
    _row("BART KoPL, compositional split", 77.86, 77.86, 61.46, 93.61, 77.88, 79.17, 89.01, 76.04),
    _row("human, 200 questions", 97.50, 97.24, 95.65, 100.00, 98.18, 83.33, 95.24, 100.00),
    Published("GraphQ IR", LATER, 91.70),
    Published("CandExpr", LATER, 93.34),
    Published("PER-KBQA", LATER, 93.82),
    Published(
        "BART KoPL", TABLE_9, hops=dict(zip(HOPS, (92.40, 87.71, 86.41, 86.51), strict=False))
    ),
)
