"""How quick the playground is: the page, running, completing, asking, and fifty who ask at once.

    python benchmarks/serving.py --run RUN [--people 50] [--count 100] [--cores 1] [--json]

It starts ``kopl serve`` with the run (on Linux on so many cores) and asks it over HTTP: programs
and questions are those of the run's own test questions, each asked once. Times are what a client
waits, in milliseconds; beside them stands the processor time that the server took for each, which
other work on the machine moves less. Of those who ask at once, each has a connection of their own,
and no question is asked before; "lost" counts answers that did not come. The script fails on
nothing.

What is wanted on ``world`` with one core: the page after less than 1 s, running and completing
under 50 ms at the median, asking under 200 ms, and 50 at once under 300 ms at the median, none
lost.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from kopl_base.servers import free_port

ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Measured:
    """What clients waited for one kind of request, in milliseconds, and the server's own time."""

    what: str
    wanted: str
    count: int
    median: float
    p95: float
    slowest: float
    processor: float | None
    lost: int = 0

    @classmethod
    def of(
        cls, what: str, wanted: str, waited: Sequence[float], processor: float | None, lost: int = 0
    ) -> Measured:
        """The figures of some waits in seconds."""
        ordered = sorted(1000 * one for one in waited)
        at = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
        each = None if processor is None else 1000 * processor / len(ordered)
        return cls(what, wanted, len(ordered), median(ordered), at, ordered[-1], each, lost)


class Server:
    """``kopl serve`` in a process of its own."""

    def __init__(self, run: Path, cores: int) -> None:
        self.address = f"http://127.0.0.1:{(port := free_port())}"
        environment = {**os.environ, "OMP_NUM_THREADS": str(cores), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "kopl", "serve", "--run", str(run), "--port", str(port)]
        begin = time.perf_counter()
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, preexec_fn=lambda: _bound(cores)
        )
        while True:
            try:
                if httpx.get(self.address).status_code == 200:
                    break
            except httpx.TransportError:
                if self.process.poll() is not None:
                    raise SystemExit("the server ended at once") from None
                time.sleep(0.01)
        self.started = time.perf_counter() - begin
        self.start_used = self.used()
        self.client = httpx.Client(base_url=self.address, timeout=120)

    def used(self) -> float | None:
        """The seconds of processor time that the server has taken; None where it is not told."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def post(self, path: str, **given: Any) -> dict[str, Any]:
        """What a route answers."""
        reply = self.client.post(path, json=given)
        reply.raise_for_status()
        found: dict[str, Any] = reply.json()
        return found

    def timed(
        self, what: str, wanted: str, work: Callable[[Any], Any], given: Sequence[Any]
    ) -> Measured:
        """One request after the other."""
        waited, before = [], self.used()
        for one in given:
            begin = time.perf_counter()
            work(one)
            waited.append(time.perf_counter() - begin)
        return Measured.of(what, wanted, waited, _between(before, self.used()))

    def together(self, questions: Sequence[str]) -> Measured:
        """All questions at once, each by somebody of their own."""
        waited: list[float] = []
        lost = 0
        begin = threading.Barrier(len(questions))

        def ask(question: str) -> float | None:
            with httpx.Client(base_url=self.address, timeout=120) as own:
                own.get("/icon.svg")  # connected already, as a page is
                begin.wait()
                start = time.perf_counter()
                try:
                    reply = own.post("/api/ask", json={"question": question})
                except httpx.HTTPError:
                    return None
                took = time.perf_counter() - start
                is_answer = reply.status_code == 200 and reply.json()["question"] == question
                return took if is_answer else None

        before = self.used()
        with ThreadPoolExecutor(len(questions)) as people:
            for took in people.map(ask, questions):
                if took is None:
                    lost += 1
                else:
                    waited.append(took)
        used = _between(before, self.used())
        return Measured.of(f"ask, {len(questions)} at once", "300", waited, used, lost)

    def stop(self) -> None:
        """End it as a person does."""
        self.client.close()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(30)


def _between(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _bound(cores: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, set(allowed[:cores]))


def measure(run: Path, people: int, count: int, cores: int) -> list[Measured]:
    """All figures; the questions of each part are others."""
    with (run / "test.jsonl").open(encoding="utf-8") as file:
        lines = [json.loads(line) for _, line in zip(range(2 * count + people), file, strict=False)]
    questions = list(dict.fromkeys(line["question"] for line in lines))
    programs = [line["program"] for line in lines[:count]]
    alone, at_once = questions[: len(questions) - people], questions[-people:]
    server = Server(run, cores)
    try:
        found = [Measured.of("page, after the start", "1000", [server.started], server.start_used)]
        server.post("/api/ask", question="What is there?")  # the run is loaded then
        ran = lambda program: server.post("/api/run", program=program)  # noqa: E731
        found.append(server.timed("run", "50", ran, programs))
        holes = [_hole(server.post("/api/edit", program=one, operation={"do": "read"}))
                 for one in programs]  # fmt: skip
        completed = lambda given: server.post("/api/complete", **given)  # noqa: E731
        found.append(server.timed("complete", "50", completed, holes))
        asked = lambda question: server.post("/api/ask", question=question)  # noqa: E731
        found.append(server.timed("ask", "200", asked, alone[:count]))
        found.append(server.together(at_once))
    finally:
        server.stop()
    return found


def _hole(found: dict[str, Any]) -> dict[str, Any]:
    """A request of what may stand in place of the last textual argument of a program."""
    calls = [call for call in found["view"]["calls"] if call["arguments"]]
    if not calls:
        hole = {"path": [], "slot": "function", "index": 0}
    else:
        hole = {"path": calls[-1]["path"], "slot": "argument", "index": 0}
    return {"program": found["view"]["draft"], "hole": hole}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How quick the playground is.")
    parser.add_argument("--run", type=Path, required=True, help="a trained run")
    parser.add_argument("--people", type=int, default=50, help="who ask at once (default: 50)")
    parser.add_argument("--count", type=int, default=100, help="requests of a kind (default: 100)")
    parser.add_argument("--cores", type=int, default=1, help="of the server (default: 1)")
    parser.add_argument("--json", action="store_true", help="print one JSON list")
    arguments = parser.parse_args()
    found = measure(arguments.run, arguments.people, arguments.count, arguments.cores)
    if arguments.json:
        print(json.dumps([asdict(one) for one in found]))
        return
    print("| ms | requests | wanted | median | 95 % | slowest | processor | lost |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for one in found:
        used = "" if one.processor is None else f"{one.processor:.1f}"
        print(
            f"| {one.what} | {one.count} | {one.wanted} | {one.median:.1f} | {one.p95:.1f} |"
            f" {one.slowest:.1f} | {used} | {one.lost} |"
        )


if __name__ == "__main__":
    main()
