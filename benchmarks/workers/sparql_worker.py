"""One engine of the SPARQL benchmark in a process of its own.

    sparql_worker.py build disk|virtuoso KB FOLDER     build a store, print what it took
    sparql_worker.py serve ENGINE KB FOLDER LIMIT      answer the lines of standard input

A line asks {"style": "exact", "text": program as JSON} or {"style": "data", "text": query}; its
answer has the strings or the error, the milliseconds from text to strings, and those of the engine.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

BEGIN = time.perf_counter()


def peak_megabytes(pid: int | None = None) -> float:
    """The highest resident memory of a process, this one by default."""
    try:
        status = Path(f"/proc/{pid or 'self'}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024
    except (OSError, IndexError):
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return used / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def size_megabytes(folder: Path) -> float:
    """The size of a folder's files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


class Timed:
    """An engine that adds up the time that its queries take."""

    def __init__(self, engine: Any) -> None:
        self.engine, self.name, self.dialect = engine, engine.name, engine.dialect
        self.seconds = 0.0

    def query(self, text: str, *, timeout: float | None = None) -> Any:
        begin = time.perf_counter()
        try:
            return self.engine.query(text, timeout=timeout)
        finally:
            self.seconds += time.perf_counter() - begin

    def close(self) -> None:
        self.engine.close()


class TooLate(Exception):
    """The time limit of queries that run in this process's own Python."""


def build(what: str, kb_file: str, folder: Path) -> dict[str, Any]:
    """Build a store from a snapshot."""
    import kb

    found = kb.load(kb_file)
    if what == "disk":
        from kopl.sparql.engines import oxigraph

        oxigraph.build(found, folder)
        seconds = time.perf_counter() - BEGIN
        return {"s": seconds, "own peak MB": peak_megabytes(), "MB": size_megabytes(folder)}
    from kb.rdf.iri import BASE
    from kopl.sparql.engines.virtuoso import VirtuosoServer

    text = folder.with_suffix(".nt")
    kb.write_rdf(found, text, "nt", base=BASE)
    export = time.perf_counter() - BEGIN
    server = VirtuosoServer(folder)
    begin = time.perf_counter()
    server.up(wait=120)
    started = time.perf_counter()
    server.load(text, wait=900)
    loaded = time.perf_counter()
    pid = server.status().pid
    report = {
        "export s": export,
        "start s": started - begin,
        "s": loaded - started,
        "own peak MB": peak_megabytes(pid),
        "triples MB": text.stat().st_size / 1e6,
    }
    server.down()
    text.unlink()
    return {**report, "MB": size_megabytes(folder)}


def opened(name: str, kb: Any, folder: Path, limit: float) -> Any:
    """The engine of that name."""
    if name.startswith("oxigraph"):
        from kopl.sparql.engines.oxigraph import Oxigraph
        from kopl.sparql.engines.server import OxigraphServer

        if name == "oxigraph-memory":
            return Oxigraph.of(kb, memory=True)
        if name == "oxigraph-disk":
            return Oxigraph.open(folder / "oxigraph")
        server = OxigraphServer(folder / "oxigraph", timeout=int(limit) + 1)
        server.start()
        return server.engine(client="pool", retries=0)
    if name == "virtuoso":
        from kopl.sparql.engines.virtuoso import VirtuosoServer

        virtuoso = VirtuosoServer(folder / "virtuoso")
        virtuoso.up(wait=120, limit=int(limit) + 5)
        return virtuoso.engine(client="pool", retries=0)
    from kopl.sparql.engines.rdflib import Rdflib

    return Rdflib.of(kb)


def serve(name: str, kb_file: str, folder: Path, limit: float) -> None:
    """Answer what standard input asks."""
    import kb
    from kopl.executor import Executor
    from kopl.sparql.evaluate import SparqlExecutor
    from kopl.sparql.to_kopl import from_sparql
    from kopl_base.errors import KoplError

    knowledge = kb.load(kb_file)
    engine: Any = None
    begin = time.perf_counter()
    if name != "kopl":
        engine = Timed(opened(name, knowledge, folder, limit))
        engine.query("ASK { ?s ?p ?o }")
        # pyoxigraph has no limit of its own: the benchmark kills this process instead.
        over_http = name in ("virtuoso", "oxigraph-server")
        executor: Any = SparqlExecutor(engine, kb=knowledge, timeout=limit if over_http else None)
    else:
        executor = Executor(knowledge)
    now = time.perf_counter()
    say({"ready": now - BEGIN, "open ms": (now - begin) * 1000, "peak MB": peak_megabytes()})

    def late(*_: object) -> None:
        raise TooLate

    signal.signal(signal.SIGALRM, late)
    for line in sys.stdin:
        asked = json.loads(line)
        if engine is not None:
            engine.seconds = 0.0
        found: dict[str, Any] = {}
        if name in ("rdflib", "kopl"):
            signal.setitimer(signal.ITIMER_REAL, limit)
        begin = time.perf_counter()
        try:
            if name == "kopl":
                text = asked["text"]
                program = text if asked["style"] == "exact" else from_sparql(text, kb=knowledge)
                found["answer"] = executor.denote(program)
            elif asked["style"] == "exact":
                found["answer"] = executor.run(asked["text"]).denotation
            else:
                found["answer"] = executor.denotation(asked["text"])
        except (KoplError, TooLate) as error:
            found["error"] = f"{type(error).__name__}: {error}"[:300]
        found["ms"] = (time.perf_counter() - begin) * 1000
        found["engine ms"] = engine.seconds * 1000 if engine is not None else found["ms"]
        signal.setitimer(signal.ITIMER_REAL, 0)
        say({**found, "peak MB": peak_megabytes()} if asked.get("peak") else found)


def say(what: dict[str, Any]) -> None:
    """One line of output."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    task, what, kb_path, at = sys.argv[1:5]
    os.environ.setdefault("KOPL_CACHE_DIR", "off")
    if task == "build":
        say(build(what, kb_path, Path(at)))
    else:
        serve(what, kb_path, Path(at), float(sys.argv[5]))
