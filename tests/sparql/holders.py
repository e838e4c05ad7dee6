"""What puts a knowledge base into each engine, so that one test body runs on all of them."""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kb import KnowledgeBase
from kb.rdf.iri import BASE
from kopl.sparql.encoding import Encoding
from kopl.sparql.engine import Engine
from kopl.sparql.evaluate import SparqlExecutor

NODES, TERMS = Encoding(), Encoding(terms=True)


class Holder:
    """One kind of engine; ``hold`` gives it with a knowledge base in it."""

    def __init__(self, name: str, make: Callable[[KnowledgeBase], Engine], encoding: Encoding):
        self.name, self.encoding, self._make = name, encoding, make
        self._held: tuple[str, SparqlExecutor] | None = None

    def hold(self, kb: KnowledgeBase, *, timeout: float | None = None) -> SparqlExecutor:
        """The engine with this knowledge base; the one before is closed."""
        if self._held is None or self._held[0] != kb.fingerprint:
            self.release()
            engine = self._make(kb)
            self._held = (kb.fingerprint, SparqlExecutor(engine, encoding=self.encoding))
        self._held[1].timeout = timeout
        return self._held[1]

    def release(self) -> None:
        """Close the engine."""
        if self._held is not None:
            self._held[1].close()
            self._held = None


def oxigraph_memory(_: Path) -> Iterator[Holder]:
    """Oxigraph in memory."""
    from kopl.sparql.engines.oxigraph import Oxigraph

    yield Holder("oxigraph-memory", lambda kb: Oxigraph.of(kb, memory=True), NODES)


def oxigraph_terms(_: Path) -> Iterator[Holder]:
    """Oxigraph in memory, with facts as triple terms."""
    from kopl.sparql.engines.oxigraph import Oxigraph

    yield Holder("oxigraph-terms", lambda kb: Oxigraph.of(kb, memory=True, terms=True), TERMS)


def oxigraph_disk(folder: Path) -> Iterator[Holder]:
    """Oxigraph on disk."""
    from kopl.sparql.engines.oxigraph import Oxigraph, build

    def make(kb: KnowledgeBase) -> Engine:
        place = folder / kb.fingerprint
        if not place.is_dir():
            build(kb, place)
        return Oxigraph.open(place)

    yield Holder("oxigraph-disk", make, NODES)


def rdflib(_: Path) -> Iterator[Holder]:
    """rdflib's own evaluator."""
    from kopl.sparql.engines.rdflib import Rdflib

    yield Holder("rdflib", Rdflib.of, NODES)


def oxrdflib(_: Path) -> Iterator[Holder]:
    """rdflib's interface over an Oxigraph store."""
    from kopl.sparql.engines.oxigraph import Oxigraph
    from kopl.sparql.engines.rdflib import Rdflib, oxigraph_graph

    def make(kb: KnowledgeBase) -> Engine:
        return Rdflib(oxigraph_graph(Oxigraph.of(kb, memory=True).store))

    yield Holder("oxrdflib", make, NODES)


def oxigraph_server(folder: Path) -> Iterator[Holder]:
    """The Oxigraph server, asked by SPARQLWrapper."""
    from kopl.sparql.engines.oxigraph import build
    from kopl.sparql.engines.server import OxigraphServer

    servers: list[OxigraphServer] = []

    def make(kb: KnowledgeBase) -> Engine:
        while servers:
            servers.pop().stop()
        place = folder / f"server-{kb.fingerprint}"
        if not place.is_dir():
            build(kb, place)
        servers.append(OxigraphServer(place))
        servers[-1].start()
        return servers[-1].engine()

    yield Holder("oxigraph-server", make, NODES)
    while servers:
        servers.pop().stop()


def virtuoso(folder: Path) -> Iterator[Holder]:
    """A Virtuoso of our own, asked by the pooled client."""
    from kb.rdf import write_rdf
    from kopl.sparql.engines.virtuoso import VirtuosoServer, find_binaries
    from kopl.sparql.errors import MissingPackageError

    try:
        find_binaries()
    except MissingPackageError as error:
        if os.environ.get("REQUIRE_VIRTUOSO") == "1":
            pytest.fail(f"REQUIRE_VIRTUOSO=1, but {error}")
        pytest.skip(f"VIRTUOSO IS NOT TESTED: {error}")
    # A path without blanks, on a disk: the server keeps its database there.
    place = Path(tempfile.mkdtemp(prefix="kopl-virtuoso-"))
    server = VirtuosoServer(place)
    try:
        server.up(buffers=20_000)

        def make(kb: KnowledgeBase) -> Engine:
            file = place / "held.nt"
            write_rdf(kb, file, "nt", base=BASE)
            server.load(file)
            return server.engine(client="pool")

        yield Holder("virtuoso", make, NODES)
    finally:
        server.down()
        shutil.rmtree(place, ignore_errors=True)


HOLDERS = {
    make.__name__.replace("_", "-"): make
    for make in (
        oxigraph_memory,
        oxigraph_disk,
        oxigraph_terms,
        rdflib,
        oxrdflib,
        oxigraph_server,
        virtuoso,
    )
}


# Days that Virtuoso 7.2 does not keep as they are, or refuses as constants: it counts days by the
# Julian calendar (docs/servers.md).
LOST_IN_VIRTUOSO = ("-0001-",)
# Numbers so near to others that its MAX and MIN take either (docs/servers.md).
NEAR_IN_VIRTUOSO = {0.30000000000000004: 0.31}


def for_virtuoso(document: dict[str, Any]) -> dict[str, Any]:
    """The knowledge base without the days and numbers that Virtuoso does not keep apart."""
    document = copy.deepcopy(document)

    def visit(at: Any) -> None:
        if isinstance(at, dict):
            if at.get("type") == "date":
                text = at["value"].replace("/", "-")
                if text.startswith(LOST_IN_VIRTUOSO):
                    at["value"] = "-0043-03-14"
            if at.get("type") == "quantity":
                at["value"] = NEAR_IN_VIRTUOSO.get(at["value"], at["value"])
            for part in at.values():
                visit(part)
        elif isinstance(at, list):
            for part in at:
                visit(part)

    visit(document)
    return document
