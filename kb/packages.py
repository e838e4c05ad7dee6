"""Packages that not everybody needs: imported when they are asked for, with a clear error."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from kb.errors import KoplError
from kb.stream import writing


def figure_class() -> Any:
    """The class of matplotlib's figures; raises KoplError without the package."""
    try:
        return import_module("matplotlib.figure").Figure
    except ImportError:
        raise KoplError(
            "plots need the package matplotlib: pip install 'kopl-toolkit[plots]'"
        ) from None


def save_png(figure: Any, path: Path, dpi: int = 150) -> None:
    """Write a figure as a PNG file; raises WriteError."""
    with writing(path, binary=True) as file:
        # Without the version of matplotlib the same figures give the same bytes.
        figure.savefig(file, format="png", dpi=dpi, metadata={"Software": None})


def arrow_packages() -> tuple[Any, Any]:
    """pyarrow and its module for Parquet; raises KoplError without them."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise KoplError(
            "Parquet files need the package pyarrow: pip install 'kopl-toolkit[parquet]'"
        ) from None
