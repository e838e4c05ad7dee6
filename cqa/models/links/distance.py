"""Link predictors whose scores are distances: TransE and RotatE.

The softmax does not see a margin, which is the same for all tails, so there is none.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from pydantic.dataclasses import dataclass as checked
from torch import Tensor, nn

from cqa.graphs.graph import Graph
from cqa.models.links.network import TINY, LinkModel, LinkSettings, LossName
from cqa.models.settings import Settings
from kopl_base.errors import SettingsError
from kopl_base.settings import Count, NotNegative

# Numbers that the differences of a block of tails take: they stay near the processor.
BLOCK = 1 << 18


@checked(frozen=True)
class TransESettings(LinkSettings):
    """Those of TransE; distances grow with the rank, so that vectors begin small."""

    loss: LossName = "sampled"
    regularizer: NotNegative = 0.0
    init: NotNegative = 0.1

    def __post_init__(self) -> None:
        if self.relation_weight:
            raise SettingsError("relation_weight must be 0: distances do not predict relations")


@checked(frozen=True)
class RotatESettings(TransESettings):
    """Those of RotatE; entities have 2 ``rank`` numbers, relations ``rank`` angles."""

    rank: Count = 64
    candidates: Count = 500


class Distance(LinkModel):
    """A model whose logits are distances of a query from the vectors of tails, negative."""

    defaults: ClassVar[dict[str, Any]] = {
        "batch": 500, "epochs": 10, "optimizer": "adam", "learning_rate": 0.003,
        "weight_decay": 0.0, "gradient_norm": 0.0, "warm_up": 0.0, "schedule": "linear",
        "validation": 500,
    }  # fmt: skip
    # Whether a dimension is a complex number, whose modulus is the distance.
    moduli: ClassVar[bool] = False

    def against(self, queries: Tensor, tails: Tensor) -> Tensor:
        """The distances of each query from each tail, negative."""
        found: Tensor = _Distances.apply(queries.float(), tails.float(), self.moduli)  # type: ignore[no-untyped-call]
        return -found

    def beside(self, queries: Tensor, tails: Tensor) -> Tensor:
        """The distance of each query from its tail, negative."""
        return -_lengths(queries - tails, self.moduli)


class TransE(Distance):
    """TransE: the distance of head + relation from the tail, by the sum of absolute values."""

    own_settings: ClassVar[type[LinkSettings]] = TransESettings
    paper: ClassVar[str] = "Bordes et al., NeurIPS 2013"

    def widths(self, rank: int) -> tuple[int, int]:
        """One number a dimension."""
        return rank, rank

    def queries(self, heads: Tensor, relations: Tensor) -> Tensor:
        """head + relation."""
        return heads + relations


class RotatE(Distance):
    """RotatE: the distance of head * e^{i relation} from the tail, by the sum of moduli."""

    own_settings: ClassVar[type[LinkSettings]] = RotatESettings
    paper: ClassVar[str] = "Sun et al., ICLR 2019"
    moduli: ClassVar[bool] = True

    def __init__(self, settings: Settings, graph: Graph) -> None:
        super().__init__(settings, graph)
        nn.init.uniform_(self.relations, -math.pi, math.pi)

    def widths(self, rank: int) -> tuple[int, int]:
        """Two numbers a dimension for entities, an angle for relations."""
        return 2 * rank, rank

    def queries(self, heads: Tensor, relations: Tensor) -> Tensor:
        """The heads, turned by the angles of the relations."""
        (a, b), c, d = heads.chunk(2, -1), relations.cos(), relations.sin()
        return torch.cat([a * c - b * d, a * d + b * c], -1)

    def cubes(self, vectors: Tensor) -> Tensor:
        """The cubes of the moduli of entities; angles have the modulus 1."""
        if vectors.shape[-1] == self.own.rank:
            return vectors.new_full((len(vectors),), float(self.own.rank))
        real, imaginary = vectors.chunk(2, -1)
        return (real.square() + imaginary.square() + TINY).pow(1.5).sum(1)


def _lengths(differences: Tensor, moduli: bool) -> Tensor:
    """The sums of absolute values, or of moduli, over the last dimension."""
    if not moduli:
        return differences.abs().sum(-1)
    real, imaginary = differences.chunk(2, -1)
    return (real.square() + imaginary.square() + TINY).sqrt().sum(-1)


class _Distances(torch.autograd.Function):
    """Distances of all queries from all tails, block by block: nothing of n × m × width is held."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, tails: Tensor, moduli: bool) -> Tensor:
        ctx.save_for_backward(queries, tails)
        ctx.moduli = moduli
        if not moduli:
            return torch.cdist(queries, tails, p=1)
        found = queries.new_empty(len(queries), len(tails))
        for begin, end in _blocks(queries, tails):
            found[:, begin:end] = _lengths(queries[:, None] - tails[None, begin:end], moduli)
        return found

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor | None, ...]:
        queries, tails = ctx.saved_tensors
        weights = given[0]
        of_queries, of_tails = torch.zeros_like(queries), torch.empty_like(tails)
        for begin, end in _blocks(queries, tails):
            slopes = queries[:, None] - tails[None, begin:end]
            if ctx.moduli:
                real, imaginary = slopes.chunk(2, -1)
                lengths = (real.square() + imaginary.square() + TINY).rsqrt()
                slopes = slopes * torch.cat([lengths, lengths], -1)
            else:
                slopes = slopes.sign()
            slopes *= weights[:, begin:end, None]
            of_queries += slopes.sum(1)
            of_tails[begin:end] = -slopes.sum(0)
        return of_queries, of_tails, None


def _blocks(queries: Tensor, tails: Tensor) -> list[tuple[int, int]]:
    size = max(1, BLOCK // max(1, queries.numel()))
    return [(begin, min(begin + size, len(tails))) for begin in range(0, len(tails), size)]
