"""How names, keys, relations, values and comparisons are said, in the forms that rules ask for.

`Lexicon` makes the words of one knowledge base: guessed from its names, with annotations from a
YAML file in their place (docs/lexicon.md). `WORDS` has the class, and so the forms, of each kind of
textual argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from generation import english
from generation.lexicon.annotations import (
    CONCEPTS,
    KEYS,
    NAMES,
    QUALIFIERS,
    RELATIONS,
    UNITS,
    Annotations,
    annotations_for,
    parse_annotations,
    read_annotations,
)
from generation.lexicon.entries import (
    ConceptEntry,
    KeyEntry,
    QualifierEntry,
    RelationEntry,
    UnitEntry,
    guess_concept,
    guess_key,
    guess_qualifier,
    guess_relation,
    guess_unit,
)
from generation.lexicon.words import (
    WORDS,
    ComparisonWords,
    ConceptWords,
    Direction,
    KeyWords,
    NameWords,
    NoWords,
    OperatorWords,
    QualifierWords,
    RelationWords,
    ValueWords,
    Words,
)
from kb import KnowledgeBase, Quantity, Value
from kopl_base.errors import ReadError

__all__ = [
    "WORDS",
    "Annotations",
    "ComparisonWords",
    "ConceptWords",
    "Direction",
    "KeyWords",
    "Lexicon",
    "NameWords",
    "NoWords",
    "OperatorWords",
    "QualifierWords",
    "RelationWords",
    "ValueWords",
    "Words",
    "parse_annotations",
    "read_annotations",
]

Entry = TypeVar("Entry", RelationEntry, ConceptEntry, KeyEntry, QualifierEntry, UnitEntry)

# What tells whether a person is a man or a woman, as an attribute or as a relation.
_GENDER = ("sex or gender", "gender", "sex")
_POSSESSIVE = {"male": "his", "man": "his", "female": "her", "woman": "her"}


class Lexicon:
    """The words of a knowledge base.

    ``annotations`` say what its names alone do not tell; for the bundled knowledge base ``world``
    those that come with it count where they say nothing. Raises ReadError for an annotation of a
    name that the knowledge base does not have.
    """

    # A relation is "several" when its heads have on average more tails than this.
    SEVERAL = 1.2

    def __init__(self, kb: KnowledgeBase, annotations: Annotations | None = None) -> None:
        given = annotations or Annotations({})
        for section, _, entry, message in given.strangers(kb):
            raise ReadError(
                f"{section}: {message}", place=f"line {entry.line}", source=entry.source
            )
        self.kb, self.annotations = kb, given.over(annotations_for(kb))
        self._has_units = bool(self.annotations.of(UNITS))
        self._names: dict[str, NameWords] = {}
        self._concepts: dict[str, ConceptWords] = {}
        self._keys: dict[str, KeyWords] = {}
        self._qualifiers: dict[str, QualifierWords] = {}
        self._comparisons: dict[tuple[str, str], ComparisonWords] = {}
        self._relations: dict[tuple[str, Direction], RelationWords] = {}

    def dressed(self, words: Words) -> Words:
        """Words as this lexicon has them."""
        if isinstance(words, NameWords):
            return self.name(words.text)
        if isinstance(words, KeyWords):
            return self.key(words.text)
        if isinstance(words, ConceptWords):
            return self.concept(words.text)
        if isinstance(words, QualifierWords):
            return self.qualifier(words.text)
        if isinstance(words, ComparisonWords):
            return self.comparison(words.text, words.key)
        if isinstance(words, ValueWords):
            return self.value(words.value) if self._has_units else words
        if isinstance(words, RelationWords):
            return self.relation(words.text, words.direction)
        return words

    def name(self, text: str) -> NameWords:
        """The words of an entity's name."""
        found = self._names.get(text)
        if found is None:
            given = self.annotations.of(NAMES).get(text)
            the = given.fields.get("the") if given else None
            if the is None and self._all_behind_the(text):
                the = True
            found = NameWords(text, the)
            if len(self._names) < 100_000:
                self._names[text] = found
        return found

    def concept(self, text: str) -> ConceptWords:
        """The words of a concept."""
        found = self._concepts.get(text)
        if found is None:
            found = ConceptWords(text, self._entry(CONCEPTS, text, guess_concept))
            self._concepts[text] = found
        return found

    def key(self, text: str) -> KeyWords:
        """The words of an attribute key."""
        found = self._keys.get(text)
        if found is None:
            found = self._keys[text] = KeyWords(text, self._entry(KEYS, text, guess_key))
        return found

    def qualifier(self, text: str) -> QualifierWords:
        """The words of a qualifier key."""
        found = self._qualifiers.get(text)
        if found is None:
            found = QualifierWords(text, self._entry(QUALIFIERS, text, guess_qualifier))
            self._qualifiers[text] = found
        return found

    def value(self, value: Value) -> ValueWords:
        """The words of a constant."""
        if isinstance(value, Quantity) and value.unit in self.annotations.of(UNITS):
            unit = self.unit(value.unit)
            return ValueWords(str(value), value, english.say_quantity(value, unit.one, unit.many))
        return ValueWords(str(value), value)

    def unit(self, text: str) -> UnitEntry:
        """How a unit is said."""
        return self._entry(UNITS, text, guess_unit, "one")

    def comparison(self, text: str, key: str) -> ComparisonWords:
        """The words of greater, less, largest or smallest, for an attribute key."""
        found = self._comparisons.get((text, key))
        if found is None:
            found = ComparisonWords(text, key, self.key(key).entry)
            self._comparisons[text, key] = found
        return found

    def relation(self, relation: str, direction: Direction) -> RelationWords:
        """The words of a relation that is followed in a direction."""
        found = self._relations.get((relation, direction))
        if found is None:
            entry = self._entry(RELATIONS, relation, guess_relation)
            several = entry.several
            if several is None:
                several = self._has_several(relation)
            found = RelationWords(relation, direction, several, entry)
            self._relations[relation, direction] = found
        return found

    def possessive(self, node: int, person: bool) -> str:
        """his, her, its; "their" for a person of whom it is not known."""
        return self._possessives.get(node, "their" if person else "its")

    def _entry(
        self, section: str, name: str, guess: Callable[[str, str], Entry], noun: str = "noun"
    ) -> Entry:
        """The entry of a name: what is given, and the rest guessed from the noun that is given."""
        given = self.annotations.of(section).get(name)
        fields: Mapping[str, Any] = given.fields if given else {}
        if section == RELATIONS and fields and not fields.keys() <= {"several"}:
            # A relation that is annotated says all it has: noun, forward, backward.
            own = fields.get("noun", "")
            return replace(guess(name, own) if own else RelationEntry(), **fields)  # type: ignore[return-value]
        found = guess(name, fields.get(noun, ""))
        return replace(found, **fields) if fields else found

    def _has_several(self, relation: str) -> bool:
        """Whether heads have more tails than one by a relation."""
        number, table = self.kb.relation_number(relation), self.kb.relational
        if number < 0:
            return False
        heads = table.subject[table.of_predicate(number)]
        return len(heads) > self.SEVERAL * max(1, len(np.unique(heads)))

    def _all_behind_the(self, name: str) -> bool:
        """Whether all that has a name is of concepts that put "the" before it."""
        nodes = self.kb.named(name).tolist() if self._behind_the else ()
        return bool(nodes) and self._behind_the.issuperset(nodes)

    @cached_property
    def _behind_the(self) -> frozenset[int]:
        """The entities of the concepts that put "the" before their names."""
        return frozenset(
            node
            for concept, given in self.annotations.of(CONCEPTS).items()
            if given.fields.get("the")
            for node in self.kb.instances_of(concept).tolist()
        )

    @cached_property
    def _possessives(self) -> dict[int, str]:
        """his and her by node, where the knowledge base tells."""
        kb = self.kb
        found: dict[int, str] = {}
        for name in _GENDER:
            if (number := kb.relation_number(name)) >= 0:
                facts = kb.relational.of_predicate(number)
                ends = zip(
                    kb.relational.subject[facts].tolist(),
                    kb.relational.object[facts].tolist(),
                    strict=True,
                )
                said = ((node, kb.name_of(end)) for node, end in ends)
                found |= {n: _POSSESSIVE[text] for n, text in said if text in _POSSESSIVE}
            if (number := kb.key_number(name)) >= 0:
                facts = kb.literals.of_predicate(number)
                values = zip(
                    kb.literals.subject[facts].tolist(),
                    kb.literals.object[facts].tolist(),
                    strict=True,
                )
                told = ((node, str(kb.values[value])) for node, value in values)
                found |= {n: _POSSESSIVE[text] for n, text in told if text in _POSSESSIVE}
        return found
