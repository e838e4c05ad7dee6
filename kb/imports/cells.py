"""The cells of spreadsheets as values: numbers with units, days, years, as people write them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from kb.values import NO_UNIT, Date, Quantity, Value, ValueReadError, Year, read_time, read_year

CellType = Literal["string", "quantity", "year", "date"]
MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)

# A time of day behind a day, as exports of databases have it.
_TIME_OF_DAY = re.compile(
    r"[T ][0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?: ?[AP]M)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?$",
    re.ASCII | re.IGNORECASE,
)
# A whole number that a program wrote as a decimal one, as it does where a column has gaps.
_WHOLE = re.compile(r"(-?[0-9]+)\.0+", re.ASCII)


@lru_cache
def number_pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    """What finds a number with an optional unit before or behind it."""
    whole = "[0-9]+"
    if thousands:
        mark = "[ \u00a0\u202f]" if thousands == " " else re.escape(thousands)
        whole = rf"[0-9]{{1,3}}(?:{mark}[0-9]{{3}})+|[0-9]+"
    point = re.escape(decimal)
    number = rf"(?:(?:{whole})(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"
    unit = r"[^0-9\s.,'’+\-−/:][^\n]*?"
    return re.compile(
        rf"(?P<before>[A-Z]{{0,3}}[$€£¥₹₽₩₺₪]|[A-Z]{{3}}(?=\s))?\s*(?P<sign>[+\-−]?)"
        rf"(?P<number>{number})"
        rf"(?:\s*(?P<unit>{unit}))?",
        re.ASCII,
    )


def read_amount(text: str, decimal: str = ".", thousands: str = "") -> tuple[float, str]:
    """The number and the unit ("" if there is none) of ``12``, ``12,5 kg``, ``€ 12`` or ``8%``.

    Raises ValueReadError for other texts.
    """
    match = number_pattern(decimal, thousands).fullmatch(text)
    if not match or (match["before"] and match["unit"]):
        raise ValueReadError(f"{text!r} is not a number{_hint(text, decimal, thousands)}")
    digits = match["number"]
    if thousands:
        digits = re.sub("[ \u00a0\u202f]" if thousands == " " else re.escape(thousands), "", digits)
    number = float(digits.replace(decimal, "."))
    unit = " ".join((match["before"] or match["unit"] or "").split())
    return Quantity(-number if match["sign"] in ("-", "−") else number).number, unit


def _hint(text: str, decimal: str, thousands: str) -> str:
    """What may be wrong with a number: its decimal mark, or marks between thousands."""
    for other, between in ((",", "."), (",", " "), (",", ""), (".", ","), (".", "'"), (".", " ")):
        if (other, between) != (decimal, thousands) and number_pattern(other, between).fullmatch(
            text
        ):
            mark = f', thousands: "{between}"' if between else ""
            return f'; the mapping may say decimal: "{other}"{mark}'
    return " such as 1000 or 3.5, with or without a unit"


_TOKENS = {
    "yyyy": r"(?P<y>-?[0-9]{4,})",
    "mmmm": r"(?P<name>[a-z]{3,9})\.?",
    "mmm": r"(?P<name>[a-z]{3,9})\.?",
    "mm": r"(?P<m>[0-9]{1,2})",
    "m": r"(?P<m>[0-9]{1,2})",
    "dd": r"(?P<d>[0-9]{1,2})",
    "d": r"(?P<d>[0-9]{1,2})",
}


@lru_cache
def date_pattern(form: str) -> re.Pattern[str]:
    """What finds the days of a form such as ``dd.mm.yyyy``, ``d mmm yyyy`` or ``mm/yyyy``.

    Raises ValueReadError for a form without a year of four digits, or with a part twice.
    """
    parts = re.findall(r"[a-z]+|[^a-z]+", form.lower())
    groups = ["".join(sorted(set(part)))[:1] for part in parts if part[0].isalpha()]
    known = all(part in _TOKENS for part in parts if part[0].isalpha())
    if not known or groups.count("y") != 1 or len(groups) != len(set(groups)):
        raise ValueReadError(
            f"{form!r} is not a form of days: write yyyy, mm and dd with what stands between them,"
            " such as dd.mm.yyyy; mmm is a month's English name"
        )
    if "d" in groups and "m" not in groups:
        raise ValueReadError(f"{form!r} has a day without a month")
    return re.compile("".join(_TOKENS.get(part, re.escape(part)) for part in parts), re.ASCII)


def read_day(text: str, form: str = "") -> Date | Year:
    """The day of a text in that form (else ``yyyy-mm-dd``), or the year of a plain year.

    A month is its year; a time of day is passed over. Raises ValueReadError for other texts.
    """
    text = _TIME_OF_DAY.sub("", text)
    if whole := _WHOLE.fullmatch(text):
        text = whole[1]
    if not form or re.fullmatch("-?[0-9]{4}", text, re.ASCII):
        return read_time(text)
    match = date_pattern(form).fullmatch(text.lower())
    if not match:
        raise ValueReadError(f"{text!r} is not a day of the form {form}")
    found = match.groupdict()
    year = read_year(found["y"]).year
    month = int(found["m"]) if found.get("m") else 0
    if name := found.get("name"):
        fits = [number for number, full in enumerate(MONTHS, 1) if full.startswith(name)]
        if len(fits) != 1 and name != "sept":
            raise ValueReadError(f"{name!r} is not the English name of a month")
        month = 9 if name == "sept" else fits[0]
    if not found.get("d"):
        if month > 12:
            raise ValueReadError(f"there is no month {month}")
        return Year(year)
    return Date(year, month, int(found["d"]))


@dataclass(frozen=True)
class CellForm:
    """How the cells of a column read as values.

    ``unit`` is that of quantities whose cells have none, ``units`` spells units otherwise
    (``{"kg": "kilogram"}``), ``format`` is the form of days.
    """

    type: CellType = "string"
    unit: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    decimal: str = "."
    thousands: str = ""
    format: str = ""

    def value(self, text: str, unit: str | None = None) -> Value:
        """The value of a cell; ``unit`` is the text of the column that has the units.

        Raises ValueReadError for a text that is not of the type, or of another unit.
        """
        if self.type == "quantity":
            number, own = read_amount(text, self.decimal, self.thousands)
            wanted = self.unit if unit is None else self.units.get(unit, unit)
            found = self.units.get(own, own)
            if found and wanted and found != wanted:
                raise ValueReadError(
                    f"{text!r} is in {found!r}, and the unit is {wanted!r}; the field units can"
                    f" say that they are one, as in units: {{{own}: {wanted}}}"
                )
            return Quantity(number, wanted or found or NO_UNIT)
        if self.type == "year":
            whole = _WHOLE.fullmatch(text)
            return read_year(whole[1] if whole else text)
        return read_day(text, self.format) if self.type == "date" else text


PLAIN = CellForm()
