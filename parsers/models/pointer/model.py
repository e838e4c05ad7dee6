"""The pointer model: typed actions and copied texts; SPARQL is the translation of its program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kb import KnowledgeBase
from kopl.example import Example
from parsers.models.base import Model
from parsers.models.pointer.data import PointerBatch, PointerItem, prepare
from parsers.models.pointer.decode import Decoder, Written
from parsers.models.pointer.network import Network
from parsers.prediction import WORDLESS, Prediction
from parsers.settings import Settings
from parsers.target import Actions
from parsers.tokens import Question, Vocabulary


class PointerModel(Model):
    """The default model; see docs/parsers.md."""

    name = "pointer"
    network: Network

    def __init__(
        self, settings: Settings, kb: KnowledgeBase, vocabulary: Vocabulary, actions: Actions
    ) -> None:
        super().__init__(settings, kb)
        self.vocabulary, self.actions = vocabulary, actions
        sizes = settings.pointer
        self.network = Network(vocabulary, actions, sizes.embedding, sizes.hidden, sizes.dropout)

    @classmethod
    def create(
        cls, settings: Settings, kb: KnowledgeBase, examples: Sequence[Example]
    ) -> PointerModel:
        """A new model: the words of the questions, the actions of the knowledge base."""
        actions = Actions.of(kb)
        called = [word for _, text in actions.entries for word in Question.of(text).words]
        questions = (Question.of(example.question) for example in examples)
        return cls(settings, kb, Vocabulary.of(questions, called), actions)

    @classmethod
    def restore(
        cls, settings: Settings, kb: KnowledgeBase, state: Mapping[str, Any], folder: Path
    ) -> PointerModel:
        """The model that `state` describes."""
        actions = Actions(tuple((slot, text) for slot, text in state["actions"]))
        return cls(settings, kb, Vocabulary(state["words"]), actions)

    def state(self) -> dict[str, Any]:
        """The words and the actions."""
        return {
            "words": self.vocabulary.words,
            "actions": [[slot, text] for slot, text in self.actions.entries],
        }

    def tables(self) -> dict[str, Sequence[str]]:
        """Rows of words and of actions; the last action begins a program."""
        words = ["<padding>", "<unknown>", *self.vocabulary.words]
        actions = [f"{slot}: {text}" for slot, text in self.actions.entries]
        return {
            "words.weight": words,
            "actions.weight": [*actions, "<begin>"],
            "action_bias": actions,
        }

    def prepare(
        self, examples: Sequence[Example]
    ) -> tuple[list[PointerItem], list[tuple[Example, str]]]:
        """The examples whose arguments stand in the question or in the schema, and the others."""
        return prepare(examples, self.actions, self.kb)

    def collate(self, items: Sequence[PointerItem]) -> PointerBatch:
        """The tensors of some examples."""
        masked = self.settings.pointer.masked
        return PointerBatch.of(items, self.vocabulary, self.actions, masked=masked)

    def compile(self) -> None:
        """Nothing: most of the time goes into recurrent layers, which are compiled already."""

    def predict(
        self, questions: Sequence[str], *, beams: int = 1, constrained: bool = True
    ) -> list[list[Prediction]]:
        """Programs that always type, or, unconstrained, what the best actions amount to."""
        decoder = Decoder(
            self.network, self.vocabulary, self.actions, self.kb, free=not constrained
        )
        asked = [Question.of(question) for question in questions]
        result: list[list[Prediction]] = [[WORDLESS] for _ in asked]
        worded = [number for number, question in enumerate(asked) if question.words]
        if beams == 1 and worded:
            written = decoder.greedy([asked[number] for number in worded])
            for number, one in zip(worded, written, strict=True):
                result[number] = [self._prediction(one)]
        elif worded:
            for number in worded:
                found = decoder.beam(asked[number], beams)
                result[number] = [self._prediction(one) for one in found]
        return result

    def _prediction(self, written: Written) -> Prediction:
        if written.program is None:
            return Prediction("", written.log_probability, None, written.error)
        return self.language.of_program(written.program, written.log_probability)
