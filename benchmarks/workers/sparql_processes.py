"""The processes of the SPARQL benchmark, seen from the one that starts them."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
WORKER = Path(__file__).resolve().parent / "sparql_worker.py"
OURS, PEER = "oxigraph-disk", "virtuoso"


class Remote:
    """An engine in a process of its own."""

    def __init__(self, name: str, snapshot: Path, work: Path, limit: float) -> None:
        self.name, self.limit, self._work = name, limit, work
        self._command = [sys.executable, str(WORKER), "serve", name, str(snapshot), str(work)]
        self._command.append(str(limit))
        self._process: subprocess.Popen[bytes] | None = None
        self._tree: Tree | None = None
        self._text = b""
        self.ready: dict[str, Any] = {}

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()

    def start(self) -> bool:
        """Start the process; whether it is ready."""
        note(f"opening {self.name}")
        with (self._work / f"{self.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                start_new_session=True, env=environment(),
            )  # fmt: skip
        self._text = b""
        with Tree(self._process.pid) as tree:
            # rdflib needs minutes at the paper's scale.
            ready = self._line(900)
        if ready is None:
            note(f"{self.name} did not start; see {self._work}/{self.name}.log")
            self._kill()
            return False
        if not self.ready:
            self.ready = {**ready, "peak MB": max(ready["peak MB"], tree.most)}
        return True

    def ask(self, style: str, question: dict[str, Any], *, peak: bool = False) -> dict[str, Any]:
        """What the engine answers; an engine that takes too long is killed and started again."""
        if self._process is None and not self.start():
            return {"ms": 0.0, "engine ms": 0.0, "error": "the engine is gone"}
        assert self._process is not None and self._process.stdin is not None
        line = {"style": style, "text": question[style], "peak": peak}
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(line).encode() + b"\n")
            self._process.stdin.flush()
        found = self._line(self.limit + (15 if self.name != OURS else 0))
        if found is None:
            milliseconds = self.limit * 1000
            found = {"ms": milliseconds, "engine ms": milliseconds, "error": "TooLate: killed"}
            self._kill()
        elif self.name == PEER and re.match("Unreachable|TimedOut", found.get("error", "")):
            # A server that died, or goes on with what nobody waits for, is no good for the next.
            note(f"{PEER}: {found['error']}: {question.get('program')} ({style})")
            self._kill()
        if "error" not in found and found["answer"] == question["wanted"]:
            del found["answer"]
        return found

    def peak(self) -> float:
        """The highest memory of the engine so far, in MB."""
        question = {"exact": "Count(FindAll())", "wanted": []}
        most: float = self.ask("exact", question, peak=True).get("peak MB", 0.0)
        if self.name == PEER:
            from workers.sparql_worker import peak_megabytes

            return peak_megabytes(self._server())
        return most

    def _line(self, seconds: float) -> dict[str, Any] | None:
        assert self._process is not None and self._process.stdout is not None
        pipe, late = self._process.stdout.fileno(), time.monotonic() + seconds
        while b"\n" not in self._text:
            left = late - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                return None
            piece = os.read(pipe, 1 << 20)
            if not piece:
                return None
            self._text += piece
        line, self._text = self._text.split(b"\n", 1)
        found: dict[str, Any] = json.loads(line)
        return found

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            with contextlib.suppress(OSError, ValueError):
                if self.name == PEER and (pid := self._server()) > 0:
                    os.kill(pid, signal.SIGKILL)

    def _server(self) -> int:
        """The process of Virtuoso, which the worker started."""
        found: int = json.loads((self._work / PEER / "virtuoso.json").read_text())["pid"]
        return found if "virtuoso" in Path(f"/proc/{found}/cmdline").read_text() else 0


class Tree:
    """The highest memory of a process and all below it, looked at often (Linux)."""

    def __init__(self, pid: int) -> None:
        self._pid, self.most, self._end = pid, 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Tree:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        page = os.sysconf("SC_PAGE_SIZE")
        while not self._end.wait(0.05):
            pids, pages = [str(self._pid)], 0
            for pid in pids:
                with contextlib.suppress(OSError, ValueError):
                    pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                    for task in Path(f"/proc/{pid}/task").iterdir():
                        pids += (task / "children").read_text().split()
            self.most = max(self.most, pages * page / (1 << 20))


def build(what: str, snapshot: Path, work: Path) -> dict[str, Any]:
    """What a process that builds a store reports; the peak is that of all its processes."""
    folder = work / ("oxigraph" if what == "disk" else what)
    stop_virtuoso(work) if what == PEER else None
    shutil.rmtree(folder, ignore_errors=True)
    note(f"building: {what}")
    command = [sys.executable, str(WORKER), "build", what, str(snapshot), str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment())
    with Tree(process.pid) as tree:
        try:
            out, _ = process.communicate(timeout=1800)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    if process.returncode:
        raise ValueError(f"the process ended with {process.returncode}")
    return {**json.loads(out), "peak MB": tree.most}


def stop_virtuoso(work: Path) -> None:
    """Stop the server of this run."""
    from kopl.sparql.engines.virtuoso import VirtuosoServer

    if (work / "virtuoso").is_dir():
        VirtuosoServer(work / "virtuoso").down()


def environment() -> dict[str, str]:
    """The workers' environment: this tree, no caches."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "KOPL_CACHE_DIR": "off"}


def available(name: str) -> bool:
    """Whether the engine is installed; says so when it is not."""
    needed = {"rdflib": ["rdflib", "pyoxigraph"], PEER: ["httpx"], "kopl": []}
    missing = [p for p in needed.get(name, ["pyoxigraph"]) if importlib.util.find_spec(p) is None]
    if name == PEER and shutil.which("virtuoso-t") is None:
        missing.append("virtuoso-t (apt-get install virtuoso-opensource-7-bin)")
    if name == "oxigraph-server" and importlib.util.find_spec("httpx") is None:
        missing.append("httpx")
    if missing:
        note(f"{name} is left out, not installed: {', '.join(missing)}")
    return not missing


def note(text: str) -> None:
    """Progress, on standard error."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
