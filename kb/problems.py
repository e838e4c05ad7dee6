"""What was found wrong with a knowledge base while it was read, each with its place."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from kopl_base.errors import ReadError
from kopl_base.jsontext import FIELD_TWICE

Severity = Literal["error", "warning"]


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong: how bad, a code for its kind, where, and what."""

    severity: Severity
    code: str
    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.place}: {self.message} [{self.code}]"


@dataclass
class Problems:
    """Collects problems; an error stops the reading unless ``keep_going``.

    At most ``limit`` problems of each code are kept (None: all); ``counts`` counts all of them.
    """

    source: str = ""
    keep_going: bool = False
    limit: int | None = 1000
    found: list[Problem] = field(default_factory=list)
    counts: Counter[tuple[Severity, str]] = field(default_factory=Counter)

    def error(self, code: str, place: str, message: str) -> None:
        """Note an error; raises ReadError with its place unless all problems are collected."""
        if not self.keep_going:
            raise ReadError(message, place=place, source=self.source)
        self._add(Problem("error", code, place, message))

    def field_twice(self, place: str, field: str) -> None:
        """Note an error: an object of JSON has a field twice, of which only one could be kept."""
        self.error("duplicate-field", f"{place}/{field}", FIELD_TWICE)

    def warning(self, code: str, place: str, message: str) -> None:
        """Note something that was repaired or is kept as it is."""
        self._add(Problem("warning", code, place, message))

    def _add(self, problem: Problem) -> None:
        key = (problem.severity, problem.code)
        self.counts[key] += 1
        if self.limit is None or self.counts[key] <= self.limit:
            self.found.append(problem)

    @property
    def errors(self) -> int:
        """How many errors there were."""
        return sum(n for (severity, _), n in self.counts.items() if severity == "error")

    @property
    def warnings(self) -> int:
        """How many warnings there were."""
        return sum(n for (severity, _), n in self.counts.items() if severity == "warning")
