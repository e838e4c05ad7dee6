"""Speed of labelling (query, answer) pairs by hardness, and Table 1, with one core.

    KOPL_DATA=DIR python benchmarks/logical/hardness.py --queries 5000 --graph nell995

Draws as many queries of each of BetaE's 14 types (5,000: 70,000, as large as its test set of
NELL995), backward from an answer, with relations drawn as BetaE does and 1 to 100 hard answers
each, and labels their hard answers: all types at once from operator trees, so that grouping and
checking count, too. Times are of the processor. Fails when 70,000 queries would take 15 s.

Then Table 1 from published queries where DATA has them: nell995/betae-test-queries-half.pkl. The
command gives the same:

    kopl cqa hardness --graph DATA/nell995 --published nell995 --compat paper QUERIES.pkl
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

from cqa.answering.answer import unchecked
from cqa.answering.template import Grounded, as_query, template_of
from cqa.balanced.draw import Drawing
from cqa.formats.samples import read_samples
from cqa.graphs.graph import Graph
from cqa.graphs.readers import read_graph
from cqa.hardness.hardness import Hardness
from cqa.hardness.report import report, table
from cqa.sampling.sample import rows_without
from cqa.types import betae

SECONDS, SIZE = 15, 70_000
OFFICIAL = "betae-test-queries-half.pkl"


def drawn(
    drawing: Drawing, graph: Graph, name: str, count: int, random: Random, most: int = 100
) -> tuple[list[Grounded], list[Any]]:
    """Different queries of a type with 1 to ``most`` hard answers, and these."""
    template = template_of(betae.named(name))
    query = template.query
    queries: list[Grounded] = []
    answers: list[Any] = []
    seen: set[Any] = set()
    while len(queries) < count:
        numbers = drawing.draw(query, random)
        if numbers is None or (key := tuple(sorted(numbers.items()))) in seen:
            continue
        found = template.filled(numbers)
        asked = as_query(found)
        full = unchecked(asked, graph.full()).tuples
        hard = rows_without(full, unchecked(asked, graph.observed()).tuples)
        if 1 <= len(hard) <= most:
            seen.add(key)
            queries.append(found)
            answers.append(hard)
    return queries, answers


def main() -> None:
    """Draw, label, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=5000, help="of a type (default: 5000)")
    parser.add_argument("--graph", choices=("nell995", "fb15k237"), default="nell995")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if not (folder := os.environ.get("KOPL_DATA")):
        sys.exit(f"KOPL_DATA is not set to a folder with {arguments.graph}")
    graph = read_graph(Path(folder) / arguments.graph)
    drawing, random = Drawing(graph), Random(arguments.seed)
    queries: list[Grounded] = []
    answers: list[Any] = []
    for name in betae.BETAE:
        begin = time.process_time()
        some, hard = drawn(drawing, graph, name, arguments.queries, random)
        print(f"{name}: {len(some)} queries drawn in {time.process_time() - begin:.1f} s")
        queries += some
        answers += hard

    begin = time.process_time()
    hardness = Hardness(graph)
    hardness.label(queries, answers)
    seconds = time.process_time() - begin
    pairs = sum(map(len, answers))
    print(f"{len(queries):,} queries, {pairs:,} pairs labelled in {seconds:.2f} s")

    official = Path(folder) / "nell995" / OFFICIAL
    if arguments.graph == "nell995" and official.exists():
        samples = read_samples(official, graph=graph)
        found = report(samples, Hardness(graph, compat="paper"), published="nell995")
        headings, rows = table(found)
        print(f"\n{OFFICIAL}")
        for row in [headings, *rows]:
            print("| " + " | ".join(row) + " |")
    if seconds * SIZE / len(queries) > SECONDS:
        sys.exit(f"{seconds:.1f} s for {len(queries)} queries is too slow")


if __name__ == "__main__":
    main()
