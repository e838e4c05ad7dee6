"""The fields of a YAML or JSON file, each with its line: for mappings that people edit.

Every scalar is the text that stands there, so that a column named ``2020``, ``no`` or ``1.10``
needs no quotes, and a key that is there twice is an error.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from kopl_base.errors import ReadError
from kopl_base.stream import TextReader

_LIMIT = 1 << 22  # characters; a mapping is small
_SURROGATES = re.compile("[\ud800-\udfff]")


def near(word: str, known: Iterable[str]) -> str:
    """A question whether one of the known words was meant, "" when none is like it."""
    found = difflib.get_close_matches(word, sorted(set(known)), 1)
    return f"; did you mean {found[0]!r}?" if found else ""


class Field:
    """What stands at one place of the file; the place has a line and a path of keys."""

    def __init__(self, node: Any, path: str, source: str) -> None:
        self._node, self.path, self.source = node, path, source

    @property
    def line(self) -> int:
        """The line of the file, from 1."""
        line: int = self._node.start_mark.line + 1
        return line

    def wrong(self, message: str) -> ReadError:
        """An error that names file, line and path."""
        place = f"line {self.line}" + (f", {self.path}" if self.path else "")
        return ReadError(message, place=place, source=self.source)

    @property
    def is_text(self) -> bool:
        """Whether a single text stands here."""
        return isinstance(self._node, yaml.ScalarNode)

    @property
    def is_list(self) -> bool:
        """Whether a list stands here."""
        return isinstance(self._node, yaml.SequenceNode)

    def text(self, *, empty: bool = False) -> str:
        """The text that stands here; raises ReadError for another form, or an empty one."""
        if not self.is_text:
            raise self.wrong("expected a text here, not a list or fields")
        return self._scalar(self._node, empty=empty)

    def _scalar(self, node: Any, *, empty: bool = False) -> str:
        text: str = node.value
        if not text and not empty:
            raise self.wrong("nothing stands here: write a text, or leave the field out")
        if _SURROGATES.search(text):  # JSON spells characters beyond U+FFFF as two of them
            try:
                text = text.encode("utf-16", "surrogatepass").decode("utf-16")
            except UnicodeDecodeError:
                raise self.wrong("the text has a lone surrogate") from None
        return text

    def texts(self, *, empty: bool = False) -> list[str]:
        """The texts of a list, or the one text."""
        return [item.text(empty=empty) for item in self.items()]

    def items(self) -> list[Field]:
        """The fields of a list; of what is no list, the field itself."""
        if not self.is_list:
            return [self]
        return [
            Field(node, f"{self.path}[{number}]", self.source)
            for number, node in enumerate(self._node.value, 1)
        ]

    def flag(self) -> bool:
        """True or false."""
        text = self.text()
        if text.lower() not in ("true", "yes", "false", "no"):
            raise self.wrong(f"expected true or false, not {text!r}")
        return text.lower() in ("true", "yes")

    def choice(self, *words: str) -> str:
        """One of the words."""
        text = self.text()
        if text not in words:
            raise self.wrong(f"expected {' or '.join(words)}, not {text!r}")
        return text

    def members(self) -> dict[str, Field]:
        """The fields by their keys; raises ReadError for what is no object, or a key used twice."""
        if not isinstance(self._node, yaml.MappingNode):
            raise self.wrong("expected fields here, each with a key and a colon")
        found: dict[str, Field] = {}
        for key_node, node in self._node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise Field(key_node, self.path, self.source).wrong("a key is a text")
            key = Field(key_node, self.path, self.source).text(empty=True)
            path = f"{self.path}/{key}" if self.path else key
            if key in found:
                message = f"the key stands here twice, first in line {found[key].line}"
                raise Field(key_node, path, self.source).wrong(message)
            found[key] = Field(node, path, self.source)
        return found

    def fields(self) -> Fields:
        """The fields, to be taken one by one."""
        return Fields(self)


class Fields:
    """The fields of an object, taken one by one; what is left over is unknown."""

    def __init__(self, field: Field) -> None:
        self.field = field
        self._members = field.members()
        self._asked: dict[str, None] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def take(self, name: str) -> Field | None:
        """The field of that name, if it is there."""
        self._asked[name] = None
        return self._members.get(name)

    def text(self, name: str) -> str:
        """The text of a field, "" when it is left out."""
        field = self.take(name)
        return "" if field is None else field.text()

    def texts(self, name: str, *, empty: bool = False) -> list[str]:
        """The texts of a field, none when it is left out."""
        field = self.take(name)
        return [] if field is None else field.texts(empty=empty)

    def flag(self, name: str) -> bool:
        """Whether a field is true; false when it is left out."""
        field = self.take(name)
        return field is not None and field.flag()

    def done(self) -> None:
        """Raise ReadError for a field that nobody asked for."""
        for name, field in self._members.items():
            if name not in self._asked:
                hint = near(name, self._asked) or f"; the fields are {', '.join(self._asked)}"
                raise field.wrong(f"an unknown field{hint}")


def read_fields(path: Path | str) -> Field:
    """The fields of a file in YAML or JSON; raises ReadError with the line for anything else."""
    path = Path(path)
    source = str(path)
    with TextReader(path) as reader:
        text = "".join(iter(reader.read, ""))
    if len(text) > _LIMIT:
        raise ReadError("is too large for a mapping; is it the table itself?", source=source)
    if path.suffix.lower() == ".json":
        text = text.replace("\t", " ")  # YAML has no tabs there, and JSON none inside of texts
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        node = yaml.compose(text, Loader=loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or error
        raise ReadError(f"not YAML: {what}", place=place, source=source) from None
    if node is None:
        raise ReadError(
            "is empty; kopl kb import --draft FILE… -o MAPPING drafts a mapping", source=source
        )
    return Field(node, "", source)
