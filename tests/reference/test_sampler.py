"""Random knowledge bases and programs: repeatable, well typed, varied and mostly not empty."""

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .naive import SIGNATURES, Naive, check, normal_name
from .random_kb import random_kb
from .random_program import MAX_CALLS, MAX_DEPTH, ProgramSampler, pairs_of, well_typed_pairs

BASES, PROGRAMS = 60, 50


@pytest.fixture(scope="module")
def drawn() -> list[tuple[list[dict[str, Any]], list[str]]]:
    """Programs with their denotations, over many knowledge bases."""
    counts: Counter[tuple[str, str]] = Counter()
    found = []
    for seed in range(BASES):
        kb = random_kb(random.Random(seed))
        naive, sampler = Naive(kb), ProgramSampler(kb, random.Random(seed), counts)
        for _ in range(PROGRAMS):
            program = sampler.sample()
            found.append((program, naive.denotation(program)))
    return found


def test_pairs_follow_the_signatures() -> None:
    pairs = well_typed_pairs()
    # 14 sets for 17 functions of sets, 9 sets with facts for 4 QFilters, 2 values for 4 Verifys
    assert len(pairs) == len(set(pairs)) == 14 * 17 + 9 * 4 + 2 * 4
    assert ("FilterStr", "QFilterNum") in pairs and ("QFilterStr", "Count") in pairs
    assert ("And", "QFilterStr") not in pairs and ("FilterConcept", "QFilterStr") not in pairs
    assert ("QueryAttrQualifier", "VerifyStr") not in pairs and ("Count", "VerifyNum") not in pairs


def test_programs_are_well_typed(drawn: list[Any]) -> None:
    allowed = set(well_typed_pairs())
    for program, _ in drawn:
        check(program)
        assert set(pairs_of(program)) <= allowed
        assert len(program) <= MAX_CALLS
        depths: list[int] = []
        for call in program:
            depths.append(1 + max((depths[i] for i in call["dependencies"]), default=0))
        assert depths[-1] <= MAX_DEPTH
        json.dumps(program).encode()


def test_every_function_and_pair_occurs(drawn: list[Any]) -> None:
    functions = Counter(call["function"] for program, _ in drawn for call in program)
    roots = Counter(program[-1]["function"] for program, _ in drawn)
    pairs = Counter(pair for program, _ in drawn for pair in pairs_of(program))
    assert min(functions[f] for f in SIGNATURES) >= 40
    assert min(roots[f] for f in SIGNATURES) >= 5
    assert min(pairs[pair] for pair in well_typed_pairs()) >= 5


def test_most_denotations_are_not_empty(drawn: list[Any]) -> None:
    full = [bool(denotation) for _, denotation in drawn]
    assert sum(full) / len(full) >= 0.65
    telling = [
        bool(denotation)
        for program, denotation in drawn
        if not program[-1]["function"].startswith(("Verify", "Count"))
    ]
    assert sum(telling) / len(telling) >= 0.6
    answers = Counter(d[0] for p, d in drawn if p[-1]["function"].startswith("Verify"))
    assert min(answers["yes"], answers["no"]) / answers.total() >= 0.2
    assert {0, 1, 2} <= {len(denotation) for _, denotation in drawn}


def test_knowledge_bases_are_awkward() -> None:
    bases = [random_kb(random.Random(seed)) for seed in range(BASES)]
    text = json.dumps(bases)
    for mark in ("<arg>", "<func>", "%", '\\"', "\\n", "\\t", "C999", "1e+22", "1e-07", "-0.0"):
        assert mark in text, mark
    seen: Counter[str] = Counter()
    for kb in bases:
        naive = Naive(kb)
        assert 6 <= len(kb["entities"]) <= 25 and 4 <= len(kb["concepts"]) <= 10
        entities = [normal_name(record["name"]) for record in kb["entities"].values()]
        concepts = [normal_name(record["name"]) for record in kb["concepts"].values()]
        seen["two entities"] += len(set(entities)) < len(entities)
        seen["two concepts"] += len(set(concepts)) < len(concepts)
        seen["entity and concept"] += not set(entities).isdisjoint(concepts)
        keys = {f.key for f in naive.attribute_facts}
        relations = {f.key for f in naive.relation_facts}
        facts = naive.attribute_facts + naive.relation_facts
        qkeys = {qkey for f in facts for qkey, _ in f.qualifiers}
        seen["key and relation"] += bool(keys & relations)
        seen["key and qualifier"] += bool(keys & qkeys)
        seen["all three"] += bool(keys & relations & qkeys)
        seen["self loop"] += any(f.head == f.tail for f in naive.relation_facts)
        seen["concept object"] += any(f.tail in kb["concepts"] for f in naive.relation_facts)
        seen["concept subject"] += any(f.head in kb["concepts"] for f in naive.relation_facts)
        triples = [(f.head, f.key, f.tail) for f in naive.relation_facts]
        seen["told twice"] += len(set(triples)) < len(triples)
        records = sum(len(record["relations"]) for record in kb["entities"].values())
        seen["both ends"] += records > len(naive.relation_facts)
        dates = [f.tail.content for f in naive.attribute_facts if f.tail.kind == "date"]
        seen["before year 0"] += any(day[0] < 0 for day in dates)
        seen["no unit"] += any(
            fact["value"]["type"] == "quantity" and "unit" not in fact["value"]
            for record in kb["entities"].values()
            for fact in record["attributes"]
        )
        seen["cycle"] += any(one in _above(naive, one) for one in naive.concepts)
    assert len(seen) == 14 and min(seen.values()) >= 3, seen


def _above(naive: Naive, concept: str) -> list[str]:
    found = list(naive.parents[concept])
    for one in found:
        found += [up for up in naive.parents[one] if up not in found]
    return found


@pytest.mark.parametrize("size", ["tiny", "small", "medium"])
def test_sizes_give_usable_knowledge_bases(size: str) -> None:
    for seed in range(20):
        kb = random_kb(random.Random(seed), size)
        sampler = ProgramSampler(kb, random.Random(seed))
        for _ in range(10):
            Naive(kb).denotation(sampler.sample())


def test_one_seed_gives_one_result_whatever_the_hash_seed() -> None:
    code = (
        "import json, random\n"
        f"from {__package__}.random_kb import random_kb\n"
        f"from {__package__}.random_program import ProgramSampler\n"
        "for seed in range(3):\n"
        "    kb = random_kb(random.Random(seed))\n"
        "    sampler = ProgramSampler(kb, random.Random(seed))\n"
        "    print(json.dumps([kb, [sampler.sample() for _ in range(40)]]))\n"
    )
    root = Path(__file__).resolve().parents[__package__.count(".") + 1]
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=root,
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1] and outputs[0]
