"""Messages through negated edges alone: what lacks a link to some candidate.

The pairs without a link are nearly all pairs; only those with one are looked at.
"""

from __future__ import annotations

import numpy as np

from cqa.answering.block import QueryBlock
from cqa.answering.factor import Algebra, Factor, Keys, run_starts
from cqa.answering.pattern import Edge
from cqa.answering.semiring import Semiring, Values
from cqa.graphs.links import Places

# Sums of floating-point numbers that should be zero come out this small, relative to their parts.
ROUNDING = 1e-12


def unlinked(
    block: QueryBlock, algebra: Algebra, factor: Factor, target: Keys, edges: list[Edge]
) -> Factor:
    """For each of the target keys the sum over the factor of what is not linked to it.

    Both are of the same query. An entity of the factor counts with the product of the complements
    of its links.
    """
    semiring = algebra.semiring
    if len(factor.keys) == 0:
        return Factor(target[:0], None if algebra.plain else semiring.ones(0))
    owners, sources, complements = _linked_pairs(block, algebra, factor, target, edges)
    # Where the candidates of a target's query begin among those of all, and how many they are.
    first = block.owners(target) * block.size
    begins = factor.keys.searchsorted(first)
    sizes = factor.keys.searchsorted(first + block.size) - begins
    if algebra.plain:
        keep = np.bincount(owners, minlength=len(target)) < sizes
        return Factor(target[keep])
    values = factor.values if factor.values is not None else semiring.ones(len(factor.keys))
    queries = block.owners(factor.keys)
    if semiring.best is None:
        totals = np.zeros(block.count, values.dtype)
        runs = run_starts(queries)
        totals[queries[runs]] = semiring.added(values, runs)
        total = totals[block.owners(target)]
        found = _rest(semiring, values, total, owners, sources, complements)
    else:
        found = _best(semiring, values, queries, begins, sizes, owners, sources, complements)
    keep = found != semiring.zero
    return Factor(target[keep], found[keep])


def _linked_pairs(
    block: QueryBlock, algebra: Algebra, factor: Factor, target: Keys, edges: list[Edge]
) -> tuple[Places, Places, Values | None]:
    """The linked pairs as (place in target, place in factor), sorted, each once.

    The third column is the product of the complements of a pair's links, None when all are zero.
    """
    semiring, complement = algebra.semiring, algebra.semiring.complement
    wanted = Factor(target)
    owners, sources, found = [], [], []
    for edge in edges:
        begins, counts = block.spans(factor.keys, edge)
        tails, at = block.expanded(factor.keys, begins, counts)
        places = wanted.find(tails)
        keep = places >= 0
        sources.append(np.repeat(np.arange(len(factor.keys)), counts)[keep])
        owners.append(places[keep])
        if complement is not None:
            weights = algebra.weights(block.links, at[keep], edge)
            if weights is None:
                weights = semiring.ones(int(keep.sum()))
            found.append(complement(weights))
    keys = np.concatenate(owners) * len(factor.keys) + np.concatenate(sources)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    fresh = run_starts(keys)
    complements = None
    if complement is not None and len(keys):
        complements = semiring.times.reduceat(np.concatenate(found)[order], fresh)
    keys = keys[fresh]
    return keys // len(factor.keys), keys % len(factor.keys), complements


def _rest(
    semiring: Semiring, values: Values, total: Values, owners: Places, sources: Places,
    complements: Values | None,
) -> Values:  # fmt: skip
    """Semirings that add: the whole sum less what the links take away."""
    taken = values[sources]
    if complements is not None:
        taken = taken - semiring.times(taken, complements)
    lost = np.zeros(len(total), values.dtype)
    np.add.at(lost, owners, taken)
    found: Values = total - lost
    if found.dtype.kind == "f":
        found[found < ROUNDING * total] = semiring.zero
    return found


def _best(
    semiring: Semiring, values: Values, queries: Places, begins: Places, sizes: Places,
    owners: Places, sources: Places, complements: Values | None,
) -> Values:  # fmt: skip
    """Semirings that pick: the best candidate without a link, or one with a weak link."""
    assert semiring.plus is not None
    order = np.lexsort((values if semiring.best == "least" else -values, queries))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    first = np.zeros(len(begins), np.int64)
    if len(owners):
        ranks = place[sources] - begins[owners]
        sorting = np.lexsort((ranks, owners))
        groups, ranks = owners[sorting], ranks[sorting]
        runs = run_starts(groups)
        lengths = np.diff(np.append(runs, len(groups)))
        within_group = np.arange(len(groups)) - np.repeat(runs, lengths)
        # The first rank that no link takes: where the sorted ranks leave 0, 1, 2, …
        gap = np.where(ranks == within_group, np.repeat(lengths, lengths), within_group)
        first[groups[runs]] = np.minimum.reduceat(gap, runs)
    # Behind the last candidate stands none at all.
    at = np.minimum(begins + first, len(order) - 1)
    none = np.array(semiring.zero, values.dtype)
    found: Values = np.where(first < sizes, values[order][at], none)
    if complements is not None:
        semiring.plus.at(found, owners, semiring.times(values[sources], complements))
    return found
