"""A question with its program and answer, in the form of KQA Pro's files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kb.errors import ReadError
from kb.stream import TextReader, writing
from kopl.errors import ProgramError
from kopl.program import Call
from kopl.text import read_json, to_json


@dataclass(frozen=True)
class Example:
    """One instance of a question set.

    ``type`` is the asking strategy where it is known; ``extra`` keeps fields of other tools.
    """

    question: str
    program: Call
    answer: str | None = None
    choices: tuple[str, ...] = ()
    id: str | None = None
    type: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def to_json(self, *, published: bool = False) -> dict[str, Any]:
        """The object of one line; ``published`` writes KQA Pro's old function names."""
        fields: dict[str, Any] = {
            "id": self.id,
            "question": self.question,
            "program": to_json(self.program, published=published),
            "answer": self.answer,
            "choices": list(self.choices) or None,
            "type": self.type,
        }
        return {k: v for k, v in fields.items() if v is not None} | dict(self.extra)

    @classmethod
    def from_json(cls, item: Mapping[str, Any]) -> Example:
        """The example in such an object; raises KeyError, TypeError or ParseError."""
        known = ("question", "program", "answer", "choices", "id", "type")
        return cls(
            question=item["question"],
            program=read_json(item["program"]),
            answer=item.get("answer"),
            choices=tuple(item.get("choices") or ()),
            id=item.get("id"),
            type=item.get("type"),
            extra={key: value for key, value in item.items() if key not in known},
        )


def read_examples(path: Path | str) -> Iterator[Example]:
    """The examples of a file: JSON lines, or one JSON list as KQA Pro publishes.

    Raises ReadError with file and place for what is malformed.
    """
    for place, item in read_objects(path):
        if isinstance(item, ReadError):
            raise item
        try:
            yield Example.from_json(item)
        except (KeyError, TypeError, AttributeError) as error:
            missing = f"there is no {error}" if isinstance(error, KeyError) else str(error)
            raise ReadError(f"not an example: {missing}", place=place, source=str(path)) from None
        except ProgramError as error:
            raise ReadError(f"program: {error}", place=place, source=str(path)) from None


def read_objects(path: Path | str) -> Iterator[tuple[str, Any]]:
    """(place, object) for each line of a JSON lines file, or each item of a JSON list.

    In place of a line that is not JSON comes a ReadError, so that a reader may go on.
    """
    with TextReader(Path(path), errors="surrogateescape") as reader:
        start = ""
        lines = enumerate(reader.lines(), 1)
        for number, line in lines:
            start = start or line.strip()[:1]
            if start == "[":
                try:
                    items = json.loads("\n".join([line, *(rest for _, rest in lines)]))
                except (ValueError, RecursionError) as error:
                    raise ReadError(f"not JSON: {error}", source=str(path)) from None
                yield from ((f"item {at}", item) for at, item in enumerate(items))
                return
            if not line.strip():
                continue
            place = f"line {number}"
            try:
                line.encode("utf-8")
            except UnicodeEncodeError:
                yield place, ReadError("the line is not UTF-8 text", place=place, source=str(path))
                continue
            try:
                yield place, json.loads(line)
            except (ValueError, RecursionError) as error:
                yield place, ReadError(f"not JSON: {error}", place=place, source=str(path))


def write_examples(
    path: Path | str, examples: Iterable[Example], *, published: bool = False
) -> int:
    """Write examples as JSON lines and say how many; the file appears when it is complete."""
    count = 0
    with writing(path) as file:
        for example in examples:
            line = json.dumps(example.to_json(published=published), ensure_ascii=False)
            file.write(line + "\n")
            count += 1
    return count
