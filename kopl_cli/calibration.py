"""What ``kopl ask`` goes by: confidences of its answers, and when it says that it does not know."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from kb import KnowledgeBase, load
from kopl.example import Asked, BareQuestion, Example, read_examples, read_questions
from kopl_base.errors import KoplError
from kopl_cli.common import torch_is_needed
from kopl_cli.training_time import SILENCE

if TYPE_CHECKING:
    from parsers.parser import Parser
    from parsers.refusals.silence import Silence
    from parsers.settings import Settings

# Of the questions with answers by which a run learns to be silent, so many are typed in haste.
TYPED = 0.5
# The made-up knowledge bases on which a run learns to be silent where its training did not have the
# schema: numbers that nobody trains on.
ELSEWHERE = (9001, 9002, 9003, 9004)
# Fewer questions tell nothing of so many schemas.
FEWEST_ELSEWHERE = 100
# Fitted anew, a run is asked so many times as many questions as at the end of its training.
ANEW = 3


def questions_for_silence(
    folder: Path, kb: KnowledgeBase, most: int, seed: int
) -> tuple[list[Example], list[BareQuestion]]:  # fmt: skip
    """By what a run learns when to be silent: validation questions, and some without answers.

    At most so many of each; the same seed gives the same ones. Those without answers that the run
    has of its own come first. Raises ReadError for validation
    questions that are not there, and KoplError where nothing can be made of them.
    """
    from generation.noise import Noise
    from generation.unanswerable import KINDS, Unanswerable
    from kopl_cli.training_questions import OUTSIDE

    valid = list(read_examples(folder / "valid.jsonl"))
    noise, random = Noise(kb, TYPED), Random(f"silence {seed}")
    answerable = [noise.noised(example, random) for example in valid[:most]]
    own = folder / OUTSIDE
    given = [
        one for one in (read_questions(own) if own.exists() else ())
        if isinstance(one, BareQuestion) and one.outside in KINDS
    ][:most]  # fmt: skip
    made = Unanswerable(kb, seed).questions(valid, most - len(given)) if len(given) < most else ()
    return answerable, [*given, *made]


def calibrate_for_asking(
    folder: Path, kb: KnowledgeBase, most: int, silence: int = 0, elsewhere: bool = True
) -> None:  # fmt: skip
    """Fit what ``kopl ask`` goes by, which takes the best of a beam that runs; tell what was found.

    The temperature of its probabilities on at most so many questions, and when it is silent: over
    its knowledge base, on at most ``silence`` ones (0: as many), and, if asked for, ``elsewhere``.
    """
    from parsers.evaluation.confidence import Decoding
    from parsers.evaluation.runs import calibrate
    from parsers.parser import BEAMS, Parser

    parser = Parser.load(folder, kb)
    calibrate(folder, parser, Decoding(BEAMS, guided=True), most)
    print(_calibrate_silence(folder, parser, silence or SILENCE * most), flush=True)
    if elsewhere and SILENCE * most >= FEWEST_ELSEWHERE:
        print(_calibrate_elsewhere(folder, SILENCE * most), flush=True)


def calibrate_anew(folder: Path, kb: str | None, new_kb: bool = False) -> None:
    """Fit the confidences and refusals of a run that is trained, and tell what was found.

    On another knowledge base than that of the training (``new_kb``) the refusals only.
    """
    with torch_is_needed():
        from kopl_base.training.distributed import use_threads
        from parsers.evaluation.confidence import ASKING, FILE, MOST, Decoding
        from parsers.evaluation.runs import calibrate
        from parsers.parser import BEAMS, Parser

    parser = Parser.load(folder, kb, new_kb=new_kb)
    use_threads(parser.settings.threads)
    if not parser.is_moved:
        (folder / FILE).unlink(missing_ok=True)
        for decoding, most in ((Decoding(), MOST), (Decoding(BEAMS, guided=True), ASKING)):
            _, remarks = calibrate(folder, parser, decoding, most)
            for remark in remarks:
                print(f"{folder}: {remark}")
    print(f"{folder}: {_calibrate_silence(folder, parser, ANEW * SILENCE * ASKING)}", flush=True)
    if not parser.is_moved:
        print(f"{folder}: {_calibrate_elsewhere(folder, ANEW * SILENCE * ASKING)}", flush=True)


def _calibrate_silence(folder: Path, parser: Parser, most: int) -> str:
    """Fit when a run says that it does not know; what was found, in words."""
    from parsers.evaluation.runs import calibrate_refusals
    from parsers.parser import BEAMS

    most = min(most, parser.model.most_fitted or most)
    try:
        questions = questions_for_silence(folder, parser.kb, most, parser.settings.seed)
        found = calibrate_refusals(folder, parser, *questions, BEAMS)
    except KoplError as error:
        return f"it answers whatever it is asked: {error}"
    return f"silent below a confidence of {found.least:.0%}: {_fitted(found)}"


def _calibrate_elsewhere(folder: Path, most: int) -> str:
    """Fit the same for schemas that training did not have, on made-up ones; in words.

    At most so many questions with an answer, and as many without.
    """
    from parsers.checkpoint import read_run
    from parsers.evaluation.runs import calibrate_refusals_elsewhere
    from parsers.parser import BEAMS, Parser

    settings, _ = read_run(folder)
    try:
        asked = []
        for number in ELSEWHERE:
            kb = load(f"invented:{number}")
            made = questions_elsewhere(folder, kb, settings, number, max(1, most // len(ELSEWHERE)))
            asked.append((Parser.load(folder, kb, new_kb=True), made))
        found = calibrate_refusals_elsewhere(folder, asked, BEAMS)
    except KoplError as error:
        return f"on other schemas it answers whatever it is asked: {error}"
    return f"on other schemas below {found.least:.0%}: {_fitted(found)}"


def questions_elsewhere(
    folder: Path, kb: KnowledgeBase, settings: Settings, number: int, most: int
) -> list[Asked]:
    """Questions as people ask them over the made-up knowledge base of a number.

    So many with an answer and so many without; the same number gives the same ones.
    """
    from generation.noise import Noise
    from generation.unanswerable import Unanswerable
    from kopl_cli.training_questions import made

    own = settings.changed({"kb": f"invented:{number}", "seed": number, "questions": 20})
    examples, _ = made(kb, own, folder, most, "people", (0.0, 0.0))
    noise, random = Noise(kb, TYPED), Random(f"silence {number}")
    answerable = [noise.noised(example, random) for example in examples]
    return [*answerable, *Unanswerable(kb, number).questions(examples, most)]


def _fitted(found: Silence) -> str:
    fitted = found.fitted
    return (
        f"{fitted.answered:.1%} of {fitted.answerable} held-out questions are answered\n  and"
        f" {fitted.refused:.1%} of {fitted.outside} without answers refused (area under the curve"
        f" {fitted.area:.3f})"
    )
