"""``kopl eval``: score trained parsers.

Prints execution accuracy as in Tables 5 and 9 of the paper and by program length, how far the
predictions get, calibration, and, of several runs, their paired differences.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from kb import KnowledgeBase
from kopl_base.errors import KoplError, counted
from kopl_cli.calibration import calibrate_anew
from kopl_cli.common import positive, torch_is_needed

GUIDED_BEAMS = 4
ERRORS = 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help="the folders of trained runs"
    )
    parser.add_argument(
        "--data", type=Path, metavar="FILE",
        help="questions (JSON lines or list); those without programs are predicted, and scored by"
        " their answers if they have any",
    )  # fmt: skip
    parser.add_argument("--kb", metavar="KB", help="where the runs' knowledge base is now")
    parser.add_argument(
        "--new-kb", action="store_true",
        help="--kb may be one that the runs were not trained on; its schema goes by its names",
    )  # fmt: skip
    parser.add_argument(
        "--split", choices=("train", "valid", "test"), default="test",
        help="which of the run's own questions, when no --data is given (default: test)",
    )  # fmt: skip
    parser.add_argument(
        "--beams", type=positive, metavar="N",
        help=f"default: 1 (greedy), with --execution-guided {GUIDED_BEAMS}",
    )  # fmt: skip
    parser.add_argument(
        "--unconstrained", action="store_true", help="let the model write what may not be a program"
    )
    parser.add_argument(
        "--both",
        action="store_true",
        help="score unconstrained and constrained decoding side by side",
    )
    parser.add_argument(
        "--execution-guided", action="store_true",
        help="of the beam, take the first program that has exactly one answer",
    )  # fmt: skip
    parser.add_argument(
        "--paper",
        action="store_true",
        help="show published figures of KQA Pro, and one's own above them by the published rule",
    )
    parser.add_argument(
        "--calibrate", action="store_true",
        help="fit confidences and refusals of the runs anew, and score nothing",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print all scores as one JSON object")
    parser.add_argument(
        "--predictions", type=Path, metavar="FILE",
        help="write what is predicted: JSON lines to a FILE that ends in .jsonl or .json, to any"
        " other an answer a line, as KQA Pro's leaderboard takes them",
    )  # fmt: skip
    parser.add_argument(
        "--memory", type=amount, metavar="GIB",
        help="what predicting may take beyond the weights (default: the run's setting)",
    )  # fmt: skip
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a report to look at")
    parser.add_argument(
        "--errors", type=positive, default=ERRORS, metavar="N",
        help=f"how many errors of each run --html shows (default: {ERRORS})",
    )  # fmt: skip


def amount(text: str) -> float:
    """The number of GiB of an option; argparse tells what is wrong with it."""
    found = float(text)
    if not 0 <= found < float("inf"):
        raise argparse.ArgumentTypeError("a number of GiB, 0 or more, was expected")
    return found


def run(arguments: argparse.Namespace) -> int:
    """Run the command: 0 when all runs are scored."""
    beams = arguments.beams or (GUIDED_BEAMS if arguments.execution_guided else 1)
    if arguments.execution_guided and beams == 1:
        raise KoplError("--execution-guided chooses among several programs; give --beams 2 or more")
    if arguments.new_kb and not (arguments.kb and (arguments.data or arguments.calibrate)):
        raise KoplError(
            "--new-kb needs the other knowledge base (--kb) and questions on it (--data)"
        )
    if arguments.both and arguments.unconstrained:
        raise KoplError("--both scores unconstrained decoding, too; leave out --unconstrained")
    if arguments.calibrate:
        for folder in arguments.runs:
            calibrate_anew(folder, arguments.kb, arguments.new_kb)
        return 0
    if arguments.data:
        files = [arguments.data] * len(arguments.runs)
    else:
        files = [run / f"{arguments.split}.jsonl" for run in arguments.runs]
    score(
        arguments.runs, files, kb=arguments.kb, beams=beams,
        constrained=[False, True] if arguments.both else [not arguments.unconstrained],
        guided=arguments.execution_guided, json_output=arguments.json,
        predictions=arguments.predictions, html=arguments.html, errors=arguments.errors,
        new_kb=arguments.new_kb, memory=arguments.memory, paper=arguments.paper,
    )  # fmt: skip
    return 0


def score(
    runs: Path | Sequence[Path], data: Path | Sequence[Path], *,
    kb: KnowledgeBase | str | None = None, beams: int = 1, constrained: Sequence[bool] = (True,),
    guided: bool = False, json_output: bool = False, predictions: Path | None = None,
    html: Path | None = None, errors: int = ERRORS, new_kb: bool = False,
    memory: float | None = None, paper: bool = False, brief: bool = False,
    first: int | None = None, fitted: int | None = None,
) -> None:  # fmt: skip
    """Evaluate the best networks of runs, each on its file of examples; print and write it all.

    Each run is decoded in all ways of ``constrained``, side by side. ``paper``: published figures,
    too; ``brief``: the first table only. ``first`` and ``fitted`` bound the questions that are
    scored and those that temperatures are fitted on. Raises KoplError for runs, examples or outputs
    that are wrong, before anything is computed.
    """
    with torch_is_needed():
        from parsers.evaluation.confidence import MOST, Decoding
        from parsers.evaluation.html import template, write_html
        from parsers.evaluation.report import EvaluationError, write_answers, write_predictions
        from parsers.evaluation.runs import check_output, compare
        from parsers.evaluation.tables import text_of
    folders = [runs] if isinstance(runs, Path) else list(runs)
    files = [data] if isinstance(data, Path) else list(data)
    for path in (predictions, html):
        if path:
            check_output(path, files)
    if html:
        template()  # what it needs must be there before the long work
    decodings = [Decoding(beams, one, guided) for one in constrained]
    as_lines = predictions is not None and predictions.suffix.lower() not in (".json", ".jsonl")
    if as_lines and len(folders) * len(decodings) > 1:
        raise EvaluationError(
            f"{predictions}: a file with an answer a line is of one run and one kind of decoding;"
            " end its name in .jsonl for the predictions of all, or score one alone"
        )
    comparison, shown = compare(
        folders, files, kb=kb, decodings=decodings, errors=errors if html else 0, new_kb=new_kb,
        memory=memory, first=first, fitted=MOST if fitted is None else fitted,
    )  # fmt: skip
    written = ""
    if predictions and as_lines:
        count = write_answers(predictions, comparison.runs[0])
        written = f"{predictions}: {counted(count, 'line')} written, an answer each"
    elif predictions:
        count = write_predictions(predictions, comparison)
        written = f"{predictions}: {counted(count, 'JSON line')} written, a prediction each"
    if html:
        write_html(html, comparison, shown)
    if json_output:
        print(json.dumps(comparison.to_json(), ensure_ascii=False))
    else:
        print(text_of(comparison, paper=paper, brief=brief), end="")
        if written:
            print(written)
