"""``kopl cqa``: logical queries over incomplete graphs; one module for each action."""

from __future__ import annotations

import argparse

from kopl_cli.commands import Command, add_commands

ACTIONS = {
    "graph": Command("write a graph, of a knowledge base too, as files", "kopl_cli.cqa.graph"),
    "types": Command("list the query types of the benchmarks", "kopl_cli.cqa.types"),
    "sample": Command("sample queries of some types from a graph", "kopl_cli.cqa.sample"),
    "answer": Command("answer one query, in any notation", "kopl_cli.cqa.answer"),
    "ask": Command("rank what may answer one query, with its support", "kopl_cli.cqa.ask"),
    "hardness": Command("tell what the answers of queries reduce to", "kopl_cli.cqa.hardness"),
    "benchmark": Command(
        "build a benchmark that is balanced by hardness", "kopl_cli.cqa.benchmark"
    ),
    "train": Command("train a model of logical queries on a graph", "kopl_cli.cqa.train"),
    "evaluate": Command("rank the answers of a reasoner", "kopl_cli.cqa.evaluate"),
    "compare": Command("compare evaluations, with intervals and tests", "kopl_cli.cqa.compare"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions; each declares its arguments when it is used."""
    add_commands(parser, ACTIONS, "ACTION")
