"""What a model wrote for a question, and what running it gave."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from kb.errors import KoplError
from kopl.errors import ParseError
from kopl.executor import TraceStep
from kopl.program import Call


@dataclass(frozen=True)
class Prediction:
    """A text in the output language with the probability that the model gives it.

    ``program`` is what the text says, or None where it cannot be read (``error`` tells why) or is a
    query that no program says.
    """

    text: str
    log_probability: float
    program: Call | None = None
    error: KoplError | None = field(default=None, compare=False)

    @property
    def probability(self) -> float:
        """The probability, from 0 to 1."""
        return math.exp(min(0.0, self.log_probability))


# What a question without words gets: nothing, with a probability of nothing.
WORDLESS = Prediction("", -1e4, None, ParseError("the question has no words"))


@dataclass(frozen=True)
class Outcome:
    """The denotation of a prediction, with the values of its calls where they were asked for."""

    denotation: list[str]
    ms: float
    trace: list[TraceStep] | None = field(default=None, repr=False)

    @property
    def answer(self) -> str | None:
        """The only string of the denotation, or None when it has none or several."""
        return self.denotation[0] if len(self.denotation) == 1 else None

    @property
    def state(self) -> Literal["unique", "empty", "several"]:
        """Whether the denotation has exactly one string, none or several."""
        return "unique" if len(self.denotation) == 1 else "several" if self.denotation else "empty"

    def to_json(self) -> dict[str, Any]:
        """The object that ``kopl ask --json`` prints."""
        return {
            "denotation": self.denotation,
            "answer": self.answer,
            "state": self.state,
            "ms": round(self.ms, 3),
        }
