"""The command line ``kopl``: one module for each command, imported when it is asked for."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

# As in kopl/__init__.py, which another package may have overwritten.
_found = spec_from_file_location("kb.conflict", Path(__file__).parents[2] / "kb" / "conflict.py")
assert _found and _found.loader
_conflict = module_from_spec(_found)
with suppress(FileNotFoundError):
    _found.loader.exec_module(_conflict)
    _conflict.refuse_others("kopl")

# command -> (module with add_arguments and run, what it does). Commands of packages that stand
# above this one are named by text only: nothing here imports them until a user asks for them.
COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("kopl.cli.run", "run a program, or a file of programs, on a knowledge base"),
    "translate": (
        "kopl.cli.translate",
        "write a program in another spelling, as SPARQL or as a flow chart",
    ),
    "sparql": ("kopl.cli.sparql", "ask in SPARQL, of a knowledge base or an endpoint; run servers"),
    "compare": ("kopl.cli.compare", "run programs on several engines and compare the answers"),
    "kb": ("kopl.cli.kb", "look into, check, convert and snapshot knowledge bases"),
    "functions": ("kopl.cli.functions", "explain the functions of the language"),
    "generate": ("generation.command", "generate questions with programs and answers"),
    "lexicon": ("generation.command_lexicon", "how names read in generated questions"),
    "stats": ("generation.command_stats", "what a question set holds, beside KQA Pro's figures"),
    "split": ("generation.command_split", "split a question set into train, valid and test"),
    "data": ("generation.command_data", "convert and check question sets"),
    "paraphrase": ("generation.command_paraphrase", "paraphrase questions, by people or a model"),
    "train": ("parsers.command_train", "generate questions, train a parser on them and score it"),
    "eval": ("parsers.command_eval", "score trained parsers and compare them"),
    "ask": ("parsers.command", "answer a question with a trained parser"),
    "cqa": ("cqa.command", "logical queries over incomplete graphs"),
}


def _module(command: str) -> ModuleType:
    """The module of a command; raises ImportError where others use the name of its package."""
    from kb.conflict import PACKAGES, refuse_others

    name = COMMANDS[command][0]
    if (package := name.partition(".")[0]) in PACKAGES:
        refuse_others(package)
    return import_module(name)


class _Version(argparse.Action):
    """Prints the version; looked up only then, because reading metadata takes time."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from kb.packages import version

        print(f"kopl-toolkit {version()}")
        parser.exit()


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kopl", description="Question answering over knowledge bases by programs."
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and stop")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (_, sentence) in COMMANDS.items():
        command = commands.add_parser(name, help=sentence, description=sentence.capitalize() + ".")
        if name == chosen:
            found = _module(name)
            found.add_arguments(command)
            command.set_defaults(run=found.run)
    return parser


def _completed(arguments: list[str], chosen: str | None) -> list[str]:
    """The arguments with an action put in that a command lets be left out."""
    if chosen not in COMMANDS:
        return arguments
    complete = getattr(_module(chosen), "default_action", None)
    if complete is None:
        return arguments
    at = arguments.index(chosen) + 1
    return [*arguments[:at], *complete(arguments[at:])]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; 0 when all went well, 1 when a program failed, 2 for wrong usage."""
    from kb.errors import KoplError

    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    chosen = next((a for a in arguments if not a.startswith("-")), None)
    try:
        parsed = _parser(chosen).parse_args(_completed(arguments, chosen))
        status: int = parsed.run(parsed)
        sys.stdout.flush()
        return status
    except KoplError as error:
        print(f"kopl: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        # Standard output: its reader went away, as in `kopl … | head`, or the disk is full. Leave
        # nothing for the interpreter to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            print(f"kopl: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("kopl: interrupted", file=sys.stderr)
        return 130


def entry(*command: str) -> None:
    """The console script; with a command, a script that does only this one."""
    # So that what is under way closes its files and takes its temporary folders with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main([*command, *sys.argv[1:]]))
    except ImportError as error:
        print(f"kopl: {error}", file=sys.stderr)
        sys.exit(2)
