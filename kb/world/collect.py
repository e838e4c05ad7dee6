"""What the sources say, gathered, checked against the tables, pruned and put in order."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kb import Builder, Date, KnowledgeBase, Quantity, Value, Year
from kb.world.vocabulary import CONCEPTS, STRING, TIME, TYPES, UNITS, concept_id

Qualifiers = Mapping[str, Value]
Time = Year | Date
Pairs = tuple[tuple[str, Value], ...]

# Entities of these kinds stay although little is known of them: they bring the namesakes.
KEPT = ("person-", "party-", "division-")
# A qualifier key, too, has one type and unit.
QUALIFIER_TYPES: dict[str, str] = {
    "point in time": TIME,
    "start time": TIME,
    "end time": TIME,
    "length": "kilometre",
    "proportion": "percent",
    "position held": STRING,
    "role": STRING,
    "decay mode": STRING,
    "number of seats": "1",
    "together with": STRING,
    "separated from": STRING,
    "stated as": STRING,
    "status": STRING,
    "source": STRING,
    "allotrope": STRING,
    "rank": "1",
}


def slug(name: str) -> str:
    """A part of an id: ASCII letters, digits and hyphens."""
    plain = unicodedata.normalize("NFKD", name.replace("ø", "o").replace("ł", "l"))
    ascii_text = plain.encode("ascii", "ignore").decode().replace("'", "")
    return re.sub(r"[^A-Za-z0-9]+", "-", ascii_text).strip("-").lower()


def type_of(value: Value) -> str:
    """The value's type, or for a quantity its unit."""
    if isinstance(value, str):
        return STRING
    return value.unit if isinstance(value, Quantity) else TIME


def quantity(number: float, unit: str = "1") -> Quantity:
    """A quantity without the noise of binary fractions: ten significant digits."""
    return Quantity(float(f"{number:.10g}") if not float(number).is_integer() else number, unit)


@dataclass
class Entity:
    """An entity with its facts; a dict keeps the order and each fact once."""

    name: str
    concepts: set[str] = field(default_factory=set)
    attributes: dict[tuple[str, Value, Pairs], None] = field(default_factory=dict)
    relations: dict[tuple[str, str, Pairs], None] = field(default_factory=dict)
    aliases: dict[str, None] = field(default_factory=dict)


class World:
    """Collects entities and facts from the sources; `build` gives the knowledge base."""

    def __init__(self) -> None:
        self.entities: dict[str, Entity] = {}
        self.families: dict[str, str] = {}  # the family names that a source tells, "" for none
        self.dropped: Counter[str] = Counter()

    def entity(self, id: str, name: str, *concepts: str) -> str:
        """The id, of an entity that has this name and at least these concepts."""
        if not re.fullmatch(r"[A-Za-z0-9-]+", id):
            raise ValueError(f"the id {id!r} has other characters than letters, digits and hyphens")
        found = self.entities.setdefault(id, Entity(name))
        for concept in concepts:
            if concept not in CONCEPTS:
                raise ValueError(f"there is no concept {concept!r} (entity {id})")
            found.concepts.add(concept)
        return id

    def has(self, id: str) -> bool:
        """Whether the entity was added."""
        return id in self.entities

    def number(
        self, id: str, key: str, number: float, qualifiers: Qualifiers | None = None
    ) -> None:
        """Add a quantity in the key's unit."""
        self._attribute(id, key, quantity(number, UNITS[key]), qualifiers)

    def text(self, id: str, key: str, text: str, qualifiers: Qualifiers | None = None) -> None:
        """Add a text."""
        if text:
            self._attribute(id, key, text, qualifiers)

    def time(self, id: str, key: str, time: Time, qualifiers: Qualifiers | None = None) -> None:
        """Add a year or day."""
        self._attribute(id, key, time, qualifiers)

    def _attribute(self, id: str, key: str, value: Value, qualifiers: Qualifiers | None) -> None:
        if TYPES.get(key) not in (
            {"quantity"} if isinstance(value, Quantity) else {type_of(value)}
        ):
            raise ValueError(f"{value!r} is no value for the key {key!r} (entity {id})")
        self.entities[id].attributes[key, value, _pairs(qualifiers)] = None

    def fact(
        self, head: str, relation: str, tail: str, qualifiers: Qualifiers | None = None
    ) -> None:
        """Add a relational fact between two entities that were added."""
        if tail not in self.entities:
            raise ValueError(f"{head} {relation} {tail}: there is no such entity")
        self.entities[head].relations[relation, tail, _pairs(qualifiers)] = None

    def prune(self) -> None:
        """Drop entities with fewer than two facts at either end, again until none is left."""
        while True:
            facts: Counter[str] = Counter()
            for id, entity in self.entities.items():
                facts[id] += len(entity.attributes) + len(entity.relations)
                facts.update(tail for _, tail, _ in entity.relations)
            gone = {id for id in self.entities if facts[id] < 2 and not id.startswith(KEPT)}
            if not gone:
                return
            for id in gone:
                del self.entities[id]
                self.dropped[id.split("-")[0]] += 1
            for entity in self.entities.values():
                entity.relations = {k: None for k in entity.relations if k[1] not in gone}

    def build(self) -> KnowledgeBase:
        """The knowledge base, in an order that depends on the facts alone."""
        for id, entity in self.entities.items():
            if not entity.concepts:
                raise ValueError(f"{id} has no concept")
        builder = Builder()
        for name in sorted(CONCEPTS):
            parents = sorted(map(concept_id, CONCEPTS[name]))
            builder.add_concept(concept_id(name), name, parents)
        for id, entity in sorted(self.entities.items()):
            concepts = _most_special(entity.concepts)
            above = sorted(map(concept_id, concepts))
            builder.add_entity(id, entity.name, above, entity.aliases)
            for key, value, pairs in sorted(entity.attributes, key=repr):
                builder.add_attribute(id, key, value, dict(pairs))
            for relation, tail, pairs in sorted(entity.relations, key=repr):
                builder.add_fact(id, relation, tail, dict(pairs))
        return builder.build()

    def unused_concepts(self) -> list[str]:
        """The concepts that have no entity, neither directly nor below them."""
        used: set[str] = set()
        for entity in self.entities.values():
            for concept in entity.concepts:
                used |= ancestors(concept)
        return sorted(set(CONCEPTS) - used)

    def namesakes(self) -> int:
        """The number of entities that share their name with another one."""
        ids: defaultdict[str, list[str]] = defaultdict(list)
        for id, entity in self.entities.items():
            ids[entity.name].append(id)
        return sum(len(group) for group in ids.values() if len(group) > 1)


def ancestors(concept: str) -> set[str]:
    """The concept and all concepts above it."""
    found: set[str] = set()
    todo = [concept]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo.extend(CONCEPTS[name])
    return found


def _most_special(concepts: Iterable[str]) -> set[str]:
    """The concepts without those that lie above another of them."""
    chosen = set(concepts)
    above = set().union(*(ancestors(concept) - {concept} for concept in chosen))
    return chosen - above


def _pairs(qualifiers: Qualifiers | None) -> Pairs:
    pairs = tuple(sorted((qualifiers or {}).items(), key=lambda pair: pair[0]))
    for key, value in pairs:
        if QUALIFIER_TYPES.get(key) != type_of(value):
            raise ValueError(f"{value!r} is no value for the qualifier {key!r}")
    return pairs
