"""Queries in another process, which can be killed when they take too long."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kopl.sparql import errors
from kopl.sparql.engine import Answer
from kopl.sparql.errors import EngineError, TimedOutError


class Worker:
    """Answers the queries of one engine elsewhere, one after the other.

    A store on disk is opened by a process of its own, which stays for the next query; a store in
    memory is queried by a copy of this process, which ends with the query.
    """

    def __init__(self, folder: Path | None, answer: Callable[[str], Answer]) -> None:
        self._folder, self._answer = folder, answer
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def query(self, text: str, timeout: float) -> Answer:
        """The answer; raises TimedOutError when it takes longer, and kills the process."""
        deadline = time.monotonic() + timeout
        with self._lock:
            if self._folder is None:
                return self._forked(text, deadline, timeout)
            return self._asked(text, deadline, timeout)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._stop()

    def _asked(self, text: str, deadline: float, timeout: float) -> Answer:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "kopl.sparql.engines.worker", str(self._folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(text).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            self._stop()
            raise EngineError("the process that runs queries has ended") from None
        return self._result(process.stdout.fileno(), deadline, timeout, self._stop)

    def _forked(self, text: str, deadline: float, timeout: float) -> Answer:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:  # pragma: no cover (another process)
            try:
                os.close(reading)
                with os.fdopen(writing, "wb") as out:
                    out.write(_answered(self._answer, text))
            finally:
                os._exit(0)
        os.close(writing)

        def stop() -> None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, 9)

        try:
            return self._result(reading, deadline, timeout, stop)
        finally:
            os.close(reading)
            os.waitpid(child, 0)

    def _result(self, pipe: int, deadline: float, timeout: float, stop: Any) -> Answer:
        """The line that comes through the pipe, until the deadline."""
        pieces: list[bytes] = []
        while True:
            left = deadline - time.monotonic()
            ready = left > 0 and select.select([pipe], [], [], left)[0]
            if not ready:
                stop()
                raise TimedOutError(f"the query took longer than {timeout:g} s")
            piece = os.read(pipe, 1 << 20)
            if not piece:
                stop()
                raise EngineError("the process that runs queries has ended without an answer")
            pieces.append(piece)
            if piece.endswith(b"\n"):
                break
        found: dict[str, Any] = json.loads(b"".join(pieces))
        if "error" in found:
            raise getattr(errors, found["error"])(found["message"])
        return found

    def _stop(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process = None


def _answered(answer: Callable[[str], Answer], text: str) -> bytes:
    """A line with the answer, or with the error and its class."""
    found: dict[str, Any]
    try:
        found = answer(text)
    except EngineError as error:
        found = {"error": type(error).__name__, "message": str(error)}
    return json.dumps(found).encode() + b"\n"


def main(folder: str) -> None:
    """Answer the queries that come as lines of JSON on standard input."""
    from kopl.sparql.engines.oxigraph import Oxigraph

    engine = Oxigraph.open(folder)
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(_answered(engine.query, json.loads(line)))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        main(sys.argv[1])
