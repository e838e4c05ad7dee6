"""Training: epochs over the examples, a checkpoint after each, stopping and going on exactly."""

from __future__ import annotations

import contextlib
import json
import math
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import torch
from torch import nn

from kb import KnowledgeBase
from kb.errors import KoplError
from kopl.example import Example
from parsers.checkpoint import (
    CheckpointError,
    Description,
    describe,
    read_run,
    read_state,
    read_weights,
    write_run,
    write_state,
    write_weights,
)
from parsers.data import Batch, Item, batches, prepare
from parsers.decode import Decoder
from parsers.evaluation import evaluate
from parsers.meter import Meter
from parsers.rnn import Network
from parsers.settings import Settings
from parsers.target import Actions
from parsers.tokens import Question, Vocabulary

WARM_UP = 100


class TrainingError(KoplError):
    """A training that cannot go on."""

    kind = "training"


@dataclass
class Progress:
    """How far a training is: epochs done, batches done in this one, sums since it began."""

    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    best: float = -1.0
    losses: list[float] = field(default_factory=list)


class Trainer:
    """Trains one network; `run` goes on until the end, a signal or the time limit."""

    def __init__(
        self, folder: Path, settings: Settings, kb: KnowledgeBase, description: Description,
        train: Sequence[Item], valid: Sequence[Example],
    ) -> None:  # fmt: skip
        torch.manual_seed(settings.seed)
        # Sums in a fixed order: without it, two threads give another network on every run.
        torch.use_deterministic_algorithms(True)
        self.folder, self.settings, self.kb = folder, settings, kb
        self.network, self.vocabulary, self.actions = description.network(settings)
        self.train, self.valid = train, valid
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
        )  # fmt: skip
        self.progress = Progress()
        self._stop = False

    @property
    def decoder(self) -> Decoder:
        """Writes programs with the network as it is now."""
        return Decoder(self.network, self.vocabulary, self.actions, self.kb)

    def resume(self) -> None:
        """Go on where a training stopped; raises CheckpointError when there is nothing."""
        state = read_state(self.folder / "resume.pt")
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        self.progress = Progress(**state["progress"])

    def run(self) -> bool:
        """Train; False when a signal stopped it. Raises TrainingError when the loss is NaN."""
        begin = time.monotonic() - self.progress.seconds
        with self._signals():
            while self.progress.epoch < self.settings.epochs and not self._stop:
                self._epoch(begin)
                limit = self.settings.minutes * 60
                if limit and time.monotonic() - begin > limit:
                    print(f"stopped after {self.settings.minutes:g} minutes, as the settings say")
                    break
        if self.interrupted:
            print(f"interrupted; go on with --resume {self.folder}", flush=True)
        return not self.interrupted

    @property
    def interrupted(self) -> bool:
        """Whether a signal stopped the training before its end."""
        return self._stop and self.progress.epoch < self.settings.epochs

    def _epoch(self, begin: float) -> None:
        progress, settings = self.progress, self.settings
        parts = batches(self.train, settings.batch, Random(f"{settings.seed}/{progress.epoch}"))
        total = settings.epochs * len(parts)
        self.network.train()
        title = f"epoch {progress.epoch + 1}/{settings.epochs}"
        with Meter(title, sum(map(len, parts)), sum(map(len, parts[: progress.batch]))) as meter:
            for items in parts[progress.batch :]:
                done = progress.epoch * len(parts) + progress.batch
                loss, right = self._batch(
                    Batch.of(items, self.vocabulary, self.actions), done, total
                )
                progress.batch += 1
                progress.losses.append(loss)
                meter.advance(len(items), loss=loss, accuracy=right)
                if self._stop:
                    progress.seconds = time.monotonic() - begin
                    self._save()
                    return
        self._validate(begin)

    def _batch(self, batch: Batch, done: int, total: int) -> tuple[float, float]:
        """One step of the optimizer; the loss, and the share of programs that are all right."""
        rate = min(1.0, (done + 1) / WARM_UP) * max(0.02, 1 - done / total)
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * rate
        loss, right = self.network(batch)
        value = float(loss.detach())
        if not math.isfinite(value):
            questions = "; ".join(item.example.question for item in batch.items[:3])
            raise TrainingError(
                f"the loss became {value} at batch {done + 1}; lower learning_rate. The batch began"
                f" with: {questions}"
            )
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.gradient_norm)
        self.optimizer.step()
        return value, float(right.all(-1).float().mean())

    def _validate(self, begin: float) -> None:
        progress = self.progress
        report = evaluate(self.decoder, self.valid, ())
        mean = sum(progress.losses) / max(1, len(progress.losses))
        progress.epoch, progress.batch, progress.losses = progress.epoch + 1, 0, []
        progress.seconds = time.monotonic() - begin
        better = report.accuracy >= progress.best  # of equals the later one: it saw more
        if better:
            progress.best = report.accuracy
            write_weights(self.network, self.folder / "best.safetensors")
        self._save()
        record = {
            "epoch": progress.epoch, "loss": mean, "validation": report.accuracy,
            "seconds": round(progress.seconds, 1),
        }  # fmt: skip
        with (self.folder / "history.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        print(
            f"epoch {progress.epoch}/{self.settings.epochs}: loss {mean:.4f}, execution accuracy"
            f" {report.accuracy:.1%} on {len(self.valid)} validation questions"
            f"{' (best)' if better else ''}, {progress.seconds:.0f} s",
            flush=True,
        )

    def _save(self) -> None:
        write_weights(self.network, self.folder / "last.safetensors")
        state = {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
            "progress": vars(self.progress),
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


def begin(
    folder: Path, settings: Settings, kb: KnowledgeBase, train: Sequence[Example],
    valid: Sequence[Example],
) -> Trainer:  # fmt: skip
    """A trainer with a new run in an empty or new folder."""
    actions = Actions.of(kb)
    items, left = prepare(train, actions, kb)
    if left:
        example, reason = left[0]
        print(
            f"{len(left)} of {len(train)} training questions cannot be learnt: an argument stands"
            f" neither in the question nor in the schema, as {reason} of: {example.question}"
        )
    if not items:
        raise TrainingError("none of the training questions can be learnt")
    called = [word for _, text in actions.entries for word in Question.of(text).words]
    vocabulary = Vocabulary.of((item.question for item in items), called)
    answers = [example.answer for example in train if example.answer is not None]
    description = describe(kb, settings.kb, vocabulary, actions, answers)
    write_run(folder, settings, description)
    return Trainer(folder, settings, kb, description, items, valid)


def go_on(
    folder: Path, kb: KnowledgeBase, train: Sequence[Example], valid: Sequence[Example]
) -> Trainer:
    """A trainer that resumes the run in a folder, on the same examples."""
    settings, description = read_run(folder)
    if description.fingerprint != kb.fingerprint:
        raise CheckpointError(f"{folder}: the run was trained on another knowledge base")
    items, _ = prepare(train, Actions(tuple((s, t) for s, t in description.entries)), kb)
    trainer = Trainer(folder, settings, kb, description, items, valid)
    trainer.resume()
    return trainer


def best_network(folder: Path) -> tuple[Settings, Description, Network, Vocabulary, Actions]:
    """The best network of a run, with what belongs to it."""
    settings, description = read_run(folder)
    network, vocabulary, actions = description.network(settings)
    read_weights(network, folder / "best.safetensors")
    return settings, description, network, vocabulary, actions
