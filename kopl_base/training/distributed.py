"""The processes of a training: one by default, several when a launcher started them.

``torchrun --nproc-per-node N train.py …`` and ``accelerate launch train.py …`` set the same
environment variables; nothing else is needed. Every process takes its share of each batch, so that
N processes do the same steps as one.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar, cast

import torch
from torch import distributed, nn
from torch.distributed import PrefixStore, Store  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous

from kopl_base.errors import SettingsError
from kopl_base.training import check_device

Thing = TypeVar("Thing")

# Seconds between two looks whether the first process is done.
PATIENCE = 0.2


@dataclass(frozen=True)
class Distributed:
    """This process among the others: its rank, how many they are, its device, its precision."""

    device: torch.device
    rank: int = 0
    size: int = 1
    precision: str = "float32"
    store: Store | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(
        cls, device: str = "auto", precision: str = "float32", timeout: timedelta | None = None
    ) -> Distributed:
        """The processes that a launcher announced, joined.

        ``timeout`` is how long processes wait for one another within a step (None: torch's).
        Raises SettingsError for a device that is not there.
        """
        size = int(os.environ.get("WORLD_SIZE", "1"))
        rank, local = int(os.environ.get("RANK", "0")), int(os.environ.get("LOCAL_RANK", "0"))
        place = device_of(device, local)
        if precision == "tf32":
            torch.set_float32_matmul_precision("high")
        if size == 1:
            return cls(place, precision=precision)
        if place.type == "cuda":
            torch.cuda.set_device(place)
        store, rank, size = next(rendezvous("env://"))
        if not distributed.is_initialized():
            distributed.init_process_group(
                "nccl" if place.type == "cuda" else "gloo",
                timeout=timeout,
                store=PrefixStore("group", store),
                rank=rank,
                world_size=size,
            )
        return cls(place, rank, size, precision, PrefixStore("first", store))

    def close(self) -> None:
        """Leave the others, at the end, and compute exactly again."""
        if self.precision == "tf32":
            torch.set_float32_matmul_precision("highest")
        if self.size > 1 and distributed.is_initialized():
            distributed.destroy_process_group()

    def seed(self, seed: int) -> None:
        """Make what follows depend on the seed alone."""
        torch.manual_seed(seed)
        if self.device.type == "cpu":
            # Sums in a fixed order: without it, two threads give another network on every run.
            torch.use_deterministic_algorithms(True)
            # Nothing reads memory before it is written, so that need not be filled.
            torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]

    @property
    def main(self) -> bool:
        """Whether this process writes and prints."""
        return self.rank == 0

    def say(self, text: str) -> None:
        """Print a line, once for all processes."""
        if self.main:
            print(text, flush=True)

    def share(self, things: Sequence[Thing]) -> list[Thing]:
        """This process's share of some things."""
        return list(things[self.rank :: self.size])

    def totals(self, *numbers: float) -> list[float]:
        """Numbers summed over all processes."""
        if self.size == 1:
            return list(numbers)
        sums = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        distributed.all_reduce(sums)
        return sums.tolist()

    def any(self, holds: bool) -> bool:
        """Whether something holds in any process."""
        return self.totals(float(holds))[0] > 0

    def gathered(self, thing: Thing) -> list[Thing]:
        """A thing of each process, in the order of the ranks."""
        if self.size == 1:
            return [thing]
        things: list[Any] = [None] * self.size
        distributed.all_gather_object(things, thing)
        return cast("list[Thing]", things)

    def first(self, make: Callable[[], Thing]) -> Thing:
        """What the first process makes, for all of them; they wait for it, however long it takes.

        They ask every now and then: torch's own waiting ends after some minutes.
        """
        if self.size == 1:
            return make()
        things: list[Any] = [None]
        failure: BaseException | None = None
        if self.main:
            try:
                things = [(make(), "")]
            except Exception as error:
                failure, things = error, [(None, f"{type(error).__name__}: {error}")]
        self._wait_for_first()
        distributed.broadcast_object_list(things, device=self.device)
        if failure is not None:
            raise failure
        thing, failed = things[0]
        if failed:
            raise SettingsError(f"the first process failed: {failed}")
        return cast(Thing, thing)

    def _wait_for_first(self) -> None:
        """Return when the first process, too, is here."""
        assert self.store is not None
        number = self.store.add(f"waits of {self.rank}", 1)
        key = f"made {number}"
        if self.main:
            self.store.set(key, "")
        while not self.store.check([key]):
            time.sleep(PATIENCE)

    def spread(self, network: nn.Module) -> nn.Module:
        """The network on this device; its gradients are the mean of all processes'."""
        network.to(self.device)
        return network if self.size == 1 else nn.parallel.DistributedDataParallel(network)

    @contextlib.contextmanager
    def precise(self) -> Iterator[None]:
        """Compute in the precision of the settings; the weights stay as they are."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bfloat16"):
            yield


def use_threads(count: int) -> None:
    """Let this process compute with so many threads."""
    torch.set_num_threads(count)


def device_of(name: str, local: int = 0) -> torch.device:
    """The device that the settings name; raises SettingsError when there is none such."""
    check_device(name)
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(name)
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise SettingsError("device is cuda, but there is none here; try device=cpu")
        device = torch.device("cuda", device.index if device.index is not None else local)
        if device.index >= torch.cuda.device_count():
            raise SettingsError(f"there is no device {device}; lower the number of processes")
    return device
