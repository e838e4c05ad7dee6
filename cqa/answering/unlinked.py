"""Messages through negated edges alone: what lacks a link to some candidate.

The pairs without a link are nearly all pairs; only those with one are looked at.
"""

from __future__ import annotations

import numpy as np

from cqa.answering.semiring import Semiring, Values
from cqa.answering.table import Factor, within
from cqa.graphs.links import Links, Places, places
from kb.arrays import Ids

# Sums of floating-point numbers that should be zero come out this small, relative to their parts.
ROUNDING = 1e-12


def unlinked(
    links: Links, semiring: Semiring, factor: Factor, target: Ids, relations: list[int]
) -> Factor:
    """For each of the target entities the sum over the factor of what is not linked to it.

    An entity of the factor counts with the product of the complements of its links.
    """
    size = len(factor.ids)
    if size == 0:
        return Factor(target[:0], None if semiring.plus is None else semiring.ones(0))
    owners, sources, complements = _linked_pairs(links, semiring, factor, target, relations)
    if semiring.plus is None:
        keep = np.bincount(owners, minlength=len(target)) < size
        return Factor(target[keep])
    values = factor.values if factor.values is not None else semiring.ones(size)
    if semiring.best is None:
        found = _rest(semiring, values, owners, sources, complements, len(target))
    else:
        found = _best(semiring, values, owners, sources, complements, len(target))
    keep = found != semiring.zero
    return Factor(target[keep], found[keep])


def _linked_pairs(
    links: Links, semiring: Semiring, factor: Factor, target: Ids, relations: list[int]
) -> tuple[Places, Places, Values | None]:
    """The linked pairs as (place in target, place in factor), sorted, each once.

    The third column is the product of the complements of a pair's links, None when all are zero.
    """
    owners, sources, found = [], [], []
    for relation in relations:
        begins, counts = links.spans(relation, factor.ids)
        at = places(begins, counts)
        tails = links.tails[at]
        keep = within(target, tails, links.entity_count)
        sources.append(np.repeat(np.arange(len(factor.ids)), counts)[keep])
        owners.append(target.searchsorted(tails[keep]))
        if semiring.complement is not None:
            weights = semiring.weights(links, at[keep])
            if weights is None:
                weights = semiring.ones(int(keep.sum()))
            found.append(semiring.complement(weights))
    keys = np.concatenate(owners) * len(factor.ids) + np.concatenate(sources)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    fresh = np.flatnonzero(np.diff(keys, prepend=-1))
    complements = None
    if semiring.complement is not None and len(keys):
        complements = semiring.times.reduceat(np.concatenate(found)[order], fresh)
    keys = keys[fresh]
    return keys // len(factor.ids), keys % len(factor.ids), complements


def _rest(
    semiring: Semiring, values: Values, owners: Places, sources: Places,
    complements: Values | None, count: int,
) -> Values:  # fmt: skip
    """Semirings that add: the whole sum less what the links take away."""
    total = values.sum()
    taken = values[sources]
    if complements is not None:
        taken = taken - semiring.times(taken, complements)
    lost = np.zeros(count, values.dtype)
    np.add.at(lost, owners, taken)
    found: Values = total - lost
    if found.dtype.kind == "f":
        found[found < ROUNDING * total] = semiring.zero
    return found


def _best(
    semiring: Semiring, values: Values, owners: Places, sources: Places,
    complements: Values | None, count: int,
) -> Values:  # fmt: skip
    """Semirings that pick: the best candidate without a link, or one with a weak link."""
    assert semiring.plus is not None
    order = np.argsort(values if semiring.best == "least" else -values, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    # Behind the last candidate stands none at all.
    ordered = np.append(values[order], np.array([semiring.zero], values.dtype))
    first = np.zeros(count, np.int64)
    if len(owners):
        ranks = place[sources]
        sorting = np.lexsort((ranks, owners))
        groups, ranks = owners[sorting], ranks[sorting]
        begins = np.flatnonzero(np.diff(groups, prepend=-1))
        sizes = np.diff(np.append(begins, len(groups)))
        within_group = np.arange(len(groups)) - np.repeat(begins, sizes)
        # The first rank that no link takes: where the sorted ranks leave 0, 1, 2, …
        gap = np.where(ranks == within_group, np.repeat(sizes, sizes), within_group)
        first[groups[begins]] = np.minimum.reduceat(gap, begins)
    found: Values = ordered[first]
    if complements is not None:
        semiring.plus.at(found, owners, semiring.times(values[sources], complements))
    return found
