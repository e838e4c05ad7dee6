"""What the opening of a question asks for, and what sort of answer a program gives.

"When" wants a time, "how many" a number, "who" a name. Which opening goes with which sort is
counted over the training questions, so that nothing here is about one schema.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from kb.schema import Key, ValueType
from kopl.answer_forms import AnswerForm
from kopl.program import Call
from kopl.types import Kind, Type

# Words that ask, as they are written; of the second ones, the next word asks, too.
_ASKING = frozenset(("who", "whom", "whose", "where", "when", "why"))
_ASKING_WITH_NEXT = frozenset(("how", "which", "what"))
# Words that begin a question of yes or no.
_WONDERING = frozenset((
    "is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "can", "could", "will",
))  # fmt: skip
WONDERING = "?"
# An opening that came fewer times is known by its first word alone, or not at all.
LEAST_OPENINGS = 20
# Of a sort that never came with an opening, so many are counted as having come.
UNSEEN = 0.5
# How much more seldom a sort may be than always, as a logarithm: beyond it all are alike.
MOST_SELDOM = 6.0
# An answer of a sort that comes with an opening more seldom than this does not answer the question.
SELDOM = 0.006

_SORTS = {Type.TRUTH: "truth", Type.NUMBER: "count", Type.NAMES: "name", Type.RELATIONS: "name"}


class _Types(Protocol):
    """What tells the types of a key's values."""

    def types(self, key: Key) -> frozenset[ValueType]:
        """The types of a key's values."""


def sort_of(program: Call, form: AnswerForm | None, schema: _Types) -> str:
    """The sort of answer: truth, count, name, or the types of a key's values."""
    if form is not None:
        return "truth"
    output = program.function.output
    if output in _SORTS:
        return _SORTS[output]
    keys = [
        (text, kind is Kind.QUALIFIER_KEY)
        for (_, kind), text in zip(program.function.arguments, program.arguments, strict=False)
        if kind is (Kind.QUALIFIER_KEY if output is Type.QUALIFIER_VALUES else Kind.KEY)
    ]
    return " or ".join(sorted(schema.types(keys[0]))) if keys else "name"


def openings_of(stems: Sequence[str]) -> tuple[str, ...]:
    """How a question opens, the most telling way first: ("how many", "how"); () where not at all.

    By the stems of its words; the first word that asks counts.
    """
    words = [word for word in stems if word]
    for at, word in enumerate(words):
        if word in _ASKING:
            return (word,)
        if word in _ASKING_WITH_NEXT:
            return (f"{word} {words[at + 1]}", word) if at + 1 < len(words) else (word,)
    return (WONDERING,) if words and words[0] in _WONDERING else ()


class Openings:
    """How often each opening came with each sort of answer."""

    def __init__(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        self.counts = counts
        self._all: Counter[str] = Counter()
        for found in counts.values():
            self._all.update(found)

    @classmethod
    def of(cls, asked: Iterable[tuple[Sequence[str], str]]) -> Openings:
        """Counted over the stems of questions and the sorts of their answers."""
        counts: dict[str, Counter[str]] = {}
        for stems, sort in asked:
            for opening in openings_of(stems):
                counts.setdefault(opening, Counter())[sort] += 1
        return cls({
            opening: dict(found) for opening, found in counts.items()
            if found.total() >= LEAST_OPENINGS
        })  # fmt: skip

    def shares(self, stems: Sequence[str], sort: str) -> list[float]:
        """The shares of a sort among the answers to questions that open so.

        One for each way of opening that training had, the most telling first.
        """
        return [
            (found.get(sort, 0) + UNSEEN) / (sum(found.values()) + UNSEEN * len(self._all))
            for opening in openings_of(stems) if (found := self.counts.get(opening))
        ]  # fmt: skip

    def seldom(self, stems: Sequence[str], sort: str) -> float:
        """How seldom a sort comes with the opening, from 0 (always) to 1."""
        shares = self.shares(stems, sort)
        return min(MOST_SELDOM, -math.log(shares[0])) / MOST_SELDOM if shares else 0.0

    def contradicts(self, stems: Sequence[str], sort: str) -> bool:
        """Whether questions that open so hardly ever have such an answer.

        By all ways of opening, as "which country code" is no "which country".
        """
        shares = self.shares(stems, sort)
        return bool(shares) and max(shares) < SELDOM
