"""Values of four types, their text, and what an operator says of two of them.

A string value is a Python ``str``; the other three types are the small frozen classes below.
What an operator says of a fact's value and a constant stands once, in `Condition`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from operator import index
from typing import Any, Literal, TypeAlias, get_args

from kopl_base.errors import KoplError

Operator: TypeAlias = Literal["=", "!=", "<", ">"]
OPERATORS: tuple[Operator, ...] = get_args(Operator)

NO_UNIT = "1"
# Years are packed into 64 bits beside month and day; the universe's age needs 11 digits.
LARGEST_YEAR = 10**12


class ValueReadError(KoplError, ValueError):
    """A text or JSON value that is not a value of the type asked for."""

    kind = "type"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A finite number with its unit; unit ``"1"`` means none. Equal when number and unit are."""

    number: float
    unit: str = NO_UNIT

    def __post_init__(self) -> None:
        if not isinstance(self.number, Real) or isinstance(self.number, bool):
            raise ValueReadError(f"a quantity must have a number, not {self.number!r}")
        try:
            number = float(self.number)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise ValueReadError(f"a quantity must be a finite number, not {number}")
        if not isinstance(self.unit, str) or not self.unit:
            raise ValueReadError(f"a unit must be a text that is not empty, not {self.unit!r}")
        object.__setattr__(self, "number", number + 0.0)  # -0.0 becomes 0.0

    def __str__(self) -> str:
        return print_quantity(self.number, self.unit)


@dataclass(frozen=True, slots=True)
class Year:
    """A year of the proleptic Gregorian calendar, astronomical count (0 and negative allowed)."""

    year: int

    def __post_init__(self) -> None:
        if type(self.year) is not int:
            object.__setattr__(self, "year", _integer(self.year, "year"))
        if abs(self.year) > LARGEST_YEAR:
            # Python refuses to print an integer of thousands of digits.
            shown = self.year if abs(self.year) < 10**30 else "of more than 30 digits"
            raise ValueReadError(f"year {shown} is out of range (at most {LARGEST_YEAR})")

    def __str__(self) -> str:
        return str(self.year)


@dataclass(frozen=True, slots=True)
class Date:
    """A day of the proleptic Gregorian calendar; raises ValueReadError for a day that is none."""

    year: int
    month: int
    day: int

    def __post_init__(self) -> None:
        if not type(self.year) is type(self.month) is type(self.day) is int:
            for part in ("year", "month", "day"):
                object.__setattr__(self, part, _integer(getattr(self, part), part))
        Year(self.year)
        if not (1 <= self.month <= 12 and 1 <= self.day <= days_in_month(self.year, self.month)):
            raise ValueReadError(f"there is no day {self.year}-{self.month:02}-{self.day:02}")

    def __str__(self) -> str:
        sign = "-" if self.year < 0 else ""
        return f"{sign}{abs(self.year):04}-{self.month:02}-{self.day:02}"


Time: TypeAlias = Year | Date
Value: TypeAlias = str | Quantity | Year | Date


def _integer(number: Any, what: str) -> int:
    """The number as Python's own integer, so that one of numpy's is stored like any other."""
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise ValueReadError(f"a {what} must be an integer, not {number!r}")
    return index(number)


_MONTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def days_in_month(year: int, month: int) -> int:
    """The number of days of a month (1 to 12) in that year."""
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _MONTHS[month - 1] + leap


# --- text ------------------------------------------------------------------------------------

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_YEAR = re.compile(r"-?[0-9]+", re.ASCII)
_DATE = re.compile(r"(-?[0-9]+)([-/])([0-9]{1,2})\2([0-9]{1,2})", re.ASCII)


def print_number(number: float) -> str:
    """The shortest digits that read back as the same double: no exponent, no ``.0``, no ``-0``."""
    if number == 0:
        return "0"
    if number.is_integer() and abs(number) < 1e16:
        return str(int(number))
    text = repr(number)
    if "e" in text:
        text = format(Decimal(text), "f")
    return text[:-2] if text.endswith(".0") else text


def print_quantity(number: float, unit: str) -> str:
    """A finite number with its unit, as `read_quantity` reads it; "1" is not printed."""
    text = print_number(number)
    return text if unit == NO_UNIT else f"{text} {unit}"


def read_quantity(text: str) -> Quantity:
    """A quantity from ``"206 centimetre"`` or ``"3.5e2"``: an ASCII number, one blank, the unit.

    Raises ValueReadError for anything else, as ``"1,000"``, ``"nan"`` or ``"1_000"``.
    """
    number, blank, unit = text.partition(" ")
    if not _NUMBER.fullmatch(number):
        raise ValueReadError(
            f"{text!r} is not a quantity: write a number such as 1000 or 3.5, then one blank and"
            " the unit if there is one"
        )
    if blank and not unit:
        raise ValueReadError(f"{text!r} ends in a blank where a unit was expected")
    return Quantity(float(number), unit if blank else NO_UNIT)


def read_year(text: str) -> Year:
    """A year from its digits; raises ValueReadError for any other text."""
    if not _YEAR.fullmatch(text):
        raise ValueReadError(f"{text!r} is not a year: write an integer such as 1998 or -44")
    if text[0] == "-" and not text.strip("-0"):
        raise ValueReadError(f"there is no year {text[:20]}: the year before 1 is 0 or 0000")
    if len(text) > 14:
        raise ValueReadError(f"year {text} is out of range (at most {LARGEST_YEAR})")
    return Year(int(text))


def read_time(text: str) -> Time:
    """A year, or a day written with ``-`` or ``/`` and one or two digits for month and day.

    Raises ValueReadError for other texts and for days that do not exist.
    """
    if match := _DATE.fullmatch(text):
        year, _, month, day = match.groups()
        return Date(read_year(year).year, int(month), int(day))
    if _YEAR.fullmatch(text):
        return read_year(text)
    raise ValueReadError(
        f"{text!r} is neither a year nor a day: write 1998, 1998-06-27 or 1998/6/27"
    )


def readings(text: str) -> list[Value]:
    """Every value that an untyped constant can stand for: the text, a quantity, a year or day."""
    found: list[Value] = [text]
    for read in (read_quantity, read_time):
        try:
            found.append(read(text))
        except ValueReadError:
            continue
    return found


# --- comparison ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Condition:
    """What a constant and an operator ask of a value: the table "fact against constant".

    ``constants`` has one element, or for untyped constants every reading of the text (then the
    operator is ``=`` and one matching reading is enough).
    """

    constants: tuple[Value, ...]
    operator: Operator = "="

    @classmethod
    def untyped(cls, text: str) -> Condition:
        """The condition "equals the text in some reading of it"."""
        return cls(tuple(readings(text)))

    def holds_for(self, fact: Value) -> bool:
        """Whether the value satisfies the condition (False when the types do not compare)."""
        return any(compares(fact, self.operator, constant) for constant in self.constants)


def compares(fact: Value, operator: Operator, constant: Value) -> bool:
    """Whether ``fact operator constant`` holds; False where the table says "skipped"."""
    if isinstance(fact, str) or isinstance(constant, str):
        if type(fact) is not type(constant) or operator not in ("=", "!="):
            return False
        return (fact == constant) == (operator == "=")
    if isinstance(fact, Quantity) or isinstance(constant, Quantity):
        if not (isinstance(fact, Quantity) and isinstance(constant, Quantity)):
            return False
        return fact.unit == constant.unit and _ordered(fact.number, operator, constant.number)
    if isinstance(fact, Date) and isinstance(constant, Date):
        return _ordered(
            (fact.year, fact.month, fact.day),
            operator,
            (constant.year, constant.month, constant.day),
        )
    if isinstance(fact, Year) and isinstance(constant, Date) and operator in ("=", "!="):
        return operator == "!="  # a year is never a day
    return _ordered(fact.year, operator, constant.year)


def _ordered(left: Any, operator: Operator, right: Any) -> bool:
    result: bool
    if operator == "=":
        result = left == right
    elif operator == "!=":
        result = left != right
    else:
        result = left < right if operator == "<" else left > right
    return result
