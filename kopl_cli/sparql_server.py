"""``kopl sparql virtuoso`` and ``kopl sparql serve``: servers for knowledge bases."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kopl_base.errors import KoplError
from kopl_cli.common import add_kb, open_kb, port, positive

if TYPE_CHECKING:
    from kopl.sparql.engines.virtuoso import Status, VirtuosoServer


def add_virtuoso(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``virtuoso up|load|down|status``; each sets ``handler``, which gives the exit status."""
    sentence = "run a Virtuoso of your own in a folder"
    command: argparse.ArgumentParser = subparsers.add_parser(
        "virtuoso", help=sentence, description=sentence.capitalize() + "."
    )
    steps = command.add_subparsers(dest="step", metavar="STEP", required=True)

    def step(name: str, sentence: str, handler: Any) -> argparse.ArgumentParser:
        added = steps.add_parser(name, help=sentence, description=sentence.capitalize() + ".")
        added.add_argument(
            "--folder", metavar="DIR", help="where all its files are (default: in the cache folder)"
        )
        added.set_defaults(handler=handler)
        return added

    up = step("up", "configure and start it on this machine only", run_up)
    up.add_argument("--port", type=port, metavar="N", help="of its SQL (default: a free one)")
    up.add_argument(
        "--http-port", type=port, metavar="N", help="of the endpoint (default: a free one)"
    )
    up.add_argument(
        "--buffers",
        type=positive,
        metavar="N",
        help="pages of 8 KB (default: 170000 or a quarter of the memory)",
    )
    up.add_argument(
        "--timeout",
        type=positive,
        default=30,
        metavar="S",
        help="its time limit for a query in seconds (default: 30)",
    )
    load = step("load", "replace a graph by a knowledge base or an N-Triples file", run_load)
    what = load.add_mutually_exclusive_group(required=True)
    what.add_argument("--kb", metavar="KB", help="'world' (bundled) or a knowledge base's file")
    what.add_argument("file", nargs="?", metavar="FILE.nt", help="N-Triples, also as .nt.gz")
    load.add_argument("--graph", metavar="IRI", help="default: http://kb.example/graph")
    load.add_argument(
        "--no-cache", action="store_true", help="do not keep or use a snapshot of the file"
    )
    step("down", "stop it; what was loaded stays", run_down)
    status = step("status", "whether it runs, and where", run_status)
    status.add_argument("--json", action="store_true", help="print one JSON object")
    return command


def add_serve(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``serve``, which sets ``handler``."""
    sentence = "put a knowledge base behind a read-only SPARQL 1.1 endpoint on this machine"
    command: argparse.ArgumentParser = subparsers.add_parser(
        "serve", help=sentence, description=sentence + "; Ctrl-C stops it."
    )
    add_kb(command, option=True)
    command.add_argument("--port", type=port, metavar="N", help="default: a free one")
    command.add_argument(
        "--timeout",
        type=positive,
        default=30,
        metavar="S",
        help="the server's time limit for a query in seconds (default: 30)",
    )
    command.set_defaults(handler=run_serve)
    return command


def run_up(arguments: argparse.Namespace) -> int:
    """Start the server of the folder and print its address."""
    server = _server(arguments)
    _print(
        server.up(arguments.port, arguments.http_port, arguments.buffers, limit=arguments.timeout)
    )
    return 0


def run_load(arguments: argparse.Namespace) -> int:
    """Load a knowledge base or a file."""
    from kopl.sparql.engines.virtuoso import GRAPH

    server, graph = _server(arguments), arguments.graph or GRAPH
    if arguments.kb is None:
        server.load(arguments.file, graph)
    else:
        server.load_kb(open_kb(arguments), graph)
    print(f"kopl: loaded into the graph {graph} of {server.status().url}", file=sys.stderr)
    return 0


def run_down(arguments: argparse.Namespace) -> int:
    """Stop the server."""
    _server(arguments).down()
    return 0


def run_status(arguments: argparse.Namespace) -> int:
    """Print where the server runs; 1 when it does not."""
    from kopl.sparql.engines.virtuoso import as_json

    status = _server(arguments).status()
    if arguments.json:
        print(json.dumps(as_json(status), ensure_ascii=False))
    else:
        _print(status)
    return 0 if status.running else 1


def run_serve(arguments: argparse.Namespace) -> int:
    """Serve a knowledge base until Ctrl-C."""
    from kopl.sparql.engines.oxigraph import store_folder
    from kopl.sparql.engines.server import serve

    folder = store_folder(open_kb(arguments))
    return serve(folder, arguments.port, arguments.timeout)


def _server(arguments: argparse.Namespace) -> VirtuosoServer:
    from kb.load import cache_folder
    from kopl.sparql.engines.virtuoso import VirtuosoServer

    if arguments.folder is not None:
        return VirtuosoServer(arguments.folder)
    cache = cache_folder()
    if cache is None:
        raise KoplError("there is no cache folder; say with --folder where the server lives")
    return VirtuosoServer(Path(cache) / "virtuoso")


def _print(status: Status) -> None:
    where = status.url if status.running else "not running"
    print(f"{where}\t{status.folder}")
