"""Whether a paraphrase asks what its question asks: comparisons, negations, conditions, names.

Everything is compared by words, with the program as the judge of what must be said: how many
comparisons there are and in which direction, what is negated, which keys and relations are spoken
of. Some of what is found is certain, some is a doubt: an unknown word may stand for a lost one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from generation.paraphrase.mentions import Mention, mark, marked, plain, unit_words
from generation.paraphrase.roles import Roles
from generation.paraphrase.vocabulary import Vocabulary, stem, vocabulary, words_in
from kopl.program import Call, post_order
from kopl.types import Kind

OPPOSITE = {"more": "less", "less": "more", "after": "before", "before": "after"}
# What is said of times may be said as of numbers: "later than 2015", "greater than 2015".
_ALIKE = {"more": "after", "less": "before", "after": "more", "before": "less"}
_DIRECTIONS = {
    ">": "more", "<": "less", "greater": "more", "less": "less", "largest": "more",
    "smallest": "less",
}  # fmt: skip
_TIMES = {"more": "after", "less": "before"}
_NEAR = 4  # words between a comparison and its value
_FIGURES = re.compile(r"(?<!\w)\d+(?:[.,]\d+)*")
_CAPITALS = re.compile(r"(?<![.?!:]\s)(?<!^)\b[A-Z][\w'’-]*")


class Finding(NamedTuple):
    """Why a paraphrase is rejected or doubted: a reason that is counted, and what it is about."""

    reason: str
    about: str = ""


@dataclass(frozen=True)
class Unit:
    """A key, relation or concept of a program, and for each of its telling words those that say it.

    ``asked``: it is what the question asks for. ``lexical``: the telling words of a lexicon.
    ``named``: it tells one thing of a name from others, as "Rome, the capital".
    """

    text: str
    kind: Kind
    asked: bool
    accepted: Mapping[str, frozenset[str]]
    lexical: frozenset[str] = frozenset()
    named: bool = False

    def is_said(self, stems: Iterable[str]) -> bool:
        """Whether one of these words says it."""
        said = list(stems)
        return not self.accepted or any(
            one in self.lexical
            or any(one in accepted or _near(one, (own,)) for own, accepted in self.accepted.items())
            for one in said
        )

    def is_half_said(self, stems: Iterable[str]) -> bool:
        """Whether one of its telling words is not said, although it is said."""
        said = list(stems)
        return not any(one in self.lexical for one in said) and not all(
            any(one in accepted or _near(one, (own,)) for one in said)
            for own, accepted in self.accepted.items()
        )


_SAID = frozenset({Kind.KEY, Kind.RELATION, Kind.CONCEPT, Kind.QUALIFIER_KEY})
_ASKING = frozenset({Kind.KEY, Kind.RELATION, Kind.QUALIFIER_KEY})
_COMPARING = frozenset({Kind.OPERATOR, Kind.COMPARATIVE, Kind.EXTREME})


class Meaning:
    """What the wordings of a question have to say, and what a text says otherwise.

    ``wordings`` are right ones, the canonical question first; ``lexicon`` gives all that is known
    to say a key, relation or concept.
    """

    def __init__(
        self, program: Call, needed: Sequence[Mention], wordings: Sequence[str],
        lexicon: Callable[[Kind, str], str] = lambda kind, name: "",
    ) -> None:  # fmt: skip
        self._program, self._needed = program, needed
        self._words: Vocabulary = vocabulary()
        self._lexicon = lexicon
        self._values = frozenset(
            mark(n) for n, mention in enumerate(needed) if any(c.isdigit() for c in mention.text)
        )
        self._wordings = [marked(needed, text) for text in wordings]
        calls = list(post_order(program))
        self._functions = {call.function.name for call in calls}
        asking = _asking(program)
        self._units = [unit for call in calls for unit in self._of_call(call, call is asking)]
        units = (way for one in needed if " " in one.text for way in sorted(unit_words(one.text)))
        texts = [*wordings, *units, *(text for call in calls for text in call.arguments)]
        self._text = plain(" ".join(texts))
        self._own = frozenset(words_in(self._text))
        own = {stem(word) for word in self._own}
        accepted = {one for word in own for one in self._words.topics.get(word, ())}
        accepted |= {one for unit in self._units for one in unit.lexical}
        self._stems = frozenset(own)
        self._accepted = frozenset(own | accepted)
        self._roles = Roles(program, needed, self._wordings)

    def findings(self, text: str, masked: str) -> Iterator[tuple[Finding, bool]]:
        """What a text says otherwise, each with whether that is certain.

        ``masked`` is the text as `mentions.marked` has it.
        """
        words = words_in(masked)
        yield from self._negations(masked, words)
        yield from self._comparisons(masked, words)
        yield from self._added(text, masked, words)
        yield from self._lost(words)
        for names, sure in self._roles.exchanged(masked):
            yield Finding("names in each other's places", names), sure

    # --- what the program says ------------------------------------------------------------------

    def _of_call(self, call: Call, asking: bool) -> Iterator[Unit]:
        for (_, kind), text in zip(call.function.arguments, call.arguments, strict=True):
            if kind not in _SAID:
                continue
            # Where a qualifier's value stands beside its key, the other key is asked for.
            asked = asking and (kind is not Kind.QUALIFIER_KEY or call.arguments[-1] == text)
            if kind is Kind.KEY and call.arguments[-1] != text:
                asked = asking and call.function.name != "QueryAttrQualifier"
            sets = self._words.sets
            words = [w for w in words_in(plain(text)) if w not in sets["functional"]]
            telling = [w for w in words if stem(w) not in sets["general"]] or words
            own = dict.fromkeys(map(stem, telling))
            further = words_in(plain(self._lexicon(kind, text)))
            lexical = frozenset(
                stem(word)
                for word in further
                if word not in sets["functional"] and stem(word) not in sets["general"]
                and word not in self._words.directions
            )  # fmt: skip
            accepted = {w: self._words.topics.get(w, frozenset()) | {w} for w in own}
            named = kind is Kind.CONCEPT and call.inputs[0].function.name == "Find"
            yield Unit(text, kind, asked, accepted, lexical - frozenset(own), named)

    @cached_property
    def _expected(self) -> Counter[str]:
        """How often each direction has to be said."""
        found: Counter[str] = Counter()
        for call in post_order(self._program):
            for (_, kind), text in zip(call.function.arguments, call.arguments, strict=True):
                if kind in _COMPARING and (direction := _DIRECTIONS.get(text)):
                    timed = call.function.name.endswith(("Year", "Date"))
                    found[_TIMES[direction] if timed else direction] += 1
        return found

    @cached_property
    def _unequal(self) -> int:
        """How often something is said to be other than a value."""
        return sum("!=" in call.arguments for call in post_order(self._program))

    @cached_property
    def _free(self) -> Counter[str]:
        """Words that compare or negate and belong to a name, as "the highest point"."""
        return Counter(word for unit in self._units for word in words_in(plain(unit.text)))

    @cached_property
    def _denying(self) -> Counter[str]:
        """The negations in what a lexicon says of names: "without access to the sea"."""
        return Counter(
            word
            for unit in self._units
            for word in set(words_in(plain(self._lexicon(unit.kind, unit.text))))
            if word in self._words.sets["negations"]
        )

    # --- negations ------------------------------------------------------------------------------

    def _negations(self, masked: str, words: Sequence[str]) -> Iterator[tuple[Finding, bool]]:
        rest = self._words.phrases["even"].sub(" ", masked)
        rest = self._words.phrases["inclusive"].sub(" ", rest)
        found = [one[0] for one in self._words.phrases["negating"].finditer(rest)]
        rest = self._words.phrases["negating"].sub(" ", rest)
        free = self._free["not"] + self._free["non"] + self._free["no"]
        lexical = self._denying.copy()
        for word in words_in(rest):
            if word in self._words.sets["negations"]:
                if word == "non" and free:
                    continue
                if lexical[word] and not self._free[word]:
                    lexical[word] -= 1
                    continue
                found.append(word)
            elif word not in self._own and _negated(word, self._stems, self._words):
                found.append(word)
        expected = self._unequal + free
        if len(found) > expected and not expected:
            yield Finding("a negation is added", found[0]), True
        elif len(found) < self._unequal:
            yield Finding("a negation is lost"), True
        elif len(found) > expected:
            yield Finding("more negations than in the question", ", ".join(found)), False

    # --- comparisons ----------------------------------------------------------------------------

    def _comparisons(self, masked: str, words: Sequence[str]) -> Iterator[tuple[Finding, bool]]:
        expected = self._expected.copy()
        found, bounds, vague, inclusive = self._compared(masked)
        if inclusive:
            yield Finding("the bound itself is taken in", inclusive), True
        same = expected & found
        expected, found = expected - same, found - same
        for direction in list(expected):
            other = _ALIKE[direction]
            both = min(expected[direction], found[other])
            expected[direction] -= both
            found[other] -= both
        expected, found = +expected, +found
        for direction in expected:
            opposite = OPPOSITE[direction]
            if found[opposite] or found[_ALIKE[opposite]]:
                about = f"{direction} was asked, {opposite} is said"
                yield Finding("a comparison goes the other way", about), True
            elif not vague[_NUMERIC[direction]]:
                yield Finding("a comparison is lost", direction), False
            elif vague[_NUMERIC[opposite]]:
                yield Finding("a comparison may go the other way", direction), False
        if not expected and found:
            extra = next(iter(found))
            known = self._expected[extra] or self._expected[_ALIKE[extra]]
            if not known:
                yield Finding("a comparison is added", bounds.get(extra, extra)), True

    def _compared(self, masked: str) -> tuple[Counter[str], dict[str, str], Counter[str], str]:
        """Directions that are said, each with a word; those said vaguely; what takes a bound in."""
        found: Counter[str] = Counter()
        said: dict[str, str] = {}
        vague: Counter[str] = Counter()
        rest = self._words.phrases["even"].sub(" ", masked)
        inclusive = ""
        for phrase in self._words.phrases["inclusive"].findall(rest):
            inclusive = phrase
        rest = self._words.phrases["inclusive"].sub(" ", rest)
        words = words_in(rest)
        free = self._free.copy()
        for place, word in enumerate(words):
            following = words[place + 1 : place + 2]
            if free[word] > 0 and (word in self._words.directions):
                free[word] -= 1
                continue
            if word in self._words.bounding:
                direction = self._words.bounding[word] if self._is_value(following) else ""
            elif word in self._words.sets["before_values"] and not any(
                self._is_value([one]) for one in words[place + 1 : place + 1 + _NEAR]
            ):
                direction = ""
            else:
                direction = self._words.directions.get(word, "")
            if direction in ("older", "younger"):
                timed = self._expected["before"] + self._expected["after"]
                turned = {"older": "before", "younger": "after"} if timed else {}
                direction = turned.get(direction, "more" if direction == "older" else "less")
            if direction == "more" and word in ("more", "most") and following:
                turned_by = self._words.vague.get(following[0]) or self._words.directions.get(
                    following[0]
                )
                if turned_by == "less":
                    continue
            if direction:
                found[direction] += 1
                said.setdefault(direction, word)
            elif one := self._words.vague.get(word):
                vague[one] += 1
        return found, said, vague, inclusive

    def _is_value(self, words: Sequence[str]) -> bool:
        """Whether a value begins here: one of the program's, or any number."""
        if not words:
            return False
        word = words[0]
        numbers = self._words.sets["numbers"]
        return word in self._values or word[0].isdigit() or word in numbers or word in "$€£"

    # --- what is added and lost -----------------------------------------------------------------

    def _added(
        self, text: str, masked: str, words: Sequence[str]
    ) -> Iterator[tuple[Finding, bool]]:
        for figure in _FIGURES.findall(masked):
            if figure not in self._figures:
                yield Finding("a number is added", figure), True
        capitals = {plain(one) for one in _CAPITALS.findall(text)}
        other, unknown, narrowing = list[str](), list[str](), list[str]()
        for word in words:
            if word in self._own or not word[0].isalpha():
                continue
            one = stem(word)
            if one in self._accepted or _near(one, self._stems):
                continue
            if word in self._words.directions or word in self._words.vague:
                continue
            if word in capitals and word not in self._words.sets["functional"]:
                yield Finding("a name is added", word), True
            if word in self._words.sets["narrowing"]:
                if word not in self._words.sets["slight"]:
                    narrowing.append(word)
            elif word in ("before", "after"):
                if not self._expected:
                    narrowing.append(word)
            elif one in self._words.topics and one not in self._words.sets["filling"]:
                if one not in self._words.sets["kinds"]:
                    other.append(word)
            elif not self._adds_nothing(word, one):
                unknown.append(word)
        if narrowing:
            yield Finding("a condition may be added", ", ".join(narrowing)), False
        said = [stem(form) for word in words for form in self._forms(word)]
        lost = [unit for unit in self._units if not unit.is_said(said)]
        if other or unknown:
            about = ", ".join([*other, *unknown])
            if lost:
                about = f"{about} instead of {', '.join(unit.text for unit in lost)}"
                yield Finding("it may ask something else", about), False
            else:
                yield Finding("it says more than the question", about), False

    def _forms(self, word: str) -> Iterator[str]:
        """A word, and the adjective that it compares: "bigger" is said of what is big."""
        yield word
        if word in self._words.directions or word in self._words.vague:
            base = word.removesuffix("st").removesuffix("er").removesuffix("e")
            yield base
            if base.endswith("i"):
                yield base[:-1] + "y"
            elif base[-1:] == base[-2:-1]:
                yield base[:-1]

    def _generals(self, words: Iterable[str]) -> str:
        """A word as "number" or "rate" that the question does not have."""
        general = self._words.sets["general"]
        return next((w for w in words if w in general and stem(w) not in self._accepted), "")

    @cached_property
    def _told(self) -> list[Unit]:
        """The relations that the canonical question says by their own words: "in" says none."""
        words = [stem(word) for word in words_in(self._wordings[0])]
        relations = [unit for unit in self._units if unit.kind is Kind.RELATION]
        return [unit for unit in relations if any(word in unit.accepted for word in words)]

    @cached_property
    def _figures(self) -> frozenset[str]:
        return frozenset(_FIGURES.findall(self._text))

    def _adds_nothing(self, word: str, one: str) -> bool:
        """Whether a word adds nothing, wherever it stands."""
        sets = self._words.sets
        if word in sets["functional"] or one in sets["stems"]:
            return True
        return word in sets["negations"] or word in ("two", "three", "both")

    def _lost(self, words: Sequence[str]) -> Iterator[tuple[Finding, bool]]:
        said = [stem(form) for word in words for form in self._forms(word)]
        for unit in self._units:
            if unit.asked and unit.kind is Kind.KEY and not unit.is_said(said):
                yield Finding("what is asked for may be lost", unit.text), False
            elif unit.asked and unit.is_half_said(said) and self._generals(words):
                # "The atomic number" is not the atomic weight.
                about = f"{self._generals(words)} instead of {unit.text}"
                yield Finding("it may ask something else", about), False
            elif (unit.named or unit in self._told) and not unit.is_said(said):
                yield Finding("a condition may be lost", unit.text), False


_NUMERIC = {"more": "more", "less": "less", "after": "more", "before": "less"}


def _asking(program: Call) -> Call:
    """The call that says what is asked for: the last one that names a key or relation."""
    call = program
    while call.inputs and not any(kind in _ASKING for _, kind in call.function.arguments):
        call = call.inputs[0]
    return call


def _near(one: str, stems: Iterable[str]) -> bool:
    """Whether a stem is of one family with another: "electroneg" with "electronegativity"."""
    if len(one) < 4:
        return False
    for other in stems:
        shorter, longer = sorted((len(one), len(other)))
        if shorter >= 4 and longer <= 2 * shorter:
            common = _common(one, other)
            if common >= 4 and common >= 0.75 * shorter and common >= 0.5 * longer:
                return True
    return False


def _common(one: str, other: str) -> int:
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return length


def _negated(word: str, stems: frozenset[str], words: Vocabulary) -> bool:
    """Whether a word denies one of the question's: "unrelated" where that says "related"."""
    rests = (word[len(one) :] for one in words.sets["prefixes"] if word.startswith(one))
    return any(len(rest) > 3 and stem(rest) in stems for rest in rests)
