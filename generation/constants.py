"""Constants for comparisons: near a value, as round as people choose them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random

from generation.pools import NoDraw
from kb import Date, Quantity, Value, Year
from kb.values import Operator, Time

# How often operators shall come; "!=" less often, as it says little.
OPERATORS: Mapping[Operator, float] = {"=": 0.3, "!=": 0.1, "<": 0.3, ">": 0.3}


def draw_operator(random: Random, weights: Mapping[Operator, float] = OPERATORS) -> Operator:
    """An operator."""
    (operator,) = random.choices(list(weights), list(weights.values()))
    return operator


def number_beside(random: Random, value: Quantity, above: bool) -> Quantity:
    """A round quantity above or below a value."""
    number = value.number
    size = math.floor(math.log10(abs(number))) if number else 0
    step = 10.0 ** (size - random.randrange(2))
    if number.is_integer():
        step = max(step, 1.0)
    found = (math.ceil if above else math.floor)(number / step) * step
    if found == number or random.random() < 0.3:
        found += step if above else -step
    rounded = float(f"{found:.10g}")
    if (rounded > number) != above or rounded == number:
        raise NoDraw
    if rounded <= 0 < number:
        rounded = 0.0
    return Quantity(rounded, value.unit)


def time_beside(random: Random, value: Time, later: bool, day: bool) -> Time:
    """A year or a day some way after or before a time."""
    # People ask of recent things to the year, of old ones more roughly.
    reach = 1 + math.floor(random.expovariate(1 / (2 if value.year > 2000 else 8)))
    year = value.year + (reach if later else -reach)
    if not day:
        return Year(year)
    return Date(year, 1 + random.randrange(12), 1 + random.randrange(28))


def constant_for(
    random: Random, value: Value, operator: Operator, *, holds: bool, others: list[Value], day: bool
) -> Value:
    """A constant for which "value operator constant" holds, or does not.

    ``others`` are values that may stand in for an unequal one; ``day`` asks for a day, not a year.
    """
    if operator in ("=", "!="):
        if (operator == "=") == holds:
            if isinstance(value, Date) and not day:
                return Year(value.year)
            return value
        if isinstance(value, Quantity) and random.random() < 0.5:
            return number_beside(random, value, random.random() < 0.5)
        return _other(random, value, others, day)
    above = (operator == "<") == holds
    if isinstance(value, Quantity):
        return number_beside(random, value, above)
    if isinstance(value, str):
        raise NoDraw
    return time_beside(random, value, above, day)


def _other(random: Random, value: Value, others: list[Value], day: bool) -> Value:
    for _ in range(5):
        if not others:
            break
        other = others[random.randrange(len(others))]
        if isinstance(other, Date) and not day:
            other = Year(other.year)
        if type(other) is str or not isinstance(value, str):
            same_year = isinstance(other, Year) and getattr(value, "year", None) == other.year
            if other != value and not same_year:
                return other
    raise NoDraw
