"""``kopl cqa evaluate``: how well a reasoner ranks the answers of sampled queries."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TextIO

from cqa.vocabularies import INPUT_FORMATS, PUBLISHED_RESULTS, ROWS, TABLE_FORMATS, TIES
from kopl_base.errors import KoplError
from kopl_cli.common import positive, workers
from kopl_cli.cqa.answer import add_graph, add_samples, open_graph
from kopl_cli.cqa.reasoners import add_reasoner, asked, judge_of

if TYPE_CHECKING:
    from cqa.evaluation.evaluation import Evaluation
    from cqa.formats.samples import Piece
    from cqa.graphs.graph import Graph


# Queries of each type that are sampled where none are given.
DRAWN = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Rank the hard answers of sampled queries by a reasoner's scores: MRR, HIT@1, 3, 10 and"
        " RA-Oracle, for several free variables marginal, multiply and joint, and the share of easy"
        " answers that stand before all else (entailment). In percent; means over answers, then"
        " queries, then types."
    )
    add_samples(parser, optional=True)
    add_graph(parser, kb=True)
    add_reasoner(parser)
    parser.add_argument(
        "--input-format", choices=INPUT_FORMATS, help="default: found by what is there"
    )
    parser.add_argument(
        "--ties",
        choices=TIES,
        default=TIES[0],
        help="of the entities that score as an answer does, half (realistic, default), none"
        " (optimistic) or all (pessimistic) count as better",
    )
    parser.add_argument(
        "--compat",
        choices=("paper",),
        help="the formulas and indices of the published programs, faults included",
    )
    parser.add_argument(
        "--most",
        type=positive,
        metavar="N",
        help="evaluate on the first N queries of each type;"
        f" without FILE, of BetaE's types that are sampled for it (default then: {DRAWN})",
    )
    parser.add_argument(
        "--workers",
        type=workers,
        default=1,
        metavar="W",
        help="processes that ask and rank, each with a reasoner of its own (default: 1); the"
        " figures are the same for any number",
    )
    table = parser.add_argument_group("the report")
    table.add_argument(
        "--by",
        choices=ROWS,
        default="group",
        help="a row for each type; for each group (default: anchors and depth, or constants,"
        " existential variables and topology); or for each simpler type that answers reduce to",
    )
    table.add_argument(
        "--metric",
        action="append",
        metavar="M",
        help="show this metric only, such as mrr or joint_hit@10; may be repeated (default: a"
        " summary; --format json has all)",
    )
    table.add_argument(
        "--compare",
        nargs="+",
        default=[],
        metavar="REPORT",
        help="reports of other runs (of --format json), to stand beside this one",
    )
    table.add_argument(
        "--published",
        choices=PUBLISHED_RESULTS,
        help="published results, to stand beside (percent)",
    )
    table.add_argument(
        "--format", choices=(*TABLE_FORMATS, "json"), default="text", help="default: text"
    )
    table.add_argument(
        "--no-queries",
        dest="queries",
        action="store_false",
        help="with --format json: leave out the metrics of single queries, which kopl cqa compare"
        " needs",
    )
    table.add_argument("-o", "--output", metavar="FILE", help="write the report to this file")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from cqa.evaluation.evaluation import evaluate_by
    from cqa.evaluation.files import read_evaluation, to_text
    from cqa.evaluation.tables import check_table, tabulate, write
    from kopl_cli.common import show_warnings

    show_warnings()
    if arguments.format == "json" and (arguments.compare or arguments.published):
        raise KoplError("--format json is the report of one run; take it without --compare")
    if arguments.file is None and arguments.compare:
        raise KoplError(
            "FILE is missing; --compare takes all that stands behind it: put FILE first"
        )
    check_table(arguments.by, arguments.metric, arguments.published)
    others = [read_evaluation(path) for path in arguments.compare]
    graph = open_graph(arguments)
    reasoner = asked(arguments)
    judge = partial(
        judge_of,
        reasoner,
        split=arguments.split,
        ties=arguments.ties,
        compat=arguments.compat,
        hardness=arguments.by == "hardness",
        workers=arguments.workers,
    )
    # Opened before the long work, which then is not lost to a place that cannot be written.
    with _target(arguments.output) as file:
        found = evaluate_by(
            judge,
            graph,
            _pieces(arguments, graph),
            name=reasoner.shown,
            workers=arguments.workers,
        )
        if arguments.format == "json":
            file.write(to_text(found, arguments.queries))
        else:
            _warn(found, others)
            runs, shown = [found, *others], arguments.metric
            table = tabulate(runs, arguments.by, metrics=shown, published=arguments.published)
            file.write(write(table, arguments.format))
    if found.left_out:
        print(
            f"kopl: {found.left_out} queries are left out, as in the published main table: a"
            " variable has no entity that only hard answers have",
            file=sys.stderr,
        )
    return 0


def _pieces(arguments: argparse.Namespace, graph: Graph) -> Iterator[Piece]:
    """The queries of the arguments' file, some at a time, at most so many of each type."""
    from cqa.evaluation.evaluation import CHUNK, limited
    from cqa.formats.samples import format_of, pieces, read_samples
    from kopl_base.progress import Progress

    if arguments.file is None:
        yield from _drawn(arguments, graph)
        return
    given = arguments.file, arguments.input_format, arguments.split, graph
    # The other formats show how far their files are read while they are evaluated.
    betae = (arguments.input_format or format_of(arguments.file, arguments.split)) == "betae"
    if arguments.most is None and not betae:
        yield from pieces(arguments.file, CHUNK, *given[1:])
        return
    samples = read_samples(*given)
    if arguments.most is not None:
        samples = limited(samples, arguments.most)
    held = list(samples) if betae else None
    with Progress("evaluating", len(held or ()), shown=None if betae else False) as bar:
        rest = iter(samples if held is None else held)
        while some := list(islice(rest, CHUNK)):
            yield some
            bar.advance(len(some))


def _drawn(arguments: argparse.Namespace, graph: Graph) -> Iterator[Piece]:
    """Queries of BetaE's types, sampled for the evaluation; the seed is 0."""
    from cqa.evaluation.evaluation import CHUNK
    from cqa.sampling.kinds import kinds
    from cqa.sampling.run import Plan, stream
    from cqa.types.betae import BETAE

    count = arguments.most or DRAWN
    print(f"kopl: no FILE is given: {count} queries of each of BetaE's types", file=sys.stderr)
    drawn = stream(Plan(tuple(kinds(list(BETAE))), count, split=arguments.split), graph)
    while some := list(islice(drawn, CHUNK)):
        yield some


@contextmanager
def _target(path: str | None) -> Iterator[TextIO]:
    """Standard output, or a file that takes its place when it is complete."""
    from kopl_base.stream import writing

    if path is None:
        yield sys.stdout
        return
    with writing(path) as file:
        yield file


def _warn(found: Evaluation, others: list[Evaluation]) -> None:
    """Say where runs that stand side by side were not measured alike."""
    for other in others:
        for what, mine, theirs in (
            ("ties", found.ties, other.ties),
            ("compat", found.compat, other.compat),
            ("queries", found.queries, other.queries),
        ):
            if mine != theirs:
                print(
                    f"kopl: {other.reasoner} was evaluated with {what} {theirs}, not {mine}",
                    file=sys.stderr,
                )
