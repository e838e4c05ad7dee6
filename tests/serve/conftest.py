"""Clients of a server over the bundled knowledge base, without sockets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kb import KnowledgeBase, load
from kopl_base.visitors import Visitors

pytest.importorskip("starlette", reason="the extra serve is not installed")
pytest.importorskip("httpx", reason="starlette's client needs httpx")

from starlette.testclient import TestClient

from kopl_cli.serve.application import application
from kopl_cli.serve.bases import Playground, ServeLimits
from tests.parsers.conftest import (  # noqa: F401 (fixtures, used by their names)
    runs,
    small,
    small_examples,
    torch,
    trained,
)

ADDRESS = "http://127.0.0.1:8322"


def client_of(playground: Playground, **visitors: Any) -> TestClient:
    """A client of a server over a playground."""
    given = {"host": "127.0.0.1", "port": 8322} | visitors
    return TestClient(application(playground, Visitors(**given)), base_url=ADDRESS)


@pytest.fixture(scope="session")
def world() -> KnowledgeBase:
    """The bundled knowledge base."""
    return load("world")


@pytest.fixture
def playground(world: KnowledgeBase, tmp_path: Path) -> Iterator[Playground]:
    """The bundled knowledge base without a run."""
    made = Playground(ServeLimits(), folder=tmp_path)
    made.add(world, "world", place="world")
    yield made
    made.close()


@pytest.fixture
def client(playground: Playground) -> TestClient:
    """A client of the bundled knowledge base."""
    return client_of(playground)
