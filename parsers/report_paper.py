"""The published figures that stand beside ours: declared once, each with its source.

They were measured on KQA Pro's own test questions, so beside other questions they are for
orientation only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from parsers.scoring import HOPS, SKILLS

_KQA_PRO = (
    "Cao et al. (2022), KQA Pro: A Dataset with Explicit Compositional Programs for Complex"
    " Question Answering over Knowledge Base, ACL"
)
TABLE_5 = f"{_KQA_PRO}, Table 5"
TABLE_9 = f"{_KQA_PRO}, Table 9"
LATER = "later work, as its authors report it"


@dataclass(frozen=True)
class Published:
    """A row of published accuracies, in percent; columns as `parsers.scoring` names them."""

    name: str
    source: str
    overall: float | None = None
    skills: Mapping[str, float] = field(default_factory=dict)
    hops: Mapping[str, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The name with where it comes from, in a word."""
        return f"{self.name} ({'paper' if self.source != LATER else 'later work'}, KQA Pro)"

    def to_json(self) -> dict[str, Any]:
        """The row as plain numbers, in percent."""
        return {
            "name": self.name,
            "source": self.source,
            "overall": self.overall,
            "skills": dict(self.skills),
            "hops": dict(self.hops),
        }


def _row(name: str, overall: float, *by_skill: float) -> Published:
    return Published(name, TABLE_5, overall, dict(zip(SKILLS, by_skill, strict=True)))


PUBLISHED = (
    _row("KVMemNet", 16.61, 16.50, 18.47, 1.17, 14.99, 27.31, 54.70, 0.06),
    _row("EmbedKGQA", 28.36, 26.41, 25.20, 11.93, 23.95, 32.88, 61.05, 0.06),
    _row("RGCN", 35.07, 34.00, 27.61, 30.03, 35.85, 41.91, 65.88, 0.00),
    _row("RNN SPARQL", 41.98, 36.01, 19.04, 66.98, 37.74, 50.26, 58.84, 26.08),
    _row("RNN KoPL", 43.85, 37.71, 22.19, 65.90, 47.45, 50.04, 42.13, 34.96),
    _row("BART SPARQL", 89.68, 88.49, 83.09, 96.12, 88.67, 85.78, 92.33, 87.88),
    _row("BART KoPL", 90.55, 89.46, 84.76, 95.51, 89.30, 86.68, 93.30, 89.59),
    _row("BART KoPL, compositional split", 77.86, 77.86, 61.46, 93.61, 77.88, 79.17, 89.01, 76.04),
    _row("human, 200 questions", 97.50, 97.24, 95.65, 100.00, 98.18, 83.33, 95.24, 100.00),
    Published("GraphQ IR", LATER, 91.70),
    Published("CandExpr", LATER, 93.34),
    Published("PER-KBQA", LATER, 93.82),
    Published(
        "BART KoPL", TABLE_9, hops=dict(zip(HOPS, (92.40, 87.71, 86.41, 86.51), strict=False))
    ),
)
