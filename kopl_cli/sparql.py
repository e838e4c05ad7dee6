"""``kopl sparql``: queries on a knowledge base or an endpoint, and servers for them."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from kopl_base.errors import KoplError, counted
from kopl_base.tables import print_table
from kopl_cli.common import (
    add_encoding,
    add_endpoint,
    add_kb,
    offer_own_engine,
    open_endpoint,
    open_executor,
    open_kb,
    program_text,
    seconds,
    show_warnings,
)
from kopl_cli.sparql_server import add_serve, add_virtuoso

ACTIONS = ("query", "properties", "virtuoso", "serve")


def default_action(arguments: list[str]) -> list[str]:
    """The arguments of the command with "query" put in, which may be left out."""
    if arguments and arguments[0] in (*ACTIONS, "-h", "--help"):
        return arguments
    return ["query", *arguments]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = "'query' may be left out: kopl sparql --kb world 'ASK { … }'"
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    sentence = "the answer to a SPARQL query, as KQA Pro writes answers, or its rows"
    query = actions.add_parser("query", help=sentence, description=sentence.capitalize() + ".")
    add_kb(query, option=True, required=False)
    query.add_argument("--endpoint", metavar="URL", help="a SPARQL 1.1 endpoint to ask instead")
    query.add_argument(
        "--engine",
        default="oxigraph",
        metavar="ENGINE",
        help="with --kb: oxigraph (default), oxigraph-memory, rdflib, or kopl, which runs the"
        " query as a program",
    )
    add_endpoint(query)
    add_encoding(query)
    query.add_argument("--timeout", type=seconds, metavar="S", help="seconds for the query")
    query.add_argument(
        "--rows", action="store_true", help="print the rows of the answer, not its strings"
    )
    query.add_argument("--json", action="store_true", help="print one JSON object")
    query.add_argument("query", metavar="QUERY", help="SPARQL; '-': standard input; @FILE")
    query.set_defaults(handler=_query, parser=query)
    sentence = "the properties of an endpoint's graph in Wikidata's form, by their labels, as JSON"
    properties = actions.add_parser("properties", help=sentence, description=sentence + ".")
    properties.add_argument("--endpoint", metavar="URL", required=True, help="a SPARQL endpoint")
    add_endpoint(properties)
    properties.add_argument("--language", default="en", metavar="TAG", help="of labels")
    properties.add_argument("--timeout", type=seconds, metavar="S", help="seconds for the query")
    properties.add_argument("-o", "--out", metavar="FILE", help="default: standard output")
    properties.set_defaults(handler=_properties, parser=properties)
    add_virtuoso(actions)
    add_serve(actions)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    status: int = arguments.handler(arguments)
    return status


def _query(arguments: argparse.Namespace) -> int:
    if (arguments.kb is None) == (arguments.endpoint is None):
        arguments.parser.error("give either --kb KB or --endpoint URL")
    from kopl.sparql.errors import EngineError, QueryReadError, QueryTooDeepError
    from kopl.sparql.evaluate import SparqlExecutor

    text = program_text(arguments.query)
    if arguments.endpoint is not None:
        _check_address(arguments.endpoint)
    if arguments.engine == "kopl" and arguments.kb is not None:
        return _by_program(text, arguments)
    try:
        executor = open_executor(
            arguments.endpoint or arguments.engine, arguments, timeout=arguments.timeout
        )
    except EngineError as error:
        status = _failed(error, arguments.json)
        offer_own_engine(error, arguments)
        return status
    if not isinstance(executor, SparqlExecutor):
        raise KoplError("--engine kopl goes with --kb")
    begin = time.perf_counter()
    unread = None
    try:
        if not arguments.rows:
            try:
                _print_denotation(executor.denotation(text), begin, arguments.json)
                return 0
            except QueryTooDeepError as error:
                return _failed(error, arguments.json)
            except QueryReadError as error:
                unread = error  # the engine may know better
        rows = executor.rows(text)
    except QueryTooDeepError as error:
        return _failed(error, arguments.json)
    except EngineError as error:
        if unread is not None:
            print(f"kopl: {unread}", file=sys.stderr)
        return _failed(error, arguments.json)
    finally:
        executor.close()
    if unread is not None:
        print(f"kopl: {unread}; its rows are shown", file=sys.stderr)
    _print_rows(rows, arguments.json)
    return 0


def _check_address(endpoint: str) -> None:
    from kopl.sparql.engine import is_address

    if not is_address(endpoint):
        raise KoplError(f"{endpoint!r} is no address of an endpoint (http://…)")


def _properties(arguments: argparse.Namespace) -> int:
    from kopl.sparql.errors import EngineError
    from kopl.sparql.properties import write_properties
    from kopl.sparql.wikidata import Wikidata
    from kopl_base.stream import writing

    _check_address(arguments.endpoint)
    show_warnings()
    try:
        engine = open_endpoint(arguments.endpoint, arguments, arguments.timeout)
        found = Wikidata.of(engine, arguments.language, timeout=arguments.timeout).properties
    except EngineError as error:
        return _failed(error, as_json=False)
    text = write_properties(found)
    if arguments.out is None:
        print(text, end="")
    else:
        with writing(arguments.out) as file:
            file.write(text)
    print(f"kopl: {counted(len(found), 'label')} of properties", file=sys.stderr)
    return 0


def _by_program(text: str, arguments: argparse.Namespace) -> int:
    """The query run as the program that it says."""
    from kopl.executor import Executor, Limits
    from kopl.sparql.errors import NotInKoplError, NotReadError
    from kopl.sparql.to_kopl import from_sparql

    if arguments.rows:
        arguments.parser.error("--rows: the engine kopl gives strings only")
    kb = open_kb(arguments)
    begin = time.perf_counter()
    try:
        program = from_sparql(text, kb=kb)
        executor = Executor(kb, limits=Limits(seconds=arguments.timeout))
        _print_denotation(executor.denote(program), begin, arguments.json)
    except KoplError as error:
        status = _failed(error, arguments.json)
        if isinstance(error, NotInKoplError | NotReadError):
            print(
                "kopl: the engine kopl answers what a program says; --engine oxigraph (or rdflib)"
                " answers any query of SPARQL",
                file=sys.stderr,
            )
        return status
    return 0


def _failed(error: KoplError, as_json: bool) -> int:
    if as_json:
        shown = {"error": {"kind": error.kind, "message": str(error)}}
        print(json.dumps(shown, ensure_ascii=False))
    else:
        print(f"kopl: {error.kind}: {error}", file=sys.stderr)
    return 1


def _print_denotation(strings: list[str], begin: float, as_json: bool) -> None:
    if as_json:
        from kopl.executor import Denoted

        shown = Denoted(strings, (time.perf_counter() - begin) * 1000).to_json()
        print(json.dumps(shown, ensure_ascii=False))
        return
    for string in strings:
        print(string)
    if not strings:
        print("(empty denotation)", file=sys.stderr)


def _print_rows(answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(answer, ensure_ascii=False))
    elif "boolean" in answer:
        print("true" if answer["boolean"] else "false")
    else:
        names = answer["head"]["vars"]
        rows = answer["results"]["bindings"]
        print_table(names, [[row.get(name, {}).get("value", "") for name in names] for row in rows])
