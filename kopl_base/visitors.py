"""Who may ask a server of this machine: names of the host, origins of pages, tokens.

A web page anywhere can make a browser send requests to a server that only this machine reaches.
What it cannot do is to send them under this machine's name from a page of this machine's: so a
server looks at ``Host`` and ``Origin``.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

# Where only programs of this machine come from.
LOOPBACK = ("127.0.0.1", "localhost", "::1")
# What is listened on for all addresses of the machine.
EVERYWHERE = ("0.0.0.0", "::", "")


def bracketed(host: str) -> str:
    """A host as addresses write it: with brackets around one that has colons.

    >>> bracketed("::1"), bracketed("localhost")
    ('[::1]', 'localhost')
    """
    return f"[{host}]" if ":" in host else host


def known_hosts(host: str, names: Sequence[str] = ()) -> list[str]:
    """The names by which a server that listens on a host may be asked, as addresses write them."""
    return [*dict.fromkeys(bracketed(name) for name in (host, *LOOPBACK, *names) if name)]


def same_secret(shown: str | bytes, wanted: str | bytes) -> bool:
    """Whether a secret is the one that is wanted; as fast for every wrong one."""
    parts = [part.encode() if isinstance(part, str) else part for part in (shown, wanted)]
    return secrets.compare_digest(*parts)


def bears(header: bytes, token: str) -> bool:
    """Whether a header ``Authorization`` shows the token."""
    return same_secret(header, f"Bearer {token}")


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Visitors:
    """Who may ask a server that listens on ``host``: by which ``names`` of it, with which token."""

    host: str
    port: int = 0
    names: tuple[str, ...] = ()
    token: str | None = None

    def knows(self, host: str) -> bool:
        """Whether a request's ``Host`` is one of the server's names, with whatever port.

        An address in numbers is one where it listens on all of them: no other page has it.
        """
        name = _name_of(host)
        if name is None:
            return False
        if name in {one.casefold() for one in (self.host, *LOOPBACK, *self.names)}:
            return True
        if self.host not in EVERYWHERE:
            return False
        return _is_address(name) or name == socket.gethostname().casefold()

    def welcomes(self, origin: str, host: str) -> bool:
        """Whether a page of that ``Origin`` may ask: one of this server's own."""
        try:
            parts = urlsplit(origin)
            name = parts.hostname or ""
        except ValueError:
            return False
        if parts.scheme not in ("http", "https") or not parts.netloc:
            return False
        if parts.netloc.casefold() == host.casefold():
            return True
        return name in {one.casefold() for one in self.names}

    @property
    def cookie(self) -> str:
        """What a browser shows instead of the token; nobody gets the token from it."""
        assert self.token is not None
        return hmac.new(self.token.encode(), b"cookie", hashlib.sha256).hexdigest()

    @property
    def cookie_name(self) -> str:
        """What the cookie is called: cookies do not tell ports apart."""
        return f"kopl-{self.port}"

    @property
    def set_cookie(self) -> str:
        """The header that gives a browser the cookie, which no script and no other page has."""
        return f"{self.cookie_name}={self.cookie}; HttpOnly; SameSite=Strict; Path=/"

    def admits(self, authorization: bytes, cookie: str | None) -> bool:
        """Whether a request shows the token, or what stands for it; all do where there is none."""
        if self.token is None or bears(authorization, self.token):
            return True
        return cookie is not None and same_secret(cookie, self.cookie)


def _name_of(host: str) -> str | None:
    """The name in a header ``Host`` without its port; None for what is no such header."""
    try:
        parts = urlsplit(f"//{host}")
        parts.port  # noqa: B018 (raises for what is no port)
    except ValueError:
        return None
    return parts.hostname if parts.netloc == host and "@" not in host else None


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
