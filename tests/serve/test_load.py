"""Names that mean harm, many requests, and the command itself: ports, links, stopping.

``KOPL_SERVE_REQUESTS=10000`` makes the run of many requests a long one.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tracemalloc
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from kb import Builder, KnowledgeBase
from kb.snapshot import write_snapshot
from kopl_base.servers import free_port
from kopl_cli import main
from kopl_cli.serve.bases import Playground, ServeLimits
from tests.conftest import ROOT
from tests.serve.conftest import ADDRESS, client_of

REQUESTS = int(os.environ.get("KOPL_SERVE_REQUESTS", "300"))

HOSTILE = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "</title><svg/onload=alert(1)>",
    "quote \" and ' and \\ and `",
    "%2e%2e/../etc/passwd?#&=;",
    "x" * 10_000,
    "\u202egnirts",
    "\u05d0\u05d1\u05d2 \u0627\u0644",
    "line\u2028separator",
    "tab\tnewline\x07bell",
    "\x00null",
    "{{7*7}} ${7*7} <func> <arg>",
    "=HYPERLINK(\"http://evil.example\")",
    "\U0001f3f3\ufe0f\u200d\U0001f308",
    "__proto__",
]  # fmt: skip


@pytest.fixture(scope="module")
def hostile() -> TestClient:
    """A client over a knowledge base whose names, keys and relations all mean harm."""
    builder = Builder()
    for number, name in enumerate(HOSTILE):
        builder.add_concept(f"c{number}", f"{name} (concept)")
    for number, name in enumerate(HOSTILE):
        builder.add_entity(_id(number), name, [f"c{number}"])
    for number, name in enumerate(HOSTILE):
        before = (number - 1) % len(HOSTILE)
        builder.add_attribute(_id(number), name, name, {name: [HOSTILE[before]]})
        builder.add_fact(_id(number), name, _id(before), {name: [name]})
    made = Playground(ServeLimits())
    made.add(builder.build(), HOSTILE[0])
    return client_of(made)


def _id(number: int) -> str:
    # Without signs of per cent, which the client of the tests decodes twice.
    return f"{number} {HOSTILE[number][:50].replace('%', '')}"


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_names_that_mean_harm_stay_texts(hostile: TestClient, number: int) -> None:
    def found(reply: Any) -> Any:
        assert reply.status_code == 200, reply.text
        assert reply.headers["content-type"] == "application/json"
        return reply.json()

    text = lambda name: json.dumps(name)  # noqa: E731
    [thing] = {
        one["id"]: one["name"]
        for one in found(hostile.get("/api/kb/search?kind=entity&limit=1000"))["matches"]
        if one["id"].startswith(f"{number} ")
    }.items()
    id, name = thing
    entity = found(hostile.get(f"/api/kb/entity/{quote(id, safe='')}"))
    assert entity["name"] == name and entity["count"] == 3
    program = f'QueryName(Relate(Find({text(name)}), {text(HOSTILE[number])}, "forward"))'
    ran = found(hostile.post("/api/run", json={"program": program, "evidence": True}))
    assert ran["answer"]["count"] == 1 and ran["evidence"]["count"] == 1
    [answer] = ran["answer"]["answers"]
    facts = found(hostile.post("/api/facts", json={"program": program, "text": answer}))
    assert facts["count"] == 1
    found(hostile.get("/api/kb/search", params={"q": HOSTILE[number][:500]}))
    found(hostile.post("/api/run", json={"program": f"Find({text('no ' + name[:100])})"}))
    for form in ("svg", "html", "csv", "mermaid", "kqapro"):
        given = {"program": program, "form": form, "question": name[:2000]}
        written = found(hostile.post("/api/export", json=given))["text"]
        if form in ("svg", "html"):
            assert "<script>alert" not in written and "<img src=x" not in written
            assert "<svg/onload" not in written


def test_memory_is_flat_over_many_requests(playground: Playground) -> None:
    client = client_of(playground)
    program = 'QueryName(Relate(Find("Norway"), "shares border with", "forward"))'

    def requests(count: int) -> None:
        for number in range(count):
            name = f"nobody {number % 7}" if number % 5 == 0 else "Norway"
            replies = [
                client.post("/api/run", json={"program": program}),
                client.get(f"/api/kb/search?q={name}&kind=concept"),
                client.get("/api/kb/entity/country-NO"),
                client.post("/api/run", json={"program": f"Find({number}"}),
                client.get("/api/nowhere"),
                client.post("/api/run", content=b"x" * 70_000),
            ]
            assert [one.status_code for one in replies] == [200, 200, 200, 422, 404, 415]

    requests(20)  # what is listed once is there then
    gc.collect()
    tracemalloc.start()
    try:
        requests(REQUESTS // 12)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        requests(REQUESTS // 12)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Not even a hundred bytes are kept of a request.
    assert after - before < 100_000 + 100 * REQUESTS // 2


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def taken() -> Any:
    """A port that somebody listens on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def test_a_port_that_is_taken(taken: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", str(taken)]) == 2
    said = capsys.readouterr().err
    assert f"127.0.0.1:{taken}" in said and "--port" in said


def test_the_extra_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["serve"]) == 2
    assert "[serve]" in capsys.readouterr().err


def test_a_run_whose_knowledge_base_moved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "settings.json").write_text('{"model": "pointer"}')
    (tmp_path / "parser.json").write_text('{"kb": "/gone/kb.json", "fingerprint": "x"}')
    (tmp_path / "best.safetensors").write_text("")
    assert main(["serve", "--port", str(free_port()), "--run", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert ("/gone/kb.json" in said and "--kb KB" in said) or "cannot listen" in said
    assert main(["serve", "--port", str(free_port()), "--run", str(tmp_path / "no")]) == 2
    assert "no such run" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_told_at_the_start_and_when_it_matters(
    world: KnowledgeBase, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "played"
    given = ["serve", "--port", str(free_port()), "--folder", str(folder), "--reasoner", "no"]
    assert main(given) == 2
    assert f"{folder} cannot be written" in capsys.readouterr().err
    folder = tmp_path / "played"
    folder.mkdir()
    (folder / "queue").write_text("")  # where a folder should be
    playground = Playground(ServeLimits(), folder=folder)
    playground.add(world, "world", place="world")
    client = TestClient(client_of(playground).app, ADDRESS, raise_server_exceptions=False)
    reply = client.post("/api/queue", json={"questions": ["Who?"]})
    assert reply.status_code == 422 and str(folder) in reply.json()["error"]["message"]
    assert client.get("/api/queue").json()["count"] == 0
    playground.close()


def test_a_reasoner_that_is_not_there_is_refused_at_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = Builder()
    small.add_entity("e", "E")
    write_snapshot(small.build(), tmp_path / "kb.kopl")
    given = ["serve", "--kb", str(tmp_path / "kb.kopl"), "--port", str(free_port())]
    assert main([*given, "--folder", str(tmp_path / "played"), "--reasoner", "nosuch"]) == 2
    assert "there is no reasoner 'nosuch'" in capsys.readouterr().err


def test_it_serves_and_stops(tmp_path: Path) -> None:
    """Elsewhere than on this machine it makes a token; Ctrl-C ends it without a trace."""
    port = free_port()
    small = {"concepts": {}, "entities": {"e": {"name": "E", "instanceOf": [], "attributes": [],
             "relations": []}}}  # fmt: skip
    (tmp_path / "kb.json").write_text(json.dumps(small))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    environment.pop("KOPL_SERVE_TOKEN", None)
    process = subprocess.Popen(
        [
            sys.executable, "-m", "kopl", "serve", "--kb", str(tmp_path / "kb.json"),
            "--host", "0.0.0.0", "--port", str(port),
        ],
        cwd=tmp_path, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert f":{port}/#token=" in line
        token = line.partition("#token=")[2].split()[0]
        assert len(token) > 40
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/api/info", headers={"Authorization": f"Bearer {token}"}
        )
        # A connection is taken at once; it is answered as soon as the server runs.
        with urllib.request.urlopen(asked, timeout=120) as reply:
            assert json.load(reply)["bases"][0]["entities"] == 1
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, said
    assert "Traceback" not in said and "stopped" in said
    assert said.startswith(f"kopl: opening {tmp_path / 'kb.json'}")
