"""How a training's minutes are shared: making the questions before it, scoring and calibrating."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kopl_base.errors import wrapped
from kopl_base.training.clock import DOUBT, TOLD, TOLERANCE, duration

if TYPE_CHECKING:
    from parsers.training import Trainer

# Of the time, the most that making questions takes, and the least that scoring gets.
MAKING, LEAST_SCORING = 0.4, 0.1
# For each question that the temperature of asking is fitted on, so many with answers by which a
# run learns to be silent, and as many without; the same again over other schemas.
SILENCE = 1
# A question of ``kopl ask``, a search of some beams that are run, takes as long as so many of a
# greedy search; those of silence are counted with it.
ASKING_COST = 20 * (1 + 4 * SILENCE)
# Questions that are scored or calibrated on at least, where there are so many.
LEAST = 20


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
        used = self.used
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

    @property
    def used(self) -> float:
        """The seconds of work so far, as if each worker had a core."""
        return self._prepared + self._worked


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


def scoring_in_time(whole: Scoring, trainer: Trainer) -> tuple[Scoring, str]:
    """What is scored in the time that a training left, and what to say of that: "" for nothing."""
    told = []
    fits, question = whole, trainer.progress.question
    if limit := trainer.limit:
        left = max(limit - trainer.seconds(), LEAST_SCORING * limit)
        fits = whole.within(left, question)
    if fits != whole:
        told.append(
            f"scoring the first {fits.tested:,} of {whole.tested:,} test questions and"
            f" calibrating on {fits.asking:,} of {whole.asking:,}: all would not fit into"
            f" training.minutes ({trainer.progress.minutes:g})"
        )
    if (seconds := fits.cost * question) >= TOLD:
        told.append(f"scoring and calibrating: {duration(seconds)}")
    return fits, "\n".join(map(wrapped, told))
