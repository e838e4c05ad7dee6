"""A trained parser, ready to answer questions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kb import KnowledgeBase, load
from kb.errors import KoplError
from kopl.errors import ProgramError
from kopl.executor import Executor, Result
from kopl.program import Call
from parsers.checkpoint import CheckpointError, Description
from parsers.decode import Decoder
from parsers.settings import Settings
from parsers.tokens import Question
from parsers.training import best_network


@dataclass(frozen=True)
class Answer:
    """A program for a question, its probability, and what running it gave (or why it failed)."""

    program: Call
    probability: float
    result: Result | None
    error: ProgramError | None

    @property
    def text(self) -> str | None:
        """The only string of the denotation, or None."""
        return self.result.answer if self.result else None


class Parser:
    """Answers questions over the knowledge base that it was trained for.

    >>> Parser.load("runs/default").ask("what is the capital of Norway?")[0].text
    'Oslo'
    """

    def __init__(self, decoder: Decoder, settings: Settings, description: Description) -> None:
        self.decoder, self.settings, self.description = decoder, settings, description
        self.kb = decoder.kb
        self.executor = Executor(self.kb)

    @classmethod
    def load(cls, run: Path | str, kb: KnowledgeBase | str | Path | None = None) -> Parser:
        """The best network of a run, on its own knowledge base unless another copy is given.

        Raises CheckpointError when the run is damaged or the knowledge base is another one.
        """
        settings, description, network, vocabulary, actions = best_network(Path(run))
        if kb is None:
            kb = description.kb
        if not isinstance(kb, KnowledgeBase):
            kb = load(kb)
        if kb.fingerprint != description.fingerprint:
            raise CheckpointError(
                f"{run}: the run was trained on another knowledge base ({description.kb}); its"
                " relations and keys may differ. Train it again on this one"
            )
        return cls(Decoder(network, vocabulary, actions, kb), settings, description)

    def ask(self, question: str, *, top: int = 1, trace: bool = False) -> list[Answer]:
        """The most probable programs for a question, each executed, the best first.

        Programs that have exactly one answer come before those that have none or several.
        """
        asked = Question.of(question)
        if not asked.words:
            raise KoplError("the question is empty")
        answers = []
        for prediction in self.decoder.beam(asked, max(4, top)):
            try:
                result = self.executor.run(prediction.program, trace=trace)
                answers.append(Answer(prediction.program, prediction.probability, result, None))
            except ProgramError as error:
                answers.append(Answer(prediction.program, prediction.probability, None, error))
        answers.sort(key=lambda answer: (answer.text is None, -answer.probability))
        return answers[:top]
