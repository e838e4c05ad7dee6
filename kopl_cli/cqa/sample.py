"""``kopl cqa sample``: draw grounded queries with their answers from a graph."""

from __future__ import annotations

import argparse
import re
import sys
import time
from typing import TYPE_CHECKING

from cqa.vocabularies import DRAWS, NEGATIONS, RELATIONS, SAMPLE_FORMATS
from kopl_base.errors import KoplError

if TYPE_CHECKING:
    from cqa.graphs.graph import Graph
    from cqa.sampling.options import Options
    from cqa.sampling.run import Plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    from kopl_cli.common import minutes, workers

    parser.description = (
        "Draw queries of some types backward from their answers, with the answers that the observed"
        " graph gives (easy) and those that only the full graph gives (hard)."
    )
    parser.add_argument("--graph", required=True, metavar="DIR", help="a graph's file or folder")
    parser.add_argument(
        "--types", required=True, nargs="+", metavar="T",
        help="a family (efo1, efok, efok:paper, betae), one type of it (efo1:type0016), a name (2i,"
        " pni), a formula, or @FILE with one of these a line",
    )  # fmt: skip
    parser.add_argument(
        "-n", type=int, required=True, metavar="N",
        help="queries of each type, 100 million at most; a type that has fewer ends early",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.add_argument("--split", default="test", help="train, valid or test (default)")
    parser.add_argument(
        "--workers", type=workers, default=1, metavar="W", help="processes (default: 1)"
    )
    parser.add_argument("-o", "--output", required=True, metavar="FILE",
                        help="file or folder to write; '-' prints JSON lines")  # fmt: skip
    parser.add_argument(
        "--format", choices=SAMPLE_FORMATS, help="default: by the file's name, else jsonl"
    )
    parser.add_argument("--form", metavar="F", help="a form of operator trees, such as DNF+IU")
    parser.add_argument(
        "--minutes", type=minutes, metavar="M",
        help="end after so long with the queries that there are; --resume goes on (status 1)",
    )  # fmt: skip
    parser.add_argument("--resume", action="store_true", help="go on with a run that was stopped")
    group = parser.add_argument_group("which queries")
    group.add_argument(
        "--draw", default="efo1", choices=DRAWS,
        help="draw operator trees as EFO-1-QA (default), or as BetaE's published queries were:"
        " every branch from the drawn answer, chains of relations not straight back, and 1 answer"
        " or more that a negation takes back (NELL995: with --hard 1-80 -n 4000)",
    )  # fmt: skip
    group.add_argument(
        "--relations", default="uniform", choices=RELATIONS,
        help="draw each relation that enters an entity alike (default), the same without going"
        " straight back, or each link alike",
    )  # fmt: skip
    group.add_argument(
        "--hard", default="1-100", metavar="A-B",
        help="the number of hard answers, the upper one for each free variable (default: 1-100)",
    )  # fmt: skip
    group.add_argument(
        "--max-answers", type=int, metavar="N",
        help="the most answers on the full graph for each free variable (default: any number, but"
        " three times the hard ones for several free variables)",
    )  # fmt: skip
    group.add_argument(
        "--negations", choices=NEGATIONS,
        help="what each negation must remove (default: answers for operator trees, assignments of"
        " the variables for query graphs)",
    )  # fmt: skip
    group.add_argument("--relation-share", type=float, metavar="S",
                       help="no relation in more than this share of a type")  # fmt: skip
    group.add_argument("--anchor-share", type=float, metavar="S",
                       help="no anchor in more than this share of a type")  # fmt: skip
    inductive = parser.add_argument_group("for entities that are not seen in training")
    inductive.add_argument(
        "--inductive", type=float, metavar="R",
        help="split the graph anew: what queries are asked on has R times the entities of train"
        " (published: 1.75)",
    )  # fmt: skip
    inductive.add_argument("--save-graph", metavar="DIR",
                           help="write the graph that the queries are asked on")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Run the command; 1 when a type has fewer queries than wanted, and when the time is over."""
    from kopl_cli.common import show_warnings

    show_warnings()
    until = None if arguments.minutes is None else time.monotonic() + 60 * arguments.minutes
    plan = _plan(arguments)
    streams = arguments.output == "-"
    if streams and (arguments.workers != 1 or arguments.resume):
        raise KoplError("-o - prints what one process makes: leave out --workers and --resume")
    if streams and arguments.format not in (None, "jsonl"):
        raise KoplError(f"-o - prints JSON lines, not {arguments.format}")
    graph = _graph(arguments)
    if streams:
        return _print(plan, graph, until)
    from cqa.sampling.run import run as sample

    report = sample(
        plan, graph, arguments.output, format=arguments.format, workers=arguments.workers,
        resume=arguments.resume, name=arguments.graph.rstrip("/").rpartition("/")[2],
        until=until,
    )  # fmt: skip
    for name, count in report.short.items():
        print(f"kopl: {name}: {count} of {plan.count} queries", file=sys.stderr)
    if report.ended:
        part = f"{arguments.output.rstrip('/')}.part"
        print(
            f"kopl: the time is over: {report.kept:,} of {plan.count * len(plan.kinds):,} queries"
            f" are in {arguments.output}; --resume goes on, or remove {part} and {part}.json",
            file=sys.stderr,
        )
        return 1
    print(
        f"kopl: {report.kept} queries of {len(plan.kinds)} types; {arguments.output}",
        file=sys.stderr,
    )
    return 1 if report.short else 0


def _print(plan: Plan, graph: Graph, until: float | None) -> int:
    from collections import Counter

    from cqa.formats.json_lines import to_line
    from cqa.sampling.run import stream

    counts: Counter[str] = Counter()
    for sample in stream(plan, graph, until=until):
        counts[sample.type] += 1
        print(to_line(sample))
    if until is not None and time.monotonic() >= until:
        print(
            f"kopl: the time is over: {counts.total():,} of {plan.count * len(plan.kinds):,}"
            " queries",
            file=sys.stderr,
        )
        return int(counts.total() < plan.count * len(plan.kinds))
    short = [kind.id for kind in plan.kinds if counts[kind.id] < plan.count]
    for name in short:
        print(f"kopl: {name}: {counts[name]} of {plan.count} queries", file=sys.stderr)
    return 1 if short else 0


def _plan(arguments: argparse.Namespace) -> Plan:
    from cqa.sampling.kinds import kinds
    from cqa.sampling.run import Plan

    return Plan(
        tuple(kinds(arguments.types, arguments.form)), arguments.n, arguments.seed,
        arguments.split, _options(arguments),
    )  # fmt: skip


def _options(arguments: argparse.Namespace) -> Options:
    from cqa.sampling.options import Options

    least, dash, most = arguments.hard.partition("-")
    if not re.fullmatch(r"[0-9]{1,18}(-[0-9]{1,18})?", arguments.hard):
        raise KoplError(f"--hard: write a range such as 1-100, not {arguments.hard[:40]!r}")
    return Options(
        relations=arguments.relations,
        least=int(least),
        most=int(most) if dash else int(least),
        answers=arguments.max_answers,
        negations=arguments.negations,
        relation_share=arguments.relation_share,
        anchor_share=arguments.anchor_share,
        draw=arguments.draw,
    )


def _graph(arguments: argparse.Namespace) -> Graph:
    from cqa.graphs.files import save
    from cqa.graphs.readers import read_graph

    graph = read_graph(arguments.graph)
    if arguments.inductive is not None:
        from cqa.graphs.inductive import inductive

        graph = inductive(graph, arguments.inductive, seed=arguments.seed).of(arguments.split)
    if arguments.save_graph is not None:
        save(graph, arguments.save_graph)
    return graph
