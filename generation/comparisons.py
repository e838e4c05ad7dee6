"""Operators and constants of comparisons: how often each comes, whether it holds, and of what."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from random import Random

from generation.pools import NoDraw
from kb import Date, Quantity, Value, Year
from kb.values import Operator, Time
from kopl.program import Call, post_order
from kopl.types import Kind, Type

# How often operators shall come; "!=" hardly ever, as it says little.
OPERATORS: Mapping[Operator, float] = {"=": 0.33, "!=": 0.01, "<": 0.33, ">": 0.33}
# "!=" is said of values that so large a share of those with the key have: who is not like most?
USUAL = 0.1
# One that is hardly ever kept is not drawn more than so many times as often as it should come.
MOST = 8.0
# The words of choices by which the greatest figure is the first.
LARGEST = ("largest", "greater")
# How many draws what is known of all functions is worth beside those of one.
PRIOR = 4.0


class Comparisons:
    """Keeps count of the operators of a block, and of what is true of them.

    Operators are kept at different rates: few descriptions with "!=" fit one entity alone. So each
    is drawn by its share over the rate at which the function's draws of it were kept so far. Yes
    and no come by turns for each function and operator, whichever is harder to find; chance says
    which of two is the first.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._drawn: Counter[tuple[str, str]] = Counter()
        self._kept: Counter[tuple[str, str]] = Counter()
        self._all_drawn: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()  # draws by function, and those that could give "!="
        self._with_unequal: Counter[str] = Counter()
        self._all_kept: Counter[str] = Counter()
        self._due: dict[tuple[str, str], list[bool]] = {}

    def draw(self, function: str, equal: bool = True, unequal: bool = True) -> Operator:
        """An operator for a call of the function; "=" and "!=" only where their flags say so.

        As few calls can have a "!=", these have it more often.
        """
        self._asked[function] += 1
        self._with_unequal[function] += unequal
        without = {"=": not equal, "!=": not unequal}
        operators = [operator for operator in OPERATORS if not without.get(operator)]
        weights = [self._weight(function, operator) for operator in operators]
        (operator,) = self._random.choices(operators, weights)
        self._drawn[function, operator] += 1
        self._all_drawn[operator] += 1
        return operator

    def holds(self, function: str, operator: str) -> bool:
        """Whether the next comparison of this kind is true: what is said of it is "yes"."""
        due = self._due.setdefault((function, operator), [])
        if not due:
            first = self._random.random() < 0.5
            due += [not first, first]
        return due[-1]

    def count(self, program: Call, answer: str) -> None:
        """Take note of a question that is kept."""
        for call in post_order(program):
            kinds = (kind for _, kind in call.function.arguments)
            for text, kind in zip(call.arguments, kinds, strict=True):
                if kind is Kind.OPERATOR:
                    self._kept[call.function.name, text] += 1
                    self._all_kept[text] += 1
        if program.function.output is Type.TRUTH:
            of = program.function.name, program.arguments[1] if program.arguments[1:] else ""
            if (due := self._due.get(of)) and due[-1] == (answer == "yes"):
                due.pop()

    def _weight(self, function: str, operator: Operator) -> float:
        """How likely an operator shall be; all are equally hard before any was drawn."""
        whole = self._all_kept.total() + PRIOR, self._all_drawn.total() + PRIOR
        usual = whole[0] / whole[1]
        of_all = (self._all_kept[operator] + PRIOR * usual) / (self._all_drawn[operator] + PRIOR)
        key = function, operator
        rate = (self._kept[key] + PRIOR * of_all) / (self._drawn[key] + PRIOR)
        share = OPERATORS[operator] * min(MOST, usual / rate)
        if operator != "!=":
            return share
        return share * (self._asked[function] + PRIOR) / (self._with_unequal[function] + PRIOR)


# No year shall be that of more dates in a block than this share, or than twice its part of the
# years that there are; so many dates are free at the beginning.
OF_A_YEAR, FREE = 0.07, 25


def years_in(texts: Iterable[str]) -> Iterator[int]:
    """The years of those texts that are years or days."""
    for text in texts:
        if _TIME.fullmatch(text):
            yield int(text[:4])


_TIME = re.compile(r"[12]\d{3}(?:-\d\d-\d\d)?")


def years_of(program: Call, answer: str) -> list[int]:
    """The years that a question speaks of, in its conditions or as its answer."""
    texts = [
        text
        for call in post_order(program)
        for text, (_, kind) in zip(call.arguments, call.function.arguments, strict=True)
        if kind in (Kind.TIME, Kind.ANY_VALUE)
    ]
    return list(years_in((*texts, answer)))


class Years:
    """Keeps count of the years of a block, so that it does not lean on one edition of a source.

    ``different`` is how many years the qualifiers of the knowledge base have.
    """

    def __init__(self, different: int) -> None:
        self._most = max(OF_A_YEAR, 2 / max(1, different))
        self._of: Counter[int] = Counter()

    def count(self, program: Call, answer: str) -> None:
        """Take note of a question that is kept."""
        self._of.update(years_of(program, answer))

    def is_full(self, year: int) -> bool:
        """Whether a year came as often as it may."""
        return self._of[year] >= self._most * (self._of.total() + FREE)


# --- constants, as round as people choose them -----------------------------------------------


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
    # That something is above nothing, or below all there is, says nothing.
    if (
        rounded <= 0 < number
        or rounded < 0 == number
        or (value.unit == "percent" and rounded >= 100 > number)
    ):
        raise NoDraw
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
        if isinstance(value, str) or (others and (operator == "!=" or random.random() < 0.5)):
            return _other(random, value, others, day)
        return _beside(random, value, random.random() < 0.5, day)
    if isinstance(value, str):
        raise NoDraw
    return _beside(random, value, (operator == "<") == holds, day)


def _beside(random: Random, value: Quantity | Time, above: bool, day: bool) -> Value:
    if isinstance(value, Quantity):
        return number_beside(random, value, above)
    return time_beside(random, value, above, day)


def _other(random: Random, value: Value, others: list[Value], day: bool) -> Value:
    for _ in range(5):
        if not others:
            break
        other = others[random.randrange(len(others))]
        if isinstance(other, Date) and not day:
            other = Year(other.year)
        if not _comparable(value, other):
            continue
        same_year = isinstance(other, Year) and getattr(value, "year", None) == other.year
        if other != value and not same_year:
            return other
    raise NoDraw


def _comparable(value: Value, other: Value) -> bool:
    """Whether two values of a key, which may have values of several types, can be compared."""
    if isinstance(value, str) or isinstance(other, str):
        return isinstance(value, str) and isinstance(other, str)
    if isinstance(value, Quantity) or isinstance(other, Quantity):
        units = getattr(value, "unit", None), getattr(other, "unit", None)
        return units[0] == units[1]
    return True
