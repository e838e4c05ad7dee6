"""``kopl data``: question sets converted, and checked against a knowledge base."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from kopl_base.errors import KoplError, counted

# What every command that reads question sets says of them.
SET = (
    "JSON lines, KQA Pro's lists, CSV, Parquet, a folder of them, or the name of a data set"
    " (owner/name) that the package datasets finds"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    from generation.conversion import FORMATS
    from kopl_cli.common import add_encoding, add_endpoint, add_kb, seconds

    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    sentence = "write a question set in another form"
    convert = actions.add_parser("convert", help=sentence, description=sentence.capitalize() + ".")
    convert.add_argument("source", metavar="IN", help=SET)
    convert.add_argument(
        "target", metavar="OUT",
        help="a file; a folder for several parts, and for Parquet unless OUT ends in .parquet",
    )  # fmt: skip
    convert.add_argument(
        "--to", choices=tuple(FORMATS), help="the form of OUT (default: by its ending)"
    )
    convert.add_argument(
        "--license", metavar="NAME", help="what a data card states, such as cc-by-4.0"
    )
    convert.add_argument(
        "--with-answers", action="store_true",
        help="kqapro: write answers, programs and queries of the test part, too",
    )  # fmt: skip
    convert.set_defaults(handler=_convert)
    sentence = "run every program and query and compare them with the stored answers"
    check = actions.add_parser("check", help=sentence, description=sentence.capitalize() + ".")
    check.add_argument(
        "file", metavar="FILE",
        help=f"{SET}; or the corrections of a run, of which the newest of each question counts",
    )  # fmt: skip
    add_kb(check, option=True)
    check.add_argument(
        "--engine", default="none", metavar="NAME",
        help="runs the queries: oxigraph, oxigraph-memory, rdflib or an address (http://…)"
        " (default: none, they are only read)",
    )  # fmt: skip
    add_endpoint(check)
    add_encoding(check)
    check.add_argument(
        "--timeout", type=seconds, default=60.0, metavar="S",
        help="seconds for one program or query (default: 60)",
    )  # fmt: skip
    check.add_argument(
        "--json", action="store_true", help="print one JSON object for a problem, then the summary"
    )
    check.set_defaults(handler=_check)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    status: int = arguments.handler(arguments)
    return status


def _convert(arguments: argparse.Namespace) -> int:
    from generation.conversion import convert
    from kopl_cli.common import show_warnings

    show_warnings()
    count = convert(
        arguments.source, arguments.target, arguments.to,
        with_answers=arguments.with_answers, licence=arguments.license,
    )  # fmt: skip
    print(f"kopl: {counted(count, 'example')}", file=sys.stderr)
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from generation.check import Checker
    from generation.formats import examples_or_errors
    from kopl.executor import Executor, Limits
    from kopl.sparql.errors import EngineError
    from kopl.sparql.evaluate import SparqlExecutor
    from kopl_cli.common import open_executor, open_kb
    from parsers.corrections import checkable, is_corrections

    kb = open_kb(arguments)
    engine = None
    if arguments.engine != "none":
        try:
            found = open_executor(arguments.engine, arguments, timeout=arguments.timeout, kb=kb)
        except EngineError as error:
            print(f"kopl: {error.kind}: {error}", file=sys.stderr)
            return 1
        if not isinstance(found, SparqlExecutor):
            raise KoplError("--engine kopl runs no queries; programs are run on it in any case")
        engine = found
    checker = Checker(Executor(kb, limits=Limits(seconds=arguments.timeout)), engine)
    file = Path(arguments.file)
    is_corrected = file.is_file() and is_corrections(file)
    examples = checkable(file) if is_corrected else examples_or_errors(arguments.file)
    try:
        for problem in checker.check(examples):
            if arguments.json:
                print(json.dumps(problem.to_json(), ensure_ascii=False))
            else:
                name = f" ({problem.id})" if problem.id is not None else ""
                print(f"{problem.place}{name}: {problem.kind}: {problem.message}")
    finally:
        if engine is not None:
            engine.close()
    summary = checker.summary
    if arguments.json:
        print(json.dumps(summary.to_json(), ensure_ascii=False))
    else:
        print(
            f"{counted(summary.examples, 'example')}: {counted(summary.programs, 'program')} run,"
            f" {counted(summary.queries, 'query', 'queries')} read, {summary.queries_run} run,"
            f" {counted(summary.answers, 'answer')} compared"
        )
        for kind, count in summary.to_json()["problems"].items():
            print(f"  {kind}: {count}")
        print(f"{counted(summary.bad, 'example')} with problems" if summary.bad else "all agree")
    return 1 if summary.bad else 0
