"""What a translation may know of the knowledge base that its query will run on."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import Literal, TypeAlias

from kb import KnowledgeBase
from kb.values import Condition, Quantity, Value

ValueType: TypeAlias = Literal["string", "quantity", "time"]


def type_of(value: Value) -> ValueType:
    """The type of a value as far as comparisons go: years and days are one."""
    if isinstance(value, str):
        return "string"
    return "quantity" if isinstance(value, Quantity) else "time"


class Schema:
    """Which keys a knowledge base has, and of which types; without one, everything may be.

    What is dropped for it never changes the denotation on that knowledge base.
    """

    _kept: tuple[KnowledgeBase, Schema] | None = None

    def __init__(self, kb: KnowledgeBase | None) -> None:
        self.kb = kb

    @classmethod
    def of(cls, kb: KnowledgeBase | None) -> Schema:
        """The schema of a knowledge base; the last one is kept, as programs come in batches."""
        if kb is None:
            return _UNKNOWN
        if cls._kept is None or cls._kept[0] is not kb:
            cls._kept = (kb, cls(kb))
        return cls._kept[1]

    @cached_property
    def _attribute_types(self) -> dict[str, frozenset[ValueType]]:
        assert self.kb is not None
        return {
            key: frozenset(self.kb.values.kinds(numbers))  # type: ignore[arg-type]
            for key, numbers in self.kb.values_of_keys().items()
        }

    @cached_property
    def _qualifier_types(self) -> dict[str, frozenset[ValueType]]:
        assert self.kb is not None
        return {
            key: frozenset(self.kb.values.kinds(numbers))  # type: ignore[arg-type]
            for key, numbers in self.kb.qualifier_values_of().items()
        }

    @cached_property
    def _relations(self) -> frozenset[str]:
        assert self.kb is not None
        return frozenset(self.kb.relations)

    def is_qualifier(self, key: str) -> bool:
        """Whether some fact has (or may have) a qualifier of that key."""
        return self.kb is None or key in self._qualifier_types

    def is_attribute(self, key: str) -> bool:
        """Whether some entity has (or may have) an attribute of that key."""
        return self.kb is None or key in self._attribute_types

    def is_relation(self, key: str) -> bool:
        """Whether some fact between nodes has (or may have) that relation."""
        return self.kb is None or key in self._relations

    @cached_property
    def _with_years(self) -> tuple[frozenset[str], frozenset[str]]:
        """The attribute keys and the qualifier keys that have years without a day."""
        assert self.kb is not None
        attributes, qualifiers = (
            frozenset(key for key, found in values.items() if self.kb.values.has_years(found))
            for values in (self.kb.values_of_keys(), self.kb.qualifier_values_of())
        )
        return attributes, qualifiers

    def has_years(self, key: str, *, qualifier: bool) -> bool:
        """Whether some value of a key is (or may be) a year without a day."""
        return self.kb is None or key in self._with_years[qualifier]

    def is_concept(self, name: str) -> bool:
        """Whether some concept has (or may have) that name."""
        return self.kb is None or not all(map(self.kb.is_entity, self.kb.named(name).tolist()))

    def types(self, key: str, *, qualifier: bool) -> Collection[ValueType] | None:
        """The types of the values of a key; None when they are not known."""
        if self.kb is None:
            return None
        return (self._qualifier_types if qualifier else self._attribute_types).get(key)

    def possible(self, key: str, condition: Condition, *, qualifier: bool) -> Condition:
        """The condition without the readings of a constant that no value of the key can equal."""
        types = self.types(key, qualifier=qualifier)
        if types is None or len(condition.constants) == 1:
            return condition
        kept = tuple(one for one in condition.constants if type_of(one) in types)
        return Condition(kept or condition.constants[:1], condition.operator)


_UNKNOWN = Schema(None)
