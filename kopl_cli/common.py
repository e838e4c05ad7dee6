"""What several commands share: opening knowledge bases, reading programs, printing for people."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kopl_base.errors import KoplError, ReadError

if TYPE_CHECKING:
    from kb import KnowledgeBase
    from kopl.executor import Executor
    from kopl.sparql.encoding import Encoding
    from kopl.sparql.engine import Engine
    from kopl.sparql.evaluate import SparqlExecutor

log = logging.getLogger("kb")

# What the modules of parsers import at their top.
TRAIN_PACKAGES = ("torch", "safetensors", "pydantic")


def add_kb(parser: argparse.ArgumentParser, *, option: bool, required: bool = True) -> None:
    """Add the knowledge base as ``--kb KB`` or as a positional argument."""
    sentence = "'world' (bundled), a kb.json, JSON lines, RDF (.nt, .nq, .ttl) or a snapshot"
    if option:
        parser.add_argument("--kb", required=required, metavar="KB", help=sentence)
    else:
        parser.add_argument("kb", metavar="KB", help=sentence)
    parser.add_argument(
        "--no-cache", action="store_true", help="do not keep or use a snapshot of the file"
    )


def add_endpoint(parser: argparse.ArgumentParser) -> None:
    """Add the options of an endpoint; they matter where an engine is an address."""
    group = parser.add_argument_group("for an endpoint")
    group.add_argument("--graph", metavar="IRI", help="the named graph to ask")
    group.add_argument(
        "--base",
        metavar="IRI",
        help="what its bare IRIs were resolved against (default: found by asking for a node)",
    )
    group.add_argument("--user", metavar="NAME", help="with the password in KOPL_SPARQL_PASSWORD")
    group.add_argument(
        "--auth", choices=("basic", "digest"), default="basic", help="default: basic"
    )
    group.add_argument(
        "--header", action="append", default=[], metavar="NAME:VALUE", help="one more header"
    )


def add_encoding(parser: argparse.ArgumentParser) -> None:
    """Add the options of the encoding that queries are written for."""
    group = parser.add_argument_group("for graphs in Wikidata's form")
    group.add_argument(
        "--encoding",
        choices=("kqapro", "wikidata"),
        default="kqapro",
        help="how facts are triples: as in KQA Pro (default), or as in Wikidata",
    )
    group.add_argument(
        "--properties",
        metavar="FILE",
        help="JSON with the property of each relation and key (kopl sparql properties writes one);"
        " an endpoint is asked for them otherwise",
    )
    group.add_argument("--language", default="en", metavar="TAG", help="of labels (default: en)")
    group.add_argument(
        "--no-ranks", action="store_true", help="the graph does not tell deprecated statements"
    )


def wikidata_encoding(arguments: argparse.Namespace, engine: Engine | None = None) -> Encoding:
    """The encoding of a graph in Wikidata's form, as the arguments describe it.

    Raises KoplError without properties, EngineError when the engine does not give them.
    """
    from kopl.sparql.properties import read_properties
    from kopl.sparql.wikidata import Wikidata

    language, ranks = arguments.language, not arguments.no_ranks
    if arguments.properties is not None:
        found = read_properties(arguments.properties)
        return Wikidata(properties=found, language=language, ranks=ranks)
    if engine is None:
        raise KoplError(
            "--encoding wikidata: say with --properties FILE which property stands for which"
            " relation or key; kopl sparql properties --endpoint URL writes such a file"
        )
    encoding = Wikidata.of(engine, language, ranks=ranks)
    if not encoding.properties:
        log.warning("%s: no property has a label in %r there", engine.name, language)
    return encoding


def open_endpoint(address: str, arguments: argparse.Namespace, timeout: float | None) -> Engine:
    """The endpoint of an address, with the arguments' options."""
    from kopl.sparql.engines.endpoint import Endpoint

    return Endpoint.open(address, **_endpoint_options(arguments), timeout=timeout)


def _endpoint_options(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "user": arguments.user,
        "password": os.environ.get("KOPL_SPARQL_PASSWORD"),
        "auth": arguments.auth,
        "headers": dict(_header(text) for text in arguments.header),
        "graph": arguments.graph,
        "base": arguments.base,
    }


def open_executor(
    name: str,
    arguments: argparse.Namespace,
    *,
    timeout: float | None = None,
    kb: KnowledgeBase | None = None,
) -> Executor | SparqlExecutor:
    """What runs programs on the engine of that name: kopl, an embedded engine, or an address.

    ``kb`` is the opened knowledge base of the arguments, if it was opened before. Raises KoplError
    for an unknown name, EngineError for an engine that cannot be had.
    """
    from kopl.executor import Executor, Limits

    show_warnings()
    if name == "kopl":
        return Executor(kb or open_kb(arguments), limits=Limits(seconds=timeout))
    from kopl.sparql.engine import is_address, require
    from kopl.sparql.engines import attach, embedded
    from kopl.sparql.evaluate import SparqlExecutor

    if is_address(name):
        if arguments.encoding == "wikidata":
            own = open_endpoint(name, arguments, timeout)
            encoding = wikidata_encoding(arguments, own)
            return SparqlExecutor(own, encoding=encoding, timeout=timeout)
        engine, encoding = attach(name, **_endpoint_options(arguments), timeout=timeout)
        # What it holds may not be what --kb names, so that nothing is left out of its queries.
        return SparqlExecutor(engine, encoding=encoding, timeout=timeout)
    if arguments.encoding == "wikidata":
        raise KoplError("--encoding wikidata: of graphs behind an endpoint (http://…)")
    require(name)
    kb = kb or open_kb(arguments)
    return SparqlExecutor(embedded(name, kb), kb=kb, timeout=timeout)


def offer_own_engine(error: KoplError, arguments: argparse.Namespace) -> None:
    """Print what runs on the knowledge base of the arguments without the engine's packages."""
    from kopl.sparql.errors import MissingPackageError

    if isinstance(error, MissingPackageError) and arguments.kb is not None:
        print(
            "kopl: --engine kopl needs no other package: it answers what programs say",
            file=sys.stderr,
        )


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise KoplError(f"--header: write NAME:VALUE, not {text!r}")
    return name.strip(), value.strip()


def seconds(text: str) -> float:
    """The number of an option that is a time; argparse tells what is wrong with it."""
    return _time(text, "seconds")


def minutes(text: str) -> float:
    """The number of an option that is a time in minutes."""
    return _time(text, "minutes")


def _time(text: str, unit: str) -> float:
    found = float(text)
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"a number of {unit} above 0 was expected")
    return found


def port(text: str) -> int:
    """The number of an option that is a port; argparse tells what is wrong with it."""
    found = int(text)
    if not 0 < found < 1 << 16:
        raise argparse.ArgumentTypeError("a port is a number from 1 to 65535")
    return found


def positive(text: str) -> int:
    """The number of an option that counts something; argparse tells what is wrong with it."""
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError("a number above 0 was expected")
    return count


# More processes than this for each core only fill the memory.
_PROCESSES = 8


def too_many_workers(count: int) -> str | None:
    """Why so many processes are refused on this machine; None when they are not."""
    cores = os.cpu_count() or 1
    if count <= _PROCESSES * cores:
        return None
    return f"this machine has {cores} cores; more than {_PROCESSES * cores} processes gain nothing"


def workers(text: str) -> int:
    """The number of an option that starts processes on this machine."""
    count = positive(text)
    if reason := too_many_workers(count):
        raise argparse.ArgumentTypeError(reason)
    return count


def open_kb(arguments: argparse.Namespace) -> KnowledgeBase:
    """The knowledge base that the arguments name; warnings go to standard error."""
    from kb import load

    show_warnings()
    return load(arguments.kb, cache=not arguments.no_cache)


class _ToStandardError(logging.Handler):
    """Writes to what standard error is at the time: it may be another one by then."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr)


def show_warnings() -> None:
    """Send the toolkit's log messages to standard error, once."""
    log = logging.getLogger("kb")
    if not log.handlers:
        handler = _ToStandardError()
        handler.setFormatter(logging.Formatter("kopl: %(message)s"))
        log.addHandler(handler)
        log.propagate = False


def program_text(argument: str) -> str:
    """The text of a PROGRAM argument: itself, standard input for ``-``, a file for ``@FILE``."""
    if argument == "-":
        text = sys.stdin.read().strip("\r\n")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise ReadError("the text is not UTF-8", source="standard input") from None
        return text
    if argument.startswith("@"):
        from kopl_base.stream import read_text

        return read_text(argument[1:]).strip("\r\n")
    return argument


@contextmanager
def torch_is_needed() -> Iterator[None]:
    """Around imports of modules that use torch; raises KoplError that says what to install."""
    # Threads that wait should soon sleep: spinning makes a busy machine many times slower. It must
    # be said before torch is loaded.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in TRAIN_PACKAGES:
            raise
        from kopl_base.packages import needs

        raise KoplError(needs("parsers", error.name or "torch", extra="train")) from None


def configs_folder() -> Path:
    """Where the shipped configs lie: inside the package, or at the top of a clone."""
    import parsers

    package = Path(parsers.__file__).resolve().parent
    inside = package / "configs"
    return inside if inside.is_dir() else package.parent / "configs"


def free_folder(wanted: Path) -> Path:
    """The folder, or with a number behind it when something is in it already, which is told."""
    folder, number = wanted, 2
    while folder.exists() and any(folder.iterdir()):
        folder, number = wanted.with_name(f"{wanted.name}-{number}"), number + 1
    if folder != wanted:
        print(f"kopl: {wanted} is not empty; the run goes to {folder}", file=sys.stderr)
    return folder
