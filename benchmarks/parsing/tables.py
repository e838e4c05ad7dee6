"""Figures as Markdown: means with their spread, shares with intervals, the machine, a workload."""

from __future__ import annotations

import os
import platform
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import mean
from typing import Any

from kopl.example import read_objects

# Characters of a line of documentation.
WIDTH = 120

# What the ± of a table is; to be said beside it.
SPREAD = "± is half the range of the seeds"


@dataclass(frozen=True)
class Section:
    """What a part measured: a title, paragraphs and tables of Markdown, and all figures."""

    title: str
    paragraphs: Sequence[str]
    figures: Mapping[str, Any] = field(default_factory=dict)

    def markdown(self, command: str, where: Sequence[str]) -> str:
        """The section of a page: its title, the command, when and where, the paragraphs."""
        parts = [f"## {self.title}", f"```\n{command}\n```", wrapped("; ".join(where) + ".")]
        return "\n\n".join((*parts, *map(wrapped, self.paragraphs))) + "\n"


@dataclass(frozen=True)
class Spread:
    """The mean of some figures and half of their range (0 of a single one)."""

    mean: float
    half: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Raises ValueError for no figures."""
        found = list(values)
        if not found:
            raise ValueError("there are no figures to take the mean of")
        return cls(mean(found), (max(found) - min(found)) / 2, len(found))

    def shown(self, digits: int = 2) -> str:
        """The mean, with ± where there are several figures."""
        text = f"{self.mean:,.{digits}f}"
        return text if self.count < 2 else f"{text} ± {self.half:.{digits}f}"


def wrapped(paragraph: str) -> str:
    """A paragraph in lines of a page's width; a table stays as it is."""
    if paragraph.startswith("|"):
        return paragraph
    together = paragraph.replace(" %", "\0%")  # a number stays with its sign
    filled = textwrap.fill(together, WIDTH, break_long_words=False, break_on_hyphens=False)
    return filled.replace("\0%", " %")


def percents(shares: Iterable[Mapping[str, Any]]) -> str:
    """The mean and spread, in percent, of shares as ``eval.py --json`` writes them.

    A dash where one of them is of no questions.
    """
    values = [share["share"] for share in shares]
    return "–" if None in values else Spread.of(100 * value for value in values).shown()


def each(shares: Iterable[Mapping[str, Any]]) -> str:
    """The single shares in percent, in their order."""
    return ", ".join("–" if s["share"] is None else f"{100 * s['share']:.2f}" for s in shares)


def interval(share: Mapping[str, Any]) -> str:
    """The interval of a share in percent."""
    if share["low"] is None:
        return "–"
    return f"{100 * share['low']:.1f} to {100 * share['high']:.1f}"


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; raises ValueError for a row of another length than the headings'."""
    lines = [_row(headings), "|" + "---|" * len(headings)]
    for row in rows:
        if len(row) != len(headings):
            raise ValueError(f"{len(row)} cells under {len(headings)} headings: {row}")
        lines.append(_row(row))
    return "\n".join(lines)


def _row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def workload(path: Path | str) -> str:
    """How many questions a file has, and the share of each type, the most frequent first."""
    types = Counter(
        str(item.get("type") or "no type")
        for _, item in read_objects(path)
        if isinstance(item, dict)
    )
    total = sum(types.values())
    shares = sorted(types.items(), key=lambda item: (-item[1], item[0]))
    listed = ", ".join(f"{name} {100 * count / total:.1f} %" for name, count in shares)
    return f"{total:,} ({listed})"


def machine() -> str:
    """The software and the machine of a measurement, as one line."""
    try:
        torch = f"PyTorch {version('torch')}"
    except PackageNotFoundError:
        torch = "without PyTorch"
    python = f"Python {platform.python_version()}"
    return f"{python}, {torch}, {platform.system()}, {_processor()}, {cores()} cores"


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    """The name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return (names or [platform.processor() or platform.machine()])[0]
