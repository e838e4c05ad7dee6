"""Questions as tokens with their places, and how wordings and constants correspond."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, lru_cache

from kb.errors import ValueReadError
from kb.values import NO_UNIT, read_quantity, read_time

# An address is one token. A number may have a sign, groups of three, a fraction; a word is letters;
# all else stands alone.
_TOKEN = re.compile(
    r"(?:https?://|www\.)[^\s,?]*[\w/]|(?<!\w)-?\d+(?:,\d{3})*(?:\.\d+)?|[^\W\d_]+|\d+|\S"
)
_GROUPED = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("January", "February", "March", "April", "May", "June", "July", "August", "September",
         "October", "November", "December"), 1,
    )
}  # fmt: skip
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_SCALED = re.compile(rf"(-?\d{{1,3}}(?:,\d{{3}})*|-?\d+)(?:\.(\d+))? ({'|'.join(_SCALES)})")
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})"
_DAY_OF_MONTH = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_DAY = re.compile(rf"{_DAY_OF_MONTH}(?: of)? {_MONTH},? (?P<year>-?\d{{1,4}})")
_AMERICAN_DAY = re.compile(rf"{_MONTH} {_DAY_OF_MONTH},? (?P<year>\d{{1,4}})")

# What numbers and days begin with; \d of a pattern takes the digits of all scripts.
_DIGITS = (chr(code) for code in range(sys.maxunicode + 1) if chr(code).isdecimal())
_BEGINNINGS = frozenset(["-", "+", ".", *(month[0] for month in _MONTHS), *_DIGITS])

LONGEST_SPAN = 24


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
    def _copyable(self) -> dict[str, dict[int, list[int]]]:
        found: dict[str, dict[int, list[int]]] = {"text": {}, "quantity": {}, "time": {}}
        for first in range(len(self.places)):
            lasts = range(first, min(len(self.places), first + LONGEST_SPAN))
            found["text"][first] = list(lasts)
            for last in lasts[:5]:  # enough for "1998-06-27" and "27 June 1998"
                constant = as_constant(self.span(first, last))
                if constant[:1] not in _BEGINNINGS:
                    break  # a longer one begins so, too
                for name, reads in _READS.items():
                    if reads(constant):
                        found[name].setdefault(first, []).append(last)
        return found

    def copyable(self, constant: str) -> dict[int, list[int]]:
        """Where a "text", "quantity" or "time" may be copied from: first token -> last tokens."""
        return self._copyable[constant]

    def spans(self) -> dict[str, list[tuple[int, int]]]:
        """Every text that a span can stand for, with the spans, the first ones first."""
        found: dict[str, list[tuple[int, int]]] = {}
        for first in range(len(self.places)):
            for last in range(first, min(len(self.places), first + LONGEST_SPAN)):
                text = self.span(first, last)
                found.setdefault(text, []).append((first, last))
                if (constant := as_constant(text)) != text:
                    found.setdefault(constant, []).append((first, last))
        return found


def as_constant(text: str) -> str:
    """A number or day as programs write it.

    >>> [as_constant(text) for text in ("1,000", "10.5 million", "27 June 1998", "Oslo")]
    ['1000', '10500000', '1998-06-27', 'Oslo']
    """
    if text[:1] not in _BEGINNINGS:  # most texts: nothing else is looked at
        return text
    if match := _SCALED.fullmatch(text):
        number = Decimal(f"{match[1].replace(',', '')}.{match[2] or 0}")
        return format(number.scaleb(_SCALES[match[3]]).normalize(), "f")
    if not text[-1:].isdigit():
        return text
    if _GROUPED.fullmatch(text):
        return text.replace(",", "")
    if match := _DAY.fullmatch(text) or _AMERICAN_DAY.fullmatch(text):
        month = _MONTHS[match["month"]]
        return f"{int(match['year']):04}-{month:02}-{int(match['day']):02}"
    return text


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
    def of(cls, questions: Iterable[Question], extra: Iterable[str], least: int = 2) -> Vocabulary:
        """The words that occur at least so often, and the extra ones."""
        counts = Counter(word.lower() for question in questions for word in question.words)
        frequent = {word for word, count in counts.items() if count >= least}
        return cls(sorted(frequent | {word.lower() for word in extra}))

    def __len__(self) -> int:
        return len(self.words) + 2

    def number(self, word: str) -> int:
        """The number of a word."""
        return self._numbers.get(word.lower(), 1)


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
    if word[:1].isdigit() or (word[:1] == "-" and len(word) > 1):
        return 3
    if not word[:1].isalpha():
        return 4
    if len(word) > 1 and word.isupper():
        return 2
    return 1 if word[:1].isupper() else 0
