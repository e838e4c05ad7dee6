"""What of a schema a prompt shows: the whole of a small one, and what is known of named things."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cached_property

from kb import KnowledgeBase
from kb.arrays import Ids, unique
from kb.schema import Key, Schema
from kb.values import NO_UNIT
from parsers.linking import stems_of

# Of one thing so many relations of each direction, and keys, are shown; of a kind so many things
# are looked at.
MOST, LOOKED_AT = 5, 300
# The facts that tell which kinds a relation joins.
FACTS = 200
# A kind that so large a share of the things are says what they are.
MOST_OF_ALL = 0.8
# Of so many things one at least is of a kind that is not rare.
RARE = 400


class Surroundings:
    """The schema of a knowledge base in words, around things and kinds."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb, self.schema = kb, Schema.of(kb)
        self._kind: dict[int, str] = {}
        self._sizes: dict[str, int] = {}

    def whole(self, most: int) -> str:
        """All relations with what they join, and all keys, a line each; "" where there are more."""
        kb = self.kb
        if not 0 < len(kb.relations) + len(kb.attribute_keys) <= most:
            return ""
        lines = ["Relations, from subject to object:"]
        lines += [f"{name}: {self._joined(name)}" for name in kb.relations if name]
        lines.append("Keys:")
        lines += [self.key((name, False)) for name in kb.attribute_keys if name]
        if kb.qualifier_keys:
            lines.append("Qualifier keys:")
            lines += [self.key((name, True)) for name in kb.qualifier_keys if name]
        return "\n".join(lines)

    def _joined(self, relation: str) -> str:
        facts = self.kb.relational
        found = facts.of_predicate(self.kb.relation_number(relation))[:FACTS]
        ends = (self._kind_of_all(own[found]) for own in (facts.subject, facts.object))
        return " → ".join(ends)

    def _kind_of_all(self, nodes: Ids) -> str:
        """What most of some things are, as narrow as that is so."""
        found = unique(nodes)
        counts = Counter(name for node in found.tolist() for name in self._kinds(node))
        common = [name for name, count in counts.items() if count >= MOST_OF_ALL * len(found)]
        return min(common, key=lambda name: (self._size(name), name)) if common else "thing"

    def kind(self, node: int) -> str:
        """What a thing is called among others: a kind of one word that is not rare, if it has one.

        Of a kind, what it is called itself.
        """
        kb = self.kb
        if not kb.is_entity(node):
            return kb.name_of(node)
        if node not in self._kind:
            least = max(2, kb.entity_count // RARE)
            common = [name for name in self._kinds(node) if self._size(name) >= least]
            kinds = [name for name in common if " " not in name] or common or self._kinds(node)
            named = min(kinds, key=lambda name: (self._size(name), name), default="thing")
            self._kind[node] = named
        return self._kind[node]

    def _kinds(self, node: int) -> list[str]:
        kb = self.kb
        if not kb.is_entity(node):
            return [kb.name_of(node)]
        return [kb.name_of(concept) for concept in kb.all_concepts_of(node)]

    def _size(self, concept: str) -> int:
        """How many things are of a kind."""
        if concept not in self._sizes:
            self._sizes[concept] = len(self.kb.instances_of(concept))
        return self._sizes[concept]

    def key(self, key: Key) -> str:
        """A key with the types and units of its values."""
        types = self.schema.types(key)
        told = []
        if "quantity" in types:
            units = self.schema.units(key)
            told.append(" or ".join("number" if unit == NO_UNIT else unit for unit in units[:4]))
        told += [{"time": "year or day", "string": "text"}[one] for one in ("time", "string")
                 if one in types]  # fmt: skip
        return f"{key[0]} ({', '.join(told)})"

    def thing(self, name: str, words: Collection[str], used: Collection[str] = ()) -> str:
        """What is known of what has a name: a line with its kind, relations and keys.

        Those come first that the ``words`` (stems) of a question say, and those that are ``used``.
        """
        nodes = self.kb.named(name)
        entities = [node for node in nodes.tolist() if self.kb.is_entity(node)]
        if not entities:
            return self.things_of(name, words, used)
        return f'"{name}" ({self.kind(entities[0])}): {self.around(nodes, words, used)}'

    def things_of(self, concept: str, words: Collection[str], used: Collection[str] = ()) -> str:
        """What is known of the things of a kind: a line with their relations and keys."""
        nodes = self.kb.instances_of(concept)
        told = self.around(nodes[:LOOKED_AT], words, used)
        return f'kind "{concept}" ({len(nodes)} things): {told}'

    def around(self, nodes: Ids, words: Collection[str], used: Collection[str] = ()) -> str:
        """The relations and keys of some things, with directions."""
        kb, literals = self.kb, self.kb.literals
        told = []
        for direction, relations in self.relations(nodes).items():
            if shown := self._first(relations, words, used):
                told.append(f"{direction} {', '.join(shown)}")
        counts = Counter(
            kb.keys[number] for number in literals.predicate[literals.of_subjects(nodes)].tolist()
        )
        if shown := self._first(counts, words, used):
            told.append(f"keys {', '.join(shown)}")
        return "; ".join(told) or "nothing is known"

    def relations(self, nodes: Ids) -> dict[str, Counter[str]]:
        """By direction, the relations that some things have, with the numbers of their facts."""
        facts = self.kb.relational
        ways = {"forward": facts.of_subjects(nodes), "backward": facts.of_tails(nodes)}
        return {
            way: Counter(self.kb.relations[one] for one in facts.predicate[numbers].tolist())
            for way, numbers in ways.items()
        }

    def _first(
        self, counts: Counter[str], words: Collection[str], used: Collection[str]
    ) -> list[str]:
        """The items to show of those that are there, the likeliest first."""

        def rank(item: str) -> tuple[bool, float, int, str]:
            return item not in used, -said(item, words), -counts[item], item

        return sorted(filter(None, counts), key=rank)[:MOST]

    def kinds_in(self, words: Sequence[str]) -> list[str]:
        """The kinds whose names a question of such stems says, the longest names first."""
        text = f" {' '.join(words)} "
        found = [name for name, stems in self._concepts.items() if f" {stems} " in text]
        return sorted(found, key=lambda name: (-len(name), name))

    @cached_property
    def _concepts(self) -> dict[str, str]:
        names = (self.kb.name_of(one) for one in self.kb.concepts_with_instances())
        return {name: " ".join(stems_of(name)) for name in names if name}


def said(item: str, words: Collection[str]) -> float:
    """The share of an item's words that are among some stems."""
    own = stems_of(item)
    return sum(one in words for one in own) / len(own) if own else 0.0
