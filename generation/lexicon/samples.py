"""Facts of a knowledge base that show how its names are used, and the sentences made of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TypeAlias

from generation import english
from generation.lexicon import Lexicon, say
from generation.lexicon.annotations import CONCEPTS, KEYS, QUALIFIERS, RELATIONS, UNITS
from generation.lexicon.words import NoWords
from kb import Quantity
from kb.facts import FactTable

# What a sentence is made of: texts as they stand, and words with their form and what is inside.
Parts: TypeAlias = tuple["str | tuple[Any, ...]", ...]


def _worded(*sentences: Parts) -> Iterator[str]:
    """The sentences whose words have the forms that they ask for."""
    for parts in sentences:
        with suppress(NoWords):
            yield "".join(part if isinstance(part, str) else say(*part) for part in parts)


class Samples:
    """Sample facts and sentences for the names of a lexicon's knowledge base.

    The facts are those in the middle of all that have the name, so that the same knowledge base
    always shows the same ones.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon, self._kb = lexicon, lexicon.kb
        self._qualified = self._qualifier_facts()
        self._unit_values = self._values_of_units()

    def facts(self, section: str, name: str) -> list[str]:
        """Up to two facts, written shortly: "Norway – Oslo"."""
        kb = self._kb
        if section == RELATIONS:
            return [f"{head} – {tail}" for head, tail in self._pairs(name)]
        if section == KEYS:
            return [f"{owner}: {value}" for owner, value in self._literals(name)]
        if section == QUALIFIERS:
            return [f"{fact}, {name}: {value}" for fact, value in self._qualified.get(name, [])]
        if section == CONCEPTS:
            found = kb.instances_of(name)
            return [kb.name_of(int(node)) for node in found[len(found) // 2 :][:2]]
        return [value for value in (self._unit_values.get(name),) if value]

    def ends(self, section: str, name: str) -> list[tuple[str, str]]:
        """The ends of the same facts: head and tail, owner and value; else a name or value."""
        if section == RELATIONS:
            return self._pairs(name)
        if section == KEYS:
            return self._literals(name)
        if section == QUALIFIERS:
            return [(value, "") for _, value in self._qualified.get(name, [])]
        return [(fact, "") for fact in self.facts(section, name)]

    def sentences(self, section: str, name: str) -> list[str]:
        """How the name is said of its sample facts, in the main forms of all its wordings."""
        return list(dict.fromkeys(self._sentences(section, name)))

    def _sentences(self, section: str, name: str) -> Iterator[str]:
        lexicon = self._lexicon
        if section == RELATIONS:
            for head, tail in self._pairs(name)[:1]:
                yield from self._said(name, lexicon.name(head).plain(), lexicon.name(tail).plain())
        elif section == KEYS:
            for owner, value in self._literals(name)[:1]:
                yield from self._told(name, lexicon.name(owner).plain(), value)
        elif section == QUALIFIERS:
            for fact, value in self._qualified.get(name, [])[:1]:
                for words in lexicon.wordings(lexicon.qualifier(name)):
                    yield from _worded(
                        (f"{fact} (", (words, "given"), f" {value})"),
                        (f"{fact}; ", (words, "question"), "?"),
                    )
        elif section == UNITS:
            unit = lexicon.unit(name)
            yield f"1 {unit.one}, 5 {unit.many}"
        elif section == CONCEPTS:
            for words in lexicon.wordings(lexicon.concept(name)):
                yield f"{say(words, 'a')}, how many {say(words, 'many')}"

    def _said(self, relation: str, head: str, tail: str) -> Iterator[str]:
        """A relation in both directions, by all of its wordings."""
        lexicon = self._lexicon
        forward = lexicon.wordings(lexicon.relation(relation, "forward"))
        backward = lexicon.wordings(lexicon.relation(relation, "backward"))
        for one, other in zip(forward, backward, strict=True):
            yield from _worded(
                ((one, "fact", head, tail),),
                ("the one ", (one, "that", head)),
                ("the one ", (other, "that", tail)),
                ("those ", (other, "those", tail)),
                ((one, "asked", head), "?"),
                ((other, "sought", tail), "?"),
            )

    def _told(self, key: str, owner: str, value: str) -> Iterator[str]:
        """A key of its owner, by all of its wordings."""
        lexicon = self._lexicon
        variants = lexicon.variants(lexicon.key(key))
        words = lexicon.wordings(lexicon.key(key))
        beside = variants.beside.words if variants and variants.beside else words
        comparisons = lexicon.wordings(lexicon.comparison("greater", key))
        for one, compared, larger in zip(words, beside, comparisons, strict=True):
            yield from _worded(
                ("the ", (one, ""), f" of {owner} ", (one, "verb"), f" {value}"),
                ((one, "question", owner), "?"),
                ("which has the ", (larger, ""), " ", (compared, "")),
                ("which is ", (larger, "alone")),
            )

    def _pairs(self, relation: str) -> list[tuple[str, str]]:
        table, kb = self._kb.relational, self._kb
        facts = self._middle(table, kb.relation_number(relation))
        return [
            (kb.name_of(int(table.subject[fact])), kb.name_of(int(table.object[fact])))
            for fact in facts
        ]

    def _literals(self, key: str) -> list[tuple[str, str]]:
        table, kb = self._kb.literals, self._kb
        facts = self._middle(table, kb.key_number(key))
        said = (self._lexicon.value(kb.values[int(table.object[fact])]).plain() for fact in facts)
        return [
            (kb.name_of(int(table.subject[fact])), text)
            for fact, text in zip(facts, said, strict=True)
        ]

    def _middle(self, table: FactTable, number: int) -> list[int]:
        """Two facts of a predicate: that in the middle, and one further."""
        facts = table.of_predicate(number).tolist() if number >= 0 else []
        places = dict.fromkeys((len(facts) // 2, len(facts) * 3 // 4)) if facts else ()
        return [facts[place] for place in places]

    def _qualifier_facts(self) -> dict[str, list[tuple[str, str]]]:
        """For each qualifier key up to two facts, with the value that they have for it."""
        kb = self._kb
        found: dict[str, list[tuple[str, str]]] = {}
        seen: set[tuple[int, int]] = set()
        for table, predicates in ((kb.relational, kb.relations), (kb.literals, kb.keys)):
            for fact, number in enumerate(table.qualifiers.tolist()):
                predicate = int(table.predicate[fact])
                if not number or (number, predicate) in seen:
                    continue
                seen.add((number, predicate))
                for key, value in kb.qualifier_sets.pairs(number):
                    mine = found.setdefault(kb.keys[key], [])
                    if len(mine) < 2:
                        head = kb.name_of(int(table.subject[fact]))
                        end = int(table.object[fact])
                        what = (
                            kb.name_of(end)
                            if table is kb.relational
                            else english.say(kb.values[end])
                        )
                        told = f"{head}, {predicates[predicate]}: {what}"
                        mine.append((told, english.say(kb.values[value])))
        return found

    def _values_of_units(self) -> dict[str, str]:
        found: dict[str, str] = {}
        table, kb = self._kb.literals, self._kb
        for number, key in enumerate(kb.keys):
            for fact in self._middle(table, number):
                value = kb.values[int(table.object[fact])]
                if isinstance(value, Quantity) and value.unit not in found:
                    found[value.unit] = f"{kb.name_of(int(table.subject[fact]))}, {key}: {value}"
        return found
