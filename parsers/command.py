"""``kopl ask``: a question to a trained parser."""

from __future__ import annotations

import argparse
import json
import sys

from kb.errors import KoplError
from kopl.cli.common import positive

NEEDS_TORCH = "this needs the packages of the extra 'train': pip install -e '.[train]'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--run", required=True, dest="folder", help="the folder of a trained run")
    parser.add_argument("--kb", metavar="KB", help="where its knowledge base is now, if it moved")
    parser.add_argument("--trace", action="store_true", help="show the value after every call")
    parser.add_argument(
        "--top", type=positive, default=1, metavar="N", help="how many programs to show"
    )
    parser.add_argument(
        "--unconstrained", action="store_true", help="let the model write what may not be a program"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object for a program")
    parser.add_argument("question", metavar="QUESTION")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    try:
        from parsers.parser import Parser
    except ImportError as error:
        if error.name not in ("torch", "safetensors"):
            raise
        raise KoplError(NEEDS_TORCH) from None
    parser = Parser.load(arguments.folder, arguments.kb)
    answers = parser.ask(
        arguments.question, top=arguments.top, trace=arguments.trace,
        constrained=not arguments.unconstrained,
    )  # fmt: skip
    for answer in answers:
        if arguments.json:
            print(json.dumps(_json(answer), ensure_ascii=False))
        else:
            _print(answer, len(answers) > 1)
    return 0 if answers and answers[0].text is not None else 1


def _json(answer: object) -> dict[str, object]:
    from kopl.cli.run import error_json
    from parsers.parser import Answer

    assert isinstance(answer, Answer)
    shown: dict[str, object] = {
        "program": None if answer.program is None else str(answer.program),
        "text": answer.prediction.text,
        "probability": round(answer.probability, 6),
    }
    if answer.result is not None:
        return {**shown, **answer.result.to_json()}
    assert answer.error is not None
    return {**shown, **error_json(answer.error)}


def _print(answer: object, several: bool) -> None:
    from kopl.cli.run import print_trace
    from parsers.parser import Answer

    assert isinstance(answer, Answer)
    written = answer.prediction.text or "(nothing that can be read)"
    print(f"program: {written}  ({answer.probability:.0%})")
    if answer.result is None:
        print(f"kopl: {answer.error}", file=sys.stderr)
        return
    if answer.result.trace:
        print_trace(answer.result.trace)
    shown = "; ".join(answer.result.denotation[:20]) or "(nothing)"
    print(f"answer: {shown}" if answer.text is not None else f"{answer.result.state}: {shown}")
    if several:
        print()
