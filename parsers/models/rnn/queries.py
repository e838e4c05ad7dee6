"""The paper's RNN writing SPARQL: the tokens of the query, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from torch import Tensor

from kb import KnowledgeBase
from kopl.example import Example
from parsers.languages import NotWritableError, language_of
from parsers.languages.sparql import tokens_of
from parsers.models.beams import search
from parsers.models.guides import WordGuide
from parsers.models.inventory import Inventory
from parsers.models.rnn.model import RnnModel, Unsayable
from parsers.models.rnn.network import Read
from parsers.prediction import Prediction
from parsers.settings import Settings

LONGEST = 400


class RnnQueries(RnnModel):
    """The RNN with SPARQL as its output language."""

    @classmethod
    def inventories(
        cls, settings: Settings, kb: KnowledgeBase, examples: Sequence[Example]
    ) -> tuple[Inventory, None]:
        """The tokens of the examples' queries."""
        language = language_of(settings, kb)
        found: set[str] = set()
        for example in examples:
            try:
                found.update(tokens_of(language.gold(example)))
            except NotWritableError:
                continue  # `prepare` tells
        return Inventory.of(found), None

    def numbers(self, example: Example) -> tuple[list[int], list[list[int]]]:
        """The tokens of an example's query."""
        try:
            texts = tokens_of(self.language.gold(example))
        except NotWritableError as error:
            raise Unsayable(str(error)) from None
        numbers = []
        for text in texts:
            number = self.tokens.number(text)
            if number is None:
                raise Unsayable(f"the vocabulary has no token {text!r}")
            numbers.append(number)
        if len(numbers) >= LONGEST:
            raise Unsayable(f"the query has more than {LONGEST} tokens")
        return numbers, []

    @cached_property
    def _guide(self) -> WordGuide:
        return WordGuide(self.language, self.tokens.texts)

    def decoded(self, read: Read, beams: int, constrained: bool) -> list[list[Prediction]]:
        """The queries of the best sequences of tokens."""

        def following(previous: Tensor, hidden: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
            states, hidden = self.network.decode(previous.unsqueeze(1), hidden, read.rows(rows))
            return self.network.choose(states).squeeze(1), hidden

        guide = self._guide if constrained else None
        found = search(
            following, read.hidden, begin=0, end=0, width=beams, longest=LONGEST,
            guides=[guide] * len(read.states),
        )  # fmt: skip
        return [[self._prediction(path.tokens, path.log_probability) for path in paths]
                for paths in found]  # fmt: skip

    def _prediction(self, tokens: Sequence[int], log_probability: float) -> Prediction:
        text = "".join(self.tokens.texts[number] for number in tokens)
        return self.language.read(text, log_probability)
