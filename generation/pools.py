"""What sampling draws from: the facts of a knowledge base by relation, key, type and place."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from random import Random
from typing import Literal, TypeAlias, TypeVar, get_args

import numpy as np

from generation.lexicon import Direction
from kb import Date, KnowledgeBase, Value
from kb.arrays import EMPTY, Ids, Mask

Item = TypeVar("Item")
# A type of values, as the functions of the language tell them apart; "time" holds the dates too.
Form = Literal["any", "string", "quantity", "time", "date"]
# A qualifier that a fact must have: its key (None: any) and its type.
Qualified: TypeAlias = tuple[str | None, Form]


class NoDraw(Exception):
    """There is nothing to draw that fits; the sampler tries something else."""


def draw_from(random: Random, items: Sequence[Item]) -> Item:
    """One of the items; raises NoDraw when there are none."""
    if not items:
        raise NoDraw
    return items[random.randrange(len(items))]


class Pools:
    """Facts by number, grouped in the ways that drawing asks for; what was grouped is kept."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.relations = [
            number for number in range(len(kb.relations)) if len(kb.relational.of_predicate(number))
        ]
        self.concepts = [
            node
            for node in range(kb.entity_count, kb.node_count)
            if len(kb.instances_of(kb.name_of(node)))
        ]
        # For each type which values, and which literal facts by their values, are of it.
        self.of_form = {form: self._values_of_form(form) for form in get_args(Form)}
        self._facts_of_form = {
            form: found[kb.literals.object] for form, found in self.of_form.items()
        }
        self.person = _instances(kb, ("person", "human"))
        self.sets_with = lru_cache(maxsize=None)(self._sets_with)
        self.has_qualified = lru_cache(maxsize=100_000)(self._has_qualified)
        self.relations_with = lru_cache(maxsize=None)(self._relations_with)
        self.keys = lru_cache(maxsize=None)(self._keys)
        self.key_facts = lru_cache(maxsize=None)(self._key_facts)
        self.relation_facts = lru_cache(maxsize=None)(self._relation_facts)
        self.literals = lru_cache(maxsize=20_000)(self._literals)
        self.links = lru_cache(maxsize=20_000)(self._links)

    def _values_of_form(self, form: Form) -> Mask:
        """For each value whether it is of the type."""
        values = self.kb.values
        numbers = np.arange(len(values))
        if form == "any":
            return np.ones(len(values), bool)
        if form == "string":
            return numbers < values.first_quantity
        if form == "quantity":
            return (numbers >= values.first_quantity) & (numbers < values.first_time)
        found = numbers >= values.first_time
        if form == "date":
            found[found] = [isinstance(values[at], Date) for at in np.flatnonzero(found).tolist()]
        return found

    def fitting(self, facts: list[int], form: Form) -> list[int]:
        """Those of some literal facts whose values are of the type."""
        fits = self._facts_of_form[form]
        return [fact for fact in facts if fits[fact]]

    def value(self, fact: int) -> Value:
        """The value of a literal fact."""
        return self.kb.values[int(self.kb.literals.object[fact])]

    def _has_qualified(self, node: int, qualified: Qualified) -> bool:
        """Whether a node is on either end of a fact with such a qualifier."""
        sets = self.sets_with(qualified)
        groups = ((self.kb.literals, self.literals(node)), (self.kb.relational, self.links(node)))
        return any(
            sets[table.qualifiers[fact]]
            for table, facts_of in groups
            for facts in facts_of.values()
            for fact in facts
        )

    def _sets_with(self, qualified: Qualified) -> Mask:
        """For each set of qualifiers whether it has such a qualifier."""
        key, form = qualified
        keys, values = self.kb.qualifier_sets.columns()
        starts = np.asarray(self.kb.arrays["qualifier_starts"])
        fits = np.ones(len(keys), bool) if key is None else keys == self.kb.key_number(key)
        fits = fits & self.of_form[form][values]
        found = np.zeros(len(starts) - 1, bool)
        found[np.repeat(np.arange(len(found)), np.diff(starts))[fits]] = True
        return found

    def _relations_with(self, qualified: Qualified) -> list[int]:
        """The relations that have facts with such a qualifier."""
        return [one for one in self.relations if self.relation_facts(one, qualified)]

    def _relation_facts(self, relation: int, qualified: Qualified | None) -> list[int]:
        """The facts of a relation; only those with such a qualifier when asked."""
        table = self.kb.relational
        facts = table.of_predicate(relation)
        if qualified:
            facts = facts[self.sets_with(qualified)[table.qualifiers[facts]]]
        found: list[int] = facts.tolist()
        return found

    def _keys(self, form: Form, qualified: Qualified | None) -> list[int]:
        """The keys that have facts of a type."""
        return [key for key in range(len(self.kb.keys)) if self.key_facts(key, form, qualified)]

    def _key_facts(self, key: int, form: Form, qualified: Qualified | None) -> list[int]:
        """The facts of a key whose values are of a type."""
        table = self.kb.literals
        facts = table.of_predicate(key)
        if qualified:
            facts = facts[self.sets_with(qualified)[table.qualifiers[facts]]]
        found: list[int] = facts[self._facts_of_form[form][facts]].tolist()
        return found

    def _literals(self, node: int) -> dict[int, list[int]]:
        """The literal facts of an entity, by key."""
        table = self.kb.literals
        if not self.kb.is_entity(node):
            return {}
        return _grouped(table.of_subjects(np.array([node], np.int32)), table.predicate)

    def _links(self, node: int) -> dict[tuple[int, Direction], list[int]]:
        """The relational facts whose far end is the node, by relation and direction."""
        table, single = self.kb.relational, np.array([node], np.int32)
        into = _grouped(table.of_tails(single), table.predicate)
        out = _grouped(table.of_subjects(single), table.predicate)
        found: dict[tuple[int, Direction], list[int]] = {}
        found.update({(relation, "forward"): facts for relation, facts in into.items()})
        found.update({(relation, "backward"): facts for relation, facts in out.items()})
        return found


def _grouped(facts: Ids, groups: Ids) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for fact, group in zip(facts.tolist(), groups[facts].tolist(), strict=True):
        found.setdefault(group, []).append(fact)
    return dict(sorted(found.items()))


def _instances(kb: KnowledgeBase, names: Sequence[str]) -> frozenset[int]:
    found = [kb.instances_of(name) for name in names]
    return frozenset(np.concatenate([EMPTY, *found]).tolist())
