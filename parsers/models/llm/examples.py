"""Examples for a question: those whose masked words are most like its own, of several shapes.

Masked, a question has marks for its names and constants, and says the kinds of what is named, so
that "the capital of Norway" is like "the capital of Peru". Words count by how rare they are (the
cosine of tf-idf vectors, with pairs of neighbours); of those that are alike, each next one is to
differ from those that are taken, in its masked program and in its functions (maximal marginal
relevance, Carbonell and Goldstein 1998); no masked program is shown more than twice.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from random import Random
from typing import Any

from kopl.answer_forms import Asking
from kopl.example import Example
from kopl.program import Call, post_order
from kopl.text import read_nested, write_nested
from kopl.traits import names_in, renamed
from parsers.linking import Linker, Mentions, candidates, stem
from parsers.spelling import letters
from parsers.tokens import Question

# Of questions that are the same when masked, so many are kept.
ALIKE = 2
# Of one program, names left out, so many examples are shown at most.
OF_ONE = 2
# So many of the most similar are looked at, so much similarity counts beside variety.
LOOKED_AT, SIMILARITY = 60, 0.8
# How far two programs are the same that have the same functions, and no more than that.
SAME_FUNCTIONS, SOME_FUNCTIONS = 0.6, 0.4
NAME, NUMBER, YEAR = "<>", "<number>", "<year>"


@dataclass(frozen=True)
class PromptExample:
    """An example as a prompt shows it, with the words that it is found by."""

    question: str
    program: str
    asked: tuple[str, ...]
    words: tuple[str, ...]

    @cached_property
    def tree(self) -> Call:
        """The program."""
        return read_nested(self.program)

    @cached_property
    def functions(self) -> tuple[str, ...]:
        """The names of its functions, in post-order."""
        return tuple(call.function.name for call in post_order(self.tree))

    @cached_property
    def masked(self) -> str:
        """The program without what it finds."""
        return str(renamed(self.tree, dict.fromkeys(names_in(self.tree), "")))

    @property
    def asking(self) -> Asking:
        """What is asked of its denotation."""
        return Asking.of_words(self.asked)

    def to_json(self) -> dict[str, Any]:
        """A line of an index."""
        return {
            "question": self.question, "program": self.program, "asked": list(self.asked),
            "words": list(self.words),
        }  # fmt: skip

    @classmethod
    def from_json(cls, item: Any) -> PromptExample:
        """What `to_json` gave; raises KeyError, TypeError or ValueError for anything else."""
        found = cls(
            str(item["question"]), str(item["program"]), tuple(map(str, item["asked"])),
            tuple(map(str, item["words"])),
        )  # fmt: skip
        if not isinstance(item["words"], list) or not isinstance(item["asked"], list):
            raise TypeError("words are a list")
        return found


class Masker:
    """Masks questions over one knowledge base."""

    def __init__(self, linker: Linker, mentions: Mentions) -> None:
        self._linker, self._mentions = linker, mentions

    def spans(self, question: Question) -> list[tuple[int, int, tuple[str, ...]]]:
        """What a question names: first and last token, and what that may mean; no kinds."""
        found = []
        for first, last in self._mentions.of(question).names:
            meant = self._linker.names.meant(question.span(first, last))
            things = tuple(name for name in meant if self._is_thing(name))
            if things:
                found.append((first, last, things))
        return found

    def words(self, question: Question) -> tuple[str, ...]:
        """The stems of a question's words, with marks for names and constants; kinds behind."""
        spans = {first: (last, things[0]) for first, last, things in self.spans(question)}
        numbers, times = question.copyable("quantity"), question.copyable("time")
        found: list[str] = []
        kinds: dict[str, None] = {}
        at = 0
        while at < len(question.words):
            last, name = spans.get(at, (at, ""))
            word = question.words[at]
            if name:
                found.append(NAME)
                kinds |= dict.fromkeys(self._kinds(name))
            elif at in numbers:
                found.append(YEAR if at in times and len(word) == 4 else NUMBER)
            else:
                found.append(stem(letters(word)))
            at = last + 1
        return (*filter(None, found), *(f"<{kind}>" for kind in kinds))

    def nearest(self, word: str) -> tuple[str, ...]:
        """The name that a misspelt one may stand for; none where there are no names."""
        return self._linker.names.meant(word)[:1]

    def candidates(self, question: str, most: int) -> list[str]:
        """The names that a program for a question may find, at most so many."""
        return candidates(self._linker, question, most)

    def _is_thing(self, name: str) -> bool:
        """Whether a name is that of a thing, and not of kinds alone."""
        kb = self._linker.kb
        return any(kb.is_entity(node) for node in kb.named(name).tolist())

    def _kinds(self, name: str) -> list[str]:
        """All kinds of the first thing that has a name; none of a kind, or where there is none."""
        kb = self._linker.kb
        first = next((node for node in kb.named(name).tolist() if kb.is_entity(node)), None)
        return [] if first is None else [kb.name_of(one) for one in kb.all_concepts_of(first)]


def shown(example: Example, masker: Masker) -> PromptExample:
    """An example as it is kept in an index."""
    words = masker.words(Question.of(example.question))
    return PromptExample(
        example.question, write_nested(example.program), example.asking.words, words
    )


def distinct(examples: Iterable[PromptExample]) -> Iterator[PromptExample]:
    """The examples but those that say the same as others, names left out."""
    seen: Counter[tuple[tuple[str, ...], str]] = Counter()
    for one in examples:
        key = one.words, one.masked
        seen[key] += 1
        if seen[key] <= ALIKE:
            yield one


class ExampleIndex:
    """Examples, found by words."""

    def __init__(self, examples: Sequence[PromptExample]) -> None:
        self.examples = list(examples)
        counts = [Counter(_features(one.words)) for one in self.examples]
        had = Counter(feature for count in counts for feature in count)
        self._rarity = {
            feature: math.log((1 + len(counts)) / number) for feature, number in had.items()
        }
        self._found_by: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for number, count in enumerate(counts):
            for feature, weight in self._vector(count).items():
                self._found_by[feature].append((number, weight))

    def _vector(self, counts: Counter[str]) -> dict[str, float]:
        """The tf-idf vector of a text, of length 1; what is known of no example counts nothing."""
        found = {
            feature: (1 + math.log(number)) * self._rarity[feature]
            for feature, number in counts.items()
            if feature in self._rarity
        }
        length = math.sqrt(sum(weight * weight for weight in found.values()))
        return {feature: weight / length for feature, weight in found.items()} if length else {}

    def like(self, words: Sequence[str], count: int) -> list[PromptExample]:
        """So many examples for a question of such masked words, the best first."""
        scores: dict[int, float] = defaultdict(float)
        for feature, weight in self._vector(Counter(_features(words))).items():
            for number, own in self._found_by.get(feature, ()):
                scores[number] += weight * own
        best = sorted(scores, key=lambda number: (-scores[number], number))[:LOOKED_AT]
        left = [(self.examples[number], scores[number]) for number in best]
        taken: list[PromptExample] = []
        shown: Counter[str] = Counter()
        while left and len(taken) < count:
            at = max(range(len(left)), key=lambda at: (_worth(*left[at], taken), -at))
            one, _ = left.pop(at)
            taken.append(one)
            shown[one.masked] += 1
            if shown[one.masked] == OF_ONE:
                left = [(other, score) for other, score in left if other.masked != one.masked]
        return taken

    def sample(self, count: int, seed: int) -> list[PromptExample]:
        """So many examples by chance, the same for all questions."""
        return Random(f"examples {seed}").sample(self.examples, min(count, len(self.examples)))


def _features(words: Sequence[str]) -> list[str]:
    """The words with their pairs; kinds stand behind the question and are in no pair."""
    said = [word for word in words if word in (NAME, NUMBER, YEAR) or word[:1] != "<"]
    return [*words, *(f"{one} {other}" for one, other in pairwise(said))]


def _worth(one: PromptExample, score: float, taken: Sequence[PromptExample]) -> float:
    known = max((_sameness(one, other) for other in taken), default=0.0)
    return SIMILARITY * score - (1 - SIMILARITY) * known


def _sameness(one: PromptExample, other: PromptExample) -> float:
    """How far two programs are the same but for what they find, from 0 to 1."""
    if one.masked == other.masked:
        return 1.0
    if one.functions == other.functions:
        return SAME_FUNCTIONS
    here, there = Counter(one.functions), Counter(other.functions)
    return SOME_FUNCTIONS * (here & there).total() / max(1, (here | there).total())
