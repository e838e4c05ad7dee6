"""Tokenizers: marks and missing characters as tokens, texts and back, one from the examples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from parsers.constrain import TokenTable
from parsers.models.seq2seq.loading import library

BEGIN, PADDING, END, UNKNOWN = "<s>", "<pad>", "</s>", "<unk>"

# What becomes no part of a larger token: names and variables of queries are one piece each, so that
# a query is not four times as long as its program; all else is as in BART's tokenizer, where words,
# numbers and signs are pieces, each with the blank before it.
_PIECES = r" ?<[^<>\s]+>| ?\?\w+| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


class Tokens:
    """A tokenizer of transformers, as the model uses it: texts to numbers and back.

    ``first`` are the special tokens that every text begins with, such as BART's ``<s>``.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.table = TokenTable.of(tokenizer)
        self.end: int = self.table.end
        self.first: list[int] = [number for number in tokenizer("").input_ids if number != self.end]
        self.padding: int = (
            self.end if tokenizer.pad_token_id is None else int(tokenizer.pad_token_id)
        )

    def plain(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of texts, without the special ones before and behind."""
        if not texts:
            return []
        found: list[list[int]] = self.tokenizer(list(texts), add_special_tokens=False).input_ids
        return found

    def text(self, numbers: Sequence[int]) -> str:
        """The text that tokens spell up to the end; special tokens spell nothing."""
        return self.table.text(numbers)


def with_tokens(tokenizer: Any, marks: Iterable[str], texts: Iterable[str]) -> None:
    """Add the marks, and the characters of the texts that the tokenizer does not know."""
    AddedToken = library().AddedToken
    # The blank before a mark belongs to it: "Find <arg> X" is "Find", "<arg>", " X".
    added = [AddedToken(mark, lstrip=True, normalized=False, special=True) for mark in marks]
    tokenizer.add_tokens(added, special_tokens=True)
    unknown = tokenizer.unk_token_id
    if unknown is None:
        return
    characters = sorted({character for text in texts for character in text})
    missing = [
        character
        for character in characters
        if unknown in tokenizer(character, add_special_tokens=False).input_ids
    ]
    tokenizer.add_tokens([AddedToken(character, normalized=False) for character in missing])


def tokenizer_of(texts: Iterable[str], size: int) -> Any:
    """A byte-level BPE tokenizer, as BART's, from texts."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    made = Tokenizer(models.BPE(unk_token=None))
    made.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(_PIECES), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])  # fmt: skip
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[BEGIN, PADDING, END, UNKNOWN], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    made.train_from_iterator(texts, trainer)
    made.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A {END}",
        special_tokens=[(text, made.token_to_id(text)) for text in (BEGIN, END)],
    )
    return library().PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token=BEGIN, pad_token=PADDING, eos_token=END, unk_token=UNKNOWN
    )
