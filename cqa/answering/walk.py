"""The walk over a query: messages between variables where it is a tree, joins where it is not.

For each conjunction: the constants give every variable a set of candidates. An existential
variable with one neighbour sends that neighbour what it can be linked to and is gone; parallel
edges are filters on the pairs of the two. What stays when nothing can be sent is one variable (the
answers of a tree), or a core of several free variables and cycles, which `cqa.answering.core`
joins. Nothing is ever as large as all pairs of entities: a factor is a sorted array of entities,
with a value for each where the semiring has values.
"""

from __future__ import annotations

import numpy as np

from cqa.answering.core import join
from cqa.answering.pattern import Edge, Pattern
from cqa.answering.semiring import BOOLEAN, Semiring, Values
from cqa.answering.table import Factor, Table, gathered, meet, summed, within
from cqa.answering.unlinked import unlinked
from cqa.graphs.links import Links, Places, places
from cqa.query import Conjunction, Query, Variable
from kb.arrays import Ids, Mask, contains


class Walk:
    """Answers queries on links, with the values of a semiring."""

    def __init__(self, links: Links, semiring: Semiring = BOOLEAN) -> None:
        self.links, self.semiring = links, semiring
        # Crisp negation only asks whether there is a match.
        crisp = semiring.complement is None and semiring is not BOOLEAN
        self.negated: Walk = Walk(links) if crisp else self

    def evaluate(self, query: Query, given: Table | None = None) -> Table:
        """The matches of a query: distinct sorted rows of its free variables with their values.

        ``given``: rows of these variables to which the search is confined, without values.
        """
        parts = [self._solve(disjunct, query.free, given) for disjunct in query.disjuncts]
        if len(parts) == 1:
            return parts[0]
        return gathered(self.semiring, query.free, parts, self.links.entity_count)

    def nothing(self, variables: tuple[Variable, ...]) -> Table:
        """The table without rows."""
        return gathered(self.semiring, variables, [], self.links.entity_count)

    def universe(self) -> Factor:
        """All entities."""
        return Factor(np.arange(self.links.entity_count, dtype=np.int32))

    def _solve(
        self, conjunction: Conjunction, free: tuple[Variable, ...], given: Table | None
    ) -> Table:
        pattern = Pattern(conjunction, free)
        domains: dict[Variable, Factor] = {}
        if given is not None and len(given.variables) == 1:
            domains[given.variables[0]] = Factor(given.columns[0])
            given = None
        scale = self._facts(pattern)
        if scale is None:
            return self.nothing(free)
        for variable, rows in pattern.rows.items():
            factor = self._candidates(rows, domains.get(variable))
            if len(factor.ids) == 0:
                return self.nothing(free)
            domains[variable] = factor
        search = Search(self, pattern, domains, free, scale)
        fixed = set(free)
        for part in pattern.ties:
            fixed.update(part.free)
        if not search.eliminate(fixed):
            return self.nothing(free)
        left = search.left
        if given is None and len(left) == 1 and len(free) == 1 and not pattern.ties:
            factor = search.narrowed(free[0]) or search.narrow(free[0], self.universe())
            return search.scaled(Table(free, [factor.ids], factor.values))
        if not left and not pattern.ties:
            values = None if self.semiring.plus is None else self.semiring.ones(1)
            return search.scaled(Table((), [], values, 1))
        return search.scaled(join(search, given))

    def _facts(self, pattern: Pattern) -> list[Values] | None:
        """The values of the atoms without variables; None when one of them does not hold."""
        found: list[Values] = []
        for relation, head, tail, positive in pattern.facts:
            ends = np.array([head], np.int32), np.array([tail], np.int32)
            keep, values = self.linked((relation, positive), *ends)
            if not keep[0]:
                return None
            if values is not None:
                found.append(values)
        return found

    def _candidates(self, rows: list[tuple[int, int]], domain: Factor | None) -> Factor:
        """The entities in all rows, and in the domain where there is one."""
        links = self.links
        if not self.semiring.weighted:
            sets = [links.row(*row) for row in rows]
            if domain is not None:
                sets.append(domain.ids)
            if len(sets) > 1:
                sets.sort(key=len)
            ids = sets[0]
            for other in sets[1:]:
                if len(ids) == 0:
                    break
                ids = ids[contains(other, ids)]
            return Factor(ids)
        for row in rows:
            begin, end = links.place(*row)
            weights = self.semiring.weights(links, slice(begin, end))
            domain = meet(self.semiring, domain, Factor(links.tails[begin:end], weights))
        assert domain is not None
        return domain

    def linked(self, edge: Edge, heads: Ids, tails: Ids) -> tuple[Mask, Values | None]:
        """For each pair whether it satisfies the edge; the values of those that do."""
        relation, positive = edge
        at = self.links.find(relation, heads, tails)
        there: Mask = at >= 0
        if positive:
            return there, self.semiring.weights(self.links, at[there])
        complement = self.semiring.complement
        if complement is None:
            return ~there, None
        return self.complemented(there, self.semiring.weights(self.links, at[there]))

    def complemented(self, there: Mask, values: Values | None) -> tuple[Mask, Values | None]:
        """For what is there with these values, and what is not: what its negation is."""
        semiring = self.semiring
        if semiring.complement is None:
            return ~there, None
        found = semiring.ones(len(there))
        found[there] = semiring.complement(
            semiring.ones(int(there.sum())) if values is None else values
        )
        keep: Mask = found != semiring.zero
        return keep, found[keep]


class Search:
    """One conjunction at work: the candidates of its variables, and the variables that are left."""

    def __init__(
        self,
        walk: Walk,
        pattern: Pattern,
        domains: dict[Variable, Factor],
        free: tuple[Variable, ...],
        scale: list[Values],
    ) -> None:
        self.walk, self.links, self.semiring = walk, walk.links, walk.semiring
        self.pattern, self.domains, self.free = pattern, domains, free
        self.left = list(pattern.variables)
        self.edges = {v: dict(others) for v, others in pattern.edges.items()}
        self._scale = scale

    def scaled(self, table: Table) -> Table:
        """The table with its values multiplied by those of the parts without free variables."""
        if self.semiring.plus is None:
            return table
        if table.values is None:
            table.values = self.semiring.ones(len(table))
        for value in self._scale:
            table.values = self.semiring.multiply(table.values, value)
        return table

    def eliminate(self, fixed: set[Variable]) -> bool:
        """Send the messages of variables that are not fixed; whether there may be a match."""
        while (variable := self._next_leaf(fixed)) is not None:
            self.left.remove(variable)
            factor = self.narrowed(variable)
            if factor is None and self.pattern.filters(variable):
                factor = self.narrow(variable, self.first(variable))
            others = self.edges.pop(variable, {})
            if others:
                (other,) = others
                del self.edges[other][variable]
                target = self.domains.get(other)
                if target is None and not any(positive for _, positive in others[other]):
                    target = self._support(other)  # only a candidate can lack a link
                sent = self._message(factor, target, others[other])
                found = self.domains[other] = meet(self.semiring, target, sent)
                if len(found.ids) == 0:
                    return False
                continue
            if factor is None:
                factor = self.narrow(variable, self.walk.universe())
            if len(factor.ids) == 0:
                return False
            if self.semiring.plus is not None:
                values = factor.values
                if values is None:
                    values = self.semiring.ones(len(factor.ids))
                self._scale.append(self.semiring.added(values, np.zeros(1, np.int64)))
        return True

    def _next_leaf(self, fixed: set[Variable]) -> Variable | None:
        """The variable with one neighbour at most whose message costs least."""
        best, least = None, 0
        everything = self.links.entity_count
        for variable in self.left:
            if variable in fixed:
                continue
            others = self.edges.get(variable, {})
            if len(others) > 1:
                continue
            domain = self.domains.get(variable)
            cost = everything if domain is None else len(domain.ids)
            if others:
                (other,) = others
                if not any(positive for _, positive in others[other]):
                    cost += 2 * everything  # later, when the neighbour has fewer candidates
            if best is None or cost < least:
                best, least = variable, cost
        return best

    def narrowed(self, variable: Variable) -> Factor | None:
        """The candidates of a variable after its own filters; None when it has none yet."""
        factor = self.domains.get(variable)
        return None if factor is None else self.narrow(variable, factor)

    def first(self, variable: Variable) -> Factor:
        """The candidates of a variable, or else what the rarest of its relations can start from."""
        if variable in self.domains:
            return self.domains[variable]
        starts = [
            self.links.heads_of(relation)
            for edges in self.edges.get(variable, {}).values()
            for relation, positive in edges
            if positive
        ]
        return Factor(min(starts, key=len)) if starts else self.walk.universe()

    def _support(self, variable: Variable) -> Factor:
        """What a variable without candidates can be, by the candidates of its neighbours."""
        ids: Ids | None = None
        for other, edges in self.edges.get(variable, {}).items():
            domain = self.domains.get(other)
            for relation, positive in edges:
                if positive:
                    found = self.links.heads_of(relation)
                    if domain is not None:
                        found = self.links.reached(relation ^ 1, domain.ids)
                    ids = found if ids is None else ids[contains(found, ids)]
        return self.walk.universe() if ids is None else Factor(ids)

    def narrow(self, variable: Variable, factor: Factor) -> Factor:
        """The factor after the variable's filters that need no other variable."""
        pattern, walk = self.pattern, self.walk
        if not pattern.filters(variable):
            return factor
        for relation, entity in pattern.barred.get(variable, ()):
            begin, end = self.links.place(relation, entity)
            row = self.links.tails[begin:end]
            at = row.searchsorted(factor.ids)
            at[at == len(row)] = 0
            there = row[at] == factor.ids if len(row) else np.zeros(len(at), np.bool_)
            weights = None
            if self.semiring.complement is not None:
                weights = self.semiring.weights(self.links, at[there] + begin)
            factor = self._filtered(factor, *walk.complemented(there, weights))
        for edge in pattern.loops.get(variable, ()):
            factor = self._filtered(factor, *walk.linked(edge, factor.ids, factor.ids))
        for part in pattern.apart.get(variable, ()):
            if len(factor.ids) == 0:
                break
            found = walk.negated.evaluate(part, Table((variable,), [factor.ids]))
            there = contains(found.columns[0], factor.ids)
            factor = self._filtered(factor, *walk.complemented(there, found.values))
        return factor

    def _filtered(self, factor: Factor, keep: Mask, values: Values | None) -> Factor:
        kept = factor.kept(keep)
        return Factor(kept.ids, self.semiring.multiply(kept.values, values))

    # --- messages -----------------------------------------------------------------------------

    def _message(self, factor: Factor | None, target: Factor | None, edges: list[Edge]) -> Factor:
        """What a variable with these candidates lets its neighbour be, with the sums over it."""
        if not any(positive for _, positive in edges):
            assert target is not None
            return unlinked(
                self.walk.links,
                self.semiring,
                factor or self.walk.universe(),
                target.ids,
                [relation for relation, _ in edges],
            )
        if len(edges) == 1 and self.semiring.plus is None:
            return Factor(self._reached(edges[0][0], factor, target))
        _, tails, values = self._pairs(factor, target, edges)
        return summed(self.semiring, tails, values, self.links.entity_count)

    def _reached(self, relation: int, factor: Factor | None, target: Factor | None) -> Ids:
        """Boolean projection by one relation, from the side that has fewer candidates."""
        links = self.links
        if factor is None and target is None:
            return links.heads_of(relation ^ 1)
        if target is None:
            assert factor is not None
            return links.reached(relation, factor.ids)
        if factor is not None and len(factor.ids) <= 4 * len(target.ids):
            return links.reached(relation, factor.ids)
        begins, counts = links.spans(relation ^ 1, target.ids)
        if factor is None:
            return target.ids[counts > 0]
        hits = within(factor.ids, links.tails[places(begins, counts)], links.entity_count)
        keep = np.zeros(len(target.ids), np.bool_)
        keep[np.repeat(np.arange(len(keep)), counts)[hits]] = True
        return target.ids[keep]

    def _pairs(
        self, factor: Factor | None, target: Factor | None, edges: list[Edge]
    ) -> tuple[Ids, Ids, Values | None]:
        """The linked pairs of two variables' candidates, with the values of links and factor.

        The values of the target are left out.
        """
        links, semiring = self.links, self.semiring
        options = [(edge, forward) for edge in edges if edge[1] for forward in (True, False)]
        best: tuple[int, Edge, bool, Places, Places] | None = None
        for edge, forward in options:
            side = factor if forward else target
            if side is None:
                continue
            begins, counts = links.spans(edge[0] if forward else edge[0] ^ 1, side.ids)
            total = int(counts.sum())
            if best is None or total < best[0]:
                best = total, edge, forward, begins, counts
        if best is None:
            used = min((e for e in edges if e[1]), key=lambda e: links.size(e[0]))
            heads, tails = links.pairs(used[0])
            first = links.first_place(used[0])
            values = semiring.weights(links, slice(first, first + len(tails)))
            forward = True
        else:
            _, used, forward, begins, counts = best
            side = factor if forward else target
            assert side is not None
            at = places(begins, counts)
            near, far = np.repeat(side.ids, counts), links.tails[at]
            heads, tails = (near, far) if forward else (far, near)
            if forward or not semiring.weighted:
                values = semiring.weights(links, at)
            else:  # the place of the link in the other direction
                values = semiring.weights(links, links.find(used[0], heads, tails))
            if forward and side.values is not None:
                values = semiring.multiply(values, np.repeat(side.values, counts))
        opposite = target if forward else factor
        if opposite is not None:
            keep = within(opposite.ids, tails if forward else heads, links.entity_count)
            heads, tails = heads[keep], tails[keep]
            values = None if values is None else values[keep]
            if not forward and opposite.values is not None:
                values = semiring.multiply(
                    values, opposite.values[opposite.ids.searchsorted(heads)]
                )
        for edge in edges:
            if edge is not used:
                keep, more = self.walk.linked(edge, heads, tails)
                heads, tails = heads[keep], tails[keep]
                values = semiring.multiply(None if values is None else values[keep], more)
        return heads, tails, values
