"""What loading costs as a knowledge base grows; the full figures stand in docs/performance.md."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.loading import run, write
from kb.load import read

SMALL, LARGE = 8_000, 40_000


@pytest.mark.parametrize("ending", [".jsonl", ".json"])
def test_time_and_memory_follow_the_size(tmp_path: Path, ending: str) -> None:
    """Five times as much: at most ten times the time, and so many bytes for each entity."""
    costs = {}
    for size in (SMALL, LARGE):
        file = tmp_path / f"{size}{ending}"
        write(file, size, seed=1)
        costs[size] = run("load", file)[0]
    assert costs[LARGE]["processor"] < 10 * costs[SMALL]["processor"]
    if sys.platform == "linux":
        grown = (costs[LARGE]["peak"] - costs[SMALL]["peak"]) * 1e6 / (LARGE - SMALL)
        assert grown < 1700  # ten facts and four names; with tuples and sets of them 2,000


def test_both_forms_of_the_generated_knowledge_base(tmp_path: Path) -> None:
    """The benchmark loads what it says, and the same for the same seed."""
    files = [tmp_path / name for name in ("a.jsonl", "b.json", "c.jsonl")]
    for file, seed in zip(files, (3, 3, 4), strict=True):
        write(file, 500, seed)
    first, second, other = map(read, files)
    assert (first.entity_count, first.concept_count) == (500, 1000)
    assert len(first.literals) == 2500
    assert 2400 < len(first.relational) <= 2500
    assert first.fingerprint == second.fingerprint != other.fingerprint
    # Another one means that snapshots look different: those that stand would not be made again.
    assert first.fingerprint.startswith("3318da7a3b642f55")
