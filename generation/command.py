"""``kopl generate``: questions with programs and answers as JSON lines."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator

from kb.progress import ProgressBar
from kopl.example import Example


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    from kopl.cli.common import add_kb, positive

    add_kb(parser, option=True)
    parser.add_argument(
        "-n", "--count", type=positive, required=True, metavar="N", help="how many questions"
    )
    parser.add_argument("-s", "--seed", type=int, default=0, metavar="S", help="default: 0")
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE",
        help="a file (also .gz or .bz2), or '-' for standard output",
    )  # fmt: skip
    parser.add_argument("--rules", metavar="FILE", help="a grammar in place of the bundled one")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from generation.grammar import load_grammar
    from generation.pipeline import generate
    from kopl.cli.common import open_kb
    from kopl.example import write_examples

    grammar = load_grammar(arguments.rules) if arguments.rules else None
    kb = open_kb(arguments)
    examples = _shown(
        generate(kb, arguments.count, arguments.seed, grammar=grammar), arguments.count
    )
    if arguments.output == "-":
        for example in examples:
            sys.stdout.write(json.dumps(example.to_json(), ensure_ascii=False) + "\n")
    else:
        write_examples(arguments.output, examples)
    return 0


def _shown(examples: Iterable[Example], count: int) -> Iterator[Example]:
    with ProgressBar("generating questions", count) as bar:
        for example in examples:
            yield example
            bar.advance(1)
