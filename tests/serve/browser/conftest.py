"""One Chromium for all tests of the page, and servers as a user starts them."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kopl_base.servers import LocalServer, find_program

# In CI a browser must be there.
REQUIRED = "REQUIRE_CHROMIUM"


def _missing(reason: str) -> Any:
    if os.environ.get(REQUIRED):
        pytest.fail(f"{reason}, and {REQUIRED} is set")
    pytest.skip(reason)


# The browser's loop of events runs in this thread, which tests that use asyncio would not bear: so
# it lives as long as the tests of this folder.
@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Chromium, started once."""
    try:
        from playwright.sync_api import expect, sync_playwright

        from tests.serve.browser.watching import LONG, axe

        axe()
    except ImportError as error:
        _missing(f"no browser tests: {error} (pip install playwright axe-playwright-python)")
    program = find_program("chromium", "chromium-browser", "google-chrome")
    if program is None:
        _missing("Chromium is not installed (apt-get install chromium)")
    expect.set_options(timeout=LONG)
    # A sandbox needs a user that is not root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=program, args=[*arguments, "--disable-dev-shm-usage"], timeout=LONG
        )
        yield found
        found.close()


@pytest.fixture
def watch(browser: Any) -> Iterator[Any]:
    """Opens pages; no page may write to the console or ask another origin."""
    from tests.serve.browser.watching import Watch

    found = Watch(browser)
    yield found
    found.close()


class Servers:
    """Servers of the page, each a process of its own on a free port."""

    def __init__(self) -> None:
        self.running: dict[str, LocalServer] = {}

    def start(self, *arguments: str | Path, folder: Path | None = None) -> str:
        """The address of a new server with these arguments of ``kopl serve``."""

        def command(ports: tuple[int, ...]) -> list[str]:
            own = [sys.executable, "-m", "kopl", "serve", "--port", str(ports[0])]
            return [*own, *map(str, arguments)]

        server = LocalServer("kopl serve", command, online="http://", folder=folder)
        server.start(wait=120)
        address = f"http://127.0.0.1:{server.ports[0]}"
        self.running[address] = server
        return address

    def kill(self, address: str) -> None:
        """End a server as a machine does that fails: it is told nothing before."""
        process = self.running[address].process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
        assert process.ended(60)

    def stop(self) -> None:
        """Stop all."""
        for server in self.running.values():
            server.stop()


@pytest.fixture(scope="package")
def servers() -> Iterator[Servers]:
    """Servers that several tests share."""
    found = Servers()
    yield found
    found.stop()


@pytest.fixture
def own_servers() -> Iterator[Servers]:
    """Servers that one test may write to and end."""
    found = Servers()
    yield found
    found.stop()


@pytest.fixture(scope="package")
def world(browser: Any, servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a server over ``world``, without a run."""
    return servers.start("--kb", "world", folder=tmp_path_factory.mktemp("served"))


@pytest.fixture
def run(trained: Path, small_examples: list[Any], tmp_path: Path) -> Path:
    """A run over eight countries, with its questions, that a test may write to."""
    from kopl.example import write_examples

    folder = tmp_path / "run"
    shutil.copytree(trained, folder)
    for name, part in (("train", small_examples), ("valid", small_examples[:12])):
        write_examples(folder / f"{name}.jsonl", part)
    write_examples(folder / "test.jsonl", small_examples[12:24])
    return folder
