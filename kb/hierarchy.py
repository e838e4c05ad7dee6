"""The concept hierarchy: who stands above whom, in space that follows the links, not the pairs.

Concepts may form any graph. The members of a cycle stand above each other and are one *group*. A
walk down gives every concept a *place*, so that what lies below a group is a few intervals of
places: one where the hierarchy is a tree, a chain or a cycle (R. Agrawal, A. Borgida, H. V.
Jagadish: Efficient Management of Transitive Relationships in Large Data and Knowledge Bases, 1989).
The intervals tell how many ancestors and members there are. Where these are few, they are written
out as lists, which is the fastest index; else they are found by the intervals when asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kb.arrays import EMPTY, Ids, Interval, expand, grouped, offsets_of, unique_below, view
from kb.columns import Columns
from kopl_base.errors import KoplError

# The ancestors (members) are written out when they are at most so many for each concept (entity)
# and each link, or FREE in all.
WRITTEN_OUT, FREE = 32, 1 << 20
# More intervals would take more than 300 MB. A tree needs one a concept, a square grid of 20,000
# concepts 70, and 20,000 concepts with two parents drawn at random 30.
MOST_INTERVALS = 1 << 22

Counts: TypeAlias = npt.NDArray[np.int64]


class Hierarchy:
    """Finds ancestors and members by number; ``arrays`` are those of `hierarchy_arrays`."""

    def __init__(self, arrays: Columns, entities: int) -> None:
        self._entities = entities
        self._parents: Ids = arrays["parent"]
        self._parent_starts = view(arrays["parent_starts"])
        self._written = "member" in arrays
        if self._written:
            self._ancestors: Ids = arrays["ancestor"]
            self._ancestor_starts = view(arrays["ancestor_starts"])
            self._members: Ids = arrays["member"]
            self._member_starts = view(arrays["member_starts"])
        else:
            self._group = view(arrays["concept_group"])
            self._places = _Places(arrays)

    @property
    def memberships(self) -> int:
        """How many pairs of an entity and a concept that it is an instance of there are.

        Where they are not written out, an entity that reaches a concept in two ways may count
        twice.
        """
        return len(self._members) if self._written else self._places.memberships

    def parents(self, concept: int) -> list[int]:
        """The direct parents of a concept."""
        at = concept - self._entities
        found: list[int] = self._parents[
            self._parent_starts[at] : self._parent_starts[at + 1]
        ].tolist()
        return found

    def ancestors(self, concept: int) -> list[int]:
        """The concept itself and all concepts above it, sorted."""
        if not self._written:
            return self.all_above([concept])
        at = concept - self._entities
        found: list[int] = self._ancestors[
            self._ancestor_starts[at] : self._ancestor_starts[at + 1]
        ].tolist()
        return found

    def all_above(self, concepts: Sequence[int]) -> list[int]:
        """The concepts and all that are above one of them, sorted, each once."""
        if self._written:
            return sorted({above for concept in concepts for above in self.ancestors(concept)})
        found, todo = set(concepts), list(concepts)
        while todo:
            for parent in self.parents(todo.pop()):
                if parent not in found:
                    found.add(parent)
                    todo.append(parent)
        return sorted(found)

    def cycles(self) -> list[list[int]]:
        """The concepts that are below themselves: those of each cycle, by its first concept."""
        starts = self._parent_starts.tolist()
        above = (self._parents - self._entities).tolist()
        cycles: dict[int, list[int]] = {}
        for concept, group in enumerate(groups_of(starts, above)):
            cycles.setdefault(group, []).append(concept)
        return [
            [concept + self._entities for concept in cycle]
            for cycle in cycles.values()
            if len(cycle) > 1 or cycle[0] in above[starts[cycle[0]] : starts[cycle[0] + 1]]
        ]

    def members(self, concept: int) -> Ids:
        """The entities that are instances of the concept or of one below it."""
        at = concept - self._entities
        if self._written:
            return self._members[self._member_starts[at] : self._member_starts[at + 1]]
        return self._places.members(self._group[at])


class _Places:
    """The entities in the order of the places of their direct concepts."""

    def __init__(self, arrays: Columns) -> None:
        self._below: Ids = arrays["group_below"]
        self._below_starts = view(arrays["group_below_starts"])
        self._entities: Ids = arrays["place_member"]
        self._starts = view(arrays["place_member_starts"])
        self._bound = int(self._entities.max()) + 1 if len(self._entities) else 0
        self._sizes: Counts = np.bincount(arrays["concept_group"])

    @property
    def memberships(self) -> int:
        counts = _ancestor_counts(self._below, np.asarray(self._below_starts), self._sizes)
        return int(counts @ np.diff(np.asarray(self._starts)))

    def members(self, group: int) -> Ids:
        """The entities below a group of concepts."""
        starts = self._starts
        bounds = self._below[self._below_starts[group] : self._below_starts[group + 1]].tolist()
        parts = [
            (low, high, self._entities[starts[low] : starts[high]])
            for low, high in zip(bounds[::2], bounds[1::2], strict=True)
            if starts[low] < starts[high]
        ]
        if len(parts) == 1 and parts[0][1] - parts[0][0] == 1:
            return parts[0][2]  # the entities of one concept are sorted already
        found = [entities for _, _, entities in parts]
        return unique_below(np.concatenate(found), self._bound) if found else EMPTY


# --- building ----------------------------------------------------------------------------------


def hierarchy_arrays(
    parents: tuple[Ids, Ids], instances: tuple[Ids, Ids], entities: int
) -> Columns:
    """The columns of a `Hierarchy`.

    ``parents`` and ``instances`` are (offsets, nodes): for each concept its parents, for each
    entity its direct concepts. Raises KoplError when the hierarchy has no short description.
    """
    starts, above = parents[0], parents[1] - entities
    concepts = len(starts) - 1
    group = groups_of(starts.tolist(), above.tolist())
    below, below_starts, place = _intervals(starts, above, group)
    groups = np.array(group, np.int32)
    counts = _ancestor_counts(below, below_starts, np.bincount(groups))[place]
    direct = instances[1] - entities
    by_place = _by_place(instances[0], place[direct], concepts)
    links, of_entities = concepts + len(above), entities + len(direct)
    arrays: Columns = {
        "parent_starts": starts,
        "parent": parents[1],
        "instance_starts": instances[0],
        "instance": instances[1],
    }
    ordered: Columns = {
        "concept_group": groups,
        "group_below": below,
        "group_below_starts": below_starts,
    }
    ordered |= by_place
    if counts.sum() > max(FREE, WRITTEN_OUT * links):
        return arrays | ordered
    if counts[direct].sum() > max(FREE, WRITTEN_OUT * of_entities):
        return arrays | ordered
    ancestor_starts, ancestor = _ancestors(groups, below, below_starts, place)
    found = _Places(ordered)
    of_group: dict[int, Ids] = {}
    members = []
    for number in group:
        if number not in of_group:
            of_group[number] = found.members(number)
        members.append(of_group[number])
    member_starts = np.zeros(concepts + 1, np.int32)
    np.cumsum(np.fromiter(map(len, members), np.int32, concepts), out=member_starts[1:])
    arrays |= {
        "ancestor_starts": ancestor_starts,
        "ancestor": (ancestor + entities).astype(np.int32),
        "member_starts": member_starts,
        "member": np.concatenate([EMPTY, *members]),
    }
    return arrays


def groups_of(starts: Sequence[int], parents: Sequence[int]) -> list[int]:
    """For each concept the number of its group; groups above have smaller numbers.

    The parents of concept c are ``parents[starts[c]:starts[c + 1]]`` (R. Tarjan: Depth-First
    Search and Linear Graph Algorithms, 1972, without recursion).
    """
    concepts = len(starts) - 1
    group, seen, lowest = [-1] * concepts, [-1] * concepts, [0] * concepts
    next_parent = list(starts[:concepts])
    path: list[int] = []  # the concepts that are being looked at, each a parent of the one before
    open_: list[int] = []  # those that have no group yet
    found = groups = 0
    for first in range(concepts):
        if seen[first] >= 0:
            continue
        path.append(first)
        while path:
            concept = path[-1]
            if seen[concept] < 0:
                seen[concept] = lowest[concept] = found
                found += 1
                open_.append(concept)
            at = next_parent[concept]
            if at < starts[concept + 1]:
                next_parent[concept] = at + 1
                parent = parents[at]
                if seen[parent] < 0:
                    path.append(parent)
                elif group[parent] < 0:
                    lowest[concept] = min(lowest[concept], seen[parent])
                continue
            path.pop()
            if path:
                lowest[path[-1]] = min(lowest[path[-1]], lowest[concept])
            if lowest[concept] == seen[concept]:
                while True:
                    member = open_.pop()
                    group[member] = groups
                    if member == concept:
                        break
                groups += 1
    return group


def _intervals(starts: Ids, above: Ids, group: list[int]) -> tuple[Ids, Ids, Ids]:
    """The intervals of places below each group, flat and with offsets; each concept's place."""
    groups = max(group, default=-1) + 1
    numbers = np.array(group, np.int32)
    sizes = np.bincount(numbers, minlength=groups).tolist()
    children: list[list[int]] = [[] for _ in range(groups)]
    is_root = [True] * groups
    owners = np.repeat(numbers, np.diff(starts))
    for low, high in zip(owners.tolist(), numbers[above].tolist(), strict=True):
        if low != high:
            children[high].append(low)
            is_root[low] = False
    first = _walk_down(children, [number for number in range(groups) if is_root[number]], sizes)
    below: list[list[Interval]] = [[] for _ in range(groups)]
    total = 0
    for number in reversed(range(groups)):  # those below have larger numbers
        own = (first[number], first[number] + sizes[number])
        below[number] = _merged({own}.union(*(below[child] for child in children[number])))
        total += len(below[number])
        if total > MOST_INTERVALS:
            raise KoplError(
                f"the hierarchy of the {len(group)} concepts is too tangled: what lies below them"
                f" takes more than {MOST_INTERVALS} intervals; leave out parents that follow from"
                " others, or concepts that nothing needs"
            )
    below_starts, below_flat = grouped([[n for pair in pairs for n in pair] for pairs in below])
    # The places of a group's members follow each other, in their order.
    by_group = np.argsort(numbers, kind="stable")
    place = np.empty(len(group), np.int32)
    within = np.arange(len(group)) - offsets_of(numbers[by_group], groups)[numbers[by_group]]
    place[by_group] = np.array(first, np.int64)[numbers[by_group]] + within
    return below_flat, below_starts, place


def _walk_down(children: list[list[int]], roots: list[int], sizes: list[int]) -> list[int]:
    """The first place of each group, in the order of a walk that goes down before it goes on."""
    first, free = [-1] * len(children), 0
    todo = roots[::-1]
    while todo:
        number = todo.pop()
        if first[number] < 0:
            first[number] = free
            free += sizes[number]
            todo.extend(reversed(children[number]))
    return first


def _merged(intervals: Iterable[Interval]) -> list[Interval]:
    """The union of intervals as few intervals, in order."""
    ordered = sorted(intervals)
    found = ordered[:1]
    low, high = found[0]
    for pair in ordered[1:]:
        if pair[0] > high:
            found.append(pair)
            low, high = pair
        elif pair[1] > high:
            high = pair[1]
            found[-1] = (low, high)
    return found


def _ancestor_counts(below: Ids, below_starts: Ids, sizes: Counts) -> Counts:
    """How many concepts stand above the concept of each place, itself included."""
    concepts = int(sizes.sum())
    weights = np.repeat(sizes, np.diff(below_starts) // 2).astype(np.int64)
    change = np.zeros(concepts + 1, np.int64)
    np.add.at(change, below[::2], weights)
    np.subtract.at(change, below[1::2], weights)
    counts: Counts = np.cumsum(change[:-1])
    return counts


def _by_place(instance_starts: Ids, places: Ids, concepts: int) -> Columns:
    """The entities by the place of a direct concept, then by number."""
    owner = np.repeat(np.arange(len(instance_starts) - 1, dtype=np.int32), np.diff(instance_starts))
    order = np.argsort(places, kind="stable")
    return {
        "place_member": owner[order],
        "place_member_starts": offsets_of(places[order], concepts),
    }


def _ancestors(groups: Ids, below: Ids, below_starts: Ids, place: Ids) -> tuple[Ids, Ids]:
    """For each concept the concepts above it and itself, sorted, as offsets and numbers."""
    concepts = len(groups)
    if concepts == 0:
        return np.zeros(1, np.int32), EMPTY
    concept_at = np.empty(concepts, np.int32)
    concept_at[place] = np.arange(concepts, dtype=np.int32)
    starts = below_starts // 2
    at = expand(starts[groups], starts[groups + 1])
    low, high = below[::2][at], below[1::2][at]
    owner = np.repeat(np.arange(concepts, dtype=np.int32), np.diff(starts)[groups])
    descendant = concept_at[expand(low, high)]
    above = np.repeat(owner, high - low)
    order = np.argsort(descendant, kind="stable")
    return offsets_of(descendant[order], concepts), above[order]
