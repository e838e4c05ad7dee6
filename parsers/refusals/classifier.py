"""Multinomial logistic regression in NumPy, so that asking needs no other package for it.

Regularised by the sum of squares (ridge), fitted by full-batch Adam. A hidden layer told generated
questions apart no better, and people's questions worse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

STEPS, RATE = 500, 0.05
RIDGE = 1e-2
# Numbers farther from the mean than so many deviations tell no more.
FARTHEST = 4.0


@dataclass(frozen=True)
class Classifier:
    """The probabilities of classes for vectors of features."""

    classes: tuple[str, ...]
    mean: Floats
    deviation: Floats
    weights: Floats  # features + 1 × classes; the last row is the bias

    @classmethod
    def fit(
        cls, vectors: Floats, labels: Ints, classes: Sequence[str], ridge: float = RIDGE
    ) -> Classifier:
        """The classifier of the least cross-entropy, with ``ridge`` times the squares of weights.

        ``labels`` are places in ``classes``, one for each row of the vectors.
        """
        mean, deviation = vectors.mean(0), vectors.std(0)
        deviation = np.where(deviation < 1e-6, 1.0, deviation)
        inputs = _scaled(vectors, mean, deviation)
        weights = np.zeros((inputs.shape[1], len(classes)))
        wanted = np.eye(len(classes))[labels]
        first, second = np.zeros_like(weights), np.zeros_like(weights)
        for step in range(1, STEPS + 1):
            off = _softmax(inputs @ weights) - wanted
            gradient = inputs.T @ off / len(inputs)
            gradient[:-1] += ridge * weights[:-1]
            first = 0.9 * first + 0.1 * gradient
            second = 0.99 * second + 0.01 * gradient * gradient
            rate = RATE * (1 - step / (STEPS + 1))
            spread = np.sqrt(second / (1 - 0.99**step)) + 1e-9
            weights -= rate * first / (1 - 0.9**step) / spread
        return cls(tuple(classes), mean, deviation, weights)

    def probabilities(self, vectors: Floats) -> Floats:
        """A row of probabilities, in the order of the classes, for each vector."""
        return _softmax(_scaled(vectors, self.mean, self.deviation) @ self.weights)

    def to_json(self) -> dict[str, Any]:
        """The numbers as plain values."""
        return {
            "classes": list(self.classes),
            "mean": _plain(self.mean),
            "deviation": _plain(self.deviation),
            "weights": _plain(self.weights),
        }

    @classmethod
    def from_json(cls, read: Mapping[str, Any]) -> Classifier:
        """What `to_json` gave; raises KeyError, TypeError or ValueError."""
        mean, deviation, weights = (
            np.array(read[name], float) for name in ("mean", "deviation", "weights")
        )
        found = cls(tuple(map(str, read["classes"])), mean, deviation, weights)
        wanted = (len(mean) + 1, len(found.classes))
        if deviation.shape != mean.shape or weights.shape != wanted:
            raise ValueError(f"weights of the shape {weights.shape}, not {wanted}")
        if not all(np.isfinite(one).all() for one in (mean, deviation, weights)):
            raise ValueError("numbers that are none")
        return found


def _scaled(vectors: Floats, mean: Floats, deviation: Floats) -> Floats:
    """The vectors in deviations from the mean, with a 1 behind each."""
    scaled = np.clip((vectors - mean) / deviation, -FARTHEST, FARTHEST)
    return np.concatenate([scaled, np.ones((len(scaled), 1))], 1)


def _softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(1, keepdims=True))
    found: Floats = powers / powers.sum(1, keepdims=True)
    return found


def _plain(values: Floats) -> list[Any]:
    rounded: list[Any] = np.round(values, 6).tolist()
    return rounded
