"""A server that answers as an endpoint of chat completions does, always in the same way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key, kind = self.headers["Authorization"], self.headers["Content-Type"]
        self.server.asked.append([self.path, kind, key, body])  # type: ignore[attr-defined]
        text = _reworded(body["messages"][-1]["content"])
        choice = {"index": 0, "message": {"role": "assistant", "content": text}}
        answer = json.dumps({"choices": [choice | {"finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _reworded(prompt: str) -> str:
    """The question of a prompt in other words; sometimes the same, or without its names."""
    question = prompt.splitlines()[0].removeprefix("Question: ")
    if len(question) % 5 == 0:
        return question
    if len(question) % 7 == 0:
        return "What was it again?"
    return f"Please tell me this thing, which I would really like to know: {question.lower()}"


@contextmanager
def chat_server() -> Iterator[tuple[str, list[Any]]]:
    """The server's address, and a list of what it is asked, while it runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    asked: list[Any] = []
    server.asked = asked  # type: ignore[attr-defined]
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
