"""Language models behind an address that speaks OpenAI's chat completions: hosted, vLLM, Ollama …

`ChatServer` sends one body and gives what came back; what is asked, and how often, is left to
whoever asks.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn
from urllib.parse import urlsplit, urlunsplit

from kopl_base import http
from kopl_base.errors import KoplError
from kopl_base.http import Backoff
from kopl_base.packages import needs

PATH = "/chat/completions"
LONGEST_WAIT = 120.0  # seconds; a server that wants more time than that is not waited for
LARGEST = 1 << 24  # bytes of a reply
SHOWN = 300  # characters of what a server says

_HINTS = {
    401: "the key is wrong or missing; give it in the environment variable {key}",
    403: "the key may not be used for this; it is taken from the environment variable {key}",
    404: "is the address right, and is there a model of that name?",
    405: "is the address right?",
}
# Worth another try: too busy, or broken for the moment.
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504, 529})


class AskError(KoplError):
    """A model that cannot be asked, or gave no reply.

    ``always``: the next question would fare no better. ``status``: that of the server's answer, 0
    where there was none.
    """

    kind = "model"

    def __init__(self, message: str, *, always: bool = False, status: int = 0) -> None:
        self.always, self.status = always, status
        super().__init__(message)


@dataclass(frozen=True)
class Completion:
    """What a model wrote; ``cut`` when it stopped only because it had written enough.

    The tokens read and written are what the server says, 0 where it says nothing.
    """

    text: str
    cut: bool = False
    read: int = 0
    written: int = 0


class _Broken(Exception):
    """A failed try; another one may bring more, after the seconds that the server names."""

    def __init__(self, reason: str, wait: float = 0.0, status: int = 0) -> None:
        self.wait, self.status = wait, status
        super().__init__(reason)


class ChatServer:
    """A server of chat completions; may be shared between threads.

    ``url`` is its address, with or without ``/v1`` and ``/chat/completions``. ``timeout`` is in
    seconds, for one try. A busy or broken server is asked again up to ``retries`` times, after the
    time that it names, or after longer and longer pauses. ``key_from`` is where the key came from,
    for messages; ``what`` needs it. Raises AskError for what is no address.
    """

    def __init__(
        self, url: str, *, key: str | None = None, key_from: str = "KOPL_API_KEY",
        timeout: float = 60.0, retries: int = 5, kept: int = 4, backoff: Backoff | None = None,
        what: str = "models behind an address",
    ) -> None:  # fmt: skip
        self.url = _address(url)
        self._key, self._key_from = (key or "").strip(), key_from
        if not (self._key.isascii() and self._key.isprintable()):
            raise AskError(f"the key in {key_from} cannot be sent: it is no plain text")
        self._timeout, self._retries = timeout, max(0, retries)
        self._backoff = backoff or Backoff(first=0.5, most=30.0)
        if not http.is_installed():
            raise AskError(needs(what, "httpx", extra="endpoints"))
        try:
            self._client = http.Client(self.url, kept=kept, largest=LARGEST)
        except http.LostError as error:
            raise AskError(f"{self.url}: {error}") from None

    def complete(self, body: Mapping[str, Any], stop: threading.Event) -> Completion:
        """The first choice of the reply; raises AskError, also when ``stop`` is set meanwhile."""
        data = json.dumps({k: v for k, v in body.items() if v is not None}).encode()

        def attempt(tries: int) -> Completion:
            if stop.is_set():
                raise AskError("stopped before it was asked")
            try:
                return self._try(data)
            except _Broken as broken:
                reason, wait, status = f"{self.url}: {broken}", broken.wait, broken.status
            if wait > LONGEST_WAIT:
                raise AskError(
                    f"{reason}; it wants a pause of {wait:.0f} s: try again later", status=status
                )
            times = "" if tries == 1 else f" ({tries} tries)"
            raise http.TryAgainError(AskError(f"{reason}{times}", status=status), wait)

        waiting = replace(self._backoff, sleep=stop.wait)
        return http.persist(attempt, self._retries, waiting, longest=LONGEST_WAIT)

    def _try(self, data: bytes) -> Completion:
        """One try; raises _Broken when another one may bring more, AskError when none will."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            answer = self._client.send(data, headers, self._timeout)
        except http.LateError:
            raise _Broken(f"no reply within {self._timeout:g} s") from None
        except http.TooLargeError:
            raise _Broken("the reply has no end") from None
        except http.LostError as lost:
            what = "the connection broke off" if lost.connected else "cannot be reached"
            raise _Broken(f"{what}: {lost}") from None
        if not 200 <= answer.status < 300:
            self._refused(answer)
        try:
            return completion_of(answer.body)
        except ValueError as error:
            raise _Broken(self._without_key(str(error))) from None

    def _refused(self, answer: http.Reply) -> NoReturn:
        status, said = answer.status, self._without_key(_said(answer.body))
        message = f"status {status}" + (f": {said}" if said else "")
        if status in _AGAIN:
            wait = http.retry_after(answer.header("retry-after"))
            raise _Broken(message, wait, status)
        if 300 <= status < 400:
            message += f"; it sends on to {answer.header('location') or None}: give that address"
        hint = _HINTS.get(status, "").format(key=self._key_from)
        message = f"{self.url}: {message}" + (f" ({hint})" if hint else "")
        raise AskError(message, always=status in _HINTS or status < 400, status=status)

    def _without_key(self, text: str) -> str:
        """What a server says, without the key that it may repeat."""
        return text.replace(self._key, "…") if self._key else text


def _address(url: str) -> str:
    """The address that is asked; raises AskError for what is none."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https") or any(c.isspace() for c in url):
        raise AskError(f"{url!r} is no address; write one such as http://localhost:8000/v1")
    path = parts.path.rstrip("/")
    if not path.endswith(PATH):
        path = (path or "/v1") + PATH
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def completion_of(content: bytes) -> Completion:
    """The first choice of a reply; raises ValueError for what is no chat completion."""
    try:
        item = json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError(f"the reply is not JSON: {_said(content)!r}") from None
    try:
        choice = item["choices"][0]
        text = choice["message"].get("content")
        if isinstance(text, list):  # some servers send it in parts
            text = "".join(part.get("text", "") for part in text)
        if not isinstance(text, str | None):
            raise TypeError
        (text or "").encode()
    except (KeyError, IndexError, TypeError, AttributeError, UnicodeEncodeError):
        raise ValueError(f"the reply is no chat completion: {_said(content)!r}") from None
    usage = item.get("usage")
    read, written = (
        _count(usage.get(name)) if isinstance(usage, dict) else 0
        for name in ("prompt_tokens", "completion_tokens")
    )
    return Completion(text or "", choice.get("finish_reason") == "length", read, written)


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _said(content: bytes) -> str:
    """What a server says of an error, shortened."""
    text = content.decode("utf-8", "replace")
    try:
        error = json.loads(text)["error"]
        text = error if isinstance(error, str) else str(error["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
