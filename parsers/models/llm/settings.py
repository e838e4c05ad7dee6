"""The settings of the few-shot parser: which model is asked, how, and what it is shown."""

from __future__ import annotations

import re
from typing import Annotated, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import Field
from pydantic.dataclasses import dataclass

from kopl_base.errors import SettingsError
from kopl_base.settings import Bool, CheckedSettings, Count, Float, Int, NotNegative

# How a server is told the grammar of what it may write; `auto` finds out which of them it knows.
GrammarName = Literal[
    "auto", "llama.cpp", "structured_outputs", "guided_grammar", "ebnf", "json-schema", "none"
]
_SECRET = re.compile(r"key|token|secret|sig|pass", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


@dataclass(frozen=True)
class LlmSettings(CheckedSettings):
    """Which language model is asked, and what it is shown.

    ``base_url`` is the address of a server that speaks OpenAI's chat completions, ``name`` the
    model's name there; or ``local`` is a GGUF file, which llama-cpp-python runs in this process.
    ``key_from`` names the environment variable that has the key: the key itself is stored nowhere.

    Shown are ``examples`` for each question: those most like it, or with ``retrieved`` off the same
    ones for all. ``own`` is a file of questions with programs to choose among besides. ``schema``:
    what is known of the things that a question names is shown, too. ``whole_schema``: the relations
    and keys of the whole knowledge base as well, where there are at most so many.

    ``beside`` is the run of a trained parser: it answers alone where it is ``sure`` so far;
    elsewhere what the language model finds comes first, and what it finds where that finds nothing.

    Of ``samples`` the first is the most probable, the others are drawn at a ``temperature``.
    ``repairs``: so often a program that is wrong or finds nothing is sent back. ``grammar``: how a
    server is told to write nothing but programs; ``auto`` finds out what it knows. ``depth``: the
    calls that it may nest. ``longest`` bounds the tokens of a reply, ``context`` those of all.

    ``timeout`` is in seconds, ``retries`` count further tries, ``workers`` questions are asked at
    once, ``budget`` bounds the tokens of a command, read and written (0: no bound). ``cache`` is
    the folder of replies that are kept (default: that of the user; "off" for none).
    """

    base_url: str = "http://localhost:8080/v1"
    name: str = ""
    local: str = ""
    key_from: str = "KOPL_API_KEY"
    examples: Annotated[Int, Field(ge=0, le=64)] = 16
    retrieved: Bool = True
    own: str = ""
    schema: Bool = True
    whole_schema: Annotated[Int, Field(ge=0)] = 200
    beside: str = ""
    sure: Annotated[Float, Field(ge=0, le=1)] = 0.6
    samples: Annotated[Count, Field(le=64)] = 1
    temperature: Annotated[Float, Field(ge=0, le=2)] = 0.7
    repairs: Annotated[Int, Field(ge=0, le=2)] = 2
    grammar: GrammarName = "auto"
    depth: Annotated[Count, Field(le=32)] = 8
    longest: Annotated[Int, Field(ge=16)] = 256
    context: Annotated[Int, Field(ge=512)] = 6144
    timeout: NotNegative = 120.0
    retries: Annotated[Int, Field(ge=0, le=100)] = 5
    workers: Annotated[Count, Field(le=256)] = 4
    budget: Annotated[Int, Field(ge=0)] = 0
    cache: str = ""

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.base_url)
            secret = [name for name, _ in parse_qsl(parts.query) if _SECRET.search(name)]
            has_secret = bool(parts.username or parts.password or secret)
        except ValueError:
            has_secret = False
        if has_secret:  # the settings are stored with the run
            raise SettingsError(
                "base_url must not carry a password or a key; put the key into the environment"
                " variable that llm.key_from names"
            )
        if not _VARIABLE.fullmatch(self.key_from):
            raise SettingsError(
                "key_from must be the name of an environment variable, not the key itself"
            )
