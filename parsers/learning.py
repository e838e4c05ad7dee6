"""Learning from corrections: a new run goes on from an old one, which stays.

A *lesson* is what the new run learns: the corrected questions, several times; questions like them
about other things, which the caller brings; and a replay sample of the old run's questions, so that
it forgets nothing, half of them about the relations and keys that were corrected. The new folder is
that of any other training (`parsers.checkpoint`), and besides has

- ``lesson.jsonl``, the corrections that were learnt,
- ``replay.jsonl``, all questions that another lesson may replay,
- ``corrections.jsonl``, as the old run has them, for further ones,
- ``learned.json``, which run it went on from, and what became better and worse.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from random import Random
from typing import Any, Protocol

from kb import KnowledgeBase
from kopl.answer_forms import AnswerForm, answer_of
from kopl.answers import same_answers
from kopl.example import (
    Asked,
    Example,
    read_example,
    read_examples,
    read_questions,
    write_examples,
)
from kopl.functions import FIND
from kopl.program import Call
from kopl.traits import names_in
from kopl_base.errors import KoplError, ReadError
from kopl_base.stream import read_text, writing
from kopl_base.training.checkpoint import CheckpointError
from kopl_base.training.distributed import Distributed
from kopl_base.training.optimizer import TrainingError
from parsers import training
from parsers.actions import Actions
from parsers.checkpoint import SOURCES, Description, Sources, lasting, restore, write_run
from parsers.corrections import FILE, TAUGHT, Correction, newest, read_corrections
from parsers.linking import Linker
from parsers.parser import Answer, Parser
from parsers.refusals.wording import asked_items
from parsers.settings import Settings
from parsers.steps import NotExpressible, steps_of
from parsers.tokens import Question

LESSON, REPLAY, LEARNED, CHANGES = "lesson.jsonl", "replay.jsonl", "learned.json", "changes.jsonl"
# How often a correction is learnt in an epoch, and how many old questions choose the best epoch
# beside the corrections.
COPIES, CHOOSING = 8, 200
# How many old questions that are not learnt stay with the new run: those that choose, and more, as
# confidences and silence are fitted on all of them.
VALIDATED = 400
# What a lesson is trained with, where nothing else is asked for; the rate is a share of the run's.
EPOCHS, RATE, WARM_UP = 5, 0.4, 20.0
# The old questions that are asked before and after.
HELD_OUT = 500


def taught(path: Path) -> list[Correction]:
    """The newest corrections of a file that a program answers.

    Raises ReadError where there are none, or the file is malformed.
    """
    found = [one for one in newest(read_corrections(path)) if one.verdict in TAUGHT]
    if not found:
        raise ReadError(
            "there are no corrections with a program; make some with 'kopl correct'",
            source=str(path),
        )
    return found


def said_names(
    question: str, program: Call, linker: Linker, actions: Actions
) -> dict[str, tuple[int, int]]:
    """Where a question says the names of its program: first character and end, by name.

    A name that it does not say, up to folding, an alias or a misspelling, is left out.
    """
    read = Question.of(question)
    found: dict[str, tuple[int, int]] = {}
    for name in names_in(program):
        try:
            steps = steps_of(Call(FIND, (), (name,)), read, actions, linker)
        except NotExpressible:
            continue
        tokens = [step.token for step in steps if step.token >= 0]
        if len(tokens) == 2:
            first, last = tokens
            found[name] = read.places[first][0], read.places[last][1]
    return found


def replayed(pool: Path, lesson: Sequence[Example], count: int, seed: int) -> list[Example]:
    """A sample of old questions, half of it about what a lesson is about, as far as there are.

    ``pool`` is a file that `write_examples` wrote. Only lines that are taken are read as examples.
    """
    items = sorted({item for one in lesson for item in asked_items(one.program)})
    said = [json.dumps(text, ensure_ascii=False) for text in items]
    lines = [
        line for line in read_text(pool).split("\n") if line
    ]  # other ends of lines may be said
    near = [at for at, line in enumerate(lines) if any(text in line for text in said)]
    random = Random(f"replay/{seed}")
    chosen = set(random.sample(near, min(len(near), count // 2)))
    others = [at for at in range(len(lines)) if at not in chosen]
    chosen.update(random.sample(others, min(len(others), count - len(chosen))))
    return [
        read_example(json.loads(lines[at]), f"line {at + 1}", str(pool)) for at in sorted(chosen)
    ]


def lesson_settings(old: Settings, folder: Path, start: Path, kb: str) -> Settings:
    """The settings of a run that goes on from an old one for a lesson."""
    rate = old.training.learning_rate * RATE
    whole = replace(
        old.training, epochs=EPOCHS, minutes=0.0, learning_rate=rate, warm_up=WARM_UP,
        validation=0, recombined=0.0,
    )  # fmt: skip
    return replace(
        old, kb=lasting(kb), beside=(), output=str(folder), start_from=lasting(str(start)), data="",
        train=lasting_file(folder, "train"), valid=lasting_file(folder, "valid"),
        test=lasting_file(folder, "test"), training=whole,
    )  # fmt: skip


def lasting_file(folder: Path, part: str) -> str:
    """Where the questions of a part of a run lie."""
    return str(folder.resolve() / f"{part}.jsonl")


# --- the new run ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lesson:
    """What a new run learns: corrections, questions like them, and old ones.

    ``valid`` and ``test`` are old questions that it does not learn: some that choose the best epoch
    and that confidences are fitted on, and those that are asked before and after.
    """

    corrections: Sequence[Example]
    similar: Sequence[Example]
    replay: Sequence[Example]
    valid: Sequence[Example]
    test: Sequence[Asked]

    @property
    def train(self) -> list[Example]:
        """All that is learnt in an epoch."""
        return [*self.replay, *self.similar, *(list(self.corrections) * COPIES)]


def learnt_in_all(folder: Path) -> Iterator[Example]:
    """All that a run has learnt whose lesson is written: what is of the lesson, then the rest."""
    lesson = islice(read_examples(folder / "train.jsonl"), read_learned(folder).get("replay"), None)
    return chain(lesson, read_examples(pool_of(folder)))


def pool_of(folder: Path) -> Path:
    """The file of the questions that a lesson of a run may replay."""
    return folder / (REPLAY if (folder / REPLAY).exists() else "train.jsonl")


def prepared(
    old: Path, corrections: Sequence[Correction], similar: Sequence[Example], replay: int, seed: int
) -> Lesson:
    """The lesson for a run; raises ReadError where its files of questions are not there."""
    taught = [one.example() for one in corrections]
    sample = replayed(pool_of(old), taught, replay, seed)
    valid = list(islice(read_examples(old / "valid.jsonl"), VALIDATED))
    return Lesson(taught, similar, sample, valid, list(read_questions(old / "test.jsonl")))


def write_lesson(
    folder: Path, old: Path, lesson: Lesson, about: Mapping[str, Any], corrections: Path
) -> None:
    """Begin the folder of a new run; what it learns is complete once ``learned.json`` is there.

    The file of ``corrections`` comes along, for further ones.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_examples(folder / "train.jsonl", lesson.train)
    write_examples(folder / "valid.jsonl", lesson.valid)
    write_examples(folder / "test.jsonl", lesson.test)
    write_examples(folder / LESSON, lesson.corrections)
    _linked(pool_of(old), folder / REPLAY)
    if corrections.exists():
        shutil.copyfile(corrections, folder / FILE)
    names = Sources(f"{old}: corrections and a sample", f"{old}: valid.jsonl", f"{old}: test.jsonl")
    with writing(folder / SOURCES) as file:
        json.dump(vars(names), file, ensure_ascii=False)
    write_learned(folder, about)


def _linked(source: Path, target: Path) -> None:
    """The same file at another place; a copy where the two cannot be one."""
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def write_learned(folder: Path, about: Mapping[str, Any]) -> None:
    """Write what is known of a lesson."""
    with writing(folder / LEARNED) as file:
        json.dump(about, file, ensure_ascii=False, indent=2)


def read_learned(folder: Path) -> dict[str, Any]:
    """What `write_learned` wrote; raises CheckpointError where it did not come so far."""
    try:
        found = json.loads((folder / LEARNED).read_text("utf-8"))
        if not isinstance(found, dict) or not isinstance(found.get("from"), str):
            raise ValueError("it does not say which run it went on from")
        return found
    except FileNotFoundError:
        raise CheckpointError(
            f"{folder}: no lesson was begun there; begin one with 'kopl learn --run RUN'"
        ) from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{folder / LEARNED}: damaged: {error}") from None


def begin(
    folder: Path, old: Path, settings: Settings, kb: KnowledgeBase, *, new_kb: bool = False,
    distributed: Distributed | None = None,
) -> training.Trainer:  # fmt: skip
    """The trainer of a new run whose lesson is written, from the best weights of the old one."""
    distributed = distributed or training.joined(settings)
    distributed.seed(settings.seed)
    train, valid = _parts(folder)
    model = restore(old, kb, new_kb=new_kb, settings=settings).extended(train)
    items, left = model.prepare(train)
    taught = {one.question for one in read_examples(folder / LESSON)}
    for question, reason in {one.question: why for one, why in left}.items():
        if question in taught:
            distributed.say(f"cannot be learnt: {question[:200]} ({reason})")
    if not items:
        raise TrainingError("none of the questions can be learnt")
    write_run(folder, model, Description.of(model, train))
    return training.Trainer(folder, model, distributed, items, valid)


def go_on(
    folder: Path, old: Path, settings: Settings, kb: KnowledgeBase, *, new_kb: bool = False,
    distributed: Distributed | None = None,
) -> training.Trainer:  # fmt: skip
    """The same where a training may have begun already, which is gone on with."""
    if not (folder / "resume.pt").exists():
        return begin(folder, old, settings, kb, new_kb=new_kb, distributed=distributed)
    train, valid = _parts(folder)
    return training.go_on(folder, kb, train, valid, distributed, settings=settings)


def _parts(folder: Path) -> tuple[list[Example], list[Example]]:
    """What is learnt, and what chooses the best epoch: some old questions and the corrections."""
    corrected = list(read_examples(folder / LESSON))
    valid = [*islice(read_examples(folder / "valid.jsonl"), CHOOSING), *corrected]
    return list(read_examples(folder / "train.jsonl")), valid


# --- before and after ----------------------------------------------------------------------------


class Asks(Protocol):
    """What is asked before and after: a parser, or what stands for one."""

    def ask(self, question: str) -> list[Answer]:
        """The predictions for a question, the best first."""


@dataclass(frozen=True)
class Said:
    """What a parser said to a question."""

    program: str | None
    answers: tuple[str, ...]
    right: bool
    confidence: float

    def to_json(self) -> dict[str, Any]:
        """What a line of the changes says of it."""
        return {
            "program": self.program, "answers": list(self.answers), "right": self.right,
            "confidence": round(self.confidence, 6),
        }  # fmt: skip


@dataclass(frozen=True)
class Change:
    """A question with what was said before a lesson and after; ``gold`` is what is right."""

    part: str
    question: str
    gold: tuple[str, ...]
    before: Said
    after: Said

    @property
    def is_one(self) -> bool:
        """Whether another answer is given now."""
        return not same_answers(self.before.answers, self.after.answers)

    def to_json(self) -> dict[str, Any]:
        """A line of ``changes.jsonl``."""
        return {
            "part": self.part, "question": self.question, "gold": list(self.gold),
            "before": self.before.to_json(), "after": self.after.to_json(),
        }  # fmt: skip


def say(parser: Asks, question: str, gold: Sequence[str]) -> Said:
    """What a parser answers, as ``kopl ask`` does, and whether that is right."""
    try:
        answer = next(iter(parser.ask(question)), None)
    except KoplError:
        answer = None
    if answer is None:
        return Said(None, (), False, 0.0)
    answers = answer.answers
    program = None if answer.program is None else str(answer.program)
    right = bool(answers) and same_answers(gold, answers)
    return Said(program, answers, right, answer.confidence)


def golden(example: Asked, parser: Parser) -> tuple[str, ...]:
    """What is right for a question: the stored answers, or what its program gives."""
    several: tuple[str, ...] = getattr(example, "answers", ())
    if several or example.answer is not None:
        return several or (example.answer or "",)
    if example.program is None:
        return ()
    form: AnswerForm | None = getattr(example, "answer_form", None)
    try:
        denotation = parser.model.language.executor.run(example.program).denotation
    except KoplError:
        return ()
    return tuple(answer_of(denotation, form, example.program))


def compared(
    before: Parser, after: Parser, parts: Mapping[str, Sequence[Asked]],
    done: Callable[[int], object] = lambda count: None,
) -> Iterator[Change]:  # fmt: skip
    """Every question of some parts asked before and after; those with no known answer left out."""
    for part, examples in parts.items():
        for example in examples:
            if gold := golden(example, before):
                was = say(before, example.question, gold)
                yield Change(part, example.question, gold, was, say(after, example.question, gold))
            done(1)


def summary(changes: Sequence[Change]) -> dict[str, dict[str, int]]:
    """By part: how many were asked, right before and after, and changed; better and worse."""
    found: dict[str, dict[str, int]] = {}
    for one in changes:
        own = found.setdefault(
            one.part, dict.fromkeys(("asked", "before", "after", "changed", "better", "worse"), 0)
        )
        own["asked"] += 1
        own["before"] += one.before.right
        own["after"] += one.after.right
        own["changed"] += one.is_one
        own["better"] += one.after.right and not one.before.right
        own["worse"] += one.before.right and not one.after.right
    return found
