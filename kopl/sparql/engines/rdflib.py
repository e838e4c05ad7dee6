"""rdflib's own evaluator: a second opinion for small graphs.

At the size of KQA Pro's knowledge base it takes minutes to load, several gigabytes, and seconds a
query; use Oxigraph there (through rdflib's interface, too: see `oxigraph_graph`).
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from kb import KnowledgeBase
from kb.rdf.iri import BASE
from kopl.sparql.engine import Answer, Dialect, in_time, require
from kopl.sparql.errors import EngineError, MissingPackageError, NotUnderstoodError
from kopl.sparql.order import in_order
from kopl.sparql.rewrites import one_by_one
from kopl_base.packages import needs
from kopl_base.processes import TimedProcess

if TYPE_CHECKING:
    import rdflib
    from pyoxigraph import Store
    from rdflib.store import Store as RdflibStore

log = logging.getLogger("kb")

# Facts from which on rdflib is the wrong choice.
MANY = 50_000


class Rdflib:
    """An rdflib graph as an engine; one query at a time."""

    name = "rdflib"

    def __init__(self, graph: rdflib.Graph, *, base: str | None = BASE) -> None:
        self.graph = graph
        self.dialect = Dialect(base=base, rewrites=(in_order, one_by_one))
        self._lock = threading.Lock()

    @classmethod
    def of(cls, kb: KnowledgeBase) -> Rdflib:
        """The engine that holds a knowledge base, in memory; says so when that will take long."""
        require("rdflib")
        if (facts := len(kb.relational) + len(kb.literals)) > MANY:
            log.warning(
                "rdflib's own evaluator is for small graphs; %d facts take minutes to load,"
                " gigabytes, and seconds a query: the engine oxigraph does not",
                facts,
            )
        return cls(graph_of(kb))

    def query(self, text: str, *, timeout: float | None = None) -> Answer:
        """The answer to a query; with a time limit it runs in another process, on a copy."""
        if timeout is not None:
            return in_time(self._process, text, timeout)
        return self.answer(text)

    def answer(self, text: str) -> Answer:
        """The answer, worked out in this process."""
        from pyparsing import ParseException

        try:
            with self._lock, _without_complaints():
                found = self.graph.query(text)
                written = found.serialize(format="json")
        except (ParseException, SyntaxError) as error:
            raise NotUnderstoodError(f"rdflib cannot read the query: {error}") from None
        except Exception as error:  # its evaluator raises errors of every kind
            raise EngineError(f"rdflib could not answer: {error!r}") from error
        assert written is not None
        result: Answer = json.loads(written)
        return result

    @cached_property
    def _process(self) -> TimedProcess[Answer]:
        """The process of queries with a time limit."""
        return TimedProcess(self._source)

    def _source(self) -> Callable[[], Callable[[str], Answer]]:
        """What gives a process of its own the same graph, in a store of the same kind."""
        with self._lock:
            text = self.graph.serialize(format="nt")
            return partial(_answering, type(self.graph.store), self.graph.identifier, text)

    def close(self) -> None:
        """Stop the other process, if there is one."""
        if "_process" in vars(self):
            self._process.close()


def _answering(store: type[RdflibStore], identifier: Any, text: str) -> Callable[[str], Answer]:
    graph: rdflib.Graph = _rdflib().Graph(store=store(), identifier=identifier)
    return Rdflib(_filled(graph, [text])).answer


def graph_of(kb: KnowledgeBase) -> rdflib.Graph:
    """The knowledge base as an rdflib graph in rdflib's own store, lexical forms unchanged."""
    from kb.rdf import ntriples

    return _filled(_rdflib().Graph(), ntriples(kb, base=BASE, held=True))


def _filled(graph: rdflib.Graph, pieces: Iterable[str]) -> rdflib.Graph:
    with _without_complaints():
        for subject, predicate, found in _terms(pieces):
            graph.add((subject, predicate, found))
    return graph


@contextlib.contextmanager
def _without_complaints() -> Iterator[None]:
    """Without rdflib's report of every day before Christ, which it keeps as text."""
    log = logging.getLogger("rdflib.term")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def oxigraph_graph(store: Store) -> rdflib.Graph:
    """An Oxigraph store as an rdflib graph, by oxrdflib: rdflib's interface, Oxigraph's speed."""
    try:
        from oxrdflib import OxigraphStore
    except ImportError:
        message = needs("an Oxigraph store as a graph", "oxrdflib", extra="sparql")
        raise MissingPackageError(message) from None
    from rdflib.graph import DATASET_DEFAULT_GRAPH_ID

    # Bulk-loaded triples lie in the default graph, which rdflib calls by a name of its own.
    graph: rdflib.Graph = _rdflib().Graph(
        store=OxigraphStore(store=store), identifier=DATASET_DEFAULT_GRAPH_ID
    )
    return graph


def _terms(pieces: Iterable[str]) -> Iterator[tuple[Any, Any, Any]]:
    """The triples of N-Triples as rdflib's terms; its own parser would rewrite numbers and days."""
    import pyoxigraph as ox

    rdflib = _rdflib()
    known: dict[Any, Any] = {}

    def term(at: Any) -> Any:
        found = known.get(at)
        if found is None:
            if isinstance(at, ox.NamedNode):
                found = rdflib.URIRef(at.value)
            elif isinstance(at, ox.BlankNode):
                found = rdflib.BNode(at.value)
            else:
                kind = at.datatype.value
                plain = at.language is not None or kind.endswith("#string")
                datatype = None if plain else rdflib.URIRef(kind)
                found = rdflib.Literal(at.value, at.language, datatype, normalize=False)
            known[at] = found
        return found

    for piece in pieces:
        for triple in ox.parse(piece, format=ox.RdfFormat.N_TRIPLES, lenient=True):
            yield term(triple.subject), term(triple.predicate), term(triple.object)


def _rdflib() -> Any:
    require("rdflib")
    import rdflib

    return rdflib
