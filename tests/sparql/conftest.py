"""Fixtures of the engines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sparql.holders import HOLDERS, Holder

pytest.importorskip("pyoxigraph", reason="pip install 'kopl-toolkit[sparql]'")


@pytest.fixture(scope="session", params=HOLDERS)
def holder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Holder]:
    """Every engine, one after the other."""
    for found in HOLDERS[request.param](tmp_path_factory.mktemp(request.param)):
        yield found
        found.release()


@pytest.fixture(scope="session", params=["oxigraph-memory", "oxigraph-terms"])
def quick_holder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Holder]:
    """The engines that take a knowledge base and a query in milliseconds."""
    for found in HOLDERS[request.param](tmp_path_factory.mktemp(request.param)):
        yield found
        found.release()
