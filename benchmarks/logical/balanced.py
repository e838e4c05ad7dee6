"""Reasoners on a benchmark that is balanced by hardness, beside the published rows.

    kopl cqa benchmark fb15k237+ --graph DATA/fb15k237 --pairs 400 -o plus
    python benchmarks/logical/balanced.py fb15k-237+ --graph DATA/fb15k237 -n 60 -o FILE \\
        --queries plus/queries.jsonl --reasoner "QTO = runs/complex qto search.beam=64" \\
        --reasoner "GQE = runs/gqe" --reasoner "UltraQuery = ultraquery"

A reasoner is a name for the table, a run or a model that needs no training, the search where the
run is a link predictor, and settings. Of each type the first N queries of each simpler type that
the answers reduce to are asked (2N where they reduce to none); of several files a type is taken
from the first that has it. FILE gets a line for some queries when they are done; run again, the
script asks what is missing, so that reasoners may be asked one after the other.

Prints the MRR by type in percent, with half the width of the 95 % interval over queries and the
published figure; then that by what answers reduce to. In the first table a reduced type counts as
often as the benchmark has queries of it, not as often as it was asked.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from cqa.balanced.benchmarks import TYPES
from cqa.errors import QueryError
from cqa.evaluation.judging import Judge
from cqa.evaluation.published import PUBLISHED
from cqa.formats.json_lines import from_object
from cqa.graphs.graph import Graph
from cqa.graphs.readers import read_graph
from cqa.models.opening import open_reasoner
from cqa.sampling.sample import Sample
from cqa.vocabularies import SEARCHES

CHUNK = 20
Key = tuple[str, str]  # a type, and what its answers reduce to


def read(paths: Sequence[Path]) -> dict[Key, list[Sample]]:
    """The queries of benchmarks by type and by what their answers reduce to, in the paper's order.

    A type is taken from the first file that has it.
    """
    found: dict[Key, list[Sample]] = defaultdict(list)
    for path in paths:
        known = {kind for kind, _ in found}
        with path.open(encoding="utf-8") as file:
            for given in map(json.loads, file):
                if given["type"] not in known:
                    found[given["type"], given["reduces_to"]].append(from_object(given))
    return {key: found[key] for key in sorted(found, key=lambda key: TYPES.index(key[0]))}


class Done:
    """The reciprocal ranks that a file has, by reasoner, type and reduced type; and seconds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.ranks: dict[str, dict[Key, list[float]]] = defaultdict(lambda: defaultdict(list))
        self.seconds: dict[str, float] = defaultdict(float)
        if path.exists():
            for line in path.read_text().splitlines():
                self._add(json.loads(line))

    def _add(self, row: dict[str, object]) -> None:
        name, key = str(row["reasoner"]), (str(row["type"]), str(row["reduces_to"]))
        self.ranks[name][key] += row["mrr"]  # type: ignore[arg-type]
        self.seconds[name] += float(row["seconds"])  # type: ignore[arg-type]

    def write(self, name: str, key: Key, ranks: Sequence[float], seconds: float) -> None:
        """Add the queries of a chunk."""
        mrr = [round(100 * one, 5) for one in ranks]
        row = {"reasoner": name, "type": key[0], "reduces_to": key[1], "mrr": mrr}
        row["seconds"] = round(seconds, 3)
        self._add(row)
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def ask(text: str, graph: Graph, wanted: Mapping[Key, Sequence[Sample]], done: Done) -> None:
    """Ask a reasoner what is not done yet; types that it cannot answer are left out."""
    name, _, words = (part.strip() for part in text.partition("="))
    run, *rest = words.split()
    search = rest.pop(0) if rest and rest[0] in SEARCHES else None
    missing = {key: own[len(done.ranks[name][key]) :] for key, own in wanted.items()}
    if not any(missing.values()):
        return
    reasoner = open_reasoner(run, graph, search=search, pairs=rest)
    judge = Judge(reasoner, graph.entity_count)
    for key, samples in missing.items():
        try:
            for at in range(0, len(samples), CHUNK):
                part = samples[at : at + CHUNK]
                began = time.process_time()
                [found] = judge.chunk(part)
                seconds = time.process_time() - began
                done.write(name, key, found.all.each["mrr"].tolist(), seconds)
        except QueryError as error:
            print(f"{name}, {key[0]}: {error}", flush=True)


def overall(own: Mapping[Key, Sequence[float]], sizes: Mapping[Key, int], kind: str) -> str:
    """The mean over the queries of a type, each reduced type by its size, and half its width."""
    keys = [key for key in sizes if key[0] == kind]
    if not all(own.get(key) for key in keys):
        return ""
    weights = np.array([sizes[key] for key in keys]) / sum(sizes[key] for key in keys)
    means = np.array([np.mean(own[key]) for key in keys])
    errors = np.array([np.var(own[key]) / len(own[key]) for key in keys])
    return f"{means @ weights:.1f} ± {1.96 * (errors @ weights**2) ** 0.5:.1f}"


def asked(done: Done, kind: str) -> int:
    """The queries of a type that the reasoner with most of them was asked."""
    return max(
        sum(len(ranks) for key, ranks in own.items() if key[0] == kind)
        for own in done.ranks.values()
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table in Markdown."""
    print(f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def tell(benchmark: str, done: Done, sizes: Mapping[Key, int]) -> None:
    """Print both tables, and the seconds of each reasoner."""
    kinds = list(dict.fromkeys(kind for kind, _ in sizes))
    theirs = {one.title: one.values for one in PUBLISHED[benchmark]}
    head, rows = ["type", "queries"], [[kind, str(asked(done, kind))] for kind in kinds]
    for name, own in done.ranks.items():
        head.append(name)
        for row in rows:
            row.append(overall(own, sizes, row[0]))
        if name in theirs:
            head.append("published")
            for row in rows:
                figure = theirs[name].get((("type", row[0]),))
                row.append("" if figure is None else f"{figure:.1f}")
    table(head, rows)
    keys = [key for key in sizes if sum(kind == key[0] for kind, _ in sizes) > 1]
    table(
        ["type", "reduces to", "queries", *done.ranks],
        [
            [*key, str(max(len(own[key]) for own in done.ranks.values()))]
            + [f"{np.mean(own[key]):.1f}" if own[key] else "" for own in done.ranks.values()]
            for key in keys
        ],
    )
    for name, seconds in done.seconds.items():
        count = sum(map(len, done.ranks[name].values()))
        print(f"\n{name}: {count} queries, {1000 * seconds / max(1, count):.0f} s for 1,000")


def main() -> None:
    """Ask the reasoners, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("benchmark", choices=[name for name in PUBLISHED if name.endswith("+")])
    parser.add_argument("--graph", required=True)
    parser.add_argument("--queries", type=Path, nargs="+", required=True)
    parser.add_argument("--reasoner", action="append", default=[])
    parser.add_argument("-n", type=int, default=60, help="queries of each reduced type of a type")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    graph, queries = read_graph(given.graph), read(given.queries)
    # Types that reduce to nothing have one part only: as many as others have altogether.
    parts = {kind: sum(one == kind for one, _ in queries) for kind, _ in queries}
    wanted = {
        key: own[: given.n * (2 if parts[key[0]] == 1 else 1)] for key, own in queries.items()
    }
    done = Done(given.output)
    for text in given.reasoner:
        ask(text, graph, wanted, done)
    tell(given.benchmark, done, {key: len(own) for key, own in queries.items()})


if __name__ == "__main__":
    main()
