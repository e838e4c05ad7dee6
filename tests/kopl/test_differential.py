"""The executor against the naive one: random programs on random knowledge bases."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from kb import KnowledgeBase, from_kqapro
from kopl.errors import ExecutionError
from kopl.executor import Executor
from kopl.functions import FUNCTIONS
from kopl.program import Call
from kopl.text import read, to_json
from tests.kopl.strategies import documents, programs
from tests.reference.naive import Naive, NaiveExecutionError
from tests.reference.random_kb import random_kb
from tests.reference.random_program import ProgramSampler, well_typed_pairs
from tests.reference.shares import Shares

# KOPL_DIFFERENTIAL raises the number for a longer run.
PROGRAMS = int(os.environ.get("KOPL_DIFFERENTIAL", "20000"))
PER_KB = 100


def _typed_pairs_of_declarations() -> set[tuple[str, str]]:
    return {
        (giver.name, taker.name)
        for giver in FUNCTIONS.values()
        for taker in FUNCTIONS.values()
        if any(needed.accepts(giver.output) for needed in taker.inputs)
    }


def test_the_sampler_and_the_declarations_agree_on_what_types() -> None:
    assert set(well_typed_pairs()) == _typed_pairs_of_declarations()


def test_random_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """Equal denotations on PROGRAMS programs, and the shares that make this count."""
    wanted: Counter[Any] = Counter()
    shares = Shares()
    for seed in range(PROGRAMS // PER_KB):
        rng = random.Random(seed)
        document = random_kb(rng)
        naive, executor = Naive(document), Executor(from_kqapro(document))
        sampler = ProgramSampler(document, rng, counts=wanted)
        batch = [sampler.sample() for _ in range(PER_KB)]
        together = list(executor.run_many(batch))
        for program, shared in zip(batch, together, strict=True):
            expected = naive.denotation(program)
            found = executor.run(program)
            assert found.denotation == expected, (seed, program)
            assert getattr(shared, "denotation", shared) == expected, (seed, program)
            shares.add(program, expected)
    with capsys.disabled():
        print(f"\n{shares}")
    shares.check()


@pytest.mark.parametrize("seed", range(40))
def test_strict_mode(seed: int) -> None:
    """Strict mode fails on the same programs, and gives the same answers on the others."""
    rng = random.Random(seed)
    document = random_kb(rng)
    naive = Naive(document, strict=True)
    executor = Executor(from_kqapro(document), strict=True)
    sampler = ProgramSampler(document, rng)
    for _ in range(100):
        program = sampler.sample()
        try:
            expected: Any = naive.denotation(program)
        except NaiveExecutionError:
            expected = ExecutionError
        try:
            found: Any = executor.denote(program)
        except ExecutionError:
            found = ExecutionError
        assert found == expected, program


def test_large_knowledge_bases_take_the_other_branches() -> None:
    """Sets of hundreds of nodes go through the marked-table paths; the results are the same."""
    for seed in range(3):
        rng = random.Random(f"large {seed}")
        document = _enlarged(rng)
        naive, executor = Naive(document), Executor(from_kqapro(document))
        sampler = ProgramSampler(document, rng)
        for _ in range(60):
            program = sampler.sample()
            assert executor.denote(program) == naive.denotation(program), (seed, program)


def _enlarged(rng: random.Random, parts: int = 40) -> dict[str, Any]:
    """Many small knowledge bases in one, with relations between them."""
    document: dict[str, Any] = {"concepts": {}, "entities": {}}
    for part in range(parts):
        for section, nodes in random_kb(rng).items():
            for id, node in nodes.items():
                document[section][f"{part}/{id}"] = _renamed(node, part)
    ids = list(document["entities"])
    for node in document["entities"].values():
        for relation in node["relations"]:
            if rng.random() < 0.5:
                relation["object"] = rng.choice(ids)
    return document


def _renamed(node: dict[str, Any], part: int) -> dict[str, Any]:
    changed = dict(node)
    for field in ("subclassOf", "instanceOf"):
        if field in node:
            changed[field] = [f"{part}/{id}" for id in node[field]]
    if "relations" in node:
        changed["relations"] = [{**r, "object": f"{part}/{r['object']}"} for r in node["relations"]]
    return changed


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(documents(), programs())
def test_corners(document: dict[str, Any], program: Call) -> None:
    """The same for programs that Hypothesis draws and shrinks."""
    expected = Naive(document).denotation(to_json(program))
    assert Executor(from_kqapro(document)).denote(program) == expected


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_drawn_programs_type(program: Call) -> None:
    from kopl.typecheck import check

    assert check(read(to_json(program)))[-1].call == program


def test_same_denotation_for_every_hash_seed(tmp_path: Any) -> None:
    """Programs run in processes with other hash seeds print the same bytes."""
    import json
    import subprocess
    import sys

    rng = random.Random(5)
    document = random_kb(rng)
    sampler = ProgramSampler(document, rng)
    (tmp_path / "kb.json").write_text(json.dumps(document))
    lines = [json.dumps({"program": sampler.sample()}) for _ in range(100)]
    (tmp_path / "programs.jsonl").write_text("\n".join(lines))
    outputs = set()
    for seed in ("0", "1", "2"):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "kopl",
                "run",
                "--kb",
                str(tmp_path / "kb.json"),
                "--no-cache",
                "--programs",
                str(tmp_path / "programs.jsonl"),
            ],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1


def test_threads_share_an_executor() -> None:
    """Eight threads on one executor give what one thread gives."""
    from concurrent.futures import ThreadPoolExecutor

    rng = random.Random(8)
    document = random_kb(rng)
    kb: KnowledgeBase = from_kqapro(document)
    sampler = ProgramSampler(document, rng)
    batch = [sampler.sample() for _ in range(300)]
    expected = [Naive(document).denotation(program) for program in batch]
    executor = Executor(kb)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(executor.denote, batch * 4)) == expected * 4
