"""Oxigraph inside this process, by pyoxigraph: in memory, or on disk where it opens at once."""

from __future__ import annotations

import itertools
import json
import logging
import re
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kb import KnowledgeBase
from kb.load import cache_folder
from kb.rdf.iri import BASE
from kopl.sparql.engine import Answer, Dialect, in_time, require
from kopl.sparql.errors import EngineError, NotUnderstoodError
from kopl.sparql.order import laterally
from kopl_base.errors import WriteError
from kopl_base.processes import TimedProcess
from kopl_base.temporary import filling

if TYPE_CHECKING:
    from pyoxigraph import Store

log = logging.getLogger("kb")

# Bump when the graph that is written for a knowledge base changes.
LAYOUT = 1
# Pieces of text, of some 1,000 triples each, that are loaded at once.
AT_ONCE = 1_000
# Facts from which building a store takes a second or more, which is said.
SAID_FROM = 30_000


# What is no keyword. A string that does not end is passed over to its line's end, once.
_ASIDE = re.compile(
    r'''"""(?:"{0,2}(?:[^"\\]|\\.))*(?:""")?|"(?:[^"\\\n]|\\.)*"?'''
    r"""|'''(?:'{0,2}(?:[^'\\]|\\.))*(?:''')?|'(?:[^'\\\n]|\\.)*'?|<[^<>\s]*>|\#[^\n]*""",
    re.DOTALL,
)
_SERVICE = re.compile(r"\bSERVICE\b", re.IGNORECASE)


class Oxigraph:
    """An Oxigraph store as an engine.

    ``Oxigraph.of(kb)`` has the knowledge base on disk, built once and kept in the cache;
    ``memory=True`` builds it in memory, which suits small ones. pyoxigraph has no time limit, so a
    query with one runs in a process that can be killed. Safe to share between threads.
    """

    name = "oxigraph"

    def __init__(
        self, store: Store, *, base: str | None = BASE, folder: Path | None = None
    ) -> None:
        self.store, self.folder = store, folder
        self.dialect = Dialect(base=base, rewrites=(laterally,))

    @classmethod
    def of(cls, kb: KnowledgeBase, *, memory: bool = False, terms: bool = False) -> Oxigraph:
        """The engine that holds a knowledge base.

        ``terms``: qualifiers hang on triple terms of RDF 1.2 instead of fact nodes; queries are
        then written with ``Encoding(terms=True)``. Raises MissingPackageError without pyoxigraph.
        """
        if not memory and cache_folder() is not None:
            return cls.open(store_folder(kb, terms=terms))
        store = _pyoxigraph().Store()
        load(store, kb, terms=terms)
        return cls(store)

    @classmethod
    def open(cls, folder: Path | str, *, base: str | None = BASE) -> Oxigraph:
        """The engine of an existing store on disk, opened for reading only."""
        folder = Path(folder)
        try:
            store = _pyoxigraph().Store.read_only(str(folder))
        except (OSError, ValueError) as error:
            raise EngineError(f"{folder}: no Oxigraph store can be opened: {error}") from None
        return cls(store, base=base, folder=folder)

    def query(self, text: str, *, timeout: float | None = None) -> Answer:
        """The answer to a query; with a time limit it runs in another process."""
        if timeout is None:
            return answer(self.store, text)
        return in_time(self._process, text, timeout)

    @cached_property
    def _process(self) -> TimedProcess[Answer]:
        """The process of queries with a time limit."""
        return TimedProcess(self._source)

    def _source(self) -> Callable[[], Callable[[str], Answer]]:
        """What gives a process of its own the same store; one in memory is copied to it."""
        if self.folder is not None:
            return partial(_answering, self.folder, b"")
        quads = self.store.dump(format=_pyoxigraph().RdfFormat.N_QUADS)
        assert quads is not None  # as it is when nothing says where to write it
        return partial(_answering, None, quads)

    def close(self) -> None:
        """Stop the other process, if there is one."""
        if "_process" in vars(self):
            self._process.close()


def _answering(folder: Path | None, quads: bytes) -> Callable[[str], Answer]:
    if folder is not None:
        return Oxigraph.open(folder).query
    ox = _pyoxigraph()
    store = ox.Store()
    # Loading the text itself would give blank nodes other names than they have here.
    store.bulk_extend(ox.parse(quads, format=ox.RdfFormat.N_QUADS, lenient=True))
    return partial(answer, store)


def answer(store: Store, text: str) -> Answer:
    """The answer of a store, in SPARQL's JSON results format."""
    ox = _pyoxigraph()
    if asks_elsewhere(text):
        raise NotUnderstoodError("SERVICE: other endpoints are not asked from here")
    try:
        found = store.query(text)
        if isinstance(found, ox.QueryTriples):
            raise NotUnderstoodError("a SELECT or ASK query is expected")
        written = found.serialize(format=ox.QueryResultsFormat.JSON)
    except SyntaxError as error:
        # The rest of the message lists every token that it knows.
        said = str(error).partition("expected")[0].strip(" :") or str(error)
        raise NotUnderstoodError(f"Oxigraph cannot read the query: {said[:200]}") from None
    except (OSError, ValueError) as error:
        raise EngineError(f"Oxigraph could not answer: {error}") from None
    except BaseException as error:
        # A panic of its own code is no Exception: ORDER BY of values that have no order.
        if type(error).__name__ != "PanicException":
            raise
        raise EngineError(f"Oxigraph stopped at the query: {error}") from None
    result: Answer = json.loads(written or b"")
    return result


def asks_elsewhere(text: str) -> bool:
    """Whether a query has a SERVICE, which asks another endpoint."""
    return _SERVICE.search(_ASIDE.sub(" ", text)) is not None


def load(store: Store, kb: KnowledgeBase, *, terms: bool = False) -> None:
    """Put a knowledge base into a store, streaming.

    Raises KoplError for concepts too deep below each other, before anything is loaded.
    """
    from kb.rdf import ntriples

    ox = _pyoxigraph()
    pieces = ntriples(kb, base=BASE, terms=terms, held=True)
    for first in pieces:
        # Our own text needs no validation, which takes half of the time. The loader keeps what it
        # is given at once in memory.
        some: Any = _Pipe(itertools.chain([first], itertools.islice(pieces, AT_ONCE)))
        try:
            store.bulk_load(some, format=ox.RdfFormat.N_TRIPLES, lenient=True)
        except MemoryError as error:
            if "buffer" not in str(error):
                raise
            raise EngineError(
                "the knowledge base has a text of more than 16 MiB, which Oxigraph does not hold;"
                " use the engine kopl or rdflib"
            ) from None


class _Pipe:
    """Pieces of text as a file of bytes, for readers that ask for some of them at a time."""

    def __init__(self, pieces: Iterable[str]) -> None:
        self._pieces, self._rest = iter(pieces), b""

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most ``size``; none at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._rest = piece.encode()
        if size < 0:
            size = len(self._rest)
        found, self._rest = self._rest[:size], self._rest[size:]
        return found


def store_folder(kb: KnowledgeBase, *, terms: bool = False) -> Path:
    """The folder of the store on disk that holds a knowledge base, built when it is not there.

    It lies in the cache folder under the knowledge base's fingerprint. Raises WriteError when it
    cannot be written, MissingPackageError without pyoxigraph.
    """
    require("oxigraph")
    cache = cache_folder()
    if cache is None:
        raise WriteError("there is no cache folder to keep the store in; set KOPL_CACHE_DIR")
    form = "terms" if terms else "nodes"
    folder = cache / "oxigraph" / f"{kb.fingerprint[:24]}-{form}-{LAYOUT}"
    if not folder.is_dir():
        facts = len(kb.literals) + len(kb.relational)
        if facts >= SAID_FROM:
            log.warning(
                "building the Oxigraph store of %s facts, which is kept in %s", f"{facts:,}", folder
            )
        try:
            build(kb, folder, terms=terms)
        except WriteError as error:
            raise WriteError(
                f"{error}; set KOPL_CACHE_DIR to a folder that can be written, or use the engine"
                " oxigraph-memory"
            ) from None
    return folder


def build(kb: KnowledgeBase, folder: Path | str, *, terms: bool = False) -> None:
    """Build a store on disk; the folder appears when it is complete.

    Raises WriteError when it cannot be written.
    """
    folder = Path(folder)
    with filling(folder) as temporary:
        store = _pyoxigraph().Store(str(temporary))
        load(store, kb, terms=terms)
        store.optimize()
        store.flush()
        del store


def _pyoxigraph() -> Any:
    require("oxigraph")
    import pyoxigraph

    return pyoxigraph
