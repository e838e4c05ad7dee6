"""Training: epochs over the examples, a checkpoint after each, stopping and going on exactly."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import torch

from kb import KnowledgeBase
from kopl.example import Example
from parsers.checkpoint import (
    CheckpointError,
    Description,
    read_run,
    read_state,
    restore,
    write_run,
    write_state,
    write_weights,
)
from parsers.evaluation import evaluate
from parsers.history import History, check_trackers
from parsers.memory import is_out_of_memory
from parsers.meter import Meter
from parsers.models import class_of
from parsers.models.base import Item, Model, batches
from parsers.optimizing import Optimizer, Step, TrainingError
from parsers.settings import Settings, flat
from parsers.transfer import check_start, start_from
from parsers.world import World


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

    def __post_init__(self) -> None:
        """Raise ValueError for what no training counts, which only a damaged file has."""
        for name, value in vars(self).items():
            counted = name in ("epoch", "batch", "step")
            if not isinstance(value, int if counted else int | float) or (counted and value < 0):
                raise ValueError(f"the progress has the {name} {value!r}")


# What a training may be resumed with although it began with another one: how long it goes on,
# where things are, what is told of it. That the knowledge base and the questions are the same is
# checked by what they say; `training.part` is to be lowered when the memory is not enough.
MAY_CHANGE = frozenset(
    ["kb", "output", "device", "memory", "threads", "plots", "tensorboard", "wandb",
     "training.epochs", "training.minutes", "training.part"]
)  # fmt: skip


def kept(settings: Settings) -> dict[str, Any]:
    """The settings that a training must be resumed with, by name."""
    every = flat(dataclasses.asdict(settings))
    return {name: value for name, value in every if name not in MAY_CHANGE}


class Trainer:
    """Trains one model; `run` goes on until the end, a signal or the time limit."""

    def __init__(
        self, folder: Path, model: Model, world: World, train: Sequence[Item],
        valid: Sequence[Example],
    ) -> None:  # fmt: skip
        self.folder, self.model, self.world = folder, model, world
        self.settings = model.settings
        self.train, self.valid = train, valid
        self.optimizer = Optimizer(model, world)
        self.progress = Progress()
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
            randoms = state["random"]
            _set_random(randoms[self.world.rank % len(randoms)], self.world.device)
            self.progress = Progress(**state["progress"])
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
        begin = time.monotonic() - self.progress.seconds
        training = self.settings.training
        with self._signals(), History(self.folder, self.settings, self.world.main) as history:
            history.cut(self.progress.epoch, self.progress.step)
            while self.progress.epoch < training.epochs and not self._stop:
                self._epoch(begin, history)
                if self.progress.epoch < training.epochs and self._takes_too_long(begin):
                    self.world.say(
                        f"stopped, as another epoch would end after {training.minutes:g} minutes"
                    )
                    break
        if self.interrupted:
            self.world.say(f"interrupted; go on with --resume {self.folder}")
        return not self.interrupted

    def _takes_too_long(self, begin: float) -> bool:
        """Whether another epoch, as long as those before, would end after the minutes."""
        done = self.progress.epoch
        limit = self.settings.training.minutes * 60
        return self.world.any(0 < limit < (time.monotonic() - begin) / max(1, done) * (done + 1))

    @property
    def interrupted(self) -> bool:
        """Whether a signal stopped the training before its end."""
        return self._stop and self.progress.epoch < self.settings.training.epochs

    def _epoch(self, begin: float, history: History) -> None:
        progress, training = self.progress, self.settings.training
        random = Random(f"{self.settings.seed}/{progress.epoch}")
        parts = batches(self.train, training.batch, random)
        total = training.epochs * len(parts)
        self.model.network.train()
        title = f"epoch {progress.epoch + 1}/{training.epochs}"
        done_before = sum(map(len, parts[: progress.batch]))
        with Meter(title, len(self.train), done_before, shown=self.world.main) as meter:
            for items in parts[progress.batch :]:
                done = progress.epoch * len(parts) + progress.batch
                step = self.step(items, done, total)
                progress.batch, progress.step = progress.batch + 1, done + 1
                progress.loss += step.loss
                progress.accuracy += step.accuracy * len(items)
                meter.advance(len(items), loss=step.loss, accuracy=step.accuracy)
                history.step(progress.step, step)
                self._stop = self.world.any(self._stop)
                if self._stop and progress.batch < len(parts):
                    progress.seconds = time.monotonic() - begin
                    self._save()
                    return
            speed = meter.speed
        self._validate(begin, len(parts), speed, history)

    def step(self, items: Sequence[Item], done: int, total: int) -> Step:
        """One step of the optimizer on a batch."""
        return self.optimizer.step(items, done, total)

    def _validate(self, begin: float, count: int, speed: float, history: History) -> None:
        progress, training = self.progress, self.settings.training
        with self.world.precise():
            report = evaluate(
                self.model, self.world.share(self.valid), (),
                constrained=self.settings.decoding == "constrained",
            )  # fmt: skip
        by_program = training.metric == "program"
        right, asked = self.world.totals(
            sum(one.same_form if by_program else one.right for one in report.judged),
            len(report.judged),
        )
        share = right / asked if asked else 0.0
        record = {
            "epoch": progress.epoch + 1, "loss": progress.loss / count,
            "accuracy": progress.accuracy / max(1, len(self.train)), "validation": share,
            "examples a second": round(speed, 1), "seconds": round(time.monotonic() - begin, 1),
        }  # fmt: skip
        better = share >= progress.best  # of equals the later one: it saw more
        self.progress = Progress(
            progress.epoch + 1, 0, progress.step, time.monotonic() - begin,
            share if better else progress.best,
        )  # fmt: skip
        if better and self.world.main:
            write_weights(self.model.network, self.folder / "best.safetensors")
        self._save()
        history.epoch(record)
        self.world.say(
            f"epoch {record['epoch']}/{training.epochs}: loss {record['loss']:.4f},"
            f" {record['accuracy']:.1%} right, {speed:.0f} examples/s;"
            f" {'exact match' if by_program else 'execution accuracy'} {share:.1%} on"
            f" {len(self.valid)} validation questions"
            f"{' (best)' if better else ''}, {record['seconds']:.0f} s"
        )

    def _save(self) -> None:
        randoms = self.world.gathered(_random(self.world.device))
        if not self.world.main:
            return
        write_weights(self.model.network, self.folder / "last.safetensors")
        state = {
            "network": self.model.network.state_dict(),
            "optimizer": self.optimizer.optimizer.state_dict(),
            "random": randoms,
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


def _random(device: torch.device) -> dict[str, torch.Tensor]:
    """The state of the generators that a network draws from (dropout)."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def _set_random(states: dict[str, torch.Tensor], device: torch.device) -> None:
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)


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
    valid: Sequence[Example], world: World | None = None,
) -> Trainer:  # fmt: skip
    """A trainer with a new run in an empty or new folder."""
    world = world or World.of(settings)
    seeded(settings, world)
    with _too_large_explained():
        model = class_of(settings.model).create(settings, kb, train)
    items, left = model.prepare(train)
    if left:
        [(reason, count)] = Counter(reason for _, reason in left).most_common(1)
        question = next(example.question for example, own in left if own == reason)
        shown = question if len(question) <= 200 else f"{question[:200]}…"
        world.say(
            f"{len(left)} of {len(train)} training questions cannot be learnt, {count} of them as"
            f" {reason} (of: {shown})"
        )
    if not items:
        raise TrainingError("none of the training questions can be learnt")
    if settings.start_from:
        world.say(start_from(model, Path(settings.start_from), kb))
    world.first(lambda: write_run(folder, model, Description.of(model, list(train))))
    # Processes draw the same weights, but each its own dropout.
    torch.manual_seed(settings.seed + world.rank)
    with _too_large_explained():
        return Trainer(folder, model, world, items, valid)


def go_on(
    folder: Path, kb: KnowledgeBase, train: Sequence[Example], valid: Sequence[Example],
    world: World | None = None,
) -> Trainer:  # fmt: skip
    """A trainer that resumes the run in a folder, on the same examples.

    Raises CheckpointError when there is nothing to go on from, it is damaged, or the knowledge
    base, the questions or the settings are not those that the training began with.
    """
    settings, description = read_run(folder)
    state = saved_state(folder, settings)
    if description.fingerprint != kb.fingerprint:
        raise CheckpointError(
            f"{folder}: the training began with another knowledge base ({description.kb}); go on"
            " with that one, or begin a new run"
        )
    world = world or World.of(settings)
    seeded(settings, world)
    model = restore(folder, kb, weights=None)
    items, _ = model.prepare(train)
    trainer = Trainer(folder, model, world, items, valid)
    trainer.resume(state)
    return trainer


def saved_state(folder: Path, settings: Settings) -> dict[str, Any]:
    """What a training saved to go on from.

    Raises CheckpointError when there is nothing, or when it began with other settings.
    """
    path = folder / "resume.pt"
    parts = ("network", "optimizer", "random", "progress", "questions", "settings")
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
