"""Values and items that may be suggested: counted over facts, tried as constants, as typed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from kb import Condition, KnowledgeBase
from kb.arrays import Ids, changes, unique
from kb.beginnings import folded
from kb.values import NO_UNIT, Date, Operator, ValueReadError, Year
from kopl.readable import Place
from kopl.typecheck import read_argument
from kopl.types import Kind

# Where a table of flags has less than so many for each row, rows are counted by it.
DENSE = 64


def grouped(keys: Ids, own: Ids) -> list[tuple[int, int, int]]:
    """The different keys of rows: each with how many things have it, and its first row."""
    if not len(keys):
        return []
    size = int(keys.max()) + 1
    first = np.zeros(size, np.int64)
    first[keys[::-1]] = np.arange(len(keys) - 1, -1, -1)  # the last one written is the first
    width = int(own.max()) + 1
    pairs = keys.astype(np.int64) * width + own
    if size * width <= DENSE * len(keys):
        # Many rows of few keys: a table of flags is faster than sorting.
        flags = np.zeros(size * width, np.bool_)
        flags[pairs] = True
        counts = np.count_nonzero(flags.reshape(size, width), axis=1)
    else:
        pairs.sort()  # np.unique hashes, which is many times slower here
        counts = np.bincount(pairs[changes(pairs)] // width, minlength=size)
    there = np.flatnonzero(counts)
    return [*zip(there.tolist(), counts[there].tolist(), first[there].tolist(), strict=True)]


class ValueText(str):
    """The text of a value with its number, how many have it, and one that has it."""

    number: int
    things: int
    owner: int | None
    is_typed: bool

    def __new__(
        cls, text: str, number: int = -1, things: int = 0, owner: int | None = None
    ) -> ValueText:
        made = super().__new__(cls, text)
        made.number, made.things, made.owner = number, things, owner
        made.is_typed = False
        return made


@dataclass(frozen=True)
class Tried:
    """Values as constants: whether one of the operators leaves some of the values known here."""

    kb: KnowledgeBase
    known: Ids
    operators: Sequence[str]

    @property
    def all_fit(self) -> bool:
        """Whether every value that is known does."""
        return not self.operators or "=" in self.operators

    def fits(self, place: Place, value: ValueText) -> bool:
        """Whether a value does; one that is only typed is tried with every operator."""
        if not self.operators or (self.all_fit and not value.is_typed):
            return True
        try:
            constant = read_argument(place.function, place.index, value)
        except ValueReadError:
            return False
        if isinstance(constant, Condition):
            conditions = [constant]
        else:
            conditions = [Condition((constant,), cast(Operator, one)) for one in self.operators]
        for condition in conditions:
            for low, high in self.kb.values.intervals(condition):
                if np.searchsorted(self.known, low) < np.searchsorted(self.known, high):
                    return True
        return False

    def typed_values(self, place: Place, typed: str, known: set[ValueText]) -> list[ValueText]:
        """What is typed as it stands, a number with each unit that begins so."""
        texts = []
        if place.kind is Kind.QUANTITY:
            number, _, begun = typed.partition(" ")
            units = [unit for unit, _ in self.kb.values.units(self.known).most_common()]
            for unit in units:
                if folded(unit).startswith(folded(begun)) or (unit == NO_UNIT and not begun):
                    texts.append(number if unit == NO_UNIT else f"{number} {unit}")
        elif place.kind is Kind.TIME:
            texts.append(typed)
        found = []
        for text in texts:
            value = ValueText(text)
            value.is_typed = True
            if value in known:
                continue
            try:
                read_argument(place.function, place.index, text)
            except ValueReadError:
                continue
            found.append(value)
        return found


def years_of_days(kb: KnowledgeBase, values: Ids) -> list[ValueText]:
    """The years of days, each with how many days lie in it, those of most first."""
    counts: dict[int, int] = {}
    days, sizes = np.unique(values[kb.values.is_date(values)], return_counts=True)
    there = set(kb.value_texts(unique(values).tolist()))
    for number, size in zip(days.tolist(), sizes.tolist(), strict=True):
        day = kb.values[number]
        assert isinstance(day, Date)
        counts[day.year] = counts.get(day.year, 0) + size
    ranked = sorted(counts, key=lambda year: (-counts[year], year))
    return [
        ValueText(text, -1, counts[year])
        for year in ranked
        if (text := str(Year(year))) not in there
    ]
