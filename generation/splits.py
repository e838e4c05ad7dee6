"""Splitting examples into parts that share no question and no program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from kb.errors import KoplError
from kopl.example import Example

SHARES = (8, 1, 1)


def split(
    examples: Iterable[Example], seed: int, shares: Sequence[float] = SHARES
) -> tuple[list[Example], ...]:
    """The examples in as many parts as there are shares, drawn at random by the seed.

    Examples with the same question or the same program come into the same part; within a part they
    keep their order. Raises KoplError for shares that are not above 0.
    """
    if not shares or any(not share > 0 for share in shares):
        raise KoplError(f"shares are numbers above 0, not {list(shares)}")
    given = list(examples)
    groups = _groups(given)
    random = Random(seed)
    random.shuffle(groups)
    parts: list[list[int]] = [[] for _ in shares]
    for group in groups:
        # The part that is furthest behind its share.
        at = min(range(len(shares)), key=lambda n: (len(parts[n]) + len(group)) / shares[n])
        parts[at] += group
    return tuple([given[number] for number in sorted(part)] for part in parts)


def _groups(examples: list[Example]) -> list[list[int]]:
    """The numbers of the examples, grouped by equal question or program."""
    parent = list(range(len(examples)))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    first: dict[object, int] = {}
    for number, example in enumerate(examples):
        for mark in (example.question, example.program):
            parent[root(number)] = root(first.setdefault(mark, number))
    groups: dict[int, list[int]] = {}
    for number in range(len(examples)):
        groups.setdefault(root(number), []).append(number)
    return list(groups.values())
