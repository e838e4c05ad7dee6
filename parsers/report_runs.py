"""Evaluating trained runs: questions read, programs predicted and run, confidences calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from kb import KnowledgeBase
from kb.errors import ReadError, WriteError
from kb.progress import ProgressBar
from kopl.example import Asked, read_questions
from parsers.calibration import CalibrationError
from parsers.evaluation import evaluate
from parsers.parser import Parser
from parsers.report import Comparison, EvaluationError, Scored, same_questions
from parsers.report_html import Shown, worst_errors
from parsers.scoring_confidence import (
    Decoding,
    Temperature,
    fit,
    read_temperature,
    validation_questions,
    write_temperature,
)


def compare(
    folders: Sequence[Path], files: Sequence[Path], *, kb: KnowledgeBase | str | None = None,
    decoding: Decoding | None = None, errors: int = 0, new_kb: bool = False,
) -> tuple[Comparison, list[list[Shown]]]:  # fmt: skip
    """The best networks of runs on the same examples, and so many of the worst errors of each.

    ``files`` holds a file of examples for each run; all must hold the same. ``new_kb``: the
    knowledge base may be one that the runs never saw. Raises KoplError for
    runs that cannot be loaded and for files that hold no examples or different ones, before
    anything is predicted.
    """
    parsers = [Parser.load(folder, kb, new_kb=new_kb) for folder in folders]
    examples = _examples(files[0])
    for file in files[1:]:
        if file != files[0]:
            same_questions(examples, _examples(file), f"{files[0]} and {file}")
    torch.set_num_threads(parsers[0].settings.threads)
    scored, shown = [], []
    for folder, parser in zip(folders, parsers, strict=True):
        one = score_run(folder, parser, examples, decoding or Decoding())
        scored.append(one)
        shown.append(worst_errors(one, parser.model.language, errors))
    return Comparison(", ".join(dict.fromkeys(map(str, files))), scored), shown


def score_run(
    folder: Path, parser: Parser, examples: Sequence[Asked], decoding: Decoding
) -> Scored:
    """The report of a run on some examples, with its temperature, which is fitted if need be."""
    temperature, remarks = _temperature(folder, parser, examples, decoding)
    with ProgressBar(f"evaluating {folder}", len(examples)) as bar:
        report = evaluate(
            parser.model, examples, parser.description.answers, bar.advance,
            beams=decoding.beams, constrained=decoding.constrained, guided=decoding.guided,
        )  # fmt: skip
    return Scored(str(folder), decoding, report, temperature, tuple(remarks))


def _temperature(
    folder: Path, parser: Parser, examples: Sequence[Asked], decoding: Decoding
) -> tuple[Temperature | None, list[str]]:
    """The temperature stored with a run, or a new one; and what is to be said about it."""
    found = read_temperature(folder, decoding.kind)
    if parser.is_moved:
        calibrated = "calibrated on that one" if found else "not calibrated"
        return found, [f"trained on another knowledge base; confidences are {calibrated}"]
    remarks = []
    try:
        valid = validation_questions(folder)
        if found is None:
            with ProgressBar(f"calibrating {folder}", len(valid)) as bar:
                found = fit(parser.model, valid, decoding, bar.advance)
            try:
                write_temperature(folder, found)
            except WriteError as error:
                remarks.append(f"the temperature could not be stored: {error}")
        asked = {example.question for example in valid}
        both = sum(example.question in asked for example in examples)
        if both and found.is_fitted:
            remarks.append(
                f"{both} of the {len(examples)} questions are among those that the temperature was"
                " fitted on, so the calibration error after it is too low"
            )
    except (ReadError, CalibrationError) as error:
        if found is None:
            remarks.append(f"confidences are not calibrated: {error}")
    return found, remarks


def _examples(file: Path) -> list[Asked]:
    examples = list(read_questions(file))
    if not examples:
        raise ReadError("there are no examples", source=str(file))
    return examples


def check_output(path: Path, inputs: Sequence[Path]) -> None:
    """Raise a KoplError where an output could not be written, or would overwrite an input.

    Asked before long work, so that its result is not lost.
    """
    if path.exists() and any(file.exists() and path.samefile(file) for file in inputs):
        raise EvaluationError(f"{path}: it holds the questions; name another file to write")
    if path.is_dir():
        raise WriteError(f"{path}: cannot be written: it is a folder")
    try:
        path.resolve().parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"{path}: cannot be written: {error.strerror}") from None
