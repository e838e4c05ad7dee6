"""Splitting examples into parts that share no question and no program."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from random import Random

from generation.judge import digest, program_mark
from kopl.example import Example
from kopl.program import post_order
from kopl_base.errors import KoplError

SHARES = (8, 1, 1)

# A group that takes more than this share of the smallest part is placed before the others.
LARGE = 0.1


def split(
    examples: Iterable[Example], seed: int, shares: Sequence[float] = SHARES, by: str = "random"
) -> tuple[list[Example], ...]:
    """The examples in as many parts as there are shares, as `assign` places them.

    Within a part they keep their order. Raises KoplError as `assign` does.
    """
    given = list(examples)
    parts: tuple[list[Example], ...] = tuple([] for _ in shares)
    for example, at in zip(given, assign(given, seed, shares, by), strict=True):
        parts[at].append(example)
    return parts


def assign(
    examples: Iterable[Example], seed: int, shares: Sequence[float] = SHARES, by: str = "random"
) -> list[int]:
    """The number of each example's part; the examples themselves are not kept.

    Examples with the same question, canonical question or program, or whose ids are the same up to
    a "#" (paraphrases), come into the same part. ``by`` says what else tells the parts apart:

    - "random": nothing.
    - "compositional": programs of at most N calls are in the first part, longer ones in the others;
      N is the number that brings the first part nearest to its share.
    - "answers": no answer stands in two parts.
    - "combinations": no set of functions stands in two parts.

    Raises KoplError for shares that are not above 0, and when the examples cannot be told apart so.
    """
    if not shares or any(not 0 < share < float("inf") for share in shares):
        raise KoplError(f"shares are numbers above 0, not {list(shares)}")
    if by not in WAYS:
        raise KoplError(f"there is no split by {by!r}; give one of {', '.join(WAYS)}")
    if by != "random" and len(shares) < 2:
        raise KoplError(f"a split by {by} needs two shares or more, as in 8,1,1")
    return WAYS[by](examples, Random(seed), list(shares))


def _random(examples: Iterable[Example], random: Random, shares: list[float]) -> list[int]:
    groups = _groups(_marks(example) for example in examples)
    random.shuffle(groups)
    return _numbers(_dealt(groups, shares))


def _compositional(examples: Iterable[Example], random: Random, shares: list[float]) -> list[int]:
    calls: list[int] = []

    def marks() -> Iterator[list[Hashable]]:
        for example in examples:
            calls.append(example.program.size)
            yield _marks(example)

    groups = _groups(marks())
    # A group counts by its longest program: nothing longer than N is in the first part.
    lengths = [max(calls[number] for number in group) for group in groups]
    if len(set(lengths)) < 2:
        raise KoplError("all programs are of one length, so that none is longer than the others")
    wanted = shares[0] / sum(shares) * len(calls)
    short = 0
    nearest: tuple[float, int] | None = None
    for length in sorted(set(lengths))[:-1]:
        short += sum(len(g) for g, own in zip(groups, lengths, strict=True) if own == length)
        if nearest is None or abs(short - wanted) < nearest[0]:
            nearest = abs(short - wanted), length
    assert nearest is not None
    longest = nearest[1]
    first = [g for g, own in zip(groups, lengths, strict=True) if own <= longest]
    others = [g for g, own in zip(groups, lengths, strict=True) if own > longest]
    random.shuffle(others)
    parts = [[number for group in first for number in group], *_dealt(others, shares[1:])]
    return _numbers(parts)


def _by_answers(examples: Iterable[Example], random: Random, shares: list[float]) -> list[int]:
    def answer(example: Example) -> Hashable:
        if example.answers:
            return "answers", digest("\n".join(sorted(one.strip() for one in example.answers)))
        if example.answer is None:
            raise KoplError(f"the question {example.question!r} has no answer to split by")
        return "answer", digest(example.answer.strip())

    return _apart(examples, answer, random, shares, "answers")


def _by_functions(examples: Iterable[Example], random: Random, shares: list[float]) -> list[int]:
    def functions(example: Example) -> Hashable:
        return frozenset(call.function.name for call in post_order(example.program))

    return _apart(examples, functions, random, shares, "sets of functions")


def _apart(
    examples: Iterable[Example],
    trait: Callable[[Example], Hashable],
    random: Random,
    shares: list[float],
    name: str,
) -> list[int]:
    """The parts when examples with the same trait stay together."""
    groups = _groups([*_marks(example), trait(example)] for example in examples)
    if len(groups) < len(shares):
        raise KoplError(
            f"the examples fall into {len(groups)} groups of different {name}, too few for"
            f" {len(shares)} parts"
        )
    random.shuffle(groups)
    # A common answer would fill a small part alone. The large groups are placed first, the largest
    # before the others, each where most is missing.
    size = sum(map(len, groups))
    bound = max(1.0, LARGE * min(shares) / sum(shares) * size)
    large = sorted((group for group in groups if len(group) > bound), key=len, reverse=True)
    small = [group for group in groups if len(group) <= bound]
    parts: list[list[int]] = [[] for _ in shares]
    for group in large:
        missing = [
            size * share / sum(shares) - len(p) for share, p in zip(shares, parts, strict=True)
        ]
        parts[missing.index(max(missing))] += group
    return _numbers(_dealt(small, shares, parts))


WAYS: dict[str, Callable[[Iterable[Example], Random, list[float]], list[int]]] = {
    "random": _random,
    "compositional": _compositional,
    "answers": _by_answers,
    "combinations": _by_functions,
}


def _dealt(
    groups: Iterable[list[int]], shares: Sequence[float], begun: list[list[int]] | None = None
) -> list[list[int]]:
    """The groups in parts, each given to the part that is furthest behind its share."""
    parts: list[list[int]] = begun or [[] for _ in shares]
    for group in groups:
        at = min(range(len(shares)), key=lambda n: (len(parts[n]) + len(group)) / shares[n])
        parts[at] += group
    return parts


def _numbers(parts: Sequence[Sequence[int]]) -> list[int]:
    """The number of the part of each example."""
    numbers = [0] * sum(map(len, parts))
    for at, part in enumerate(parts):
        for number in part:
            numbers[number] = at
    return numbers


def _marks(example: Example) -> list[Hashable]:
    """What examples of different parts must not have in common."""
    marks: list[Hashable] = [
        ("text", digest(example.question)),
        ("program", program_mark(example.program)),
    ]
    if example.canonical is not None:
        marks.append(("text", digest(example.canonical)))
    if example.id is not None and (of := example.id.partition("#")[0]):
        marks.append(("id", digest(of)))
    return marks


def _groups(marks: Iterable[Sequence[Hashable]]) -> list[list[int]]:
    """The numbers of the examples, grouped by equal marks."""
    parent: list[int] = []

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    first: dict[Hashable, int] = {}
    for number, own in enumerate(marks):
        parent.append(number)
        for mark in own:
            parent[root(number)] = root(first.setdefault(mark, number))
    groups: dict[int, list[int]] = {}
    for number in range(len(parent)):
        groups.setdefault(root(number), []).append(number)
    return list(groups.values())
