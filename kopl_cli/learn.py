"""``kopl learn``: go on training a run with the corrections of its answers.

The new run lies in a folder of its own; the old one stays as it is.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kopl_base.errors import KoplError, counted
from kopl_cli.common import positive, torch_is_needed

if TYPE_CHECKING:
    from generation.corrected import Wording
    from kb import KnowledgeBase
    from kopl.example import Asked, Example
    from parsers.corrections import Correction
    from parsers.learning import Change

# Questions like each correction, and old ones that are learnt again.
EACH, REPLAY = 16, 4000
# How many changed answers are printed; all are in the run's folder.
SHOWN = 30
LEXICON = "lexicon.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--run", type=Path, dest="old", metavar="RUN", help="the folder of a corrected run"
    )
    which.add_argument(
        "--resume", type=Path, metavar="NEW", help="go on with an unfinished run of this command"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="NEW",
        help="the folder of the new run (default: RUN-learned)",
    )  # fmt: skip
    parser.add_argument(
        "--corrections", type=Path, metavar="FILE",
        help="learn what this file says (default: corrections.jsonl in RUN)",
    )  # fmt: skip
    parser.add_argument("--kb", metavar="KB", help="where the run's knowledge base is now")
    parser.add_argument(
        "--new-kb", action="store_true",
        help="--kb may be one that the run was not trained on; the new run is for that one",
    )  # fmt: skip
    parser.add_argument(
        "--each", type=positive, default=EACH, metavar="N",
        help=f"questions that are made like each correction (default: {EACH})",
    )  # fmt: skip
    parser.add_argument(
        "--replay", type=positive, default=REPLAY, metavar="N",
        help=f"old questions that are learnt again (default: {REPLAY})",
    )  # fmt: skip
    parser.add_argument(
        "--held-out", type=positive, metavar="N",
        help="how many of the run's test questions are asked before and after (default: 500)",
    )  # fmt: skip
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE",
        help="change one setting of the training, as epochs=6",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Run the command: 0, or 130 when a signal stopped the training."""
    with torch_is_needed():
        import parsers.learning  # noqa: F401 (what lacks a package says so here)
    out = sys.stdout
    # What a training tells is for people.
    with contextlib.redirect_stdout(sys.stderr if arguments.json else out):
        report = _learnt(arguments)
    if report is None:
        return 130
    if arguments.json:
        print(json.dumps(report, ensure_ascii=False))
    return 0


def _learnt(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Train a new run, ask before and after, and print it; None where a signal stopped it."""
    from kopl_base.settings import pairs_of
    from kopl_base.training.distributed import use_threads
    from parsers import learning, training
    from parsers.checkpoint import load_own, read_run
    from parsers.registry import model_class

    begin = time.monotonic()
    if arguments.resume is not None:
        folder = arguments.resume
        old = Path(learning.read_learned(folder)["from"])
    else:
        folder, old = None, arguments.old
    own, description = read_run(old)
    if not model_class(own.model).trains:
        raise KoplError(
            f"{old}: a run of the model {own.model} is not trained: what was corrected is among the"
            " examples that it shows already"
        )
    kb = load_own(old, arguments.kb or description.kb, "--kb KB")
    if description.fingerprint != kb.fingerprint and not arguments.new_kb and folder is None:
        raise KoplError(
            f"{old}: the run was trained on another knowledge base ({description.kb}); say that"
            " the new one is to be for this one: --new-kb"
        )
    place = arguments.kb or description.kb
    if folder is None:
        folder = _prepare(arguments, old, kb)
    if (folder / "resume.pt").exists():
        settings = training.resumed(read_run(folder)[0], pairs_of(arguments.set))
    else:
        settings = learning.lesson_settings(own, folder, old, place)
        settings = settings.changed({**learning.read_learned(folder)["settings"]})
    use_threads(settings.threads)
    group = training.joined(settings)
    try:
        trainer = learning.go_on(folder, old, settings, kb, new_kb=True, distributed=group)
        finished = trainer.run()
    finally:
        group.close()
    if not finished:
        print(f"kopl learn --resume {folder} goes on with it", flush=True)
        return None
    return _report(old, folder, kb, begin)


def _prepare(arguments: argparse.Namespace, old: Path, kb: KnowledgeBase) -> Path:
    """Write the lesson of a new run, and say what it is; gives its folder."""
    from kopl_base.progress import Progress
    from kopl_base.settings import pairs_of
    from kopl_cli.common import free_folder
    from parsers import learning
    from parsers.checkpoint import read_run
    from parsers.corrections import FILE

    file = arguments.corrections or old / FILE
    corrections = learning.taught(file)
    folder = free_folder(arguments.output or old.with_name(f"{old.name}-learned"))
    changes = pairs_of(arguments.set)
    settings, _ = read_run(old)
    learning.lesson_settings(settings, folder, old, settings.kb).changed(changes)  # or an error
    with Progress("preparing the lesson", None):
        similar, lexicon = like(kb, corrections, arguments.each, settings.seed)
        lesson = learning.prepared(old, corrections, similar, arguments.replay, settings.seed)
    about = {
        "from": str(old.resolve()), "corrections": len(corrections), "similar": len(similar),
        "replay": len(lesson.replay), "held out": arguments.held_out or learning.HELD_OUT,
        "settings": changes,
    }  # fmt: skip
    if lexicon:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LEXICON).write_text("".join(lexicon), "utf-8")
    learning.write_lesson(folder, old, lesson, about, file)
    print(
        f"run: {folder}\nlesson: {counted(len(corrections), 'correction')},"
        f" {counted(len(similar), 'question')} like them, {len(lesson.replay)} of"
        f" {old}", flush=True,
    )  # fmt: skip
    if lexicon:
        print(f"wordings for the lexicon, to be looked at: {folder / LEXICON}", flush=True)
    return folder


def like(
    kb: KnowledgeBase, corrections: Sequence[Correction], each: int, seed: int
) -> tuple[list[Example], list[str]]:
    """Questions like corrected ones, and the lines of a lexicon with their wordings.

    Parsers tell where a question says its names; generation makes others of the same kind. Neither
    knows the other.
    """
    from generation.corrected import annotated, drafted, phrase_of, questions
    from generation.lexicon import Lexicon

    wordings = _wordings(kb, corrections)
    phrases = [phrase for phrase in map(phrase_of, wordings) if phrase]
    annotations = annotated(Lexicon(kb), phrases)
    lines = list(drafted(kb, annotations)) if annotations.sections else []
    return list(questions(kb, wordings, each, seed, annotations)), lines


def _wordings(kb: KnowledgeBase, corrections: Sequence[Correction]) -> list[Wording]:
    from generation.corrected import Wording
    from parsers.actions import Actions
    from parsers.learning import said_names
    from parsers.linking import Linker

    linker, actions = Linker(kb), Actions.of(kb)
    found = []
    for one in corrections:
        assert one.program is not None
        places = said_names(one.question, one.program, linker, actions)
        several = one.form is None and len(one.answers) > 1
        found.append(Wording(one.question, one.program, places, one.form, several))
    return found


def _report(old: Path, folder: Path, kb: KnowledgeBase, begin: float) -> dict[str, Any]:
    """Ask before and after, keep what changed with the new run, and print it."""
    from kopl.example import read_examples, read_questions
    from kopl_base.progress import Progress
    from kopl_base.stream import writing
    from parsers import learning
    from parsers.parser import Parser

    print("fitting what kopl ask goes by, as confidences", flush=True)
    _calibrate(old, folder, kb)
    before, after = Parser.load(old, kb, new_kb=True), Parser.load(folder, kb)
    about = learning.read_learned(folder)
    held_out = list(read_questions(folder / "test.jsonl"))[: about["held out"]]
    learnt = list(read_examples(folder / learning.LESSON))
    parts: dict[str, Sequence[Asked]] = {"corrections": learnt, "old": held_out}
    print(
        f"asking {counted(len(learnt), 'correction')} and {counted(len(held_out), 'old question')}"
        " before and after", flush=True,
    )  # fmt: skip
    found: list[Change] = []
    report: dict[str, dict[str, int]] = {}
    with Progress("asking before and after", len(learnt) + len(held_out)) as bar:
        for part, asked in parts.items():
            found += learning.compared(before, after, {part: asked}, bar.advance)
            report = learning.summary(found)
            if part in report:
                _print_part(part, report[part])
    changed = [one for one in found if one.is_one]
    with writing(folder / learning.CHANGES) as file:
        file.writelines(json.dumps(one.to_json(), ensure_ascii=False) + "\n" for one in changed)
    about |= {"report": report, "seconds": round(time.monotonic() - begin, 1)}
    learning.write_learned(folder, about)
    _print_changes(changed)
    if len(changed) > SHOWN:
        print(f"… all {len(changed)} are in {folder / learning.CHANGES}")
    print(f"{about['seconds']:.0f} s in all; ask it: kopl ask --run {folder} QUESTION")
    return {"run": str(folder), **about}


def _print_part(part: str, own: Mapping[str, int]) -> None:
    print(
        f"{part}: {own['before']} of {own['asked']} right before, {own['after']} after"
        f" ({own['better']} better, {own['worse']} worse; {own['changed']} answers changed)",
        flush=True,
    )


def _calibrate(old: Path, folder: Path, kb: KnowledgeBase) -> None:
    """Fit what ``kopl ask`` goes by; when it is silent only where the old run knows that, too.

    A lesson moves the confidences of answers little, and leaves few questions to fit refusals on:
    those of the old run stay, but on another knowledge base.
    """
    from kopl_cli.calibration import calibrate_for_asking
    from parsers.checkpoint import read_run
    from parsers.evaluation.confidence import ASKING, Decoding
    from parsers.evaluation.runs import calibrate, keep_refusals
    from parsers.learning import VALIDATED, learnt_in_all
    from parsers.parser import BEAMS, Parser
    from parsers.refusals.silence import FILE as REFUSALS
    from parsers.refusals.silence import FILE_ELSEWHERE as ELSEWHERE

    parser = Parser.load(folder, kb)
    is_same = read_run(old)[1].fingerprint == kb.fingerprint
    if is_same and keep_refusals(old, folder, parser, learnt_in_all(folder)):
        calibrate(folder, parser, Decoding(BEAMS, guided=True), ASKING)
        print("it refuses as before, and knows the words of the lesson", flush=True)
    elif (old / REFUSALS).exists():
        calibrate_for_asking(folder, kb, ASKING, VALIDATED, (old / ELSEWHERE).exists())
    else:
        calibrate(folder, parser, Decoding(BEAMS, guided=True), ASKING)


def _print_changes(changed: Sequence[Change]) -> None:
    """The first changed answers, those that became worse before the others."""
    marks = {(True, False): "worse", (False, True): "better"}
    told = [(marks.get((one.before.right, one.after.right), "other"), one) for one in changed]
    told.sort(key=lambda item: ("worse", "other", "better").index(item[0]))
    for mark, one in told[:SHOWN]:
        was, now = ("; ".join(said.answers[:3]) or "(nothing)" for said in (one.before, one.after))
        print(f"  {mark}: {one.question[:120]}: {was} -> {now}")
