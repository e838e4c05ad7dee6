"""Concept hierarchies of every shape: what they mean, and what they cost."""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kb import Builder, KnowledgeBase, load
from kb import hierarchy as module
from kb.check import check
from kb.errors import KoplError
from kb.snapshot import write_snapshot

MANY = 20_000
SIDE = 141  # of a square grid of as many


def built(parents: Callable[[int], list[int]], concepts: int, links: int = 1) -> KnowledgeBase:
    """A knowledge base with so many entities as concepts, each an instance of some of them."""
    builder = Builder()
    for number in range(concepts):
        above = [f"C{parent}" for parent in parents(number) if parent < concepts]
        builder.add_concept(f"C{number}", f"kind {number}", above)
    for number in range(concepts):
        of = [f"C{number * (at + 1) % concepts}" for at in range(links)]
        builder.add_entity(f"E{number}", f"thing {number}", of)
    return builder.build()


def tangled(seed: int, links: int = 2) -> KnowledgeBase:
    """Concepts below others at random, some in cycles, some below themselves."""
    rng = random.Random(seed)
    concepts = rng.choice([1, 2, 5, 12, 30])
    most = rng.choice([1, 2, 4])
    forward = rng.random() < 0.5  # mostly without cycles
    chosen = [
        [rng.randrange(at + 1 if forward and rng.random() < 0.95 else concepts)
         for _ in range(rng.randrange(most + 1))]
        for at in range(concepts)
    ]  # fmt: skip
    return built(chosen.__getitem__, concepts, links)


def naive_ancestors(kb: KnowledgeBase, concept: int) -> set[int]:
    found, todo = {concept}, [concept]
    while todo:
        for parent in kb.parents(todo.pop()):
            if parent not in found:
                found.add(parent)
                todo.append(parent)
    return found


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("seed", range(60))
def test_as_the_naive_closure(
    seed: int, written: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Both as lists and by intervals, from a snapshot as well."""
    if not written:
        monkeypatch.setattr(module, "FREE", -1)
        monkeypatch.setattr(module, "WRITTEN_OUT", 0)
    kb = tangled(seed)
    assert ("member" in kb.arrays) == written
    if seed % 10 == 0:
        write_snapshot(kb, tmp_path / "kb.kopl")
        kb = load(tmp_path / "kb.kopl")
    concepts = range(kb.entity_count, kb.node_count)
    above = {concept: naive_ancestors(kb, concept) for concept in concepts}
    of = {
        entity: sorted(set().union(*(above[c] for c in kb.concepts_of(entity))))
        for entity in range(kb.entity_count)
    }
    for concept in concepts:
        assert kb.ancestors(concept) == sorted(above[concept])
        members = [entity for entity, known in of.items() if concept in known]
        found = kb.instances_of(kb.name_of(concept))
        assert found.tolist() == members and found.dtype == np.int32
    assert [kb.all_concepts_of(entity) for entity in of] == list(of.values())
    pairs = sum(map(len, of.values()))
    assert kb.memberships == pairs if written else kb.memberships >= pairs
    cycles = {
        tuple(c for c in concepts if c in above[concept] and concept in above[c])
        for concept in concepts
    }
    wanted = [list(c) for c in sorted(cycles) if len(c) > 1 or c[0] in kb.parents(c[0])]
    assert kb.cycles() == wanted


SHAPES: dict[str, Callable[[int], list[int]]] = {
    "chain": lambda n: [n + 1],
    "chain, from the top": lambda n: [n - 1] if n else [],
    "cycle": lambda n: [(n + 1) % MANY],
    "cycles that share": lambda n: [(n + 1) % MANY, n * 7 % MANY],
    "ladder": lambda n: [n // 2 * 2 + 2, n // 2 * 2 + 3],
    "diamonds": lambda n: [n + 1, n + 2] if n % 3 == 0 else [n - n % 3 + 3],
    "grid": lambda n: [n + SIDE, *([n + 1] if n % SIDE < SIDE - 1 else [])],
    "star": lambda n: list(range(1, MANY)) if n == 0 else [],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_many_concepts(shape: str) -> None:
    """The lists would have up to 400 million numbers."""
    parents = SHAPES[shape]
    begin = time.process_time()
    kb = built(parents, MANY)
    assert time.process_time() - begin < 5  # half a second; without intervals it did not end
    assert sum(column.nbytes for column in kb.arrays.values()) < 40e6
    rng = random.Random(1)
    for concept in rng.sample(range(MANY), 3):
        node = kb.node(f"C{concept}")
        above = naive_ancestors(kb, node)
        assert kb.ancestors(node) == sorted(above)
        assert kb.all_concepts_of(kb.node(f"E{concept}")) == sorted(above)
        for high in rng.sample(sorted(above), min(3, len(above))):
            members = kb.instances_of(kb.name_of(high))
            assert concept in members  # the entities were numbered as the concepts
    counted = time.process_time()
    sizes = [len(kb.instances_of(f"kind {number}")) for number in range(0, MANY, 100)]
    assert time.process_time() - counted < 2 and min(sizes) >= 1


def test_memory_of_a_long_cycle() -> None:
    tracemalloc.start()
    try:
        kb = built(SHAPES["cycle"], MANY)
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
    (problem,) = (found for found in check(kb).found if found.code == "concept-cycle")
    assert problem.place == "concepts/C0"
    assert problem.message.endswith("C18, C19 and 19980 more")


def test_a_tangle_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_INTERVALS", 500)
    with pytest.raises(KoplError, match="hierarchy of the 441 concepts is too tangled"):
        built(lambda n: [n + 21, *([n + 1] if n % 21 < 20 else [])], 21 * 21)
