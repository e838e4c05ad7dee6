"""``kopl paraphrase``: questions put another way, by people or by a model."""

from __future__ import annotations

import argparse
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kopl_base.errors import KoplError, counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from generation.paraphrase.filters import Doubt, Filters, Reject, Report
    from generation.paraphrase.originals import Knowledge

SET = "a question set in any form: JSON lines, KQA Pro's lists, CSV, Parquet, or a folder of them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    from kopl_cli.common import positive
    from kopl_cli.models import add_model

    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    export = _action(actions, "export", "write tasks for people, as a table or for Label Studio")
    export.add_argument("set", metavar="SET", help=SET)
    export.add_argument(
        "-o", "--output", required=True, metavar="FILE",
        help=".csv, or .json for Label Studio (its labelling configuration comes beside it, .xml)",
    )  # fmt: skip
    export.add_argument(
        "--judge",
        nargs="+",
        metavar="FILE",
        help="write the second phase: tasks that judge the paraphrases in these files",
    )
    export.add_argument(
        "--pictures", metavar="DIR", help="with .csv: write the flow charts into this folder"
    )
    _add_text_filters(export, names="review")
    export.set_defaults(handler=_export)

    sentence = "read paraphrases and votes back, and keep what passes the filters"
    back = _action(actions, "import", sentence)
    back.add_argument("set", metavar="SET", help="the question set that the tasks were made of")
    back.add_argument(
        "files", nargs="+", metavar="FILE",
        help="tables (.csv) and exports of Label Studio (.json), of either phase",
    )  # fmt: skip
    _add_output(back)
    _add_text_filters(back, names="review")
    back.add_argument(
        "--judges", type=int, default=5, metavar="N",
        help="votes that a paraphrase needs (default: 5; 0 takes what nobody judged, too)",
    )  # fmt: skip
    back.add_argument(
        "--different", type=int, default=2, metavar="N",
        help="votes for another meaning that are let pass (default: 2)",
    )  # fmt: skip
    back.add_argument(
        "--fluency", type=float, default=3.0, metavar="F", help="mean of 1 to 5 (default: 3)"
    )
    back.set_defaults(handler=_import)

    ask = _action(actions, "model", "ask a model for paraphrases, and keep what passes the filters")
    ask.add_argument("set", metavar="SET", help=SET)
    _add_output(ask)
    add_model(ask, asked="a question")
    ask.add_argument("--prompt", metavar="FILE", help="what the model is told (default: bundled)")
    ask.add_argument(
        "-n", "--n", type=positive, default=1, metavar="N", dest="count",
        help="replies for each question (default: 1)",
    )  # fmt: skip
    _add_text_filters(ask, names="reject")
    ask.set_defaults(handler=_model)


def _action(actions: Any, name: str, sentence: str) -> argparse.ArgumentParser:
    found: argparse.ArgumentParser = actions.add_parser(
        name, help=sentence, description=sentence.capitalize() + "."
    )
    return found


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="the paraphrases as JSON lines"
    )
    parser.add_argument(
        "--rejected", metavar="FILE", help="write what was not kept there, each with its reason"
    )
    parser.add_argument(
        "--review", metavar="FILE",
        help="write what is doubtful there, as tasks for judges (.csv, or .json for Label Studio)",
    )  # fmt: skip
    parser.add_argument(
        "--run", metavar="RUN", dest="trained",
        help="a trained run: what its parser reads as another program is for review",
    )  # fmt: skip


def _add_text_filters(parser: argparse.ArgumentParser, *, names: str) -> None:
    parser.add_argument(
        "--edit-distance", type=float, default=0.1, metavar="D", dest="distance",
        help="to the canonical question, names aside, from 0 to 1 (default: 0.1)",
    )  # fmt: skip
    parser.add_argument(
        "--names", choices=("reject", "review", "warn", "ignore"), default=names,
        help=f"where a name or value of the program is missing (default: {names})",
    )  # fmt: skip
    parser.add_argument(
        "--meaning", choices=("check", "ignore"), default="check",
        help="whether texts are compared with question and program (default: check)",
    )  # fmt: skip
    parser.add_argument(
        "--kb", metavar="KB", help="the knowledge base: names may be said by their aliases"
    )
    parser.add_argument(
        "--lexicon", metavar="FILE", help="how the names of the knowledge base read"
    )
    if names == "review":
        parser.add_argument(
            "--confusing", type=int, default=1, metavar="N",
            help="workers who mark a question so for it to be left out (default: 1)",
        )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from kopl_cli.common import show_warnings

    show_warnings()
    if arguments.output == "-":
        raise KoplError("--output names a file; nothing is written to standard output")
    status: int = arguments.handler(arguments)
    return status


def _export(arguments: argparse.Namespace) -> int:
    from generation.formats import open_examples
    from generation.paraphrase.collect import to_judge
    from generation.paraphrase.filters import Report
    from generation.paraphrase.originals import originals
    from generation.paraphrase.responses import read_responses
    from generation.paraphrase.tasks import write_tasks

    questions = originals(open_examples(arguments.set), _knowledge(arguments))
    if not arguments.judge:
        count = write_tasks(arguments.output, questions, pictures=arguments.pictures)
    else:
        report = Report()
        responses = read_responses(arguments.judge)
        written = to_judge(questions, responses, _filters(arguments, judges=0), report)
        count = write_tasks(arguments.output, written, judging=True, pictures=arguments.pictures)
        _tell(report)
    print(f"kopl: {counted(count, 'task')}", file=sys.stderr)
    return 0


def _import(arguments: argparse.Namespace) -> int:
    from generation.formats import open_examples
    from generation.paraphrase.collect import collect
    from generation.paraphrase.filters import Report
    from generation.paraphrase.originals import originals
    from generation.paraphrase.responses import read_responses
    from kopl.example import write_examples

    filters = _filters(
        arguments,
        judges=arguments.judges, different=arguments.different, fluency=arguments.fluency,
    )  # fmt: skip
    responses = read_responses(arguments.files)
    report = Report()
    doubt = _doubt(arguments)
    with _rejecting(arguments) as reject:
        questions = originals(open_examples(arguments.set), _knowledge(arguments))
        kept = collect(questions, responses, filters, report, reject, doubt)
        write_examples(arguments.output, kept)
    _tell(report)
    if responses.skipped:
        print(f"kopl: {counted(responses.skipped, 'task')} skipped or left empty", file=sys.stderr)
    if not report.kept and report.reasons["too few votes"]:
        print(
            "kopl: nothing was judged by enough people; --judges N asks for fewer votes",
            file=sys.stderr,
        )
    return 0


def _model(arguments: argparse.Namespace) -> int:
    from generation.paraphrase.model_run import ParaphrasePlan, run
    from generation.paraphrase.prompt import load_prompt
    from kopl_cli.models import model_of

    plan = ParaphrasePlan(
        arguments.set,
        load_prompt(arguments.prompt),
        count=arguments.count,
        seed=arguments.seed,
        filters=_filters(arguments, judges=0),
        keep_going=arguments.keep_going,
        knowledge=_knowledge(arguments),
    )
    model, doubt = model_of(arguments), _doubt(arguments)
    with _rejecting(arguments) as reject:
        report = run(
            plan, model, arguments.output, resume=arguments.resume, reject=reject, doubt=doubt
        )
    _tell(report)
    return 1 if report.failed else 0


@contextmanager
def _rejecting(arguments: argparse.Namespace) -> Iterator[Reject]:
    """What takes rejected and doubtful texts; in the end the doubtful ones are written as tasks."""
    from generation.paraphrase.filters import Rejected, rejecting
    from generation.paraphrase.tasks import Written, write_tasks

    doubtful: list[Written] = []
    with rejecting(arguments.rejected) as write:

        def reject(one: Rejected) -> None:
            write(one)
            if one.review and one.original is not None:
                worker = str(one.about.get("annotator") or one.about.get("model") or "")
                doubtful.append(Written(one.original, one.text, worker, one.told))

        yield reject
    if arguments.review is not None:
        write_tasks(arguments.review, doubtful, judging=True)


def _knowledge(arguments: argparse.Namespace) -> Knowledge:
    from generation.lexicon.annotations import bundled_annotations, read_annotations
    from generation.paraphrase.originals import Knowledge

    annotations, kb = None, None
    if arguments.lexicon is not None:
        annotations = read_annotations(arguments.lexicon).over(bundled_annotations())
    if arguments.kb is not None:
        from kb import load

        kb = load(arguments.kb)
    return Knowledge(annotations, kb)


def _doubt(arguments: argparse.Namespace) -> Doubt | None:
    """What reads a paraphrase with a trained parser, where one is given."""
    if arguments.trained is None:
        return None
    from generation.paraphrase.originals import Original
    from kopl.text import write_nested
    from kopl_cli.common import torch_is_needed

    with torch_is_needed():
        from parsers.matching import exact_match
        from parsers.parser import Parser
    parser = Parser.load(arguments.trained, arguments.kb)

    def doubt(original: Original, text: str) -> str:
        try:
            answers = parser.ask(text, top=1)
        except KoplError as error:
            return f"none: {error}"
        program = answers[0].program if answers else None
        if program is None:
            return "none"
        same = exact_match(original.example.program, program)
        return "" if same else write_nested(program)

    return doubt


def _filters(arguments: argparse.Namespace, **more: Any) -> Filters:
    from generation.paraphrase.filters import Filters

    if (confusing := getattr(arguments, "confusing", None)) is not None:
        more["confusing"] = confusing
    return Filters(
        distance=arguments.distance, names=arguments.names, meaning=arguments.meaning, **more
    )


def _tell(report: Report) -> None:
    print(f"kopl: {report}", file=sys.stderr)
