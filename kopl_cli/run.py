"""``kopl run``: one program, or a file of them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from kopl.errors import ParseError, ProgramError
from kopl.sparql.errors import EngineError, SparqlError
from kopl_base.errors import KoplError, ReadError, counted
from kopl_base.tables import print_table
from kopl_cli.common import (
    add_encoding,
    add_endpoint,
    add_kb,
    offer_own_engine,
    open_executor,
    open_kb,
    positive,
    program_text,
    seconds,
)

if TYPE_CHECKING:
    from kopl.evidence import Evidence
    from kopl.executor import TraceStep

# How many facts of an answer's evidence are printed for people.
SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_kb(parser, option=True, required=False)
    parser.add_argument(
        "--engine",
        default="kopl",
        metavar="ENGINE",
        help="kopl (default), oxigraph, oxigraph-memory, rdflib, or the address of a SPARQL"
        " endpoint, which needs no --kb",
    )
    parser.add_argument("--strict", action="store_true", help="ambiguous comparisons are errors")
    parser.add_argument("--trace", action="store_true", help="show the value after every call")
    parser.add_argument(
        "--evidence", action="store_true", help="show the facts that the answer rests on"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object for a program")
    parser.add_argument("--timeout", type=seconds, metavar="S", help="seconds for one program")
    parser.add_argument("--max-ids", type=positive, metavar="N", help="ids that one call may give")
    parser.add_argument("--max-depth", type=positive, metavar="N", help="calls inside one another")
    parser.add_argument(
        "--programs",
        metavar="FILE",
        help="JSON lines (or a JSON list) of objects with a field 'program'; '-': standard input",
    )
    parser.add_argument(
        "program", nargs="?", metavar="PROGRAM", help="any spelling; '-': standard input; @FILE"
    )
    add_endpoint(parser)
    add_encoding(parser)
    parser.set_defaults(parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if (arguments.program is None) == (arguments.programs is None):
        arguments.parser.error("give either PROGRAM or --programs FILE")
    for option in ("trace", "evidence"):
        if arguments.programs and getattr(arguments, option):
            arguments.parser.error(f"--{option} goes with one PROGRAM")
    text = None if arguments.program is None else program_text(arguments.program)
    try:
        executor = _executor(arguments)
    except EngineError as error:
        _print_error(error, arguments.json)
        offer_own_engine(error, arguments)
        return 1
    try:
        return _run(executor, text, arguments)
    finally:
        executor.close()


def _executor(arguments: argparse.Namespace) -> Any:
    from kopl.sparql.engine import is_address

    if arguments.kb is None and not is_address(arguments.engine):
        arguments.parser.error("the following arguments are required: --kb")
    if arguments.engine != "kopl":
        for option in ("trace", "evidence", "strict", "max_ids", "max_depth"):
            if getattr(arguments, option):
                arguments.parser.error(f"--{option.replace('_', '-')} goes with the engine kopl")
        return open_executor(arguments.engine, arguments, timeout=arguments.timeout)
    from kopl.executor import Executor, Limits

    given = {"seconds": arguments.timeout, "ids": arguments.max_ids, "depth": arguments.max_depth}
    limits = Limits(**{name: value for name, value in given.items() if value is not None})
    return Executor(open_kb(arguments), strict=arguments.strict, limits=limits)


def _run(executor: Any, text: str | None, arguments: argparse.Namespace) -> int:
    if text is None:
        return _run_file(executor, arguments)
    options = {name: True for name in ("trace", "evidence") if getattr(arguments, name)}
    try:
        result = executor.run(text, **options)
    except (ProgramError, SparqlError) as error:
        _print_error(error, arguments.json)
        return 1
    for hint in [] if result.denotation and arguments.json else result.hints:
        print(f"kopl: {hint}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(_with_trace(result), ensure_ascii=False))
        return 0
    if result.trace:
        print_trace(result.trace)
    for string in result.denotation:
        print(string)
    if not result.denotation:
        print("(empty denotation)", file=sys.stderr)
    if arguments.evidence:
        print_evidence(result.evidence)
    return 0


def print_trace(trace: Sequence[TraceStep]) -> None:
    """The value after every call, as a table."""
    rows = [
        (f"#{step.number}", step.text, step.count, _listed(step.shown, step.count))
        for step in trace
    ]
    print_table(("call", "", "values", "first of them"), rows)


def print_evidence(evidence: Evidence) -> None:
    """The first facts that an answer rests on, one a line, with the call that each serves."""
    minimal = "" if evidence.is_minimal else "; some may not be needed: there are too many ways"
    print(f"rests on {counted(len(evidence), 'fact')}{minimal}")
    for fact in islice(evidence.facts(), SHOWN):
        print(f"  #{fact.call}  {fact.text}")
    if len(evidence) > SHOWN:
        print(f"  and {len(evidence) - SHOWN} more (--json gives all)")


def _with_trace(result: Any) -> dict[str, Any]:
    shown: dict[str, Any] = result.to_json()
    if result.trace:
        shown["trace"] = [
            {
                "call": step.number,
                "text": step.text,
                "count": step.count,
                "shown": step.shown,
                **({"facts": step.facts} if step.facts else {}),
            }
            for step in result.trace
        ]
    if getattr(result, "evidence", None) is not None:
        shown["evidence"] = result.evidence.to_json()
    return shown


def _listed(strings: list[str], count: int) -> str:
    more = f" … ({count} in all)" if count > len(strings) else ""
    return "; ".join(strings) + more


def error_json(error: KoplError) -> dict[str, Any]:
    """The object that ``--json`` prints for a program that failed."""
    return {
        "error": {
            "kind": error.kind,
            "message": getattr(error, "message", str(error)),
            "call": getattr(error, "call", None),
        }
    }


def _print_error(error: KoplError, as_json: bool) -> None:
    if as_json:
        print(json.dumps(error_json(error), ensure_ascii=False))
    else:
        print(f"kopl: {error.kind} error: {error}", file=sys.stderr)


def programs_of(path: str) -> Iterator[Any]:
    """The programs of a file; an object that holds none gives the error in its place."""
    from kopl.example import read_objects

    for place, item in read_objects("/dev/stdin" if path == "-" else path):
        if isinstance(item, ReadError):
            yield ParseError(f"{place}: {item.message}")
        elif not isinstance(item, dict) or not isinstance(item.get("program"), str | list | dict):
            yield ParseError(f"{place}: an object with a field 'program' was expected")
        else:
            yield item["program"]


def _run_file(executor: Any, arguments: argparse.Namespace) -> int:
    programs = failed = 0
    for result in executor.run_many(programs_of(arguments.programs)):
        programs += 1
        if isinstance(result, KoplError):
            failed += 1
            if arguments.json:
                _print_error(result, True)
            else:
                print()  # every program has its line
                print(f"kopl: program {programs}: {result.kind} error: {result}", file=sys.stderr)
        elif arguments.json:
            print(json.dumps(result.to_json(), ensure_ascii=False))
        else:
            print("; ".join(result.denotation))
    if failed:
        print(f"kopl: {failed} of {programs} programs failed", file=sys.stderr)
    return 1 if failed else 0
