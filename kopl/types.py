"""The types of KoPL: what functions take and give, and the kinds of textual arguments."""

from __future__ import annotations

from enum import Enum


class Type(Enum):
    """What a function gives or takes; the value is how messages name it."""

    ENTITIES = "a set of entities"
    FACTS = "a set of entities with the facts that put them there"
    VALUES = "attribute values"
    QUALIFIER_VALUES = "qualifier values"
    NAMES = "names"
    NUMBER = "a number"
    RELATIONS = "relations"
    TRUTH = "yes or no"

    # Each is there once; the hash of an Enum is one of its name, computed in Python.
    __hash__ = object.__hash__

    def accepts(self, other: Type) -> bool:
        """Whether an input of this type may be given the other: facts count as entities too."""
        return self is other or (self is Type.ENTITIES and other is Type.FACTS)


class Kind(Enum):
    """What a textual argument is; the value is how messages name it."""

    NAME = "the name of an entity or concept"
    CONCEPT = "the name of a concept"
    KEY = "an attribute key"
    QUALIFIER_KEY = "a qualifier key"
    RELATION = "a relation"
    STRING = "a string"
    QUANTITY = "a number, then a blank and the unit if there is one"
    TIME = "a year or a day"
    ANY_VALUE = "a value of any type"
    OPERATOR = "one of = != < >"
    DIRECTION = "forward or backward"
    EXTREME = "largest or smallest"
    COMPARATIVE = "greater or less"

    __hash__ = object.__hash__

    @property
    def choices(self) -> tuple[str, ...]:
        """The words allowed, for kinds that have only a few."""
        return CHOICES.get(self, ())


CHOICES: dict[Kind, tuple[str, ...]] = {
    Kind.OPERATOR: ("=", "!=", "<", ">"),
    Kind.DIRECTION: ("forward", "backward"),
    Kind.EXTREME: ("largest", "smallest"),
    Kind.COMPARATIVE: ("greater", "less"),
}
