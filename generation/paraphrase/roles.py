"""Whether names stand in each other's places, by the words that stand beside each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from generation.paraphrase.mentions import Mention, mark, plain
from generation.paraphrase.vocabulary import stem, vocabulary, words_in
from kopl.program import Call, post_order
from kopl.types import Kind

# Functions whose operands may stand in any order.
_UNORDERED = frozenset({"And", "Or", "SelectBetween"})
_WHAT_TO = re.compile(
    r"(?:what|who)(?:'s| is| was| are) (?!.*\b(?:relat|link|connect|from\b|between\b)).*\bto\b"
)
_REACH = 4  # words to each side
# What exchanging must gain to be believed, and to be doubted.
CERTAIN, DOUBTFUL = 0.6, 0.45
# Where the program joins two in a given order, so much has to speak for their places.
TELLING = -0.35

Context = dict[str, float]


class Roles:
    """The places of names and values in the wordings of a program's question."""

    def __init__(self, program: Call, needed: Sequence[Mention], wordings: Sequence[str]) -> None:
        self._needed = needed
        self._asks_relation = program.function.name == "QueryRelation"
        self._pairs = [
            pair
            for pair in combinations(range(len(needed)), 2)
            if _exchangeable(program, needed, *pair)
        ]
        self._ordered = {pair for pair in self._pairs if _joined_in_order(program, needed, *pair)}
        marks = [mark(n) for n in range(len(needed))]
        self._marks = marks
        self._contexts = [_contexts(text, marks) for text in wordings] if self._pairs else []

    def exchanged(self, masked: str) -> Iterator[tuple[str, bool]]:
        """Pairs that stand in each other's places in a masked text, each with how sure that is."""
        if not self._pairs:
            return
        found = _contexts(masked, self._marks)
        if self._asks_relation and _WHAT_TO.match(masked):
            # "What is Oslo to Norway?" asks for the relation from Norway.
            for context in found.values():
                if "-1 to" in context:
                    context["-1 from"] = context.pop("-1 to")
        for a, b in self._pairs:
            one, other = self._marks[a], self._marks[b]
            if one not in found or other not in found:
                continue
            gain = min(
                (
                    _gain(found[one], found[other], own[one], own[other])
                    for own in self._contexts
                    if one in own and other in own
                ),
                default=TELLING,
            )
            if gain > (TELLING if (a, b) in self._ordered else DOUBTFUL):
                yield f"{self._needed[a].text}, {self._needed[b].text}", gain > CERTAIN


def _contexts(text: str, marks: Sequence[str]) -> dict[str, Context]:
    words, sets = words_in(text), vocabulary().sets
    found: dict[str, Context] = {}
    for place, word in enumerate(words):
        if word not in marks or word in found:
            continue
        context: Context = {}
        for step in (-1, 1):
            distance = 0
            for at in range(place + step, place + step * (2 * _REACH), step):
                if not 0 <= at < len(words) or distance >= _REACH:
                    break
                beside = words[at]
                if beside in sets["articles"]:
                    continue
                if step < 0 and not distance and stem(beside) in sets["kinds"]:
                    context[stem(beside)] = 0.5  # "of the river Sutlej" is "of the Sutlej", too
                    continue
                distance += 1
                if beside in marks:
                    break
                if beside in sets["agents"] and distance == 1 and step < 0:
                    context["agent"] = 0.75
                if beside in sets["prepositions"]:
                    key = f"{step} {beside}"
                    weight = 0.5 if distance == 1 else 0.0
                else:
                    key, weight = stem(beside), 1 / distance
                if weight:
                    context[key] = max(weight, context.get(key, 0.0))
        found[word] = context
    return found


def _gain(one: Context, other: Context, own_one: Context, own_other: Context) -> float:
    """How much better two contexts go with those of the question when they are exchanged."""
    # What stands beside both, as the verb between them, tells nothing of either.
    one, other = _without_common(one, other)
    own_one, own_other = _without_common(own_one, own_other)
    exchanged = _alike(one, own_other) + _alike(other, own_one)
    return exchanged - _alike(one, own_one) - _alike(other, own_other)


def _without_common(one: Context, other: Context) -> tuple[Context, Context]:
    common = one.keys() & other.keys()
    return (
        {key: weight for key, weight in one.items() if key not in common},
        {key: weight for key, weight in other.items() if key not in common},
    )


def _alike(one: Context, other: Context) -> float:
    return sum(min(weight, other[key]) for key, weight in one.items() if key in other)


# --- which may be exchanged ---------------------------------------------------------------------


def _exchangeable(program: Call, needed: Sequence[Mention], a: int, b: int) -> bool:
    """Whether two mentions are of one kind, and the program is another one with them exchanged."""
    one, other = plain(needed[a].text), plain(needed[b].text)
    kinds: dict[str, set[Kind]] = {one: set(), other: set()}
    for call in post_order(program):
        for (_, kind), text in zip(call.function.arguments, call.arguments, strict=True):
            if plain(text) in kinds:
                kinds[plain(text)].add(kind)
    if not kinds[one] & kinds[other]:
        return False
    return _written(program, {}) != _written(program, {one: other, other: one})


def _joined_in_order(program: Call, needed: Sequence[Mention], a: int, b: int) -> bool:
    """Whether the call that brings two mentions together has its operands in a given order."""
    one, other = plain(needed[a].text), plain(needed[b].text)
    if any(c.isdigit() for c in one[:1] + other[:1]):  # values have no role but beside their key
        return False
    found = program
    for call in post_order(program):  # the operands come first: the smallest is found first
        texts = {plain(text) for part in post_order(call) for text in part.arguments}
        if one in texts and other in texts:
            found = call
            break
    return found.function.name not in _UNORDERED


def _written(call: Call, turned: dict[str, str]) -> str:
    """A program as text, operands of no order sorted, with some arguments exchanged."""
    inputs = [_written(one, turned) for one in call.inputs]
    if call.function.name in _UNORDERED:
        inputs.sort()
    texts = [turned.get(plain(text), plain(text)) for text in call.arguments]
    return f"{call.function.name}({'; '.join([*inputs, *texts])})"
