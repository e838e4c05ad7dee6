"""What every worker of the executor benchmark does: load, run all programs twice, report.

Runs in each peer's own environment, so it needs nothing but the standard library.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def peak_megabytes() -> float:
    """The highest resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def published(call: dict[str, Any]) -> dict[str, Any]:
    """The call with KQA Pro's own name of QueryName, the only one that all systems know."""
    return {**call, "function": "What"} if call["function"] == "QueryName" else call


def measure(load: Callable[[], Callable[[str], Any]], programs: Path, out: Path) -> None:
    """Load a system, run every program (given as JSON text) twice and write what was measured.

    ``load`` gives a function from a program's text to its printed denotation.
    """
    items = json.loads(programs.read_text("utf-8"))
    texts = [json.dumps([published(call) for call in item["program"]]) for item in items]
    report: dict[str, Any] = {"peak_before": peak_megabytes()}
    begin = time.perf_counter()
    run = load()
    report["load_s"] = time.perf_counter() - begin
    report["peak_load"] = peak_megabytes()
    report["passes"], report["answers"] = [], []
    for number in range(2):
        milliseconds = []
        begin = time.perf_counter()
        for text in texts:
            started = time.perf_counter()
            try:
                answer = run(text)
            except Exception as error:  # a peer's failure is a result
                answer = {"error": type(error).__name__}
            milliseconds.append((time.perf_counter() - started) * 1000)
            if number == 0:
                report["answers"].append(answer)
        report["passes"].append({"total_s": time.perf_counter() - begin, "ms": milliseconds})
    report["peak_run"] = peak_megabytes()
    out.write_text(json.dumps(report), "utf-8")
