"""``kopl compare``: the same programs on several engines: agreement, differences, speed."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from kopl.errors import ProgramError
from kopl_base.errors import KoplError, counted
from kopl_base.progress import Progress
from kopl_base.tables import print_table
from kopl_cli.common import add_encoding, add_endpoint, add_kb, open_executor, open_kb, seconds
from kopl_cli.run import programs_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_kb(parser, option=True)
    parser.add_argument(
        "--programs",
        required=True,
        metavar="FILE",
        help="JSON lines (or a JSON list) of objects with a field 'program'; '-': standard input",
    )
    parser.add_argument(
        "--engines",
        required=True,
        metavar="A,B,…",
        help="of kopl, oxigraph, oxigraph-memory, rdflib and addresses (http://…); the others are"
        " compared with the first",
    )
    add_endpoint(parser)
    add_encoding(parser)
    parser.add_argument("--timeout", type=seconds, metavar="S", help="seconds for one program")
    parser.add_argument("--json", action="store_true", help="print one JSON object for a program")


@dataclass
class _Tally:
    """What one engine did: its times in ms, and how its results compare with the first's."""

    agree: int = 0
    differ: int = 0
    failed: int = 0
    times: list[float] = field(default_factory=list)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; 0 when all engines agree on all programs."""
    from kopl.sparql.errors import EngineError

    names = [name for name in arguments.engines.split(",") if name]
    if len(names) < 2 or len(set(names)) < len(names):
        raise KoplError("--engines: give two or more different engines, separated by commas")
    kb = open_kb(arguments)
    programs = list(programs_of(arguments.programs))
    engines: dict[str, Any] = {}
    try:
        for name in names:
            engines[name] = open_executor(name, arguments, timeout=arguments.timeout, kb=kb)
        tallies = _compare(programs, engines, arguments.json)
    except EngineError as error:
        print(f"kopl: {error.kind}: {error}", file=sys.stderr)
        return 1
    finally:
        for engine in engines.values():
            engine.close()
    if not arguments.json:
        headings = ("engine", "agree", "differ", "failed", "total s", "median ms", "max ms")
        print_table(headings, [_row(name, tally) for name, tally in tallies.items()])
    bad = sum(tally.differ + tally.failed for tally in tallies.values())
    faults = counted(bad, "difference or failure", "differences and failures")
    print(f"kopl: {counted(len(programs), 'program')}, {faults}", file=sys.stderr)
    return 1 if bad else 0


def _row(name: str, tally: _Tally) -> tuple[object, ...]:
    total = f"{sum(tally.times) / 1000:.3f}"
    median = f"{statistics.median(tally.times):.3f}" if tally.times else ""
    most = f"{max(tally.times):.3f}" if tally.times else ""
    return (name, tally.agree, tally.differ, tally.failed, total, median, most)


def _compare(programs: list[Any], engines: dict[str, Any], as_json: bool) -> dict[str, _Tally]:
    tallies = {name: _Tally() for name in engines}
    with Progress("comparing", len(programs)) as bar:
        for number, program in enumerate(programs, 1):
            results = {
                name: _result(program, engine, tallies[name]) for name, engine in engines.items()
            }
            first = next(iter(results.values()))
            for name, result in results.items():
                tally = tallies[name]
                if isinstance(result, KoplError):
                    tally.failed += 1
                elif result == first:
                    tally.agree += 1
                else:
                    tally.differ += 1
            if as_json:
                print(json.dumps(_shown(number, results), ensure_ascii=False))
            elif any(
                result != first or isinstance(result, KoplError) for result in results.values()
            ):
                print(f"program {number}: {program}")
                for name, result in results.items():
                    print(f"  {name}: {_text(result)}")
            bar.advance(1)
    return tallies


def _result(program: Any, engine: Any, tally: _Tally) -> list[str] | KoplError:
    if isinstance(program, ProgramError):
        return program
    begin = time.perf_counter()
    try:
        found: list[str] = engine.run(program).denotation
    except KoplError as error:
        return error
    finally:
        tally.times.append((time.perf_counter() - begin) * 1000)
    return found


def _text(result: list[str] | KoplError) -> str:
    if isinstance(result, KoplError):
        return f"{result.kind} error: {result}"
    return "; ".join(result) or "(empty)"


def _shown(number: int, results: dict[str, list[str] | KoplError]) -> dict[str, Any]:
    return {
        "program": number,
        "agree": len({json.dumps(_plain(result)) for result in results.values()}) == 1,
        "results": {name: _plain(result) for name, result in results.items()},
    }


def _plain(result: list[str] | KoplError) -> Any:
    if isinstance(result, KoplError):
        return {"error": {"kind": result.kind, "message": str(result)}}
    return result
