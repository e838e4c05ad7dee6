"""One step of the optimizer: parts of a batch, several processes, learning rates, bad losses.

Dropout of a batch that several processes, or several parts, compute is the same as of the whole:
whoever computes some rows of a batch draws the masks of all rows from the generator that all have
seeded alike, and uses those of its rows. The whole batch must be padded to the same lengths
everywhere. It costs the drawing of the other rows' masks, and nothing where a batch is whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from random import Random
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from kopl_base.errors import KoplError
from kopl_base.training.distributed import Distributed
from kopl_base.training.memory import is_out_of_memory

_dropout = nn.functional.dropout
_attention = nn.functional.scaled_dot_product_attention


# Shares of all steps after which the schedule "fifths" cuts the learning rates to a fifth.
CUTS = (0.5, 0.75)


class TrainingError(KoplError):
    """A training that cannot go on."""

    kind = "training"


@contextlib.contextmanager
def too_large_explained(lower: str) -> Iterator[None]:
    """Say what to lower where a model is larger than the memory, or than any memory."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error) and "overflow" not in str(error):
            raise
        raise TrainingError(f"out of memory while the model was made; lower {lower}") from None


# --- what is trained ----------------------------------------------------------------------------


class Scores(NamedTuple):
    """What a network says of a batch of B examples."""

    loss: Tensor  # scalar: the sum of the losses of all targets
    right: Tensor  # B, bool: every target of the example has the highest score


Part = TypeVar("Part", bound="Tensors")


@dataclass(frozen=True)
class Tensors:
    """A dataclass of tensors (and other things), which moves to a device as one."""

    def to(self: Part, device: torch.device) -> Part:
        """The same on a device."""
        moved: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensor | Tensors):
                moved[field.name] = value.to(device)
        return replace(self, **moved)

    def rows(self: Part, index: Tensor) -> Part:
        """Some of the rows of each tensor, in this order; a tensor without elements stays."""
        chosen: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensors):
                chosen[field.name] = value.rows(index)
            elif isinstance(value, Tensor) and value.numel():
                chosen[field.name] = value[index]
        return replace(self, **chosen)


@dataclass(frozen=True)
class Batch(Tensors):
    """Examples as tensors, a row each; ``count`` is the number of targets of the whole batch."""

    count: int


class Item(Protocol):
    """An example to learn, as a model has prepared it."""

    @property
    def text(self) -> str:
        """What messages show of it."""

    @property
    def length(self) -> int:
        """Its size: examples of similar size go together."""


AnyItem = TypeVar("AnyItem", bound=Item)


class Learner(Protocol):
    """What is trained: the network gives `Scores` of a `Batch`."""

    network: nn.Module

    def collate(self, items: Sequence[Any]) -> Batch:
        """Items as what the network takes."""

    def groups(self) -> list[dict[str, Any]]:
        """The parameters for the optimizer, each group with its learning rate ``lr``."""

    def compile(self) -> None:
        """Let torch compile what is worth it, keeping the names of the weights."""


def batches(items: Sequence[AnyItem], size: int, random: Random) -> list[list[AnyItem]]:
    """The items in batches of similar length, in random order; the same for the same generator."""
    order = list(range(len(items)))
    random.shuffle(order)
    near = size * 20
    found = []
    for begin in range(0, len(order), near):
        part = sorted(order[begin : begin + near], key=lambda n: (items[n].length, n))
        found += [[items[n] for n in part[at : at + size]] for at in range(0, len(part), size)]
    random.shuffle(found)
    return found


class Options(Protocol):
    """How a network is trained: the settings that every training has.

    ``batch`` counts the examples of one step of the optimizer, over all processes; ``part`` splits
    them into parts that fit into memory (0: whole). ``minutes`` is what the whole command may take,
    ``checkpoint`` the minutes after which the training is saved (0 of either: no limit).
    ``warm_up`` is a number of steps, or below 1 a share of all; then the learning rate falls as
    ``schedule`` says (linear, slope, constant, steps, fifths), to ``floor`` of it, to a tenth after
    each of the epochs ``falls``, or to a fifth at each of `CUTS`, where the optimizer begins anew.
    ``decay`` says what weight decay falls on: all parameters, or only
    matrices.
    """

    @property
    def batch(self) -> int: ...
    @property
    def part(self) -> int: ...
    @property
    def epochs(self) -> int: ...
    @property
    def minutes(self) -> float: ...
    @property
    def checkpoint(self) -> float: ...
    @property
    def optimizer(self) -> str: ...
    @property
    def learning_rate(self) -> float: ...
    @property
    def weight_decay(self) -> float: ...
    @property
    def decay(self) -> str: ...
    @property
    def gradient_norm(self) -> float: ...
    @property
    def warm_up(self) -> float: ...
    @property
    def schedule(self) -> str: ...
    @property
    def falls(self) -> tuple[int, ...]: ...
    @property
    def floor(self) -> float: ...
    @property
    def compile(self) -> bool: ...


# --- steps --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StepResult:
    """What a step of the optimizer did: mean loss of a target, share of examples all right."""

    loss: float
    accuracy: float
    rate: float  # what the learning rates were multiplied by


class Optimizer:
    """Brings a model forward batch by batch, the same whatever the number of processes."""

    def __init__(
        self, learner: Learner, options: Options, distributed: Distributed, seed: int
    ) -> None:
        self.learner, self.options = learner, options
        self.distributed, self.seed = distributed, seed
        self.network = distributed.spread(learner.network)
        groups = list(_spared(learner.groups(), options))
        self._rates = [group["lr"] for group in groups]
        kinds: dict[str, Callable[..., torch.optim.Optimizer]] = {
            "adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "adagrad": torch.optim.Adagrad,
        }  # fmt: skip
        self.optimizer = kinds[options.optimizer](
            groups, lr=options.learning_rate, weight_decay=options.weight_decay
        )
        if self.options.compile:
            learner.compile()

    def step(
        self, items: Sequence[Item], done: int, total: int, reached: float | None = None
    ) -> StepResult:
        """One step on a batch, of which this process takes its share, after ``done`` of ``total``.

        ``reached`` is where the schedule of the rates is, in steps of the total, where it is not
        at the steps done. Raises TrainingError when the loss, the gradients or the weights are no
        numbers, or the memory is not enough.
        """
        rate = rate_at(done, total, self.options, reached)
        if self._cut(rate):
            self.optimizer.state.clear()
        for group, own in zip(self.optimizer.param_groups, self._rates, strict=True):
            group["lr"] = own * rate
        # A process without a share must take part in the sums all the same: it counts nothing.
        rows = self.distributed.share(range(len(items)))
        counted = bool(rows)
        with _out_of_memory_explained(items, done):
            batch = self.learner.collate(items)
            self.optimizer.zero_grad(set_to_none=True)
            # Processes give the mean of their gradients; the sum over all is wanted.
            weight = self.distributed.size / batch.count if counted else 0.0
            loss = right = 0.0
            parts = self._parts(rows or [0])
            for number, part in enumerate(parts):
                with self._alone(number < len(parts) - 1):
                    scores = self._scores(batch, part, len(items), done)
                    (scores.loss * weight).backward()  # type: ignore[no-untyped-call]
                if counted:
                    loss += float(scores.loss.detach())
                    right += int(scores.right.sum())
            loss, right = self.distributed.totals(loss, right)
            loss /= batch.count
            if not math.isfinite(loss):
                raise TrainingError(_no_number(f"the loss became {loss}", items, done))
            self._update(items, done)
        return StepResult(loss, right / len(items), rate)

    def _cut(self, rate: float) -> bool:
        """Whether the schedule cuts the rates at this step, which begins the optimizer anew.

        The rates of the last step are those of its groups, also after going on with a training.
        """
        before = zip(self.optimizer.param_groups, self._rates, strict=True)
        return self.options.schedule == "fifths" and any(
            own * rate < group["lr"] for group, own in before
        )

    def _scores(self, batch: Batch, rows: Sequence[int], size: int, done: int) -> Scores:
        """What the network says of some rows of a batch, dropping what it drops of the whole."""
        seed = step_seed(self.seed, done)
        if len(rows) == size:
            torch.manual_seed(seed)
            dropping: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        elif self.options.compile:  # compiled code draws by its own rules: each part for itself
            torch.manual_seed(step_seed(seed, rows[0]))
            dropping = contextlib.nullcontext()
        else:
            torch.manual_seed(seed)
            dropping = RowsOfBatch(rows, size)
        chosen = batch if len(rows) == size else batch.rows(torch.tensor(rows))
        with self.distributed.precise(), dropping:
            scores: Scores = self.network(chosen.to(self.distributed.device))
        return scores

    def _update(self, items: Sequence[Item], done: int) -> None:
        """Change the weights by their gradients; raise TrainingError where either are no numbers.

        Weights are checked afterwards: a rate may be too large for numbers of their precision.
        """
        parameters = [p for p in self.network.parameters() if p.grad is not None]
        norm = nn.utils.get_total_norm([_numbers(p) for p in parameters])
        if not math.isfinite(float(norm)):
            raise TrainingError(_no_number("the gradients are no numbers any more", items, done))
        if self.options.gradient_norm:
            nn.utils.clip_grads_with_norm_(parameters, self.options.gradient_norm, norm)
        try:
            self.optimizer.step()
        except RuntimeError as error:
            if "overflow" not in str(error):
                raise
            raise TrainingError(_no_number("the step is too large", items, done)) from None
        if not finite(parameters):
            raise TrainingError(_no_number("the weights are no numbers any more", items, done))

    def _parts(self, rows: Sequence[int]) -> list[Sequence[int]]:
        size = self.options.part or len(rows)
        return [rows[at : at + size] for at in range(0, len(rows), size)]

    def _alone(self, alone: bool) -> contextlib.AbstractContextManager[None]:
        """Leave the other processes out of it: gradients are exchanged with the last part."""
        if alone and self.distributed.size > 1:
            manager: contextlib.AbstractContextManager[None] = self.network.no_sync()  # type: ignore[operator]
            return manager
        return contextlib.nullcontext()


def _numbers(parameter: nn.Parameter) -> torch.Tensor:
    """The gradient of a parameter, of a sparse one what is in it."""
    assert parameter.grad is not None
    if not parameter.grad.is_sparse:
        return parameter.grad
    parameter.grad = parameter.grad.coalesce()
    return parameter.grad.values()


def _spared(groups: Sequence[dict[str, Any]], options: Options) -> Iterator[dict[str, Any]]:
    """The groups of parameters, each in two where weight decay spares biases and norms."""
    if options.decay == "all":
        yield from groups
        return
    for group in groups:
        for matrices, decay in ((True, options.weight_decay), (False, 0.0)):
            parameters = [one for one in group["params"] if (one.ndim > 1) is matrices]
            if parameters:
                yield {**group, "params": parameters, "weight_decay": decay}


def rate_at(done: int, total: int, options: Options, reached: float | None = None) -> float:
    """What the learning rates are multiplied by after ``done`` of ``total`` steps.

    ``reached``: how far the schedule is, in steps of the total, where that is not ``done``.
    """
    place = done if reached is None else reached
    warm = options.warm_up if options.warm_up >= 1 else math.ceil(options.warm_up * total)
    # A warm-up of so many steps takes them; one that is a share is as far as the schedule.
    risen = (done if options.warm_up >= 1 else place) + 1
    rising = min(1.0, risen / warm) if warm else 1.0
    if options.schedule == "constant":
        return rising
    if options.schedule == "steps":
        epoch = int(place * options.epochs / total)
        return float(rising * 0.1 ** sum(epoch >= fall for fall in options.falls))
    if options.schedule == "fifths":
        return float(rising * 0.2 ** sum(place >= cut * total for cut in CUTS))
    if options.schedule == "slope":
        return rising * max(options.floor, 1 - place / total)
    falling = max(options.floor, (total - place) / max(1, total - warm))
    return rising if rising < 1 else min(1.0, falling)


def finite(parameters: Sequence[Tensor]) -> bool:
    """Whether all numbers of the tensors are finite."""
    with torch.no_grad():
        largest = torch._foreach_norm(list(parameters), float("inf"))  # of the largest, NaN kept
        return all(map(math.isfinite, torch.stack([one.float() for one in largest]).tolist()))


def _no_number(what: str, items: Sequence[Item], done: int) -> str:
    questions = "; ".join(item.text for item in items[:3])
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


# --- dropout ------------------------------------------------------------------------------------


def step_seed(seed: int, step: int) -> int:
    """The seed of all that a step of training draws."""
    digest = hashlib.blake2b(f"{seed}/{step}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def dropped(shape: Sequence[int], share: float, device: torch.device) -> Tensor:
    """A mask of this shape, the batch first, that holds for this share of its places (bool)."""
    return _dropout(torch.ones(tuple(shape), device=device), share) == 0


class RowsOfBatch(TorchFunctionMode):
    """Within it, dropout is that of the whole batch of ``size`` rows, of which there are ``rows``.

    It is taken by every call of torch's dropout, and that of attention, on tensors whose first
    dimension is the batch; whatever draws otherwise draws the same everywhere.
    """

    def __init__(self, rows: Sequence[int], size: int) -> None:
        super().__init__()
        self._rows, self._size = torch.tensor(rows), size

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Call a function of torch, with masks of the whole batch where it drops something."""
        kwargs = kwargs or {}
        if func is _dropout:
            return self._drop(*args, **kwargs)
        if func is _attention and (kwargs.get("dropout_p") or (len(args) > 4 and args[4])):
            return self._attend(*args, **kwargs)
        return func(*args, **kwargs)

    def _drop(
        self, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        if not training or not p:
            return input
        if len(input) != len(self._rows):
            return _dropout(input, p, True, inplace)
        # Draws come in the order of the memory, so that the whole must lie in it as the rows do. Of
        # a single row that is not to be seen: networks give dropout what lies batch by batch.
        strides = input.stride()
        order = sorted(range(input.ndim), key=lambda n: (-strides[n], n))
        sizes = [self._size if n == 0 else input.shape[n] for n in order]
        places = [order.index(n) for n in range(input.ndim)]
        mask = _dropout(input.new_ones(sizes).permute(places), p)[self._rows.to(input.device)]
        return input.mul_(mask) if inplace else input * mask

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """What torch computes where nothing is fused, which is the same but for the mask."""
        if enable_gqa:
            groups = query.shape[-3] // key.shape[-3]
            key, value = (one.repeat_interleave(groups, -3) for one in (key, value))
        scores = query @ key.transpose(-2, -1) * (scale or query.shape[-1] ** -0.5)
        if is_causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        if attn_mask is not None:
            if attn_mask.dtype == torch.bool:
                scores = scores.masked_fill(~attn_mask, float("-inf"))
            else:
                scores = scores + attn_mask
        return self._drop(scores.softmax(-1), dropout_p) @ value
