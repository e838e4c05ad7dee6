"""``kopl cqa benchmark``: a benchmark that is balanced by what its answers reduce to."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cqa.vocabularies import BALANCED
from kopl_base.errors import KoplError
from kopl_cli.common import positive, workers

if TYPE_CHECKING:
    from cqa.graphs.graph import Graph


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "For each query type draw the same number of (query, hard answer) pairs for every simpler"
        " type that it can reduce to and for full inference. DIR then holds queries.jsonl and"
        " about.json, which tells what is in it."
    )
    parser.add_argument(
        "name", choices=BALANCED,
        help="the published benchmarks by their graph (icews18+ is split by time), or own",
    )  # fmt: skip
    parser.add_argument("--graph", required=True, metavar="DIR", help="a graph's file or folder")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder to write")
    parser.add_argument("--pairs", type=positive, default=10_000, metavar="N",
                        help="pairs of a type for each category (default: 10000)")  # fmt: skip
    parser.add_argument(
        "--types", nargs="+", metavar="T",
        help="names or formulas of types, or one type of a family (efo1:type0016) (default: the 11"
        " types without negation of the paper, 4p and 4i among them, and 5 with negation)",
    )  # fmt: skip
    parser.add_argument("--split", default="test", metavar="NAME", help="default: test")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="default: 0")
    parser.add_argument("--share", type=float, default=0.2, metavar="S",
                        help="no relation and no anchor in more than this share of a type's pairs"
                        " (default: 0.2; 1: any)")  # fmt: skip
    parser.add_argument("--most", type=positive, default=100, metavar="N",
                        help="the most hard answers of a query (default: 100)")  # fmt: skip
    parser.add_argument("--workers", type=workers, default=1, metavar="W",
                        help="processes (default: 1)")  # fmt: skip
    parser.add_argument("--resume", action="store_true", help="go on with a run that was stopped")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; 1 when some category stayed short."""
    from cqa.balanced.benchmarks import BENCHMARKS, TYPES, BenchmarkPlan
    from cqa.balanced.benchmarks import run as build
    from cqa.graphs.files import HEADER
    from cqa.graphs.readers import read_graph
    from kopl_base.tables import print_table
    from kopl_cli.common import show_warnings

    show_warnings()
    plan = BenchmarkPlan(
        tuple(arguments.types or TYPES), arguments.pairs, arguments.seed, arguments.split,
        arguments.share, arguments.most,
    )  # fmt: skip
    form, published = BENCHMARKS.get(arguments.name, (None, None))
    if (Path(arguments.graph) / HEADER).exists():
        form = None  # a saved graph has its split already
    graph = read_graph(arguments.graph, form)
    if published is not None:
        _compare(graph, published)
    found = build(
        plan, graph, Path(arguments.output), workers=arguments.workers, resume=arguments.resume,
        name=arguments.name,
    )  # fmt: skip
    rows = [
        (kind, category, f"{count:,}", f"{outcome.wanted:,}")
        for kind, outcome in found.items()
        for category, count in outcome.pairs.items()
    ]
    print_table(("type", "reduces to", "pairs", "wanted"), rows)
    short = sum(len(outcome.short) for outcome in found.values())
    if short:
        print(
            f"kopl: {short} categories have fewer pairs than wanted: the graph yields no more"
            " within the limits",
            file=sys.stderr,
        )
    return 1 if short else 0


def _compare(graph: Graph, published: tuple[int, int, int]) -> None:
    """Warn where a graph is not the one of the published benchmark."""
    counts = tuple(graph.counts.values())
    if len(counts) != len(published):
        raise KoplError(f"the benchmark's graph has train, valid and test, not {graph.splits}")
    if counts != published:
        shown = " / ".join(f"{count:,}" for count in counts)
        other = " / ".join(f"{count:,}" for count in published)
        print(f"kopl: the graph has {shown} triples; the published one has {other}",
              file=sys.stderr)  # fmt: skip
