"""The one interface that every SPARQL engine has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

# An answer in the form of "SPARQL 1.1 Query Results JSON Format": {"head": …, "results": …} for
# SELECT, {"head": …, "boolean": …} for ASK.
Answer: TypeAlias = dict[str, Any]

Joins: TypeAlias = Literal["own", "long as written", "lateral", "in braces"]


@dataclass(frozen=True)
class Dialect:
    """How queries are written for an engine.

    ``base``: what the bare IRIs of the encoding are resolved against in this engine's data; None
    where they were loaded bare. ``digits``: doubles come back with too few digits (Virtuoso), so
    that they must be asked for as text. ``graph``: the named graph to query, None for the default.
    ``joins``: how it is made to join patterns in our order: "own" (it is not), "lateral" (groups of
    SEP 6: Oxigraph), "in braces" (rdflib), "long as written" (a pragma, where a query is so long
    that the engine's own search for an order takes seconds: Virtuoso). ``steps``: a query inside of
    another is asked for first (`kopl.sparql.steps`).
    """

    base: str | None = None
    digits: bool = False
    graph: str | None = None
    joins: Joins = "own"
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
