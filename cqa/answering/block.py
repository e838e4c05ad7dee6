"""Grounded queries of one template side by side, on the links of a graph.

`One` holds a single query and `Many` any number of them. Both say the same of keys
(`cqa.answering.factor`): one query's are entities, so that a row of links is a set of keys without
a copy, and each call of NumPy that many queries need to tell whose a key is can be left out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cqa.answering.factor import Keys, run_starts, within
from cqa.answering.pattern import Edge
from cqa.graphs.links import Links, Numbers, Places, places
from kb.arrays import Ids, Mask, contains

# The tails of a projection are marked in a table where it has at most so many flags for each.
FLAGS = 32
# Looking for a link by halving, or for a row, takes as long as marking so many tails, or less.
HALVING = 8


# What the owners of a single query's rows are slices of: zeros that are never written.
_zeros = np.zeros(1 << 20, np.int64)


def zeros(count: int) -> Places:
    """So many zeros; they take no memory of their own."""
    global _zeros
    if count > len(_zeros):
        _zeros = np.zeros(2 * count, np.int64)
    return _zeros[:count]


def are_zeros(owners: Places) -> bool:
    """Whether an array is known to be one of `zeros`, without a look at it."""
    return owners.base is _zeros


class QueryBlock(ABC):
    """What a walk asks of links for the queries of a template.

    ``numbers`` has for each column the number of the query, or an array with that of each;
    ``bound`` is above all keys.
    """

    several: bool

    def __init__(self, links: Links, numbers: Sequence[int] | Places, count: int) -> None:
        self.links, self.numbers, self.count = links, numbers, count
        self.size = links.entity_count
        self.bound = self.size * count

    @abstractmethod
    def rows_of(self, queries: Places) -> Places:
        """The numbers of some queries, a row for each and a column for each number."""

    @abstractmethod
    def owners(self, keys: Keys) -> Places:
        """The query of each key."""

    @abstractmethod
    def keyed(self, owners: Places, entities: Numbers) -> Keys:
        """The keys of entities of some queries."""

    @abstractmethod
    def entities(self, keys: Keys, owners: Places) -> Numbers:
        """The entities of keys of some queries."""

    @abstractmethod
    def row_sizes(self, constant: int, edge: Edge, queries: Places) -> int:
        """How many keys the rows of the constants in a column have together."""

    @abstractmethod
    def row(self, constant: int, edge: Edge, queries: Places) -> tuple[Keys, Places | slice]:
        """The keys that the constants in a column lead to, and the places of the links."""

    @abstractmethod
    def candidates(self, rows: Sequence[tuple[int, Edge]], queries: Places) -> Keys:
        """The keys that all of some rows have."""

    @abstractmethod
    def in_row(self, constant: int, edge: Edge, keys: Keys) -> Places:
        """For each key the place of the link from the constant in a column, or -1."""

    @abstractmethod
    def among_row(self, constant: int, edge: Edge, keys: Keys) -> Mask:
        """For each key whether the constant in a column leads to it."""

    @abstractmethod
    def facts(self, head: int, tail: int, edge: Edge, queries: Places) -> Places:
        """For each query the place of the link between the constants in two columns, or -1."""

    @abstractmethod
    def spans(self, keys: Keys, edge: Edge) -> tuple[Numbers, Numbers]:
        """For each key where the row begins that an edge leads to, and how long it is."""

    @abstractmethod
    def expanded(self, keys: Keys, begins: Numbers, counts: Numbers) -> tuple[Keys, Places]:
        """The keys at the other ends of all of such rows, and the places of the links."""

    @abstractmethod
    def reached(self, keys: Keys, edge: Edge, check: Callable[[int], None]) -> Keys:
        """The distinct keys that an edge leads to from some others, sorted.

        ``check`` is asked before so many links are looked at for several queries.
        """

    @abstractmethod
    def met(
        self, keys: Keys, edge: Edge, others: Keys, back: Edge, check: Callable[[int], None]
    ) -> Keys:
        """Those of the others that an edge leads to from some keys; ``back`` leads the other way.

        ``check`` is asked as for `reached`.
        """

    @abstractmethod
    def find(self, near: Keys, far: Keys, edge: Edge) -> Places:
        """For each pair of keys the place of the link between them, or -1."""

    @abstractmethod
    def starts_size(self, edge: Edge, queries: Places) -> int:
        """How many entities an edge leads from, for some queries together."""

    @abstractmethod
    def starts(self, edge: Edge, queries: Places) -> Keys:
        """The keys of all entities that an edge leads from."""

    def universe(self, queries: Places) -> Keys:
        """The keys of all entities."""
        everything = np.arange(self.size)
        return self.keyed(np.repeat(queries, self.size), np.tile(everything, len(queries)))


class One(QueryBlock):
    """A single query; its number is 0."""

    several = False
    numbers: Sequence[int]

    def __init__(self, links: Links, numbers: Sequence[int]) -> None:
        super().__init__(links, numbers, 1)

    def _relation(self, edge: Edge) -> int:
        return self.numbers[edge.column] ^ edge.inverse

    def rows_of(self, queries: Places) -> Places:
        return np.array([self.numbers], np.int64)

    def owners(self, keys: Keys) -> Places:
        return zeros(len(keys))

    def keyed(self, owners: Places, entities: Numbers) -> Keys:
        return entities.astype(np.int32, copy=False)

    def entities(self, keys: Keys, owners: Places) -> Numbers:
        return keys

    def row_sizes(self, constant: int, edge: Edge, queries: Places) -> int:
        begin, end = self.links.place(self._relation(edge), self.numbers[constant])
        return end - begin

    def row(self, constant: int, edge: Edge, queries: Places) -> tuple[Keys, Places | slice]:
        begin, end = self.links.place(self._relation(edge), self.numbers[constant])
        return self.links.tails[begin:end], slice(begin, end)

    def candidates(self, rows: Sequence[tuple[int, Edge]], queries: Places) -> Keys:
        numbers, row = self.numbers, self.links.row
        sets = [row(numbers[edge.column] ^ edge.inverse, numbers[one]) for one, edge in rows]
        if len(sets) == 1:
            return sets[0]
        sets.sort(key=len)
        found = sets[0]
        for other in sets[1:]:
            if len(found) == 0:
                break
            found = found[contains(other, found)]
        return found

    def in_row(self, constant: int, edge: Edge, keys: Keys) -> Places:
        begin, end = self.links.place(self._relation(edge), self.numbers[constant])
        if begin == end:
            return np.full(len(keys), -1, np.int64)
        row = self.links.tails[begin:end]
        at: Places = row.searchsorted(keys)
        at[at == len(row)] = 0
        other = row[at] != keys
        at += begin
        at[other] = -1
        return at

    def among_row(self, constant: int, edge: Edge, keys: Keys) -> Mask:
        return contains(self.links.row(self._relation(edge), self.numbers[constant]), keys)

    def facts(self, head: int, tail: int, edge: Edge, queries: Places) -> Places:
        ends = (np.array([self.numbers[column]], np.int32) for column in (head, tail))
        return self.links.find(self._relation(edge), *ends)

    def spans(self, keys: Keys, edge: Edge) -> tuple[Numbers, Numbers]:
        return self.links.spans(self._relation(edge), keys)

    def expanded(self, keys: Keys, begins: Numbers, counts: Numbers) -> tuple[Keys, Places]:
        at = places(begins, counts)
        return self.links.tails[at], at

    def reached(self, keys: Keys, edge: Edge, check: Callable[[int], None]) -> Keys:
        return self.links.reached(self._relation(edge), keys)

    def met(
        self, keys: Keys, edge: Edge, others: Keys, back: Edge, check: Callable[[int], None]
    ) -> Keys:
        if len(keys) <= 4 * len(others):
            found = self.links.reached(self._relation(edge), keys)
            if len(found) > len(others):
                return others[contains(found, others)]
            return found[contains(others, found)]
        begins, counts = self.spans(others, back)
        far, _ = self.expanded(others, begins, counts)
        return others[_any_of(counts, within(keys, far, self.size))]

    def find(self, near: Keys, far: Keys, edge: Edge) -> Places:
        return self.links.find(self._relation(edge), near, far)

    def starts_size(self, edge: Edge, queries: Places) -> int:
        return len(self.links.heads_of(self._relation(edge)))

    def starts(self, edge: Edge, queries: Places) -> Keys:
        return self.links.heads_of(self._relation(edge))

    def universe(self, queries: Places) -> Ids:
        return np.arange(self.size, dtype=np.int32)


class Many(QueryBlock):
    """Any number of queries; ``numbers`` has a row for each column."""

    several = True
    numbers: Places

    def __init__(self, links: Links, numbers: Places) -> None:
        super().__init__(links, numbers, numbers.shape[1])
        self._all = np.arange(self.count)
        self._bases = self._all * self.size

    def _relations(self, edge: Edge) -> Places:
        found: Places = self.numbers[edge.column]
        return found ^ 1 if edge.inverse else found

    def _shifts(self, edge: Edge) -> Places:
        """What turns the keys of each query into those of rows, relation * entities + head."""
        return self._relations(edge) * self.size - self._bases

    def rows_of(self, queries: Places) -> Places:
        found: Places = self.numbers.T[queries]
        return found

    def owners(self, keys: Keys) -> Places:
        found: Places = keys // self.size
        return found

    def keyed(self, owners: Places, entities: Numbers) -> Keys:
        found = owners * self.size
        found += entities
        return found

    def entities(self, keys: Keys, owners: Places) -> Numbers:
        return keys - owners * self.size

    def _row_spans(self, constant: int, edge: Edge, queries: Places) -> tuple[Numbers, Numbers]:
        return self.links.spans(self._relations(edge)[queries], self.numbers[constant][queries])

    def row_sizes(self, constant: int, edge: Edge, queries: Places) -> int:
        return int(self._row_spans(constant, edge, queries)[1].sum())

    def row(self, constant: int, edge: Edge, queries: Places) -> tuple[Keys, Places | slice]:
        return self._row_of(queries, *self._row_spans(constant, edge, queries))

    def _row_of(self, queries: Places, begins: Numbers, counts: Numbers) -> tuple[Keys, Places]:
        at = places(begins, counts)
        keys = np.repeat(self._bases[queries], counts)
        keys += self.links.tails[at]
        return keys, at

    def candidates(self, rows: Sequence[tuple[int, Edge]], queries: Places) -> Keys:
        if len(rows) == 1:
            return self.row(*rows[0], queries)[0]
        # Each query begins with its shortest row.
        relations = np.stack([self._relations(edge) for _, edge in rows])
        constants = np.stack([self.numbers[constant] for constant, _ in rows])
        begins, counts = self.links.spans(relations.reshape(-1), constants.reshape(-1))
        begins, counts = begins.reshape(relations.shape), counts.reshape(relations.shape)
        order = counts.argsort(axis=0)
        relations, constants, begins, counts = (
            np.take_along_axis(found, order, 0) for found in (relations, constants, begins, counts)
        )
        keys, _ = self._row_of(queries, begins[0][queries], counts[0][queries])
        for other in range(1, len(rows)):
            there = self._among(
                relations[other], constants[other], begins[other], counts[other], keys
            )
            keys = keys.compress(there)
        return keys

    def in_row(self, constant: int, edge: Edge, keys: Keys) -> Places:
        owners = keys // self.size
        rows = self._relations(edge) * self.size + self.numbers[constant]
        return self.links.find_links(rows[owners], keys - self._bases[owners])

    def _are_in_rows(self, relations: Places, constants: Places, keys: Keys) -> Mask:
        owners = keys // self.size
        rows = relations * self.size + constants
        return self.links.has_links(rows[owners], keys - self._bases[owners])

    def among_row(self, constant: int, edge: Edge, keys: Keys) -> Mask:
        relations, constants = self._relations(edge), self.numbers[constant]
        return self._among(relations, constants, *self.links.spans(relations, constants), keys)

    def _among(
        self, relations: Places, constants: Places, begins: Numbers, counts: Numbers, keys: Keys
    ) -> Mask:
        """For each key whether it is in the row of its query."""
        owners = keys // self.size
        # Rows that are short beside the keys of their query are marked; the others are halved.
        short = counts < HALVING * np.bincount(owners, minlength=self.count)
        marks = None
        if short.any():
            marks = self._marks(self._all, begins, counts * short, relations ^ 1)
        if marks is None:
            return self._are_in_rows(relations, constants, keys)
        if short.all():
            return self._marked(marks, keys)
        there: Mask = short[owners]
        some, others = there.nonzero()[0], (~there).nonzero()[0]
        there[some] = self._marked(marks, keys[some])
        there[others] = self._are_in_rows(relations, constants, keys[others])
        return there

    def facts(self, head: int, tail: int, edge: Edge, queries: Places) -> Places:
        ends = (self.numbers[column][queries] for column in (head, tail))
        return self.links.find(self._relations(edge)[queries], *ends)

    def spans(self, keys: Keys, edge: Edge) -> tuple[Numbers, Numbers]:
        wanted = self._shifts(edge)[keys // self.size]
        wanted += keys
        return self.links.spans_of(*self.links.find_rows(wanted))

    def expanded(self, keys: Keys, begins: Numbers, counts: Numbers) -> tuple[Keys, Places]:
        at = places(begins, counts)
        far = np.repeat(self._bases[keys // self.size], counts)
        far += self.links.tails[at]
        return far, at

    def _rows_from(self, keys: Keys, edge: Edge) -> tuple[Places, Numbers, Numbers]:
        """Of the rows that an edge leads to from some keys the query, the begin and the length."""
        owners = keys // self.size
        wanted = self._shifts(edge)[owners]
        wanted += keys
        there, rows = self.links.find_rows(wanted)
        if not there.all():
            rows, owners = rows.compress(there), owners.compress(there)
        begins = self.links.starts.take(rows)
        rows += 1
        return owners, begins, self.links.starts.take(rows) - begins

    def reached(self, keys: Keys, edge: Edge, check: Callable[[int], None]) -> Keys:
        owners, begins, counts = self._rows_from(keys, edge)
        check(int(counts.sum()))
        marks = self._marks(owners, begins, counts, self._relations(edge) ^ 1)
        if marks is None:
            far = np.repeat(self._bases[owners], counts)
            far += self.links.tails[places(begins, counts)]
            far.sort()
            return far[run_starts(far)]
        found = marks.flags.nonzero()[0]
        counts = np.diff(found.searchsorted(marks.ends))
        found -= np.repeat(marks.shifts, counts)
        keys = np.repeat(self._bases, counts)
        keys += self.links.heads[found]
        return keys

    def met(
        self, keys: Keys, edge: Edge, others: Keys, back: Edge, check: Callable[[int], None]
    ) -> Keys:
        owners, begins, counts = self._rows_from(keys, edge)
        total = int(counts.sum())
        if total > HALVING * len(others):
            begins_back, counts_back = self.spans(others, back)
            if int(counts_back.sum()) * HALVING < total:
                far, _ = self.expanded(others, begins_back, counts_back)
                return others[_any_of(counts_back, contains(keys, far))]
        check(total)
        marks = self._marks(owners, begins, counts, self._relations(edge) ^ 1)
        if marks is None:
            return others[contains(self.reached(keys, edge, check), others)]
        return others.compress(self._marked(marks, others))

    def _marks(
        self, owners: Places, begins: Numbers, counts: Numbers, inverse: Places
    ) -> _Marks | None:
        """Flags for the tails of some rows; None where a table would be mostly empty.

        ``inverse``: for each query the inverse of its relation, whose heads the tails are.
        """
        tail_rows = self.links.rows_of_tails
        first = self.links.rows[inverse]
        # Only the queries that have rows need flags.
        widths = np.zeros(self.count, np.int64)
        present = owners[run_starts(owners)]
        widths[present] = (self.links.rows[inverse + 1] - first)[present]
        ends = np.append(1, widths.cumsum() + 1)
        at = places(begins, counts)
        if tail_rows is None or ends[-1] > FLAGS * (len(at) + 1):
            return None
        shifts = ends[:-1] - first
        marked = np.repeat(shifts[owners], counts)
        marked += tail_rows[at]
        flags = np.zeros(int(ends[-1]), np.bool_)
        flags[marked] = True
        return _Marks(inverse, flags, shifts, ends)

    def _marked(self, marks: _Marks, keys: Keys) -> Mask:
        """For each key whether it has a flag."""
        owners = keys // self.size
        wanted = (marks.inverse * self.size - self._bases)[owners]
        wanted += keys
        there, rows = self.links.find_rows(wanted)
        rows += marks.shifts[owners]
        there &= rows < marks.ends[1:][owners]  # a query without rows has no flags
        rows *= there
        found: Mask = marks.flags[rows]
        return found

    def find(self, near: Keys, far: Keys, edge: Edge) -> Places:
        owners = near // self.size
        wanted = self._shifts(edge)[owners]
        wanted += near
        return self.links.find_links(wanted, far - self._bases[owners])

    def _starts(self, edge: Edge, queries: Places) -> tuple[Places, Places]:
        relations = self._relations(edge)[queries]
        begins = self.links.rows[relations]
        return begins, self.links.rows[relations + 1] - begins

    def starts_size(self, edge: Edge, queries: Places) -> int:
        return int(self._starts(edge, queries)[1].sum())

    def starts(self, edge: Edge, queries: Places) -> Keys:
        begins, counts = self._starts(edge, queries)
        keys = np.repeat(self._bases[queries], counts)
        keys += self.links.heads[places(begins, counts)]
        return keys


@dataclass(frozen=True, slots=True)
class _Marks:
    """Flags for the entities that the relations of queries lead to, query after query.

    Row number n of ``inverse`` has the flag n + ``shifts``[query]; those of a query are before its
    ``ends``. Before all flags stands one that is false.
    """

    inverse: Places
    flags: Mask
    shifts: Places
    ends: Places


def _any_of(counts: Numbers, hits: Mask) -> Mask:
    """For runs of so many flags whether one of each is true."""
    found = np.zeros(len(counts), np.bool_)
    found[np.repeat(np.arange(len(counts)), counts)[hits]] = True
    return found
