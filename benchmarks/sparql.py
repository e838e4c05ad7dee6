"""SPARQL engines beside each other and beside the KoPL executor, in one run.

    python benchmarks/sparql.py --kb KB [--programs FILE] [--engines A,B,…] [--quick] [--json OUT]

Builds the stores, asks question shapes of every engine in turn, then runs the programs of FILE
(JSON list of {"type", "program"}) and compares all answers with the KoPL executor's. An engine has
a process of its own, which is killed when a query takes longer than the limit. Markdown goes to
standard output. The script measures and fails on nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.metadata
import itertools
import json
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from workers.sparql_processes import OURS, PEER, Remote, available, build, note, stop_virtuoso

ENGINES = ("oxigraph-disk", "oxigraph-memory", "oxigraph-server", "virtuoso", "rdflib", "kopl")
STYLES = {"exact": "from program to answer", "data": "from KQA-Pro-style query to answer"}


def main() -> None:
    """Build, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kb", required=True, help="a knowledge base or its snapshot, or 'world'")
    parser.add_argument("--programs", type=Path, help="programs to run as well")
    parser.add_argument(
        "--engines", default=f"{OURS},oxigraph-memory,{PEER},kopl",
        help=f"of {', '.join(ENGINES)}; rdflib takes minutes and gigabytes (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--groundings", type=int, default=20, help="of each shape (default: 20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=60, help="seconds for a query (default: 60)")
    parser.add_argument(
        "--budget",
        type=float,
        default=600,
        help="seconds for one pass of the programs on an engine",
    )
    parser.add_argument("--work", type=Path, help="folder for the stores (default: a temporary)")
    parser.add_argument("--quick", action="store_true", help="3 groundings, 200 programs")
    parser.add_argument("--json", type=Path, metavar="OUT", help="everything measured, as JSON")
    arguments = parser.parse_args()
    if unknown := set(arguments.engines.split(",")) - set(ENGINES):
        parser.error(f"unknown engines: {', '.join(sorted(unknown))}")
    if arguments.quick:
        arguments.groundings = min(arguments.groundings, 3)
    # A "kill" ends the servers, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with contextlib.ExitStack() as stack:
        work = arguments.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        report: dict[str, Any] = {}
        try:
            measure(report, arguments, work.absolute(), stack)
        except (KeyboardInterrupt, SystemExit) as error:
            if "shapes" not in report:
                raise
            note(f"interrupted ({error!r}); what was measured until now:")
    if arguments.json:
        arguments.json.write_text(json.dumps(report, ensure_ascii=False, indent=1), "utf-8")
    print_report(report)


def measure(
    report: dict[str, Any], arguments: argparse.Namespace, work: Path, stack: contextlib.ExitStack
) -> None:
    """Everything that is measured, into the report."""
    from workers.sparql_shapes import SHAPES, grounded

    import kb
    from kopl.executor import Executor

    work.mkdir(parents=True, exist_ok=True)
    snapshot = work / "kb.kopl"
    knowledge = kb.load(arguments.kb)
    kb.write_snapshot(knowledge, snapshot)
    names = [n for n in arguments.engines.split(",") if available(n)]
    report |= {"machine": machine(names), "kb": repr(knowledge), "build": {}, "peaks MB": {}}
    note(f"{knowledge}; engines: {', '.join(names)}")
    executor = Executor(knowledge)

    if PEER in names:
        stack.callback(stop_virtuoso, work)
    for what, needed_by in (("disk", (OURS, "oxigraph-server")), ("virtuoso", (PEER,))):
        if set(needed_by) & set(names):
            try:
                report["build"][what] = build(what, snapshot, work)
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                note(f"{what} could not be built: {error}")
                names = [name for name in names if name not in needed_by]
    engines = [stack.enter_context(Remote(n, snapshot, work, arguments.limit)) for n in names]
    engines = [engine for engine in engines if engine.start()]
    report["open"] = {engine.name: engine.ready for engine in engines}
    report["engines"] = [engine.name for engine in engines]

    note("drawing the questions")
    questions = grounded(knowledge, executor, arguments.groundings, arguments.seed)
    report["shapes"] = {
        name: {
            "selective": SHAPES[name][1],
            "questions": [asked(program.program, wanted, knowledge) for program, wanted in found],
        }
        for name, found in questions.items()
    }
    for once in (1, 2):
        for name, one in report["shapes"].items():
            note(f"pass {once}: {name}")
            for engine in engines:
                for style in STYLES:
                    for question in one["questions"]:
                        result = engine.ask(style, question)
                        question["results"].append([engine.name, style, once, result])
    if arguments.programs:
        run_programs(report, arguments, knowledge, executor, engines)
    report["peaks MB"] = {engine.name: engine.peak() for engine in engines}


def run_programs(
    report: dict[str, Any],
    arguments: argparse.Namespace,
    knowledge: Any,
    executor: Any,
    engines: list[Remote],
) -> None:
    """The programs of the file on every engine but rdflib, and as queries of the data's style."""
    items = json.loads(arguments.programs.read_text("utf-8"))[: 200 if arguments.quick else None]
    questions = [
        asked(item["program"], executor.denote(item["program"]), knowledge) for item in items
    ]
    types = Counter(item.get("type", "?") for item in items)
    report["programs"] = {"types": types, "questions": questions}
    for style, once in itertools.product(STYLES, (1, 2)):
        for engine in engines:
            if engine.name == "rdflib":
                continue
            note(f"{len(questions)} programs, {style}, pass {once}: {engine.name}")
            late = time.monotonic() + arguments.budget
            for number, question in enumerate(questions):
                if time.monotonic() > late:
                    note(f"{engine.name} is given up after {number} programs")
                    break
                result = engine.ask(style, question)
                question["results"].append([engine.name, style, once, result])


def asked(program: Any, wanted: list[str], knowledge: Any) -> dict[str, Any]:
    """A question in both forms, with the executor's answer and room for what engines say."""
    from kopl.sparql.from_kopl import translate
    from kopl.text import read, write_json

    program = read(program)
    query, reasons = translate(program, "data", kb=knowledge)
    exact, _ = translate(program, kb=knowledge)
    return {
        "program": str(program), "exact": write_json(program), "sparql": str(exact),
        "data": str(query), "may differ": reasons, "wanted": wanted, "results": [],
    }  # fmt: skip


def machine(names: Sequence[str]) -> str:
    """Where, when and with which versions."""
    model, info = platform.processor() or platform.machine(), Path("/proc/cpuinfo")
    if info.is_file() and (named := re.search(r"model name\s*: (.*)", info.read_text())):
        model = named[1]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    versions = [f"Python {platform.python_version()}", platform.system()]
    for package in ("pyoxigraph", "oxigraph", "rdflib"):
        if any(name.startswith(package.removeprefix("py")) for name in names):
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                versions.append(f"{package} {importlib.metadata.version(package)}")
    if PEER in names:
        said = subprocess.run(["virtuoso-t", "-?"], capture_output=True, text=True, check=False)
        if found := re.search(r"Version ([\d.]+)", said.stdout + said.stderr):
            versions.append(f"Virtuoso {found[1]}")
    where = f"{model}, {os.cpu_count()} cores, {memory:.0f} GB"
    return f"{datetime.date.today()}, {', '.join(versions)}, {where}"


# --- tables ---------------------------------------------------------------------------------------


def print_report(report: dict[str, Any]) -> None:
    """Everything as markdown."""
    engines, shapes = report["engines"], report["shapes"]
    print(f"{report['machine']}.\n{report['kb']}.\n")
    print_builds(report)
    everything = [q for one in shapes.values() for q in one["questions"]]
    counts = Counter(len(one["questions"]) for one in shapes.values())
    told = ", ".join(f"{n} shapes of {size}" for size, n in sorted(counts.items(), reverse=True))
    full = sum(q["wanted"] not in ([], ["0"], ["no"]) for q in everything)
    print(f"{len(everything)} questions ({told} groundings); {full / len(everything):.1%} of them")
    print("have an answer other than nothing, 0 and no.\n")
    for style, meaning in STYLES.items():
        print(f"Second pass, {meaning}: median / 95th percentile / worst, ms.\n")
        print_shapes(shapes, engines, style)
        print(f"First pass, {meaning}: medians, ms.\n")
        rows = []
        for name, one in shapes.items():
            found = [quantiles(times(one["questions"], e, style, 1)) for e in engines]
            rows.append([name, *(f"{f[0]:.2f}" if f else "" for f in found)])
        table(["shape", *engines], rows)
    print_agreement("Questions of the shapes", everything, engines)
    if "programs" in report:
        print_programs(report["programs"], engines)
    print_misses(shapes, engines)


def print_builds(report: dict[str, Any]) -> None:
    rows = []
    for what, label in (("disk", "Oxigraph store on disk, from a snapshot"),
                        (PEER, "Virtuoso, its own loader, from N-Triples")):  # fmt: skip
        if found := report["build"].get(what):
            peak = max(found["peak MB"], found["own peak MB"])
            peak = found["own peak MB"] if what == PEER else peak
            rows.append([label, f"{found['s']:.1f}", f"{peak:.0f}", f"{found['MB']:.0f}"])
            if what == PEER:
                rows.append(["… N-Triples for it", f"{found['export s']:.1f}", "",
                             f"{found['triples MB']:.0f}"])  # fmt: skip
    table(["build", "seconds", "peak MB", "MB on disk"], rows)
    rows = [
        [name, f"{found['ready']:.2f}", f"{found['open ms']:.0f}", f"{found['peak MB']:.0f}",
         f"{report['peaks MB'].get(name, 0):.0f}"]
        for name, found in report["open"].items()
    ]  # fmt: skip
    heads = ["engine", "process start to ready s", "engine opened ms", "peak MB until then"]
    table([*heads, "peak MB in the end"], rows)


def print_shapes(shapes: dict[str, Any], engines: list[str], style: str) -> None:
    rows = []
    for name, one in shapes.items():
        row = [name + (" *" if one["selective"] else "")]
        medians = {}
        for engine in engines:
            found = quantiles(times(one["questions"], engine, style, 2))
            row.append(" / ".join(f"{number:.2f}" for number in found) if found else "")
            medians[engine] = found[0] if found else 0.0
        for kind in ("ms", "engine ms"):
            row.append(ratio(one["questions"], style, kind))
        rows.append(row)
    heads = ["shape (* selective)", *engines, f"{OURS} : {PEER}", "engines alone"]
    table(heads, rows)


def ratio(questions: list[Any], style: str, kind: str = "ms") -> str:
    """The median of ours over that of the peer, in the second pass."""
    ours, peer = (quantiles(times(questions, e, style, 2, kind)) for e in (OURS, PEER))
    return f"{ours[0] / peer[0]:.2f}" if ours and peer and peer[0] else ""


def print_agreement(label: str, questions: list[Any], engines: list[str]) -> None:
    """How many answers are not the KoPL executor's."""
    print(f"{label}: answers that are not the KoPL executor's, both passes.\n")
    rows, shown = [], []
    for engine in engines:
        for style in STYLES:
            tally: Counter[str] = Counter()
            for question, result in results(questions, engine, style):
                kind = verdict(question, result, style)
                tally[kind] += 1
                if kind in ("wrong", "failed") and (line := miss(engine, style, question, result)):
                    shown += [line] if line not in shown else []
            if tally:
                row = [tally.total(), *(tally[k] for k in ("wrong", "allowed", "failed", "late"))]
                rows.append([engine, style, *map(str, row)])
    table(["engine", "style", "answers", "wrong", "differ as announced", "failed", "late"], rows)
    for line in shown[:20]:
        print(line)
    print(f"… and {len(shown) - 20} more\n" if len(shown) > 20 else "")


def verdict(question: dict[str, Any], result: dict[str, Any], style: str) -> str:
    if error := result.get("error"):
        return "late" if "TooLate" in error or "TimedOut" in error else "failed"
    if "answer" not in result:
        return "right"
    return "allowed" if style == "data" and question["may differ"] else "wrong"


def miss(engine: str, style: str, question: dict[str, Any], result: dict[str, Any]) -> str:
    said = result.get("error") or str(result["answer"])[:200]
    wanted = str(question["wanted"])[:200]
    return f"- {engine}, {style}: `{question['program']}`: {said}; expected {wanted}"


def print_programs(programs: dict[str, Any], engines: list[str]) -> None:
    questions = programs["questions"]
    full = sum(q["wanted"] not in ([], ["0"], ["no"]) for q in questions) / len(questions)
    shares = ", ".join(f"{k} {n / len(questions):.1%}" for k, n in programs["types"].items())
    print(f"{len(questions)} programs ({shares});")
    print(f"{full:.1%} have an answer other than nothing, 0 and no.\n")
    rows = []
    totals: dict[tuple[str, str, str], float] = {}
    for style in STYLES:
        for engine in engines:
            if not (found := times(questions, engine, style, 2)):
                continue
            first, alone = (sum(times(questions, engine, style, *rest)) / 1000
                            for rest in ((1,), (2, "engine ms")))  # fmt: skip
            if len(found) == len(questions):
                totals[style, engine, "ms"] = sum(found) / 1000
                totals[style, engine, "engine ms"] = alone
            row = [first, sum(found) / 1000, alone]
            middle = " / ".join(f"{number:.2f}" for number in quantiles(found))
            rows.append([engine, style, str(len(found)), *(f"{n:.2f}" for n in row), middle])
    heads = ["engine", "style", "answered", "1st pass s", "2nd pass s", "the engine's part s"]
    table([*heads, "median / p95 / worst ms"], rows)
    for style, engine in (("exact", OURS), ("data", "kopl"), ("exact", "kopl")):
        ours, peer = totals.get((style, engine, "ms")), totals.get((style, PEER, "ms"))
        if ours and peer:
            alone = totals[style, PEER, "engine ms"]
            print(f"{style}: {engine} is {peer / ours:.1f} times as fast as {PEER}")
            print(f"({alone / ours:.1f} times, counting only {PEER}'s own part).\n")
    print_agreement("Programs", questions, engines)
    slow = sorted(
        ((result["ms"], q) for q, result in results(questions, OURS, "exact", 2)),
        key=lambda pair: -pair[0],
    )
    print(f"The slowest on {OURS}:\n")
    for milliseconds, question in slow[:5]:
        print(f"- {milliseconds:.0f} ms: `{question['program']}`\n  `{question['sparql']}`")
    print()


def print_misses(shapes: dict[str, Any], engines: list[str]) -> None:
    """The shapes that miss the reach, each with its slowest query."""
    if not {OURS, PEER} <= set(engines):
        return
    print(f"Reach: no median above twice {PEER}'s, selective shapes (*) below it. Missed by:\n")
    for style in STYLES:
        for name, one in shapes.items():
            found = ratio(one["questions"], style)
            if not found or float(found) <= (1 if one["selective"] else 2):
                continue
            worst: dict[str, tuple[float, Any]] = defaultdict(lambda: (0.0, None))
            for engine in (OURS, PEER):
                for question, result in results(one["questions"], engine, style, 2):
                    worst[engine] = max(worst[engine], (result["ms"], question), key=lambda p: p[0])
            slowest = worst[OURS][1]
            there = [r["ms"] for q, r in results([slowest], PEER, style, 2)]
            text = slowest["sparql" if style == "exact" else "data"]
            print(f"- {name}, {style}: {found} times; slowest {worst[OURS][0]:.1f} ms", end="")
            print(f" ({PEER} {there[0]:.1f} ms): `{text}`")
    print()


def results(
    questions: list[Any], engine: str, style: str, once: int | None = None
) -> Iterator[tuple[Any, Any]]:
    """Each question with what an engine answered."""
    for question in questions:
        for name, how, number, result in question["results"]:
            if (name, how) == (engine, style) and once in (None, number):
                yield question, result


def times(
    questions: list[Any], engine: str, style: str, once: int, kind: str = "ms"
) -> list[float]:
    """The milliseconds of an engine in a pass; failures are left out, late ones count the limit."""
    found = [(verdict(q, r, style), r) for q, r in results(questions, engine, style, once)]
    return [result[kind] for how, result in found if how != "failed"]


def quantiles(found: list[float]) -> tuple[float, ...]:
    """Median, 95th percentile, worst; nothing of nothing."""
    found = sorted(found)
    return (statistics.median(found), found[int(len(found) * 0.95)], found[-1]) if found else ()


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A markdown table."""
    print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


if __name__ == "__main__":
    main()
