"""Joins of a query's core: cycles, several free variables, and anti-joins between variables.

Variables are bound one after the other, always the one that leads to the fewest rows; a column
that nothing later needs is dropped at once, its rows added up. Where a step would make more than
`BLOCK` rows, the table is cut and each piece is followed to the end: the variables bound so far
are the cut set, and memory stays near one block for each variable of the core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cqa.answering.pattern import Edge
from cqa.answering.semiring import BOOLEAN, Values
from cqa.answering.table import MAX_ROWS, Factor, Table, gathered, within
from cqa.errors import QueryError
from cqa.graphs.links import Places, places
from cqa.query import Query, Variable
from kb.arrays import Ids, Mask, unique_below

if TYPE_CHECKING:
    from cqa.answering.walk import Search

# The most rows that one step makes at once.
BLOCK = 1 << 20

# A way to bind a variable: from which column, by which edge, and where the links stand.
Option = tuple[Variable, Edge, Places, Places]


def join(search: Search, given: Table | None) -> Table:
    """The matches of what is left of a search: distinct sorted rows of its free variables."""
    return _Join(search).run(given)


class _Join:
    def __init__(self, search: Search) -> None:
        self._search, self._walk = search, search.walk
        self._links, self._semiring = search.links, search.semiring
        self._edges, self._free = search.edges, search.free
        self._domains: dict[Variable, Factor] = {}
        self._ties = search.pattern.ties
        self._bound = search.links.entity_count

    def run(self, given: Table | None) -> Table:
        search, left = self._search, self._search.left
        for variable in left:
            factor = search.narrowed(variable)
            if factor is not None:
                self._domains[variable] = factor
        if given is None:
            self._reduce(left)
        if any(len(factor.ids) == 0 for factor in self._domains.values()):
            return self._walk.nothing(self._free)
        if given is not None:
            table = self._opened(given)
        elif left:
            search.domains = self._domains
            start = min(left, key=lambda v: len(search.first(v).ids))
            first = self._domains.get(start) or search.narrow(start, search.first(start))
            table = Table((start,), [first.ids], first.values)
        else:
            values = None if self._semiring.plus is None else self._semiring.ones(1)
            table = Table((), [], values, 1)
        for part in self._ties:
            if not part.free:
                table = self._without(table, part)
        return self._extend(table, [v for v in left if v not in table.variables])

    # --- candidates ---------------------------------------------------------------------------

    def _reduce(self, left: list[Variable]) -> None:
        """Leave out candidates without a partner: once along a spanning order, once back."""
        order: list[Variable] = []
        waiting = sorted(
            (v for v in left if v in self._domains), key=lambda v: len(self._domains[v].ids)
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

    def _push(self, variable: Variable) -> None:
        ids = self._domains[variable].ids
        for other, edges in self._edges.get(variable, {}).items():
            for relation, positive in edges:
                if not positive:
                    continue
                domain = self._domains.get(other)
                reached = self._links.reached(relation, ids)
                if domain is None:
                    self._domains[other] = self._search.narrow(other, Factor(reached))
                else:
                    keep = within(reached, domain.ids, self._bound)
                    if not keep.all():
                        self._domains[other] = domain.kept(keep)

    def _opened(self, given: Table) -> Table:
        """The given rows after the filters on their variables and the edges between them."""
        table = Table(given.variables, given.columns)
        for variable in given.variables:
            table = self._confined(table, variable)
        for at, variable in enumerate(given.variables):
            for other in given.variables[:at]:
                for edge in self._edges.get(other, {}).get(variable, ()):
                    table = self._linked(table, other, variable, edge)
        for part in self._ties:
            if part.free and set(part.free) <= set(table.variables):
                table = self._without(table, part)
        return table

    # --- binding ------------------------------------------------------------------------------

    def _extend(self, table: Table, unbound: list[Variable]) -> Table:
        """The matches that begin with the rows of a table."""
        while unbound:
            table = self._dropped(table, unbound)
            if len(table) == 0:
                return self._walk.nothing(self._free)
            variable, options = self._next(table, unbound)
            counts = self._counts(table, variable, options)
            ends = counts.cumsum()
            if len(table) > 1 and int(ends[-1]) > BLOCK:
                parts = []
                begin = 0
                while begin < len(table):
                    before = int(ends[begin - 1]) if begin else 0
                    end = max(begin + 1, int(ends.searchsorted(before + BLOCK, "right")))
                    parts.append(self._extend(table.at(slice(begin, end)), unbound))
                    begin = end
                return gathered(self._semiring, self._free, parts, self._bound)
            if options:
                table = self._expanded(table, variable, options)
            else:
                table = self._product(table, variable)
            if variable not in self._domains:
                table = self._confined(table, variable)
            for part in self._ties:
                if variable in part.free and set(part.free) <= set(table.variables):
                    table = self._without(table, part)
            unbound = [other for other in unbound if other != variable]
        return gathered(self._semiring, self._free, [table], self._bound)

    def _dropped(self, table: Table, unbound: list[Variable]) -> Table:
        """The table without the columns that nothing later needs."""
        waiting = set(unbound)
        needed = set(self._free)
        for part in self._ties:
            if not waiting.isdisjoint(part.free):
                needed.update(part.free)
        kept = tuple(
            v
            for v in table.variables
            if v in needed or not waiting.isdisjoint(self._edges.get(v, ()))
        )
        if len(kept) == len(table.variables):
            return table
        return gathered(self._semiring, kept, [table], self._bound)

    def _next(self, table: Table, unbound: list[Variable]) -> tuple[Variable, list[Option]]:
        """The variable that leads to the fewest rows, and the ways to bind it."""
        best: tuple[float, Variable, list[Option]] | None = None
        for variable in unbound:
            options: list[Option] = []
            for other, edges in self._edges.get(variable, {}).items():
                if other not in table.variables:
                    continue
                for relation, positive in edges:
                    if positive:
                        spans = self._links.spans(relation ^ 1, table.column(other))
                        options.append((other, (relation ^ 1, True), *spans))
            domain = self._domains.get(variable)
            share = 1.0 if domain is None else len(domain.ids) / max(1, self._bound)
            if options:
                cost = float(self._counts(table, variable, options).sum()) * (0.1 + share)
            else:
                cost = float(len(table)) * share * self._bound * 1e6
            if best is None or cost < best[0]:
                best = cost, variable, options
        assert best is not None
        return best[1], best[2]

    def _counts(self, table: Table, variable: Variable, options: list[Option]) -> Places:
        """How many rows each row becomes before filters."""
        if not options:
            domain = self._domains.get(variable)
            size = self._bound if domain is None else len(domain.ids)
            return np.full(len(table), size, np.int64)
        counts = options[0][3]
        for option in options[1:]:
            counts = np.minimum(counts, option[3])
        return counts

    def _expanded(self, table: Table, variable: Variable, options: list[Option]) -> Table:
        """Bind a variable; each row by the option that gives it the fewest rows."""
        if len(options) == 1:
            return self._by(table, variable, options[0], None)
        least = np.argmin(np.stack([option[3] for option in options]), axis=0)
        parts = []
        for number, option in enumerate(options):
            rows = np.flatnonzero(least == number)
            if len(rows):
                parts.append(self._by(table, variable, option, rows))
        if len(parts) == 1:
            return parts[0]
        values = None
        if any(part.values is not None for part in parts):
            values = np.concatenate(
                [p.values if p.values is not None else self._semiring.ones(len(p)) for p in parts]
            )
        columns = zip(*(part.columns for part in parts), strict=True)
        return Table(parts[0].variables, list(map(np.concatenate, columns)), values)

    def _by(self, table: Table, variable: Variable, option: Option, rows: Places | None) -> Table:
        other, edge, begins, counts = option
        if rows is None:
            rows = np.arange(len(table))
        else:
            begins, counts = begins[rows], counts[rows]
        at = places(begins, counts)
        rows, found = np.repeat(rows, counts), self._links.tails[at]
        weights = self._semiring.weights(self._links, at)
        domain = self._domains.get(variable)
        if domain is not None:
            keep = within(domain.ids, found, self._bound)
            rows, found = rows[keep], found[keep]
            weights = None if weights is None else weights[keep]
            if domain.values is not None:
                own = domain.values[domain.ids.searchsorted(found)]
                weights = self._semiring.multiply(weights, own)
        values = None if table.values is None else table.values[rows]
        made = table.at(rows).with_column(variable, found, self._semiring.multiply(values, weights))
        return self._edges_checked(made, variable, (other, edge))

    def _product(self, table: Table, variable: Variable) -> Table:
        """Bind a variable that no edge leads to."""
        if variable not in self._domains:
            self._domains[variable] = self._search.narrow(variable, self._walk.universe())
        factor = self._domains[variable]
        size = len(factor.ids)
        if len(table) * size > MAX_ROWS:
            raise QueryError(
                f"the query has a product of {len(table)} and {size} matches; connect its parts"
            )
        rows = np.repeat(np.arange(len(table)), size)
        made = table.at(rows)
        values = None if factor.values is None else np.tile(factor.values, len(table))
        column = np.tile(factor.ids, len(table))
        made = made.with_column(variable, column, self._semiring.multiply(made.values, values))
        return self._edges_checked(made, variable, None)

    # --- filters ------------------------------------------------------------------------------

    def _edges_checked(
        self, table: Table, variable: Variable, used: tuple[Variable, Edge] | None
    ) -> Table:
        """The rows that satisfy the edges between a new column and the others."""
        for other, edges in self._edges.get(variable, {}).items():
            if other not in table.variables:
                continue
            for relation, positive in edges:
                edge = (relation ^ 1, positive)
                if used != (other, edge):
                    table = self._linked(table, other, variable, edge)
        return table

    def _linked(self, table: Table, head: Variable, tail: Variable, edge: Edge) -> Table:
        keep, values = self._walk.linked(edge, table.column(head), table.column(tail))
        return self._kept(table, keep, values)

    def _confined(self, table: Table, variable: Variable) -> Table:
        """The rows whose entity is a candidate of the variable and passes its own filters."""
        domain = self._domains.get(variable)
        column = table.column(variable)
        if domain is None:
            if not self._search.pattern.filters(variable):
                return table
            domain = self._search.narrow(variable, Factor(unique_below(column, self._bound)))
        keep = within(domain.ids, column, self._bound)
        values = domain.values
        if values is not None:
            values = values[domain.ids.searchsorted(column[keep])]
        return self._kept(table, keep, values)

    def _without(self, table: Table, part: Query) -> Table:
        """The rows that have no match of a negated part."""
        walk = self._walk
        if not part.free:
            found = walk.negated.evaluate(part)
            there = np.full(len(table), len(found) > 0)
            matches = None if found.values is None else found.values.repeat(len(table))
        else:
            given = Table(part.free, [table.column(variable) for variable in part.free])
            given = gathered(BOOLEAN, part.free, [given], self._bound)
            found = walk.negated.evaluate(part, given)
            at = _rows_in(found, given.variables, table, self._bound)
            there = at >= 0
            matches = None if found.values is None else found.values[at[there]]
        return self._kept(table, *walk.complemented(there, matches))

    def _kept(self, table: Table, keep: Mask, values: Values | None) -> Table:
        kept = table.at(keep)
        kept.values = self._semiring.multiply(kept.values, values)
        return kept


def _rows_in(found: Table, variables: tuple[Variable, ...], table: Table, bound: int) -> Places:
    """For each row of a table its place in another by these variables, or -1."""
    left = [found.column(variable) for variable in variables]
    right = [table.column(variable) for variable in variables]
    if bound ** len(variables) < 1 << 62:
        keys, wanted = _packed(left, bound), _packed(right, bound)
    else:
        both = np.stack([np.concatenate(pair) for pair in zip(left, right, strict=True)], axis=1)
        numbers = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
        keys, wanted = numbers[: len(found)], numbers[len(found) :]
    if len(keys) == 0:
        return np.full(len(wanted), -1)
    at = keys.searchsorted(wanted)
    at[at == len(keys)] = 0
    at[keys[at] != wanted] = -1
    return at


def _packed(columns: list[Ids], bound: int) -> Places:
    keys = columns[0].astype(np.int64)
    for column in columns[1:]:
        keys *= bound
        keys += column
    return keys
