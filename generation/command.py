"""``kopl generate``: questions with programs, queries, answers and choices as JSON lines."""

from __future__ import annotations

import argparse
import json
import sys


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
        help="a file (also .gz, .bz2 or .xz), or '-' for standard output",
    )  # fmt: skip
    parser.add_argument(
        "--workers", type=positive, default=1, metavar="W", help="processes (default: 1)"
    )
    parser.add_argument(
        "--shard", type=_shard, default=(0, 1), metavar="I/N",
        help="only the I-th of N parts of the work (1 to N); the parts share nothing",
    )  # fmt: skip
    parser.add_argument("--resume", action="store_true", help="go on with a run that was stopped")
    parser.add_argument(
        "--canonical", action="store_true", help="word every question in the paper's single form"
    )
    parser.add_argument(
        "--verify", type=_share, default=0.01, metavar="SHARE",
        help="the share of the queries that are run on Oxigraph and compared (default: 0.01)",
    )  # fmt: skip
    parser.add_argument("--verify-all", action="store_true", help="compare every query")
    parser.add_argument("--no-sparql", action="store_true", help="write no queries")
    parser.add_argument(
        "--redundant", action="store_true",
        help="keep questions with clauses that change nothing, as the paper did",
    )  # fmt: skip
    parser.add_argument(
        "--levels", type=positive, default=8, metavar="L",
        help="how many rules may follow one another: how deep questions are (default: 8)",
    )  # fmt: skip
    parser.add_argument("--rules", metavar="FILE", help="a grammar in place of the bundled one")


def _shard(text: str) -> tuple[int, int]:
    first, slash, parts = text.partition("/")
    number, count = int(first), int(parts if slash else "x")
    if not 1 <= number <= count:
        raise argparse.ArgumentTypeError("a shard is I/N with I from 1 to N")
    return number - 1, count


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError("a share is a number from 0 to 1")
    return share


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from generation.blocks import Options
    from generation.run import Plan, stream
    from generation.run import run as make
    from kopl.cli.common import open_kb

    options = Options(
        levels=arguments.levels,
        canonical=arguments.canonical,
        clauses=not arguments.redundant,
        sparql=not arguments.no_sparql,
        verify=1.0 if arguments.verify_all else arguments.verify,
    )
    kb = open_kb(arguments)
    plan = Plan(
        arguments.kb, arguments.count, arguments.seed, options, arguments.rules, arguments.shard,
        cache=not arguments.no_cache,
    )  # fmt: skip
    if arguments.output == "-":
        for example in stream(plan, kb):
            sys.stdout.write(json.dumps(example.to_json(), ensure_ascii=False) + "\n")
        return 0
    report = make(plan, arguments.output, workers=arguments.workers, resume=arguments.resume, kb=kb)
    candidates = report.kept + sum(report.reasons.values())
    why = ", ".join(f"{reason} {count}" for reason, count in report.reasons.most_common())
    print(f"kopl: kept {report.kept} of {candidates} candidates ({why})", file=sys.stderr)
    if report.compared:
        print(f"kopl: {report.compared} queries were run and agree", file=sys.stderr)
    return 0
