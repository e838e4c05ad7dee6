"""The progress bar of a training: loss, accuracy, examples a second, time left."""

from __future__ import annotations

import sys
import time
from typing import Any

from kopl_base.progress import TimeLeft, column_of


class Meter:
    """Counts examples; draws a bar on a terminal and is silent elsewhere."""

    def __init__(self, title: str, total: int, done: int = 0, *, shown: bool = True) -> None:
        self._title, self._total, self._begin = title, total, done
        self._done = done
        self._shown = shown and sys.stderr.isatty()
        self._started = time.monotonic()
        self._left = TimeLeft(total)
        self._left.reach(done)
        self._loss: float | None = None
        self._accuracy = 0.0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Meter:
        if self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[shown]}"),
                column_of(self._left), console=Console(stderr=True), transient=True,
            )  # fmt: skip
            self._bar.start()
            self._task = self._bar.add_task(
                self._title, total=self._total, completed=self._done, shown=""
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, examples: int, *, loss: float, accuracy: float) -> None:
        """Say that a batch is done; figures are smoothed over about twenty batches."""
        self._done += examples
        self._left.reach(self._done)
        if self._loss is None:
            self._loss, self._accuracy = loss, accuracy
        self._loss += (loss - self._loss) / 20
        self._accuracy += (accuracy - self._accuracy) / 20
        if self._bar is not None:
            shown = (
                f"loss {self._loss:.3f}, right {self._accuracy:.1%}, {self.speed:.0f} examples/s"
            )
            self._bar.update(self._task, completed=self._done, shown=shown)

    @property
    def speed(self) -> float:
        """Examples a second since the meter began."""
        return (self._done - self._begin) / max(1e-9, time.monotonic() - self._started)
