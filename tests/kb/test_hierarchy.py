"""Concept hierarchies of every shape: what they mean, and what they cost."""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kb import Builder, KnowledgeBase, load
from kb import hierarchy as module
from kb.columns import by_name
from kb.problems import check
from kb.rdf import writer
from kb.snapshot import write_snapshot
from kopl.sparql.engines import embedded
from kopl_base.errors import KoplError
from kopl_cli import main

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
    assert kb.concepts_with_instances() == sorted(set().union(*of.values()))
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
    assert sum(column.nbytes for column in by_name(kb.arrays).values()) < 40e6
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


@pytest.fixture(scope="module")
def deep() -> KnowledgeBase:
    """A chain of 20,000 concepts: 200 million pairs of an entity and a concept."""
    return built(SHAPES["chain"], MANY)


@pytest.mark.parametrize("name", ["oxigraph", "oxigraph-memory", "rdflib"])
def test_no_store_of_deep_hierarchies(
    deep: KnowledgeBase, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store was being built until the memory ended."""
    pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed (extra 'sparql')")
    if name == "rdflib":
        pytest.importorskip("rdflib", reason="rdflib is not installed (extra 'sparql')")
    monkeypatch.setenv("KOPL_CACHE_DIR", str(tmp_path))
    begin = time.process_time()
    with pytest.raises(KoplError, match=r"200,010,000 triples.*--engine kopl.*--verify 0"):
        embedded(name, deep)
    assert time.process_time() - begin < 2
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_questions_on_deep_hierarchies(
    deep: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed (extra 'sparql')")
    monkeypatch.setenv("KOPL_CACHE_DIR", str(tmp_path / "cache"))
    write_snapshot(deep, tmp_path / "deep.kopl")
    out = tmp_path / "questions.jsonl"
    command = ["generate", "--kb", str(tmp_path / "deep.kopl"), "-n", "1", "-o", str(out)]
    assert main(command) == 2
    assert "kopl generate: --verify 0" in capsys.readouterr().err
    assert not list(tmp_path.glob("*questions*"))
    assert main([*command, "--verify", "0"]) == 0


@pytest.mark.parametrize("held", [False, True])
def test_deep_hierarchies_are_said(
    held: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kb = built(SHAPES["chain"], 100)  # 5,050 pairs
    monkeypatch.setattr(writer, "SAID", 5051)
    for _ in writer.ntriples(kb, held=held):
        pass
    assert not caplog.messages
    monkeypatch.setattr(writer, "SAID", 5050)
    assert "".join(writer.ntriples(kb, held=held)).count("instance_of") == 5050
    (said,) = caplog.messages
    assert "5,050 triples" in said and ("--verify 0" in said) == held
    monkeypatch.setattr(writer, "MOST", 5049)
    if held:
        with pytest.raises(KoplError, match="5,049 are the most for a store"):
            writer.ntriples(kb, held=True)
    else:
        assert next(writer.ntriples(kb))


def test_many_entities_are_no_deep_hierarchy(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writer, "SAID", 10)
    monkeypatch.setattr(writer, "MOST", 20)
    assert "".join(writer.ntriples(built(SHAPES["chain"], 20), held=True)) and not caplog.messages
