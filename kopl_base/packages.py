"""Packages that not everybody needs: imported when they are asked for, with a clear error."""

from __future__ import annotations

import shlex
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from kopl_base.errors import KoplError
from kopl_base.stream import writing


def version() -> str:
    """The installed version of the toolkit, or "unknown" in a clone that is not installed."""
    try:
        return metadata.version("kopl-toolkit")
    except metadata.PackageNotFoundError:
        return "unknown"


def install(extra: str = "") -> str:
    """The command that installs the toolkit with an extra, as it was installed here before."""
    top = Path(__file__).resolve().parents[1]
    brackets = f"[{extra}]" if extra else ""
    if not (top / "setup.cfg").is_file():
        return f"pip install {shlex.quote(f'kopl-toolkit{brackets}')}"
    # A clone, from which it runs or is installed as editable.
    place = "." if top == Path.cwd() else str(top)
    return f"pip install -e {shlex.quote(place + brackets)}"


def needs(what: str, *packages: str, extra: str = "") -> str:
    """The sentence of an error: what needs which packages of an extra, and how to install them."""
    several = len(packages) > 1
    return (
        f"{what}: the package{'s' * several} {' and '.join(packages)}"
        f" {'are' if several else 'is'} not installed; install {'them' if several else 'it'} with:"
        f" {install(extra)}"
    )


def figure_class() -> Any:
    """The class of matplotlib's figures; raises KoplError without the package."""
    try:
        return import_module("matplotlib.figure").Figure
    except ImportError:
        raise KoplError(needs("plots", "matplotlib", extra="plots")) from None


def save_png(figure: Any, path: Path, dpi: int = 150) -> None:
    """Write a figure as a PNG file; raises WriteError."""
    with writing(path, binary=True) as file:
        # Without the version of matplotlib the same figures give the same bytes.
        figure.savefig(file, format="png", dpi=dpi, metadata={"Software": None})
