"""Ten choices for a question, as in KQA Pro: near misses first, then values of the same kind.

The distractors are the other answers of the program without one of its clauses, drawn at random
(Section 4 of the paper); what is missing is filled up from what the answer is one of: entities of
its concepts or with the same relation or key, values of the key, relations, near numbers.

Choices must not tell by themselves which one is the answer. So values of qualifiers and counts are
all drawn from one window, that the answer has any place in and that would have been the same for
each of the others: what is as likely an answer is as likely a distractor.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import islice, pairwise
from random import Random

import numpy as np
from numpy.typing import NDArray

from generation.english import can_be_read
from generation.judge import FILTERS, Dropped
from kb import KnowledgeBase, Quantity, Value
from kb.arrays import EMPTY, Ids, Mask, expand
from kb.values import ValueReadError, read_quantity
from kb.valuetable import ValueTable
from kopl.answers import published_equal, same_answer
from kopl.functions import FIND_ALL, QUERY_ATTR_QUALIFIER, QUERY_NAME, RELATE
from kopl.program import Call
from kopl.types import Type

CHOICES = 10
UNKNOWN = "unknown"
_EVERYTHING = Call(QUERY_NAME, (Call(FIND_ALL),))
_TRIES = 12  # draws for each choice that is still missing
# How many different values a window has at least, drawn for each question, and how many windows
# part the values of a kind at most.
_WINDOW, _PARTS = (12, 20), 6
# Of what is drawn from, the part that one may have at most, and that the answer may have.
_EVEN, _LED = 40, 0.2
# How many of ten may be what is left without a clause, and how many where that is a name.
_NEAR, _NEAR_NAMES = 3, 5


class Crowd:
    """Nodes, or values in order, each with how likely it is an answer."""

    def __init__(
        self, numbers: Ids, shares: NDArray[np.float64], likely: NDArray[np.float64] | None = None
    ) -> None:
        """``numbers`` may come several times; their shares of the crowd add up.

        They are drawn by how likely each number is, where that is not its share.
        """
        found, at = np.unique(numbers, return_inverse=True)
        self.numbers: list[int] = found.tolist()
        self._shares = np.bincount(at, shares, len(found))
        self._likely = self._shares if likely is None else likely[found]

    @cached_property
    def _bounds(self) -> list[float]:
        # What is a large part of them all is not to be among the choices of every question; and the
        # answers of a block are spread, too.
        most = self._likely.sum() / _EVEN
        return [0.0, *np.cumsum(np.minimum(self._likely, most)).tolist()]

    def is_led_by(self, number: int) -> bool:
        """Whether one of them is the answer so often that it would stick out among the others."""
        at = bisect_left(self.numbers, number)
        if at == len(self.numbers) or self.numbers[at] != number:
            return True
        return bool(self._shares[at] > _LED * self._shares.sum())

    def draw(self, random: Random, window: range | None = None) -> Iterator[int]:
        """Some of them, or of a range of places; again and again, where there are many."""
        window = window or range(len(self.numbers))
        if len(window) <= CHOICES:
            yield from (self.numbers[at] for at in random.sample(window, len(window)))
            return
        low, high = self._bounds[window.start], self._bounds[window.stop]
        for _ in range(_TRIES * CHOICES):
            drawn = low + random.random() * (high - low)
            at = bisect_right(self._bounds, drawn, window.start, window.stop) - 1
            yield self.numbers[at]


class Spectrum(Crowd):
    """Values of one kind."""

    def __init__(self, values: ValueTable, numbers: Ids, weights: NDArray[np.float64]) -> None:
        super().__init__(numbers, weights)
        self._values = values

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each value stands, by its text."""
        return {text: at for at, text in enumerate(self._values.texts(self.numbers))}

    def around(self, number: int, width: int) -> range:
        """The places of the window that a value lies in, which is at least so wide if it can be.

        Windows part the values, so that each of a window has the same one.
        """
        count = len(self.numbers)
        parts = max(1, count // max(width, count // _PARTS))
        part = min(bisect_left(self.numbers, number), count - 1) * parts // count
        return range(-(-part * count // parts), -(-(part + 1) * count // parts))


class Choices:
    """Gives the choices of questions over one knowledge base."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self._values = lru_cache(maxsize=None)(self._values_of)
        self._qualifiers = {k: numbers.tolist() for k, numbers in kb.qualifier_values_of().items()}
        self._spectra = lru_cache(maxsize=5_000)(self._spectra_of)
        self._crowd = lru_cache(maxsize=5_000)(self._crowd_of)
        # The same few are drawn again and again where a key has no ten values.
        self._value = lru_cache(maxsize=10_000)(self._value_and_text)

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
                if text not in found and can_be_read(text) and not _same(answer, text):
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
        near = self._near_misses(dropped, denote, random)
        output = program.function.output
        if output is Type.NUMBER:
            yield from _counts(int(answer), near, random)
            return
        if output is Type.NAMES:
            if program.function is QUERY_NAME:
                yield from islice(near, _NEAR_NAMES)
            else:
                yield from near
                # What there was to choose from.
                for given in program.inputs:
                    others = denote(Call(QUERY_NAME, (given,)))
                    yield from random.sample(others, min(len(others), 2 * CHOICES))
            yield from self._alike(program, answer, random)
        elif output is Type.QUALIFIER_VALUES:
            yield from self._of_qualifier(program, answer, near, random)
        yield from near
        for pool in self._pools(program, answer, random):
            for _ in range(_TRIES * CHOICES if pool else 0):
                yield pool[random.randrange(len(pool))]()

    def _near_misses(
        self, dropped: Sequence[Dropped], denote: Callable[[Call], list[str]], random: Random
    ) -> Iterator[str]:
        """Answers of the program without one of its clauses."""
        for way in random.sample(list(dropped), len(dropped)):
            if way.program == _EVERYTHING:
                continue  # all there is; the pools below are nearer
            others = denote(way.program)
            yield from random.sample(others, min(len(others), 2 * CHOICES))

    def _of_qualifier(
        self, program: Call, answer: str, near: Iterable[str], random: Random
    ) -> Iterator[str]:
        """Values of the answer's kind: of the same facts, of the same qualifier, of any."""
        table = "literal" if program.function is QUERY_ATTR_QUALIFIER else "relational"
        predicate, key, width = (
            program.arguments[0],
            program.arguments[-1],
            random.randint(*_WINDOW),
        )
        kind, number = self._kind_of(answer, self._spectra(table, predicate, key))
        if kind is None:
            return
        stages = [
            self._spectra(table, of, by) for of, by in ((predicate, key), ("", key), ("", ""))
        ]
        spectra = [stage[kind] for stage in stages]
        # Numbers and times of all facts: that 2025 is there would tell of what it is the year.
        spectra = spectra if kind == "string" else spectra[1:]
        for spectrum in (*(one for one in spectra if not one.is_led_by(number)), *spectra):
            whole = range(len(spectrum.numbers))
            window = whole if kind == "string" else spectrum.around(number, width)
            fits = (text for text in near if spectrum.places.get(text, -1) in window)
            yield from islice(fits, _NEAR)
            yield from (self._value(drawn)[1] for drawn in spectrum.draw(random, window))

    @staticmethod
    def _kind_of(answer: str, spectra: Mapping[str, Spectrum]) -> tuple[str | None, int]:
        """The kind and the number of a value."""
        for kind, spectrum in spectra.items():
            if (at := spectrum.places.get(answer)) is not None:
                return kind, spectrum.numbers[at]
        return None, -1

    def _spectra_of(self, table: str, predicate: str, key: str) -> dict[str, Spectrum]:
        """The values of a qualifier key by kind: those of a relation's or key's facts, or of all.

        All qualifier keys where none is given. Relations and keys weigh the same, as they are drawn
        before their facts.
        """
        kb = self.kb
        if table == "literal":
            facts, number = kb.literals, kb.key_number(predicate)
        else:
            facts, number = kb.relational, kb.relation_number(predicate)
        rows = facts.of_predicate(number) if predicate else np.arange(len(facts.subject))
        starts = np.asarray(kb.arrays["qualifier_starts"])
        low, high = starts[facts.qualifiers[rows]], starts[facts.qualifiers[rows] + 1]
        at, of = expand(low, high), np.repeat(facts.predicate[rows], high - low)
        keys, values = kb.qualifier_sets.columns()
        if key:
            fits = keys[at] == kb.key_number(key)
            at, of = at[fits], of[fits]
        numbers, weights = values[at], 1 / np.bincount(of)[of]
        return {
            kind: Spectrum(kb.values, numbers[fits], weights[fits])
            for kind, fits in _by_kind(kb.values, numbers)
        }

    def _alike(self, program: Call, answer: str, random: Random) -> Iterator[str]:
        """Names of what is an answer as likely: of the same concepts, relations, keys, of all."""
        kb, nodes = self.kb, self.kb.named(answer).tolist()
        groups = [
            ("concept", kb.name_of(concept))
            for node in nodes
            for concept in (kb.concepts_of(node) if kb.is_entity(node) else ())
        ]
        groups += _asked_of(program)
        groups += [group for node in nodes for group in _related(node, kb)]
        crowds = [self._crowd(*group) for group in dict.fromkeys(groups)]
        even = [crowd for crowd in crowds if not any(map(crowd.is_led_by, nodes))]
        for crowd in (*even, *([] if even else [self._crowd("", "")]), *crowds):
            yield from map(kb.name_of, crowd.draw(random))

    def _crowd_of(self, kind: str, of: str) -> Crowd:
        """The nodes of a concept, at an end of a relation, with a key, or all there are."""
        kb = self.kb
        if kind == "concept":
            nodes = kb.instances_of(of)
        elif kind == "key":
            number = kb.key_number(of)
            nodes = kb.literals.subject[kb.literals.of_predicate(number)] if number >= 0 else EMPTY
        elif kind:
            number, table = kb.relation_number(of), kb.relational
            ends = table.object if kind == "forward" else table.subject
            nodes = ends[table.of_predicate(number)] if number >= 0 else EMPTY
        else:
            nodes = np.arange(kb.node_count, dtype=np.int32)
        by_fact = np.ones(len(nodes)) if kind in ("key", "forward", "backward") else None
        return Crowd(nodes, self._likely[nodes] if by_fact is None else by_fact, self._likely)

    @cached_property
    def _likely(self) -> NDArray[np.float64]:
        """For each node how likely it is drawn, as a relation or key is drawn before its facts."""
        kb, found = self.kb, np.zeros(self.kb.node_count)
        for table in (kb.relational, kb.literals):
            share = 1 / np.bincount(table.predicate)[table.predicate]
            np.add.at(found, table.subject, share)
            if table is kb.relational:
                np.add.at(found, table.object, share)
        return found

    def _pools(
        self, program: Call, answer: str, random: Random
    ) -> Iterator[Sequence[Callable[[], str]]]:
        """What is of the answer's kind, the nearest first, as functions that give a text."""
        output = program.function.output
        if output is Type.RELATIONS:
            yield [lambda: random.choice(self.kb.relations)]
        elif output is Type.NAMES:
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


def _asked_of(program: Call) -> Iterator[tuple[str, str]]:
    """What a program asks of its answer: the relations, with their direction, and the keys."""
    if program.function is not QUERY_NAME:  # they select by the values of a key
        yield "key", program.arguments[0]
    waiting = list(program.inputs)
    while waiting:
        call = waiting.pop(0)
        if call.function is RELATE:
            relation, direction = call.arguments
            yield direction, relation
            continue
        if call.function in FILTERS:
            yield "key", call.arguments[0]
        waiting += call.inputs


def _related(node: int, kb: KnowledgeBase) -> Iterator[tuple[str, str]]:
    """The relations of a node and the end at which it is, that of most facts first."""
    table, single = kb.relational, np.array([node], np.int32)
    ends = (("backward", table.of_subjects(single)), ("forward", table.of_tails(single)))
    for end, facts in sorted(ends, key=lambda end: -len(end[1])):
        counts = np.bincount(table.predicate[facts])
        for relation in np.argsort(-counts, kind="stable").tolist():
            if counts[relation]:
                yield end, kb.relations[relation]


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


def _by_kind(values: ValueTable, numbers: Ids) -> Iterator[tuple[str, Mask]]:
    """Which values may stand for one another: strings, those in a unit, years, days."""
    yield "string", numbers < values.first_quantity
    quantities = values.is_quantity(numbers)
    units = np.full(len(numbers), -1, np.int32)
    units[quantities] = values.units_of(numbers[quantities])
    for unit in np.unique(units[quantities]).tolist():
        yield f"in {unit}", units == unit
    days, times = values.is_date(numbers), numbers >= values.first_time
    yield "year", times & ~days
    yield "day", times & days


def _counts(count: int, near: Iterable[str], random: Random) -> Iterator[str]:
    """Numbers of the size of a count; near misses first, as far as they are of its size."""
    low, high, growth = 0, random.randint(*_WINDOW), random.uniform(2, 3)
    while count >= high:
        low, high = high, int(high * growth)
    yield from islice((text for text in near if low <= int(text) < high), _NEAR)
    yield from map(str, random.sample(range(low, high), CHOICES))


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
