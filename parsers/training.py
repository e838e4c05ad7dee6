"""Training: epochs over the examples, a checkpoint after each, stopping and going on exactly."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import torch

from kb import KnowledgeBase
from kopl.example import Example
from parsers import budget
from parsers.budget import Clock, Pace, Scoring, Work
from parsers.checkpoint import (
    CheckpointError,
    Description,
    lasting,
    read_run,
    read_state,
    restore,
    unfitting,
    write_description,
    write_run,
    write_settings,
    write_state,
    write_weights,
)
from parsers.evaluation import evaluate
from parsers.history import PLANS, History, check_trackers, read_plans
from parsers.memory import is_out_of_memory
from parsers.meter import Meter
from parsers.models import class_of
from parsers.models.base import Item, Model, NotFiniteError, batches
from parsers.optimizing import Optimizer, Step, TrainingError
from parsers.settings import Settings, SettingsError, flat
from parsers.transfer import check_start, start_from
from parsers.world import World, wrapped


@dataclass
class Progress:
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


# What a training may be resumed with although it began with another one: how long it goes on,
# where things are, what is told of it. That the knowledge base and the questions are the same is
# checked by what they say; `training.part` is to be lowered when the memory is not enough.
MAY_CHANGE = frozenset(
    ["kb", "output", "device", "memory", "threads", "paper", "plots", "tensorboard", "wandb",
     "training.epochs", "training.minutes", "training.checkpoint", "training.part"]
)  # fmt: skip


def kept(settings: Settings) -> dict[str, Any]:
    """The settings that a training must be resumed with, by name."""
    every = flat(dataclasses.asdict(settings))
    return {name: value for name, value in every if name not in MAY_CHANGE}


class Trainer:
    """Trains one model; `run` goes on until the end, a signal or the time limit.

    ``clock`` counts the work of the command from its begin on; ``scored`` questions are to be
    predicted after the training, in the same time.
    """

    def __init__(
        self, folder: Path, model: Model, world: World, train: Sequence[Item],
        valid: Sequence[Example], clock: Clock | None = None, scored: int = 0,
    ) -> None:  # fmt: skip
        self.folder, self.model, self.world = folder, model, world
        self.settings = model.settings
        self.train, self.valid, self.scored = train, valid, scored
        self.optimizer = Optimizer(model, world)
        self.clock = clock or Clock(world.device, self.settings.threads)
        self.progress = Progress()
        self._pace = Pace()
        self._plans: dict[int, int] = {}
        self._before = 0.0  # seconds of the trainings that this one goes on with
        self._saved = time.monotonic()
        self._stop = False

    @cached_property
    def questions_mark(self) -> str:
        """A fingerprint of the questions, in their order, and of their programs."""
        found = hashlib.sha256()
        for example in (*(item.example for item in self.train), *self.valid):
            found.update(f"{example.question}\n{example.program}\n".encode())
        return found.hexdigest()

    def resume(self, state: dict[str, Any]) -> None:
        """Go on where a training stopped, whose state `saved_state` gave.

        Raises CheckpointError when the questions are others, or the state is of another network.
        """
        if state["questions"] != self.questions_mark:
            raise CheckpointError(
                f"{self.folder}: train.jsonl or valid.jsonl is not what the training began with;"
                " put the old file back, or begin a new run"
            )
        try:
            self.model.network.load_state_dict(state["network"])
            self.optimizer.optimizer.load_state_dict(state["optimizer"])
            self.progress = Progress(**state["progress"])
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
        progress, training = self.progress, self.settings.training
        if not progress.step:
            progress.prepared = self._seconds()
        if progress.minutes != training.minutes:  # with another limit, the schedule is another one
            progress.minutes, progress.left = training.minutes, -1
            if self.world.main:
                (self.folder / PLANS).unlink(missing_ok=True)
        self._plans = self.world.first(lambda: read_plans(self.folder))
        with self._signals(), History(self.folder, self.settings, self.world.main) as history:
            history.cut(progress.step)
            while self.progress.epoch < training.epochs and not self._stop and self.progress.left:
                self._epoch(history)
        if self.interrupted:
            self.world.say(f"interrupted; go on with --resume {self.folder}")
        return not self.interrupted

    @property
    def interrupted(self) -> bool:
        """Whether a signal stopped the training before its end."""
        return self._stop and self.progress.epoch < self.settings.training.epochs

    @property
    def epochs(self) -> float:
        """The epochs that are done, the last one perhaps in part."""
        return self.progress.epoch + self.progress.batch / self._batches

    @property
    def stopped(self) -> str:
        """What to tell of a training that its time ended before its epochs did; else ""."""
        training = self.settings.training
        if self.interrupted or self.progress.epoch >= training.epochs:
            return ""
        return (
            f"stopped after {self.epochs:.3g} of {training.epochs} epochs by training.minutes"
            f" ({training.minutes:g})"
        )

    def scoring(self, whole: Scoring) -> tuple[Scoring, str]:
        """What is scored in the time that is left, and what to say of that: "" for nothing."""
        limit, told = self._limit, []
        fits = whole
        if limit:
            left = max(limit - self._seconds(), budget.LEAST_SCORING * limit)
            fits = whole.within(left, self.progress.question)
        if fits != whole:
            told.append(
                f"scoring the first {fits.tested:,} of {whole.tested:,} test questions and"
                f" calibrating on {fits.asking:,} of {whole.asking:,}: all would not fit into"
                f" training.minutes ({self.progress.minutes:g})"
            )
        if (seconds := fits.cost * self.progress.question) >= budget.TOLD:
            told.append(f"scoring and calibrating: {_duration(seconds)}")
        return fits, "\n".join(map(wrapped, told))

    @property
    def _limit(self) -> float:
        """The seconds that the command may take; half of it follows the questions."""
        limit = self.progress.minutes * 60
        return max(limit, self.progress.prepared + limit / 2) if limit else 0.0

    @property
    def _batches(self) -> int:
        return -(-len(self.train) // self.settings.training.batch)

    def _seconds(self) -> float:
        """The work since the begin, with that of the trainings before."""
        return self._before + self.clock.seconds()

    def _epoch(self, history: History) -> None:
        progress, training = self.progress, self.settings.training
        random = Random(f"{self.settings.seed}/{progress.epoch}")
        parts = batches(self.train, training.batch, random)
        total = training.epochs * len(parts)
        self.model.network.train()
        title = f"epoch {progress.epoch + 1}/{training.epochs}"
        done_before = sum(map(len, parts[: progress.batch]))
        self._pace.begin(self.clock.seconds())
        with Meter(title, len(self.train), done_before, shown=self.world.main) as meter:
            for items in parts[progress.batch :]:
                done = progress.epoch * len(parts) + progress.batch
                bound = progress.left >= 0
                step = self.step(items, done, total, progress.share * total if bound else None)
                progress.batch, progress.step = progress.batch + 1, done + 1
                progress.loss += step.loss
                progress.accuracy += step.accuracy * len(items)
                meter.advance(len(items), loss=step.loss, accuracy=step.accuracy)
                history.step(progress.step, step)
                self._pace.step(self.clock.seconds())
                save, planned = self._agree(len(parts), total)
                self._plan(planned, history, total)
                if progress.step == budget.EVERY:
                    self._foretell(len(parts), total)
                ended = self._stop or not progress.left
                if ended and progress.batch < len(parts):
                    break
                if save and progress.batch < len(parts):
                    history.flush()
                    self._save()
            speed = meter.speed
        if self._stop and progress.batch < len(parts):
            self._save()
        else:
            self._validate(speed, history)

    def step(
        self, items: Sequence[Item], done: int, total: int, reached: float | None = None
    ) -> Step:
        """One step of the optimizer on a batch."""
        return self.optimizer.step(items, done, total, reached)

    # --- the time ------------------------------------------------------------------------------

    def _agree(self, epoch: int, total: int) -> tuple[bool, int]:
        """Whether to save and the steps to plan (-1: as before), as the first process finds.

        A signal to any process stops all.
        """
        save, planned = False, -1
        if self.world.main:
            every = self.settings.training.checkpoint * 60
            save = 0 < every < time.monotonic() - self._saved
            planned = self._planned(epoch, total)
        stop, saving, steps = self.world.totals(self._stop, save, planned if self.world.main else 0)
        self._stop = stop > 0
        return saving > 0, int(steps)

    def _planned(self, epoch: int, total: int) -> int:
        """How many steps are to follow, -1 where the plan is not to be looked at now."""
        progress = self.progress
        limit = progress.minutes * 60
        if progress.step in self._plans:
            progress.look = self._seconds() + budget.BEGIN * limit
            return self._plans[progress.step]
        if not limit or progress.step < max(self._plans, default=0):
            return -1
        used, pause = self._seconds(), budget.BEGIN * limit
        limit = self._limit
        if progress.step % budget.EVERY and progress.left and used < progress.look:
            return -1
        if progress.step < budget.EVERY and used - progress.prepared < pause:
            return -1
        progress.look = used + pause
        work = Work(
            total - progress.step, epoch, self.settings.training.batch, len(self.valid), self.scored
        )
        return work.fitting(
            limit - used, self._pace.seconds, progress.question, budget.SCORING * limit
        )

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
            self.world.say(wrapped(
                f"{(progress.step + planned) * self.settings.training.epochs / total:.2g} of"
                f" {self.settings.training.epochs} epochs fit into training.minutes"
                f" ({progress.minutes:g}); the learning rate falls to its end in that time"
            ))  # fmt: skip
        progress.left = planned
        if progress.step not in self._plans:
            history.plan(progress.step, planned)

    def _foretell(self, epoch: int, total: int) -> None:
        """Say what the training will take, as its first steps went."""
        if self.progress.left < 0 and not self.progress.epoch:
            step = self._pace.seconds
            validation = budget.GUESS * step / self.settings.training.batch * len(self.valid)
            seconds = (total - budget.EVERY) * (step + validation / epoch)
            if seconds >= budget.TOLD:
                self.world.say(f"training: {_duration(seconds)} on this machine")

    # --- after an epoch ------------------------------------------------------------------------

    def _validate(self, speed: float, history: History) -> None:
        """Score the weights, keep the best, save; also in an epoch that the time has cut off."""
        progress, training = self.progress, self.settings.training
        begin = self.clock.seconds()
        try:
            with self.world.precise():
                report = evaluate(
                    self.model, self.world.share(self.valid), (),
                    constrained=self.settings.decoding == "constrained",
                )  # fmt: skip
        except NotFiniteError as error:
            raise TrainingError(f"validation after batch {progress.step}: {error}") from None
        if report.judged:
            progress.question = (self.clock.seconds() - begin) / len(self.valid)
        by_program = training.metric == "program"
        right, asked = self.world.totals(
            sum(one.same_form if by_program else one.right for one in report.judged),
            len(report.judged),
        )
        share = right / asked if asked else 0.0
        whole = progress.batch >= self._batches
        seen = min(len(self.train), progress.batch * training.batch)
        record = {
            "epoch": progress.epoch + 1 if whole else round(self.epochs, 3),
            "loss": progress.loss / max(1, progress.batch),
            "accuracy": progress.accuracy / max(1, seen), "validation": share,
            "examples a second": round(speed, 1),
            "seconds": round(self._seconds() - progress.prepared, 1),
        }  # fmt: skip
        better = share >= progress.best  # of equals the later one: it saw more
        if better:
            progress.best = share
        if whole:
            progress.epoch, progress.batch = progress.epoch + 1, 0
            progress.loss = progress.accuracy = 0.0
        if better and self.world.main:
            write_weights(self.model.network, self.folder / "best.safetensors")
        self._save()
        history.epoch(record)
        self.world.say(wrapped(
            f"epoch {record['epoch']}/{training.epochs}: loss {record['loss']:.4f},"
            f" {record['accuracy']:.1%} right, {speed:.0f} examples/s;"
            f" {'exact match' if by_program else 'execution accuracy'} {share:.1%} on"
            f" {len(self.valid)} validation questions"
            f"{' (best)' if better else ''}, {record['seconds']:.0f} s"
        ))  # fmt: skip

    def _save(self) -> None:
        self._saved = time.monotonic()
        self.progress.seconds = self._seconds()
        if not self.world.main:
            return
        write_weights(self.model.network, self.folder / "last.safetensors")
        state = {
            "network": self.model.network.state_dict(),
            "optimizer": self.optimizer.optimizer.state_dict(),
            "progress": vars(self.progress),
            "questions": self.questions_mark,
            "settings": kept(self.settings),
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


def _duration(seconds: float) -> str:
    """Some seconds in words, as exact as an estimate is."""
    if seconds < 100:
        return f"about {seconds:.0f} s"
    hours = seconds / 3600
    return f"about {seconds / 60:.0f} minutes" if hours < 2 else f"about {hours:.1f} hours"


def seeded(settings: Settings, world: World) -> None:
    """Make what follows depend on the seed alone."""
    torch.manual_seed(settings.seed)
    if world.device.type == "cpu":
        # Sums in a fixed order: without it, two threads give another network on every run.
        torch.use_deterministic_algorithms(True)
        # Nothing reads memory before it is written, so that need not be filled.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


def begin(
    folder: Path, settings: Settings, kb: KnowledgeBase, train: Sequence[Example],
    valid: Sequence[Example], world: World | None = None, clock: Clock | None = None,
    scored: int = 0,
) -> Trainer:  # fmt: skip
    """A trainer with a new run in an empty or new folder; the last two as of `Trainer`."""
    world = world or World.of(settings)
    seeded(settings, world)
    with _too_large_explained():
        model = class_of(settings.model).create(settings, kb, train)
    items, left = model.prepare(train)
    if left:
        [(reason, count)] = Counter(reason for _, reason in left).most_common(1)
        question = next(example.question for example, own in left if own == reason)
        shown = question if len(question) <= 200 else f"{question[:200]}…"
        world.say(wrapped(
            f"{len(left)} of {len(train)} training questions cannot be learnt, {count} of them as"
            f" {reason} (of: {shown})"
        ))  # fmt: skip
    if not items:
        raise TrainingError("none of the training questions can be learnt")
    if settings.start_from:
        world.say(start_from(model, Path(settings.start_from), kb))
    world.first(lambda: write_run(folder, model, Description.of(model, list(train))))
    with _too_large_explained():
        return Trainer(folder, model, world, items, valid, clock, scored)


def go_on(
    folder: Path, kb: KnowledgeBase, train: Sequence[Example], valid: Sequence[Example],
    world: World | None = None, clock: Clock | None = None, scored: int = 0,
    settings: Settings | None = None,
) -> Trainer:  # fmt: skip
    """A trainer that resumes the run in a folder, on the same examples.

    ``settings`` are kept with the run in place of its own; they may differ in `MAY_CHANGE`.
    Raises CheckpointError when there is nothing to go on from, it is damaged, or the knowledge
    base, the questions or the settings are not those that the training began with.
    """
    own, description = read_run(folder)
    settings = settings or own
    state = saved_state(folder, settings)
    if description.fingerprint != kb.fingerprint:
        raise CheckpointError(
            f"{folder}: the training began with another knowledge base ({description.kb}); go on"
            " with that one, or begin a new run"
        )
    world = world or World.of(settings)
    seeded(settings, world)
    model = restore(folder, kb, weights=None, settings=settings)
    if reason := unfitting(model.network, _shapes(state["network"])):
        raise CheckpointError(f"{folder / 'resume.pt'}: {reason}")
    items, _ = model.prepare(train)
    trainer = Trainer(folder, model, world, items, valid, clock, scored)
    trainer.resume(state)
    if settings != own:
        world.first(lambda: _changed(folder, settings, description))
    return trainer


def _changed(folder: Path, settings: Settings, description: Description) -> None:
    """Keep other settings with a run."""
    write_settings(folder, settings)
    if (kb := lasting(settings.kb)) != description.kb:
        write_description(folder, dataclasses.replace(description, kb=kb))


def _shapes(network: object) -> dict[str, Sequence[int]]:
    """The shapes of the saved tensors; what is none is left for loading to refuse."""
    if not isinstance(network, dict):
        return {}
    return {name: one.shape for name, one in network.items() if isinstance(one, torch.Tensor)}


def saved_state(folder: Path, settings: Settings) -> dict[str, Any]:
    """What a training saved to go on from.

    Raises CheckpointError when there is nothing, or when it began with other settings.
    """
    path = folder / "resume.pt"
    parts = ("network", "optimizer", "progress", "questions", "settings")
    state = read_state(path, parts)
    before, now = state["settings"], kept(settings)
    if not isinstance(before, dict):
        raise CheckpointError(f"{path}: the saved state is damaged: its settings are no mapping")
    names = [name for name in {**now, **before} if now.get(name) != before.get(name)]
    if names:
        told = ", ".join(f"{n} (was {before.get(n)!r}, is {now.get(n)!r})" for n in names)
        raise CheckpointError(
            f"{folder / 'settings.json'}: the training began with other settings: {told}; put them"
            " back, or begin a new run"
        )
    return state


def resumed(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """The settings of a run with what changes as it is gone on with.

    Raises SettingsError for a setting that must stay, and for ``output``: the run stays in its
    folder.
    """
    changed = settings.changed(changes)
    if changed.output != settings.output:
        raise SettingsError(
            "output cannot change as a training goes on: the run stays in its folder; move the"
            f" folder to {changed.output} and go on with --resume {changed.output}"
        )
    before, now = kept(settings), kept(changed)
    if names := [name for name in before if now[name] != before[name]]:
        raise SettingsError(
            f"{', '.join(names)} must stay as a training goes on; what may change:"
            f" {', '.join(sorted(MAY_CHANGE - {'output'}))}"
        )
    return changed


def check(settings: Settings) -> None:
    """Raise a KoplError for what would stop a training only after its data were made."""
    class_of(settings.model).check(settings)
    check_trackers(settings)
    if settings.start_from:
        check_start(settings, Path(settings.start_from))


@contextlib.contextmanager
def _too_large_explained() -> Iterator[None]:
    """Say what to lower where a model is larger than the memory, or than any memory."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error) and "overflow" not in str(error):
            raise
        raise TrainingError(
            "out of memory while the model was made; lower the model's sizes"
        ) from None
