"""``kopl lexicon``: how the names of a knowledge base read in generated questions."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kopl_base.errors import WriteError, counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    from kopl_cli.common import add_kb
    from kopl_cli.models import add_model

    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def action(name: str, sentence: str) -> argparse.ArgumentParser:
        added = actions.add_parser(name, help=sentence, description=sentence.capitalize() + ".")
        add_kb(added, option=False)
        return added

    init = action("init", "write a file with the words of every name, ready to edit")
    init.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="the YAML file, or '-' to print it"
    )
    init.add_argument("--force", action="store_true", help="overwrite a file that is there")
    check = action("check", "list the names that may read badly; 1 when there are some")
    check.add_argument(
        "file", nargs="?", metavar="FILE",
        help="a file of annotations (default: those bundled with 'world', else none)",
    )  # fmt: skip
    suggest = action("suggest", "let a language model draft wordings, for review in the file")
    suggest.add_argument(
        "file", nargs="?", metavar="FILE",
        help="a file of annotations: its entries without a todo stay as they are",
    )  # fmt: skip
    suggest.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="the YAML file with the wordings"
    )
    suggest.add_argument("--force", action="store_true", help="overwrite a file that is there")
    suggest.add_argument(
        "--doubtful", action="store_true", help="only for names that may read badly now"
    )
    add_model(suggest, asked="a name", length=256)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    return {"init": _init, "check": _check, "suggest": _suggest}[arguments.action](arguments)


def _init(arguments: argparse.Namespace) -> int:
    from generation.lexicon import Lexicon
    from generation.lexicon.draft import draft
    from kopl_base.stream import writing
    from kopl_cli.common import open_kb

    to_file = arguments.output != "-"
    if to_file and not arguments.force and Path(arguments.output).exists():
        raise WriteError(f"{arguments.output}: there is such a file; --force overwrites it")
    lines = draft(Lexicon(open_kb(arguments)))
    if not to_file:
        sys.stdout.writelines(lines)
        return 0
    with writing(arguments.output) as out:
        out.writelines(lines)
    print(f"kopl: {arguments.output} written; edit it, then: kopl lexicon check"
          f" {arguments.kb} {arguments.output}", file=sys.stderr)  # fmt: skip
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from generation.lexicon import Lexicon, read_annotations
    from generation.lexicon.review import review
    from generation.lexicon.samples import Samples
    from kopl_cli.common import open_kb

    given = read_annotations(arguments.file) if arguments.file is not None else None
    kb = open_kb(arguments)
    doubts = review(kb, given)
    if not doubts:
        print("kopl: every name reads well, as far as that can be told", file=sys.stderr)
        return 0
    known = {(doubt.section, doubt.name) for doubt in doubts}
    samples = Samples(Lexicon(kb, given.only(kb) if given else None))
    for doubt in doubts:
        place = f"{doubt.place}: " if doubt.place else ""
        print(f"{place}{doubt.section}: {doubt.name}: {doubt.reason}")
        for sentence in samples.sentences(doubt.section, doubt.name):
            print(f"    {sentence}")
    print(f"kopl: {counted(len(known), 'name')} to look at", file=sys.stderr)
    return 1


def _suggest(arguments: argparse.Namespace) -> int:
    from generation.lexicon import read_annotations
    from generation.lexicon.suggest import SuggestionPlan, suggest
    from kopl_cli.common import open_kb, show_warnings
    from kopl_cli.models import model_of

    show_warnings()
    output = arguments.output
    if output == "-":
        raise WriteError("--output names a file; nothing is written to standard output")
    if not arguments.force and not arguments.resume and Path(output).exists():
        raise WriteError(f"{output}: there is such a file; --force overwrites it")
    given = read_annotations(arguments.file) if arguments.file is not None else None
    plan = SuggestionPlan(
        open_kb(arguments), given, arguments.seed,
        doubtful=arguments.doubtful, keep_going=arguments.keep_going,
    )  # fmt: skip
    if not plan.names:
        print("kopl: every name has words; nothing is asked", file=sys.stderr)
        return 0
    report = suggest(plan, model_of(arguments), output, resume=arguments.resume)
    print(f"kopl: {report}", file=sys.stderr)
    print(f"kopl: {output} written; look at each todo, then: kopl lexicon check"
          f" {arguments.kb} {output}", file=sys.stderr)  # fmt: skip
    if report.names and not report.kept and not report.reasons:
        print(
            "kopl: no reply held a wording that can be read; ask another model, one that follows"
            " instructions",
            file=sys.stderr,
        )
        return 1
    return 1 if report.silent else 0
