"""Projections of fuzzy sets along links: the best way from a set to each entity, and back.

Sets are rows of a tensor [B, E]. Those that go along the same relation are projected together, so
that each row of the relation is made once; candidates come in the order of their values, so that
the search may stop where the others cannot change anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias, TypeVar

import torch
from torch import Tensor

from cqa.models.links.rows import Rows
from cqa.models.search.settings import SearchSettings

Key = TypeVar("Key")

# So many candidates are followed at once.
AT_ONCE = 64
# Where more candidates are followed their rows are not kept: making them anew is as cheap.
MOST_KEPT = 512


class Way(NamedTuple):
    """A directed relation that is to hold, or not to hold."""

    relation: int
    positive: bool = True


Ways: TypeAlias = tuple[Way, ...]
"""Relations that are to hold side by side between the same two variables."""


class Projection:
    """Projects along the rows of a link predictor, by the settings of a search."""

    def __init__(self, rows: Rows, settings: SearchSettings) -> None:
        self.rows, self.settings = rows, settings
        # What leads anywhere at all: the best tail of each head, NaN where it was not yet asked.
        self._best_tail: dict[Ways, Tensor] = {}

    def between(self, ways: Ways, heads: Tensor, keep: bool = True) -> Tensor:
        """The values of all entities as tails of some heads, [B, E], by all relations at once."""
        parts = []
        for way in ways:
            part = self.rows.rows(way.relation, heads, keep)
            parts.append(part if way.positive else self.settings.negated(part))
        return self.settings.all_of(parts)

    def first(self, heads: Tensor, relations: Sequence[int]) -> Tensor:
        """What relations lead to from single entities, [B, E]."""
        found: Tensor | None = None
        for relation, own in _grouped(relations).items():
            rows = self.rows.rows(relation, heads[own])
            if found is None:
                found = rows.new_empty((len(heads), self.rows.entity_count))
            found[own] = rows
        assert found is not None
        return found

    def onward(self, states: Tensor, ways: Sequence[Ways], top: int | None = None) -> Tensor:
        """For each set what is reached from it, [B, E]: max over h of state[h] ⊗ link(h, t).

        ``top``: so many of the best are exact, where the result needs no more.
        """
        found = torch.zeros_like(states)
        for own_ways, own in _grouped(ways).items():
            self._group(states, own, own_ways, found, top)
        return found

    def backward(
        self, states: Tensor, ways: Ways, ahead: Tensor | None, top: int | None = None
    ) -> Tensor:
        """For each entity h of each set its value times the best that it leads to, [B, E].

        ``ahead`` [B, E] are the values of what is led to from each set, None for ones.
        """
        found = torch.zeros_like(states)
        best = states.amax(0)
        heads = best.nonzero()[:, 0]
        heads = heads[best[heads].argsort(descending=True, stable=True)]
        given = states[:, heads]
        rest = _largest_from(given)
        open_sets = list(range(len(states)))
        for at in range(0, len(heads), AT_ONCE):
            if at:
                open_sets = [n for n in open_sets if self._matters(rest[n, at], found[n], top)]
            chunk = heads[at : at + AT_ONCE]
            values = given[:, at : at + AT_ONCE]
            wanted = values[open_sets].amax(0) > 0 if open_sets else None
            if wanted is None:
                break
            chunk, values = chunk[wanted], values[:, wanted]
            if not len(chunk):
                continue
            if ahead is None:
                reached = self._best_ahead(ways, chunk)
                for n in open_sets:
                    found[n, chunk] = self.settings.times(values[n], reached)
                continue
            rows = self.between(ways, chunk)
            for n in open_sets:
                self._met(values[n], rows, ahead[n], chunk, found[n])
        return found

    def _met(
        self, values: Tensor, rows: Tensor, ahead: Tensor, heads: Tensor, found: Tensor
    ) -> None:
        """Set the values of heads, each times the best of its row with what is ahead."""
        some = values.nonzero()[:, 0]
        if len(some) < len(values):
            rows, values, heads = rows[some], values[some], heads[some]
        if len(some):
            found[heads] = self.settings.times(values, self.settings.times(rows, ahead).amax(1))

    def _best_ahead(self, ways: Ways, heads: Tensor) -> Tensor:
        """The best tail of each head, kept."""
        kept = self._best_tail.get(ways)
        if kept is None:
            kept = torch.full_like(self.rows.ones(), float("nan"))
            self._best_tail[ways] = kept
        unknown = heads[kept[heads].isnan()]
        if len(unknown):
            kept[unknown] = self.between(ways, unknown).amax(1)
        return kept[heads]

    def beamed(self, state: Tensor) -> Tensor:
        """The set with its best candidates only, as many as the beam lets pass."""
        given = self.settings
        if given.beam is None:
            return state
        width = given.beam
        if given.beam_known:
            width += int((state >= 1).sum())
        return _best_of(state, width if given.beam_most is None else min(width, given.beam_most))

    # --- one relation for many sets ---------------------------------------------------------------

    def _group(
        self, states: Tensor, own: list[int], ways: Ways, found: Tensor, top: int | None
    ) -> None:
        given = torch.stack([self.beamed(states[at]) for at in own])
        best = given.amax(0)
        heads = best.nonzero()[:, 0]
        heads = heads[best[heads].argsort(descending=True, stable=True)]
        given = given[:, heads]
        rest = _largest_from(given)
        # Only where nothing is 0, or the best are asked for, can the search stop early.
        may_stop = top is not None or not all(way.positive for way in ways)
        open_sets = list(range(len(own)))
        width = AT_ONCE
        for at in range(0, len(heads), width):
            if at and may_stop:
                open_sets = [n for n in open_sets if self._matters(rest[n, at], found[own[n]], top)]
            part = given[:, at : at + width]
            wanted = part[open_sets].amax(0) > 0 if open_sets else None
            if wanted is None:
                break
            if not bool(wanted.any()):
                continue
            place = wanted.nonzero()[:, 0]
            rows = self.between(ways, heads[at : at + width][place], len(heads) <= MOST_KEPT)
            part = part[:, place]
            for n in open_sets:
                self._add(part[n], rows, found[own[n]])

    def _add(self, values: Tensor, rows: Tensor, found: Tensor) -> None:
        some = values.nonzero()[:, 0]
        if not len(some):
            return
        if len(some) < len(values):
            rows, values = rows[some], values[some]
        reached = self.settings.times(rows, values[:, None]).amax(0)
        torch.maximum(found, reached, out=found)

    def _matters(self, value: Tensor, found: Tensor, top: int | None) -> bool:
        """Whether candidates of at most this value may change what is asked for of some scores."""
        if top is None or top >= len(found):
            return bool(value > found.min())
        return bool(value > torch.topk(found, top, sorted=False).values.min())


def _largest_from(given: Tensor) -> Tensor:
    """The largest value that each set [B, n] has from a candidate on."""
    return given.flip(1).cummax(1).values.flip(1)


def _best_of(state: Tensor, width: int) -> Tensor:
    if width >= len(state):
        return state
    values, ids = torch.topk(state, width)
    found = torch.zeros_like(state)
    found[ids] = values
    return found


def _grouped(keys: Sequence[Key]) -> dict[Key, list[int]]:
    """The places of equal keys, in order of first appearance."""
    found: dict[Key, list[int]] = {}
    for at, key in enumerate(keys):
        found.setdefault(key, []).append(at)
    return found
