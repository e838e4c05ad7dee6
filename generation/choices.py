"""Ten choices for a question, as in KQA Pro: near misses first, then values of the same kind.

The distractors are the other answers of the program without one of its clauses, drawn at random
(Section 4 of the paper); what is missing is filled up from what the answer is one of: entities of
its concepts or with the same relation or key, values of the key, relations, near numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from random import Random

import numpy as np

from generation.judge import FILTERS, Dropped
from kb import KnowledgeBase, Quantity, Value
from kb.arrays import Ids
from kb.values import ValueReadError, read_quantity
from kb.valuetable import ValueTable
from kopl.answers import published_equal, same_answer
from kopl.functions import FIND_ALL, QUERY_NAME, RELATE
from kopl.program import Call
from kopl.types import Type

CHOICES = 10
UNKNOWN = "unknown"
_EVERYTHING = Call(QUERY_NAME, (Call(FIND_ALL),))
_TRIES = 12  # draws for each choice that is still missing


class Choices:
    """Gives the choices of questions over one knowledge base."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self._values = lru_cache(maxsize=None)(self._values_of)
        self._qualifiers = {k: numbers.tolist() for k, numbers in kb.qualifier_values_of().items()}
        # The same few are drawn again and again where a key has no ten values.
        self._value = lru_cache(maxsize=10_000)(self._value_and_text)
        self._instances = lru_cache(maxsize=5_000)(self._instances_of)

    def draw(
        self,
        program: Call,
        answer: str,
        dropped: Sequence[Dropped],
        denote: Callable[[Call], list[str]],
        random: Random,
        *,
        truth: bool = False,
    ) -> tuple[str, ...]:
        """Ten different texts in random order, of which exactly one is the answer.

        ``truth``: the answer is yes or no, whatever the program denotes. ``dropped`` are the ways
        to drop a clause, ``denote`` executes programs. No other choice
        equals the answer under the default answer rule or the published one. A knowledge base
        without enough values fills up with "unknown", as the paper does for yes and no ("none of
        these" where that is the answer).
        """
        found = [answer]
        if truth or program.function.output is Type.TRUTH:
            found += ["no" if answer == "yes" else "yes"]
        else:
            for text in self._candidates(program, answer, dropped, denote, random):
                if len(found) == CHOICES:
                    break
                if text not in found and not _same(answer, text):
                    found.append(text)
        filling = UNKNOWN if not _same(answer, UNKNOWN) else "none of these"
        found += [filling] * (CHOICES - len(found))
        random.shuffle(found)
        return tuple(found)

    def _candidates(
        self,
        program: Call,
        answer: str,
        dropped: Sequence[Dropped],
        denote: Callable[[Call], list[str]],
        random: Random,
    ) -> Iterator[str]:
        for way in random.sample(list(dropped), len(dropped)):
            if way.program == _EVERYTHING:
                continue  # all there is; the pools below are nearer
            others = denote(way.program)
            yield from random.sample(others, min(len(others), 2 * CHOICES))
        if program.function.output is Type.NAMES:
            # What there was to choose from.
            for given in program.inputs if program.function is not QUERY_NAME else ():
                others = denote(Call(QUERY_NAME, (given,)))
                yield from random.sample(others, min(len(others), 2 * CHOICES))
        for pool in self._pools(program, answer, random):
            for _ in range(_TRIES * CHOICES if pool else 0):
                yield pool[random.randrange(len(pool))]()

    def _pools(
        self, program: Call, answer: str, random: Random
    ) -> Iterator[Sequence[Callable[[], str]]]:
        """What is of the answer's kind, the nearest first, as functions that give a text."""
        output = program.function.output
        if output is Type.NUMBER:
            yield [lambda: str(_near(int(answer), random))]
            yield [lambda: str(max(0, int(answer) + random.randint(-2 * CHOICES, 2 * CHOICES)))]
        elif output is Type.RELATIONS:
            yield [lambda: random.choice(self.kb.relations)]
        elif output is Type.NAMES:
            for node in self.kb.named(answer).tolist():
                for concept in self.kb.concepts_of(node) if self.kb.is_entity(node) else ():
                    names = self._instances(concept)
                    yield [lambda names=names: self.kb.name_of(random.choice(names))]  # type: ignore[misc]
            related = (_related(node, self.kb) for node in self.kb.named(answer).tolist())
            for alike in chain(_alike(program, self.kb), *related):
                yield [lambda alike=alike: self.kb.name_of(int(random.choice(alike)))]  # type: ignore[misc]
            if self.kb.entity_count:
                yield [lambda: self.kb.name_of(random.randrange(self.kb.entity_count))]
        else:
            yield from self._value_pools(program, answer, random)

    def _value_pools(
        self, program: Call, answer: str, random: Random
    ) -> Iterator[Sequence[Callable[[], str]]]:
        if program.function.output is Type.QUALIFIER_VALUES:
            numbers = self._qualifiers.get(program.arguments[-1], [])
        else:
            numbers = self._values(program.arguments[0])
        if numbers:
            unit = _unit(answer)

            def of_unit() -> str:
                value, text = self._value(random.choice(numbers))
                fits = isinstance(value, Quantity) and value.unit == unit
                return text if fits or unit is None else answer

            yield [of_unit]
            yield [lambda: self._value(random.choice(numbers))[1]]
        own = next((number for number in numbers if str(self.kb.values[number]) == answer), None)
        if own is not None:
            same = _same_type(self.kb.values, own)
            if isinstance(self.kb.values[own], Quantity):
                yield _scaled(answer, random)
            yield [lambda: self._value(random.choice(same))[1]]
        if len(self.kb.values):
            yield [lambda: self._value(random.randrange(len(self.kb.values)))[1]]

    def _value_and_text(self, number: int) -> tuple[Value, str]:
        value = self.kb.values[number]
        return value, str(value)

    def _values_of(self, key: str) -> list[int]:
        """The numbers of the values of an attribute key, one for each fact."""
        number, table = self.kb.key_number(key), self.kb.literals
        found: list[int] = table.object[table.of_predicate(number)].tolist() if number >= 0 else []
        return found

    def _instances_of(self, concept: int) -> list[int]:
        found: list[int] = self.kb.instances_of(self.kb.name_of(concept)).tolist()
        return found


def _alike(program: Call, kb: KnowledgeBase) -> Iterator[Ids]:
    """The nodes that have what a program asks of its answer: the same relation or key."""
    if program.function is not QUERY_NAME:  # they select by the values of a key
        yield from _owners(kb, program.arguments[0])
    waiting = list(program.inputs)
    while waiting:
        call = waiting.pop(0)
        if call.function is RELATE:
            table, (relation, direction) = kb.relational, call.arguments
            number = kb.relation_number(relation)
            if number >= 0 and len(facts := table.of_predicate(number)):
                yield (table.object if direction == "forward" else table.subject)[facts]
            continue
        if call.function in FILTERS:
            yield from _owners(kb, call.arguments[0])
        waiting += call.inputs


def _related(node: int, kb: KnowledgeBase) -> Iterator[Ids]:
    """The nodes at the same end of each relation of a node, of those with most facts first."""
    table, single = kb.relational, np.array([node], np.int32)
    ends = ((table.subject, table.of_subjects(single)), (table.object, table.of_tails(single)))
    for column, facts in sorted(ends, key=lambda end: -len(end[1])):
        counts = np.bincount(table.predicate[facts])
        for relation in np.argsort(-counts, kind="stable").tolist():
            if counts[relation]:
                yield column[table.of_predicate(relation)]


def _owners(kb: KnowledgeBase, key: str) -> Iterator[Ids]:
    number = kb.key_number(key)
    if number >= 0 and len(facts := kb.literals.of_predicate(number)):
        yield kb.literals.subject[facts]


def _same_type(values: ValueTable, number: int) -> range:
    """The numbers of the values that are strings, quantities or times, as this one is."""
    bounds = (0, values.first_quantity, values.first_time, len(values))
    return next(range(a, b) for a, b in pairwise(bounds) if a <= number < b)


def _same(left: str, right: str) -> bool:
    return same_answer(left, right) or published_equal(left, right)


def _unit(answer: str) -> str | None:
    try:
        return read_quantity(answer).unit
    except ValueReadError:
        return None


def _near(number: int, random: Random) -> int:
    """A count near another one; nearer ones come more often."""
    reach = 1 + int(random.expovariate(1 / max(2.0, number * 0.3)))
    return max(0, number + random.choice((-reach, reach)))


def _scaled(answer: str, random: Random) -> Sequence[Callable[[], str]]:
    """Quantities of the size of the answer, which is one."""
    value = read_quantity(answer)
    middle, whole = value.number, value.number.is_integer()
    # Twice as much on either side, but enough whole numbers where it is one.
    below, above = sorted((middle * 0.5, middle * 2))
    if whole:
        below, above = min(below, middle - CHOICES), max(above, middle + CHOICES)
        below = below if middle < 0 else max(below, 0)

    def draw() -> str:
        number = float(f"{random.uniform(below, above):.4g}")
        return str(Quantity(float(round(number)) if whole else number, value.unit))

    return [draw]
