"""Dropout of a batch that several processes, or several parts, compute: the same as of the whole.

Whoever computes some rows of a batch draws the masks of all rows from the generator that all have
seeded alike, and uses those of its rows. The whole batch must be padded to the same lengths
everywhere. It costs the drawing of the other rows' masks, and nothing where a batch is whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_dropout = nn.functional.dropout
_attention = nn.functional.scaled_dot_product_attention


def step_seed(seed: int, step: int) -> int:
    """The seed of all that a step of training draws."""
    digest = hashlib.blake2b(f"{seed}/{step}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def dropped(shape: Sequence[int], share: float, device: torch.device) -> Tensor:
    """A mask of this shape, the batch first, that holds for this share of its places (bool)."""
    return _dropout(torch.ones(tuple(shape), device=device), share) == 0


class RowsOfBatch(TorchFunctionMode):
    """Within it, dropout is that of the whole batch of ``size`` rows, of which there are ``rows``.

    It is taken by every call of torch's dropout, and that of attention, on tensors whose first
    dimension is the batch; whatever draws otherwise draws the same everywhere.
    """

    def __init__(self, rows: Sequence[int], size: int) -> None:
        super().__init__()
        self._rows, self._size = torch.tensor(rows), size

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Call a function of torch, with masks of the whole batch where it drops something."""
        kwargs = kwargs or {}
        if func is _dropout:
            return self._drop(*args, **kwargs)
        if func is _attention and (kwargs.get("dropout_p") or (len(args) > 4 and args[4])):
            return self._attend(*args, **kwargs)
        return func(*args, **kwargs)

    def _drop(
        self, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        if not training or not p:
            return input
        if len(input) != len(self._rows):
            return _dropout(input, p, True, inplace)
        # Draws come in the order of the memory, so that the whole must lie in it as the rows do. Of
        # a single row that is not to be seen: networks give dropout what lies batch by batch.
        strides = input.stride()
        order = sorted(range(input.ndim), key=lambda n: (-strides[n], n))
        sizes = [self._size if n == 0 else input.shape[n] for n in order]
        places = [order.index(n) for n in range(input.ndim)]
        mask = _dropout(input.new_ones(sizes).permute(places), p)[self._rows.to(input.device)]
        return input.mul_(mask) if inplace else input * mask

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """What torch computes where nothing is fused, which is the same but for the mask."""
        if enable_gqa:
            groups = query.shape[-3] // key.shape[-3]
            key, value = (one.repeat_interleave(groups, -3) for one in (key, value))
        scores = query @ key.transpose(-2, -1) * (scale or query.shape[-1] ** -0.5)
        if is_causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        if attn_mask is not None:
            if attn_mask.dtype == torch.bool:
                scores = scores.masked_fill(~attn_mask, float("-inf"))
            else:
                scores = scores + attn_mask
        return self._drop(scores.softmax(-1), dropout_p) @ value
