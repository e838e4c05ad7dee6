"""The paper's baseline: a GRU encoder and decoder over closed vocabularies (its Appendix H).

For KoPL the functions of the program come first, then up to three arguments of each; for SPARQL the
tokens of the query. What never occurred in training cannot be said.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kb import KnowledgeBase
from kopl.answer_forms import ASKED, PLAIN
from kopl.errors import ParseError
from kopl.example import Example
from kopl.functions import FUNCTIONS
from kopl_base.errors import ReadError
from kopl_base.stream import TextReader
from parsers.languages import (
    MOST_ARGUMENTS,
    NotWritableError,
    Outline,
    Prediction,
    fits,
    language_of,
    tokens_of,
    words_asked,
)
from parsers.models.base import IGNORED, Item, Model
from parsers.models.decoding_constraints import (
    ArgumentConstraint,
    FunctionConstraint,
    WordConstraint,
    numbers_by_kind,
)
from parsers.models.rnn.network import (
    Read,
    RnnBatch,
    RnnNetwork,
    RnnWords,
    padded,
    padded_arguments,
)
from parsers.models.search import DecodingConstraint, Hypothesis, search
from parsers.settings import Settings
from parsers.tokens import Question, Vocabulary

# The most calls of a program, and the most tokens of a query.
MOST_CALLS, MOST_TOKENS = 40, 400


# --- vocabularies ------------------------------------------------------------------------------

END = ""  # the entry with the number 0: it ends a sequence, or stands for nothing


class Inventory:
    """Texts by number, exactly as they are; number 0 is the end."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = [END, *texts]
        self._numbers = {text: number for number, text in enumerate(self.texts)}

    @classmethod
    def of(cls, texts: Iterable[str]) -> Inventory:
        """The different texts, in alphabetical order."""
        return cls(sorted(set(texts) - {END}))

    def __len__(self) -> int:
        return len(self.texts)

    def number(self, text: str) -> int | None:
        """The number of a text, or None; the empty text has none, as 0 is the end."""
        return self._numbers.get(text) if text else None


def read_vectors(
    path: str, vocabulary: Vocabulary, size: int
) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
    """(number of the word, its vector) for each word of the vocabulary that the file has.

    The file may be compressed. Raises ReadError for lines of another length than ``size``.
    """
    wanted = set(vocabulary.words)
    found = False
    with TextReader(Path(path), f"reading {Path(path).name}") as reader:
        for number, line in enumerate(reader.lines(), 1):
            parts = line.split(" ")
            word = " ".join(parts[:-size])  # a few of GloVe's words have blanks
            if number == 1 and len(parts) == 2:  # the head line of word2vec's and fastText's files
                continue
            if len(parts) <= size:
                raise ReadError(
                    f"a word and {size} numbers were expected, found {len(parts) - 1}; set"
                    " rnn.embedding to the length of the vectors",
                    place=f"line {number}", source=path,
                )  # fmt: skip
            if word not in wanted:
                continue
            try:
                vector = np.array(parts[-size:], np.float32)
            except ValueError:
                raise ReadError("not numbers", place=f"line {number}", source=path) from None
            found = True
            yield vocabulary.number(word), vector
    if not found:
        raise ReadError("none of the questions' words is in it", source=path)


# --- models ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RnnItem(Item):
    """An example as numbers: words, tokens with the end, arguments of each function."""

    words: tuple[int, ...]
    tokens: tuple[int, ...]
    arguments: tuple[tuple[int, ...], ...]


class RnnModel(Model):
    """What both output languages share; `create` and `restore` give the one of the settings."""

    name = "rnn"
    shared = ("language", "rnn.embedding", "rnn.hidden", "rnn.layers")
    network: RnnNetwork

    def __init__(
        self, settings: Settings, kb: KnowledgeBase, vocabulary: Vocabulary, tokens: Inventory,
        arguments: Inventory | None,
    ) -> None:  # fmt: skip
        super().__init__(settings, kb)
        self.vocabulary, self.tokens, self.arguments = vocabulary, tokens, arguments
        self.network = RnnNetwork(
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
        words = RnnWords.of([list(item.words) for item in items])
        return RnnBatch(count, words, tokens, arguments)

    def compile(self) -> None:
        """Nothing: most of the time goes into recurrent layers, which are compiled already."""

    def written(
        self, questions: Sequence[str], beams: int, constrained: bool, guided: bool
    ) -> list[list[Prediction]]:
        """Whole programs or queries of the closed vocabularies."""
        words = RnnWords.of([self._words(question) for question in questions])
        return self.decoded(self.network.encode(words.to(self.device)), beams, constrained)

    def _words(self, question: str) -> list[int]:
        return self.vocabulary.numbers(Question.of(question).words)

    def _searched(
        self, read: Read, beams: int, longest: int, constraint: DecodingConstraint | None
    ) -> list[list[Hypothesis]]:
        """The best sequences of tokens for encoded questions."""

        def following(
            previous: Tensor, hidden: Tensor, rows: Tensor, states: Sequence[Any]
        ) -> tuple[Tensor, Tensor]:
            found, hidden = self.network.decode(previous.unsqueeze(1), hidden, read.rows(rows))
            return self.network.choose(found).squeeze(1), hidden

        return search(
            following, read.hidden, begin=0, end=0, width=beams, longest=longest,
            constraints=[constraint] * len(read.states),
        )  # fmt: skip


class Unsayable(Exception):
    """An example with a token or argument that the vocabularies do not have."""


def _numbers(vocabulary: Inventory, texts: Iterable[str], what: str) -> list[int]:
    """The numbers of texts, which are of such a kind; raises Unsayable for one without."""
    numbers = []
    for text in texts:
        number = vocabulary.number(text)
        if number is None:
            raise Unsayable(f"the vocabulary has no {what} {text!r}")
        numbers.append(number)
    return numbers


# Functions, the arguments of each, and the logarithm of their probability.
Filled = tuple[tuple[int, ...], tuple[tuple[int, ...], ...], float]


class RnnPrograms(RnnModel):
    """The RNN with KoPL as its output language."""

    arguments: Inventory

    @classmethod
    def inventories(
        cls, settings: Settings, kb: KnowledgeBase, examples: Sequence[Example]
    ) -> tuple[Inventory, Inventory]:
        """All functions and what is asked, and every string that is an argument in the examples."""
        outlines = (Outline.of(example.program, example.asking) for example in examples)
        strings = {text for outline in outlines for texts in outline.arguments for text in texts}
        return Inventory([*FUNCTIONS, *words_asked(examples)]), Inventory.of(strings)

    def numbers(self, example: Example) -> tuple[list[int], list[list[int]]]:
        """The functions of an example's program, and of each its arguments and an end.

        What is asked of the program stands last, like a function.
        """
        try:
            fits(example)
        except NotWritableError as error:
            raise Unsayable(str(error)) from None
        outline = Outline.of(example.program, example.asking if self._says_asking else PLAIN)
        functions = _numbers(self.tokens, outline.functions, "function")
        if len(functions) >= MOST_CALLS:
            raise Unsayable(f"the program has {MOST_CALLS} calls or more")
        arguments = []
        for texts in outline.arguments:
            numbers = _numbers(self.arguments, texts, "argument")
            # Behind the end nothing is ever read, so that nothing is learnt of it.
            ended = [*numbers, 0, *[IGNORED] * MOST_ARGUMENTS]
            arguments.append(ended[:MOST_ARGUMENTS])
        return functions, arguments

    @cached_property
    def _says_asking(self) -> bool:
        """Whether what is asked of a program stands behind it, as it did in the training."""
        return any(self.tokens.number(word) is not None for word in ASKED)

    @cached_property
    def _by_kind(self) -> dict[object, list[int]]:
        return numbers_by_kind(self.arguments.texts, self.kb)

    def decoded(self, read: Read, beams: int, constrained: bool) -> list[list[Prediction]]:
        """The programs of the best functions, each with its best arguments."""

        constraint = FunctionConstraint(self.tokens.texts, self._by_kind) if constrained else None
        found = self._searched(read, beams, MOST_CALLS, constraint)
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
        self, read: Read, asked: Sequence[tuple[int, Hypothesis]], beams: int, constrained: bool
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

        def following(
            previous: Tensor, hidden: Tensor, which: Tensor, at: Sequence[Any]
        ) -> tuple[Tensor, Tensor]:
            scores, hidden = self.network.fill(
                functions[which], previous.unsqueeze(1), hidden, inside.rows(which)
            )
            return scores.squeeze(1), hidden

        names = [self.tokens.texts[number] for number in functions.tolist()]
        constraints = [
            ArgumentConstraint(name, self._by_kind) if constrained else None for name in names
        ]
        found = search(
            following, states[of_calls, places].unsqueeze(0), begin=-1, end=0, width=beams,
            longest=MOST_ARGUMENTS, constraints=constraints,
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
            program, asking = Outline(tuple(names), tuple(map(tuple, texts))).read()
            said = asking if self._says_asking else None
            return self.language.of_program(program, log_probability, said)
        except ParseError as error:
            return Prediction(" ".join(names), log_probability, None, error)


class RnnQueries(RnnModel):
    """The RNN with SPARQL as its output language, or another package's: tokens of texts."""

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
        numbers = _numbers(self.tokens, texts, "token")
        if len(numbers) >= MOST_TOKENS:
            raise Unsayable(f"the query has more than {MOST_TOKENS} tokens")
        return numbers, []

    @cached_property
    def _constraint(self) -> WordConstraint | None:
        return WordConstraint.of(self.language, self.tokens.texts)

    def decoded(self, read: Read, beams: int, constrained: bool) -> list[list[Prediction]]:
        """The queries of the best sequences of tokens."""

        constraint = self._constraint if constrained else None
        found = self._searched(read, beams, MOST_TOKENS, constraint)
        return [[self._prediction(path.tokens, path.log_probability) for path in paths]
                for paths in found]  # fmt: skip

    def _prediction(self, tokens: Sequence[int], log_probability: float) -> Prediction:
        text = "".join(self.tokens.texts[number] for number in tokens)
        return self.language.read(text, log_probability)


def _kind(settings: Settings) -> type[RnnModel]:
    return RnnPrograms if settings.language == "kopl" else RnnQueries
