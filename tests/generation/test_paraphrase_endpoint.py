"""Endpoints that are busy, broken, slow or something else, played by a small server."""

from __future__ import annotations

import socket
import sys
import threading
import time
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import pytest

from generation.paraphrase.model import ChatEndpoint, Reply, Request
from kopl_base.chat import AskError
from tests.generation.paraphrase_server import (
    QUICK,
    Answer,
    Play,
    Server,
    good,
    model,
    server,
)  # fmt: skip

__all__ = ["server"]


def ask(endpoint: ChatEndpoint, text: str = "What is the area of Land 0?") -> Reply | AskError:
    """What one request brings."""
    messages = [{"role": "user", "content": text}]
    (reply,) = endpoint.ask([Request.of(messages, 0, 0)], threading.Event())
    return reply


def test_a_busy_server_is_asked_again_after_its_time(server: Server) -> None:
    def play(body: dict[str, Any], number: int) -> Answer:
        if number == 0:
            return 429, {"Retry-After": "0.4"}, b"slow down"
        if number == 1:
            then = datetime.now(timezone.utc) + timedelta(seconds=1.6)
            return 503, {"Retry-After": format_datetime(then, usegmt=True)}, b""
        return (502, {}, b"") if number == 2 else good(body, number)

    server.play = play
    assert isinstance(ask(model(server)), Reply)
    gaps = [b - a for a, b in zip(server.times, server.times[1:], strict=False)]
    assert gaps[0] >= 0.4 and 0.3 < gaps[1] < 3 and gaps[2] < 0.3


def unlikely(content: bytes) -> Play:
    return lambda body, number: (200, {}, content)


def refusing(status: int, content: bytes = b"", **headers: str) -> Play:
    return lambda body, number: (status, headers, content)


ERRORS: list[tuple[Play, int, str]] = [
    (refusing(500, b'{"error": {"message": "out of\\n memory"}}'), 3,
     "status 500: out of memory (3 tries)"),
    (refusing(503, b"<html>" + b"x" * 999), 3, "x… (3 tries)"),
    (refusing(429, b"", **{"Retry-After": "3600"}), 1, "it wants a pause of 3600 s"),
    (refusing(401, b'{"error": "bad key k-123"}'), 1,
     "status 401: bad key … (the key is wrong or missing; give it in the environment variable K)"),
    (refusing(404), 1, "is there a model of that name?"),
    (refusing(400, b'{"error": {"message": "context length"}}'), 1, "status 400: context length"),
    (refusing(307, b"", Location="http://other/"), 1, "it sends on to http://other/: give that"),
    (unlikely(b"{"), 3, "the reply is not JSON: '{' (3 tries)"),
    (unlikely(b"\xff\xfe"), 3, "the reply is not JSON"),
    (unlikely(b"[" * 100_000), 3, "the reply is not JSON"),
    (unlikely(b"[]"), 3, "the reply is no chat completion: '[]'"),
    (unlikely(b'{"choices": []}'), 3, "the reply is no chat completion"),
    (unlikely(b'{"choices": [{"message": {"content": 5}}]}'), 3, "is no chat completion"),
    (unlikely(b'{"choices": [{"message": {"content": "\\ud800"}}]}'), 3, "is no chat completion"),
    (unlikely(b'{"error": {"message": "no such model"}}'), 3, "'no such model'"),
    (lambda body, number: None, 3, "the connection broke off"),
]  # fmt: skip


@pytest.mark.parametrize(("play", "tries", "message"), ERRORS)
def test_errors_of_a_server(play: Play, tries: int, message: str, server: Server) -> None:
    server.play = play
    error = ask(model(server, retries=2, key="k-123", key_from="K"))
    assert isinstance(error, AskError)
    assert message in str(error) and server.url in str(error)
    assert "k-123" not in str(error) and "\n" not in str(error)
    assert len(server.asked) == tries


def test_a_server_that_hangs(server: Server) -> None:
    server.play = lambda body, _: (server.free.wait(20), None)[1]
    began = time.monotonic()
    error = ask(model(server, retries=1, timeout=0.2))
    assert "no reply within 0.2 s (2 tries)" in str(error)
    assert time.monotonic() - began < 2


def test_a_server_that_dribbles() -> None:
    """Each piece comes in time, the whole does not."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def dribble() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                try:
                    for _ in range(40):
                        connection.sendall(b" ")
                        time.sleep(0.05)
                except OSError:
                    pass

        thread = threading.Thread(target=dribble)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        began = time.monotonic()
        error = ask(ChatEndpoint(url, "m", timeout=0.3, retries=0))
        assert "no reply within 0.3 s" in str(error) and time.monotonic() - began < 1.5
        thread.join()


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    endpoint = ChatEndpoint(f"http://127.0.0.1:{port}", "m", retries=1, backoff=QUICK)
    assert "cannot be reached" in str(ask(endpoint))


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("http://h:8000", "http://h:8000/v1/chat/completions"),
        ("http://h/", "http://h/v1/chat/completions"),
        ("https://h/v1", "https://h/v1/chat/completions"),
        ("https://h/openai/v1/chat/completions", "https://h/openai/v1/chat/completions"),
        ("https://h/d/gpt?api-version=1", "https://h/d/gpt/chat/completions?api-version=1"),
    ],
)
def test_addresses(given: str, asked: str) -> None:
    assert ChatEndpoint(given, "m").url == asked


@pytest.mark.parametrize(
    "wrong", ["", "host:80/v1", "ftp://h", "http://", "http://h:x", "http://a b"]
)
def test_wrong_addresses(wrong: str) -> None:
    with pytest.raises(AskError, match="is no address; write one such as"):
        ChatEndpoint(wrong, "m")


def test_a_key_that_cannot_be_sent() -> None:
    with pytest.raises(AskError, match="the key in KEY cannot be sent") as caught:
        ChatEndpoint("http://h", "m", key="ab\ncd", key_from="KEY")
    assert "ab" not in str(caught.value)


def test_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(AskError, match=r"the package httpx is not installed.*\[endpoints"):
        ChatEndpoint("http://h", "m")
