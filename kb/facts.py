"""Facts as columns: who, what, which value or node, and with which qualifiers.

Literal facts (entity, key, value) and relational facts (head, relation, tail) are two tables of
one form; facts of one table are numbered from 0, sorted by subject, so the facts of a subject are
a range. Qualifiers are kept once per distinct set; a fact has the number of its set (0 is empty).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from kb.arrays import (
    EMPTY,
    SMALL,
    Ids,
    Interval,
    Mask,
    changes,
    contains,
    expand,
    in_intervals,
    mask_of,
    unique,
    view,
)
from kb.columns import Columns

Table = Literal["literal", "relation"]  # what the names of its columns begin with


class Qualifiers:
    """The distinct qualifier sets: set i has the pairs (key, value) of one range of columns."""

    def __init__(self, arrays: Columns) -> None:
        self._starts: Ids = arrays["qualifier_starts"]
        self._keys: Ids = arrays["qualifier_key"]
        self._values: Ids = arrays["qualifier_value"]

    def columns(self) -> tuple[Ids, Ids]:
        """All (key, value) pairs of all distinct sets, as two columns."""
        return self._keys, self._values

    def pairs(self, number: int) -> list[tuple[int, int]]:
        """The (key, value) pairs of a set, in the order in which they were written."""
        low, high = int(self._starts[number]), int(self._starts[number + 1])
        return list(
            zip(self._keys[low:high].tolist(), self._values[low:high].tolist(), strict=True)
        )

    def pairs_of(self, sets: Ids) -> tuple[Ids, Ids]:
        """All (key, value) pairs of sets, as two columns; of a set that comes twice, twice."""
        at = expand(self._starts[sets], self._starts[sets + 1])
        return self._keys[at], self._values[at]

    def pairs_at(self, sets: Ids) -> tuple[Ids, Ids, Ids]:
        """The same, and before them for each pair the place of its set among the sets."""
        low, high = self._starts[sets], self._starts[sets + 1]
        place = np.repeat(np.arange(len(sets), dtype=np.int32), high - low)
        return (place, *self.pairs_of(sets))

    def having(self, key: int) -> Ids:
        """The sets that have a value of the key."""
        at = np.flatnonzero(self._keys == key)
        return unique((np.searchsorted(self._starts, at, side="right") - 1).astype(np.int32))

    def values(self, sets: Ids, key: int) -> Ids:
        """The values of a key in any of the sets, sorted, each once."""
        at = expand(self._starts[sets], self._starts[sets + 1])
        return unique(self._values[at[self._keys[at] == key]])

    def satisfying(self, sets: Ids, key: int, intervals: Sequence[Interval]) -> Mask:
        """For each set whether some value of the key lies in the intervals."""
        result = np.zeros(len(sets), np.bool_)
        if not intervals or len(sets) == 0:
            return result
        low, high = self._starts[sets], self._starts[sets + 1]
        at = expand(low, high)
        hits = np.flatnonzero(self._keys[at] == key)
        if len(hits) == 0:
            return result
        hits = hits[in_intervals(self._values[at[hits]], intervals)]
        # The set that a hit belongs to: the first whose end lies behind the hit.
        result[np.searchsorted(np.cumsum(high - low), hits, side="right")] = True
        return result


class FactTable:
    """Facts of one kind with an index by subject and one by predicate, then object.

    ``subject``, ``predicate``, ``object`` and ``qualifiers`` are columns over the fact numbers.
    """

    def __init__(self, prefix: Table, arrays: Columns, qualifiers: Qualifiers) -> None:
        def column(name: str) -> Ids:
            return cast(dict[str, Ids], arrays)[f"{prefix}_{name}"]

        self.subject, self.predicate = column("subject"), column("predicate")
        self.object, self.qualifiers = column("object"), column("qualifiers")
        self.sets = qualifiers
        self._starts = column("starts")
        self._by_predicate = column("by_predicate")
        self._predicate_starts = view(column("predicate_starts"))
        self._objects = column("by_predicate_object")
        self._objects_view = view(self._objects)

    def __len__(self) -> int:
        return len(self.subject)

    def of_subjects(self, subjects: Ids) -> Ids:
        """All facts of the subjects, in order."""
        if len(subjects) == 1:
            at = int(subjects[0])
            return np.arange(self._starts[at], self._starts[at + 1], dtype=np.int32)
        return expand(self._starts[subjects], self._starts[subjects + 1])

    def of_predicate(self, predicate: int) -> Ids:
        """All facts of the predicate."""
        return self._by_predicate[
            self._predicate_starts[predicate] : self._predicate_starts[predicate + 1]
        ]

    def by_predicate(self) -> dict[int, Ids]:
        """The facts of each predicate that has some."""
        starts = self._predicate_starts.tolist()
        return {
            number: self._by_predicate[low:high]
            for number, (low, high) in enumerate(pairwise(starts))
            if low < high
        }

    def about(self, subjects: Ids, predicate: int, nodes: int) -> Ids:
        """The facts of a predicate whose subject is in a set; ``nodes`` bounds the subjects."""
        if len(subjects) == 0:
            return EMPTY
        facts = self.of_predicate(predicate)
        if len(facts) == 0:
            return facts
        if len(subjects) <= SMALL or len(subjects) * 8 < len(facts):
            found = self.of_subjects(subjects)
            same: Mask = self.predicate[found] == predicate
            return found[same]
        if len(facts) * 64 < nodes:
            return facts[contains(subjects, self.subject[facts])]
        return facts[mask_of(subjects, nodes)[self.subject[facts]]]

    def with_object(self, predicate: int, intervals: Sequence[Interval]) -> Ids:
        """The facts of a predicate whose object number lies in the intervals; no scan."""
        first, last = self._predicate_starts[predicate], self._predicate_starts[predicate + 1]
        parts = []
        for low, high in intervals:
            begin = bisect_left(self._objects_view, low, first, last)
            end = bisect_left(self._objects_view, high, begin, last)
            if begin < end:
                parts.append(self._by_predicate[begin:end])
        if len(parts) <= 1:
            return parts[0] if parts else EMPTY
        return np.concatenate(parts)

    def qualified(self, facts: Ids, key: int, intervals: Sequence[Interval]) -> Ids:
        """Of these facts those with a value of the qualifier key in the intervals."""
        if len(facts) == 0 or not intervals:
            return EMPTY
        return facts[self.sets.satisfying(self.qualifiers[facts], key, intervals)]

    def qualifier_values(self, facts: Ids, key: int) -> Ids:
        """The values of a qualifier key on these facts, sorted, each once."""
        if len(facts) == 0:
            return EMPTY
        return self.sets.values(self.qualifiers[facts], key)


class RelationTable(FactTable):
    """Relational facts: `FactTable` with the same index from the tail's side.

    ``head_order`` and ``tail_order`` say where in the source the fact stood at its head and at
    its tail (-1: it did not), so that a file can be written back as it was.
    """

    def __init__(self, arrays: Columns, qualifiers: Qualifiers) -> None:
        super().__init__("relation", arrays, qualifiers)
        self.head_order: Ids = arrays["relation_head_order"]
        self.tail_order: Ids = arrays["relation_tail_order"]
        self._by_tail: Ids = arrays["relation_by_tail"]
        self._tail_starts: Ids = arrays["relation_tail_starts"]

    def into(self, tails: Ids, relation: int, nodes: int) -> Ids:
        """The facts of a relation whose tail is in a set."""
        if len(tails) == 0:
            return EMPTY
        facts = self.of_predicate(relation)
        if len(facts) == 0:
            return facts
        if len(tails) <= SMALL or len(tails) * 8 < len(facts):
            found = self.of_tails(tails)
            same: Mask = self.predicate[found] == relation
            return found[same]
        return facts[mask_of(tails, nodes)[self.object[facts]]]

    def of_tails(self, tails: Ids) -> Ids:
        """All facts that lead to one of the nodes."""
        if len(tails) == 1:
            at = int(tails[0])
            return self._by_tail[int(self._tail_starts[at]) : int(self._tail_starts[at + 1])]
        return self._by_tail[expand(self._tail_starts[tails], self._tail_starts[tails + 1])]

    def between(self, heads: Ids, tails: Ids, nodes: int) -> Ids:
        """All facts from a node of the first set to a node of the second."""
        if len(heads) == 0 or len(tails) == 0:
            return EMPTY
        if len(heads) <= len(tails):
            facts = self.of_subjects(heads)
            ends, wanted = self.object[facts], tails
        else:
            facts = self.of_tails(tails)
            ends, wanted = self.subject[facts], heads
        single = len(wanted) == 1
        reached: Mask = ends == wanted[0] if single else mask_of(wanted, nodes)[ends]
        return facts[reached]

    def predicates(self, facts: Ids) -> Ids:
        """The relations of the facts, sorted, each once."""
        return unique(self.predicate[facts])


def table_arrays(
    prefix: Table,
    subject: Ids,
    predicate: Ids,
    object_: Ids,
    qualifiers: Ids,
    subjects: int,
    predicates: int,
) -> Columns:
    """The columns and indexes of a `FactTable`; the facts come sorted by subject."""
    # Facts of equal predicate and object stay in the order of their subjects.
    order = np.lexsort((object_, predicate)).astype(np.int32)
    columns = {
        f"{prefix}_subject": subject,
        f"{prefix}_predicate": predicate,
        f"{prefix}_object": object_,
        f"{prefix}_qualifiers": qualifiers,
        f"{prefix}_starts": np.searchsorted(subject, np.arange(subjects + 1)).astype(np.int32),
        f"{prefix}_by_predicate": order,
        f"{prefix}_by_predicate_object": object_[order],
        f"{prefix}_predicate_starts": np.searchsorted(
            predicate[order], np.arange(predicates + 1)
        ).astype(np.int32),
    }
    return cast(Columns, columns)


# --- building qualifier sets -----------------------------------------------------------------


Codes: TypeAlias = npt.NDArray[np.int64]

TIME = -1  # in place of a unit's number: the number is the code of a time


@dataclass(frozen=True)
class UsedSets:
    """The distinct sets that facts have, in the order of their first use; the empty one first."""

    number: Ids  # by old number, 0 for what is not used
    starts: Ids
    keys: Ids  # the pairs of set i stand from starts[i] to starts[i + 1]
    values: Ids


class CollectedSets:
    """Sets of pairs (key, value) as facts gave them, one for each fact that has some.

    Equal ones are found by sorting instead of by looking each up.

    ``ends`` says where the pairs of each set end, the first one being empty. A value of 0 and more
    is a place in the columns ``units`` and ``numbers``, in which equal values may stand often.
    """

    def __init__(self, ends: Ids, pairs: Ids, units: Ids, numbers: npt.NDArray[np.float64]) -> None:
        self._starts = np.concatenate([ends[:1], ends]).astype(np.int32)
        self._keys, self._values = pairs[:, 0], pairs[:, 1]
        below = int(self._values.min(initial=0))
        value = self._values.copy()
        places = np.flatnonzero(value >= 0)
        unit, number = units[value[places]], numbers[value[places]]
        by = np.lexsort((number, unit))
        value[places[by]] = np.cumsum(changes(unit[by], number[by])) - 1
        width = int(value.max(initial=0)) - below + 1
        self._codes: Codes = self._keys.astype(np.int64) * width + (value - below)

    def regardless_of_order(self) -> Ids:
        """For each set a number that sets of the same pairs share, in whatever order."""
        sets = np.repeat(np.arange(len(self._starts) - 1), np.diff(self._starts))
        by = np.lexsort((self._codes, sets))
        once = by[changes(sets[by], self._codes[by])]
        starts = np.searchsorted(sets[once], np.arange(len(self._starts))).astype(np.int32)
        return _same_lists(starts, self._codes[once])

    def used(self, sets: Ids) -> UsedSets:
        """The sets in use, by the numbers that facts have, in the order of the facts."""
        same = _same_lists(self._starts, self._codes)
        of_facts = np.concatenate([same[:1], same[sets]])
        never = len(of_facts)
        first = np.full(int(same.max()) + 1, never, np.int64)
        first[of_facts[::-1]] = np.arange(never - 1, -1, -1)  # the last one written is the first
        found = np.flatnonzero(first < never)
        found = found[np.argsort(first[found])]
        number = np.zeros(len(first), np.int32)
        number[found] = np.arange(len(found), dtype=np.int32)
        # Of equal sets all have equal keys and values; any one stands for them.
        one = np.zeros(len(first), np.int32)
        one[same] = np.arange(len(same), dtype=np.int32)
        low, high = self._starts[one[found]], self._starts[one[found] + 1]
        starts = np.zeros(len(found) + 1, np.int32)
        np.cumsum(high - low, out=starts[1:])
        at = expand(low, high)
        return UsedSets(number[same], starts, self._keys[at], self._values[at])


def _same_lists(starts: Ids, codes: Codes) -> Ids:
    """For each list, from starts[i] to starts[i + 1] of the codes, a number that equal ones share.

    Lists of one length are rows of a table, which is sorted.
    """
    lengths = np.diff(starts)
    same = np.zeros(len(lengths), np.int32)
    groups = 0
    for length in np.unique(lengths).tolist():
        lists = np.flatnonzero(lengths == length)
        if length == 0:
            same[lists] = groups
            groups += 1
            continue
        columns = [codes[starts[lists] + at] for at in range(length)]
        by = np.lexsort(columns)
        different = changes(*(column[by] for column in columns))
        same[lists[by]] = groups + np.cumsum(different) - 1
        groups += int(different.sum())
    return same
