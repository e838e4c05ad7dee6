"""Questions as tokens with their places, and how wordings and constants correspond."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, lru_cache

from kb.values import NO_UNIT, ValueReadError, read_quantity, read_time

# Chinese and Japanese have no blanks between words: each of their characters is a token.
_HAN = (
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
# An address is one token. A number may have a sign, groups of three, a fraction; a word is letters;
# all else stands alone. "1998,200" is no number in groups, but two numbers.
_TOKEN = re.compile(
    r"(?:https?://|www\.)[^\s,?]*[\w/]"
    rf"|(?<![^\W{_HAN}])[-−]?(?:(?<!\d,)(?!0)\d{{1,3}}(?:,\d{{3}})+(?!,?\d)|\d+)(?:\.\d+)?"
    rf"|[^\W\d_{_HAN}]+|\d+|\S"
)
_GROUPS = r"[1-9]\d{0,2}(?:(?:,\d{3})+|(?: \d{3})+)"
_BETWEEN_GROUPS = re.compile("[, ]")
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("january", "february", "march", "april", "may", "june", "july", "august", "september",
         "october", "november", "december"), 1,
    )
}  # fmt: skip
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
# Of ASCII only, as `as_constant` reads the digits of other scripts before.
_WORDING = re.ASCII | re.IGNORECASE
_GROUPED = re.compile(rf"[-+]?{_GROUPS}(?:\.\d+)?", _WORDING)
_SCALED = re.compile(
    rf"(?P<whole>[-+]?(?:{_GROUPS}|\d+))(?:\.(?P<part>\d+))? (?P<scale>{'|'.join(_SCALES)})",
    _WORDING,
)
_MINUS = re.compile(r"^minus (?=\.?\d)", _WORDING)
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})"
_DAY_OF_MONTH = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:, ?| )(?P<sign>-?)(?P<year>\d{1,4})"
_DAY = re.compile(rf"{_DAY_OF_MONTH}(?: of)? {_MONTH}{_YEAR}", _WORDING)
_AMERICAN_DAY = re.compile(rf"{_MONTH} {_DAY_OF_MONTH}{_YEAR}", _WORDING)

# What numbers and days begin with; this \d takes the digits of all scripts.
_BEGINS = re.compile(rf"[-−+.\d]|(?:minus|{'|'.join(_MONTHS)})\b", re.IGNORECASE)

LONGEST_SPAN = 24
# "27th of June, 1998" has so many tokens.
LONGEST_CONSTANT = 6
# Longer texts are no questions; what is read of one grows with the square of its length.
MOST_WORDS = 1000


@dataclass(frozen=True)
class Question:
    """A question with its tokens: (start, end) in characters."""

    text: str
    places: tuple[tuple[int, int], ...]
    words: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(cls, text: str) -> Question:
        """The tokens of a question."""
        places = tuple(match.span() for match in _TOKEN.finditer(text))
        return cls(text, places, tuple(text[start:end] for start, end in places))

    def span(self, first: int, last: int) -> str:
        """The text from one token to another, both included, as it stands."""
        return self.text[self.places[first][0] : self.places[last][1]]

    @cached_property
    def _begins(self) -> list[bool]:
        """For every token, whether a number or a day may begin with it."""
        return [_BEGINS.match(word) is not None for word in self.words]

    def _constant(self, first: int, last: int) -> str:
        """What a span amounts to; a number that commas divide into groups is a single token."""
        text = self.span(first, last)
        constant = as_constant(text)
        return text if "," in self.words[first : last + 1] and is_number(constant) else constant

    @cached_property
    def _copyable(self) -> dict[str, dict[int, list[int]]]:
        found: dict[str, dict[int, list[int]]] = {"text": {}, "quantity": {}, "time": {}}
        for first in range(len(self.places)):
            lasts = range(first, min(len(self.places), first + LONGEST_SPAN))
            found["text"][first] = list(lasts)
            if not self._begins[first]:
                continue
            for last in lasts[:LONGEST_CONSTANT]:
                word = self.words[last]
                if not word[-1].isdecimal() and word.lower() not in _SCALES:
                    continue
                constant = self._constant(first, last)
                for name, reads in _READS.items():
                    if reads(constant):
                        found[name].setdefault(first, []).append(last)
        return found

    def copyable(self, constant: str) -> dict[int, list[int]]:
        """Where a "text", "quantity" or "time" may be copied from: first token -> last tokens."""
        return self._copyable[constant]

    @cached_property
    def readable(self) -> frozenset[str]:
        """Of what some span can be copied: of "text", "quantity" and "time"."""
        return frozenset(name for name, spans in self._copyable.items() if spans)

    def spans_of(self, text: str) -> list[tuple[int, int]]:
        """The spans that stand for a text or constant, the first ones first."""
        found = list(self._constants.get(text, ()))
        start = self.text.find(text) if text else -1
        while start >= 0:
            first, last = self._starts.get(start), self._ends.get(start + len(text))
            if first is not None and last is not None and last - first < LONGEST_SPAN:
                found.append((first, last))
            start = self.text.find(text, start + 1)
        return sorted(found)

    @cached_property
    def _starts(self) -> dict[int, int]:
        return {start: number for number, (start, _) in enumerate(self.places)}

    @cached_property
    def _ends(self) -> dict[int, int]:
        return {end: number for number, (_, end) in enumerate(self.places)}

    @cached_property
    def _constants(self) -> dict[str, list[tuple[int, int]]]:
        """The spans that amount to a constant which is not written so."""
        found: dict[str, list[tuple[int, int]]] = {}
        for first in range(len(self.places)):
            if self._begins[first]:
                for last in range(first, min(len(self.places), first + LONGEST_CONSTANT)):
                    if (constant := self._constant(first, last)) != self.span(first, last):
                        found.setdefault(constant, []).append((first, last))
        return found


def as_constant(text: str) -> str:
    """A number or day as programs write it; any other text as it is.

    >>> [as_constant(text) for text in ("1,000", "10.5 Million", "27 June 1998", "minus 5", "Oslo")]
    ['1000', '10500000', '1998-06-27', '-5', 'Oslo']
    """
    if not _BEGINS.match(text):  # most texts: nothing else is looked at
        return text
    plain = _MINUS.sub("-", text if text.isascii() else _in_ascii(text))
    if match := _SCALED.fullmatch(plain):
        whole = _BETWEEN_GROUPS.sub("", match["whole"])
        number = Decimal(f"{whole}.{match['part'] or 0}")
        return format(number.scaleb(_SCALES[match["scale"].lower()]).normalize(), "f")
    if not plain[-1:].isdigit():
        return text
    if _GROUPED.fullmatch(plain):
        return _BETWEEN_GROUPS.sub("", plain)
    if match := _DAY.fullmatch(plain) or _AMERICAN_DAY.fullmatch(plain):
        year, month = int(match["year"]), _MONTHS[match["month"].lower()]
        return f"{match['sign']}{year:04}-{month:02}-{int(match['day']):02}"
    return plain if plain != text and (is_number(plain) or is_time(plain)) else text


def _in_ascii(text: str) -> str:
    """The text with the digits of all scripts, minus signs and blanks as ASCII has them."""
    return "".join(
        str(unicodedata.decimal(letter)) if letter.isdecimal()
        else "-" if letter == "−" else " " if letter.isspace() else letter
        for letter in text
    )  # fmt: skip


def is_number(text: str) -> bool:
    try:
        return read_quantity(text).unit == NO_UNIT and " " not in text
    except ValueReadError:
        return False


def is_time(text: str) -> bool:
    try:
        read_time(text)
    except ValueReadError:
        return False
    return True


_READS = {"quantity": is_number, "time": is_time}


class Vocabulary:
    """Words by number: 0 is padding, 1 stands for unknown words; lower case."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self._numbers = {word: number for number, word in enumerate(self.words, 2)}

    @classmethod
    def of(
        cls, questions: Iterable[Question], extra: Iterable[str], least: int = 2, *,
        ranked: bool = False,
    ) -> Vocabulary:  # fmt: skip
        """The words that occur at least so often, and the extra ones, in order.

        ``ranked``: the most frequent ones first.
        """
        counts = Counter(word.lower() for question in questions for word in question.words)
        words = {word for word, count in counts.items() if count >= least}
        words |= {word.lower() for word in extra}
        return cls(sorted(words, key=lambda word: (-counts[word] * ranked, word)))

    def __len__(self) -> int:
        return len(self.words) + 2

    def number(self, word: str) -> int:
        """The number of a word."""
        return self._numbers.get(word.lower(), 1)

    def numbers(self, words: Iterable[str]) -> list[int]:
        """The numbers of some words."""
        known = self._numbers
        return [known.get(word.lower(), 1) for word in words]


PIECES = 4096
MOST_PIECES = 12


@lru_cache(maxsize=200_000)
def pieces(word: str) -> tuple[int, ...]:
    """Numbers of the three-letter pieces of a word, hashed; they stand for words never seen."""
    from zlib import crc32

    padded = f"^{word.lower()}$"
    found = [crc32(padded[at : at + 3].encode()) for at in range(max(1, len(padded) - 2))]
    return tuple(1 + number % (PIECES - 1) for number in found[:MOST_PIECES])


def shape(word: str) -> int:
    """A coarse look of a word: 0 lower case, 1 capital, 2 all capitals, 3 number, 4 other."""
    if word[:1].isdigit() or (word[:1] in ("-", "−") and len(word) > 1):
        return 3
    if not word[:1].isalpha():
        return 4
    if len(word) > 1 and word.isupper():
        return 2
    return 1 if word[:1].isupper() else 0


def unreadable(question: str) -> str | None:
    """Why a text is not read as a question, or None where it is."""
    if any("\ud800" <= letter <= "\udfff" for letter in question):
        return "the question is not text: it has bytes that are no UTF-8"
    count = len(Question.of(question).words)
    if not count:
        return "the question has no words"
    if count > MOST_WORDS:
        return f"the question has {count} words; at most {MOST_WORDS} are read"
    return None
