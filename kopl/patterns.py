"""The texts of numbers, years and days as regular expressions that any grammar can hold.

Without looking ahead, laziness or priorities, so that one description serves regular expressions
and the notation of llama.cpp alike: what a grammar for decoding may say differs in little else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from kb.values import days_in_month

# How many digits numbers may have, before and after the point, and in the exponent: every double
# of a knowledge base in use has fewer, and no such number is infinite.
MOST_DIGITS, EXPONENT_DIGITS = 40, 2
# A year may have twelve digits, zeros before it among them (`kb.values.LARGEST_YEAR`).
YEAR_DIGITS = 12


class Pattern:
    """A regular expression as a tree; ``+`` joins two, ``|`` is either."""

    def __add__(self, other: Pattern) -> Pattern:
        return Sequence((self, other))

    def __or__(self, other: Pattern) -> Pattern:
        return Choice((self, other))

    def regex(self) -> str:
        """As a regular expression, in what all dialects share; a part of a larger one."""
        raise NotImplementedError

    def gbnf(self) -> str:
        """As llama.cpp writes it."""
        raise NotImplementedError


@dataclass(frozen=True)
class Fixed(Pattern):
    """One text, which is not empty."""

    text: str

    def regex(self) -> str:
        return "".join(map(_plain, self.text))

    def gbnf(self) -> str:
        return quoted(self.text)


@dataclass(frozen=True)
class OneOf(Pattern):
    """One character of a class, written as between brackets; its signs mean the same in both."""

    characters: str

    def regex(self) -> str:
        return f"[{self.characters}]"

    gbnf = regex


@dataclass(frozen=True)
class Sequence(Pattern):
    """One after the other."""

    parts: tuple[Pattern, ...]

    def regex(self) -> str:
        return "".join(_grouped(part, part.regex()) for part in self.parts)

    def gbnf(self) -> str:
        return " ".join(_grouped(part, part.gbnf()) for part in self.parts)


@dataclass(frozen=True)
class Choice(Pattern):
    """Any one of them."""

    parts: tuple[Pattern, ...]

    def regex(self) -> str:
        return "|".join(part.regex() for part in self.parts)

    def gbnf(self) -> str:
        return " | ".join(part.gbnf() for part in self.parts)


@dataclass(frozen=True)
class Times(Pattern):
    """So many of it in a row."""

    part: Pattern
    least: int
    most: int

    @property
    def _count(self) -> str:
        if (self.least, self.most) == (0, 1):
            return "?"
        same = self.least == self.most
        return f"{{{self.most}}}" if same else f"{{{self.least},{self.most}}}"

    def regex(self) -> str:
        return f"{self._one(self.part.regex())}{self._count}"

    def gbnf(self) -> str:
        return f"{self._one(self.part.gbnf())}{self._count}"

    def _one(self, written: str) -> str:
        single = isinstance(self.part, OneOf) or len(getattr(self.part, "text", "")) == 1
        return written if single else f"({written})"


def _plain(sign: str) -> str:
    """A character of a text in a regular expression: between brackets where it would mean more.

    Not every reader of schemas knows the other way to write it, with a backslash.
    """
    if sign in r"\^[]":
        return f"\\{sign}"
    return f"[{sign}]" if sign in ".$|?*+(){}" else sign


def _grouped(part: Pattern, written: str) -> str:
    return f"({written})" if isinstance(part, Choice) else written


def quoted(text: str) -> str:
    """A text as a literal of a grammar: in quotes, its quotes, backslashes and controls escaped."""
    return '"' + "".join(_ESCAPES.get(sign, sign) for sign in text) + '"'


_ESCAPES = {chr(code): f"\\x{code:02X}" for code in (*range(32), 127)} | {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


def optional(part: Pattern) -> Pattern:
    """The pattern or nothing."""
    return Times(part, 0, 1)


def either(parts: Iterable[Pattern]) -> Pattern:
    """Any one of the patterns, of which there is one at least."""
    listed = tuple(parts)
    return listed[0] if len(listed) == 1 else Choice(listed)


# --- numbers --------------------------------------------------------------------------------------

_DIGIT, _NOT_ZERO = OneOf("0-9"), OneOf("1-9")


@cache
def number() -> Pattern:
    """A number as `kb.values.read_quantity` reads it: sign, digits, point, exponent."""
    whole, fraction = Times(_DIGIT, 1, MOST_DIGITS), Times(_DIGIT, 0, MOST_DIGITS)
    point = Fixed(".")
    digits = (whole + optional(point + fraction)) | (point + whole)
    exponent = OneOf("eE") + optional(OneOf("+-")) + Times(_DIGIT, 1, EXPONENT_DIGITS)
    return optional(OneOf("+-")) + digits + optional(exponent)


# --- years and days -------------------------------------------------------------------------------


@cache
def time() -> Pattern:
    """A year, or a day that exists, as `kb.values.read_time` reads them; there is no year -0."""
    minus = Fixed("-")
    year = Times(_DIGIT, 1, YEAR_DIGITS) | (minus + _not_zero(YEAR_DIGITS))
    leap = _leap_year() | (minus + _leap_year(zero=False))
    days = either(Fixed(sign) + _day_of_any_year(sign) for sign in _SEPARATORS)
    leap_days = either(Fixed(sign) + _leap_day(sign) for sign in _SEPARATORS)
    return (year + optional(days)) | (leap + leap_days)


_SEPARATORS = ("-", "/")
_LEAP, _OTHER = 2000, 2001  # a year of each kind


def _day_of_any_year(separator: str) -> Pattern:
    """Month and day, without the day that only leap years have."""
    lengths: dict[int, list[int]] = {}
    for month in range(1, 13):
        lengths.setdefault(days_in_month(_OTHER, month), []).append(month)
    return either(
        _one_of(months) + Fixed(separator) + _up_to(length)
        for length, months in sorted(lengths.items(), reverse=True)
    )


def _leap_day(separator: str) -> Pattern:
    """Month and day of the days that only leap years have."""
    return either(
        _one_of([month]) + Fixed(f"{separator}{day}")
        for month in range(1, 13)
        for day in range(days_in_month(_OTHER, month) + 1, days_in_month(_LEAP, month) + 1)
    )


def _one_of(numbers: Iterable[int]) -> Pattern:
    """Any of some numbers up to 99, with or without a zero before those of one digit."""
    tens: dict[int, str] = {}
    for one in numbers:
        tens[one // 10] = tens.get(one // 10, "") + str(one % 10)
    return either(
        (Fixed(str(ten)) if ten else optional(Fixed("0"))) + _digit(ones)
        for ten, ones in tens.items()
    )


def _digit(ones: str) -> Pattern:
    """Any of the digits, which are in order."""
    if len(ones) == 1:
        return Fixed(ones)
    joined = int(ones[-1]) - int(ones[0]) == len(ones) - 1 > 1
    return OneOf(f"{ones[0]}-{ones[-1]}" if joined else ones)


def _up_to(most: int) -> Pattern:
    return _one_of(range(1, most + 1))


def _not_zero(most: int) -> Pattern:
    """At most so many digits that are not all zero."""
    found: Pattern = _NOT_ZERO
    for length in range(2, most + 1):
        found = (_NOT_ZERO + Times(_DIGIT, 0, length - 1)) | (Fixed("0") + found)
    return found


def _leap_year(*, zero: bool = True) -> Pattern:
    """The digits of a leap year; with ``zero`` the year 0 is one, however many zeros it has."""
    # Of the last two digits, or of the two before two zeros: divisible by four, and not zero.
    four = (OneOf("02468") + OneOf("48")) | (OneOf("2468") + Fixed("0"))
    four = four | (OneOf("13579") + OneOf("26"))
    plain = (Times(_DIGIT, 0, YEAR_DIGITS - 2) + four) | OneOf("48")
    hundreds = ((Times(_DIGIT, 0, YEAR_DIGITS - 4) + four) | OneOf("48")) + Fixed("00")
    thousands = _not_zero(YEAR_DIGITS - 4) + Fixed("0000")
    found = plain | hundreds | thousands
    return found | Times(Fixed("0"), 1, YEAR_DIGITS) if zero else found
