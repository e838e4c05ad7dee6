"""Fuzzy sets over a dense random graph: the smallest model that has all operators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from cqa.models.plan import Union
from kb.arrays import Ids

ENTITIES, RELATIONS = 9, 6


def tables(seed: int = 0) -> torch.Tensor:
    """A number in [0, 1) for each relation, head and tail."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(RELATIONS, ENTITIES, ENTITIES, generator=generator, dtype=torch.float64)


class Fuzzy:
    """Operators on (B, E) tensors of truth values: the best product, min, max, 1 - x."""

    negation = True
    form: str | None = None

    def __init__(self, seed: int = 0, union: Union = "own", form: str | None = None) -> None:
        self.table = tables(seed)
        self.union: Union = union
        self.form = form
        self.calls = 0

    def entity(self, entities: torch.Tensor) -> torch.Tensor:
        """One for the entity, nothing for the others."""
        self.calls += 1
        return torch.nn.functional.one_hot(entities, ENTITIES).to(torch.float64)

    def project(self, state: torch.Tensor, relations: torch.Tensor) -> torch.Tensor:
        """The best head for each tail."""
        self.calls += 1
        return (state[:, :, None] * self.table[relations]).amax(1)

    def and_(self, states: Sequence[torch.Tensor]) -> torch.Tensor:
        """The smallest of the values."""
        return torch.stack(list(states)).amin(0)

    def or_(self, states: Sequence[torch.Tensor]) -> torch.Tensor:
        """The largest of the values."""
        assert self.union == "own"
        return torch.stack(list(states)).amax(0)

    def not_(self, state: torch.Tensor) -> torch.Tensor:
        """What is missing to one."""
        return 1 - state

    def logits(self, state: torch.Tensor, entities: torch.Tensor | None = None) -> torch.Tensor:
        """The values themselves."""
        return state if entities is None else state.gather(1, entities)


class FuzzySingle:
    """The same for one query at a time, in NumPy."""

    def __init__(self, seed: int = 0) -> None:
        self.table = tables(seed).numpy()

    def entity(self, entity: int) -> np.ndarray:
        """One for the entity, nothing for the others."""
        found = np.zeros(ENTITIES)
        found[entity] = 1
        return found

    def project(self, state: np.ndarray, relation: int) -> np.ndarray:
        """The best head for each tail."""
        return (state[:, None] * self.table[relation]).max(0)

    def and_(self, states: Sequence[np.ndarray]) -> np.ndarray:
        """The smallest of the values."""
        return np.minimum.reduce(list(states))

    def or_(self, states: Sequence[np.ndarray]) -> np.ndarray:
        """The largest of the values."""
        return np.maximum.reduce(list(states))

    def not_(self, state: np.ndarray) -> np.ndarray:
        """What is missing to one."""
        return 1 - state


def numbers(ids: Ids | Sequence[Sequence[int]]) -> torch.Tensor:
    """Columns as a tensor."""
    return torch.as_tensor(np.asarray(ids), dtype=torch.int64)
