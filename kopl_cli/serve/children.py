"""Commands of the toolkit in processes of their own, which the server watches and ends.

A child reads its standard input, which ends with the server however that ends: it then stops as if
it had been asked to, so that a training is saved. What is told of its progress lies in a file of
JSON lines (`kopl_base.progress`).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kopl_base.errors import KoplError
from kopl_base.progress import FILE as PROGRESS
from kopl_cli import entry

# Seconds that a child has for its end once the server is gone, or has asked for it.
PATIENCE = 120.0
# How much of the file of progress and of what was said is looked at, from the end.
TAIL = 1 << 16

# Modules are looked for where the server looks for them, not first in the folder at hand.
_BEGIN = (
    "import sys; at = sys.argv.index('--'); sys.path[:] = sys.argv[2:at];"
    " from kopl_cli.serve.children import be; be(int(sys.argv[1]), sys.argv[at + 1:])"
)


class HeldError(KoplError):
    """Work that another process does in the same folder."""


@dataclass(frozen=True)
class Stage:
    """How far a piece of the work is; ``left`` in seconds."""

    title: str
    done: float
    total: float | None
    left: float | None
    note: str

    @property
    def share(self) -> float:
        """The share that is done; 0 where nobody knows."""
        return min(1.0, self.done / self.total) if self.total else 0.0


class Child:
    """A command of the toolkit that runs now.

    ``lock`` is a file that the child holds as long as it lives: while another process holds it,
    HeldError is raised. ``memory`` bounds the bytes that it may take.
    """

    def __init__(
        self, folder: Path, arguments: Sequence[str], *, lock: Path | None = None, memory: int = 0
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._progress = folder / "progress.jsonl"
        for file in (self._progress, self.out, self.err):
            file.unlink(missing_ok=True)
        held = None if lock is None else _held(lock)
        try:
            with self.out.open("wb") as out, self.err.open("wb") as err:
                self.process = subprocess.Popen(
                    [sys.executable, "-c", _BEGIN, str(memory), *sys.path, "--", *arguments],
                    stdin=subprocess.PIPE, stdout=out, stderr=err,
                    env={**os.environ, PROGRESS: str(self._progress.resolve())},
                    pass_fds=[] if held is None else [held],
                    start_new_session=True,  # an interrupt from the keyboard is for the server
                )  # fmt: skip
        finally:
            if held is not None:
                os.close(held)  # the child has it now

    @property
    def out(self) -> Path:
        """What it writes to its standard output."""
        return self.folder / "out.txt"

    @property
    def err(self) -> Path:
        """What it writes to standard error."""
        return self.folder / "err.txt"

    def stage(self) -> Stage | None:
        """What it does now, as far as it has told."""
        for line in reversed(_tail(self._progress).split("\n")):
            try:
                said = json.loads(line)
                if said["process"] == self.process.pid:
                    return Stage(
                        said["title"], said["done"], said["total"], said["left"], said["note"]
                    )
            except (ValueError, KeyError, TypeError):
                continue  # the line is not whole yet, or was cut
        return None

    def said(self) -> str:
        """The last lines that it wrote to standard error, without what begins each."""
        lines = [line.removeprefix("kopl: ") for line in _tail(self.err).split("\n")]
        return "\n".join([line for line in lines if line.strip()][-3:])

    def result(self) -> Any:
        """The JSON object in the last line of its output; None where there is none."""
        lines = self.out.read_text("utf-8", "replace").rstrip("\n").split("\n")
        try:
            return json.loads(lines[-1])
        except ValueError:
            return None

    def stop(self) -> None:
        """Ask it to end."""
        if self.process.poll() is None:
            with contextlib.suppress(OSError):
                self.process.send_signal(signal.SIGTERM)

    def ended(self, wait: float) -> int | None:
        """Its exit status, None where it still runs after so many seconds."""
        try:
            return self.process.wait(wait)
        except subprocess.TimeoutExpired:
            return None

    def end(self, wait: float) -> None:
        """Ask it to end, and end it by force if it goes on for so many seconds."""
        self.stop()
        if self.ended(wait) is None:
            self.process.kill()
            self.process.wait()
        self.close()

    def close(self) -> None:
        """Let go of a child that has ended."""
        if self.process.stdin is not None:
            self.process.stdin.close()


def _held(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise HeldError(f"{path}: another process works there") from None
    return handle


def is_held(path: Path) -> bool:
    """Whether a process holds a lock."""
    try:
        os.close(_held(path))
    except HeldError:
        return True
    return False


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def be(memory: int, arguments: Sequence[str]) -> None:
    """Be a child: run the command, and stop it when the server is gone."""
    if memory:
        import resource

        with contextlib.suppress(OSError, ValueError):  # not every system has such a limit
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    threading.Thread(target=_stop_with_server, daemon=True).start()
    sys.argv = ["kopl", *arguments]
    entry()


def _stop_with_server() -> None:
    os.read(sys.stdin.fileno(), 1)  # no buffer, which would be locked when this process ends
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE)
    os._exit(1)
