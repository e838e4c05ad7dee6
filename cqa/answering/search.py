"""One conjunction at work for the queries of a block: candidates, and messages between variables.

An existential variable with one neighbour sends that neighbour what it can be linked to and is
gone; parallel edges are filters on the pairs of the two. What stays when nothing can be sent is one
variable (the answers of a tree), or a core of several free variables and cycles, which
`cqa.answering.join` joins. Nothing is ever as large as all pairs of entities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cqa.answering.block import QueryBlock
from cqa.answering.factor import MAX_ROWS, Algebra, Factor, Keys, distinct, within
from cqa.answering.pattern import Edge, Pattern, Patterns, any_positive
from cqa.answering.semiring import Values
from cqa.answering.unlinked import unlinked
from cqa.errors import QueryError
from cqa.graphs.links import Numbers, Places
from kb.arrays import Mask

# A step that makes more rows than this for several queries is done again for half of them at once.
BLOCK = 1 << 22
# From so few candidates of one query a message is sent without a look for a better way.
FEW = 256


class TooManyRowsError(Exception):
    """A step would make more rows than a block has; there are queries to part."""


def check_rows(total: int, several: bool) -> None:
    """Raise QueryError for more rows than a step may make, TooManyRowsError of several queries."""
    if total > BLOCK and several:
        raise TooManyRowsError
    if total > MAX_ROWS:
        raise QueryError(f"a query has {total} matches to hold at once; bind more of it")


@dataclass(slots=True)
class GivenRows:
    """Rows of keys, a column for each of some variables, to which a search is confined.

    All keys of a row are of the query ``owners`` has for it. Of one variable the keys are sorted
    and distinct.
    """

    owners: Places
    columns: Sequence[Keys]

    def __len__(self) -> int:
        return len(self.owners)

    def at(self, rows: Places) -> GivenRows:
        """Some of the rows."""
        return GivenRows(self.owners[rows], [column[rows] for column in self.columns])


# For rows of a negated part's shared variables those that have a match, by number, with its value.
Matched = Callable[[Patterns, GivenRows], Factor]


class Search:
    """The candidates of a pattern's variables for some queries, and the variables that are left."""

    def __init__(
        self,
        block: QueryBlock,
        algebra: Algebra,
        pattern: Pattern,
        queries: Places,
        matched: Matched,
        universe: bool,
    ) -> None:
        self.block, self.links, self.algebra = block, block.links, algebra
        self.universe = universe
        self.pattern, self.queries, self._matched = pattern, queries, matched
        self.domains: dict[int, Factor] = {}
        self.left = list(pattern.variables)
        self.edges = {v: dict(others) for v, others in pattern.edges.items()}
        self._settled: set[int] = set()
        # What is said of a query as a whole, by its number.
        self.scale: Factor | None = None

    def begin(self, given: GivenRows | None) -> bool:
        """Set the candidates that follow from constants; False where there can be no match."""
        pattern = self.pattern
        for head, tail, edge in pattern.facts:
            at = self.block.facts(head, tail, edge, self.queries)
            self._scale_by(self._filtered(Factor(self.queries), at, edge))
            if not self._alive():
                return False
        if given is not None:
            for variable, keys in zip(pattern.free, given.columns, strict=True):
                own = keys if len(given.columns) == 1 else distinct(keys, self.block.bound)
                self.place(variable, Factor(own))
        for variable, rows in pattern.rows.items():
            if variable not in self.domains:
                self.place(variable, *self._from_constants(rows))
                if not len(self.domains[variable].keys):
                    return False
        return True

    def _from_constants(self, rows: list[tuple[int, Edge]]) -> tuple[Factor, Sequence[object]]:
        """What some constants lead to, and those of them that are looked at already."""
        block, algebra = self.block, self.algebra
        if algebra.plain:
            if block.several:
                least = min(block.row_sizes(*row, self.queries) for row in rows)
                self.check(least)
            return Factor(block.candidates(rows, self.queries)), rows
        best = rows[0]
        if len(rows) > 1 or block.several:
            sizes = [block.row_sizes(*row, self.queries) for row in rows]
            best = rows[sizes.index(min(sizes))]
            self.check(min(sizes))
        keys, at = block.row(*best, self.queries)
        return Factor(keys, algebra.weights(self.links, at, best[1])), [best]

    def check(self, total: int) -> None:
        """Raise for so many rows: TooManyRowsError where queries can be parted."""
        check_rows(total, self.block.several)

    # --- filters ----------------------------------------------------------------------------------

    def place(self, variable: int, found: Factor, seen: Sequence[object] = ()) -> None:
        """Set the candidates of a variable, after its filters by constants and loops.

        ``seen``: rows of constants that are looked at already.
        """
        self.domains[variable] = self._confined(variable, found, seen)

    def settle(self, variable: int) -> Factor:
        """The candidates of a variable without those that a negated part of it alone matches."""
        if variable not in self._settled:
            self._settled.add(variable)
            self.domains[variable] = self._parted(variable, self.domains[variable])
        return self.domains[variable]

    def narrowed(self, variable: int, found: Factor) -> Factor:
        """Some candidates of a variable after all of its own filters."""
        return self._parted(variable, self._confined(variable, found))

    def _confined(self, variable: int, found: Factor, seen: Sequence[object] = ()) -> Factor:
        pattern, block = self.pattern, self.block
        for row in (*pattern.rows.get(variable, ()), *pattern.barred.get(variable, ())):
            if row in seen:
                continue
            constant, edge = row
            if self.algebra.plain:
                there = block.among_row(constant, edge, found.keys)
                found = found.kept(there if edge.positive else ~there)
            else:
                found = self._filtered(found, block.in_row(constant, edge, found.keys), edge)
        for edge in pattern.loops.get(variable, ()):
            found = self._filtered(found, block.find(found.keys, found.keys, edge), edge)
        return found

    def _parted(self, variable: int, found: Factor) -> Factor:
        for part in self.pattern.apart.get(variable, ()):
            if not len(found.keys):
                break
            given = GivenRows(self.block.owners(found.keys), [found.keys])
            found = self.multiplied(found, *self.unmatched(part, given))
        return found

    def _filtered(self, found: Factor, at: Places, edge: Edge) -> Factor:
        """The keys whose place of a link satisfies an edge."""
        return self.multiplied(found, *self.algebra.linked(self.links, at, edge))

    def multiplied(self, found: Factor, keep: Mask, values: Values | None) -> Factor:
        """The keys of a mask, multiplied by a value for each of those."""
        kept = found.kept(keep)
        if values is None:
            return kept
        if kept.starts is not None:
            values = np.repeat(values, np.diff(kept.starts))
        return Factor(kept.keys, self.algebra.times(kept.values, values), kept.starts)

    def unmatched(self, part: Patterns, given: GivenRows) -> tuple[Mask, Values | None]:
        """Which rows have no match of a negated part, with the complements of what they have."""
        matched = self._matched(part, given)
        there = np.zeros(len(given), np.bool_)
        there[matched.keys] = True
        return self.algebra.complemented(there, matched.values)

    def _scale_by(self, found: Factor) -> None:
        """Multiply by what is said of queries as a whole."""
        self.scale = self.algebra.meet(self.scale, found)

    def _alive(self) -> bool:
        return self.scale is None or len(self.scale.keys) > 0

    # --- messages ---------------------------------------------------------------------------------

    def eliminate(self, fixed: set[int]) -> bool:
        """Send the messages of variables that are not fixed; whether there may be a match."""
        while True:
            leaves = [v for v in self.left if v not in fixed and len(self.edges.get(v, ())) < 2]
            if not leaves:
                return True
            variable = self._cheapest(leaves)
            if variable is None:
                if self._seed():
                    continue
                return True
            target = next(iter(self.edges.get(variable, ())), None)
            if target is None:
                self._drop(variable)
                if not self._alive():
                    return False
                continue
            if target not in self.domains and self._grow_first(variable, target):
                continue
            if variable in self.domains:
                self.settle(variable)
            self._send(variable, target)
            self.left.remove(variable)
            if not len(self.domains[target].keys):
                return False

    def _cheapest(self, leaves: list[int]) -> int | None:
        """The leaf whose message looks at the fewest links; None where none can be sent yet."""
        if len(leaves) == 1 and leaves[0] in self.domains:
            (leaf,) = leaves
            others = self.edges.get(leaf)
            if not others or any_positive(next(iter(others.values()))):
                return leaf
        best: tuple[int, int] | None = None
        for leaf in leaves:
            cost = self._cost(leaf)
            if cost >= 0 and (best is None or cost < best[0]):
                best = cost, leaf
        return None if best is None else best[1]

    def _cost(self, leaf: int) -> int:
        """How many links a leaf's message has to look at; -1 where it cannot be sent yet."""
        others = self.edges.get(leaf)
        if not others:
            return 0 if leaf in self.domains else -1
        ((target, edges),) = others.items()
        own, theirs = self.domains.get(leaf), self.domains.get(target)
        if not any_positive(edges):
            if own is None or not self.algebra.sums_unlinked:
                return -1
            # Later, when the neighbour has fewer candidates.
            return len(own.keys) + 2 * self.block.bound
        if own is None and theirs is not None and self.pattern.filters(leaf):
            self._grow(target, leaf)
            return self._cost(leaf)
        if not self.block.several and own is not None:
            return len(own.keys)  # to count the links of one query takes longer than it saves
        costs = []
        if own is not None:
            costs.append(self._least(own, edges))
        if theirs is not None:
            costs.append(self._least(theirs, self.edges[target][leaf]))
        return min(costs, default=-1)

    def _least(self, found: Factor, edges: list[Edge]) -> int:
        return min(self._total(found, edge) for edge in edges if edge.positive)

    def _total(self, found: Factor, edge: Edge) -> int:
        return int(self.block.spans(found.keys, edge)[1].sum())

    def _seed(self) -> bool:
        """Give candidates to a variable that has none, when no message can be sent.

        Those are what a neighbour leads to, what the rarest of its relations leads from, or, where
        no positive edges connect it to anything, all entities. Whether there was such a variable.
        """
        without = [variable for variable in self.left if variable not in self.domains]
        ways = [
            (self._least(self.domains[other], self.edges[other][variable]), number, other)
            for number, variable in enumerate(without)
            for other, edges in self.edges.get(variable, {}).items()
            if other in self.domains and any_positive(edges)
        ]
        if ways:
            _, number, other = min(ways, key=lambda way: way[:2])
            self._grow(other, without[number])
            return True
        if not without:
            return False
        self.first(next((v for v in without if self._starts(v)), without[0]))
        return True

    def _starts(self, variable: int) -> list[Edge]:
        """The positive edges of a variable, loops among them."""
        edges = [*self.pattern.loops.get(variable, ())]
        edges += [edge for own in self.edges.get(variable, {}).values() for edge in own]
        return [edge for edge in edges if edge.positive]

    def first(self, variable: int) -> Factor:
        """The candidates of a variable, or else what the rarest of its relations can start from."""
        if variable not in self.domains:
            block, queries = self.block, self.queries
            sizes = [(block.starts_size(edge, queries), edge) for edge in self._starts(variable)]
            if sizes:
                size, edge = min(sizes, key=lambda sized: sized[0])
                self.check(size)
                self.place(variable, Factor(block.starts(edge, queries)))
            elif not self.universe:
                name = self.pattern.names[variable].name
                raise QueryError(
                    f"the variable {name!r} stands in no positive atom, so that every entity might"
                    " match; add an atom that binds it"
                )
            else:
                self.check(block.size * len(queries))
                self.place(variable, Factor(block.universe(queries)))
        return self.domains[variable]

    def _grow_first(self, leaf: int, target: int) -> bool:
        """Give a variable candidates before a message where that is less work; whether it did."""
        edges = self.edges[leaf][target]
        others = {o: e for o, e in self.edges.get(target, {}).items() if o != leaf}
        near = [o for o, e in others.items() if o in self.domains and any_positive(e)]
        if any_positive(edges):
            if not near or leaf not in self.domains:
                return False
            if not self.block.several and len(self.domains[leaf].keys) < FEW:
                return False
            limit: float = self._least(self.domains[leaf], edges) // 4
        elif not near:
            self.first(target)  # only a candidate can lack a link
            return True
        else:
            limit = float("inf")
        cost, other = min(
            ((self._least(self.domains[o], self.edges[o][target]), o) for o in near),
            key=lambda found: found[0],
        )
        if cost >= limit:
            return False
        self._grow(other, target)
        return True

    def _grow(self, source: int, target: int) -> None:
        """Give a variable the candidates that one edge from another leads to."""
        found = self.domains[source]
        edges = [edge for edge in self.edges[source][target] if edge.positive]
        edge = edges[0]
        if len(edges) > 1:
            totals = [self._total(found, edge) for edge in edges]
            edge = edges[totals.index(min(totals))]
        self.place(target, Factor(self.block.reached(found.keys, edge, self.check)))

    def _drop(self, variable: int) -> None:
        """A variable without neighbours: what it adds to every answer of its query."""
        self.settle(variable)
        self.left.remove(variable)
        keys, values = self.domains.pop(variable).rows()
        if self.algebra.plain and not self.block.several:
            if not len(keys):
                self.scale = Factor(self.queries[:0])
            return
        owners = self.block.owners(keys)
        self._scale_by(self.algebra.summed(owners, values, self.block.count))

    def _send(self, variable: int, target: int) -> None:
        """Multiply a neighbour's factor by the sum over a variable's matches with it."""
        own, theirs = self.domains.pop(variable, None), self.domains.get(target)
        edges, backward = self.edges.pop(variable)[target], self.edges[target].pop(variable)
        if not any_positive(edges):
            assert own is not None and theirs is not None
            sent = unlinked(self.block, self.algebra, own, theirs.keys, edges)
        elif self.algebra.plain and len(edges) == 1:
            sent = Factor(self._reached(edges[0], backward[0], own, theirs))
        else:
            sent = self._summed_pairs(edges, backward, own, theirs)
        if theirs is None:
            self.place(target, sent)
        elif sent.values is None and theirs.values is None and self.algebra.plain:
            self.domains[target] = sent  # of theirs already
        else:
            self.domains[target] = self.algebra.meet(theirs, sent)

    def _reached(self, edge: Edge, back: Edge, own: Factor | None, theirs: Factor | None) -> Keys:
        """Boolean projection by one relation, from the side that has fewer candidates."""
        block = self.block
        if own is None:
            assert theirs is not None
            return theirs.keys[block.spans(theirs.keys, back)[1] > 0]
        if theirs is None:
            return block.reached(own.keys, edge, self.check)
        return block.met(own.keys, edge, theirs.keys, back, self.check)

    def _summed_pairs(
        self, edges: list[Edge], backward: list[Edge], own: Factor | None, theirs: Factor | None
    ) -> Factor:
        """The sums over the linked pairs of two variables, the values of the target left out."""
        block, algebra, links = self.block, self.algebra, self.links
        best: tuple[int, int, bool, Numbers, Numbers] | None = None
        for number, edge in enumerate(edges):
            for forward, side in ((True, own), (False, theirs)):
                if edge.positive and side is not None:
                    used = edge if forward else backward[number]
                    begins, counts = block.spans(side.keys, used)
                    total = int(counts.sum())
                    if best is None or total < best[0]:
                        best = total, number, forward, begins, counts
        assert best is not None
        total, number, forward, begins, counts = best
        self.check(total)
        side, opposite = (own, theirs) if forward else (theirs, own)
        assert side is not None
        far, at = block.expanded(side.keys, begins, counts)
        source = np.repeat(np.arange(len(side.keys)), counts)
        near = side.keys[source]
        if opposite is not None and (forward or opposite.values is None):
            keep = within(opposite.keys, far, block.bound)
            near, far, at, source = near[keep], far[keep], at[keep], source[keep]
        elif opposite is not None:
            found = opposite.find(far)
            keep = found >= 0
            near, far, at, source = near[keep], far[keep], at[keep], found[keep]
        heads, tails = (near, far) if forward else (far, near)
        if not forward and algebra.directed:
            # The link stands elsewhere in the other direction, where its weight may be another.
            at = block.find(heads, tails, edges[number])
        values = algebra.weights(links, at, edges[number])
        for other, edge in enumerate(edges):
            if other != number:
                keep, more = algebra.linked(links, block.find(heads, tails, edge), edge)
                heads, tails, source = heads[keep], tails[keep], source[keep]
                values = algebra.times(None if values is None else values[keep], more)
        if own is not None and own.values is not None:
            rows, more = own.spread(source)
            if rows is not None:
                tails = tails[rows]
                values = None if values is None else values[rows]
            values = algebra.times(values, more)
        return algebra.summed(tails, values, block.bound)
