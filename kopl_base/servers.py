"""Programs that serve on ports of this machine: started, waited for, watched and stopped."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from kopl_base.errors import KoplError

# Seconds between looks at a process.
_LOOK = 0.02

Ports = tuple[int, ...]


class ServerError(KoplError):
    """A server that ended at once, or did not answer in time.

    ``what`` says which of the two, ``said`` is all that it wrote.
    """

    kind = "server"

    def __init__(self, name: str, ports: Ports, what: str, said: str) -> None:
        self.what, self.said = what, said
        places = f"port{'s' * (len(ports) > 1)} {' and '.join(map(str, ports))}"
        super().__init__(f"{name} on {places} {what}: {' '.join(said.split())[-300:]}")


class Background:
    """A process that runs beside this one, which this one or another has started.

    ``is_ours`` tells whether the process of that number is still the one that is meant: numbers are
    used again. The own ``child`` needs no such look.
    """

    def __init__(
        self,
        pid: int,
        child: subprocess.Popen[bytes] | None = None,
        is_ours: Callable[[int], bool] | None = None,
    ) -> None:
        self.pid, self.child, self._is_ours = pid, child, is_ours

    def lives(self) -> bool:
        """Whether it runs."""
        if self.child is not None:
            return self.child.poll() is None
        if self.pid <= 0:
            return False
        try:
            os.kill(self.pid, 0)
        except OSError:
            return False
        return self._is_ours is None or self._is_ours(self.pid)

    def ended(self, wait: float) -> bool:
        """Whether it has ended, after ``wait`` seconds at the latest."""
        late = time.monotonic() + wait
        while self.lives():
            if time.monotonic() > late:
                return False
            time.sleep(_LOOK)
        return True

    def end(self, wait: float = 10.0) -> None:
        """End it, by force if it goes on for ``wait`` seconds."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            if not self.lives():
                return
            with contextlib.suppress(OSError):
                os.kill(self.pid, sign)
            if self.ended(wait):
                return


class LocalServer:
    """A server program, which listens on this machine.

    ``command`` gives what is run for the ports that were chosen: those of ``ports``, a free one for
    each None. ``online`` stands in what the program writes when it has begun to serve: on its port
    another program may have been first. What it writes goes to the file ``log``, or is kept for
    messages only. One that is ``detached`` goes on when this process ends. ``began`` is told the
    number of the process.
    """

    def __init__(
        self,
        name: str,
        command: Callable[[Ports], Sequence[str]],
        *,
        online: str,
        ports: Sequence[int | None] = (None,),
        folder: Path | None = None,
        log: Path | None = None,
        detached: bool = False,
        began: Callable[[int, Ports], None] | None = None,
    ) -> None:
        self.name, self.ports = name, tuple(port or 0 for port in ports)
        self.process: Background | None = None
        self._command, self._online, self._given = command, online, tuple(ports)
        self._folder, self._log, self._detached, self._began = folder, log, detached, began
        self._out: IO[bytes] | None = None

    def start(self, *, wait: float = 60.0, taken: Callable[[str], bool] | None = None) -> None:
        """Start it; returns when it answers.

        Where ports were not given it is tried with others: another program may have taken one that
        was free a moment ago. ``taken`` tells by what the server wrote whether that may be so.
        Raises ServerError when it does not answer after ``wait`` seconds or ends before.
        """
        turns = 3 if None in self._given else 1
        for turn in range(1, turns + 1):
            self.ports = tuple(port or free_port() for port in self._given)
            try:
                self._start(wait)
                return
            except ServerError as error:
                if turn == turns or not (taken is None or taken(error.said)):
                    raise

    def said(self) -> str:
        """What it has written so far."""
        if self._log is not None:
            return self._log.read_bytes().decode("utf-8", "replace")
        if self._out is None:
            return ""
        # The server writes at the same offset, which reading here must not move.
        size = os.fstat(self._out.fileno()).st_size
        return os.pread(self._out.fileno(), size, 0).decode("utf-8", "replace")

    def wait(self) -> int:
        """Wait until it ends by itself; its exit status, 0 for one that was not started."""
        child = None if self.process is None else self.process.child
        return 0 if child is None else child.wait()

    def stop(self) -> None:
        """Stop it."""
        process, self.process = self.process, None
        if process is not None:
            process.end()
        if self._out is not None:
            self._out.close()
            self._out = None

    def _start(self, wait: float) -> None:
        child = self._run()
        self.process = Background(child.pid, child)
        if self._began is not None:
            self._began(child.pid, self.ports)
        late = time.monotonic() + wait
        while not (self._online in self.said() and all(map(listens, self.ports))):
            ended = not self.process.lives()
            if ended or time.monotonic() > late:
                what = "ended at once" if ended else f"does not answer after {wait:g} s"
                error = ServerError(self.name, self.ports, what, self.said())
                self.stop()
                raise error
            time.sleep(_LOOK)

    def _run(self) -> subprocess.Popen[bytes]:
        with contextlib.ExitStack() as stack:
            out: IO[bytes]
            if self._log is None:
                out = self._out = tempfile.TemporaryFile()  # noqa: SIM115 (closed in stop)
            else:
                out = stack.enter_context(self._log.open("wb"))
            return subprocess.Popen(
                list(self._command(self.ports)),
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=self._detached,
            )


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """A SIGTERM meanwhile is a KeyboardInterrupt: it would leave a server behind otherwise."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def find_program(*names: str) -> str | None:
    """The path of the first of these programs that is there; None without any.

    A wheel puts programs beside the interpreter, which need not be on PATH.
    """
    for name in names:
        beside = Path(sys.executable).with_name(name)
        for found in (str(beside), str(beside.with_suffix(".exe")), shutil.which(name)):
            if found and os.access(found, os.X_OK):
                return found
    return None


def run_program(command: Sequence[str], seconds: float) -> tuple[int, str]:
    """The exit status of a program that is not a server, and all that it said.

    Raises TimeoutError when it takes longer; it is ended then.
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,  # or it may ask for something, and wait
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    return done.returncode, done.stdout.decode("utf-8", "replace")


def free_port() -> int:
    """A port of this machine on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Whether somebody listens on a port of this machine."""
    if not port:
        return False
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2):
            return True
    except OSError:
        return False
