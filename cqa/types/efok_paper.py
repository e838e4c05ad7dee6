"""EFOk's published list of query types, derived from the rules and two faults of its program.

The program deals edges to the existential variables and keeps the first graph for each way of
dealing, so that it loses cores such as e1→f1←e2 and makes others twice under exchanged names. And
it overlooks signs when it drops duplicates among the negated types, so that it keeps one for each
positive type. At the published limits 741 types result: 552 different ones of the 1,907.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from cqa.errors import QueryError
from cqa.types.efok import PUBLISHED, Core, Limits, anchored, fit, is_safe, signed, spread
from cqa.types.shape import Shape


def paper(limits: Limits = PUBLISHED) -> Iterator[Shape]:
    """The published types, each as often as it was published; 741 at the published limits.

    By existential variables, free variables, constants and edges above a tree's, then by formula
    (the order in the published file is an accident of hashing). Raises QueryError for more than two
    free variables, which the published program does not know.
    """
    if limits.free > 2:
        raise QueryError("the published list is defined for one or two free variables")
    for existential in range(limits.existential + 1):
        for free in range(1, limits.free + 1):
            for constants in range(1, limits.constants + 1):
                for extra in range(limits.extra + 1):
                    if fit(Core(existential, free, ()), constants, extra, limits):
                        found = _types(existential, free, constants, extra, limits)
                        yield from sorted(found, key=lambda shape: shape.formula)


def _types(
    existential: int, free: int, constants: int, extra: int, limits: Limits
) -> Iterator[Shape]:
    for doubled in range(extra + 1):
        pairs = existential + free - 1 + extra - doubled
        for core in _first_cores(existential, free, pairs):
            for counts, at, _ in anchored(core, doubled, constants, limits):
                yield signed(core, counts, [0] * len(counts), at, [0] * len(at))
                negated = _first_negated(core, counts, at, limits.negative)
                if negated is not None:
                    yield negated


def _first_cores(existential: int, free: int, pairs: int) -> Iterator[Core]:
    """The first connected core for each way to deal the pairs to the existential variables.

    A variable is dealt pairs to those after it, the first ones that there are; shares fall from one
    variable to the next. Of two free variables, one pair may join them.
    """
    size = existential + free
    for joined in range(free):
        for shares in _falling(pairs - joined, existential, size - 1):
            chosen = [
                (low, low + 1 + step) for low, share in enumerate(shares) for step in range(share)
            ]
            chosen += [(existential, existential + 1)] * joined
            within = all(high < size for _, high in chosen)
            if within and len(spread({0}, chosen)) == size:
                yield Core(existential, free, tuple(chosen))


def _falling(total: int, parts: int, most: int) -> Iterator[tuple[int, ...]]:
    """The ways to write a total as so many numbers from ``most`` down to 0, none rising."""
    if parts == 0:
        if total == 0:
            yield ()
        return
    for first in range(min(total, most), -1, -1):
        if first * parts < total:
            break
        for others in _falling(total - first, parts - 1, first):
            yield (first, *others)


def _first_negated(
    core: Core, counts: tuple[int, ...], constants: tuple[int, ...], negative: int
) -> Shape | None:
    """The first type with so many negative edges that makes sense, or None.

    Edges are tried variable by variable: first those to later variables, then the constants.
    """
    edges = [
        (low, place)
        for place, ((low, _), count) in enumerate(zip(core.pairs, counts, strict=True))
        for _ in range(count)
    ]
    edges += [
        (variable, len(counts) + variable)
        for variable, count in enumerate(constants)
        for _ in range(count)
    ]
    places = [place for _, place in sorted(edges)]
    for chosen in combinations(places, min(negative, len(places))) if negative else ():
        signs = [chosen.count(place) for place in range(len(counts) + len(constants))]
        shape = signed(core, counts, signs[: len(counts)], constants, signs[len(counts) :])
        if is_safe(shape):
            return shape
    return None
