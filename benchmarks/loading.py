"""Processor time and memory of loading a large knowledge base, and how both grow with its size.

    python benchmarks/loading.py                       # 100,000 and 1,000,000 entities, JSON lines
    python benchmarks/loading.py --form kqapro --sizes 30000,120000

The knowledge base follows from the seed: every entity has ten facts (five literals, two of them
distinct nearly everywhere, and five relational ones written at their heads), a fifth of the facts
has a qualifier, and 1,000 concepts stand in a tree. Each figure is of a process of its own. The
script measures and fails on nothing.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
FORMS = {"lines": ".jsonl", "kqapro": ".json"}
CONCEPTS, KEYS, RELATIONS, BLOCK = 1_000, 8, 40, 10_000


def main() -> None:
    """Write the knowledge bases, load each in its own process, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="100000,1000000", help="numbers of entities")
    parser.add_argument("--form", default="lines", choices=FORMS, help="the form of the file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, help="folder for the files, which are kept in it")
    parser.add_argument("--measure", nargs=2, metavar=("STEP", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        step, file = arguments.measure
        print(json.dumps(measured(STEPS[step](Path(file)))))
        return
    with tempfile.TemporaryDirectory() as folder:
        work = arguments.work or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        rows: dict[int, list[dict[str, Any]]] = {}
        for size in map(int, arguments.sizes.split(",")):
            file = work / f"{size}-{arguments.seed}{FORMS[arguments.form]}"
            if not file.is_file():
                write(file, size, arguments.seed)
            snapshot = file.with_suffix(".kopl")
            rows[size] = [*run("load", file), *run("open", snapshot)]
            rows[size][0]["megabytes"] = file.stat().st_size / 1e6
            rows[size][1]["megabytes"] = snapshot.stat().st_size / 1e6
    print_table(rows)


# --- the knowledge base ------------------------------------------------------------------------


def write(file: Path, entities: int, seed: int) -> None:
    """A knowledge base in the form that the file's ending says; the same for the same seed."""
    temporary = file.with_name(f".{file.name}")
    with temporary.open("w", encoding="utf-8") as out:
        if file.suffix == ".jsonl":
            for kind, nodes in (("concept", concepts()), ("entity", facts(entities, seed))):
                for id, text in nodes:
                    out.write(f'{{"id": "{id}", "kind": "{kind}", {text}}}\n')
        else:
            document(out, (("concepts", concepts()), ("entities", facts(entities, seed))))
    temporary.replace(file)


def document(out: TextIO, sections: tuple[tuple[str, Iterator[tuple[str, str]]], ...]) -> None:
    """Write the sections as one ``kb.json``."""
    for at, (section, nodes) in enumerate(sections):
        out.write(f'{", " if at else "{"}"{section}": {{')
        for number, (id, text) in enumerate(nodes):
            out.write(f'{"," if number else ""}\n"{id}": {{{text}}}')
        out.write("\n}")
    out.write("}\n")


def concepts() -> Iterator[tuple[str, str]]:
    """Id and content of the concepts: a tree in which every node has four below it."""
    for number in range(CONCEPTS):
        parents = [f"C{(number - 1) // 4}"] if number else []
        yield f"C{number}", f'"name": "kind {number}", "subclassOf": {json.dumps(parents)}'


def facts(entities: int, seed: int) -> Iterator[tuple[str, str]]:
    """Id and content of the entities."""
    rng = np.random.default_rng(seed)
    for first in range(0, entities, BLOCK):
        count = min(BLOCK, entities - first)
        columns = [
            rng.integers(0, bound, count).tolist()
            for bound in (CONCEPTS, KEYS, 10_000_000, 1_000_000, 3_000, 365 * 200, 5_000)
        ]
        relations = rng.integers(0, RELATIONS, (count, 5)).tolist()
        tails = rng.integers(0, entities, (count, 5)).tolist()
        years = rng.integers(1900, 2026, (count, 2)).tolist()
        for at, (concept, key, *numbers) in enumerate(zip(*columns, strict=True)):
            attributes = literals(key, numbers, years[at][0])
            relational = [
                f'{{"relation": "relation {relation}", "direction": "forward", "object": "Q{tail}",'
                f' "qualifiers": {{{since(years[at][1]) if place == 0 else ""}}}}}'
                for place, (relation, tail) in enumerate(zip(relations[at], tails[at], strict=True))
            ]
            yield (
                f"Q{first + at}",
                f'"name": "thing {first + at}", "instanceOf": ["C{concept}"],'
                f' "attributes": [{", ".join(attributes)}], "relations": [{", ".join(relational)}]',
            )


def literals(key: int, numbers: list[int], since_year: int) -> Iterator[str]:
    """Five literal facts: two quantities, a year, a day and a text."""
    people, length, year, day, text = numbers
    date = (datetime.date(1800, 1, 1) + datetime.timedelta(days=day)).isoformat()
    values = (
        f'"type": "quantity", "value": {people}, "unit": "1"',
        f'"type": "quantity", "value": {length / 1000}, "unit": "metre"',
        f'"type": "year", "value": {year}',
        f'"type": "date", "value": "{date}"',
        f'"type": "string", "value": "text {text}"',
    )
    names = ("number", "length", "year", "day", "text")
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        qualifiers = since(since_year) if place == 0 else ""
        yield f'{{"key": "{name} {key}", "value": {{{value}}}, "qualifiers": {{{qualifiers}}}}}'


def since(year: int) -> str:
    """A qualifier, as it stands between the braces."""
    return f'"since": [{{"type": "year", "value": {year}}}]'


# --- measuring ---------------------------------------------------------------------------------


def load_file(file: Path) -> Iterator[str]:
    """Read a file and write its snapshot beside it, as the first `kb.load` of a file does."""
    from kb.load import read
    from kb.snapshot import write_snapshot

    kb = read(file)
    yield "read"
    write_snapshot(kb, file.with_suffix(".kopl"))
    yield "write the snapshot"


def open_snapshot(file: Path) -> Iterator[str]:
    """Open a snapshot."""
    from kb.load import load

    load(file)
    yield "open the snapshot"


STEPS: dict[str, Callable[[Path], Iterator[str]]] = {"load": load_file, "open": open_snapshot}


def run(step: str, file: Path) -> list[dict[str, Any]]:
    """What `measured` gives, in a process of its own with one thread."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, str(Path(__file__)), "--measure", step, str(file)],
        env={**os.environ, **threads, "PYTHONPATH": str(ROOT)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def measured(steps: Iterator[str]) -> list[dict[str, Any]]:
    """Processor time and wall clock time of each step in seconds; the peak in MB until then."""
    import kb.load  # noqa: F401 (the import is no part of a step)

    found = []
    begin, processor = time.perf_counter(), time.process_time()
    for step in steps:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found.append(
            {
                "step": step,
                "processor": time.process_time() - processor,
                "seconds": time.perf_counter() - begin,
                "peak": peak / (1e6 if sys.platform == "darwin" else 1e3),
            }
        )
        begin, processor = time.perf_counter(), time.process_time()
    return found


def print_table(rows: dict[int, list[dict[str, Any]]]) -> None:
    """One row a size and step, with the growth of processor time since the size before."""
    print(
        f"{datetime.date.today()}, Python {platform.python_version()}, {platform.system()},", end=""
    )
    print(f" {os.cpu_count()} cores, one thread used")
    print("\n| entities | step | processor s | wall s | peak MB | MB on disk | growth |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    before: list[dict[str, Any]] = []
    for size, found in rows.items():
        for at, row in enumerate(found):
            grown = f"{row['processor'] / before[at]['processor']:.1f}" if before else ""
            disk = f"{row['megabytes']:.0f}" if "megabytes" in row else ""
            print(
                f"| {size:,} | {row['step']} | {row['processor']:.2f} | {row['seconds']:.2f}"
                f" | {row['peak']:.0f} | {disk} | {grown} |"
            )
        before = found


if __name__ == "__main__":
    main()
