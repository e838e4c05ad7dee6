"""What the tokens of a tokenizer spell, as bytes, in a trie.

A constraint is about text; which tokens may come next follows from what they spell. So it does not
matter how a tokenizer would split a text by itself: every way to spell it is allowed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kopl_base.errors import KoplError

Ids = npt.NDArray[np.int64]

# Bytes that never occur in UTF-8 stand for the end of the sequence and for marks that are tokens.
END = b"\xff"
_FIRST_MARK = 0xF8
_NEVER = re.compile(rb"[\xf5-\xff]")

# The marks of the paper's serialised programs, which models have as special tokens.
MARKS = ("<arg>", "<func>")


class TokenizerError(KoplError):
    """A tokenizer whose tokens do not spell texts one after the other."""

    kind = "tokenizer"


class Trie:
    """The spellings as a tree of bytes; nodes are numbered and 0 is the root."""

    def __init__(self, spellings: Sequence[bytes | None]) -> None:
        self._next: dict[int, int] = {}
        children: list[list[int]] = [[]]
        tokens: list[list[int]] = [[]]
        for token, spelling in enumerate(spellings):
            node = 0
            for byte in spelling or b"":
                key = node << 8 | byte
                below = self._next.get(key)
                if below is None:
                    below = self._next[key] = len(children)
                    children[node].append(byte)
                    children.append([])
                    tokens.append([])
                node = below
            if node:
                tokens[node].append(token)
        # For each node the bytes that go on from it, and the tokens that are spelt there.
        self.bytes_at = [bytes(sorted(found)) for found in children]
        self.tokens_at = [tuple(found) for found in tokens]

    def child(self, node: int, byte: int) -> int:
        """The node that a byte leads to, or 0 where no spelling goes on so."""
        return self._next.get(node << 8 | byte, 0)


class TokenTable:
    """The tokens of a vocabulary by what they spell.

    ``spellings`` has the bytes of each token by its number, None for tokens that are never written
    (padding, unknown, the beginning); ``end`` is the token that ends a sequence. ``marks`` are
    texts that stand as tokens of their own: spelt out of smaller pieces they are not the mark.

    >>> table = TokenTable([b"Count", b"<func>", b" ", None], end=3, marks=["<func>"])
    >>> table.text([0, 2, 1, 2])
    'Count <func> '
    """

    def __init__(
        self, spellings: Sequence[bytes | None], end: int, marks: Sequence[str] = MARKS
    ) -> None:
        if not 0 <= end < len(spellings):
            raise TokenizerError(f"the end of a sequence is token {end} of {len(spellings)}")
        if len(marks) > END[0] - _FIRST_MARK:
            raise TokenizerError(f"{len(marks)} marks are too many; 7 can be told apart")
        self.end = end
        present = {spelling for spelling in spellings if spelling}
        self._marks = {
            mark.encode(): bytes([_FIRST_MARK + number])
            for number, mark in enumerate(marks)
            if mark.encode() in present
        }
        self._marked = re.compile(b"|".join(map(re.escape, self._marks)) or rb"(?!)")
        found: list[bytes | None] = []
        for spelling in spellings:
            if spelling is not None and spelling in self._marks:
                found.append(self._marks[spelling])
            elif not spelling or _NEVER.search(spelling):
                found.append(None)
            else:
                found.append(spelling)
        found[end] = END
        self.spellings: tuple[bytes | None, ...] = tuple(found)
        self.trie = Trie(self.spellings)
        self.longest = max(len(spelling or b"") for spelling in found)
        # Whether any text can be spelt from any place in it: by single bytes, if nothing else.
        self.complete = all(bytes([byte]) in present for byte in range(0x20, 0xF5) if byte != 0x7F
                            and byte not in (0xC0, 0xC1))  # fmt: skip
        self._spelt: dict[bytes, bytearray] = {}

    def __len__(self) -> int:
        return len(self.spellings)

    @classmethod
    def of(cls, tokenizer: Any, marks: Sequence[str] = MARKS) -> TokenTable:
        """The table of a fast tokenizer of transformers (or of `tokenizers`, with ``</s>``).

        Byte-level BPE, SentencePiece (with or without byte fallback), WordPiece and word-level
        models are read, the last as words joined by blanks. Raises TokenizerError for others.
        """
        spellings, end = spellings_of(tokenizer, marks)
        return cls(spellings, end, marks)

    # --- texts --------------------------------------------------------------------------------

    def encoded(self, text: str) -> bytes:
        """The bytes of a text as the table's tokens spell it: marks that are tokens are one."""
        data = text.encode("utf-8", "surrogatepass")
        return self._marked.sub(lambda match: self._marks[match[0]], data)

    def text(self, tokens: Sequence[int]) -> str:
        """The text that tokens spell, up to the end of the sequence; others spell nothing."""
        names: Mapping[bytes, bytes] = {code: mark for mark, code in self._marks.items()}
        parts = []
        for token in tokens:
            if token == self.end:
                break
            spelling = self.spellings[token]
            if spelling is not None:
                parts.append(names.get(spelling, spelling))
        return b"".join(parts).decode("utf-8", "replace").removeprefix(" ")

    @cached_property
    def _by_spelling(self) -> dict[bytes, int]:
        numbered = enumerate(self.spellings)
        return {spelling: token for token, spelling in numbered if spelling is not None}

    def split(self, text: str) -> list[int]:
        """A way to spell a text, with the end behind it: the longest token first, greedily.

        Raises TokenizerError for a text that cannot be spelt so.
        """
        data, at, found = self.encoded(text), 0, []
        while at < len(data):
            for length in range(min(self.longest, len(data) - at), 0, -1):
                token = self._by_spelling.get(data[at : at + length])
                if token is not None:
                    found.append(token)
                    at += length
                    break
            else:
                raise TokenizerError(f"no token spells {data[at : at + 20]!r}")
        return [*found, self.end]

    def spells(self, data: bytes, start: int = 0) -> bool:
        """Whether tokens can spell the bytes from a place on to their very end."""
        return self.complete or bool(self._endings(data)[start])

    def _endings(self, data: bytes) -> bytearray:
        found = self._spelt.get(data)
        if found is None:
            if len(self._spelt) > 200_000:
                self._spelt.clear()
            trie = self.trie
            found = bytearray(len(data) + 1)
            found[len(data)] = 1
            for start in range(len(data) - 1, -1, -1):
                node = 0
                for at in range(start, len(data)):
                    node = trie.child(node, data[at])
                    if not node:
                        break
                    if found[at + 1] and trie.tokens_at[node]:
                        found[start] = 1
                        break
            self._spelt[data] = found
        return found


# --- tokenizers of Hugging Face ----------------------------------------------------------------

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_BLANK = "\u2581"  # SentencePiece's mark of a blank


def description(tokenizer: Any) -> dict[str, Any]:
    """The JSON that describes a fast tokenizer."""
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    try:
        found: dict[str, Any] = json.loads(backend.to_str())
    except AttributeError:
        raise TokenizerError(
            f"{type(tokenizer).__name__} is no fast tokenizer; load it with AutoTokenizer"
        ) from None
    return found


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
