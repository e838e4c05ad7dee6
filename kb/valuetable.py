"""The distinct texts and values of a knowledge base, numbered in order.

Texts are in the order of their code points. Of values strings come first (by code point), then
quantities (by unit, then number), then times (by calendar, a year before its days). Because of that
order, every condition is a handful of intervals of numbers: one search serves filters, qualifier
filters and Verify of every type.
"""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from itertools import islice

import numpy as np
import numpy.typing as npt

from kb.arrays import Interval, view
from kb.columns import Columns
from kb.values import NO_UNIT, Condition, Date, Quantity, Time, Value, Year, print_quantity

PIECE = 1 << 16  # texts that are encoded at a time


class StringTable:
    """Read-only strings 0..n-1, sorted by code point, so comparing numbers compares strings.

    The texts stay UTF-8 in one block (whose byte order is the code point order) and are decoded
    when asked for; a hash over them finds the number of a text.
    """

    def __init__(self, arrays: Columns) -> None:
        self._bytes = view(arrays["text_bytes"])
        self._starts = view(arrays["text_starts"])
        self._bucket_starts = view(arrays["text_bucket_starts"])
        self._buckets = view(arrays["text_buckets"])
        self._mask = len(self._bucket_starts) - 2

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, number: int) -> str:
        return str(self._bytes[self._starts[number] : self._starts[number + 1]], "utf-8")

    def texts(self, numbers: Iterable[int]) -> list[str]:
        """The strings of these numbers."""
        data, starts = self._bytes, self._starts
        return [str(data[starts[n] : starts[n + 1]], "utf-8") for n in numbers]

    def find(self, text: str) -> int:
        """The number of the text, or -1."""
        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError:  # a lone surrogate is never in the table
            return -1
        bucket = zlib.crc32(data) & self._mask
        for at in range(self._bucket_starts[bucket], self._bucket_starts[bucket + 1]):
            number: int = self._buckets[at]
            if self._bytes[self._starts[number] : self._starts[number + 1]] == data:
                return number
        return -1


def string_arrays(texts: Iterable[str], errors: str = "replace") -> Columns:
    """The arrays of a `StringTable` for texts that are distinct and sorted already.

    ``errors`` is that of `str.encode`, for lone surrogates.
    """
    data, lengths, hashes = bytearray(), array("i"), array("I")
    remaining = iter(texts)
    while piece := [text.encode("utf-8", errors) for text in islice(remaining, PIECE)]:
        data += b"".join(piece)
        lengths.extend(map(len, piece))
        hashes.extend(map(zlib.crc32, piece))
    count = len(lengths)
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.array(lengths, np.int64), out=starts[1:])
    buckets = 1 << max(1, count.bit_length())
    slots = np.array(hashes, np.uint32) & np.uint32(buckets - 1)
    order = np.argsort(slots, kind="stable")
    return {
        "text_bytes": np.frombuffer(data, np.uint8),
        "text_starts": starts,
        "text_buckets": order.astype(np.int32),
        "text_bucket_starts": np.searchsorted(slots[order], np.arange(buckets + 1)).astype(
            np.int32
        ),
    }


def time_code(time: Time) -> int:
    """Year, month and day in one integer that sorts by calendar, a year before its days."""
    if isinstance(time, Year):
        return year_code(time.year)
    return time.year * 512 + time.month * 32 + time.day


def year_code(year: int) -> int:
    """What `time_code` packs a year to."""
    return year * 512


def time_of_code(code: int) -> Time:
    """The year or day that `time_code` packed."""
    year, rest = divmod(code, 512)
    return Date(year, rest // 32, rest % 32) if rest else Year(year)


class ValueTable:
    """Read-only values 0..n-1; see the module's text for their order."""

    def __init__(self, arrays: Columns, strings: StringTable) -> None:
        self._strings = strings
        self._texts = view(arrays["value_text"])
        self._units = view(arrays["value_unit"])
        self._numbers = view(arrays["value_number"])
        self._times = view(arrays["value_time"])
        self.first_quantity = len(self._texts)
        self.first_time = self.first_quantity + len(self._units)

    def __len__(self) -> int:
        return self.first_time + len(self._times)

    def __getitem__(self, number: int) -> Value:
        if number < self.first_quantity:
            return self._strings[self._texts[number]]
        if number < self.first_time:
            at = number - self.first_quantity
            return Quantity(self._numbers[at], self._strings[self._units[at]])
        return time_of_code(self._times[number - self.first_time])

    def texts(self, numbers: Iterable[int]) -> list[str]:
        """The values as they are printed, without making a value of each quantity."""
        texts, first_quantity, first_time = [], self.first_quantity, self.first_time
        for number in numbers:
            if first_quantity <= number < first_time:
                at = number - first_quantity
                unit = self._strings[self._units[at]]
                texts.append(print_quantity(self._numbers[at], unit))
            else:
                texts.append(str(self[number]))
        return texts

    def form(self, number: int) -> str:
        """The type of a value, and the unit of a quantity: "year", "quantity (metre)"."""
        value = self[number]
        if isinstance(value, Quantity):
            return "quantity" if value.unit == NO_UNIT else f"quantity ({value.unit})"
        return "string" if isinstance(value, str) else type(value).__name__.lower()

    def forms(self, numbers: npt.NDArray[np.int32]) -> Counter[str]:
        """How many of the values have each `form`; of equal counts the first to come is first."""
        forms = np.full(len(numbers), -3, np.int64)
        is_quantity = self.is_quantity(numbers)
        forms[is_quantity] = self.units_of(numbers[is_quantity])
        is_time = numbers >= self.first_time
        codes = np.asarray(self._times)[numbers[is_time] - self.first_time]
        forms[is_time] = np.where(codes % 512 == 0, -2, -1)
        _, first, counts = np.unique(forms, return_index=True, return_counts=True)
        by = np.argsort(first)
        pairs = zip(numbers[first[by]].tolist(), counts[by].tolist(), strict=True)
        return Counter({self.form(number): count for number, count in pairs})

    def kinds(self, numbers: npt.NDArray[np.int32]) -> Counter[str]:
        """How many of the values are strings, quantities and times (years and days)."""
        strings = int((numbers < self.first_quantity).sum())
        times = int((numbers >= self.first_time).sum())
        found = {"string": strings, "quantity": len(numbers) - strings - times, "time": times}
        return Counter({kind: count for kind, count in found.items() if count})

    def has_years(self, numbers: npt.NDArray[np.int32]) -> bool:
        """Whether some of the values are years without a day."""
        codes = np.asarray(self._times)[numbers[numbers >= self.first_time] - self.first_time]
        return bool((codes % 512 == 0).any())

    def units(self, numbers: npt.NDArray[np.int32]) -> Counter[str]:
        """How many of the values are quantities in each unit."""
        units = self.units_of(numbers[self.is_quantity(numbers)])
        texts, counts = np.unique(units, return_counts=True)
        pairs = zip(texts.tolist(), counts.tolist(), strict=True)
        return Counter({self._strings[text]: count for text, count in pairs})

    def is_quantity(self, numbers: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """For each value number whether it is a quantity."""
        return (numbers >= self.first_quantity) & (numbers < self.first_time)

    def is_date(self, numbers: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """For each value number whether it is a time with a day."""
        found = numbers >= self.first_time
        found[found] = np.asarray(self._times)[numbers[found] - self.first_time] % 512 != 0
        return found

    def units_of(self, numbers: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The string numbers of the units of values that are all quantities."""
        units: npt.NDArray[np.int32] = np.asarray(self._units, np.int32)[
            numbers - self.first_quantity
        ]
        return units

    def intervals(self, condition: Condition) -> list[Interval]:
        """The half-open intervals of value numbers that satisfy the condition, in order."""
        found: list[Interval] = []
        for constant in condition.constants:
            found += self._intervals_of(constant, condition.operator)
        return [(low, high) for low, high in found if low < high]

    def _intervals_of(self, constant: Value, operator: str) -> list[Interval]:
        if isinstance(constant, str):
            if operator not in ("=", "!="):
                return []
            number = self._strings.find(constant)
            at = bisect_left(self._texts, number) if number >= 0 else 0
            known = number >= 0 and at < len(self._texts) and self._texts[at] == number
            return _compare(operator, 0, at, at + known, self.first_quantity)
        if isinstance(constant, Quantity):
            unit = self._strings.find(constant.unit)
            if unit < 0:
                return []
            first, last = bisect_left(self._units, unit), bisect_right(self._units, unit)
            low = bisect_left(self._numbers, constant.number, first, last)
            high = bisect_right(self._numbers, constant.number, low, last)
            base = self.first_quantity
            return _compare(operator, base + first, base + low, base + high, base + last)
        base, end = self.first_time, len(self)
        year = base + bisect_left(self._times, constant.year * 512)
        if isinstance(constant, Year):
            after = base + bisect_left(self._times, (constant.year + 1) * 512)
            return _compare(operator, base, year, after, end)
        code = time_code(constant)
        low = base + bisect_left(self._times, code)
        high = base + bisect_right(self._times, code)
        if operator == "<":
            # The year of the constant itself sorts before its days but is not before the constant.
            days = base + bisect_right(self._times, constant.year * 512)
            return [(base, year), (days, low)]
        return _compare(operator, base, low, high, end)


def _compare(operator: str, first: int, low: int, high: int, last: int) -> list[Interval]:
    """Intervals for an operator when ``[low, high)`` of ``[first, last)`` equal the constant."""
    if operator == "=":
        return [(low, high)]
    if operator == "!=":
        return [(first, low), (high, last)]
    return [(first, low)] if operator == "<" else [(high, last)]
