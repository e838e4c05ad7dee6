"""The file of a run that is under way, and what is known of it.

What is done lies in ``FILE.part``, as JSON lines whatever form is wanted, and how far it is in
``FILE.part.json``.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from generation.stats import ANSWERS, Statistics
from generation.unseen import Unseen, marks
from generation.workers import Line, Plan, Sources
from kb import KnowledgeBase
from kb.errors import KoplError, ReadError, WriteError
from kb.stream import writing
from kopl.cli import version
from kopl.example import Example


class Part:
    """The unfinished file of a run: ``kept`` questions so far, ``block`` is to be made next.

    ``statistics`` are those of the questions that are kept. Raises WriteError where nothing can be
    written or a stopped run is in the way, ReadError for a stopped run that does not fit.
    """

    def __init__(self, output: Path, plan: Plan, kb: KnowledgeBase, *, resume: bool) -> None:
        self.output, self.plan = output, plan
        self.path = output.with_name(f"{output.name}.part")
        self._state = output.with_name(f"{output.name}.part.json")
        self._about = _about(plan, kb)
        self._unseen = Unseen()
        self.statistics = Statistics(bound=ANSWERS)
        self.kept, self.block, self._size = 0, plan.shard[0], 0
        if resume and self._state.exists():
            self._go_on()
        elif self._state.exists():
            raise WriteError(
                f"{self.path}: a stopped run is there; --resume goes on with it, or remove it and"
                f" {self._state.name}"
            )
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "ab")  # noqa: SIM115 - closed by close()
            self._file.truncate(self._size)
        except OSError as error:
            raise WriteError(f"{self.path}: cannot be written: {error.strerror}") from None

    def _go_on(self) -> None:
        try:
            state = json.loads(self._state.read_text("utf-8"))
            about, self.block = state["about"], int(state["block"])
            self._size = int(state["bytes"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ReadError(f"not the state of a run: {error}", source=str(self._state)) from None
        for name, value in self._about.items():
            if about.get(name) != value:
                raise ReadError(
                    f"the stopped run had another {name}: {about.get(name)!r}, not {value!r};"
                    " give the same, or remove it",
                    source=str(self._state),
                )
        if not self.path.exists() and self.output.exists():
            raise ReadError(
                f"the run was complete, and {self.output.name} is there; remove this file",
                source=str(self._state),
            )
        try:
            with open(self.path, "rb") as file:
                while file.tell() < self._size:
                    example = Example.from_json(json.loads(file.readline()))
                    self._unseen.add(marks(example.question, example.program))
                    self.statistics.add(example)
                    self.kept += 1
        except (OSError, ValueError, KeyError, TypeError, KoplError) as error:
            raise ReadError(f"cannot go on with it: {error}", source=str(self.path)) from None
        if self.kept > self.plan.count:
            raise ReadError(
                f"the stopped run has {self.kept} questions already, more than {self.plan.count};"
                " ask for as many, or remove it",
                source=str(self.path),
            )

    def add(self, next_block: int, lines: Sequence[Line]) -> int:
        """Write what is new of a block, as far as it is wanted; gives how many lines that are."""
        new: list[Line] = []
        for line in lines:
            if self.kept + len(new) == self.plan.count:
                break
            if self._unseen.add(line.marks):
                new.append(line)
        data = "".join(line.text + "\n" for line in new).encode()
        try:
            self._file.write(data)
            self._file.flush()
            self._size += len(data)
            self.kept += len(new)
            if self.kept < self.plan.count:
                # Else it may have more, for a run that goes on to a larger count.
                self.block = next_block
            state = {"about": self._about, "block": self.block, "bytes": self._size}
            with writing(self._state) as file:
                json.dump(state, file)
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(self._size)
            reason = error.strerror or str(error)
            raise WriteError(
                f"{self.path}: cannot be written: {reason}; it has {self.kept} questions: go on"
                " with --resume when there is room"
            ) from None
        for line in new:
            self.statistics.count(line.figures)
        return len(new)

    def discard(self) -> None:
        """Remove what there is of the run, and let nothing stand in the way of another one."""
        self.close()
        self.path.unlink(missing_ok=True)
        self._state.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; it stays."""
        with suppress(OSError):
            self._file.close()

    def finish(self, convert: Callable[[Path], None] | None = None) -> None:
        """Let the file take its place, or what ``convert`` makes of it; then nothing is left.

        When ``convert`` fails, all stays as it is, to be finished another time.
        """
        if convert is not None:
            try:
                convert(self.path)
            except WriteError as error:
                raise WriteError(
                    f"{error}; {self.path} has all {self.kept} questions: --resume writes"
                    " them when there is room"
                ) from None
            self.path.unlink()
        else:
            try:
                os.replace(self.path, self.output)
            except OSError as error:
                raise WriteError(f"{self.output}: cannot be written: {error.strerror}") from None
        self._state.unlink(missing_ok=True)


def _about(plan: Plan, kb: KnowledgeBase) -> dict[str, Any]:
    """What must be the same for a stopped run to go on."""
    sources = Sources.of(plan)
    about = {
        "version of the toolkit": version(),
        "knowledge base": kb.fingerprint,
        "seed": plan.seed,
        "shard": plan.shard,
        "rules": _digest(sources.rules),
        "lexicon": _digest(sources.lexicon),
        **asdict(plan.options),
    }
    found: dict[str, Any] = json.loads(json.dumps(about))  # as it is read back
    return found


def _digest(text: str | None) -> str | None:
    return None if text is None else hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
