"""A progress bar for long work: on a terminal, and only once the work takes a while."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

PATIENCE = 0.7  # seconds before a bar is worth showing


class ProgressBar:
    """Shows how far some work is; silent when standard error is not a terminal.

    >>> with ProgressBar("reading", total=3) as bar:
    ...     bar.advance(1)
    """

    def __init__(self, title: str, total: float | None, *, shown: bool | None = None) -> None:
        self._title, self._total = title, total
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._began = time.monotonic()
        self._done = 0.0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, amount: float) -> None:
        """Say that this much more is done."""
        self.reach(self._done + amount)

    def reach(self, done: float) -> None:
        """Say how much is done in all."""
        self._done = done
        if not self._shown or (self._bar is None and time.monotonic() - self._began < PATIENCE):
            return
        if self._bar is None:
            # Imported here: start-up must not pay for a bar that is never drawn.
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=self._total)
        self._bar.update(self._task, completed=done)
