"""The names that occur in the graphs, as a knowledge base for parsers: a vocabulary, no knowledge.

A parser that may only write what exists needs a knowledge base for its relations, keys, qualifier
keys and concepts, and for the names that questions are linked to. This one has all that occur in
the graphs (of all parts, the unreadable ones left out), and states nothing about anything: every
fact is one of a single node that stands for every variable. So no answer can be read off it, and
executing programs on it means nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from kb import Builder, KnowledgeBase
from parsers.human.records import INSTANCE_OF, HumanQuestion, is_variable
from parsers.human.schema import Schema

# The name of the node that has all facts; no question holds it.
ANYTHING = "?e"


def vocabulary(questions: Iterable[HumanQuestion], schema: Schema) -> KnowledgeBase:
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
