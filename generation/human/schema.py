"""What the predicates of query graphs are: relations between nodes, or keys of attributes.

The graphs write both alike. Their places tell: a variable for an entity at the tail is proof of a
relation; a variable for a value, or a value that a yes-no question asks about, is proof of a key.
What is seen only with names and values at the tail is looked up in `RELATIONS` and `KEYS`.

A parser that may only write what exists needs a knowledge base for its relations, keys, qualifier
keys and concepts, and for the names that questions are linked to: `vocabulary` has all that occur
in the graphs (of all parts, the unreadable ones left out), and states nothing about anything: every
fact is one of a single node that stands for every variable. So no answer can be read off it, and
executing programs on it means nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from generation.human.records import (
    INSTANCE_OF,
    TRUTH,
    VALUE,
    HumanQuestion,
    NotConverted,
    is_variable,
)
from kb import Builder, KnowledgeBase


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split("|"))


# Properties of Wikidata whose data type is "item".
RELATIONS = _names(
    """airline hub|architectural style|art director|basic form of government|connects with|
    contributor(s) to the creative work|copyright representative|currency|
    designated as terrorist by|designed to carry|dissertation submitted to|distribution|
    family name|film distribute region|film regional debut venue|
    general manager|had as last meal|has cause|has effect|head coach|
    head of government|head of state|highest judicial authority|honorific prefix|honorific suffix|
    illustrator|inspired by|is a list of|license|lifestyle|manner of death|
    notable people with this condition|office contested|official religion|official residence|
    official symbol|place of publication|product or material produced|professorship|religious order|
    separated from|sidekick of|significant event|significant person|statistical leader|student|
    studied by|subject has role|theme music|voice type|writing system"""
)

# Properties of Wikidata whose data type is a string, an external identifier, a URL or a text.
KEYS = _names(
    """Australian Business Number|Austrian municipality key|CRICOS Provider Code|
    Catalogus Professorum Halensis|Central Index Key|FIPS 5-2 alpha code (US states)|
    FIPS 5-2 numeric code (US states)|GRIN URL|GeoNames feature code|German district key|
    German regional key|ICAO airport code|INSEE countries and foreign territories code|
    INSEE department code|INSEE region code|IRC channel|ISO 3166-1 alpha-3 code|
    ISO 9362 SWIFT/BIC code|ISO standard|Irish Grid Reference|Italian cadastre code|LAU|
    LinkedIn personal profile URL|NACE code|National Bridge Inventory Number|Nintendo GameID|
    OKPD code of the good or service|PCP reference number|Philippine Standard Geographic Code|
    SIREN number|SPLASH|UIC numerical country code|aircraft registration prefix|catchphrase|
    dantai code|file extension|full work available at|inscription|inventory number|media type|
    phone number|public key fingerprint|religious name|runway|singles record|subtitle|
    transliteration"""
)


# The name of the node that has all facts; no question holds it.
ANYTHING = "?e"

# Two sets of names are of one type when they share so much of the smaller one.
ALIKE = 0.1


@dataclass(frozen=True)
class GraphSchema:
    """The predicates of a collection of graphs: relations, and keys of attributes.

    ``tails`` are the named tails of every relation, with and without qualifiers; ``likely`` the
    names that may be tails as well, because they stand where many of its tails stand. ``names`` are
    the names at either end of relations, by their first word.
    """

    relations: frozenset[str]
    keys: frozenset[str]
    tails: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False)
    likely: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False)
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, questions: Iterable[HumanQuestion]) -> GraphSchema:
        """The schema that the graphs of all questions show together."""
        relations, keys = set(RELATIONS), set(KEYS)
        ends: dict[tuple[str, str], set[str]] = {}
        for question in questions:
            for clause in question.clauses:
                if clause.predicate == INSTANCE_OF:
                    continue
                if clause.tail == VALUE:
                    keys.add(clause.predicate)
                elif is_variable(clause.tail):
                    relations.add(clause.predicate)
                for end, name in (("head", clause.head), ("tail", clause.tail)):
                    if not is_variable(name):
                        ends.setdefault((clause.predicate, end), set()).add(name)
            if question.target == TRUTH and question.clauses:
                last = question.clauses[-1]
                if not is_variable(last.tail):
                    keys.add(last.predicate)
        # A clause that was asked about may be lost, and another one stands last: no proof then.
        keys -= relations
        places = {place: names for place, names in ends.items() if place[0] in relations}
        tails = {
            place[0]: frozenset(names) for place, names in places.items() if place[1] == "tail"
        }
        by_word: dict[str, set[str]] = {}
        for name in frozenset[str]().union(*places.values()):
            by_word.setdefault(first_word(name), set()).add(name)
        return cls(
            frozenset(relations),
            frozenset(keys),
            tails,
            {relation: _likely(names, places.values()) for relation, names in tails.items()},
            {word: tuple(sorted(names)) for word, names in by_word.items()},
        )

    def is_relation(self, predicate: str) -> bool:
        """Whether a predicate is a relation, not a key; raises NotConverted for neither."""
        if predicate in self.relations:
            return True
        if predicate in self.keys:
            return False
        raise NotConverted("unknown predicate", f"{predicate!r} may be a relation or a key")


def first_word(name: str) -> str:
    """The first word of a name, by which `GraphSchema.names` has it ("" when there is none)."""
    match = re.search(r"\w+", name)
    return match.group() if match else ""


def _likely(names: frozenset[str], places: Iterable[set[str]]) -> frozenset[str]:
    alike = [there for there in places
             if len(names & there) >= ALIKE * min(len(names), len(there))]  # fmt: skip
    return names.union(*alike)


def vocabulary(questions: Iterable[HumanQuestion], schema: GraphSchema) -> KnowledgeBase:
    """The knowledge base of all names, relations, keys, concepts and values of the graphs.

    A name of several things is one entity, as the graphs do not tell them apart; a name that is a
    concept anywhere is a concept. Ids are names. A value asked for is the string "?". The same
    questions in another order give the same knowledge base. A predicate that is neither relation
    nor key for the schema is left out.
    """
    concepts: set[str] = set()
    names: set[str] = set()
    facts: set[tuple[str, str, tuple[str, str] | None]] = set()
    for question in questions:
        for clause in question.clauses:
            if clause.predicate == INSTANCE_OF:
                concepts.add(clause.tail)
                continue
            names.add(clause.head)
            relates = clause.predicate in schema.relations
            if not relates and clause.predicate not in schema.keys:
                continue
            tail = clause.tail
            if relates:
                names.add(tail)
            elif is_variable(tail):
                tail = "?"
            pair = clause.qualifier
            if pair and is_variable(pair[1]):
                pair = (pair[0], "?")
            facts.add((clause.predicate, tail, pair))
    builder = Builder()
    for concept in sorted(concepts):
        builder.add_concept(concept, concept)
    for name in sorted(name for name in names - concepts if not is_variable(name)):
        builder.add_entity(name, name)
    builder.add_entity(ANYTHING, ANYTHING)
    for predicate, tail, pair in sorted(facts, key=lambda fact: (*fact[:2], fact[2] or ())):
        qualifiers = {pair[0]: pair[1]} if pair else None
        if predicate in schema.relations:
            node = ANYTHING if is_variable(tail) else tail
            builder.add_fact(ANYTHING, predicate, node, qualifiers)
        else:
            builder.add_attribute(ANYTHING, predicate, tail, qualifiers)
    return builder.build()
