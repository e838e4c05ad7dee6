"""One step of the optimizer: parts of a batch, several processes, learning rates, bad losses."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from kb.errors import KoplError
from parsers.memory import is_out_of_memory
from parsers.models.base import Item, Model
from parsers.settings import TrainingSettings
from parsers.world import World


class TrainingError(KoplError):
    """A training that cannot go on."""

    kind = "training"


@dataclass(frozen=True)
class Step:
    """What a step of the optimizer did: mean loss of a target, share of examples all right."""

    loss: float
    accuracy: float
    rate: float  # what the learning rates were multiplied by


class Optimizer:
    """Brings a model forward batch by batch, the same whatever the number of processes."""

    def __init__(self, model: Model, world: World) -> None:
        self.model, self.world = model, world
        self.training = model.settings.training
        self.network = world.spread(model.network)
        groups = list(_spared(model.groups(), self.training))
        self._rates = [group["lr"] for group in groups]
        kind = torch.optim.AdamW if self.training.optimizer == "adamw" else torch.optim.Adam
        self.optimizer = kind(
            groups, lr=self.training.learning_rate, weight_decay=self.training.weight_decay
        )
        if self.training.compile:
            model.compile()

    def step(self, items: Sequence[Item], done: int, total: int) -> Step:
        """One step on a batch, of which this process takes its share.

        Raises TrainingError when the loss is no number or the memory is not enough.
        """
        rate = rate_at(done, total, self.training)
        for group, own in zip(self.optimizer.param_groups, self._rates, strict=True):
            group["lr"] = own * rate
        share = self.world.share(items)
        # A process without a share must take part in the sums all the same: it counts nothing.
        counted = bool(share)
        with _out_of_memory_explained(items, done):
            parts = self._parts(share or items[:1])
            batches = [self.model.collate(part) for part in parts]
            [targets] = self.world.totals(sum(b.count for b in batches) if counted else 0)
            self.optimizer.zero_grad(set_to_none=True)
            # Processes give the mean of their gradients; the sum over all is wanted.
            weight = self.world.size / targets if counted else 0.0
            loss = right = 0.0
            for number, batch in enumerate(batches):
                with self._alone(number < len(batches) - 1):
                    with self.world.precise():
                        scores = self.network(batch.to(self.world.device))
                    (scores.loss * weight).backward()
                if counted:
                    loss += float(scores.loss.detach())
                    right += int(scores.right.sum())
            loss, right = self.world.totals(loss, right)
            loss /= targets
            if not math.isfinite(loss):
                raise TrainingError(_no_number(loss, items, done))
            if self.training.gradient_norm:
                nn.utils.clip_grad_norm_(self.network.parameters(), self.training.gradient_norm)
            self.optimizer.step()
        return Step(loss, right / len(items), rate)

    def _parts(self, items: Sequence[Any]) -> list[Sequence[Any]]:
        size = self.training.part or len(items)
        return [items[at : at + size] for at in range(0, len(items), size)]

    def _alone(self, alone: bool) -> contextlib.AbstractContextManager[None]:
        """Leave the other processes out of it: gradients are exchanged with the last part."""
        if alone and self.world.size > 1:
            manager: contextlib.AbstractContextManager[None] = self.network.no_sync()  # type: ignore[operator]
            return manager
        return contextlib.nullcontext()


def _spared(
    groups: Sequence[dict[str, Any]], training: TrainingSettings
) -> Iterator[dict[str, Any]]:
    """The groups of parameters, each in two where weight decay spares biases and norms."""
    if training.decay == "all":
        yield from groups
        return
    for group in groups:
        for matrices, decay in ((True, training.weight_decay), (False, 0.0)):
            parameters = [one for one in group["params"] if (one.ndim > 1) is matrices]
            if parameters:
                yield {**group, "params": parameters, "weight_decay": decay}


def rate_at(done: int, total: int, training: TrainingSettings) -> float:
    """What the learning rates are multiplied by after ``done`` of ``total`` steps."""
    warm = training.warm_up if training.warm_up >= 1 else math.ceil(training.warm_up * total)
    rising = min(1.0, (done + 1) / warm) if warm else 1.0
    if training.schedule == "constant":
        return rising
    if training.schedule == "steps":
        epoch = done * training.epochs // total
        return float(rising * 0.1 ** sum(epoch >= fall for fall in training.falls))
    if training.schedule == "slope":
        return rising * max(training.floor, 1 - done / total)
    return rising if done < warm else max(training.floor, (total - done) / max(1, total - warm))


def _no_number(loss: float, items: Sequence[Item], done: int) -> str:
    questions = "; ".join(item.example.question for item in items[:3])
    return (
        f"the loss became {loss} at batch {done + 1}; lower learning_rate. The batch began with:"
        f" {questions}"
    )


@contextlib.contextmanager
def _out_of_memory_explained(items: Sequence[Item], done: int) -> Iterator[None]:
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise TrainingError(
            f"out of memory at batch {done + 1} ({len(items)} examples, the longest of"
            f" {max(item.length for item in items)} steps). Set training.part to"
            f" {max(1, len(items) // 2)} or less, which changes no result, or lower"
            " training.batch or the model's sizes"
        ) from None
