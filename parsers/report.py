"""What an evaluation found: one or several runs on the same questions, beside the paper."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

from kopl.answers import published_text
from kopl.example import Asked
from kopl_base.errors import KoplError
from kopl_base.stream import writing
from parsers.evaluation import Report
from parsers.report_paper import PUBLISHED
from parsers.scoring_confidence import Calibration, Decoding, Temperature
from parsers.scoring_statistics import (
    DIFFERENCE_INTERVAL,
    DIFFERENCE_TEST,
    INTERVAL,
    Difference,
)

# What stands for the answer of a prediction that has none; the published programs for queries write
# it, too. Those for programs write "no", which is the right answer of some questions.
NO_ANSWER = "None"
_LINE_ENDS = re.compile(r"[\r\n]+")


class EvaluationError(KoplError):
    """Runs that cannot be evaluated together, or outputs that cannot be written."""

    kind = "evaluation"


@dataclass(frozen=True)
class Scored:
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

    def confidence(self, number: int) -> float:
        """The confidence of a prediction, calibrated where a temperature is known."""
        probability = self.report.judged[number].prediction.probability
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
            "notes": self.notes,
        }


@dataclass(frozen=True)
class Comparison:
    """Runs on the same questions; ``data`` says where these came from."""

    data: str
    runs: Sequence[Scored]

    def differences(self) -> list[tuple[Scored, Scored, Difference]]:
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


def write_answers(path: Path, run: Scored) -> int:
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
