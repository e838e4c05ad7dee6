"""Long runs: blocks that anybody may make, put together in order, and going on after a stop.

A job says which blocks it wants and puts together what was made of them. `in_order` gives it the
blocks in the order of wanting, so that what it makes of them does not depend on who made them or on
how often the run was stopped. `work` brings a job to its end. Most jobs become the lines of a file:
these are a `Gathering` that a `FileJob` keeps in the file meanwhile.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, closing
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

from kopl_base.errors import KoplError
from kopl_base.processes import AHEAD, Executor, LostWorkerError, Made, Maker
from kopl_base.progress import Progress
from kopl_base.unfinished import Unfinished

BlockId = tuple[Any, ...]
"""Which block it is: what a maker of blocks is called with."""

Results = Generator[tuple[BlockId, Made], None, None]
"""Blocks with what was made of them; closing it ends those who make them."""

Taken = TypeVar("Taken", contravariant=True)


class Wanting(Protocol):
    """What says which blocks are to be made."""

    def blocks(self, workers: int) -> Iterable[BlockId]:
        """The blocks that are wanted next, in order, as far as is known by now; none at the end.

        The first one is needed. More than are sure to be needed may keep so many workers busy.
        """


class Job(Wanting, Protocol[Taken]):
    """Work that is done in blocks, and that another run can go on with after a stop.

    ``done`` is how much of it there is, for the progress that is shown, ``remains`` a sentence that
    says how to go on with it, ``failure`` the class of its errors.
    """

    @property
    def done(self) -> int: ...

    @property
    def remains(self) -> str: ...

    @property
    def failure(self) -> type[KoplError]: ...

    def take(self, block: BlockId, made: Taken) -> None:
        """Put a block together with what there is, and note how far the work is."""

    def stop(self, error: BaseException | None) -> None:
        """Let go of what is open, at the end or because of an error."""


def work(job: Job[Made], results: Results[Made], progress: Progress) -> None:
    """Bring a job to its end, or to where the results of its blocks end.

    Raises what making and taking blocks raises; the job's failure where a worker was lost.
    """
    error: BaseException | None = None
    try:
        with progress, closing(results):
            progress.reach(job.done)
            for block, made in results:
                job.take(block, made)
                progress.reach(job.done)
    except LostWorkerError as lost:
        raise job.failure(
            f"{lost}; {job.remains} (and fewer workers, if memory was short)"
        ) from None
    except BaseException as raised:
        error = raised
        raise
    finally:
        job.stop(error)


# --- results of blocks --------------------------------------------------------------------------


def in_order(
    job: Wanting, executor: AbstractContextManager[Executor[Made]], until: float | None = None
) -> Results[Made]:
    """Each block that a job wants, with what was made of it, in the order of wanting.

    After each, the job is asked again: blocks that it does not want any more are dropped. It ends
    when none is wanted, and at the time ``until`` (of `time.monotonic`).
    """
    under_way: dict[BlockId, Callable[[], Made]] = {}
    with executor as opened:
        while wanted := list(islice(job.blocks(opened.workers), opened.ahead)):
            if until is not None and monotonic() >= until:
                return
            under_way = {block: under_way.get(block) or opened.submit(*block) for block in wanted}
            yield wanted[0], under_way.pop(wanted[0])()


def as_they_come(
    job: Wanting, make: Maker[Made], workers: int, stop: threading.Event
) -> Results[Made]:
    """Each block that a job wants, with what a thread of this process made of it, as it is ready.

    The job is asked once for all blocks. ``stop`` is set when no more are wanted; those that are
    under way then are waited for.
    """
    blocks = iter(job.blocks(workers))
    under_way: dict[Future[Made], BlockId] = {}
    pool = ThreadPoolExecutor(workers)
    try:
        while True:
            for block in islice(blocks, AHEAD * workers - len(under_way)):
                under_way[pool.submit(make, *block)] = block
            if not under_way:
                return
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                yield under_way.pop(future), future.result()
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


# --- jobs that become lines ---------------------------------------------------------------------


class Gathering(ABC, Generic[Made]):
    """What is put together of blocks, as lines: ``kept`` of them so far.

    ``unit`` is what a line holds, in the plural, ``failure`` the class of its errors.
    """

    unit: str
    failure: type[KoplError]
    kept: int = 0

    @abstractmethod
    def blocks(self, workers: int) -> Iterable[BlockId]:
        """The blocks that are wanted next, as `Wanting` says."""

    @abstractmethod
    def take(self, block: BlockId, made: Made) -> Iterable[str]:
        """Put a block together with what there is; gives the lines that are new."""

    @property
    def settled(self) -> bool:
        """Whether the lines so far have no influence on those that follow."""
        return False

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """What is to be known, besides the lines, for another run to go on."""

    @abstractmethod
    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a state."""

    @abstractmethod
    def recall(self, line: str) -> None:
        """Take account of a line that has influence, in a state that was restored."""


class FileJob(Unfinished, Generic[Made]):
    """A gathering whose lines and state are kept in an unfinished file.

    ``about`` is what must be the same for another run to go on. Raises WriteError where nothing can
    be written or a stopped run is in the way, ReadError for a stopped run that does not fit.
    """

    def __init__(
        self, gathering: Gathering[Made], output: Path, about: Mapping[str, Any], *, resume: bool
    ) -> None:
        self._gathering, self._first = gathering, 0
        self.failure, self.blocks = gathering.failure, gathering.blocks
        super().__init__(output, about, gathering.unit, resume=resume)
        if self.state is None:
            self.begin()
            return
        try:
            gathering.restore(self.state)
            size, self._first = int(self.state["bytes"]), int(self.state.get("begin", 0))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise self.unreadable(error) from None
        self.read_again(size, gathering.recall, self._first)
        self.begin(size, gathering.kept)

    @property
    def done(self) -> int:
        return self.kept

    def take(self, block: BlockId, made: Made) -> None:
        """Write the new lines of a block, and how far the gathering is."""
        new = list(self._gathering.take(block, made))
        self.append("".join(f"{line}\n" for line in new), len(new))
        if self._gathering.settled:
            self._first = self.size
        place = {"bytes": self.size, "begin": self._first, "kept": self.kept}
        self.save(**self._gathering.state(), **place)
