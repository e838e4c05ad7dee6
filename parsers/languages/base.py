"""What every output language offers: the text of an example, reading it back, running it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from kb import KnowledgeBase
from kopl.example import Example
from kopl.executor import Denoted, Executor
from kopl.program import Call
from kopl_base.errors import KoplError
from parsers.prediction import Prediction


class NotWritableError(KoplError):
    """An example whose program cannot be said in the output language."""

    kind = "language"


class Language(ABC):
    """An output language over one knowledge base."""

    name: ClassVar[str]

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.executor = Executor(kb)

    @abstractmethod
    def gold(self, example: Example) -> str:
        """The text that says an example's program; `read` reads it back.

        Raises NotWritableError with the reason where there is none.
        """

    @abstractmethod
    def read(self, text: str, log_probability: float = 0.0) -> Prediction:
        """What a text says, however wrong it is: a prediction holds the reason."""

    @abstractmethod
    def of_program(self, program: Call, log_probability: float = 0.0) -> Prediction:
        """The prediction of a model that writes programs call by call."""

    def run(self, prediction: Prediction, *, trace: bool = False) -> Denoted:
        """What a prediction denotes; raises a KoplError that says why it cannot be run."""
        if prediction.error is not None:
            raise prediction.error
        assert prediction.program is not None
        result = self.executor.run(prediction.program, trace=trace)
        return Denoted(result.denotation, result.ms, result.trace)
