"""Running the generator into a file: workers, shards, and going on after a stop.

Blocks come in the order of their numbers whoever makes them, so that the file depends on the seed
alone. What is done lies in ``FILE.part``, and how far it is in ``FILE.part.json``; the file itself,
in whatever form, appears when it is complete.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from generation.blocks import NOTHING, GenerationError, Scarcity, put_together
from generation.conversion import (
    check_folder,
    check_form,
    form_named,
    is_folder,
    write_file,
    write_folder,
)
from generation.judge import Unseen, marks
from generation.makers import Block, BlockMaker, Plan, Sources, Start, processes
from generation.stats import ANSWERS, Statistics
from kb import KnowledgeBase, load
from kopl.example import Example, read_examples
from kopl_base.errors import ReadError, WriteError
from kopl_base.packages import version
from kopl_base.progress import Progress
from kopl_base.runs import FileJob, Gathering, in_order, work
from kopl_base.stream import COMPRESSED

__all__ = ["GenerationReport", "Plan", "run", "stream"]


@dataclass
class GenerationReport:
    """What a run did: kept questions, candidates by the reason why they were not, queries run.

    The statistics are those of all questions that the file has, those of a stopped run among them.
    """

    kept: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    statistics: Statistics = field(default_factory=lambda: Statistics(bound=ANSWERS))


def run(
    plan: Plan,
    output: Path | str,
    *,
    form: str | None = None,
    workers: int = 1,
    executor: Start | None = None,
    resume: bool = False,
    kb: KnowledgeBase | None = None,
    licence: str | None = None,
    wanted: Callable[[int, Block], int] | None = None,
) -> GenerationReport:
    """Write the questions of a plan as a file, compressed as its name says, or as a folder.

    ``form`` is one of `generation.conversion.FORMATS`; else the name's ending says it, and other
    names are JSON lines. Parquet is a folder with a data card, which states the ``licence``, unless
    the name ends in ".parquet". The blocks are made by as many ``workers`` on this machine, or by a
    ``executor``. ``kb`` is the plan's knowledge base, where it is open already. ``wanted``
    is told after each block how many questions there are, and says how many there are to be at
    last, at most the plan's count: they are the first ones of the plan's.

    Raises GenerationError when there are no more questions or workers ended, ReadError for a
    stopped run that does not fit, WriteError for a file that cannot be written; what was made stays
    in ``FILE.part`` then, and ``resume`` goes on with it, also where only the last step is missing.
    Where an error comes before the first question, nothing is left.
    """
    form = form or form_named(output) or "jsonl"
    target = _target(Path(output), form)
    kb = kb if kb is not None else load(plan.kb, cache=plan.cache)
    questions = Questions(plan, wanted)
    job = FileJob(questions, target, _about(plan, kb), resume=resume)
    if job.kept > plan.count:
        job.close()
        raise ReadError(
            f"the stopped run has {job.kept} questions already, more than {plan.count};"
            " ask for as many, or remove it",
            source=str(job.path),
        )
    start = executor or processes(workers)
    work(job, in_order(job, start(plan, kb)), Progress("generating questions", plan.count))
    if not questions.complete:
        if not job.kept:
            job.discard()
            raise GenerationError(NOTHING)
        raise GenerationError(
            f"the knowledge base yields {job.kept} different questions, not"
            f" {questions.plan.count}; {job.path} has them, and -n {job.kept} --resume makes"
            " a whole file of them"
        )
    if form == "jsonl" and target.suffix not in COMPRESSED:
        job.finish()
        return questions.report

    def convert(lines: Path) -> None:
        examples = read_examples(lines)
        if is_folder(target, form):
            from generation.parquet import Origin

            origin = Origin.of(plan, kb)
            write_folder(target, {"train": examples}, form, licence=licence, origin=origin)
        else:
            write_file(target, examples, form)

    job.finish(convert)
    return questions.report


def _target(output: Path, form: str) -> Path:
    """The file or folder to be made; what a link leads to is written, the link stays.

    Raises KoplError before any work for what cannot be written at its end.
    """
    check_form(output, form)
    target = Path(os.path.realpath(output))
    if form == "parquet":
        from generation.parquet import schema

        schema()
    if is_folder(target, form):
        check_folder(target, ["data/train-00000-of-00001.parquet"])
    elif target.exists() and not target.is_file():
        raise WriteError(f"{target}: cannot be written: it is no ordinary file; '-' streams")
    return target


class Questions(Gathering[Block]):
    """The questions of a plan so far; ``wanted`` may lower their number, as in `run`."""

    unit, failure = "questions", GenerationError

    def __init__(self, plan: Plan, wanted: Callable[[int, Block], int] | None = None) -> None:
        self.plan, self.report = plan, GenerationReport()
        self._wanted, self._next = wanted, plan.shard[0]
        self._unseen, self._scarcity, self._scarce = Unseen(), Scarcity(), False

    @property
    def complete(self) -> bool:
        """Whether there are as many as are wanted."""
        return self.kept >= self.plan.count

    def blocks(self, workers: int) -> Iterator[tuple[int]]:
        if self.complete or self._scarce:
            return
        for place, number in enumerate(self.plan.numbers(self._next)):
            if place >= workers and not self.plan.needs(number):
                return
            yield (number,)

    def take(self, block: tuple[int], made: Block) -> list[str]:
        room, report = self.plan.count - self.kept, self.report
        new = list(islice((line for line in made.lines if self._unseen.add(line.marks)), room))
        self.kept = report.kept = self.kept + len(new)
        report.reasons.update(made.reasons)
        report.compared += made.compared
        for line in new:
            report.statistics.count(line.figures)
        if not self.complete:
            # Else it may have more, for a run that goes on to a larger count.
            self._next = block[0] + self.plan.shard[1]
        if self._wanted is not None:
            fewer = max(self.kept, min(self.plan.count, self._wanted(self.kept, made)))
            self.plan = replace(self.plan, count=fewer)
        self._scarce = self._scarcity.after(len(new))
        return [line.text for line in new]

    def state(self) -> dict[str, Any]:
        return {"block": self._next}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._next = int(state["block"])

    def recall(self, line: str) -> None:
        example = Example.from_json(json.loads(line))
        self._unseen.add(marks(example.question, example.program))
        self.report.statistics.add(example)
        self.kept = self.report.kept = self.kept + 1


def _about(plan: Plan, kb: KnowledgeBase) -> dict[str, Any]:
    """What must be the same for a stopped run to go on."""
    sources = Sources.of(plan)
    return {
        "version of the toolkit": version(),
        "knowledge base": kb.fingerprint,
        "seed": plan.seed,
        "shard": plan.shard,
        "rules": _digest(sources.rules),
        "lexicon": _digest(sources.lexicon),
        **asdict(plan.options),
    }


def _digest(text: str | None) -> str | None:
    return None if text is None else hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def stream(plan: Plan, kb: KnowledgeBase) -> Iterator[Example]:
    """The questions of a plan, one by one, in this process."""
    maker = BlockMaker(plan, kb).maker
    blocks = (maker.block(plan.seed, number) for number in plan.numbers(plan.shard[0]))
    return put_together(blocks, plan.count, Unseen())
