"""Ten choices for a question, as in KQA Pro: near misses first, then values of the same kind.

The distractors are the other answers of the program without one of its clauses, drawn at random
(Section 4 of the paper); what is missing is filled up from what the answer is one of: entities of
its concepts, values of the key, relations, near numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from random import Random

from generation.clauses import Dropped
from kb import KnowledgeBase, Quantity
from kb.errors import ValueReadError
from kb.values import read_quantity
from kopl.answers import published_equal, same_answer
from kopl.functions import QUERY_NAME
from kopl.program import Call
from kopl.types import Type

CHOICES = 10
UNKNOWN = "unknown"
_TRIES = 12  # draws for each choice that is still missing


class Choices:
    """Gives the choices of questions over one knowledge base."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self._values = {key: numbers.tolist() for key, numbers in kb.values_of_keys().items()}
        self._qualifiers = {k: numbers.tolist() for k, numbers in kb.qualifier_values_of().items()}
        self._instances = lru_cache(maxsize=5_000)(self._instances_of)

    def draw(
        self,
        program: Call,
        answer: str,
        dropped: Sequence[Dropped],
        denote: Callable[[Call], list[str]],
        random: Random,
    ) -> tuple[str, ...]:
        """Ten different texts in random order, of which exactly one is the answer.

        ``dropped`` are the ways to drop a clause, ``denote`` executes programs. No other choice
        equals the answer under the default answer rule or the published one. A knowledge base
        without enough values fills up with "unknown", as the paper does for yes and no.
        """
        found = [answer]
        if program.function.output is Type.TRUTH:
            found += ["no" if answer == "yes" else "yes"]
        else:
            for text in self._candidates(program, answer, dropped, denote, random):
                if len(found) == CHOICES:
                    break
                if text not in found and not _same(answer, text):
                    found.append(text)
        found += [UNKNOWN] * (CHOICES - len(found))
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
            if self.kb.entity_count:
                yield [lambda: self.kb.name_of(random.randrange(self.kb.entity_count))]
        else:
            yield from self._value_pools(program, answer, random)

    def _value_pools(
        self, program: Call, answer: str, random: Random
    ) -> Iterator[Sequence[Callable[[], str]]]:
        of_qualifier = program.function.output is Type.QUALIFIER_VALUES
        values, key = self._values, program.arguments[0]
        if of_qualifier:
            values, key = self._qualifiers, program.arguments[-1]
        numbers = values.get(key, [])
        if numbers:
            unit = _unit(answer)

            def of_unit() -> str:
                value = self.kb.values[random.choice(numbers)]
                fits = isinstance(value, Quantity) and value.unit == unit
                return str(value) if fits or unit is None else answer

            yield [of_unit]
            yield [lambda: str(self.kb.values[random.choice(numbers)])]
        if unit_numbers := _scaled(answer, random):
            yield unit_numbers
        if len(self.kb.values):
            yield [lambda: str(self.kb.values[random.randrange(len(self.kb.values))])]

    def _instances_of(self, concept: int) -> list[int]:
        found: list[int] = self.kb.instances_of(self.kb.name_of(concept)).tolist()
        return found


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
    """Quantities of the answer's size, where the answer is one."""
    try:
        value = read_quantity(answer)
    except ValueReadError:
        return ()

    def draw() -> str:
        number = value.number * random.uniform(0.5, 2.0)
        return str(Quantity(float(f"{number:.{4}g}"), value.unit))

    return [draw]
