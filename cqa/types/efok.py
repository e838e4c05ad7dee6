"""EFOk's query types: all conjunctive query graphs within limits (EFOk-CQA, 2023).

A type is built in steps: a connected simple graph over the variables (a core), parallel edges,
constants, negations. At every step one choice of each orbit of the graph's automorphisms is kept,
so that no two types are isomorphic and nothing has to be compared afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import combinations
from typing import TypeAlias

from cqa.errors import QueryError
from cqa.types.canonical import automorphisms, canonical_order
from cqa.types.shape import Shape

# A graph of more variables may have more automorphisms than can be listed.
MOST_VARIABLES = 9

Pair: TypeAlias = tuple[int, int]
Permutation: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a query graph may be; the defaults are the published limits.

    Raises QueryError for limits that allow nothing.
    """

    existential: int = 2
    free: int = 2
    constants: int = 3
    nodes: int = 6
    edges: int = 6
    extra: int = 1
    """Edges among the variables beyond those of a tree, parallel ones included."""
    parallel: int = 2
    """Edges between the same two variables."""
    negative: int = 1
    distance: int = 3
    """Hops from any node to the nearest free variable."""

    def __post_init__(self) -> None:
        for field in fields(self):
            least = 0 if field.name in ("existential", "extra", "negative") else 1
            value = getattr(self, field.name)
            if not isinstance(value, int) or value < least:
                raise QueryError(f"the limit {field.name} is {least} or more, not {value!r}")

        if min(self.existential + self.free, self.nodes - 1) > MOST_VARIABLES:
            raise QueryError(f"the limits allow more than {MOST_VARIABLES} variables; lower one")


PUBLISHED = Limits()


@dataclass(frozen=True, slots=True)
class Core:
    """A connected simple graph over the variables: existential ones first, then free ones."""

    existential: int
    free: int
    pairs: tuple[Pair, ...]

    @property
    def size(self) -> int:
        """The number of variables."""
        return self.existential + self.free


def complete(limits: Limits = PUBLISHED) -> Iterator[Shape]:
    """Every query type within the limits, no two of them isomorphic: 1,907 at the published ones.

    By existential variables, free variables and constants, then by edges above a tree's.
    """
    for existential in range(limits.existential + 1):
        for free in range(1, limits.free + 1):
            for constants in range(1, limits.constants + 1):
                for extra in range(limits.extra + 1):
                    yield from _types(Core(existential, free, ()), constants, extra, limits)


def fit(core: Core, constants: int, extra: int, limits: Limits) -> bool:
    """Whether graphs of so many variables, constants and extra edges keep to the limits."""
    nodes = core.size + constants
    return nodes <= limits.nodes and nodes - 1 + extra <= limits.edges


def _types(size: Core, constants: int, extra: int, limits: Limits) -> Iterator[Shape]:
    if not fit(size, constants, extra, limits):
        return
    for doubled in range(extra + 1):
        for core in cores(size.existential, size.free, extra - doubled):
            for positive in anchored(core, doubled, constants, limits):
                yield from _negated(core, *positive, limits)


def anchored(
    core: Core, doubled: int, constants: int, limits: Limits
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], list[Permutation]]]:
    """The positive types over a core: of isomorphic ones, the one whose counts come last.

    Yields for each the number of edges over every pair, the number of constants at every variable,
    and its automorphisms. ``doubled`` is the number of edges beyond one over every pair.
    """
    distances = distances_to_free(core)
    # A constant is one hop further than the variable that it stands at.
    if max(distances) > limits.distance:
        return
    room = [constants if distance < limits.distance else 0 for distance in distances]
    clusters = clusters_in_need(core)
    symmetries = automorphisms(_kinds(core), core.pairs)
    for beyond in _dealt(doubled, [limits.parallel - 1] * len(core.pairs)):
        kept = _stabilizer(symmetries, beyond, core.pairs)
        if kept is None:
            continue
        for at in _dealt(constants, room):
            if not all(any(at[variable] for variable in cluster) for cluster in clusters):
                continue
            fixing = _stabilizer(kept, (), (), at)
            if fixing is not None:
                yield tuple(1 + more for more in beyond), at, fixing


def _negated(
    core: Core,
    counts: tuple[int, ...],
    constants: tuple[int, ...],
    symmetries: list[Permutation],
    limits: Limits,
) -> Iterator[Shape]:
    """The types of a positive one: itself, and those with negative edges."""
    for negative in range(min(limits.negative, sum(counts) + sum(constants)) + 1):
        for chosen in _dealt(negative, [*counts, *constants]):
            edges, at = chosen[: len(counts)], chosen[len(counts) :]
            kept = _stabilizer(symmetries, edges, core.pairs, at)
            if kept is None:
                continue
            shape = signed(core, counts, edges, constants, at)
            if negative == 0 or is_safe(shape):
                yield shape


def signed(
    core: Core,
    counts: Sequence[int],
    negative: Sequence[int],
    constants: Sequence[int],
    negative_constants: Sequence[int],
) -> Shape:
    """The type with so many edges over each pair and constants at each variable, some negative."""
    edges = [
        (low, high, number >= count_negative)
        for (low, high), count, count_negative in zip(core.pairs, counts, negative, strict=True)
        for number in range(count)
    ]
    ends = [
        (variable, number >= count_negative)
        for variable, (count, count_negative) in enumerate(
            zip(constants, negative_constants, strict=True)
        )
        for number in range(count)
    ]
    return Shape(core.existential, core.free, tuple(edges), tuple(ends))


def is_safe(shape: Shape) -> bool:
    """Whether a type makes sense without its negative edges.

    Every variable still has a positive edge, and some constant still reaches some free variable
    through positive edges.
    """
    positive = [(low, high) for low, high, sign in shape.edges if sign]
    sources = {variable for variable, sign in shape.constants if sign}
    touched = sources.union(*positive)
    if len(touched) < shape.existential + shape.free:
        return False
    reached = spread(sources, positive)
    return any(variable >= shape.existential for variable in reached)


@lru_cache(maxsize=1024)
def cores(existential: int, free: int, extra: int) -> tuple[Core, ...]:
    """The connected simple graphs over variables with so many edges beyond a tree's.

    One of each isomorphism class, pairs in order. Trees grow by a leaf, others by an edge: every
    connected graph can be taken apart so, with a free variable left at last.
    """
    if free < 1:
        return ()
    if existential == 0 and free == 1:
        return (Core(0, 1, ()),) if extra == 0 else ()
    grown: dict[tuple[Pair, ...], None] = {}
    if extra:
        for core in cores(existential, free, extra - 1):
            for pair in combinations(range(core.size), 2):
                if pair not in core.pairs:
                    grown.setdefault(_canonical(Core(existential, free, (*core.pairs, pair))))
    else:
        # A leaf is the last of its kind, so that existential ones move the free ones up by one.
        for core in cores(existential - 1, free, 0) if existential else ():
            last = core.existential
            moved = tuple((a + (a >= last), b + (b >= last)) for a, b in core.pairs)
            for at in range(core.size):
                joined = (*moved, (at + (at >= last), last))
                grown.setdefault(_canonical(Core(existential, free, joined)))
        for core in cores(existential, free - 1, 0):
            for at in range(core.size):
                joined = (*core.pairs, (at, core.size))
                grown.setdefault(_canonical(Core(existential, free, joined)))
    return tuple(Core(existential, free, pairs) for pairs in sorted(grown))


def _canonical(core: Core) -> tuple[Pair, ...]:
    place = canonical_order(_kinds(core), core.pairs)
    moved = ((place[a], place[b]) for a, b in core.pairs)
    return tuple(sorted((min(pair), max(pair)) for pair in moved))


def _kinds(core: Core) -> list[int]:
    return [0] * core.existential + [1] * core.free


def distances_to_free(core: Core) -> list[int]:
    """For each variable, the hops to the nearest free one."""
    found = dict.fromkeys(range(core.existential, core.size), 0)
    hops = 0
    while len(found) < core.size:
        hops += 1
        found.update(dict.fromkeys(spread(set(found), core.pairs, steps=1) - found.keys(), hops))
    return [found[variable] for variable in range(core.size)]


def clusters_in_need(core: Core) -> list[set[int]]:
    """The clusters of existential variables that need a constant.

    A cluster is what hangs together once the free variables are taken out. Without a constant it
    only tells that something exists, which is allowed for variables next to a free one, not for
    those whose neighbours are all existential.
    """
    inner = [pair for pair in core.pairs if max(pair) < core.existential]
    near = {min(pair) for pair in core.pairs if max(pair) >= core.existential}
    left = set(range(core.existential))
    needy = []
    while left:
        cluster = spread({min(left)}, inner)
        left -= cluster
        if not cluster <= near:
            needy.append(cluster)
    return needy


def spread(start: set[int], pairs: Iterable[Pair], steps: int | None = None) -> set[int]:
    """The variables that can be reached over the pairs, in any direction."""
    pairs = list(pairs)
    reached = set(start)
    taken = 0
    while steps is None or taken < steps:
        new = {b for a, b in pairs if a in reached} | {a for a, b in pairs if b in reached}
        if new <= reached:
            break
        reached |= new
        taken += 1
    return reached


def _dealt(count: int, room: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The ways to put so many things into places with that much room."""
    if not room:
        if count == 0:
            yield ()
        return
    if count > sum(room):
        return
    for first in range(min(count, room[0]), -1, -1):
        for others in _dealt(count - first, room[1:]):
            yield (first, *others)


def _stabilizer(
    symmetries: list[Permutation],
    counts: tuple[int, ...],
    pairs: tuple[Pair, ...],
    at_nodes: tuple[int, ...] = (),
) -> list[Permutation] | None:
    """The symmetries that keep numbers at pairs (and at variables), or None.

    None says that another choice of the same orbit comes later, so that this one is not kept.
    """
    place = {pair: number for number, pair in enumerate(pairs)}
    kept = []
    for symmetry in symmetries:
        moved = [0] * len(pairs)
        for (a, b), count in zip(pairs, counts, strict=True):
            a, b = symmetry[a], symmetry[b]
            moved[place[(a, b) if a < b else (b, a)]] = count
        other = (tuple(moved), _moved_nodes(symmetry, at_nodes))
        if other > (counts, at_nodes):
            return None
        if other == (counts, at_nodes):
            kept.append(symmetry)
    return kept


def _moved_nodes(symmetry: Permutation, at: tuple[int, ...]) -> tuple[int, ...]:
    moved = [0] * len(at)
    for variable, count in enumerate(at):
        moved[symmetry[variable]] = count
    return tuple(moved)


def by_shape(shapes: Iterable[Shape]) -> dict[tuple[int, int, int, str], int]:
    """Tables 3 and 4: types for each (free, constants, existential, topology)."""
    return dict(
        sorted(
            Counter((s.free, len(s.constants), s.existential, s.topology) for s in shapes).items()
        )
    )
