"""``kopl split``: train, valid and test of a question set."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path

from generation.splits import SHARES, WAYS, assign
from generation.stats import Statistics
from kopl.example import Example
from kopl_base.errors import KoplError
from kopl_base.stream import writing
from kopl_cli.data import SET

NAMES = ("train", "valid", "test")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("file", metavar="FILE", help=SET)
    parser.add_argument(
        "--by", choices=tuple(WAYS), default="random",
        help="what tells the parts apart: nothing (default), the length of programs, answers, or"
        " sets of functions",
    )  # fmt: skip
    parser.add_argument(
        "--shares", type=_shares, default=SHARES, metavar="A,B,C",
        help="of train, valid and test (default: 8,1,1)",
    )  # fmt: skip
    parser.add_argument("-s", "--seed", type=int, default=0, metavar="S", help="default: 0")
    parser.add_argument(
        "-o", "--output", required=True, metavar="DIR", help="gets train, valid and test .jsonl"
    )


def _shares(text: str) -> tuple[float, ...]:
    try:
        shares = tuple(float(part) for part in text.split(","))
    except ValueError:
        shares = ()
    if len(shares) != len(NAMES) or not all(0 < share < float("inf") for share in shares):
        raise argparse.ArgumentTypeError("three numbers above 0 were expected, as in 8,1,1")
    return shares


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from kopl_cli.common import show_warnings
    from kopl_cli.stats import print_statistics

    show_warnings()
    sets = split_file(
        arguments.file, arguments.output, arguments.seed, arguments.shares, arguments.by
    )
    print_statistics(sets)
    return 0


def split_file(
    source: Path | str, folder: Path | str, seed: int,
    shares: Sequence[float] = SHARES, by: str = "random",
) -> dict[str, Statistics]:  # fmt: skip
    """Write train.jsonl, valid.jsonl and test.jsonl of a question set; gives their statistics.

    The set is read twice; of its texts only the answers are held. Raises KoplError as
    `generation.splits.assign` does, and when the set cannot be read twice.
    """
    from generation.formats import open_examples

    if Path(source).exists() and not Path(source).is_file() and not Path(source).is_dir():
        raise KoplError(f"{source}: is no ordinary file; a set that is split is read twice")
    answers: list[str | None] = []
    distinct: dict[str | None, str | None] = {}  # equal answers are held once

    def noted() -> Iterator[Example]:
        for example in open_examples(source):
            answers.append(distinct.setdefault(example.answer, example.answer))
            yield example

    numbers = assign(noted(), seed, shares, by)
    if not numbers:
        raise KoplError(f"{source}: there are no examples to split")
    trained = {
        answer for answer, at in zip(answers, numbers, strict=True) if not at and answer is not None
    }
    sets = {name: Statistics(None if name == NAMES[0] else trained) for name in NAMES}
    with ExitStack() as stack:
        files = [stack.enter_context(writing(Path(folder) / f"{name}.jsonl")) for name in NAMES]
        for example, at in zip_longest(open_examples(source), numbers):
            if example is None or at is None:
                raise KoplError(f"{source}: the file changed while it was read")
            sets[NAMES[at]].add(example)
            files[at].write(json.dumps(example.to_json(), ensure_ascii=False) + "\n")
    return sets
