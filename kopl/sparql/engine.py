"""What every SPARQL engine is: its interface, its dialect, and the packages that ours need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TypeAlias

from kopl.sparql.ast import Query
from kopl.sparql.errors import EngineError, MissingPackageError, TimedOutError
from kopl.sparql.order import Statistics
from kopl_base.packages import needs
from kopl_base.processes import LostWorkerError, TimedProcess

# An answer in the form of "SPARQL 1.1 Query Results JSON Format": {"head": …, "results": …} for
# SELECT, {"head": …, "boolean": …} for ASK.
Answer: TypeAlias = dict[str, Any]

Rewrite: TypeAlias = Callable[[Query, Statistics], Query]

# The engines that hold a knowledge base themselves, with the packages that they need; every other
# one is an address.
EMBEDDED = {
    "oxigraph": ("pyoxigraph",),
    "oxigraph-memory": ("pyoxigraph",),
    "rdflib": ("rdflib", "pyoxigraph"),  # the second reads what is put into the graph
}


@dataclass(frozen=True)
class Dialect:
    """How queries are written for an engine.

    ``base``: what the bare IRIs of the encoding are resolved against in this engine's data; None
    where they were loaded bare. ``graph``: the named graph to query, None for the default.
    ``rewrites`` are done to every query, one after the other; ``pragma`` gives what stands before
    the text of such a query. ``steps``: a query inside of another is asked for first.
    """

    base: str | None = None
    graph: str | None = None
    rewrites: tuple[Rewrite, ...] = ()
    pragma: Callable[[Query], str] | None = None
    steps: bool = False


class Engine(Protocol):
    """Something that answers SPARQL queries.

    ``query`` takes the complete text of a SELECT or ASK query and gives the answer as the object of
    its JSON results. It raises a subclass of `kopl.sparql.errors.EngineError`, never anything else,
    for what an engine or its network may do; within about ``timeout`` seconds (None: no limit).
    Engines may be shared between threads.
    """

    name: str
    dialect: Dialect

    def query(self, text: str, *, timeout: float | None = None) -> Answer:
        """The answer to a query."""
        ...

    def close(self) -> None:
        """Let go of files, processes and connections; the engine cannot be used afterwards."""
        ...


def is_address(name: str) -> bool:
    """Whether an engine's name is the address of an endpoint."""
    return name.startswith(("http://", "https://"))


def require(name: str) -> None:
    """Raise MissingPackageError when a package of the engine of that name is not installed.

    Whatever takes long or prints asks first. A name that is no embedded engine's needs none.
    """
    missing = [package for package in EMBEDDED.get(name, ()) if not _is_there(package)]
    if missing:
        raise MissingPackageError(needs(f"the engine {name}", *missing, extra="sparql"))


def _is_there(package: str) -> bool:
    try:
        import_module(package)
    except ImportError:
        return False
    return True


def in_time(process: TimedProcess[Answer], text: str, timeout: float) -> Answer:
    """The answer of another process to a query; raises TimedOutError when it takes longer."""
    try:
        return process.make(text, timeout=timeout)
    except TimeoutError:
        raise TimedOutError(f"the query took longer than {timeout:g} s") from None
    except LostWorkerError:
        message = "the process that runs queries has ended without an answer"
        raise EngineError(message) from None
