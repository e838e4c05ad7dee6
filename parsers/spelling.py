"""How alike two spellings are: exact, folded, nearest.

*Folded* leaves out what people write differently: case, accents, punctuation and blanks, an article
at the beginning, a possessive at the end, ``http://www.`` before an address. *Nearest* is by
similarity of spelling (rapidfuzz's ratio, words in order or sorted), from 0 to 100.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache, cached_property, lru_cache
from importlib import resources

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from kopl_base.errors import Comparable

# How similar each word must be to the one at its place; no other beginning is a slip of the pen.
NEAR_WORD = 75
# A word of so many letters may have so many slips: letters lost, added, exchanged or swapped.
SLIPS = ((4, 1), (8, 2))
# In a name so long two slips are thought of, and three.
_LONG = (7, 14)
# Sorting the words costs a little: "X of Y" is more often X of Y than Y of X.
SORTED = 0.97

_ADDRESS = re.compile(r"^https?://(?:www\.)?|^www\.|(?<!/)/+$")
# An address, and the part of it that people write.
_SITE = re.compile(r"(?:https?://)?(?:www\.)?([^\s/]+\.[^\W\d_]{2,}(?:[:/]\S*)?)", re.IGNORECASE)
# Numbers with what stands directly before and between their digits.
_NUMBERS = re.compile(r"[^\w\s]?\d+(?:[\W_]+\d+)*")
_ROMAN = re.compile(r"m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})")
_WORDS = re.compile(r"[\s‐-―−-]+")
_LETTERS = re.compile(r"(?<![\w./@])[^\W\d_]+(?![\d_@]|[./]\w)")
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

    @cached_property
    def comparable(self) -> Comparable:
        """The texts for `near_names`."""
        return Comparable(self.texts)

    def nearest(self, text: str) -> tuple[str, float]:
        """The most similar text and its similarity, from 0 to 100; there must be a text."""
        if text not in self._nearest:
            if (found := self.folded(text)) is not None:
                self._nearest[text] = found, 100.0
            else:
                self._nearest[text] = self._most_similar(text)
        return self._nearest[text]

    def nearer(self, text: str, similar: float) -> str | None:
        """The most similar text where that is more similar than so much; else None."""
        if (found := self._nearest.get(text)) is None:
            if (same := self.folded(text)) is not None:
                found = self._nearest[text] = same, 100.0
            else:
                found = self._most_similar(text, similar)
        return found[0] if found[1] > similar else None

    def _most_similar(self, text: str, least: float = 0.0) -> tuple[str, float]:
        """The most similar text, or any one where that is less similar than ``least``."""
        wanted, best, most = _plain(text), self.texts[0], -1.0
        bounds = self._bags.bounds(wanted, len(_in_order(wanted)))
        # The second is what `fuzz.token_sort_ratio` gives, but the words are sorted once.
        for asked, known, weight in (
            (wanted, self._plain, 1.0),
            (_in_order(wanted), self._in_order, SORTED),
        ):
            hit = _best(asked, known, bounds, max(0.0, most / weight, least / weight))
            if hit is not None and hit[1] * weight > most:
                best, most = self.texts[hit[0]], hit[1] * weight
        return best, most

    @cached_property
    def _bags(self) -> _Bags:
        return _Bags(self._plain, self._in_order)

    @cached_property
    def _plain(self) -> list[str]:
        return [_plain(text) for text in self.texts]

    @cached_property
    def _in_order(self) -> list[str]:
        return [_in_order(text) for text in self._plain]


def _in_order(text: str) -> str:
    """The words of a text in order."""
    return " ".join(sorted(text.split()))


class _Bags:
    """How often each letter stands in each of many texts: bounds of how similar others can be.

    Two texts have no more in common, in whatever order, than the letters that both have. Letters
    are told apart by the last bits of their numbers, which is enough for Latin ones.
    """

    LETTERS = 32
    # Texts that are counted at once.
    AT_ONCE = 50_000

    def __init__(self, texts: Sequence[str], in_order: Sequence[str]) -> None:
        pairs = zip(texts, in_order, strict=True)
        self._sizes = np.array([min(len(one), len(other)) for one, other in pairs], np.float64)
        # One row for each letter, so that few are looked at.
        self._counts = np.zeros((self.LETTERS, len(texts)), np.uint8)
        for start in range(0, len(texts), self.AT_ONCE):
            part = texts[start : start + self.AT_ONCE]
            sizes = [len(text) for text in part]
            letters = _numbers("".join(part)) % self.LETTERS
            cells = letters * len(part) + np.repeat(np.arange(len(part)), sizes)
            counts = np.bincount(cells, minlength=self.LETTERS * len(part))
            table = np.minimum(counts, 255).reshape(self.LETTERS, len(part))
            self._counts[:, start : start + len(part)] = table

    def bounds(self, wanted: str, size: int) -> npt.NDArray[np.float64]:
        """For each text how similar a text can be to it at most, from 0 to 100.

        ``size``: the smallest length that ``wanted`` has in whatever order.
        """
        # No sum is larger than the text; small numbers are added faster.
        shared = np.zeros(len(self._sizes), np.uint8 if len(wanted) < 256 else np.int32)
        numbers, counts = np.unique(_numbers(wanted) % self.LETTERS, return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            if count > 255:  # more than is counted
                shared += count
            else:
                shared += np.minimum(self._counts[number], np.uint8(count))
        found = np.multiply(shared, 200.0, dtype=np.float64)
        found /= np.maximum(self._sizes + size, 1)
        if size == 0:
            found[self._sizes == 0] = 100.0
        return found


def _numbers(text: str) -> npt.NDArray[np.int64]:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return codes.astype(np.int64)


# Texts of the highest bounds that are compared first. rapidfuzz passes over some that reach its
# cutoff by rounding only.
FIRST, ROUNDING = 32, 1e-3


def _best(
    asked: str, known: Sequence[str], bounds: npt.NDArray[np.float64], least: float
) -> tuple[int, float] | None:
    """The first of the most similar texts that are as similar as ``least``, as (number, score)."""
    if least > 100:
        return None
    near = np.flatnonzero(bounds >= least - ROUNDING)
    if len(near) > 2 * FIRST:
        # What some are like bounds what the best is like; few others reach that.
        first = near[np.argpartition(bounds[near], -FIRST)[-FIRST:]].tolist()
        least = max(least, *(fuzz.ratio(asked, known[at]) for at in first))
        near = near[bounds[near] >= least - ROUNDING]
    near = near.tolist()
    least = max(0.0, least - ROUNDING)
    hit = process.extractOne(
        asked, [known[at] for at in near], scorer=fuzz.ratio, score_cutoff=least
    )
    return None if hit is None else (near[hit[2]], hit[1])


def similarity(one: str, other: str) -> float:
    """How similar two texts are, from 0 to 100, as `Index.nearest` measures it."""
    one, other = _plain(one), _plain(other)
    return max(fuzz.ratio(one, other), SORTED * fuzz.token_sort_ratio(one, other))


@lru_cache(maxsize=100_000)
def is_slip(written: str, name: str) -> bool:
    """Whether letters may be a slip of the pen for those of a name: "lativa", but not "latveria".

    Two slips are for long names, leave the first letter and add hardly any. An ending makes
    another form of a name: "european".
    """
    written = written.removesuffix("s") if not name.endswith("s") else written
    edits = OSA.distance(written, name)
    if edits <= 1 or (len(name) > 3 and written.startswith(name[:-1])):
        return True
    is_like = written[:1] == name[:1] and len(written) < len(name) + 2
    return is_like and edits <= sum(len(name) >= long for long in (0, *_LONG))


def _plain(text: str) -> str:
    return " ".join(_ADDRESS.sub("", text).casefold().split())


class Speller:
    """Mends slips of the pen in words that are not known.

    ``words`` are those that may be meant, in lower case, the most frequent first: of equally near
    ones the first is taken. ``others`` are known, but rare: nobody who slips means them.
    """

    def __init__(self, words: Iterable[str], others: Iterable[str] = ()) -> None:
        meant = dict.fromkeys(filter(str.isalpha, words))
        # By their first letter, as hardly anybody slips there, and their length.
        self._groups: dict[tuple[str, int], list[str]] = {}
        for word in meant:
            self._groups.setdefault((word[0], len(word)), []).append(word)
        self._known = meant.keys() | set(others)
        self._mended: dict[str, str] = {}

    def word(self, word: str) -> str:
        """The known word that this one nearly is, in its case; itself where there is none.

        What is all capitals stays: it is an abbreviation or a code.

        >>> Speller(["which", "capital"]).word("Captial")
        'Capital'
        """
        lower = word.lower()
        if lower in self._known or word.isupper():
            return word
        if lower not in self._mended:
            self._mended[lower] = self._nearest(lower)
        found = self._mended[lower]
        if found == lower:
            return word
        return found.title() if word[0].isupper() else found

    def text(self, text: str) -> str:
        """A text whose words are mended; an address stays."""
        return _LETTERS.sub(lambda match: self.word(match[0]), text)

    def _nearest(self, word: str) -> str:
        most = max((slips for least, slips in SLIPS if len(word) >= least), default=0)
        best, fewest = word, (most + 1, 0)
        for length in range(len(word) - most, len(word) + most + 1):
            for known in self._groups.get((word[0], length), ()):
                slips = OSA.distance(word, known, score_cutoff=fewest[0])
                if slips > fewest[0] or (slips > 1 and not _same_ends(word, known)):
                    continue
                # Letters that are swapped go before one lost or added, and that before another.
                kind = 1 if length != len(word) else 2 * (sorted(word) != sorted(known))
                found = slips, kind
                if found < fewest:
                    best, fewest = known, found
        return best


def _same_ends(word: str, other: str) -> bool:
    return word[:2] == other[:2] and word[-1] == other[-1]


def words_of(text: str) -> list[str]:
    """The words of a text in lower case: what `Speller` takes for one.

    >>> words_of("Guinea-Bissau's 2 ports")
    ['guinea', 'bissau', 's', 'ports']
    """
    return [word.lower() for word in _LETTERS.findall(text)]


@cache
def english() -> tuple[str, ...]:
    """Common English words."""
    return tuple(resources.files("parsers").joinpath("english.txt").read_text("utf-8").split())
