"""What a knowledge base holds, as an engine's planner would ask: rows of a pattern, and guesses."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from kb import KnowledgeBase
from kb.values import Condition

# Guesses where no knowledge base is at hand.
MANY, SOME, FEW = 1e5, 1e3, 4.0


class Statistics:
    """How many rows a pattern gives; of a knowledge base, or guesses."""

    def __init__(self, kb: KnowledgeBase | None = None) -> None:
        self.kb = kb
        self._fans: dict[str, tuple[float, float, float]] = {}

    def named(self, name: str) -> float:
        """How many nodes have the name."""
        return float(len(self.kb.named(name))) if self.kb is not None else 1.0

    def instances(self, concept: str | None) -> float:
        """How many entities are instances of a concept (of that name, or of any one)."""
        if self.kb is None:
            return SOME
        if concept is not None:
            return float(len(self.kb.instances_of(concept)))
        return self.kb.memberships / max(1, self.kb.concept_count)

    @property
    def entities(self) -> float:
        """How many entities there are."""
        return float(self.kb.entity_count) if self.kb is not None else MANY

    @property
    def concepts_of_one(self) -> float:
        """Of how many concepts an entity is an instance."""
        if self.kb is None:
            return FEW
        return self.kb.memberships / max(1, self.kb.entity_count)

    @property
    def facts_of_one(self) -> float:
        """How many relational facts a node has at one of its ends."""
        if self.kb is None:
            return FEW
        return len(self.kb.relational) / max(1, self.kb.node_count)

    def predicate(self, text: str) -> tuple[float, float, float]:
        """Of a key or relation: its triples, its triples of one subject, and of one object."""
        found = self._fans.get(text)
        if found is None:
            found = self._fans[text] = self._count(text)
        return found

    def _count(self, text: str) -> tuple[float, float, float]:
        if self.kb is None:
            return (SOME, FEW, FEW)
        total, subjects, objects = 0.0, 0.0, 0.0
        key, relation = self.kb.key_number(text), self.kb.relation_number(text)
        if relation >= 0:
            facts = self.kb.relational.of_predicate(relation)
            total += len(facts)
            subjects += len(np.unique(self.kb.relational.subject[facts]))
            objects += len(np.unique(self.kb.relational.object[facts]))
        if key >= 0:
            facts = self.kb.literals.of_predicate(key)
            total += len(facts)
            subjects += len(np.unique(self.kb.literals.subject[facts]))
            objects += len(facts)  # each has a value node of its own
            of_qualifiers = float(self._qualifiers_of_key[key])
            total += of_qualifiers
            subjects += of_qualifiers
            objects += of_qualifiers
        return (total, total / max(1.0, subjects), total / max(1.0, objects))

    def is_literal(self, text: str) -> bool:
        """Whether facts of this name are known to lead to values, never to nodes."""
        if self.kb is None:
            return False
        return self.kb.relation_number(text) < 0 and self.kb.key_number(text) >= 0

    def values(self, condition: Condition) -> float:
        """How many value nodes satisfy a condition."""
        if self.kb is None:
            return SOME
        ends = self._value_nodes_before
        return float(
            sum(ends[high] - ends[low] for low, high in self.kb.values.intervals(condition))
        )

    @property
    def value_nodes(self) -> float:
        """How many value nodes there are."""
        return float(self._value_nodes_before[-1]) if self.kb is not None else MANY

    def nodes_of_one_number(self, key: str) -> float:
        """How many value nodes have the number of a quantity of the key, on average.

        Nodes of other units and keys count: their numbers are the same.
        """
        number = self.kb.key_number(key) if self.kb is not None else -1
        if self.kb is None or number < 0:
            return FEW
        values = np.unique(self.kb.literals.object[self.kb.literals.of_predicate(number)])
        values = values[self.kb.values.is_quantity(values)] - self.kb.values.first_quantity
        return float(self._nodes_of_number[values].mean()) if len(values) else FEW

    @cached_property
    def _nodes_of_number(self) -> Any:
        """For each quantity how many value nodes have its number, in any unit."""
        assert self.kb is not None
        ends = self._value_nodes_before
        first = self.kb.values.first_quantity
        counts = np.diff(ends)[first : self.kb.values.first_time]
        numbers = np.asarray(self.kb.arrays["value_number"])
        _, same = np.unique(numbers, return_inverse=True)
        return np.bincount(same, weights=counts)[same] if len(same) else counts

    @cached_property
    def _set_uses(self) -> Any:
        """How many facts have each qualifier set."""
        assert self.kb is not None
        sets = len(self.kb.arrays["qualifier_starts"]) - 1
        uses: Any = np.bincount(self.kb.literals.qualifiers, minlength=sets)
        uses += np.bincount(self.kb.relational.qualifiers, minlength=sets)
        return uses

    @cached_property
    def _pair_uses(self) -> Any:
        """How many facts have each (key, value) pair of the qualifier sets' columns."""
        assert self.kb is not None
        return np.repeat(self._set_uses, np.diff(self.kb.arrays["qualifier_starts"]))

    @cached_property
    def _qualifiers_of_key(self) -> Any:
        assert self.kb is not None
        keys, _ = self.kb.qualifier_sets.columns()
        return np.bincount(keys, weights=self._pair_uses, minlength=len(self.kb.keys))

    @property
    def facts(self) -> float:
        """How many facts there are."""
        if self.kb is None:
            return MANY
        return float(len(self.kb.relational) + len(self.kb.literals))

    def qualifiers(self, key: str) -> float:
        """How many qualifier values there are of a key."""
        if self.kb is None:
            return SOME
        number = self.kb.key_number(key)
        return float(self._qualifiers_of_key[number]) if number >= 0 else 0.0

    @cached_property
    def _value_nodes_before(self) -> Any:
        """For each value number how many value nodes have a smaller one."""
        assert self.kb is not None
        size = len(self.kb.values)
        _, values = self.kb.qualifier_sets.columns()
        counts = np.bincount(self.kb.literals.object, minlength=size).astype(np.float64)
        counts += np.bincount(values, weights=self._pair_uses, minlength=size)
        ends: Any = np.concatenate(([0], np.cumsum(counts)))
        return ends
