"""The last step of the walk over many queries: free variables, cycles, negations between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cqa.errors import QueryError
from cqa.graphs.links import Numbers, Places, places
from cqa.hardness.masks import Factor, Masks, factor
from cqa.query import Query, Variable

if TYPE_CHECKING:
    from cqa.hardness.walk import Edge, Walk

# What a look-up of a link costs, beside reading one off a row.
LOOK_UP = 4


class Join:
    """Rows that begin with the given answers and take one variable after the other."""

    def __init__(self, walk: Walk, owners: Places, answers: dict[Variable, Places]) -> None:
        self._walk, self._links, self._size = walk, walk.links, walk.size
        self._edges, self._factors = walk.edges, walk.factors
        self._queries = owners
        self._several = len(owners) > 1
        self._rows: Places = np.arange(len(owners))
        self._columns = {variable: answers[variable].astype(np.int64) for variable in walk.free}
        self._masks: Masks | None = None
        self._without: list[Query] = list(walk.without)

    def run(self) -> Factor:
        """The masks of the answers, by the number of their row."""
        walk = self._walk
        if walk.scale is not None:
            self._confine(walk.scale, self._queries)
        for variable in walk.free:
            self._confine(self._factors[variable], self._keys(variable))
        for number, variable in enumerate(walk.free):
            for other in walk.free[:number]:
                for edge in self._edges.get(other, {}).get(variable, ()):
                    self._check(edge, other, variable)
        self._subtract()
        unbound = [variable for variable in walk.variables if variable not in self._columns]
        while unbound:
            variable, used = self._next(unbound)
            self._bind(variable, used)
            unbound.remove(variable)
            self._subtract()
            self._drop(unbound)
        return factor(self._rows, self._masks, walk.width)

    def _keys(self, variable: Variable) -> Places:
        return self._queries * self._size + self._columns[variable]

    def _keep(self, at: Places | np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
        self._rows, self._queries = self._rows[at], self._queries[at]
        self._columns = {variable: column[at] for variable, column in self._columns.items()}
        self._masks = None if self._masks is None else self._masks[at]

    def _add(self, masks: Masks | None) -> None:
        if masks is not None:
            self._masks = masks if self._masks is None else self._masks | masks

    def _confine(self, found: Factor, keys: Places) -> None:
        """Keep the rows whose key is there, and multiply by its masks."""
        at = found.find(keys)
        keep = at >= 0
        self._keep(keep)
        rows, masks = found.spread(at[keep])
        if rows is not None:
            self._keep(rows)
        self._add(masks)

    def _check(self, edge: Edge, head: Variable, tail: Variable) -> None:
        """Keep the rows that satisfy an edge between two of their columns."""
        relations = self._walk.relations(self._queries, edge)
        at = self._links.find(relations, self._columns[head], self._columns[tail])
        keep = (at >= 0) == edge.positive
        self._keep(keep)
        if edge.positive:
            self._add(self._walk.prices(at[keep], edge))

    def _subtract(self) -> None:
        """Leave out the rows that match a negated part all of whose variables are there."""
        from cqa.hardness.walk import hold

        for part in list(self._without):
            if not set(part.free) <= self._columns.keys():
                continue
            self._without.remove(part)
            given = [self._columns[variable] for variable in part.free]
            matched = hold(self._links, part, self._walk.numbers, self._queries, given)
            self._keep(~matched)

    # --- binding ----------------------------------------------------------------------------------

    def _next(self, unbound: list[Variable]) -> tuple[Variable, tuple[Variable, Edge] | None]:
        """The variable that makes the fewest rows, and the edge to bind it (None: candidates)."""
        best: tuple[int, Variable, tuple[Variable, Edge] | None] | None = None
        for variable in unbound:
            if variable in self._factors:
                cost = int(self._sizes(variable)[1].sum()) * LOOK_UP
                if best is None or cost < best[0]:
                    best = cost, variable, None
            for other in self._edges.get(variable, ()):
                if other not in self._columns:
                    continue
                for edge in self._edges[other][variable]:
                    if edge.positive:
                        cost = int(self._spans(other, edge)[1].sum())
                        if best is None or cost < best[0]:
                            best = cost, variable, (other, edge)
        if best is None:
            raise QueryError(
                f"the variable {unbound[0].name!r} stands in no positive atom, so that every entity"
                " might match; add an atom that binds it"
            )
        return best[1], best[2]

    def _spans(self, other: Variable, edge: Edge) -> tuple[Numbers, Numbers]:
        relations = self._walk.relations(self._queries, edge)
        return self._links.spans(relations, self._columns[other])

    def _sizes(self, variable: Variable) -> tuple[Places, Places]:
        """For each row where the candidates of its query begin, and how many there are."""
        keys = self._factors[variable].keys
        begins = keys.searchsorted(self._queries * self._size)
        return begins, keys.searchsorted((self._queries + 1) * self._size) - begins

    def _bind(self, variable: Variable, used: tuple[Variable, Edge] | None) -> None:
        walk = self._walk
        begins: Numbers
        counts: Numbers
        if used is None:
            begins, counts = self._sizes(variable)
        else:
            begins, counts = self._spans(*used)
        # Unlike a message, what is bound here grows with the answers.
        walk.check(int(counts.sum()), several=self._several)
        at = places(begins, counts)
        self._keep(np.repeat(np.arange(len(self._rows)), counts))
        found = self._factors.get(variable)
        if used is None:
            assert found is not None
            self._columns[variable] = found.keys[at] - self._queries * self._size
        else:
            self._columns[variable] = self._links.tails[at].astype(np.int64)
            self._add(walk.prices(at, used[1]))
        if found is None and walk.filtered(variable):
            walk.restrict(variable, factor(self._keys(variable), None, 0))
            found = self._factors[variable]
        if found is not None:
            self._confine(found, self._keys(variable))
        for other in [other for other in self._edges.get(variable, {}) if other in self._columns]:
            for edge in self._edges[other][variable]:
                if used is None or used[1] is not edge:
                    self._check(edge, other, variable)

    def _drop(self, unbound: list[Variable]) -> None:
        """Drop the columns that nothing later needs, and add up the rows that become alike."""
        needed = {variable for part in self._without for variable in part.free}
        for variable in unbound:
            needed.update(self._edges.get(variable, ()))
        kept = {v: column for v, column in self._columns.items() if v in needed}
        # Where no column of an existential variable goes, no rows become alike.
        gone = [v for v in self._columns if v not in kept and v not in self._walk.free]
        if not gone or not len(self._rows):
            return
        keys = self._rows
        for variable, column in kept.items():
            if variable not in self._walk.free:
                ranks = np.unique(keys, return_inverse=True)[1].reshape(-1)
                keys = ranks * self._size + column
        _, first, ranks = np.unique(keys, return_index=True, return_inverse=True)
        found = factor(ranks.reshape(-1), self._masks, self._walk.width)
        at, masks = found.rows()
        self._columns = kept
        old = self._masks
        self._masks = None
        self._keep(first[at])
        self._masks = masks if old is not None else None
