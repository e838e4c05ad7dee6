"""What the embedding models share: tables of vectors, small networks, attention, distances.

A state is a tensor, or a tuple of tensors, with a row for each query of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

# Numbers that are held at a time where a distance to all entities is no product of matrices.
BLOCK = 1 << 23

Distance = Callable[[Tensor], Tensor]


def table(rows: int, width: int, low: float, high: float) -> nn.Parameter:
    """A parameter of so many vectors, each number drawn alike from a range."""
    return nn.Parameter(torch.empty(rows, width).uniform_(low, high))


class Perceptron(nn.Module):
    """Linear layers of some widths with ReLU between; weights by Glorot's rule, biases 0.

    With ``bias`` false the last layer has none: where a softmax over operands follows, it would
    change nothing, and its gradient would be nothing but rounding.
    """

    def __init__(self, *widths: int, bias: bool = True) -> None:
        super().__init__()
        last = len(widths) - 2
        layers = [
            nn.Linear(before, after, bias=bias or number < last)
            for number, (before, after) in enumerate(pairwise(widths))
        ]
        for number, layer in enumerate(layers):
            nn.init.xavier_uniform_(layer.weight)
            if bias or number < last:
                nn.init.zeros_(layer.bias)
        self.layers = nn.ModuleList(layers)

    def forward(self, inputs: Tensor) -> Tensor:
        """The outputs of the last layer, [..., last width]."""
        for number, layer in enumerate(self.layers):
            inputs = layer(inputs if number == 0 else inputs.relu())
        return inputs


class Gate(nn.Module):
    """A factor in (0, 1) for each number that a set of operands decides, whatever their order.

    A layer for each operand, their mean, then another layer.
    """

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.each, self.all = Perceptron(width, out), Perceptron(out, out)

    def forward(self, operands: Tensor) -> Tensor:
        """The factors [B, out] of operands [n, B, width]."""
        factors: Tensor = self.all(self.each(operands).relu().mean(0)).sigmoid()
        return factors


def weighted(operands: Tensor, scores: Tensor) -> Tensor:
    """The mean of operands [n, B, d] by the softmax of their scores [n, B, d], number by number."""
    return (operands * scores.softmax(0)).sum(0)


def stacked(states: Sequence[tuple[Tensor, ...]]) -> list[Tensor]:
    """For each part of some states one tensor [n, B, …]."""
    return [torch.stack(parts) for parts in zip(*states, strict=True)]


def among(table: Tensor, entities: Tensor | None, distance: Distance, queries: int) -> Tensor:
    """A distance to some entities [B, m], or to all, [B, E].

    ``distance`` gives [B, n] for the vectors [B, n, d], or [1, n, d] of the same ones for each of B
    queries. Where no gradient is wanted, all entities are taken in blocks that fit into memory.
    """
    if entities is not None:
        return distance(table[entities])
    size = max(1, BLOCK // max(1, queries * table.shape[1]))
    if torch.is_grad_enabled():
        size = len(table)
    return torch.cat([distance(part[None]) for part in torch.split(table, size)], 1)


def manhattan(points: Tensor, entities: Tensor | None, table: Tensor) -> Tensor:
    """Sums of absolute differences of points [B, d] to some entities, [B, m], or to all, [B, E].

    Entities [1, m] are the same for all points.
    """
    if entities is None or len(entities) == 1 < len(points):
        return torch.cdist(points, table if entities is None else table[entities[0]], p=1)
    return (table[entities] - points[:, None]).abs().sum(-1)


def from_boxes(
    centre: Tensor, offset: Tensor, inside: float, entities: Tensor | None, table: Tensor
) -> Tensor:
    """Distances of entities to boxes [B, d], [B, m] or [B, E]; within, they count ``inside``.

    How far y is outside of [-o, o] is (|y - o| + |y + o|) / 2 - o: where entities are the same for
    all boxes, sums of absolute differences are all that is needed.
    """
    if entities is not None and len(entities) == len(centre):
        away = (table[entities] - centre[:, None]).abs()
        within = torch.minimum(away, offset[:, None])
        return (away - within + inside * within).sum(-1)
    ends = [manhattan(one, entities, table) for one in (centre - offset, centre + offset)]
    outside = ((ends[0] + ends[1]) / 2 - offset.sum(-1, keepdim=True)).relu()
    return (1 - inside) * outside + inside * manhattan(centre, entities, table)
