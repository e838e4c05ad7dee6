"""The knowledge base: read-only, in columns, with the indexes that executors need.

Made by `kb.Builder`, by the readers or from a snapshot. Nodes (entities first, then concepts) are
numbered; a *set* is a sorted ``int32`` array of node numbers. Nothing outside this package touches
the columns; executors use the methods under "sets" and people the ones under "looking things up".
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from kb.arrays import (
    EMPTY,
    Ids,
    Mask,
    as_ids,
    changes,
    contains,
    expand,
    in_intervals,
    intersect,
    mask_of,
    unique,
    unite,
    view,
)
from kb.columns import Columns, fingerprint_of
from kb.facts import FactTable, Qualifiers, RelationTable
from kb.hierarchy import Hierarchy
from kb.values import Condition, Value
from kb.valuetable import StringTable, ValueTable
from kopl_base.errors import Comparable, near_names

QualifierMap = dict[str, list[Value]]
NameKind = Literal["entity", "concept", "key", "qualifier key", "relation", "unit"]
NODES: tuple[NameKind, NameKind] = ("entity", "concept")
# Of so many names at most a list that is made ready for comparing is kept.
MOST_COMPARABLE = 250_000


# str.split also splits at these four, which do not have Unicode's property White_Space.
_SEPARATORS = frozenset("\x1c\x1d\x1e\x1f")
_WHITE_SPACE = re.compile(r"[^\S\x1c-\x1f]+")


def normalise_name(name: str) -> str:
    """The name with each run of Unicode white space made one blank and the ends trimmed."""
    if _SEPARATORS.isdisjoint(name):
        return " ".join(name.split())
    return " ".join(part for part in _WHITE_SPACE.split(name) if part)


@dataclass(frozen=True)
class LiteralFact:
    """An attribute of an entity: key, value and the fact's qualifiers."""

    entity: str
    key: str
    value: Value
    qualifiers: QualifierMap


@dataclass(frozen=True)
class RelationalFact:
    """A fact between two nodes, by id, with its qualifiers."""

    head: str
    relation: str
    tail: str
    qualifiers: QualifierMap


@dataclass(frozen=True)
class Record:
    """A relational fact as a file writes it at one of its ends."""

    relation: str
    direction: Literal["forward", "backward"]
    other: str
    qualifiers: QualifierMap


class KnowledgeBase:
    """A knowledge base with its indexes; safe to share between threads.

    Build one with `kb.Builder`, `kb.load` or `kb.read_kqapro`.
    """

    def __init__(self, arrays: Columns, entities: int, fingerprint: str = "") -> None:
        self.arrays = arrays
        self.strings = StringTable(arrays)
        self.values = ValueTable(arrays, self.strings)
        self._names: Ids = arrays["node_name"]
        self._ids = view(arrays["node_id"])
        self._by_id = view(arrays["node_by_id"])
        self._ids_sorted = view(arrays["node_ids_sorted"])
        self._by_name: Ids = arrays["node_by_name"]
        self._names_sorted = view(arrays["node_names_sorted"])
        self._keys = view(arrays["key_text"])
        self._relations = view(arrays["relation_text"])
        self._hierarchy = Hierarchy(arrays, entities)
        self.node_count = len(self._ids)
        self.entity_count = entities
        self.qualifier_sets = Qualifiers(arrays)
        self.literals = FactTable("literal", arrays, self.qualifier_sets)
        self.relational = RelationTable(arrays, self.qualifier_sets)
        self.entities: Ids = np.arange(entities, dtype=np.int32)
        self.entities.setflags(write=False)
        self._fingerprint = fingerprint
        self._comparable: dict[tuple[NameKind, ...], Comparable] = {}

    def __repr__(self) -> str:
        return (
            f"KnowledgeBase({self.entity_count} entities, {self.concept_count} concepts,"
            f" {len(self.relational)} relational and {len(self.literals)} literal facts)"
        )

    # --- sizes and names of the schema -------------------------------------------------------

    @property
    def concept_count(self) -> int:
        """How many concepts there are."""
        return self.node_count - self.entity_count

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content, equal for equal knowledge bases however they were loaded."""
        return self._fingerprint or fingerprint_of(self.arrays, self.entity_count)

    @cached_property
    def keys(self) -> list[str]:
        """All attribute and qualifier keys, by code point."""
        return self.strings.texts(self._keys)

    @cached_property
    def relations(self) -> list[str]:
        """All relations, by code point."""
        return self.strings.texts(self._relations)

    @cached_property
    def attribute_keys(self) -> list[str]:
        """The keys that literal facts have."""
        return [self.keys[number] for number in self.literals.by_predicate()]

    @cached_property
    def qualifier_keys(self) -> list[str]:
        """The keys that qualifiers have."""
        return list(self.qualifier_values_of())

    def values_of_keys(self) -> dict[str, Ids]:
        """For each attribute key the value numbers of its facts."""
        groups = self.literals.by_predicate().items()
        return {self.keys[number]: self.literals.object[facts] for number, facts in groups}

    def qualifier_values_of(self) -> dict[str, Ids]:
        """For each qualifier key the value numbers in the distinct qualifier sets."""
        keys, values = self.qualifier_sets.columns()
        order = np.argsort(keys, kind="stable")
        starts = np.searchsorted(keys[order], np.arange(len(self.keys) + 1))
        found = {
            key: values[order[starts[at] : starts[at + 1]]] for at, key in enumerate(self.keys)
        }
        return {key: numbers for key, numbers in found.items() if len(numbers)}

    @cached_property
    def units(self) -> list[str]:
        """All units of quantities, by code point; "1" stands for none."""
        return self.strings.texts(np.unique(self.arrays["value_unit"]).tolist())

    def names_of_kind(self, kind: NameKind) -> list[str]:
        """The distinct names of one kind of thing, by code point; for hints and constraints."""
        if kind in ("entity", "concept"):
            part = slice(0, self.entity_count)
            if kind == "concept":
                part = slice(self.entity_count, None)
            return self.strings.texts(np.unique(self._names[part]).tolist())
        lists = {
            "key": lambda: self.attribute_keys,
            "qualifier key": lambda: self.qualifier_keys,
            "relation": lambda: self.relations,
            "unit": lambda: self.units,
        }
        return lists[kind]()

    def comparable(self, kinds: Sequence[NameKind]) -> Comparable:
        """What things of some kinds are called, by code point, for `near_names`."""
        wanted = tuple(sorted({*kinds}))
        found = self._comparable.get(wanted)
        if found is None:
            called = {
                text
                for kind in wanted
                for text in (
                    self.called(kind)
                    if kind == "entity" or kind == "concept"
                    else self.names_of_kind(kind)
                )
            }
            found = Comparable(sorted(called))
            if len(called) <= MOST_COMPARABLE:
                self._comparable[wanted] = found
        return found

    def fact_counts(self, nodes: Ids) -> Ids:
        """For each node how many facts it has, literal and relational at either end.

        A fact from a node to itself counts twice.
        """
        columns = self.arrays
        found = np.zeros(len(nodes), np.int32)
        is_entity = nodes < self.entity_count
        for name in ("relation_starts", "relation_tail_starts", "literal_starts"):
            starts: Ids = columns[name]
            those = nodes if len(starts) > self.node_count else nodes[is_entity]
            counts = starts[those + 1] - starts[those]
            if len(those) == len(nodes):
                found += counts
            else:
                found[is_entity] += counts
        return found

    # --- looking things up -------------------------------------------------------------------

    def node(self, id: str) -> int:
        """The number of the entity or concept with that id, or -1."""
        wanted = self.strings.find(id)
        at = bisect_left(self._ids_sorted, wanted)
        if wanted < 0 or at == len(self._ids_sorted) or self._ids_sorted[at] != wanted:
            return -1
        number: int = self._by_id[at]
        return number

    def id_of(self, node: int) -> str:
        """The id of a node."""
        return self.strings[self._ids[node]]

    def name_of(self, node: int) -> str:
        """The name of a node."""
        return self.strings[int(self._names[node])]

    def name_numbers(self, nodes: Ids) -> Ids:
        """For each node the number of its name; numbers are in the order of code points."""
        return self._names[nodes]

    def aliases_of(self, node: int) -> tuple[str, ...]:
        """What a node is called besides its name, in the order of the source."""
        if "alias" not in self.arrays:
            return ()
        starts = self.arrays["alias_starts"]
        texts: list[int] = self.arrays["alias"][starts[node] : starts[node + 1]].tolist()
        return tuple(self.strings.texts(texts))

    def aliased(self) -> Iterator[tuple[str, list[int]]]:
        """Every alias, by code point, with the nodes that have it."""
        if "alias" not in self.arrays:
            return
        texts, nodes = self.arrays["node_aliases_sorted"], self.arrays["node_by_alias"].tolist()
        begins = np.flatnonzero(changes(texts)).tolist()
        for text, low, high in zip(
            self.strings.texts(texts[begins].tolist()),
            begins,
            [*begins[1:], len(nodes)],
            strict=True,
        ):
            yield text, nodes[low:high]

    @property
    def alias_count(self) -> int:
        """How many aliases nodes have; one that two nodes have counts twice."""
        return len(self.arrays["alias"]) if "alias" in self.arrays else 0

    def called(self, kind: Literal["entity", "concept"]) -> list[str]:
        """The names and aliases of the entities or of the concepts, by code point."""
        found = set(self.names_of_kind(kind))
        for text, nodes in self.aliased():
            if any(self.is_entity(node) == (kind == "entity") for node in nodes):
                found.add(text)
        return sorted(found)

    def known_as(self, text: str) -> Ids:
        """The nodes that have an alias, written as it is but for white space; not their names."""
        number = self.strings.find(normalise_name(text)) if "alias" in self.arrays else -1
        if number < 0:
            return EMPTY
        texts = self.arrays["node_aliases_sorted"]
        low, high = np.searchsorted(texts, [number, number + 1]).tolist()
        return self.arrays["node_by_alias"][low:high]

    def is_entity(self, node: int) -> bool:
        """Whether the node is an entity (and not a concept)."""
        return 0 <= node < self.entity_count

    def parents(self, concept: int) -> list[int]:
        """The direct parents of a concept."""
        return self._hierarchy.parents(concept)

    def concepts_of(self, entity: int) -> list[int]:
        """The concepts that the entity is a direct instance of."""
        starts = self.arrays["instance_starts"]
        numbers: list[int] = self.arrays["instance"][starts[entity] : starts[entity + 1]].tolist()
        return numbers

    def ancestors(self, concept: int) -> list[int]:
        """The concept itself and all concepts above it, by number."""
        return self._hierarchy.ancestors(concept)

    def all_concepts_of(self, entity: int) -> list[int]:
        """The concepts that the entity is an instance of, directly or through a hierarchy."""
        return self._hierarchy.all_above(self.concepts_of(entity))

    def concepts_with_instances(self) -> list[int]:
        """The concepts that some entity is an instance of, directly or through a hierarchy."""
        return self._hierarchy.all_above(np.unique(self.arrays["instance"]).tolist())

    def cycles(self) -> list[list[int]]:
        """The concepts that are below themselves: those of each cycle, by number."""
        return self._hierarchy.cycles()

    @property
    def memberships(self) -> int:
        """How many pairs of an entity and a concept that it is an instance of there are.

        In a deep hierarchy an entity that reaches a concept in two ways may count twice.
        """
        return self._hierarchy.memberships

    def attributes(self, entity: int) -> Iterator[LiteralFact]:
        """The literal facts of an entity, in the order of their source."""
        for fact in self.literals.of_subjects(np.array([entity], np.int32)).tolist():
            yield self.literal_fact(fact)

    def literal_fact(self, fact: int) -> LiteralFact:
        """A literal fact by its number."""
        table = self.literals
        return LiteralFact(
            self.id_of(int(table.subject[fact])),
            self.keys[int(table.predicate[fact])],
            self.values[int(table.object[fact])],
            self.qualifier_map(int(table.qualifiers[fact])),
        )

    def facts(self) -> Iterator[RelationalFact]:
        """All relational facts, by head."""
        table = self.relational
        for fact in range(len(table)):
            yield self.relational_fact(fact)

    def relational_fact(self, fact: int) -> RelationalFact:
        """A relational fact by its number."""
        table = self.relational
        return RelationalFact(
            self.id_of(int(table.subject[fact])),
            self.relations[int(table.predicate[fact])],
            self.id_of(int(table.object[fact])),
            self.qualifier_map(int(table.qualifiers[fact])),
        )

    def records(
        self, node: int, ends: Literal["recorded", "head", "both"] = "recorded"
    ) -> Iterator[Record]:
        """The relational facts at a node, in the order of the source.

        ``recorded``: at the ends where the source had them; ``head``: at their head only;
        ``both``: at both ends.
        """
        table, single = self.relational, np.array([node], np.int32)
        entries: list[tuple[int, int, int]] = []
        for fact in table.of_subjects(single).tolist():
            order = int(table.head_order[fact])
            if ends != "recorded" or order >= 0:
                entries.append((order if order >= 0 else int(table.tail_order[fact]), 0, fact))
        for fact in table.of_tails(single).tolist() if ends != "head" else ():
            order = int(table.tail_order[fact])
            if ends == "both" or order >= 0:
                entries.append((order if order >= 0 else int(table.head_order[fact]), 1, fact))
        for _, backward, fact in sorted(entries):
            other = table.subject[fact] if backward else table.object[fact]
            yield Record(
                self.relations[int(table.predicate[fact])],
                "backward" if backward else "forward",
                self.id_of(int(other)),
                self.qualifier_map(int(table.qualifiers[fact])),
            )

    def qualifier_map(self, number: int) -> QualifierMap:
        """A qualifier set as {key: [values]}, in the order in which it was written."""
        result: QualifierMap = {}
        for key, value in self.qualifier_sets.pairs(number):
            result.setdefault(self.keys[key], []).append(self.values[value])
        return result

    # --- sets, for executors -----------------------------------------------------------------

    def named(self, name: str) -> Ids:
        """The entities and concepts with that name."""
        text = self.strings.find(normalise_name(name))
        if text < 0:
            return EMPTY
        low = bisect_left(self._names_sorted, text)
        return self._by_name[low : bisect_right(self._names_sorted, text, low)]

    def instances_of(self, concept: str) -> Ids:
        """The entities that are instances of a concept of that name or of one below it."""
        concepts = [node for node in self.named(concept).tolist() if node >= self.entity_count]
        return unite([self._hierarchy.members(node) for node in concepts])

    def is_everything(self, nodes: Ids) -> bool:
        """Whether a set is the set of all entities."""
        return nodes is self.entities or (
            len(nodes) == self.entity_count and (len(nodes) == 0 or nodes[-1] < len(nodes))
        )

    def key_number(self, key: str) -> int:
        """The number of an attribute or qualifier key, or -1."""
        return _find(self._keys, self.strings.find(key))

    def relation_number(self, relation: str) -> int:
        """The number of a relation, or -1."""
        return _find(self._relations, self.strings.find(relation))

    def literals_of(self, nodes: Ids, key: str) -> Ids:
        """The literal facts of a key that the nodes have."""
        number = self.key_number(key)
        if number < 0:
            return EMPTY
        if self.is_everything(nodes):
            return self.literals.of_predicate(number)
        return self.literals.about(nodes, number, self.node_count)

    def literals_where(self, nodes: Ids, key: str, condition: Condition) -> Ids:
        """The literal facts of a key, of these nodes, whose value satisfies the condition."""
        number, intervals = self.key_number(key), self.values.intervals(condition)
        if number < 0 or not intervals or len(nodes) == 0:
            return EMPTY
        if self.is_everything(nodes):
            return self.literals.with_object(number, intervals)
        facts = self.literals.about(nodes, number, self.node_count)
        return facts[in_intervals(self.literals.object[facts], intervals)]

    def facts_from(self, nodes: Ids, relation: str) -> Ids:
        """The relational facts of a relation whose head is in the set."""
        number = self.relation_number(relation)
        if number < 0:
            return EMPTY
        return self.relational.about(nodes, number, self.node_count)

    def facts_into(self, nodes: Ids, relation: str) -> Ids:
        """The relational facts of a relation whose tail is in the set."""
        number = self.relation_number(relation)
        if number < 0:
            return EMPTY
        return self.relational.into(nodes, number, self.node_count)

    def qualified(self, table: FactTable, facts: Ids, key: str, condition: Condition) -> Ids:
        """Of these facts those with a value of the qualifier key that satisfies the condition."""
        number = self.key_number(key)
        if number < 0:
            return EMPTY
        return table.qualified(facts, number, self.values.intervals(condition))

    def qualifier_values(self, table: FactTable, facts: Ids, key: str) -> Ids:
        """The distinct value numbers of a qualifier key on these facts."""
        number = self.key_number(key)
        return table.qualifier_values(facts, number) if number >= 0 else EMPTY

    def satisfying(self, values: Ids, condition: Condition) -> Mask:
        """For each value number whether it satisfies the condition."""
        return in_intervals(values, self.values.intervals(condition))

    def intersect(self, left: Ids, right: Ids) -> Ids:
        """The nodes that are in both sets; marks a table when both are large."""
        if self.is_everything(right):
            left, right = right, left
        if self.is_everything(left):
            return right if self.is_everything(right) else right[: _below(right, self.entity_count)]
        if min(len(left), len(right)) * 16 > self.node_count:
            return left[mask_of(right, self.node_count)[left]]
        return intersect(left, right)

    def memberships_in(self, nodes: Ids, concept: str) -> Ids:
        """Why the nodes are instances of a concept of that name or of one below it.

        Numbers of memberships: of an entity in a concept that it is a direct instance of.
        """
        wanted = set(self.named(concept).tolist())
        entities, starts = nodes[: _below(nodes, self.entity_count)], self.arrays["instance_starts"]
        found = expand(starts[entities], starts[entities + 1])
        concepts = self.arrays["instance"][found]
        below = [
            direct
            for direct in unique(concepts).tolist()
            if not wanted.isdisjoint(self._hierarchy.ancestors(direct))
        ]
        return found[contains(as_ids(below), concepts)]

    def concept_counts(self, nodes: Ids) -> dict[int, int]:
        """The concepts that some of the nodes are instances of, directly or through a hierarchy.

        Each with the number of memberships that lead to it; an entity may have several.
        """
        entities, starts = nodes[: _below(nodes, self.entity_count)], self.arrays["instance_starts"]
        direct = self.arrays["instance"][expand(starts[entities], starts[entities + 1])]
        found: dict[int, int] = {}
        for concept, count in zip(*np.unique(direct, return_counts=True), strict=True):
            for above in self._hierarchy.ancestors(int(concept)):
                found[above] = found.get(above, 0) + int(count)
        return found

    def members(self, memberships: Ids) -> Ids:
        """The entity of each membership."""
        starts = self.arrays["instance_starts"]
        return (np.searchsorted(starts, memberships, side="right") - 1).astype(np.int32)

    def joined(self, memberships: Ids) -> Ids:
        """The concept of each membership."""
        return self.arrays["instance"][memberships]

    def names(self, nodes: Ids) -> list[str]:
        """The distinct names of the nodes, by code point."""
        return self.strings.texts(sorted(set(self._names[nodes].tolist())))

    def value_texts(self, values: Sequence[int]) -> list[str]:
        """The printed values."""
        return self.values.texts(values)

    def instance_mask(self, nodes: Ids, concept: str) -> Mask:
        """For each node whether it is an entity that is an instance of the concept."""
        return contains(self.instances_of(concept), nodes)


def _find(numbers: memoryview[int], wanted: int) -> int:
    at = bisect_left(numbers, wanted)
    return at if wanted >= 0 and at < len(numbers) and numbers[at] == wanted else -1


def _below(nodes: Ids, bound: int) -> int:
    return int(np.searchsorted(nodes, bound))


def suggest(kb: KnowledgeBase, text: str, kinds: Sequence[NameKind], limit: int = 3) -> list[str]:
    """Names of the given kinds in the knowledge base that are near a text, best first.

    Of an alias that is near, the names of what it means; of the text itself, where it is an alias,
    these only.
    """
    wanted = normalise_name(text)
    found = [] if _is_name(kb, wanted, kinds) else _meant(kb, wanted, kinds)
    if not found:
        known = kb.comparable(kinds)
        if text in known.names:
            known = Comparable(name for name in known.names if name != text)
        for hit in near_names(text, known, limit):
            found += [hit] if _is_name(kb, hit, kinds) else _meant(kb, hit, kinds)
    return list(dict.fromkeys(found))[:limit]


def _is_name(kb: KnowledgeBase, text: str, kinds: Sequence[NameKind]) -> bool:
    """Whether something of the kinds has a text for its name."""
    if any(kind not in NODES and text in kb.names_of_kind(kind) for kind in kinds):
        return True
    return bool(_of_kinds(kb, kb.named(text), kinds))


def _meant(kb: KnowledgeBase, alias: str, kinds: Sequence[NameKind]) -> list[str]:
    """The names of what has an alias, of the kinds."""
    meant = _of_kinds(kb, kb.known_as(alias), kinds)
    return [name for name in kb.names(as_ids(meant)) if name] if meant else []


def _of_kinds(kb: KnowledgeBase, nodes: Ids, kinds: Sequence[NameKind]) -> list[int]:
    return [node for node in nodes.tolist() if NODES[not kb.is_entity(node)] in kinds]
