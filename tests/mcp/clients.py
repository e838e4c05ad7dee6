"""Clients of the server of tools over its three transports, and servers for them."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from mcp import Client, StdioServerParameters

from kopl_cli.mcp.server import http_application, server
from kopl_cli.mcp.tools import Tools

Given = TypeVar("Given")
TINY = Path(__file__).parents[1] / "data" / "tiny.json"

# How long a test waits for what only goes wrong when something is broken.
LONG = 300


def talk(to: Any, use: Callable[[Client], Awaitable[Given]]) -> Given:
    """What a conversation with a server gives."""

    async def talking() -> Given:
        async with Client(to, read_timeout_seconds=LONG) as client:
            return await use(client)

    return asyncio.run(talking())


def stdio() -> StdioServerParameters:
    """A server as a host of agents starts it."""
    arguments = ["-m", "kopl", "mcp", "--kb", str(TINY), "--no-cache"]
    return StdioServerParameters(command=sys.executable, args=arguments)


@contextmanager
def served(tools: Tools, **options: Any) -> Iterator[int]:
    """The port of a server by HTTP in this process."""
    import uvicorn

    application = http_application(tools, options.pop("host", "127.0.0.1"), **options)
    config = uvicorn.Config(application, log_level="error", access_log=False)
    running = uvicorn.Server(config)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(200)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            running.should_exit = True
            thread.join(LONG)


@contextmanager
def transport(name: str, tools: Tools) -> Iterator[Any]:
    """What a client is given to reach the tools over a transport."""
    if name == "memory":
        yield server(tools)
    elif name == "stdio":
        yield stdio()
    else:
        with served(tools) as port:
            yield f"http://127.0.0.1:{port}/mcp"
