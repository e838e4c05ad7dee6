"""From what a question calls a thing to the thing's name: exact, folded, nearest.

*Folded* leaves out what people write differently: case, accents, punctuation and blanks, an article
at the beginning, a possessive at the end, ``http://www.`` before an address. *Nearest* is by
similarity of spelling (rapidfuzz's ratio, words in order or sorted), from 0 to 100.

A name is always taken for one that there is. Of a string, a folded or near value is taken only
where digits and signs are the same ("A+" is not "A-"), a near one only where it is so word by word.

`Mentions` finds what a question says word by word: names, schema items, constants.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz, process

from kb import KnowledgeBase
from kb.schema import Key, Schema
from kopl.automaton import ITEMS, KEYS, Automaton, type_of_key
from kopl.functions import FIND, FUNCTIONS, Function
from kopl.program import Call, post_order
from kopl.types import Kind
from parsers.tokens import Question

# How similar a value must be to one of the knowledge base to be taken for it; a name is taken for
# the nearest one whatever it is, as programs can name nothing else.
NEAR_VALUE = 88
# How similar each word must be to the one at its place; no other beginning is a slip of the pen.
NEAR_WORD = 75
# Sorting the words costs a little: "X of Y" is more often X of Y than Y of X.
SORTED = 0.97

_ADDRESS = re.compile(r"^https?://(?:www\.)?|^www\.|(?<!/)/+$")
# An address, and the part of it that people write.
_SITE = re.compile(r"(?:https?://)?(?:www\.)?([^\s/]+\.[^\W\d_]{2,}(?:[:/]\S*)?)", re.IGNORECASE)
# Numbers with what stands directly before and between their digits.
_NUMBERS = re.compile(r"[^\w\s]?\d+(?:[\W_]+\d+)*")
_ROMAN = re.compile(r"m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})")
_WORDS = re.compile(r"[\s‐-―−-]+")
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—―−", "-"))
_AROUND = re.compile(r"^the\s+|['’]s?$", re.IGNORECASE)


@lru_cache(maxsize=200_000)
def letters(text: str) -> str:
    """The letters and digits of a text without case and accents; "" where it has none.

    >>> [letters(text) for text in ("São Tomé", "F. C. Dallas", "!")]
    ['saotome', 'fcdallas', '']
    """
    spelt = unicodedata.normalize("NFKD", text).casefold()
    return "".join(letter for letter in spelt if letter.isalnum())


def foldings(text: str) -> tuple[str, str]:
    """The letters of a text, and those that stay without article, possessive and ``http://www.``.

    >>> foldings("The Netherlands'"), foldings("http://www.nba.com/suns/")
    (('thenetherlands', 'netherlands'), ('httpwwwnbacomsuns', 'nbacomsuns'))
    """
    bare = _ADDRESS.sub("", _ADDRESS.sub("", text.strip()))
    bare = _AROUND.sub("", _AROUND.sub("", bare))
    return letters(text), letters(bare)


@lru_cache(maxsize=200_000)
def written(text: str) -> str:
    """A text without case, accents, double blanks, and what surrounds an address.

    >>> written("São  TOMÉ"), written("http://www.nba.com/suns/"), written("A+")
    ('sao tome', 'nba.com/suns', 'a+')
    """
    text = " ".join(text.split())
    if match := _SITE.fullmatch(text):
        text = match[1].rstrip("/")
    spelt = unicodedata.normalize("NFD", text).casefold()
    return "".join(letter for letter in spelt if not _is_accent(letter))


@lru_cache(maxsize=200_000)
def figures(text: str) -> tuple[str, ...]:
    """What must not differ in two wordings of one string: its numbers and its signs, in order.

    >>> figures("7440-40-6"), figures("at -5"), figures("C++"), figures("Saint-Denis, 2 m²")
    (('7440-40-6',), ('-5', '-'), ('+', '+'), ('2', '²'))
    """
    text = " ".join(text.translate(_DASHES).split())
    signs = (letter for at, letter in enumerate(text) if _is_sign(text, at))
    return (*_NUMBERS.findall(text), *signs)


def _is_accent(letter: str) -> bool:
    return "\u0300" <= letter <= "\u036f"


def _is_sign(text: str, at: int) -> bool:
    """Whether a letter is one that folding leaves out or changes, though it makes a difference."""
    letter = text[at]
    if letter == "-":  # not within a word
        return not (text[at - 1 : at].isalnum() and text[at + 1 : at + 2].isalnum())
    if letter.isascii():
        return letter in "+#%*<=>~$"
    category = unicodedata.category(letter)
    # Numbers such as "½" and "²", symbols, vowels that are written as marks.
    return category in ("No", "Nl", "Sm", "Sc", "So") or (
        category[0] == "M" and not _is_accent(letter)
    )


def alike_by_words(one: str, other: str) -> bool:
    """Whether the words of two texts correspond one by one, but for slips of the pen.

    >>> alike_by_words("Peace and Justic", "Peace and Justice"), alike_by_words("IV", "V")
    (True, False)
    """
    words, others = ([*filter(None, map(letters, _WORDS.split(text)))] for text in (one, other))
    return len(words) == len(others) and all(map(_is_near, words, others))


def _is_near(word: str, other: str) -> bool:
    if word == other:
        return True
    if _ROMAN.fullmatch(word) or _ROMAN.fullmatch(other):
        return False
    return word[0] == other[0] and fuzz.ratio(word, other) >= NEAR_WORD


class Index:
    """Texts to be found by what is written for them."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = sorted(set(texts))
        self._exact = frozenset(self.texts)
        # By their letters, with an article at their beginning or without.
        self.spelt: dict[str, list[str]] = {}
        for text in self.texts:
            for key in dict.fromkeys(foldings(text)):
                if key:
                    self.spelt.setdefault(key, []).append(text)
        self._nearest: dict[str, tuple[str, float]] = {}

    def __len__(self) -> int:
        return len(self.texts)

    def folded(self, text: str) -> str | None:
        """The text that is written so up to folding, of several the most similar one."""
        if text in self._exact:
            return text
        for key in foldings(text):
            if found := self.spelt.get(key):
                return max(found, key=lambda name: fuzz.ratio(text, name))
        return None

    def same(self, text: str, *, fold: bool = True) -> str | None:
        """The text that is written so with the same `figures`, of several the most similar one.

        Not ``fold``: punctuation, articles and possessives must be the same, too.
        """
        if text in self._exact:
            return text
        found = self._written.get(written(text), [])
        if fold and not found:
            spelt = (self.spelt.get(key, []) for key in foldings(text) if key)
            same = ([t for t in texts if figures(t) == figures(text)] for texts in spelt)
            found = next(filter(None, same), [])
        return max(found, key=lambda name: fuzz.ratio(text, name)) if found else None

    @cached_property
    def _written(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for text in self.texts:
            found.setdefault(written(text), []).append(text)
        return found

    def nearest(self, text: str) -> tuple[str, float]:
        """The most similar text and its similarity, from 0 to 100; there must be a text."""
        if text not in self._nearest:
            if (found := self.folded(text)) is not None:
                self._nearest[text] = found, 100.0
            else:
                self._nearest[text] = self._most_similar(text)
        return self._nearest[text]

    def _most_similar(self, text: str) -> tuple[str, float]:
        wanted, best, most = _plain(text), self.texts[0], -1.0
        for scorer, weight in ((fuzz.ratio, 1.0), (fuzz.token_sort_ratio, SORTED)):
            hit = process.extractOne(
                wanted, self._plain, scorer=scorer, score_cutoff=min(100.0, max(0.0, most / weight))
            )
            if hit is not None and hit[1] * weight > most:
                best, most = self.texts[hit[2]], hit[1] * weight
        return best, most

    @cached_property
    def _plain(self) -> list[str]:
        return [_plain(text) for text in self.texts]


def similarity(one: str, other: str) -> float:
    """How similar two texts are, from 0 to 100, as `Index.nearest` measures it."""
    one, other = _plain(one), _plain(other)
    return max(fuzz.ratio(one, other), SORTED * fuzz.token_sort_ratio(one, other))


@lru_cache(maxsize=100_000)
def _plain(text: str) -> str:
    return " ".join(_ADDRESS.sub("", text).casefold().split())


def unsaid(program: Call, question: str) -> list[str]:
    """The names in a program that a question does not hold, not even up to folding, in order."""
    said = letters(question)
    names = (call.arguments[0] for call in post_order(program) if call.function is FIND)
    return [name for name in dict.fromkeys(names) if not any(key in said for key in foldings(name))]


class Linker:
    """What the names and strings in questions stand for in a knowledge base."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb, self.schema = kb, Schema.of(kb)
        self._strings: dict[Key | None, Index] = {}
        self._feasible: dict[Function, bool] = {}

    @cached_property
    def names(self) -> Index:
        """The names of all entities and concepts, as an argument reads them."""
        return Index(self.schema.nodes)

    def strings(self, key: Key | None) -> Index:
        """The strings that are values of a key; None: of any key."""
        if key not in self._strings:
            if key is None:
                values = self.kb.values
                texts = [str(values[number]) for number in range(values.first_quantity)]
            else:
                texts = self.schema.texts(key, "string") if self.schema.has(key, "string") else []
            self._strings[key] = Index(filter(None, texts))
        return self._strings[key]

    @cached_property
    def automaton(self) -> Automaton:
        """Which calls may follow in programs that name only what the knowledge base has."""
        functions = filter(self.has_items_of, FUNCTIONS.values())
        return Automaton(functions, self.schema.has, joins_beyond=True)

    def has_items_of(self, function: Function) -> bool:
        """Whether the knowledge base has what the arguments of a function choose among."""
        if function not in self._feasible:
            self._feasible[function] = all(
                self._has_item(function, at, kind)
                for at, (_, kind) in enumerate(function.arguments)
            )
        return self._feasible[function]

    def _has_item(self, function: Function, at: int, kind: Kind) -> bool:
        if kind in KEYS:
            return bool(self.schema.keys(KEYS[kind], type_of_key(function, at)))
        if kind is Kind.RELATION:
            return bool(self.kb.relations)
        if kind is Kind.NAME:
            return bool(len(self.names))
        return bool(self.schema.concepts) if kind is Kind.CONCEPT else True

    def name(self, text: str) -> str:
        """The name that a text stands for; the text itself where there is no name at all."""
        return self.names.nearest(text)[0] if len(self.names) else text

    def string(self, text: str, key: Key | None, *, near: bool = True) -> str:
        """The value that a text stands for: one of the key (None: of any), or just the text.

        Not ``near``: only a value that is written so up to case, accents, blanks and what
        surrounds an address. What differs in a number or a sign is another value, however long the
        rest.
        """
        index = self.strings(key)
        if (value := index.same(text, fold=near)) is not None:
            return value
        if not near or not len(index):
            return text
        found, similar = index.nearest(text)
        same = similar >= NEAR_VALUE and figures(found) == figures(text)
        return found if same and alike_by_words(text, found) else text


# --- what a question mentions --------------------------------------------------------------------

# These marks mean the same on every knowledge base, so that a parser need not have seen an item in
# training to see that it is mentioned.

# A name or an item of more words is not looked for.
LONGEST_NAME, LONGEST_ITEM = 12, 8

ITEM_SLOTS = (*ITEMS.values(), "unit")
# A key's mark tells the type of its values, as that of the function depends on it.
KEY_SLOTS = {ITEMS[kind]: qualifier for kind, qualifier in KEYS.items()}
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
    items: tuple[int, ...]  # the numbers of the entries whose items are mentioned


class Mentions:
    """Finds what questions mention of a knowledge base, of items by the number of their entry.

    Entries are (slot, text), as `parsers.actions.Actions` has them.
    """

    def __init__(self, entries: Sequence[tuple[str, str]], linker: Linker) -> None:
        self._linker = linker
        self._items: dict[str, list[int]] = {}
        self._marks = [self._marks_of(slot, text) for slot, text in entries]
        for number, (slot, text) in enumerate(entries):
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
