"""What of a knowledge base a question mentions word by word: names, schema items, constants.

These marks mean the same on every knowledge base, so that a parser need not have seen an item in
training to see that it is mentioned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from kopl.automaton import KEYS
from parsers.actions import SCHEMA, UNIT, Actions
from parsers.linking import Linker, letters
from parsers.tokens import Question

# A name or an item of more words is not looked for.
LONGEST_NAME, LONGEST_ITEM = 12, 8

ITEM_SLOTS = (*SCHEMA.values(), UNIT)
# A key's mark tells the type of its values, as that of the function depends on it.
KEY_SLOTS = {SCHEMA[kind]: qualifier for kind, qualifier in KEYS.items()}
MARKS = (
    "name begins", "name goes on", "name ends",
    *(slot for slot in ITEM_SLOTS if slot not in KEY_SLOTS),
    *(f"{slot} of {type}" for slot in KEY_SLOTS for type in ("string", "quantity", "time")),
    "number begins", "time begins",
)  # fmt: skip
# The numbers of the marks of items.
ITEM_MARKS = [
    at for at, mark in enumerate(MARKS) if not mark.endswith(("begins", "goes on", "ends"))
]
_MARK = {mark: number for number, mark in enumerate(MARKS)}


def marks_of_slots(slots: Sequence[str]) -> npt.NDArray[np.float32]:
    """Slots × MARKS: 1 where a mark is that of an item which the slot chooses."""
    found = np.zeros((len(slots), len(MARKS)), np.float32)
    for row, slot in enumerate(slots):
        for at, mark in enumerate(MARKS):
            found[row, at] = slot in ITEM_SLOTS and mark.partition(" of ")[0] == slot
    return found


@dataclass(frozen=True)
class Mentioned:
    """What a question of L tokens mentions."""

    marks: npt.NDArray[np.float32]  # L × MARKS, 0 or 1
    names: tuple[tuple[int, int], ...]  # (first, last) token of every span that is a name
    items: tuple[int, ...]  # the numbers of the actions whose items are mentioned


class Mentions:
    """Finds what questions mention of a knowledge base."""

    def __init__(self, actions: Actions, linker: Linker) -> None:
        self._linker = linker
        self._items: dict[str, list[int]] = {}
        self._marks = [self._marks_of(slot, text) for slot, text in actions.entries]
        for number, (slot, text) in enumerate(actions.entries):
            if slot in ITEM_SLOTS and (key := _key(Question.of(text).words)):
                self._items.setdefault(key, []).append(number)

    def _marks_of(self, slot: str, text: str) -> list[int]:
        """The marks of words that mention an item."""
        if slot in KEY_SLOTS:
            types = self._linker.schema.types((text, KEY_SLOTS[slot]))
            return [_MARK[f"{slot} of {type}"] for type in sorted(types)]
        return [_MARK[slot]] if slot in ITEM_SLOTS else []

    def of(self, question: Question) -> Mentioned:
        """The marks of a question's tokens, the names and the items that it mentions."""
        count = len(question.words)
        marks = np.zeros((count, len(MARKS)), np.float32)
        parts = [letters(word) for word in question.words]
        stems = [stem(part) for part in parts]
        names_by_letters = self._linker.names.spelt
        names: list[tuple[int, int]] = []
        items: list[tuple[int, int, list[int]]] = []
        for first in range(count):
            if not parts[first]:
                continue
            text = stemmed = ""
            for last in range(first, min(count, first + LONGEST_NAME)):
                text, stemmed = text + parts[last], stemmed + stems[last]
                if not parts[last]:
                    continue
                if text in names_by_letters:
                    names.append((first, last))
                if last - first < LONGEST_ITEM and (found := self._items.get(stemmed)):
                    items.append((first, last, found))
        # "population growth rate" does not mention the population.
        spans = {(first, last) for first, last, _ in items}
        items = [item for item in items if not _inside(item[0], item[1], spans)]
        for first, last, found in items:
            for number in found:
                marks[first : last + 1, self._marks[number]] = 1
        for first, last in names:
            marks[first, _MARK["name begins"]] = 1
            marks[first : last + 1, _MARK["name goes on"]] = 1
            marks[last, _MARK["name ends"]] = 1
        # Nor is the number in "lithium-7" or "ISO 639 code" one to be copied.
        part = {
            at for first, last in (*names, *spans) if last > first for at in range(first, last + 1)
        }
        for constant, mark in (("quantity", "number begins"), ("time", "time begins")):
            begins = [at for at in question.copyable(constant) if at not in part]
            marks[begins, _MARK[mark]] = 1
        mentioned = sorted({number for _, _, found in items for number in found})
        return Mentioned(marks, tuple(names), tuple(mentioned))


def _inside(first: int, last: int, spans: Iterable[tuple[int, int]]) -> bool:
    """Whether a span is a part of a longer one."""
    return any(
        begin <= first and last <= end and end - begin > last - first for begin, end in spans
    )


def _key(words: Iterable[str]) -> str:
    return "".join(stem(letters(word)) for word in words)


@lru_cache(maxsize=200_000)
def stem(word: str) -> str:
    """A word without the ending of its plural, roughly; the same for both forms is enough.

    >>> [stem(word) for word in ("countries", "country", "cities", "glass", "gas")]
    ['countri', 'countri', 'citi', 'glass', 'gas']
    """
    if len(word) > 3 and word.endswith("ies"):
        return word[:-2]
    if len(word) > 3 and word.endswith("y"):
        return f"{word[:-1]}i"
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word
