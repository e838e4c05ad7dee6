"""``kopl cqa evaluate``: how well a reasoner ranks the answers of sampled queries."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from cqa.vocabularies import INPUT_FORMATS, PUBLISHED_RESULTS, ROWS, TABLE_FORMATS, TIES
from kopl_base.errors import KoplError
from kopl_cli.common import positive
from kopl_cli.cqa.answer import add_graph, add_samples, open_graph

if TYPE_CHECKING:
    from cqa.evaluation.evaluation import Evaluation
    from cqa.evaluation.reasoner import Reasoner
    from cqa.graphs.graph import Graph
    from cqa.sampling.sample import Sample


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Rank the hard answers of sampled queries by a reasoner's scores: MRR, HIT@1, 3, 10 and"
        " RA-Oracle, for several free variables marginal, multiply and joint, and the share of easy"
        " answers that stand before all else (entailment). In percent; means over answers, then"
        " queries, then types."
    )
    add_samples(parser)
    add_graph(parser)
    parser.add_argument(
        "--reasoner",
        required=True,
        metavar="R",
        help="exact (the full graph), observed (the observed graph), random, or module:object: a"
        " reasoner, five operators, or what makes either of a graph and a split",
    )
    parser.add_argument(
        "--input-format", choices=INPUT_FORMATS, help="default: found by what is there"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of random (default: 0)")
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
        "--most", type=positive, metavar="N", help="evaluate on the first N queries of each type"
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
    table.add_argument("-o", "--output", metavar="FILE", help="write the report to this file")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from cqa.evaluation.evaluation import evaluate, reductions
    from cqa.evaluation.files import read_evaluation, to_json
    from cqa.evaluation.tables import check_table, tabulate, write
    from kopl_cli.common import show_warnings

    show_warnings()
    if arguments.format == "json" and (arguments.compare or arguments.published):
        raise KoplError("--format json is the report of one run; take it without --compare")
    check_table(arguments.by, arguments.metric, arguments.published)
    others = [read_evaluation(path) for path in arguments.compare]
    graph = open_graph(arguments)
    reasoner = find_reasoner(arguments.reasoner, graph, arguments.split, arguments.seed)
    labels = None
    if arguments.by == "hardness":
        labels = reductions(graph, arguments.split, arguments.compat)
    # Opened before the long work, which then is not lost to a place that cannot be written.
    with _target(arguments.output) as file, _telling(arguments.reasoner):
        found = evaluate(
            reasoner,
            _opened(arguments, graph),
            graph.entity_count,
            name=arguments.reasoner,
            ties=arguments.ties,
            compat=arguments.compat,
            labels=labels,
        )
        if arguments.format == "json":
            file.write(json.dumps(to_json(found), indent=1, ensure_ascii=False) + "\n")
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


@contextmanager
def _telling(reasoner: str) -> Iterator[None]:
    """Tell of what somebody's own reasoner raises by its place; the others are not to raise."""
    try:
        yield
    except KoplError:
        raise
    except Exception as error:
        if ":" not in reasoner:
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise KoplError(
            f"--reasoner {reasoner}: {type(error).__name__}: {error} ({last.name} in"
            f" {last.filename}, line {last.lineno})"
        ) from error


def _opened(arguments: argparse.Namespace, graph: Graph) -> Iterator[Sample]:
    """The queries of the arguments' file, at most so many of each type."""
    from cqa.evaluation.evaluation import limited
    from cqa.formats.samples import format_of, read_samples
    from kopl_base.progress import Progress

    samples = read_samples(arguments.file, arguments.input_format, arguments.split, graph)
    if arguments.most is not None:
        samples = limited(samples, arguments.most)
    # The other formats show how far their files are read while they are evaluated.
    if (arguments.input_format or format_of(arguments.file, arguments.split)) != "betae":
        yield from samples
        return
    held = list(samples)
    with Progress("evaluating", len(held)) as bar:
        for sample in held:
            yield sample
            bar.advance(1)


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


def find_reasoner(name: str, graph: Graph, split: str, seed: int = 0) -> Reasoner:
    """The reasoner of a name, or of ``module:object``, the module being looked for here, too.

    Raises KoplError for a name, a module or an object that there is not, and for a module that
    fails.
    """
    from cqa.evaluation.reasoner import as_reasoner, named

    module, colon, path = name.partition(":")
    if not colon:
        return named(name, graph, split, seed)
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:  # whatever somebody's module does when it is imported
        raise KoplError(
            f"--reasoner: the module {module!r} cannot be imported"
            f" ({type(error).__name__}: {error})"
        ) from error
    finally:
        sys.path.remove(os.getcwd())
    for part in path.split("."):
        if not hasattr(found, part):
            raise KoplError(f"--reasoner: there is no {path!r} in the module {module!r}")
        found = getattr(found, part)
    return as_reasoner(found, graph, split)
