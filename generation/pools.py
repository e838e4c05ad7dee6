"""What can be drawn: facts by relation, key, type and place; what nodes have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntFlag, auto
from functools import cached_property, lru_cache
from random import Random
from typing import Literal, TypeAlias, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from generation.lexicon import POINT_IN_TIME, Direction
from kb import KnowledgeBase, Value
from kb.arrays import EMPTY, Ids, Mask
from kopl.meaning import Quantities

Item = TypeVar("Item")
# A type of values, as the functions of the language tell them apart; "time" holds the dates too.
Form = Literal["any", "string", "quantity", "time", "date"]
# A qualifier that a fact must have: its key (None: any) and its type.
Qualified: TypeAlias = tuple[str | None, Form]

# Stands for the year of what has none.
NO_YEAR = -(2**31)


class NoDraw(Exception):
    """There is nothing to draw that fits; the sampler tries something else."""


class Overdrawn(NoDraw):
    """What was drawn has an answer that came often enough already."""


def draw_from(random: Random, items: Sequence[Item]) -> Item:
    """One of the items; raises NoDraw when there are none."""
    if not items:
        raise NoDraw
    return items[random.randrange(len(items))]


class Pools:
    """Facts by number, grouped in the ways that drawing asks for; what was grouped is kept."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.relations = list(kb.relational.by_predicate())
        # The concepts that have instances, by themselves or by others of their name.
        names = np.asarray(kb.arrays["node_name"])
        concepts = np.arange(kb.entity_count, kb.node_count)
        known = names[kb.concepts_with_instances()]
        self.concepts: list[int] = concepts[np.isin(names[concepts], known)].tolist()
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
        self.qualifier_values = lru_cache(maxsize=None)(self._qualifier_values)
        self.years_by = lru_cache(maxsize=None)(self._years_by)
        self.relation_facts = lru_cache(maxsize=None)(self._relation_facts)
        self.literals = lru_cache(maxsize=20_000)(self._literals)
        self.links = lru_cache(maxsize=20_000)(self._links)
        self.shared = lru_cache(maxsize=20_000)(self._shared)
        self.concepts_of = lru_cache(maxsize=20_000)(self._concepts_of)
        self.concept_name = lru_cache(maxsize=20_000)(kb.name_of)

    def _values_of_form(self, form: Form) -> Mask:
        """For each value whether it is of the type."""
        values = self.kb.values
        numbers = np.arange(len(values), dtype=np.int32)
        if form == "any":
            return np.ones(len(values), bool)
        if form == "string":
            return numbers < values.first_quantity
        if form == "quantity":
            return (numbers >= values.first_quantity) & (numbers < values.first_time)
        return values.is_date(numbers) if form == "date" else numbers >= values.first_time

    def key(self, fact: int) -> str:
        """The key of a literal fact."""
        return self.kb.keys[int(self.kb.literals.predicate[fact])]

    def value(self, fact: int) -> Value:
        """The value of a literal fact."""
        return self.kb.values[int(self.kb.literals.object[fact])]

    def _has_qualified(self, node: int, qualified: Qualified) -> bool:
        """Whether a node is on either end of a fact with such a qualifier."""
        sets, qualifiers = self.sets_with(qualified), self.kb.relational.qualifiers
        return bool(self.literals(node, "any", qualified)) or any(
            sets[qualifiers[facts]].any() for facts in self.links(node).values()
        )

    def _sets_with(self, qualified: Qualified) -> Mask:
        """For each set of qualifiers whether it has such a qualifier."""
        key, form = qualified
        keys, values = self.kb.qualifier_sets.columns()
        starts = np.asarray(self.kb.arrays["qualifier_starts"])
        # Rules for any qualifier are not for the point in time, whose wording the fact decides.
        number = self.kb.key_number(POINT_IN_TIME if key is None else key)
        fits = keys != number if key is None else keys == number
        fits = fits & self.of_form[form][values]
        found = np.zeros(len(starts) - 1, bool)
        found[np.repeat(np.arange(len(found)), np.diff(starts))[fits]] = True
        return found

    def _relations_with(self, qualified: Qualified) -> list[int]:
        """The relations that have facts with such a qualifier."""
        table = self.kb.relational
        return _numbers(table.predicate[self.sets_with(qualified)[table.qualifiers]])

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
        table = self.kb.literals
        facts = self._facts_of_form[form]
        if qualified:
            facts = facts & self.sets_with(qualified)[table.qualifiers]
        return _numbers(table.predicate[facts])

    def _key_facts(self, key: int, form: Form, qualified: Qualified | None) -> list[int]:
        """The facts of a key whose values are of a type."""
        table = self.kb.literals
        facts = table.of_predicate(key)
        if qualified:
            facts = facts[self.sets_with(qualified)[table.qualifiers[facts]]]
        found: list[int] = facts[self._facts_of_form[form][facts]].tolist()
        return found

    @cached_property
    def different_years(self) -> int:
        """How many years there are among the values of qualifiers."""
        _, values = self.kb.qualifier_sets.columns()
        times = np.unique(values[self.of_form["time"][values]]).tolist()
        return len({getattr(self.kb.values[value], "year", NO_YEAR) for value in times})

    def _years_by(self, key: str) -> Ids | None:
        """For each set of qualifiers the year that it has by a key; None where none has one.

        NO_YEAR is that of a set without.
        """
        keys, values = self.kb.qualifier_sets.columns()
        starts = np.asarray(self.kb.arrays["qualifier_starts"])
        here = (keys == self.kb.key_number(key)) & self.of_form["time"][values]
        if not here.any():
            return None
        different, at = np.unique(values[here], return_inverse=True)
        times = (self.kb.values[int(value)] for value in different)
        years = np.array([getattr(time, "year", NO_YEAR) for time in times], np.int32)
        found = np.full(len(starts) - 1, NO_YEAR, np.int32)
        found[np.repeat(np.arange(len(found)), np.diff(starts))[here]] = years[at]
        return found

    def is_clear(self, nodes: Ids, key: str, largest: bool) -> bool:
        """Whether one of some nodes is ahead by a key now, and is what a choice among them finds.

        A choice knows no dates: the first is who has the most extreme figure of any time. It is
        clear where that one is ahead by the latest figures, too. Those in another unit cannot be
        compared.
        """
        found = Quantities.of(self.kb, nodes, key)
        if len(found.nodes) == 0 or (found.units != found.units[0]).any():
            return False
        ahead = found.extreme(largest)
        if len(ahead) != 1 or len(np.unique(found.nodes)) < 2:
            return False
        if len(np.unique(found.nodes)) == len(found.nodes):
            return True
        latest = found.those(self._is_latest(nodes, key))
        return np.array_equal(ahead, latest.extreme(largest))

    def _is_latest(self, nodes: Ids, key: str) -> Mask:
        """For each quantity of some nodes whether it is of the last year that its node has."""
        kb, table = self.kb, self.kb.literals
        facts = kb.literals_of(nodes, key)
        facts = facts[kb.values.is_quantity(table.object[facts])]
        years = self.years_by(POINT_IN_TIME)
        if years is None:
            return np.ones(len(facts), np.bool_)
        own, (_, at) = (
            years[table.qualifiers[facts]],
            np.unique(table.subject[facts], return_inverse=True),
        )
        last = np.full(at.max() + 1, NO_YEAR, np.int32)
        np.maximum.at(last, at, own)
        return np.asarray(own == last[at])

    def _qualifier_values(self, key: int) -> list[int]:
        """The values of a qualifier key, each as often as different sets of qualifiers have it."""
        keys, values = self.kb.qualifier_sets.columns()
        found: list[int] = values[keys == key].tolist()
        return found

    def _literals(self, node: int, form: Form, qualified: Qualified | None) -> dict[int, list[int]]:
        """The literal facts of an entity whose values are of a type, by key."""
        table = self.kb.literals
        if not self.kb.is_entity(node):
            return {}
        facts = table.of_subjects(np.array([node], np.int32))
        facts = facts[self._facts_of_form[form][facts]]
        if qualified:
            facts = facts[self.sets_with(qualified)[table.qualifiers[facts]]]
        return _grouped(facts, table.predicate)

    def _concepts_of(self, entity: int) -> list[str]:
        """The names of an entity's concepts; its own ones twice, so that they come more often."""
        own = self.kb.concepts_of(entity)
        concepts = (*own, *own, *self.kb.all_concepts_of(entity))
        return [self.concept_name(concept) for concept in concepts]

    def _shared(self, node: int) -> frozenset[tuple[int, Direction]]:
        """The relations and directions by which a node is reached together with others."""
        return frozenset(
            (relation, direction)
            for (relation, direction), facts in self.links(node).items()
            if (self.reached[direction][facts] > 1).any()
        )

    @cached_property
    def reached(self) -> Mapping[Direction, npt.NDArray[np.int32]]:
        """For each relational fact how many facts lead from its near end by its relation.

        By the direction in which it is followed.
        """
        table = self.kb.relational
        return {
            "forward": _alike(table.predicate, table.subject),
            "backward": _alike(table.predicate, table.object),
        }

    def _links(self, node: int) -> dict[tuple[int, Direction], list[int]]:
        """The relational facts whose far end is the node, by relation and direction."""
        table, single = self.kb.relational, np.array([node], np.int32)
        into = _grouped(table.of_tails(single), table.predicate)
        out = _grouped(table.of_subjects(single), table.predicate)
        found: dict[tuple[int, Direction], list[int]] = {}
        found.update({(relation, "forward"): facts for relation, facts in into.items()})
        found.update({(relation, "backward"): facts for relation, facts in out.items()})
        return found


def _alike(*columns: Ids) -> npt.NDArray[np.int32]:
    """For each row how many rows have the same in all columns."""
    keys = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        keys = keys * (int(column.max(initial=0)) + 1) + column
    _, at, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[at].astype(np.int32)


def _grouped(facts: Ids, groups: Ids) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for fact, group in zip(facts.tolist(), groups[facts].tolist(), strict=True):
        found.setdefault(group, []).append(fact)
    return dict(sorted(found.items()))


def _numbers(column: Ids) -> list[int]:
    """The different numbers of a column, which are small; faster than sorting it."""
    found: list[int] = np.flatnonzero(np.bincount(column)).tolist()
    return found


def _instances(kb: KnowledgeBase, names: Sequence[str]) -> frozenset[int]:
    found = [kb.instances_of(name) for name in names]
    return frozenset(np.concatenate([EMPTY, *found]).tolist())


# --- what nodes have -------------------------------------------------------------------------


class Capability(IntFlag):
    """Something that a node has or has not."""

    UNIQUE = auto()  # a name that no other node has
    NAMESAKES = auto()
    NOUN = auto()  # a concept that it may be called by
    NO_NOUN = auto()
    HEAD = auto()  # of relational facts
    TAIL = auto()
    STRING = auto()  # literal facts with such values
    QUANTITY = auto()
    TIME = auto()
    DATE = auto()
    QUALIFIED_STRING = auto()  # facts with such qualifiers
    QUALIFIED_QUANTITY = auto()
    QUALIFIED_TIME = auto()
    QUALIFIED_DATE = auto()


# What a node has by the values of its facts, and by those of the facts' qualifiers.
OF_VALUES: dict[Form, Capability] = {
    "string": Capability.STRING,
    "quantity": Capability.QUANTITY,
    "time": Capability.TIME,
    "date": Capability.DATE,
}
OF_QUALIFIERS: dict[Form, Capability] = {
    form: Capability[f"QUALIFIED_{has.name}"] for form, has in OF_VALUES.items()
}


def capabilities(pools: Pools) -> npt.NDArray[np.int32]:
    """For each node what it has, as a `Capability`."""
    kb = pools.kb
    found = np.zeros(kb.node_count, np.int32)
    of_concepts = np.zeros(kb.node_count, bool)
    of_concepts[: kb.entity_count] = np.diff(kb.arrays["instance_starts"])[: kb.entity_count] > 0
    found |= np.where(of_concepts, Capability.NOUN, Capability.NO_NOUN).astype(np.int32)
    names = np.asarray(kb.arrays["node_name"])[: kb.node_count]
    _, at, counts = np.unique(names, return_inverse=True, return_counts=True)
    found |= np.where(counts[at] == 1, Capability.UNIQUE, Capability.NAMESAKES).astype(np.int32)
    found[kb.named("")] &= ~int(Capability.UNIQUE | Capability.NAMESAKES)
    heads, tails = kb.relational.subject, kb.relational.object
    found[heads] |= int(Capability.HEAD)
    found[tails] |= int(Capability.TAIL)
    for form, has in OF_VALUES.items():
        found[kb.literals.subject[pools.of_form[form][kb.literals.object]]] |= int(has)
        sets = pools.sets_with((None, form)) | pools.sets_with((POINT_IN_TIME, form))
        found[kb.literals.subject[sets[kb.literals.qualifiers]]] |= int(OF_QUALIFIERS[form])
        of_fact = sets[kb.relational.qualifiers]
        found[heads[of_fact]] |= int(OF_QUALIFIERS[form])
        found[tails[of_fact]] |= int(OF_QUALIFIERS[form])
    return found
