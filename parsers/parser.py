"""A trained parser, ready to answer questions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kb import KnowledgeBase, load
from kb.errors import KoplError
from kopl.program import Call
from parsers.checkpoint import Description, read_run, restore
from parsers.models.base import Model
from parsers.prediction import Outcome, Prediction
from parsers.tokens import Question
from parsers.world import device_of


@dataclass(frozen=True)
class Answer:
    """A prediction for a question, and what running it gave (or why it failed)."""

    prediction: Prediction
    result: Outcome | None
    error: KoplError | None

    @property
    def program(self) -> Call | None:
        """The program, or None where the prediction says none."""
        return self.prediction.program

    @property
    def probability(self) -> float:
        """The probability that the model gives the prediction."""
        return self.prediction.probability

    @property
    def text(self) -> str | None:
        """The only string of the denotation, or None."""
        return self.result.answer if self.result else None


class Parser:
    """Answers questions over the knowledge base that it was trained for.

    >>> Parser.load("runs/default").ask("what is the capital of Norway?")[0].text
    'Oslo'
    """

    def __init__(self, model: Model, description: Description) -> None:
        self.model, self.description = model, description
        self.settings, self.kb = model.settings, model.kb

    @classmethod
    def load(
        cls, run: Path | str, kb: KnowledgeBase | str | Path | None = None, *, device: str = "auto"
    ) -> Parser:
        """The best network of a run, on its own knowledge base unless another copy is given.

        Raises CheckpointError when the run is damaged or the knowledge base is another one.
        """
        folder = Path(run)
        _, description = read_run(folder)
        if kb is None:
            kb = description.kb
        if not isinstance(kb, KnowledgeBase):
            kb = load(kb)
        model = restore(folder, kb)
        model.network.to(device_of(device))
        model.network.eval()
        return cls(model, description)

    def ask(
        self, question: str, *, top: int = 1, trace: bool = False, constrained: bool = True
    ) -> list[Answer]:
        """The most probable predictions for a question, each executed, the best first.

        Those that have exactly one answer come before those that have none or several.
        """
        if not Question.of(question).words:
            raise KoplError("the question is empty")
        [predictions] = self.model.predict([question], beams=max(4, top), constrained=constrained)
        answers = []
        for prediction in predictions:
            try:
                result = self.model.language.run(prediction, trace=trace)
                answers.append(Answer(prediction, result, None))
            except KoplError as error:
                answers.append(Answer(prediction, None, error))
        answers.sort(key=lambda answer: (answer.text is None, -answer.probability))
        return answers[:top]
