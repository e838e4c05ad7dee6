"""Which run ``kopl ask`` asks where none is named: the newest, or one that it offers to train."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from pathlib import Path

from kopl_base.errors import KoplError

# Where runs are saved unless their settings say otherwise.
RUNS = Path("runs")

# What a run must have to be asked; its weights are there once an epoch is validated.
WEIGHTS = "best.safetensors"
PARTS = ("settings.json", "parser.json", WEIGHTS)

TRAIN = "kopl train"


def trained(folder: Path = RUNS) -> list[Path]:
    """The runs in a folder that can be asked, that with the newest weights first."""
    try:
        found = [one for one in folder.iterdir() if all((one / part).is_file() for part in PARTS)]
    except OSError:
        return []
    return sorted(found, key=lambda one: (-_moment(one), one.name))


def last_run(folder: Path = RUNS) -> Path:
    """The newest run, told on standard error; where there is none, one that is trained now.

    That is asked for on a terminal only. Raises KoplError with the command that trains one where
    nobody can be asked, or says no.
    """
    if not (found := trained(folder)):
        _train(folder)
        found = trained(folder)
    if not found:
        raise KoplError(
            f"{folder} has no trained run; train one with '{TRAIN}', or name one: --run"
        )
    run = found[0]
    when = datetime.fromtimestamp(_moment(run)).strftime("%Y-%m-%d %H:%M")
    others = f", the newest of {len(found)}" if len(found) > 1 else ""
    print(f"kopl: asking {run}, trained {when}{others}", file=sys.stderr)
    return run


def check_run(folder: Path) -> None:
    """Raise KoplError where a folder can be seen at once to be no run that can be asked."""
    if not folder.is_dir():
        raise KoplError(f"{folder}: there is no such run; train one with '{TRAIN}'")
    if missing := [part for part in PARTS if not (folder / part).is_file()]:
        raise KoplError(f"{folder}: not a run that can be asked: it has no {missing[0]}")


def _moment(run: Path) -> float:
    return (run / WEIGHTS).stat().st_mtime


def _train(folder: Path) -> None:
    """Offer to train a run, and do so; nothing where nobody is there to say yes."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    print(
        f"kopl: {folder} has no trained run. '{TRAIN}' makes questions over the bundled knowledge"
        f" base\nand trains a parser on them{_duration()}. Shall it? [y/N] ",
        end="", file=sys.stderr, flush=True,
    )  # fmt: skip
    if sys.stdin.readline().strip().casefold() not in ("y", "yes"):
        return
    if status := subprocess.run([sys.executable, "-m", "kopl", "train"], check=False).returncode:
        raise KoplError(f"'{TRAIN}' ended with status {status}")


def _duration() -> str:
    """How long a training takes at most, by the settings that it goes by."""
    from kopl_cli.common import configs_folder, torch_is_needed

    with torch_is_needed():
        from parsers.settings import read_settings
    settings = read_settings(configs_folder() / "default.yaml", [])
    most, cores = settings.training.minutes, settings.threads
    return f": at most {most:g} minutes on {cores} processor cores" if most else ""
