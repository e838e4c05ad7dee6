"""Noise for training data: questions as they are typed in haste, with the same program and answer.

What may go wrong, how often, and the words that it concerns stand in ``noise.yaml``. Whatever it
is, the numbers stay as they are and no name of the knowledge base becomes another one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from random import Random

import yaml  # type: ignore[import-untyped]

from kb import KnowledgeBase
from kopl.example import Example

# A question is tried so often, and a typo in it.
TRIES, TYPO_TRIES = 4, 6
# No longer name is looked for, in words.
LONGEST_NAME = 8
# Shorter words get no typos; what begins with a capital may be a name.
SHORTEST, SHORTEST_NAME = 4, 5
# A question of so many words may have two typos, half of the time.
LONG = 10

# A word, without what stands behind an apostrophe: "Peru's", "isn't".
_WORD = re.compile(r"(\w+)(?:['’](?:s|t|re|d)\b)?")
_LETTERS = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"-?\d+(?:[.,:/-]\d+)*")
_ARTICLE = re.compile(r"\b(?:the|an?) (?=\w)", re.IGNORECASE)
_SMALL_WORD = re.compile(r"(?<![\w'’.-])[a-z]+(?= )")
_CODE = re.compile(r"[\d_/@.&+]")
_APOSTROPHE = re.compile(r"(?<=[^\W\d_])(['’-])(?=[^\W\d_])")
_COMMA = re.compile(r"[,;:](?=\s|$)|[\"“”]|(?<=[^\W\d_])['’](?=\s|$)")
_END = re.compile(r"\s*[?.!]+\s*$")
_NUMERAL = re.compile(
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|\w+ty|hundred"
    r"|thousand|[mbtr]+illion)s?",
    re.IGNORECASE,
)
# Letters that no accent comes off.
_PLAIN = str.maketrans(
    {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "d", "ß": "ss", "æ": "ae",
     "Æ": "Ae", "œ": "oe", "Œ": "Oe", "þ": "th", "Þ": "Th", "ı": "i"}
)  # fmt: skip

Change = Callable[[str, Random], str]


@dataclass(frozen=True)
class Tables:
    """What ``noise.yaml`` says: likelihoods, the keys beside a key, pairs of wordings, and what
    stands around a question."""

    shares: Mapping[str, float]
    typos: Mapping[str, float]
    neighbours: Mapping[str, str]
    contractions: Mapping[str, str]
    spelling: Mapping[str, str]
    misspelling: Mapping[str, Sequence[str]]
    openings: Sequence[str]
    endings: Sequence[str]


@cache
def tables() -> Tables:
    """The bundled tables."""
    text = resources.files("generation").joinpath("noise.yaml").read_text("utf-8")
    read = yaml.safe_load(text)
    both = read["spelling"] | {american: british for british, american in read["spelling"].items()}
    return Tables(
        read["shares"],
        read["typos"],
        _neighbours(read["keyboard"]),
        read["contractions"],
        both,
        read["misspelling"],
        read["openings"],
        read["endings"],
    )


def _neighbours(rows: list[str]) -> dict[str, str]:
    """The keys around each key: beside it, and the two that touch it in the rows above and below.

    >>> _neighbours(["qwe", "asd"])["s"]
    'adwe'
    """
    found = {}
    for number, row in enumerate(rows):
        above = rows[number - 1] if number else ""
        below = rows[number + 1] if number + 1 < len(rows) else ""
        for place, key in enumerate(row):
            beside = row[max(0, place - 1) : place] + row[place + 1 : place + 2]
            found[key] = beside + above[place : place + 2] + below[max(0, place - 1) : place + 1]
    return found


class Noise:
    """Puts noise into a share of the questions over a knowledge base."""

    def __init__(self, kb: KnowledgeBase, share: float) -> None:
        self._share, self._tables = share, tables()
        # What is called something, by the words of that without case and accents.
        self._names: dict[str, set[str]] = {}
        self._longest = 1
        for name in _called(kb):
            if (words := folded_words(name)) and len(words) <= LONGEST_NAME:
                self._names.setdefault(" ".join(words), set()).add(_inner(name))
                self._longest = max(self._longest, len(words))
        self._words = {word for name in self._names for word in name.split(" ")}
        self._changes: dict[str, Change] = {
            "opening": self._open,
            "ending": self._end,
            "contraction": self._contract,
            "other spelling": self._spell,
            "lost article": _without_article,
            "doubled word": _with_double,
            "lost accents": lambda text, _: without_accents(text),
            "lost apostrophe": _without_apostrophe,
            "misspelling": self._misspell,
            "typo": self._with_typo,
            "lost punctuation": _without_punctuation,
            "lower case": lambda text, _: text.lower(),
        }

    def noised(self, example: Example, random: Random) -> Example:
        """The example, or one of the share that gets noise, with the question as it is typed.

        Its ``extra`` says what was done (``noise``, a list) and what the question was (``clean``).
        A question in which nothing can go wrong stays as it is.
        """
        if random.random() >= self._share:
            return example
        question, done = self.typed(example.question, random)
        if not done:
            return example
        extra = {**example.extra, "noise": list(done), "clean": example.question}
        return replace(example, question=question, extra=extra)

    def typed(self, question: str, random: Random) -> tuple[str, tuple[str, ...]]:
        """The question with noise, and the kinds of it in their order; none where nothing could."""
        for _ in range(TRIES):
            text, done = question, []
            for kind, share in self._tables.shares.items():
                if random.random() < share:
                    changed = self._changes[kind](text, random)
                    if changed != text and changed.strip() and self.is_safe(question, changed):
                        text = changed
                        done.append(kind)
            if done and text != question:
                return text, tuple(done)
        return question, ()

    def is_safe(self, question: str, typed: str) -> bool:
        """Whether all numbers of a question are in what was typed, and no name that is another."""
        if _NUMBER.findall(question) != _NUMBER.findall(typed):
            return False
        before = self.names_in(question)
        for folded, texts in self.names_in(typed).items():
            if folded not in before:
                return False
            names = self._names[folded]
            # Names that differ in case and accents only are names of different things.
            if not before[folded].isdisjoint(names) and (texts & names) - before[folded]:
                return False
        return True

    def names_in(self, text: str) -> dict[str, set[str]]:
        """The names in a text without case and accents, with what stands there for each."""
        found: dict[str, set[str]] = {}
        spans = [match.span(1) for match in _WORD.finditer(text)]
        words = [_fold(text[begin:end]) for begin, end in spans]
        for first in range(len(words)):
            for last in range(first, min(len(words), first + self._longest)):
                folded = " ".join(words[first : last + 1])
                if folded in self._names:
                    there = text[spans[first][0] : spans[last][1]]
                    found.setdefault(folded, set()).add(there)
        return found

    def _open(self, text: str, random: Random) -> str:
        """The text behind a few words, as in a chat; it begins small unless a name begins it."""
        words = folded_words(text)[: self._longest]
        named = any(" ".join(words[:count]) in self._names for count in range(1, len(words) + 1))
        opening = random.choice(self._tables.openings)
        if text[:1].islower():
            return f"{opening[:1].lower()}{opening[1:]} {text}"
        return f"{opening} {text if named else text[:1].lower() + text[1:]}"

    def _end(self, text: str, random: Random) -> str:
        """The text with a few words at its end: before its mark, or as a sentence behind it."""
        ending = random.choice(self._tables.endings)
        if "please" in text:
            return text
        marked = _END.search(text)
        if ending[:1].isupper():
            return f"{text} {ending}" if marked else text
        at = marked.start() if marked else len(text)
        return text[:at] + ("" if ending.startswith(",") else " ") + ending + text[at:]

    def _misspell(self, text: str, random: Random) -> str:
        """The text with a word that is often misspelt, as it often is."""
        table = self._tables.misspelling
        found = [match for match in _LETTERS.finditer(text) if match.group().lower() in table]
        found = [match for match in found if _may_be_mistyped(match, text)]
        if not found:
            return text
        match = random.choice(found)
        new = random.choice(table[match.group().lower()])
        return _replaced(text, match, new.capitalize() if match.group()[0].isupper() else new)

    def _contract(self, text: str, random: Random) -> str:
        pairs = self._tables.contractions
        found = [
            match for long in pairs for match in re.finditer(rf"\b{long}\b", text, re.IGNORECASE)
        ]
        if not found:
            return text
        match = random.choice(found)
        short = pairs[match.group().lower()]
        return _replaced(text, match, match.group()[0] + short[1:])

    def _spell(self, text: str, random: Random) -> str:
        pairs = self._tables.spelling
        found = [
            (match, pairs[stem]) for match in _LETTERS.finditer(text)
            for stem in _stems(match.group().lower()) if stem in pairs
        ]  # fmt: skip
        if not found:
            return text
        match, other = random.choice(found)
        word = match.group()
        stem = next(stem for stem in _stems(word.lower()) if pairs.get(stem) == other)
        new = other + word[len(stem) :]
        if word[:1].isupper():
            new = new.upper() if word.isupper() and len(word) > 1 else new[:1].upper() + new[1:]
        return _replaced(text, match, new)

    def _with_typo(self, text: str, random: Random) -> str:
        """The text with a typo in a word, or in two of a long one."""
        twice = len(text.split()) >= LONG and random.random() < 0.5
        for _ in range(1 + twice):
            text = self._with_one_typo(text, random)
        return text

    def _with_one_typo(self, text: str, random: Random) -> str:
        places = [match for match in _LETTERS.finditer(text) if _may_be_mistyped(match, text)]
        if not places:
            return text
        kinds = self._tables.typos
        for _ in range(TYPO_TRIES):
            match = random.choice(places)
            (kind,) = random.choices(list(kinds), list(kinds.values()))
            word = mistyped(match.group(), kind, random, self._tables.neighbours)
            if word == match.group() or _fold(word) in self._words:
                continue
            changed = _replaced(text, match, word)
            if self.is_safe(text, changed):
                return changed
        return text


def _called(kb: KnowledgeBase) -> Iterator[str]:
    """All that entities and concepts are called: their names and aliases."""
    for node in range(kb.node_count):
        yield kb.name_of(node)
        yield from kb.aliases_of(node)


def _may_be_mistyped(match: re.Match[str], text: str) -> bool:
    """Whether a typo in a word is one that people make and understand: in no code, in no number."""
    word = match.group()
    begin = text.rfind(" ", 0, match.start()) + 1
    end = text.find(" ", match.end())
    token = text[begin : end if end >= 0 else len(text)].strip("?.,!;:()\"'“”")
    return (
        len(word) >= (SHORTEST_NAME if word[0].isupper() else SHORTEST)
        and word[1:].islower()
        and not _CODE.search(token)
        and not _NUMERAL.fullmatch(word)
    )


def mistyped(word: str, kind: str, random: Random, neighbours: Mapping[str, str]) -> str:
    """The word with one typo of a kind behind its first letter; as it is where none can be."""
    place = random.randrange(1, len(word))
    letter = word[place]
    if kind == "neighbour":
        near = neighbours.get(letter)
        return word[:place] + random.choice(near) + word[place + 1 :] if near else word
    if kind == "transposition":
        if place + 1 >= len(word):
            place -= 1
        if place < 1:
            return word
        return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    if kind == "drop":
        return word[:place] + word[place + 1 :]
    return word[:place] + letter + word[place:]


def _stems(word: str) -> Iterator[str]:
    """The beginnings of a word, the longest first."""
    for length in range(len(word), 3, -1):
        yield word[:length]


def _without_article(text: str, random: Random) -> str:
    found = list(_ARTICLE.finditer(text))
    if not found:
        return text
    always = random.choice(found)
    for match in reversed(found):
        if match is always or random.random() < 0.5:
            text = text[: match.start()] + text[match.end() :]
    return text


def _with_double(text: str, random: Random) -> str:
    found = [m for m in _SMALL_WORD.finditer(text) if not _NUMERAL.fullmatch(m.group())]
    if not found:
        return text
    match = random.choice(found)
    return _replaced(text, match, f"{match.group()} {match.group()}")


def _without_apostrophe(text: str, random: Random) -> str:
    """The text without apostrophes; a hyphen, and that of "d'Ivoire", may leave a blank."""
    blank = random.random() < 0.5

    def left(match: re.Match[str]) -> str:
        return " " if blank and (match.group() == "-" or text[match.end()].isupper()) else ""

    return _APOSTROPHE.sub(left, text)


def _without_punctuation(text: str, random: Random) -> str:
    """The text without a mark at its end, and half of the time without commas and quotes."""
    text = _END.sub("", text)
    return " ".join(_COMMA.sub("", text).split()) if random.random() < 0.5 else text


def without_accents(text: str) -> str:
    """The text with plain letters where letters have accents.

    >>> without_accents("São Tomé, Tromsø, Ελλάδα, 日本")
    'Sao Tome, Tromso, Ελλάδα, 日本'
    """
    return "".join(map(_without_accent, text))


@cache
def _without_accent(letter: str) -> str:
    if letter.isascii():
        return letter
    plain = unicodedata.normalize("NFKD", letter.translate(_PLAIN))
    bare = "".join(mark for mark in plain if not unicodedata.combining(mark))
    return bare if bare.isascii() and bare.isalpha() else letter


def _replaced(text: str, match: re.Match[str], new: str) -> str:
    return text[: match.start()] + new + text[match.end() :]


def _fold(word: str) -> str:
    return without_accents(word).casefold()


def folded_words(text: str) -> list[str]:
    """The words of a text without case, accents and what stands between them."""
    return [_fold(word) for word in _WORD.findall(text)]


def _inner(name: str) -> str:
    """A name from its first word to its last, without marks around."""
    spans = [match.span(1) for match in _WORD.finditer(name)]
    return name[spans[0][0] : spans[-1][1]]
