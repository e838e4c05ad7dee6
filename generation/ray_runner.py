"""Making blocks of questions on a Ray cluster.

Every node needs the toolkit, with Ray, in the same versions. The knowledge base is sent to it as a
snapshot, through Ray's object store; rules and lexicon are sent, too. Only so many blocks are under
way that each core has one in work and one waiting. A block whose worker or node was lost is made
again.
"""

from __future__ import annotations

import logging
import os
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from generation.makers import Block, BlockMaker, Plan, Sources, Start
from kb import KnowledgeBase, read_snapshot, write_snapshot
from kb.load import cache_folder
from kopl_base.errors import KoplError, ReadError
from kopl_base.packages import needs
from kopl_base.processes import AHEAD, Executor, LostWorkerError
from kopl_base.stream import writing

log = logging.getLogger("kb")

# How often a block is made again whose worker was lost: what ends every worker is a fault of ours.
RETRIES = 5
# Seconds for the cluster to be reached, and between two looks at whether it still has cores.
REACH, LOOK = 5.0, 10.0


class RayError(KoplError):
    """A cluster that cannot be used: Ray is missing, or the address does not answer."""

    kind = "ray"


@dataclass(frozen=True)
class Task:
    """What a worker needs to know besides the number of its block."""

    plan: Plan
    sources: Sources
    fingerprint: str


def cluster(address: str | None = None, workers: int | None = None) -> Start:
    """The Ray cluster at an address, by default that of RAY_ADDRESS, as what makes blocks.

    Without either, a new one is started on this machine (with so many ``workers``) and ended with
    the work; "auto" is the one that runs here already. ``workers`` bounds how many blocks are in
    work at once, which is as many as the cluster has cores. Raises RayError.
    """
    try:
        ray: Any = import_module("ray")
    except ImportError:
        raise RayError(needs("--ray", "ray", extra="ray")) from None

    @contextmanager
    def start(plan: Plan, kb: KnowledgeBase) -> Iterator[Executor[Block]]:
        with _joined(ray, address, workers):
            found = Cluster(ray, plan, kb, workers)
            try:
                yield found
            finally:
                found.cancel()

    return start


class Cluster:
    """Makes blocks of a plan on the cluster that was joined."""

    def __init__(self, ray: Any, plan: Plan, kb: KnowledgeBase, workers: int | None) -> None:
        self._ray, self._workers = ray, workers
        self._task = Task(plan, Sources.of(plan), kb.fingerprint)
        # Within a list, it is not fetched before a worker asks for it.
        self._held = [ray.put(_as_bytes(kb))]
        options = {"num_cpus": 1, "max_retries": RETRIES, "scheduling_strategy": "SPREAD"}
        self._make = ray.remote(**options)(_make)
        self._under_way: list[Any] = []

    @property
    def workers(self) -> int:
        """How many blocks can be in work now; a cluster may grow and shrink."""
        return self._workers or _cores(self._ray)

    @property
    def ahead(self) -> int:
        return AHEAD * self.workers

    def submit(self, *piece: object) -> Callable[[], Block]:
        reference = self._make.remote(self._task, self._held, *piece)
        self._under_way.append(reference)
        return partial(self._made, reference)

    def _made(self, reference: Any) -> Block:
        # What is left of the block in the cluster goes with the reference.
        self._under_way.remove(reference)
        return _result(self._ray, reference)

    def cancel(self) -> None:
        """Give up the blocks that were not called for."""
        for reference in self._under_way:
            self._ray.cancel(reference, force=True)


def _result(ray: Any, reference: Any) -> Block:
    """A block, when it is finished; raises LostWorkerError when nobody can make it any more."""
    try:
        while not ray.wait([reference], timeout=LOOK)[0]:
            if not _cores(ray):
                raise LostWorkerError("the cluster has no cores any more")
        block: Block = ray.get(reference)
        return block
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, KoplError):
            raise error.cause from None
        raise RayError(f"a worker of the cluster failed: {_last_line(error)}") from None
    except ray.exceptions.RayError as error:
        if "No module named" in str(error):
            raise RayError(
                f"the nodes of the cluster lack a package ({_last_line(error)}); each needs"
                " kopl-toolkit[ray] in the version that is installed here"
            ) from None
        raise LostWorkerError(f"the cluster lost a block: {_last_line(error)}") from None


def _cores(ray: Any) -> int:
    return int(ray.cluster_resources().get("CPU", 0))


def _last_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[-1]


# --- the cluster -------------------------------------------------------------------------------


@contextmanager
def _joined(ray: Any, address: str | None, workers: int | None) -> Iterator[None]:
    """Be part of a cluster; one that this process has joined already is taken as it is."""
    if ray.is_initialized():
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    options: dict[str, Any] = {"address": address, "logging_level": logging.ERROR}
    if address == "local":
        # It reports to nobody.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options |= {"num_cpus": workers, "include_dashboard": False}
    else:
        _check_reachable(address)
    try:
        ray.init(**options, log_to_driver=False)
    # Ray ends the process by itself when a cluster does not take it.
    except (Exception, SystemExit) as error:
        raise RayError(
            f"{address}: no Ray cluster can be used there: {_last_line(error)}"
        ) from None
    try:
        if not _cores(ray):
            raise RayError(f"{address}: the Ray cluster has no cores")
        yield
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Raise RayError when nothing answers there; Ray itself would try for two minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():
        return  # "auto" and the like, or what Ray refuses at once
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH).close()
    except (OSError, OverflowError) as error:
        raise RayError(f"{address}: no Ray cluster answers there: {error}") from None


# --- the knowledge base ------------------------------------------------------------------------


def _as_bytes(kb: KnowledgeBase) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A knowledge base as the bytes of its snapshot, mapped from a file that has no name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kb.kopl"
        write_snapshot(kb, path)
        return np.memmap(path, np.uint8, mode="r")


def _opened(fingerprint: str, held: Sequence[Any], *, cache: bool) -> KnowledgeBase:
    """The knowledge base of a fingerprint: from this node's cache, else from the object store."""
    folder = cache_folder() if cache else None
    if folder is None:
        with tempfile.TemporaryDirectory() as own:
            return _written(Path(own) / "kb.kopl", held)
    path = folder / f"sent-{fingerprint[:32]}.kopl"
    try:
        kb = read_snapshot(path)
        if kb.fingerprint == fingerprint:
            return kb
    except ReadError:
        pass  # it is not there yet, or is no good any more
    return _written(path, held)


def _written(path: Path, held: Sequence[Any]) -> KnowledgeBase:
    """What is held in the object store, written and opened; the file may go away then."""
    sent = import_module("ray").get(held[0])
    with writing(path, binary=True) as file:
        file.write(sent.data)
    return read_snapshot(path)


# --- in a worker -------------------------------------------------------------------------------

_LAST: tuple[Task, BlockMaker] | None = None


def _make(task: Task, held: Sequence[Any], number: int) -> Block:
    """The block of a number; the worker that makes it is kept for the next one."""
    global _LAST
    if _LAST is None or _LAST[0] != task:
        kb = _opened(task.fingerprint, held, cache=task.plan.cache)
        _LAST = task, BlockMaker(task.plan, kb, task.sources)
    return _LAST[1].block(number)
