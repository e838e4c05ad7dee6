"""Programs that give a known answer to a question, simple ones first.

Somebody who corrects an answer often knows the right one, but no program. From the things that the
question names, facts are followed, and every program that gives the answer is a candidate: by one
fact, by a fact with its qualifiers, by two facts; compared; counted; asked yes or no. Many programs
give an answer by accident, so that candidates are ranked by how much of what they name the question
says, and offered, not taken.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations, product

from kb import KnowledgeBase
from kb.values import Date, Quantity, Value, Year
from kopl.answer_forms import AnswerForm, Exists, Is, answer_of
from kopl.answers import same_answer
from kopl.denotation import Located, Outcome
from kopl.executor import Executor
from kopl.functions import (
    AND,
    COUNT,
    FILTER_CONCEPT,
    FIND,
    FIND_ALL,
    FUNCTIONS,
    QUERY_ATTR,
    QUERY_ATTR_QUALIFIER,
    QUERY_ATTR_UNDER_CONDITION,
    QUERY_NAME,
    QUERY_RELATION,
    QUERY_RELATION_QUALIFIER,
    RELATE,
    SELECT_AMONG,
    SELECT_BETWEEN,
)
from kopl.program import Call, post_order
from kopl_base.errors import KoplError
from parsers.linking import Linker, Mentions, stem
from parsers.spelling import letters
from parsers.tokens import Question

# What is searched at most: programs that are run, seconds, and candidates that are given.
TRIED, SECONDS, MOST = 20_000, 5.0, 10
# Of a question: the things that are followed, and what each span of it may mean.
NAMES, MEANT = 8, 3
# A fact leads on only where it leads to no more things than these.
REACHED = 60
# A string of fewer letters is verified by no question that has it as a word.
LEAST_LETTERS = 4
YES_NO = (["yes"], ["no"])


@dataclass(frozen=True)
class Candidate:
    """A program that gives the answer, as the form reads it.

    ``said`` is the share of the words in the names of its schema items that the question says.
    """

    program: Call
    form: AnswerForm | None
    said: float

    @property
    def order(self) -> tuple[int, float, str]:
        """Simple ones first, then those that the question says."""
        return self.program.size, -self.said, f"{self.program} {self.form}"


@dataclass
class Search:
    """A search in one question; ``tried`` programs were run, ``ended`` tells whether all were.

    ``names`` are those of the things that the question names.
    """

    question: str
    linker: Linker
    executor: Executor
    tried: int = 0
    ended: bool = True
    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._kb: KnowledgeBase = self.linker.kb
        self._outcomes: dict[Call, Outcome] = {}
        self._known_keys: dict[Call, list[str]] = {}
        self._known_facts: dict[Call, dict[tuple[str, ...], list[tuple[str, Value]]]] = {}
        self._read = Question.of(self.question)
        self._stems = {stem(letters(word)) for word in self._read.words} - {""}
        self.names = self._named()
        self._concepts = [
            concept for concept in self.linker.schema.concepts if self._says(concept) == 1.0
        ]

    def giving(
        self, answers: Sequence[str], *, most: int = MOST, seconds: float = SECONDS,
        tried: int = TRIED,
    ) -> list[Candidate]:  # fmt: skip
        """At most so many candidates for these answers, the simplest and most said first.

        Programs are tried until so many were, or the seconds are over; ``ended`` tells which.
        """
        wanted, begin = list(answers), time.monotonic()
        found: dict[tuple[Call, AnswerForm | None], Candidate] = {}
        self.tried, self.ended = 0, True
        for program, form in self._programs(asks=wanted in YES_NO):
            if self.tried >= tried or time.monotonic() - begin > seconds:
                self.ended = False
                break
            if (program, form) in found:
                continue
            self.tried += 1
            try:
                denotation = self.executor.outcome(program, self._outcomes).strings()
            except KoplError:
                continue
            if same_or_alias(self._kb, wanted, answer_of(denotation, form, program)):
                found[program, form] = Candidate(program, form, self._said(program))
        return sorted(found.values(), key=lambda one: one.order)[:most]

    # --- what the question says ------------------------------------------------------------------

    def _named(self) -> list[str]:
        """The names that the question holds, those of longer spans first."""
        spans = Mentions([], self.linker).of(self._read).names
        wide = sorted(spans, key=lambda span: (span[0] - span[1], span))
        found: dict[str, None] = {}
        for span in wide:
            for name in self.linker.names.meant(self._read.span(*span))[:MEANT]:
                found[name] = None
        if not found:  # a name that is misspelt: the nearest one of each capitalised word
            for word in self._read.words:
                if word[:1].isupper() and len(word) > 3:
                    found.update(dict.fromkeys(self.linker.names.meant(word)[:1]))
        return list(found)[:NAMES]

    def _says(self, text: str) -> float:
        """The share of a text's words that the question has."""
        words = [stem(letters(word)) for word in Question.of(text).words]
        words = [word for word in words if word]
        return sum(word in self._stems for word in words) / len(words) if words else 0.0

    def _said(self, program: Call) -> float:
        """How much the question says of what a program names."""
        texts = [text for call in post_order(program) for text in call.arguments]
        return sum(map(self._says, texts)) / len(texts) if texts else 0.0

    # --- what is tried ---------------------------------------------------------------------------

    def _programs(self, *, asks: bool) -> Iterator[tuple[Call, AnswerForm | None]]:
        """The programs to try, simple ones first; those for yes and no alone, or all others."""
        if asks:
            yield from self._yes_no()
            return
        found = [Call(FIND, (), (name,)) for name in self.names]
        for group in self._groups(found):
            yield from ((program, None) for program in group)

    def _groups(self, found: Sequence[Call]) -> Iterator[Iterator[Call]]:
        """Programs about some things, in groups that become less likely one after the other."""
        for place in found:
            yield self._of(place)
        pairs = list(permutations(found, 2))
        for one, other in pairs:
            yield self._between(one, other)
        yield self._of_concepts()
        for one, other in pairs:
            yield self._of_both(one, other)
        for place in found:
            for related in sorted(self._relations(place), key=self._unsaid):
                if len(self._nodes(related)) <= REACHED:
                    yield self._of(related)
        for place in found:
            for related in sorted(self._relations(place), key=self._unsaid):
                yield self._extremes(related)
                for concept in self._concepts:
                    yield self._extremes(Call(FILTER_CONCEPT, (related,), (concept,)))

    def _of(self, place: Call) -> Iterator[Call]:
        """What may be asked of a set: its attributes, what it has to do with, how many."""
        for key in self._keys(place):
            yield Call(QUERY_ATTR, (place,), (key,))
        for related in self._related(place):
            yield Call(QUERY_NAME, (related,), ())
            yield Call(COUNT, (related,), ())
        yield from self._qualified(place)

    def _of_both(self, one: Call, other: Call) -> Iterator[Call]:
        """What has to do with two things."""
        if str(one) > str(other):
            return
        for related, beside in product(self._relations(one), self._relations(other)):
            both = Call(AND, (related, beside), ())
            if self._nodes(both):
                for kept in (both, *self._of_kinds(both)):
                    yield Call(QUERY_NAME, (kept,), ())
                    yield Call(COUNT, (kept,), ())

    def _extremes(self, place: Call) -> Iterator[Call]:
        """What of a set has most and least of something."""
        if len(self._nodes(place)) < 2:
            return
        for key, extreme in product(self._numbers(place), ("largest", "smallest")):
            yield Call(SELECT_AMONG, (place,), (key, extreme))

    def _unsaid(self, place: Call) -> float:
        return -self._said(place)

    def _relations(self, place: Call) -> list[Call]:
        """What a set has to do with, by each relation."""
        return [Call(RELATE, (place,), pair) for pair in sorted(self._facts(place))]

    def _related(self, place: Call) -> Iterator[Call]:
        """The same, and narrowed to a kind, and to facts whose qualifiers the question says."""
        for related in self._relations(place):
            yield related
            yield from self._of_kinds(related)
            for key, value in self._facts(place)[related.arguments]:
                yield _qfilter(related, key, value)

    def _facts(self, place: Call) -> dict[tuple[str, ...], list[tuple[str, Value]]]:
        """The relations of a set with their directions, and the qualifiers that are said."""
        if place not in self._known_facts:
            seen: dict[tuple[str, ...], dict[tuple[str, str], Value]] = {}
            for node in self._nodes(place)[:REACHED]:
                for record in self._kb.records(node, "both"):
                    own = seen.setdefault((record.relation, record.direction), {})
                    for key, values in record.qualifiers.items():
                        for value in values:
                            if said := self._constant(value):
                                own[key, str(said)] = said
            self._known_facts[place] = {
                pair: [(key, own[key, text]) for key, text in sorted(own)]
                for pair, own in seen.items()
            }
        return self._known_facts[place]

    def _of_kinds(self, related: Call) -> Iterator[Call]:
        """A set narrowed to the kinds of which it has some, but not all."""
        nodes = self._nodes(related)
        if len(nodes) > REACHED:
            kinds = list(self._concepts)
        else:
            entities = [node for node in nodes if self._kb.is_entity(node)]
            own = [set(map(self._kb.name_of, self._kb.all_concepts_of(one))) for one in entities]
            every = set.intersection(*own) if own else set()
            kinds = sorted(set().union(*own) - every) + [c for c in self._concepts if c in every]
        for concept in kinds:
            yield Call(FILTER_CONCEPT, (related,), (concept,))

    def _constant(self, value: Value) -> Value | None:
        """A value that the question says; of a day, its year where only that is said."""
        if isinstance(value, Date):
            year = Year(value.year)
            if str(value) in self.question:
                return value
            return year if self._read.spans_of(str(year)) else None
        if isinstance(value, Quantity):
            return value if self._read.spans_of(str(value).split(" ")[0]) else None
        return value if self._says(str(value)) == 1.0 else None

    def _qualified(self, place: Call) -> Iterator[Call]:
        """What is asked of facts and their qualifiers."""
        facts: set[tuple[str, str, str]] = set()
        conditions: set[tuple[str, str, str]] = set()
        for node in self._nodes(place)[:REACHED]:
            if not self._kb.is_entity(node):
                continue
            for fact in self._kb.attributes(node):
                for qualifier, values in fact.qualifiers.items():
                    facts.add((fact.key, str(fact.value), qualifier))
                    for value in values:
                        if said := self._constant(value):
                            conditions.add((fact.key, qualifier, str(said)))
        for condition in sorted(conditions):
            yield Call(QUERY_ATTR_UNDER_CONDITION, (place,), condition)
        for fact_asked in sorted(facts):
            if self._says(fact_asked[1]):
                yield Call(QUERY_ATTR_QUALIFIER, (place,), fact_asked)

    def _between(self, one: Call, other: Call) -> Iterator[Call]:
        """What is asked of two things: how they are related, since when, which is greater."""
        yield Call(QUERY_RELATION, (one, other), ())
        tails = {self._kb.id_of(node) for node in self._nodes(other)}
        pairs: dict[tuple[str, str], None] = {}
        for node in self._nodes(one)[:REACHED]:
            for record in self._kb.records(node, "both"):
                if record.direction == "forward" and record.other in tails:
                    pairs |= {(record.relation, key): None for key in record.qualifiers}
        for relation, key in sorted(pairs):
            yield Call(QUERY_RELATION_QUALIFIER, (one, other), (relation, key))
        for key, way in product(self._both(one, other), ("greater", "less")):
            yield Call(SELECT_BETWEEN, (one, other), (key, way))

    def _of_concepts(self) -> Iterator[Call]:
        """What is asked of all things of a kind that the question says."""
        for concept in self._concepts:
            every = Call(FILTER_CONCEPT, (Call(FIND_ALL, (), ()),), (concept,))
            yield Call(QUERY_NAME, (every,), ())
            yield Call(COUNT, (every,), ())
            yield from self._extremes(every)

    def _yes_no(self) -> Iterator[tuple[Call, AnswerForm | None]]:
        """What is asked of two things, or of a thing and a kind, and answered by yes or no."""
        found = [Call(FIND, (), (name,)) for name in self.names]
        for place, concept in product(found, self._concepts):
            yield Call(COUNT, (Call(FILTER_CONCEPT, (place,), (concept,)),), ()), Exists()
        for one, other in permutations(found, 2):
            for related in self._related(one):
                yield Call(COUNT, (Call(AND, (related, other), ()),), ()), Exists()
            for key, way in product(self._both(one, other), ("greater", "less")):
                asked = Call(SELECT_BETWEEN, (one, other), (key, way))
                yield asked, Is(one.arguments[0])
        for place in found:
            yield from ((program, None) for program in self._constants(place))
        for place in found:
            for related in self._related(place):
                yield Call(COUNT, (related,), ()), Exists()

    def _constants(self, place: Call) -> Iterator[Call]:
        """An attribute that is verified by a constant of the question."""
        numbers = [self._read.span(*span) for span in _spans(self._read, "quantity")]
        times = [self._read.span(*span) for span in _spans(self._read, "time")]
        for key in self._keys(place):
            given = Call(QUERY_ATTR, (place,), (key,))
            types = self.linker.schema.types((key, False))
            if "quantity" in types:
                units = self.linker.schema.units((key, False))
                for number, unit, way in product(numbers, units, (">", "<", "=")):
                    text = number if unit == "1" else f"{number} {unit}"
                    yield Call(FUNCTIONS["VerifyNum"], (given,), (text, way))
            if "time" in types:
                for text, way in product(times, (">", "<", "=")):
                    yield Call(FUNCTIONS["VerifyYear"], (given,), (text, way))
            if "string" in types:
                for text in self.linker.schema.texts((key, False), "string"):
                    if len(letters(text)) >= LEAST_LETTERS and self._says(text) == 1.0:
                        yield Call(FUNCTIONS["VerifyStr"], (given,), (text,))

    # --- the knowledge base ----------------------------------------------------------------------

    def _nodes(self, place: Call) -> list[int]:
        """The numbers of what a call finds, none where it fails."""
        try:
            found = self.executor.outcome(place, self._outcomes)
        except KoplError:
            return []
        return found.ids.tolist() if isinstance(found, Located) else []

    def _keys(self, place: Call) -> list[str]:
        """The attribute keys of a set, those that the question says first."""
        if place not in self._known_keys:
            nodes = [node for node in self._nodes(place)[:REACHED] if self._kb.is_entity(node)]
            keys = {fact.key for node in nodes for fact in self._kb.attributes(node)}
            self._known_keys[place] = sorted(keys, key=lambda key: (-self._says(key), key))
        return self._known_keys[place]

    def _numbers(self, place: Call) -> list[str]:
        """The attribute keys of a set that have quantities."""
        schema = self.linker.schema
        return [key for key in self._keys(place) if schema.has((key, False), "quantity")]

    def _both(self, one: Call, other: Call) -> list[str]:
        """The keys of quantities that both have."""
        second = set(self._numbers(other))
        return [key for key in self._numbers(one) if key in second]


def same_or_alias(kb: KnowledgeBase, wanted: Sequence[str], given: Sequence[str]) -> bool:
    """Whether answers are those that are wanted, in whatever order, by name or by alias.

    >>> same_or_alias(load("world"), ["Holland"], ["The Netherlands"])
    True
    """
    if len(wanted) != len(given):
        return False
    rest, others = list(given), []
    for one in wanted:  # names first, as an alias may be another thing's name
        match = next((other for other in rest if same_answer(one, other)), None)
        if match is None:
            others.append(one)
        else:
            rest.remove(match)
    for one in others:
        called = {kb.name_of(node) for node in kb.known_as(one).tolist()}
        match = next((other for other in rest if other in called), None)
        if match is None:
            return False
        rest.remove(match)
    return True


def _spans(question: Question, constant: str) -> Iterator[tuple[int, int]]:
    for first, lasts in question.copyable(constant).items():
        yield from ((first, last) for last in lasts)


def _qfilter(related: Call, key: str, value: Value) -> Call:
    """The call that keeps the facts with such a qualifier."""
    kind = {Quantity: "Num", Year: "Year", Date: "Date"}.get(type(value), "Str")
    text = (key, str(value)) if kind == "Str" else (key, str(value), "=")
    return Call(FUNCTIONS[f"QFilter{kind}"], (related,), text)
