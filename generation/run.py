"""Running the generator into a file: workers, shards, and going on after a stop.

Blocks come in the order of their numbers whoever makes them, so that the file depends on the seed
alone. What is done lies in ``FILE.part``, and how far it is in ``FILE.part.json``; the file itself,
in whatever form, appears when it is complete.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from generation.conversion import (
    check_folder,
    check_form,
    form_named,
    is_folder,
    write_file,
    write_folder,
)
from generation.part import Part
from generation.pipeline import NOTHING, GenerationError, Scarcity, put_together
from generation.stats import ANSWERS, Statistics
from generation.unseen import Unseen
from generation.workers import Block, Crew, Plan, Worker, processes
from kb import KnowledgeBase, load
from kopl.example import Example, read_examples
from kopl_base.errors import KoplError, WriteError
from kopl_base.processes import LostWorkerError
from kopl_base.progress import ProgressBar

__all__ = ["Plan", "Report", "run", "stream"]


@dataclass
class Report:
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
    crew: Crew | None = None,
    resume: bool = False,
    kb: KnowledgeBase | None = None,
    licence: str | None = None,
    wanted: Callable[[int, Block], int] | None = None,
) -> Report:
    """Write the questions of a plan as a file, compressed as its name says, or as a folder.

    ``form`` is one of `generation.conversion.FORMATS`; else the name's ending says it, and other
    names are JSON lines. Parquet is a folder with a data card, which states the ``licence``, unless
    the name ends in ".parquet". The blocks are made by as many ``workers`` on this machine, or by a
    ``crew``. ``kb`` is the plan's knowledge base, where it is open already. ``wanted`` is
    told after each block how many questions there are, and says how many there are to be at last,
    at most the plan's count: they are the first ones of the plan's.

    Raises GenerationError when there are no more questions or workers ended, ReadError for a
    stopped run that does not fit, WriteError for a file that cannot be written; what was made stays
    in ``FILE.part`` then, and ``resume`` goes on with it, also where only the last step is missing.
    Where an error comes before the first question, nothing is left.
    """
    form = form or form_named(output) or "jsonl"
    target = _target(Path(output), form)
    kb = kb if kb is not None else load(plan.kb, cache=plan.cache)
    part = Part(target, plan, kb, resume=resume)
    try:
        report = _fill(part, kb, crew or processes(workers), wanted)
    finally:
        part.close()
    if form == "jsonl" and target.suffix not in (".gz", ".bz2", ".xz"):
        part.finish()
        return report

    def convert(lines: Path) -> None:
        examples = read_examples(lines)
        if is_folder(target, form):
            from generation.card import Origin

            origin = Origin.of(plan, kb)
            write_folder(target, {"train": examples}, form, licence=licence, origin=origin)
        else:
            write_file(target, examples, form)

    part.finish(convert)
    return report


def _target(output: Path, form: str) -> Path:
    """The file or folder to be made; what a link leads to is written, the link stays.

    Raises KoplError before any work for what cannot be written at its end.
    """
    check_form(output, form)
    target = Path(os.path.realpath(output))
    if form == "parquet":
        from generation.tables import schema

        schema()
    if is_folder(target, form):
        check_folder(target, ["data/train-00000-of-00001.parquet"])
    elif target.exists() and not target.is_file():
        raise WriteError(f"{target}: cannot be written: it is no ordinary file; '-' streams")
    return target


def _fill(
    part: Part, kb: KnowledgeBase, crew: Crew, wanted: Callable[[int, Block], int] | None
) -> Report:
    """Bring the unfinished file to as many questions as its plan wants."""
    plan, scarcity = part.plan, Scarcity()
    report = Report(part.kept, statistics=part.statistics)
    blocks = crew(plan, kb, part.block)
    try:
        with ProgressBar("generating questions", plan.count) as bar:
            bar.reach(part.kept)
            while part.kept < plan.count:
                number, block = next(blocks)
                report.reasons.update(block.reasons)
                report.compared += block.compared
                new = part.add(number + plan.shard[1], block.lines)
                report.kept = part.kept
                bar.reach(part.kept)
                if wanted is not None:
                    fewer = max(part.kept, min(plan.count, wanted(part.kept, block)))
                    plan = part.plan = replace(plan, count=fewer)
                if scarcity.after(new) and part.kept < plan.count:
                    if not part.kept:
                        raise GenerationError(NOTHING)
                    raise GenerationError(
                        f"the knowledge base yields {part.kept} different questions, not"
                        f" {plan.count}; {part.path} has them, and -n {part.kept} --resume makes"
                        " a whole file of them"
                    )
    except LostWorkerError as error:
        raise GenerationError(
            f"{error}; {part.path} has {part.kept} questions: go on with --resume (and fewer"
            " workers, if memory was short)"
        ) from None
    except KoplError:
        if not part.kept:
            part.discard()  # no run has anything to go on with
        raise
    finally:
        blocks.close()
    return report


def stream(plan: Plan, kb: KnowledgeBase) -> Iterator[Example]:
    """The questions of a plan, one by one, in this process."""
    maker = Worker(plan, kb).maker
    blocks = (maker.block(plan.seed, number) for number in plan.numbers(plan.shard[0]))
    return put_together(blocks, plan.count, Unseen())
