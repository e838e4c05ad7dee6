"""Search for token sequences, step by step: greedy with one beam, otherwise the best so many."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from kopl.errors import ParseError
from parsers.models.base import LEAST, NEVER, check_numbers


class DecodingConstraint(Protocol):
    """Which tokens may come next; a state is never changed, so that beams may share it."""

    def start(self) -> Any:
        """The state before the first token."""

    def allowed(self, state: Any) -> npt.NDArray[np.int64]:
        """The numbers of the tokens that may come next."""

    def advance(self, state: Any, token: int) -> Any:
        """The state after a token, None where the sequence is not to be gone on with.

        Raises ParseError where the sequence ends with the token, as it cannot be read.
        """


class Hypothesis(NamedTuple):
    """Tokens, without the end, and the logarithm of their probability.

    ``state`` is where its constraint is, or the error with which that ended it.
    """

    tokens: tuple[int, ...]
    log_probability: float
    state: Any = None


# From the tokens before (N), the recurrent state (layers × N × H), the number of the question of
# each row (N) and where its constraint is: the scores of what may come next (N × V) and the next
# recurrent state.
Next = Callable[[Tensor, Tensor, Tensor, Sequence[Any]], tuple[Tensor, Tensor]]


def search(
    following: Next,
    hidden: Tensor,
    *,
    begin: int,
    end: int,
    width: int,
    longest: int,
    constraints: Sequence[DecodingConstraint | None],
    said: Callable[[Any], object] | None = None,
) -> list[list[Hypothesis]]:
    """For each question the best sequences that a beam of ``width`` finds, the best first.

    ``hidden`` has one row for each question. A sequence ends with the token ``end`` or at the
    length ``longest``, or where its constraint allows nothing or raises a ParseError. Of sequences
    that end in states by which the same is ``said`` the most probable counts. Probabilities are
    among the tokens that the question's constraint allows. Raises NotFiniteError for scores that
    are no numbers.
    """
    found: list[dict[object, Hypothesis]] = [{} for _ in constraints]

    def finish(n: int, path: Hypothesis) -> None:
        what = path.tokens if said is None else said(path.state)
        if what not in found[n] or found[n][what].log_probability < path.log_probability:
            found[n][what] = path

    live = [
        (n, Hypothesis((), 0.0, one.start() if one else None)) for n, one in enumerate(constraints)
    ]
    previous = torch.full((len(constraints),), begin, device=hidden.device)
    for _ in range(longest):
        rows = torch.tensor([n for n, _ in live], device=hidden.device)
        scores, hidden = following(previous, hidden, rows, [path.state for _, path in live])
        scores, stuck = _constrained(scores, live, constraints)
        for row in sorted(stuck):
            finish(*live[row])
        kept: list[tuple[int, int, Hypothesis]] = []
        for n, ways in enumerate(_ways(scores, live, stuck, width, len(constraints))):
            going = 0
            for value, row, token in ways:
                if going + len(found[n]) >= width:
                    break
                path, constraint = live[row][1], constraints[n]
                if token == end:
                    finish(n, path._replace(log_probability=value))
                    continue
                state, written = None, (*path.tokens, token)
                if constraint is not None:
                    try:
                        state = constraint.advance(path.state, token)
                    except ParseError as error:
                        finish(n, Hypothesis(written, value, error))
                        continue
                    if state is None:
                        continue
                kept.append((n, row, Hypothesis(written, value, state)))
                going += 1
        live = [(n, path) for n, _, path in kept]
        if not live:
            break
        previous = torch.tensor([path.tokens[-1] for _, path in live], device=hidden.device)
        hidden = hidden[:, [row for _, row, _ in kept]]
    for n, path in live:
        finish(n, path)
    return [sorted(paths.values(), key=lambda path: -path.log_probability) for paths in found]


def _ways(
    scores: Tensor,
    live: Sequence[tuple[int, Hypothesis]],
    stuck: Collection[int],
    width: int,
    count: int,
) -> list[list[tuple[float, int, int]]]:
    """For each of ``count`` questions how its hypotheses may go on, the best first.

    As (logarithm of the probability then, row, token), for ``width`` tokens of each row that is not
    ``stuck``. Raises NotFiniteError for scores that are no numbers.
    """
    best = scores.log_softmax(-1).topk(min(width, scores.shape[-1]), -1)
    values, tokens = best.values.tolist(), best.indices.tolist()
    check_numbers([row[0] for row in values])
    found: list[list[tuple[float, int, int]]] = [[] for _ in range(count)]
    for row, (n, path) in enumerate(live):
        if row in stuck:
            continue
        for value, token in zip(values[row], tokens[row], strict=True):
            if value > NEVER / 2:
                found[n].append((path.log_probability + value, row, token))
    for ways in found:
        ways.sort(key=lambda way: -way[0])
    return found


def _constrained(
    scores: Tensor,
    live: Sequence[tuple[int, Hypothesis]],
    constraints: Sequence[DecodingConstraint | None],
) -> tuple[Tensor, set[int]]:
    """The scores with all that is not allowed set to `NEVER`; the rows that allow nothing."""
    if all(constraint is None for constraint in constraints):
        return scores, set()
    allowed = np.zeros(tuple(scores.shape), np.bool_)
    for row, (n, path) in enumerate(live):
        one = constraints[n]
        allowed[row, slice(None) if one is None else one.allowed(path.state)] = True
    stuck = set(np.flatnonzero(~allowed.any(1)).tolist())
    forbidden = ~torch.from_numpy(allowed).to(scores.device)
    return scores.clamp(min=LEAST).masked_fill(forbidden, NEVER), stuck
