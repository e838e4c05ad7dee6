"""What is asked of a model, whichever it is, and what can go wrong."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol

from generation.paraphrase.prompt import Messages
from kopl_base.chat import AskError


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
