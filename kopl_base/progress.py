"""How far long work is: a bar on a terminal, and only once the work takes a while.

With the environment's KOPL_PROGRESS a program reads it, too: that file gets a JSON line at the
begin of each piece of work, twice a second meanwhile and at its end::

    {"title": "epoch 1/5", "done": 512.0, "total": 4000.0, "left": 31.5, "note": "loss 0.412",
     "ended": false, "process": 4711}

``total`` and ``left`` (seconds) are null where they are not known. Several processes may write to
one file, which each line tells apart.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType

log = logging.getLogger("kb")

PATIENCE = 0.7  # seconds before a bar is worth showing

# Seconds, or the share of the time passed where that is more, in which the end that is told goes
# most of the way to the end that is expected.
CALM, CALM_SHARE = 5.0, 0.1
LEAST = 30.0  # seconds that a speed is the mean of, at least
LONG = 600.0  # seconds of work that are told beforehand, where there is something to be done
MOMENT = 0.2  # seconds of which the first and the last point are kept

FILE = "KOPL_PROGRESS"  # the variable that names a file for programs
OFTEN = 0.5  # seconds between its lines


def about(seconds: float) -> str:
    """A long time in words: "15 minutes", "3.5 hours", "104 days".

    >>> about(900)
    '15 minutes'
    """
    for unit, size in (("days", 86_400), ("hours", 3600)):
        if seconds >= 2 * size:
            count = seconds / size
            return f"{count:.1f} {unit}" if count < 9.95 else f"{count:,.0f} {unit}"
    return f"{seconds / 60:.0f} minutes"


class TimeLeft:
    """What some work will still take, told without jumps.

    Work often comes in bursts, as from several processes: the mean of the last half of the time
    says more than the last seconds do, and what is told moves towards it bit by bit.
    """

    def __init__(self, total: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._total, self._clock = total, clock
        self._points: deque[tuple[float, float]] = deque()
        self._begin = self._last = self._end = 0.0
        self._known = False

    def reach(self, done: float) -> None:
        """Say how much is done in all; what is done at the first call took no time."""
        now = self._clock()
        if not self._points:
            self._begin = self._last = now
        elif done <= self._points[-1][1]:
            return
        if len(self._points) > 2 and now - self._points[-2][0] < MOMENT:
            self._points.pop()
        self._points.append((now, done))
        passed = now - self._begin
        while len(self._points) > 2 and self._points[1][0] <= now - max(LEAST, passed / 2):
            self._points.popleft()
        begin, before = self._points[0]
        if passed < CALM or done <= before:
            return
        # What begins a burst came of time that the rest of the burst came of, too.
        end, until = self._points[-2] if now - self._points[-2][0] >= MOMENT else (now, done)
        if until <= before:
            end, until = now, done
        expected = now + (self._total - done) * (end - begin) / (until - before)
        if not self._known:
            self._known, self._end = True, expected
        else:
            period = max(CALM, CALM_SHARE * passed)
            self._end += (expected - self._end) * -math.expm1((self._last - now) / period)
        self._last = now

    @property
    def seconds(self) -> float | None:
        """The seconds left, None where nothing is known yet."""
        return max(0.0, self._end - self._clock()) if self._known else None

    def __str__(self) -> str:
        if self.seconds is None:
            return "-:--:--"
        minutes, seconds = divmod(round(self.seconds), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


class Progress:
    """Tells how far some work is: every long work of the toolkit says it here.

    It is drawn as a `Bar`, unless standard error is not a terminal, and written as `Lines` where
    KOPL_PROGRESS names a file; ``shown`` False is neither. What `reach` is given first is
    where the work begins: it took no time. With an ``advice``, work that will take more than `LONG`
    is told once as a warning, the advice behind it, bar or not. ``noted``: a note of what else is
    known takes the place of the percentage.

    >>> with Progress("reading", total=3) as progress:
    ...     progress.advance(1)
    """

    def __init__(
        self,
        title: str,
        total: float | None,
        *,
        shown: bool | None = None,
        advice: str | None = None,
        noted: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.title, self.total, self.noted = title, total, noted
        self.done = 0.0
        self.time_left = TimeLeft(total or 0.0, clock)
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._advice, self._clock = advice, clock
        self._began = clock()
        self._bar: Bar | None = None
        file = os.environ.get(FILE) if shown is not False else None
        self._lines = Lines(file, self, clock) if file else None

    def __enter__(self) -> Progress:
        if self._lines is not None:
            self._lines.tell("")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        if self._lines is not None:
            self._lines.close()

    def advance(self, amount: float) -> None:
        """Say that this much more is done."""
        self.reach(self.done + amount)

    @property
    def left(self) -> float | None:
        """The seconds left, None where nothing is known yet."""
        return self.time_left.seconds

    def reach(self, done: float, note: str = "") -> None:
        """Say how much is done in all."""
        self.done = done
        self.time_left.reach(done)
        self._tell()
        if self._lines is not None:
            self._lines.show(note)
        if not self._shown:
            return
        if self._bar is None and self._clock() - self._began >= PATIENCE:
            self._bar = Bar(self)
        if self._bar is not None:
            self._bar.show(note)

    def quiet(self) -> None:
        """Write no more lines for programs."""
        self._lines = None

    def _tell(self) -> None:
        left = self.left
        if self._advice is None or left is None or left <= LONG:
            return
        log.warning("%s will take about %s at this pace; %s", self.title, about(left), self._advice)
        self._advice = None


class Lines:
    """The progress of some work as lines of a file, which another program reads."""

    def __init__(self, file: str, progress: Progress, clock: Callable[[], float]) -> None:
        self._file, self._progress, self._clock = file, progress, clock
        self._told, self._note = clock(), ""  # what takes no time has no lines
        self._begun = False

    def show(self, note: str) -> None:
        """Write how far it is, unless that was written a moment ago."""
        self._note = note
        if self._clock() - self._told >= OFTEN:
            self.tell(note)

    def close(self) -> None:
        """Write that it has ended."""
        if self._begun:
            self.tell(self._note, ended=True)

    def tell(self, note: str, *, ended: bool = False) -> None:
        """Write how far it is."""
        progress = self._progress
        self._told, self._begun = self._clock(), True
        left = progress.left
        line = {
            "title": progress.title, "done": progress.done, "total": progress.total,
            "left": None if left is None else round(left, 1), "note": note, "ended": ended,
            "process": os.getpid(),
        }  # fmt: skip
        try:
            with open(self._file, "ab", buffering=0) as file:  # one write: lines stay whole
                file.write(json.dumps(line).encode() + b"\n")
        except OSError as error:
            log.warning("%s=%s: cannot be written: %s", FILE, self._file, error.strerror)
            progress.quiet()


class Bar:
    """The progress of some work as a bar on a terminal, which goes away at its end."""

    def __init__(self, progress: Progress) -> None:
        # Imported here: start-up must not pay for a bar that is never drawn.
        from rich import progress as rich
        from rich.console import Console
        from rich.text import Text

        class Left(rich.ProgressColumn):
            max_refresh = 0.5

            def render(self, task: rich.Task) -> Text:
                return Text(str(progress.time_left), style="progress.remaining")

        figures = rich.TextColumn("{task.fields[note]}") if progress.noted else None
        columns = [rich.TextColumn("{task.description}"), rich.BarColumn()]
        columns.append(figures or rich.TaskProgressColumn())
        if progress.total is not None:
            columns.append(Left())
        self._progress = progress
        self.drawn = rich.Progress(*columns, console=Console(stderr=True), transient=True)
        self.drawn.start()
        self._task = self.drawn.add_task(progress.title, total=progress.total, note="")

    def show(self, note: str) -> None:
        """Draw how far it is."""
        self.drawn.update(self._task, completed=self._progress.done, note=note)

    def close(self) -> None:
        """Take it away."""
        self.drawn.stop()
