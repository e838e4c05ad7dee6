"""Reading questions that people wrote, each with the simplified query graph of its query.

A line of the file holds ``id``, ``question``, ``target``, ``graph``, ``answer``, ``src`` and often
``choices``. A clause of the graph is [head, predicate, tail], or [head, predicate, tail, qualifier
key, qualifier value] for a fact with a qualifier; what begins with "?" is a variable. The graphs
were once written with commas between the parts, so that a text with commas of its own is in pieces;
`read_questions` puts the pieces together again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kopl.example import read_objects
from kopl_base.errors import KoplError, ReadError

INSTANCE_OF = "instance of"

# The variables whose place in the graph says what is asked for; the others stand for entities.
VALUE, QUALIFIER_VALUE = "?pv", "?qpv"
TRUTH, ENTITY, COUNT = "bool", "?e", "count ?e"
TARGETS = (QUALIFIER_VALUE, TRUTH, ENTITY, VALUE, COUNT)

# Entities, values and qualifier values; "?uestlove" is a name.
_VARIABLE = re.compile(r"\?(?:e|pv|qpv)(?:_[0-9]+)?")

PARTS = ("train", "test")


class NotConverted(KoplError):
    """A question whose graph gives no program; ``reason`` is one of a few words, for counting."""

    kind = "conversion"

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}" if detail else reason)


@dataclass(frozen=True)
class Clause:
    """A fact that the query asks for; ``qualifier`` is a pair of key and value, or None."""

    head: str
    predicate: str
    tail: str
    qualifier: tuple[str, str] | None = None

    def __str__(self) -> str:
        parts = (self.head, self.predicate, self.tail, *(self.qualifier or ()))
        return f"[{', '.join(parts)}]"

    def other(self, node: str) -> str:
        """The end of the clause that is not the node."""
        return self.tail if self.head == node else self.head


@dataclass(frozen=True)
class HumanQuestion:
    """A question as a person wrote it, with its query graph.

    ``sources`` says which collections of the publisher it stood in; ``malformed`` says what is
    wrong with a graph that cannot be read (then there are no clauses), else it is empty.
    """

    id: str
    question: str
    target: str
    clauses: tuple[Clause, ...]
    answer: str
    sources: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    malformed: str = ""

    @property
    def part(self) -> str:
        """The part of the fixed split that it belongs to."""
        return part_of(self.id)


def is_variable(text: str) -> bool:
    """Whether a part of a clause is a variable."""
    return _VARIABLE.fullmatch(text) is not None


def part_of(id: str) -> str:
    """The part of an id, "train" or "test", nine to one, the same everywhere and for good.

    SHA-256 of the id in UTF-8; its first eight hexadecimal digits, read as a number; a multiple of
    ten is "test".
    """
    digits = hashlib.sha256(id.encode("utf-8")).hexdigest()[:8]
    return "test" if int(digits, 16) % 10 == 0 else "train"


def read_questions(path: Path | str) -> Iterator[HumanQuestion]:
    """The questions of a file of JSON lines (or one JSON list), in their order.

    Raises ReadError, naming file and place, for a line that is no such question, and for an id that
    comes twice. A graph whose clauses cannot be made out is no error: see ``malformed``.
    """
    seen: dict[str, str] = {}
    for place, item in read_objects(path):
        if isinstance(item, ReadError):
            raise ReadError(item.message, place=item.place or place, source=str(path))
        try:
            question = from_json(item)
        except TypeError as error:
            raise ReadError(str(error), place=place, source=str(path)) from None
        if question.id in seen:
            raise ReadError(
                f"the id {question.id!r} was used before, at {seen[question.id]}",
                place=place, source=str(path),
            )  # fmt: skip
        seen[question.id] = place
        yield question


def from_json(item: Any) -> HumanQuestion:
    """The question in the object of a line; raises TypeError, saying what was expected."""
    if not isinstance(item, dict):
        raise TypeError(f"an object with a question and its graph was expected, not {item!r:.80}")
    for key in ("id", "question", "target", "answer"):
        if not isinstance(item.get(key), str):
            raise TypeError(f"{key!r} must be a text, not {item.get(key)!r:.80}")
    graph = item.get("graph")
    if not isinstance(graph, list) or not all(_is_texts(clause) and clause for clause in graph):
        raise TypeError("'graph' must be a list of clauses, each a list of texts")
    sources, choices = item.get("src") or [], item.get("choices") or []
    if not _is_texts(sources) or not _is_texts(choices):
        raise TypeError("'src' and 'choices' must be lists of texts")
    if item["target"] not in TARGETS:
        raise TypeError(f"'target' must be one of {', '.join(TARGETS)}, not {item['target']!r}")
    question = HumanQuestion(
        item["id"], item["question"], item["target"], (), item["answer"],
        tuple(sources), tuple(choices),
    )  # fmt: skip
    try:
        clauses = tuple(_clause(parts, question.question) for parts in graph)
    except NotConverted as error:
        return replace(question, malformed=error.detail)
    if not clauses:
        return replace(question, malformed="the graph is empty")
    return replace(question, clauses=clauses)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _clause(pieces: list[str], question: str) -> Clause:
    """The clause in such pieces; raises NotConverted when there is none."""
    parts = _joined(pieces, question)
    if len(parts) not in (3, 5) or not all(part.strip() for part in parts):
        raise NotConverted("malformed graph", f"no clause of 3 or 5 parts: {pieces}")
    head, predicate, tail, *qualifier = parts
    return Clause(head, predicate, tail, (qualifier[0], qualifier[1]) if qualifier else None)


def _joined(pieces: list[str], question: str) -> list[str]:
    """The parts of a clause, whose texts were cut at their commas.

    A piece that begins with a blank goes on with the text before it. A comma without a blank
    behind it shows only by the question: it holds the text in one piece.
    """
    parts: list[str] = []
    for piece in pieces:
        if piece.startswith(" ") and parts:
            parts[-1] += f",{piece}"
        else:
            parts.append(piece)
    for length in range(len(parts) - 2, 1, -1):
        for at in range(len(parts) - length + 1):
            together = ",".join(parts[at : at + length])
            if together in question:
                return [*parts[:at], together, *parts[at + length :]]
    return parts
