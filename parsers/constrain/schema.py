"""What a knowledge base has that programs may name: names, keys by type, units, values.

Everything is worked out when it is asked for first, so that a knowledge base that was never seen
in training costs nothing but that.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kb import KnowledgeBase
from kb.store import NameKind, normalise_name
from kopl.functions import Function
from kopl.types import Kind

ValueType: TypeAlias = Literal["string", "quantity", "time"]

# What a textual argument of a kind must be the value of; an untyped one may be any.
TYPE_OF: dict[Kind, ValueType] = {
    Kind.STRING: "string",
    Kind.QUANTITY: "quantity",
    Kind.TIME: "time",
    # Who compares without a constant compares quantities.
    Kind.EXTREME: "quantity",
    Kind.COMPARATIVE: "quantity",
}

# The kinds of arguments that are keys, and whether a qualifier's.
KEYS = {Kind.KEY: False, Kind.QUALIFIER_KEY: True}

# A key as an attribute's or as a qualifier's: the same word may be both, with other values.
Key: TypeAlias = tuple[str, bool]


def type_of_key(function: Function, at: int) -> ValueType | None:
    """The type that the values of a key argument must have, by the arguments behind it."""
    for _, kind in function.arguments[at + 1 :]:
        if kind in TYPE_OF:
            return TYPE_OF[kind]
        if kind in KEYS:
            break
    return None


def types_without_key(function: Function) -> list[ValueType]:
    """The types of values that are compared with those of the input, as Verify does."""
    if any(kind in KEYS for _, kind in function.arguments):
        return []
    return [TYPE_OF[kind] for _, kind in function.arguments if kind in TYPE_OF]


class Schema:
    """The names of a knowledge base, by what they are names of."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb

    def of_kind(self, kind: NameKind) -> list[str]:
        """The names of one kind of thing that can be written; an empty name cannot."""
        return [name for name in self.kb.names_of_kind(kind) if name]

    @cached_property
    def nodes(self) -> list[str]:
        """The names of entities and concepts as an argument reads them."""
        return sorted({*map(normalise_name, self.of_kind("entity")), *self.concepts} - {""})

    @cached_property
    def concepts(self) -> list[str]:
        """The names of concepts as an argument reads them."""
        return sorted({normalise_name(name) for name in self.of_kind("concept")} - {""})

    @cached_property
    def _values(self) -> dict[Key, npt.NDArray[np.int32]]:
        found = {(key, False): numbers for key, numbers in self.kb.values_of_keys().items()}
        found |= {(key, True): numbers for key, numbers in self.kb.qualifier_values_of().items()}
        return {key: np.unique(numbers) for key, numbers in found.items() if key[0]}

    @cached_property
    def _types(self) -> dict[Key, frozenset[str]]:
        kinds = self.kb.values.kinds
        return {key: frozenset(kinds(numbers)) for key, numbers in self._values.items()}

    def keys(self, qualifier: bool, type: ValueType | None = None) -> list[str]:
        """The attribute or qualifier keys that have values, of the type if one is given."""
        return [
            key
            for (key, of_qualifier), types in self._types.items()
            if of_qualifier == qualifier and (type is None or type in types)
        ]

    def has(self, key: Key, type: ValueType) -> bool:
        """Whether some value of a key has the type."""
        return type in self.types(key)

    def types(self, key: Key) -> frozenset[str]:
        """The types of a key's values: "string", "quantity", "time"; none of an unknown key."""
        return self._types.get(key, frozenset())

    def units(self, key: Key) -> list[str]:
        """The units of a key's quantities, "1" among them where some have none."""
        return sorted(self.kb.values.units(self._values[key]))

    def texts(self, key: Key, type: ValueType | None = None) -> list[str]:
        """The different values of a key as they are printed, of the type if one is given."""
        numbers, values = self._values[key], self.kb.values
        if type == "string":
            numbers = numbers[numbers < values.first_quantity]
        elif type == "quantity":
            numbers = numbers[values.is_quantity(numbers)]
        elif type == "time":
            numbers = numbers[numbers >= values.first_time]
        return sorted({str(values[number]) for number in numbers.tolist()} - {""})
