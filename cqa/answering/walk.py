"""The walk over the queries of a template: messages where they are trees, joins where not.

For each conjunction the constants give every variable a set of candidates, for all queries at once;
`cqa.answering.search` sends messages between variables, and `cqa.answering.join` joins what is
left. A single query is walked as a batch of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from cqa.answering.block import Many, One, QueryBlock
from cqa.answering.factor import Algebra, Factor, Keys, run_starts
from cqa.answering.join import Matches, check_held, concatenated, confined, join, summed
from cqa.answering.pattern import Pattern, Patterns
from cqa.answering.search import GivenRows, Search, TooManyRowsError, check_rows
from cqa.answering.semiring import BOOLEAN
from cqa.answering.template import without_repeats
from cqa.graphs.links import Links, Places

CRISP = Algebra(BOOLEAN)
# So many queries of a batch are walked at once: their arrays stay near the processor.
AT_ONCE = 1024
# The number of a single query, as an array.
FIRST = np.zeros(1, np.int64)
FIRST.setflags(write=False)

Made = TypeVar("Made")


def parted(
    links: Links, numbers: Places, walk: Callable[[QueryBlock, int], Made]
) -> Iterator[tuple[int, QueryBlock, Made]]:
    """What a walk makes of queries, for as many at once as memory near the processor has room for.

    ``numbers`` has a row for each query. ``walk`` gets a part of them as a block, whose queries are
    numbered from 0, and the number of the first one; both are given beside what it made.
    """
    work = [(at, min(at + AT_ONCE, len(numbers))) for at in range(0, len(numbers), AT_ONCE)][::-1]
    while work:
        begin, end = work.pop()
        block: QueryBlock
        if end - begin == 1:
            block = One(links, numbers[begin].tolist())
        else:
            block = Many(links, np.ascontiguousarray(numbers[begin:end].T))
        try:
            yield begin, block, walk(block, begin)
        except TooManyRowsError:
            middle = (begin + end) // 2
            work += [(middle, end), (begin, middle)]


class Walk:
    """Walks the queries of a block, with the values of an algebra.

    ``universe``: a variable that nothing binds is any entity; else QueryError is raised for it.
    """

    def __init__(self, block: QueryBlock, algebra: Algebra = CRISP, universe: bool = True) -> None:
        self._block, self._algebra, self._universe = block, algebra, universe
        # Crisp negation only asks whether there is a match.
        crisp = algebra.crisp and algebra is not CRISP
        self._negated = Walk(block, CRISP, universe) if crisp else self

    def answers(self, plan: Patterns, queries: Places) -> Matches:
        """The answers of some queries: distinct sorted rows of the free variables."""
        patterns = plan.patterns
        if len(patterns) == 1 and not self._algebra.directed:
            return self._answers(patterns[0], queries)
        parts = [
            self._answers(pattern, own)
            for part in patterns
            for pattern, own in self._without_repeats(part, queries)
        ]
        if len(parts) == 1:
            return parts[0]
        filled = [part for part in parts if len(part)]
        if not filled:
            return parts[0]
        check_held(sum(map(len, filled)), self._block.several)
        return summed(self._algebra, concatenated(self._algebra, filled), self._block)

    def matched(self, plan: Patterns, given: GivenRows) -> Factor:
        """Those of some rows of the free variables that are answers, by number, with values."""
        if not len(given):
            return Factor(given.owners)
        queries = given.owners[run_starts(given.owners)]
        algebra, parts = self._algebra, []
        for part in plan.patterns:
            for pattern, own in self._without_repeats(part, queries):
                some, rows = given, None
                if len(own) < len(queries):
                    rows = np.flatnonzero(np.isin(given.owners, own))
                    some = given.at(rows)
                found = self._matched(pattern, own, some)
                keys, values = found.rows()
                parts.append((keys if rows is None else rows[keys], values))
        if len(parts) == 1:
            return algebra.summed(*parts[0], len(given))
        if not algebra.plain:
            parts = [(k, algebra.ones(len(k)) if v is None else v) for k, v in parts]
        keys = np.concatenate([keys for keys, _ in parts])
        values = None if algebra.plain else np.concatenate([v for _, v in parts if v is not None])
        return algebra.summed(keys, values, len(given))

    def _without_repeats(self, pattern: Pattern, queries: Places) -> list[tuple[Pattern, Places]]:
        """The pattern without atoms that say the same twice, for the queries that have such."""
        if not self._algebra.directed:
            return [(pattern, queries)]
        numbers = self._block.rows_of(queries)
        return [
            (
                pattern
                if part is pattern.conjunction
                else Pattern(part, pattern.names[: len(pattern.free)]),
                queries[own],
            )
            for part, own in without_repeats(pattern.conjunction, numbers)
        ]

    def _answers(self, pattern: Pattern, queries: Places) -> Matches:
        block, algebra = self._block, self._algebra
        if pattern.star and algebra.plain:
            (variable,) = pattern.free
            keys = self._star(pattern, variable, queries)
            return Matches(block.owners(keys), {variable: keys})
        search = self._searched(pattern, queries, None)
        if search is None:
            return Matches(queries[:0], dict.fromkeys(pattern.free, queries[:0]))
        factor = self._only(search)
        if factor is None:
            return join(search, None)
        keys, values = factor.rows()
        return Matches(block.owners(keys), dict.fromkeys(pattern.free, keys), values)

    def _star(self, pattern: Pattern, variable: int, queries: Places) -> Keys:
        """What is in the rows of some constants and not in others: no search is needed."""
        block, rows = self._block, pattern.rows[variable]
        if block.several:
            check_rows(min(block.row_sizes(*row, queries) for row in rows), several=True)
        keys = block.candidates(rows, queries)
        for constant, edge in pattern.barred.get(variable, ()):
            if len(keys):
                keys = keys.compress(~block.among_row(constant, edge, keys))
        return keys

    def _matched(self, pattern: Pattern, queries: Places, given: GivenRows) -> Factor:
        search = self._searched(pattern, queries, given)
        if search is None:
            return Factor(queries[:0])
        factor = self._only(search)
        if factor is not None:
            numbers = Factor(given.columns[0]).find(factor.keys)
            return Factor(numbers, factor.values, factor.starts)
        table = join(search, given)
        assert table.numbers is not None
        return self._algebra.summed(table.numbers, table.values, len(given))

    def _searched(
        self, pattern: Pattern, queries: Places, given: GivenRows | None
    ) -> Search | None:
        """A search whose messages are sent; None where it found that nothing matches."""
        search = Search(
            self._block, self._algebra, pattern, queries, self._negated.matched, self._universe
        )
        fixed = set(pattern.free)
        for part in pattern.ties:
            fixed.update(part.shared)
        return search if search.begin(given) and search.eliminate(fixed) else None

    def _only(self, search: Search) -> Factor | None:
        """The answers where messages have left but one free variable; else None."""
        free = search.pattern.free
        if len(free) != 1 or len(search.left) != 1 or search.pattern.ties:
            return None
        search.first(free[0])
        found = search.settle(free[0])
        if search.scale is None:
            return found
        keys, values = found.rows()
        owners = self._block.owners(keys)
        table = Matches(owners, {free[0]: keys}, values)
        table = confined(self._algebra, table, search.scale, owners)
        return self._algebra.summed(table.columns[free[0]], table.values, self._block.bound)
