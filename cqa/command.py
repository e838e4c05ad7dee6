"""``kopl cqa``: logical queries over incomplete graphs; one module for each action."""

from __future__ import annotations

import argparse
from importlib import import_module

# action -> (module with add_arguments and run, what it does)
ACTIONS: dict[str, tuple[str, str]] = {
    "graph": (
        "cqa.commands.graph",
        "write a graph, of a knowledge base too, as files",
    ),
    "types": ("cqa.commands.types", "list the query types of the benchmarks"),
    "sample": ("cqa.commands.sample", "sample queries of some types from a graph"),
    "answer": ("cqa.commands.answer", "answer one query, in any notation"),
    "hardness": ("cqa.commands.hardness", "tell what the answers of queries reduce to"),
    "benchmark": ("cqa.commands.benchmark", "build a benchmark that is balanced by hardness"),
    "evaluate": ("cqa.commands.evaluate", "rank the answers of a reasoner"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (module, sentence) in ACTIONS.items():
        action = actions.add_parser(name, help=sentence, description=sentence.capitalize() + ".")
        found = import_module(module)
        found.add_arguments(action)
        action.set_defaults(handler=found.run)


def run(arguments: argparse.Namespace) -> int:
    """Run the action."""
    status: int = arguments.handler(arguments)
    return status
