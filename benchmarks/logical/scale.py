"""A synthetic graph of a million entities and fifty million triples: time, memory, answers.

    python benchmarks/logical/scale.py --entities 1000000 --triples 50000000 --relations 50

Heads, relations and tails are drawn with a heavy tail, as in real graphs. Each stage runs in a
process of its own, whose peak memory is printed: making and saving the graph, and answering on
the saved one, mapped. Mapped pages that were read count in that peak, too.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cqa.answering.answer import answers
from cqa.graphs.files import load, save
from cqa.graphs.graph import from_triples
from cqa.query import Atom, Conjunction, Constant, Query, Variable

BLOCK = 5_000_000


def peak() -> str:
    """The most memory that this process has held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9:.2f} GB"


def make(folder: Path, entities: int, relations: int, triples: int, seed: int) -> None:
    """Draw, sort and save."""
    random = np.random.default_rng(seed)
    rows = np.empty((triples, 3), np.int32)
    for first in range(0, triples, BLOCK):
        part = rows[first : first + BLOCK]
        # The square of an even draw: a tenth of the numbers gets a third of the links.
        for column, bound in ((0, entities), (1, relations), (2, entities)):
            part[:, column] = random.random(len(part)) ** 2 * bound
    cuts = [int(triples * 0.9), int(triples * 0.95)]
    begin = time.perf_counter()
    graph = from_triples(np.split(rows, cuts), entity_count=entities, relation_count=relations)
    built = time.perf_counter() - begin
    begin = time.perf_counter()
    save(graph, folder)
    saved = time.perf_counter() - begin
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{graph}: built in {built:.0f} s, saved in {saved:.0f} s as {size / 1e9:.2f} GB;"
          f" peak {peak()}, of which the drawn triples {rows.nbytes / 1e9:.2f} GB")  # fmt: skip


def ask(folder: Path, seed: int) -> None:
    """Map, make a view, answer."""
    begin = time.perf_counter()
    graph = load(folder)
    print(f"mapped in {time.perf_counter() - begin:.3f} s; peak {peak()}")
    random = np.random.default_rng(seed)
    x, f = Variable("x"), Variable("f")
    full = graph.full()
    kinds: dict[str, Callable[[list[int], list[Constant]], list[Atom]]] = {
        "1p": lambda r, e: [Atom(r[0], e[0], f)],
        "2p": lambda r, e: [Atom(r[0], e[0], x), Atom(r[1], x, f)],
        "2i": lambda r, e: [Atom(r[0], e[0], f), Atom(r[1], e[1], f)],
        "pin": lambda r, e: [
            Atom(r[0], e[0], x), Atom(r[1], x, f), Atom(r[1], e[1], f, False)
        ],
        "triangle": lambda r, e: [Atom(r[0], e[0], x), Atom(r[1], x, f), Atom(r[2], f, x)],
    }  # fmt: skip
    for name, atoms in kinds.items():
        times, found = [], 0
        for _ in range(200):
            r = random.integers(0, full.relation_count, 3).tolist()
            # Anchors that have a link of their relation.
            e = [Constant(int(random.choice(full.heads_of(r[at])))) for at in (0, 1)]
            query = Query((f,), (Conjunction(tuple(atoms(r, e))),))
            begin = time.perf_counter()
            found += len(answers(query, full))
            times.append(time.perf_counter() - begin)
        print(f"{name}: median {statistics.median(times) * 1e3:.2f} ms, slowest"
              f" {max(times) * 1e3:.0f} ms, {found / 200:,.0f} answers; peak {peak()}")  # fmt: skip
    begin = time.perf_counter()
    observed = graph.observed()
    print(f"view of {len(observed):,} triples made in {time.perf_counter() - begin:.1f} s;"
          f" peak {peak()}")  # fmt: skip


def main() -> None:
    """Run the stages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entities", type=int, default=1_000_000)
    parser.add_argument("--relations", type=int, default=50)
    parser.add_argument("--triples", type=int, default=50_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where the graph is kept (default: nowhere)")
    parser.add_argument("--stage", choices=["make", "ask"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.stage == "make":
        make(given.folder, given.entities, given.relations, given.triples, given.seed)
    elif given.stage == "ask":
        ask(given.folder, given.seed)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            folder = given.folder or Path(temporary)
            for stage in ("make", "ask"):
                options = ["--stage", stage, "--folder", str(folder)]
                subprocess.run([sys.executable, *sys.argv, *options], check=True)


if __name__ == "__main__":
    main()
