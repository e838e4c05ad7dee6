"""Joins of a search's core: cycles, several free variables, and anti-joins between variables.

Variables are bound one after the other, always the one that leads to the fewest rows; a column
that nothing later needs is dropped at once, its rows added up. Where a step would make more than
`BLOCK` rows, the table is cut and each piece is followed to the end: the variables bound so far
are the cut set, and memory stays near one block for each variable of the core.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cqa.answering.block import QueryBlock, are_zeros, zeros
from cqa.answering.factor import MAX_ROWS, Algebra, Factor, Keys, distinct, within
from cqa.answering.pattern import Edge, Patterns
from cqa.answering.search import GivenRows, Search, TooManyRowsError
from cqa.answering.semiring import Values
from cqa.errors import QueryError
from cqa.graphs.links import Numbers, Places, places
from kb.arrays import Mask, contains

# The most rows that one step makes at once.
BLOCK = 1 << 20
# What a look-up of a link costs, beside reading one off a row.
LOOK_UP = 4


@dataclass(slots=True)
class Matches:
    """Rows of keys for some variables, each with its query and its value (None: all one).

    ``numbers`` are those of the given rows that the rows go on from, where there are some.
    """

    owners: Places
    columns: dict[int, Keys]
    values: Values | None = None
    numbers: Places | None = None

    def __len__(self) -> int:
        return len(self.owners)

    def at(self, rows: Places | Mask | slice) -> Matches:
        """Some of the rows."""
        columns = {variable: column[rows] for variable, column in self.columns.items()}
        if columns and are_zeros(self.owners):
            owners = zeros(len(next(iter(columns.values()))))
        else:
            owners = self.owners[rows]
        return Matches(
            owners,
            columns,
            None if self.values is None else self.values[rows],
            None if self.numbers is None else self.numbers[rows],
        )

    def kept(self, keep: Mask) -> Matches:
        """The rows of a mask; most often it keeps all."""
        return self if keep.all() else self.at(keep.nonzero()[0])


# A way to bind a variable: from which column by which edge (None: its candidates), and where for
# each row what it leads to begins, and how much that is.
Option = tuple[int | None, Edge | None, Numbers, Numbers]


def join(search: Search, given: GivenRows | None) -> Matches:
    """The matches of what is left of a search.

    Distinct sorted rows of its free variables; where rows are given, a row for each of them that
    has a match, without columns.
    """
    return _Join(search).run(given)


class _Join:
    def __init__(self, search: Search) -> None:
        self._search, self._block, self._algebra = search, search.block, search.algebra
        self._edges, self._domains = search.edges, search.domains
        self._ties = search.pattern.ties
        self._wanted: tuple[int, ...] = search.pattern.free

    def run(self, given: GivenRows | None) -> Matches:
        search, left = self._search, self._search.left
        for variable in left:
            if variable in self._domains:
                search.settle(variable)
        if given is None:
            self._reduce(left)
            table = self._begin(left)
        else:
            self._wanted = ()
            table = self._opened(given)
        if search.scale is not None:
            table = confined(self._algebra, table, search.scale, table.owners)
        for part in self._ties:
            if not part.shared:
                table = self._without(table, part)
        # Of variables that cost the same the free ones come last: the others' columns are dropped.
        left = sorted(left, key=self._wanted.__contains__)
        return self._extend(table, [v for v in left if v not in table.columns])

    def _begin(self, left: list[int]) -> Matches:
        search = self._search
        if not left:
            return Matches(search.queries, {})
        starts = [variable for variable in left if variable in self._domains] or left
        start = min(starts, key=lambda variable: len(search.first(variable).keys))
        keys, values = search.settle(start).rows()
        return Matches(self._block.owners(keys), {start: keys}, values)

    # --- candidates -------------------------------------------------------------------------------

    def _reduce(self, left: list[int]) -> None:
        """Leave out candidates without a partner: once along a spanning order, once back."""
        order: list[int] = []
        waiting = sorted(
            (v for v in left if v in self._domains), key=lambda v: len(self._domains[v].keys)
        )
        while waiting:
            variable = waiting.pop(0)
            if variable in order:
                continue
            order.append(variable)
            self._push(variable)
            waiting[:0] = [v for v in self._edges.get(variable, {}) if v in self._domains]
        for variable in reversed(order):
            self._push(variable)

    def _push(self, variable: int) -> None:
        search, keys = self._search, self._domains[variable].keys
        for other, edges in self._edges.get(variable, {}).items():
            for edge in edges:
                if not edge.positive:
                    continue
                reached = Factor(self._block.reached(keys, edge, search.check))
                domain = self._domains.get(other)
                if domain is None:
                    search.place(other, reached)
                    search.settle(other)
                else:
                    there = within(reached.keys, domain.keys, self._block.bound)
                    if not there.all():
                        self._domains[other] = domain.kept(there)

    def _opened(self, given: GivenRows) -> Matches:
        """The given rows after the filters on their variables and the edges between them."""
        free = self._search.pattern.free
        columns = dict(zip(free, given.columns, strict=True))
        table = Matches(given.owners, columns, None, np.arange(len(given)))
        for variable in free:
            table = confined(self._algebra, table, self._domains[variable], table.columns[variable])
        for at, variable in enumerate(free):
            for other in free[:at]:
                for edge in self._edges.get(other, {}).get(variable, ()):
                    table = self._linked(table, other, variable, edge)
        for part in self._ties:
            if part.shared and set(part.shared) <= table.columns.keys():
                table = self._without(table, part)
        return table

    # --- binding ----------------------------------------------------------------------------------

    def _extend(self, table: Matches, unbound: list[int]) -> Matches:
        """The matches that begin with the rows of a table."""
        while unbound:
            table = self._dropped(table, unbound)
            if not len(table):
                break
            variable, options = self._next(table, unbound)
            counts = _least(options)
            ends = counts.cumsum()
            if len(table) > 1 and int(ends[-1]) > BLOCK:
                parts = []
                begin = 0
                while begin < len(table):
                    before = int(ends[begin - 1]) if begin else 0
                    end = max(begin + 1, int(ends.searchsorted(before + BLOCK, "right")))
                    parts.append(self._extend(table.at(slice(begin, end)), unbound))
                    begin = end
                return self._gathered(parts, self._wanted)
            table = self._expanded(table, variable, options)
            for part in self._ties:
                if variable in part.shared and set(part.shared) <= table.columns.keys():
                    table = self._without(table, part)
            unbound = [other for other in unbound if other != variable]
        return self._gathered([table], self._wanted)

    def _dropped(self, table: Matches, unbound: list[int]) -> Matches:
        """The table without the columns that nothing later needs."""
        waiting = set(unbound)
        needed = set(self._wanted)
        for part in self._ties:
            if not waiting.isdisjoint(part.shared):
                needed.update(part.shared)
        kept = tuple(
            v
            for v in table.columns
            if v in needed or not waiting.isdisjoint(self._edges.get(v, ()))
        )
        if len(kept) == len(table.columns):
            return table
        free = self._search.pattern.free
        if table.numbers is not None and all(v in kept or v in free for v in table.columns):
            # A given row has its free variables by its number: no rows become alike.
            columns = {variable: table.columns[variable] for variable in kept}
            return Matches(table.owners, columns, table.values, table.numbers)
        return self._gathered([table], kept)

    def _next(self, table: Matches, unbound: list[int]) -> tuple[int, list[Option]]:
        """The variable that leads to the fewest rows, and the ways to bind it."""
        best: tuple[float, int, list[Option]] | None = None
        everything = max(1, self._block.size * len(self._search.queries))
        for variable in unbound:
            options: list[Option] = []
            for other in self._edges.get(variable, {}):
                if other in table.columns:
                    for back in self._edges[other][variable]:
                        if back.positive:
                            spans = self._block.spans(table.columns[other], back)
                            options.append((other, back, *spans))
            domain = self._domains.get(variable)
            share = 1.0 if domain is None else len(domain.keys) / everything
            if options:
                cost = float(_least(options).sum()) * (0.1 + share)
            else:
                cost = float(len(table)) * share * self._block.size * 1e6
            if best is None or cost < best[0]:
                best = cost, variable, options
        assert best is not None
        _, variable, options = best
        if not options or variable in self._domains:
            candidates = self._candidates(table, variable)
            if not options or candidates[3].sum() * LOOK_UP < _least(options).sum():
                options = [candidates]
        return variable, options

    def _candidates(self, table: Matches, variable: int) -> Option:
        """For each row the candidates of a variable in its query."""
        self._search.first(variable)
        keys, size = self._search.settle(variable).keys, self._block.size
        if not self._block.several:
            begins = np.zeros(len(table), np.int64)
            return None, None, begins, np.full(len(table), len(keys))
        begins = keys.searchsorted(table.owners * size)
        return None, None, begins, keys.searchsorted((table.owners + 1) * size) - begins

    def _expanded(self, table: Matches, variable: int, options: list[Option]) -> Matches:
        """Bind a variable; each row by the option that gives it the fewest rows."""
        if len(options) == 1:
            return self._by(table, variable, options[0])
        least = np.argmin(np.stack([option[3] for option in options]), axis=0)
        parts = []
        for number, (other, edge, begins, counts) in enumerate(options):
            rows = np.flatnonzero(least == number)
            if len(rows):
                option = (other, edge, begins[rows], counts[rows])
                parts.append(self._by(table.at(rows), variable, option))
        return concatenated(self._algebra, parts)

    def _by(self, table: Matches, variable: int, option: Option) -> Matches:
        algebra, search = self._algebra, self._search
        other, edge, begins, counts = option
        total = int(counts.sum())
        if other is None and total > MAX_ROWS and len(table):
            if self._block.several:
                raise TooManyRowsError
            raise QueryError(
                f"the query has a product of {len(table)} and {total // len(table)} matches;"
                " connect its parts"
            )
        rows = np.repeat(np.arange(len(table)), counts)
        domain = self._domains.get(variable)
        weights: Values | None = None
        if other is None or edge is None:
            assert domain is not None
            at = places(begins, counts)
            found = domain.keys[at]
            rows, found, weights = _spread(domain, at, rows, found, weights, algebra.times)
        else:
            found, at = self._block.expanded(table.columns[other], begins, counts)
            if domain is None and search.pattern.filters(variable):
                domain = search.narrowed(variable, Factor(distinct(found, self._block.bound)))
            if not algebra.plain:
                weights = algebra.weights(self._block.links, at, edge)
            if domain is not None and domain.values is None:
                keep = within(domain.keys, found, self._block.bound)
                if not keep.all():
                    rows, found = rows.compress(keep), found.compress(keep)
                    weights = None if weights is None else weights.compress(keep)
            elif domain is not None:
                at = domain.find(found)
                keep = at >= 0
                rows, found, at = rows[keep], found[keep], at[keep]
                weights = None if weights is None else weights[keep]
                rows, found, weights = _spread(domain, at, rows, found, weights, algebra.times)
        made = table.at(rows)
        made.columns[variable] = found
        made.values = algebra.times(made.values, weights)
        return self._edges_checked(made, variable, edge)

    # --- filters ----------------------------------------------------------------------------------

    def _edges_checked(self, table: Matches, variable: int, used: Edge | None) -> Matches:
        """The rows that satisfy the edges between a new column and the others."""
        for other in self._edges.get(variable, {}):
            if other in table.columns:
                for edge in self._edges[other][variable]:
                    if edge is not used:
                        table = self._linked(table, other, variable, edge)
        return table

    def _linked(self, table: Matches, head: int, tail: int, edge: Edge) -> Matches:
        at = self._block.find(table.columns[head], table.columns[tail], edge)
        if self._algebra.plain:
            return table.kept((at >= 0) == edge.positive)
        return self._kept(table, *self._algebra.linked(self._block.links, at, edge))

    def _without(self, table: Matches, part: Patterns) -> Matches:
        """The rows that have no match of a negated part."""
        columns = [table.columns[variable] for variable in part.shared]
        owners = table.owners
        numbers = None
        if len(columns) < 2 or len(table.columns) > len(columns):
            # Many rows may ask for the same.
            packed = _packed(owners, owners, columns, self._block)[0]
            _, first, numbers = np.unique(packed, return_index=True, return_inverse=True)
            owners, columns = owners[first], [column[first] for column in columns]
            numbers = numbers.reshape(-1)
        keep, values = self._search.unmatched(part, GivenRows(owners, columns))
        if numbers is not None:
            if values is not None:
                spread = np.zeros(len(keep), values.dtype)
                spread[keep] = values
                values = spread[numbers][keep[numbers]]
            keep = keep[numbers]
        return self._kept(table, keep, values)

    def _kept(self, table: Matches, keep: Mask, values: Values | None) -> Matches:
        kept = table.kept(keep)
        kept.values = self._algebra.times(kept.values, values)
        return kept

    # --- sums -------------------------------------------------------------------------------------

    def _gathered(self, parts: Sequence[Matches], kept: tuple[int, ...]) -> Matches:
        """The distinct rows of tables in some columns, sorted, with their values added up."""
        filled = [part for part in parts if len(part)]
        if not filled:
            first = parts[0]
            columns = {variable: np.empty(0, np.int64) for variable in kept}
            numbers = None if first.numbers is None else first.numbers[:0]
            return Matches(first.owners[:0], columns, None, numbers)
        check_held(sum(map(len, filled)), self._block.several)
        return summed(
            self._algebra,
            concatenated(
                self._algebra,
                [
                    Matches(
                        part.owners, {v: part.columns[v] for v in kept}, part.values, part.numbers
                    )
                    for part in filled
                ],
            ),
            self._block,
        )


def confined(algebra: Algebra, table: Matches, factor: Factor, keys: Keys) -> Matches:
    """The rows whose key is in a factor, multiplied by its values."""
    if factor.values is None:
        return table.kept(contains(factor.keys, keys))
    at = factor.find(keys)
    there = at >= 0
    table = table.at(there)
    again, values = factor.spread(at[there])
    if again is not None:
        table = table.at(again)
    table.values = algebra.times(table.values, values)
    return table


def concatenated(algebra: Algebra, parts: Sequence[Matches]) -> Matches:
    """The rows of tables with the same columns, one table after the other."""
    if len(parts) == 1:
        return parts[0]
    values, numbers = None, None
    if any(part.values is not None for part in parts):
        values = np.concatenate(
            [algebra.ones(len(p)) if p.values is None else p.values for p in parts]
        )
    if parts[0].numbers is not None:
        numbers = np.concatenate([part.numbers for part in parts if part.numbers is not None])
    columns = {
        variable: np.concatenate([part.columns[variable] for part in parts])
        for variable in parts[0].columns
    }
    if all(are_zeros(part.owners) for part in parts):
        owners = zeros(sum(map(len, parts)))
    else:
        owners = np.concatenate([part.owners for part in parts])
    return Matches(owners, columns, values, numbers)


def check_held(count: int, several: bool) -> None:
    """Raise QueryError for more rows than can be held; TooManyRowsError of several queries."""
    if count > MAX_ROWS:
        if several:
            raise TooManyRowsError
        raise QueryError(f"the query has more than {MAX_ROWS} matches to hold; bind more of it")


def summed(algebra: Algebra, table: Matches, block: QueryBlock) -> Matches:
    """The distinct rows of a table, sorted, with their values added up."""
    columns = list(table.columns.values())
    owners, first = table.owners, table.owners if table.numbers is None else table.numbers
    if len(columns) == 1 and table.numbers is None:
        keys, values = algebra.summed(columns[0], table.values, block.bound).rows()
        return Matches(block.owners(keys), dict.fromkeys(table.columns, keys), values)
    packed, packs = _packed(first, owners, columns, block)
    if algebra.plain and packs and table.numbers is None and columns:
        return _unpacked(distinct(packed, 1 << 62), table, block)
    found = algebra.summed(packed, table.values, 1 << 62)
    # Of the rows that are alike any one has the columns.
    order = np.argsort(packed, kind="stable")
    rows = order[packed[order].searchsorted(found.keys)]
    again, values = found.spread(np.arange(len(found.keys)))
    made = table.at(rows if again is None else rows[again])
    made.values = values
    return made


def _packed(
    first: Places, owners: Places, columns: Sequence[Keys], block: QueryBlock
) -> tuple[Places, bool]:
    """Numbers that sort as rows do and tell them apart; whether they can be taken apart again."""
    bound = 1 if are_zeros(first) or not len(first) else int(first.max()) + 1
    entities = [block.entities(column, owners) for column in columns]
    if bound * block.size ** len(columns) < 1 << 62:
        alone = bound == 1 and entities
        keys = (entities.pop(0) if alone else first).astype(np.int64)
        for column in entities:
            keys *= block.size
            keys += column
        return keys, True
    rows = np.stack([first, *entities], axis=1)
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1), False


def _unpacked(packed: Places, like: Matches, block: QueryBlock) -> Matches:
    entities: list[Places] = []
    for _ in range(len(like.columns) - (not block.several)):
        rest = packed // block.size
        packed -= rest * block.size
        entities.append(packed)
        packed = rest
    if not block.several:
        entities.append(packed)
        packed = block.owners(packed)
    columns = [block.keyed(packed, own) for own in reversed(entities)]
    return Matches(packed, dict(zip(like.columns, columns, strict=True)))


def _least(options: Sequence[Option]) -> Numbers:
    """For each row how many rows it becomes by the best option, before filters."""
    counts = options[0][3]
    for option in options[1:]:
        counts = np.minimum(counts, option[3])
    return counts


def _spread(
    domain: Factor, at: Places, rows: Places, found: Keys, weights: Values | None,
    times: Callable[[Values | None, Values | None], Values | None],
) -> tuple[Places, Keys, Values | None]:  # fmt: skip
    """Rows that bind a key each, multiplied by the values of the candidates at some places."""
    again, values = domain.spread(at)
    if again is not None:
        rows, found = rows[again], found[again]
        weights = None if weights is None else weights[again]
    return rows, found, times(weights, values)
