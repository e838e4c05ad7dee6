"""What happened in a training: JSON lines, pictures, and the trackers that were asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

from kopl_base.errors import KoplError, ReadError
from kopl_base.stream import read_text, writing
from kopl_base.training.optimizer import StepResult

EPOCHS, STEPS, PLANS = "history.jsonl", "steps.jsonl", "schedule.jsonl"

# Steps that one line of `STEPS` is the mean of.
EVERY = 20


class History:
    """Writes the history of a run; only the first process does (``main``).

    ``tensorboard`` and ``wandb`` (the name of a project, or "") are trackers, ``settings`` what the
    latter shows of the run. ``draw`` makes pictures in the end, in the folder that it is given.
    """

    def __init__(
        self, folder: Path, main: bool = True, *, tensorboard: bool = False, wandb: str = "",
        settings: Mapping[str, Any] | None = None, draw: Callable[[Path], object] | None = None,
    ) -> None:  # fmt: skip
        self.folder, self.main = folder, main
        self._pictures = draw
        self._steps: list[StepResult] = []
        self._trackers: list[_Tracker] = []
        if main and tensorboard:
            self._trackers.append(_tensorboard(folder))
        if main and wandb:
            self._trackers.append(_wandb(folder, wandb, settings or {}))

    def __enter__(self) -> History:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.flush()
        if self.main and self._pictures:
            self._draw(self._pictures)
        for _, close in self._trackers:
            close()

    def cut(self, steps: int) -> None:
        """Forget what is later than the saved state, which would be told twice.

        Plans of later steps stay: they are followed again.
        """
        if not self.main:
            return
        kept = [r for r in read_history(self.folder) if r["step"] <= steps]
        _write(self.folder / EPOCHS, kept)
        _write(self.folder / STEPS, [r for r in read_steps(self.folder) if r["step"] <= steps])

    def step(self, number: int, step: StepResult) -> None:
        """Note a step of the optimizer."""
        self._steps.append(step)
        self._number = number
        if len(self._steps) >= EVERY:
            self.flush()

    def plan(self, step: int, left: int) -> None:
        """Note how many steps are planned behind one."""
        if self.main:
            _append(self.folder / PLANS, {"step": step, "left": left})

    def flush(self) -> None:
        """Write the steps that were noted."""
        steps, self._steps = self._steps, []
        if not steps or not self.main:
            return
        record = {
            "step": self._number,
            "loss": sum(step.loss for step in steps) / len(steps),
            "accuracy": sum(step.accuracy for step in steps) / len(steps),
            "rate": steps[-1].rate,
        }
        _append(self.folder / STEPS, record)
        self._track({f"train/{name}": record[name] for name in ("loss", "accuracy", "rate")})

    def epoch(self, record: dict[str, Any]) -> None:
        """Note an epoch."""
        self.flush()
        if not self.main:
            return
        _append(self.folder / EPOCHS, {**record, "step": self._number})
        self._track({f"epoch/{name}": value for name, value in record.items() if name != "epoch"})

    def _draw(self, draw: Callable[[Path], object]) -> None:
        if (self.folder / EPOCHS).exists():
            try:
                draw(self.folder)
            except KoplError as error:
                print(f"no pictures of the run: {error}", flush=True)

    def _track(self, figures: dict[str, float]) -> None:
        for log, _ in self._trackers:
            log(figures, self._number)


def check_trackers(tensorboard: bool, wandb: str) -> None:
    """Raise KoplError where the package of a tracker that was asked for is missing."""
    for wanted, package in ((tensorboard, "tensorboard"), (wandb, "wandb")):
        if wanted and find_spec(package) is None:
            raise KoplError(f"{package} is set, but not installed: pip install {package}")


def read_history(folder: Path) -> list[dict[str, Any]]:
    """One record for each epoch of a run: loss, accuracy, validation, examples a second.

    Raises ReadError for a record that lacks what a training writes.
    """
    return _read(folder / EPOCHS, ("epoch", "step", "loss", "accuracy", "validation"))


def read_steps(folder: Path) -> list[dict[str, Any]]:
    """Records of the steps of a run, each the mean of some: loss, accuracy, rate.

    Raises ReadError for a record that lacks what a training writes.
    """
    return _read(folder / STEPS, ("step", "loss", "accuracy", "rate"))


def read_plans(folder: Path) -> dict[int, int]:
    """The steps that were planned behind some of the steps; of the last plan made there.

    Raises ReadError for a record that lacks what a training writes.
    """
    return {r["step"]: r["left"] for r in _read(folder / PLANS, ("step", "left"))}


def _read(path: Path, needed: Sequence[str]) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    found = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        try:
            record = json.loads(line)
        except ValueError:  # a line that was being written when the machine stopped
            continue
        for name in needed:
            value = record.get(name) if isinstance(record, dict) else None
            if not isinstance(value, int | float):
                raise ReadError(
                    f"the record has no number {name!r}; delete the line",
                    place=f"line {number}", source=str(path),
                )  # fmt: skip
        found.append(record)
    return found


def _write(path: Path, records: list[dict[str, Any]]) -> None:
    if not records and not path.exists():
        return
    with writing(path) as file:
        for record in records:
            file.write(json.dumps(record) + "\n")


def _append(path: Path, record: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


# --- trackers ----------------------------------------------------------------------------------

# What logs figures of a step, and what ends it.
_Tracker = tuple[Callable[[dict[str, float], int], None], Callable[[], None]]


def _tensorboard(folder: Path) -> _Tracker:
    try:
        writer = import_module("torch.utils.tensorboard").SummaryWriter(str(folder / "tensorboard"))
    except ImportError:
        raise KoplError(
            "tensorboard=true needs the package tensorboard: pip install tensorboard"
        ) from None

    def log(figures: dict[str, float], step: int) -> None:
        for name, value in figures.items():
            writer.add_scalar(name, value, step)

    return log, writer.close


def _wandb(folder: Path, project: str, settings: Mapping[str, Any]) -> _Tracker:
    try:
        wandb: Any = import_module("wandb")
    except ImportError:
        raise KoplError("wandb=PROJECT needs the package wandb: pip install wandb") from None
    try:
        run = wandb.init(
            project=project, name=folder.name, dir=str(folder), config=settings,
        )  # fmt: skip
    except Exception as error:  # its own errors, and those of the network
        raise KoplError(
            f"Weights & Biases does not start: {error}; log in with 'wandb login', or set"
            " WANDB_MODE=offline"
        ) from None
    return (lambda figures, step: run.log(figures, step=step)), run.finish
