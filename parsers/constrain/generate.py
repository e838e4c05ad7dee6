"""A constraint in the search of transformers: greedy, sampling and beams, in batches.

    model.generate(..., logits_processor=[logits_processor(constraint, begin=2)])
    model.generate(..., prefix_allowed_tokens_fn=prefix_allowed_tokens_fn(constraint, begin=2))

Both do the same; the processor is quicker, as it follows every row by one token a step. Only this
module needs torch, and only when scores are masked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from parsers.constrain.machine import Constraint, State

if TYPE_CHECKING:
    from torch import Tensor


class ConstrainedScores:
    """A logits processor that leaves scores to allowed tokens only; see `logits_processor`."""

    def __init__(self, constraint: Constraint, begin: int) -> None:
        self.constraint, self.begin = constraint, begin
        # The states of the step before, by the tokens of their rows: beams change places.
        self._states: dict[tuple[int, ...], State] = {}

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """The scores (rows × vocabulary) with minus infinity for what is not allowed."""
        import torch

        if input_ids.shape[1] < self.begin:
            return scores
        kept = torch.full_like(scores, -torch.inf)
        states: dict[tuple[int, ...], State] = {}
        for row, tokens in enumerate(input_ids[:, self.begin :].tolist()):
            key = tuple(tokens)
            state = states.get(key)
            if state is None:
                state = states[key] = self._state(key)
            allowed = torch.from_numpy(self.constraint.allowed(state).copy()).to(scores.device)
            kept[row, allowed] = scores[row, allowed]
        self._states = states
        return kept

    def _state(self, tokens: tuple[int, ...]) -> State:
        before = self._states.get(tokens[:-1]) if tokens else None
        if before is not None:
            return self.constraint.advance(before, tokens[-1])
        return after(self.constraint, tokens)


def logits_processor(constraint: Constraint, *, begin: int = 1) -> ConstrainedScores:
    """A logits processor for ``generate``; use it for one search at a time.

    ``begin`` is how many tokens stand before the constraint's first one: the decoder's start
    (1), and the beginning of a sequence where the model forces one (2 for BART); for a decoder
    without an encoder the length of the prompt.
    """
    if begin < 0:
        raise ValueError("begin must not be negative")
    return ConstrainedScores(constraint, begin)


def prefix_allowed_tokens_fn(
    constraint: Constraint, *, begin: int = 1
) -> Callable[[int, Any], list[int]]:
    """The same as a function of (number of the row in the batch, its tokens)."""
    everything = list(range(len(constraint.table)))

    def allowed(batch: int, tokens: Any) -> list[int]:
        written = tokens.tolist() if hasattr(tokens, "tolist") else list(tokens)
        if len(written) < begin:
            return everything
        found: list[int] = constraint.allowed(after(constraint, written[begin:])).tolist()
        return found

    return allowed


def after(constraint: Constraint, tokens: Sequence[int]) -> State:
    """The state behind some tokens."""
    state = constraint.start()
    for token in tokens:
        state = constraint.advance(state, token)
    return state
