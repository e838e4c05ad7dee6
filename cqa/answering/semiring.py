"""Semirings: what the walk over a query adds up along its matches.

A match of a conjunctive query gives the product (``times``) of its links' values; an answer gets
the sum (``plus``) over its matches. ``plus`` must be commutative and associative, ``times`` must
distribute over it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cqa.errors import QueryError
from cqa.graphs.links import Links, Numbers, Places

Values = npt.NDArray[Any]


@dataclass(frozen=True)
class Semiring:
    """A way to add up matches.

    ``zero`` is what is not there: an answer of that value is no answer. ``one`` is a link without
    a weight; with ``weighted`` a link has the weight of `Links.weights`. ``complement`` turns a
    weight into that of its negation; without it negation is crisp: a link that is there excludes.
    ``best`` says which of two values ``plus`` picks, None when it adds. ``plus`` None: no values
    at all, answers are only there or not.
    """

    name: str
    plus: np.ufunc | None = None
    times: np.ufunc = np.multiply
    zero: float = 0
    one: float = 1
    dtype: type = np.int64
    weighted: bool = False
    complement: Callable[[Values], Values] | None = None
    best: Literal["least", "most"] | None = None

    def ones(self, count: int) -> Values:
        """The value of that many empty products."""
        return np.full(count, self.one, self.dtype)

    def weights(self, links: Links, at: Places | slice) -> Values | None:
        """The values of links by their places; None when all are one.

        Raises QueryError when the links have no weights and the semiring needs them.
        """
        if not self.weighted:
            return None
        if links.weights is None:
            raise QueryError(
                f"{self.name} needs links with weights: give Links.weighted or Graph.priced"
            )
        return links.weights[at].astype(self.dtype, copy=False)

    def multiply(self, left: Values | None, right: Values | None) -> Values | None:
        """The products of two columns of values; None stands for ones."""
        if left is None or right is None:
            return right if left is None else left
        product: Values = self.times(left, right)
        return product

    def added(self, values: Values, groups: Numbers) -> Values:
        """The sums of runs of values; ``groups``: where each run begins."""
        assert self.plus is not None
        found: Values = self.plus.reduceat(values, groups)
        return found


def _probability(weights: Values) -> Values:
    return 1 - weights


# Whether there is a match: the answers.
BOOLEAN = Semiring("boolean")
# How many matches there are; exact below 2**63.
COUNTING = Semiring("counting", np.add)
# The fewest missing links of a match, on `Graph.priced`: the price of an answer.
FEWEST_MISSING = Semiring(
    "fewest missing", np.minimum, np.add, zero=np.inf, one=0, dtype=np.float64,
    weighted=True, best="least",
)  # fmt: skip
# The best match by the product of its links' scores in [0, 1]; negation is 1 - score.
MAX_PRODUCT = Semiring(
    "max-product", np.maximum, np.multiply, dtype=np.float64,
    weighted=True, complement=_probability, best="most",
)  # fmt: skip
# The best match by its weakest link (Goedel logic).
MAX_MIN = Semiring(
    "max-min", np.maximum, np.minimum, dtype=np.float64,
    weighted=True, complement=_probability, best="most",
)  # fmt: skip
# The expected number of matches when links hold independently with their scores.
SUM_PRODUCT = Semiring(
    "sum-product", np.add, np.multiply, dtype=np.float64, weighted=True, complement=_probability
)

SEMIRINGS = {
    semiring.name: semiring
    for semiring in (BOOLEAN, COUNTING, FEWEST_MISSING, MAX_PRODUCT, MAX_MIN, SUM_PRODUCT)
}
