"""Memory: what says that it is not enough, and work that goes on in smaller parts where it is not.

What predicting takes is bounded beforehand by a setting (``memory``), which is all that helps on a
machine whose system ends a process that takes too much. Devices raise an error instead: then the
same work is done again in halves.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

Thing = TypeVar("Thing")
Result = TypeVar("Result")

GIB = 1 << 30

# What libraries say that have no error of their own for it.
_SAID = ("can't allocate memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory, of the device or of the machine, is not enough."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in _SAID)
    )


def fitting(gigabytes: float, bytes_each: int) -> int:
    """How many things of so many bytes fit into a number of GiB, one at least."""
    return max(1, int(gigabytes * GIB / max(1, bytes_each)))


class Parts:
    """Works through things in parts, and in halves of them where memory is not enough.

    ``halved`` counts how often it was not enough, ``given_up`` the things that were too large even
    alone. The next call begins with parts of twice the size that went well at last: one long
    question does not slow down all that come after it.
    """

    def __init__(self) -> None:
        self.halved = self.given_up = 0
        self._most: int | None = None

    def work(
        self, things: Sequence[Thing], do: Callable[[Sequence[Thing]], Sequence[Result]],
        give_up: Callable[[Thing], Result], most: int,
    ) -> list[Result]:  # fmt: skip
        """What ``do`` gives for each thing, asked for at most ``most`` at a time.

        A thing for which memory is not enough even alone gets what ``give_up`` says.
        """
        size = max(1, most if self._most is None else min(most, 2 * self._most))
        found: list[Result] = []
        while len(found) < len(things):
            part = things[len(found) : len(found) + size]
            results = _tried(do, part)
            if results is not None:
                found += results
                continue
            if len(part) > 1:
                self.halved += 1
                self._most = size = len(part) // 2
            else:
                self.given_up += 1
                found.append(give_up(part[0]))
        if self._most is not None:
            self._most = size
        return found


def _tried(
    do: Callable[[Sequence[Thing]], Sequence[Result]], part: Sequence[Thing]
) -> Sequence[Result] | None:
    """What ``do`` gives, or None where memory is not enough."""
    try:
        return do(part)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
    # Not inside of the handler: the error keeps alive the tensors of the calls it came through.
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None
