"""What can go wrong with SPARQL: reading it, saying it in KoPL, and the engines that run it."""

from __future__ import annotations

from kopl_base.errors import KoplError


class SparqlError(KoplError):
    """Base of the errors of queries and of the engines that run them."""

    kind = "sparql"


class QueryReadError(SparqlError):
    """A text that is no query of the subset that is read here; names line and column."""

    kind = "sparql syntax"


class NotReadError(QueryReadError):
    """A part of SPARQL that is not read here; engines answer it."""


class QueryTooDeepError(QueryReadError):
    """A query that is nested deeper than any program; no engine is asked, as some end at such."""


class NotInKoplError(SparqlError):
    """A query that no KoPL program says; the message gives the part and the reason."""

    kind = "not in KoPL"


class EngineError(SparqlError):
    """An engine that did not answer; the subclasses tell how."""

    kind = "engine"


class MissingPackageError(EngineError):
    """An engine whose Python package is not installed; the message says how to install it."""

    kind = "engine missing"


class UnreachableError(EngineError):
    """No server answers at the address, after all retries."""

    kind = "not reachable"


class RefusedError(EngineError):
    """The server answers but refuses: wrong user or password, no right, not found, too busy."""

    kind = "refused"


class TimedOutError(EngineError):
    """The query took longer than its time limit, here or on the server."""

    kind = "timed out"


class NotUnderstoodError(EngineError):
    """The engine cannot read the query, or the answer is not in SPARQL's JSON results format."""

    kind = "query not understood"


class CutShortError(EngineError):
    """The answer ends before it is complete, or the server says that rows are missing."""

    kind = "answer cut short"
