"""Tokenizers of every kind, random decodings, and what a program or query names."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kb import KnowledgeBase
from kb.rdf.iri import decode
from kb.values import read_quantity
from kopl.program import Call, post_order
from kopl.sparql.ast import Iri, Literal, Triple, walk
from kopl.text import read_json
from kopl.types import Kind
from parsers.constrain import Constraint, TokenTable

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<arg>", "<func>"]


def byte_level(texts: Iterable[str], size: int = 2000) -> Any:
    """Byte-level BPE, as BART and GPT-2 have it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=size, initial_alphabet=alphabet, special_tokens=SPECIAL, show_progress=False
        ),
    )
    return made


def sentence_piece(texts: Sequence[str], size: int = 1500) -> Any:
    """A unigram model without byte fallback, as T5 has it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.Unigram())
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    alphabet = sorted({character for text in texts for character in text if character != " "})
    made.train_from_iterator(
        texts,
        trainers.UnigramTrainer(
            vocab_size=size, initial_alphabet=alphabet, special_tokens=SPECIAL,
            unk_token="<unk>", show_progress=False,
        ),
    )  # fmt: skip
    return made


def byte_fallback(texts: Sequence[str], size: int = 1500) -> Any:
    """BPE with SentencePiece's blanks and a token for each byte, as Llama has it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
         decoders.Strip(" ", 1, 0)]
    )  # fmt: skip
    in_bytes = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=SPECIAL + in_bytes, show_progress=False
    )
    made.train_from_iterator(texts, trainer)
    # The bytes are tokens of the vocabulary, not special ones.
    told = json.loads(made.to_str())
    told["added_tokens"] = [t for t in told["added_tokens"] if t["content"] in SPECIAL]
    return Tokenizer.from_str(json.dumps(told))


def word_level(texts: Iterable[str]) -> Any:
    """Whole words, split at blanks."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    made = Tokenizer(models.WordLevel(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=SPECIAL))
    return made


KINDS = {
    "byte-level": byte_level,
    "unigram": sentence_piece,
    "byte fallback": byte_fallback,
    "word-level": word_level,
}


def names_of(kb: KnowledgeBase) -> list[str]:
    """Everything that has a name, and the values that are strings."""
    kinds = ("entity", "concept", "key", "qualifier key", "relation", "unit")
    found = [name for kind in kinds for name in kb.names_of_kind(kind)]  # type: ignore[arg-type]
    return found + [str(kb.values[number]) for number in range(kb.values.first_quantity)]


def decoded(constraint: Constraint, rng: random.Random, most: int = 20_000) -> list[int]:
    """The tokens of an untrained model: any of the allowed ones, until the end."""
    state, tokens = constraint.start(), []
    while not state.ended:
        allowed = constraint.allowed(state)
        assert len(allowed), f"nothing may follow {constraint.table.text(tokens)!r}"
        tokens.append(int(allowed[rng.randrange(len(allowed))]))
        state = constraint.advance(state, tokens[-1])
        assert len(tokens) < most, "the sequence does not end"
    return tokens


def unknown_names(program: Call, kb: KnowledgeBase) -> Iterator[str]:
    """What a program names although the knowledge base does not have it."""
    lists = {
        Kind.CONCEPT: set(kb.names_of_kind("concept")),
        Kind.KEY: set(kb.attribute_keys),
        Kind.QUALIFIER_KEY: set(kb.qualifier_keys),
        Kind.RELATION: set(kb.relations),
    }
    for call in post_order(program):
        for (_, kind), text in zip(call.function.arguments, call.arguments, strict=True):
            known = True
            if kind is Kind.NAME:
                known = len(kb.named(text)) > 0
            elif kind in lists:
                known = text in lists[kind]
            elif kind is Kind.QUANTITY:
                known = read_quantity(text).unit in {"1", *kb.units}
            if not known:
                yield text


def unknown_names_of_query(query: Any, kb: KnowledgeBase) -> Iterator[str]:
    """What a query names although the knowledge base does not have it."""
    known = {*kb.relations, *kb.keys}
    for part in walk(query):
        if isinstance(part, Iri) and not part.text.startswith("pred:"):
            if decode(part.text) not in known:
                yield part.text
        elif isinstance(part, Triple) and isinstance(part.object, Literal):
            if part.predicate == Iri("pred:name") and not len(kb.named(part.object.text)):
                yield part.object.text
            if part.predicate == Iri("pred:unit") and part.object.text not in kb.units:
                yield part.object.text


def generated(kb: str, count: int, folder: Path) -> list[Call]:
    """The programs of generated questions."""
    output = folder / f"questions-{count}.jsonl"
    command = [sys.executable, "-m", "kopl", "generate", "--kb", kb, "-n", str(count), "-s", "11",
               "-o", str(output), "-q", "--verify", "0", "--no-sparql"]  # fmt: skip
    subprocess.run(command, check=True, timeout=600)
    lines = output.read_text("utf-8").splitlines()
    return [read_json(json.loads(line)["program"]) for line in lines]


def table_of(kind: str, kb: KnowledgeBase, texts: Iterable[str] = ()) -> tuple[Any, TokenTable]:
    """A tokenizer of a kind that has seen the names of a knowledge base, and its table."""
    made = KINDS[kind]([*names_of(kb), *texts])
    return made, TokenTable.of(made)
