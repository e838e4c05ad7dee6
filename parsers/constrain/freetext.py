"""Free text, bounded in length, as it may stand between the marks of programs or in quotes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from parsers.constrain.terminals import Place, Scan, Terminal
from parsers.constrain.tokens import TokenTable


class FreeText(Terminal):
    """Any text of UTF-8 without control characters, up to so many bytes, and without the marks.

    ``marks``: texts that it must not hold. ``blank``: whether it may begin with a blank.
    ``quoted``: it stands in the quotes of SPARQL, where quotes and backslashes are escaped. A
    place is (what UTF-8 expects, how much of each mark stands here, bytes left, began, escaped).
    """

    def __init__(
        self, most: int, *, marks: Iterable[bytes] = (), blank: bool = True, quoted: bool = False
    ) -> None:
        self.most, self.blank, self.quoted = most, blank, quoted
        self.marks = tuple(marks)
        self.start = ((0, 0x80, 0xBF), (0,) * len(self.marks), most, False, False)

    def step(self, place: Place, byte: int) -> Place | None:
        (missing, low, high), begun, left, began, escaped = place
        if missing:
            if not low <= byte <= high:
                return None
            return ((missing - 1, 0x80, 0xBF), begun, left - 1, True, False)
        if not left or byte < 0x20 or byte == 0x7F or (byte == 0x20 and not (began or self.blank)):
            return None
        if escaped and self.quoted:
            if byte not in b'"\\nrt':
                return None
            return ((0, 0x80, 0xBF), begun, left - 1, True, False)
        if self.quoted and byte == 0x22:
            return None
        # Behind a backslash a mark would be no mark, and a quote no end.
        expected, escapes = _utf8(byte), byte == 0x5C
        if expected is None or expected[0] + escapes >= left:
            return None
        after = []
        for mark, length in zip(self.marks, begun, strict=True):
            # The marks begin with "<", which stands nowhere else in them.
            length = length + 1 if mark[length] == byte else int(mark[0] == byte)
            if length == len(mark):
                return None
            after.append(length)
        return (expected, tuple(after), left - 1, True, escapes)

    def complete(self, place: Place) -> bool:
        return bool(place[3] and not place[0][0] and not place[4])

    def key(self, place: Place, longest: int) -> Hashable:
        return (*place[:2], *place[3:])

    def left(self, place: Place) -> int:
        return int(place[2])

    def reaches(self, place: Place, end: Place) -> bool:
        return bool(_ENDLESS - end[2] <= place[2])

    def scan(self, place: Place, node: int, table: TokenTable, follow: bytes) -> Scan:
        """For any length: what each token needs is told beside."""
        endless = (*place[:2], _ENDLESS, *place[3:])
        found, crossings = (self._walk if node else self._all)(endless, node, table, follow)
        found.sort()
        tokens = np.array([token for token, _ in found], np.int64)
        return Scan(tokens, tuple(crossings), np.array([need for _, need in found], np.int64))

    def _walk(
        self, place: Place, node: int, table: TokenTable, follow: bytes
    ) -> tuple[list[tuple[int, int]], list[tuple[int, Place]]]:
        """(token, bytes it needs) and crossings, from a node that is not the root."""
        trie = table.trie
        tokens: list[tuple[int, int]] = []
        crossings: list[tuple[int, Place]] = []
        waiting = [(node, place)]
        while waiting:
            at, here = waiting.pop()
            if at != node and trie.tokens_at[at] and self._may_end(here, table):
                tokens += [(token, _need(here)) for token in trie.tokens_at[at]]
            going = trie.bytes_at[at]
            if going and self.complete(here) and any(byte in going for byte in follow):
                crossings.append((at, here))
            for byte in going:
                after = self.step(here, byte)
                if after is not None:
                    waiting.append((trie.child(at, byte), after))
        return tokens, crossings

    def _all(
        self, place: Place, node: int, table: TokenTable, follow: bytes
    ) -> tuple[list[tuple[int, int]], list[tuple[int, Place]]]:
        """The same from the root, token by token: nearly all are plain and need no steps."""
        trie = table.trie
        tokens: list[tuple[int, int]] = []
        crossings = {0: place} if self.complete(place) else {}
        begins = not any(place[1]) and not place[0][0] and not place[4]
        for token, spelling in enumerate(table.spellings):
            if spelling is None:
                continue
            if begins and not spelling[spelling[0] == 0x20 :].translate(None, _PLAIN):
                if place[3] or self.blank or spelling[0] != 0x20:
                    tokens.append((token, len(spelling)))
                continue
            here = place
            at = 0
            for byte in spelling:
                if at and byte in follow and self.complete(here):
                    crossings[at] = here
                here = self.step(here, byte)
                if here is None:
                    break
                at = trie.child(at, byte)
            else:
                if self._may_end(here, table):
                    tokens.append((token, _need(here)))
        return tokens, list(crossings.items())

    def _may_end(self, place: Place, table: TokenTable) -> bool:
        return table.complete or self.lives(place, table)

    def accepts(self, data: bytes) -> bool:
        """Whether these bytes are such a text."""
        place = self.start
        for byte in data:
            place = self.step(place, byte)
            if place is None:
                return False
        return self.complete(place)


_ENDLESS = 1 << 40
# Neither blanks, which may stand behind a text, nor what quotes, escapes and marks are made of.
_PLAIN = bytes(byte for byte in range(0x21, 0x7F) if byte not in b'"\\<>)')


def _need(place: Place) -> int:
    """The bytes since the beginning, with those that a character or an escape lacks."""
    (missing, _, _), _, left, _, escaped = place
    return int(_ENDLESS - left + missing + escaped)


def _utf8(byte: int) -> tuple[int, int, int] | None:
    """Behind a character's first byte: (bytes to follow, the least and greatest next one)."""
    if byte < 0x80:
        return (0, 0x80, 0xBF)
    if 0xC2 <= byte <= 0xDF:
        return (1, 0x80, 0xBF)
    if 0xE0 <= byte <= 0xEF:
        # No overlong forms, no surrogates.
        return (2, 0xA0 if byte == 0xE0 else 0x80, 0x9F if byte == 0xED else 0xBF)
    if 0xF0 <= byte <= 0xF4:
        return (3, 0x90 if byte == 0xF0 else 0x80, 0x8F if byte == 0xF4 else 0xBF)
    return None
