"""One walk over many queries of one type: which links of their matches are missing.

The walk is that of `cqa.answering.walk` (candidates by constants, messages of variables with one
neighbour, a join of what is left), but a table has rows of many queries: its keys are pairs of a
query and an entity, packed into one number. Its values are sets of masks, as `cqa.hardness.masks`
tells. What a call of NumPy costs is so shared by thousands of queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cqa.answering.table import MAX_ROWS
from cqa.errors import QueryError
from cqa.graphs.links import Numbers, Places, places
from cqa.hardness.links import PricedLinks
from cqa.hardness.masks import MAX_ATOMS, Factor, Masks, factor, meet
from cqa.query import Conjunction, Constant, Query, Variable

# A step that makes more rows than this is done again for half as many queries at once.
BLOCK = 1 << 22

Columns = Sequence[Places]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Edge:
    """An atom between two variables as seen from one of them."""

    column: int
    inverse: int
    positive: bool
    bit: int
    """The mask of a missing link here: one bit, or none where links are not counted."""


class TooManyRowsError(Exception):
    """A step would make more rows than a block has; there are queries or answers to part."""


def matches(
    priced: PricedLinks,
    conjunction: Conjunction,
    free: tuple[Variable, ...],
    numbers: Places,
    owners: Places,
    answers: Columns,
) -> tuple[Places, Masks]:
    """For each answer that a conjunction has: the masks of its matches with fewest missing links.

    The relations and constants of ``conjunction`` are columns of ``numbers``, which has a row for
    each query. Row i of ``answers`` (an array for each free variable) is to be an answer of query
    ``owners[i]``, in ascending order. Gives numbers of rows, ascending, with a mask each; bit j
    stands for the j-th positive atom. Rows without a match are left out. Raises QueryError for more
    matches than can be held.
    """
    if sum(atom.positive for atom in conjunction.atoms) > MAX_ATOMS:
        raise QueryError(f"hardness is told of queries of up to {MAX_ATOMS} positive atoms")
    rows: list[Places] = []
    masks: list[Masks] = []
    for begin, found in _parted(priced, conjunction, free, numbers, owners, answers):
        at, own = found.rows()
        rows.append(at + begin)
        masks.append(own)
    if not rows:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return np.concatenate(rows), np.concatenate(masks)


def hold(
    priced: PricedLinks, part: Query, numbers: Places, owners: Places, given: Columns
) -> Flags:
    """For each row of a negated part's shared variables whether it has a match."""
    found = np.zeros(len(owners), np.bool_)
    for conjunction in part.disjuncts:
        parts = _parted(priced, conjunction, part.free, numbers, owners, given, counted=False)
        for begin, matched in parts:
            found[begin + matched.keys] = True
    return found


def _parted(
    priced: PricedLinks,
    conjunction: Conjunction,
    free: tuple[Variable, ...],
    numbers: Places,
    owners: Places,
    answers: Columns,
    counted: bool = True,
) -> Iterator[tuple[int, Factor]]:
    """The masks of rows of answers, for as many queries at once as fit a block.

    Gives the number of the first row beside the masks by the number of the row from there.
    """
    work = [(0, len(owners))] if len(owners) else []
    while work:
        begin, end = work.pop()
        own = owners[begin:end]
        several = bool(own[0] != own[-1])
        try:
            walk = Walk(priced, conjunction, free, numbers, several, counted)
            yield begin, walk.run(own, [column[begin:end] for column in answers])
        except TooManyRowsError:
            middle = (begin + end) // 2
            if several:
                # The first query may have more than half of the rows.
                middle = int(own.searchsorted(own[len(own) // 2]))
                middle = begin + (middle or int(own.searchsorted(own[0], "right")))
            work += [(middle, end), (begin, middle)]


class Walk:
    """One conjunction at work for some rows of answers."""

    def __init__(
        self,
        priced: PricedLinks,
        conjunction: Conjunction,
        free: tuple[Variable, ...],
        numbers: Places,
        several: bool,
        counted: bool,
    ) -> None:
        self.links, self.numbers, self.free = priced, numbers, free
        self.size, self.several = priced.size, several
        self.without = list(conjunction.without)
        self.factors: dict[Variable, Factor] = {}
        self.scale: Factor | None = None
        self.rows: dict[Variable, list[tuple[int, Edge]]] = {}
        self.loops: dict[Variable, list[Edge]] = {}
        self.edges: dict[Variable, dict[Variable, list[Edge]]] = {}
        self.facts: list[tuple[int, int, Edge]] = []
        variables = dict.fromkeys(free)
        bit = 0
        for atom in conjunction.atoms:
            assert isinstance(atom.relation, int)
            price = 1 << bit if atom.positive and counted else 0
            bit += atom.positive
            forward = Edge(atom.relation, 0, atom.positive, price)
            backward = Edge(atom.relation, 1, atom.positive, price)
            head, tail = atom.head, atom.tail
            variables.update(dict.fromkeys(atom.variables))
            if isinstance(head, Constant):
                assert isinstance(head.entity, int)
                if isinstance(tail, Constant):
                    assert isinstance(tail.entity, int)
                    self.facts.append((head.entity, tail.entity, forward))
                else:
                    self.rows.setdefault(tail, []).append((head.entity, forward))
            elif isinstance(tail, Constant):
                assert isinstance(tail.entity, int)
                self.rows.setdefault(head, []).append((tail.entity, backward))
            elif head == tail:
                self.loops.setdefault(head, []).append(forward)
            else:
                self.edges.setdefault(head, {}).setdefault(tail, []).append(forward)
                self.edges.setdefault(tail, {}).setdefault(head, []).append(backward)
        for part in conjunction.without:
            variables.update(dict.fromkeys(part.free))
        self.width = bit
        self.variables = list(variables)

    def run(self, owners: Places, answers: Columns) -> Factor:
        """The masks of the rows of answers that have a match, by the number of the row."""
        queries = self.queries = np.unique(owners)
        for head, tail, edge in self.facts:
            ends = self.numbers[queries, head], self.numbers[queries, tail]
            self._scaled(self._linked(Factor(queries), queries, *ends, edge))
        for variable, column in zip(self.free, answers, strict=True):
            self.restrict(variable, factor(owners * self.size + column, None, 0))
        for variable, rows in self.rows.items():
            if variable not in self.factors and any(edge.positive for _, edge in rows):
                self.restrict(variable, self._from_constants(rows, queries))
        self._eliminate()
        return self._join(owners, answers)

    # --- candidates -------------------------------------------------------------------------------

    def relations(self, queries: Places, edge: Edge) -> Places:
        """The relation of an edge in each of some queries."""
        found: Places = self.numbers[queries, edge.column] ^ edge.inverse
        return found

    def _split(self, keys: Places) -> tuple[Places, Places]:
        queries = keys // self.size
        return queries, keys - queries * self.size

    def check(self, total: int, several: bool | None = None) -> None:
        """Raise when a step makes too many rows, and fewer if ``several`` (queries) are parted."""
        if total > BLOCK and (self.several if several is None else several):
            raise TooManyRowsError
        if total > MAX_ROWS:
            raise QueryError(f"a query has {total} matches to hold at once; bind more of it")

    def _from_constants(self, rows: list[tuple[int, Edge]], queries: Places) -> Factor:
        """What the positive row of a constant that has the fewest links leads to."""
        best: tuple[int, Edge, Numbers, Numbers] | None = None
        for constant, edge in rows:
            if edge.positive:
                heads = self.numbers[queries, constant]
                begins, counts = self.links.spans(self.relations(queries, edge), heads)
                total = int(counts.sum())
                if best is None or total < best[0]:
                    best = total, edge, begins, counts
        assert best is not None
        total, edge, begins, counts = best
        self.check(total)
        at = places(begins, counts)
        keys = np.repeat(queries * self.size, counts) + self.links.tails[at]
        found = factor(keys, self.prices(at, edge), self.width)
        rows.remove(next(row for row in rows if row[1] is edge))
        return found

    def prices(self, at: Places, edge: Edge) -> Masks | None:
        """The masks of links by their places."""
        if not edge.bit:
            return None
        return np.where(self.links.missing[at], edge.bit, 0)

    def _linked(
        self, found: Factor, queries: Places, heads: Places, tails: Places, edge: Edge
    ) -> Factor:
        """The keys of a factor whose link is there (or is not, for a negative edge)."""
        at = self.links.find(self.relations(queries, edge), heads, tails)
        there = at >= 0
        if not edge.positive:
            return found.kept(~there)
        kept = found.kept(there)
        prices = self.prices(at[there], edge)
        if prices is None:
            return kept
        if kept.masks is None:
            return Factor(kept.keys, prices)
        if kept.starts is not None:
            prices = np.repeat(prices, np.diff(kept.starts))
        return Factor(kept.keys, kept.masks | prices, kept.starts)

    def restrict(self, variable: Variable, found: Factor) -> None:
        """Set the candidates of a variable, after its filters by constants and loops."""
        for constant, edge in self.rows.get(variable, ()):
            queries, entities = self._split(found.keys)
            found = self._linked(found, queries, self.numbers[queries, constant], entities, edge)
        for edge in self.loops.get(variable, ()):
            queries, entities = self._split(found.keys)
            found = self._linked(found, queries, entities, entities, edge)
        self.factors[variable] = found

    def _settle(self, variable: Variable) -> None:
        """Leave out candidates that a negated part of this variable alone matches."""
        for part in [part for part in self.without if part.free == (variable,)]:
            self.without.remove(part)
            found = self.factors[variable]
            queries, entities = self._split(found.keys)
            matched = hold(self.links, part, self.numbers, queries, [entities])
            self.factors[variable] = found.kept(~matched)

    def _scaled(self, found: Factor) -> None:
        """Multiply by what is keyed by the query alone."""
        self.scale = found if self.scale is None else meet(self.scale, found, self.width)

    # --- messages ---------------------------------------------------------------------------------

    def _eliminate(self) -> None:
        """Send the messages of existential variables with one neighbour at most."""
        fixed = {*self.free, *(v for part in self.without if len(part.free) > 1 for v in part.free)}
        while True:
            best: tuple[int, Variable, Variable | None] | None = None
            for variable in self.variables:
                others = self.edges.get(variable, {})
                if variable in fixed or len(others) > 1:
                    continue
                target = next(iter(others), None)
                cost = self._cost(variable, target)
                if cost >= 0 and (best is None or cost < best[0]):
                    best = cost, variable, target
            if best is None:
                if self._seed():
                    continue
                return
            cost, variable, target = best
            if target is None:
                self._drop(variable)
                continue
            if target not in self.factors and (grown := self._growth(target, variable, cost // 4)):
                self._grow(grown, target)
                continue
            self._settle_if_there(variable)
            self._send(variable, target)
            self.variables.remove(variable)

    def _seed(self) -> bool:
        """Give candidates to a variable that no positive edges connect to one that has some.

        Whether there was such a variable.
        """
        waiting = [variable for variable in self.variables if variable in self.factors]
        seen = set(waiting)
        for at in waiting:
            near = (o for o, edges in self.edges.get(at, {}).items() if any_positive(edges))
            new = [other for other in near if other not in seen]
            seen.update(new)
            waiting += new
        for variable in self.variables:
            edges = [*self.loops.get(variable, ())]
            edges += [edge for e in self.edges.get(variable, {}).values() for edge in e]
            edges = [edge for edge in edges if edge.positive]
            if variable in seen or not edges:
                continue
            starts = [self.links.starts_of(self.relations(self.queries, edge)) for edge in edges]
            begins, counts = min(starts, key=lambda start: int(start[1].sum()))
            self.check(int(counts.sum()))
            owners = np.repeat(self.queries * self.size, counts)
            keys = owners + self.links.heads(places(begins, counts))
            self.restrict(variable, factor(keys, None, 0))
            return True
        return False

    def filtered(self, variable: Variable) -> bool:
        """Whether a variable has filters of its own, so that it needs candidates to apply them."""
        return (
            variable in self.rows
            or variable in self.loops
            or any(part.free == (variable,) for part in self.without)
        )

    def _cost(self, variable: Variable, target: Variable | None) -> int:
        """How many links a message has to look at; -1 where it cannot be sent yet."""
        if target is None:
            return 0 if variable in self.factors else -1
        edges = self.edges[variable][target]
        if not any_positive(edges):
            return -1
        costs = []
        if variable in self.factors:
            costs.append(self._least(self.factors[variable], edges))
        if target in self.factors:
            if variable not in self.factors and self.filtered(variable):
                self._grow(target, variable)
                return self._cost(variable, target)
            costs.append(self._least(self.factors[target], self.edges[target][variable]))
        return min(costs, default=-1)

    def _least(self, found: Factor, edges: list[Edge]) -> int:
        return min(self._total(found, edge) for edge in edges if edge.positive)

    def _total(self, found: Factor, edge: Edge) -> int:
        return int(self._spans(found, edge)[1].sum())

    def _spans(self, found: Factor, edge: Edge) -> tuple[Numbers, Numbers]:
        queries, entities = self._split(found.keys)
        return self.links.spans(self.relations(queries, edge), entities)

    def _growth(self, target: Variable, leaf: Variable, limit: int) -> Variable | None:
        """A neighbour from which the candidates of a variable are found with less work."""
        best: tuple[int, Variable] | None = None
        for other, edges in self.edges.get(target, {}).items():
            if other == leaf or other not in self.factors or not any_positive(edges):
                continue
            cost = self._least(self.factors[other], self.edges[other][target])
            if cost < limit and (best is None or cost < best[0]):
                best = cost, other
        return None if best is None else best[1]

    def _grow(self, source: Variable, target: Variable) -> None:
        """Give a variable the candidates that one edge from another leads to."""
        found = self.factors[source]
        edges = [edge for edge in self.edges[source][target] if edge.positive]
        edge = min(edges, key=lambda edge: self._total(found, edge))
        begins, counts = self._spans(found, edge)
        self.check(int(counts.sum()))
        queries = found.keys // self.size
        keys = np.repeat(queries * self.size, counts) + self.links.tails[places(begins, counts)]
        self.restrict(target, factor(keys, None, 0))

    def _settle_if_there(self, variable: Variable) -> None:
        if variable in self.factors:
            self._settle(variable)

    def _drop(self, variable: Variable) -> None:
        """A variable without neighbours: what it adds to every answer of its query."""
        self._settle(variable)
        keys, masks = self.factors.pop(variable).rows()
        self._scaled(factor(keys // self.size, masks, self.width))
        self.variables.remove(variable)

    def _send(self, variable: Variable, target: Variable) -> None:
        """Multiply a neighbour's factor by the sum over a variable's matches with it."""
        own, theirs = self.factors.pop(variable, None), self.factors.get(target)
        edges, backward = self.edges.pop(variable)[target], self.edges[target].pop(variable)
        options = []
        for number, edge in enumerate(edges):
            if edge.positive and own is not None:
                options.append((self._total(own, edge), number, True))
            if edge.positive and theirs is not None:
                options.append((self._total(theirs, backward[number]), number, False))
        total, number, forward = min(options, key=lambda option: option[0])
        self.check(total)
        keep: Flags | None = None
        source: Places | None = None
        if forward:
            assert own is not None
            begins, counts = self._spans(own, edges[number])
            at = places(begins, counts)
            source = np.repeat(np.arange(len(own.keys)), counts)
            queries, heads = self._split(own.keys)
            queries, heads = queries[source], heads[source]
            tails = self.links.tails[at].astype(np.int64)
            if theirs is not None:
                keep = theirs.find(queries * self.size + tails) >= 0
        else:
            assert theirs is not None
            begins, counts = self._spans(theirs, backward[number])
            at = places(begins, counts)
            queries, tails = self._split(theirs.keys)
            queries, tails = np.repeat(queries, counts), np.repeat(tails, counts)
            heads = self.links.tails[at].astype(np.int64)
            if own is not None:
                source = own.find(queries * self.size + heads)
                keep = source >= 0
        if keep is not None:
            queries, heads, tails, at = queries[keep], heads[keep], tails[keep], at[keep]
            source = None if source is None else source[keep]
        masks = self.prices(at, edges[number])
        for other, edge in enumerate(edges):
            if other == number:
                continue
            at = self.links.find(self.relations(queries, edge), heads, tails)
            keep = (at >= 0) == edge.positive
            queries, heads, tails = queries[keep], heads[keep], tails[keep]
            source = None if source is None else source[keep]
            masks = None if masks is None else masks[keep]
            if edge.positive:
                masks = _joined(masks, self.prices(at[keep], edge))
        keys = queries * self.size + tails
        if own is not None and own.masks is not None:
            assert source is not None
            rows, others = own.spread(source)
            if rows is not None:
                keys = keys[rows]
                masks = None if masks is None else masks[rows]
            masks = _joined(masks, others)
        sent = factor(keys, masks, self.width)
        if theirs is None:
            self.restrict(target, sent)
        elif theirs.masks is None:
            self.factors[target] = sent
        else:
            self.factors[target] = meet(theirs, sent, self.width)

    # --- what is left -----------------------------------------------------------------------------

    def _join(self, owners: Places, answers: Columns) -> Factor:
        """The masks of the answers, by the number of their row."""
        for variable in self.free:
            self._settle(variable)
        from cqa.hardness.join import Join

        return Join(self, owners, dict(zip(self.free, answers, strict=True))).run()


def any_positive(edges: Sequence[Edge]) -> bool:
    """Whether an edge of several is positive."""
    return any(edge.positive for edge in edges)


def _joined(left: Masks | None, right: Masks | None) -> Masks | None:
    if left is None or right is None:
        return right if left is None else left
    return left | right
