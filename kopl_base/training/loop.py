"""The loop of a training: epochs over the examples, a checkpoint after each, stopping, going on.

A run's folder has ``best.safetensors``, ``last.safetensors``, what `kopl_base.training.history`
writes, and ``resume.pt``, from which a training goes on exactly where it stopped.
"""

from __future__ import annotations

import contextlib
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from kopl_base.errors import wrapped
from kopl_base.progress import Progress
from kopl_base.training.checkpoint import CheckpointError, write_state, write_weights
from kopl_base.training.clock import (
    BEGIN,
    EVERY,
    GUESS,
    SCORING,
    TOLD,
    Clock,
    Pace,
    Work,
    duration,
)
from kopl_base.training.distributed import Distributed
from kopl_base.training.history import PLANS, History, read_plans
from kopl_base.training.optimizer import (
    Item,
    Learner,
    Optimizer,
    Options,
    StepResult,
    batches,
)


@dataclass
class TrainingProgress:
    """How far a training is: epochs, batches of the next one, all steps; sums since it began."""

    epoch: int = 0
    batch: int = 0
    step: int = 0
    seconds: float = 0.0
    best: float = -1.0
    loss: float = 0.0
    accuracy: float = 0.0
    # Of a training that is to end with its time: the limit in minutes that it was planned for, the
    # seconds before the first step, those of a predicted question, the share of the schedule that
    # is done, and the steps that are planned (-1: all, and the schedule goes by the steps).
    minutes: float = 0.0
    prepared: float = 0.0
    question: float = 0.0
    share: float = 0.0
    left: int = -1
    look: float = 0.0  # the seconds after which the plan is looked at again

    def __post_init__(self) -> None:
        """Raise ValueError for what no training counts, which only a damaged file has."""
        for name, value in vars(self).items():
            counted = name in ("epoch", "batch", "step", "left")
            least = -1 if name == "left" else 0
            if not isinstance(value, int if counted else int | float) or (
                counted and value < least
            ):
                raise ValueError(f"the progress has the {name} {value!r}")


class _Figures:
    """The loss and accuracy that are told of an epoch, smoothed over about twenty batches."""

    def __init__(self) -> None:
        self._begin, self._examples = time.monotonic(), 0
        self._loss: float | None = None
        self._accuracy = 0.0

    def add(self, step: StepResult, examples: int) -> str:
        """The figures with those of a step on so many examples."""
        self._examples += examples
        if self._loss is None:
            self._loss, self._accuracy = step.loss, step.accuracy
        self._loss += (step.loss - self._loss) / 20
        self._accuracy += (step.accuracy - self._accuracy) / 20
        return f"loss {self._loss:.3f}, right {self._accuracy:.1%}, {self.speed:.0f} examples/s"

    @property
    def speed(self) -> float:
        """Examples a second."""
        return self._examples / max(1e-9, time.monotonic() - self._begin)


class TrainingLoop(ABC):
    """Trains a network; `run` goes on until the end, a signal or the time limit.

    ``clock`` counts the work of the command from its begin on. ``validated`` examples choose the
    best epoch; ``after`` are to be predicted after the training, in the same time.
    """

    def __init__(
        self, folder: Path, learner: Learner, options: Options, distributed: Distributed,
        items: Sequence[Item], *, seed: int, clock: Clock, validated: int, after: int = 0,
    ) -> None:  # fmt: skip
        self.folder, self.learner, self.options = folder, learner, options
        self.distributed, self.items, self.seed = distributed, items, seed
        self.clock, self.validated, self.after = clock, validated, after
        self.optimizer = Optimizer(learner, options, distributed, seed)
        self.progress = TrainingProgress()
        self._pace = Pace()
        self._plans: dict[int, int] = {}
        self._before = 0.0  # seconds of the trainings that this one goes on with
        self._saved = time.monotonic()
        self._stop = False

    # --- what the examples are about -------------------------------------------------------------

    @abstractmethod
    def validate(self) -> tuple[float, int]:
        """How many are right of the examples that choose the best epoch, and how many those are.

        Both count this process's share; what is right in part may count as a fraction. Raises
        TrainingError where the network's scores are no numbers.
        """

    @abstractmethod
    def told(self, share: float) -> str:
        """What to tell of the share that is right, as "accuracy 50.0% on 10 examples"."""

    @abstractmethod
    def history(self) -> History:
        """Where the history of the run is written."""

    @abstractmethod
    def marks(self) -> dict[str, Any]:
        """What must be the same for another training to go on with this one; plain values."""

    # --- running ---------------------------------------------------------------------------------

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on where a training stopped, whose state it saved.

        Raises CheckpointError when the state is of another network.
        """
        try:
            self.learner.network.load_state_dict(state["network"])
            self.optimizer.optimizer.load_state_dict(state["optimizer"])
            self.progress = TrainingProgress(**state["progress"])
            self._before = float(self.progress.seconds)
        except (
            ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError,
        ) as error:  # fmt: skip
            reason = " ".join(str(error).split())
            raise CheckpointError(
                f"{self.folder / 'resume.pt'}: the saved state does not fit the run; it is damaged"
                f" or of another run: {reason[:200]}"
            ) from None

    def run(self) -> bool:
        """Train; False when a signal stopped it.

        Raises TrainingError when the loss is no number or the memory is not enough.
        """
        progress, options = self.progress, self.options
        if not progress.step:
            progress.prepared = self.seconds()
        if progress.minutes != options.minutes:  # with another limit, the schedule is another one
            progress.minutes, progress.left = options.minutes, -1
            if self.distributed.main:
                (self.folder / PLANS).unlink(missing_ok=True)
        self._plans = self.distributed.first(lambda: read_plans(self.folder))
        with self._signals(), self.history() as history:
            history.cut(progress.step)
            while self.progress.epoch < options.epochs and not self._stop and self.progress.left:
                self._epoch(history)
        if self.interrupted:
            self.distributed.say(f"interrupted; go on with --resume {self.folder}")
        return not self.interrupted

    @property
    def interrupted(self) -> bool:
        """Whether a signal stopped the training before its end."""
        return self._stop and self.progress.epoch < self.options.epochs

    @property
    def epochs(self) -> float:
        """The epochs that are done, the last one perhaps in part."""
        return self.progress.epoch + self.progress.batch / self._batches

    @property
    def stopped(self) -> str:
        """What to tell of a training that its time ended before its epochs did; else ""."""
        options = self.options
        if self.interrupted or self.progress.epoch >= options.epochs:
            return ""
        return (
            f"stopped after {self.epochs:.3g} of {options.epochs} epochs by training.minutes"
            f" ({options.minutes:g})"
        )

    @property
    def limit(self) -> float:
        """The seconds that the command may take; half of it follows the questions."""
        limit = self.progress.minutes * 60
        return max(limit, self.progress.prepared + limit / 2) if limit else 0.0

    @property
    def examples(self) -> int:
        """The examples of an epoch."""
        return len(self.items)

    @property
    def _batches(self) -> int:
        return -(-self.examples // self.options.batch)

    def seconds(self) -> float:
        """The work since the begin, with that of the trainings before."""
        return self._before + self.clock.seconds()

    def _epoch(self, history: History) -> None:
        progress, options = self.progress, self.options
        parts = self.parts(progress.epoch)
        total = options.epochs * len(parts)
        self.learner.network.train()
        title = f"epoch {progress.epoch + 1}/{options.epochs}"
        done_before = min(self.examples, progress.batch * options.batch)
        self._pace.begin(self.clock.seconds())
        figures = _Figures()
        shown = None if self.distributed.main else False
        with Progress(title, self.examples, shown=shown, noted=True) as told:
            told.reach(done_before)
            while progress.batch < len(parts):
                items = parts[progress.batch]
                done = progress.epoch * len(parts) + progress.batch
                bound = progress.left >= 0
                step = self.step(items, done, total, progress.share * total if bound else None)
                progress.batch, progress.step = progress.batch + 1, done + 1
                progress.loss += step.loss
                progress.accuracy += step.accuracy * len(items)
                told.reach(told.done + len(items), figures.add(step, len(items)))
                history.step(progress.step, step)
                self._pace.step(self.clock.seconds())
                save, planned = self._agree(len(parts), total)
                self._plan(planned, history, total)
                if progress.step == EVERY:
                    self._foretell(len(parts), total)
                ended = self._stop or not progress.left
                if ended and progress.batch < len(parts):
                    break
                if save and progress.batch < len(parts):
                    history.flush()
                    self._save()
            speed = figures.speed
        if self._stop and progress.batch < len(parts):
            self._save()
        else:
            self._validate(speed, history)

    def parts(self, epoch: int) -> Sequence[Sequence[Item]]:
        """The batches of an epoch, the same whenever they are asked for.

        There are as many in each epoch, all of ``options.batch`` items but the last one.
        """
        return batches(self.items, self.options.batch, Random(f"{self.seed}/{epoch}"))

    def step(
        self, items: Sequence[Item], done: int, total: int, reached: float | None = None
    ) -> StepResult:
        """One step of the optimizer on a batch."""
        return self.optimizer.step(items, done, total, reached)

    # --- the time ------------------------------------------------------------------------------

    def _agree(self, epoch: int, total: int) -> tuple[bool, int]:
        """Whether to save and the steps to plan (-1: as before), as the first process finds.

        A signal to any process stops all.
        """
        save = False
        if self.distributed.main:
            every = self.options.checkpoint * 60
            save = 0 < every < time.monotonic() - self._saved
            planned = self._planned(epoch, total)
        else:
            planned = 0  # the plans of all are summed, and only the first process makes one
        stop, saving, steps = self.distributed.totals(self._stop, save, planned)
        self._stop = stop > 0
        return saving > 0, int(steps)

    def _planned(self, epoch: int, total: int) -> int:
        """How many steps are to follow, -1 where the plan is not to be looked at now."""
        progress = self.progress
        limit = progress.minutes * 60
        if progress.step in self._plans:
            progress.look = self.seconds() + BEGIN * limit
            return self._plans[progress.step]
        if not limit or progress.step < max(self._plans, default=0):
            return -1
        used, pause = self.seconds(), BEGIN * limit
        limit = self.limit
        if progress.step % EVERY and progress.left and used < progress.look:
            return -1
        if progress.step < EVERY and used - progress.prepared < pause:
            return -1
        progress.look = used + pause
        work = Work(total - progress.step, epoch, self.options.batch, self.validated, self.after)
        return work.fitting(limit - used, self._pace.seconds, progress.question, SCORING * limit)

    def _plan(self, planned: int, history: History, total: int) -> None:
        """Go on along the schedule by the step just made, then by another plan, if there is one.

        The schedule goes by steps until they do not all fit; from then on what is left of it is
        spread over the steps that do.
        """
        progress = self.progress
        if progress.left >= 0:
            progress.share += (1 - progress.share) / max(1, progress.left)
            progress.left = max(0, progress.left - 1)
        if planned < 0 or (progress.left < 0 and planned == total - progress.step):
            return
        if progress.left < 0:
            progress.share = progress.step / total
            self.distributed.say(wrapped(
                f"{(progress.step + planned) * self.options.epochs / total:.2g} of"
                f" {self.options.epochs} epochs fit into training.minutes"
                f" ({progress.minutes:g}); the learning rate falls to its end in that time"
            ))  # fmt: skip
        progress.left = planned
        if progress.step not in self._plans:
            history.plan(progress.step, planned)

    def _foretell(self, epoch: int, total: int) -> None:
        """Say what the training will take, as its first steps went."""
        if self.progress.left < 0 and not self.progress.epoch:
            step = self._pace.seconds
            validation = GUESS * step / self.options.batch * self.validated
            seconds = (total - EVERY) * (step + validation / epoch)
            if seconds >= TOLD:
                self.distributed.say(f"training: {duration(seconds)} on this machine")

    # --- after an epoch ------------------------------------------------------------------------

    def _validate(self, speed: float, history: History) -> None:
        """Score the weights, keep the best, save; also in an epoch that the time has cut off."""
        progress, options = self.progress, self.options
        begin = self.clock.seconds()
        right, asked = self.validate()
        if asked:
            progress.question = (self.clock.seconds() - begin) / self.validated
        right_of_all, of_all = self.distributed.totals(right, asked)
        share = right_of_all / of_all if of_all else 0.0
        whole = progress.batch >= self._batches
        seen = min(self.examples, progress.batch * options.batch)
        record = {
            "epoch": progress.epoch + 1 if whole else round(self.epochs, 3),
            "loss": progress.loss / max(1, progress.batch),
            "accuracy": progress.accuracy / max(1, seen), "validation": share,
            "examples a second": round(speed, 1),
            "seconds": round(self.seconds() - progress.prepared, 1),
        }  # fmt: skip
        better = share >= progress.best  # of equals the later one: it saw more
        if better:
            progress.best = share
        if whole:
            progress.epoch, progress.batch = progress.epoch + 1, 0
            progress.loss = progress.accuracy = 0.0
        if better and self.distributed.main:
            write_weights(self.learner.network, self.folder / "best.safetensors")
        self._save()
        history.epoch(record)
        self.distributed.say(wrapped(
            f"epoch {record['epoch']}/{options.epochs}: loss {record['loss']:.4f},"
            f" {record['accuracy']:.1%} right, {speed:.0f} examples/s;"
            f" {self.told(share)}"
            f"{' (best)' if better else ''}, {record['seconds']:.0f} s"
        ))  # fmt: skip

    def _save(self) -> None:
        self._saved = time.monotonic()
        self.progress.seconds = self.seconds()
        if not self.distributed.main:
            return
        write_weights(self.learner.network, self.folder / "last.safetensors")
        state = {
            "network": self.learner.network.state_dict(),
            "optimizer": self.optimizer.optimizer.state_dict(),
            "progress": vars(self.progress),
            **self.marks(),
        }
        write_state(state, self.folder / "resume.pt")

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Let an interrupt finish the batch at hand and save; a second one stops at once."""

        def note(number: int, frame: FrameType | None) -> None:
            if self._stop:
                raise KeyboardInterrupt
            self._stop = True

        before: dict[signal.Signals, Any] = {}
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                before[number] = signal.signal(number, note)
        except ValueError:  # not in the main thread: signals stay as they are
            before = {}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
