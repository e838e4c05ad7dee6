"""What a model wrote for a question, and what running it gave."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from kopl.errors import ParseError
from kopl.program import Call
from kopl_base.errors import KoplError


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


def nothing(reason: str) -> Prediction:
    """What a question gets that is not read: nothing, with a probability of nothing."""
    return Prediction("", -1e4, None, ParseError(reason))
