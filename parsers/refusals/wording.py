"""Which words of questions go with which schema items, by the training questions, and which names.

A network gives a probability to whatever it is asked. Counts tell more plainly whether training had
a word at all, and whether the program has what the word went with. A word that training lacked may
be one of a name.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from kb import KnowledgeBase
from kb.store import NODES
from kopl.automaton import ITEMS
from kopl.example import Example
from kopl.program import Call, post_order
from kopl.traits import names_in
from kopl.types import Kind
from parsers.linking import Linker, Mentions, stem
from parsers.refusals.openings import Openings, sort_of
from parsers.spelling import letters
from parsers.tokens import Question

# A word that came fewer times tells of no item; of more items than this it tells nothing either.
LEAST_COUNT, MOST_ITEMS = 2, 6
# An item goes with a word from so large a share of its questions on, and so much more often than
# in all questions.
LEAST_SHARE, LEAST_LIFT = 0.08, 2.0
# The most frequent words of the training questions, by which a language is known.
COMMON = 150
# Questions that are counted, at most.
MOST_QUESTIONS = 20_000

Item = tuple[str, str]
# Of the items, those that say what is asked of a thing: relations and keys.
ASKED = (ITEMS[Kind.RELATION], ITEMS[Kind.KEY])


def items_of(program: Call) -> list[Item]:
    """The schema items and functions of a program, each once: (kind, text)."""
    found: dict[Item, None] = {}
    for call in post_order(program):
        found[("function", call.function.name)] = None
        for (_, kind), text in zip(call.function.arguments, call.arguments, strict=False):
            if kind in ITEMS:
                found[(ITEMS[kind], text)] = None
            elif kind.choices:
                found[(kind.name.lower(), text)] = None
    return list(found)


def schema_items(program: Call) -> list[Item]:
    """The schema items of a program, without functions and choices."""
    kinds = set(ITEMS.values())
    return [item for item in items_of(program) if item[0] in kinds]


def asked_items(program: Call) -> list[str]:
    """The relations and keys of a program, each once."""
    return [text for kind, text in schema_items(program) if kind in ASKED]


def stems(question: Question) -> list[str]:
    """The stem of each token; "" for marks."""
    return [stem(letters(word)) for word in question.words]


@lru_cache(maxsize=50_000)
def stems_called(item: str) -> tuple[str, ...]:
    """The same of what a schema item is called."""
    return tuple(stems(Question.of(item)))


@dataclass
class Wording:
    """How often training had each word, and the items that each goes with.

    ``counts`` are by stems outside of names, ``begins`` by the first stem of a question;
    ``items`` are shares from 0 to 1: of the questions with the word, so many have the item.
    ``base``: the share of all questions that have the item. ``openings``: what questions that
    open in some way have for answers.
    """

    questions: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    begins: Mapping[str, int] = field(default_factory=dict)
    items: Mapping[str, Sequence[tuple[Item, float]]] = field(default_factory=dict)
    base: Mapping[Item, float] = field(default_factory=dict)
    scripts: frozenset[str] = frozenset()
    openings: Openings = field(default_factory=lambda: Openings({}))

    def __post_init__(self) -> None:
        ranked = sorted(self.counts, key=lambda word: (-self.counts[word], word))
        self.common = frozenset(ranked[:COMMON])

    @classmethod
    def of(cls, examples: Iterable[Example], linker: Linker) -> Wording:
        """Counted over questions, names left out."""
        mentions = Mentions([], linker)
        counts: Counter[str] = Counter()
        begins: Counter[str] = Counter()
        base: Counter[Item] = Counter()
        both: dict[str, Counter[Item]] = {}
        scripts: Counter[str] = Counter()
        asked: list[tuple[Sequence[str], str]] = []
        total = 0
        for example in examples:
            if total == MOST_QUESTIONS:
                break
            total += 1
            question = Question.of(example.question)
            named = _named(question, example.program, mentions, linker)
            found = stems(question)
            own = [word for at, word in enumerate(found) if word and at not in named]
            sort = sort_of(example.program, example.answer_form, linker.schema)
            asked.append((found, sort))
            scripts.update(script(letter) for word in own for letter in word[:1])
            begins[next(filter(None, found), "")] += 1
            items = items_of(example.program)
            base.update(items)
            for word in dict.fromkeys(own):
                counts[word] += 1
                both.setdefault(word, Counter()).update(items)
        shares = {item: count / total for item, count in base.items()}
        return cls(
            total, dict(counts), {w: n for w, n in begins.items() if n > 1},
            {word: _telling(counts[word], both[word], shares) for word in counts
             if counts[word] >= LEAST_COUNT},
            shares, frozenset(name for name, count in scripts.items() if count > total / 1000),
            Openings.of(asked),
        )  # fmt: skip

    def knows(self, word: str) -> bool:
        """Whether training had a word outside of names, more than once."""
        return self.counts.get(word, 0) >= LEAST_COUNT

    def telling(self, word: str) -> Sequence[tuple[Item, float]]:
        """The items that a word goes with, each with its share."""
        return self.items.get(word, ())

    def support(self, item: Item, words: Iterable[str]) -> float:
        """How surely some word of a question says an item, from 0 to 1."""
        return max((share for word in words for one, share in self.telling(word) if one == item),
                   default=0.0)  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """The counts as plain values."""
        items = list(self.base)
        number = {item: at for at, item in enumerate(items)}
        return {
            "questions": self.questions,
            "scripts": sorted(self.scripts),
            "items": [[*item, round(self.base[item], 6)] for item in items],
            "begins": dict(self.begins),
            "openings": {text: dict(found) for text, found in self.openings.counts.items()},
            "words": {
                word: [count, *([number[item], round(share, 3)] for item, share in
                                self.items.get(word, ()))]
                for word, count in self.counts.items()
            },
        }  # fmt: skip

    @classmethod
    def from_json(cls, read: Mapping[str, Any]) -> Wording:
        """What `to_json` gave; raises KeyError, TypeError, ValueError or IndexError."""
        entries = [((str(kind), str(text)), float(share)) for kind, text, share in read["items"]]
        items = [item for item, _ in entries]
        words: dict[str, list[Any]] = read["words"]
        return cls(
            int(read["questions"]),
            {word: int(found[0]) for word, found in words.items()},
            {str(word): int(count) for word, count in read["begins"].items()},
            {
                word: [(items[at], float(share)) for at, share in found[1:]]
                for word, found in words.items() if len(found) > 1
            },
            dict(entries),
            frozenset(map(str, read["scripts"])),
            Openings({
                str(opening): {str(sort): int(count) for sort, count in found.items()}
                for opening, found in read["openings"].items()
            }),
        )  # fmt: skip


def _telling(
    count: int, found: Counter[Item], base: Mapping[Item, float]
) -> list[tuple[Item, float]]:
    """The items that come often with a word and seldom without it, the surest first."""
    shares = [(item, own / (count + 1)) for item, own in found.items()]
    kept = [
        (item, share) for item, share in shares
        if share >= LEAST_SHARE and share >= LEAST_LIFT * base[item]
    ]  # fmt: skip
    return sorted(kept, key=lambda one: (-one[1], one[0]))[:MOST_ITEMS]


def _named(
    question: Question, program: Call, mentions: Mentions, linker: Linker
) -> set[int]:  # fmt: skip
    """The tokens that say names of the program."""
    names = set(names_in(program))
    return {
        at
        for first, last in mentions.of(question).names
        if not names.isdisjoint(linker.names.meant(question.span(first, last)))
        for at in range(first, last + 1)
    }


def script(letter: str) -> str:
    """The writing system of a letter, roughly: the block of 128 characters that it lies in.

    Latin letters with marks count as Latin.
    """
    return "latin" if ord(letter) < 0x250 else str(ord(letter) >> 7)


class _Words(NamedTuple):
    """By stems: the numbers of the texts that have a word, and whether one begins it small."""

    having: Mapping[str, Sequence[int]]
    small: Mapping[str, bool]


class WordsOfNames:
    """The words of all names and aliases, by their stems; a hyphen parts them."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb

    def prepare(self) -> None:
        """Make what is made once, which the first question that needs it would wait for."""
        _ = self._words

    @cached_property
    def _texts(self) -> list[str]:
        return self._kb.comparable(NODES).names

    @cached_property
    def _words(self) -> _Words:
        # Most words come often: each is stemmed once.
        stems: dict[str, str] = {}
        having: dict[str, array[int]] = {}
        small: dict[str, bool] = {}
        for number, text in enumerate(self._texts):
            for word in {*_parts(text)}:
                key = stems.get(word)
                if key is None:
                    key = stems[word] = stem(letters(word))
                    having.setdefault(key, array("l"))
                    small[key] = small.get(key, False) or word[:1].islower()
                having[key].append(number)
        return _Words(having, small)

    @property
    def begin_small(self) -> Mapping[str, bool]:
        """The stems of all words, each with whether one of them begins with a small letter."""
        return self._words.small

    def have(self, text: str) -> bool:
        """Whether some name or alias has all words of a text."""
        wanted = {stem(letters(word)) for word in _parts(text)}
        if not wanted:
            return bool(self._texts)
        having = sorted((self._words.having.get(word, ()) for word in wanted), key=len)
        both = set(having[0]).intersection(*having[1:])
        begins = [word[:3] for word in wanted]
        return any(
            all(begin in lowered for begin in begins)
            for lowered in (self._texts[number].lower() for number in both)
        )


def _parts(text: str) -> list[str]:
    return text.replace("-", " ").split()
