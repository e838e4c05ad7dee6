"""The ways through the packages: which modules a task enters, and with how many calls.

    python benchmarks/ways.py [--way NAME] [--list NAME] [--json]

Each way runs in this process on fixed inputs: twice before the run that is counted, so that
imports, caches and compiled patterns are there. Only ``ask`` takes long: it trains a parser for
half a minute. ``--list`` prints the modules of one way with their calls. The script measures and
fails on nothing; it prints Markdown.

A call is the beginning of a Python function of ours, whoever calls it: a property, a method that
Python calls, a lambda and a generator expression count; a generator counts once, where it begins,
not where it goes on; list, set and dict comprehensions do not count (since Python 3.12 they are no
calls). A call crosses modules when the nearest caller that is ours, past the standard library and
other packages, stands in another module; the share is of all calls. A module is entered when it has
a call; those of the command line count.

The packages were rebuilt on 2026-11-22 (CPython 3.11). What a reader had counted before without
noting the inputs, what this script counted before and after, and what was wanted (modules / calls /
crossing):

    way        read                    before                  after                wanted
    run        13 /    157             13 /    148 / 67 %      12 /     76 / 34 %   unchanged
    oxigraph   30 /    431             32 /    428 / 49 %      29 /    436 / 46 %   22 modules
    load       19 /  1,396             20 /  1,474 / 29 %      14 /  1,450 / 22 %   14 modules
    generate   53 / 30,346 / "half"    57 / 31,408 / 47 %      47 / 10,589 / 50 %   35 modules, 30 %
    ask        31 /  2,840 / 55 %      32 /  2,739 / 60 %      27 /  1,656 / 35 %   22 modules, 35 %
    cqa        29                      27 /    615 / 36 %      27 /    495 / 32 %   18 modules

What is over is mostly the layers below, which are good as they are: half of the modules of ``ask``
and two thirds of those of ``generate`` and ``oxigraph`` are of kb, kopl and the command line. In
``cqa`` the batched walk took the place of the modules that only built the argument parser.

What ``ask`` counts hangs on the network: on another machine, rounding may train another one.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import inspect
import io
import json
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OURS = {"kopl_base", "kb", "kopl", "generation", "parsers", "cqa", "kopl_cli"}

PROGRAM = 'QueryName(FilterNum(FindAll(), "area", "300000 square kilometre", ">"))'
QUERIED = 'FilterConcept(FindAll(), "country")'
QUESTION = "What is the birth rate of Peru?"
FORMULA = (
    '∃x. "source country"(river-danube-2888,x) ∧ "shares border with"(x,?f1)'
    " ∧ currency(?f1,currency-EUR)"
)

_COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>"}
_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


@dataclass
class Count:
    """The calls of one run in each module, and how many of all came from another module."""

    calls: Counter[str]
    crossing: int

    @property
    def share(self) -> float:
        """The share of the calls that cross modules."""
        return self.crossing / max(1, self.calls.total())


def count(run: Callable[[], object]) -> Count:
    """The calls of our functions while this runs, in all threads that it starts, too."""
    calls: Counter[str] = Counter()
    crossing = 0
    begun: set[FrameType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal crossing
        if event != "call" or (module := _module(frame)) is None:
            return
        if frame.f_code.co_flags & _GENERATORS:
            # Python tells of a generator that goes on as of one that begins.
            if frame in begun:
                return
            begun.add(frame)
        if frame.f_code.co_name in _COMPREHENSIONS:
            return
        calls[module] += 1
        caller = frame.f_back
        while caller is not None and _module(caller) is None:
            caller = caller.f_back
        crossing += caller is not None and _module(caller) != module

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return Count(calls, crossing)


def _module(frame: FrameType) -> str | None:
    name = str(frame.f_globals.get("__name__", ""))
    return name if name.partition(".")[0] in OURS else None


def command(*arguments: str) -> None:
    """Run ``kopl`` with these arguments; raises RuntimeError with what it says when it fails."""
    from kopl_cli import main

    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        status = main(arguments)
    if status:
        raise RuntimeError(said.getvalue())


def executor_run(_: Path) -> Callable[[], object]:
    """A program on ``world``."""
    from kb import load
    from kopl import Executor

    executor = Executor(load("world"))
    return lambda: executor.run(PROGRAM)


def run_on_oxigraph(_: Path) -> Callable[[], object]:
    """A program as SPARQL on ``world``."""
    return lambda: command("run", "--kb", "world", "--engine", "oxigraph", QUERIED)


def load_json(folder: Path) -> Callable[[], object]:
    """Reading a kb.json of twelve entities: those of the tests, thrice."""
    from kb import load

    document: dict[str, Any] = json.loads((ROOT / "tests/data/tiny.json").read_text("utf-8"))
    entities = document["entities"]
    for copied in range(2):
        for name, entity in list(entities.items()):
            if "#" not in name:
                entities[f"{name}#{copied}"] = copy.deepcopy(entity)
    file = folder / "kb.json"
    file.write_text(json.dumps(document), "utf-8")
    return lambda: load(file, cache=False)


def generate(_: Path) -> Callable[[], object]:
    """Three questions with queries on ``world``; no query is run, which only chance would do."""
    return lambda: command(
        "generate", "--kb", "world", "-n", "3", "--verify", "0", "-q", "-o", "-"
    )  # fmt: skip


def ask(folder: Path) -> Callable[[], object]:
    """A question to a parser that was trained for seconds."""
    from parsers.parser import Parser

    run = folder / "run"
    command("train", "--config", "tiny", "--set", f"output={run}", "--set", "plots=false")
    parser = Parser.load(run, device="cpu")
    return lambda: parser.ask(QUESTION)


def answer(folder: Path) -> Callable[[], object]:
    """The answers of a logical query of three atoms on a graph of ``world``."""
    graph = str(folder / "graph")
    command("cqa", "graph", "--kb", "world", "--shares", "9,0,1", "--seed", "1", "-o", graph)
    return lambda: command("cqa", "answer", "--graph", graph, FORMULA)


# name -> (what it is called in the table, what prepares it in a folder and gives what to run)
WAYS: dict[str, tuple[str, Callable[[Path], Callable[[], object]]]] = {
    "run": ("`Executor.run`", executor_run),
    "oxigraph": ("`kopl run --engine oxigraph`", run_on_oxigraph),
    "load": ("loading a small kb.json", load_json),
    "generate": ("`kopl generate -n 3`", generate),
    "ask": ("`Parser.ask`", ask),
    "cqa": ("`kopl cqa answer`", answer),
}


def measure(name: str, folder: Path) -> Count:
    """The calls of one warm run of a way; what it needs is made in the folder."""
    run = WAYS[name][1](folder)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        run()
        run()
        return count(run)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--way", choices=WAYS, action="append", help="only this one; repeatable")
    parser.add_argument("--list", choices=WAYS, help="the modules of this one with their calls")
    parser.add_argument("--json", action="store_true", help="all numbers as one JSON object")
    arguments = parser.parse_args()
    # Packages for tensors start threads, which is no concern of ours here.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    names = [arguments.list] if arguments.list else arguments.way or list(WAYS)
    with tempfile.TemporaryDirectory() as folder:
        # Snapshots as the first run leaves them, not what the user's cache holds.
        os.environ["KOPL_CACHE_DIR"] = str(Path(folder) / "cache")
        counts = {name: measure(name, Path(folder)) for name in names}
    if arguments.json:
        shown = {
            name: {
                "modules": len(one.calls),
                "calls": one.calls.total(),
                "crossing": one.crossing,
                "calls of modules": dict(one.calls.most_common()),
            }
            for name, one in counts.items()
        }
        print(json.dumps(shown, indent=2))
    elif arguments.list:
        print("| module | calls |\n|---|--:|")
        for module, calls in counts[arguments.list].calls.most_common():
            print(f"| {module} | {calls:,} |")
    else:
        print("| way | modules | calls | crossing |\n|---|--:|--:|--:|")
        for name, one in counts.items():
            total = one.calls.total()
            print(f"| {WAYS[name][0]} | {len(one.calls)} | {total:,} | {one.share:.0%} |")


if __name__ == "__main__":
    # In the folder of this script, other scripts have the names of packages.
    sys.path[0] = str(ROOT)
    main()
