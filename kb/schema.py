"""What a knowledge base has that programs and queries may name: names, keys by type, units, values.

Everything is worked out when it is asked for first, so that a knowledge base that is only loaded,
or was never seen in training, costs nothing but that.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from kb.arrays import Ids
from kb.store import KnowledgeBase, NameKind, normalise_name
from kb.values import Condition, Quantity, Value

ValueType: TypeAlias = Literal["string", "quantity", "time"]

# A key as an attribute's or, where True, as a qualifier's: the same word may be both, with other
# values.
Key: TypeAlias = tuple[str, bool]


def type_of(value: Value) -> ValueType:
    """The type of a value as far as comparisons go: years and days are one."""
    if isinstance(value, str):
        return "string"
    return "quantity" if isinstance(value, Quantity) else "time"


class Schema:
    """The names of a knowledge base, by what they are names of, and the values of its keys."""

    _kept: ClassVar[Schema | None] = None

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb

    @staticmethod
    def of(kb: KnowledgeBase | None) -> Schema:
        """The schema of a knowledge base; the last one is kept, as it is asked for in batches.

        Without a knowledge base, one by which everything may be.
        """
        if kb is None:
            return _UNKNOWN
        if Schema._kept is None or Schema._kept.kb is not kb:
            Schema._kept = Schema(kb)
        return Schema._kept

    # --- names --------------------------------------------------------------------------------

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
    def _relations(self) -> frozenset[str]:
        return frozenset(self.kb.relations)

    def is_relation(self, name: str) -> bool:
        """Whether some fact between nodes has that relation."""
        return name in self._relations

    def is_concept(self, name: str) -> bool:
        """Whether some concept has that name."""
        return not all(map(self.kb.is_entity, self.kb.named(name).tolist()))

    # --- keys and their values ----------------------------------------------------------------

    def _numbers(self) -> Iterator[tuple[Key, Ids]]:
        """Every key with the numbers of the values that its facts or qualifiers have."""
        for is_qualifier, found in (
            (False, self.kb.values_of_keys()),
            (True, self.kb.qualifier_values_of()),
        ):
            for key, numbers in found.items():
                yield (key, is_qualifier), numbers

    @cached_property
    def _types(self) -> dict[Key, frozenset[ValueType]]:
        kinds = self.kb.values.kinds
        return {key: frozenset(kinds(numbers)) for key, numbers in self._numbers()}  # type: ignore[arg-type]

    @cached_property
    def _values(self) -> dict[Key, Ids]:
        return {key: np.unique(numbers) for key, numbers in self._numbers()}

    @cached_property
    def _with_years(self) -> frozenset[Key]:
        has_years = self.kb.values.has_years
        return frozenset(key for key, numbers in self._numbers() if has_years(numbers))

    def keys(self, qualifier: bool, type: ValueType | None = None) -> list[str]:
        """The attribute or qualifier keys that can be written, with values of the type if given."""
        return [
            key
            for (key, of_qualifier), types in self._types.items()
            if key and of_qualifier == qualifier and (type is None or type in types)
        ]

    def has_key(self, key: Key) -> bool:
        """Whether some fact has an attribute, or some qualifier, of that key."""
        return key in self._types

    def types(self, key: Key) -> frozenset[ValueType]:
        """The types of a key's values; none where nothing is known of the key."""
        return self._types.get(key, frozenset())

    def has(self, key: Key, type: ValueType) -> bool:
        """Whether some value of a key has the type."""
        return type in self.types(key)

    def has_years(self, key: Key) -> bool:
        """Whether some value of a key is a year without a day."""
        return key in self._with_years

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

    def possible(self, key: Key, condition: Condition) -> Condition:
        """The condition without the readings of a constant that no value of the key can equal."""
        types = self.types(key)
        if not types or len(condition.constants) == 1:
            return condition
        kept = tuple(one for one in condition.constants if type_of(one) in types)
        return Condition(kept or condition.constants[:1], condition.operator)


class _Unknown(Schema):
    """What is known of a knowledge base that is not at hand: whatever is asked for may be there."""

    def __init__(self) -> None:
        """Nothing to keep."""

    def is_relation(self, name: str) -> bool:
        return True

    def is_concept(self, name: str) -> bool:
        return True

    def has_key(self, key: Key) -> bool:
        return True

    def has_years(self, key: Key) -> bool:
        return True

    def types(self, key: Key) -> frozenset[ValueType]:
        return frozenset()


_UNKNOWN = _Unknown()
