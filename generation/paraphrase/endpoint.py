"""Models behind an address that speaks OpenAI's chat completions: hosted ones, vLLM, Ollama …"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn
from urllib.parse import urlsplit, urlunsplit

from generation.paraphrase.model import AskError, Reply, Request
from kopl_base import http
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


class _Broken(Exception):
    """A failed try; another one may bring more, after the seconds that the server names."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        self.wait = wait
        super().__init__(reason)


class ChatEndpoint:
    """A model behind an address, as a `Model`.

    ``url`` is the server's address, with or without ``/v1`` and ``/chat/completions``. ``fields``
    are sent with every request (as temperature, max_tokens). ``timeout`` is in seconds, for one
    try. A busy or broken server is asked again up to ``retries`` times, after the time that it
    names, or after longer and longer pauses. ``key_from`` is where the key came from, for messages.
    Raises AskError for what is no address.
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
        self.url, self.name, self.workers = _address(url), model, workers
        self._fields = dict(fields or {})
        self.settings = {"model": model, **self._fields}
        self._key, self._key_from = (key or "").strip(), key_from
        if not (self._key.isascii() and self._key.isprintable()):
            raise AskError(f"the key in {key_from} cannot be sent: it is no plain text")
        self._timeout, self._retries = timeout, max(0, retries)
        self._backoff = backoff or Backoff(first=0.5, most=30.0)
        if not http.is_installed():
            raise AskError(needs("models behind an address", "httpx", extra="endpoints"))
        try:
            self._client = http.Client(self.url, kept=workers, largest=LARGEST)
        except http.LostError as error:
            raise AskError(f"{self.url}: {error}") from None

    def ask(self, requests: Sequence[Request], stop: threading.Event) -> list[Reply | AskError]:
        """The replies to some requests, asked one after the other."""
        return [self._ask(request, stop) for request in requests]

    def _ask(self, request: Request, stop: threading.Event) -> Reply | AskError:
        body = {"model": self.name, "messages": request.messages, "seed": request.seed}
        body |= self._fields
        data = json.dumps({k: v for k, v in body.items() if v is not None}).encode()

        def attempt(tries: int) -> Reply:
            if stop.is_set():
                raise AskError("stopped before it was asked")
            try:
                return self._try(data)
            except _Broken as broken:
                reason, wait = f"{self.url}: {broken}", broken.wait
            if wait > LONGEST_WAIT:
                raise AskError(f"{reason}; it wants a pause of {wait:.0f} s: try again later")
            times = "" if tries == 1 else f" ({tries} tries)"
            raise http.TryAgainError(AskError(f"{reason}{times}"), wait)

        waiting = replace(self._backoff, sleep=stop.wait)
        try:
            return http.persist(attempt, self._retries, waiting, longest=LONGEST_WAIT)
        except AskError as error:
            return error

    def _try(self, data: bytes) -> Reply:
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
        return _reply(answer.body)

    def _refused(self, answer: http.Reply) -> NoReturn:
        status, said = answer.status, _said(answer.body)
        if self._key:
            said = said.replace(self._key, "…")
        message = f"status {status}" + (f": {said}" if said else "")
        if status in _AGAIN:
            raise _Broken(message, http.retry_after(answer.header("retry-after")))
        if 300 <= status < 400:
            message += f"; it sends on to {answer.header('location') or None}: give that address"
        hint = _HINTS.get(status, "").format(key=self._key_from)
        message = f"{self.url}: {message}" + (f" ({hint})" if hint else "")
        raise AskError(message, always=status in _HINTS or status < 400)


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


def _reply(content: bytes) -> Reply:
    """The text of the first choice; raises _Broken for what is no chat completion."""
    try:
        item = json.loads(content)
    except (ValueError, RecursionError):
        raise _Broken(f"the reply is not JSON: {_said(content)!r}") from None
    try:
        choice = item["choices"][0]
        text = choice["message"].get("content")
        if isinstance(text, list):  # some servers send it in parts
            text = "".join(part.get("text", "") for part in text)
        if not isinstance(text, str | None):
            raise TypeError
        (text or "").encode()
    except (KeyError, IndexError, TypeError, AttributeError, UnicodeEncodeError):
        raise _Broken(f"the reply is no chat completion: {_said(content)!r}") from None
    return Reply(text or "", cut=choice.get("finish_reason") == "length")


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
