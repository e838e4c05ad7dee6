"""What the replies of SPARQL servers mean: an answer, or an error and whether to ask again.

Virtuoso has ways of its own, which are told apart by its words: it sends 400 and 500 for anything,
and stops at limits with a part of the answer and the status 200.
"""

from __future__ import annotations

import html
import json
import re
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

from kopl.sparql.engine import Answer
from kopl.sparql.errors import (
    CutShortError,
    EngineError,
    NotUnderstoodError,
    RefusedError,
    TimedOutError,
    UnreachableError,
)
from kopl_base.http import Reply

_LATE_WORDS = re.compile(r"time[d]?[ -]?out|TimeoutException|time limit|deadline exceeded", re.I)
_LATE_STATES = (408, 504)
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


class Failure(NamedTuple):
    """The error that a reply stands for, and whether another try may help."""

    error: EngineError
    again: bool = False


class Replies:
    """Reads the replies of the address ``url`` as the specification has them."""

    def __init__(self, url: str) -> None:
        self.url = url

    def failure(self, reply: Reply, text: str, tries: int = 1) -> Failure:
        """What a reply stands for that is no success; ``text`` is what was asked."""
        status, said = reply.status, _plain(reply)
        where = f"{self.url} (status {status})"
        if status in _LATE_STATES or (
            # The query, which some repeat, may speak of time limits as well.
            status >= 429 and _LATE_WORDS.search(said.replace(text or said, ""))
        ):
            return Failure(TimedOutError(f"{where}: the server's time limit: {_short(said)}"))
        if status < 400:
            to = reply.header("location") or "another address"
            return Failure(RefusedError(f"{where}: it has moved; use {without_login(to)[0]}"))
        if status in (400, 422):
            return Failure(NotUnderstoodError(f"{where}: {_short(said)}"))
        if status >= 500:
            times = f", {tries} times" if tries > 1 else ""
            message = (
                f"{where}{times}: {_short(said)}; try again later, or look into the server's log"
            )
            return Failure(RefusedError(message), again=status != 501)
        message = f"{where}: {_HINTS.get(status, _short(said))}"
        again = status == 429 and bool(reply.header("retry-after"))
        return Failure(RefusedError(message), again)

    def answer(self, reply: Reply) -> Answer:
        """The JSON results in a reply that the server calls a success; raises an EngineError."""
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
        found: Answer = answer
        return found

    def _cut_short(self) -> CutShortError:
        return CutShortError(
            f"{self.url}: the answer breaks off before its end, as it does at the time limit of"
            " some servers; raise that limit, or ask for less"
        )


class VirtuosoReplies(Replies):
    """The same for a server that may be Virtuoso.

    It sends 400 and 500 for anything, with a state of SQL, and stops at its limits with a part of
    the answer and the status 200.
    """

    # At the beginning, or behind rows that were sent before the error came.
    _ERROR = re.compile(r"(?:^|(?<=\s))Virtuoso (\w{5}) Error\s*")

    def failure(self, reply: Reply, text: str, tries: int = 1) -> Failure:
        said = _plain(reply)
        found = self._ERROR.search(said)
        if found is None:
            return super().failure(reply, text, tries)
        state = found[1]
        said = said[found.end() :].partition("SPARQL query:")[0]  # which it repeats
        message = f"{self.url} (status {reply.status}): {state} {_short(said)}"
        if state in ("S1T00", "S1TAT"):
            return Failure(TimedOutError(f"{message}; that is the server's own time limit"))
        if "exceeds the limit" in said:
            more = "raise MaxQueryCostEstimationTime in the server's configuration"
            return Failure(RefusedError(f"{message}; {more}"))
        if "memory pool size" in said:
            more = "the query is too complex for it: raise MaxMemPoolSize in the server's"
            return Failure(RefusedError(f"{message}; {more} configuration"))
        if state == "40001" or state.startswith("08"):  # deadlock, lost connection inside
            return Failure(RefusedError(message), again=True)
        if re.search(r"permission|access denied|not allowed|privileges", said, re.I):
            return Failure(RefusedError(f"{message}; {_HINTS[403]}"))
        return Failure(NotUnderstoodError(message))

    def answer(self, reply: Reply) -> Answer:
        if state := reply.header("x-sql-state"):
            said = _short(reply.header("x-sql-message"))
            raise CutShortError(
                f"{self.url}: the server gave a part of the answer only ({state} {said}); raise its"
                " time limit (Virtuoso: MaxQueryExecutionTime), or ask for less"
            )
        answer = super().answer(reply)
        rows = answer.get("results", {}).get("bindings", ())
        most = reply.header("x-sparql-maxrows")
        if most.isdigit() and len(rows) >= int(most):
            raise CutShortError(
                f"{self.url}: the answer ends at the server's limit of {most} rows; raise it"
                " (Virtuoso: ResultSetMaxRows), or ask in parts by LIMIT and OFFSET"
            )
        return answer


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


def without_login(url: str) -> tuple[str, str | None, str | None]:
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
