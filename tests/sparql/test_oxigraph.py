"""The store on disk: built once, found again, nothing left of builds that were killed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kb import Builder, KnowledgeBase
from kopl.sparql.engines import oxigraph
from kopl.sparql.engines.oxigraph import Oxigraph, store_folder
from kopl.sparql.errors import EngineError, NotUnderstoodError
from kopl_base import temporary
from kopl_base.errors import WriteError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KOPL_CACHE_DIR", str(tmp_path))
    return tmp_path / "oxigraph"


def test_a_store_is_built_once(
    tiny: KnowledgeBase, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = store_folder(tiny)
    assert folder.parent == cache and list(cache.iterdir()) == [folder]
    monkeypatch.setattr(oxigraph, "build", lambda *_, **__: pytest.fail("built again"))
    assert store_folder(tiny) == folder
    assert Oxigraph.of(tiny).query("ASK { ?s ?p ?o }")["boolean"] is True


def test_a_build_that_takes_long_is_said(
    tiny: KnowledgeBase, cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.setattr(oxigraph, "SAID_FROM", len(tiny.literals) + len(tiny.relational))
    folder = store_folder(tiny)
    (said,) = caplog.messages
    assert said.startswith("building the Oxigraph store of ") and said.endswith(str(folder))
    store_folder(tiny)
    assert len(caplog.messages) == 1
    shutil.rmtree(folder)
    monkeypatch.setattr(oxigraph, "SAID_FROM", 1000)
    store_folder(tiny)
    assert len(caplog.messages) == 1  # small ones are there at once


def test_what_killed_builds_left_is_removed(tiny: KnowledgeBase, cache: Path) -> None:
    folder = store_folder(tiny)
    shutil.rmtree(folder)
    left, other = (cache / f".{folder.name}.{end}" for end in ("a1b2c3d4.unfinished", "mine"))
    for path in (left, other):
        path.mkdir()
        (path / "part").write_text("unfinished")
    handle, busy = temporary.reserve(folder, folder=True)  # somebody is at work there
    temporary._swept.clear()
    store_folder(tiny)
    assert not left.exists() and other.exists() and Path(busy).exists()
    os.close(handle)


@pytest.mark.parametrize("memory", [True, False])
def test_a_text_that_is_longer_than_oxigraph_holds(memory: bool, cache: Path) -> None:
    builder = Builder()
    builder.add_entity("e", "x" * (17 << 20))
    with pytest.raises(EngineError, match=r"more than 16 MiB.+ kopl or rdflib"):
        Oxigraph.of(builder.build(), memory=memory)
    assert memory or not list(cache.iterdir())


def test_a_cache_that_cannot_be_written(
    tiny: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPL_CACHE_DIR", "/dev/null/cache")
    with pytest.raises(WriteError, match=r"/dev/null/cache.*KOPL_CACHE_DIR"):
        store_folder(tiny)


def test_no_store(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no Oxigraph store"):
        Oxigraph.open(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "text",
    [
        "ASK { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }",
        "ASK { serVice ?x { } }",
        'ASK { ?s ?p """a " b""" . SERVICE <a:b> { ?s ?p "c" } }',
    ],
)
def test_other_endpoints_are_not_asked(tiny: KnowledgeBase, text: str) -> None:
    engine = Oxigraph.of(tiny, memory=True)
    with pytest.raises(NotUnderstoodError, match="SERVICE"):
        engine.query(text)
    assert engine.query('ASK { ?s ?p "SERVICE <x> {}" }')["boolean"] is False
