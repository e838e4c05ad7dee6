"""Finds files of the PyPI package ``kopl``, which uses the same import name as we do."""

from __future__ import annotations

from pathlib import Path

# Files of KoPL 0.0.5 that no module of ours is called after.
FOREIGN_FILES = ("kopl.py", "data.py", "util.py")

MESSAGE = (
    "The package 'KoPL' from PyPI is installed in the same place as kopl-toolkit and both are "
    "imported as 'kopl' (found: {found}). Uninstall it and install the toolkit again:\n"
    "    pip uninstall KoPL\n"
    "    pip install --force-reinstall --no-deps kopl-toolkit"
)


def foreign_files(folder: Path) -> list[Path]:
    """The files of the other package that lie in ``folder`` (our ``kopl`` folder)."""
    return [folder / name for name in FOREIGN_FILES if (folder / name).exists()]


def refuse_foreign_package(folder: Path | None = None) -> None:
    """Raise ImportError with what to uninstall when the other package's files are beside ours."""
    folder = folder or Path(__file__).resolve().parent.parent / "kopl"
    if found := foreign_files(folder):
        raise ImportError(MESSAGE.format(found=", ".join(map(str, found))))
