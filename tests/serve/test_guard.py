"""Who may ask the server, with what, and what every answer says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from kb import Builder
from kopl_base.visitors import Visitors
from kopl_cli.serve import application as served
from kopl_cli.serve import openapi
from kopl_cli.serve.bases import Playground, ServeLimits
from kopl_cli.serve.guard import HEADERS, POLICY
from kopl_cli.serve.routes import Event, Events, Field, RequestError, Route, record
from tests.serve.conftest import client_of

PROGRAM = {"program": 'Find("Norway")'}


def kind(reply: Any) -> str:
    """The kind of an error, which every error has, with a message."""
    error = reply.json()["error"]
    assert set(error) == {"kind", "message", "call", "field", "to_try"} and error["message"]
    return str(error["kind"])


# --- headers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 200), ("GET", "/app.js", 200), ("GET", "/api/info", 200),
        ("GET", "/nowhere", 404), ("GET", "/api/nowhere", 404), ("PUT", "/api/info", 405),
        ("POST", "/api/run", 415), ("GET", "/api/run", 405), ("HEAD", "/", 200), ("POST", "/", 405),
    ],
)  # fmt: skip
def test_every_answer_has_the_policy(
    client: TestClient, method: str, path: str, status: int
) -> None:
    reply = client.request(method, path)
    assert reply.status_code == status
    for name, value in HEADERS.items():
        assert reply.headers[name] == value
    assert "cache-control" in reply.headers and "server" not in reply.headers
    if status >= 400:
        assert kind(reply) == "request"


def test_another_method_says_which_there_is(client: TestClient) -> None:
    for path, allowed in (("/api/run", "POST"), ("/api/kb/world", "DELETE")):
        reply = client.get(path)
        assert (reply.status_code, reply.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/api/run", {"program": "Count("}, 422), ("/api/run", {}, 400),
        ("/api/run", {"program": "Count(FindAll())", "kb": "none"}, 404),
    ],
)  # fmt: skip
def test_errors_come_without_their_status_where_that_is_asked_for(
    client: TestClient, path: str, body: dict[str, Any], status: int
) -> None:
    usual = client.post(path, json=body)
    quiet = client.post(path, json=body, headers={"X-Errors": "200"})
    assert (usual.status_code, quiet.status_code) == (status, 200)
    assert quiet.json() == usual.json() and kind(quiet)
    assert client.post(path, content="{}", headers={"X-Errors": "200"}).status_code == 415
    described = client.get("/api/openapi.json").json()["paths"][path]["post"]["parameters"]
    assert [one["name"] for one in described if one["in"] == "header"] == ["X-Errors"]


def test_the_policy_lets_nothing_run_that_is_not_a_file_of_the_page() -> None:
    parts = dict(part.strip().split(" ", 1) for part in POLICY.split(";"))
    assert parts["default-src"] == "'none'"
    assert parts["script-src"] == parts["style-src"] == parts["connect-src"] == "'self'"
    assert "unsafe" not in POLICY and "*" not in POLICY


@pytest.mark.parametrize(
    "path",
    [
        "/../bases.py", "/%2e%2e/bases.py", "/..%2fbases.py", "/%2fetc%2fpasswd", "/page/app.js",
        "/__init__.py", "/app.js/", "/app.js%00", "/style.css~",
    ],
)  # fmt: skip
def test_nothing_but_the_files_of_the_page_is_given(client: TestClient, path: str) -> None:
    assert client.get(path, follow_redirects=False).status_code == 404


# --- host and origin ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8322", "localhost:8322", "LOCALHOST", "[::1]:8322", "127.0.0.1:9"]
)
def test_hosts_of_this_machine(client: TestClient, host: str) -> None:
    assert client.get("/api/info", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:8322", "127.0.0.1.evil.example", "localhost@evil.example", "",
        "192.168.0.7:8322", "localhost:x", "[::1", "a/b", "127.0.0.1:8322, evil.example",
    ],
)  # fmt: skip
def test_other_hosts_are_refused(client: TestClient, host: str) -> None:
    for path in ("/", "/api/info"):
        reply = client.get(path, headers={"host": host})
        assert reply.status_code == 421 and kind(reply) == "request"


def test_names_that_were_given_and_addresses_where_all_are_listened_on(
    playground: Playground,
) -> None:
    client = client_of(playground, names=("play.example",))
    own = {"host": "play.example", "origin": "https://play.example"}
    assert client.get("/api/info", headers=own).status_code == 200
    everywhere = client_of(playground, host="0.0.0.0", token="secret")
    shown = {"authorization": "Bearer secret"}
    for host, status in (("192.168.0.7:8322", 200), ("[fe80::1]:8322", 200), ("evil.example", 421)):
        assert everywhere.get("/api/info", headers={"host": host, **shown}).status_code == status


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"}, {"origin": "null"}, {"origin": ""},
        {"origin": "http://127.0.0.1:9999"}, {"origin": "http://127.0.0.1:8322.evil.example"},
        {"origin": "file://127.0.0.1:8322"}, {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)  # fmt: skip
def test_other_origins_are_refused(client: TestClient, headers: dict[str, str]) -> None:
    assert client.post("/api/run", json=PROGRAM, headers=headers).status_code == 403
    assert client.get("/api/info", headers=headers).status_code == 403


def test_its_own_origin_may_ask_and_links_may_lead_to_the_page(client: TestClient) -> None:
    own = {"origin": "http://127.0.0.1:8322", "sec-fetch-site": "same-origin"}
    assert client.post("/api/run", json=PROGRAM, headers=own).status_code == 200
    assert client.get("/", headers={"sec-fetch-site": "cross-site"}).status_code == 200


# --- the token ------------------------------------------------------------------------------------


@pytest.fixture
def guarded(playground: Playground) -> TestClient:
    """A client of a server that wants a token."""
    return client_of(playground, host="0.0.0.0", token="the-token")


def test_without_the_token_only_the_page_is_given(guarded: TestClient) -> None:
    assert guarded.get("/").status_code == 200 and guarded.get("/app.js").status_code == 200
    for shown in ({}, {"authorization": "Bearer wrong"}, {"authorization": "the-token"}):
        reply = guarded.get("/api/info", headers=shown)
        assert reply.status_code == 401 and kind(reply) == "request"
        assert guarded.get("/api/openapi.json", headers=shown).status_code == 401
        assert guarded.post("/api/run", json=PROGRAM, headers=shown).status_code == 401
    assert guarded.get(
        "/api/info", headers={"authorization": "Bearer the-token"}
    ).status_code == 200  # fmt: skip


def test_the_token_is_exchanged_for_a_cookie_that_scripts_do_not_see(guarded: TestClient) -> None:
    wrong = guarded.post("/api/session", json={"token": "the-tokem"})
    assert wrong.status_code == 401 and "set-cookie" not in wrong.headers
    reply = guarded.post("/api/session", json={"token": "the-token"})
    assert reply.json() == {"needed": True}
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "the-token" not in cookie
    assert guarded.get("/api/info").status_code == 200  # the client keeps the cookie
    guarded.cookies.clear()
    for value in ("", "x", "the-token", '"'):
        headers = {"cookie": f"kopl-8322={value}"}
        assert guarded.get("/api/info", headers=headers).status_code == 401


def test_where_no_token_is_wanted_none_is_given(client: TestClient) -> None:
    reply = client.post("/api/session", json={"token": "x"})
    assert reply.json() == {"needed": False} and "set-cookie" not in reply.headers


# --- bodies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "media",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "text/json"],
)
def test_only_json_is_read(client: TestClient, media: str) -> None:
    reply = client.post("/api/run", content=json.dumps(PROGRAM), headers={"content-type": media})
    assert reply.status_code == 415


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b'"a"', b"null", b"\xff\xfe", b'{"program": NaN}',
        b'{"program": "\\ud800"}',
        b'{"program":' * 5000 + b"1" + b"}" * 5000, b"[" * 60000,
    ],
)  # fmt: skip
def test_bodies_that_are_no_object(client: TestClient, body: bytes) -> None:
    headers = {"content-type": "application/json; charset=utf-8"}
    reply = client.post("/api/run", content=body, headers=headers)
    assert reply.status_code == 400 and kind(reply) == "request"


def test_a_body_that_is_too_large(client: TestClient) -> None:
    headers = {"content-type": "application/json"}
    large = json.dumps({"program": "a" * 70_000})

    def parts() -> Iterator[bytes]:
        yield from (large[at : at + 1000].encode() for at in range(0, len(large), 1000))

    for content in (large, parts()):  # with its length, and without
        reply = client.post("/api/run", content=content, headers=headers)
        assert reply.status_code == 413
    wrong = {**headers, "content-length": "-1"}
    assert client.post("/api/run", content=b"{}", headers=wrong).status_code in (400, 413)


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/api/kb/search?q=a&limit=0", "limit"), ("/api/kb/search?q=a&limit=x", "limit"),
        ("/api/kb/search?kind=thing", "kind"), ("/api/kb/search?q=a&q=b", "q"),
        ("/api/kb/search?p=a", "p"), ("/api/kb/entity/x?limit=5000", "limit"),
        ("/api/info?kb=nowhere", "kb"), ("/api/kb/entity/nobody", "id"),
        ("/api/kb/schema?concept=nothing+such", "concept"),
    ],
)  # fmt: skip
def test_wrong_fields_are_named(client: TestClient, path: str, field: str) -> None:
    reply = client.get(path)
    assert reply.status_code in (400, 404) and reply.json()["error"]["field"] == field


# --- limits ---------------------------------------------------------------------------------------


def small(**limits: Any) -> Playground:
    """A playground over some numbers, with limits of its own."""
    builder = Builder()
    builder.add_concept("c", "number")
    for number in range(200):
        builder.add_entity(f"e{number}", f"thing {number}", ["c"])
    made = Playground(ServeLimits(**limits))
    made.add(builder.build(), "small")
    return made


def test_rows_are_limited_and_all_are_counted() -> None:
    client = client_of(small())
    found = client.post("/api/run", json={"program": "QueryName(FindAll())"}).json()
    assert len(found["answer"]["answers"]) == 100 and found["answer"]["count"] == 200
    assert len(found["steps"][0]["values"]) == 10 and found["steps"][0]["count"] == 200


@pytest.mark.parametrize(
    ("limits", "message"), [({"ids": 100}, "the limit is 100"), ({"seconds": 1e-9}, "took longer")]
)
def test_what_a_program_may_use(limits: dict[str, Any], message: str) -> None:
    client = client_of(small(**limits))
    program = 'Count(Or(FindAll(), FilterConcept(FindAll(), "number")))'
    found = client.post("/api/run", json={"program": program}).json()
    assert found["error"]["kind"] == "limit" and message in found["error"]["message"]
    assert found["answer"] is None
    # Nothing more is run then.
    assert [step["state"] for step in found["steps"]] == ["error", *["waiting"] * 4]


def test_how_many_calls_a_program_may_have() -> None:
    client = client_of(small(calls=3))
    fits = client.post("/api/run", json={"program": "Count(FindAll())"})
    assert fits.status_code == 200
    reply = client.post(
        "/api/run", json={"program": "Count(Or(FindAll(), Or(FindAll(), FindAll())))"}
    )
    assert reply.status_code == 422 and kind(reply) == "limit"


def test_more_requests_than_may_be_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(small(requests=0))
    reply = client.get("/api/info")
    assert reply.status_code == 503 and kind(reply) == "busy"
    assert reply.headers["retry-after"] == "1"


def test_knowledge_bases_that_are_held_at_once(playground: Playground) -> None:
    kb = playground.base(None).kb
    ids = [playground.add(kb, "world", uploaded=True).id for _ in range(7)]
    assert ids[:2] == ["world-2", "world-3"]
    with pytest.raises(RequestError, match="held already") as error:
        playground.add(kb, "one more", uploaded=True)
    assert error.value.status == 503
    playground.remove("world-2")
    assert playground.add(kb, 'A "b" <c>/..', uploaded=True).id == "a-b-c"


# --- errors of the server's own, and streams ------------------------------------------------------


def with_route(monkeypatch: pytest.MonkeyPatch, route: Route) -> TestClient:
    """A client of a server with one route more."""

    class More:
        ROUTES = (route,)

    monkeypatch.setattr(served, "MODULES", (*served.MODULES, More))
    guard = served.application(small(), Visitors("127.0.0.1", 8322))
    return TestClient(guard, base_url="http://127.0.0.1:8322", raise_server_exceptions=False)


def test_an_error_of_the_server_tells_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("secret")

    client = with_route(monkeypatch, Route("GET", "/api/fails", "Fails.", fail))
    reply = client.get("/api/fails")
    assert reply.status_code == 500 and kind(reply) == "request" and "secret" not in reply.text
    assert reply.headers["content-security-policy"] == POLICY


def test_a_stream_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []

    def events(*_: Any) -> Events:
        def source() -> Iterator[Event | None]:
            try:
                yield Event("progress", {"done": 0.5, "message": "a\nb"})
                yield None
                yield Event("done", {"done": 1})
            finally:
                closed.append(True)

        return Events(source())

    client = with_route(monkeypatch, Route("GET", "/api/told", "Tells.", events, events=True))
    reply = client.get("/api/told")
    assert reply.headers["content-type"].startswith("text/event-stream")
    first, comment, last = reply.text.strip().split("\n\n")
    assert first == 'event: progress\ndata: {"done":0.5,"message":"a\\nb"}'
    assert comment.startswith(":") and last.startswith("event: done") and closed == [True]


# --- the description ------------------------------------------------------------------------------


def test_the_description_is_of_the_routes_and_the_routes_are_described(
    client: TestClient,
) -> None:
    document = client.get("/api/openapi.json").json()
    described = {
        (method.upper(), path) for path, some in document["paths"].items() for method in some
    }
    visitors = Visitors("127.0.0.1")
    assert described == {
        (one.method, openapi.template(one.path)) for one in served.declared(visitors)
    }
    # Both ways: what is described is served, and nothing else below /api.
    served_paths = {
        (method, openapi.template(route.path))
        for route in client.app.application.routes  # type: ignore[attr-defined]
        for method in route.methods - {"HEAD"}
        if route.path.startswith("/api")
    }
    assert served_paths == described


def test_answers_have_the_form_that_is_described(client: TestClient) -> None:
    paths = client.get("/api/openapi.json").json()["paths"]
    asked = {
        ("get", "/api/info"): client.get("/api/info"),
        ("get", "/api/kb/search"): client.get("/api/kb/search?q=oslo"),
        ("get", "/api/kb/schema"): client.get("/api/kb/schema?concept=country"),
        ("get", "/api/kb/entity/{id}"): client.get("/api/kb/entity/country-NO"),
        ("post", "/api/run"): client.post("/api/run", json={**PROGRAM, "evidence": True}),
    }
    for (method, path), reply in asked.items():
        responses = paths[path][method]["responses"]
        schema = responses["200"]["content"]["application/json"]["schema"]
        _fits(reply.json(), schema, path)


def test_settings_and_data_of_ones_own_are_described(client: TestClient) -> None:
    paths = client.get("/api/openapi.json").json()["paths"]
    body = paths["/api/train"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    settings = body["properties"]["settings"]
    assert settings["properties"]["epochs"]["type"] == "integer"
    assert settings["properties"]["minutes"]["type"] == "number"
    answered = paths["/api/kb"]["post"]["responses"]["202"]["content"]["application/json"]
    job, draft = answered["schema"]["anyOf"]
    given = {"name": "t", "file": "table", "text": "id,name\n1,Oslo\n", "draft": True}
    _fits(client.post("/api/kb", json=given).json(), draft, "draft")
    assert {"state", "report", "findings"} <= {*job["required"]}


_TYPES: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "integer": int, "number": (int, float),
    "boolean": bool, "null": type(None),
}  # fmt: skip


def _fits(value: Any, schema: dict[str, Any], place: str) -> None:
    types = schema.get("type", [*_TYPES])
    types = [types] if isinstance(types, str) else types
    assert any(isinstance(value, _TYPES[one]) for one in types), place
    if isinstance(value, dict):
        for name in schema.get("required", ()):
            assert name in value, f"{place}: {name}"
        for name, own in schema.get("properties", {}).items():
            if name in value:
                _fits(value[name], own, f"{place}.{name}")
    elif isinstance(value, list) and "items" in schema:
        for one in value:
            _fits(one, schema["items"], f"{place}[]")


def test_fields_say_what_they_take() -> None:
    field = Field("top", "integer", "how many", default=3, least=1, most=20)
    assert field.schema() == {
        "type": "integer", "description": "how many", "minimum": 1, "maximum": 20, "default": 3,
    }  # fmt: skip
    assert record(a={"type": "string"})["required"] == ["a"]
