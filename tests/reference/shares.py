"""What a batch of programs covered: agreement counts only where it could have failed."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kopl.functions import FUNCTIONS
from tests.reference.random_program import pairs_of, well_typed_pairs


class Shares:
    """Counts functions, pairs of functions and denotations that are not empty."""

    def __init__(self) -> None:
        self.programs = self.filled = self.asked = self.filled_asked = self.several = 0
        self.functions: Counter[str] = Counter()
        self.pairs: Counter[tuple[str, str]] = Counter()

    def add(self, program: list[dict[str, Any]], denotation: list[str]) -> None:
        """Count a program on which the two sides agree."""
        self.programs += 1
        names = [call["function"] for call in program]
        self.functions.update("QueryName" if name == "What" else name for name in names)
        self.pairs.update(pairs_of(program))
        self.filled += bool(denotation)
        self.several += len(denotation) > 1
        if not names[-1].startswith(("Verify", "Count")):
            self.asked += 1
            self.filled_asked += bool(denotation)

    @property
    def rarest_pair(self) -> int:
        """How often the rarest of the well-typed pairs of functions occurred."""
        return min(self.pairs[pair] for pair in well_typed_pairs())

    def __str__(self) -> str:
        rarest = min(self.functions.items(), key=lambda item: item[1])
        return (
            f"{self.programs} programs agree; non-empty {self.filled / self.programs:.1%}"
            f" ({self.filled_asked / self.asked:.1%} without Verify and Count), several strings"
            f" {self.several / self.programs:.1%}; rarest function {rarest},"
            f" rarest of {len(well_typed_pairs())} pairs {self.rarest_pair} times"
        )

    def check(self) -> None:
        """Demand the shares: half of the denotations not empty, all functions, all pairs."""
        scale = self.programs / 20_000
        assert self.filled_asked / self.asked >= 0.5
        assert set(self.functions) == set(FUNCTIONS)
        assert min(self.functions.values()) >= 300 * scale
        assert self.rarest_pair >= int(20 * scale)
