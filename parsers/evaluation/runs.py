"""Evaluating trained runs: questions read, programs predicted and run, confidences calibrated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from kb import KnowledgeBase
from kopl.example import Asked, BareQuestion, Example, read_examples, read_questions
from kopl_base.errors import ReadError, WriteError
from kopl_base.progress import Progress
from kopl_base.training.distributed import use_threads
from kopl_base.training.memory import Parts
from parsers.checkpoint import read_run, sources
from parsers.evaluation.accuracy import Report, evaluate
from parsers.evaluation.confidence import (
    MOST,
    CalibrationError,
    Decoding,
    Temperature,
    fit,
    read_temperature,
    validation_questions,
    weights_mark,
    write_temperature,
)
from parsers.evaluation.html import Shown, worst_errors
from parsers.evaluation.report import Comparison, EvaluationError, ScoredRun, same_questions
from parsers.parser import Parser
from parsers.refusals.silence import (
    FILE,
    FILE_ELSEWHERE,
    RefusalError,
    Silence,
    answers_of,
    fit_over,
    read_silence,
    write_silence,
)
from parsers.refusals.silence import fit as fit_silence
from parsers.refusals.wording import Wording


def compare(
    folders: Sequence[Path], files: Sequence[Path], *, kb: KnowledgeBase | str | None = None,
    decodings: Sequence[Decoding] = (Decoding(),), errors: int = 0, new_kb: bool = False,
    memory: float | None = None, first: int | None = None, fitted: int = MOST,
) -> tuple[Comparison, list[list[Shown]]]:  # fmt: skip
    """The best networks of runs on the same examples, and so many of the worst errors of each.

    ``files`` holds a file of examples for each run; all must hold the same. A run is scored by each
    of the ``decodings``. ``new_kb``: the knowledge base may be one that the runs never saw.
    ``memory`` is what predicting may take, in GiB (None: as the run's settings say). ``first``:
    only so many examples are scored; temperatures are ``fitted`` on at most so many. Raises
    KoplError for runs that cannot be loaded and for files that hold no examples or different ones,
    before anything is predicted.
    """
    parsers = [Parser.load(folder, kb, new_kb=new_kb) for folder in folders]
    examples = _examples(files[0])[:first]
    for file in files[1:]:
        if file != files[0]:
            same_questions(examples, _examples(file)[:first], f"{files[0]} and {file}")
    use_threads(parsers[0].settings.threads)
    scored, shown = [], []
    for folder, parser in zip(folders, parsers, strict=True):
        if memory is not None:
            parser.model.memory = memory
        for decoding in decodings:
            name = f"{folder}, {decoding.kind}" if len(decodings) > 1 else str(folder)
            one = score_run(folder, parser, examples, decoding, name, fitted)
            scored.append(one)
            shown.append(worst_errors(one, parser.model.language, errors))
    return Comparison(", ".join(dict.fromkeys(map(str, files))), scored), shown


def score_run(
    folder: Path, parser: Parser, examples: Sequence[Asked], decoding: Decoding, name: str,
    fitted: int = MOST,
) -> ScoredRun:  # fmt: skip
    """The report of a run on some examples, with its temperature, which is fitted if need be."""
    parts = parser.model.parts = Parts()
    temperature, remarks = calibrate(folder, parser, decoding, fitted, examples)
    with Progress(f"evaluating {folder}", len(examples)) as bar:
        report = evaluate(
            parser.model, examples, parser.description.answers, bar.advance,
            beams=decoding.beams, constrained=decoding.constrained, guided=decoding.guided,
            silence=parser.silence if decoding.constrained and decoding.guided else None,
        )  # fmt: skip
    if parts.halved:
        remarks.append(
            f"memory was not enough {parts.halved} times, and smaller parts were taken; a lower"
            " --memory takes them at once"
        )
    if parts.given_up:
        remarks.append(f"for {parts.given_up} questions memory was not enough at all")
    remarks += parser.model.remarks() + _seen(folder, report)
    return ScoredRun(name, decoding, report, temperature, tuple(remarks))


def _seen(folder: Path, report: Report) -> list[str]:
    """What is to be said where the scored questions are among those that chose the best epoch."""
    try:
        training = read_run(folder)[0].training
        chose = training.choosing(list(read_examples(folder / "valid.jsonl")))
    except ReadError:
        return []
    asked = {example.question for example in chose}
    both = sum(one.example.question in asked for one in report.compared)
    if not both or training.epochs == 1:
        return []
    return [
        f"{both} of the {len(report.compared)} questions chose the best epoch (they are in"
        f" {sources(folder).valid}), so that the accuracy is somewhat too high"
    ]


def calibrate(
    folder: Path, parser: Parser, decoding: Decoding, most: int = MOST,
    examples: Sequence[Asked] = (),
) -> tuple[Temperature | None, list[str]]:  # fmt: skip
    """The temperature stored with a run, or a new one; and what is to be said about it.

    A new one is fitted on at most so many validation questions, and stored. ``examples`` are those
    that it is to be used on.
    """
    found = read_temperature(folder, decoding.kind)
    if parser.is_moved:
        calibrated = "calibrated on that one" if found else "not calibrated"
        return found, [f"trained on another knowledge base; confidences are {calibrated}"]
    remarks = []
    most = min(most, parser.model.most_fitted or most)
    try:
        valid = validation_questions(folder)[:most]
        if found is None:
            with Progress(f"calibrating {folder}", len(valid)) as bar:
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


def calibrate_refusals(
    folder: Path, parser: Parser, answerable: Sequence[Example], outside: Sequence[BareQuestion],
    beams: int,
) -> Silence:  # fmt: skip
    """Fit when a run is silent, on questions that it was not trained on, and store that.

    ``outside`` are questions without an answer, which say why. Raises KoplError where there are too
    few, or the run has no training questions of its own.
    """
    training = read_examples(folder / "train.jsonl")
    with Progress(f"calibrating refusals of {folder}", len(answerable) + len(outside)) as bar:
        found = fit_silence(parser.model, training, answerable, outside, beams, bar.advance)
    write_silence(folder, found, weights_mark(folder))
    return found


def keep_refusals(
    old: Path, folder: Path, parser: Parser, learnt: Iterable[Example]
) -> bool:  # fmt: skip
    """Let a run that went on from an ``old`` one refuse as that does, over the same knowledge base.

    What that was fitted on stays; words are counted anew over all that the run has ``learnt``: over
    a part of it alone, many words of the rest would be strange. False where the old run has no
    refusals. Raises KoplError where they are damaged.
    """
    wording: Wording | None = None
    for name in (FILE, FILE_ELSEWHERE):
        fitted = read_silence(old, parser.model, weights_mark(old), name)
        if fitted is None:
            continue
        if wording is None:
            wording = Wording.of(learnt, fitted.linker)
        write_silence(folder, fitted.for_words(wording), weights_mark(folder), name)
    return (folder / FILE).exists()


def calibrate_refusals_elsewhere(
    folder: Path, asked: Sequence[tuple[Parser, Sequence[Asked]]], beams: int
) -> Silence:  # fmt: skip
    """Fit when a run is silent on a knowledge base whose schema training did not have; store that.

    ``asked`` are the run over some such knowledge bases, each with questions over it, those without
    an answer among them. Raises RefusalError where the run has no refusals of its own, whose words
    are taken, and where it answers nothing rightly over one of them.
    """
    own = read_silence(folder, asked[0][0].model, weights_mark(folder))
    if own is None:
        raise RefusalError("its refusals on its own knowledge base are to be fitted first")
    with Progress(
        f"calibrating refusals of {folder} elsewhere", sum(len(questions) for _, questions in asked)
    ) as bar:
        answered = []
        for parser, questions in asked:
            said = answers_of(parser.model, questions, beams, bar.advance)
            if not any(one.label == "right" for one in said):
                raise RefusalError("none of the questions over one of them is answered rightly")
            answered.append((parser.model, said))
    found = fit_over(answered, own.wording)
    write_silence(folder, found, weights_mark(folder), FILE_ELSEWHERE)
    return found


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
