"""Finding things by what they are called, and what a set of things has: for people and agents.

`search` gives the names nearest to a text, `facets` the relations, keys and qualifiers of the facts
of some nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal, TypeAlias

import numpy as np

from kb.arrays import Ids, as_ids, unite
from kb.store import KnowledgeBase, NameKind
from kopl_base.errors import near_names

FacetKind: TypeAlias = Literal["relation", "key", "qualifier"]

NODE_KINDS: tuple[Literal["entity", "concept"], ...] = ("entity", "concept")
SCHEMA_KINDS: tuple[NameKind, ...] = ("relation", "key", "qualifier key")


@dataclass(frozen=True)
class Match:
    """Something that is called nearly as a text: ``called`` is its name or alias that is near.

    ``node`` is its number, None for relations, keys and units.
    """

    kind: NameKind
    name: str
    called: str
    node: int | None = None


def search(
    kb: KnowledgeBase,
    text: str,
    kinds: Sequence[NameKind],
    limit: int,
    names: Callable[[NameKind], Sequence[str]] | None = None,
) -> Iterator[Match]:
    """What is called nearly as the text, kind by kind, the nearest first.

    Of each kind at most ``limit`` names are looked at; all that have one of them come. ``names``
    gives the names of a kind where they are at hand, or fewer of them than there are.
    """
    for kind in kinds:
        if kind == "entity" or kind == "concept":
            known = names(kind) if names else kb.called(kind)
            seen: set[int] = set()  # by a nearer name or alias
            for called in near_names(text, known, limit):
                for node in [*kb.named(called).tolist(), *kb.known_as(called).tolist()]:
                    if kb.is_entity(node) == (kind == "entity") and node not in seen:
                        seen.add(node)
                        yield Match(kind, kb.name_of(node), called, node)
        else:
            known = names(kind) if names else kb.names_of_kind(kind)
            for name in near_names(text, known, limit):
                yield Match(kind, name, name)


def above(kb: KnowledgeBase, node: int) -> list[str]:
    """The names of the concepts right above a node."""
    concepts = kb.concepts_of(node) if kb.is_entity(node) else kb.parents(node)
    return [kb.name_of(concept) for concept in concepts]


def fact_count(kb: KnowledgeBase, match: Match) -> int:
    """How many facts a thing has, or have a relation, a key or a qualifier key; of a unit 0."""
    if match.node is not None:
        node = as_ids([match.node])
        parts = [kb.relational.of_subjects(node), kb.relational.of_tails(node)]
        own = len(kb.literals.of_subjects(node)) if kb.is_entity(match.node) else 0
        return own + len(unite(parts))
    if match.kind == "relation":
        return len(kb.relational.of_predicate(kb.relation_number(match.name)))
    if match.kind == "key":
        return len(kb.literals.of_predicate(kb.key_number(match.name)))
    if match.kind == "qualifier key":
        sets = kb.qualifier_sets.having(kb.key_number(match.name))
        tables = (kb.relational, kb.literals)
        return sum(int(np.isin(table.qualifiers, sets).sum()) for table in tables)
    return 0


# Of each kind so many near names are looked at.
NEAR = 50


class NameLists:
    """What everything in a knowledge base is called, listed once; for many searches.

    May be shared between threads.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self._known: dict[NameKind, list[str]] = {}

    def called(self, kind: NameKind) -> list[str]:
        """All names of a kind, of things with their aliases."""
        if kind not in self._known:
            kb = self.kb
            known = kb.called(kind) if kind in NODE_KINDS else kb.names_of_kind(kind)
            self._known[kind] = known
        return self._known[kind]

    def near(self, text: str, kinds: Sequence[NameKind], within: Ids | None = None) -> list[Match]:
        """What is called nearly as the text: what is called just so, then the nearest of each kind.

        ``within``: only these nodes.
        """
        names = self.called if within is None else lambda _: self._called_of(within)
        by_kind = [[*search(self.kb, text, (one,), NEAR, names)] for one in kinds]
        if within is not None:
            inside = set(within.tolist())
            by_kind = [[match for match in part if match.node in inside] for part in by_kind]
        plain = text.casefold()
        exact = [m for part in by_kind for m in part if m.called.casefold() == plain]
        exact.sort(key=lambda match: (match.name != text, match.name.casefold() != plain))
        # The nearest of each kind, then the second nearest of each.
        depth = max(map(len, by_kind), default=0)
        mixed = [part[at] for at in range(depth) for part in by_kind if at < len(part)]
        return list(dict.fromkeys([*exact, *mixed]))

    def all(
        self, kinds: Sequence[NameKind], within: Ids | None = None
    ) -> tuple[int, Iterator[Match]]:
        """How much there is of some kinds, and all of it; of entities only those ``within``."""
        kb, counts, parts = self.kb, [], []
        for kind in kinds:
            if kind == "entity" or kind == "concept":
                nodes: Sequence[int] = range(kb.entity_count, kb.node_count)
                if kind == "entity":
                    nodes = range(kb.entity_count) if within is None else within.tolist()
                counts.append(len(nodes))
                parts.append(self._nodes(kind, nodes))
            else:
                names = self.called(kind)
                counts.append(len(names))
                parts.append(Match(kind, name, name) for name in names)
        return sum(counts), chain.from_iterable(parts)

    def _nodes(self, kind: NameKind, nodes: Sequence[int]) -> Iterator[Match]:
        for node in nodes:
            name = self.kb.name_of(node)
            yield Match(kind, name, name, node)

    def _called_of(self, nodes: Ids) -> list[str]:
        kb = self.kb
        aliases = (alias for node in nodes.tolist() for alias in kb.aliases_of(node))
        return list(dict.fromkeys([*kb.names(nodes), *aliases]))

    @cached_property
    def of_all(self) -> list[Facet]:
        """What all things have (`facets`)."""
        return facets(self.kb, self.kb.entities)


@dataclass(frozen=True)
class Facet:
    """What some of a set of things have: a relation in one direction, a key, or a qualifier.

    ``of`` is the relation or key whose facts have the qualifier. ``things`` counts those that have
    it and ``facts`` the facts; ``forms`` are the types and units of the values, and ``example`` is
    a value, or the name of the node at the other end.
    """

    kind: FacetKind
    name: str
    direction: str
    of: str
    things: int
    facts: int
    forms: tuple[str, ...]
    example: str


def facets(kb: KnowledgeBase, nodes: Ids) -> list[Facet]:
    """What the nodes have: relations and keys, those of most things first, then qualifiers."""
    relations = kb.relational
    found: list[Facet] = []
    qualifiers: list[Facet] = []
    forward, backward = relations.of_subjects(nodes), relations.of_tails(nodes)
    for direction, facts, own, other in (
        ("forward", forward, relations.subject, relations.object),
        ("backward", backward, relations.object, relations.subject),
    ):
        for predicate, group in _groups(relations.predicate[facts], facts):
            name, example = kb.relations[predicate], kb.name_of(int(other[group[0]]))
            things = len(np.unique(own[group]))
            found.append(Facet("relation", name, direction, "", things, len(group), (), example))
    entities = nodes[nodes < kb.entity_count]
    literals = kb.literals.of_subjects(entities)
    for predicate, group in _groups(kb.literals.predicate[literals], literals):
        values = kb.literals.object[group]
        forms = tuple(form for form, _ in kb.values.forms(values).most_common())
        [example] = kb.value_texts(values[:1].tolist())
        things = len(np.unique(kb.literals.subject[group]))
        name = kb.keys[predicate]
        found.append(Facet("key", name, "", "", things, len(group), forms, example))
        qualifiers += _qualifiers(kb, name, kb.literals.qualifiers[group])
    either = unite([np.unique(forward), np.unique(backward)])
    for predicate, group in _groups(relations.predicate[either], either):
        qualifiers += _qualifiers(kb, kb.relations[predicate], relations.qualifiers[group])
    found.sort(key=lambda one: (-one.things, one.name, one.direction))
    qualifiers.sort(key=lambda one: (-one.facts, one.of, one.name))
    return [*found, *qualifiers]


def _groups(keys: Ids, facts: Ids) -> Iterator[tuple[int, Ids]]:
    """The facts by their keys."""
    order = np.argsort(keys, kind="stable")
    numbers, starts = np.unique(keys[order], return_index=True)
    groups = np.split(facts[order], starts[1:])
    yield from zip(numbers.tolist(), groups, strict=False)


def _qualifiers(kb: KnowledgeBase, of: str, sets: Ids) -> Iterator[Facet]:
    """The qualifier keys of facts with these qualifier sets."""
    keys, values = kb.qualifier_sets.pairs_of(sets[sets > 0])
    for key, group in _groups(keys, values):
        forms = tuple(form for form, _ in kb.values.forms(group).most_common())
        [example] = kb.value_texts(group[:1].tolist())
        yield Facet("qualifier", kb.keys[key], "", of, 0, len(group), forms, example)
