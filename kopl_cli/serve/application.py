"""The application of `kopl serve`: the declared routes, their errors, and the page's files.

`MODULES` have the routes. Handlers run in a few worker threads; more requests than may be under way
at once are refused, so that one who asks much does not take the memory of all.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any, TypeVar
from urllib.parse import quote

import anyio.to_thread
from anyio import CapacityLimiter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Match
from starlette.routing import Route as Served

from kopl_base.errors import KoplError, WriteError
from kopl_base.visitors import Visitors
from kopl_cli.serve import (
    asking,
    correcting,
    editing,
    examples,
    exporting,
    knowledge,
    learning,
    openapi,
    programs,
    queries,
    queueing,
    uploading,
)
from kopl_cli.serve.bases import Playground
from kopl_cli.serve.guard import Guard, session_route
from kopl_cli.serve.routes import (
    QUIET,
    QUIETED,
    BusyError,
    Download,
    Event,
    Events,
    Reply,
    RequestError,
    Route,
    told,
)

# The modules that have routes: each a list ``ROUTES`` of declarations, and perhaps a ``teller`` of
# what /api/info says besides.
MODULES: tuple[Any, ...] = (
    knowledge, asking, programs, editing, examples, correcting, exporting, queueing, learning,
    uploading, queries,
)  # fmt: skip

# Handlers that run at once, and streams of events that are open at once.
WORKERS, STREAMS = 4, 32

MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".json": "application/json",
}

log = logging.getLogger("kopl.serve")
Found = TypeVar("Found")


def declared(visitors: Visitors) -> list[Route]:
    """All routes of the server, among them that of its description."""
    routes = [session_route(visitors)]
    for module in MODULES:
        routes += module.ROUTES
    return openapi.with_document(routes)


def application(playground: Playground, visitors: Visitors) -> Guard:
    """The server over a playground, for those visitors."""
    routes = declared(visitors)
    playground.tellers = [one.teller for one in MODULES if hasattr(one, "teller")]
    server = _Server(playground)
    by_path: dict[str, list[Route]] = {}
    for route in routes:
        by_path.setdefault(route.path, []).append(route)
    served = [
        Served(path, server.endpoint(some), methods=[route.method for route in some])
        for path, some in by_path.items()
    ]
    server.routes = [*served]
    served.append(Served("/{name:path}", server.file, methods=["GET"]))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        playground.close()

    inner = Starlette(
        routes=served,
        lifespan=lifespan,
        exception_handlers={HTTPException: _http_error, Exception: _own_error},
    )

    async def refuse(error: RequestError, scope: Any, receive: Any, send: Any) -> None:
        await _error(error)(scope, receive, send)

    return Guard(inner, visitors, {route.path for route in routes if route.open}, refuse)


class _Server:
    """Runs handlers for requests."""

    def __init__(self, playground: Playground) -> None:
        self.playground = playground
        self.routes: list[Served] = []
        self._under_way = self._streams = 0
        # Made in the loop that serves.
        self._workers: CapacityLimiter | None = None

    def endpoint(self, routes: list[Route]) -> Callable[[Request], Any]:
        """What serves the routes of one path."""
        by_method = {route.method: route for route in routes}

        async def serve(request: Request) -> Response:
            # A GET is asked for its head alone, too.
            route = by_method["GET" if request.method == "HEAD" else request.method]  # type: ignore[index]
            try:
                given = await _given(route, request)
                return await self._answer(route, given)
            except KoplError as error:
                return _error(error, quiet=request.headers.get(QUIET) == "200")
            except ClientDisconnect:
                return Response(status_code=400)

        return serve

    async def _answer(self, route: Route, given: dict[str, Any]) -> Response:
        found = await self._in_worker(route.handler, self.playground, given)
        if isinstance(found, Future):
            found = await asyncio.wrap_future(found)
        if isinstance(found, Events):
            return self._stream(found)
        if isinstance(found, Download):
            named = f"attachment; filename*=UTF-8''{quote(found.name)}"
            headers = {"content-disposition": named}
            return Response(found.text, 200, headers, found.media)
        reply = found if isinstance(found, Reply) else Reply(found, route.status)
        return _json(reply.data, reply.status, dict(reply.headers))

    async def _in_worker(self, work: Callable[..., Found], *arguments: Any) -> Found:
        most = self.playground.limits.requests
        if self._under_way >= most:
            raise BusyError(
                f"{most} requests are under way already", to_try="try it again in a moment"
            )
        if self._workers is None:
            self._workers = CapacityLimiter(WORKERS)
        self._under_way += 1
        try:
            return await anyio.to_thread.run_sync(work, *arguments, limiter=self._workers)
        finally:
            self._under_way -= 1

    def _stream(self, events: Events) -> Response:
        if self._streams >= STREAMS:
            raise BusyError(f"{STREAMS} streams are open already")
        self._streams += 1
        # Threads of their own: one that waits for an event keeps no worker from requests.
        limiter = CapacityLimiter(1)

        async def lines() -> AsyncIterator[bytes]:
            source: Iterator[Event | None] = iter(events.source)
            try:
                while not self.playground.closing.is_set():
                    event = await anyio.to_thread.run_sync(next, source, _END, limiter=limiter)
                    if event is _END:
                        break
                    yield _event(event)  # type: ignore[arg-type]
            finally:
                self._streams -= 1
                if close := getattr(source, "close", None):
                    close()

        headers = {"cache-control": "no-store"}
        return StreamingResponse(lines(), media_type="text/event-stream", headers=headers)

    async def file(self, request: Request) -> Response:
        """A file of the page."""
        name = request.path_params["name"] or "index.html"
        suffix = name[name.rfind(".") :]
        page = files("kopl_cli.serve") / "page"
        # Nothing but names of files that lie there is ever opened.
        if suffix in MEDIA and name in {one.name for one in page.iterdir()}:
            data = (page / name).read_bytes()
            headers = {"cache-control": "no-cache"}
            return Response(data, media_type=MEDIA[suffix], headers=headers)
        for route in self.routes:  # one that only takes another method
            if route.matches(request.scope)[0] is not Match.NONE:
                allowed = {"allow": ", ".join(sorted(route.methods or ()))}
                raise HTTPException(405, headers=allowed)
        return _error(RequestError(f"there is no {request.url.path[:200]!r} here", status=404))


_END = object()


def _event(event: Event | None) -> bytes:
    """An event as it is sent; a comment where there is none, which finds out who has gone."""
    if event is None:
        return b": \n\n"
    return f"event: {event.name}\ndata: {_text(event.data)}\n\n".encode()


# --- requests -------------------------------------------------------------------------------------


async def _given(route: Route, request: Request) -> dict[str, Any]:
    """The fields of a request; raises RequestError."""
    given: dict[str, Any] = {}
    if route.method == "POST":
        given = _object(await _body(request, route.body))
    else:
        for name, value in request.query_params.multi_items():
            if name in given:
                raise RequestError(f"{name}: it is given twice", field=name)
            given[name] = value
    for name, value in request.path_params.items():
        if name in given:
            raise RequestError(f"{name}: it stands in the path", field=name)
        given[name] = value
    return route.read(given, written=route.method != "POST")


async def _body(request: Request, most: int) -> bytes:
    media = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if media != "application/json":
        raise RequestError(
            "a body of the type application/json is expected", status=415,
            to_try="send the header 'Content-Type: application/json'",
        )  # fmt: skip
    too_large = RequestError(f"the body has more than {most:,} bytes", status=413)
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > most:
        raise too_large
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise too_large
        parts.append(part)
    return b"".join(parts)


def _object(body: bytes) -> dict[str, Any]:
    def refused(text: str) -> None:
        raise ValueError(f"{text} is no number")

    try:
        given = json.loads(body.decode("utf-8"), parse_constant=refused)
        # A half of a character cannot be written again.
        json.dumps(given, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        reason = "it is too deep" if isinstance(error, RecursionError) else error
        raise RequestError(f"the body is not JSON: {reason}") from None
    if not isinstance(given, dict):
        raise RequestError("the body must be a JSON object")
    return given


# --- answers --------------------------------------------------------------------------------------


def _text(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _json(data: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    text = _text(data).encode("utf-8", "backslashreplace")
    return Response(text, status, headers, "application/json")


def _error(error: KoplError, *, quiet: bool = False) -> Response:
    status, shown = told(error)
    if quiet and status in QUIETED:
        status = 200
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    headers |= {"retry-after": "1"} if status == 503 else {}
    return _json(shown, status, headers)


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.url.path[:200]
    messages = {404: f"there is no {path!r} here", 405: f"{path} does not take {request.method}"}
    said = messages.get(error.status_code, str(error.detail))
    response = _error(RequestError(said, status=error.status_code))
    response.headers.update(error.headers or {})
    return response


def _own_error(_: Request, error: Exception) -> Response:
    log.exception("a request failed", exc_info=error)
    if isinstance(error, OSError) and error.filename is not None:
        return _error(WriteError(f"{error.filename}: {error.strerror}"))
    said = RequestError("something went wrong here; the server's own output says what", status=500)
    return _error(said)
