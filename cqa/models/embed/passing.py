"""Message passing over the links of a graph: what Bellman-Ford networks share.

A node takes messages from the tails of its own links. The links (v, r, t) with one v and one r are
a *row*: the states of their tails are reduced first, then scaled by the vector of r, once. Rows
stand in the order of their nodes: a block of nodes is a block of rows, and what is computed between
reading and writing states stays in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from cqa.graphs.links import Links, places

# So many numbers of a state are computed at a time where no gradient is asked for: small enough
# for the cache of one core, large enough that calls cost nothing.
BLOCK = 1 << 18
BLOCK_GPU = 1 << 28


def _lasting(make: Callable[[Any], Any]) -> Any:
    """A property that is made once, as tensors that later gradients may use as well."""

    @wraps(make)
    def made(self: Any) -> Any:
        with torch.inference_mode(False):
            return make(self)

    return cached_property(made)


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The rows of some nodes that stand side by side, from ``first`` on.

    ``sources`` are the tails of the links; those of row i are ``starts[i]`` to ``starts[i + 1]``;
    ``relations`` has a number for each row; the rows of node ``first`` + j are ``rows[j]`` to
    ``rows[j + 1]``.
    """

    first: int
    sources: Tensor
    starts: Tensor
    relations: Tensor
    rows: Tensor
    relation_count: int
    # The mean of log(degree + 1) over all nodes, those of other parts included.
    mean_logarithm: float = 1.0

    @classmethod
    def of(cls, links: Links) -> Adjacency:
        """All rows of some links."""
        relations = np.repeat(np.arange(links.relation_count), np.diff(links.rows))
        order = np.argsort(links.heads, kind="stable")
        counts = np.diff(links.starts)[order]
        sources = links.tails[places(np.asarray(links.starts)[:-1][order], counts)]
        per_node = np.bincount(links.heads, minlength=links.entity_count)
        degrees = np.bincount(links.heads, np.diff(links.starts), links.entity_count)
        return cls(
            0,
            torch.from_numpy(sources.astype(np.int64)),
            torch.from_numpy(_starts(counts)),
            torch.from_numpy(relations[order]),
            torch.from_numpy(_starts(per_node)),
            links.relation_count,
            float(np.log1p(degrees).mean()) or 1.0,  # 0 without any link
        )

    @property
    def node_count(self) -> int:
        """The number of nodes whose rows are here."""
        return len(self.rows) - 1

    def to(self, device: torch.device | str) -> Adjacency:
        """The same on a device."""
        return replace(
            self,
            sources=self.sources.to(device),
            starts=self.starts.to(device),
            relations=self.relations.to(device),
            rows=self.rows.to(device),
        )

    def part(self, begin: int, end: int) -> Adjacency:
        """The rows of the nodes from one number on and below another."""
        first, last = int(self.rows[begin]), int(self.rows[end])
        low, high = int(self.starts[first]), int(self.starts[last])
        return replace(
            self,
            first=self.first + begin,
            sources=self.sources[low:high],
            starts=self.starts[first : last + 1] - low,
            relations=self.relations[first:last],
            rows=self.rows[begin : end + 1] - first,
        )

    def blocks(self, nodes: int) -> list[Adjacency]:
        """The rows of so many nodes at a time; made once for each number."""
        if nodes not in self._blocks:
            with torch.inference_mode(False):
                self._blocks[nodes] = [
                    self.part(begin, min(begin + nodes, self.node_count))
                    for begin in range(0, self.node_count, nodes)
                ]
        return self._blocks[nodes]

    @cached_property
    def _blocks(self) -> dict[int, list[Adjacency]]:
        return {}

    @_lasting
    def every(self) -> Tensor:
        """The numbers of all rows."""
        return torch.arange(len(self.relations), device=self.rows.device)

    @_lasting
    def degrees(self) -> Tensor:
        """The number of links of each node."""
        return self.starts[self.rows[1:]] - self.starts[self.rows[:-1]]

    @_lasting
    def link_nodes(self) -> Tensor:
        """The node of each link."""
        found: Tensor = self.row_nodes[self.link_rows]
        return found

    @_lasting
    def link_relations(self) -> Tensor:
        """The relation of each link."""
        return self.relations[self.link_rows]

    @_lasting
    def link_rows(self) -> Tensor:
        """The row of each link."""
        return torch.repeat_interleave(self.every, self.starts.diff())

    @_lasting
    def row_nodes(self) -> Tensor:
        """The node of each row."""
        nodes = torch.arange(self.node_count, device=self.rows.device)
        return torch.repeat_interleave(nodes, self.rows.diff())

    @_lasting
    def inverse(self) -> Tensor:
        """For each link (v, r, t) the number of the link (t, r's inverse, v)."""
        arrays = self.link_relations, self.link_nodes, self.sources
        relations, nodes, sources = (one.cpu().numpy() for one in arrays)
        own = np.lexsort((sources, relations, nodes))
        theirs = np.lexsort((nodes, relations ^ 1, sources))
        found = np.empty(len(own), np.int64)
        found[theirs] = own
        return torch.from_numpy(found).to(self.sources.device)

    def kept(self, keep: Tensor) -> Adjacency:
        """The rows of the links of a mask; rows without any are left out."""
        sizes = torch.zeros(len(self.relations), dtype=torch.int64, device=keep.device)
        sizes.index_add_(0, self.link_rows, keep.long())
        filled = sizes > 0
        rows = torch.zeros(self.node_count, dtype=torch.int64, device=keep.device)
        rows.index_add_(0, self.row_nodes, filled.long())
        return replace(
            self,
            sources=self.sources[keep],
            starts=_sums(sizes[filled]),
            relations=self.relations[filled],
            rows=_sums(rows),
        )

    # --- messages ------------------------------------------------------------------------------

    def sums(self, states: Tensor, scales: Tensor) -> Tensor:
        """For each node the sum over its links of the tail's state times the relation's scale.

        ``states`` [all nodes, width], ``scales`` [relations, width].
        """
        found = _bag(self.sources, states, self.starts, "sum")
        scale = scales.index_select(0, self.relations)
        found = found * scale if found.requires_grad or scale.requires_grad else found.mul_(scale)
        return _bag(self.every, found, self.rows, "sum")

    def extremes(self, states: Tensor, scales: Tensor) -> tuple[Tensor, Tensor]:
        """For each node the least and the largest of what `sums` adds; 0 where it has no link."""
        scale = scales.index_select(0, self.relations)
        high = _bag(self.sources, states, self.starts, "max") * scale
        low = -_bag(self.sources, -states, self.starts, "max") * scale
        high, low = torch.maximum(high, low), torch.minimum(high, low)
        return -_bag(self.every, -low, self.rows, "max"), _bag(self.every, high, self.rows, "max")


def _starts(counts: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    found = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=found[1:])
    return found


def _sums(counts: Tensor) -> Tensor:
    return functional.pad(counts.cumsum(0), (1, 0))


def _bag(places: Tensor, states: Tensor, starts: Tensor, mode: str) -> Tensor:
    """States reduced by the groups of places that begin at ``starts``; 0 for an empty group."""
    found: Tensor = functional.embedding_bag(
        places, states, starts, mode=mode, include_last_offset=True
    )
    return found


def blocks(adjacency: Adjacency, width: int) -> list[Adjacency]:
    """The parts that are computed at a time for states of a width, numbers a node."""
    most = BLOCK_GPU if adjacency.sources.is_cuda else BLOCK
    return adjacency.blocks(max(1, most // max(1, width)))
