"""What stands before every request: its host, its origin, its token; and what every answer says.

The order of the checks: a foreign name of the host 421, a foreign origin 403, a token that is
missing 401. The page's own files are given without a token: the page holds none, it takes the one
in its address and has it exchanged for a cookie.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any, TypeAlias

from kopl_base.visitors import Visitors, same_secret
from kopl_cli.serve.routes import Field, Reply, RequestError, Route, record

Scope: TypeAlias = MutableMapping[str, Any]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Any, Any], Awaitable[None]]
# Answers a request with an error.
Refuse: TypeAlias = Callable[[RequestError, Scope, Any, Send], Awaitable[None]]

SESSION = "/api/session"
API = "/api/"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class Guard:
    """Lets through to an application what may come, and puts the headers on every answer."""

    def __init__(
        self, application: Application, visitors: Visitors, open_paths: set[str], refuse: Refuse
    ) -> None:
        self.application, self.visitors, self.refuse = application, visitors, refuse
        self._open = open_paths

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.application(scope, receive, send)
            return  # nothing else is spoken here

        async def sent(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message.get("headers", ())}
                more = [pair for pair in _HEADERS if pair[0] not in given]
                if b"cache-control" not in given:
                    more.append((b"cache-control", b"no-store"))
                message["headers"] = [*message.get("headers", ()), *more]
            await send(message)

        if (wrong := self._wrong(scope)) is not None:
            await self.refuse(wrong, scope, receive, sent)
        else:
            await self.application(scope, receive, sent)

    def _wrong(self, scope: Scope) -> RequestError | None:
        """Why a request is refused, None where it is not."""
        hosts = _headers(scope, b"host")
        host = hosts[0] if len(hosts) == 1 else ""
        visitors = self.visitors
        if not visitors.knows(host):
            return RequestError(
                f"this server is not called {host[:100]!r}", status=421,
                to_try="open it by the address that it printed; --name NAME adds a name",
            )  # fmt: skip
        origins = _headers(scope, b"origin")
        site = _headers(scope, b"sec-fetch-site")
        is_api = scope["path"].startswith(API)
        foreign = any(not visitors.welcomes(origin, host) for origin in origins)
        # A link elsewhere may lead to the page, but not to what it asks.
        if foreign or (is_api and any(one in ("cross-site", "same-site") for one in site)):
            return RequestError("pages of another address may not ask this server", status=403)
        if is_api and scope["path"] not in self._open and not self._admitted(scope):
            return RequestError(
                "a token is needed", status=401,
                to_try="open the link that the server printed, or send"
                " 'Authorization: Bearer TOKEN'",
            )  # fmt: skip
        return None

    def _admitted(self, scope: Scope) -> bool:
        shown = _headers(scope, b"authorization")
        jar: SimpleCookie = SimpleCookie()
        try:
            jar.load("; ".join(_headers(scope, b"cookie")))
        except CookieError:
            jar.clear()
        cookie = jar.get(self.visitors.cookie_name)
        return self.visitors.admits(
            shown[0].encode("latin-1") if shown else b"", cookie.value if cookie else None
        )


def _headers(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for known, value in scope["headers"] if known == name]


def session_route(visitors: Visitors) -> Route:
    """The route that exchanges the token for a cookie, which scripts cannot read."""

    def begin(_: Any, given: dict[str, Any]) -> Reply:
        if visitors.token is None:
            return Reply({"needed": False})
        if not same_secret(given["token"], visitors.token):
            raise RequestError("that is not the token", status=401, field="token")
        return Reply({"needed": True}, headers={"set-cookie": visitors.set_cookie})

    return Route(
        "POST",
        SESSION,
        "Exchange the token for a cookie; 401 for a wrong one.",
        begin,
        (Field("token", "text", "the token of the server's link", True, most=1000),),
        record(needed={"type": "boolean"}),
        open=True,
    )
