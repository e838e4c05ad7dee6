"""How long a command may take: a clock of the work done, the questions and steps that fit.

Time is that of the processor where the work is done on one, so that a busy machine does not shorten
a training; on another device it is the wall's.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# Of the time, the most that making questions takes, the most that is kept for scoring, and the
# least that scoring gets.
MAKING, SCORING, LEAST_SCORING = 0.4, 0.25, 0.1
# What is over sooner, in seconds, is not told before.
TOLD = 10.0
# A question of ``kopl ask``, a search of some beams that are run, takes as long as so many of a
# greedy search; questions that are scored or calibrated on at least, where there are so many.
ASKING_COST, LEAST = 20, 20
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


class Making:
    """How many questions are made, ``count`` or as many as fit into ``share`` seconds of work.

    The share is of ``limit`` seconds for all; no limit where both are 0. ``say`` is told what
    making will take, and where fewer are made. They are made in blocks of so many questions.
    ``wall`` gives the time that passes meanwhile.
    """

    def __init__(
        self, count: int, block: int, workers: int, limit: float, share: float,
        say: Callable[[str], None], wall: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.count, self._all, self._block, self._workers = count, count, block, workers
        self._limit, self._share, self._say, self._wall = limit, share, say, wall
        self._begin = wall()
        self._blocks, self._worked, self._prepared = 0, 0.0, 0.0
        self._told = False

    def __call__(self, kept: int, seconds: float, prepared: float) -> int:
        """The number, after a block of so many seconds of work, its worker prepared in others."""
        self._blocks += 1
        self._worked += seconds / self._workers
        self._prepared = max(self._prepared, prepared)
        used = self._prepared + self._worked
        if kept == 0 or (self._blocks < min(2, self._workers) and used < self._share / 2):
            return self.count
        each = self._worked / kept
        whole = used + (self.count - kept) * each
        tolerance = 1 + (DOUBT if self.count < self._all else TOLERANCE)
        if self._limit and whole > tolerance * self._share and kept < self.count:
            fits = kept + int((self._share - used) / each) if each else self.count
            fewer = max(kept, min(self._block, self.count), fits // self._block * self._block)
            if fewer < self.count:
                self.count = fewer
                minutes = (used + (self._all - kept) * each) / 60
                self._say(
                    f"making {fewer:,} of {self._all:,} questions, as all would take"
                    f" {minutes:.1f} of training.minutes ({self._limit / 60:g})"
                )
        if not self._told and self._blocks >= min(2, self._workers):
            self._told = True
            # Where others use the machine, too, the time passes more quickly than the work.
            slower = max(1.0, (self._wall() - self._begin) / used) if used else 1.0
            left = (self.count - kept) * each * slower
            if left >= TOLD:
                self._say(f"making {self.count:,} questions: about {left:.0f} s more")
        return self.count


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


@dataclass(frozen=True)
class Scoring:
    """What follows a training: test questions, and those that temperatures are fitted on.

    ``tested`` and ``fitted`` are predicted once for each of the ``decodings``, ``asking`` by what
    ``kopl ask`` does.
    """

    tested: int
    fitted: int
    asking: int
    decodings: int = 1

    @property
    def cost(self) -> int:
        """All of it, as so many questions of a greedy search."""
        return self.decodings * (self.tested + self.fitted) + ASKING_COST * self.asking

    def within(self, seconds: float, question: float) -> Scoring:
        """As much of it as fits into so many seconds, ``question`` of them each (0: not known).

        Of each part some questions stay in any case.
        """
        if self.cost * question <= seconds * (1 + DOUBT):
            return self
        searches = self.decodings * (self.tested + self.fitted)
        fits = seconds / question
        asking = _between(LEAST, (fits - searches) / ASKING_COST, self.asking)
        share = (fits - ASKING_COST * asking) / max(1, searches)
        return Scoring(
            _between(LEAST, share * self.tested, self.tested),
            _between(LEAST, share * self.fitted, self.fitted), asking, self.decodings,
        )  # fmt: skip


def _between(least: int, wanted: float, most: int) -> int:
    return min(most, max(least, int(wanted)))
