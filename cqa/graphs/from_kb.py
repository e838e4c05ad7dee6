"""The graph of a knowledge base: its relational facts, and what is an instance of which concept.

Entities of the graph are the nodes of the knowledge base, with the same numbers, named by their
ids; qualifiers and attributes are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal

import numpy as np

from cqa.graphs.graph import SPLITS, Graph, from_triples
from cqa.graphs.names import Names
from kb.arrays import EMPTY, Ids, as_ids
from kb.store import KnowledgeBase
from kb.values import Date, Year
from kopl_base.errors import KoplError

# The relation from an entity to its concepts and all above them.
INSTANCE_OF = "instance of"
SHARES = (8.0, 1.0, 1.0)
# Links from entities to concepts: a graph with more of them takes tens of gigabytes.
MOST_INSTANCES = 100_000_000


def graph_from_kb(
    kb: KnowledgeBase,
    *,
    shares: Sequence[float] = SHARES,
    seed: int = 0,
    by: Literal["random", "time"] = "random",
    time: str = "point in time",
    concepts: bool = True,
) -> Graph:
    """The graph of a knowledge base with its relational facts in train, valid and test.

    ``by``: "random" gives each relation's facts by the shares, except that every entity and every
    relation keeps a fact in train. "time" puts the facts in the order of the qualifier ``time``
    (the earliest of several values); those without one are in train, and those of valid and test
    whose entities or relation train lacks are left out. Facts with the same ends and relation are
    one, the earliest. ``concepts`` adds the relation "instance of", from entities to their concepts
    and all above, in train. Raises KoplError for shares that are not three numbers of 0 or more,
    the first above 0, and for more than 100 million links to concepts.
    """
    if len(shares) != len(SPLITS) or min(shares) < 0 or not 0 < shares[0] < float("inf"):
        raise KoplError(
            f"the shares of {', '.join(SPLITS)} are three numbers from 0 on, the first above 0, not"
            f" {list(shares)}"
        )
    if not sum(shares) < float("inf"):
        raise KoplError(f"shares must be finite numbers, not {list(shares)}")
    if by not in ("random", "time"):
        raise KoplError(f"there is no split by {by!r}; give random or time")
    facts = kb.relational
    triples = np.stack([facts.subject, facts.predicate, facts.object], axis=1)
    if by == "random":
        parts = _by_share(np.unique(triples, axis=0), shares, Random(seed))
    else:
        parts = _by_time(kb, triples, shares, time)
    names = list(kb.relations)
    if concepts:
        if INSTANCE_OF in names:
            raise KoplError(
                f"the knowledge base has a relation {INSTANCE_OF!r} of its own; leave concepts out"
            )
        parts[0] = np.concatenate([parts[0], _instances(kb, len(names))])
        names.append(INSTANCE_OF)
    return from_triples(
        parts,
        entities=Names.of([kb.id_of(node) for node in range(kb.node_count)], "id"),
        relations=Names.of(names, "relation"),
    )


def _instances(kb: KnowledgeBase, relation: int) -> Ids:
    if kb.memberships > MOST_INSTANCES:
        raise KoplError(
            f"the relation {INSTANCE_OF!r} would have up to {kb.memberships:,} links, as the"
            f" concepts stand deep below each other; {MOST_INSTANCES:,} are the most: leave"
            " concepts out"
        )
    found: dict[tuple[int, ...], Ids] = {}
    rows = []
    for entity in range(kb.entity_count):
        direct = tuple(kb.concepts_of(entity))
        if direct not in found:
            found[direct] = as_ids(kb.all_concepts_of(entity))
        rows.append(found[direct])
    owners = np.repeat(np.arange(kb.entity_count, dtype=np.int32), [len(row) for row in rows])
    links = np.concatenate([EMPTY, *rows])
    return np.stack([owners, np.full_like(owners, relation), links], axis=1)


def _by_share(triples: Ids, shares: Sequence[float], random: Random) -> list[Ids]:
    """Stratified by relation; the facts that come first at an entity or relation stay in train."""
    order = list(range(len(triples)))
    random.shuffle(order)
    seen: set[tuple[str, int]] = set()
    free: dict[int, list[int]] = {}
    counts: dict[int, int] = {}
    part_of = np.zeros(len(triples), np.int8)
    rows = triples.tolist()
    for at in order:
        head, relation, tail = rows[at]
        counts[relation] = counts.get(relation, 0) + 1
        marks = {("entity", head), ("entity", tail), ("relation", relation)}
        if marks <= seen:
            free.setdefault(relation, []).append(at)
        seen |= marks
    owed = [0.0, 0.0]
    for relation in sorted(counts):
        choices = free.get(relation, [])
        for number, share in enumerate(shares[1:]):
            # What rounding leaves over goes to the relations that follow.
            owed[number] += counts[relation] * share / sum(shares)
            taken = min(len(choices), round(owed[number]))
            owed[number] -= taken
            part_of[choices[:taken]] = number + 1
            choices = choices[taken:]
    return [triples[part_of == number] for number in range(len(SPLITS))]


def _by_time(kb: KnowledgeBase, triples: Ids, shares: Sequence[float], key: str) -> list[Ids]:
    dated: list[tuple[tuple[int, int, int], int]] = []
    always: list[int] = []
    for fact in range(len(triples)):
        values = kb.qualifier_map(int(kb.relational.qualifiers[fact])).get(key, [])
        times = [
            (value.year, value.month, value.day) if isinstance(value, Date) else (value.year, 0, 0)
            for value in values
            if isinstance(value, Date | Year)
        ]
        if times:
            dated.append((min(times), fact))
        else:
            always.append(fact)
    if not dated:
        raise KoplError(f"no relational fact has a time as qualifier {key!r} to split by")
    dated.sort()
    known = {tuple(row) for row in triples[always].tolist()}
    distinct: list[int] = []
    for _, fact in dated:
        row = tuple(triples[fact].tolist())
        if row not in known:
            known.add(row)
            distinct.append(fact)
    total = sum(shares)
    cuts = [int(len(distinct) * sum(shares[:end]) / total) for end in (1, 2)]
    chosen = [always + distinct[: cuts[0]], distinct[cuts[0] : cuts[1]], distinct[cuts[1] :]]
    parts = [triples[rows] for rows in chosen]
    nodes, used = np.unique(parts[0][:, [0, 2]]), np.unique(parts[0][:, 1])
    return [
        part[np.isin(part[:, [0, 2]], nodes).all(axis=1) & np.isin(part[:, 1], used)]
        for part in parts
    ]
