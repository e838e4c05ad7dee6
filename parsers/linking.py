"""From what a question calls a thing to the thing's name: exact, folded, nearest.

*Folded* leaves out what people write differently: case, accents, punctuation and blanks, an article
at the beginning, a possessive at the end, ``http://www.`` before an address. *Nearest* is by
similarity of spelling (rapidfuzz's ratio, words in order or sorted), from 0 to 100.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cached_property, lru_cache

from rapidfuzz import fuzz, process

from kb import KnowledgeBase
from kopl.functions import Function
from kopl.types import Kind
from parsers.constrain.schema import KEYS, Key, Schema, type_of_key

# How similar a value must be to one of the knowledge base to be taken for it; a name is taken for
# the nearest one whatever it is, as programs can name nothing else.
NEAR_VALUE = 88
# Sorting the words costs a little: "X of Y" is more often X of Y than Y of X.
SORTED = 0.97

_ADDRESS = re.compile(r"^https?://(?:www\.)?|^www\.|/+$")
_NUMBER = re.compile(r"\d+")
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


class Index:
    """Texts to be found by what is written for them."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = sorted(set(texts))
        self._exact = frozenset(self.texts)
        self._spelt: dict[str, list[str]] = {}
        for text in self.texts:
            for key in dict.fromkeys(foldings(text)):
                if key:
                    self._spelt.setdefault(key, []).append(text)
        self._nearest: dict[str, tuple[str, float]] = {}

    def __contains__(self, text: str) -> bool:
        return text in self._exact

    def __len__(self) -> int:
        return len(self.texts)

    def folded(self, text: str) -> str | None:
        """The text that is written so up to folding, of several the most similar one."""
        if text in self._exact:
            return text
        for key in foldings(text):
            if found := self._spelt.get(key):
                return max(found, key=lambda name: fuzz.ratio(text, name))
        return None

    def spells(self, key: str) -> bool:
        """Whether some text has these `letters`, with an article at its beginning or without."""
        return key in self._spelt

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


class Linker:
    """What the names and strings in questions stand for in a knowledge base."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb, self.schema = kb, Schema(kb)
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
        return bool(self.schema.concepts) if kind is Kind.CONCEPT else True

    def name(self, text: str) -> str:
        """The name that a text stands for; the text itself where there is no name at all."""
        return self.names.nearest(text)[0] if len(self.names) else text

    def string(self, text: str, key: Key | None, *, near: bool = True) -> str:
        """The value that a text stands for: one of the key (None: of any), or just the text.

        Not ``near``: only a value that is written so up to folding. What differs in a number is
        another value, however long the rest.
        """
        index = self.strings(key)
        if (written := index.folded(text)) is not None:
            return written
        if not near or not len(index):
            return text
        found, similar = index.nearest(text)
        same_numbers = _NUMBER.findall(found) == _NUMBER.findall(text)
        return found if similar >= NEAR_VALUE and same_numbers else text
