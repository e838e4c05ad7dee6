"""Search for token sequences, step by step: greedy with one beam, otherwise the best so many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from parsers.models.base import LEAST, NEVER, check_numbers


class Guide(Protocol):
    """Which tokens may come next; a state is never changed, so that beams may share it."""

    def start(self) -> Any:
        """The state before the first token."""

    def allowed(self, state: Any) -> npt.NDArray[np.int64]:
        """The numbers of the tokens that may come next."""

    def advance(self, state: Any, token: int) -> Any:
        """The state after a token."""


@dataclass(frozen=True)
class Path:
    """Tokens, without the end, and the logarithm of their probability."""

    tokens: tuple[int, ...]
    log_probability: float
    state: Any = None


# From the tokens before (N), the recurrent state (layers × N × H) and the number of the question
# of each row (N): the scores of what may come next (N × V) and the next recurrent state.
Next = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def search(
    following: Next,
    hidden: Tensor,
    *,
    begin: int,
    end: int,
    width: int,
    longest: int,
    guides: Sequence[Guide | None],
) -> list[list[Path]]:
    """For each question the best sequences that a beam of ``width`` finds, the best first.

    ``hidden`` has one row for each question. A sequence ends with the token ``end`` or at the
    length ``longest``, or where its guide allows nothing. Probabilities are among the tokens that
    the question's guide allows. Raises NotFiniteError for scores that are no numbers.
    """
    count = len(guides)
    found: list[list[Path]] = [[] for _ in range(count)]
    live = [(n, Path((), 0.0, guide.start() if guide else None)) for n, guide in enumerate(guides)]
    previous = torch.full((count,), begin, device=hidden.device)
    for at in range(longest + 1):
        if at == longest:
            for n, path in live:
                found[n].append(path)
            break
        rows = torch.tensor([n for n, _ in live], device=hidden.device)
        scores, hidden = following(previous, hidden, rows)
        scores, stuck = _guided(scores, live, guides)
        best = scores.log_softmax(-1).topk(min(width, scores.shape[-1]), -1)
        longer: list[list[tuple[float, int, int]]] = [[] for _ in range(count)]
        values, tokens = best.values.tolist(), best.indices.tolist()
        check_numbers(row[0] for row in values)
        for row, (n, path) in enumerate(live):
            if row in stuck:
                found[n].append(path)
                continue
            for value, token in zip(values[row], tokens[row], strict=True):
                if value > NEVER / 2:
                    longer[n].append((path.log_probability + value, row, token))
        kept: list[tuple[int, int, Path]] = []
        for n, ways in enumerate(longer):
            ways.sort(key=lambda way: (-way[0], way[1], way[2]))
            for value, row, token in ways[: width - len(found[n])]:
                path, guide = live[row][1], guides[n]
                if token == end:
                    found[n].append(Path(path.tokens, value, path.state))
                    continue
                state = guide.advance(path.state, token) if guide else None
                kept.append((n, row, Path((*path.tokens, token), value, state)))
        if not kept:
            break
        live = [(n, path) for n, _, path in kept]
        previous = torch.tensor([path.tokens[-1] for _, path in live], device=hidden.device)
        hidden = hidden[:, [row for _, row, _ in kept]]
    return [sorted(paths, key=lambda path: -path.log_probability) for paths in found]


def _guided(
    scores: Tensor, live: Sequence[tuple[int, Path]], guides: Sequence[Guide | None]
) -> tuple[Tensor, set[int]]:
    """The scores with all that is not allowed set to `NEVER`; the rows that allow nothing."""
    if all(guide is None for guide in guides):
        return scores, set()
    allowed = np.zeros(tuple(scores.shape), np.bool_)
    for row, (n, path) in enumerate(live):
        guide = guides[n]
        allowed[row, slice(None) if guide is None else guide.allowed(path.state)] = True
    stuck = set(np.flatnonzero(~allowed.any(1)).tolist())
    forbidden = ~torch.from_numpy(allowed).to(scores.device)
    return scores.clamp(min=LEAST).masked_fill(forbidden, NEVER), stuck
