"""What a model is told: a prompt file with placeholders, and the question in what it replies."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Formatter

from generation.paraphrase.originals import Original
from kopl.text import write_nested
from kopl_base.errors import ReadError
from kopl_base.stream import read_text

Messages = list[dict[str, str]]

ROLES = ("system", "user", "assistant")
LONGEST = 20_000  # characters of a reply that are looked at; no reply to such a prompt is longer
BUNDLED = "prompt.txt"

PLACEHOLDERS: dict[str, Callable[[Original], str]] = {
    "canonical": lambda original: original.canonical,
    "question": lambda original: original.example.question,
    "program": lambda original: write_nested(original.example.program),
    "keep": lambda original: " · ".join(original.standing) or "(nothing)",
}

_HEADING = re.compile(r"\[(\w+)\]\s*")
# What a reasoning model thinks before it answers.
_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_LABEL = re.compile(
    r"(?:[-*•]|\d+[.)])\s+|(?:\*\*)?(?:paraphrased?|rewritten|question|answer)(?: question)?"
    r"(?:\*\*)?:(?:\*\*)?\s*",
    re.IGNORECASE,
)
_QUOTED = (('"', '"'), ("“", "”"), ("'", "'"), ("**", "**"), ("`", "`"))


@dataclass(frozen=True)
class Prompt:
    """Messages with placeholders, each with its role."""

    parts: tuple[tuple[str, str], ...]

    def messages(self, original: Original) -> Messages:
        """The messages that ask for a paraphrase of a question."""
        values = {name: value(original) for name, value in PLACEHOLDERS.items()}
        return [{"role": role, "content": _filled(text, values)} for role, text in self.parts]


def load_prompt(path: Path | str | None = None) -> Prompt:
    """The prompt of a file, or the bundled one; raises ReadError as `read_prompt` does."""
    if path is None:
        text = resources.files("generation.paraphrase").joinpath(BUNDLED).read_text("utf-8")
        return read_prompt(text, BUNDLED)
    return read_prompt(read_text(path), str(path))


def read_prompt(text: str, source: str = "") -> Prompt:
    """The prompt in a text.

    Lines ``[system]``, ``[user]`` and ``[assistant]`` begin a message; a text without them is one
    message of the user. ``{canonical}``, ``{question}``, ``{program}`` and ``{keep}`` are filled
    in; ``{{`` and ``}}`` stand for braces. Raises ReadError, with the line, for anything else.
    """
    parts: list[tuple[str, list[str]]] = []
    used: set[str] = set()
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        place = f"line {number}"
        if (heading := _HEADING.fullmatch(line)) and heading[1] in ROLES:
            parts.append((heading[1], []))
            continue
        if not parts:
            if not line.strip():
                continue
            parts.append(("user", []))
        used |= _placeholders(line, place, source)
        parts[-1][1].append(line)
    if not used & {"canonical", "question"}:
        raise ReadError("the prompt names neither {canonical} nor {question}", source=source)
    if parts[-1][0] != "user":
        raise ReadError("the last message of a prompt must be the user's", source=source)
    if any(role == "system" for role, _ in parts[1:]):
        raise ReadError("the message of the system comes first, and once", source=source)
    return Prompt(tuple((role, "\n".join(lines).strip()) for role, lines in parts))


def _placeholders(line: str, place: str, source: str) -> set[str]:
    names = set()
    try:
        for _, name, form, conversion in Formatter().parse(line):
            if name is None:
                continue
            if name not in PLACEHOLDERS or form or conversion:
                known = ", ".join(f"{{{one}}}" for one in PLACEHOLDERS)
                raise ReadError(
                    f"there is no placeholder {{{name}}}; there are {known} (and {{{{ for a brace)",
                    place=place, source=source,
                )  # fmt: skip
            names.add(name)
    except ValueError as error:
        raise ReadError(
            f"a brace stands alone ({error}); write {{{{ or }}}} for one",
            place=place,
            source=source,
        ) from None
    return names


def _filled(text: str, values: dict[str, str]) -> str:
    pieces = []
    for literal, name, _, _ in Formatter().parse(text):
        pieces.append(literal + (values[name] if name is not None else ""))
    return "".join(pieces)


def question_in(reply: str) -> str:
    """The question in a model's reply: its first line, without a label, a bullet or quotes.

    >>> question_in('Sure!\\n\\n1. "Who leads Norway?"')
    'Who leads Norway?'
    """
    lines = [line.strip() for line in _THOUGHT.sub("", reply[:LONGEST]).splitlines()]
    lines = [line for line in lines if line and not line.endswith(":")]
    # A line before the question ("Sure!") is no question; where no line is one, the first counts.
    asking = [line for line in lines if "?" in line]
    text = (asking or lines or [""])[0]
    while (label := _LABEL.match(text)) and label.end() < len(text):
        text = text[label.end() :]
    for opening, closing in _QUOTED:
        inner = text[len(opening) : -len(closing)]
        if text.startswith(opening) and text.endswith(closing) and inner and opening not in inner:
            text = inner
    return " ".join(text.split())
