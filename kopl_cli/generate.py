"""``kopl generate``: questions with programs, queries, answers and choices."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from generation.blocks import Options
from generation.conversion import form_named
from generation.rules_file import PROFILES
from generation.stats import ANSWERS, Statistics, short_rows
from kopl.example import BareQuestion, Example, read_examples, write_examples
from kopl_base.errors import KoplError, counted

if TYPE_CHECKING:
    from kb import KnowledgeBase


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    from generation.conversion import FORMATS
    from kopl_cli.common import add_kb, positive

    usual = Options()
    add_kb(parser, option=True)
    parser.add_argument(
        "--profile", choices=tuple(PROFILES), default=usual.profile,
        help="the paper's mix of questions, or short ones as people ask them, lists and yes/no by"
        f" names among them (default: {usual.profile})",
    )  # fmt: skip
    parser.add_argument(
        "-n", "--count", type=positive, required=True, metavar="N", help="how many questions"
    )
    parser.add_argument("-s", "--seed", type=int, default=0, metavar="S", help="default: 0")
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE",
        help="a file (also .gz, .bz2 or .xz), a folder (Parquet), or '-' for standard output",
    )  # fmt: skip
    parser.add_argument(
        "--format", choices=tuple(FORMATS),
        help="JSON lines, KQA Pro's list, Parquet (a folder with a data card, unless FILE ends in"
        " .parquet) or CSV; default: by the ending of FILE, else jsonl",
    )  # fmt: skip
    parser.add_argument(
        "--license", metavar="NAME", help="what the data card states, such as cc-by-4.0"
    )
    parser.add_argument(
        "--workers", type=positive, metavar="W",
        help="processes (default: 1; with --ray: as many as the cluster has cores)",
    )  # fmt: skip
    parser.add_argument(
        "--ray", nargs="?", const="", metavar="ADDRESS",
        help="make the questions on a Ray cluster: at this address ('auto': the one that runs"
        " here), else that of RAY_ADDRESS, else a new one on this machine",
    )  # fmt: skip
    parser.add_argument(
        "--shard", type=_shard, default=(0, 1), metavar="I/N",
        help="only the I-th of N parts of the work (1 to N); the parts share nothing",
    )  # fmt: skip
    parser.add_argument("--resume", action="store_true", help="go on with a run that was stopped")
    parser.add_argument(
        "--canonical", action="store_true", help="word every question in the paper's single form"
    )
    parser.add_argument(
        "--verify", type=_share, default=usual.verify, metavar="SHARE",
        help="the share of the queries that are run on Oxigraph and compared (default:"
        f" {usual.verify})",
    )  # fmt: skip
    parser.add_argument("--verify-all", action="store_true", help="compare every query")
    parser.add_argument("--no-sparql", action="store_true", help="write no queries")
    parser.add_argument(
        "--redundant", action="store_true",
        help="keep questions with clauses that change nothing, as the paper did",
    )  # fmt: skip
    parser.add_argument(
        "--levels", type=positive, default=usual.levels, metavar="L",
        help="how many rules may follow one another: how deep questions are (default:"
        f" {usual.levels})",
    )  # fmt: skip
    parser.add_argument(
        "--least", type=positive, default=usual.least, metavar="N",
        help="how many calls every program has at least; with more --levels, deep questions",
    )  # fmt: skip
    parser.add_argument(
        "--calls", type=positive, default=usual.calls, metavar="N",
        help=f"how many calls a program may have (default: {usual.calls})",
    )  # fmt: skip
    parser.add_argument(
        "--short", type=_share, default=usual.short, metavar="SHARE",
        help="of programs of up to three calls, at most (default: what the rules say)",
    )  # fmt: skip
    parser.add_argument(
        "--zero", type=_share, default=usual.zero, metavar="SHARE",
        help=f"of 0 among the answers of Count (default: {usual.zero})",
    )  # fmt: skip
    parser.add_argument(
        "--noise", type=_share, default=usual.noise, metavar="SHARE",
        help="of questions as they are typed in haste: small letters, typos, lost marks, articles"
        f" and accents; they keep the clean wording (default: {usual.noise:.0f})",
    )  # fmt: skip
    parser.add_argument(
        "--shares", type=_shares, default=usual.shares, metavar="TYPE=N,…",
        help="percents of question types, as in Count=20,Verify=5; the others share the rest"
        " (default: what the rules say)",
    )  # fmt: skip
    parser.add_argument(
        "--unanswerable", type=_share, default=0.0, metavar="SHARE",
        help="of questions that the knowledge base does not answer, behind the others: without a"
        " program, and with the reason; JSON lines only (default: 0)",
    )  # fmt: skip
    parser.add_argument("--rules", metavar="FILE", help="a grammar in place of the bundled one")
    parser.add_argument(
        "--lexicon", metavar="FILE", help="how names are said: annotations (kopl lexicon init)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print no statistics at the end")


def _shard(text: str) -> tuple[int, int]:
    first, _, parts = text.partition("/")
    with suppress(ValueError):
        number, count = int(first), int(parts)
        if 1 <= number <= count:
            return number - 1, count
    raise argparse.ArgumentTypeError("a shard is I/N with I from 1 to N")


def _share(text: str) -> float:
    share = _number(text)
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError("a share is a number from 0 to 1")
    return share


def _number(text: str) -> float:
    """The number that a text says; what is none is not a number either."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _shares(text: str) -> tuple[tuple[str, float], ...]:
    shares: list[tuple[str, float]] = []
    for part in text.split(","):
        name, equals, number = part.partition("=")
        if not name or not equals:
            raise argparse.ArgumentTypeError("write TYPE=PERCENT,…, as in Count=20,Verify=5")
        share = _number(number)
        if not 0 < share <= 100:
            raise argparse.ArgumentTypeError("a share is a number above 0, up to 100")
        if name in dict(shares):
            raise argparse.ArgumentTypeError(f"the share of {name} is said twice")
        shares.append((name, share))
    return tuple(shares)


def options_of(arguments: argparse.Namespace) -> Options:
    """The generator's options, as the arguments give them."""
    return Options(
        profile=arguments.profile,
        levels=arguments.levels,
        least=arguments.least,
        calls=arguments.calls,
        shares=arguments.shares,
        short=arguments.short,
        zero=arguments.zero,
        noise=arguments.noise,
        canonical=arguments.canonical,
        clauses=not arguments.redundant,
        sparql=not arguments.no_sparql,
        verify=1.0 if arguments.verify_all else arguments.verify,
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from generation.makers import processes
    from generation.run import Plan, stream
    from generation.run import run as make
    from kopl_cli.common import open_kb, too_many_workers

    outside = _unanswerable(arguments)
    kb = open_kb(arguments)
    plan = Plan(
        arguments.kb, arguments.count - outside, arguments.seed, options_of(arguments),
        arguments.rules, arguments.lexicon, arguments.shard, cache=not arguments.no_cache,
    )  # fmt: skip
    if not arguments.quiet:
        _tell_of_doubts(kb, arguments.kb, arguments.lexicon)
    if arguments.output == "-":
        several = arguments.ray is not None or arguments.workers not in (None, 1)
        if arguments.format not in (None, "jsonl") or several:
            raise KoplError("standard output takes JSON lines of one process; name a file")
        if arguments.resume:
            raise KoplError("--resume goes on with a file; of standard output nothing is known")
        statistics = Statistics(bound=ANSWERS)
        kept: list[Example] = []
        for example in statistics.counting(stream(plan, kb)):
            sys.stdout.write(json.dumps(example.to_json(), ensure_ascii=False) + "\n")
            if len(kept) < MODELS:
                kept.append(example)
        for bare in made_unanswerable(kb, kept, outside, arguments.seed):
            sys.stdout.write(json.dumps(bare.to_json(), ensure_ascii=False) + "\n")
        if not arguments.quiet:
            _print_statistics(statistics)
        return 0
    executor = processes(arguments.workers or 1)
    if arguments.ray is None and (reason := too_many_workers(arguments.workers or 1)):
        raise KoplError(f"--workers: {reason}")
    if arguments.ray is not None:
        from generation.ray_runner import cluster

        executor = cluster(arguments.ray or None, arguments.workers)
    report = make(
        plan, arguments.output, form=arguments.format, executor=executor, resume=arguments.resume,
        kb=kb, licence=arguments.license,
    )  # fmt: skip
    if outside:
        _add(Path(arguments.output), kb, outside, arguments.seed)
    if not arguments.quiet:
        _print_statistics(report.statistics)
    candidates = report.kept + sum(report.reasons.values())
    why = ", ".join(f"{reason} {count}" for reason, count in report.reasons.most_common())
    why = f" ({why})" if why else ""
    print(f"kopl: kept {report.kept} of {candidates} candidates{why}", file=sys.stderr)
    if report.compared:
        agreed = counted(report.compared, "query was run and agrees", "queries were run and agree")
        print(f"kopl: {agreed}", file=sys.stderr)
    return 0


# Questions with answers after which those without are made, at most.
MODELS = 5000


def _unanswerable(arguments: argparse.Namespace) -> int:
    """How many of the questions are to have no answer; raises KoplError where they cannot."""
    count: int = round(arguments.unanswerable * arguments.count)
    if not count:
        return 0
    if count == arguments.count:
        raise KoplError("--unanswerable: some questions must have answers, after which others are")
    form = arguments.format or form_named(arguments.output) or "jsonl"
    if form != "jsonl":
        raise KoplError(f"--unanswerable writes JSON lines only, as {form} has no such questions")
    if arguments.shard != (0, 1) or arguments.resume:
        raise KoplError("--unanswerable goes with neither --shard nor --resume")
    return count


def made_unanswerable(
    kb: KnowledgeBase, examples: Sequence[Example], count: int, seed: int
) -> Iterator[BareQuestion]:
    """So many questions without answers, made after examples; raises KoplError for too few."""
    from generation.unanswerable import Unanswerable

    made = 0
    for one in Unanswerable(kb, seed).questions(examples, count) if count else ():
        made += 1
        yield one
    if made < count:
        raise KoplError(f"only {made} different questions without answers can be made, not {count}")


def _add(path: Path, kb: KnowledgeBase, count: int, seed: int) -> None:
    """Write questions without answers behind those of a file."""
    examples = list(islice(read_examples(path), MODELS))
    added = made_unanswerable(kb, examples, count, seed)
    write_examples(path, chain(read_examples(path), added))


def _tell_of_doubts(kb: KnowledgeBase, place: str, lexicon: str | None) -> None:
    """Say how many names may read badly, and what shows them; nothing where all read well."""
    from generation.lexicon import read_annotations
    from generation.lexicon.review import doubtful

    found, every = doubtful(kb, read_annotations(lexicon) if lexicon is not None else None)
    if not found:
        return
    show = f"check {place} {lexicon}" if lexicon is not None else f"init {place} -o words.yaml"
    print(
        f"kopl: {found} of {every} names of the knowledge base read doubtfully in questions; to"
        f" look at them: kopl lexicon {show}",
        file=sys.stderr,
    )


def _print_statistics(statistics: Statistics) -> None:
    from kopl_base.tables import print_table

    print("kopl: the questions, beside those of KQA Pro:", file=sys.stderr)
    print_table(("", "here", "KQA Pro"), short_rows(statistics), file=sys.stderr)
