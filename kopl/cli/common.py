"""What several commands share: opening knowledge bases, reading programs, printing for people."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kb.errors import ReadError

if TYPE_CHECKING:
    from kb import KnowledgeBase


def add_kb(parser: argparse.ArgumentParser, *, option: bool) -> None:
    """Add the knowledge base as ``--kb KB`` or as a positional argument."""
    sentence = "'world' (bundled), a kb.json, JSON lines, RDF (.nt, .nq, .ttl) or a snapshot"
    if option:
        parser.add_argument("--kb", required=True, metavar="KB", help=sentence)
    else:
        parser.add_argument("kb", metavar="KB", help=sentence)
    parser.add_argument(
        "--no-cache", action="store_true", help="do not keep or use a snapshot of the file"
    )


def positive(text: str) -> int:
    """The number of an option that counts something; argparse tells what is wrong with it."""
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError("a number above 0 was expected")
    return count


def open_kb(arguments: argparse.Namespace) -> KnowledgeBase:
    """The knowledge base that the arguments name; warnings go to standard error."""
    from kb import load

    show_warnings()
    return load(arguments.kb, cache=not arguments.no_cache)


def show_warnings() -> None:
    """Send the toolkit's log messages to standard error, once."""
    log = logging.getLogger("kb")
    if not log.handlers:
        handler = logging.StreamHandler()
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
        path = Path(argument[1:])
        try:
            return path.read_text("utf-8").strip("\r\n")
        except OSError as error:
            raise ReadError(f"cannot be read: {error.strerror}", source=str(path)) from None
        except UnicodeDecodeError:
            raise ReadError("the file is not UTF-8 text", source=str(path)) from None
    return argument


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on a terminal, tab-separated lines in a pipe."""
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(_plain(cell) for cell in row))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    Console().print(table)


def _plain(cell: object) -> str:
    return str(cell).replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
