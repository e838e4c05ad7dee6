"""The values of Wikidata's statements: what a snak, a property with its value, says."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from kb.assemble import RawValue
from kb.values import NO_UNIT, Date, Quantity, Year, days_in_month
from kb.valuetable import time_code

_TIME = re.compile(r"([+-]?)([0-9]{1,16})-([0-9]{2})-([0-9]{2})T.*", re.ASCII)
_ENTITY = re.compile(r"https?://[^ ]*/entity/([A-Z][0-9]+)", re.ASCII)
_JULIAN = "/Q1985786"
YEAR, MONTH, DAY = 9, 10, 11  # precisions
_LETTERS = {"item": "Q", "property": "P"}
_TEXTS = frozenset(("string", "url"))


@dataclass(frozen=True, slots=True)
class Item:
    """A value that is an item, by its id."""

    id: str


@dataclass(frozen=True, slots=True)
class Amount:
    """A number whose unit is an item, by its id."""

    number: float
    unit: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A value that has no place in a knowledge base, and why."""

    reason: str


NO_VALUE = LeftOut("no value or an unknown one")
EXTERNAL_ID = LeftOut("an external id")

SnakValue = Item | Amount | LeftOut | RawValue


def snak_value(snak: Any, datatype: str | None = None, *, external_ids: bool = False) -> SnakValue:
    """What a snak says: an item, an amount in a unit, or a value that can be stored.

    ``datatype`` is that of the property, for snaks that do not name theirs. Raises KeyError,
    TypeError, AttributeError or ValueError for a snak that is malformed.
    """
    kind = snak["snaktype"]
    if kind != "value":
        if kind not in ("novalue", "somevalue"):
            raise ValueError(f"the snaktype {kind!r} is unknown")
        return NO_VALUE
    content = snak["datavalue"]
    form, value = content["type"], content["value"]
    datatype = snak.get("datatype", datatype)
    if form == "wikibase-entityid":
        id = value.get("id")
        if id is None:
            id = f"{_LETTERS[value['entity-type']]}{int(value['numeric-id'])}"
        if not isinstance(id, str):
            raise TypeError(f"the id {id!r} is not a text")
        return Item(id) if id.startswith("Q") else LeftOut("a property or lexeme")
    if form == "string":
        if not isinstance(value, str):
            raise TypeError(f"a string value must be a text, not {value!r}")
        if datatype == "external-id":
            return value if external_ids else EXTERNAL_ID
        return value if datatype is None or datatype in _TEXTS else LeftOut(f"of type {datatype}")
    if form == "monolingualtext":
        text = value["text"]
        if not isinstance(text, str):
            raise TypeError(f"a text was expected, not {text!r}")
        return text
    if form == "quantity":
        return _quantity(value)
    if form == "time":
        return _time(value)
    return LeftOut(f"of type {datatype or form}")


def _quantity(value: Any) -> SnakValue:
    number = float(value["amount"])
    if not math.isfinite(number):
        return LeftOut("a number too large")
    unit = value["unit"]
    if unit == NO_UNIT:
        return (NO_UNIT, Quantity(number).number)
    match = _ENTITY.fullmatch(unit)
    if not match:
        raise ValueError(f"the unit {unit!r} is no item")
    return Amount(Quantity(number).number, match[1])


def _time(value: Any) -> SnakValue:
    match = _TIME.fullmatch(value["time"])
    precision = value["precision"]
    if not match or not isinstance(precision, int):
        raise ValueError(f"{value['time']!r} is no time")
    if precision < YEAR:
        return LeftOut("a time vaguer than a year")
    sign, digits, month, day = match[1], int(match[2]), int(match[3]), int(match[4])
    if digits == 0 or digits > 10**12:
        return LeftOut("a year that does not exist or is too far away")
    # Wikidata counts 1 BCE as -1; years here are counted with a year 0.
    year = 1 - digits if sign == "-" else digits
    if precision < DAY or month == 0 or day == 0:
        return time_code(Year(year))
    julian = str(value.get("calendarmodel", "")).endswith(_JULIAN)
    if not (month <= 12 and day <= _days(year, month, julian=julian)):
        return LeftOut("a day that does not exist")
    return time_code(_gregorian(year, month, day) if julian else Date(year, month, day))


def _days(year: int, month: int, *, julian: bool) -> int:
    """The days of a month; every fourth year is a leap year in the Julian calendar."""
    return days_in_month(4 if julian and year % 4 == 0 else year, month)


def _gregorian(year: int, month: int, day: int) -> Date:
    """The proleptic Gregorian day of a Julian one, by way of the number of the day."""
    # Years begin with March, so that the leap day is a year's last one.
    shifted, months = (year - 1, month + 9) if month < 3 else (year, month - 3)
    days = 365 * shifted + shifted // 4 + (153 * months + 2) // 5 + day - 1
    days -= 2  # 1 March of year 0 of the Julian calendar is 28 February of the Gregorian one
    era, within = divmod(days, 146097)
    of_era = (within - within // 1460 + within // 36524 - within // 146096) // 365
    within -= 365 * of_era + of_era // 4 - of_era // 100
    months = (5 * within + 2) // 153
    day = within - (153 * months + 2) // 5 + 1
    month = months + 3 if months < 10 else months - 9
    return Date(era * 400 + of_era + (month < 3), month, day)
