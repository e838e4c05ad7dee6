"""How long a trained parser takes for a question, on one core, constraints and execution included.

Each mode runs in a process of its own (`benchmarks.parsing.latency`) with one thread.
"""

from __future__ import annotations

import sys
from statistics import median
from typing import Any

import numpy as np

from benchmarks.parsing import default
from benchmarks.parsing.latency import MODES
from benchmarks.parsing.series import Series, read_json
from benchmarks.parsing.tables import Section, table, workload

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TOKENIZERS_PARALLELISM"), "1"
)
TITLES = {"greedy": "one by one, greedy", "beams": "one by one, four beams, execution-guided"}


def measure(series: Series, count: int = 300, warm: int = 5, batch: int = 64) -> Section:
    """Ask the first default run its own test questions."""
    seed = series.seeds(1)[0]
    run = default.trained(series, seed)
    questions = run.product / "test.jsonl"
    found: dict[str, dict[str, Any]] = {}
    for mode in MODES:
        command = [sys.executable, "-m", "benchmarks.parsing.latency", str(run.product)]
        command += [str(questions), "--mode", mode, "--count", str(count), "--warm", str(warm)]
        product = series.output / "inference" / f"{mode}.json"
        done = series.step(
            f"inference/{mode}", [*command, "--batch", str(batch)], product, (run,),
            captured=True, environment=ONE_THREAD,
        )  # fmt: skip
        found[mode] = read_json(done.product)
    rows = []
    for mode, title in TITLES.items():
        one = found[mode]
        times = one["ms"]
        rows.append(
            [title, len(times), f"{median(times):.1f}", f"{np.percentile(times, 95):.1f}",
             f"{max(times):.1f}", f"{one['first_ms']:.0f}", f"{one['load_s']:.2f}"]
        )  # fmt: skip
    many = found["batches"]
    headings = ("questions", "number", "median ms", "95th percentile ms", "slowest ms",
                "first question ms", "load s")  # fmt: skip
    imports = median(one["import_s"] for one in found.values())
    return Section(
        "Asking a trained parser",
        [
            f"The default run of seed {seed}, one thread, constrained, from the question to the"
            f" answer. Test questions: {workload(questions)}; {len(found['greedy']['ms'])} after"
            f" {warm} that are not counted. The first question of a process finds nothing cached;"
            f" importing PyTorch and the parser ({imports:.1f} s) and loading come before it.",
            table(headings, rows),
            f"In batches of {many['batch']}, greedy, each program executed: {many['asked']:,}"
            f" questions in {many['seconds']:.1f} s, **{many['asked'] / many['seconds']:.0f} a"
            " second** (a first batch is not counted).",
        ],
        {"seed": seed, "modes": found},
    )
