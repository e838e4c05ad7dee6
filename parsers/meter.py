"""The progress of a training: loss, accuracy, examples a second, time left."""

from __future__ import annotations

import time

from kopl_base.progress import Progress


class Meter:
    """Counts examples, and tells how far the training is where that is ``shown``."""

    def __init__(self, title: str, total: int, done: int = 0, *, shown: bool = True) -> None:
        self._begin = self._done = done
        self._started = time.monotonic()
        self._loss: float | None = None
        self._accuracy = 0.0
        self._progress = Progress(title, total, shown=None if shown else False, noted=True)
        self._progress.reach(done)

    def __enter__(self) -> Meter:
        self._progress.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.__exit__(None, None, None)

    def advance(self, examples: int, *, loss: float, accuracy: float) -> None:
        """Say that a batch is done; figures are smoothed over about twenty batches."""
        self._done += examples
        if self._loss is None:
            self._loss, self._accuracy = loss, accuracy
        self._loss += (loss - self._loss) / 20
        self._accuracy += (accuracy - self._accuracy) / 20
        self._progress.reach(
            self._done,
            f"loss {self._loss:.3f}, right {self._accuracy:.1%}, {self.speed:.0f} examples/s",
        )

    @property
    def speed(self) -> float:
        """Examples a second since the meter began."""
        return (self._done - self._begin) / max(1e-9, time.monotonic() - self._started)
