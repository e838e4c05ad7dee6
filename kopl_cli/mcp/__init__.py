"""``kopl mcp``: tools for agents by the Model Context Protocol.

The protocol's package is imported only when the server starts.
"""

from __future__ import annotations

import argparse
import os
import sys

from kopl_base.errors import KoplError
from kopl_base.packages import needs
from kopl_cli.common import add_kb, open_kb, port, positive, seconds, torch_is_needed

TOKEN = "KOPL_MCP_TOKEN"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = (
        "An agent's host starts this command itself and talks to it on standard input and output;"
        " docs/agents.md has the lines for usual hosts. With --http it serves at"
        " http://127.0.0.1:8321/mcp."
    )
    add_kb(parser, option=True, required=False)
    parser.add_argument(
        "--run", dest="folder", metavar="RUN", help="a trained run, for the tool 'ask'"
    )
    parser.add_argument("--http", action="store_true", help="serve by streamable HTTP")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="HOST",
        help="with --http: where to listen (default: 127.0.0.1); elsewhere than on this machine"
        f" clients must show the token in {TOKEN}",
    )
    parser.add_argument("--port", type=port, default=8321, metavar="N", help="default: 8321")
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="HOST",
        help="with --http: another name by which clients may reach it",
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=10.0,
        metavar="S",
        help="seconds for one program or query (default: 10)",
    )
    parser.add_argument(
        "--max-ids",
        type=positive,
        default=5_000_000,
        metavar="N",
        help="ids that one call of a program may give (default: 5000000)",
    )
    parser.set_defaults(parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    if arguments.kb is None and arguments.folder is None:
        arguments.parser.error("give --kb KB, or --run RUN with its own knowledge base")
    try:
        from kopl_cli.mcp import server
        from kopl_cli.mcp.tools import ToolLimits, Tools
    except ImportError as error:
        package = (error.name or "mcp").partition(".")[0]
        if package not in ("mcp", "mcp_types", "pydantic"):
            raise
        raise KoplError(needs("kopl mcp", "mcp", extra="mcp")) from None
    parser = None
    if arguments.folder is not None:
        with torch_is_needed():
            from parsers.parser import Parser
        parser = Parser.load(arguments.folder, arguments.kb)
    kb = parser.kb if parser is not None else open_kb(arguments)
    limits = ToolLimits(seconds=arguments.timeout, ids=arguments.max_ids)
    tools = Tools(kb, limits=limits, parser=parser)
    try:
        if not arguments.http:
            if sys.stdin.isatty():
                print(
                    "kopl: waiting for an agent's host on standard input; --http serves by HTTP",
                    file=sys.stderr,
                )
            server.serve(tools)
            return 0
        address = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
        print(f"kopl: serving at http://{address}:{arguments.port}/mcp", file=sys.stderr)
        token, names = os.environ.get(TOKEN), tuple(arguments.name)
        server.serve_http(tools, arguments.host, arguments.port, token=token, names=names)
    finally:
        tools.close()
    return 0
