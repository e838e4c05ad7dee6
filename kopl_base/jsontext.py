"""JSON decoded as the standard library does it, but an object with a field twice is noticed.

Python's decoder takes the last of them and says nothing. To look at every pair would double the
time that decoding takes, so members are counted: an object that lost one has fewer of them than its
text has colons. Only a text whose colons do not settle it is decoded a second time, pair by pair.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

FIELD_TWICE = "the field is there twice; keep one of the two"

# What can stand between a field's name and its colon, besides a blank; never inside of a string.
_SPACE = "\t\n\r"


class JsonDecoder:
    """Decodes one text after another; ``twice`` is what the last one had twice, or "".

    >>> decoder = JsonDecoder()
    >>> decoder.decode('{"name": "a", "facts": [{"key": 1, "key": 2}]}')["name"]
    'a'
    >>> decoder.twice
    'facts[0]/key'
    """

    def __init__(self) -> None:
        members = _members()
        next(members)
        self._members = members.send
        self._decoder = json.JSONDecoder(object_hook=self._members)
        self.twice = ""

    def decode(self, text: str) -> Any:
        """The value of a whole text; raises what `json.loads` raises."""
        self._members(None)
        value = self._decoder.decode(text)
        self._compare(text, 0, len(text))
        return value

    def raw_decode(self, text: str, at: int) -> tuple[Any, int]:
        """The value that begins at a place, and the place behind it."""
        self._members(None)
        value, end = self._decoder.raw_decode(text, at)
        self._compare(text, at, end)
        return value, end

    def _compare(self, text: str, begin: int, end: int) -> None:
        self.twice = ""
        count = self._members(None)
        if text.count(":", begin, end) == count:
            return
        # Most colons that stand inside of strings stand behind another character.
        possible = text.count('":', begin, end) + text.count(" :", begin, end)
        for space in _SPACE:
            if text.find(space, begin, end) >= 0:
                possible += text.count(f"{space}:", begin, end)
        if possible > count:
            by_pairs = json.JSONDecoder(object_pairs_hook=_object)
            self.twice = _place(by_pairs.decode(text[begin:end]))


def _members() -> Generator[Any, Any, None]:
    """Takes decoded objects and gives them back; for None, how many members the last ones had.

    The decoder resumes a generator faster than it calls a function.
    """
    count = 0
    found = yield
    while True:
        if found is None:
            found = yield count
            count = 0
        else:
            count += len(found)
            found = yield found


class _Twice(dict[str, Any]):
    """An object that has a field twice."""

    field = ""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    names = [name for name, _ in pairs]
    twice = _Twice(found)
    twice.field = next(name for at, name in enumerate(names) if name in names[:at]) or '""'
    return twice


def _place(value: Any) -> str:
    """The path of the first field that is there twice, "" where none is."""
    left = [("", value)]
    while left:
        path, here = left.pop()
        if isinstance(here, _Twice):
            return path + here.field
        if isinstance(here, dict):
            inside = [(f"{path}{name}", part) for name, part in here.items()]
        else:
            stem = path.removesuffix("/")
            inside = [(f"{stem}[{at}]", part) for at, part in enumerate(here)]
        left += [(f"{p}/", part) for p, part in reversed(inside) if isinstance(part, dict | list)]
    return ""
