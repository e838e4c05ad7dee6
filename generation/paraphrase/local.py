"""Models of Hugging Face on this machine: causal ones and those that translate text to text.

Torch and transformers are imported when a model is loaded, not before.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from generation.paraphrase.model import Reply, Request
from generation.paraphrase.prompt import Messages
from kopl_base.chat import AskError
from kopl_base.errors import KoplError
from kopl_base.packages import needs

_ON_A_HUB = re.compile(r"(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*")

DOWNLOAD = (
    "download the model's files (config.json, *.safetensors and the tokenizer's), with"
    " 'hf download NAME --local-dir FOLDER' on a machine with a network, and give the"
    " folder"
)


class LocalModel:
    """A model of a folder or of the hub, as a `Model`.

    Replies are drawn at ``temperature`` (0 takes the likeliest token always) and have at most
    ``length`` tokens. Each has a random generator of its own, so that it does not depend on the
    others of its batch. Raises KoplError without the packages, and for a model that cannot be had.
    """

    workers = 1

    def __init__(
        self,
        name: str,
        *,
        temperature: float = 0.8,
        length: int = 128,
        batch: int = 8,
        device: str | None = None,
    ) -> None:
        try:
            self._torch: Any = import_module("torch")
            transformers: Any = import_module("transformers")
        except ImportError:
            raise KoplError(
                needs("a local model", "torch", "transformers", extra="train")
            ) from None
        self.name, self.batch = name, batch
        self.settings = {"model": name, "temperature": temperature, "length": length}
        self._temperature, self._length = temperature, length
        self._processors = transformers.LogitsProcessorList
        cuda = self._torch.cuda.is_available()
        self._device = device or ("cuda" if cuda else "cpu")
        config = _load(transformers.AutoConfig, name)
        self._tokenizer = _load(transformers.AutoTokenizer, name)
        self._causal = not config.is_encoder_decoder
        kind = "AutoModelForCausalLM" if self._causal else "AutoModelForSeq2SeqLM"
        self._model = _load(getattr(transformers, kind), name)
        try:
            self._model = self._model.to(self._device).eval()
        except RuntimeError as error:
            raise KoplError(f"{name}: cannot be put on {self._device}: {_first(error)}") from None
        # The new tokens stand at the end of every row then.
        self._tokenizer.padding_side = "left" if self._causal else "right"
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token or self._tokenizer.unk_token
        if self._tokenizer.pad_token is None:
            raise KoplError(f"{name}: its tokenizer has neither a padding nor an end token")
        self._room = getattr(config, "max_position_embeddings", None)

    def ask(self, requests: Sequence[Request], stop: threading.Event) -> list[Reply | AskError]:
        """The replies to some requests, drawn together."""
        if stop.is_set():
            return [AskError("stopped before it was asked")] * len(requests)
        texts = [self._text(request.messages) for request in requests]
        lengths = [len(ids) for ids in self._tokenizer(texts, add_special_tokens=False).input_ids]
        found: list[Reply | AskError] = []
        fitting = []
        for request, text, length in zip(requests, texts, lengths, strict=True):
            needed = length + 2 + (self._length if self._causal else 0)
            if self._room is not None and needed > self._room:
                found.append(
                    AskError(f"{self.name}: the prompt is too long for it: {length} tokens")
                )
            else:
                fitting.append((len(found), request, text))
                found.append(Reply(""))
        if fitting:
            replies: Sequence[Reply | AskError]
            try:
                replies = self._draw([t for _, _, t in fitting], [r.seed for _, r, _ in fitting])
            except (RuntimeError, IndexError, ValueError) as error:  # memory, for one
                replies = [AskError(f"{self.name}: {_first(error)}")] * len(fitting)
            for (at, _, _), reply in zip(fitting, replies, strict=True):
                found[at] = reply
        return found

    def _text(self, messages: Messages) -> str:
        """The messages as the model was trained to read them, else one below the other."""
        if self._tokenizer.chat_template:
            try:
                text = self._tokenizer.apply_chat_template(
                    messages, add_generation_prompt=True, tokenize=False
                )
            except Exception as error:  # templates raise errors of their own, of many classes
                raise AskError(
                    f"{self.name}: its chat template does not take the prompt: {_first(error)};"
                    " a prompt with one message of the user may do",
                    always=True,
                ) from None
            return str(text)
        return "\n\n".join(message["content"] for message in messages)

    def _draw(self, texts: list[str], seeds: list[int]) -> list[Reply]:
        torch = self._torch
        plain = not self._tokenizer.chat_template  # a template writes special tokens itself
        inputs = self._tokenizer(
            texts, return_tensors="pt", padding=True, add_special_tokens=plain
        ).to(self._device)
        inputs.pop("token_type_ids", None)
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        with torch.no_grad():
            rows = self._model.generate(
                **inputs, do_sample=False, num_beams=1, max_new_tokens=self._length,
                temperature=None, top_p=None, top_k=None,
                pad_token_id=self._tokenizer.pad_token_id,
                logits_processor=self._processors(
                    [self._noise(generators)] if self._temperature > 0 else []
                ),
            )  # fmt: skip
        rows = rows[:, inputs["input_ids"].shape[1] :] if self._causal else rows[:, 1:]
        ends = self._model.generation_config.eos_token_id
        ends = set(ends) if isinstance(ends, list) else {ends}
        replies = []
        for row in rows.tolist():
            text = self._tokenizer.decode(row, skip_special_tokens=True)
            cut = len(row) >= self._length and not ends & set(row)
            replies.append(Reply(text.strip(), cut))
        return replies

    def _noise(self, generators: Sequence[Any]) -> Any:
        """Turns the likeliest token into a drawn one, row by row (the Gumbel-max trick)."""

        def add(_: Any, scores: Any) -> Any:  # scores: rows × tokens
            torch = self._torch
            size = scores.shape[1]
            uniform = torch.stack(
                [
                    torch.rand(size, generator=generator, dtype=torch.float64)
                    for generator in generators
                ]
            )
            noise = -torch.log(-torch.log(uniform.clamp_min(1e-300)))
            return scores.float() / self._temperature + noise.float().to(scores.device)

        return add


def _load(kind: Any, name: str) -> Any:
    """A part of a model: from the folder, else from the hub's cache, else from the hub."""
    if Path(name).is_dir():
        return _loaded(kind, name, local_files_only=True)
    if not _ON_A_HUB.fullmatch(name):
        raise KoplError(f"{name}: there is no such folder; {DOWNLOAD}")
    try:
        return _loaded(kind, name, local_files_only=True)
    except KoplError:
        return _loaded(kind, name, local_files_only=False)


def _loaded(kind: Any, name: str, **options: Any) -> Any:
    try:
        return kind.from_pretrained(name, trust_remote_code=False, **options)
    except Exception as error:  # whatever the packages, the network or the hub may raise
        raise KoplError(f"{name}: cannot be loaded: {_first(error)}; {DOWNLOAD}") from None


def _first(error: Exception) -> str:
    """The first line of what an error says."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
