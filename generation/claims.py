"""What questions say of things that may be so or not: "Is Stockholm the capital of Norway?".

Half of the time it is not so, but of the right kind: what other facts of the relation lead to, a
concept of something like it, another one of those to choose from.
"""

from __future__ import annotations

import numpy as np

from generation.pools import NoDraw, draw_from
from generation.scope import DrawnPart, Source
from generation.taste import OPEN
from kopl import functions as f
from kopl.denotation import Located
from kopl.program import Call

# Things that are looked at to find one of another kind.
TRIED = 4


def unrelated_concept(source: Source, part: DrawnPart) -> str:
    """A concept of no element of a part, but of something that has such a fact as well.

    "How many mountains share a border with Norway": other things than those that do.
    """
    table, number = source.table(part.fact)
    relational = table is source.kb.relational
    ends = (table.object, table.subject) if relational else (table.subject,)
    column = next((end for end in ends if int(end[number]) == part.target), table.subject)
    facts: list[int] = table.of_predicate(int(table.predicate[number])).tolist()
    for _ in range(TRIED):
        other = int(column[draw_from(source.random, facts)])
        if not source.kb.is_entity(other):
            continue
        concept = source.taste.head_of(source.random, other)
        if not source.size(Call(f.FILTER_CONCEPT, (part.call,), (concept,))):
            return concept
    raise NoDraw


def claimed_concept(source: Source, target: int) -> str:
    """A concept that an entity is said to be of: one of its own, or one of another of its kind."""
    own = source.pools.concepts_of(target)
    if not source.nothing:
        return draw_from(source.random, own)
    source.nothing = False
    kind = source.kb.name_of(draw_from(source.random, source.kb.concepts_of(target)))
    other = draw_from(source.random, source.kb.instances_of(kind).tolist())
    theirs = [concept for concept in source.pools.concepts_of(other) if concept not in own]
    return draw_from(source.random, theirs)


def claimed_instance(source: Source, concept: str) -> int:
    """An entity that is said to be of a concept: one that is, or one that is like those."""
    own: list[int] = source.kb.instances_of(concept).tolist()
    one = draw_from(source.random, own)
    if not source.nothing:
        return one
    source.nothing = False
    mine = set(own)
    kinds: list[list[int]] = []
    for other in source.pools.concepts_of(one):
        if free := [n for n in source.kb.instances_of(other).tolist() if n not in mine]:
            kinds.append(free)
    return draw_from(source.random, min(kinds, key=len, default=[]))


def claimed_end(source: Source, part: DrawnPart) -> int:
    """What a part is said to hold: what it does, or something of that kind which it does not.

    That is half of the time what other facts of the part's relation lead to ("Is Stockholm the
    capital of Norway?"), else something of the same concept ("Is Bergen ...?").
    """
    if not source.nothing:
        return part.target
    source.nothing = False
    table, number = source.table(part.fact)
    if table is not source.kb.relational:
        raise NoDraw
    forward = int(table.object[number]) == part.target
    relation = source.kb.relations[int(table.predicate[number])]
    if source.taste.complete(relation, "forward" if forward else "backward") == OPEN:
        raise NoDraw  # what is not in a list with gaps may be so all the same
    if source.random.random() < 0.5 or not source.kb.is_entity(part.target):
        column = table.object if forward else table.subject
        facts = table.of_predicate(int(table.predicate[number]))
        others = column[facts]
    else:
        kind = draw_from(source.random, source.kb.concepts_of(part.target))
        others = source.kb.instances_of(source.kb.name_of(kind))
    found = source.outcome(part.call)
    assert isinstance(found, Located)
    free: list[int] = np.setdiff1d(others, found.ids).tolist()
    return draw_from(source.random, free)


def one_of(source: Source, part: DrawnPart) -> int:
    """An element that a choice is said to give: the one that it does, or another to choose from."""
    found = source.outcome(part.call)
    nodes: list[int] = []
    for given in part.call.inputs:
        there = source.outcome(given)
        if not isinstance(there, Located):
            raise NoDraw
        nodes += there.ids.tolist()
    names = found.strings()
    holds = source.random.random() < 0.5
    return draw_from(source.random, [n for n in nodes if (source.kb.name_of(n) in names) == holds])
