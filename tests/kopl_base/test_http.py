"""One client for every address: what it sends and reads, and when it tries again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from kopl_base.http import (
    Backoff,
    Client,
    LateError,
    LostError,
    TooLargeError,
    TryAgainError,
    is_loopback,
    persist,
    retry_after,
)

# In two lines, the second without an end; the first holds what only Unicode takes for one.
LAST = "ta: 2\u2028\n\nend".encode()


class Handler(BaseHTTPRequestHandler):
    """Answers with what the path says; ``seen`` are the headers of requests."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/garbage":
            self.wfile.write(b"garbage\r\n\r\n")
            self.close_connection = True
            return
        self.server.seen.append((self.path, self.headers, content))  # type: ignore[attr-defined]
        if self.path.endswith("/moved"):
            self.send_response(307)
            self.send_header("Location", "/echo")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Set-Cookie", "a=b")
        self.end_headers()
        pieces = [content] if self.path.endswith("/echo") else [b"data: 1\r\n", b"da", LAST]
        for piece in pieces:
            self._chunk(piece)
            if self.path == "/slowly":
                self.server.go.wait(20)  # type: ignore[attr-defined]
        if self.path == "/broken":
            self.close_connection = True
            return
        self._chunk(b"")

    def _chunk(self, piece: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.seen, server.go = True, [], threading.Event()
    server.handle_error = lambda *_: None
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.go.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def make() -> Iterator[Any]:
    made: list[Client] = []

    def one(url: str, **options: Any) -> Client:
        made.append(Client(url, **options))
        return made[-1]

    yield one
    for client in made:
        client.close()


def test_what_is_sent_and_read(server: Any, make: Any) -> None:
    client = make(server.url + "/echo")
    for _ in range(2):
        reply = client.send("é".encode(), {"X-Name": "ü"}, 5)
        assert (reply.status, reply.body) == (200, "é".encode())
        assert reply.header("Transfer-Encoding") == "chunked" and reply.header("X-None") == ""
    _, headers, _ = server.seen[-1]
    assert headers["X-Name"] == "ü" and headers["Accept-Encoding"] == "identity"
    assert headers["User-Agent"] == "kopl-toolkit" and "Cookie" not in headers


def test_lines_come_as_they_are_written(server: Any, make: Any) -> None:
    with make(server.url + "/slowly").stream(b"", {}, 15) as answer:
        lines = answer.lines()
        assert answer.status == 200 and next(lines) == "data: 1"
        server.go.set()
        assert list(lines) == ["data: 2\u2028", "", "end"]


def test_a_reply_that_is_not_of_http(server: Any, make: Any) -> None:
    with pytest.raises(LostError, match=r"^the reply does not begin as one of HTTP does$"):
        make(server.url + "/garbage").send(b"", {}, 5)


def test_a_stream_that_is_late_or_ends_before_its_end(server: Any, make: Any) -> None:
    with pytest.raises(LateError), make(server.url + "/slowly").stream(b"", {}, 0.2) as answer:
        list(answer.lines())
    with pytest.raises(LostError) as lost, make(server.url + "/broken").stream(b"", {}) as answer:
        list(answer.pieces())
    assert lost.value.begun and lost.value.connected and not lost.value.final


def test_more_than_is_wanted_is_not_read(server: Any, make: Any) -> None:
    client = make(server.url + "/echo", largest=1000)
    assert len(client.send(b"x" * 1000, {}, 5).body) == 1000
    with pytest.raises(TooLargeError):
        client.send(b"x" * 1001, {}, 5)


def test_redirects_are_not_followed(server: Any, make: Any) -> None:
    reply = make(server.url + "/moved", user="me", password="secret").send(b"x", {}, 5)
    assert (reply.status, reply.header("location")) == (307, "/echo")
    assert [path for path, _, _ in server.seen] == ["/moved"]


def test_proxies(server: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", server.url.removeprefix("http://"))
    assert make("http://far.example/echo").send(b"x", {}, 5).body == b"x"
    assert [path for path, _, _ in server.seen] == ["http://far.example/echo"]
    # What is on this machine passes by them.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert make(server.url + "/echo").send(b"x", {}, 5).body == b"x"
    with pytest.raises(LostError) as lost:
        make("http://far.example/echo").send(b"x", {}, 5)
    assert not lost.value.connected and lost.value.reason == "Connection refused"
    monkeypatch.setenv("http_proxy", "socks9://127.0.0.1:9")
    with pytest.raises(LostError, match="socks9"):
        make("http://far.example/echo")


def test_a_server_without_tls(server: Any, make: Any) -> None:
    with pytest.raises(LostError, match="SSL") as lost:
        make(server.url.replace("http:", "https:")).send(b"", {}, 5)
    assert not lost.value.connected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:80/x", True),
        ("http://a.localhost", True),
        ("http://127.3.2.1", True),
        ("http://[::1]:8000/", True),
        ("http://10.0.0.1", False),
        ("http://localhost.example", False),
    ],
)
def test_what_is_on_this_machine(url: str, expected: bool) -> None:
    assert is_loopback(url) is expected


def test_how_long_a_server_asks_to_wait() -> None:
    then = datetime.now(timezone.utc) + timedelta(seconds=60)
    assert 55 < retry_after(format_datetime(then, usegmt=True)) <= 60
    assert [retry_after(text) for text in ("", "7", "0.5", "-3", "nan", "soon")] == [
        *(0, 7, 0.5, 0, 0, 0),
    ]


def trying(errors: list[float | None], **options: Any) -> tuple[Any, list[float]]:
    """What comes of attempts of which each fails with the wait that is given, or does not."""
    pauses: list[float] = []

    def attempt(tries: int) -> int:
        wait = errors[tries - 1]
        if wait is not None:
            raise TryAgainError(OSError(f"try {tries}"), wait)
        return tries

    backoff = Backoff(first=1, most=4, chance=lambda: 1.0, sleep=pauses.append)
    used: dict[str, Any] = {"retries": 3, "backoff": backoff, "longest": 30} | options
    try:
        return persist(attempt, **used), pauses
    except OSError as error:
        return str(error), pauses


def test_tries_again_after_pauses() -> None:
    assert trying([None]) == (1, [])
    assert trying([0, 0.5, 3, None]) == (4, [1, 2, 4])
    assert trying([7, None]) == (2, [7])
    assert trying([0, 0, 0, 0, None]) == ("try 4", [1, 2, 4])
    assert trying([31, None]) == ("try 1", [])
    assert trying([0, 0, None], until=time.monotonic() + 1.5) == ("try 2", [1])
    given_up = Backoff(sleep=lambda seconds: True)
    assert trying([0, None], backoff=given_up)[0] == "try 1"
