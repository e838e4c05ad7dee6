"""``kopl ask``: a question to a trained parser."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kopl_base.errors import KoplError
from kopl_base.packages import needs
from kopl_cli.common import positive

if TYPE_CHECKING:
    from kb import KnowledgeBase
    from parsers.parser import Answer, Parser

# What modules of this package import at their top.
_TRAIN_PACKAGES = ("torch", "safetensors", "pydantic")

# How many strings of an answer a person is shown.
MOST = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--run", required=True, dest="folder", help="the folder of a trained run")
    parser.add_argument("--kb", metavar="KB", help="where its knowledge base is now, if it moved")
    parser.add_argument(
        "--new-kb", action="store_true",
        help="--kb may be one that the run was not trained on; its schema goes by its names",
    )  # fmt: skip
    parser.add_argument("--trace", action="store_true", help="show the value after every call")
    parser.add_argument(
        "--top", type=positive, default=1, metavar="N", help="how many programs to show"
    )
    parser.add_argument(
        "--beams", type=positive, default=4, metavar="N",
        help="how many programs to consider (default: 4, at least --top)",
    )  # fmt: skip
    parser.add_argument(
        "--no-execution-guided", action="store_false", dest="guided",
        help="show the most probable programs, also those that fail or have not one answer",
    )  # fmt: skip
    parser.add_argument(
        "--unconstrained", action="store_true", help="let the model write what may not be a program"
    )
    parser.add_argument(
        "--least-confidence", type=_probability, metavar="P",
        help="refuse to answer what is less sure, from 0 (refuse nothing) to 1 (default: as the run"
        " was calibrated)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object for a program")
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument(
        "--questions", metavar="FILE",
        help="ask every question of a file (JSON lines with 'question', or one JSON list), with"
        " --json: one object for each, in their order",
    )  # fmt: skip
    asked.add_argument("question", metavar="QUESTION", nargs="?")


def _probability(text: str) -> float:
    found = float(text)
    if not 0 <= found <= 1:
        raise argparse.ArgumentTypeError("a number from 0 to 1 was expected")
    return found


def run(arguments: argparse.Namespace) -> int:
    """Run the command: 0 when the first program has an answer, or several."""
    with torch_is_needed():
        from parsers.parser import Parser
    parser = Parser.load(arguments.folder, arguments.kb, new_kb=arguments.new_kb)
    if arguments.questions is not None:
        return _ask_all(parser, arguments)
    answers = _asked(parser, arguments.question, arguments)
    for number, answer in enumerate(answers):
        if arguments.json:
            shown = _json(answer, arguments.question, parser.kb)
            print(json.dumps(shown, ensure_ascii=False))
            continue
        if number:
            print()
        _print(answer, arguments.trace)
    if answers and not arguments.json and answers[0].program and not answers[0].refused:
        from parsers.linking import unsaid

        for name in unsaid(answers[0].program, arguments.question, parser.kb):
            print(
                f"kopl: the question does not say {name!r}; it may be what is meant, or only the"
                " nearest name that there is",
                file=sys.stderr,
            )
    if answers and not arguments.json and (note := _note(answers[0], arguments)):
        print(f"kopl: the confidence is {note}", file=sys.stderr)
    return 0 if answers and answers[0].answers else 1


def _asked(parser: Parser, question: str, arguments: argparse.Namespace) -> list[Answer]:
    return parser.ask(
        question, top=arguments.top, trace=arguments.trace, guided=arguments.guided,
        beams=arguments.beams, constrained=not arguments.unconstrained,
        least_confidence=arguments.least_confidence,
    )  # fmt: skip


def _ask_all(parser: Parser, arguments: argparse.Namespace) -> int:
    """Ask every question of a file: 0 when all could be read, whatever was answered.

    What one question goes wrong with stands in its own line, and the next is asked.
    """
    from kopl_base.progress import Progress
    from kopl_cli.run import error_json

    asked = list(_questions(arguments.questions))
    unread = 0
    with Progress("asking", len(asked)) as bar:
        for id, question in asked:
            named = {"id": id, "question": question} if id is not None else {"question": question}
            shown = sys.stdout.isatty() and not arguments.json
            try:
                answers = _asked(parser, question, arguments)
            except KoplError as error:
                unread += 1
                if arguments.json:
                    line = {**named, **error_json(error)}
                    print(json.dumps(line, ensure_ascii=False), flush=True)
                else:
                    print(f"question: {question}\nanswer: none: {error}\n", flush=shown)
                bar.advance(1)
                continue
            if arguments.json:
                found = [_json(answer, question, parser.kb) for answer in answers]
                line = {**named, **found[0]} | ({"more": found[1:]} if len(found) > 1 else {})
                print(json.dumps(line, ensure_ascii=False), flush=True)
            else:
                print(f"question: {question}")
                for answer in answers:
                    _print(answer, arguments.trace)
                print(flush=shown)
            bar.advance(1)
    if unread:
        print(f"kopl: {unread} of {len(asked)} questions could not be read", file=sys.stderr)
    return 1 if unread else 0


def _questions(path: str) -> Iterator[tuple[str | None, str]]:
    """(id, question) for each object of a file; raises ReadError with file and place."""
    from kopl.example import read_objects
    from kopl_base.errors import ReadError

    for place, item in read_objects(path):
        if isinstance(item, ReadError):
            raise item
        question = item.get("question") if isinstance(item, dict) else item
        if not isinstance(question, str):
            raise ReadError(
                "an object with the text 'question', or a text, was expected",
                place=place, source=str(path),
            )  # fmt: skip
        id = item.get("id") if isinstance(item, dict) else None
        yield (None if id is None else str(id)), question


@contextmanager
def torch_is_needed() -> Iterator[None]:
    """Around imports of modules that use torch; raises KoplError that says what to install."""
    # Threads that wait should soon sleep: spinning makes a busy machine many times slower. It must
    # be said before torch is loaded.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _TRAIN_PACKAGES:
            raise
        raise KoplError(needs("parsers", error.name or "torch", extra="train")) from None


def _note(answer: Answer, arguments: argparse.Namespace) -> str:
    """What must be known of the confidence, or nothing."""
    from parsers.evaluation.confidence import Decoding

    temperature = answer.temperature
    kind = Decoding(1, not arguments.unconstrained, arguments.guided).kind
    options = " --unconstrained" if arguments.unconstrained else ""
    options += " --execution-guided" if arguments.guided else ""
    command = f"'kopl eval {arguments.folder}{options}'"
    if answer.is_moved:
        return "not calibrated: the run was trained on another knowledge base"
    if answer.sure is not None:
        return ""
    if temperature is None:
        return f"not calibrated; {command} does that once"
    if not temperature.is_fitted:
        return f"not calibrated: {temperature.note}"
    if temperature.kind != kind:
        return f"calibrated for another choice of programs; {command} does it for this one"
    return ""


def _json(answer: Answer, question: str, kb: KnowledgeBase) -> dict[str, Any]:
    from kopl_cli.run import error_json
    from parsers.linking import unsaid

    shown: dict[str, Any] = {
        "program": None if answer.program is None else str(answer.program),
        "text": answer.prediction.text,
        "confidence": round(answer.confidence, 6),
        "calibrated": answer.is_calibrated,
        "probability": round(answer.probability, 6),
        "unsaid": [] if answer.program is None else unsaid(answer.program, question, kb),
    }
    if answer.refused is not None:
        shown["refused"] = answer.refused.to_json()
    if answer.result is None:
        assert answer.error is not None
        return {**shown, **error_json(answer.error)}
    shown |= answer.result.to_json() | {"answer": answer.text, "answers": list(answer.answers)}
    if answer.prediction.asking is not None:
        shown["several"] = answer.prediction.asking.several
        shown["answer_form"] = None if answer.form is None else answer.form.to_json()
    if answer.result.trace:
        shown["trace"] = [
            {"call": step.number, "text": step.text, "count": step.count, "shown": step.shown}
            for step in answer.result.trace
        ]
    return shown


def _said(answer: Answer) -> str:
    """What is answered, for people; there must be a result."""
    if answer.unnamed:
        return f"answer: none: the question does not say {', '.join(map(repr, answer.unnamed))}"
    shown = "; ".join(answer.answers[:MOST])
    if not shown:
        return "empty: (nothing)"
    if len(answer.answers) > MOST:
        shown += f"; … ({len(answer.answers)} in all)"
    return f"answer: {shown}" if len(answer.answers) == 1 else f"answers: {shown}"


def _print(answer: Answer, trace: bool) -> None:
    from kopl.answer_forms import Is
    from kopl_cli.run import print_trace

    written = answer.prediction.text or "(nothing that can be read)"
    confidence = f"{answer.confidence:.1%} confident"
    result = answer.result
    if answer.refused is not None:
        print(f"I do not know: {answer.refused.message}  ({confidence})")
        if answer.refused.near:
            print(f"nearest: {'; '.join(answer.refused.near)}")
        print(f"refused program: {written}")
        return
    if result is None:
        assert answer.error is not None
        print(f"answer: none: {answer.error.kind} error: {answer.error}  ({confidence})")
    else:
        print(f"{_said(answer)}  ({confidence})")
    print(f"program: {written}")
    if result is not None and answer.form is not None:
        denoted = "; ".join(result.denotation[:MOST]) or "nothing"
        wanted = answer.form.name if isinstance(answer.form, Is) else "one or more"
        print(f"yes where that is {wanted}; it is {denoted}")
    if result is not None and result.trace:
        print_trace(result.trace)
    elif result is not None and trace:
        print("(no program says this query, so there is no trace)")
