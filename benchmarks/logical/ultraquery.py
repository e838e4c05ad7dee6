"""UltraQuery's published weights, zero-shot, beside the published rows.

    KOPL_DATA=DIR python benchmarks/logical/ultraquery.py nell995 -n 500 -o FILE
    KOPL_DATA=DIR python benchmarks/logical/ultraquery.py fb15k237 -n 200 -o FILE
    python benchmarks/logical/ultraquery.py QUERIES --graph GRAPH -n 100 -o FILE

``nell995`` are half of BetaE's official test queries (fourteen types; 2u and 2u1p filtered as
published, by `cqa.hardness` with ``compat="paper"``), ``fb15k237`` half of Query2box's (nine
types). FB15k-237 was among the graphs that the weights were trained on. Any other name is a file of
queries, over the graph of a file or folder.

The first N queries of each type are taken in an order that the seed decides, a few of each type at
a time. FILE gets a line for each query when it is done; run again, the script goes on behind the
lines that are there. The table has the MRR of each type with an interval of 95 % over queries, the
published figure, and the processor's time of a projection.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import torch

from cqa.evaluation.judging import Judge
from cqa.formats.samples import read_samples
from cqa.graphs.graph import Graph
from cqa.graphs.readers import read_graph
from cqa.hardness.hardness import Hardness
from cqa.models.embed.ultra import UltraQuery, UltraQuerySettings
from cqa.models.plan import compiled
from cqa.sampling.sample import Sample
from cqa.types import betae

SETS = {
    "nell995": ("nell995/betae-test-queries-half.pkl", "nell995"),
    "fb15k237": ("fb15k237/query2box-test-half.jsonl", "fb15k237"),
}
# Of the hardness paper, MRR in percent; 2u and 2u1p after filtering.
TYPES = ("1p", "2p", "3p", "2i", "3i", "pi", "ip", "2u", "up", "2in", "3in", "pin", "pni", "inp")
PUBLISHED = {
    "nell995": "38.9 11.2 9.7 36.3 47.7 25.1 15.6 21.3 7.0 4.5 8.2 3.2 2.7 4.7",
    "fb15k237": "40.6 11.5 8.9 35.7 51.0 29.6 18.6 33.6 7.3 5.3 9.6 3.6 3.7 3.8",
    "icews18+": "6.3 1.2 1.2 7.0 11.7 8.8 1.3 3.3 1.2",
}
UNIONS = ("2u", "up")
METRICS = ("mrr", "hit@1", "hit@3", "hit@10")
CHUNK = 25


@dataclass
class Done:
    """A query that was asked: its type, its place among those of the type, its metrics."""

    type: str
    place: int
    metrics: dict[str, float]
    seconds: float = 0.0
    projections: int = 0


def chosen(
    samples: list[Sample], graph: Graph, most: int, seed: int, filters: tuple[str, ...]
) -> dict[str, list[Sample]]:
    """The first queries of each type in the seed's order, with the answers that count."""
    kinds: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        if not sample.type.endswith("-DM"):  # the same queries as 2u and up
            name = next((one for one in betae.names(sample.query) if one in TYPES), sample.type)
            kinds[name].append(sample)
    found = {}
    for kind in sorted(kinds, key=lambda name: (name not in TYPES, name)):
        own = kinds[kind]
        Random(f"{seed}/{kind}").shuffle(own)
        # Many lose all of their answers to the filter.
        own = filtered(own, graph) if kind in filters else own[:most]
        found[kind] = [sample for sample in own if len(sample.hard)][:most]
    return found


def filtered(samples: list[Sample], graph: Graph) -> list[Sample]:
    """Queries with the hard answers that each branch of the union has, as published."""
    told = Hardness(graph, "test", "paper").label(
        [sample.query for sample in samples], [sample.hard for sample in samples]
    )
    found = []
    for at, sample in enumerate(samples):
        keep = told.codes[at] >= 0
        # What the filter takes is no answer to be ranked, and none that others are ranked against.
        easy = torch.from_numpy(sample.easy), torch.from_numpy(sample.hard[~keep])
        rows = torch.unique(torch.cat(easy), dim=0).numpy()
        found.append(replace(sample, easy=rows, hard=sample.hard[keep]))
    return found


def asked(judge: Judge, samples: list[Sample], kind: str, first: int) -> list[Done]:
    """The metrics of some queries of a type."""
    begin = time.process_time()
    [found] = judge.chunk(samples)
    seconds = time.process_time() - begin
    each = {name: found.all.each[name] for name in METRICS}
    done = [
        Done(kind, first + at, {name: round(float(each[name][at]), 6) for name in METRICS})
        for at in range(len(samples))
    ]
    done[0].seconds = round(seconds, 2)
    done[0].projections = sum(compiled(sample.query).projections for sample in samples)
    return done


def read_done(path: Path) -> list[Done]:
    """The queries that a file has."""
    if not path.exists():
        return []
    return [Done(**json.loads(line)) for line in path.read_text().splitlines()]


def tell(done: list[Done], published: dict[str, float]) -> None:
    """Print the table."""
    kinds: dict[str, list[Done]] = defaultdict(list)
    for one in done:
        kinds[one.type].append(one)
    print(
        "| type | queries | MRR | ± | published | in it | HITS@3 |\n|---|---|---|---|---|---|---|"
    )
    inside, means = [], []
    for kind in sorted(kinds, key=lambda name: TYPES.index(name) if name in TYPES else 99):
        ranks = [100 * one.metrics["mrr"] for one in kinds[kind]]
        mean, wide = statistics.fmean(ranks), 0.0
        if len(ranks) > 1:
            wide = 1.96 * statistics.stdev(ranks) / math.sqrt(len(ranks))
        means.append(mean)
        theirs, within = "", ""
        if kind in published:
            inside.append(abs(mean - published[kind]) <= wide)
            theirs, within = f"{published[kind]:.1f}", "yes" if inside[-1] else "no"
        hits = 100 * statistics.fmean(one.metrics["hit@3"] for one in kinds[kind])
        shown = len(ranks), f"{mean:.1f}", f"{wide:.1f}", theirs, within, f"{hits:.1f}"
        print(f"| {kind} | {' | '.join(map(str, shown))} |")
    print(f"\nmean of types {statistics.fmean(means):.1f}", end="")
    print(f"; the published figure is inside for {sum(inside)} of {len(inside)}" if inside else "")
    projections = sum(one.projections for one in done)
    seconds = sum(one.seconds for one in done)
    print(
        f"{projections} projections, {seconds:.0f} processor seconds:"
        f" {seconds / max(1, projections):.3f} each"
    )


def main() -> None:
    """Ask the queries that are not done yet, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("queries", help="nell995, fb15k237, or a file of queries")
    parser.add_argument("--graph", help="the graph of the file")
    parser.add_argument("--weights", help="default: of KOPL_ULTRAQUERY, or in KOPL_DATA")
    parser.add_argument("--published", choices=sorted(PUBLISHED), help="default: by the set")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("-n", type=int, default=100, help="queries of a type (default: 100)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    data = Path(os.environ.get("KOPL_DATA", "."))
    queries, folder = Path(given.queries), given.graph
    if given.queries in SETS:
        queries, folder = (data / one for one in SETS[given.queries])
    weights = data / "ultra" / "ultraquery.safetensors"
    if given.weights or not weights.exists():
        weights = given.weights or ""

    torch.set_num_threads(1)
    graph = read_graph(folder)
    # Query2box's unions have no answer that both branches have: there is nothing to filter.
    filters = UNIONS if given.queries == "nell995" else ()
    samples = list(read_samples(queries, None, "test", graph))
    wanted = chosen(samples, graph, given.n, given.seed, filters)
    model = UltraQuery(UltraQuerySettings(str(weights), precision=given.precision), graph)
    judge = Judge(model, graph.entity_count)
    done = read_done(given.output)
    counts = {name: sum(one.type == name for one in done) for name in wanted}
    with given.output.open("a") as file:
        while rest := [name for name in wanted if counts[name] < len(wanted[name])]:
            name = min(rest, key=lambda one: counts[one])
            part = wanted[name][counts[name] :][:CHUNK]
            new = asked(judge, part, name, counts[name])
            counts[name] += len(new)
            done += new
            file.writelines(json.dumps(vars(one)) + "\n" for one in new)
            file.flush()
    rows = PUBLISHED.get(given.published or given.queries, "").split()
    published = dict(zip(TYPES, map(float, rows), strict=False))
    if not filters:
        published = {name: figure for name, figure in published.items() if name not in UNIONS}
    tell(done, published)


if __name__ == "__main__":
    main()
