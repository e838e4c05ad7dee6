"""The server as clients see it."""

from __future__ import annotations

from starlette.testclient import TestClient


def test_the_page_and_what_the_server_has(client: TestClient) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    info = client.get("/api/info").json()
    assert info["kb"] == "world" and info["run"] is None
    assert info["bases"][0]["entities"] > 1000


def test_a_program_runs(client: TestClient) -> None:
    program = 'QueryName(Relate(Find("Norway"), "capital", "forward"))'
    found = client.post("/api/run", json={"program": program}).json()
    assert found["answer"]["answers"] == ["Oslo"]
    assert [step["count"] for step in found["steps"]] == [1, 1, 1]
