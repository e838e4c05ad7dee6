"""Speed of sampling logical queries, beside the public code's, on FB15k-237 with one core.

    KOPL_DATA=DIR python benchmarks/logical/sampling.py --queries 50 --graph-queries 5

For each type of EFO-1, BetaE and EFOk's complete space, queries are sampled until as many are kept
(answers on both graphs, limits and negations checked); making the shared tables of the graph is
timed apart. A type's speed is its kept queries by the processor time that they take; the tables
have the median over the types of a group, the slowest type, and kept queries by attempts. The
public code's speeds were measured on one core with the same graph. A type that does not yield its
queries within --seconds is named with what it yielded; the script fails on nothing.

Operator trees are evaluated set by set while they are grounded: these sets are what negated
branches are drawn from, and a query of two or three anchors costs 50 to 300 us, of which setting up
a search (`cqa.answering.walk`) would be half. Query graphs go through `cqa.answering.walk`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from cqa.graphs.readers import read_graph
from cqa.sampling.kinds import sampler
from cqa.sampling.options import Options
from cqa.sampling.sample import Kind
from cqa.sampling.source import Source
from cqa.types.registry import betae_types, efo1_types, graph_types
from cqa.types.tree import Tree, read_formula

# Queries a second of the public code, FB15k-237, one core, and how many times faster we aim to be.
EFO1: dict[Any, float] = {
    (1, 1): 2_049, (1, 2): 232, (1, 3): 116,
    (2, 1): 606, (2, 2): 165, (2, 3): 86,
    (3, 1): 117, (3, 2): 53, (3, 3): 36,
}  # fmt: skip
BETAE: dict[Any, float] = {
    "2p": 46, "3p": 31, "2i": 294, "3i": 237, "pi": 45, "ip": 241, "2u": 927, "up": 99,
    "2in": 9.8, "3in": 4.2, "pin": 20, "pni": 25, "inp": 11,
}  # fmt: skip
# (free, existential, topology); measured for one free variable only.
EFOK: dict[Any, float] = {
    (1, 0, "SDAG"): 18, (1, 1, "SDAG"): 1.8, (1, 1, "multi"): 1.3,
    (1, 2, "SDAG"): 0.22, (1, 2, "multi"): 0.42, (1, 2, "cyclic"): 0.17,
}  # fmt: skip


@dataclass
class Group:
    """What was measured of one group of types."""

    speeds: list[tuple[float, str]] = field(default_factory=list)
    kept: int = 0
    attempts: int = 0


class Bench:
    """Samples types and keeps their speeds."""

    def __init__(self, source: Source, seed: int, seconds: float) -> None:
        self._source, self._seed, self._seconds = source, seed, seconds
        self.short: list[str] = []

    def measure(self, group: Group, kind: Kind, count: int) -> None:
        """Sample so many queries of a type."""
        random = Random(f"{self._seed}/{kind.formula}")
        keys: set[str] = set()
        attempts = 0
        begin = time.process_time()
        made = sampler(kind, self._source, Options())
        while len(keys) < count and time.process_time() - begin < self._seconds:
            attempts += 1
            found = made.attempt(random)
            if found is not None:
                keys.add(found[0])
        seconds = time.process_time() - begin
        if len(keys) < count:
            self.short.append(f"{kind.id} {kind.formula}: {len(keys)} in {seconds:.0f} s")
        group.speeds.append((len(keys) / seconds, f"{kind.id} {kind.formula}"))
        group.kept += len(keys)
        group.attempts += attempts


def show(
    title: str, groups: Mapping[Hashable, Group], public: Mapping[Any, float], aim: int, where: str
) -> None:
    """Print one table; the aim is for groups with ``where`` in their name."""
    print(f"\n{title}\n")
    print("| group | types | kept of attempts | median/s | public | times | aim | slowest/s |")
    print("|---|---|---|---|---|---|---|---|")
    for key, found in groups.items():
        name = ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)
        median = statistics.median(speed for speed, _ in found.speeds)
        old = public.get(key)
        beside = f"{old:,} | {median / old:,.0f}" if old else "– | –"
        beside += f" | {aim}" if old and where in name else " | –"
        speed, slowest = min(found.speeds)
        print(
            f"| {name} | {len(found.speeds)} | {found.kept / max(1, found.attempts):.0%}"
            f" | {median:,.0f} | {beside} | {speed:,.1f} {slowest} |"
        )


def _form(formula: str) -> tuple[str, Tree]:
    return formula, read_formula(formula)


def main() -> None:
    """Sample and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=50, help="of an EFO-1 type (default: 50)")
    parser.add_argument("--graph-queries", type=int, default=5, help="of an EFOk type (default: 5)")
    parser.add_argument("--every", type=int, default=4, help="every so manieth EFOk type")
    parser.add_argument("--seconds", type=float, default=60, help="at most for a type")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if not (folder := os.environ.get("KOPL_DATA")):
        sys.exit("KOPL_DATA is not set to a folder with fb15k237")
    graph = read_graph(Path(folder) / "fb15k237")
    begin = time.process_time()
    source = Source(graph)
    tables = time.process_time() - begin
    assert len(source.pairs.keys)
    print(f"tables of relations by entity: {tables:.2f} s", end="; ")
    print(f"with those of linked pairs: {time.process_time() - begin:.2f} s")
    bench = Bench(source, arguments.seed, arguments.seconds)

    # Look-ups of a relation are made when it is first asked for, whatever the type.
    warm = sampler(Kind("3p", *_form("(p,(p,(p,(e))))")), source)
    random = Random(arguments.seed)
    for _ in range(2000):
        warm.attempt(random)

    trees: dict[Hashable, Group] = defaultdict(Group)
    begin = time.process_time()
    for row in efo1_types():
        kind = Kind(row.id, row.formula, row.tree)
        bench.measure(trees[row.anchors, row.depth], kind, arguments.queries)
    total = time.process_time() - begin
    show("EFO-1, by anchors and depth", trees, EFO1, 5, "")
    print(f"\n301 types x {arguments.queries} queries: {total:.1f} s on one core")

    named: dict[Hashable, Group] = defaultdict(Group)
    for row in betae_types():
        kind = Kind(row.id, row.formula, row.tree)
        bench.measure(named[row.id], kind, 4 * arguments.queries)
    show("BetaE", named, BETAE, 20, "n")

    graphs: dict[Hashable, Group] = defaultdict(Group)
    for given in graph_types()[:: arguments.every]:
        kind = Kind(given.id, given.formula, given.query)
        group = graphs[given.free, given.existential, given.topology]
        bench.measure(group, kind, arguments.graph_queries)
    show("EFOk, by free variables, existential variables and topology", graphs, EFOK, 50, "")
    for line in bench.short:
        print(f"short: {line}")


if __name__ == "__main__":
    main()
