"""BART, SmolLM2 and other language models of transformers, writing programs or queries as texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kb import KnowledgeBase
from kopl.errors import ParseError
from kopl.example import Example
from kopl_base.training.memory import fitting
from parsers.constrain import Constraint
from parsers.constrain.generate import logits_processor
from parsers.languages import (
    NotWritableError,
    OutputLanguage,
    Prediction,
    language_of,
    words_asked,
)
from parsers.models.base import IGNORED, Item, Model, check_numbers
from parsers.models.decoding_constraints import text_constraint
from parsers.models.seq2seq import loading
from parsers.models.seq2seq.forms import Form, Seq2SeqBatch, Seq2SeqNetwork
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


class Seq2SeqModel(Model):
    """An encoder-decoder with its tokenizer."""

    name = "seq2seq"  # what a run is like comes from the run itself
    network: Seq2SeqNetwork

    def __init__(
        self, settings: Settings, kb: KnowledgeBase, tokenizer: Any, inner: Any,
        new: Iterable[str] = (), mark: str = "",
    ) -> None:  # fmt: skip
        super().__init__(settings, kb)
        self._mark = mark
        self.tokens = Tokens(tokenizer)
        self.form = Form.of(self.tokens, inner, self.language)
        self.network = self.form.network(inner)
        self._new = frozenset(f"inner.{name}" for name in new)

    # --- making, saving ----------------------------------------------------------------------

    @classmethod
    def check(cls, settings: Settings) -> None:
        """Raise ModelError or SettingsError where the package or a fitting model is missing."""
        loading.library()
        if settings.seq2seq.lora:
            loading.check_adapters(settings.seq2seq)
        if settings.seq2seq.name and not settings.start_from:
            loading.check_pretrained(settings.seq2seq)

    @classmethod
    def create(
        cls, settings: Settings, kb: KnowledgeBase, examples: Sequence[Example]
    ) -> Seq2SeqModel:
        """A pretrained model with the marks as new tokens; or a small one of the examples."""
        loading.library()
        chosen = settings.seq2seq
        language = language_of(settings, kb)
        language.says_asking &= bool(words_asked(examples))
        texts = _golds(examples, language)
        mark = ""
        new: set[str] = set()
        if settings.start_from:
            own = Path(settings.start_from) / FOLDER
            tokenizer = loading.saved_tokenizer(own)
            mark, inner = _base(settings) if chosen.lora else ("", loading.saved(own))
            loading.check_longest(chosen.longest, inner.config, settings.start_from)
        elif chosen.name:
            tokenizer, inner, new = loading.pretrained(chosen)
            mark = loading.mark_of(tokenizer, inner, new) if chosen.lora else ""
        else:
            written = [*(example.question for example in examples), *texts]
            tokenizer = tokenizer_of(written, chosen.vocabulary)
        with_tokens(tokenizer, language.marks, texts)
        if not chosen.name and not settings.start_from:
            inner = loading.small(chosen, tokenizer)
            new = {name for name, _ in inner.named_parameters()}
        model = cls(settings, kb, tokenizer, _fitted(inner, settings, tokenizer), new, mark)
        model.language.says_asking = language.says_asking
        return model

    @classmethod
    def restore(
        cls, settings: Settings, kb: KnowledgeBase, state: Mapping[str, Any], folder: Path
    ) -> Seq2SeqModel:
        """The model in a run's folder; with adapters, its weights come from where they came from.

        Raises ModelError where those are others now.
        """
        tokenizer = loading.saved_tokenizer(folder / FOLDER)
        if not settings.seq2seq.lora:
            mark, inner = "", loading.saved(folder / FOLDER)
        else:
            mark, inner = _base(settings)
            if mark != state["base"]:
                raise loading.ModelError(
                    f"the weights of {settings.seq2seq.name} (seq2seq.name) are others now than"
                    " those that its adapters were trained beside; put these back, or train again"
                )
        inner = _fitted(inner, settings, tokenizer)
        model = cls(settings, kb, tokenizer, inner, state["new"], mark)
        # The texts that runs of before learnt do not.
        model.language.says_asking &= state.get("says asking", False)
        return model

    def state(self) -> dict[str, Any]:
        """Which parameters the pretrained weights did not bring, and what its texts say.

        With adapters, which weights they are beside.
        """
        base = {"base": self._mark} if self._mark else {}
        new = sorted(name.removeprefix("inner.") for name in self._new)
        return {"new": new, "says asking": self.language.says_asking, **base}

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
                p
                for name, p in self.network.named_parameters()
                if p.requires_grad and (name in self._new) == new
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
        questions = self.form.questions([example.question for example, _ in written])
        targets = self.form.texts([text for _, text in written])
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
        one, other = self.language.read(text), self.language.read(again)
        same = one.program == other.program and one.asking == other.asking
        return one.program is not None and same

    def collate(self, items: Sequence[Seq2SeqItem]) -> Seq2SeqBatch:
        """The tensors of some examples."""
        questions, inside = self._questions([item.question for item in items])
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
        numbers = [self.form.cut(row, longest) for row in self.form.questions(questions)]
        found = self._generated(numbers, beams, constrained)
        texts = [self.tokens.text(row[len(self.form.first) :]) for row in found]
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
        read, inside = self._questions(questions)
        processors: list[Any] = [_checked]
        if constrained and self._constraint is not None:
            begin = self.form.before(read.shape[1])
            processors.append(logits_processor(self._constraint, begin=begin))
        return self.form.search(
            self.network.inner, read.to(self.device), inside.to(self.device), beams=beams,
            longest=self.settings.seq2seq.longest - 1 - len(self.form.first),
            processors=processors,
        )  # fmt: skip

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
            read, inside = self._questions([questions[row // beams] for row in rows])
            targets = self._padded([found[row] for row in rows], IGNORED)
            batch = Seq2SeqBatch(0, read, inside, targets).to(self.device)
            scores = self.network.scores(batch).float()
            chosen = scores.gather(-1, batch.targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
            places = chosen - scores.logsumexp(-1)
            counted = batch.targets != IGNORED
            counted[:, : len(self.form.first)] = False  # they are always there
            logs += (places * counted).sum(-1).tolist()
        return logs

    def _questions(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Questions, filled up on the side that the form wants, and which are tokens."""
        left = self.form.left
        read = self._padded(rows, self.tokens.padding, left=left)
        return read, self._padded([(1,) * len(row) for row in rows], 0, left=left)

    def _padded(self, rows: Sequence[Sequence[int]], value: int, *, left: bool = False) -> Tensor:
        """The rows as a tensor, filled up to a multiple of `MULTIPLE`, but not above ``longest``.

        A model may have positions for no more; no row is longer.
        """
        length = -(-max(map(len, rows)) // MULTIPLE) * MULTIPLE
        length = min(length, self.settings.seq2seq.longest)
        filled = ((row, [value] * (length - len(row))) for row in rows)
        return torch.tensor([[*fill, *row] if left else [*row, *fill] for row, fill in filled])


def _base(settings: Settings) -> tuple[str, Any]:
    """The weights that adapters train beside: their mark, and the model."""
    tokenizer, inner, new = loading.pretrained(settings.seq2seq)
    return loading.mark_of(tokenizer, inner, new), inner


def _fitted(inner: Any, settings: Settings, tokenizer: Any) -> Any:
    """A model with rows for all tokens, and with adapters where they are wanted."""
    known = inner.get_input_embeddings().num_embeddings
    if len(tokenizer) > known:
        inner.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    if not settings.seq2seq.lora:
        return inner
    return loading.with_adapters(inner, settings.seq2seq, range(known, len(tokenizer)))


def _checked(tokens: Tensor, scores: Tensor) -> Tensor:
    """The scores of the next token as they are; raises NotFiniteError where they are no numbers."""
    check_numbers(scores.amax(-1).tolist())
    return scores


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
    # A decoder alone has what it read among its own.
    read_copies = 1 if config.is_encoder_decoder else copies
    attended = 2 * layers * keys * (copies * written + read_copies * read)
    return FLOAT * (attended + INNER * width * read + TABLES * int(config.vocab_size))


def scoring_bytes(config: Any, written: int) -> int:
    """What the scores of all words at each of ``written`` places take, and a copy of them."""
    return 2 * FLOAT * written * int(config.vocab_size)


def _first(config: Any, *names: str) -> int:
    """The first of some attributes that a configuration has, 0 where it has none."""
    return next((int(found) for name in names if (found := getattr(config, name, None))), 0)
