"""What a question says and its program does not: years, names, numbers, a second question."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence, Set
from typing import Protocol

from kopl.program import Call, post_order
from kopl.traits import names_in
from parsers.linking import Linker
from parsers.refusals.wording import ASKED, Wording, schema_items, stems, stems_called
from parsers.tokens import Question


class _Name(Protocol):
    name: str


class Reading(Protocol):
    """What is known of a question and of its program: as asked and as read, names, numbers."""

    question: Question
    written: Question
    program: Call | None
    named: set[int]
    values: dict[str, float]

    @property
    def names(self) -> Sequence[_Name]:
        """The names of the program."""


_YEAR = re.compile(r"1\d{3}|20\d{2}")
_NUMBER = re.compile(r"(?<![\w.,-])\d[\d,.]*")
_NOT = re.compile(r"\b(?:not|never|except|(?:do|does|did|is|are|was|were|have|has)n['’]?t)\b", re.I)
# "The second largest": no program says another than the first.
_ORDINAL = re.compile(
    r"\b(?:second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|\d+(?:nd|rd|th))"
    r"(?=[- ](?:\w{2,}est|most|least)\b)",
    re.I,
)
# Questions that begin so ask whether something is, or say "don't you know".
_WONDERS = re.compile(
    r"\W*(?:(?:is|are|was|were|do|does|did|has|have|can|could)(?:n['’]?t)?|why)\b", re.I
)
# A second question behind the first: "… and who is its king", "…? And of Chile?"
_AGAIN = re.compile(
    r"(?:\band|[?;])\W+(?:and\W+)?(?:what|who|whose|when|where|how)\b|\?\W*and\b", re.I
)
_FIRST = re.compile(r"\W*(?:\w+\W+)?")
# What stands between two names of a row, and in front of what stands beside something.
_BESIDE = frozenset(("and", ",", "&", "or", "both", "as", "well", "also", "the", "in", "of"))
_SMALL = frozenset(("the", "its", "hi", "their", "thi", "also", "what"))
# A word goes with an item so surely that it asks for that.
SURELY = 0.5
# A word that training has so often outside of names is one, even where something is called so.
EVERYDAY = 8


def left_out(found: Reading, covered: Collection[int]) -> list[str]:
    """The years, ordinals and the "not" of a question that its program does not say.

    A year is that of a date, too; in a question of yes or no a "not" only wonders.
    """
    question, program = found.question, found.program
    if program is None:
        return []
    calls = list(post_order(program))
    texts = " ".join(text for call in calls for text in call.arguments)
    left = [
        word for at, word in enumerate(question.words)
        if _YEAR.fullmatch(word) and at not in covered and at not in found.named
        and word not in texts
    ]  # fmt: skip
    left += _ORDINAL.findall(found.written.text)
    negated = _NOT.search(found.written.text)
    is_said = any("!=" in call.arguments for call in calls)
    is_wondering = found.values["truth"] or _WONDERS.match(found.written.text)
    if negated and not is_said and not is_wondering:
        left.append(negated[0])
    return left


def unused_names(
    found: Reading, covered: Set[int], spans: Sequence[tuple[int, int]], linker: Linker,
    wording: Wording,
) -> list[tuple[int, int]]:  # fmt: skip
    """The names of entities that a question says and its program does not: first and last tokens.

    ``spans`` are those that may be names. Everyday words without a capital are none, nor are those
    that say a relation, key or concept of the program.
    """
    question, program = found.question, found.program
    if program is None:
        return []
    items = schema_items(program)
    said = {word for _, text in items for word in stems_called(text)}
    used = {*names_in(program), *(one.name for one in found.names)}
    every = stems(question)
    unused = []
    for first, last in spans:
        places = range(first, last + 1)
        words = [every[at] for at in places if every[at].isalpha()]
        if not words or not covered.isdisjoint(places):
            continue
        shouts = question.text.isupper()
        is_cased = any(at and question.words[at][:1].isupper() for at in places) and not shouts
        if not is_cased and all(wording.counts.get(word, 0) >= EVERYDAY for word in words):
            continue
        telling = {item for word in words for item, _ in wording.telling(word)}
        if not telling.isdisjoint(items) or not said.isdisjoint(words):
            continue
        meant = linker.names.meant(question.span(first, last))
        nodes = (int(node) for name in meant for node in linker.kb.named(name))
        if used.isdisjoint(meant) and any(map(linker.kb.is_entity, nodes)):
            unused.append((first, last))
    return unused


def stands_beside(span: tuple[int, int], question: Question, covered: Collection[int]) -> bool:
    """Whether a name stands beside one that is used: "Turkey and Iran", "Chad, Niger"."""
    words = [word.lower() for word in question.words]
    first, last = span
    before, behind = first - 1, last + 1
    while before >= 0 and words[before] in _BESIDE:
        before -= 1
    while behind < len(words) and words[behind] in _BESIDE:
        behind += 1
    is_behind = before < first - 1 and before in covered
    return is_behind or (behind > last + 1 and behind in covered)


def items_beside(found: Reading, wording: Wording) -> int:
    """How often something that is asked stands beside another of which the program has but one.

    "What is the capital and the population of Norway?"
    """
    if found.program is None:
        return 0
    every, items = stems(found.question), set(schema_items(found.program))
    told = [
        {
            item
            for item, share in wording.telling(word)
            if item[0] in ASKED and (share >= SURELY or stems_called(item[1]) == (word,))
        }
        for word in every
    ]
    count = 0
    for at, word in enumerate(every):
        if word == "and" and at:
            behind = next(
                (
                    t
                    for w, t in zip(every[at + 1 :], told[at + 1 :], strict=True)
                    if w not in _SMALL
                ),
                set(),
            )
            sides = [told[at - 1], behind]
            used = [not side.isdisjoint(items) for side in sides]
            count += all(sides) and used[0] != used[1]
    return count


def unused_numbers(found: Reading, covered: Collection[int]) -> list[str]:
    """The numbers of a question that its program does not say, years left out.

    Commas, zeros and points aside, as a program says 2.3 million in digits.
    """
    question, program = found.question, found.program
    if program is None:
        return []
    texts = " ".join(text for call in post_order(program) for text in call.arguments)
    said = {_digits(number) for number in re.findall(r"\d[\d,.]*", texts)}
    told = {question.places[at][0] for at in (*covered, *found.named)}
    return [
        match[0] for match in _NUMBER.finditer(question.text)
        if match.start() not in told and not _YEAR.fullmatch(match[0])
        and _digits(match[0]) not in said
    ]  # fmt: skip


def _digits(number: str) -> str:
    return re.sub(r"[.,]", "", number).strip("0")


def asks_again(question: Question) -> bool:
    """Whether a second question follows behind the first."""
    text = question.text.rstrip(" ?!.")
    first = _FIRST.match(text)
    return bool(_AGAIN.search(text, first.end() if first else 0))
