"""What people would name things by, where the facts leave a choice.

Facts alone make "the substance whose CAS number is 7440-44-0" as good as "the element that was
discovered by Marie Curie". Annotations say what a reader would think of it (docs/lexicon.md:
``head``, ``counted``, ``identifies``, ``complete``), and the facts do where they are silent.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from random import Random

import numpy as np

from generation import english
from generation.comparisons import USUAL
from generation.lexicon import END_TIME, POINT_IN_TIME, Direction, Lexicon
from generation.pools import NoDraw, Pools
from kb import Date, Quantity, Value, Year
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
# A comparison says little that holds of more than this share of what has the key.
TELLING = 0.85
# A value belongs to one thing alone where there are so few facts for each different one.
ONE_EACH = 1.1
# Where more facts of a relation are over than this share, it is one of what was.
BYGONE = 0.6
# A whole list is asked for of so many things at most.
LISTED = 60
_NUMBERED = re.compile(r"[^\W\d]+-?\d+\w?")
# How sure it is that nothing outside of the knowledge base fits a description as well.
OPEN, UNKNOWN, CLOSED = 0, 1, 2
_OF_VALUES = (f.FILTER_STR, f.FILTER_NUM, f.FILTER_YEAR, f.FILTER_DATE)
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
        self._known_then = lru_cache(maxsize=100_000)(self._is_known_then)
        self.owners = lru_cache(maxsize=None)(self._owners)
        self.usual = lru_cache(maxsize=None)(self._usual)
        self.is_own = lru_cache(maxsize=None)(self._is_own)
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

    def _owners(self, key: str) -> int:
        """How many things have a key."""
        table = self._kb.literals
        return len(np.unique(table.subject[table.of_predicate(self._kb.key_number(key))]))

    def tells(self, call: Call, size: int) -> bool:
        """Whether a comparison, which ``size`` things pass, says something of what has its key."""
        return size <= TELLING * self.owners(call.arguments[0])

    @staticmethod
    def shown(value: Value, day: bool) -> Value:
        """A value as it stands in a comparison: of a day its year, unless ``day`` asks for it."""
        return Year(value.year) if isinstance(value, Date) and not day else value

    def _usual(self, key: str, day: bool) -> tuple[Value, ...]:
        """The values that many have for a key, so that it says something not to have them."""
        facts = self._pools.key_facts(self._kb.key_number(key), "any", None)
        values = Counter(self.shown(self._pools.value(fact), day) for fact in facts)
        return tuple(value for value, count in values.items() if count >= USUAL * len(facts))

    def has_none(self, key: str, value: Value) -> bool:
        """Whether a value says that there is none of what the key counts or measures."""
        return isinstance(value, Quantity) and not value.number and value in self.usual(key, False)

    def _is_own(self, key: str) -> bool:
        """Whether hardly two things share a value of a key, so that nobody counts by it."""
        facts = self._pools.key_facts(self._kb.key_number(key), "string", None)
        values = self._kb.literals.object[facts]
        return len(facts) <= ONE_EACH * len(np.unique(values))

    def is_its_own(self, call: Call) -> bool:
        """Whether a condition by a value is that of one thing alone."""
        return call.function is f.FILTER_STR and self.is_own(call.arguments[0])

    @cached_property
    def latest(self) -> int:
        """The last year of which the knowledge base tells anything."""
        values = self._kb.values
        times = (values[number] for number in range(values.first_time, len(values)))
        return max((time.year for time in times if isinstance(time, Year | Date)), default=0)

    def only_one(self, call: Call, other: Call) -> bool:
        """Whether two conditions by one relation say two things of what has but one: its place."""
        if call.function is not f.RELATE or other.function is not f.RELATE:
            return False
        back: Direction = "backward" if call.arguments[1] == "forward" else "forward"
        same = call.arguments == other.arguments
        return same and not self.leads_to_several(call.arguments[0], back)

    @cached_property
    def over(self) -> Mapping[Direction, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
        """For each relational fact whether what is found as it is includes something that is over.

        By the direction in which its relation is followed: with the currencies of Germany there is
        the German Mark, which nobody says that it has.
        """
        table = self._kb.relational
        ended = self._pools.sets_with((END_TIME, "any"))[table.qualifiers]
        relations = len(self._kb.relations)
        share = np.bincount(table.predicate[ended], minlength=relations) / np.maximum(
            1, np.bincount(table.predicate, minlength=relations)
        )
        ended &= (share <= BYGONE)[table.predicate]
        found: dict[Direction, np.ndarray[tuple[int], np.dtype[np.bool_]]] = {}
        for direction, near in (("forward", table.subject), ("backward", table.object)):
            keys = table.predicate.astype(np.int64) * self._kb.node_count + near
            found[direction] = np.isin(keys, keys[ended])  # type: ignore[index]
        return found

    def _leads_to_several(self, relation: str, direction: Direction) -> bool:
        """Whether a relation leads to more than one thing often enough to be asked how many."""
        facts, ends = self._facts_and_ends(relation, direction)
        return facts > MOSTLY_ONE * ends

    def _facts_and_ends(self, relation: str, direction: Direction) -> tuple[int, int]:
        table = self._kb.relational
        facts = table.of_predicate(self._kb.relation_number(relation))
        near = (table.subject if direction == "forward" else table.object)[facts]
        return len(facts), len(np.unique(near))

    def may_compare(self, key: int, concept: str | None = None) -> bool:
        """Whether the greatest value of a key here is the greatest: annotations may deny it.

        Not of a concept the greatest of which are there.
        """
        if self.has_greatest(concept):
            return True
        return self._lexicon.key(self._kb.keys[key]).entry.complete != "no"

    def has_greatest(self, concept: str | None) -> bool:
        """Whether at least the greatest of a concept are there."""
        return concept is not None and self._lexicon.concept(concept).entry.greatest

    def of_the_greatest(self, call: Call) -> bool:
        """Whether a set is of things the greatest of which are there, by what they are related to.

        "The rivers of Germany": people mean those.
        """
        if call.function is not f.FILTER_CONCEPT or not self.has_greatest(call.arguments[0]):
            return False
        (inner,) = call.inputs
        parts = inner.inputs if inner.function is f.AND else (inner,)
        return all(part.function is f.RELATE for part in parts)

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
        if function is f.QFILTER_YEAR and call.arguments[0] == POINT_IN_TIME:
            (dated,) = call.inputs
            if dated.function in _OF_VALUES and dated.inputs[0].function is f.FIND_ALL:
                year = int(call.arguments[1])
                return min(
                    self._whole(concept), self._known_then(dated.arguments[0], concept, year)
                )
        inner = self.closed(call.inputs[0], concept)
        if call.inputs[0].function is f.FIND_ALL:
            covered = self._covered(call.arguments[0], concept)
            is_great = function is f.FILTER_NUM and call.arguments[2] == ">"
            return covered if is_great and self.has_greatest(concept) else min(inner, covered)
        return inner

    def all_closed(self, call: Call) -> bool:
        """Whether none of the conditions that hold together leaves out what others fit."""
        concept = None
        if call.function is f.FILTER_CONCEPT:
            (call,), (concept,) = call.inputs, call.arguments
        parts = [call]
        while parts:
            part = parts.pop()
            if part.function is f.AND:
                parts += part.inputs
            elif self.closed(part, concept) == OPEN:
                return False
        return True

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
        if told and not self.has_greatest(concept):
            return CLOSED if told == "yes" else OPEN
        if concept is None:
            return UNKNOWN
        owners = np.unique(kb.literals.subject[kb.literals.of_predicate(kb.key_number(key))])
        instances = kb.instances_of(concept)
        if len(np.intersect1d(owners, instances)) >= COVERED * len(instances):
            return CLOSED
        return OPEN if self.annotated else UNKNOWN

    def _is_known_then(self, key: str, concept: str | None, year: int) -> int:
        """Whether nearly all instances of a concept have a key's figure for a year."""
        if concept is None:
            return UNKNOWN
        kb, table = self._kb, self._kb.literals
        years = self._pools.years_by(POINT_IN_TIME)
        facts = table.of_predicate(kb.key_number(key))
        if years is not None:
            facts = facts[years[table.qualifiers[facts]] == year]
        instances = kb.instances_of(concept)
        known = len(np.intersect1d(table.subject[facts], instances))
        if known >= COVERED * len(instances):
            return CLOSED
        return OPEN if self.annotated else UNKNOWN

    def will_do(self, call: Call, luck: float) -> bool:
        """Whether a set may be spoken of as of all that fits.

        ``luck``, from 0 to 1, decides where it is not known.
        """
        found = self.closed(call)
        return found == CLOSED or (found == UNKNOWN and luck < self._unknown)
