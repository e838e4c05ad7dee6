"""Oxigraph's own server, which puts a store behind a read-only SPARQL 1.1 endpoint."""

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
from pathlib import Path
from typing import Any

from kb.iri import BASE
from kopl.sparql.engines.endpoint import Endpoint
from kopl.sparql.errors import MissingPackageError, TimedOutError, UnreachableError
from kopl_base.errors import WriteError
from kopl_base.packages import needs
from kopl_base.temporary import filling


class OxigraphServer:
    """A server for the store in a folder, on this machine only; a context manager.

    ``file`` (N-Triples, Turtle …) is loaded first when the folder is new. ``port`` is a free one
    unless given. ``timeout`` is the server's time limit for a query in seconds; an answer that
    takes longer breaks off.
    """

    def __init__(
        self,
        location: Path | str,
        *,
        file: Path | str | None = None,
        port: int | None = None,
        timeout: int | None = 30,
    ) -> None:
        self.location = Path(location).absolute()
        self.port = port or 0
        self._file = None if file is None else Path(file).absolute()
        self._given, self._timeout = port is not None, timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._out: Any = None

    @property
    def url(self) -> str:
        """The address of the endpoint."""
        return f"http://127.0.0.1:{self.port}/query"

    def __enter__(self) -> OxigraphServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, *, wait: float = 60.0) -> None:
        """Start it; returns when it answers.

        Raises MissingPackageError without the server, UnreachableError when it does not answer
        after ``wait`` seconds or ends before.
        """
        binary = _binary()
        if self._file is not None and not self.location.exists():
            load(self.location, self._file)
        if not self.location.is_dir():
            raise UnreachableError(f"{self.location}: there is no store to serve")
        for turn in range(1 if self._given else 3):
            if not self._given:
                self.port = _free_port()
            try:
                self._start(binary, wait)
                return
            except UnreachableError:
                # Another program may have taken a port that was free a moment ago.
                if self._given or turn == 2:
                    raise

    def _start(self, binary: str, wait: float) -> None:
        command = [binary, "serve-read-only", "--location", str(self.location)]
        command += ["--bind", f"127.0.0.1:{self.port}"]
        if self._timeout is not None:
            command += ["--timeout-s", str(max(1, self._timeout))]
        self._out = tempfile.TemporaryFile()  # noqa: SIM115 (closed in stop)
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._out, stderr=subprocess.STDOUT
        )
        late = time.monotonic() + wait
        while not (self._is_online() and _listens(self.port)):
            ended = self._process.poll() is not None
            if ended or time.monotonic() > late:
                said = " ".join(self._said().split())[-300:]
                self.stop()
                what = "ended at once" if ended else f"does not answer after {wait:g} s"
                raise UnreachableError(
                    f"Oxigraph's server for {self.location} on port {self.port} {what}: {said}"
                )
            time.sleep(0.02)

    def _said(self) -> str:
        size = os.fstat(self._out.fileno()).st_size
        # The server writes at the same offset, which reading here must not move.
        return os.pread(self._out.fileno(), size, 0).decode("utf-8", "replace")

    def _is_online(self) -> bool:
        """Whether this very server says so; on its port another program may have been first."""
        return "Listening" in self._said()

    def wait(self) -> int:
        """Wait until the server ends by itself; its exit status."""
        return 0 if self._process is None else self._process.wait()

    def stop(self) -> None:
        """Stop it."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._out is not None:
            self._out.close()
            self._out = None

    def engine(self, *, base: str = BASE, **options: Any) -> Endpoint:
        """The engine that asks it; the options are those of `Endpoint`."""
        return Endpoint(self.url, base=base, **options)


def load(location: Path | str, file: Path | str, *, wait: float = 3600.0) -> None:
    """Load a file into a new store; the folder appears when it is complete.

    Raises WriteError when the file cannot be loaded and TimedOutError after ``wait`` seconds.
    """
    location, binary = Path(location), _binary()
    try:
        with filling(location) as temporary:
            done = subprocess.run(
                [binary, "load", "--location", temporary, "--file", str(file), "--lenient"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=wait,
                check=False,
            )
            said = " ".join(done.stdout.decode("utf-8", "replace").split())[-300:]
            # Lenient loading, which our own bare IRIs need, passes over lines that it cannot read.
            if done.returncode or "error" in said.lower():
                raise WriteError(f"{file}: Oxigraph could not load it: {said}")
    except subprocess.TimeoutExpired:
        raise TimedOutError(f"{file}: Oxigraph did not load it within {wait:g} s") from None


def serve(
    location: Path | str, port: int | None = None, timeout: int | None = 30, *, quiet: bool = False
) -> int:
    """Serve a store until somebody presses Ctrl-C; the server's exit status, 0 when interrupted.

    The address is printed once the server answers. Errors are those of `OxigraphServer.start`.
    """
    with contextlib.ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():
            # Otherwise a "kill" would leave the server behind.
            before = signal.signal(signal.SIGTERM, _interrupt)
            stack.callback(signal.signal, signal.SIGTERM, before)
        try:
            server = stack.enter_context(OxigraphServer(location, port=port, timeout=timeout))
            if not quiet:
                print(server.url, flush=True)
            return server.wait()
        except KeyboardInterrupt:
            return 0


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _binary() -> str:
    # The wheel puts it beside the interpreter, which need not be on PATH.
    beside = Path(sys.executable).with_name("oxigraph")
    for found in (str(beside), str(beside.with_suffix(".exe")), shutil.which("oxigraph")):
        if found and os.access(found, os.X_OK):
            return found
    raise MissingPackageError(needs("Oxigraph's server", "oxigraph", extra="server"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2):
            return True
    except OSError:
        return False
