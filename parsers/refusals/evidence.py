"""What speaks for an answer and against it: numbers about a question, programs, and words.

A probability alone does not tell, as a network gives one to whatever it is asked: the evidence also
says how well names fit what was written, which words training never had, and which went with other
items than those of the program.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from kb.store import NODES
from kopl.answer_forms import AnswerForm, Is
from kopl.functions import FIND, RELATE
from kopl.program import Call, post_order
from kopl.traits import names_in
from kopl.types import Kind, Type
from parsers.languages import Prediction
from parsers.linking import Linker, Mentions, stem, stems_of
from parsers.refusals.omissions import (
    asks_again,
    items_beside,
    left_out,
    stands_beside,
    unused_names,
    unused_numbers,
)
from parsers.refusals.openings import sort_of
from parsers.refusals.wording import (
    ASKED,
    Item,
    Wording,
    WordsOfNames,
    schema_items,
    script,
    stems,
)
from parsers.spelling import foldings, is_slip, letters
from parsers.tokens import Question

# Logarithms of probabilities below it are all alike.
LEAST_LOG = -12.0
# Margins and counts of words beyond it are all alike.
MOST_MARGIN, MOST_WORDS = 8.0, 5
# A name that fits a span less than this is not what the span says.
FITTING = 0.74
# Words of grammar and politeness, which training need not know, nor a program say.
_GRAMMAR = """
a about actually again all also am an and any are as at be been being but by can could current did
do does done down during each either else even ever every exactly for from get give go got had has
have he her here his how i if in into is it its just know last let list many may me might more most
much must my name need next no nor not now of off on one only or other our out over please put
really said say see shall she should show so some still such tell than thank that the their them
then there these they thing this those time to today too under until up us very want was way we well
were what when where which while who whom whose why will with would yet you your
"""
SMALL = frozenset(stem(word) for word in _GRAMMAR.split())
# Small words that say all the same what kind of thing is asked for.
_ASKING = frozenset("who whose where when how many much old long tall".split())  # noqa: SIM905
# A word of a question goes with an item so surely that a program without the item does not say it.
SURE = 0.5
# ... and so surely that it hardly ever means anything else.
SURELY = 0.8
# What stands in front of a name of which something is asked.
OF = frozenset(("of", "in", "for", "from"))
# An answer that says there is none: a count or a quantity of zero.
_ZERO = re.compile(r"0(?: |$)")
_TEXTS = (Kind.NAME, Kind.STRING, Kind.QUANTITY, Kind.TIME, Kind.ANY_VALUE)


@cache
def other_languages() -> frozenset[str]:
    """Words of grammar of other languages. Of those that a run was trained with, none counts."""
    text = resources.files("parsers.refusals").joinpath("other_languages.txt").read_text("utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return frozenset(word for line in lines for word in line.split())


Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Tried:
    """A prediction with what it says: strings, or None where running it failed."""

    prediction: Prediction
    said: tuple[str, ...] | None

    @classmethod
    def of(cls, prediction: Prediction, denotation: Sequence[str] | None) -> Tried:
        """What a prediction says that denotes so much."""
        if denotation is None:
            return cls(prediction, None)
        return cls(prediction, tuple(prediction.answers(denotation)))


@dataclass
class NameFit:
    """How well a name of the program fits what the question says: the best span of tokens."""

    name: str
    fit: float
    edits: int
    same_first: bool
    span: tuple[int, int] | None

    # Whether what stands there may be a slip of the pen for the name.
    is_slip: bool = True

    @property
    def is_taken(self) -> bool:
        """Whether something that is no slip of the pen for the name is taken for it."""
        return not self.is_slip and self.fit >= FITTING


@dataclass
class Evidence:
    """What is known of one answer: `values` by `FEATURES`, and the words that reasons speak of."""

    question: Question  # as the model reads it, slips of the pen mended
    written: Question  # as it was asked, of as many tokens
    program: Call | None
    first: Call | None = None  # the most probable program
    said: tuple[str, ...] = ()
    values: dict[str, float] = field(default_factory=dict)
    names: list[NameFit] = field(default_factory=list)
    # Tokens that no name of the program covers: unknown anywhere; that go with other items.
    unknown: list[int] = field(default_factory=list)
    unlinked: list[int] = field(default_factory=list)
    contradicted: list[int] = field(default_factory=list)
    unsupported: list[Item] = field(default_factory=list)
    # Tokens that surely say a relation or key of the program.
    explaining: set[int] = field(default_factory=set)
    # Tokens of names that there are, in the program or not.
    named: set[int] = field(default_factory=set)
    # Tokens that are read as words two slips of the pen away.
    mended: list[int] = field(default_factory=list)
    # Whether one of them is no word of talk ("good", "hi").
    is_about: bool = False
    # How many separate runs of tokens the names are.
    things: int = 0
    # Those that no name covers, and their stems.
    loose: list[int] = field(default_factory=list)
    content: list[str] = field(default_factory=list)
    # Years, an ordinal and a "not" that the program does not say, as they were written.
    left_out: list[str] = field(default_factory=list)
    # Names that the question says and its program does not, as they were written.
    unused: list[str] = field(default_factory=list)
    # Whether questions that open so hardly ever have such an answer.
    is_seldom: bool = False
    # Whether it asks for a kind of thing that is neither said nor found.
    is_other_kind: bool = False
    # The word that says that kind.
    kind_asked: str = ""

    def vector(self) -> Floats:
        """The numbers in the order of `FEATURES`."""
        return np.array([self.values[name] for name in FEATURES])


FEATURES = (
    "log probability", "probability", "margin", "behind the best", "fails", "empty", "zero",
    "several", "several unasked", "no", "truth", "best is empty", "calls", "names", "no name",
    "name fit", "name edits",
    "name begins otherwise", "name is near", "unlinked capitals", "names not used",
    "unknown words", "unknown share", "rare words", "contradicted", "contradicted surely",
    "explained", "explained share", "least support", "mean support", "least concept support",
    "common share", "begins as known", "begins with unknown", "other script", "other language",
    "question mark", "words", "single word", "items not used", "unexplained", "talk",
    "misspelt", "said together", "rival", "rival ahead", "first support", "first is nothing",
    "empty and probable", "empty and supported", "unknown and probable",
    "agreement", "name edits beyond one", "name change", "seldom so", "concept left out",
    "head unknown", "head elsewhere", "said otherwise", "numbers not used", "asks again",
    "name too far", "names beside not used", "items beside not used",
)  # fmt: skip


class Evidencer:
    """Collects evidence over one knowledge base by the wording of the training questions."""

    def __init__(
        self, linker: Linker, mentions: Mentions, wording: Wording,
        read: Callable[[str], Question] = Question.of,
    ) -> None:  # fmt: skip
        self.linker, self.mentions, self.wording, self.read = linker, mentions, wording, read
        self.called = WordsOfNames(linker.kb)
        # By stems: how much more often a word comes in talk than in questions, as a logarithm.
        self.talk: dict[str, float] = {}
        self._instances: dict[str, frozenset[str]] = {}
        self._last: tuple[Question, Question] | None = None

    def prepare(self) -> None:
        """Make what is made once, which the first question that needs it would wait for."""
        self.called.prepare()
        _ = self._by_letter, self.linker.kb.comparable(NODES).plain

    def of(self, text: str, tried: Sequence[Tried], best: Tried) -> Evidence:
        """The evidence for ``best`` as the answer to a question, among all that was ``tried``.

        They come in the order of their probabilities.
        """
        written, question = self._asked(text)
        first = tried[0] if tried else best
        programs = best.prediction.program, first.prediction.program
        found = Evidence(question, written, *programs, best.said or ())
        values = found.values
        self._of_search(values, tried, best)
        self._of_answer(values, tried, best)
        form = best.prediction.form
        covered = self._of_names(found, form)
        self._of_words(found, covered, form)
        found.left_out = left_out(found, covered)
        values["first is nothing"] = values["best is empty"] * values["first support"]
        values["empty and probable"] = values["empty"] * values["probability"]
        values["empty and supported"] = values["empty"] * values["least support"]
        values["unknown and probable"] = min(1, values["unknown words"]) * values["probability"]
        return found

    def _asked(self, text: str) -> tuple[Question, Question]:
        """A question as it was asked and as it is read; of the last one, which has more answers."""
        last = self._last
        if last is None or last[0].text != text:
            written, question = Question.of(text), self.read(text)
            if len(written.words) != len(question.words):
                question = written
            last = self._last = written, question
        return last

    # --- the search --------------------------------------------------------------------------

    def _of_search(self, values: dict[str, float], tried: Sequence[Tried], best: Tried) -> None:
        log = max(LEAST_LOG, best.prediction.log_probability)
        values["log probability"], values["probability"] = log / 4, math.exp(min(0.0, log))
        others = [
            one.prediction.log_probability for one in tried
            if one.said is not None and one.said != best.said
        ]  # fmt: skip
        margin = log - max(others, default=-math.inf)
        values["margin"] = max(-MOST_MARGIN, min(MOST_MARGIN, margin)) / 4
        values["agreement"] = _agreement(tried, best)
        top = max((one.prediction.log_probability for one in tried), default=log)
        values["behind the best"] = min(MOST_MARGIN, max(0.0, top - log))
        first = tried[0] if tried else best
        values["best is empty"] = float(not first.said)

    def _of_answer(self, values: dict[str, float], tried: Sequence[Tried], best: Tried) -> None:
        program, strings = best.prediction.program, best.said
        values["fails"] = float(strings is None)
        values["empty"] = float(strings is not None and not strings)
        is_none = strings is not None and len(strings) == 1 and _ZERO.match(strings[0])
        values["zero"] = float(bool(is_none))
        values["several"] = float(strings is not None and len(strings) > 1)
        truth = best.prediction.form is not None or (
            program is not None and program.function.output is Type.TRUTH
        )
        asking = best.prediction.asking
        values["several unasked"] = values["several"] * float(not (asking and asking.several))
        values["truth"], values["no"] = float(truth), float(strings == ("no",))
        values["calls"] = math.log(program.size) if program is not None else 0.0

    # --- names -------------------------------------------------------------------------------

    def _of_names(self, found: Evidence, form: AnswerForm | None) -> set[int]:
        """The tokens that the texts of the program and of its form cover."""
        question, values = found.question, found.values
        covered: set[int] = set()
        for call in post_order(found.program) if found.program is not None else ():
            for (_, kind), text in zip(call.function.arguments, call.arguments, strict=False):
                if kind is Kind.NAME and call.function is FIND:
                    if all(one.name != text for one in found.names):
                        found.names.append(self._fit(question, text))
                elif kind in _TEXTS:
                    covered.update(
                        at for first, last in question.spans_of(text)
                        for at in range(first, last + 1)
                    )  # fmt: skip
        if isinstance(form, Is):
            found.names.append(self._fit(question, form.name))
        for one in found.names:
            if one.span is not None and one.fit >= FITTING:
                covered.update(range(one.span[0], one.span[1] + 1))
        fits = [one.fit for one in found.names]
        near = [one for one in found.names if one.fit < 1]
        values["names"] = min(3, len(fits)) / 3
        values["no name"] = float(not fits)
        values["name fit"] = min(fits, default=1.0)
        values["name edits"] = min(4, max((one.edits for one in found.names), default=0)) / 4
        values["name begins otherwise"] = float(any(not one.same_first for one in near))
        values["name is near"] = float(bool(near))
        found.mended = [
            at for at, (word, read) in enumerate(
                zip(found.written.words, question.words, strict=True)
            ) if word != read and OSA.distance(letters(word), letters(read)) > 1
        ]  # fmt: skip
        for one in found.names:
            inside = range(one.span[0], one.span[1] + 1) if one.span is not None else ()
            one.is_slip &= all(
                is_slip(*(letters(asked.words[at]) for asked in (found.written, question)))
                for at in found.mended if at in inside
            )  # fmt: skip
        values["name too far"] = float(any(one.is_taken for one in found.names))
        is_mended = any(
            one.span is not None and one.span[0] <= at <= one.span[1]
            for one in found.names for at in found.mended
        )  # fmt: skip
        values["name edits beyond one"] = float(is_mended or any(one.edits > 1 for one in near))
        changes = (one.edits / max(4, len(one.name)) for one in near)
        values["name change"] = min(0.5, max(changes, default=0.0)) * 2
        return covered

    def _fit(self, question: Question, name: str) -> NameFit:
        """The span that says a name best, by the name or an alias."""
        called = [name, *self.linker.names.aliases_of(name)]
        count = len(question.words)
        parts = [letters(word) for word in question.words]
        keys = {key for text in called for key in foldings(text)} - {""}
        longest = max(len(Question.of(text).words) for text in called) + 1
        spans = [
            (first, last) for first in range(count) if parts[first]
            for last in range(first, min(count, first + longest)) if parts[last]
        ]  # fmt: skip
        exact = [span for span in spans if "".join(parts[span[0] : span[1] + 1]) in keys]
        if exact:
            return NameFit(name, 1.0, 0, True, max(exact, key=lambda span: span[1] - span[0]))
        texts = ["".join(parts[first : last + 1]) for first, last in spans]
        best = NameFit(name, 0.0, 9, False, None)
        if not texts:
            return best
        for key in sorted(keys):
            hit = process.extractOne(key, texts, scorer=fuzz.ratio)
            if hit[1] / 100 > best.fit:
                best = NameFit(
                    name,
                    hit[1] / 100,
                    OSA.distance(key, hit[0]),
                    key[0] == hit[0][0],
                    spans[hit[2]],
                    is_slip(hit[0], key),
                )
        # "tolar" for "Slovenian Tolar": whole words of the name, which may be enough.
        words = {letters(word) for text in called for word in text.split()} - SMALL
        said = [at for at, part in enumerate(parts) if len(part) > 3 and part in words]
        if said and best.fit < 0.86:
            return NameFit(name, max(best.fit, 0.86), 1, True, (said[0], said[0]))
        return best

    # --- words -------------------------------------------------------------------------------

    def _of_words(
        self, found: Evidence, covered: set[int], form: AnswerForm | None
    ) -> None:  # fmt: skip
        question, wording, values = found.question, self.wording, found.values
        every = stems(question)
        said = [(at, word) for at, word in enumerate(every) if word and word.isalpha()]
        items = set(schema_items(found.program)) if found.program is not None else set()
        mentioned = self.mentions.of(question)
        found.named = {at for one, end in mentioned.names for at in range(one, end + 1)}
        found.things = sum(at - 1 not in found.named for at in found.named)
        names = [
            (first, last)
            for first, last in mentioned.names
            if not covered.issuperset(range(first, last + 1))
            and any(question.words[at][:1].isupper() and at for at in range(first, last + 1))
        ]  # fmt: skip
        in_names = {at for first, last in names for at in range(first, last + 1)}
        # Where a question has capitals, a word without one is no part of a name that has.
        cased = any(word[:1].isupper() for word in question.words[1:])

        def in_a_name(at: int, word: str) -> bool:
            small = self.called.begin_small.get(word)
            return small is not None and (small or not cased or question.words[at][0].isupper())

        content, misspelt = [], 0
        for at, word in said:
            if at in covered:
                continue
            if not wording.knows(word) and not in_a_name(at, word) and word not in SMALL:
                read = self._misspelt(word)
                misspelt += read != word
                word = every[at] = read
            content.append((at, word))
        explained = 0
        doubts = []
        for at, word in content:
            if not wording.knows(word):
                if in_a_name(at, word) or at in in_names:
                    found.unlinked.append(at)
                elif word not in SMALL:
                    found.unknown.append(at)
                continue
            sure = [(item, share) for item, share in wording.telling(word) if item[0] != "function"]
            if any(item in items for item, _ in sure):
                explained += word not in SMALL
                if any(
                    item in items and item[0] in ASKED and share >= SURE for item, share in sure
                ):
                    found.explaining.add(at)
                continue
            share = sum(share for _, share in sure)
            if share > 0.25 and (word not in SMALL or word in _ASKING):
                found.contradicted.append(at)
                doubts.append(min(1.0, share))
        values["misspelt"] = min(3, misspelt) / 3
        capitals = [
            at for at in [*found.unlinked, *found.unknown]
            if question.words[at][:1].isupper() and at and not question.text.isupper()
        ]  # fmt: skip
        rare = sum(0 < wording.counts.get(word, 0) < 8 for _, word in content)
        telling_words = explained + len(found.contradicted) + len(found.unknown)
        unknown = len(found.unknown)
        values["unlinked capitals"] = min(3, len(capitals)) / 3
        unused = unused_names(found, covered, mentioned.names, self.linker, wording)
        beside = [span for span in unused if stands_beside(span, question, covered)]
        found.unused = [found.written.span(*span) for span in beside or unused]
        values["names not used"] = min(2, len(unused) - len(beside)) / 2
        values["names beside not used"] = min(2, len(beside)) / 2
        values["items beside not used"] = min(1, items_beside(found, wording))
        values["numbers not used"] = min(2, len(unused_numbers(found, covered))) / 2
        values["asks again"] = float(asks_again(question))
        values["unknown words"] = min(MOST_WORDS, unknown) / MOST_WORDS * 2
        values["unknown share"] = unknown / max(1, len(content))
        values["rare words"] = min(3, rare) / 3
        values["contradicted"] = min(3, len(doubts)) / 3
        values["contradicted surely"] = max(doubts, default=0.0)
        values["explained"] = min(3, explained) / 3
        values["explained share"] = explained / max(1, telling_words)
        values["unexplained"] = min(4, telling_words - explained) / 4
        words = [word for _, word in content]
        found.loose, found.content = [at for at, _ in content], words
        supports = self._supports(items, words, every)
        asked = {item: share for item, share in supports.items() if item[0] != "concept"}
        concepts = [share for item, share in supports.items() if item[0] == "concept"]
        found.unsupported = [item for item, share in asked.items() if share < 0.2]
        values["least support"] = min(asked.values(), default=0.5)
        values["mean support"] = float(np.mean(list(asked.values()) or [0.5]))
        values["least concept support"] = min(concepts, default=0.7)
        self._of_rivals(values, asked, words, covered)
        top = found.first
        first_items = set(schema_items(top)) if top is not None else set()
        first = self._supports(first_items, words, every).values()
        values["first support"] = min(first, default=0.5)
        common = sum(word in wording.common for _, word in said)
        values["common share"] = common / max(1, len(said))
        begin = said[0][1] if said else ""
        share = wording.begins.get(begin, 0) / max(1, wording.questions)
        values["begins as known"] = min(1.0, share * 100)
        values["begins with unknown"] = float(bool(said) and said[0][0] in found.unknown)
        values["other script"] = sum(
            script(word[0]) not in wording.scripts for _, word in said
        ) / max(1, len(said))  # fmt: skip
        foreign_words = other_languages()
        foreign = sum(
            letters(question.words[at]) in foreign_words
            and wording.counts.get(word, 0) < 3 and at not in found.named
            for at, word in content
        )  # fmt: skip
        values["other language"] = min(3, foreign) / 3
        values["question mark"] = float("?" in question.text)
        values["words"] = math.log(1 + len(said)) / 2
        values["single word"] = float(len(said) <= 2)
        other = [n for n in mentioned.items if self.mentions.entries[n] not in items]
        values["items not used"] = min(2, len(other)) / 2
        values["talk"] = mean_talk(words, self.talk)
        found.is_about = any(self.talk.get(every[at], 0) <= 0 for at in found.named)
        values["seldom so"] = 0.0
        if found.program is not None:
            sort = sort_of(found.program, form, self.linker.schema)
            values["seldom so"] = wording.openings.seldom(every, sort)
            found.is_seldom = wording.openings.contradicts(every, sort)
        head = _head(every, covered)
        values["concept left out"] = self._left_concept(found, head, every, items)
        found.is_other_kind = values["concept left out"] > 0 and not values["truth"]
        if found.is_other_kind and head is not None:
            found.kind_asked = found.written.words[head]
        values["said otherwise"] = float(
            not explained and max(doubts, default=0) >= SURELY and values["least support"] < 0.05
        )
        values["head unknown"] = float(head in found.unknown)
        values["head elsewhere"] = float(head in found.contradicted)

    def _left_concept(
        self, found: Evidence, head: int | None, every: Sequence[str], items: Collection[Item]
    ) -> float:  # fmt: skip
        """How surely what is asked for is a kind of thing that is neither said nor found.

        "Who is the king of Brazil?": Brazil is no monarchy, and who is found is no monarch.
        """
        said = {
            item[1]: share
            for item, share in (self.wording.telling(every[head]) if head is not None else ())
            if share >= SURE and item[0] == "concept" and item not in items
        }  # fmt: skip
        if not said or found.program is None:
            return 0.0
        if sum(call.function is RELATE for call in post_order(found.program)) > 1:
            return 0.0  # what is on the way may be of the kind
        things = {*names_in(found.program), *found.said}
        return max(
            (share for concept, share in said.items() if not things & self._names_of(concept)),
            default=0.0,
        )

    def _names_of(self, concept: str) -> frozenset[str]:
        """The names of a concept's instances."""
        if concept not in self._instances:
            kb = self.linker.kb
            nodes = kb.instances_of(concept).tolist()
            self._instances[concept] = frozenset(kb.name_of(node) for node in nodes)
        return self._instances[concept]

    def _supports(
        self, items: Iterable[Item], words: Sequence[str], every: Sequence[str]
    ) -> dict[Item, float]:  # fmt: skip
        """How surely a question says each of some schema items."""
        return {item: self._support(item, words, every) for item in sorted(items)}

    def _of_rivals(
        self, values: dict[str, float], asked: Mapping[Item, float], words: Sequence[str],
        covered: Collection[int],
    ) -> None:  # fmt: skip
        """Whether the words say another relation or key better than those of the program."""
        odds: dict[Item, float] = {}
        for word in dict.fromkeys(words):
            for item, share in self.wording.telling(word):
                if item[0] in ASKED:
                    odds[item] = odds.get(item, 0.0) - math.log(max(0.02, 1 - share))
        own = [odds.get(item, 0.0) for item in asked]
        rival = max((value for item, value in odds.items() if item not in asked), default=0.0)
        values["said together"] = min(3.0, min(own, default=0.5)) / 3
        values["rival"] = min(3.0, rival) / 3
        values["rival ahead"] = max(-3.0, min(3.0, rival - min(own, default=0.5))) / 3

    def _misspelt(self, word: str) -> str:
        """The word that training knows and that a word may be a slip of the pen for, or itself."""
        if len(word) < 4:
            return word
        known = self._by_letter.get(word[0], ())
        hit = process.extractOne(
            word, known, scorer=OSA.distance, score_cutoff=1 if len(word) < 8 else 2
        )
        return word if hit is None else hit[0]

    @cached_property
    def _by_letter(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for word in sorted(self.wording.counts):
            if self.wording.knows(word) and len(word) > 3:
                found.setdefault(word[0], []).append(word)
        return found

    def _support(self, item: Item, words: Sequence[str], every: Sequence[str]) -> float:
        """How surely the words of a question say an item: by training, or by what it is called."""
        called = [word for word in stems_of(item[1]) if word not in SMALL]
        said = sum(word in every for word in called) / len(called) if called else 0.0
        return max(said * 0.9, self.wording.support(item, words))


def _agreement(tried: Sequence[Tried], best: Tried) -> float:
    """The share of the probability of all that was tried that says the same as the best."""
    total = same = 0.0
    for one in tried:
        share = math.exp(max(LEAST_LOG, one.prediction.log_probability))
        total += share
        same += share if one.said == best.said else 0.0
    return same / total if total else 1.0


def _head(stems: Sequence[str], covered: Collection[int]) -> int | None:
    """The token that says what is asked of a name: "wage" in "the minimum wage in Germany".

    It stands in front of a preposition and what the program names, or behind that and "'s".
    """
    for at in range(2, len(stems)):
        before = stems[at - 1]
        if at not in covered or at - 1 in covered:
            continue
        if before == "the" and at > 2:
            at, before = at - 1, stems[at - 2]
        if before in OF and stems[at - 2] and at - 2 not in covered:
            return at - 2
    return None


def mean_talk(words: Sequence[str], talk: Mapping[str, float]) -> float:
    """How much like talk some words are, those that are not known left out."""
    found = [talk[word] for word in words if word in talk]
    return float(np.mean(found)) if found else 0.0
