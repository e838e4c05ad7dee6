"""What decodes under grammars, asked byte by byte: llguidance, and llama.cpp's own reader."""

from __future__ import annotations

import ctypes
import random
import struct
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from kopl.grammars import Form


class Reader(Protocol):
    """A grammar as a program that decodes under it reads it."""

    def accepts(self, text: str) -> bool:
        """Whether the text is one of the grammar's."""
        ...

    def sample(self, rng: random.Random, most: int = 3000) -> str | None:
        """A text of bytes that are chosen at random among those that may come; None if too long."""
        ...


# --- llguidance ---------------------------------------------------------------------------------


class Guidance:
    """A grammar of any form in llguidance, with a token for each byte."""

    def __init__(self, written: str, form: Form) -> None:
        import llguidance
        from llguidance.gbnf_to_lark import gbnf_to_lark

        make = llguidance.LLMatcher.grammar_from_lark
        if form == "json-schema":
            found = llguidance.LLMatcher.grammar_from_json_schema(written)
        else:
            found = make(gbnf_to_lark(written) if form == "gbnf" else written)
        self._matcher = llguidance.LLMatcher(llguidance.LLTokenizer("byte"), found)
        assert not self._matcher.is_error(), self._matcher.get_error()

    def accepts(self, text: str) -> bool:
        tokens = list(text.encode())
        self._matcher.reset()
        return self._matcher.try_consume_tokens(tokens) == len(tokens) and bool(
            self._matcher.is_accepting()
        )

    def sample(self, rng: random.Random, most: int = 3000) -> str | None:
        self._matcher.reset()
        text = bytearray()
        while not self._matcher.is_stopped() and len(text) < most:
            bits = np.unpackbits(
                np.frombuffer(self._matcher.compute_bitmask(), np.uint8), bitorder="little"
            )
            token = rng.choice(np.flatnonzero(bits).tolist())
            assert self._matcher.consume_token(token)
            if token > 255:
                return text.decode()
            text.append(token)
        return text.decode() if self._matcher.is_stopped() else None


# --- llama.cpp ----------------------------------------------------------------------------------

# Types of values in a GGUF file, and of tokens.
_U32, _F32, _TEXT, _LIST = 4, 6, 8, 9
_UNKNOWN, _CONTROL, _BYTE = 2, 3, 6
_END = 2
_SPECIAL = [("<unk>", _UNKNOWN), ("<s>", _CONTROL), ("</s>", _CONTROL)]


def byte_vocabulary(path: Path) -> None:
    """Write a model file without weights, whose vocabulary is a token for each byte."""
    tokens = [*_SPECIAL, *((f"<0x{byte:02X}>", _BYTE) for byte in range(256))]

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    def listed(kind: int, values: list[bytes]) -> bytes:
        return struct.pack("<IQ", kind, len(values)) + b"".join(values)

    def whole(value: int) -> bytes:
        return struct.pack("<I", value)

    fields: list[tuple[str, int, bytes]] = [
        ("general.architecture", _TEXT, text("llama")),
        *((f"llama.{name}", _U32, whole(8)) for name in (
            "context_length", "embedding_length", "block_count", "feed_forward_length",
            "attention.head_count", "vocab_size",
        )),
        ("llama.attention.layer_norm_rms_epsilon", _F32, struct.pack("<f", 1e-5)),
        ("tokenizer.ggml.model", _TEXT, text("llama")),
        ("tokenizer.ggml.tokens", _LIST, listed(_TEXT, [text(token) for token, _ in tokens])),
        ("tokenizer.ggml.scores", _LIST, listed(_F32, [struct.pack("<f", 0)] * len(tokens))),
        ("tokenizer.ggml.token_type", _LIST, listed(5, [whole(kind) for _, kind in tokens])),
        *((f"tokenizer.ggml.{name}_token_id", _U32, whole(number)) for number, name in enumerate(
            ("unknown", "bos", "eos")
        )),
    ]  # fmt: skip
    written = b"GGUF" + struct.pack("<IQQ", 3, 0, len(fields))
    for name, kind, value in fields:
        written += text(name) + whole(kind) + value
    path.write_bytes(written)


class LlamaVocabulary:
    """llama.cpp with a vocabulary of bytes."""

    def __init__(self, folder: Path) -> None:
        import llama_cpp

        self.api = llama_cpp
        self._quiet = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(self._quiet, ctypes.c_void_p(0))
        path = folder / "bytes.gguf"
        byte_vocabulary(path)
        options = llama_cpp.llama_model_default_params()
        options.vocab_only = True
        self._model = llama_cpp.llama_model_load_from_file(str(path).encode(), options)
        assert self._model, "llama.cpp does not load the vocabulary"
        self.vocabulary = llama_cpp.llama_model_get_vocab(self._model)


class Llama:
    """A grammar in llama.cpp's notation, as llama.cpp reads it; a schema is first written so."""

    def __init__(self, written: str, form: Form, made: LlamaVocabulary) -> None:
        self._api = made.api
        if form == "json-schema":
            from llama_cpp.llama_grammar import json_schema_to_gbnf

            written = json_schema_to_gbnf(written)
        self._sampler: Any = self._api.llama_sampler_init_grammar(
            made.vocabulary, written.encode(), b"root"
        )
        if not self._sampler:
            raise AssertionError("llama.cpp does not read the grammar")
        self._one = (self._api.llama_token_data * 1)()
        self._offered = self._api.llama_token_data_array(self._one, 1, -1, False)

    def accepts(self, text: str) -> bool:
        self._api.llama_sampler_reset(self._sampler)
        for byte in text.encode():
            token = len(_SPECIAL) + byte
            if not self._allows(token):
                return False
            self._api.llama_sampler_accept(self._sampler, token)
        return self._allows(_END)

    def _allows(self, token: int) -> bool:
        self._one[0].id, self._one[0].logit, self._one[0].p = token, 1.0, 0.0
        self._api.llama_sampler_apply(self._sampler, ctypes.byref(self._offered))
        return self._one[0].logit > 0

    def sample(self, rng: random.Random, most: int = 3000) -> str | None:
        self._api.llama_sampler_reset(self._sampler)
        # It does not look at whether several bytes are one character, and its grammars of schemas
        # have control characters in texts: only printable characters of one byte are tried.
        tokens = [_END, *range(len(_SPECIAL) + 32, len(_SPECIAL) + 127)]
        data = (self._api.llama_token_data * len(tokens))()
        offered = self._api.llama_token_data_array(data, len(tokens), -1, False)
        text = bytearray()
        while len(text) < most:
            for one, token in zip(data, tokens, strict=True):
                one.id, one.logit, one.p = token, 1.0, 0.0
            self._api.llama_sampler_apply(self._sampler, ctypes.byref(offered))
            token = rng.choice([one.id for one in data if one.logit > 0])
            if token == _END:
                return text.decode()
            self._api.llama_sampler_accept(self._sampler, token)
            text.append(token - len(_SPECIAL))
        return None

    def __del__(self) -> None:
        if getattr(self, "_sampler", None):
            self._api.llama_sampler_free(self._sampler)
