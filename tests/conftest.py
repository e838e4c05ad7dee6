"""Fixtures that several packages' tests share."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent / "data"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep snapshots of tests away from the user's cache, but share them between tests."""
    folder = Path(os.environ.get("KOPL_TEST_CACHE") or tmp_path_factory.getbasetemp() / "cache")
    monkeypatch.setenv("KOPL_CACHE_DIR", str(folder))


@pytest.fixture(autouse=True)
def _own_log() -> Iterator[None]:
    """Let no test see where another one, as the command line does, sent log messages."""
    yield
    log = logging.getLogger("kb")
    log.handlers.clear()
    log.propagate = True


@pytest.fixture(scope="session")
def tiny_document() -> dict[str, Any]:
    """A knowledge base that can be answered by eye, as the object of its kb.json."""
    document: dict[str, Any] = json.loads((DATA / "tiny.json").read_text("utf-8"))
    return document


@pytest.fixture(scope="session")
def tiny(tiny_document: dict[str, Any]) -> Any:
    """The same as a knowledge base."""
    from kb import from_kqapro

    return from_kqapro(tiny_document)


@pytest.fixture(scope="session")
def kopl_data() -> Path:
    """The folder of real data that KOPL_DATA names; the test is skipped without it."""
    folder = os.environ.get("KOPL_DATA")
    if not folder:
        pytest.skip("KOPL_DATA is not set to a folder with the published data")
    if not Path(folder).is_dir():
        pytest.skip(f"KOPL_DATA names {folder}, which is no folder")
    return Path(folder).resolve()
