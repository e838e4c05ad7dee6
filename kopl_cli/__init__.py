"""The command line ``kopl``: one module for each command, imported when it is asked for."""

from __future__ import annotations

import argparse
import atexit
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from kopl_base.conflict import refuse_others
from kopl_cli.commands import Command, add_commands

refuse_others("kb", "kopl")


COMMANDS = {
    "run": Command("run a program, or a file of programs, on a knowledge base", "kopl_cli.run"),
    "translate": Command(
        "write a program in another spelling, as SPARQL or as a flow chart", "kopl_cli.translate"
    ),
    "report": Command("write programs with their values as one HTML page", "kopl_cli.report"),
    "sparql": Command(
        "ask in SPARQL, of a knowledge base or an endpoint; run servers", "kopl_cli.sparql"
    ),
    "compare": Command(
        "run programs on several engines and compare the answers", "kopl_cli.compare"
    ),
    "kb": Command("look into, check, convert and snapshot knowledge bases", "kopl_cli.kb"),
    "functions": Command("explain the functions of the language", "kopl_cli.functions"),
    "grammar": Command(
        "write a grammar that keeps a language model to programs that type",
        "kopl_cli.grammar",
        ("kopl", "parsers"),
    ),
    "generate": Command(
        "generate questions with programs and answers", "kopl_cli.generate", ("generation",)
    ),
    "lexicon": Command(
        "how names read in generated questions", "kopl_cli.lexicon", ("generation",)
    ),
    "stats": Command(
        "what a question set holds, beside KQA Pro's figures", "kopl_cli.stats", ("generation",)
    ),
    "split": Command(
        "split a question set into train, valid and test", "kopl_cli.split", ("generation",)
    ),
    "data": Command("convert and check question sets", "kopl_cli.data", ("generation", "parsers")),
    "paraphrase": Command(
        "paraphrase questions, by people or a model", "kopl_cli.paraphrase", ("generation",)
    ),
    "train": Command(
        "generate questions, train a parser on them and score it",
        "kopl_cli.train",
        ("generation", "parsers"),
    ),
    "eval": Command("score trained parsers and compare them", "kopl_cli.eval", ("parsers",)),
    "ask": Command("answer a question with a trained parser", "kopl_cli.ask", ("parsers",)),
    "correct": Command(
        "say whether an answer is right, and what is", "kopl_cli.correct", ("parsers",)
    ),
    "learn": Command(
        "go on training a run with corrections of its answers",
        "kopl_cli.learn",
        ("generation", "parsers"),
    ),
    "serve": Command(
        "the playground in the browser: ask, look inside, mend, learn",
        "kopl_cli.serve",
        ("generation", "parsers", "cqa"),
    ),
    "mcp": Command("serve tools for agents by the Model Context Protocol", "kopl_cli.mcp"),
    "cqa": Command("logical queries over incomplete graphs", "kopl_cli.cqa", ("cqa",)),
}


class _Version(argparse.Action):
    """Prints the version; looked up only then, because reading metadata takes time."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from kopl_base.packages import version

        print(f"kopl-toolkit {version()}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kopl", description="Question answering over knowledge bases by programs."
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and stop")
    add_commands(parser, COMMANDS, "COMMAND")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; 0 when all went well, 1 when a program failed, 2 for wrong usage."""
    from kopl_base.errors import KoplError

    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        parsed = _parser().parse_args(arguments)
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
        status = main([*command, *sys.argv[1:]])
    except ImportError as error:
        print(f"kopl: {error}", file=sys.stderr)
        status = 2
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        _leave_at_once(status)
    sys.exit(status)


def _leave_at_once(status: int) -> NoReturn:
    """End one of several processes that trained together, without taking the interpreter down.

    torch's threads of communication outlive their group (the network's wrapper keeps them): one
    that frees a tensor while the interpreter goes aborts the process, after all was done well.
    """
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
