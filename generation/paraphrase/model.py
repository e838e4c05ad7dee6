"""What is asked of a model, whichever it is; and models that speak OpenAI's chat completions."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol

from generation.paraphrase.prompt import Messages
from kopl_base.chat import AskError, ChatServer
from kopl_base.http import Backoff


@dataclass(frozen=True)
class Request:
    """Messages with the seed for the reply; ``key`` tells them from any others of a run."""

    key: str
    messages: Messages
    seed: int

    @classmethod
    def of(cls, messages: Messages, seed: int, number: int) -> Request:
        """The request for the reply of that number; its seed follows from all three."""
        asked = json.dumps([seed, number, messages], ensure_ascii=False)
        digest = blake2b(asked.encode(), digest_size=12)
        return cls(digest.hexdigest(), messages, int.from_bytes(digest.digest()[:4], "big") >> 1)


@dataclass(frozen=True)
class Reply:
    """What a model wrote; ``cut`` when it stopped only because it had written enough."""

    text: str
    cut: bool = False


class Model(Protocol):
    """What paraphrases are asked of.

    ``batch`` requests are asked at once, by ``workers`` threads; ``settings`` is what its replies
    depend on.
    """

    name: str
    batch: int
    workers: int

    @property
    def settings(self) -> Mapping[str, Any]: ...

    def ask(self, requests: Sequence[Request], stop: threading.Event) -> Sequence[Reply | AskError]:
        """A reply, or why there is none, for each request; gives up when ``stop`` is set."""
        ...


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
