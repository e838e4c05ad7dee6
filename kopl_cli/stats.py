"""``kopl stats``: what a question set holds, beside the figures of the KQA Pro paper."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from generation.stats import Statistics
from kopl_cli.data import SET


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("file", metavar="FILE", help=SET)
    parser.add_argument(
        "--train", metavar="FILE", help="count answers that never occur in this set (default: the"
        " set's own part train)",
    )  # fmt: skip
    parser.add_argument("--plots", metavar="DIR", help="draw PNG files into this folder")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from generation.formats import open_examples, open_parts
    from kopl_cli.common import show_warnings

    show_warnings()
    trained: Collection[str] | None = None
    if arguments.train is not None:
        trained = {e.answer for e in open_examples(arguments.train) if e.answer is not None}
    sets: dict[str, Statistics] = {}
    parts = open_parts(arguments.file)
    for part, examples in parts.items():
        sets[part] = Statistics.of(examples, trained)
        if trained is None and part == "train" and len(parts) > 1:
            trained = sets[part].answers.keys()
    if arguments.plots is not None:
        from generation.plots import write_plots

        for part, statistics in sets.items():
            folder = Path(arguments.plots)
            for path in write_plots(statistics, folder / part if len(sets) > 1 else folder):
                print(f"kopl: {path}", file=sys.stderr)
    print_statistics(sets, arguments.json)
    return 0


def print_statistics(sets: Mapping[str, Statistics], as_json: bool = False) -> None:
    """The statistics of one or several sets, as tables or as JSON."""
    from generation.stats import rows_of, top_rows
    from kopl_base.tables import print_table

    if as_json:
        shown = {name: statistics.to_json() for name, statistics in sets.items()}
        print(json.dumps(shown if len(sets) > 1 else next(iter(shown.values()), {}),
                         ensure_ascii=False))  # fmt: skip
        return
    print_table(*rows_of(sets))
    if len(sets) == 1:
        print_table(("", "", "share"), top_rows(*sets.values()))
