"""What people would name things by, where the facts leave a choice.

Facts alone make "the substance whose CAS number is 7440-44-0" as good as "the element that was
discovered by Marie Curie". Annotations say what a reader would think of it (docs/lexicon.md:
``head``, ``counted``, ``identifies``, ``complete``), and the facts do where they are silent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from random import Random

import numpy as np

from generation import english
from generation.lexicon import Direction, Lexicon
from generation.pools import NoDraw, Pools
from kb import Quantity, Value
from kb.values import NO_UNIT
from kopl import functions as f
from kopl.program import Call

# A concept of more than this share of all entities says little of one of them: "place".
TOO_GENERAL = 0.2
# How much less likely a head noun is for each word more, and where it is a kind of another one.
EACH_WORD, OF_A_KIND = 0.6, 0.3
# A key says of (nearly) all instances of a concept what it says when this share has it.
COVERED = 0.9
# Values that are looked at to tell codes from words, and the share that must look like codes.
LOOKED_AT, MOSTLY = 200, 0.7
_CODE = re.compile(r"\W?\w{1,3}|[A-Z0-9][A-Z0-9 .:/_-]*|\w+://\S+|[\d .:/_-]+|www\.\S+")
# Facts of a relation that tell whether its tails have one head each, and how many those may be.
TOLD_BY, ABOUT_ONE = 10, 1.1
# Nobody asks how many there are of what is one, or now and then two.
MOSTLY_ONE = 1.5
# A whole list is asked for of so many things at most.
LISTED = 60
_NUMBERED = re.compile(r"[^\W\d]+-?\d+\w?")
# How sure it is that nothing outside of the knowledge base fits a description as well.
OPEN, UNKNOWN, CLOSED = 0, 1, 2
# How often a set of which that is unknown will do: where annotations tell it of others, and where
# they tell it of none, so that nothing better is to be had.
RARELY, ALWAYS = 0.1, 1.0


class Taste:
    """Head nouns, what identifies things, what is counted, which lists are complete.

    ``annotated``: annotations tell of some lists that they are complete, or not.
    """

    def __init__(self, pools: Pools, lexicon: Lexicon) -> None:
        self._pools, self._kb, self._lexicon = pools, pools.kb, lexicon
        self.heads = lru_cache(maxsize=20_000)(self._heads)
        self.known_links = lru_cache(maxsize=20_000)(self._known_links)
        self.closed_links = lru_cache(maxsize=20_000)(self._closed_links)
        self.identifies = lru_cache(maxsize=None)(self._identifies)
        self.complete = lru_cache(maxsize=None)(self._complete)
        self.leads_to_several = lru_cache(maxsize=None)(self._leads_to_several)
        self._plain_weight = lru_cache(maxsize=None)(self._weight_of_concept)
        self._covered = lru_cache(maxsize=100_000)(self._is_covered)
        told = lexicon.annotations.sections.values()
        self.annotated = any("complete" in g.fields for s in told for g in s.values())
        self._unknown = RARELY if self.annotated else ALWAYS

    # --- head nouns ------------------------------------------------------------------------------

    def _heads(self, entity: int) -> tuple[list[str], list[float]]:
        """The concepts that an entity may be called by, the plainest first, and their weights.

        Those that nobody calls a thing by will do where there is nothing else.
        """
        names = list(dict.fromkeys(self._pools.concepts_of(entity)))
        usable = [name for name in names if self._lexicon.concept(name).entry.head is not False]
        known, weights = frozenset(names), {}
        for name in usable or names:
            weight = self._plain_weight(name)
            stem = english.head(name)
            ends = (stem[match.end() :] for match in re.finditer("^| ", stem))
            if any(end != name and end in known for end in ends):
                weight *= OF_A_KIND  # "international airport" is a kind of airport
            weights[name] = weight
        found = sorted(weights, key=lambda name: (-weights[name], name))
        return found, [weights[name] for name in found]

    def _weight_of_concept(self, name: str) -> float:
        """How plain a concept is as a noun, whatever it is said of."""
        size = len(self._kb.instances_of(name))
        share = size / max(1, self._kb.entity_count)
        general = min(1.0, TOO_GENERAL / share) ** 3 if share else 1.0
        return float(size**0.5 * general * EACH_WORD ** name.count(" "))

    def counted(self, concept: str) -> bool:
        """Whether people ask how many there are of a concept."""
        entry = self._lexicon.concept(concept).entry
        if entry.counted is not None:
            return entry.counted
        instances = self._kb.instances_of(concept)
        if entry.head is False or not len(instances):
            return False
        (plainest, *_), _ = self.heads(int(instances[0]))
        return len(instances) <= len(self._kb.instances_of(plainest))

    def listed(self, concept: str) -> bool:
        """Whether people ask for all there are of a concept."""
        return self.counted(concept) and len(self._kb.instances_of(concept)) <= LISTED

    def head_of(self, random: Random, entity: int) -> str:
        """A concept that people would call an entity by; raises NoDraw where there is none."""
        names, weights = self.heads(entity)
        if not names:
            raise NoDraw
        (name,) = random.choices(names, weights)
        return name

    # --- what identifies -------------------------------------------------------------------------

    def _identifies(self, key: int) -> bool:
        """Whether a value of the key tells people which thing is meant: no code does."""
        told = self._lexicon.key(self._kb.keys[key]).entry.identifies
        if told is not None:
            return told
        facts = self._pools.key_facts(key, "string", None)
        values = [str(self._pools.value(fact)) for fact in facts[:LOOKED_AT]]
        codes = sum(bool(_CODE.fullmatch(value)) for value in values)
        return codes <= MOSTLY * len(values)

    def _is_known_by(self, key: str) -> bool:
        return self._lexicon.key(key).entry.identifies is True

    def telling(self, keys: Sequence[int]) -> Sequence[int]:
        """Those of the keys that identify; all where none does."""
        return [key for key in keys if self.identifies(key)] or keys

    @staticmethod
    def exact(value: Value) -> bool:
        """Whether people know a thing by this very value: a small count, a round number."""
        if not isinstance(value, Quantity):
            return True
        digits = f"{abs(value.number):.10e}".partition("e")[0].replace(".", "").rstrip("0")
        small = value.unit == NO_UNIT and value.number.is_integer() and abs(value.number) < 1000
        return small or len(digits) <= 1

    @staticmethod
    def is_code(name: str) -> bool:
        """Whether a name is one by which nothing else is described: "tin-128", "Pm-152"."""
        return bool(_NUMBERED.fullmatch(name))

    def _leads_to_several(self, relation: str, direction: Direction) -> bool:
        """Whether a relation leads to more than one thing often enough to be asked how many."""
        facts, ends = self._facts_and_ends(relation, direction)
        return facts > MOSTLY_ONE * ends

    def _facts_and_ends(self, relation: str, direction: Direction) -> tuple[int, int]:
        table = self._kb.relational
        facts = table.of_predicate(self._kb.relation_number(relation))
        near = (table.subject if direction == "forward" else table.object)[facts]
        return len(facts), len(np.unique(near))

    def may_compare(self, key: int) -> bool:
        """Whether the greatest value of a key here is the greatest: annotations may deny it."""
        return self._lexicon.key(self._kb.keys[key]).entry.complete != "no"

    # --- which lists are complete ----------------------------------------------------------------

    def _complete(self, relation: str, direction: Direction) -> int:
        """Whether all that a relation leads to in a direction is in the knowledge base."""
        told = self._lexicon.relation(relation, direction).entry.complete
        if told:
            return CLOSED if told in ("yes", direction) else OPEN
        facts, ends = self._facts_and_ends(relation, direction)
        if facts <= ABOUT_ONE * ends and (direction == "forward" or facts >= TOLD_BY):
            return CLOSED
        return UNKNOWN

    def _known_links(self, node: int) -> list[tuple[int, Direction]]:
        """The relations and directions by which people know a node; all where they do by none."""
        links = list(self._pools.links(node))
        return [link for link in links if self._is_known_through(*link)] or links

    def _is_known_through(self, relation: int, direction: Direction) -> bool:
        """Whether people know what a relation leads to in a direction by what it comes from."""
        told = self._lexicon.relation(self._kb.relations[relation], direction).entry.identifies
        return told in ("", "yes", direction)

    def _closed_links(self, node: int) -> list[tuple[int, Direction]]:
        """Those of them by which a node is found with all that is found so."""
        relations = self._kb.relations
        return [
            (number, direction)
            for number, direction in self.known_links(node)
            if self.complete(relations[number], direction) == CLOSED
        ]

    def is_one_of_many(self, entity: int) -> bool:
        """Whether there are more things of its kind than the knowledge base has."""
        names, _ = self.heads(entity)
        return bool(names) and self._whole(names[0]) == OPEN

    def closed(self, call: Call, concept: str | None = None) -> int:
        """How sure it is that a set holds all in the world that fits: OPEN, UNKNOWN or CLOSED.

        ``concept`` is the one that the set is narrowed to.
        """
        function = call.function
        if function is f.FIND:
            return CLOSED
        if function is f.FIND_ALL:
            return self._whole(concept)
        if function is f.FILTER_CONCEPT:
            return self.closed(call.inputs[0], call.arguments[0])
        if function is f.RELATE:
            direction: Direction = "forward" if call.arguments[1] == "forward" else "backward"
            return self.complete(call.arguments[0], direction)
        if function is f.AND:
            return max(self.closed(given, concept) for given in call.inputs)
        if function is f.OR:
            return min(self.closed(given, concept) for given in call.inputs)
        if function is f.FILTER_STR and self._is_known_by(call.arguments[0]):
            return CLOSED
        inner = self.closed(call.inputs[0], concept)
        if call.inputs[0].function is f.FIND_ALL:
            return min(inner, self._covered(call.arguments[0], concept))
        return inner

    def _whole(self, concept: str | None) -> int:
        """Whether all instances of a concept are there."""
        if concept is None:
            return UNKNOWN
        told = self._lexicon.concept(concept).entry.complete
        return UNKNOWN if told is None else CLOSED if told else OPEN

    def _is_covered(self, key: str, concept: str | None) -> int:
        """Whether nearly all instances of a concept have a key."""
        kb = self._kb
        told = self._lexicon.key(key).entry.complete
        if told:
            return CLOSED if told == "yes" else OPEN
        if concept is None:
            return UNKNOWN
        owners = np.unique(kb.literals.subject[kb.literals.of_predicate(kb.key_number(key))])
        instances = kb.instances_of(concept)
        if len(np.intersect1d(owners, instances)) >= COVERED * len(instances):
            return CLOSED
        return OPEN if self.annotated else UNKNOWN

    def will_do(self, call: Call, luck: float) -> bool:
        """Whether a set may be spoken of as of all that fits.

        ``luck``, from 0 to 1, decides where it is not known.
        """
        found = self.closed(call)
        return found == CLOSED or (found == UNKNOWN and luck < self._unknown)
