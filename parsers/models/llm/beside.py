"""A trained parser beside the language model: it answers alone where it is sure.

Elsewhere the language model writes a program of its own, and what that answers comes first. The
parser's answers make it surer where they are the same, and stand alone where it finds nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from kb import KnowledgeBase
from kopl.text import write_nested
from parsers.languages import OutputLanguage, Prediction
from parsers.models.llm.replies import ReadReply, voted
from parsers.parser import Answer, Parser

# So many of its programs are read.
READ = 4
# Of its programs but the first, one counts at most so much.
OTHERS = 0.5
# So much its votes count beside a reply: all of them together less than a repaired one.
BESIDE = 0.5


@dataclass(frozen=True)
class Readings:
    """What the parser beside makes of a question, the best first, each with how sure it is."""

    answers: tuple[Answer, ...]

    @property
    def confidence(self) -> float:
        """How sure the first one is that may be said; 0 where none may."""
        return self.answers[0].confidence if self.answers and self.answers[0].answers else 0.0

    def predictions(self, language: OutputLanguage) -> list[Prediction]:
        """Its predictions as the language model's run gives them."""
        return [
            language.of_program(one.program, math.log(max(one.confidence, 1e-4)),
                                one.prediction.asking)
            for one in self.answers
            if one.program is not None
        ]  # fmt: skip

    def candidates(self) -> list[ReadReply]:
        """Its programs as replies, each with the share of a vote that it has.

        The first has as much as it is sure; what is left is shared by the others as they are
        probable.
        """
        left = 1.0 - self.confidence
        whole = sum(one.probability for one in self.answers[1:])
        found = []
        for number, one in enumerate(self.answers):
            if one.program is None or not one.answers:
                continue
            share = self.confidence
            if number:
                share = OTHERS * left * one.probability / whole if whole else 0.0
            found.append(
                ReadReply(write_nested(one.program), one.prediction, one.result, weight=share)
            )
        return found


def decided(
    replies: Sequence[ReadReply], readings: Readings, language: OutputLanguage, votes: float
) -> list[Prediction]:
    """The predictions by the language model's replies and the parser's readings, the best first.

    They vote by what they answer (`voted`); where no reply finds anything, the readings alone.
    """
    if not any(one.says and not one.fault for one in replies):
        return readings.predictions(language) or voted(replies, language, votes)
    others = [replace(one, weight=one.weight * BESIDE) for one in readings.candidates()]
    return voted([*replies, *others], language, votes)


class Beside:
    """The trained parser of a run, over a knowledge base that it may never have seen."""

    def __init__(self, run: str, kb: KnowledgeBase, sure: float) -> None:
        self.sure = sure
        self._run, self._kb = run, kb

    @cached_property
    def parser(self) -> Parser:
        """The parser; raises CheckpointError for what is no run."""
        return Parser.load(Path(self._run), self._kb, device="cpu", new_kb=True)

    def read(self, question: str) -> Readings:
        """What it makes of a question; nothing is refused."""
        return Readings(tuple(self.parser.ask(question, top=READ, least_confidence=0)))

    def is_sure(self, readings: Readings) -> bool:
        """Whether the language model need not be asked."""
        return readings.confidence >= self.sure
