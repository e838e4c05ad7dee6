"""Pictures of a run, as PNG files: ``python -m parsers.plots RUN`` draws them again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from kopl_base.errors import KoplError
from kopl_base.packages import figure_class, save_png
from kopl_base.training.history import read_history, read_steps

SIZE = (6.0, 3.6)  # inches


def write_plots(folder: Path | str) -> list[Path]:
    """Draw the losses and the accuracies of a run into its folder, and say which files.

    Raises KoplError without the package matplotlib or where there is no history.
    """
    new_figure = figure_class()
    epochs, steps = read_history(Path(folder)), read_steps(Path(folder))
    if not epochs:
        raise KoplError(f"{folder}: there is no history; has the run ended an epoch?")
    ends = [record["step"] for record in epochs]
    written = []
    for name, draw in {"loss": _loss, "accuracy": _accuracy}.items():
        figure = new_figure(figsize=SIZE, layout="constrained")
        axes = figure.subplots()
        draw(axes, epochs, steps, ends)
        axes.set_xlabel("steps of the optimizer")
        axes.set_xlim(left=0)
        figure.legend(loc="outside upper right", ncols=2)
        path = Path(folder) / f"{name}.png"
        save_png(figure, path)
        written.append(path)
    return written


def _loss(axes: Any, epochs: list[Any], steps: list[Any], ends: list[int]) -> None:
    places = [record["step"] for record in steps]
    axes.plot(places, [record["loss"] for record in steps], alpha=0.5, label="steps")
    axes.plot(ends, [record["loss"] for record in epochs], marker="o", label="epochs")
    axes.set_ylabel("loss of a target")
    if all(record["loss"] > 0 for record in [*epochs, *steps]):
        axes.set_yscale("log")


def _accuracy(axes: Any, epochs: list[Any], steps: list[Any], ends: list[int]) -> None:
    accuracy = [100 * record["accuracy"] for record in epochs]
    axes.plot(ends, accuracy, marker="o", label="training, all targets right")
    validation = [100 * record["validation"] for record in epochs]
    axes.plot(ends, validation, marker="o", label="validation, answers")
    axes.set_ylabel("percent")
    axes.set_ylim(0, 100)


if __name__ == "__main__":
    try:
        for drawn in sys.argv[1:]:
            print(*write_plots(drawn), sep="\n")
    except KoplError as problem:
        sys.exit(f"plots: {problem}")
