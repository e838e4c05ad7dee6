"""``kopl grammar``: the programs over a knowledge base as a grammar for decoding."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kopl_cli.common import add_kb, open_kb, positive

if TYPE_CHECKING:
    from kb import KnowledgeBase

# What a grammar is written in, and how deep its programs are; `kopl.grammars` loads too much for
# the help of a command. A test compares.
FORMS, DEPTH = ("lark", "gbnf", "json-schema"), 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--to", required=True, choices=FORMS, help="the notation; docs/language-models.md tells"
        " which server takes which",
    )  # fmt: skip
    add_kb(parser, option=True, required=False)
    names = parser.add_mutually_exclusive_group()
    names.add_argument(
        "--question", metavar="TEXT", help="programs find the names that this question may be about"
    )
    names.add_argument(
        "--names", metavar="FILE", help="programs find the names of a file, one a line; '-': input"
    )
    names.add_argument("--all-names", action="store_true", help="programs find all names there are")
    parser.add_argument(
        "--depth",
        type=positive,
        default=DEPTH,
        metavar="N",
        help=f"calls inside one another (default: {DEPTH})",
    )
    parser.add_argument(
        "-o",
        "--output",
        default="-",
        metavar="FILE",
        help="the file to write (default: standard output)",
    )
    parser.set_defaults(parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from kopl.grammars import grammar

    told = arguments.all_names or arguments.question is not None or arguments.names is not None
    if arguments.kb is None and told:
        arguments.parser.error("--question, --names and --all-names go with --kb")
    if arguments.kb is not None and not told:
        arguments.parser.error(
            "say which names programs may find: --question TEXT, --names FILE or --all-names"
        )
    kb = None if arguments.kb is None else open_kb(arguments)
    names = None if kb is None else _names(kb, arguments)
    text = grammar(kb, arguments.to, names, arguments.depth)
    if arguments.output == "-":
        print(text, end="")
        return 0
    from kopl_base.stream import writing

    with writing(arguments.output) as file:
        file.write(text)
    return 0


def _names(kb: KnowledgeBase, arguments: argparse.Namespace) -> list[str] | None:
    """The names that programs may find; None: all."""
    if arguments.question is not None:
        from parsers.linking import Linker, candidates

        return candidates(Linker(kb), arguments.question)
    if arguments.names is not None:
        from kopl_base.stream import read_text

        lines = read_text("/dev/stdin" if arguments.names == "-" else arguments.names).splitlines()
        return [line for line in lines if line.strip()]
    return None
