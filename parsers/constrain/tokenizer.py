"""What each token of a tokenizer of Hugging Face spells, by the decoder that the file declares."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from parsers.constrain.tokens import TokenizerError, description

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_BLANK = "\u2581"  # SentencePiece's mark of a blank


def spellings_of(tokenizer: Any, marks: Sequence[str]) -> tuple[list[bytes | None], int]:
    """(what each token spells, the token that ends a sequence)."""
    told = description(tokenizer)
    spell = _speller(told)
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    size = max(backend.get_vocab(with_added_tokens=True).values(), default=-1) + 1
    found: list[bytes | None] = [None] * size
    for token, number in backend.get_vocab(with_added_tokens=False).items():
        found[number] = spell(token)
    for added in told.get("added_tokens") or ():
        # Special tokens are no text; other added tokens stand for themselves.
        kept = added["content"] in marks or not added["special"]
        found[added["id"]] = added["content"].encode() if kept else None
    unknown = (told.get("model") or {}).get("unk_token") or getattr(tokenizer, "unk_token", None)
    if unknown is not None and (number := backend.token_to_id(unknown)) is not None:
        found[number] = None
    return found, _end(tokenizer, backend)


def _end(tokenizer: Any, backend: Any) -> int:
    end = getattr(tokenizer, "eos_token_id", None)
    if end is None:
        for name in ("</s>", "[SEP]", "<eos>", "<|endoftext|>"):
            end = backend.token_to_id(name) if end is None else end
    if end is None:
        raise TokenizerError("the tokenizer has no token that ends a sequence (eos_token)")
    return int(end)


def _speller(told: dict[str, Any]) -> Callable[[str], bytes | None]:
    """How the tokens of a vocabulary are spelt."""
    decoders = [told.get("decoder") or {}]
    if decoders[0].get("type") == "Sequence":
        decoders = list(decoders[0]["decoders"])
    kinds = {decoder.get("type") for decoder in decoders}
    if "ByteLevel" in kinds:
        return _byte_level
    if "Metaspace" in kinds or "Replace" in kinds or "ByteFallback" in kinds:
        return _sentence_piece
    if "WordPiece" in kinds:
        prefix = next(d for d in decoders if d.get("type") == "WordPiece").get("prefix", "##")
        return lambda token: (
            token[len(prefix) :] if token.startswith(prefix) else f" {token}"
        ).encode()
    if kinds == {None}:
        if (told.get("model") or {}).get("type") == "WordLevel":
            return lambda token: f" {token}".encode()
        if (told.get("pre_tokenizer") or {}).get("type") == "ByteLevel":
            return _byte_level
    raise TokenizerError(
        f"tokens that are decoded by {', '.join(sorted(map(str, kinds)))} are not understood;"
        " byte-level BPE, SentencePiece, WordPiece and word-level tokenizers are"
    )


def _characters_of_bytes() -> dict[str, int]:
    """The characters by which byte-level BPE shows bytes: printable ones as they are."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    found = {chr(byte): byte for byte in shown}
    others = [byte for byte in range(256) if byte not in set(shown)]
    return found | {chr(256 + place): byte for place, byte in enumerate(others)}


_BYTES = _characters_of_bytes()


def _byte_level(token: str) -> bytes | None:
    try:
        return bytes([_BYTES[character] for character in token])
    except KeyError:
        return None  # no token that byte-level text can give


def _sentence_piece(token: str) -> bytes:
    if match := _BYTE.fullmatch(token):
        return bytes([int(match[1], 16)])
    return token.replace(_BLANK, " ").encode()
