"""Link predictors whose scores are products: ComplEx and DistMult."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from pydantic.dataclasses import dataclass as checked
from torch import Tensor
from torch.autograd.function import FunctionCtx

from cqa.models.links.network import TINY, LinkModel, LinkSettings, RowBatch


@checked(frozen=True)
class ComplExSettings(LinkSettings):
    """Those of ComplEx; the vectors have 2 ``rank`` real numbers."""


@checked(frozen=True)
class DistMultSettings(LinkSettings):
    """Those of DistMult."""


class Bilinear(LinkModel):
    """A model whose logits are the products of a query with the vectors of tails."""

    defaults: ClassVar[dict[str, Any]] = {
        "batch": 1000, "epochs": 20, "optimizer": "adagrad", "learning_rate": 0.1,
        "weight_decay": 0.0, "gradient_norm": 0.0, "warm_up": 0.0, "schedule": "linear",
    }  # fmt: skip

    def against(self, queries: Tensor, tails: Tensor) -> Tensor:
        """The products of each query with each tail."""
        return queries @ tails.T

    def beside(self, queries: Tensor, tails: Tensor) -> Tensor:
        """The product of each query with its tail."""
        return (queries * tails).sum(1)

    def relation_queries(self, heads: Tensor, tails: Tensor) -> Tensor:
        """What is multiplied with the vectors of relations to score them."""
        raise NotImplementedError

    def relation_losses(self, heads: Tensor, tails: Tensor, relations: Tensor) -> Tensor:
        """The cross-entropies of the relations over all directed ones, summed."""
        ones = torch.ones_like(relations)
        rows = torch.arange(len(relations), device=relations.device)
        loss, _ = _product_loss(
            self.relation_queries(heads, tails), self.relations, ones, rows, relations
        )
        return loss

    def full_loss(self, queries: Tensor, batch: RowBatch) -> tuple[Tensor, Tensor]:
        """The cross-entropies over all entities, in the precision of the training."""
        return _product_loss(queries, self.entities, batch.counts, batch.row_of, batch.tails)

    def sampled_loss(
        self, queries: Tensor, entities: Tensor, batch: RowBatch
    ) -> tuple[Tensor, Tensor]:
        """The cross-entropies over candidates and own tails, in the precision of the training."""
        own = self.beside(queries[batch.row_of], entities[batch.tails])
        precision = _precision(queries)
        with torch.autocast(queries.device.type, enabled=False):
            loss, right = _SampledSoftmax.apply(  # type: ignore[no-untyped-call]
                queries.float(), entities[batch.candidates].float(), own.float(), batch,
                batch.drawn_tails(len(entities)), self.stands_for(batch), precision,
            )  # fmt: skip
        return loss, right


class ComplEx(Bilinear):
    """ComplEx: Re<head * relation, conj(tail)> over complex numbers, real parts before imaginary.

    With N3, reciprocals and relation prediction, as Lacroix et al. and Chen et al. train it.
    """

    own_settings: ClassVar[type[LinkSettings]] = ComplExSettings
    paper: ClassVar[str] = "Trouillon et al., ICML 2016; Lacroix et al., ICML 2018"

    def widths(self, rank: int) -> tuple[int, int]:
        """Two numbers a dimension."""
        return 2 * rank, 2 * rank

    def queries(self, heads: Tensor, relations: Tensor) -> Tensor:
        """The complex products head * relation."""
        (a, b), (c, d) = heads.chunk(2, -1), relations.chunk(2, -1)
        return torch.cat([a * c - b * d, a * d + b * c], -1)

    def relation_queries(self, heads: Tensor, tails: Tensor) -> Tensor:
        """conj(head) * tail, whose product with a relation is the score."""
        (a, b), (c, d) = heads.chunk(2, -1), tails.chunk(2, -1)
        return torch.cat([a * c + b * d, a * d - b * c], -1)

    def cubes(self, vectors: Tensor) -> Tensor:
        """The cubes of the moduli of complex numbers."""
        real, imaginary = vectors.chunk(2, -1)
        return (real.square() + imaginary.square() + TINY).pow(1.5).sum(1)


class DistMult(Bilinear):
    """DistMult: the sum of head * relation * tail; it cannot tell a relation from its inverse.

    The inverses have vectors of their own, so that both directions may still score differently.
    """

    own_settings: ClassVar[type[LinkSettings]] = DistMultSettings
    paper: ClassVar[str] = "Yang et al., ICLR 2015"

    def widths(self, rank: int) -> tuple[int, int]:
        """One number a dimension."""
        return rank, rank

    def queries(self, heads: Tensor, relations: Tensor) -> Tensor:
        """head * relation."""
        return heads * relations

    def relation_queries(self, heads: Tensor, tails: Tensor) -> Tensor:
        """head * tail."""
        return heads * tails


def _product_loss(
    queries: Tensor, table: Tensor, weights: Tensor, rows: Tensor, columns: Tensor
) -> tuple[Tensor, Tensor]:
    """The cross-entropies of the targets over a table, summed, and the rows that are right.

    ``rows`` and ``columns`` are the targets; a row has ``weights`` of them.
    """
    precision = _precision(queries)
    with torch.autocast(queries.device.type, enabled=False):
        loss, right = _SoftmaxOfProducts.apply(  # type: ignore[no-untyped-call]
            queries.float(), table.float(), weights, rows, columns, precision
        )
    return loss, right


def _precision(tensor: Tensor) -> torch.dtype:
    """What products are computed in: that of autocast, where it is on."""
    kind = tensor.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else torch.float32


class _SoftmaxOfProducts(torch.autograd.Function):
    """Cross-entropies of rows of logits, queries times a table, without keeping the logits.

    The gradient of the logits, weight times softmax less one for each target, stands in the place
    of the softmax, so that a step writes one matrix of the size of the logits and reads it twice.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx, queries: Tensor, table: Tensor, weights: Tensor, rows: Tensor,
        columns: Tensor, precision: torch.dtype,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        short, narrow = queries.to(precision), table.to(precision)
        shares = torch.softmax(short @ narrow.T, 1)
        own = shares[rows, columns].float()
        # The smallest normal number of the precision stands for what underflows.
        loss = -own.clamp_min(torch.finfo(precision).tiny).log().sum()
        best = own.new_zeros(len(queries)).scatter_reduce_(0, rows, own, "amax")
        right = best >= shares.amax(1).float()
        shares.mul_(weights.to(precision)[:, None])
        shares.index_put_((rows, columns), own.new_tensor(-1.0).to(precision), accumulate=True)
        ctx.save_for_backward(shares, short, narrow)
        ctx.mark_non_differentiable(right)
        return loss, right

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor | None, ...]:
        shares, short, narrow = ctx.saved_tensors
        scale = given[0]
        queries = (shares @ narrow).float().mul_(scale)
        table = (shares.T @ short).float().mul_(scale)
        return queries, table, None, None, None, None


class _SampledSoftmax(torch.autograd.Function):
    """Cross-entropies over candidates, queries times a table, and the logits of own tails.

    ``left_out`` are the places where a candidate is a tail of its row, ``shift`` is added to the
    logits of candidates. Gradients are made at once, as in `_SoftmaxOfProducts`.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx, queries: Tensor, table: Tensor, own: Tensor, batch: RowBatch,
        left_out: tuple[Tensor, Tensor], shift: float, precision: torch.dtype,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        short, narrow = queries.to(precision), table.to(precision)
        row_of, counts = batch.row_of, batch.counts.to(own.dtype)
        shares = (short @ narrow.T).float().add_(shift)
        shares[left_out] = -torch.inf
        above = shares.amax(1)
        largest = own.new_full((len(queries),), -torch.inf).scatter_reduce_(0, row_of, own, "amax")
        best = torch.maximum(above, largest)
        shares.sub_(best[:, None]).exp_()
        own_shares = torch.exp(own - best[row_of])
        total = shares.sum(1).index_add_(0, row_of, own_shares)
        loss = (best + total.log()) @ counts - own.sum()
        weights = counts / total
        shares = shares.mul_(weights[:, None]).to(precision)
        ctx.save_for_backward(shares, own_shares * weights[row_of] - 1, short, narrow)
        right = largest >= above
        ctx.mark_non_differentiable(right)
        return loss, right

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor | None, ...]:
        shares, own, short, narrow = ctx.saved_tensors
        scale = given[0]
        queries = (shares @ narrow).float().mul_(scale)
        table = (shares.T @ short).float().mul_(scale)
        return queries, table, own * scale, None, None, None, None
