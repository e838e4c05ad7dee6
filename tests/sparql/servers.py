"""Real servers for tests; each test process starts its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kopl.sparql.engines.virtuoso import INSTALL, VirtuosoServer, find_binaries
from kopl.sparql.errors import MissingPackageError


@pytest.fixture(scope="session")
def virtuoso_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtuosoServer]:
    """A running Virtuoso; without the program the test is skipped, or fails where it must run.

    Other test modules import this function to have the fixture.
    """
    try:
        find_binaries()
    except MissingPackageError as error:
        if os.environ.get("REQUIRE_VIRTUOSO") == "1":
            pytest.fail(f"REQUIRE_VIRTUOSO=1, but {error}")
        pytest.skip(f"VIRTUOSO IS NOT TESTED: it is not installed; {INSTALL}")
    server = VirtuosoServer(tmp_path_factory.mktemp("virtuoso"))
    server.up(buffers=10_000)
    try:
        yield server
    finally:
        server.down(wait=20)


def write_lines(path: Path, lines: list[str]) -> Path:
    """A file of these lines of N-Triples."""
    path.write_text("".join(f"{line} .\n" for line in lines), "utf-8")
    return path
