"""A small server that plays an endpoint of chat completions."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from generation.paraphrase.model import ChatEndpoint
from kopl_base.http import Backoff

QUICK = Backoff(first=0.001, most=0.01)

Answer = tuple[int, dict[str, str], bytes]
Play = Callable[[dict[str, Any], int], "Answer | None"]


def chat(text: str | None, **more: Any) -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}}
    return 200, {}, json.dumps({"choices": [choice | {"finish_reason": "stop"} | more]}).encode()


class Server(ThreadingHTTPServer):
    """Plays an endpoint: ``play`` gets the request's body and how often it was asked so far."""

    daemon_threads = True
    play: Play

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.counts: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.free = threading.Event()
        self.at_once = self.most_at_once = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_: object) -> None:
        """Clients that went away are no matter."""


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        server = self.server
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(raw)
        with server.lock:
            server.asked.append(body)
            server.times.append(time.monotonic())
            server.headers.append(dict(self.headers))
            server.paths.append(self.path)
            number = server.counts[raw.decode()]
            server.counts[raw.decode()] += 1
            server.at_once += 1
            server.most_at_once = max(server.most_at_once, server.at_once)
        try:
            answer = server.play(body, number)
        finally:
            with server.lock:
                server.at_once -= 1
        if answer is None:
            return
        status, headers, content = answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        raise AssertionError("nothing is asked by GET")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    """A running one; other test modules import this function to have the fixture."""
    server = Server()
    server.play = good
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.free.set()
    server.shutdown()
    server.server_close()
    thread.join()


def land(body: dict[str, Any]) -> str:
    """The name in the question that was asked."""
    return "Land " + str(body["messages"][-1]["content"].rpartition(" ")[2].rstrip("?"))


def good(body: dict[str, Any], _: int) -> Answer:
    time.sleep(body["seed"] % 5 / 500)  # replies come in another order than they were asked for
    return chat(f"How large is {land(body)}, seed {body['seed'] % 97}?")


def model(server: Server, **options: Any) -> ChatEndpoint:
    used: dict[str, Any] = {"backoff": QUICK, "timeout": 5.0, "fields": {"temperature": 0.5}}
    return ChatEndpoint(server.url, "my-model", **(used | options))
