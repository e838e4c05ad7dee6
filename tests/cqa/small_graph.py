"""A small random graph with splits, dense enough that queries of every type have hard answers."""

from __future__ import annotations

from functools import lru_cache
from random import Random

import numpy as np

from cqa.graphs.graph import Graph, from_triples
from tests.cqa.brute import Triple

ENTITIES, RELATIONS = 16, 5


@lru_cache(maxsize=1)
def parts() -> tuple[list[Triple], list[Triple], list[Triple]]:
    """The triples of train, valid and test."""
    random = Random(5)
    triples = [
        (head, relation, tail)
        for head in range(ENTITIES)
        for relation in range(RELATIONS)
        for tail in range(ENTITIES)
        if random.random() < 0.12
    ]
    random.shuffle(triples)
    cut, end = int(0.7 * len(triples)), int(0.85 * len(triples))
    return triples[:cut], triples[cut:end], triples[end:]


def small_graph() -> Graph:
    """The graph of `parts`."""
    arrays = [np.array(part, np.int32) for part in parts()]
    return from_triples(arrays, entity_count=ENTITIES, relation_count=RELATIONS)


def observed() -> list[Triple]:
    """What queries of test may use."""
    return [*parts()[0], *parts()[1]]


def full() -> list[Triple]:
    """What queries of test are answered on."""
    return [*observed(), *parts()[2]]
