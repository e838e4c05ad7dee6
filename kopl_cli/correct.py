"""``kopl correct``: say whether a parser's answer is right, and what is.

What is said becomes a line of ``corrections.jsonl`` in the folder of the run; ``kopl learn`` goes
on training with these.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kopl_base.errors import KoplError
from kopl_cli.common import positive, program_text, seconds, show_warnings, torch_is_needed

if TYPE_CHECKING:
    from kopl.answer_forms import AnswerForm
    from parsers.answer_search import Candidate
    from parsers.corrections import Correction
    from parsers.parser import Parser

# On the command line no word needs quotes.
VERDICTS = {
    "right": "right", "corrected": "corrected", "unclear": "unclear",
    "not-in-kb": "not in the knowledge base", "wrong-data": "wrong data",
}  # fmt: skip
# PROGRAM may stand behind the options.
INTERMIXED = True
# How long programs are searched for an answer, and how many are offered.
SECONDS, OFFERED = 5.0, 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--run", required=True, dest="folder", help="the folder of a trained run")
    parser.add_argument("--kb", metavar="KB", help="where its knowledge base is now, if it moved")
    parser.add_argument(
        "--new-kb", action="store_true",
        help="--kb may be one that the run was not trained on; its schema goes by its names",
    )  # fmt: skip
    parser.add_argument("question", metavar="QUESTION")
    parser.add_argument(
        "program", metavar="PROGRAM", nargs="?",
        help="the program that is right; - reads it from standard input, @FILE from a file",
    )  # fmt: skip
    parser.add_argument(
        "--answer", action="append", default=[], metavar="A",
        help="the answer that is right, once for each of several: without PROGRAM, programs that"
        " give it are searched and offered",
    )  # fmt: skip
    parser.add_argument(
        "--choose", type=positive, metavar="N", help="take the Nth of the programs found"
    )
    parser.add_argument(
        "--answer-form", metavar="FORM",
        help="how PROGRAM is read as yes or no: exists (its Count is one or more), or is=NAME"
        " (it denotes that name alone)",
    )  # fmt: skip
    parser.add_argument(
        "--verdict", choices=tuple(VERDICTS),
        help="right and wrong-data are said of the predicted program, unless PROGRAM is given;"
        " unclear and not-in-kb of questions that no program answers (default: corrected, or right"
        " where the run says the same)",
    )  # fmt: skip
    parser.add_argument(
        "--remove", action="store_true",
        help="take back what was said of QUESTION; the lines stay, and one is added that says so",
    )  # fmt: skip
    parser.add_argument("--author", metavar="NAME", help="who says so (default: the user's name)")
    parser.add_argument("--note", default="", metavar="TEXT", help="what else is to be known")
    parser.add_argument(
        "--seconds", type=seconds, default=SECONDS, metavar="S",
        help=f"how long programs are searched for an answer (default: {SECONDS:g})",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Run the command: 0 when a correction was kept, 1 when programs are only offered."""
    with torch_is_needed():
        from parsers.corrections import correct
        from parsers.parser import Parser
    show_warnings()
    verdict: Any = VERDICTS.get(arguments.verdict)
    _check(arguments, verdict)
    if arguments.remove:
        return _remove(arguments)
    parser = Parser.load(arguments.folder, arguments.kb, new_kb=arguments.new_kb)
    program: Any = None if arguments.program is None else program_text(arguments.program)
    form = _form(arguments.answer_form)
    if program is None and arguments.answer and verdict in (None, "corrected"):
        found = _search(parser, arguments)
        chosen = _chosen(found, arguments)
        if chosen is None:
            return 1
        program, form = chosen.program, chosen.form
    elif program is not None and arguments.answer and verdict != "wrong data":
        _same(parser, program, form, arguments.answer)
    truth = arguments.answer if verdict == "wrong data" else ()
    kept = correct(
        parser, arguments.question, program, form=form, verdict=verdict, truth=truth,
        author=arguments.author, note=arguments.note,
    )  # fmt: skip
    if arguments.json:
        print(json.dumps(kept.to_json(), ensure_ascii=False))
    else:
        _print(kept, parser)
    return 0


def _check(arguments: argparse.Namespace, verdict: str | None) -> None:
    """Raise KoplError for arguments that do not go together, before anything is loaded."""
    if arguments.remove:
        if arguments.program is not None or arguments.answer or verdict is not None:
            raise KoplError("--remove takes back what was said: give the QUESTION alone")
        return
    if any(not answer.strip() for answer in arguments.answer):
        raise KoplError("an --answer is empty; say which answer is right, or leave it out")
    if verdict is None and arguments.program is None and not arguments.answer:
        raise KoplError("give the PROGRAM that is right, its --answer, or a --verdict")
    if verdict == "right" and arguments.answer and arguments.program is None:
        raise KoplError("--verdict right takes what was predicted: leave out --answer")
    if arguments.choose is not None and (arguments.program is not None or not arguments.answer):
        raise KoplError("--choose takes one of the programs that are found for an --answer")
    if arguments.answer_form is not None and arguments.program is None:
        raise KoplError("--answer-form reads a PROGRAM: give it, too")


def _remove(arguments: argparse.Namespace) -> int:
    from parsers.corrections import FILE, id_of, remove

    path = Path(arguments.folder) / FILE
    gone = remove(path, id_of(arguments.question), author=arguments.author)
    if arguments.json:
        print(json.dumps({"removed": gone.to_json()}, ensure_ascii=False))
    else:
        print(f"taken back in {path}: {gone.verdict}   {gone.program or ''}".rstrip())
    return 0


def _form(text: str | None) -> AnswerForm | None:
    from kopl.answer_forms import Exists, Is

    if text is None:
        return None
    if text == "exists":
        return Exists()
    word, equals, name = text.partition("=")
    if word == "is" and equals and name:
        return Is(name)
    raise KoplError(f"--answer-form is exists or is=NAME, not {text!r}")


def _same(parser: Parser, program: str, form: AnswerForm | None, answers: Sequence[str]) -> None:
    """Raise KoplError where a program does not give the answers that are said beside it."""
    from kopl.answer_forms import answer_of
    from parsers.answer_search import same_or_alias

    result = parser.model.language.executor.run(program)
    given = answer_of(result.denotation, form, result.program)
    if not same_or_alias(parser.kb, answers, given):
        shown = "; ".join(given[:5]) or "(nothing)"
        raise KoplError(f"the program gives {shown}, not {'; '.join(answers)}")


def _search(parser: Parser, arguments: argparse.Namespace) -> list[Candidate]:
    """The programs that give the answers; says where the search ended early."""
    from parsers.answer_search import Search
    from parsers.linking import Linker

    search = Search(arguments.question, Linker(parser.kb), parser.model.language.executor)
    if not search.names:
        print("kopl: the question names nothing of the knowledge base", file=sys.stderr)
    found = search.giving(arguments.answer, most=OFFERED, seconds=arguments.seconds)
    if not search.ended:
        print(
            f"kopl: the search ended after {search.tried} programs; --seconds gives it more time",
            file=sys.stderr,
        )
    return found


def _chosen(found: Sequence[Candidate], arguments: argparse.Namespace) -> Candidate | None:
    """The one that the user takes, by --choose or on a terminal; else they are only shown."""
    if not found:
        answer = "; ".join(arguments.answer)
        print(f"kopl: no program was found that gives {answer}; give one", file=sys.stderr)
        return None
    if arguments.choose is not None:
        if arguments.choose > len(found):
            raise KoplError(f"--choose {arguments.choose}: {len(found)} programs were found")
        return found[int(arguments.choose) - 1]
    if arguments.json:
        offered = [
            {"program": str(one.program), "answer_form": one.form and one.form.to_json()}
            for one in found
        ]
        print(json.dumps({"offered": offered}, ensure_ascii=False))
        return None
    for number, one in enumerate(found, 1):
        asked = "" if one.form is None else f"   (answer form: {one.form.to_json()})"
        print(f"{number:>3}  {one.program}{asked}")
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        print("kopl: --choose N takes the Nth of them", file=sys.stderr)
        return None
    try:
        said = input("which of them does the question mean (number, or nothing for none)? ")
    except EOFError:
        return None
    if not said.strip():
        return None
    if not said.strip().isdecimal() or not 1 <= int(said) <= len(found):
        raise KoplError(f"a number from 1 to {len(found)} was expected, not {said.strip()!r}")
    return found[int(said) - 1]


def _print(kept: Correction, parser: Parser) -> None:
    from parsers.corrections import FILE

    assert parser.folder is not None
    before = kept.predicted
    if before is not None:
        print(f"predicted: {'; '.join(before.answers[:5]) or '(nothing)'}   {before.program or ''}")
    if kept.program is not None:
        print(f"{kept.verdict}: {'; '.join(kept.answers[:5]) or '(nothing)'}   {kept.program}")
    else:
        print(kept.verdict)
    if kept.program is not None and not kept.answers:
        result = parser.model.language.executor.run(kept.program)
        hint = f": {'; '.join(result.hints)}" if result.hints else ""
        print(f"kopl: the program finds nothing{hint}", file=sys.stderr)
    print(f"kept in {parser.folder / FILE}; kopl learn --run {parser.folder} learns from it")
