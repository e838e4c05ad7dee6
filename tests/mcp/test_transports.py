"""The same tools over three transports: at once, when clients die, and who may ask."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the package of the extra 'mcp' is not installed")

import jsonschema

from kb import KnowledgeBase
from kopl_base.errors import KoplError
from kopl_cli.mcp.server import http_application
from kopl_cli.mcp.tools import Tools
from tests.mcp.clients import LONG, TINY, served, talk, transport

CAPITAL = 'QueryName(Relate(Find("France"), "capital", "forward"))'
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("search", {"text": "France"}),
    ("schema", {"concept": "country"}),
    ("run_program", {"program": CAPITAL, "trace": True}),
    ("check_program", {"program": "Count(Count(FindAll()))"}),
    ("evidence", {"program": CAPITAL}),
    ("translate", {"program": CAPITAL, "to": "serialised"}),
    ("run_program", {"program": "Nothing("}),
    ("search", {"text": "x", "kind": "none such"}),
]


@pytest.fixture(scope="module")
def tools(tiny: KnowledgeBase) -> Iterator[Tools]:
    made = Tools(tiny)
    yield made
    made.close()


@pytest.fixture(scope="module", params=["memory", "stdio", "http"])
def to(request: pytest.FixtureRequest, tools: Tools) -> Iterator[Any]:
    """A server over each transport."""
    with transport(request.param, tools) as found:
        yield found


def test_every_transport_gives_the_same(to: Any, tools: Tools) -> None:
    async def use(client: Any) -> None:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        for (name, arguments), is_error in zip(CALLS, [False] * 6 + [True] * 2, strict=True):
            result = await client.call_tool(name, arguments)
            assert result.is_error is is_error, (name, result.content)
            if not is_error:
                jsonschema.validate(result.structured_content, schemas[name])
                own = getattr(tools, name)(**arguments)
                assert result.structured_content == own.model_dump(mode="json", exclude_none=True)
        [content] = (await client.read_resource("kopl://function/Count")).contents
        assert "Count(E)" in content.text
        assert len((await client.list_prompts()).prompts) == 3

    talk(to, use)


def test_a_hundred_calls_at_once(to: Any) -> None:
    async def use(client: Any) -> None:
        one_by_one = [await client.call_tool(*call) for call in CALLS]
        together = await asyncio.gather(
            *(client.call_tool(*CALLS[at % len(CALLS)]) for at in range(100))
        )
        for at, result in enumerate(together):
            expected = one_by_one[at % len(CALLS)]
            assert result.structured_content == expected.structured_content
            assert result.is_error == expected.is_error

    talk(to, use)


# --- clients that go away -------------------------------------------------------------------------

START = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def _call(number: int, program: str) -> dict[str, Any]:
    params = {"name": "run_program", "arguments": {"program": program}}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def test_standard_output_has_the_protocol_only_and_ends_with_its_client() -> None:
    """Whatever goes wrong, each line is a message; when the input ends, so does the server."""
    command = [sys.executable, "-m", "kopl", "mcp", "--kb", str(TINY), "--no-cache"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        for message in (START, READY, _call(2, CAPITAL), _call(3, "Nothing(")):
            print(json.dumps(message), file=process.stdin, flush=True)
        print("no message at all", file=process.stdin, flush=True)
        print(json.dumps(_call(4, CAPITAL)), file=process.stdin, flush=True)
        answered = {}
        while 4 not in answered or 3 not in answered or 2 not in answered:
            message = json.loads(process.stdout.readline())
            assert message["jsonrpc"] == "2.0"
            answered[message.get("id")] = message
        assert not answered[4]["result"]["isError"] and answered[3]["result"]["isError"]
        process.stdin.close()  # as when the client is killed
        assert process.wait(LONG) == 0


def test_by_http_others_are_served_when_a_client_is_killed(tools: Tools) -> None:
    with served(tools) as port:
        for sent in (b"", b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Le", _half(port)):
            with socket.create_connection(("127.0.0.1", port), LONG) as connection:
                connection.sendall(sent)
        status, body = _post(port)
        assert status == 200
        assert json.loads(body)["result"]["serverInfo"]["name"] == "kopl"


def _half(port: int) -> bytes:
    """A request whose end never comes."""
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: 1000\r\n\r\n{{".encode()


# --- who may ask ---------------------------------------------------------------------------------


def _post(port: int, body: Any = START, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LONG)
    shown = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    try:
        connection.request("POST", "/mcp", json.dumps(body), shown)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_foreign_hosts_and_origins_are_refused(tools: Tools) -> None:
    with served(tools) as port:
        assert _post(port)[0] == 200
        assert _post(port, Host="evil.example")[0] == 421
        assert _post(port, Host=f"evil.example:{port}")[0] == 421
        assert _post(port, Host="kopl.example")[0] == 421
        assert _post(port, Origin="http://evil.example")[0] == 403
        assert _post(port, Origin=f"http://localhost:{port}")[0] == 200
    with served(tools, names=("kopl.example",)) as port:
        assert _post(port, Host="kopl.example")[0] == 200
        assert _post(port, Origin="https://kopl.example")[0] == 200
        assert _post(port, Host="kopl.example.evil.example")[0] == 421


def test_with_a_token_only_those_that_show_it_are_answered(tools: Tools) -> None:
    with served(tools, token="secret") as port:
        for shown in ({}, {"Authorization": "Bearer other"}, {"Authorization": "secret"}):
            status, body = _post(port, **shown)
            assert status == 401 and "secret" not in body
        assert _post(port, Authorization="Bearer secret")[0] == 200
        assert _post(port, Authorization="Bearer secret", Host="evil.example")[0] == 421


def test_elsewhere_a_token_is_needed(tools: Tools) -> None:
    for host in ("0.0.0.0", "192.0.2.1", "::"):
        with pytest.raises(KoplError, match="KOPL_MCP_TOKEN"):
            http_application(tools, host)
    assert callable(http_application(tools, "0.0.0.0", token="secret"))


def test_bodies_that_are_no_messages(tools: Tools) -> None:
    with served(tools) as port:
        for body in ([], 5, "x", {"jsonrpc": "2.0"}, {"method": "x" * 1000}, [START] * 3):
            status, _ = _post(port, body)
            assert 400 <= status < 500
        assert _post(port, "x" * 5_000_000)[0] == 413
        assert _post(port)[0] == 200
