"""``kopl translate``: a program in another spelling, as SPARQL, or as a flow chart."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from kopl import text
from kopl.diagram import dot, mermaid
from kopl.errors import ProgramError
from kopl.program import Call
from kopl.sparql.errors import SparqlError
from kopl_base.errors import KoplError
from kopl_cli.common import add_encoding, open_kb, program_text, wikidata_encoding

# The forms of a program alone; SPARQL and flow charts take more than the program.
SPELLINGS: dict[str, Callable[[Call], str]] = {
    "nested": text.write_nested,
    "serialised": text.write_serialised,
    "json": text.write_json,
    "kqapro": partial(text.write_json, published=True),
    "nested-json": text.write_nested_json,
}
CHARTS = ("mermaid", "dot")
FORMS = (*SPELLINGS, "sparql", *CHARTS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--to", required=True, choices=FORMS, help="the form to write")
    parser.add_argument(
        "--from",
        dest="source",
        choices=("kopl", "sparql"),
        default="kopl",
        help="what is given: a program in any spelling (default), or a SPARQL query",
    )
    parser.add_argument(
        "--style",
        choices=("exact", "data"),
        default="exact",
        help="of SPARQL: exact means what the program means; data is written as KQA Pro's queries",
    )
    parser.add_argument(
        "--base",
        metavar="IRI",
        help="of SPARQL: write absolute IRIs below this one, and declare the prefix, as engines"
        " need it",
    )
    parser.add_argument(
        "--kb",
        metavar="KB",
        help="mermaid, dot: show the value after every call; SPARQL: leave out what this knowledge"
        " base never needs",
    )
    parser.add_argument("--no-cache", action="store_true", help=argparse.SUPPRESS)
    add_encoding(parser)
    parser.add_argument(
        "program", metavar="PROGRAM", help="any spelling, or SPARQL with --from; '-' or @FILE"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if arguments.encoding == "wikidata" and (
        arguments.to != "sparql" or arguments.source != "kopl"
    ):
        raise KoplError("--encoding wikidata: only of programs, with --to sparql")
    try:
        given = program_text(arguments.program)
        kb = open_kb(arguments) if arguments.kb else None
        if arguments.source == "sparql":
            from kopl.sparql.to_kopl import from_sparql

            program = from_sparql(given, kb=kb)
        else:
            program = text.read(given)
        if arguments.to == "sparql":
            return _print_sparql(program, kb, arguments)
        trace = None
        if kb is not None and arguments.to in CHARTS:
            from kopl.executor import Executor

            trace = Executor(kb).run(program, trace=True).trace
    except (ProgramError, SparqlError) as error:
        print(f"kopl: {error.kind} error: {error}", file=sys.stderr)
        return 1
    if arguments.to in CHARTS:
        print({"mermaid": mermaid, "dot": dot}[arguments.to](program, trace), end="")
    else:
        print(SPELLINGS[arguments.to](program))
    return 0


def _print_sparql(program: Any, kb: Any, arguments: argparse.Namespace) -> int:
    """The query, and on standard error where its answer may differ from the program's."""
    from kopl.sparql.ast import write
    from kopl.sparql.from_kopl import translate

    if arguments.base is not None:
        from kb.rdf.writer import check_base

        check_base(arguments.base)
    encoding = wikidata_encoding(arguments) if arguments.encoding == "wikidata" else None
    query, differences = translate(program, arguments.style, kb=kb, encoding=encoding)
    for reason in differences:
        print(f"kopl: the answer may differ: {reason}", file=sys.stderr)
    print(write(query, base=arguments.base, prologue=arguments.base is not None))
    return 0
