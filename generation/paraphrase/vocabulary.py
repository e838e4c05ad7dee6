"""English words by what they do in a question, read from ``words.yaml``, and their stems."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import yaml  # type: ignore[import-untyped]

BUNDLED = "words.yaml"
_WORD = re.compile(r"[^\W_]+(?:['.][^\W_]+)*'?|[%$€£°‰]|[\U000f0000-\U000ffffd]")
_ENDINGS = ("ing", "ed", "es", "s")
_DOUBLED = frozenset({"ss", "ll", "ff", "zz", "ee", "oo"})


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """A word without its commonest endings, in lower case: forms of one word come out alike.

    >>> stem("discovered") == stem("discovers") == stem("discovering")
    True
    """
    word = word.lower()
    if len(word) > 3 and word.endswith("ies"):
        word = word[:-3] + ("y" if len(word) > 4 else "ie")
    elif len(word) > 3:
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= 3:
                if ending == "s" and word[-2] in "sui":
                    continue
                if ending == "es" and word[-3] not in "sxzho":
                    continue
                word = word[: -len(ending)]
                if ending in ("ing", "ed") and word[-1] == word[-2] and word[-2:] not in _DOUBLED:
                    word = word[:-1]
                break
    if len(word) > 4 and word.endswith("i"):
        word = word[:-1] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def words_in(text: str) -> list[str]:
    """The words of a text that `mentions.plain` gave; "isn't" and "non-state" are two each."""
    found = []
    for word in _WORD.findall(text.replace("n't", " not").replace("cannot", "can not")):
        base, mark, ending = word.partition("'")
        found.append(base)
        if mark and len(ending) > 2:  # "O'Brien", but not "what's"
            found.append(ending)
    return found


@dataclass(frozen=True)
class Vocabulary:
    """The words of the file: sets by their name, phrases as patterns, topics by their key's stem.

    ``directions``, ``bounding`` and ``vague`` give a direction to a word, ``forms`` a form of
    answer to a word that asks. ``topics`` has for each stem those that may stand for it.
    """

    sets: Mapping[str, frozenset[str]]
    phrases: Mapping[str, re.Pattern[str]]
    directions: Mapping[str, str]
    bounding: Mapping[str, str]
    vague: Mapping[str, str]
    forms: Mapping[str, str]
    topics: Mapping[str, frozenset[str]]
    languages: Mapping[str, frozenset[str]]

    @classmethod
    def read(cls, text: str) -> Vocabulary:
        """The vocabulary of such a file."""
        item = yaml.safe_load(text)
        sets = {name: _split(words) for name, words in item["sets"].items()}
        english = sets["functional"] | sets["filling"] | sets["kinds"] | sets["narrowing"]
        topics: dict[str, set[str]] = {}
        for keys, accepted in item["topics"].items():
            for key in keys.split():
                words = f"{keys} {accepted or ''}".split()
                topics.setdefault(stem(key), set()).update(map(stem, words))
        return cls(
            sets=sets
            | {
                "stems": frozenset(map(stem, english)),
                "kinds": frozenset(map(stem, sets["kinds"])),
                "filling": frozenset(map(stem, sets["filling"])),
                "general": frozenset(map(stem, sets["general"])),
            },
            phrases={
                name: _phrases(item[name])
                for name in ("inclusive", "even", "negating", "leads", "talk")
            },
            directions=_inverted(item["directions"]),
            bounding=item["bounding"],
            vague=_inverted(item["vague"]),
            forms=_inverted(item["forms"]),
            topics={key: frozenset(words) for key, words in topics.items()},
            languages={
                language: _split(words) - english for language, words in item["languages"].items()
            },
        )


def _split(words: str | Iterable[str]) -> frozenset[str]:
    return frozenset(words.split() if isinstance(words, str) else words)


def _inverted(item: Mapping[str, Any]) -> dict[str, str]:
    return {word: name for name, words in item.items() for word in words.split()}


def _phrases(phrases: Iterable[str]) -> re.Pattern[str]:
    longest = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    ways = (
        re.escape(one).replace(r"\*", r"[\w-]+") + (r"(?!\w)" if one[-1].isalnum() else "")
        for one in longest
    )
    return re.compile(rf"(?<!\w)(?:{'|'.join(ways)})")


@lru_cache(maxsize=1)
def vocabulary() -> Vocabulary:
    """The bundled vocabulary."""
    return Vocabulary.read(
        resources.files("generation.paraphrase").joinpath(BUNDLED).read_text("utf-8")
    )
