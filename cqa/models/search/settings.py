"""The settings of the search, and those that make it a published model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Literal

import torch
from torch import Tensor

from cqa.errors import QueryError
from cqa.models.links.rows import CALIBRATIONS, Calibration

Norm = Literal["product", "minimum"]
Conorm = Literal["sum", "maximum"]


@dataclass(frozen=True)
class SearchSettings:
    """How links are combined, and how much is searched.

    An assignment of a query's variables is worth the ``t_norm`` of its links' values, an answer as
    much as its best assignment; disjuncts are joined by ``t_conorm`` ("sum" is the probabilistic
    one), where the union stands in a tree or, with ``unions`` "disjuncts", at its root. A value x
    is negated as 1 - min(1, ``negation`` · x).

    ``beam``: the most candidates of an existential variable that are followed, the best ones; with
    ``beam_known`` those of value 1, which are observed, come on top, up to ``beam_most`` together.
    ``cut``: the most values of a variable that breaks a cycle, in the same way with ``cut_known``.
    None follows all. ``top``: so many of the best answers are exact, the search stops where nothing
    can change them; the others are worth as much or more than they score. ``tuples``: so many of
    the best answers of several free variables have scores of their own.
    ``by_type``: (beam, t-norm) for types by name, as CQD's authors have tuned them.
    ``compat``: "paper" does as the published program does where it is at fault.
    """

    calibration: Calibration
    t_norm: Norm = "product"
    t_conorm: Conorm = "sum"
    negation: float = 1.0
    unions: Literal["inner", "disjuncts"] = "inner"
    beam: int | None = None
    beam_known: bool = False
    beam_most: int | None = None
    cut: int | None = None
    cut_known: bool = True
    top: int | None = None
    tuples: int = 100
    by_type: Mapping[str, tuple[int, Norm]] = field(default_factory=dict)
    compat: str | None = None

    def __post_init__(self) -> None:
        for name in ("beam", "cut", "top", "beam_most"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise QueryError(f"{name}: {number} is below 1; None follows all")
        if self.tuples < 0 or self.negation <= 0:
            raise QueryError("tuples must not be negative, negation must be above 0")
        for name, allowed in (
            ("t_norm", ("product", "minimum")),
            ("t_conorm", ("sum", "maximum")),
            ("unions", ("inner", "disjuncts")),
            ("compat", (None, "paper")),
        ):
            if getattr(self, name) not in allowed:
                raise QueryError(
                    f"{name}: there is no {getattr(self, name)!r}; choose of {allowed}"
                )

    def of_type(self, names: Sequence[str]) -> SearchSettings:
        """The settings of a type that has these names."""
        for name in names:
            if name in self.by_type:
                beam, norm = self.by_type[name]
                conorm: Conorm = "maximum" if norm == "minimum" else "sum"
                return replace(self, beam=beam, t_norm=norm, t_conorm=conorm, by_type={})
        return self

    # --- fuzzy logic ----------------------------------------------------------------------------

    @property
    def times(self) -> Callable[[Tensor, Tensor], Tensor]:
        """The t-norm of two tensors."""
        return torch.mul if self.t_norm == "product" else torch.minimum

    def all_of(self, parts: Sequence[Tensor]) -> Tensor:
        """The t-norm of some tensors."""
        return reduce(self.times, parts)

    def any_of(self, parts: Sequence[Tensor]) -> Tensor:
        """The t-conorm of some tensors."""
        if self.t_conorm == "maximum":
            return reduce(torch.maximum, parts)
        return 1 - reduce(torch.mul, [1 - part for part in parts])

    def negated(self, value: Tensor) -> Tensor:
        """The negation of a tensor."""
        if self.negation == 1:
            return 1 - value
        return 1 - (value * self.negation).clamp_(max=1)


# What CQD's authors found best on the validation queries of each set, by type: beam and t-norm.
_P: Norm = "product"
_M: Norm = "minimum"
TUNED: Mapping[str, Mapping[str, tuple[int, Norm]]] = {
    "fb15k237": {
        "2p": (512, _P), "3p": (8, _P), "2i": (128, _P), "3i": (128, _P), "pi": (256, _P),
        "ip": (64, _P), "2u": (512, _M), "up": (512, _M),
    },
    "nell995": {
        "2p": (512, _P), "3p": (2, _P), "2i": (2, _P), "3i": (2, _P), "pi": (256, _P),
        "ip": (256, _P), "2u": (512, _M), "up": (512, _M),
    },
    "icews18": {
        "2p": (32, _P), "3p": (2, _P), "2i": (2, _P), "3i": (2, _P), "pi": (512, _P),
        "ip": (256, _P), "2u": (2, _M), "up": (2, _M), "4i": (2, _P), "4p": (2, _P),
    },
}  # fmt: skip

SETTINGS: Mapping[str, SearchSettings] = {
    "cqd-beam": SearchSettings(CALIBRATIONS["minmax"], beam=64, cut=64),
    "cqd-hybrid": SearchSettings(
        CALIBRATIONS["minmax-observed"], beam=64, beam_known=True, beam_most=512, cut=64
    ),
    "qto": SearchSettings(CALIBRATIONS["degree"], negation=3.0),
    "fit": SearchSettings(CALIBRATIONS["normalised"], unions="disjuncts", cut=10),
}
