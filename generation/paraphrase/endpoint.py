"""Paraphrases of models behind an address that speaks OpenAI's chat completions."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from generation.paraphrase.model import Reply, Request
from kopl_base.chat import AskError, ChatServer
from kopl_base.http import Backoff


class ChatEndpoint:
    """A model behind an address, as a `Model`.

    ``fields`` are sent with every request (as temperature, max_tokens); the others are as of
    `kopl_base.chat.ChatServer`, and so is AskError, which is raised for what is no address.
    """

    batch = 1

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        key_from: str = "KOPL_API_KEY",
        fields: Mapping[str, Any] | None = None,
        timeout: float = 60.0,
        retries: int = 5,
        workers: int = 4,
        backoff: Backoff | None = None,
    ) -> None:
        self.name, self.workers = model, workers
        self._fields = dict(fields or {})
        self.settings = {"model": model, **self._fields}
        self._server = ChatServer(
            url, key=key, key_from=key_from, timeout=timeout, retries=retries, kept=workers,
            backoff=backoff,
        )  # fmt: skip
        self.url = self._server.url

    def ask(self, requests: Sequence[Request], stop: threading.Event) -> list[Reply | AskError]:
        """The replies to some requests, asked one after the other."""
        return [self._ask(request, stop) for request in requests]

    def _ask(self, request: Request, stop: threading.Event) -> Reply | AskError:
        body = {"model": self.name, "messages": request.messages, "seed": request.seed}
        try:
            found = self._server.complete(body | self._fields, stop)
        except AskError as error:
            return error
        return Reply(found.text, found.cut)
