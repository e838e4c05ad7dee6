"""BART and any other encoder-decoder of transformers, writing programs or queries as texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from kb import KnowledgeBase
from kopl.errors import ParseError
from kopl.example import Example
from kopl_base.training.memory import fitting
from kopl_base.training.optimizer import Batch, Scores
from parsers.constrain import Constraint
from parsers.constrain.generate import logits_processor
from parsers.languages import NotWritableError, OutputLanguage, Prediction, language_of
from parsers.models.base import IGNORED, Item, Model, check_numbers, summed_loss
from parsers.models.decoding_constraints import text_constraint
from parsers.models.seq2seq import loading
from parsers.models.seq2seq.tokens import Tokens, tokenizer_of, with_tokens
from parsers.settings import Settings

FOLDER = "pretrained"  # in the run: the tokenizer and the model's form

# Lengths are rounded up to a multiple: devices like it, and a compiled model is compiled less.
MULTIPLE = 8

# What a bound of memory is divided by while a model predicts.
FLOAT = 4  # bytes
# Tables of the scores of all words that live at the same time: as they come, without what is not
# allowed, as logarithms of probabilities, with those of the text so far, and sorted.
TABLES = 5
# A layer's inner states, by which its own are exceeded while it computes.
INNER = 8


@dataclass(frozen=True)
class Seq2SeqItem(Item):
    """An example as tokens of the question and of the text to be written."""

    question: tuple[int, ...]
    target: tuple[int, ...]


@dataclass(frozen=True)
class Seq2SeqBatch(Batch):
    """B questions of at most L tokens, B texts of at most T."""

    questions: Tensor  # B × L
    inside: Tensor  # B × L, 1 for tokens, 0 behind the end
    targets: Tensor  # B × T, IGNORED behind the end


class Seq2SeqNetwork(nn.Module):
    """A model of transformers that gives the sum of the losses."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, batch: Seq2SeqBatch) -> Scores:
        """The loss of all tokens, and which texts are all right."""
        return summed_loss(self.scores(batch), batch.targets)

    def scores(self, batch: Seq2SeqBatch) -> Tensor:
        """The scores of every token at every place (B × T × V)."""
        found: Tensor = self.inner(
            input_ids=batch.questions, attention_mask=batch.inside, labels=batch.targets
        ).logits
        return found


class Seq2SeqModel(Model):
    """An encoder-decoder with its tokenizer."""

    name = "seq2seq"  # what a run is like comes from the run itself
    network: Seq2SeqNetwork

    def __init__(
        self, settings: Settings, kb: KnowledgeBase, tokenizer: Any, inner: Any,
        new: Iterable[str] = (),
    ) -> None:  # fmt: skip
        super().__init__(settings, kb)
        self.tokens = Tokens(tokenizer)
        self.network = Seq2SeqNetwork(inner)
        self._new = frozenset(f"inner.{name}" for name in new)
        config = inner.config
        start = config.decoder_start_token_id
        self._before = [self.tokens.end if start is None else int(start), *self.tokens.first]
        # None of the defaults that a model brings for summaries, such as no repeated trigrams.
        inner.generation_config = loading.library().GenerationConfig(
            eos_token_id=self.tokens.end, pad_token_id=self.tokens.padding,
            decoder_start_token_id=self._before[0], bos_token_id=config.bos_token_id,
        )  # fmt: skip

    # --- making, saving ----------------------------------------------------------------------

    @classmethod
    def check(cls, settings: Settings) -> None:
        """Raise ModelError or SettingsError where the package or a fitting model is missing."""
        loading.library()
        if settings.seq2seq.name and not settings.start_from:
            loading.pretrained(settings.seq2seq)

    @classmethod
    def create(
        cls, settings: Settings, kb: KnowledgeBase, examples: Sequence[Example]
    ) -> Seq2SeqModel:
        """A pretrained model with the marks as new tokens; or a small one of the examples."""
        loading.library()
        language = language_of(settings, kb)
        texts = _golds(examples, language)
        if settings.start_from:
            tokenizer, inner = loading.saved(Path(settings.start_from) / FOLDER)
            loading.check_longest(settings.seq2seq.longest, inner.config, settings.start_from)
            new: set[str] = set()
        elif settings.seq2seq.name:
            tokenizer, inner, new = loading.pretrained(settings.seq2seq)
        else:
            written = [*(example.question for example in examples), *texts]
            tokenizer = tokenizer_of(written, settings.seq2seq.vocabulary)
        with_tokens(tokenizer, language.marks, texts)
        if not settings.seq2seq.name and not settings.start_from:
            inner = loading.small(settings.seq2seq, tokenizer)
            new = {name for name, _ in inner.named_parameters()}
        if len(tokenizer) > inner.get_input_embeddings().num_embeddings:
            inner.resize_token_embeddings(len(tokenizer), mean_resizing=False)
        return cls(settings, kb, tokenizer, inner, new)

    @classmethod
    def restore(
        cls, settings: Settings, kb: KnowledgeBase, state: Mapping[str, Any], folder: Path
    ) -> Seq2SeqModel:
        """The model in a run's folder."""
        tokenizer, inner = loading.saved(folder / FOLDER)
        return cls(settings, kb, tokenizer, inner, state["new"])

    def state(self) -> dict[str, Any]:
        """Which parameters the pretrained weights did not bring."""
        return {"new": sorted(name.removeprefix("inner.") for name in self._new)}

    def save(self, folder: Path) -> None:
        """Write the tokenizer and the model's form, so that no hub is needed any more."""
        place = folder / FOLDER
        place.mkdir(parents=True, exist_ok=True)
        self.tokens.tokenizer.save_pretrained(str(place))
        self.network.inner.config.save_pretrained(str(place))

    def tables(self) -> dict[str, Sequence[str]]:
        """Rows of the tokens, which a run that this one started from may lack."""
        size = self.network.inner.get_input_embeddings().num_embeddings
        names = self.tokens.tokenizer.convert_ids_to_tokens(list(range(len(self.tokens.tokenizer))))
        rows = [*names, *(f"<unused {number}>" for number in range(len(names), size))]
        return {
            name: rows
            for name, parameter in self.network.named_parameters()
            if parameter.shape[0] == size and parameter.ndim == 2
        }

    # --- training ----------------------------------------------------------------------------

    def groups(self) -> list[dict[str, Any]]:
        """The pretrained parameters, and those that the weights did not bring."""
        training = self.settings.training
        rates = {False: training.learning_rate, True: training.new_learning_rate}
        found = []
        for new, rate in rates.items():
            parameters = [
                p for name, p in self.network.named_parameters() if (name in self._new) == new
            ]
            if parameters:
                found.append({"params": parameters, "lr": rate or training.learning_rate})
        return found

    def compile(self) -> None:
        """Let torch compile the inner model."""
        self.network.inner.compile(dynamic=True)

    def items(
        self, examples: Sequence[Example]
    ) -> tuple[list[Seq2SeqItem], list[tuple[Example, str]]]:
        """The examples that are not too long and that the tokenizer can write back."""
        longest = self.settings.seq2seq.longest
        items: list[Seq2SeqItem] = []
        left: list[tuple[Example, str]] = []
        written: list[tuple[Example, str]] = []
        for example in examples:
            try:
                written.append((example, self.language.gold(example)))
            except NotWritableError as error:
                left.append((example, str(error)))
        questions = self.tokens.numbers([example.question for example, _ in written])
        targets = self.tokens.numbers([text for _, text in written])
        for (example, text), question, target in zip(written, questions, targets, strict=True):
            if len(question) > longest or len(target) > longest:
                left.append((example, f"it has more than {longest} tokens (seq2seq.longest)"))
            elif not self._comes_back(text, self.tokens.text(target)):
                left.append((example, "the tokenizer does not give the text back"))
            else:
                items.append(Seq2SeqItem(example, len(target), tuple(question), tuple(target)))
        return items, left

    def _comes_back(self, text: str, again: str) -> bool:
        """Whether a text is the same after the tokenizer, or at least says the same program."""
        if text == again:
            return True
        program = self.language.read(text).program
        return program is not None and program == self.language.read(again).program

    def collate(self, items: Sequence[Seq2SeqItem]) -> Seq2SeqBatch:
        """The tensors of some examples."""
        questions = self._padded([item.question for item in items], self.tokens.padding)
        inside = self._padded([(1,) * len(item.question) for item in items], 0)
        targets = self._padded([item.target for item in items], IGNORED)
        return Seq2SeqBatch(sum(len(item.target) for item in items), questions, inside, targets)

    # --- predicting --------------------------------------------------------------------------

    @cached_property
    def _constraint(self) -> Constraint | None:
        return text_constraint(self.language, self.tokens.table)

    def written(
        self, questions: Sequence[str], beams: int, constrained: bool, guided: bool
    ) -> list[list[Prediction]]:
        """Texts from the search of transformers, with the probability that the model gives them."""
        longest = self.settings.seq2seq.longest
        # A question that is too long is cut, but keeps its end mark.
        numbers = [
            row if len(row) <= longest else [*row[: longest - 1], self.tokens.end]
            for row in self.tokens.numbers(questions)
        ]
        found = self._generated(numbers, beams, constrained)
        texts = [self.tokens.text(row[len(self._before) :]) for row in found]
        logarithms = self._log_probabilities(numbers, found, beams)
        result = []
        for at in range(len(questions)):
            seen: dict[str, Prediction] = {}
            for row in range(at * beams, (at + 1) * beams):
                if found[row][-1] == self.tokens.end:
                    one = self.language.read(texts[row], logarithms[row])
                else:  # what stands there may read as a program, but the model did not end it
                    reason = ParseError(f"the text goes on after {longest} tokens")
                    one = Prediction(texts[row], logarithms[row], None, reason)
                seen.setdefault(texts[row], one)
            result.append(sorted(seen.values(), key=lambda one: -one.log_probability))
        return result

    def together(self, questions: Sequence[str], beams: int) -> int:
        """As many questions as `memory` allows, each text as long as it may become."""
        longest = self.settings.seq2seq.longest
        # A token spells a letter or more, as a rule.
        read = min(max(map(len, questions), default=0) + 2, longest)
        size = search_bytes(self.network.inner.config, read, longest, beams)
        return fitting(self.memory, beams * size)

    def _generated(
        self, questions: list[list[int]], beams: int, constrained: bool
    ) -> list[list[int]]:
        """The tokens of ``beams`` texts for each question, with those that stand before."""
        before = torch.tensor([self._before] * len(questions), device=self.device)
        processors: list[Any] = [_checked]
        if constrained and self._constraint is not None:
            processors.append(logits_processor(self._constraint, begin=len(self._before)))
        config = loading.library().GenerationConfig(
            num_beams=beams, num_return_sequences=beams, do_sample=False, length_penalty=0.0,
            max_new_tokens=self.settings.seq2seq.longest - len(self._before),
            early_stopping=False,
            eos_token_id=self.tokens.end, pad_token_id=self.tokens.padding,
            decoder_start_token_id=self._before[0],
        )  # fmt: skip
        found = self.network.inner.generate(
            input_ids=self._padded(questions, self.tokens.padding).to(self.device),
            attention_mask=self._padded([[1] * len(row) for row in questions], 0).to(self.device),
            decoder_input_ids=before, generation_config=config, logits_processor=processors,
        )  # fmt: skip
        rows: list[list[int]] = found.tolist()
        return [_until(row, self.tokens.end, len(self._before)) for row in rows]

    def _log_probabilities(
        self, questions: list[list[int]], found: list[list[int]], beams: int
    ) -> list[float]:
        """The logarithm of the probability of each text, whatever the search made of it.

        The scores of all words at all places are the largest thing that predicting makes (10 MB for
        50 tokens of BART), so that only so many rows are scored at once as fit into `memory`.
        """
        longest = -(-max(map(len, found)) // MULTIPLE) * MULTIPLE
        size = fitting(self.memory, scoring_bytes(self.network.inner.config, longest))
        logs: list[float] = []
        for begin in range(0, len(found), size):
            rows = range(begin, min(begin + size, len(found)))
            batch = Seq2SeqBatch(
                0, self._padded([questions[row // beams] for row in rows], self.tokens.padding),
                self._padded([[1] * len(questions[row // beams]) for row in rows], 0),
                self._padded([found[row][1:] for row in rows], IGNORED),
            ).to(self.device)  # fmt: skip
            scores = self.network.scores(batch).float()
            chosen = scores.gather(-1, batch.targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
            places = chosen - scores.logsumexp(-1)
            counted = batch.targets != IGNORED
            counted[:, : len(self.tokens.first)] = False  # they are always there
            logs += (places * counted).sum(-1).tolist()
        return logs

    def _padded(self, rows: Sequence[Sequence[int]], value: int) -> Tensor:
        """The rows as a tensor, filled up to a multiple of `MULTIPLE`, but not above ``longest``.

        A model may have positions for no more; no row is longer.
        """
        length = -(-max(map(len, rows)) // MULTIPLE) * MULTIPLE
        length = min(length, self.settings.seq2seq.longest)
        return torch.tensor([[*row, *[value] * (length - len(row))] for row in rows])


def _checked(tokens: Tensor, scores: Tensor) -> Tensor:
    """The scores of the next token as they are; raises NotFiniteError where they are no numbers."""
    check_numbers(scores.amax(-1).tolist())
    return scores


def _until(row: list[int], end: int, begin: int) -> list[int]:
    """A row up to its end, which is kept; the first ``begin`` tokens may hold an end, too."""
    for at in range(begin, len(row)):
        if row[at] == end:
            return row[: at + 1]
    return row


def _golds(examples: Sequence[Example], language: OutputLanguage) -> list[str]:
    """The texts of the examples that have one."""
    found = []
    for example in examples:
        try:
            found.append(language.gold(example))
        except NotWritableError:
            continue  # `prepare` tells
    return found


def search_bytes(config: Any, read: int, written: int, beams: int) -> int:
    """What the search takes for one text of ``written`` tokens on a question of ``read`` tokens.

    ``config`` is that of a model of transformers. Most of it are the keys and values of all layers,
    of which a search with several beams makes a second copy when its texts change places.
    """
    layers = _first(config, "decoder_layers", "num_decoder_layers", "num_hidden_layers")
    width = int(config.hidden_size)
    heads, size = _first(config, "decoder_attention_heads", "num_heads"), _first(config, "d_kv")
    keys = heads * size if heads and size else width
    copies = 2 if beams > 1 else 1
    attended = 2 * layers * keys * (copies * written + read)
    return FLOAT * (attended + INNER * width * read + TABLES * int(config.vocab_size))


def scoring_bytes(config: Any, written: int) -> int:
    """What the scores of all words at each of ``written`` places take, and a copy of them."""
    return 2 * FLOAT * written * int(config.vocab_size)


def _first(config: Any, *names: str) -> int:
    """The first of some attributes that a configuration has, 0 where it has none."""
    return next((int(found) for name in names if (found := getattr(config, name, None))), 0)
