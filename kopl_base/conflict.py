"""Others who use the names of our packages: what lies where, and what to do.

Packages of PyPI and files of users are called ``kb``, ``kopl``, ``parsers``, … as well. Each of our
packages with such a name runs `refuse_others` before anything else, and so does the command line.
Nobody else uses ``kopl_base`` and ``kopl_cli``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path

# Our packages whose names others use, each with those of them that it imports.
PACKAGES = {
    "kb": ("kb",),
    "kopl": ("kb", "kopl"),
    "generation": ("kb", "kopl", "generation"),
    "parsers": ("kb", "kopl", "parsers"),
    "cqa": ("kb", "kopl", "cqa"),
}
# The folder that they lie in: a clone, or site-packages.
HOME = Path(__file__).resolve().parents[1]
# What the first file of each of our packages says, and no other's.
_OURS = "kopl_base.conflict"

_MOST = 4  # files that a message names


def refuse_others(*packages: str, home: Path = HOME) -> None:
    """Raise ImportError when other files are found under a name that the packages need.

    The message names the files and what to do. The command ``kopl`` ends with it and status 2.
    """
    needed = dict.fromkeys(name for package in packages for name in PACKAGES[package])
    message = mixed(home, packages) or elsewhere(needed, home)
    if message is None:
        return
    # Inside a command an error would be shown with the places in our code that it went through.
    if _is_command((getattr(sys, "argv", None) or [""])[0]):
        print(f"kopl: {message}", file=sys.stderr)
        raise SystemExit(2)
    raise ImportError(message)


def _is_command(started_as: str) -> bool:
    """Whether this is the name of ``kopl``, or of ``python -m kopl``, which may only begin."""
    path = Path(started_as)
    return started_as == "-m" or path.stem == "kopl" or path.parts[-2:] == ("kopl", "__main__.py")


def mixed(home: Path = HOME, packages: Iterable[str] = PACKAGES) -> str | None:
    """What is wrong with the installed files: others lie among them, or some are gone; or None.

    Two distributions with packages of one name share its folder, and the one that is installed
    last, or uninstalled, takes files of the other. Names are compared with what pip noted, and the
    sizes of all files of the packages given: each looks at its own when it is imported. A clone is
    not looked into: pip puts no files of others there.
    """
    try:
        installed = [name for name in os.listdir(home) if name.startswith("kopl_toolkit-")]
    except OSError:
        return None
    recorded = _recorded([home / folder for folder in installed])
    if not recorded:
        return None
    written = {"/".join(name.split("/", 2)[:2]) for name in recorded}
    foreign: list[Path] = []
    gone: list[Path] = []
    changed: list[str] = []
    for package in PACKAGES:
        first = home / package / "__init__.py"
        if not first.exists():
            gone.append(first)
            continue
        if _OURS not in first.read_text("utf-8", errors="replace"):
            foreign.append(first)
        for entry in sorted(os.listdir(home / package)):
            path = home / package / entry
            if f"{package}/{entry}" not in written and _is_code(path):
                foreign.append(path)
    wanted = set(packages)
    for name, size in recorded.items() if len(installed) == 1 else ():
        if name.partition("/")[0] not in wanted:
            continue
        try:
            if os.stat(f"{home}/{name}").st_size != size:
                changed.append(name)
        except OSError:
            gone.append(home / name)
    # A file may have been edited on purpose; one that another distribution lists was overwritten.
    if changed and not foreign:
        foreign = [home / name for name in changed if _distributions([name], home)]
    gone = sorted(set(gone))
    reinstall = f"pip install --force-reinstall --no-deps {_source(home / installed[0])}"
    if foreign:
        names = sorted({path.relative_to(home).parts[0] for path in foreign})
        others = _distributions(names, home)
        who = f" ({', '.join(others)})" if others else ""
        return (
            f"another package{who} has files in the folders of kopl-toolkit:"
            f" {_listed(foreign)}. Both are imported as {_quoted(names)} and cannot share an"
            f" environment. Give the other one an environment of its own:\n"
            f"    pip uninstall {' '.join(others) or 'THE-OTHER-PACKAGE'}\n    {reinstall}"
        )
    if gone:
        return (
            f"files of kopl-toolkit are gone: {_listed(gone)}. Uninstalling another package that"
            f" used the same folder takes them along. Install the toolkit again:\n    {reinstall}"
        )
    return None


def _recorded(folders: Iterable[Path]) -> dict[str, int]:
    """The files in our packages that pip wrote, with their sizes."""
    sizes: dict[str, int] = {}
    for folder in folders:
        try:
            lines = (folder / "RECORD").read_text("utf-8").splitlines()
        except OSError:
            continue
        for line in lines:
            name, _, size = line.rsplit(",", 2) if line.count(",") > 1 else (line, "", "")
            if size.isdigit() and name.partition("/")[0] in PACKAGES:
                sizes[name] = int(size)
    return sizes


def _source(folder: Path) -> str:
    """What pip installed us from: the file or address that it noted, or the name on the index."""
    import json
    import shlex
    from urllib.parse import unquote, urlsplit

    try:
        noted = json.loads((folder / "direct_url.json").read_text("utf-8"))
        url = str(noted["url"])
        if "vcs_info" in noted:
            url = f"{noted['vcs_info']['vcs']}+{url}@{noted['vcs_info']['commit_id']}"
        parts = urlsplit(url)
    except (OSError, ValueError, TypeError, LookupError):
        return "kopl-toolkit"
    return shlex.quote(unquote(parts.path) if parts.scheme == "file" else url)


def names_of(package: str) -> Callable[[], list[str]]:
    """The ``__dir__`` of a package of ours: its public names, without what looks for others."""

    def names() -> list[str]:
        module = sys.modules[package]
        its = [f"__{name}__" for name in ("doc", "file", "name", "path", "version")]
        return sorted([*getattr(module, "__all__", ()), *(n for n in its if hasattr(module, n))])

    return names


def elsewhere(names: Iterable[str], home: Path = HOME) -> str | None:
    """Which of the names Python finds in another place than beside us, and what to do; or None."""
    for name in names:
        try:
            spec = find_spec(name)
        except ValueError:  # put into sys.modules by hand
            continue
        if spec is None or spec.origin is None or not os.path.exists(spec.origin):
            continue  # the import tells
        found, ours = Path(spec.origin), home / name / "__init__.py"
        if ours.exists() and os.path.samefile(found, ours):
            continue
        place = found.parent if found.name == "__init__.py" else found
        others = _distributions([name], place.parent)
        if others:
            advice = (
                f"It belongs to the package {' and '.join(others)}, which cannot share an"
                f" environment with kopl-toolkit:\n    pip uninstall {' '.join(others)}"
            )
        else:
            advice = (
                f"Rename it, and what imports it; or move it out of {place.parent}, or run Python"
                " in a way that does not look there first"
            )
        return f"'import {name}' finds {place}, but kopl-toolkit needs {ours.parent}. {advice}"
    return None


def _is_code(path: Path) -> bool:
    """Whether something can be imported from there; not so of caches and of notes."""
    return path.suffix == ".py" or (path.name != "__pycache__" and any(path.glob("*.py")))


def _distributions(names: Iterable[str], folder: Path) -> list[str]:
    """The installed distributions in the folder, besides us, that have a file or package so named.

    Files are named as their paths in the folder.
    """
    from importlib.metadata import distributions

    wanted, found = set(names), set()
    for distribution in distributions(path=[str(folder)]):
        name = distribution.metadata["Name"]
        if name != "kopl-toolkit" and any(
            file.parts[0].removesuffix(".py") in wanted or file.as_posix() in wanted
            for file in distribution.files or ()
        ):
            found.add(name)
    return sorted(found)


def _quoted(names: list[str]) -> str:
    return " and ".join(f"'{name}'" for name in names)


def _listed(paths: list[Path]) -> str:
    more = ", …" if len(paths) > _MOST else ""
    return ", ".join(map(str, paths[:_MOST])) + more
