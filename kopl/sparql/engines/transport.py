"""One HTTP request and its whole answer, by SPARQLWrapper or by a pool of kept connections.

Both say in the same way what went wrong below HTTP: `LostError` and `LateError`. What a status
means is not decided here.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

from kopl.sparql.errors import MissingPackageError
from kopl_base.packages import needs

ACCEPT = "application/sparql-results+json, application/json;q=0.9"
AGENT = "kopl-toolkit"
FORM = "application/x-www-form-urlencoded"

Fields = Sequence[tuple[str, str]]


class LostError(Exception):
    """No connection, or one that ended before the answer did.

    ``begun``: the answer had begun; ``final``: trying again cannot help.
    """

    def __init__(self, reason: str, *, begun: bool = False, final: bool = False) -> None:
        self.reason, self.begun, self.final = reason, begun, final
        super().__init__(reason)


class LateError(Exception):
    """The time limit passed before the answer was complete."""


@dataclass(frozen=True)
class Reply:
    """A complete answer. Header names are compared without regard to case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def header(self, name: str) -> str:
        """The value of a header, "" without one."""
        return self.headers.get(name.lower(), "")


class Transport(Protocol):
    """Sends a form by POST."""

    def send(self, fields: Fields, headers: Mapping[str, str], timeout: float | None) -> Reply:
        """The whole answer, of whatever status; raises LostError or LateError."""
        ...

    def close(self) -> None:
        """Close the connections that are kept."""
        ...


def is_loopback(url: str) -> bool:
    """Whether the address is on this machine; such requests pass by every proxy."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class WrapperTransport:
    """SPARQLWrapper: a connection for each query."""

    def __init__(self, url: str) -> None:
        try:
            import SPARQLWrapper as package
        except ImportError:
            message = needs("SPARQL endpoints", "SPARQLWrapper", extra="sparql")
            raise MissingPackageError(message) from None

        opener = _opener(url)

        class Asking(package.SPARQLWrapper):
            """SPARQLWrapper without its guess at the query's type and without global state.

            Its pattern for prefixes can be led astray by a name that holds ``: <`` and a word like
            DELETE, and the query would then go out as an update. Its own digest authentication
            installs an opener for the whole process; its errors drop status and headers.
            """

            limit: float | None = None

            def _parseQueryType(self, query: str) -> str:
                return package.SELECT

            def _query(self) -> tuple[Any, str]:
                request = self._createRequest()
                return opener.open(request, timeout=self.limit), self.returnFormat

        self._url, self._package, self._class = url, package, Asking

    def send(self, fields: Fields, headers: Mapping[str, str], timeout: float | None) -> Reply:
        package = self._package
        wrapper = self._class(self._url, returnFormat=package.JSON, agent=AGENT)
        wrapper.setMethod(package.POST)
        wrapper.setRequestMethod(package.URLENCODED)
        wrapper.setOnlyConneg(True)  # otherwise it adds format=, output= and results=
        for name, value in fields:
            if name == "query":
                wrapper.setQuery(value)
            else:
                wrapper.addParameter(name, value)
        for name, value in {"Accept": ACCEPT, **headers}.items():
            wrapper.addCustomHttpHeader(name, value)
        wrapper.limit = timeout
        late = None if timeout is None else time.monotonic() + timeout
        try:
            response = wrapper.query().response
        except (OSError, http.client.HTTPException) as error:
            raise _explained(error, late) from error
        with response:
            raw = getattr(getattr(response.fp, "raw", None), "_sock", None)
            body = _read(response.read, raw, late, (OSError, http.client.HTTPException))
            return Reply(response.status, _lower(response.headers.items()), body)

    def close(self) -> None:
        """Nothing is kept."""


class PoolTransport:
    """urllib3: connections are kept and used again, as many as there are workers."""

    def __init__(self, url: str, workers: int) -> None:
        try:
            import urllib3
        except ImportError:
            message = needs("the client 'pool'", "urllib3", extra="sparql")
            raise MissingPackageError(message) from None
        self._url = url
        self._errors = (urllib3.exceptions.HTTPError, OSError, http.client.HTTPException)
        options: dict[str, Any] = {"num_pools": 2, "maxsize": workers}
        self._pool: urllib3.PoolManager
        if proxy := _proxy(url):
            parts = urlsplit(proxy)
            login = f"{parts.username}:{parts.password or ''}" if parts.username else None
            self._pool = urllib3.ProxyManager(
                proxy, proxy_headers=urllib3.make_headers(proxy_basic_auth=login), **options
            )
        else:
            self._pool = urllib3.PoolManager(**options)
        self._urllib3 = urllib3

    def send(self, fields: Fields, headers: Mapping[str, str], timeout: float | None) -> Reply:
        late = None if timeout is None else time.monotonic() + timeout
        try:
            response = self._pool.request(
                "POST",
                self._url,
                body=urlencode(fields).encode("ascii"),
                # Virtuoso closes the connection when anything else is accepted.
                headers={
                    "Accept": ACCEPT,
                    "Accept-Encoding": "identity",
                    "Content-Type": FORM,
                    "User-Agent": AGENT,
                    **headers,
                },
                timeout=self._urllib3.Timeout(total=timeout),
                retries=False,
                redirect=False,
                preload_content=False,
            )
        except self._errors as error:
            raise _explained(error, late) from error
        try:
            raw = getattr(response.connection, "sock", None)
            body = _read(response.read, raw, late, self._errors)
        except BaseException:
            response.close()
            raise
        response.release_conn()
        return Reply(response.status, _lower(response.headers.items()), body)

    def close(self) -> None:
        """Close the kept connections."""
        self._pool.clear()


def _lower(headers: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers:
        name = name.lower()
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def _read(
    read: Callable[[], bytes],
    raw: socket.socket | None,
    late: float | None,
    errors: tuple[type[Exception], ...],
) -> bytes:
    """The body; a server that sends a byte now and then is cut off when the time is over."""
    over = threading.Event()

    def cut_off() -> None:
        over.set()
        if raw is not None:
            with contextlib.suppress(OSError):  # it is closed already
                raw.shutdown(socket.SHUT_RDWR)

    watch = None
    if late is not None and raw is not None:
        watch = threading.Timer(max(0.0, late - time.monotonic()), cut_off)
        watch.daemon = True
        watch.start()
    try:
        body = read()
    except errors as error:
        if over.is_set() or _is_timeout(error):
            raise LateError from error
        raise LostError(_reason(error), begun=True) from error
    finally:
        if watch is not None:
            watch.cancel()
    if over.is_set():
        raise LateError
    return body


def _explained(error: Exception, late: float | None) -> Exception:
    if _is_timeout(error) or (late is not None and time.monotonic() >= late):
        return LateError()
    final = any(isinstance(one, ssl.SSLCertVerificationError) for one in _chain(error))
    return LostError(_reason(error), final=final)


def _chain(error: BaseException) -> list[BaseException]:
    """The error and all that it came from, urllib's and urllib3's own links included."""
    found: list[BaseException] = []
    stack: list[Any] = [error]
    while stack:
        one = stack.pop()
        if isinstance(one, BaseException) and one not in found:
            found.append(one)
            stack += [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
    return found


def _is_timeout(error: Exception) -> bool:
    # urllib3's ConnectTimeoutError and ReadTimeoutError come from a TimeoutError as well.
    return any(isinstance(one, TimeoutError) for one in _chain(error))


def _reason(error: Exception) -> str:
    """The system's own words for what went wrong, where it has some."""
    for one in reversed(_chain(error)):
        if isinstance(one, OSError) and one.strerror:
            return one.strerror
    last = _chain(error)[-1]
    if isinstance(last, http.client.IncompleteRead):
        return "the connection ended before the answer did"
    return str(last) or type(last).__name__


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for the address."""
    parts = urlsplit(url)
    if is_loopback(url) or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def _opener(url: str) -> urllib.request.OpenerDirector:
    """An opener that gives every status back as it is.

    It does not follow redirections: a POST would become a GET without the query, and the password
    would go to another host.
    """
    opener = urllib.request.OpenerDirector()
    proxies: dict[str, str] | None = {} if is_loopback(url) else None
    for handler in (
        urllib.request.ProxyHandler(proxies),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener
