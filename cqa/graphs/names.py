"""Names of entities or relations by number, and the other way, as arrays that can be mapped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import cast

import numpy as np

from kb.arrays import Ids
from kb.columns import Array, Columns
from kb.valuetable import StringTable, string_arrays
from kopl_base.errors import KoplError, near_names


class Names:
    """Distinct names of the numbers 0..n-1."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.arrays = arrays
        self._table = StringTable(cast(Columns, arrays))
        self._texts: Ids = arrays["text_of"]  # type: ignore[assignment]
        self._numbers: Ids = arrays["number_of"]  # type: ignore[assignment]

    @classmethod
    def of(cls, names: Sequence[str], what: str = "name") -> Names:
        """The names in the order of their numbers; raises KoplError when one stands twice."""
        order = sorted(range(len(names)), key=names.__getitem__)
        for one, next_one in pairwise(order):
            if names[one] == names[next_one]:
                raise KoplError(f"the {what} {names[one]!r} stands for both {one} and {next_one}")
        number_of = np.array(order, np.int32)
        text_of = np.empty(len(names), np.int32)
        text_of[number_of] = np.arange(len(names), dtype=np.int32)
        texts = cast(dict[str, Array], string_arrays(names[at] for at in order))
        return cls({**texts, "text_of": text_of, "number_of": number_of})

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, number: int) -> str:
        if not 0 <= number < len(self._texts):
            raise IndexError(number)
        return self._table[int(self._texts[number])]

    def __iter__(self) -> Iterator[str]:
        return (self[number] for number in range(len(self)))

    def find(self, name: str) -> int:
        """The number of a name, or -1."""
        text = self._table.find(name)
        return int(self._numbers[text]) if text >= 0 else -1

    def near(self, name: str) -> list[str]:
        """Up to three names that are near in spelling, for messages."""
        return near_names(name, self)
