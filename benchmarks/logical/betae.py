"""Answering BetaE's test queries of NELL995, beside a program of dictionaries and sets.

    KOPL_DATA=DIR python benchmarks/logical/betae.py --passes 7

The queries are half of the published ones: 8,511 of one hop, 2,000 of each other structure (those
in De Morgan's form, which say the same as 2u and up, are left out). The other program is
`dictionary.py` of this folder, written for these fourteen structures alone; it gives sets, ours
gives sorted arrays. Both begin with a query in their own form: a nested tuple there, `compiled` or
a `Batch` here. In one process, by the processor's time:

- *cold*: one pass over all queries with an index that was just made; look-ups that are made when
  they are first asked for count as answering;
- *warm*: the median of some passes after that, with the least and the most of them.

The order of the programs changes from pass to pass. Every answer is compared. The script fails
where two differ, and on nothing else.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import dictionary

from cqa.answering.answer import evaluate, evaluate_batch
from cqa.answering.template import Batch, Compiled, batches, compiled
from cqa.formats.betae import read_queries
from cqa.graphs.graph import from_triples
from cqa.graphs.links import Links
from cqa.graphs.readers import read_graph
from cqa.notation.trees import from_tree
from cqa.query import Query
from cqa.types import betae

QUERIES = "nell995/betae-test-queries-half.pkl"

THEIRS, COMPILED, PLAIN, TOGETHER = "dictionary", "compiled", "query", "batch"
WAYS = (THEIRS, COMPILED, PLAIN, TOGETHER)


@dataclass
class Structure:
    """The queries of one structure in the forms that they are answered from."""

    name: str
    tuples: list[Any]
    queries: list[Query]
    compiled: list[Compiled]
    batch: Batch
    cold: dict[str, float] = field(default_factory=dict)
    warm: dict[str, list[float]] = field(default_factory=lambda: {way: [] for way in WAYS})
    answers: int = 0

    def timed(self, way: str, links: Links, index: dictionary.Index) -> float:
        """The processor's seconds of one pass."""
        answer = dictionary.ANSWERS[self.name]
        begin = time.process_time()
        if way == THEIRS:
            for given in self.tuples:
                answer(index, given)
        elif way == COMPILED:
            for one in self.compiled:
                evaluate(one, links)
        elif way == PLAIN:
            for query in self.queries:
                evaluate(query, links)
        else:
            evaluate_batch(self.batch, links)
        return time.process_time() - begin

    def check(self, links: Links, index: dictionary.Index) -> None:
        """Fail where the answers differ."""
        answer = dictionary.ANSWERS[self.name]
        together = evaluate_batch(self.batch, links)
        for number, given in enumerate(self.tuples):
            theirs = sorted(answer(index, given))
            self.answers += len(theirs)
            for ours in (evaluate(self.compiled[number], links), together[number]):
                if ours.tuples[:, 0].tolist() != theirs:
                    sys.exit(f"{self.name}: the answers of {given} differ")


def read(data: Path) -> list[Structure]:
    """The structures of the queries, in the order of BetaE's tables."""
    tuples: dict[str, list[Any]] = defaultdict(list)
    queries: dict[str, list[Query]] = defaultdict(list)
    for kind, given in read_queries(data / QUERIES):
        name = betae.names(kind)[0]
        if name in dictionary.ANSWERS:
            tuples[name].append(given)
            queries[name].append(from_tree(betae.from_tuples(given)))
    found = []
    for name in dictionary.ANSWERS:
        (batch,) = batches(queries[name])
        own = [compiled(query) for query in queries[name]]
        found.append(Structure(name, tuples[name], queries[name], own, batch))
    return found


def made(make: Callable[[], Any], name: str) -> Any:
    """What a function makes; the processor's time is printed."""
    begin = time.process_time()
    found = make()
    print(f"{name}: {1000 * (time.process_time() - begin):.0f} ms")
    return found


def show(title: str, rows: list[Structure], seconds: Callable[[Structure, str], float]) -> None:
    """Print microseconds for a query, and how they compare."""
    print(f"\n{title}\n")
    print(
        "| | queries | answers of one | share of the work, % | dictionary, µs | one by one, µs |"
        " times its time | from `Query` | in batches, µs | times faster |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    whole = {way: sum(seconds(row, way) for row in rows) for way in WAYS}
    total = sum(len(row.tuples) for row in rows)
    lines = [
        (row.name, len(row.tuples), row.answers, {way: seconds(row, way) for way in WAYS})
        for row in rows
    ]
    lines.append(("all", total, sum(row.answers for row in rows), whole))
    for name, count, answers, own in lines:
        each = {way: own[way] / count * 1e6 for way in WAYS}
        share = 100 * own[THEIRS] / whole[THEIRS]
        print(
            f"| {name} | {count:,} | {answers / count:.0f} | {share:.0f}"
            f" | {each[THEIRS]:.2f} | {each[COMPILED]:.2f} | {own[COMPILED] / own[THEIRS]:.2f}"
            f" | {own[PLAIN] / own[THEIRS]:.2f} | {each[TOGETHER]:.2f}"
            f" | {own[THEIRS] / own[TOGETHER]:.1f} |"
        )


def main() -> None:
    """Read, answer, compare, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--passes", type=int, default=7, help="warm passes (default: 7)")
    arguments = parser.parse_args()
    if not (folder := os.environ.get("KOPL_DATA")):
        sys.exit(f"KOPL_DATA is not set to a folder with {QUERIES}")
    graph = read_graph(Path(folder) / "nell995")
    rows = read(Path(folder))
    triples = graph.triples()
    listed = [tuple(row) for row in triples.tolist()]
    index = made(lambda: dictionary.index(listed), "index of dictionaries")
    undirected = triples // [1, 2, 1]

    def fresh() -> Links:
        sizes = {"entity_count": graph.entity_count, "relation_count": graph.relation_count}
        return from_triples([undirected], ("train",), **sizes).full("train")

    # Each way begins with links that nothing was asked of.
    links = {way: made(fresh, f"index of links, for {way}") for way in WAYS if way != THEIRS}
    links[THEIRS] = links[COMPILED]
    gc.collect()
    gc.freeze()  # the collector need not look at the indexes again, which are many objects
    for way in WAYS:
        for row in rows:
            row.cold[way] = row.timed(way, links[way], index)
    for row in rows:
        row.check(links[TOGETHER], index)
    for number in range(arguments.passes):
        for way in WAYS[number % len(WAYS) :] + WAYS[: number % len(WAYS)]:
            for row in rows:
                row.warm[way].append(row.timed(way, links[way], index))

    show("Cold: the first pass", rows, lambda row, way: row.cold[way])
    show(
        f"Warm: the median of {arguments.passes} passes",
        rows,
        lambda row, way: statistics.median(row.warm[way]),
    )
    print("\nall queries in a pass, ms: least, median, most\n")
    for way in WAYS:
        passes = sorted(
            1000 * sum(row.warm[way][number] for row in rows) for number in range(arguments.passes)
        )
        print(f"- {way}: {passes[0]:.0f}, {statistics.median(passes):.0f}, {passes[-1]:.0f}")
    print("\nall answers are equal")


if __name__ == "__main__":
    main()
