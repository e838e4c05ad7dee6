"""Server programs: small scripts that serve, end, or do neither."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kopl_base.servers import (
    Background,
    LocalServer,
    Ports,
    ServerError,
    find_program,
    free_port,
    listens,
    run_program,
)

SERVES = """
import socket, sys, time
found = [socket.create_server(("127.0.0.1", int(port))) for port in sys.argv[1:]]
print("on line", flush=True)
time.sleep(60)
"""


def script(text: str) -> Callable[[Ports], Sequence[str]]:
    return lambda ports: [sys.executable, "-c", text, *map(str, ports)]


def test_a_server_is_started_and_stopped(tmp_path: Path) -> None:
    began: list[Any] = []
    log = tmp_path / "log"
    server = LocalServer(
        "a server",
        script(SERVES),
        online="on line",
        ports=(None, None),
        folder=tmp_path,
        log=log,
        began=lambda pid, ports: began.append((pid, ports)),
    )
    server.start()
    assert len(set(server.ports)) == 2 and all(map(listens, server.ports))
    assert server.said() == log.read_text() == "on line\n"
    process = server.process
    assert process is not None and process.lives() and not process.ended(0)
    assert began == [(process.pid, server.ports)]
    server.stop()
    assert not process.lives() and not any(map(listens, server.ports))
    server.stop()
    assert server.wait() == 0


def test_one_that_ends_says_why() -> None:
    text = "import sys; print('no\\nspace'); sys.exit('left')"
    server = LocalServer("a server", script(text), online="on line", ports=(port := free_port(),))
    with pytest.raises(ServerError) as caught:
        server.start()
    assert str(caught.value) == f"a server on port {port} ended at once: no space left"
    assert caught.value.what == "ended at once" and server.process is None


def test_one_that_does_not_answer_is_stopped() -> None:
    pids: list[int] = []
    text = "import time; print('on line', flush=True); time.sleep(60)"  # but listens nowhere
    server = LocalServer(
        "a server", script(text), online="on line", began=lambda pid, _: pids.append(pid)
    )
    with pytest.raises(ServerError, match=r"does not answer after 0.3 s: "):
        server.start(wait=0.3, taken=lambda said: False)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_other_ports_are_tried_where_one_may_be_taken() -> None:
    tried: list[int] = []

    def command(ports: Ports) -> Sequence[str]:
        tried.append(ports[0])
        return script("raise SystemExit('taken')" if len(tried) < 3 else SERVES)(ports)

    server = LocalServer("a server", command, online="on line")
    server.start(taken=lambda said: "taken" in said)
    assert len(tried) == 3 and server.ports == (tried[2],) and listens(tried[2])
    server.stop()
    tried.clear()
    with pytest.raises(ServerError):
        server.start(taken=lambda said: "full" in said)
    assert len(tried) == 1


def test_one_that_ignores_a_wish_is_ended_by_force() -> None:
    text = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SERVES
    server = LocalServer("a server", script(text), online="on line")
    server.start()
    process = server.process
    assert process is not None
    process.end(wait=0.2)
    assert server.wait() == -signal.SIGKILL


def test_a_process_of_somebody_else_is_let_alone() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        other = Background(child.pid, is_ours=lambda pid: False)
        assert not other.lives()
        other.end()
        assert child.poll() is None and Background(child.pid, is_ours=lambda pid: True).lives()
        assert not Background(0).lives()
    finally:
        child.kill()
        child.wait()


def test_programs_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside, on_path = tmp_path / "beside", tmp_path / "path"
    for folder in (beside, on_path):
        folder.mkdir()
        (folder / "serves").write_text("")
        (folder / "serves").chmod(0o700)
    monkeypatch.setenv("PATH", str(on_path))
    monkeypatch.setattr(sys, "executable", str(beside / "python"))
    assert find_program("nothing", "serves") == str(beside / "serves")
    (beside / "serves").unlink()
    assert find_program("nothing", "serves") == str(on_path / "serves")
    assert find_program("nothing") is None


def test_a_program_is_run_to_its_end_or_ended() -> None:
    says = "import sys; print('é', sys.stdin.read(), flush=True); print('no', file=sys.stderr)"
    status, said = run_program([sys.executable, "-X", "utf8", "-c", f"{says}; sys.exit(3)"], 60)
    assert (status, said.split()) == (3, ["é", "no"])
    with pytest.raises(TimeoutError):
        run_program([sys.executable, "-c", "import time; time.sleep(60)"], 0.1)
