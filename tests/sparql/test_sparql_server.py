"""The commands that run servers."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from kopl.sparql.engines.virtuoso import VirtuosoServer
from kopl_cli.sparql_server import add_serve, add_virtuoso
from tests.sparql.servers import virtuoso_server

__all__ = ["virtuoso_server"]


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    commands: Any = parser.add_subparsers(required=True)
    add_virtuoso(commands)
    add_serve(commands)
    parsed = parser.parse_args(arguments)
    status: int = parsed.handler(parsed)
    return status


def test_virtuoso_step_by_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], virtuoso_server: VirtuosoServer
) -> None:
    folder = ["--folder", str(tmp_path / "server")]
    assert run("virtuoso", "status", *folder) == 1
    assert capsys.readouterr().out.startswith("not running\t")
    assert run("virtuoso", "up", "--buffers", "2000", "--timeout", "20", *folder) == 0
    try:
        url = capsys.readouterr().out.split("\t")[0]
        assert run("virtuoso", "load", "--kb", "world", *folder) == 0
        assert "http://kb.example/graph" in capsys.readouterr().err
        assert run("virtuoso", "status", "--json", *folder) == 0
        status = json.loads(capsys.readouterr().out)
        assert (status["running"], status["url"]) == (True, url)
        engine = VirtuosoServer(tmp_path / "server").engine(timeout=20)
        assert engine.server_limit == 20
        answer = engine.query('SELECT ?n { ?n <pred:name> "Norway" }')
        assert len(answer["results"]["bindings"]) == 1
    finally:
        assert run("virtuoso", "down", *folder) == 0
    assert run("virtuoso", "status", *folder) == 1


def test_default_folder_is_in_the_cache(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPL_CACHE_DIR", str(tmp_path))
    assert run("virtuoso", "status") == 1
    assert str(tmp_path / "virtuoso") in capsys.readouterr().out
    assert run("virtuoso", "down") == 0


@pytest.mark.parametrize(
    "arguments", [("load",), ("load", "--kb", "world", "a.nt"), ("up", "--port", "0"), ()]
)
def test_wrong_usage(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run("virtuoso", *arguments)
    assert caught.value.code == 2


def test_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyoxigraph")
    from kopl.sparql.engines import server

    seen: list[Any] = []

    def serve(*given: Any) -> int:
        seen.append(given)
        return 0

    monkeypatch.setattr(server, "serve", serve)
    assert run("serve", "--kb", "world", "--port", "7878", "--timeout", "5") == 0
    [(folder, port, timeout)] = seen
    assert (port, timeout) == (7878, 5)
    assert folder.is_dir()
