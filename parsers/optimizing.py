"""One step of the optimizer: parts of a batch, several processes, learning rates, bad losses."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from kopl_base.errors import KoplError
from parsers.dropping import RowsOfBatch, step_seed
from parsers.memory import is_out_of_memory
from parsers.models.base import Batch, Item, Model, Scores
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

    def step(
        self, items: Sequence[Item], done: int, total: int, reached: float | None = None
    ) -> Step:
        """One step on a batch, of which this process takes its share, after ``done`` of ``total``.

        ``reached`` is where the schedule of the rates is, in steps of the total, where it is not
        at the steps done. Raises TrainingError when the loss, the gradients or the weights are no
        numbers, or the memory is not enough.
        """
        rate = rate_at(done, total, self.training, reached)
        for group, own in zip(self.optimizer.param_groups, self._rates, strict=True):
            group["lr"] = own * rate
        # A process without a share must take part in the sums all the same: it counts nothing.
        rows = self.world.share(range(len(items)))
        counted = bool(rows)
        with _out_of_memory_explained(items, done):
            batch = self.model.collate(items)
            self.optimizer.zero_grad(set_to_none=True)
            # Processes give the mean of their gradients; the sum over all is wanted.
            weight = self.world.size / batch.count if counted else 0.0
            loss = right = 0.0
            parts = self._parts(rows or [0])
            for number, part in enumerate(parts):
                with self._alone(number < len(parts) - 1):
                    scores = self._scores(batch, part, len(items), done)
                    (scores.loss * weight).backward()  # type: ignore[no-untyped-call]
                if counted:
                    loss += float(scores.loss.detach())
                    right += int(scores.right.sum())
            loss, right = self.world.totals(loss, right)
            loss /= batch.count
            if not math.isfinite(loss):
                raise TrainingError(_no_number(f"the loss became {loss}", items, done))
            self._update(items, done)
        return Step(loss, right / len(items), rate)

    def _scores(self, batch: Batch, rows: Sequence[int], size: int, done: int) -> Scores:
        """What the network says of some rows of a batch, dropping what it drops of the whole."""
        seed = step_seed(self.model.settings.seed, done)
        if len(rows) == size:
            torch.manual_seed(seed)
            dropping: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        elif self.training.compile:  # compiled code draws by its own rules: each part for itself
            torch.manual_seed(step_seed(seed, rows[0]))
            dropping = contextlib.nullcontext()
        else:
            torch.manual_seed(seed)
            dropping = RowsOfBatch(rows, size)
        chosen = batch if len(rows) == size else batch.rows(torch.tensor(rows))
        with self.world.precise(), dropping:
            scores: Scores = self.network(chosen.to(self.world.device))
        return scores

    def _update(self, items: Sequence[Item], done: int) -> None:
        """Change the weights by their gradients; raise TrainingError where either are no numbers.

        Weights are checked afterwards: a rate may be too large for numbers of their precision.
        """
        parameters = [p for p in self.network.parameters() if p.grad is not None]
        norm = nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
        if not math.isfinite(float(norm)):
            raise TrainingError(_no_number("the gradients are no numbers any more", items, done))
        if self.training.gradient_norm:
            nn.utils.clip_grads_with_norm_(parameters, self.training.gradient_norm, norm)
        try:
            self.optimizer.step()
        except RuntimeError as error:
            if "overflow" not in str(error):
                raise
            raise TrainingError(_no_number("the step is too large", items, done)) from None
        if not finite(parameters):
            raise TrainingError(_no_number("the weights are no numbers any more", items, done))

    def _parts(self, rows: Sequence[int]) -> list[Sequence[int]]:
        size = self.training.part or len(rows)
        return [rows[at : at + size] for at in range(0, len(rows), size)]

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


def rate_at(
    done: int, total: int, training: TrainingSettings, reached: float | None = None
) -> float:
    """What the learning rates are multiplied by after ``done`` of ``total`` steps.

    ``reached``: how far the schedule is, in steps of the total, where that is not ``done``.
    """
    place = done if reached is None else reached
    warm = training.warm_up if training.warm_up >= 1 else math.ceil(training.warm_up * total)
    # A warm-up of so many steps takes them; one that is a share is as far as the schedule.
    risen = (done if training.warm_up >= 1 else place) + 1
    rising = min(1.0, risen / warm) if warm else 1.0
    if training.schedule == "constant":
        return rising
    if training.schedule == "steps":
        epoch = int(place * training.epochs / total)
        return float(rising * 0.1 ** sum(epoch >= fall for fall in training.falls))
    if training.schedule == "slope":
        return rising * max(training.floor, 1 - place / total)
    falling = max(training.floor, (total - place) / max(1, total - warm))
    return rising if rising < 1 else min(1.0, falling)


def finite(parameters: Sequence[Tensor]) -> bool:
    """Whether all numbers of the tensors are finite."""
    with torch.no_grad():
        largest = torch._foreach_norm(list(parameters), float("inf"))  # of the largest, NaN kept
        return all(map(math.isfinite, torch.stack([one.float() for one in largest]).tolist()))


def _no_number(what: str, items: Sequence[Item], done: int) -> str:
    questions = "; ".join(item.example.question for item in items[:3])
    return f"{what} at batch {done + 1}; lower learning_rate. The batch began with: {questions}"


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
