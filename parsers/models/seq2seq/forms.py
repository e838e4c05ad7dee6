"""The two forms of a language model as a parser: encoder and decoder, or a decoder alone.

An encoder-decoder reads the question and writes the text. A decoder alone goes on writing behind
the question and a word that says what is asked for. Both give the scores of the text's tokens, and
search by what transformers brings.

Shapes: B questions of at most L tokens, B texts of at most T, V words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from kopl_base.training.optimizer import Batch, Scores
from parsers.languages import OutputLanguage
from parsers.models.base import IGNORED, summed_loss
from parsers.models.seq2seq.loading import is_causal, library
from parsers.models.seq2seq.tokens import Tokens


@dataclass(frozen=True)
class Seq2SeqBatch(Batch):
    """Questions and the texts to be written."""

    questions: Tensor  # B × L
    inside: Tensor  # B × L, 1 for tokens, 0 for what fills up
    targets: Tensor  # B × T, IGNORED behind the end


class Seq2SeqNetwork(nn.Module, ABC):
    """A model of transformers that gives the sum of the losses.

    Parameters that do not train, as those that adapters (LoRA) stand beside, are not saved: they
    come from the same place again.
    """

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner
        every = self.named_parameters(remove_duplicate=False)
        self._frozen = {name for name, parameter in every if not parameter.requires_grad}
        if self._frozen:
            self.register_state_dict_post_hook(_without_frozen)  # type: ignore[no-untyped-call]

    def forward(self, batch: Seq2SeqBatch) -> Scores:
        """The loss of all tokens, and which texts are all right."""
        return summed_loss(self.scores(batch), batch.targets)

    @abstractmethod
    def scores(self, batch: Seq2SeqBatch) -> Tensor:
        """The scores of every token at every place (B × T × V)."""

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """As of torch; what is not saved is not missing."""
        found = super().load_state_dict(state_dict, strict=False, assign=assign)
        missing = [name for name in found.missing_keys if name not in self._frozen]
        if strict and (missing or found.unexpected_keys):
            raise RuntimeError(f"missing: {missing}; unexpected: {found.unexpected_keys}")
        return type(found)(missing, found.unexpected_keys)


def _without_frozen(network: Any, state: dict[str, Any], prefix: str, metadata: object) -> None:
    for name in network._frozen:
        state.pop(prefix + name, None)


class EncoderDecoder(Seq2SeqNetwork):
    """An encoder reads the question, a decoder writes the text."""

    def scores(self, batch: Seq2SeqBatch) -> Tensor:
        """The scores of every token at every place (B × T × V)."""
        found: Tensor = self.inner(
            input_ids=batch.questions, attention_mask=batch.inside, labels=batch.targets
        ).logits
        return found


class DecoderOnly(Seq2SeqNetwork):
    """A decoder goes on behind the question, which is filled up on its left."""

    def scores(self, batch: Seq2SeqBatch) -> Tensor:
        """The scores of every token at every place (B × T × V)."""
        written = batch.targets[:, :-1]
        tokens = torch.cat([batch.questions, written.clamp(min=0)], 1)
        inside = torch.cat([batch.inside, (written != IGNORED).long()], 1)
        places = (inside.cumsum(1) - 1).clamp(min=0)
        found: Tensor = self.inner(
            input_ids=tokens, attention_mask=inside, position_ids=places, use_cache=False,
            logits_to_keep=batch.targets.shape[1],
        ).logits  # fmt: skip
        return found[:, -batch.targets.shape[1] :]


class Form(ABC):
    """How a model reads questions, and searches for texts.

    ``first``: the tokens that every text begins with; ``before``: those that stand before the text
    in what the search gives, of a question of L tokens; ``left``: questions are filled up on their
    left.
    """

    network: ClassVar[type[Seq2SeqNetwork]]
    left: ClassVar[bool]

    def __init__(self, tokens: Tokens, inner: Any) -> None:
        self.tokens = tokens
        self.first: list[int] = []
        # None of the defaults that a model brings for summaries, such as no repeated trigrams.
        self._special = self._specials(inner.config)
        inner.generation_config = library().GenerationConfig(**self._special)

    @staticmethod
    def of(tokens: Tokens, inner: Any, language: OutputLanguage) -> Form:
        """The form that a model has."""
        if is_causal(inner.config):
            return CausalForm(tokens, inner, language)
        return EncoderDecoderForm(tokens, inner)

    def _specials(self, config: Any) -> dict[str, Any]:
        return {
            "eos_token_id": self.tokens.end, "pad_token_id": self.tokens.padding,
            "bos_token_id": config.bos_token_id,
        }  # fmt: skip

    @abstractmethod
    def questions(self, texts: Sequence[str]) -> list[list[int]]:
        """What is read for questions."""

    @abstractmethod
    def cut(self, question: list[int], longest: int) -> list[int]:
        """A question that is too long, cut so that its end stays."""

    def texts(self, texts: Sequence[str]) -> list[list[int]]:
        """What is to be written for texts."""
        return [[*self.first, *row, self.tokens.end] for row in self.tokens.plain(texts)]

    @abstractmethod
    def before(self, length: int) -> int:
        """How many tokens stand before a text in what `search` begins with."""

    def search(
        self, inner: Any, questions: Tensor, inside: Tensor, *, beams: int, longest: int,
        processors: list[Any],
    ) -> list[list[int]]:  # fmt: skip
        """The texts, ``beams`` for each question, each up to its end, with `first`."""
        config = library().GenerationConfig(
            num_beams=beams, num_return_sequences=beams, do_sample=False, length_penalty=0.0,
            max_new_tokens=longest, early_stopping=False, **self._special,
        )  # fmt: skip
        found = inner.generate(
            input_ids=questions, attention_mask=inside, generation_config=config,
            logits_processor=processors, **self._begun(questions),
        )  # fmt: skip
        rows: list[list[int]] = found.tolist()
        skipped = self.before(questions.shape[1])
        return [[*self.first, *_until(row[skipped:], self.tokens.end)] for row in rows]

    def _begun(self, questions: Tensor) -> dict[str, Any]:
        """What the search is given beside the questions."""
        return {}


class EncoderDecoderForm(Form):
    """Texts begin with the decoder's start, and with what the tokenizer puts first."""

    network, left = EncoderDecoder, False

    def __init__(self, tokens: Tokens, inner: Any) -> None:
        start = inner.config.decoder_start_token_id
        self._start = tokens.end if start is None else int(start)
        super().__init__(tokens, inner)
        self.first = list(tokens.first)

    def _specials(self, config: Any) -> dict[str, Any]:
        return {**super()._specials(config), "decoder_start_token_id": self._start}

    def questions(self, texts: Sequence[str]) -> list[list[int]]:
        """Special tokens before and behind."""
        return self.texts(texts)

    def cut(self, question: list[int], longest: int) -> list[int]:
        """With its end mark."""
        return question if len(question) <= longest else [*question[: longest - 1], question[-1]]

    def before(self, length: int) -> int:
        """The decoder's start and what stands first."""
        return 1 + len(self.first)

    def _begun(self, questions: Tensor) -> dict[str, Any]:
        begun = [[self._start, *self.first]] * len(questions)
        return {"decoder_input_ids": torch.tensor(begun, device=questions.device)}


class CausalForm(Form):
    """Questions end with a line that asks for the language: ``kopl:``."""

    network, left = DecoderOnly, True

    def __init__(self, tokens: Tokens, inner: Any, language: OutputLanguage) -> None:
        super().__init__(tokens, inner)
        [self._asks] = tokens.plain([f"\n{language.name}:"])

    def questions(self, texts: Sequence[str]) -> list[list[int]]:
        """What the tokenizer puts first, the question, the line that asks."""
        return [[*self.tokens.first, *row, *self._asks] for row in self.tokens.plain(texts)]

    def cut(self, question: list[int], longest: int) -> list[int]:
        """With the line that asks."""
        kept = longest - len(self._asks)
        return question if len(question) <= longest else [*question[:kept], *self._asks]

    def before(self, length: int) -> int:
        """The question."""
        return length


def _until(row: list[int], end: int) -> list[int]:
    """A row up to its end, which is kept."""
    return row[: row.index(end) + 1] if end in row else row
