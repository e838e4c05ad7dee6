"""The words of a constrained language: fixed texts, names, numbers, times, free text.

A terminal is never empty. It is followed byte by byte: ``step`` gives the place after a byte (None
where the byte does not fit), ``complete`` tells whether the text may end at a place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kb.values import days_in_month
from parsers.constrain.tokens import Ids, TokenTable, Trie

Place = Any  # each terminal has places of its own; they are hashable


@dataclass(frozen=True, slots=True)
class Scan:
    """The tokens that fit from a place, from some node of the trie on.

    ``tokens`` end inside of the terminal or with it; for each of ``crossings`` (node, place) the
    terminal is complete before the token is. In a text whose length is bounded ``needs`` tells how
    many bytes each token needs there.
    """

    tokens: Ids
    crossings: tuple[tuple[int, Place], ...]
    needs: Ids | None = None

    @classmethod
    def of(cls, tokens: list[int], crossings: list[tuple[int, Place]]) -> Scan:
        """The scan with its tokens sorted."""
        return cls(np.array(sorted(tokens), np.int64), tuple(crossings))

    def within(self, left: int) -> Ids:
        """The tokens for which so many bytes are enough."""
        return self.tokens if self.needs is None else self.tokens[self.needs <= left]


class Terminal:
    """The base of all: a scan that walks the terminal and the trie together."""

    # Where the text begins; None for a terminal that nothing can be.
    start: Place | None = 0

    def step(self, place: Place, byte: int) -> Place | None:
        """The place after a byte, or None."""
        raise NotImplementedError

    def complete(self, place: Place) -> bool:
        """Whether the text may end here."""
        raise NotImplementedError

    def key(self, place: Place, longest: int) -> Hashable:
        """Equal for places from which the same tokens of at most so many bytes fit."""
        found: Hashable = place
        return found

    def left(self, place: Place) -> int:
        """How many bytes may follow, where the length is bounded."""
        return 0

    def reaches(self, place: Place, end: Place) -> bool:
        """Whether a place that a scan found is near enough, where the length is bounded."""
        return True

    def lives(self, place: Place, table: TokenTable) -> bool:
        """Whether tokens can spell the rest; only asked where not every text can be spelt."""
        if self.complete(place):
            return True
        seen, waiting = {place}, [place]
        while waiting:
            for after in self._reached(waiting.pop(), table.trie):
                if self.complete(after):
                    return True
                if after not in seen:
                    seen.add(after)
                    waiting.append(after)
        return False

    def _reached(self, place: Place, trie: Trie) -> Iterable[Place]:
        waiting = [(0, place)]
        while waiting:
            node, at = waiting.pop()
            if node and trie.tokens_at[node]:
                yield at
            for byte in trie.bytes_at[node]:
                after = self.step(at, byte)
                if after is not None:
                    waiting.append((trie.child(node, byte), after))

    def scan(self, place: Place, node: int, table: TokenTable, follow: bytes) -> Scan:
        """The tokens that go on from a node; ``follow``: what may come behind the terminal."""
        trie = table.trie
        tokens: list[int] = []
        crossings: list[tuple[int, Place]] = []
        waiting = [(node, place)]
        while waiting:
            at, here = waiting.pop()
            if at != node and (table.complete or self.lives(here, table)):
                tokens.extend(trie.tokens_at[at])
            going = trie.bytes_at[at]
            if not going:
                continue
            if self.complete(here) and any(byte in going for byte in follow):
                crossings.append((at, here))
            for byte in going:
                after = self.step(here, byte)
                if after is not None:
                    waiting.append((trie.child(at, byte), after))
        return Scan.of(tokens, crossings)


class Literal(Terminal):
    """One fixed text; a place is how much of it stands there."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def step(self, place: Place, byte: int) -> Place | None:
        data = self.data
        return place + 1 if place < len(data) and data[place] == byte else None

    def complete(self, place: Place) -> bool:
        return bool(place == len(self.data))

    def lives(self, place: Place, table: TokenTable) -> bool:
        # The last bytes may be spelt together with what comes behind.
        data, trie = self.data, table.trie
        for end in range(len(data), place - 1, -1):
            node = 0
            for byte in data[end:]:
                node = trie.child(node, byte)
                if not node:
                    break
            whole = end == len(data)
            if (whole or (node and trie.bytes_at[node])) and table.spells(data[place:end]):
                return True
        return False

    def scan(self, place: Place, node: int, table: TokenTable, follow: bytes) -> Scan:
        trie, data = table.trie, self.data
        tokens: list[int] = []
        at = node
        for here in range(place, len(data)):
            at = trie.child(at, data[here])
            if not at:
                return Scan.of(tokens, [])
            if trie.tokens_at[at] and (table.complete or self.lives(here + 1, table)):
                tokens.extend(trie.tokens_at[at])
        crosses = bool(trie.bytes_at[at])
        return Scan.of(tokens, [(at, len(data))] if crosses else [])


class Names(Terminal):
    """One of many texts, kept sorted; a place is an interval of them and a length.

    A name whose beginning is another name, and equal beginnings, need no tree: the texts of an
    interval share their first bytes, and a text that ends there is the first of the interval.
    """

    def __init__(self, texts: Iterable[bytes]) -> None:
        self.texts = sorted(set(texts))
        if self.texts and not self.texts[0]:
            raise ValueError("a name must not be empty")
        self.start = (0, len(self.texts), 0) if self.texts else None

    def __len__(self) -> int:
        return len(self.texts)

    def found(self, place: Place) -> bytes:
        """The text that is complete at a place."""
        found: bytes = self.texts[place[0]]
        return found

    def step(self, place: Place, byte: int) -> Place | None:
        low, high, length = place
        texts = self.texts
        first = texts[low]
        if high - low == 1:
            same = length < len(first) and first[length] == byte
            return (low, high, length + 1) if same else None
        before = first[:length]
        low = bisect_left(texts, before + bytes((byte,)), low, high)
        if low == high or not texts[low].startswith(before + bytes((byte,))):
            return None
        if texts[high - 1][length] != byte:
            high = bisect_left(texts, before + bytes((byte + 1,)), low, high)
        return (low, high, length + 1)

    def complete(self, place: Place) -> bool:
        return bool(len(self.texts[place[0]]) == place[2])

    def lives(self, place: Place, table: TokenTable) -> bool:
        low, high, length = place
        return any(table.spells(self.texts[at], length) for at in range(low, high))

    def scan(self, place: Place, node: int, table: TokenTable, follow: bytes) -> Scan:
        trie, texts, whole = table.trie, self.texts, table.complete
        tokens: list[int] = []
        crossings: list[tuple[int, Place]] = []
        waiting = [(node, *place)]
        while waiting:
            at, low, high, length = waiting.pop()
            first = texts[low]
            here = (low, high, length)
            if at != node and trie.tokens_at[at] and (whole or self.lives(here, table)):
                tokens.extend(trie.tokens_at[at])
            going = trie.bytes_at[at]
            if not going:
                continue
            if len(first) == length:
                if any(byte in going for byte in follow):
                    crossings.append((at, here))
                low += 1
                if low == high:
                    continue
                first = texts[low]
            if first[length] == texts[high - 1][length]:
                below = trie.child(at, first[length])
                if below:
                    waiting.append((below, low, high, length + 1))
                continue
            before = first[:length]
            while low < high:
                byte = texts[low][length]
                end = bisect_left(texts, before + bytes((byte + 1,)), low, high)
                below = trie.child(at, byte)
                if below:
                    waiting.append((below, low, end, length + 1))
                low = end
        return Scan.of(tokens, crossings)


_DIGITS = frozenset(b"0123456789")

# How many digits numbers may have, before and after the point, and in the exponent: every double
# of a knowledge base in use has fewer, and no such number is infinite.
MOST_DIGITS = 40
_EXPONENT_DIGITS = 2


class Number(Terminal):
    """An ASCII number: sign, digits, point and digits, exponent; with ``whole`` digits only.

    A place is (part, digits left in the part).
    """

    start = ("start", 0)

    def __init__(self, *, whole: bool = False, most: int = MOST_DIGITS) -> None:
        self.whole, self.most = whole, most

    def step(self, place: Place, byte: int) -> Place | None:
        part, left = place
        if byte in _DIGITS:
            if part in ("start", "sign"):
                return ("digits", self.most - 1)
            if part == "point":
                return ("fraction", self.most - 1)
            if part in ("e", "e sign"):
                return ("exponent", _EXPONENT_DIGITS - 1)
            return (part, left - 1) if left else None
        if byte == 0x2D or (byte == 0x2B and not self.whole):
            return {"start": ("sign", 0), "e": ("e sign", 0)}.get(part)
        if self.whole:
            return None
        if byte == 0x2E:
            return ("point", 0) if part == "digits" else None
        if byte in b"eE":
            return ("e", 0) if part in ("digits", "fraction") else None
        return None

    def complete(self, place: Place) -> bool:
        return place[0] in ("digits", "fraction", "exponent")

    def key(self, place: Place, longest: int) -> Hashable:
        return (place[0], min(place[1], longest))


# A year has at most twelve digits (kb.values.LARGEST_YEAR).
_YEAR_DIGITS = 12


class Time(Terminal):
    """A year or a day; with ``padded`` a day as the encoding in RDF prints it, and no year.

    A place is (part, separator, number, digits, leap year, month): the number being written (of
    years what is left after division by 400) with its digits.
    """

    start = ("start", 0, 0, 0, False, 0)

    def __init__(self, *, padded: bool = False) -> None:
        self.padded = padded

    def step(self, place: Place, byte: int) -> Place | None:
        part, separator, number, digits, leap, month = place
        if byte not in _DIGITS:
            if part == "start" and byte == 0x2D:
                return ("sign", 0, 0, 0, False, 0)
            if not digits or byte not in b"-/":
                return None
            if part == "year":
                if self.padded and (byte != 0x2D or digits < 4):
                    return None
                leap = number % 4 == 0 and (number % 100 != 0 or number == 0)
                return ("month", byte, 0, 0, leap, 0)
            if part == "month" and byte == separator and number and digits >= 1 + self.padded:
                return ("day", separator, 0, 0, leap, number)
            return None
        digit = byte - 0x30
        if part == "zero" or (part == "sign" and digit == 0):
            # There is no year -0: another digit than 0 must follow.
            if digit:
                return ("year", 0, digit, digits + 1, False, True)
            most = 4 if self.padded else _YEAR_DIGITS
            return ("zero", 0, 0, digits + 1, False, True) if digits + 1 < most else None
        if part in ("start", "sign"):
            return ("year", 0, digit, 1, False, digit == 0)
        if part == "year":
            # The encoding has four digits, or more without a zero before them.
            most = 4 if self.padded and month else _YEAR_DIGITS
            if digits == most:
                return None
            return ("year", 0, (number * 10 + digit) % 400, digits + 1, False, month)
        if digits == 2:
            return None
        number = number * 10 + digit
        most = self._most(part, leap, month)
        if number > most or (digits == 1 and number == 0):
            return None
        if self.padded and not digits and number * 10 > most:
            return None  # no second digit could follow
        return (part, separator, number, digits + 1, leap, month)

    @staticmethod
    def _most(part: str, leap: bool, month: int) -> int:
        return 12 if part == "month" else days_in_month(2000 if leap else 2001, month)

    def complete(self, place: Place) -> bool:
        part, _, number, digits, _, _ = place
        if self.padded:
            return bool(part == "day" and digits == 2)
        return bool(part == "year" or (part == "day" and number > 0))

    def key(self, place: Place, longest: int) -> Hashable:
        # Whether the year is a leap year matters only to a token that reaches the second digit
        # of a day: two separators and three digits behind the year.
        plain = place[0] == "year" and longest < 6
        return (*place[:2], 0, *place[3:]) if plain else tuple(place)
