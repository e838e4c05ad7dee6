"""How long a training may take: a clock of the work done, and the steps that fit.

Time is that of the processor where the work is done on one, so that a busy machine does not shorten
a training; on another device it is the wall's.
"""

from __future__ import annotations

import os
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# Of the time, the most that is kept for what follows the training.
SCORING = 0.25
# What is over sooner, in seconds, is not told before.
TOLD = 10.0
# Steps after which a plan is made anew, and the share of the minutes that is used before the first.
EVERY = 16
BEGIN = 0.05
# A plan that is longer than the time by less than this share is left as it is: clocks waver.
TOLERANCE = 0.02
# Steps that the time of a step is the mean of.
WINDOW = 256
# Before questions were predicted: the time of one as a multiple of training on one, and the
# tolerance, as it may be far from that.
GUESS, DOUBT = 1.0, 0.1


class Clock:
    """Seconds of work since it was made, as they would be on a machine that does nothing else.

    The work of ``threads`` counts as if it was spread over the cores, that of ended processes as
    if it was spread over so many ``workers`` (0: as many as cores). ``begin`` is an earlier `now`.
    """

    def __init__(
        self, device: torch.device | None = None, threads: int = 1, workers: int = 0,
        begin: Moment | None = None,
    ) -> None:  # fmt: skip
        self.by_wall = device is not None and device.type != "cpu"
        self._workers = min(workers or cores(), cores())
        self._threads = min(threads, cores())
        self._begin = begin or now()

    def seconds(self) -> float:
        """The seconds of work."""
        found = zip(now(), self._begin, strict=True)
        wall, thread, process, ended = (then - before for then, before in found)
        if self.by_wall:
            return wall
        # The main thread takes part in all work, so that its time is that of the others, too, but
        # where they wait for the same core.
        return max(thread, process / self._threads) + ended / self._workers


# Seconds: of the wall, this thread, this process, and the processes of its that ended.
Moment = tuple[float, float, float, float]


def now() -> Moment:
    """Where a clock begins."""
    times = os.times()
    ended = times.children_user + times.children_system
    return time.monotonic(), time.thread_time(), time.process_time(), ended


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


class Pace:
    """How long a step takes, in the mean of the last ones."""

    def __init__(self) -> None:
        self._steps: deque[float] = deque(maxlen=WINDOW)
        self._last: float | None = None

    def begin(self, now: float) -> None:
        """Begin to measure, after what is no step."""
        self._last = now

    def step(self, now: float) -> None:
        """Note that a step ended."""
        if self._last is not None:
            self._steps.append(now - self._last)
        self._last = now

    @property
    def seconds(self) -> float:
        """Seconds a step; 0 before the first."""
        return sum(self._steps) / len(self._steps) if self._steps else 0.0


@dataclass(frozen=True)
class Work:
    """What is still to be done: steps, of which an epoch has so many, and questions to predict.

    ``validated`` are predicted after each epoch, ``scored`` after the training; ``batch`` are the
    examples of a step.
    """

    steps: int
    epoch: int
    batch: int
    validated: int
    scored: int

    def fitting(
        self, seconds: float, step: float, question: float, most: float = float("inf")
    ) -> int:
        """The steps that fit into so many seconds; those of the work where all do.

        ``step`` and ``question`` are the seconds of each; 0: not yet known. ``most`` seconds are
        kept for scoring, which does less where that is not enough.
        """
        tolerance = TOLERANCE if question else DOUBT
        question = question or GUESS * step / self.batch
        validation = self.validated * question
        left = seconds - min(self.scored * question, most)
        validations = -(-self.steps // self.epoch)
        if self.steps * step + validations * validation <= left * (1 + tolerance):
            return self.steps
        share = step + validation / self.epoch
        fits = int((left - validation) / share) if share > 0 else self.steps
        return max(0, min(self.steps, fits))


def duration(seconds: float) -> str:
    """Some seconds in words, as exact as an estimate is.

    >>> duration(42), duration(1800), duration(9000)
    ('about 42 s', 'about 30 minutes', 'about 2.5 hours')
    """
    if seconds < 100:
        return f"about {seconds:.0f} s"
    hours = seconds / 3600
    return f"about {seconds / 60:.0f} minutes" if hours < 2 else f"about {hours:.1f} hours"
