"""A GGUF file that llama-cpp-python runs in this process, asked like any other server."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from kopl_base.chat import AskError, Completion
from kopl_base.packages import needs

# What of a body llama-cpp-python takes as it stands.
_TAKEN = ("messages", "temperature", "max_tokens", "seed")
_SHOWN = 200  # characters of what the package says


class Local:
    """A file with a model, as a backend of `parsers.models.llm.client`.

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
            raise AskError(f"{path}: cannot be loaded: {str(error)[:_SHOWN]}") from None
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
                    f"{self.about['file']}: it cannot answer: {str(error)[:_SHOWN]}", status=400
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
