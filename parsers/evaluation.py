"""Scoring a parser by executing its programs, overall and by skill (Table 5 of the paper)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kb.errors import KoplError
from kopl.answers import published_equal, same_answer
from kopl.example import Example
from kopl.text import write_nested
from kopl.traits import SKILLS as OF_PROGRAMS
from kopl.traits import skills
from parsers.languages import Language
from parsers.prediction import Prediction

# Table 5 counts filters of any kind as multi-hop; Relate and the rest follow the declarations.
SKILLS = (*OF_PROGRAMS, "zero-shot")
PART = 128


class Predicts(Protocol):
    """What evaluation needs of a model."""

    language: Language

    def predict(
        self, questions: Sequence[str], *, beams: int = 1, constrained: bool = True
    ) -> list[list[Prediction]]:
        """For each question some predictions, the most probable first."""


@dataclass(frozen=True)
class Judged:
    """A prediction beside its example: its answer, and whether that is right."""

    example: Example
    prediction: Prediction
    denotation: list[str] | None
    error: str | None
    right: bool
    published: bool
    same_program: bool

    def to_json(self) -> dict[str, Any]:
        """One line of a predictions file."""
        return {
            "id": self.example.id,
            "question": self.example.question,
            "gold": write_nested(self.example.program),
            "gold_answer": self.example.answer,
            "predicted": self.prediction.text,
            "denotation": self.denotation,
            "error": self.error,
            "probability": round(self.prediction.probability, 6),
            "right": self.right,
        }


@dataclass(frozen=True)
class Report:
    """The scores of a set of predictions; shares are of the examples they are about."""

    judged: list[Judged] = field(repr=False)
    seen_answers: frozenset[str] = field(repr=False)

    def share(
        self, holds: Callable[[Judged], bool], among: Iterable[Judged] | None = None
    ) -> float:
        """The share of the predictions for which something holds (0 of none)."""
        chosen = self.judged if among is None else list(among)
        return sum(map(holds, chosen)) / len(chosen) if chosen else 0.0

    @property
    def accuracy(self) -> float:
        """Execution accuracy by the default rule. A program that failed is never right."""
        return self.share(lambda one: one.right)

    def with_skill(self, skill: str) -> list[Judged]:
        """The predictions on questions that need a skill."""
        return [one for one in self.judged if skill in skills_of(one.example, self.seen_answers)]

    def to_json(self) -> dict[str, Any]:
        """All scores as plain numbers."""
        skills = {skill: self.with_skill(skill) for skill in SKILLS}
        return {
            "questions": len(self.judged),
            "accuracy": self.accuracy,
            "accuracy by the published rule": self.share(lambda one: one.published),
            "same program": self.share(lambda one: one.same_program),
            "runs": self.share(lambda one: one.error is None),
            "one answer": self.share(lambda one: len(one.denotation or ()) == 1),
            "skills": {
                skill: {"questions": len(part), "accuracy": self.share(lambda x: x.right, part)}
                for skill, part in skills.items()
            },
        }


def skills_of(example: Example, seen_answers: Collection[str]) -> set[str]:
    """The columns of Table 5 that a question counts in; zero-shot: its answer was never trained."""
    found = set(skills(example.program))
    if seen_answers and example.answer not in seen_answers:
        found.add("zero-shot")
    return found


def evaluate(
    model: Predicts, examples: Sequence[Example], seen_answers: Iterable[str],
    advance: Callable[[int], None] = lambda count: None,
    *, beams: int = 1, constrained: bool = True,
) -> Report:  # fmt: skip
    """Predict for every question, run the best prediction and compare its answer."""
    # Questions of similar length go together; the judgements come in the order of the examples.
    order = sorted(range(len(examples)), key=lambda n: (len(examples[n].question), n))
    judged: list[Judged | None] = [None] * len(examples)
    for begin in range(0, len(order), PART):
        part = order[begin : begin + PART]
        questions = [examples[n].question for n in part]
        found = model.predict(questions, beams=beams, constrained=constrained)
        for n, predictions in zip(part, found, strict=True):
            judged[n] = judge(examples[n], predictions[0], model.language)
        advance(len(part))
    return Report([one for one in judged if one is not None], frozenset(seen_answers))


def judge(example: Example, prediction: Prediction, language: Language) -> Judged:
    """Run a prediction and compare; the gold program is run when no answer is stored."""
    gold = example.answer
    if gold is None:
        gold = language.executor.run(example.program).answer
    denotation, error = None, None
    try:
        denotation = language.run(prediction).denotation
    except KoplError as failure:
        error = f"{failure.kind}: {failure}"
    right = published = False
    if gold is not None and denotation:
        right = len(denotation) == 1 and same_answer(gold, denotation[0])
        published = published_equal(gold, denotation[0])  # it looks at the first answer only
    return Judged(
        example, prediction, denotation, error, right, published,
        prediction.program == example.program,
    )  # fmt: skip
