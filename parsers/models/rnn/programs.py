"""The paper's RNN writing KoPL: the functions in post-order first, then the arguments of each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from kb import KnowledgeBase
from kopl.errors import ParseError
from kopl.example import Example
from kopl.functions import FUNCTIONS
from parsers.languages.kopl import MOST_ARGUMENTS, Outline, assembled
from parsers.models.base import IGNORED
from parsers.models.beams import Path, search
from parsers.models.guides import ArgumentGuide, FunctionGuide, numbers_by_kind
from parsers.models.inventory import Inventory
from parsers.models.rnn.model import RnnModel, Unsayable
from parsers.models.rnn.network import Read, padded
from parsers.prediction import Prediction
from parsers.settings import Settings

LONGEST = 40

# Functions, the arguments of each, and the logarithm of their probability.
Filled = tuple[tuple[int, ...], tuple[tuple[int, ...], ...], float]


class RnnPrograms(RnnModel):
    """The RNN with KoPL as its output language."""

    arguments: Inventory

    @classmethod
    def inventories(
        cls, settings: Settings, kb: KnowledgeBase, examples: Sequence[Example]
    ) -> tuple[Inventory, Inventory]:
        """All functions, and every string that is an argument in the examples."""
        outlines = (Outline.of(example.program) for example in examples)
        strings = {text for outline in outlines for texts in outline.arguments for text in texts}
        return Inventory(list(FUNCTIONS)), Inventory.of(strings)

    def numbers(self, example: Example) -> tuple[list[int], list[list[int]]]:
        """The functions of an example's program, and of each its arguments and an end."""
        outline = Outline.of(example.program)
        functions = [self.tokens.number(name) or 0 for name in outline.functions]
        if len(functions) >= LONGEST:
            raise Unsayable(f"the program has {LONGEST} calls or more")
        arguments = []
        for texts in outline.arguments:
            numbers = []
            for text in texts:
                number = self.arguments.number(text)
                if number is None:
                    raise Unsayable(f"the vocabulary has no argument {text!r}")
                numbers.append(number)
            # Behind the end nothing is ever read, so that nothing is learnt of it.
            ended = [*numbers, 0, *[IGNORED] * MOST_ARGUMENTS]
            arguments.append(ended[:MOST_ARGUMENTS])
        return functions, arguments

    @cached_property
    def _by_kind(self) -> dict[object, list[int]]:
        return numbers_by_kind(self.arguments.texts, self.kb)

    def decoded(self, read: Read, beams: int, constrained: bool) -> list[list[Prediction]]:
        """The programs of the best functions, each with its best arguments."""

        def following(previous: Tensor, hidden: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
            states, hidden = self.network.decode(previous.unsqueeze(1), hidden, read.rows(rows))
            return self.network.choose(states).squeeze(1), hidden

        guide = FunctionGuide(self.tokens.texts, self._by_kind) if constrained else None
        found = search(
            following, read.hidden, begin=0, end=0, width=beams, longest=LONGEST,
            guides=[guide] * len(read.states),
        )  # fmt: skip
        asked = [(n, path) for n, paths in enumerate(found) for path in paths]
        result: list[list[Filled]] = [[] for _ in found]
        for (n, _), filled in zip(
            asked, self._filled(read, asked, beams, constrained), strict=True
        ):
            result[n] += filled
        for ways in result:
            ways.sort(key=lambda way: -way[2])
        return [[self._prediction(way) for way in ways[:beams]] for ways in result]

    def _filled(
        self, read: Read, asked: Sequence[tuple[int, Path]], beams: int, constrained: bool
    ) -> list[list[Filled]]:
        """The best ways to fill in the arguments of each sequence of functions."""
        rows = torch.tensor([n for n, _ in asked], device=self.device)
        part = read.rows(rows)
        tokens = padded([[0, *path.tokens] for _, path in asked], 0).to(self.device)
        states, _ = self.network.decode(tokens, part.hidden, part)
        calls = [(row, at) for row, (_, path) in enumerate(asked) for at in range(len(path.tokens))]
        if not calls:
            return [[((), (), path.log_probability)] for _, path in asked]
        of_calls = torch.tensor([row for row, _ in calls], device=self.device)
        places = torch.tensor([at for _, at in calls], device=self.device)
        functions, inside = tokens[of_calls, places + 1], part.rows(of_calls)

        def following(previous: Tensor, hidden: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
            scores, hidden = self.network.fill(
                functions[which], previous.unsqueeze(1), hidden, inside.rows(which)
            )
            return scores.squeeze(1), hidden

        names = [self.tokens.texts[number] for number in functions.tolist()]
        guides = [ArgumentGuide(name, self._by_kind) if constrained else None for name in names]
        found = search(
            following, states[of_calls, places].unsqueeze(0), begin=-1, end=0, width=beams,
            longest=MOST_ARGUMENTS, guides=guides,
        )  # fmt: skip
        result: list[list[Filled]] = [
            [(path.tokens, (), path.log_probability)] for _, path in asked
        ]
        for (row, _), paths in zip(calls, found, strict=True):
            # Arguments of different calls do not depend on one another: the best of the whole are
            # among the best of the parts.
            longer = [
                (tokens_, (*texts, path.tokens), value + path.log_probability)
                for tokens_, texts, value in result[row] for path in paths
            ]  # fmt: skip
            result[row] = sorted(longer, key=lambda way: -way[2])[:beams]
        return result

    def _prediction(self, way: Filled) -> Prediction:
        functions, arguments, log_probability = way
        names = [self.tokens.texts[number] for number in functions]
        texts = [[self.arguments.texts[number] for number in numbers] for numbers in arguments]
        try:
            return self.language.of_program(assembled(names, texts), log_probability)
        except ParseError as error:
            return Prediction(" ".join(names), log_probability, None, error)
