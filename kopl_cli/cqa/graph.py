"""``kopl cqa graph``: a graph, of a knowledge base too, as files that open at once."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from cqa.vocabularies import GRAPH_FORMATS
from kopl_base.errors import KoplError

# The options that only a knowledge base has a use for, and what they are when not given.
_FOR_KB: dict[str, Any] = {
    "by": "random",
    "shares": (8.0, 1.0, 1.0),
    "seed": 0,
    "time": "point in time",
    "no_concepts": False,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Write a graph as a folder that opens at once: from a knowledge base (--kb), whose"
        " relational facts are put in train, valid and test, or from a graph in another form."
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--kb", metavar="KB", help="a knowledge base, its snapshot, or 'world'")
    source.add_argument("--graph", metavar="DIR", help="a folder or file of a graph")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="the new folder")
    parser.add_argument(
        "--format",
        choices=GRAPH_FORMATS,
        help="the form of --graph (default: found by what is there)",
    )
    kb = parser.add_argument_group("for --kb")
    kb.add_argument(
        "--by", choices=("random", "time"), default=_FOR_KB["by"],
        help="the split: at random by the shares, within each relation (default), or by time",
    )  # fmt: skip
    kb.add_argument(
        "--shares", type=_shares, default=_FOR_KB["shares"], metavar="A,B,C",
        help="of train, valid and test (default: 8,1,1)",
    )  # fmt: skip
    kb.add_argument("-s", "--seed", type=int, default=_FOR_KB["seed"], metavar="S")
    kb.add_argument(
        "--time", default=_FOR_KB["time"], metavar="KEY",
        help="the qualifier that --by time goes by (default: point in time)",
    )  # fmt: skip
    kb.add_argument(
        "--no-concepts", action="store_true", help="leave out what is an instance of which concept"
    )


def _shares(text: str) -> tuple[float, ...]:
    try:
        shares = tuple(float(part) for part in text.split(","))
    except ValueError:
        shares = ()
    if len(shares) != 3:
        raise argparse.ArgumentTypeError("shares are three numbers, as in 8,1,1")
    return shares


def _check(arguments: argparse.Namespace) -> None:
    """Raise KoplError for an option that the source has no use for."""
    if arguments.graph is None:
        if arguments.format is not None:
            raise KoplError("--format is for --graph")
        return
    for option, default in _FOR_KB.items():
        if getattr(arguments, option) != default:
            raise KoplError(f"--{option.replace('_', '-')} is for --kb; a graph keeps its splits")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from cqa.graphs.files import save
    from cqa.graphs.from_kb import graph_from_kb
    from cqa.graphs.readers import read_graph
    from kb import load

    _check(arguments)
    if arguments.graph is not None:
        graph = read_graph(arguments.graph, arguments.format)
    else:
        graph = graph_from_kb(
            load(arguments.kb),
            shares=arguments.shares,
            seed=arguments.seed,
            by=arguments.by,
            time=arguments.time,
            concepts=not arguments.no_concepts,
        )
    save(graph, arguments.output)
    print(f"kopl: {graph}", file=sys.stderr)
    return 0
