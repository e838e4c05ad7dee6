"""Oxigraph's own server, which puts a store behind a read-only SPARQL 1.1 endpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kb.rdf.iri import BASE
from kopl.sparql.engines.endpoint import Endpoint
from kopl.sparql.errors import MissingPackageError, TimedOutError, UnreachableError
from kopl_base.errors import WriteError
from kopl_base.packages import needs
from kopl_base.servers import (
    LocalServer,
    Ports,
    ServerError,
    ended_by_signals,
    find_program,
    run_program,
)
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
        self._file = None if file is None else Path(file).absolute()
        self._timeout = timeout
        self._server = LocalServer(
            f"Oxigraph's server for {self.location}",
            self._command,
            online="Listening",
            ports=[port],
        )

    @property
    def port(self) -> int:
        """The port on which it listens; 0 before it was started on a free one."""
        return self._server.ports[0]

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
        find_binary()
        if self._file is not None and not self.location.exists():
            load(self.location, self._file)
        if not self.location.is_dir():
            raise UnreachableError(f"{self.location}: there is no store to serve")
        try:
            self._server.start(wait=wait)
        except ServerError as error:
            raise UnreachableError(str(error)) from None

    def _command(self, ports: Ports) -> list[str]:
        command = [find_binary(), "serve-read-only", "--location", str(self.location)]
        command += ["--bind", f"127.0.0.1:{ports[0]}"]
        if self._timeout is not None:
            command += ["--timeout-s", str(max(1, self._timeout))]
        return command

    def wait(self) -> int:
        """Wait until the server ends by itself; its exit status."""
        return self._server.wait()

    def stop(self) -> None:
        """Stop it."""
        self._server.stop()

    def engine(self, *, base: str = BASE, **options: Any) -> Endpoint:
        """The engine that asks it; the options are those of `Endpoint`."""
        return Endpoint(self.url, base=base, **options)


def load(location: Path | str, file: Path | str, *, wait: float = 3600.0) -> None:
    """Load a file into a new store; the folder appears when it is complete.

    Raises WriteError when the file cannot be loaded and TimedOutError after ``wait`` seconds.
    """
    location, binary = Path(location), find_binary()
    with filling(location) as temporary:
        command = [binary, "load", "--location", str(temporary), "--file", str(file), "--lenient"]
        try:
            status, output = run_program(command, wait)
        except TimeoutError:
            raise TimedOutError(f"{file}: Oxigraph did not load it within {wait:g} s") from None
        said = " ".join(output.split())[-300:]
        # Lenient loading, which our own bare IRIs need, passes over lines that it cannot read.
        if status or "error" in said.lower():
            raise WriteError(f"{file}: Oxigraph could not load it: {said}")


def serve(
    location: Path | str, port: int | None = None, timeout: int | None = 30, *, quiet: bool = False
) -> int:
    """Serve a store until somebody presses Ctrl-C; the server's exit status, 0 when interrupted.

    The address is printed once the server answers. Errors are those of `OxigraphServer.start`.
    """
    with ended_by_signals():
        try:
            with OxigraphServer(location, port=port, timeout=timeout) as server:
                if not quiet:
                    print(server.url, flush=True)
                return server.wait()
        except KeyboardInterrupt:
            return 0


def find_binary() -> str:
    """The path of the server; raises MissingPackageError without it."""
    if found := find_program("oxigraph"):
        return found
    raise MissingPackageError(needs("Oxigraph's server", "oxigraph", extra="server"))
