"""Any SPARQL 1.1 endpoint: Virtuoso, QLever, Fuseki, GraphDB, Oxigraph's server, Wikidata …"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from typing import Any, Literal
from urllib.parse import urlencode

from kb.rdf.iri import XSD
from kopl.sparql.engine import Answer, Dialect
from kopl.sparql.engines.replies import VirtuosoReplies, without_login
from kopl.sparql.errors import (
    CutShortError,
    EngineError,
    MissingPackageError,
    NotUnderstoodError,
    RefusedError,
    TimedOutError,
    UnreachableError,
)
from kopl.sparql.rewrites import in_order_when_long, order_when_long, with_digits
from kopl_base import http
from kopl_base.http import Auth, Backoff, LateError, LostError, Reply, TryAgainError, persist
from kopl_base.packages import needs

ClientName = Literal["wrapper", "pool"]
Fields = Sequence[tuple[str, str]]

_ACCEPT = "application/sparql-results+json, application/json;q=0.9"
_FORM = "application/x-www-form-urlencoded"
_JSON = "application/sparql-results+json"
_XSD_DATE = XSD + "date"
_SHORT_YEAR = re.compile(r"(-?)(\d{1,3})(-\d\d-\d\d.*)")
# Retry-After of more seconds than this is not waited for.
_LONGEST_WAIT = 30.0


class Endpoint:
    """A SPARQL 1.1 endpoint as an engine.

    ``url`` may hold ``user:password@``. ``graph`` is the graph to query, ``base`` what the bare
    IRIs of the encoding were resolved against when the data was loaded. ``timeout`` is the time
    limit of queries that bring none; it covers all tries of a query. ``client``: "wrapper" asks
    through SPARQLWrapper, a connection for each query; "pool" keeps up to ``workers`` connections.
    """

    def __init__(
        self,
        url: str,
        *,
        user: str | None = None,
        password: str | None = None,
        auth: Auth = "basic",
        headers: Mapping[str, str] | None = None,
        graph: str | None = None,
        base: str | None = None,
        timeout: float | None = None,
        retries: int = 3,
        client: ClientName = "wrapper",
        workers: int = 4,
        backoff: Backoff | None = None,
    ) -> None:
        self.url, own_user, own_password = without_login(url)
        self.name = self.url
        self.dialect = Dialect(base=base, graph=graph)
        self.timeout, self.retries, self.workers = timeout, max(0, retries), max(1, workers)
        self._backoff = backoff or Backoff()
        self._headers = dict(headers or {})
        for name, value in self._headers.items():
            if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or re.search(
                r"[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]", value
            ):
                raise RefusedError(f"the header {name!r} cannot be sent: {value!r}")
        self._pooled = client == "pool"
        if not self._pooled:
            _wrapper_package()
        # Virtuoso's words are understood everywhere: a proxy may hide the name of a server.
        self._replies = VirtuosoReplies(self.url)
        self._client = self._connected(
            user=own_user if user is None else user,
            password=(own_password if password is None else password) or "",
            auth=auth,
            kept=self.workers if self._pooled else 0,
        )

    def _connected(self, **options: Any) -> http.Client:
        if not http.is_installed():
            raise MissingPackageError(needs("SPARQL endpoints", "httpx", extra="sparql"))
        try:
            return http.Client(self.url, **options)
        except LostError as error:
            raise UnreachableError(self._unreachable(str(error), 1)) from None

    @classmethod
    def open(cls, url: str, **options: Any) -> Endpoint:
        """The engine for an address: an `Endpoint`, or the adapter that its server needs.

        The options are those of `Endpoint`. Asks the server once; raises EngineError when it does
        not answer.
        """
        return Virtuoso(url, **options) if is_virtuoso(url, **options) else Endpoint(url, **options)

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def server(self) -> str:
        """What the server calls itself in its header ``Server``, "" when it does not tell."""
        return self._ask(self._fields("ASK { }", None), self.timeout, "").header("server")

    def query(self, text: str, *, timeout: float | None = None) -> Answer:
        """The answer to a query; raises EngineError, tries that can help are repeated."""
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise NotUnderstoodError(
                f"the query holds half a character at {error.start}, which cannot be sent"
            ) from None
        limit = self.timeout if timeout is None else timeout
        reply = self._ask(self._fields(text, limit), limit, text)
        if not 200 <= reply.status < 300:
            raise self._replies.failure(reply, text).error
        return self._answer(reply)

    def query_many(
        self, texts: Iterable[str], *, timeout: float | None = None
    ) -> Iterator[Answer | EngineError]:
        """The answers in the order of the queries, ``workers`` at once; errors take their places.

        The texts are drawn as they are needed; ``timeout`` holds for each query.
        """

        def one(text: str) -> Answer | EngineError:
            try:
                return self.query(text, timeout=timeout)
            except EngineError as error:
                return error

        source = iter(texts)
        waiting: deque[Future[Answer | EngineError]] = deque()
        pool = ThreadPoolExecutor(self.workers, "sparql")
        try:
            for text in islice(source, 2 * self.workers):
                waiting.append(pool.submit(one, text))
            while waiting:
                yield waiting.popleft().result()
                for text in islice(source, 1):
                    waiting.append(pool.submit(one, text))
        finally:
            pool.shutdown(cancel_futures=True)

    # --- what servers with ways of their own replace ----------------------------------------

    def _fields(self, text: str, limit: float | None) -> list[tuple[str, str]]:
        """What is sent."""
        graph = self.dialect.graph
        return [("query", text)] + ([("default-graph-uri", graph)] if graph else [])

    def _answer(self, reply: Reply) -> Answer:
        """The answer in a reply that the server calls a success."""
        return self._replies.answer(reply)

    # --- asking -----------------------------------------------------------------------------

    def _ask(self, fields: Fields, limit: float | None, text: str) -> Reply:
        """The reply after as many tries as it takes."""
        late = None if limit is None else time.monotonic() + limit
        content, headers = self._written(fields)

        def attempt(tries: int) -> Reply:
            left = None if late is None else late - time.monotonic()
            try:
                if left is not None and left <= 0:
                    raise LateError
                reply = self._client.send(content, headers, left)
            except LateError:
                raise self._late(limit) from None
            except LostError as lost:
                if lost.begun:
                    raise CutShortError(
                        f"{self.url}: {lost.reason}; ask again, or ask for fewer rows"
                    ) from None
                error = UnreachableError(self._unreachable(lost.reason, tries))
                raise (error if lost.final else TryAgainError(error)) from None
            if reply.status >= 400:
                failure = self._replies.failure(reply, text, tries)
                if failure.again:
                    wait = http.retry_after(reply.header("retry-after"))
                    raise TryAgainError(failure.error, wait)
            return reply

        return persist(attempt, self.retries, self._backoff, longest=_LONGEST_WAIT, until=late)

    def _written(self, fields: Fields) -> tuple[bytes, dict[str, str]]:
        """A form and the headers that it is sent with."""
        headers = {"Accept": _ACCEPT, **self._headers}
        if self._pooled:
            return urlencode(fields).encode("ascii"), {"Content-Type": _FORM, **headers}
        package = _wrapper_package()
        wrapper = package.SPARQLWrapper(self.url, returnFormat=package.JSON, agent=http.AGENT)
        wrapper.setMethod(package.POST)
        wrapper.setRequestMethod(package.URLENCODED)
        wrapper.setOnlyConneg(True)  # otherwise it adds format=, output= and results=
        for name, value in fields:
            if name == "query":
                # Its `setQuery` guesses what kind a query is of, and can be led astray by a name
                # that holds ``: <`` and a word like DELETE: it would go out as an update.
                wrapper.queryString, wrapper.queryType = value, package.SELECT
            else:
                wrapper.addParameter(name, value)
        for name, value in headers.items():
            wrapper.addCustomHttpHeader(name, value)
        request = wrapper._createRequest()  # what its own `query` sends
        return request.data, dict(request.header_items())

    def _unreachable(self, reason: str, tries: int) -> str:
        times = f" after {tries} tries" if tries > 1 else ""
        return f"no answer from {self.url}{times} ({reason}); is the server running there?"

    def _late(self, limit: float | None) -> TimedOutError:
        return TimedOutError(
            f"{self.url}: no complete answer within {limit:g} s; give it more time, or ask for less"
        )


class Virtuoso(Endpoint):
    """A Virtuoso 7 as an engine; the options are those of `Endpoint`.

    Answers come as every other engine gives them: ASK as a boolean, literals with a datatype as
    literals, days before Christ with four digits in the year. Doubles have six digits wherever a
    query does not ask for them by ``bif:sprintf``; the dialect says so.

    ``server_limit`` is the server's own time limit (MaxQueryExecutionTime) in seconds, where it is
    known. Queries with a shorter one then end on the server too; without it a query that was given
    up here runs there until that limit.
    """

    def __init__(self, url: str, *, server_limit: float | None = None, **options: Any) -> None:
        super().__init__(url, **options)
        self.server_limit = server_limit
        self.dialect = replace(
            self.dialect,
            rewrites=(with_digits, in_order_when_long),
            pragma=order_when_long,
            steps=True,
        )

    def _fields(self, text: str, limit: float | None) -> list[tuple[str, str]]:
        fields = [*super()._fields(text, limit), ("format", _JSON)]
        # After the time in this parameter, or its own limit if that is shorter, Virtuoso answers
        # with the rows that it has, and does not always say so. So it is told a time at which
        # nobody waits any more, and nothing at all where its own limit might come first.
        if limit is not None and self.server_limit is not None:
            told = max(limit, 1.0) + 1.0
            if told < self.server_limit:
                fields.append(("timeout", str(round(told * 1000))))
        return fields

    def _answer(self, reply: Reply) -> Answer:
        return _standard(super()._answer(reply))


def _standard(answer: Answer) -> Answer:
    """Virtuoso's JSON results as the specification has them."""
    if "results" not in answer:
        return answer
    rows = answer["results"]["bindings"]
    if answer["head"].get("vars") == ["__ASK_RETVAL"]:
        # A false ASK has no rows, a true one a row with the number 1.
        return {"head": {}, "boolean": any(_is_true(row) for row in rows)}
    for row in rows:
        for term in row.values():
            if term.get("type") == "typed-literal":
                term["type"] = "literal"
            if term.get("datatype") == _XSD_DATE and (
                short := _SHORT_YEAR.fullmatch(term.get("value", ""))
            ):
                term["value"] = f"{short[1]}{short[2]:0>4}{short[3]}"
    return answer


def _is_true(row: dict[str, Any]) -> bool:
    value = row.get("__ASK_RETVAL", {}).get("value")
    return value not in (None, "0", "false")


def is_virtuoso(url: str, **options: Any) -> bool:
    """Whether the server at the address calls itself Virtuoso; raises EngineError if none answers.

    The options are those of `Endpoint`.
    """
    with Endpoint(url, **options) as endpoint:
        return endpoint.server().startswith("Virtuoso")


def _wrapper_package() -> Any:
    try:
        import SPARQLWrapper
    except ImportError:
        message = needs("SPARQL endpoints", "SPARQLWrapper", extra="sparql")
        raise MissingPackageError(message) from None
    return SPARQLWrapper
