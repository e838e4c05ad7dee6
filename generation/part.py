"""The questions of a run that is under way, and what is known of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from generation.stats import ANSWERS, Statistics
from generation.unseen import Unseen, marks
from generation.workers import Line, Plan, Sources
from kb import KnowledgeBase
from kopl.example import Example
from kopl_base.errors import KoplError, ReadError
from kopl_base.packages import version
from kopl_base.unfinished import Unfinished


class Part(Unfinished):
    """The unfinished file of a run: ``kept`` questions so far, ``block`` is to be made next.

    ``statistics`` are those of the questions that are kept. Raises WriteError where nothing can be
    written or a stopped run is in the way, ReadError for a stopped run that does not fit.
    """

    def __init__(self, output: Path, plan: Plan, kb: KnowledgeBase, *, resume: bool) -> None:
        self.plan = plan
        self.block = plan.shard[0]
        self.statistics = Statistics(bound=ANSWERS)
        self._unseen = Unseen()
        super().__init__(output, _about(plan, kb), "questions", resume=resume)
        if self.state is None:
            self.begin()
        else:
            self._go_on(self.state)

    def _go_on(self, state: dict[str, Any]) -> None:
        try:
            self.block, size = int(state["block"]), int(state["bytes"])
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise self.unreadable(error) from None
        kept = 0
        try:
            with open(self.path, "rb") as file:
                while file.tell() < size:
                    example = Example.from_json(json.loads(file.readline()))
                    self._unseen.add(marks(example.question, example.program))
                    self.statistics.add(example)
                    kept += 1
                if file.tell() != size:
                    raise ValueError("its lines do not end where they ended")
        except (OSError, ValueError, KeyError, TypeError, KoplError) as error:
            raise ReadError(f"cannot go on with it: {error}", source=str(self.path)) from None
        if kept > self.plan.count:
            raise ReadError(
                f"the stopped run has {kept} questions already, more than {self.plan.count};"
                " ask for as many, or remove it",
                source=str(self.path),
            )
        self.begin(size, kept)

    def add(self, next_block: int, lines: Sequence[Line]) -> int:
        """Write what is new of a block, as far as it is wanted; gives how many lines that are."""
        new: list[Line] = []
        for line in lines:
            if self.kept + len(new) == self.plan.count:
                break
            if self._unseen.add(line.marks):
                new.append(line)
        self.append("".join(line.text + "\n" for line in new), len(new))
        if self.kept < self.plan.count:
            # Else it may have more, for a run that goes on to a larger count.
            self.block = next_block
        self.save(block=self.block, bytes=self.size)
        for line in new:
            self.statistics.count(line.figures)
        return len(new)


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
