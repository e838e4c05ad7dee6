"""Oxigraph's server, the second real server of the suite, asked by both clients."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kopl.sparql.engines import server as module
from kopl.sparql.engines.endpoint import Endpoint
from kopl.sparql.engines.server import OxigraphServer
from kopl.sparql.errors import (
    CutShortError,
    EngineError,
    MissingPackageError,
    NotUnderstoodError,
    TimedOutError,
    UnreachableError,
)
from kopl_base.errors import WriteError
from tests.sparql.servers import write_lines

LINES = [f'<http://kb.example/s{n}> <http://kb.example/p> "{n}"' for n in range(400)]
CROSS = "SELECT ?a ?b ?c { ?a ?p ?x . ?b ?q ?y . ?c ?r ?z }"
COUNT = "SELECT (COUNT(*) AS ?n) { ?a ?p ?x . ?b ?q ?y . ?c ?r ?z . FILTER(?x < ?y && ?y < ?z) }"

try:
    module.find_binary()
except MissingPackageError as error:
    pytest.skip(f"OXIGRAPH'S SERVER IS NOT TESTED: {error}", allow_module_level=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OxigraphServer]:
    folder = tmp_path_factory.mktemp("oxigraph")
    file = write_lines(folder / "data.nt", LINES)
    with OxigraphServer(folder / "store", file=file, timeout=2) as running:
        yield running


@pytest.fixture(params=["wrapper", "pool"])
def engine(request: pytest.FixtureRequest, server: OxigraphServer) -> Iterator[Endpoint]:
    with server.engine(client=request.param) as found:
        yield found


def test_answers(engine: Endpoint) -> None:
    assert engine.query("ASK { ?s ?p ?o }") == {"head": {}, "boolean": True}
    assert engine.query('ASK { ?s ?p "nothing" }', timeout=5) == {"head": {}, "boolean": False}
    found = engine.query("BASE <http://kb.example/> SELECT ?s { ?s <p> '7' }", timeout=5)
    assert found["results"]["bindings"] == [{"s": {"type": "uri", "value": "http://kb.example/s7"}}]
    assert engine.dialect.base == "http://kb.example/"
    assert type(Endpoint.open(engine.url)) is Endpoint


def test_many(engine: Endpoint) -> None:
    texts = [f'SELECT ?s {{ ?s ?p "{number}" }}' for number in range(400)]
    answers = list(engine.query_many([*texts, "SELEC"], timeout=10))
    for number, answer in enumerate(answers[:400]):
        assert not isinstance(answer, EngineError)
        [row] = answer["results"]["bindings"]
        assert row["s"]["value"] == f"http://kb.example/s{number}"
    assert isinstance(answers[400], NotUnderstoodError)


def test_time_limits(engine: Endpoint) -> None:
    began = time.monotonic()
    with pytest.raises(TimedOutError):
        engine.query(COUNT, timeout=0.5)
    assert time.monotonic() - began < 1.5
    # The server's own limit: what was sent until then breaks off.
    with pytest.raises(CutShortError):
        engine.query(CROSS, timeout=60)
    assert engine.query("ASK { ?s ?p ?o }", timeout=10)["boolean"]


def test_other_clients(server: OxigraphServer) -> None:
    wrapper_package = pytest.importorskip("SPARQLWrapper")
    wrapper = wrapper_package.SPARQLWrapper(server.url, returnFormat=wrapper_package.JSON)
    wrapper.setMethod(wrapper_package.POST)
    wrapper.setQuery("ASK { ?s ?p ?o }")
    assert wrapper.queryAndConvert()["boolean"] is True


def test_is_read_only(server: OxigraphServer) -> None:
    request = urllib.request.Request(
        server.url.replace("/query", "/update"),
        data=b"INSERT DATA { <a:a> <a:b> <a:c> }",
        headers={"Content-Type": "application/sparql-update"},
    )
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=10)
    assert caught.value.code in (403, 404, 405)
    caught.value.close()


def test_a_taken_port(server: OxigraphServer) -> None:
    with pytest.raises(UnreachableError, match="ended at once"):
        OxigraphServer(server.location, port=server.port).start()


def test_stops(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "data.nt", LINES[:1])
    running = OxigraphServer(tmp_path / "store", file=file)
    with running:
        port = running.port
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=2)
    with pytest.raises(UnreachableError):
        Endpoint(running.url, retries=0).query("ASK { }")


def test_a_bad_file_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.nt").write_text('<http://a> "x', "utf-8")
    with pytest.raises(WriteError, match="could not load"):
        OxigraphServer(tmp_path / "store", file=tmp_path / "bad.nt").start()
    assert [path.name for path in tmp_path.iterdir()] == ["bad.nt"]


def test_no_store(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="no store"):
        OxigraphServer(tmp_path / "none").start()


def test_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(MissingPackageError, match=r"pip install .*\[server\]"):
        OxigraphServer(tmp_path).start()


def test_serve_ends_with_its_process(server: OxigraphServer, tmp_path: Path) -> None:
    code = "import sys; from kopl.sparql.engines.server import serve; sys.exit(serve(sys.argv[1]))"
    process: Any = subprocess.Popen(
        [sys.executable, "-c", code, str(server.location)], stdout=subprocess.PIPE, text=True
    )
    try:
        url = process.stdout.readline().strip()
        assert Endpoint(url).query("ASK { ?s ?p ?o }", timeout=10)["boolean"]
        process.terminate()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.stdout.close()
    with pytest.raises(UnreachableError):
        Endpoint(url, retries=0).query("ASK { }")


def test_loading_that_takes_too_long_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(module, "find_binary", lambda: str(slow))
    with pytest.raises(TimedOutError, match=r"kb\.nt: Oxigraph did not load it within 0\.1 s"):
        module.load(tmp_path / "store", "kb.nt", wait=0.1)
    assert list(tmp_path.iterdir()) == [slow]
