"""What staying silent gains: the risk of what is answered, by how much is answered.

Predictions are answered from the surest on. *Coverage* is the share that is answered, *risk* the
share of these that is wrong (El-Yaniv and Wiener, 2010, "On the foundations of noise-free selective
classification"). The area under the receiver operating characteristic is how often a right
prediction is surer than a wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

# The coverages of which reports tell the risk.
COVERAGES = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
# A curve has no more points than this.
MOST_POINTS = 100


@dataclass(frozen=True)
class Point:
    """Where ``coverage`` of all is answered: down to a confidence, with so much risk."""

    coverage: float
    confidence: float
    risk: float


@dataclass(frozen=True)
class SelectiveRisk:
    """The curve of risk and coverage, with the area under it (the mean risk; 0 is best).

    ``auroc`` is how often a right one is surer than a wrong one, from 0 to 1; None of it where all
    are right, or all wrong. None of both without predictions.
    """

    auroc: float | None
    area: float | None
    points: tuple[Point, ...]

    @classmethod
    def of(cls, confidences: Sequence[float], right: Sequence[bool]) -> SelectiveRisk:
        """The curve of predictions with their confidences; equal ones are answered together."""
        if len(confidences) != len(right):
            raise ValueError(f"{len(confidences)} confidences, but {len(right)} outcomes")
        if not len(right):
            return cls(None, None, ())
        sure, hits = np.asarray(confidences, np.float64), np.asarray(right, np.bool_)
        order = np.argsort(-sure, kind="stable")
        sure, wrong = sure[order], np.cumsum(~hits[order])
        last = np.append(np.flatnonzero(np.diff(sure)), len(sure) - 1)
        counts = last + 1
        risks = wrong[last] / counts
        area = float((risks * np.diff(counts, prepend=0)).sum() / len(sure))
        places = np.unique(np.linspace(0, len(last) - 1, MOST_POINTS).astype(int))
        points = tuple(
            Point(float(counts[n] / len(sure)), float(sure[last[n]]), float(risks[n]))
            for n in places.tolist()
        )
        both = bool(hits.any() and not hits.all())
        found = auroc(np.asarray(confidences, np.float64), hits) if both else None
        return cls(found, area, points)

    def at(self, coverage: float) -> Point | None:
        """The first point with at least so much coverage, None without predictions."""
        return next((one for one in self.points if one.coverage >= coverage - 1e-9), None)

    def to_json(self) -> dict[str, Any]:
        """The areas and the points as plain numbers."""
        return {
            "auroc": self.auroc,
            "area under risk and coverage": self.area,
            "risk by coverage": [asdict(one) for one in self.points],
        }


def auroc(sure: Floats, is_right: Truths) -> float:
    """How often a right one is surer than a wrong one, from 0 to 1; ties count half.

    A half where all are right, or all are wrong.
    """
    right, wrong = np.sort(sure[is_right]), np.sort(sure[~is_right])
    if not len(right) or not len(wrong):
        return 0.5
    below = np.searchsorted(wrong, right, "left") + np.searchsorted(wrong, right, "right")
    return float(below.sum() / (2 * len(right) * len(wrong)))
