"""``kopl serve``: the playground, one page in the browser over a knowledge base.

The packages of the extra ``serve`` are imported only when the server starts.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kopl_base.errors import KoplError
from kopl_base.packages import needs
from kopl_base.visitors import EVERYWHERE, LOOPBACK, Visitors, bracketed, new_token
from kopl_cli.common import add_kb, open_kb, port, positive, seconds

if TYPE_CHECKING:
    from kb import KnowledgeBase
    from kopl_cli.serve.bases import Playground, ServedRun

TOKEN = "KOPL_SERVE_TOKEN"
PORT = 8322


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = (
        "Opens nothing by itself: it prints the address of the page. Without --kb and without a"
        " trained run the bundled knowledge base is served; programs can then be written and run,"
        " questions wait for a run."
    )
    add_kb(parser, option=True, required=False)
    parser.add_argument(
        "--run", dest="folder", metavar="RUN",
        help="the trained run that is asked (default: the newest one in runs/, if there is one)",
    )  # fmt: skip
    parser.add_argument(
        "--folder", dest="own", default="runs/playground", metavar="DIR",
        help="where the queue, new runs, what is sent, and corrections without a run are kept"
        " (default: runs/playground)",
    )  # fmt: skip
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="HOST",
        help="where to listen (default: 127.0.0.1); elsewhere than on this machine only the link"
        " with the token opens the page",
    )  # fmt: skip
    parser.add_argument(
        "--port", type=port, default=PORT, metavar="N", help=f"default: {PORT}"
    )  # fmt: skip
    parser.add_argument(
        "--token", metavar="TOKEN",
        help=f"what visitors must show (also in {TOKEN}; made where it is needed and not given)",
    )  # fmt: skip
    parser.add_argument(
        "--name", action="append", default=[], metavar="HOST",
        help="another name by which the page is reached, as behind a proxy",
    )  # fmt: skip
    parser.add_argument(
        "--timeout", type=seconds, default=10.0, metavar="S",
        help="seconds for one program or query (default: 10)",
    )  # fmt: skip
    parser.add_argument(
        "--max-ids", type=positive, default=5_000_000, metavar="N",
        help="ids that one call of a program may give (default: 5000000)",
    )  # fmt: skip
    parser.add_argument(
        "--config", metavar="NAME",
        help="what a first training goes by: a shipped config or a YAML file of one's own, as 'kopl"
        " train --config' takes them (default: the shipped config default)",
    )  # fmt: skip
    parser.add_argument(
        "--properties", metavar="FILE",
        help="JSON with the property of Wikidata of each relation and key, for queries in its form",
    )  # fmt: skip
    parser.add_argument(
        "--reasoner", metavar="R",
        help="a reasoner for incomplete graphs, as of 'kopl cqa ask': shows programs as logical"
        " queries with predicted answers",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    try:
        import uvicorn

        from kopl_cli.serve.application import application
    except ImportError as error:
        package = (error.name or "starlette").partition(".")[0]
        if package not in ("starlette", "uvicorn", "anyio", "h11"):
            raise
        raise KoplError(needs("kopl serve", package, extra="serve")) from None
    token = arguments.token or os.environ.get(TOKEN)
    if arguments.host not in LOOPBACK and not token:
        token = new_token()
    visitors = Visitors(arguments.host, arguments.port, tuple(arguments.name), token or None)
    listening = _listen(arguments.host, arguments.port)
    try:
        playground = _playground(arguments)
        print(f"kopl: the playground is at {_address(visitors)} (Ctrl-C stops it)", flush=True)
        # Once the page is there: loading takes the interpreter for a second or two.
        loading = threading.Timer(1.0, warm_up, (playground,))
        loading.daemon = True
        loading.start()
        config = uvicorn.Config(
            application(playground, visitors), log_level="warning", access_log=False,
            server_header=False, timeout_graceful_shutdown=3, lifespan="on", ws="none",
        )  # fmt: skip
        with contextlib.suppress(KeyboardInterrupt):  # raised again once all is closed
            uvicorn.Server(config).run(sockets=[listening])
        print("kopl: stopped", file=sys.stderr)
    finally:
        listening.close()
    return 0


def warm_up(playground: Playground) -> None:
    """Do before what the first visitor would wait for: examples, and the parser, in its thread."""
    from kopl_cli.serve.asking import Asker
    from kopl_cli.serve.examples import Examples

    base = playground.base(None)
    playground.part(Asker).prepare(base)
    playground.part(Examples).prepare(base)


def _playground(arguments: argparse.Namespace) -> Playground:
    from kopl_cli.serve.bases import Playground, ServeLimits
    from kopl_cli.serve.learning import Learning
    from kopl_cli.serve.uploading import Uploads

    runs = _runs(arguments.folder)
    kb, place, runs = _opened(arguments, runs)
    run = next((one for one in runs if one.fingerprint == kb.fingerprint), None)
    if run is None and runs:
        run = runs[0]
        print(
            f"kopl: {run.folder} was trained on another knowledge base ({run.kb}); here it goes by"
            " the names of relations and keys",
            file=sys.stderr,
        )
    if run is not None and arguments.folder is None:
        print(f"kopl: questions go to {run.folder}, the newest run", file=sys.stderr)
    limits = ServeLimits(seconds=arguments.timeout, ids=arguments.max_ids)
    playground = Playground(limits, run, arguments.reasoner, Path(arguments.own))
    if arguments.config is not None:
        from kopl_cli.train import find_config

        playground.config = str(find_config(arguments.config).resolve())
    if not _may_write(playground.folder):
        print(
            f"kopl: {playground.folder} cannot be written: nothing that is sent, said or trained is"
            " kept; name another folder with --folder DIR",
            file=sys.stderr,
        )
    if place != "world" and Path(place).exists():  # what is trained on it finds it from anywhere
        place = str(Path(place).resolve())
    name = place if place == "world" else Path(place).name.partition(".")[0]
    base = playground.add(kb, name, place=place)
    if arguments.properties is not None:
        from kopl.sparql.properties import read_properties

        read_properties(arguments.properties)  # what is wrong is told now
        base.properties = Path(arguments.properties)
    if playground.reasoner is not None:
        from kopl_cli.serve.queries import Reasoners

        print(f"kopl: opening the reasoner {playground.reasoner} …", file=sys.stderr, flush=True)
        playground.part(Reasoners).open(base)  # one that is not there is refused now
    playground.part(Uploads)
    playground.part(Learning).begun()
    if playground.run is not run and playground.run is not None:
        print(f"kopl: {playground.run.folder} is asked, which was kept", file=sys.stderr)
    return playground


def _may_write(folder: Path) -> bool:
    """Whether a folder is there or may be made, and something may be put into it."""
    there = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def _runs(folder: str | None) -> list[ServedRun]:
    """The run that is named, else all in the usual folder, the newest first."""
    from kopl_cli.last_run import RUNS, trained
    from kopl_cli.serve.bases import ServedRun

    if folder is not None:
        return [ServedRun.of(Path(folder))]
    found = []
    for one in trained(RUNS):
        with contextlib.suppress(KoplError):
            found.append(ServedRun.of(one))
    return found


def _opened(
    arguments: argparse.Namespace, runs: list[ServedRun]
) -> tuple[KnowledgeBase, str, list[ServedRun]]:
    """The knowledge base, its place, and the runs that may be asked.

    Raises KoplError where that of a run that is named is not to be found.
    """
    place = arguments.kb or (runs[0].kb if runs else "world")
    if arguments.kb is None and runs and place != "world" and not Path(place).exists():
        lost = f"{runs[0].folder}: the run's knowledge base is not to be found: {place}"
        if arguments.folder is not None:
            raise KoplError(f"{lost}; if it moved, say where it is: --kb KB")
        print(f"kopl: {lost}; the bundled one is served", file=sys.stderr)
        place = "world"
        runs = [one for one in runs if one.kb == place]
    arguments.kb = place
    print(f"kopl: opening {place} …", file=sys.stderr, flush=True)
    return open_kb(arguments), place, runs


def _listen(host: str, number: int) -> socket.socket:
    """A socket that listens; raises KoplError where it cannot, as when the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Said to be TCP: only then asyncio sends small answers at once.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, number))
        found.listen()  # who knows the address may come at once
    except OSError as error:
        found.close()
        raise KoplError(
            f"cannot listen at {bracketed(host)}:{number}: {error.strerror or error}; another"
            " program may be there: try --port"
        ) from None
    return found


def _address(visitors: Visitors) -> str:
    host = socket.gethostname() if visitors.host in EVERYWHERE else visitors.host
    secret = f"#token={visitors.token}" if visitors.token else ""
    return f"http://{bracketed(host)}:{visitors.port}/{secret}"


__all__: list[Any] = ["add_arguments", "run"]
