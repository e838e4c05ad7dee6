"""Generation: kept questions a second, the share of candidates kept, time by stage, memory.

    python benchmarks/generation.py --kb world
    python benchmarks/generation.py --kb KB -n 5000 --workers 1,2

Default options: the full mix of strategies, ten choices, the check that every clause matters, one
query in a hundred compared on Oxigraph. "Seconds" is what a user waits for, from the command to the
file; the stages are timed in one more run in this process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import Any

# This file has the name of the package that it measures, and its folder comes first.
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent]

from generation import blocks, judge  # noqa: E402
from generation.blocks import (  # noqa: E402
    Maker,
    Options,
    put_together,
)
from generation.choices import Choices  # noqa: E402
from generation.derivation import Derivation  # noqa: E402
from generation.judge import Unseen  # noqa: E402
from generation.sampler import Sampler  # noqa: E402
from generation.stats import SHARES  # noqa: E402
from kb import load  # noqa: E402
from kopl.example import Example  # noqa: E402

STAGES = (
    ("drawing", Sampler, "sample"),
    ("wording", Derivation, "question"),
    ("judging", judge.Judge, "verdict"),
    ("choices", Choices, "draw"),
    ("SPARQL", blocks, "query_of"),
)


def main() -> None:
    """Measure and print tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--kb", default="world", help="a knowledge base, its snapshot, or 'world'")
    parser.add_argument("-n", "--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", default="1,2", help="numbers of workers (default: 1,2)")
    arguments = parser.parse_args()
    kb = load(arguments.kb)
    print(f"{kb}; {arguments.count} questions, seed {arguments.seed}.\n")
    print("| workers | seconds | kept a second | MB of the largest process |")
    print("| --- | --- | --- | --- |")
    examples: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for workers in arguments.workers.split(","):
            file = Path(folder) / f"{workers}.jsonl"
            seconds, peak = _command(arguments, workers, file)
            rate = arguments.count / seconds
            print(f"| {workers} | {seconds:.1f} | {rate:.0f} | {peak:.0f} |", flush=True)
            examples = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    _mix(examples)
    _stages(kb, arguments.count, arguments.seed)


def _command(arguments: argparse.Namespace, workers: str, file: Path) -> tuple[float, float]:
    command = [sys.executable, "-m", "kopl", "generate", "--kb", arguments.kb, "-o", str(file)]
    command += ["-n", str(arguments.count), "-s", str(arguments.seed), "--workers", workers]
    begin = time.perf_counter()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    seconds = time.perf_counter() - begin
    # Of all children until now: the largest one.
    return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def _mix(examples: list[dict[str, Any]]) -> None:
    count = len(examples)
    types = Counter(example["type"] for example in examples)
    print("\n| type | percent | aim |\n| --- | --- | --- |")
    for name, share in SHARES.items():
        print(f"| {name} | {types[name] / count * 100:.1f} | {share} |")
    calls = mean(len(example["program"]) for example in examples)
    words = mean(len(example["question"].split()) for example in examples)
    tokens = mean(len(example["sparql"].split()) for example in examples)
    hops = [example["hops"] for example in examples]
    print(
        f"\nMean: {words:.2f} words, {calls:.2f} calls, {tokens:.2f} SPARQL tokens;"
        f" {sum(h >= 2 for h in hops) / count:.1%} multi-hop,"
        f" {sum(h >= 5 for h in hops) / count:.1%} with five hops or more."
    )


def _stages(kb: Any, count: int, seed: int) -> None:
    seconds: defaultdict[str, float] = defaultdict(float)
    calls: Counter[str] = Counter()
    with _timed(seconds, calls):
        begin = time.perf_counter()
        maker = Maker(kb, options=Options(verify=0.0))
        found = list(_examples(maker, count, seed))
        whole = time.perf_counter() - begin
    candidates = len(found) + sum(maker.reasons.values())
    print(
        f"\nOf {candidates} candidates {len(found) / candidates:.1%} are kept; not kept:", end=" "
    )
    print(", ".join(f"{why} {n / candidates:.1%}" for why, n in maker.reasons.most_common()) + ".")
    print("\n| stage | calls | seconds | share |\n| --- | --- | --- | --- |")
    for name, _, _ in STAGES:
        print(f"| {name} | {calls[name]} | {seconds[name]:.2f} | {seconds[name] / whole:.1%} |")
    rest = whole - sum(seconds.values())
    print(f"| the rest | | {rest:.2f} | {rest / whole:.1%} |")


def _examples(maker: Maker, count: int, seed: int) -> Iterator[Example]:
    return put_together((maker.block(seed, at) for at in range(count)), count, Unseen())


@contextmanager
def _timed(seconds: dict[str, float], calls: Counter[str]) -> Iterator[None]:
    """Every stage's function with a clock around it."""

    def with_clock(stage: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **options: Any) -> Any:
            begin = time.perf_counter()
            try:
                return work(*given, **options)
            finally:
                seconds[stage] += time.perf_counter() - begin
                calls[stage] += 1

        return timed

    before = [(owner, name, getattr(owner, name)) for _, owner, name in STAGES]
    for (stage, owner, name), (_, _, work) in zip(STAGES, before, strict=True):
        setattr(owner, name, with_clock(stage, work))
    try:
        yield
    finally:
        for owner, name, work in before:
            setattr(owner, name, work)


if __name__ == "__main__":
    main()
