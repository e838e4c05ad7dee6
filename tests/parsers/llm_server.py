"""A server that plays a language model for the few-shot parser, and runs that ask it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kb import KnowledgeBase, write_snapshot
from kopl.example import Example
from kopl.text import write_nested
from tests.generation.paraphrase_server import Answer, Server, chat, server

__all__ = ["Answer", "Server", "chat", "made_run", "question_of", "replying", "server"]


def question_of(body: dict[str, Any]) -> str:
    """The question that a body asks."""
    asked = [one["content"] for one in body["messages"] if one["role"] == "user"]
    return str(asked[-1])


def replying(
    examples: Sequence[Example], write: Callable[[str], str] = str
) -> Callable[[dict[str, Any], int], Answer]:
    """What plays a model that knows the programs of some questions, written in some way."""
    known = {one.question: write_nested(one.program) for one in examples}

    def play(body: dict[str, Any], _: int) -> Answer:
        return chat(write(known[question_of(body)]), usage=None)

    return play


def made_run(
    folder: Path, kb: KnowledgeBase, examples: Sequence[Example], url: str, *pairs: str
) -> Path:
    """A run of the few-shot parser that asks a server, with a cache beside it."""
    from parsers.settings import read_settings
    from parsers.training import made

    folder.mkdir(parents=True, exist_ok=True)
    place = folder.parent / f"{folder.name}.kopl"
    write_snapshot(kb, place)
    settings = read_settings(
        None,
        ["model=llm", f"kb={place}", f"llm.base_url={url}", "llm.grammar=none", "threads=1",
         f"llm.cache={folder.parent / 'cache'}", *pairs],
    )  # fmt: skip
    made(folder, settings, kb, list(examples))
    (folder / "train.jsonl").write_text(
        "".join(json.dumps(one.to_json()) + "\n" for one in examples), "utf-8"
    )
    return folder
