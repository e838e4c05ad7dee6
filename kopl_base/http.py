"""HTTP: one client by httpx for every address that is asked, with retries and clear errors.

A `Client` asks one address. What a status means is left to whoever asks; what goes wrong below HTTP
is a `LostError` or a `LateError`, and `persist` repeats what may fare better another time. Where
SPARQLWrapper is asked for, it writes the request that is sent here: left to itself it drops status
and headers of errors and has no limit for the time of a whole answer.

Redirects are never followed: a POST would become a GET without its form, and a password or key
would go to another place than the one that was named.
"""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.util import find_spec
from ipaddress import ip_address
from itertools import count
from typing import TYPE_CHECKING, Literal, TypeVar
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import httpx

AGENT = "kopl-toolkit"

Auth = Literal["basic", "digest"]
Found = TypeVar("Found")


class LostError(Exception):
    """No connection, or one that ended before the answer did; the text is the system's own.

    ``reason``: the same without numbers of errors. ``connected``: somebody was there; ``begun``:
    the answer had begun; ``final``: trying again cannot help.
    """

    def __init__(
        self,
        said: str,
        reason: str = "",
        *,
        connected: bool = True,
        begun: bool = False,
        final: bool = False,
    ) -> None:
        self.reason, self.connected, self.begun, self.final = (
            reason or said,
            connected,
            begun,
            final,
        )
        super().__init__(said)


class LateError(Exception):
    """The time limit passed before the answer was complete."""


class TooLargeError(Exception):
    """The answer is larger than whoever asked wants to read."""


class TryAgainError(Exception):
    """A try that failed, but may fare better later: after ``wait`` seconds, if the server says so.

    ``error`` is raised when it is not tried again.
    """

    def __init__(self, error: Exception, wait: float = 0.0) -> None:
        self.error, self.wait = error, wait
        super().__init__(str(error))


@dataclass(frozen=True)
class Backoff:
    """How long to wait before the next try: doubling, and jittered so that many do not meet.

    ``sleep`` does the waiting; what it gives is true when there is no use in another try.
    """

    first: float = 0.2
    most: float = 10.0
    chance: Callable[[], float] = random.random
    sleep: Callable[[float], object] = time.sleep

    def pause(self, attempt: int) -> float:
        """Seconds before the try after this many; half of it at least, the rest by chance."""
        whole = min(self.most, self.first * 2.0 ** (attempt - 1))
        return whole * (0.5 + 0.5 * self.chance())


def persist(
    attempt: Callable[[int], Found],
    retries: int,
    backoff: Backoff,
    *,
    longest: float,
    until: float | None = None,
) -> Found:
    """What an attempt gives, which is told its number and made again when it raises TryAgainError.

    Raises that error's own when ``retries`` are used up, when the server wants a pause of more than
    ``longest`` seconds, and when the pause would last until the time ``until`` (of the monotonic
    clock).
    """
    for tries in count(1):
        try:
            return attempt(tries)
        except TryAgainError as again:
            error, wait = again.error, again.wait
        pause = max(backoff.pause(tries), wait)
        over = until is not None and pause >= until - time.monotonic()
        if tries > retries or wait > longest or over or backoff.sleep(pause):
            raise error from None
    raise AssertionError("it counts for ever")


def retry_after(text: str) -> float:
    """The seconds that a header Retry-After asks for, in seconds or as a date; 0 without one."""
    try:
        seconds = float(text or 0)
    except ValueError:
        try:
            then = parsedate_to_datetime(text)
        except (ValueError, TypeError):
            return 0.0
        if then.tzinfo is None:
            then = then.replace(tzinfo=timezone.utc)
        seconds = (then - datetime.now(timezone.utc)).total_seconds()
    return max(0.0, seconds) if seconds == seconds else 0.0


@dataclass(frozen=True)
class Reply:
    """A complete answer; the names of headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def header(self, name: str) -> str:
        """The value of a header, "" without one."""
        return self.headers.get(name.lower(), "")


def is_loopback(url: str) -> bool:
    """Whether the address is on this machine; such requests pass by every proxy."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_installed() -> bool:
    """Whether httpx is there, without which no `Client` is."""
    return find_spec("httpx") is not None


class Client:
    """Asks the address ``url``; may be shared between threads.

    ``user`` and ``password`` are shown in the way of ``auth``. Up to ``kept`` connections are kept
    and used again; with 0 each request has its own. More than ``largest`` bytes of an answer are
    not read. Proxies are those that the environment names, certificates those that the system
    trusts.
    """

    def __init__(
        self,
        url: str,
        *,
        user: str | None = None,
        password: str = "",
        auth: Auth = "basic",
        kept: int = 4,
        largest: int | None = None,
    ) -> None:
        import httpx

        self.url, self.largest = url, largest
        self._httpx = httpx
        self._login = None if user is None else (user, password)
        self._auth = auth
        # Each thread meets the challenge of a digest by itself: httpx counts its uses unlocked.
        self._own = threading.local()
        # Virtuoso closes the connection when a compressed answer is accepted.
        headers = {"Accept-Encoding": "identity", "User-Agent": AGENT}
        if not kept:
            headers["Connection"] = "close"
        proxy = _proxy(url)
        encrypted = url.startswith("https:") or (proxy or "").startswith("https:")
        try:
            self._client = httpx.Client(
                headers=headers,
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                limits=httpx.Limits(max_keepalive_connections=kept, keepalive_expiry=None),
                proxy=proxy,
                trust_env=False,  # which would also send passwords of a .netrc
                # Reading the certificates takes time, and nothing is encrypted without them.
                verify=ssl.create_default_context() if encrypted else False,
            )
        except (ValueError, ImportError) as error:  # a proxy of a kind that httpx does not know
            said = f"the proxy of the environment cannot be used: {error}"
            raise LostError(said, connected=False, final=True) from None

    def close(self) -> None:
        """Close the connections that are kept."""
        self._client.close()

    def send(
        self, content: bytes, headers: Mapping[str, str], timeout: float | None = None
    ) -> Reply:
        """The whole answer to a POST, of whatever status, within ``timeout`` seconds.

        Raises LostError, LateError or TooLargeError.
        """
        with self.stream(content, headers, timeout) as answer:
            return Reply(answer.status, answer.headers, b"".join(answer.pieces()))

    @contextlib.contextmanager
    def stream(
        self, content: bytes, headers: Mapping[str, str], timeout: float | None = None
    ) -> Iterator[Stream]:
        """The answer to a POST as it comes; errors as of `send`, also while it is read."""
        late = None if timeout is None else time.monotonic() + timeout
        sent = [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()]
        try:
            request = self._client.build_request(
                "POST", self.url, content=content, headers=sent, timeout=timeout
            )
            response = self._response(request)
        except (self._httpx.HTTPError, self._httpx.InvalidURL) as error:
            raise self._explained(error, late) from error
        with contextlib.closing(response), _cut_off(response, late) as over:
            yield Stream(response, self.largest, over, self._httpx.HTTPError)

    def _response(self, request: httpx.Request) -> httpx.Response:
        try:
            return self._client.send(request, stream=True, auth=self._proof())
        except (KeyError, ValueError, NotImplementedError):
            pass
        except self._httpx.ProtocolError as error:
            if type(error) is not self._httpx.ProtocolError:
                raise
        # A challenge that httpx cannot meet: the refusal itself says more.
        return self._client.send(request, stream=True, auth=None)

    def _proof(self) -> httpx.Auth | None:
        """What shows who asks."""
        if self._login is None:
            return None
        if not hasattr(self._own, "proof"):
            kind = self._httpx.DigestAuth if self._auth == "digest" else self._httpx.BasicAuth
            self._own.proof = kind(*self._login)
        found: httpx.Auth = self._own.proof
        return found

    def _explained(self, error: Exception, late: float | None) -> Exception:
        httpx = self._httpx
        if isinstance(error, httpx.TimeoutException):
            return LateError()
        if late is not None and time.monotonic() >= late:
            return LateError()
        said = str(error) or type(error).__name__
        if said.startswith("Server disconnected"):
            said = "Remote end closed connection without response"
        if said.startswith("illegal status line"):
            said = "the reply does not begin as one of HTTP does"
        causes = list(_causes(error))
        reasons = [one.strerror for one in causes if isinstance(one, OSError) and one.strerror]
        unsafe = any(isinstance(one, ssl.SSLCertVerificationError) for one in causes)
        return LostError(
            said,
            reasons[-1] if reasons else said,
            connected=not isinstance(error, httpx.ConnectError | httpx.ProxyError),
            final=unsafe or isinstance(error, httpx.InvalidURL),
        )


class Stream:
    """An answer that is being read."""

    def __init__(
        self,
        response: httpx.Response,
        largest: int | None,
        over: threading.Event,
        broken: type[Exception],
    ) -> None:
        self.status: int = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self._response, self._largest, self._over, self._broken = response, largest, over, broken

    def pieces(self) -> Iterator[bytes]:
        """The content as it comes."""
        size = 0
        try:
            for piece in self._response.iter_bytes():
                size += len(piece)
                if self._largest is not None and size > self._largest:
                    raise TooLargeError
                yield piece
        except self._broken as error:
            if self._over.is_set() or any(isinstance(e, TimeoutError) for e in _causes(error)):
                raise LateError from error
            reason = "the connection ended before the answer did"
            raise LostError(reason, begun=True) from error
        if self._over.is_set():
            raise LateError

    def lines(self) -> Iterator[str]:
        """The lines of a text as they come, without their ends."""
        rest = b""
        for piece in self.pieces():
            # Not what else Unicode takes for the end of a line: it may stand in a line of JSON.
            *whole, rest = (rest + piece).split(b"\n")
            yield from (line.removesuffix(b"\r").decode("utf-8", "replace") for line in whole)
        if rest:
            yield rest.decode("utf-8", "replace")


@contextlib.contextmanager
def _cut_off(response: httpx.Response, late: float | None) -> Iterator[threading.Event]:
    """Ends the connection when the time is over: a server may send a byte now and then for ever."""
    over = threading.Event()
    if late is None:
        yield over
        return
    connection: socket.socket = response.extensions["network_stream"].get_extra_info("socket")

    def end() -> None:
        over.set()
        with contextlib.suppress(OSError):  # it is closed already
            connection.shutdown(socket.SHUT_RDWR)

    watch = threading.Timer(max(0.0, late - time.monotonic()), end)
    watch.daemon = True
    watch.start()
    try:
        yield over
    finally:
        watch.cancel()


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for the address."""
    parts = urlsplit(url)
    if is_loopback(url) or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    found = urllib.request.getproxies().get(parts.scheme)
    return f"http://{found}" if found and "://" not in found else found
