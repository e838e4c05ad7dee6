"""``kopl translate``: a program in another spelling, or as a flow chart."""

from __future__ import annotations

import argparse
import sys

from kopl.cli.common import open_kb, program_text
from kopl.errors import ProgramError

FORMS = ("nested", "serialised", "json", "kqapro", "mermaid", "dot")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--to", required=True, choices=FORMS, help="the form to write")
    parser.add_argument(
        "--kb", metavar="KB", help="for mermaid and dot: show the value after every call"
    )
    parser.add_argument("--no-cache", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("program", metavar="PROGRAM", help="any spelling; '-' or @FILE")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from kopl import text
    from kopl.diagram import dot, mermaid

    try:
        program = text.read(program_text(arguments.program))
        trace = None
        if arguments.kb and arguments.to in ("mermaid", "dot"):
            from kopl.executor import Executor

            trace = Executor(open_kb(arguments)).run(program, trace=True).trace
    except ProgramError as error:
        print(f"kopl: {error.kind} error: {error}", file=sys.stderr)
        return 1
    if arguments.to in ("mermaid", "dot"):
        draw = mermaid if arguments.to == "mermaid" else dot
        print(draw(program, trace), end="")
    elif arguments.to == "nested":
        print(text.write_nested(program))
    elif arguments.to == "serialised":
        print(text.write_serialised(program))
    else:
        print(text.write_json(program, published=arguments.to == "kqapro"))
    return 0
