"""Any SPARQL 1.1 endpoint: Virtuoso, QLever, Fuseki, GraphDB, Oxigraph's server, Wikidata …"""

from __future__ import annotations

import base64
import html
import json
import random
import re
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal
from urllib.parse import unquote, urlsplit, urlunsplit

from kopl.sparql.engine import Answer, Dialect
from kopl.sparql.engines.transport import (
    LateError,
    LostError,
    PoolTransport,
    Reply,
    Transport,
    WrapperTransport,
)
from kopl.sparql.errors import (
    CutShortError,
    EngineError,
    NotUnderstoodError,
    RefusedError,
    TimedOutError,
    UnreachableError,
)

Client = Literal["wrapper", "pool"]
Auth = Literal["basic", "digest"]

# Retry-After of more seconds than this is not waited for.
_LONGEST_WAIT = 30.0
_LATE_WORDS = re.compile(r"time[d]?[ -]?out|TimeoutException|time limit|deadline exceeded", re.I)
_LATE_STATES = (408, 504)
# At the beginning, or behind rows that were sent before the error came.
_VIRTUOSO = re.compile(r"(?:^|(?<=\s))Virtuoso (\w{5}) Error\s*")
_HINTS = {
    401: "give the right user and password, and the kind of authentication (basic or digest)",
    403: "this user may not ask there; Virtuoso's endpoint with a login is /sparql-auth",
    404: "is the path right? Virtuoso: /sparql, Oxigraph's server: /query",
    405: "it does not take queries by POST; is this a SPARQL endpoint?",
    406: "it does not give JSON results; is this a SPARQL 1.1 endpoint?",
    407: "the proxy asks for a user and password",
    413: "the query is too long for it",
    414: "the query is too long for it",
    415: "it does not take forms by POST; is this a SPARQL 1.1 endpoint?",
    429: "too many queries; use fewer workers or wait",
}


@dataclass(frozen=True)
class Backoff:
    """How long to wait before the next try: doubling, and jittered so that many do not meet."""

    first: float = 0.2
    most: float = 10.0
    chance: Callable[[], float] = random.random
    sleep: Callable[[float], None] = time.sleep

    def pause(self, attempt: int) -> float:
        """Seconds before the try after this many; half of it at least, the rest by chance."""
        whole = min(self.most, self.first * 2.0 ** (attempt - 1))
        return whole * (0.5 + 0.5 * self.chance())


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
        client: Client = "wrapper",
        workers: int = 4,
        backoff: Backoff | None = None,
    ) -> None:
        self.url, own_user, own_password = _without_login(url)
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
        user = own_user if user is None else user
        password = own_password if password is None else password
        self._digest: _Digest | None = None
        if user is not None:
            if auth == "digest":
                self._digest = _Digest(self.url, user, password or "")
            else:
                login = base64.b64encode(f"{user}:{password or ''}".encode()).decode("ascii")
                self._headers["Authorization"] = f"Basic {login}"
        self._transport: Transport
        if client == "pool":
            self._transport = PoolTransport(self.url, self.workers)
        else:
            self._transport = WrapperTransport(self.url)

    @classmethod
    def open(cls, url: str, **options: Any) -> Endpoint:
        """The engine for an address: an `Endpoint`, or the adapter that its server needs.

        The options are those of `Endpoint`. Asks the server once; raises EngineError when it does
        not answer.
        """
        from kopl.sparql.engines.virtuoso import Virtuoso

        plain = Endpoint(url, **options)
        if not plain.server().startswith("Virtuoso"):
            return plain
        plain.close()
        return Virtuoso(url, **options)

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

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
            raise self._failure(reply, text)[0]
        return self._answer(reply, limit)

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

    def _answer(self, reply: Reply, limit: float | None) -> Answer:
        """The answer in a reply that the server calls a success."""
        self._check_complete(reply, limit)
        return self._read(reply)

    # --- asking -----------------------------------------------------------------------------

    def _ask(self, fields: list[tuple[str, str]], limit: float | None, text: str) -> Reply:
        """The reply after as many tries as it takes."""
        late = None if limit is None else time.monotonic() + limit
        tries = 0
        while True:
            tries += 1
            wait, error = 0.0, EngineError()
            try:
                reply = self._exchange(fields, late)
            except LateError:
                raise self._late(limit) from None
            except LostError as lost:
                if lost.begun:
                    raise CutShortError(
                        f"{self.url}: {lost.reason}; ask again, or ask for fewer rows"
                    ) from None
                error = UnreachableError(self._unreachable(lost.reason, tries))
                if lost.final:
                    raise error from None
            else:
                if reply.status < 400:
                    return reply
                error, again = self._failure(reply, text, tries)
                if not again:
                    return reply
                wait = _seconds(reply.header("retry-after"))
            pause = max(self._backoff.pause(tries), wait)
            left = _LONGEST_WAIT if late is None else late - time.monotonic()
            if tries > self.retries or wait > _LONGEST_WAIT or (late is not None and pause >= left):
                raise error
            self._backoff.sleep(pause)

    def _exchange(self, fields: list[tuple[str, str]], late: float | None) -> Reply:
        """One reply, after the server's challenge for a password has been met."""
        for turn in range(3):
            headers = dict(self._headers)
            if self._digest is not None and (proof := self._digest.proof()):
                headers["Authorization"] = proof
            left = None if late is None else late - time.monotonic()
            if left is not None and left <= 0:
                raise LateError
            reply = self._transport.send(fields, headers, left)
            challenge = reply.header("www-authenticate")
            if reply.status != 401 or self._digest is None or turn == 2:
                break
            if not self._digest.take(challenge) or (turn and "stale" not in challenge.lower()):
                break
        return reply

    def _unreachable(self, reason: str, tries: int) -> str:
        times = f" after {tries} tries" if tries > 1 else ""
        return f"no answer from {self.url}{times} ({reason}); is the server running there?"

    def _late(self, limit: float | None) -> TimedOutError:
        return TimedOutError(
            f"{self.url}: no complete answer within {limit:g} s; give it more time, or ask for less"
        )

    # --- what replies mean --------------------------------------------------------------------

    def _failure(self, reply: Reply, text: str, tries: int = 1) -> tuple[EngineError, bool]:
        """The error that a reply stands for, and whether another try may help."""
        status, said = reply.status, _plain(reply)
        where = f"{self.url} (status {status})"
        if state := _VIRTUOSO.search(said):
            return self._virtuoso_failure(state[1], said[state.end() :], where)
        if status in _LATE_STATES or (
            # The query, which some repeat, may speak of time limits as well.
            status >= 429 and _LATE_WORDS.search(said.replace(text or said, ""))
        ):
            return TimedOutError(f"{where}: the server's time limit: {_short(said)}"), False
        if status < 400:
            to = reply.header("location") or "another address"
            return RefusedError(f"{where}: it has moved; use {_without_login(to)[0]}"), False
        if status in (400, 422):
            return NotUnderstoodError(f"{where}: {_short(said)}"), False
        if status >= 500:
            times = f", {tries} times" if tries > 1 else ""
            return RefusedError(
                f"{where}{times}: {_short(said)}; try again later, or look into the server's log"
            ), status != 501
        message = f"{where}: {_HINTS.get(status, _short(said))}"
        return RefusedError(message), status == 429 and bool(reply.header("retry-after"))

    def _virtuoso_failure(self, state: str, said: str, where: str) -> tuple[EngineError, bool]:
        """The same for an error of Virtuoso's, which sends 400 and 500 for anything."""
        said = said.partition("SPARQL query:")[0]  # which it repeats
        message = f"{where}: {state} {_short(said)}"
        if state in ("S1T00", "S1TAT"):
            return TimedOutError(f"{message}; that is the server's own time limit"), False
        if "exceeds the limit" in said:
            return RefusedError(
                f"{message}; raise MaxQueryCostEstimationTime in the server's configuration"
            ), False
        if "memory pool size" in said:
            return RefusedError(
                f"{message}; the query is too complex for it: raise MaxMemPoolSize in the server's"
                " configuration"
            ), False
        if state == "40001" or state.startswith("08"):  # deadlock, lost connection inside
            return RefusedError(message), True
        if re.search(r"permission|access denied|not allowed|privileges", said, re.I):
            return RefusedError(f"{message}; {_HINTS[403]}"), False
        return NotUnderstoodError(message), False

    def _check_complete(self, reply: Reply, limit: float | None) -> None:
        """Raise CutShortError when the server says that it gave up half-way (Virtuoso)."""
        if state := reply.header("x-sql-state"):
            said = _short(reply.header("x-sql-message"))
            raise CutShortError(
                f"{self.url}: the server gave a part of the answer only ({state} {said}); raise its"
                " time limit (Virtuoso: MaxQueryExecutionTime), or ask for less"
            )

    def _read(self, reply: Reply) -> Answer:
        """The JSON results in a reply."""
        body = reply.body
        try:
            # Virtuoso does not escape every control character.
            answer = json.loads(body.decode("utf-8-sig"), strict=False)
        except UnicodeDecodeError as error:
            if error.end >= len(body):
                raise self._cut_short() from None
            raise NotUnderstoodError(
                f"{self.url}: the answer is not UTF-8 at byte {error.start}"
            ) from None
        except (ValueError, RecursionError):
            start = body.lstrip()[:1]
            if start == b"{":
                raise self._cut_short() from None
            kind = reply.header("content-type").partition(";")[0] or "something else"
            what = "nothing" if not start else "a page" if "html" in kind else kind
            raise NotUnderstoodError(
                f"{self.url} answers with {what}, not with SPARQL's JSON results; is this the"
                " address of a SPARQL endpoint?"
            ) from None
        if not _is_answer(answer):
            raise NotUnderstoodError(
                f"{self.url}: the answer is JSON, but not SPARQL's JSON results"
            )
        rows = answer.get("results", {}).get("bindings", ())
        most = reply.header("x-sparql-maxrows")
        if most.isdigit() and len(rows) >= int(most):
            raise CutShortError(
                f"{self.url}: the answer ends at the server's limit of {most} rows; raise it"
                " (Virtuoso: ResultSetMaxRows), or ask in parts by LIMIT and OFFSET"
            )
        found: Answer = answer
        return found

    def _cut_short(self) -> CutShortError:
        return CutShortError(
            f"{self.url}: the answer breaks off before its end, as it does at the time limit of"
            " some servers; raise that limit, or ask for less"
        )


class _Digest:
    """Digest authentication for any client, by the standard library's own computation."""

    def __init__(self, url: str, user: str, password: str) -> None:
        passwords = urllib.request.HTTPPasswordMgrWithDefaultRealm()
        passwords.add_password(None, url, user, password)
        self._handler = urllib.request.AbstractDigestAuthHandler(passwords)
        self._request = urllib.request.Request(url, method="POST")
        self._challenge: dict[str, str] | None = None
        self._lock = threading.Lock()

    def take(self, header: str) -> bool:
        """Keep the challenge in a header; False when it holds none for digest."""
        at = header.lower().find("digest ")
        if at < 0:
            return False
        parts = urllib.request.parse_http_list(header[at + len("digest ") :])
        pairs = (part.partition("=") for part in parts if "=" in part)
        challenge = {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}
        with self._lock:
            self._challenge = challenge
        return True

    def proof(self) -> str | None:
        """The value of the header ``Authorization`` for the next request; None before `take`."""
        with self._lock:
            if self._challenge is None:
                return None
            try:
                proof = self._handler.get_authorization(self._request, self._challenge)
            except (ValueError, urllib.error.URLError):  # an algorithm that Python lacks
                return None
        return f"Digest {proof}" if proof else None


def _without_login(url: str) -> tuple[str, str | None, str | None]:
    """The address without user and password, and these; raises UnreachableError for no address."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        port, parts = None, urlsplit("")
    host = parts.hostname
    if parts.scheme not in ("http", "https") or not host or re.search(r"[\x00-\x20\x7f]", url):
        shown = re.sub(r"//[^/@]*@", "//", url)
        raise UnreachableError(
            f"{shown!r} is no address of an endpoint; give one such as http://localhost:8890/sparql"
        )
    place = f"[{host}]" if ":" in host else host
    if port is not None:
        place = f"{place}:{port}"
    user = None if parts.username is None else unquote(parts.username)
    password = None if parts.password is None else unquote(parts.password)
    bare = urlunsplit((parts.scheme, place, parts.path or "/", parts.query, ""))
    return bare, user, password


def _is_answer(answer: Any) -> bool:
    if not isinstance(answer, dict) or not isinstance(answer.get("head", {}), dict):
        return False
    if "boolean" in answer:
        return isinstance(answer["boolean"], bool)
    results, names = answer.get("results"), answer.get("head", {}).get("vars")
    if not isinstance(results, dict) or not isinstance(names, list):
        return False
    rows = results.get("bindings")
    return isinstance(rows, list) and all(isinstance(row, dict) for row in rows)


def _plain(reply: Reply) -> str:
    """What an error reply says, without markup."""
    body = reply.body
    if len(body) > 20_000:  # rows, and the error behind them
        body = body[:2000] + b" \xe2\x80\xa6 " + body[-4000:]
    said = body.decode("utf-8", "replace")
    if "html" in reply.header("content-type") or said.lstrip()[:1] == "<":
        said = re.sub(r"(?is)<(script|style)\b.*?</\1>|<[^<>]*>", " ", said)
        said = html.unescape(said)
    return said.strip()


def _short(text: str) -> str:
    """The beginning of a message, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= 300 else f"{line[:299]}…"


def _seconds(text: str) -> float:
    """The seconds of a header Retry-After; a date is read as a minute, nothing as 0."""
    if not text:
        return 0.0
    return float(text) if text.isdigit() else 60.0
