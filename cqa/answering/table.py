"""Tables of matches: columns of entities for some variables, and a value for each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cqa.answering.semiring import Semiring, Values
from cqa.errors import QueryError
from cqa.graphs.links import Places
from cqa.query import Variable
from kb.arrays import EMPTY, Ids, Mask, contains, mask_of, unique_below

# More rows than this are refused: a query whose answers are a product of large sets.
MAX_ROWS = 1 << 27


@dataclass(slots=True)
class Factor:
    """A set of entities for one variable, sorted, with a value for each (None: all one)."""

    ids: Ids
    values: Values | None = None

    def kept(self, keep: Mask) -> Factor:
        """The factor at the places of a mask."""
        return Factor(self.ids[keep], None if self.values is None else self.values[keep])


@dataclass(slots=True)
class Table:
    """Rows of entities, a column for each variable, with a value for each row (None: all one).

    Without variables it has one row (``count`` 1: true) or none.
    """

    variables: tuple[Variable, ...]
    columns: list[Ids]
    values: Values | None = None
    count: int = 0

    def __post_init__(self) -> None:
        if self.columns:
            self.count = len(self.columns[0])

    def __len__(self) -> int:
        return self.count

    def column(self, variable: Variable) -> Ids:
        """The entities of a variable, row by row."""
        return self.columns[self.variables.index(variable)]

    def at(self, rows: Places | Mask | slice) -> Table:
        """Some of the rows."""
        return Table(
            self.variables,
            [column[rows] for column in self.columns],
            None if self.values is None else self.values[rows],
            self.count if self.columns else len(np.empty(self.count)[rows]),
        )

    def with_column(self, variable: Variable, column: Ids, values: Values | None) -> Table:
        """The table with one column more, and other values."""
        return Table((*self.variables, variable), [*self.columns, column], values)


def meet(semiring: Semiring, left: Factor | None, right: Factor) -> Factor:
    """What is in both factors, values multiplied; None stands for everything."""
    if left is None:
        return right
    if left.values is None and right.values is None:
        small, large = (left.ids, right.ids)
        if len(small) > len(large):
            small, large = large, small
        return Factor(small[contains(large, small)])
    at = left.ids.searchsorted(right.ids)
    at[at == len(left.ids)] = 0
    found = left.ids[at] == right.ids if len(left.ids) else np.zeros(len(at), np.bool_)
    first = None if left.values is None else left.values[at[found]]
    second = None if right.values is None else right.values[found]
    return Factor(right.ids[found], semiring.multiply(first, second))


def summed(semiring: Semiring, ids: Ids, values: Values | None, bound: int) -> Factor:
    """The distinct ids, sorted, with their values added up; ids are below ``bound``."""
    if semiring.plus is None:
        return Factor(unique_below(ids, bound))
    if len(ids) == 0:
        return Factor(EMPTY, np.empty(0, semiring.dtype))
    if values is None:
        values = semiring.ones(len(ids))
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    first = _run_starts(ids)
    return Factor(ids[first], semiring.added(values[order], first))


def gathered(
    semiring: Semiring,
    variables: tuple[Variable, ...],
    parts: Sequence[Table],
    bound: int,
) -> Table:
    """The distinct rows of tables in these variables, sorted, with their values added up.

    Raises QueryError when there are more than `MAX_ROWS`.
    """
    filled = [part for part in parts if len(part)]
    if not filled:
        none: Values | None = None if semiring.plus is None else np.empty(0, semiring.dtype)
        return Table(variables, [EMPTY for _ in variables], none)
    if sum(map(len, filled)) > MAX_ROWS:
        raise QueryError(f"the query has more than {MAX_ROWS} matches to hold; bind more of it")
    joined = filled[0] if len(filled) == 1 else None
    columns = [
        joined.column(v) if joined is not None else np.concatenate([p.column(v) for p in filled])
        for v in variables
    ]
    values: Values | None = None
    if semiring.plus is not None:
        own = [p.values if p.values is not None else semiring.ones(len(p)) for p in filled]
        values = own[0] if len(own) == 1 else np.concatenate(own)
    if not variables:
        if values is not None:
            assert semiring.plus is not None
            values = semiring.added(values, np.zeros(1, np.int64))
        return Table((), [], values, 1)
    if len(variables) == 1:
        factor = summed(semiring, columns[0], values, bound)
        return Table(variables, [factor.ids], factor.values)
    return _distinct(semiring, variables, columns, values, bound)


def _distinct(
    semiring: Semiring,
    variables: tuple[Variable, ...],
    columns: list[Ids],
    values: Values | None,
    bound: int,
) -> Table:
    width = len(columns)
    if bound**width < 1 << 62:
        keys = columns[0].astype(np.int64)
        for column in columns[1:]:
            keys *= bound
            keys += column
        if values is None:
            keys.sort()
            keys = keys[_run_starts(keys)]
            found: list[Ids] = []
            for _ in range(width - 1):
                keys, column = np.divmod(keys, bound)
                found.append(column.astype(np.int32))
            found.append(keys.astype(np.int32))
            return Table(variables, found[::-1])
        order = np.argsort(keys, kind="stable")
        first = _run_starts(keys[order])
    else:
        order = np.lexsort(columns[::-1])
        changed = np.zeros(len(order), np.bool_)
        changed[0] = True
        for column in columns:
            ordered = column[order]
            changed[1:] |= ordered[1:] != ordered[:-1]
        first = np.flatnonzero(changed)
    rows = order[first]
    summed_values = None if values is None else semiring.added(values[order], first)
    return Table(variables, [column[rows] for column in columns], summed_values)


def _run_starts(ordered: Places | Ids) -> Places:
    changed = np.empty(len(ordered), np.bool_)
    changed[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=changed[1:])
    return changed.nonzero()[0]


def within(ids: Ids, needles: Ids, bound: int) -> Mask:
    """For each needle whether it is in the sorted ids; marks a table when that is cheaper."""
    if len(needles) * 8 > bound:
        return mask_of(ids, bound)[needles]
    return contains(ids, needles)
