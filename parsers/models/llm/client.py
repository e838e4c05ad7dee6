"""Asking a language model: kept replies, a budget, and which server or file it is.

Every reply is kept by what was asked, so that an evaluation that stopped goes on where it was, and
a table can be made again for nothing. Processes share the folder: a reply appears there as a whole.
The key is no part of what is asked, and is kept nowhere.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from kopl_base.chat import AskError, ChatServer, Completion
from kopl_base.http import Backoff
from kopl_base.packages import needs
from kopl_base.stream import writing
from parsers.models.llm.settings import LlmSettings

Messages: TypeAlias = list[dict[str, str]]
# Where replies are kept unless the settings name another folder.
CACHE = "kopl-toolkit/llm"


# What a body says so that a reply keeps to a grammar, by the kind of server.
FIELDS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "llama.cpp": lambda text: {"grammar": text},
    "structured_outputs": lambda text: {"structured_outputs": {"grammar": text}},
    "guided_grammar": lambda text: {"guided_grammar": text},
    "ebnf": lambda text: {"ebnf": text},
    "json-schema": lambda schema: {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "program", "strict": True, "schema": schema},
        }
    },
}  # fmt: skip
# What of a body llama-cpp-python takes as it stands.
_TAKEN = ("messages", "temperature", "max_tokens", "seed")
_TOLD = 200  # characters of what the package says

# What a server is asked to find out whether it keeps to a grammar: no model says it by itself.
_SAID = "kopl-7391-yes"
_PROBES: dict[str, Any] = {
    name: {
        "type": "object", "properties": {"said": {"type": "string", "enum": [_SAID]}},
        "required": ["said"], "additionalProperties": False,
    } if name == "json-schema" else f'root ::= "{_SAID}"\n'
    for name in FIELDS
}  # fmt: skip
# What a server answers that does not know a field: a request that it does not understand.
_UNKNOWN = range(400, 500)
_NOT_ALLOWED = (401, 403, 404, 405, 408, 425, 429)


class BudgetError(AskError):
    """The tokens that a command may use are used up."""


class Backend(Protocol):
    """What completes a conversation."""

    @property
    def grammars(self) -> Sequence[str]:
        """The ways in which it may be told a grammar; it knows one that stands alone."""

    @property
    def about(self) -> Mapping[str, Any]:
        """What its replies depend on, besides what is asked; no secret."""

    def complete(self, body: Mapping[str, Any], stop: threading.Event) -> Completion:
        """The reply to a body of chat completions; raises AskError."""


class Served:
    """A model behind an address, as a `Backend`."""

    grammars = tuple(FIELDS)

    def __init__(self, settings: LlmSettings, backoff: Backoff | None = None) -> None:
        self._server = ChatServer(
            settings.base_url, key=os.environ.get(settings.key_from), key_from=settings.key_from,
            timeout=settings.timeout, retries=settings.retries, kept=settings.workers,
            backoff=backoff, what="a parser that asks a language model",
        )  # fmt: skip
        self._model = settings.name
        self.about = {"url": self._server.url, "model": settings.name}

    def complete(self, body: Mapping[str, Any], stop: threading.Event) -> Completion:
        """The reply to a body of chat completions; raises AskError."""
        return self._server.complete({"model": self._model or None, **body}, stop)


class Local:
    """A file with a model, as a `Backend`.

    ``context`` counts the tokens of a question and its reply together. Questions are answered one
    after the other. What a prompt has in common with the last one is not read again. Raises
    AskError where the file cannot be loaded.
    """

    grammars = ("llama.cpp",)

    def __init__(self, path: Path, context: int, threads: int) -> None:
        try:
            llama_cpp = import_module("llama_cpp")
        except ImportError:
            raise AskError(needs("llm.local", "llama-cpp-python", extra="local")) from None
        if not path.is_file():
            raise AskError(f"{path}: there is no such file; llm.local names a model in GGUF")
        try:
            self._model: Any = llama_cpp.Llama(
                str(path), n_ctx=context, n_threads=threads, n_threads_batch=threads, verbose=False
            )
        except Exception as error:  # whatever the package raises of a file that is none
            raise AskError(f"{path}: cannot be loaded: {str(error)[:_TOLD]}") from None
        # Left to the end of the process, it would be freed after what frees it.
        atexit.register(self._model.close)
        self._grammar = llama_cpp.LlamaGrammar
        self._grammars: dict[str, Any] = {}
        self._lock = threading.Lock()
        # Of a copy at another place the replies are the same.
        self.about = {"file": path.name, "size": path.stat().st_size, "context": context}

    def complete(self, body: Mapping[str, Any], stop: threading.Event) -> Completion:
        """The reply to a body of chat completions; raises AskError."""
        given = {name: body[name] for name in _TAKEN if name in body}
        with self._lock:
            if stop.is_set():
                raise AskError("stopped before it was asked")
            try:
                if text := body.get("grammar"):
                    given["grammar"] = self._read_grammar(text)
                found = self._model.create_chat_completion(**given)
            except Exception as error:  # a prompt that is too long, a grammar that it cannot read
                raise AskError(
                    f"{self.about['file']}: it cannot answer: {str(error)[:_TOLD]}", status=400
                ) from None
        choice, usage = found["choices"][0], found["usage"]
        return Completion(
            choice["message"]["content"] or "", choice["finish_reason"] == "length",
            usage["prompt_tokens"], usage["completion_tokens"],
        )  # fmt: skip

    def _read_grammar(self, text: str) -> Any:
        """The grammar as the package has it; the last one is kept."""
        if text not in self._grammars:
            self._grammars = {text: self._grammar.from_string(text, verbose=False)}
        return self._grammars[text]


@dataclass
class Usage:
    """What asking took: replies asked for and taken from the cache, tokens read and written.

    The tokens are those of what was asked for now.
    """

    asked: int = 0
    kept: int = 0
    read: int = 0
    written: int = 0

    @property
    def tokens(self) -> int:
        """The tokens of the replies that were asked for."""
        return self.read + self.written

    def told(self) -> str:
        """The usage in words."""
        return (
            f"{self.asked} replies asked for ({self.read} tokens read, {self.written} written),"
            f" {self.kept} taken from the cache"
        )


@dataclass
class Client:
    """Asks a backend, through the cache and within the budget; may be shared between threads.

    ``folder`` is where replies are kept, None for nowhere.
    """

    backend: Backend
    folder: Path | None
    budget: int = 0
    usage: Usage = field(default_factory=Usage)
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def ask(self, body: Mapping[str, Any]) -> Completion:
        """The reply, kept or new; raises AskError, and BudgetError where the budget is used up."""
        place = self._place(body)
        found = None if place is None else _read(place)
        if found is not None:
            with self._lock:
                self.usage.kept += 1
            return found
        with self._lock:
            if self.budget and self.usage.tokens >= self.budget:
                raise BudgetError(
                    f"{self.usage.tokens} tokens are used, of a budget (llm.budget) of"
                    f" {self.budget}; what was asked is kept: run it again to go on", always=True,
                )  # fmt: skip
        found = self.backend.complete(body, self.stop)
        with self._lock:
            self.usage.asked += 1
            self.usage.read += found.read
            self.usage.written += found.written
        if place is not None:
            _write(place, found)
        return found

    def keeps_to(self, name: str) -> bool:
        """Whether the server keeps to a grammar that it is told in this way; raises AskError.

        It is asked once, and what it says is kept like any other reply.
        """
        body = {
            "messages": [{"role": "user", "content": "What is the capital of Norway?"}],
            "max_tokens": 64, "temperature": 0.0, "seed": 0, **FIELDS[name](_PROBES[name]),
        }  # fmt: skip
        try:
            found = self.ask(body)
        except AskError as error:
            if error.status not in _UNKNOWN or error.status in _NOT_ALLOWED:
                raise
            found = Completion("")
            if (place := self._place(body)) is not None:
                _write(place, found)
        text = found.text.strip()
        if name != "json-schema":
            return text == _SAID
        try:
            return bool(json.loads(text) == {"said": _SAID})
        except ValueError:
            return False

    @cached_property
    def grammar(self) -> str:
        """The first way of telling a grammar that the server keeps to, "none" without one."""
        if len(self.backend.grammars) == 1:
            return self.backend.grammars[0]
        return next((name for name in self.backend.grammars if self.keeps_to(name)), "none")

    def _place(self, body: Mapping[str, Any]) -> Path | None:
        """The file of a reply."""
        if self.folder is None:
            return None
        asked = json.dumps([dict(self.backend.about), body], ensure_ascii=False, sort_keys=True)
        digest = hashlib.sha256(asked.encode("utf-8", "replace")).hexdigest()
        return self.folder / digest[:2] / f"{digest[2:]}.json"


def _read(place: Path) -> Completion | None:
    """A reply that is kept; None where there is none, or what is there is damaged."""
    try:
        item = json.loads(place.read_text("utf-8"))
        return Completion(
            str(item["text"]), bool(item["cut"]), int(item["read"]), int(item["written"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(place: Path, reply: Completion) -> None:
    """Keep a reply; where that cannot be done it is asked for again another time."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with writing(place) as file:
            json.dump(vars(reply), file, ensure_ascii=False)
    except OSError:
        return


def cache_folder(settings: LlmSettings) -> Path | None:
    """Where replies are kept; None for nowhere."""
    if settings.cache == "off":
        return None
    if settings.cache:
        return Path(settings.cache).expanduser()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / CACHE


def client_of(settings: LlmSettings, threads: int) -> Client:
    """The client that the settings name; raises AskError where it cannot be had."""
    backend: Backend
    if settings.local:
        backend = Local(Path(settings.local).expanduser(), settings.context, threads)
    else:
        backend = Served(settings)
    return Client(backend, cache_folder(settings), settings.budget)
