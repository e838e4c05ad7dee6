"""How names, keys, relations, values and comparisons are said, in the forms that rules ask for.

`Lexicon` makes the words of one knowledge base: guessed from its names, with annotations from a
YAML file in their place (docs/lexicon.md). `WORDS` has the class, and so the forms, of each kind of
textual argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
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
    everyday_for,
    names_of,
    parse_annotations,
    read_annotations,
)
from generation.lexicon.constant_words import ComparisonWords, OperatorWords, ValueWords
from generation.lexicon.entries import (
    KeyEntry,
    QualifierEntry,
    RelationEntry,
    UnitEntry,
)
from generation.lexicon.guesses import (
    END_TIME,
    POINT_IN_TIME,
    START_TIME,
    DateGuesser,
    Entry,
    guess_concept,
    guess_key,
    guess_qualifier,
    guess_relation,
    guess_unit,
    variant,
)
from generation.lexicon.relation_words import Direction, RelationWords
from generation.lexicon.variants import WORDS, Variants, forms_of, say
from generation.lexicon.words import (
    ConceptWords,
    KeyWords,
    NameWords,
    NoWords,
    QualifierWords,
    Words,
)
from kb import KnowledgeBase, Quantity, Value
from kopl_base.errors import ReadError

__all__ = [
    "END_TIME",
    "POINT_IN_TIME",
    "START_TIME",
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
    "Variants",
    "Words",
    "forms_of",
    "parse_annotations",
    "read_annotations",
    "say",
]

Dateable = TypeVar("Dateable", RelationEntry, KeyEntry)

# What tells whether a person is a man or a woman, as an attribute or as a relation.
_GENDER = ("sex or gender", "gender", "sex")
# What an alias ends or begins with where something was cut off: "Marcos," of "Marcos, Jr.".
_CUT = re.compile(r"^[,;:&/]|[,;:&/]$")
_THE = re.compile("^[Tt]he ")
_TWICE = re.compile(r"\b(\w+) \1\b")
_POSSESSIVE = {"male": "his", "man": "his", "female": "her", "woman": "her"}


class Lexicon:
    """The words of a knowledge base.

    ``annotations`` say what its names alone do not tell. Where they say nothing, those of the
    bundled knowledge base ``world`` count for it, for others the everyday words for names that many
    of them have (``everyday.yaml``). Raises ReadError for an annotation of a
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
        self.kb, self.annotations = kb, given.over(annotations_for(kb) or everyday_for(kb))
        self._has_units = bool(self.annotations.of(UNITS))
        self._names: dict[str, NameWords] = {}
        self._variants: dict[tuple[str, str, str], Variants] = {}
        self._called_so: dict[str, Variants] = {}  # by name

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
            adjective = given.fields.get("adjective", "") if given else ""
            found = NameWords(text, the, national=adjective)
            if len(self._names) < 100_000:
                self._names[text] = found
        return found

    def concept(self, text: str) -> ConceptWords:
        """The words of a concept."""
        return self._of(ConceptWords, text).words[0]  # type: ignore[return-value]

    def key(self, text: str) -> KeyWords:
        """The words of an attribute key."""
        return self._of(KeyWords, text).words[0]  # type: ignore[return-value]

    def qualifier(self, text: str) -> QualifierWords:
        """The words of a qualifier key."""
        return self._of(QualifierWords, text).words[0]  # type: ignore[return-value]

    def value(self, value: Value) -> ValueWords:
        """The words of a constant."""
        if isinstance(value, Quantity) and value.unit in self.annotations.of(UNITS):
            return self._quantity(value, self.unit(value.unit))
        return ValueWords(str(value), value)

    def unit(self, text: str) -> UnitEntry:
        """How a unit is said."""
        return self._entry(UNITS, text, guess_unit, "one")

    def comparison(self, text: str, key: str) -> ComparisonWords:
        """The words of greater, less, largest or smallest, for an attribute key."""
        return self._of(ComparisonWords, text, key).words[0]  # type: ignore[return-value]

    def relation(self, relation: str, direction: Direction) -> RelationWords:
        """The words of a relation that is followed in a direction."""
        return self._of(RelationWords, relation, direction).words[0]  # type: ignore[return-value]

    def variants(self, words: Words, forms: tuple[str, ...] | None = None) -> Variants | None:
        """All that may be said for a word, in these forms; None where there is one way alone."""
        if isinstance(words, NameWords):
            if forms is not None and "called" not in forms:  # no other form has several
                return None
            found = self._of_name(words.text)
        elif isinstance(words, RelationWords):
            found = self._of(RelationWords, words.text, words.direction)
        elif isinstance(words, ComparisonWords):
            found = self._of(ComparisonWords, words.text, words.key)
        elif isinstance(words, QualifierWords):
            found = self._of(QualifierWords, words.text, words.relation)
        elif isinstance(words, ConceptWords | KeyWords):
            found = self._of(type(words), words.text)
        elif self._has_units and isinstance(words, ValueWords):
            return self._quantities(words.value)
        else:
            return None
        return found if len(found.words) > 1 else None

    def wordings(self, words: Words) -> tuple[Words, ...]:
        """All that may be said for a word, the main wording first."""
        found = self.variants(words)
        return found.words if found else (self.dressed(words),)

    def _of(self, kind: type[Words], text: str, second: str = "") -> Variants:
        """The words of a class for a text, and the direction or key that belongs to it."""
        place = kind.__name__, text, second
        found = self._variants.get(place)
        if found is None:
            found = self._variants[place] = self._made(kind, text, second)
        return found

    def _made(self, kind: type[Words], text: str, second: str) -> Variants:
        if kind is RelationWords:
            relation = self._dated(RELATIONS, self._entry(RELATIONS, text, guess_relation), text)
            several = relation.several
            if several is None:
                several = self._has_several(text)
            direction: Direction = "forward" if second == "forward" else "backward"
            all_of_it = (relation, *self._further(RELATIONS, text, relation))
            asked = any(entry.tail_question for entry in all_of_it)
            words: list[Words] = [
                RelationWords(text, direction, several, entry, asked) for entry in all_of_it
            ]
            return Variants((RELATIONS, text), tuple(words))
        if kind is ComparisonWords:
            keys = self._of(KeyWords, second).words
            entries = [words.entry for words in keys if isinstance(words, KeyWords)]
            words = [ComparisonWords(text, second, entry) for entry in entries]
            return Variants((KEYS, second), tuple(words))
        if kind is KeyWords:
            key = self._dated(KEYS, self._entry(KEYS, text, guess_key), text)
            own = (key, *self._further(KEYS, text, key))
            if any(entry.counted or english.ends_in_head(entry.noun) for entry in own):
                own = tuple(replace(entry, counting=True) for entry in own)
            beside = None
            if any(entry.beside is not entry for entry in own):
                beside = Variants((KEYS, text), tuple(KeyWords(text, e.beside) for e in own))
            return Variants((KEYS, text), tuple(KeyWords(text, e) for e in own), beside)
        if kind is QualifierWords:
            qualifier = self._entry(QUALIFIERS, text, guess_qualifier)
            further = self._further(QUALIFIERS, text, qualifier)
            given = self.annotations.of(RELATIONS).get(second) if second else None
            details = dict(given.fields.get("details", ())) if given else {}
            nothing = QualifierEntry("", "", "")
            words = [QualifierWords(text, nothing, second, one) for one in details.get(text, ())]
            if not words:  # a relation's own questions are better than any others
                words = [QualifierWords(text, entry, second) for entry in (qualifier, *further)]
            return Variants((QUALIFIERS, text), tuple(words))
        concept = self._entry(CONCEPTS, text, guess_concept)
        entries_of = (concept, *self._further(CONCEPTS, text, concept))
        return Variants(
            (CONCEPTS, text),
            tuple(ConceptWords(text, e, main=e is concept) for e in entries_of),
        )

    def _of_name(self, text: str) -> Variants:
        """The words of a name and of the aliases of what it names."""
        found = self._called_so.get(text)
        if found is None:
            found = Variants((NAMES, text), (self.name(text), *self._called(text)))
            if len(self._called_so) < 100_000:
                self._called_so[text] = found
        return found

    def _called(self, name: str) -> Iterator[NameWords]:
        """The aliases that mean nothing but the one thing that has a name, and may be said."""
        kb = self.kb
        nodes = kb.named(name).tolist()
        aliases = kb.aliases_of(nodes[0]) if len(nodes) == 1 else ()
        if not aliases or nodes[0] in self._not_called:
            return
        for alias in aliases:
            is_only = len(kb.known_as(alias)) == 1 and not len(kb.named(alias))
            if is_only and self._may_be_said(alias, name):
                given = self.annotations.of(NAMES).get(alias)
                the = given.fields.get("the") if given else None
                the = self.name(name).the if the is None else the
                yield NameWords(alias, the, alias=True)

    def _may_be_said(self, alias: str, name: str) -> bool:
        """Whether an alias can be read, is not kept silent, no adjective, not the name again."""
        given = self.annotations.of(NAMES).get(alias)
        if given and given.fields.get("called") is False:
            return False
        bare = _THE.sub("", alias)
        again = alias.startswith("the ") or bare == _THE.sub("", name)
        silent = alias in self._silent or bare in self._silent
        return english.can_be_read(alias) and not (again or silent or _is_broken(alias, name))

    @cached_property
    def _silent(self) -> frozenset[str]:
        """The values of the keys that give no aliases to be said."""
        given = self.annotations.of(KEYS)
        keys = [key for key in given if given[key].fields.get("called") is False]
        values = self.kb.values_of_keys() if keys else {}
        numbers = {number for key in keys for number in values[key].tolist()}
        return frozenset(self.kb.value_texts(sorted(numbers)))

    @cached_property
    def _not_called(self) -> frozenset[int]:
        """The entities of the concepts that are not called by aliases."""
        return frozenset(
            node
            for concept, given in self.annotations.of(CONCEPTS).items()
            if given.fields.get("called") is False
            for node in self.kb.instances_of(concept).tolist()
        )

    def _further(self, section: str, name: str, main: Entry) -> Iterator[Entry]:
        """The entries of the further wordings of a name, whose main one is given."""
        given = self.annotations.of(section).get(name)
        for fields in given.also if given else ():
            found = replace(variant(main, fields), **fields)
            if isinstance(main, RelationEntry | KeyEntry):
                found = replace(found, dates=main.dates)
            if isinstance(main, KeyEntry):
                found = replace(found, happening=main.event is not None)
            yield found

    def _dated(self, section: str, entry: Dateable, name: str) -> Dateable:
        """The entry of a relation or key with what the dates of its facts mean."""
        if entry.dates:
            return entry
        found = self._dates.guess(name, relational=section == RELATIONS)
        return replace(entry, dates=found) if found else entry

    @cached_property
    def _dates(self) -> DateGuesser:
        return DateGuesser(self.kb)

    def _quantities(self, value: Value) -> Variants | None:
        """The wordings of a quantity with a unit that has several."""
        if not isinstance(value, Quantity):
            return None
        given = self.annotations.of(UNITS).get(value.unit)
        if given is None or not given.also:
            return None
        main = self.unit(value.unit)
        units = (main, *self._further(UNITS, value.unit, main))
        return Variants((UNITS, value.unit), tuple(self._quantity(value, unit) for unit in units))

    @staticmethod
    def _quantity(value: Quantity, unit: UnitEntry) -> ValueWords:
        return ValueWords(str(value), value, english.say_quantity(value, unit.one, unit.many))

    def says_twice(self, question: str) -> bool:
        """Whether a question calls something by a concept and by a relation that say the same.

        "The parliament that is the legislature of Norway" is no more than its legislature.
        """
        return self._twins is not None and bool(self._twins.search(question))

    @cached_property
    def _twins(self) -> re.Pattern[str] | None:
        """A concept, "that is", and a relation's noun, for those that share a noun."""
        nouns: dict[str, set[str]] = {}  # those of relations, by each of them
        for relation in self.kb.relations:
            words = self.wordings(self.relation(relation, "forward"))
            entries = (one.entry for one in words if isinstance(one, RelationWords))
            own = {text for entry in entries for text in (entry.noun, entry.nouns) if text}
            for text in own:
                nouns.setdefault(text, set()).update(own)
        found = []
        for concept in names_of(self.kb, CONCEPTS):
            words = self.wordings(self.concept(concept))
            entries_of = (one.entry for one in words if isinstance(one, ConceptWords))
            called = {text for entry in entries_of for text in (entry.noun, entry.nouns)}
            shared = set[str]().union(*(nouns.get(text, ()) for text in called))
            if shared:
                one, other = ("|".join(map(re.escape, sorted(texts))) for texts in (called, shared))
                found.append(
                    rf"(?:{one}) (?:that|who) (?:is|are|was|were) (?:the |an? )?(?:{other})"
                )
        return re.compile(rf"\b(?:{'|'.join(found)})\b") if found else None

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


def _is_broken(alias: str, name: str) -> bool:
    """Whether an alias seems to be what was left when something was cut out of a name."""
    twice = _TWICE.search(alias)
    return bool(_CUT.search(alias)) or bool(twice and twice[1] in name and twice[0] not in name)
