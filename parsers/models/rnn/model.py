"""The paper's baseline: a GRU encoder and decoder over closed vocabularies (its Appendix H).

For KoPL the functions of the program come first, then up to three arguments of each; for SPARQL the
tokens of the query. What never occurred in training cannot be said.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kb import KnowledgeBase
from kopl.example import Example
from kopl_base.stream import TextReader
from parsers.models.base import IGNORED, Item, Model
from parsers.models.inventory import Inventory
from parsers.models.rnn.glove import read_vectors
from parsers.models.rnn.network import Network, Read, RnnBatch, Words, padded, padded_arguments
from parsers.prediction import Prediction
from parsers.settings import Settings
from parsers.tokens import Question, Vocabulary


@dataclass(frozen=True)
class RnnItem(Item):
    """An example as numbers: words, tokens with the end, arguments of each function."""

    words: tuple[int, ...]
    tokens: tuple[int, ...]
    arguments: tuple[tuple[int, ...], ...]


class RnnModel(Model):
    """What both output languages share; `create` and `restore` give the one of the settings."""

    name = "rnn"
    network: Network

    def __init__(
        self, settings: Settings, kb: KnowledgeBase, vocabulary: Vocabulary, tokens: Inventory,
        arguments: Inventory | None,
    ) -> None:  # fmt: skip
        super().__init__(settings, kb)
        self.vocabulary, self.tokens, self.arguments = vocabulary, tokens, arguments
        self.network = Network(
            settings.rnn, len(vocabulary), len(tokens), len(arguments) if arguments else 0
        )

    @classmethod
    def check(cls, settings: Settings) -> None:
        """Raise ReadError where there is no such file of word vectors."""
        if settings.rnn.glove:
            TextReader(Path(settings.rnn.glove)).__exit__()

    @classmethod
    def create(cls, settings: Settings, kb: KnowledgeBase, examples: Sequence[Example]) -> RnnModel:
        """A new model with the words, tokens and arguments of the examples."""
        kind = _kind(settings)
        questions = (Question.of(example.question) for example in examples)
        vocabulary = Vocabulary.of(questions, [], least=1)
        model = kind(settings, kb, vocabulary, *kind.inventories(settings, kb, examples))
        if settings.rnn.glove:
            with torch.no_grad():
                weight = model.network.words.weight
                for row, vector in read_vectors(settings.rnn.glove, vocabulary, weight.shape[1]):
                    weight[row] = torch.from_numpy(vector)
        return model

    @classmethod
    def restore(
        cls, settings: Settings, kb: KnowledgeBase, state: Mapping[str, Any], folder: Path
    ) -> RnnModel:
        """The model that `state` describes."""
        arguments = state["arguments"]
        return _kind(settings)(
            settings, kb, Vocabulary(state["words"]), Inventory(state["tokens"]),
            None if arguments is None else Inventory(arguments),
        )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """The words of questions, the tokens and the arguments."""
        return {
            "words": self.vocabulary.words,
            "tokens": self.tokens.texts[1:],
            "arguments": self.arguments.texts[1:] if self.arguments else None,
        }

    def tables(self) -> dict[str, Sequence[str]]:
        """Rows of words, tokens and arguments."""
        found: dict[str, Sequence[str]] = {
            "words.weight": ["<padding>", "<unknown>", *self.vocabulary.words]
        }
        for name, inventory in (("", self.tokens), ("arguments", self.arguments)):
            if inventory is not None:
                own, part = ("arguments", "filler") if name else ("tokens", "decoder")
                for key in (f"{own}.weight", f"{part}.classify.weight", f"{part}.classify.bias"):
                    found[key] = inventory.texts
        return found

    # --- what the languages differ in ----------------------------------------------------------

    @classmethod
    @abstractmethod
    def inventories(
        cls, settings: Settings, kb: KnowledgeBase, examples: Sequence[Example]
    ) -> tuple[Inventory, Inventory | None]:
        """The tokens that occur in the examples, and the arguments, if they stand apart."""

    @abstractmethod
    def numbers(self, example: Example) -> tuple[list[int], list[list[int]]]:
        """The tokens of an example and the arguments of each; raises `Unsayable`."""

    @abstractmethod
    def decoded(self, read: Read, beams: int, constrained: bool) -> list[list[Prediction]]:
        """The best predictions for encoded questions."""

    # --- training and predicting ---------------------------------------------------------------

    def items(self, examples: Sequence[Example]) -> tuple[list[RnnItem], list[tuple[Example, str]]]:
        """The examples whose tokens are all in the vocabularies, and the others."""
        items, left = [], []
        for example in examples:
            words = self._words(example.question)
            try:
                tokens, arguments = self.numbers(example)
            except Unsayable as reason:
                left.append((example, str(reason)))
                continue
            items.append(
                RnnItem(
                    example,
                    len(tokens) + 1,
                    tuple(words),
                    (*tokens, 0),
                    tuple(map(tuple, arguments)),
                )
            )
        return items, left

    def collate(self, items: Sequence[RnnItem]) -> RnnBatch:
        """The tensors of some examples."""
        tokens = padded([list(item.tokens) for item in items], IGNORED)
        arguments = torch.zeros(0)
        count = sum(len(item.tokens) for item in items)
        if self.arguments is not None:
            rows = [[list(texts) for texts in item.arguments] for item in items]
            arguments = padded_arguments(rows, tokens.shape[1])
            count += int((arguments != IGNORED).sum())
        words = Words.of([list(item.words) for item in items])
        return RnnBatch(count, words, tokens, arguments)

    def compile(self) -> None:
        """Nothing: most of the time goes into recurrent layers, which are compiled already."""

    def written(
        self, questions: Sequence[str], beams: int, constrained: bool, guided: bool
    ) -> list[list[Prediction]]:
        """Whole programs or queries of the closed vocabularies."""
        words = Words.of([self._words(question) for question in questions])
        return self.decoded(self.network.encode(words.to(self.device)), beams, constrained)

    def _words(self, question: str) -> list[int]:
        return [self.vocabulary.number(word) for word in Question.of(question).words]


class Unsayable(Exception):
    """An example with a token or argument that the vocabularies do not have."""


def _kind(settings: Settings) -> type[RnnModel]:
    from parsers.models.rnn.programs import RnnPrograms
    from parsers.models.rnn.queries import RnnQueries

    return RnnQueries if settings.language == "sparql" else RnnPrograms
