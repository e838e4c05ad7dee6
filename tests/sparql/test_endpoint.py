"""The endpoint against a server that misbehaves in every way that servers were seen to."""

from __future__ import annotations

import base64
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import pytest

from kopl.sparql.engines.endpoint import Endpoint, Virtuoso, is_virtuoso
from kopl.sparql.errors import (
    CutShortError,
    EngineError,
    MissingPackageError,
    NotUnderstoodError,
    RefusedError,
    TimedOutError,
    UnreachableError,
)
from kopl.sparql.rewrites import with_digits
from kopl_base.http import Backoff

YES = b'{"head": {}, "boolean": true}'
ROWS = b'{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri", "value": "a"}}]}}'
ASK = "ASK { ?s ?p ?o }"

Play = Callable[["Handler"], None]


class Seen(NamedTuple):
    """A request; the handler of a kept connection is the same for many."""

    form: dict[str, list[str]]
    headers: Message
    client_address: Any


class Handler(BaseHTTPRequestHandler):
    """Plays what the test put into the server's ``plays``; the last of them again and again."""

    protocol_version = "HTTP/1.1"
    server: Stub
    form: dict[str, list[str]]
    counted = False

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.form = parse_qs(body.decode("ascii"), keep_blank_values=True)
        stub = self.server
        with stub.lock:
            stub.seen.append(Seen(self.form, self.headers, self.client_address))
            play = stub.plays.pop(0) if len(stub.plays) > 1 else stub.plays[0]
            stub.now += 1
            stub.most = max(stub.most, stub.now)
        self.counted = True
        try:
            play(self)
        finally:
            self.leave()

    def leave(self) -> None:
        """No longer counts among those at work. Before the answer goes out: with it in hand, the
        client may send its next request before this thread runs again."""
        with self.server.lock:
            self.server.now -= self.counted
            self.counted = False

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def reply(
        self,
        body: bytes = YES,
        status: int = 200,
        kind: str = "application/sparql-results+json",
        length: int | None = None,
        **headers: str,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.leave()
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
        if length is not None:
            self.drop()

    def drop(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


class Stub(ThreadingHTTPServer):
    """A server that plays, and remembers what it was asked."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.plays: list[Play] = [lambda handler: handler.reply()]
        self.seen: list[Seen] = []
        self.lock, self.now, self.most = threading.Lock(), 0, 0
        self.url = f"http://127.0.0.1:{self.server_port}/sparql"

    def handle_error(self, *_: object) -> None:
        """Clients that go away are part of the play."""


@pytest.fixture
def stub() -> Iterator[Stub]:
    server = Stub()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(params=["wrapper", "pool"])
def client(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def make(stub: Stub, client: Any, pauses: list[float]) -> Iterator[Callable[..., Endpoint]]:
    """Makes endpoints that wait for no time between tries."""
    made: list[Endpoint] = []

    def one(url: str | None = None, **options: Any) -> Endpoint:
        options.setdefault("backoff", Backoff(chance=lambda: 1.0, sleep=pauses.append))
        made.append(Endpoint(url or stub.url, client=client, **options))
        return made[-1]

    yield one
    for endpoint in made:
        endpoint.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


Make = Callable[..., Endpoint]


def test_answers(stub: Stub, make: Make) -> None:
    stub.plays = [lambda h: h.reply(YES), lambda h: h.reply(ROWS)]
    endpoint = make()
    assert endpoint.query(ASK) == {"head": {}, "boolean": True}
    found = endpoint.query("SELECT ?x { ?x ?p ?o }", timeout=10)
    assert found["results"]["bindings"] == [{"x": {"type": "uri", "value": "a"}}]


def test_what_is_sent(stub: Stub, make: Make) -> None:
    text = 'PREFIX x: <http://x/> SELECT ?x { ?x ?p "a: <b> DELETE é\\u0000 &=+%" # end\n}'
    endpoint = make(graph="http://kb.example/graph", headers={"X-Key": "secret"}, base="http://b/")
    endpoint.query(text)
    sent = stub.seen[0]
    # Not as an update, whatever the text looks like, and without parameters of SPARQLWrapper's.
    assert sent.form == {"query": [text], "default-graph-uri": ["http://kb.example/graph"]}
    assert sent.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert sent.headers["Accept"].startswith("application/sparql-results+json")
    assert sent.headers["Accept-Encoding"] == "identity"
    assert sent.headers["X-Key"] == "secret"
    assert endpoint.dialect.graph == "http://kb.example/graph"
    assert endpoint.dialect.base == "http://b/"
    assert not endpoint.dialect.rewrites


def test_long_query(stub: Stub, make: Make) -> None:
    text = f"ASK {{ VALUES ?x {{ {' '.join(f'{number}' for number in range(200_000))} }} }}"
    make().query(text)
    assert stub.seen[0].form["query"] == [text]


def test_only_the_pool_keeps_connections(stub: Stub, make: Make, client: str) -> None:
    endpoint = make()
    for _ in range(3):
        endpoint.query(ASK)
    ports = {handler.client_address for handler in stub.seen}
    assert len(ports) == (1 if client == "pool" else 3)


def test_nobody_there(make: Make, pauses: list[float]) -> None:
    url = f"http://127.0.0.1:{free_port()}/sparql"
    with pytest.raises(UnreachableError, match=r"after 4 tries.*refused.*running there"):
        make(url).query(ASK)
    assert pauses == [0.2, 0.4, 0.8]


@pytest.mark.parametrize("url", ["localhost:8890/sparql", "ftp://x/", "http://", "http://a b/"])
def test_no_address(url: str, make: Make) -> None:
    with pytest.raises(UnreachableError, match="no address"):
        make(url)


def test_pauses_grow_to_a_limit_and_are_jittered() -> None:
    backoff = Backoff(first=1, most=5, chance=lambda: 0.0)
    assert [backoff.pause(attempt) for attempt in range(1, 6)] == [0.5, 1, 2, 2.5, 2.5]


def test_tries_again(stub: Stub, make: Make, pauses: list[float]) -> None:
    stub.plays = [
        Handler.drop,
        lambda h: h.reply(b"busy", 500, "text/plain"),
        lambda h: h.reply(b"busy", 503, "text/plain", Retry_After="7"),
        lambda h: h.reply(),
    ]
    assert make().query(ASK)["boolean"]
    assert pauses == [0.2, 0.4, 7.0]


def test_gives_up(stub: Stub, make: Make) -> None:
    stub.plays = [lambda h: h.reply(b"<html><b>Sorry</b>, full</html>", 503, "text/html")]
    with pytest.raises(RefusedError, match=r"status 503\), 4 times: Sorry , full"):
        make().query(ASK)
    assert len(stub.seen) == 4


def test_drops_for_ever(stub: Stub, make: Make) -> None:
    stub.plays = [Handler.drop]
    with pytest.raises(UnreachableError, match=r"after 2 tries"):
        make(retries=1).query(ASK)
    assert len(stub.seen) == 2


def test_does_not_begin_a_pause_that_is_too_long(stub: Stub, make: Make) -> None:
    stub.plays = [Handler.drop]
    with pytest.raises(UnreachableError):
        make(backoff=Backoff(first=60, most=60)).query(ASK, timeout=5)
    assert len(stub.seen) == 1


def slow(handler: Handler) -> None:
    time.sleep(1.0)
    handler.reply()


def dripping(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(30):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.1)


def stalled(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"5\r\n     \r\n")
    handler.wfile.flush()
    time.sleep(1.0)
    handler.close_connection = True


@pytest.mark.parametrize("play", [slow, dripping, stalled])
def test_time_limit(stub: Stub, make: Make, play: Play) -> None:
    stub.plays = [play]
    began = time.monotonic()
    with pytest.raises(TimedOutError, match=r"within 0.3 s"):
        make().query(ASK, timeout=0.3)
    assert time.monotonic() - began < 0.9
    assert len(stub.seen) == 1


def test_time_limit_of_the_endpoint(stub: Stub, make: Make) -> None:
    stub.plays = [slow]
    endpoint = make(timeout=0.2)
    with pytest.raises(TimedOutError):
        endpoint.query(ASK)
    assert endpoint.query(ASK, timeout=10)["boolean"]


TIMED_OUT = [
    (500, b"Virtuoso S1T00 Error SR171: Transaction timed out\n\nSPARQL query:\nASK"),
    (
        500,
        b'{ "head"' + b"x" * 90_000 + b" Virtuoso S1TAT Error RC...: incomplete\n\nSPARQL query:",
    ),
    (504, b"Gateway"),
    (500, b"java.util.concurrent.TimeoutException: Query deadline is expired"),
    (429, b'{"exception": "Operation timed out."}'),
]


@pytest.mark.parametrize(("status", "body"), TIMED_OUT, ids=range(len(TIMED_OUT)))
def test_time_limit_of_the_server(stub: Stub, make: Make, status: int, body: bytes) -> None:
    stub.plays = [lambda h: h.reply(body, status, "text/plain")]
    with pytest.raises(TimedOutError, match="time limit"):
        make().query(ASK)
    assert len(stub.seen) == 1


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (401, "user and password"),
        (403, "may not ask"),
        (404, "path"),
        (405, "POST"),
        (413, "too long"),
        (429, "too many"),
        (302, "has moved; use http://elsewhere/sparql"),
    ],
)
def test_refusals(stub: Stub, make: Make, status: int, hint: str) -> None:
    stub.plays = [lambda h: h.reply(b"no", status, Location="http://me:pw@elsewhere/sparql")]
    with pytest.raises(RefusedError, match=hint):
        make().query(ASK)
    assert len(stub.seen) == 1


def test_too_many_queries(stub: Stub, make: Make, pauses: list[float]) -> None:
    stub.plays = [lambda h: h.reply(b"", 429, Retry_After="2"), lambda h: h.reply()]
    assert make().query(ASK)["boolean"]
    assert pauses == [2.0]


NOT_UNDERSTOOD = [
    (400, b"Parse error", "text/plain", "Parse error"),
    (
        500,
        b"Virtuoso 37000 Error SP030: SPARQL compiler, line 1: syntax error at 'SELEC'\n\n"
        b"SPARQL query:\ndefine timed out",
        "text/plain",
        "37000 SP030.*'SELEC'$",
    ),
    (200, b"<html>Welcome</html>", "text/html", "a page.*address"),
    (200, b"<?xml version='1.0'?><sparql/>", "application/xml", "application/xml"),
    (200, b"", "application/json", "nothing"),
    (200, b'{"message": "hello"}', "application/json", "not SPARQL's"),
    (200, b'{"head": {}, "results": {"bindings": [1]}}', "application/json", "not SPARQL's"),
    (200, b'{"head": {"vars": ["\xff"]}}', "application/json", "UTF-8 at byte 20"),
]


@pytest.mark.parametrize(("status", "body", "kind", "words"), NOT_UNDERSTOOD)
def test_not_understood(
    stub: Stub, make: Make, status: int, body: bytes, kind: str, words: str
) -> None:
    stub.plays = [lambda h: h.reply(body, status, kind)]
    with pytest.raises(NotUnderstoodError, match=words):
        make().query(ASK)
    assert len(stub.seen) == 1


def test_half_a_character(make: Make) -> None:
    with pytest.raises(NotUnderstoodError, match="half a character"):
        make().query('ASK { ?s ?p "\ud800" }')


def unchunked(handler: Handler) -> None:
    """As Oxigraph's server at its time limit: the last chunk is missing."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"%x\r\n%s\r\n" % (len(ROWS) - 9, ROWS[:-9]))
    handler.drop()


CUT_SHORT: list[Play] = [
    lambda h: h.reply(ROWS[:-9]),
    lambda h: h.reply(ROWS, length=len(ROWS) + 10),
    lambda h: h.reply('{"head": {"vars": ["é'.encode()[:-1]),
    lambda h: h.reply(ROWS, X_SQL_State="S1TAT", X_SQL_Message="RC...: incomplete results"),
    lambda h: h.reply(ROWS, X_SPARQL_MaxRows="1"),
    unchunked,
]


@pytest.mark.parametrize("play", CUT_SHORT)
def test_cut_short(stub: Stub, make: Make, play: Play) -> None:
    stub.plays = [play]
    with pytest.raises(CutShortError, match=stub.url):
        make().query("SELECT ?x { ?x ?p ?o }")
    assert len(stub.seen) == 1


def test_fewer_rows_than_the_limit(stub: Stub, make: Make) -> None:
    stub.plays = [lambda h: h.reply(ROWS, X_SPARQL_MaxRows="2")]
    assert make().query("SELECT ?x { ?x ?p ?o }")["results"]


def with_basic(handler: Handler) -> None:
    login = base64.b64encode(b"me:p\xc3\xa4ss:word").decode()
    if handler.headers.get("Authorization") == f"Basic {login}":
        handler.reply()
    else:
        handler.reply(b"", 401, WWW_Authenticate='Basic realm="SPARQL"')


@pytest.mark.parametrize("place", ["options", "address"])
def test_basic_authentication(stub: Stub, make: Make, place: str) -> None:
    stub.plays = [with_basic]
    if place == "options":
        endpoint = make(user="me", password="päss:word")
    else:
        endpoint = make(stub.url.replace("//", "//me:p%C3%A4ss%3Aword@"))
    assert endpoint.query(ASK)["boolean"]
    assert len(stub.seen) == 1
    with pytest.raises(RefusedError) as caught:
        make(user="me", password="wrong").query(ASK)
    for shown in (str(caught.value), repr(endpoint), endpoint.name, endpoint.url):
        assert "wrong" not in shown
        assert "word" not in shown.replace("password", "")


def with_digest(handler: Handler) -> None:
    import hashlib
    import urllib.request

    def md5(*parts: str) -> str:
        return hashlib.md5(":".join(parts).encode()).hexdigest()

    kind, _, rest = handler.headers.get("Authorization", "").partition(" ")
    if kind == "Digest":
        given = urllib.request.parse_keqv_list(urllib.request.parse_http_list(rest))
        proof = md5(
            md5("me", "SPARQL", "secret"),
            "n0nce",
            given["nc"],
            given["cnonce"],
            "auth",
            md5("POST", "/sparql"),
        )
        if given["response"] == proof and given["uri"] == "/sparql":
            return handler.reply()
    return handler.reply(
        b"", 401, WWW_Authenticate='Digest realm="SPARQL", nonce="n0nce", qop="auth", opaque="x"'
    )


def test_digest_authentication(stub: Stub, make: Make) -> None:
    stub.plays = [with_digest]
    endpoint = make(user="me", password="secret", auth="digest")
    assert endpoint.query(ASK)["boolean"]
    assert endpoint.query(ASK)["boolean"]
    assert len(stub.seen) == 3  # the challenge was met once and is kept
    counts = [handler.headers["Authorization"].split("nc=")[1][:8] for handler in stub.seen[1:]]
    assert counts == ["00000001", "00000002"]
    with pytest.raises(RefusedError, match="status 401"):
        make(user="me", password="wrong", auth="digest").query(ASK)
    assert len(stub.seen) == 5


def test_headers_cannot_bring_others(make: Make) -> None:
    with pytest.raises(RefusedError, match="X-Key"):
        make(headers={"X-Key": "a\r\nX-Other: b"})


@pytest.mark.parametrize(
    ("client", "package"), [("wrapper", "SPARQLWrapper"), ("wrapper", "httpx"), ("pool", "httpx")]
)
def test_missing_packages(client: Any, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MissingPackageError, match=rf"endpoints: the package {package} is not .*\[sparql"
    ):
        Endpoint("http://localhost/", client=client)


def test_many_at_once(stub: Stub, make: Make) -> None:
    def echo(handler: Handler) -> None:
        number = int(handler.form["query"][0].split()[-1])
        time.sleep(0.02 if number % 5 else 0.06)
        if number == 7:
            handler.reply(b"bad", 400)
        else:
            handler.reply(json.dumps({"head": {}, "boolean": True, "n": number}).encode())

    stub.plays = [echo]
    drawn = 0

    def texts() -> Iterator[str]:
        nonlocal drawn
        for number in range(40):
            drawn += 1
            yield f"ASK {number}"

    answers = make(workers=3).query_many(texts(), timeout=10)
    first = next(answers)
    assert isinstance(first, dict)
    assert drawn <= 7
    rest = list(answers)
    assert [one if isinstance(one, EngineError) else one["n"] for one in [first, *rest]] == [
        rest[6] if number == 7 else number for number in range(40)
    ]
    assert isinstance(rest[6], NotUnderstoodError)
    assert stub.most == 3


def test_many_can_be_left(stub: Stub, make: Make) -> None:
    answers = make(workers=2).query_many(f"ASK {number}" for number in range(1000))
    next(answers)
    answers.close()  # type: ignore[attr-defined]
    assert len(stub.seen) < 10


def test_recognises_virtuoso(stub: Stub, client: Any) -> None:
    class Old(Handler):
        server_version, sys_version = "Virtuoso/07.20.3229 (Linux)", ""

    assert not is_virtuoso(stub.url, client=client)
    assert type(Endpoint.open(stub.url, client=client)) is Endpoint
    stub.RequestHandlerClass = Old
    stub.plays = [lambda h: h.reply(b"", 401)]
    assert is_virtuoso(stub.url, client=client)
    found = Endpoint.open(stub.url, client=client, graph="http://g/")
    assert isinstance(found, Virtuoso)
    assert with_digits in found.dialect.rewrites
    assert found.dialect.graph == "http://g/"


def test_virtuoso_answers(stub: Stub, client: Any) -> None:
    head = '{"head": {"vars": ["__ASK_RETVAL"]}, "results": {"bindings": [%s]}}'
    one = '{"__ASK_RETVAL": {"type": "typed-literal", "value": "1"}}'
    stub.plays = [lambda h: h.reply((head % "").encode()), lambda h: h.reply((head % one).encode())]
    engine = Virtuoso(stub.url, client=client)
    assert engine.query(ASK) == {"head": {}, "boolean": False}
    assert engine.query(ASK) == {"head": {}, "boolean": True}
    assert stub.seen[0].form["format"] == ["application/sparql-results+json"]


def test_virtuoso_hears_of_a_time_limit_only_where_its_own_is_longer(
    stub: Stub, client: Any
) -> None:
    Virtuoso(stub.url, client=client).query(ASK, timeout=5)
    Virtuoso(stub.url, client=client, server_limit=30).query(ASK, timeout=5)
    Virtuoso(stub.url, client=client, server_limit=30).query(ASK, timeout=30)
    Virtuoso(stub.url, client=client, server_limit=30).query(ASK)
    assert [handler.form.get("timeout") for handler in stub.seen] == [None, ["6000"], None, None]
