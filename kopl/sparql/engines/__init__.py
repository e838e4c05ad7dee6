"""The engines: Oxigraph and rdflib inside this process, any SPARQL endpoint outside of it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kb.rdf.iri import BASE
from kopl.sparql.ast import Ask, Group, Select, Triple, Var, write
from kopl.sparql.encoding import KIND, NAME, Encoding
from kopl.sparql.engine import EMBEDDED, Engine
from kopl_base.errors import KoplError

if TYPE_CHECKING:
    from kb import KnowledgeBase

log = logging.getLogger("kb")


def embedded(name: str, kb: KnowledgeBase) -> Engine:
    """The engine of that name with the knowledge base in it.

    Raises KoplError for an unknown name, EngineError when the engine cannot be had.
    """
    if name in ("oxigraph", "oxigraph-memory"):
        from kopl.sparql.engines.oxigraph import Oxigraph

        return Oxigraph.of(kb, memory=name == "oxigraph-memory")
    if name == "rdflib":
        from kopl.sparql.engines.rdflib import Rdflib

        return Rdflib.of(kb)
    known = ", ".join(EMBEDDED)
    raise KoplError(f"there is no engine {name!r}; give kopl, {known} or an address (http://…)")


@dataclass(frozen=True)
class Found:
    """What an endpoint's graph is like: what its IRIs are below, whether it tells kinds apart."""

    base: str | None
    kinds: bool
    nodes: bool


def attach(url: str, **options: Any) -> tuple[Engine, Encoding]:
    """The engine of an endpoint, and the encoding of its graph.

    Options as `kopl.sparql.engines.endpoint.Endpoint` takes them. Without ``base`` the graph is
    asked for one node, and what its IRI is below is taken. Raises an EngineError when it does not
    answer.
    """
    from kopl.sparql.engines.endpoint import Endpoint

    engine = Endpoint.open(url, **options)
    found = explore(engine)
    if not found.nodes:
        log.warning("%s: no node has a <pred:name> there; is the graph the right one?", engine.name)
    elif not found.kinds:
        log.warning(
            "%s: its graph has no <pred:kind>, so that FindAll is 'has a concept' there",
            engine.name,
        )
    if options.get("base") is None:
        engine.dialect = replace(engine.dialect, base=found.base)
    return engine, Encoding(kinds=found.kinds or not found.nodes)


def explore(engine: Engine) -> Found:
    """What the graph of an engine is like, by asking for one node and one kind."""
    node, name = Var("e"), Var("name")
    query = Select((node,), Group((Triple(node, NAME, name),)), limit=1)
    rows = engine.query(write(query)).get("results", {}).get("bindings", [])
    iri = str(rows[0]["e"]["value"]) if rows else ""
    kinds = engine.query(write(Ask(Group((Triple(node, KIND, name),)))))
    return Found(_base_of(iri), bool(kinds.get("boolean")), bool(rows))


def _base_of(iri: str) -> str | None:
    if iri.startswith(BASE):
        return BASE
    if ":" not in iri.split("/")[0]:
        return None  # bare
    return iri[: iri.rindex("/") + 1] if "/" in iri else None
