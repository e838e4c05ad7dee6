"""A question with its program and answer, in the form of KQA Pro's files."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from kopl.answer_forms import AnswerForm, Asking, read_form
from kopl.errors import ProgramError
from kopl.program import Call
from kopl.text import read_json, to_json
from kopl_base.errors import ReadError
from kopl_base.stream import JsonStream, TextReader, writing

# The keys of a line, in their order; any other key is extra.
FIELDS = (
    "id",
    "question",
    "canonical",
    "program",
    "sparql",
    "answer",
    "answers",
    "answer_form",
    "choices",
    "type",
)

# What earlier releases of KQA Pro call the question; "text" is what was rewritten, where both are.
OLD_NAMES = ("rewrite", "text")


@dataclass(frozen=True)
class Example:
    """One instance of a question set.

    ``type`` is the asking strategy where it is known, ``canonical`` the question before it was
    rephrased, ``sparql`` the query of the program; ``extra`` keeps fields of other tools. A
    question that asks for several things has ``answers`` and no ``answer``. ``answer_form`` reads
    what the program denotes as yes or no (`kopl.answer_forms`).
    """

    question: str
    program: Call
    answer: str | None = None
    choices: tuple[str, ...] = ()
    id: str | None = None
    type: str | None = None
    sparql: str | None = None
    canonical: str | None = None
    answers: tuple[str, ...] = ()
    answer_form: AnswerForm | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def asking(self) -> Asking:
        """What the question asks of what its program denotes."""
        return Asking(self.answer_form, bool(self.answers))

    def to_json(self, *, published: bool = False) -> dict[str, Any]:
        """The object of one line; ``published`` writes KQA Pro's old function names."""
        fields: dict[str, Any] = {
            "id": self.id,
            "question": self.question,
            "canonical": self.canonical,
            "program": to_json(self.program, published=published),
            "sparql": self.sparql,
            "answer": self.answer,
            "answers": list(self.answers) or None,
            "answer_form": None if self.answer_form is None else self.answer_form.to_json(),
            "choices": list(self.choices) or None,
            "type": self.type,
        }
        return {k: v for k, v in fields.items() if v is not None} | dict(self.extra)

    @classmethod
    def from_json(cls, item: Mapping[str, Any]) -> Example:
        """The example in such an object; raises KeyError, TypeError, ValueError or ParseError."""
        item = _renamed(item)
        asked = _asked(item) | _texts(item, "answer", "type", "sparql", "canonical")
        extra = {key: value for key, value in item.items() if key not in FIELDS}
        program = read_json(item["program"])
        form = read_form(item.get("answer_form"), program)
        answers = _list_of_texts(item, "answers")
        return cls(program=program, answers=answers, answer_form=form, extra=extra, **asked)


@dataclass(frozen=True)
class BareQuestion:
    """A question whose program is not known, as the test questions of KQA Pro are published.

    With an ``answer`` what is predicted for it can be compared; without, only written down.
    ``outside`` says why it has none, where that is known: a knowledge base that lacks the entity
    or what is asked of it (``schema``), a false ``premise``, no question (``none``), another
    ``language``. Right is then to refuse it.
    """

    question: str
    answer: str | None = None
    choices: tuple[str, ...] = ()
    id: str | None = None
    outside: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, compare=False)

    program: ClassVar[None] = None

    def to_json(self) -> dict[str, Any]:
        """The object of one line."""
        fields: dict[str, Any] = {
            "id": self.id,
            "question": self.question,
            "answer": self.answer,
            "choices": list(self.choices) or None,
            "outside": self.outside,
        }
        return {k: v for k, v in fields.items() if v is not None} | dict(self.extra)

    @classmethod
    def from_json(cls, item: Mapping[str, Any]) -> BareQuestion:
        """The question in such an object; raises KeyError or TypeError."""
        item = _renamed(item)
        own = {"id", "question", "answer", "choices", "program", "outside"}
        extra = {key: value for key, value in item.items() if key not in own}
        return cls(extra=extra, **_asked(item), **_texts(item, "answer", "outside"))


# What a parser can be asked: with the program that is right, or without.
Asked: TypeAlias = Example | BareQuestion


def _asked(item: Mapping[str, Any]) -> dict[str, Any]:
    """The question, its choices and its name; raises KeyError or TypeError."""
    id = item.get("id")
    if not isinstance(item["question"], str):
        raise TypeError(f"the question is {item['question']!r}, but must be a text")
    return {
        "question": item["question"],
        "choices": _list_of_texts(item, "choices"),
        "id": None if id is None else str(id),
    }


def _list_of_texts(item: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """The texts of a list that may be missing; raises TypeError."""
    texts = item.get(key) or ()
    if not isinstance(texts, list | tuple) or any(type(one) is not str for one in texts):
        raise TypeError(f"{key!r} must be a list of texts")
    return tuple(texts)


def _texts(item: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Texts that may be missing, by their keys; raises TypeError."""
    texts = {key: item.get(key) for key in keys}
    for key, text in texts.items():
        if not isinstance(text, str | None):
            raise TypeError(f"{key!r} is {text!r}, but must be a text")
    return texts


def _renamed(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """An object of an earlier release of KQA Pro with the names of the present one."""
    found = {} if "question" in item else {key: item[key] for key in OLD_NAMES if key in item}
    if not found:
        return item
    new = dict(zip(("question", "canonical"), found.values(), strict=False))
    return {**new, **{key: value for key, value in item.items() if key not in found}}


def read_examples(path: Path | str) -> Iterator[Example]:
    """The examples of a file: JSON lines, or one JSON list as KQA Pro publishes.

    Raises ReadError with file and place for what is malformed.
    """
    for place, item in read_objects(path):
        yield read_example(item, place, str(path))


def read_questions(path: Path | str) -> Iterator[Asked]:
    """The questions of a file as `read_examples` reads it, those without programs, too.

    Raises ReadError with file and place for what is malformed.
    """
    for place, item in read_objects(path):
        if isinstance(item, dict) and item.get("program") is None:
            try:
                yield BareQuestion.from_json(item)
            except (KeyError, TypeError) as error:
                raise _malformed(error, place, str(path)) from None
        else:
            yield read_example(item, place, str(path))


def read_example(item: Any, place: str = "", source: str = "") -> Example:
    """The example in what `read_objects` gives; raises ReadError with file and place."""
    if isinstance(item, ReadError):
        raise ReadError(item.message, place=item.place or place, source=source)
    try:
        if not isinstance(item, dict):
            raise TypeError("an object with a question and a program was expected")
        example = Example.from_json(item)
        if isinstance(item["program"], str):  # it may have escapes of its own
            str(example.program).encode("utf-8")
        return example
    except UnicodeEncodeError:
        raise ReadError("the program is not UTF-8 text", place=place, source=source) from None
    except (KeyError, TypeError, ValueError) as error:
        raise _malformed(error, place, source) from None
    except ProgramError as error:
        raise ReadError(f"program: {error}", place=place, source=source) from None


def _malformed(error: KeyError | TypeError | ValueError, place: str, source: str) -> ReadError:
    missing = f"there is no {error}" if isinstance(error, KeyError) else str(error)
    return ReadError(f"not an example: {missing}", place=place, source=source)


def read_objects(path: Path | str) -> Iterator[tuple[str, Any]]:
    """(place, object) for each line of a JSON lines file, or each item of a JSON list.

    In place of a line that is not JSON comes a ReadError, so that a reader may go on; a list that
    is not JSON raises it. One line or item is held at a time.
    """
    with TextReader(Path(path), errors="surrogateescape") as reader:
        start = reader.read(1)
        while start and start[-1].isspace():
            start += reader.read(1)
        if start.endswith("["):
            yield from _items(JsonStream(_Again(reader, start)))  # type: ignore[arg-type]
            return
        *blank, first = start.split("\n")
        lines = itertools.chain([first + next(reader.lines(), "")], reader.lines())
        for number, line in enumerate(lines, len(blank) + 1):
            if not line.strip():
                continue
            place = f"line {number}"
            try:
                line.encode("utf-8")
                item = json.loads(line)
                if "\\ud" in line.lower():
                    _check_text(item)
            except UnicodeEncodeError:
                item = ReadError("the line is not UTF-8 text", place=place, source=str(path))
            except (ValueError, RecursionError) as error:
                item = ReadError(f"not JSON: {error}", place=place, source=str(path))
            yield place, item


def _items(stream: JsonStream) -> Iterator[tuple[str, Any]]:
    """(place, item) for each item of the JSON list at hand."""
    stream.expect("[")
    number = 0
    while number or stream.peek() != "]":
        item = stream.value()
        place = f"item {number}"
        try:
            _check_text(item)
        except UnicodeEncodeError:
            raise stream.fail(f"{place} is not UTF-8 text") from None
        yield place, item
        number += 1
        if stream.expect(",]") == "]":
            break
    else:
        stream.expect("]")
    stream.end()


class _Again:
    """A reader whose beginning was read already, as `JsonStream` takes one."""

    def __init__(self, reader: TextReader, start: str) -> None:
        self._reader, self._start, self.source = reader, start, reader.source

    def read(self, size: int) -> str:
        start, self._start = self._start, ""
        return start or self._reader.read(size)


def _check_text(item: Any) -> None:
    """Raise UnicodeEncodeError for half of a character, which no file can hold."""
    json.dumps(item, ensure_ascii=False).encode("utf-8")


def write_examples(path: Path | str, examples: Iterable[Asked], *, published: bool = False) -> int:
    """Write examples as JSON lines and say how many; the file appears when it is complete."""
    count = 0
    with writing(path) as file:
        for example in examples:
            item = (
                example.to_json(published=published)
                if isinstance(example, Example)
                else example.to_json()
            )
            file.write(json.dumps(item, ensure_ascii=False) + "\n")
            count += 1
    return count
