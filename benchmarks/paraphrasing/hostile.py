"""Wrong paraphrases: each asks something else than its question, or is no question at all.

Ten classes, each made in several ways out of generated wordings and of paraphrases that were
written by hand, so that much is right in them and one thing is wrong. `make` gives as many of each
class; a way that does not fit a question gives way to the next. The texts of the ways stand in
``hostile.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import yaml

from generation.paraphrase.originals import Original
from kb import KnowledgeBase
from kopl.program import Call, post_order

LENGTHS = (10_000_000, 100_000, 5_000)  # characters of a text that is far too long
# What is left out.
_YEAR = r"(?i),? ?\b(?:in|of|after|before) \d{4}\b,?"
_APPOSITION = r", (?:the|with)\b[^,?]*,?(?=[ ?])"
_CONDITION = (
    r" (?:whose|that (?:has|have|is|was|were)|with)\b(?! (?:the )?ISO)[^,?]*?\d[\d.,]*(?: \w+)?"
    r"(?=[ ?,])"
)
# Nouns before which an adjective may stand, and units behind which a value ends.
_NOUNS = (
    r"(?<![\w-])(?:republics?|states?|countr(?:y|ies)|airports?|elements?|isotopes?|part(?:y|ies)"
    r"|territor(?:y|ies)|legislatures?|metals?|cit(?:y|ies)|laureates?|currenc(?:y|ies)|lakes?"
    r"|products?)(?![\w-])"
)
_EXACT = (
    r"\b(of|is|at|was) (\$?\d[\d.,]*)(?= ?(?:%|percent|per|km|kilo|metres|degrees|years|children"
    r"|million|billion|seconds|grams))"
)
TEXTS = Path(__file__).with_name("hostile.yaml")


@dataclass(frozen=True)
class Source:
    """A question with one of its right wordings, which is then made wrong."""

    original: Original
    text: str

    @cached_property
    def names(self) -> list[str]:
        """The names of the program that stand in the text as they are, the longest first."""
        found = {
            call.arguments[0]
            for call in post_order(self.original.example.program)
            if call.function.name == "Find" and call.arguments[0] in self.text
        }
        return sorted(found, key=lambda name: (-len(name), name))

    @cached_property
    def functions(self) -> set[str]:
        """The names of the functions of the program."""
        return {call.function.name for call in post_order(self.original.example.program)}

    @property
    def compares(self) -> bool:
        """Whether the program compares at all."""
        arguments = {
            text for call in post_order(self.original.example.program) for text in call.arguments
        }
        return bool(arguments & {"<", ">", "greater", "less", "largest", "smallest"})


@dataclass(frozen=True)
class Wrong:
    """A wrong paraphrase, its class, and the way it was made in."""

    kind: str
    way: str
    source: Source
    text: str


class Hostile:
    """The ways of making paraphrases wrong; names are taken from a knowledge base."""

    def __init__(self, kb: KnowledgeBase, sources: Sequence[Source], seed: int = 0) -> None:
        self._sources = list(sources)
        self._texts: dict[str, Any] = yaml.safe_load(TEXTS.read_text("utf-8"))
        self._random = Random(seed)
        names = kb.names(kb.entities)
        self._names = sorted({name for name in names if len(name) > 2})
        self._alike: dict[tuple[int, ...], list[str]] = {}
        self._concepts: dict[str, tuple[int, ...]] = {}
        for node, name in enumerate(names):
            concepts = tuple(sorted(kb.concepts_of(node)))
            self._alike.setdefault(concepts, []).append(name)
            self._concepts.setdefault(name, concepts)

    def make(self, number: int) -> Iterator[Wrong]:
        """So many of each class, the ways of a class in turn and as far as they fit."""
        for kind, ways in self._ways().items():
            made: set[str] = set()
            count = 0
            pool = list(self._sources)
            self._random.shuffle(pool)
            for turn in range(20 * number):
                way, make = ways[turn % len(ways)]
                for _ in range(len(pool)):
                    source = pool.pop(0)
                    pool.append(source)
                    text = make(source)
                    known = (source.text, source.original.canonical)
                    if text and text not in known and text[:200] + str(len(text)) not in made:
                        made.add(text[:200] + str(len(text)))
                        yield Wrong(kind, way, source, text)
                        count += 1
                        break
                if count == number:
                    break

    def _ways(self) -> dict[str, list[tuple[str, Callable[[Source], str | None]]]]:
        texts = self._texts
        changes: dict[str, list[tuple[str, Callable[[Source], str | None]]]] = {
            "flipped comparison": [
                *self._replacing(texts["flipped"], lambda source: source.compares),
                ("not exactly", self._inexact),
            ],
            "negation": [
                *self._replacing(texts["negated"]),
                *self._replacing(texts["affirmed"], lambda source: _unequal(source)),
                ("other than", lambda source: self._before_name(source, texts["excepting"])),
                ("in front", lambda source: _fronted(source, self._one(texts["denying"]))),
            ],
            "swapped entity": [
                ("two exchanged", self._exchanged),
                ("one like it", lambda source: self._renamed(source, self._like)),
                ("any other", lambda source: self._renamed(source, self._any)),
                ("a near name", lambda source: self._renamed(source, self._near)),
                ("two exchanged", self._exchanged),
            ],
            "added condition": [
                ("at the end", lambda s: _ended(s, self._one(texts["added"]["end"]))),
                ("in front", lambda s: _fronted(s, self._one(texts["added"]["front"]))),
                ("behind a name", lambda s: self._behind_name(s, texts["added"]["name"])),
                ("an adjective", lambda s: self._adjective(s, texts["added"]["adjectives"])),
            ],
            "dropped or changed": [
                ("another number", self._number),
                ("another unit", lambda s: self._replaced(s, texts["units"])),
                ("without brackets", lambda s: _without(s, r" ?\([^()]*\)")),
                ("without a year", lambda s: _without(s, _YEAR)),
                ("without an apposition", lambda s: _without(s, _APPOSITION)),
                ("without a condition", lambda s: _without(s, _CONDITION)),
                ("without a name's clause", self._without_name),
                ("another month", lambda s: self._replaced(s, texts["months"])),
            ],
            "another question": [
                ("of another one", self._of_another),
                *self._replacing(texts["asked"]),
                ("about its name", lambda s: self._about(s, texts["about"])),
                ("the answer", self._answer),
            ],
            "another language": [
                (language, lambda s, lines=lines: self._about(s, lines))  # type: ignore[misc]
                for language, lines in texts["languages"].items()
            ],
            "markup": [
                ("around", lambda s: self._around(s, texts["markup"]["around"])),
                ("inside", lambda s: self._inside(s, texts["markup"]["inside"])),
                ("a model's talk", lambda s: self._around(s, texts["markup"]["talk"])),
            ],
            "control character": [
                ("inside a word", lambda s: self._character(s, texts["characters"], inside=True)),
                ("between words", lambda s: self._character(s, texts["characters"], inside=False)),
                ("another script", self._homoglyph),
            ],
            "length or form": [
                ("yes or no", lambda s: self._form(s, texts["forms"]["polar"])),
                ("far too long", lambda s: s.text * (self._one(LENGTHS) // len(s.text))),
                ("a count", lambda s: self._form(s, texts["forms"]["count"])),
                ("too short", self._short),
                ("which", lambda s: self._form(s, texts["forms"]["which"])),
                ("questions in a row", lambda s: self._row(s)),
            ],
        }  # fmt: skip
        return changes

    # --- texts that are replaced, put in front, behind and inside ------------------------------

    def _one(self, texts: Sequence[Any]) -> Any:
        return texts[self._random.randrange(len(texts))]

    def _replacing(
        self, pairs: dict[str, str | list[str]], fits: Callable[[Source], bool] = lambda _: True
    ) -> list[tuple[str, Callable[[Source], str | None]]]:
        """A way for every pair: the first text, as words, becomes the second."""

        def way(old: str, new: str | list[str]) -> Callable[[Source], str | None]:
            pattern = re.compile(rf"(?<!\w){old}(?!\w)", re.IGNORECASE)

            def make(source: Source) -> str | None:
                if not fits(source) or not (found := pattern.search(source.text)):
                    return None
                text = self._one(new) if isinstance(new, list) else new
                text = found.expand(text)
                if found[0][0].isupper():
                    text = text[:1].upper() + text[1:]
                return source.text[: found.start()] + text + source.text[found.end() :]

            return make

        return [(old, way(old, new)) for old, new in pairs.items()]

    def _replaced(self, source: Source, pairs: dict[str, str | list[str]]) -> str | None:
        for _, make in self._replacing(pairs):
            if text := make(source):
                return text
        return None

    def _before_name(self, source: Source, texts: Sequence[str]) -> str | None:
        if not source.names:
            return None
        name = self._one(source.names)
        return source.text.replace(name, f"{self._one(texts)} {name}", 1)

    def _behind_name(self, source: Source, texts: Sequence[str]) -> str | None:
        if not source.names:
            return None
        name = self._one(source.names)
        pattern = rf"{re.escape(name)}(?![\w'’-])"
        return re.sub(
            pattern, lambda found: found[0] + " " + self._one(texts), source.text, count=1
        )

    def _adjective(self, source: Source, texts: Sequence[str]) -> str | None:
        found = re.search(_NOUNS, source.text)
        if not found:
            return None
        return f"{source.text[: found.start()]}{self._one(texts)} {source.text[found.start() :]}"

    def _around(self, source: Source, texts: Sequence[str]) -> str:
        text: str = self._one(texts)
        return text.replace("{}", source.text)

    def _inside(self, source: Source, texts: Sequence[str]) -> str | None:
        blanks = [n for n, c in enumerate(source.text) if c == " "]
        if not blanks:
            return None
        at = self._one(blanks)
        return f"{source.text[:at]} {self._one(texts)}{source.text[at:]}"

    def _about(self, source: Source, lines: Sequence[str]) -> str | None:
        if not source.names:
            return None
        line = self._one(lines)
        names = [*source.names, *source.names]
        return line.replace("{0}", names[0]).replace("{1}", names[1])

    # --- names and numbers ----------------------------------------------------------------------

    def _exchanged(self, source: Source) -> str | None:
        """Two names in each other's places, where that changes what is asked."""
        calls = post_order(source.original.example.program)
        if len(source.names) < 2 or {"Or", "And", "SelectBetween"} & source.functions:
            return None
        if any(call.arguments[0] in _SYMMETRIC for call in calls if _relates(call)):
            return None
        one, other = source.names[:2]
        text = source.text.replace(one, "\0").replace(other, one).replace("\0", other)
        return text if text != source.text else None

    def _renamed(self, source: Source, other: Callable[[str], str | None]) -> str | None:
        if not source.names:
            return None
        name = self._one(source.names)
        new = other(name)
        return source.text.replace(name, new) if new and new not in source.text else None

    def _like(self, name: str) -> str | None:
        alike = [one for one in self._alike[self._concepts[name]] if one != name]
        return self._one(alike) if alike else None

    def _any(self, name: str) -> str | None:
        return str(self._one(self._names))

    def _near(self, name: str) -> str | None:
        """Another name that begins in the same way."""
        begins = [n for n in self._names if n[:4] == name[:4] and n != name and name not in n]
        return self._one(begins) if begins else None

    def _number(self, source: Source) -> str | None:
        """A figure changed: a digit, two digits exchanged, or the point elsewhere."""
        text = source.text
        for name in source.names:
            text = text.replace(name, "_" * len(name))
        found = list(re.finditer(r"(?<![\w-])\d[\d.,]*\d(?!\w)|(?<![\w-])\d(?!\w)", text))
        if not found:
            return None
        number = self._one(found)
        at = number.start() + self._random.randrange(len(number[0]))
        if not source.text[at].isdigit():
            return source.text[:at] + source.text[at + 1 :]
        digit = str((int(source.text[at]) + self._random.randrange(1, 9)) % 10)
        return source.text[:at] + digit + source.text[at + 1 :]

    def _inexact(self, source: Source) -> str | None:
        """An exact value made a bound."""
        if source.compares:
            return None
        word = self._one(self._texts["bounds"])
        text, count = re.subn(_EXACT, rf"\1 {word} \2", source.text, count=1)
        return text if count else None

    def _without_name(self, source: Source) -> str | None:
        for name in source.names:
            clause = rf"[ ,]+(?:of|from|by|in|to|for|with|that \w+) {re.escape(name)}(?=[ ?,])"
            found = re.search(clause, source.text)
            if found:
                return source.text[: found.start()] + source.text[found.end() :]
        return None

    # --- other questions and forms --------------------------------------------------------------

    def _of_another(self, source: Source) -> str | None:
        other: Source = self._one(self._sources)
        return None if other.original.canonical == source.original.canonical else other.text

    def _answer(self, source: Source) -> str | None:
        answer = source.original.example.answer
        name = source.names[0] if source.names else "it"
        lines = ("{0}", "The answer is {0}.", "{1}: {0}.", "{0} is what {1} is about.")
        return str(self._one(lines)).replace("{0}", str(answer)).replace("{1}", name)

    def _form(self, source: Source, pairs: dict[str, str]) -> str | None:
        for old, new in pairs.items():
            text, count = re.subn(old, new, source.text, count=1)
            if count:
                return text
        return None

    def _short(self, source: Source) -> str | None:
        words = source.text.rstrip("?").split()
        half = " ".join(words[: len(words) // 2]) + "?"
        return str(self._one((half, words[0] + "?", "?", "...", words[-1] + "?", "Which one?")))

    def _row(self, source: Source) -> str:
        others = [self._one(self._sources).text for _ in range(self._one((1, 2, 30)))]
        return " ".join([source.text, *others])

    # --- characters -----------------------------------------------------------------------------

    def _character(self, source: Source, characters: Sequence[str], *, inside: bool) -> str:
        places = [
            n for n in range(1, len(source.text)) if (source.text[n] == " ") != inside
        ]  # fmt: skip
        at = self._one(places)
        return source.text[:at] + self._one(characters) + source.text[at:]

    def _homoglyph(self, source: Source) -> str:
        alike = {"a": "а", "e": "е", "o": "о", "p": "р", "c": "с", "i": "і"}  # to Cyrillic
        found = [n for n, letter in enumerate(source.text) if letter in alike]
        at = self._one(found)
        return source.text[:at] + alike[source.text[at]] + source.text[at + 1 :]


_SYMMETRIC = frozenset({"shares border with", "sibling", "spouse", "partner of"})


def _relates(call: Call) -> bool:
    return call.function.name == "Relate"


def _unequal(source: Source) -> bool:
    calls = post_order(source.original.example.program)
    return any("!=" in call.arguments for call in calls)


def _fronted(source: Source, text: str) -> str:
    first, rest = source.text[0], source.text[1:]
    keeps = source.text.split()[0] in source.original.canonical and len(source.text.split()[0]) > 4
    return f"{text} {first if keeps else first.lower()}{rest}"


def _ended(source: Source, text: str) -> str:
    return f"{source.text.rstrip('?.! ')}{text}?"


def _without(source: Source, pattern: str) -> str | None:
    text, count = re.subn(pattern, "", source.text, count=1)
    return text if count and text.strip() else None
