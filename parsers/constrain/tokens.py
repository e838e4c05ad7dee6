"""What the tokens of a tokenizer spell, as bytes, in a trie.

A constraint is about text; which tokens may come next follows from what they spell. So it does not
matter how a tokenizer would split a text by itself: every way to spell it is allowed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
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
        from parsers.constrain.tokenizer import spellings_of

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
