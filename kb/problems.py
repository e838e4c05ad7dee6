"""What is wrong with a knowledge base, found while it is read or in it as it is, and where."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from kb.store import KnowledgeBase
from kb.values import Value, ValueReadError, read_time
from kopl_base.errors import ReadError
from kopl_base.stream import FIELD_TWICE

# Of the concepts of a cycle so many are named.
LISTED = 20

Severity = Literal["error", "warning"]


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong: how bad, a code for its kind, where, and what."""

    severity: Severity
    code: str
    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.place}: {self.message} [{self.code}]"


@dataclass
class Problems:
    """Collects problems; an error stops the reading unless ``keep_going``.

    At most ``limit`` problems of each code are kept (None: all); ``counts`` counts all of them.
    """

    source: str = ""
    keep_going: bool = False
    limit: int | None = 1000
    found: list[Problem] = field(default_factory=list)
    counts: Counter[tuple[Severity, str]] = field(default_factory=Counter)

    def error(self, code: str, place: str, message: str) -> None:
        """Note an error; raises ReadError with its place unless all problems are collected."""
        if not self.keep_going:
            raise ReadError(message, place=place, source=self.source)
        self._add(Problem("error", code, place, message))

    def field_twice(self, place: str, field: str) -> None:
        """Note an error: an object of JSON has a field twice, of which only one could be kept."""
        self.error("duplicate-field", f"{place}/{field}", FIELD_TWICE)

    def warning(self, code: str, place: str, message: str) -> None:
        """Note something that was repaired or is kept as it is."""
        self._add(Problem("warning", code, place, message))

    def _add(self, problem: Problem) -> None:
        key = (problem.severity, problem.code)
        self.counts[key] += 1
        if self.limit is None or self.counts[key] <= self.limit:
            self.found.append(problem)

    @property
    def errors(self) -> int:
        """How many errors there were."""
        return sum(n for (severity, _), n in self.counts.items() if severity == "error")

    @property
    def warnings(self) -> int:
        """How many warnings there were."""
        return sum(n for (severity, _), n in self.counts.items() if severity == "warning")


def check(kb: KnowledgeBase, problems: Problems | None = None) -> Problems:
    """The problems that a knowledge base has as it is, all of them warnings.

    Cycles of concepts, keys with several value types or units, days written as strings (which no
    date filter reaches), empty names, entities without a concept.
    """
    problems = problems or Problems(keep_going=True)
    # What the reader looks for as well, it has reported in full, with the places of the file.
    known = {code for _, code in problems.counts}
    for found in (*_cycles(kb), *_mixed_keys(kb), *_unreachable_dates(kb), *_nodes(kb)):
        if found.code not in known:
            problems.warning(found.code, found.place, found.message)
    return problems


def _warn(code: str, place: str, message: str) -> Problem:
    return Problem("warning", code, place, message)


def _place(kb: KnowledgeBase, node: int) -> str:
    return f"{'entities' if kb.is_entity(node) else 'concepts'}/{kb.id_of(node)}"


def _cycles(kb: KnowledgeBase) -> Iterator[Problem]:
    for cycle in kb.cycles():
        listed = ", ".join(kb.id_of(concept) for concept in cycle[:LISTED])
        if len(cycle) > LISTED:
            listed += f" and {len(cycle) - LISTED} more"
        yield _warn("concept-cycle", _place(kb, cycle[0]), f"concepts below themselves: {listed}")


def _mixed_keys(kb: KnowledgeBase) -> Iterator[Problem]:
    """Keys, of literal facts and of qualifiers, that have several types or units."""
    for what, keys in (
        ("keys", kb.values_of_keys()),
        ("qualifier keys", kb.qualifier_values_of()),
    ):
        for key, numbers in keys.items():
            kinds = kb.values.kinds(numbers)
            if len(kinds) > 1:
                listed = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
                yield _warn("mixed-types", f"{what}/{key}", f"values of several types: {listed}")
            units = kb.values.units(numbers)
            if len(units) > 1:
                listed = ", ".join(f"{n} in {unit}" for unit, n in units.most_common(8))
                yield _warn("mixed-units", f"{what}/{key}", f"several units: {listed}")
            if not key.strip():
                yield _warn("empty-name", f"{what}/{key}", "the key is empty")
    for relation in kb.relations:
        if not relation.strip():
            yield _warn("empty-name", f"relations/{relation}", "the relation is empty")


def check_schema(kb: KnowledgeBase) -> list[Problem]:
    """The quick part of `check`, made whenever a file is read: cycles and mixed keys."""
    return [*_cycles(kb), *_mixed_keys(kb)]


# Only the full form of a day: identifiers such as 7440-01-9 look like dates otherwise.
_WRITTEN_DAY = re.compile(r"-?[0-9]{4}([-/])[0-9]{2}\1[0-9]{2}")


def _unreachable_dates(kb: KnowledgeBase) -> Iterator[Problem]:
    days = [n for n in range(kb.values.first_quantity) if _is_written_day(kb.values[n])]
    if not days:
        return
    # The facts of all days at once, by day.
    facts = np.flatnonzero(np.isin(kb.literals.object, days))
    values = kb.literals.object[facts]
    facts, values = facts[by := np.argsort(values, kind="stable")], values[by]
    of_day = np.searchsorted(values, [[day, day + 1] for day in days]).tolist()
    pairs = np.stack(kb.qualifier_sets.columns())
    pairs = np.unique(pairs[:, np.isin(pairs[1], days)], axis=1)
    keys: dict[int, list[int]] = {}
    for key, day in pairs.T.tolist():
        keys.setdefault(day, []).append(key)
    for day, (low, high) in zip(days, of_day, strict=True):
        text = kb.values[day]
        for fact in facts[low:high].tolist():
            entity = kb.id_of(int(kb.literals.subject[fact]))
            key = kb.keys[int(kb.literals.predicate[fact])]
            yield _warn(
                "unreachable-date",
                f"entities/{entity}/attributes/{key}",
                f"{text!r} is a day written as a string: FilterDate and FilterYear pass over it",
            )
        for at in keys.get(day, []):
            yield _warn(
                "unreachable-date",
                f"qualifier keys/{kb.keys[at]}",
                f"{text!r} is a day written as a string: QFilterDate and QFilterYear pass over it",
            )


def _is_written_day(text: Value) -> bool:
    if not isinstance(text, str) or not _WRITTEN_DAY.fullmatch(text):
        return False
    try:
        read_time(text)
    except ValueReadError:
        return False
    return True


def _nodes(kb: KnowledgeBase) -> Iterator[Problem]:
    for node in range(kb.node_count):
        if not kb.name_of(node):
            yield _warn("empty-name", _place(kb, node), f"{kb.id_of(node)!r} has an empty name")
        if kb.is_entity(node) and not kb.concepts_of(node):
            yield _warn("no-concept", _place(kb, node), "the entity is an instance of no concept")
