"""Two knowledge bases of one: each has half of the schema, and all entities that it says much of.

The schema's *words* are the names of relations, attribute keys, qualifier keys and concepts. A word
that names several of these (``length`` is a key and a qualifier key, ``country`` a relation and a
concept) stays in one half, so that no half knows a word of the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from random import Random

import numpy as np

from kb import Builder, KnowledgeBase, KoplError
from kb.store import QualifierMap, normalise_name
from kb.values import Value
from kopl.example import Example
from kopl.program import post_order
from kopl.types import Kind

# Halvings that are drawn; the most even one is taken.
DRAWN = 200

_SCHEMA = (Kind.RELATION, Kind.KEY, Kind.QUALIFIER_KEY, Kind.CONCEPT)


class HalvesError(KoplError):
    """A knowledge base that cannot be halved, or questions that know the other half."""

    kind = "halves"


@dataclass(frozen=True)
class Half:
    """The words of one half: sorted names of each kind of the schema."""

    relations: tuple[str, ...]
    keys: tuple[str, ...]
    qualifier_keys: tuple[str, ...]
    concepts: tuple[str, ...]

    @property
    def words(self) -> frozenset[str]:
        """All names, with single blanks."""
        names = (*self.relations, *self.keys, *self.qualifier_keys, *self.concepts)
        return frozenset(map(normalise_name, names))


def halves(kb: KnowledgeBase, seed: int) -> tuple[Half, Half]:
    """The two halves of a knowledge base's schema, the same for the same seed everywhere.

    Of the words that are of the same kinds each half gets half, at random. Of `DRAWN` such halvings
    that one is taken whose poorer sides have most: the greatest product of the lesser numbers of
    relational facts, attributes, qualifiers that stay (of a fact of their own half) and instances
    of concepts. Raises HalvesError when a half would be without one of these.
    """
    kinds = _kinds(kb)
    groups: dict[tuple[int, ...], list[str]] = {}
    for word in sorted(kinds):
        groups.setdefault(kinds[word], []).append(word)
    measure = _Measure(kb, sorted(kinds))
    random = Random(seed)
    best: tuple[int, frozenset[str]] = (0, frozenset())
    for _ in range(DRAWN):
        first = frozenset(_dealt(groups, random))
        evenness = prod(map(min, measure.of(first)))
        if evenness > best[0]:
            best = evenness, first
    if not best[0]:
        raise HalvesError(
            "no half of the schema has relational facts, attributes, qualifiers and instances;"
            " the knowledge base is too small"
        )
    chosen = best[1]
    return _half(kb, chosen), _half(kb, frozenset(kinds) - chosen)


def restricted(kb: KnowledgeBase, half: Half) -> KnowledgeBase:
    """The knowledge base with the words of one half only; equal input gives equal columns.

    Facts of the other half are dropped, and its qualifiers from those that stay. A concept lies
    below its nearest ancestors of the half, and an entity is an instance of the nearest ones.
    Entities of which nothing is left are dropped. Attributes that become equal are one.
    """
    relations, keys, qualifier_keys = map(
        frozenset, (half.relations, half.keys, half.qualifier_keys)
    )
    concepts = {
        node for node in range(kb.entity_count, kb.node_count)
        if kb.name_of(node) in half.concepts
    }  # fmt: skip
    facts = [
        (kb.node(fact.head), fact.relation, kb.node(fact.tail), _kept(fact.qualifiers,
                                                                       qualifier_keys))
        for fact in kb.facts() if fact.relation in relations
    ]  # fmt: skip
    facts = [
        fact for fact in facts
        if all(kb.is_entity(end) or end in concepts for end in (fact[0], fact[2]))
    ]  # fmt: skip
    linked = {end for head, _, tail, _ in facts for end in (head, tail)}
    builder = Builder()
    for node in sorted(concepts):
        above = _nearest(kb, kb.parents(node), concepts)
        builder.add_concept(kb.id_of(node), kb.name_of(node), map(kb.id_of, above))
    for entity in range(kb.entity_count):
        of = _nearest(kb, kb.concepts_of(entity), concepts)
        attributes: dict[tuple[str, Value, frozenset[object]], QualifierMap] = {}
        for fact in kb.attributes(entity):
            if fact.key in keys:
                own = _kept(fact.qualifiers, qualifier_keys)
                same = frozenset((key, *values) for key, values in own.items())
                attributes.setdefault((fact.key, fact.value, same), own)  # the order stays
        if not (of or attributes or entity in linked):
            continue
        id = kb.id_of(entity)
        builder.add_entity(id, kb.name_of(entity), map(kb.id_of, of))
        for (key, value, _), qualifiers in attributes.items():
            builder.add_attribute(id, key, value, qualifiers)
    for head, relation, tail, qualifiers in facts:
        builder.add_fact(kb.id_of(head), relation, kb.id_of(tail), qualifiers)
    return builder.build()


def check_apart(examples: Iterable[Example], other: Half, kb: KnowledgeBase) -> int:
    """How many examples there are, none of which names anything of the other half's schema.

    ``kb`` is what they were made over: a name of one of its entities may also be that of a concept
    of the other half. Raises HalvesError with the question and the word.
    """
    words = other.words
    count = 0
    for example in examples:
        count += 1
        for kind, text in _texts(example):
            if text not in words or (kind is Kind.NAME and _is_entity(kb, text)):
                continue
            raise HalvesError(
                f"question {example.id or count} names {text!r}, {kind.value}, which belongs to"
                f" the other half of the schema: {example.question}"
            )
    return count


def _texts(example: Example) -> Iterator[tuple[Kind, str]]:
    """The arguments of a program that may name a part of the schema, with single blanks."""
    for call in post_order(example.program):
        for (_, kind), text in zip(call.function.arguments, call.arguments, strict=True):
            if kind in _SCHEMA or kind is Kind.NAME:
                yield kind, normalise_name(text)


def _is_entity(kb: KnowledgeBase, name: str) -> bool:
    return any(kb.is_entity(node) for node in kb.named(name).tolist())


def _names(kb: KnowledgeBase) -> tuple[list[str], ...]:
    """The names of each kind, in the order of the fields of `Half`."""
    return kb.relations, kb.attribute_keys, kb.qualifier_keys, kb.names_of_kind("concept")


def _kinds(kb: KnowledgeBase) -> dict[str, tuple[int, ...]]:
    """The words of the schema with the kinds that each is a name of."""
    found: dict[str, tuple[int, ...]] = {}
    for kind, names in enumerate(_names(kb)):
        for word in sorted(set(map(normalise_name, names))):
            found[word] = (*found.get(word, ()), kind)
    return found


def _half(kb: KnowledgeBase, words: frozenset[str]) -> Half:
    chosen = ([n for n in names if normalise_name(n) in words] for names in _names(kb))
    return Half(*(tuple(sorted(names)) for names in chosen))


def _dealt(groups: dict[tuple[int, ...], list[str]], random: Random) -> Iterator[str]:
    """The words of a first half; what is left over of odd groups goes to the halves in turn."""
    extra = random.random() < 0.5
    for group in sorted(groups):
        words = [word for _, word in sorted((random.random(), word) for word in groups[group])]
        size = len(words) // 2
        if len(words) % 2:
            size += extra
            extra = not extra
        yield from words[:size]


class _Measure:
    """Counts what the halves of a halving have."""

    def __init__(self, kb: KnowledgeBase, words: list[str]) -> None:
        self._words = words
        number = {word: at for at, word in enumerate(words)}
        facts, attributes, instances = (np.zeros(len(words), np.int64) for _ in range(3))
        self._qualifiers = np.zeros((len(words), len(words)), np.int64)
        pairs: Counter[tuple[str, str]] = Counter()
        for fact in kb.facts():
            facts[number[normalise_name(fact.relation)]] += 1
            pairs.update(_pairs(fact.relation, fact.qualifiers))
        for entity in range(kb.entity_count):
            for attribute in kb.attributes(entity):
                attributes[number[normalise_name(attribute.key)]] += 1
                pairs.update(_pairs(attribute.key, attribute.qualifiers))
        for (predicate, key), count in pairs.items():
            self._qualifiers[number[predicate], number[key]] += count
        for concept in kb.names_of_kind("concept"):
            instances[number[normalise_name(concept)]] = len(kb.instances_of(concept))
        self._counts = (facts, attributes, instances)

    def of(self, first: frozenset[str]) -> list[tuple[int, int]]:
        """For each thing counted the numbers of both halves."""
        one = np.array([word in first for word in self._words])
        found = [(int(count[one].sum()), int(count[~one].sum())) for count in self._counts]
        left, right = (int(self._qualifiers[np.ix_(side, side)].sum()) for side in (one, ~one))
        return [*found, (left, right)]


def _pairs(predicate: str, qualifiers: QualifierMap) -> Iterator[tuple[str, str]]:
    for key, values in qualifiers.items():
        for _ in values:
            yield normalise_name(predicate), normalise_name(key)


def _kept(qualifiers: QualifierMap, keys: frozenset[str]) -> QualifierMap:
    return {key: values for key, values in qualifiers.items() if key in keys}


def _nearest(kb: KnowledgeBase, concepts: Iterable[int], chosen: set[int]) -> list[int]:
    """The chosen concepts that are met first on the ways up, in the order in which they are met."""
    found: dict[int, None] = {}
    seen: set[int] = set()
    waiting = list(concepts)
    while waiting:
        concept = waiting.pop(0)
        if concept in seen:
            continue
        seen.add(concept)
        if concept in chosen:
            found[concept] = None
        else:
            waiting += kb.parents(concept)
    return list(found)
