"""The steps of a series of measurements: commands that are run once, and what came of them.

A step is a command and the file or folder that it makes. Beside the latter lies a note with the
command, the seconds it took and the machine; a step with such a note is not run again, so that an
interrupted series goes on where it was. A step whose input was made anew is run again, too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks.parsing.tables import cores, machine
from kb import KoplError
from kopl_base.stream import read_text, writing

ROOT = Path(__file__).resolve().parents[2]
DEFAULT = ROOT / "configs" / "generated.yaml"

# How many questions are made over the bundled knowledge base, as the config says, and of
# these the share that tests.
QUESTIONS, TESTED = 20_000, 0.1
# What `python train.py` generates with: not the deepest questions, and no queries.
GENERATION = ("--levels", "7", "--no-sparql", "--quiet")

INTERRUPTED = 130


class StepError(KoplError):
    """A step that failed, or whose place is taken by something else."""

    kind = "benchmark"


@dataclass(frozen=True)
class Done:
    """A step that is done: what it made, how long it took, when and where."""

    product: Path
    seconds: float
    stamp: str
    machine: str
    date: str

    @property
    def where(self) -> str:
        """Date and machine, as tables of performance begin with."""
        return f"{self.date}, {self.machine}"


@dataclass
class Series:
    """Runs steps, and remembers which ones the part at hand asked for.

    ``changes`` are the pairs of ``--set`` for every training. ``again``: the parts whose steps
    are run although they were before. ``chosen``: the seeds that were asked for, or none.
    """

    output: Path
    chosen: Sequence[int] = ()
    changes: Sequence[str] = ()
    again: Collection[str] = ()
    questions: int = QUESTIONS
    used: list[Done] = field(default_factory=list)
    _fresh: set[str] = field(default_factory=set)

    @property
    def tested(self) -> int:
        """How many questions a test set of its own has."""
        return max(1, round(self.questions * TESTED))

    def seeds(self, *usual: int) -> tuple[int, ...]:
        """The seeds that were asked for, else the usual ones of a part."""
        return tuple(self.chosen) or usual

    def train(
        self, name: str, config: Path, pairs: Sequence[str], after: Sequence[Done] = ()
    ) -> Done:
        """The folder of a run that ``train.py`` made; its seconds are those of the whole command.

        ``name`` begins with the part, as in ``default/seed-1``.
        """
        run = self.output / name
        command = [sys.executable, str(ROOT / "train.py"), "--config", str(config)]
        for pair in (*pairs, *self.changes, f"output={run}"):
            command += ["--set", pair]
        return self.step(name, command, run, after)

    def evaluate(
        self, name: str, run: Done, *arguments: str, after: Sequence[Done] = ()
    ) -> dict[str, Any]:
        """What ``eval.py --json`` says of one run with some arguments."""
        product = self.output / f"{name}.json"
        command = [sys.executable, str(ROOT / "eval.py"), str(run.product), *arguments, "--json"]
        done = self.step(name, command, product, (run, *after), captured=True)
        [report] = read_json(done.product)["runs"]
        return dict(report)

    def generate(
        self, name: str, kb: str, count: int, seed: int, *arguments: str,
        after: Sequence[Done] = (),
    ) -> Done:  # fmt: skip
        """A file of questions that ``kopl generate`` made with all cores."""
        product = self.output / f"{name}.jsonl"
        command = [sys.executable, "-m", "kopl", "generate", "--kb", kb, "-n", str(count)]
        command += ["-s", str(seed), "--workers", str(cores()), *GENERATION]
        return self.step(name, [*command, *arguments, "-o", str(product)], product, after)

    def step(
        self, name: str, command: Sequence[str], product: Path, after: Sequence[Done] = (),
        *, captured: bool = False, environment: dict[str, str] | None = None,
    ) -> Done:  # fmt: skip
        """Run a command that makes the product, unless it was run before, on the same inputs.

        ``captured``: the product is what the command prints. Raises StepError when the command
        fails, when another one made the product, and when a stranger's file or folder is there.
        """
        note = self.output / f"{name}.step.json"
        written = [self._shown(part) for part in command[1:]]
        inputs = [done.stamp for done in after]
        found = self._done(note, product)
        wanted_again = name.partition("/")[0] in self.again and name not in self._fresh
        if found and not wanted_again:
            if found["command"] != written:
                raise StepError(
                    f"{product}: was made by another command ({' '.join(found['command'])});"
                    " --again makes it anew, another --output keeps it"
                )
            if found["inputs"] == inputs:
                tell(f"{name}: done before, in {found['seconds']:.0f} s")
                return self._use(product, found)
        if not note.exists() and _holds_something(product):
            raise StepError(f"{product}: is not of this series; name another --output")
        product.parent.mkdir(parents=True, exist_ok=True)
        # A note without its end: what lies there is of a step that did not finish.
        _write(note, {"command": written})
        if product.is_dir():
            shutil.rmtree(product)
        # `kopl generate` would want to go on with what it left.
        for rest in ("", ".part", ".part.json"):
            Path(f"{product}{rest}").unlink(missing_ok=True)
        tell(f"{name}: {' '.join(written)}")
        begin = time.perf_counter()
        _run(command, product if captured else None, environment)
        seconds = time.perf_counter() - begin
        if not product.exists():
            raise StepError(f"{product}: was not made by: {' '.join(written)}")
        now = datetime.now(timezone.utc)
        end = {
            "command": written, "inputs": inputs, "seconds": seconds, "machine": machine(),
            "date": now.date().isoformat(), "stamp": now.isoformat(),
        }  # fmt: skip
        _write(note, end)
        self._fresh.add(name)
        tell(f"{name}: {seconds:.0f} s")
        return self._use(product, end)

    def _shown(self, part: str) -> str:
        """A part of a command without the folders that may lie elsewhere tomorrow."""
        return part.replace(str(self.output), "OUTPUT").replace(f"{ROOT}{os.sep}", "")

    @staticmethod
    def _done(note: Path, product: Path) -> dict[str, Any] | None:
        """The note of a finished step, or None."""
        if not note.exists() or not product.exists():
            return None
        found = read_json(note)
        return found if "stamp" in found else None

    def _use(self, product: Path, note: dict[str, Any]) -> Done:
        facts = {key: note[key] for key in ("seconds", "stamp", "machine", "date")}
        done = Done(product, **facts)
        self.used.append(done)
        return done


def _holds_something(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()


def _run(command: Sequence[str], output: Path | None, environment: dict[str, str] | None) -> None:
    """Run a command to its end; what it prints goes to a file, else to standard error.

    On an interrupt it is waited for, as it may have something to save.
    """
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {**os.environ, **(environment or {}), "PYTHONPATH": os.pathsep.join(paths)}
    stdout = subprocess.PIPE if output else sys.stderr
    with subprocess.Popen(command, stdout=stdout, text=True, env=variables) as process:
        while True:
            try:
                printed, _ = process.communicate()
                break
            except KeyboardInterrupt:
                process.wait()
                raise
    if process.returncode == INTERRUPTED:
        raise KeyboardInterrupt
    if process.returncode:
        raise StepError(f"ended with status {process.returncode}: {' '.join(command[1:])}")
    if output:
        with writing(output) as file:
            file.write(printed)


def read_json(path: Path) -> dict[str, Any]:
    """The object of a JSON file; raises StepError when it holds something else."""
    try:
        found = json.loads(read_text(path))
    except ValueError as error:
        raise StepError(f"{path}: not JSON: {error}") from None
    if not isinstance(found, dict):
        raise StepError(f"{path}: an object was expected")
    return found


def settings_of(run: Path) -> dict[str, Any]:
    """The settings that a run was trained with."""
    return read_json(run / "settings.json")


def history_of(run: Path) -> list[dict[str, Any]]:
    """One record for each epoch of a run."""
    return [json.loads(line) for line in read_text(run / "history.jsonl").splitlines()]


def tell(message: str) -> None:
    """Say on standard error how far the series is."""
    print(f"· {message}", file=sys.stderr, flush=True)


def _write(path: Path, content: dict[str, Any]) -> None:
    with writing(path) as file:
        file.write(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
