"""Filling the categories of one type with pairs, within the caps for relations and anchors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from cqa.answering.template import Grounded
from cqa.balanced.blocks import Candidate
from cqa.sampling.options import SamplingError
from cqa.types.tree import Tree, arrange

# A category is given up after so many rounds in a row that brought it less than a share of what it
# wants.
PATIENCE = 10
LEAST_SHARE = 1 / 2000


class Filling:
    """The pairs of one type so far.

    ``categories`` are wanted ``pairs`` of each, no relation and no anchor in more than a ``share``
    of them all. Raises SamplingError for a type without categories, and for a share of less than
    one pair.
    """

    def __init__(
        self, name: str, categories: Sequence[str], pairs: int, share: float, seed: int
    ) -> None:
        self.name, self.categories = name, list(categories)
        self.kept: list[Candidate] = []
        self.round = 0
        self._seed, self._pairs = seed, pairs
        self._room = dict.fromkeys(categories, pairs)
        self._barren = dict.fromkeys(categories, 0)
        self._before = dict(self._room)
        # Of what the type will have in the end, if every category fills up.
        self._cap = math.floor(share * pairs * len(categories))
        if not categories:
            raise SamplingError(f"{name}: no match of this type has a link that may be missing")
        if not self._cap:
            raise SamplingError(
                f"{name}: {share:.0%} of {pairs * len(categories)} pairs is less than one; ask for"
                " more pairs or allow a larger share"
            )
        self._uses: tuple[Counter[int], Counter[int]] = Counter(), Counter()
        self._keys: set[Grounded] = set()

    @property
    def open(self) -> list[str]:
        """The categories that want more pairs and still find some."""
        return [
            name for name in self.categories if self._room[name] and self._barren[name] < PATIENCE
        ]

    @property
    def total(self) -> int:
        """The number of pairs."""
        return sum(self._pairs - room for room in self._room.values())

    @property
    def barren(self) -> dict[str, int]:
        """For each category how many rounds in a row brought next to nothing."""
        return dict(self._barren)

    def barred(self) -> tuple[frozenset[int], frozenset[int]]:
        """The relations and the anchors that are in as many pairs as they may be."""
        found = [{n for n, count in uses.items() if count >= self._cap} for uses in self._uses]
        return frozenset(found[0]), frozenset(found[1])

    def add(self, block: Sequence[Candidate], number: int) -> list[Candidate]:
        """Take of a block what there is room for, and say what that was."""
        taken = []
        for at, candidate in enumerate(block):
            found = self._taken(candidate, Random(f"{self._seed}/{self.name}/{number}/{at}"))
            if found is not None:
                self.keep(found)
                taken.append(found)
        return taken

    def _taken(self, candidate: Candidate, random: Random) -> Candidate | None:
        if _key(candidate.query) in self._keys:
            return None
        pairs = {}
        for name, rows in sorted(candidate.pairs.items()):
            room = self._room[name]
            if room and len(rows) > room:
                rows = rows[sorted(random.sample(range(len(rows)), room))]
            if room:
                pairs[name] = rows
        size = sum(map(len, pairs.values()))
        numbers = candidate.relations, candidate.anchors
        if not size or any(
            uses[one] + size > self._cap
            for uses, own in zip(self._uses, numbers, strict=True)
            for one in own
        ):
            return None
        return replace(candidate, pairs=pairs)

    def keep(self, candidate: Candidate) -> None:
        """Count a query whose pairs have room."""
        self.kept.append(candidate)
        self._keys.add(_key(candidate.query))
        size = 0
        for name, rows in candidate.pairs.items():
            self._room[name] -= len(rows)
            size += len(rows)
        for uses, own in zip(self._uses, (candidate.relations, candidate.anchors), strict=True):
            uses.update(dict.fromkeys(own, size))

    def end_round(self) -> None:
        """Count the categories that the round brought next to nothing."""
        for name in self.open:
            new = self._before[name] - self._room[name]
            few = new < max(1, self._pairs * LEAST_SHARE) and self._room[name]
            self._barren[name] = self._barren[name] + 1 if few else 0
        self._before = dict(self._room)
        self.round += 1

    def restore(self, round_: int, barren: dict[str, int]) -> None:
        """Go on after so many rounds, all queries of which are kept."""
        self.round, self._before = round_, dict(self._room)
        self._barren.update(barren)


def _key(query: Grounded) -> Grounded:
    """The query with its operands in order, so that equal ones are equal."""
    return arrange(query) if isinstance(query, Tree) else query


def capped(filling: Filling, share: float) -> list[Candidate]:
    """The queries less the last ones of each relation and anchor that is in too many pairs.

    The caps hold already where every category is full; where one stayed short there are fewer pairs
    to have a share of. Raises SamplingError when nothing is left.
    """
    kept: dict[int, Candidate] = dict(enumerate(filling.kept))
    if share >= 1 or not kept:
        return list(kept.values())
    sizes = {at: sum(map(len, one.pairs.values())) for at, one in kept.items()}
    holders: dict[tuple[str, int], list[int]] = {}
    items: dict[int, list[tuple[str, int]]] = {}
    for at, one in kept.items():
        items[at] = [("relation", n) for n in one.relations] + [("anchor", n) for n in one.anchors]
        for item in items[at]:
            holders.setdefault(item, []).append(at)
    counts = {item: sum(sizes[at] for at in own) for item, own in holders.items()}
    total = sum(sizes.values())
    while kept:
        worst = max(counts, key=lambda item: (counts[item], item))
        if counts[worst] <= share * total:
            return list(kept.values())
        while counts[worst] > share * total and holders[worst]:
            at = holders[worst].pop()
            if at in kept:
                del kept[at]
                total -= sizes[at]
                for item in items[at]:
                    counts[item] -= sizes[at]
    raise SamplingError(
        f"{filling.name}: no choice of queries keeps every relation and anchor within {share:.0%}"
        " of the pairs; the graph has too few of them: allow a larger share"
    )
