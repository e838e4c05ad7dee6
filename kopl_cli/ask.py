"""``kopl ask``: a question to a trained parser."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kopl_base.errors import KoplError
from kopl_cli.common import positive, torch_is_needed
from kopl_cli.last_run import check_run, last_run

if TYPE_CHECKING:
    from kb import KnowledgeBase
    from parsers.conversation import Conversation, Turn
    from parsers.parser import Answer, Parser

# How many strings of an answer a person is shown.
MOST = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--run", dest="folder", metavar="RUN",
        help="the folder of a trained run (default: the newest one in runs/)",
    )  # fmt: skip
    parser.add_argument("--kb", metavar="KB", help="where its knowledge base is now, if it moved")
    parser.add_argument(
        "--new-kb", action="store_true",
        help="--kb may be one that the run was not trained on; its schema goes by its names",
    )  # fmt: skip
    parser.add_argument(
        "--other-languages", action="store_true",
        help="read a question in another language by the meaning of its words, in English",
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
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument(
        "--questions", metavar="FILE",
        help="ask every question of a file (JSON lines with 'question', or one JSON list), with"
        " --json: one object for each, in their order",
    )  # fmt: skip
    asked.add_argument(
        "question", metavar="QUESTION", nargs="?",
        help="without one: a conversation on a terminal, else every line of standard input",
    )  # fmt: skip


def _probability(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise argparse.ArgumentTypeError(f"a number from 0 to 1 was expected, not {text!r}")
    return found


def run(arguments: argparse.Namespace) -> int:
    """Run the command: 0 when the first program has an answer, or several."""
    if arguments.folder is None:
        arguments.folder = str(last_run())
    if arguments.question is None and arguments.questions is None:
        return _converse(arguments)
    with torch_is_needed():
        from parsers.parser import Parser
    parser = Parser.load(
        arguments.folder, arguments.kb, new_kb=arguments.new_kb,
        other_languages=arguments.other_languages,
    )  # fmt: skip
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
    if answers and not arguments.json:
        for note in _doubts(answers[0], arguments.question, parser.kb):
            print(f"kopl: {note}", file=sys.stderr)
        if note := _note(answers[0], arguments):
            print(f"kopl: the confidence is {note}", file=sys.stderr)
    return 0 if answers and answers[0].answers else 1


def _doubts(answer: Answer, question: str, kb: KnowledgeBase) -> list[str]:
    """What must be known of the names in an answer's program."""
    from parsers.linking import unsaid

    if answer.program is None or answer.refused is not None:
        return []
    question = answer.read_as or question
    return [
        f"the question does not say {name!r}; it may be what is meant, or only the nearest name"
        " that there is"
        for name in unsaid(answer.program, question, kb)
    ]


def _print_doubts(answers: Sequence[Answer], question: str, kb: KnowledgeBase) -> None:
    """Say below the answers to one of many questions what must be known of the first one."""
    for note in _doubts(answers[0], question, kb) if answers else ():
        print(f"({note[0].upper()}{note[1:]}.)")


def _asked(parser: Parser, question: str, arguments: argparse.Namespace) -> list[Answer]:
    return parser.ask(question, trace=arguments.trace, **_options(arguments))


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "top": arguments.top, "guided": arguments.guided, "beams": arguments.beams,
        "constrained": not arguments.unconstrained,
        "least_confidence": arguments.least_confidence,
    }  # fmt: skip


# --- a conversation -------------------------------------------------------------------------------


def _converse(arguments: argparse.Namespace) -> int:
    """Converse on a terminal, or answer the lines of a pipe."""
    from kopl_cli.conversation import Dialogue

    check_run(Path(arguments.folder))
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    told: set[str] = set()  # what need not be said twice

    def ask(talk: Conversation, said: str, trace: bool) -> Turn:
        return talk.ask(said, trace=trace or arguments.trace, **_options(arguments))

    def show(turn: Turn, talk: Conversation) -> None:
        _show(turn, talk.kb, arguments, on_terminal)
        note = _note(turn.answers[0], arguments) if turn.answers else ""
        if on_terminal and not arguments.json and note and note not in told:
            told.add(note)
            print(f"(The confidence is {note}.)")

    def fail(said: str, error: KoplError) -> None:
        if on_terminal:
            print(f"kopl: {error}", file=sys.stderr)
        else:
            _print_unread({"question": said}, error, arguments)

    dialogue = Dialogue(lambda kb: _steps(arguments, kb), ask, show, _explain, fail)
    if on_terminal:
        return dialogue.on_terminal(f"{arguments.folder}; :help says what can be typed")
    return dialogue.from_pipe()


def _steps(arguments: argparse.Namespace, kb: str | None) -> Iterator[Conversation | None]:
    """Make a conversation step by step, the last of which only makes the first answer quick."""
    with torch_is_needed():
        from parsers.conversation import Conversation
        from parsers.parser import Parser
    yield None
    is_new = arguments.new_kb or kb is not None
    parser = Parser.load(
        arguments.folder, kb or arguments.kb, new_kb=is_new,
        other_languages=arguments.other_languages,
    )  # fmt: skip
    talk = Conversation(parser)
    yield talk
    talk.prepare()
    yield talk


def _show(turn: Turn, kb: KnowledgeBase, arguments: argparse.Namespace, on_terminal: bool) -> None:
    if arguments.json:
        found = [_json(answer, turn.question, kb) for answer in turn.answers]
        line: dict[str, Any] = {"question": turn.said}
        line |= {"read_as": turn.read_as} if turn.read_as is not None else {}
        line |= {"unresolved": turn.unresolved} if turn.unresolved else {}
        line |= {**found[0]} | ({"more": found[1:]} if len(found) > 1 else {})
        print(json.dumps(line, ensure_ascii=False))
        return
    if not on_terminal:
        print(f"question: {turn.said}")
    if turn.read_as is not None:
        print(f"read as: {turn.read_as}")
    for answer in turn.answers:
        is_whole = not on_terminal or arguments.top > 1
        _print(answer, arguments.trace, with_program=is_whole)
    if turn.unresolved:
        print(f"(Nothing that was named fits {turn.unresolved!r}; the question is read by itself.)")
    _print_doubts(turn.answers, turn.question, kb)
    if not on_terminal:
        print()


# Of what else a question may be read as, so many programs are shown.
_OTHERS = 3


def _explain(turn: Turn, talk: Conversation) -> None:
    """How a question was read, and how else it may be."""
    how = {
        "itself": "by itself",
        "program": "by the last question's program, with something else in it",
        "words": "by the parser, with words that the last questions give",
    }
    print(f"question: {turn.question}")
    print(f"read: {how[turn.how]}")
    for answer in turn.answers[:1]:
        _print(answer, False)
        for note in _doubts(answer, turn.question, talk.kb):
            print(f"doubt: {note}")
    try:
        found = talk.parser.ask(turn.question, top=_OTHERS + 1, guided=False)
    except KoplError:  # a program stands for a question that could not be put into words
        return
    others = [one for one in found if one.program not in (None, turn.program)]
    for answer in others[:_OTHERS]:
        said = answer.error or _said(answer)
        print(f"or: {answer.prediction.text}  ({answer.confidence:.1%} confident)\n    {said}")


# --- a file of questions --------------------------------------------------------------------------


def _ask_all(parser: Parser, arguments: argparse.Namespace) -> int:
    """Ask every question of a file: 0 when all could be read, whatever was answered.

    What one question goes wrong with stands in its own line, and the next is asked.
    """
    from kopl_base.progress import Progress

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
                _print_unread(named, error, arguments)
                sys.stdout.flush()
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
                _print_doubts(answers, question, parser.kb)
                print(flush=shown)
            bar.advance(1)
    if unread:
        print(f"kopl: {unread} of {len(asked)} questions could not be read", file=sys.stderr)
    return 1 if unread else 0


def _print_unread(named: dict[str, str], error: KoplError, arguments: argparse.Namespace) -> None:
    """Say of one of many questions why it cannot be read."""
    from kopl_cli.run import error_json

    if arguments.json:
        print(json.dumps({**named, **error_json(error)}, ensure_ascii=False))
    else:
        print(f"question: {named['question']}\nanswer: none: {error}\n")


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

    said = answer.read_as or question
    shown: dict[str, Any] = {
        "program": None if answer.program is None else str(answer.program),
        "text": answer.prediction.text,
        "confidence": round(answer.confidence, 6),
        "calibrated": answer.is_calibrated,
        "probability": round(answer.probability, 6),
        "unsaid": [] if answer.program is None else unsaid(answer.program, said, kb),
    }
    if answer.read_as is not None:
        shown["read_as"] = answer.read_as
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


def _print(answer: Answer, trace: bool, *, with_program: bool = True) -> None:
    from kopl.answer_forms import Is
    from kopl_cli.run import print_trace

    written = answer.prediction.text or "(nothing that can be read)"
    confidence = f"{answer.confidence:.1%} confident"
    result = answer.result
    if answer.read_as is not None:
        print(f"read as: {answer.read_as}")
    if answer.refused is not None:
        print(f"I do not know: {answer.refused.message}  ({confidence})")
        if answer.refused.near:
            print(f"nearest: {'; '.join(answer.refused.near)}")
        if with_program:
            print(f"refused program: {written}")
        return
    if result is None:
        assert answer.error is not None
        print(f"answer: none: {answer.error.kind} error: {answer.error}  ({confidence})")
    else:
        print(f"{_said(answer)}  ({confidence})")
    if with_program:
        print(f"program: {written}")
    if with_program and result is not None and answer.form is not None:
        denoted = "; ".join(result.denotation[:MOST]) or "nothing"
        wanted = answer.form.name if isinstance(answer.form, Is) else "one or more"
        print(f"yes where that is {wanted}; it is {denoted}")
    if result is not None and result.trace:
        print_trace(result.trace)
    elif result is not None and trace:
        print("(no program says this query, so there is no trace)")
