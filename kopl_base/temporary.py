"""Temporary files and folders beside what they become, which no killed run leaves for ever.

One that is being filled is locked by the process that fills it; the system gives the lock back
however that process ends. So what is not locked was left behind, and is taken away by the next run
that writes in the same folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kopl_base.errors import WriteError

_SUFFIX = ".unfinished"
_NAME = re.compile(rf"\..*\.[a-z0-9_]{{8}}{re.escape(_SUFFIX)}", re.DOTALL)

# Folders that this process looked through: once is enough, where it writes thousands of files.
_swept: set[Path] = set()


def reserve(path: Path, *, folder: bool = False) -> tuple[int, str]:
    """A new, empty file (or folder) beside a path: a descriptor of it, and its name.

    It counts as being filled until the descriptor is closed. Raises OSError.
    """
    if path.parent not in _swept:
        _swept.add(path.parent)
        sweep(path.parent)
    while True:
        if folder:
            name = tempfile.mkdtemp(_SUFFIX, f".{path.name}.", path.parent)
            handle = os.open(name, os.O_RDONLY)
        else:
            handle, name = tempfile.mkstemp(_SUFFIX, f".{path.name}.", path.parent)
        # Another run may have looked between the two steps, and have taken it for a left one.
        if _lock(handle) is not False and os.path.exists(name):
            os.fchmod(handle, (0o777 if folder else 0o666) & ~_umask())
            return handle, name
        os.close(handle)


def sweep(folder: Path) -> None:
    """Remove what runs that were killed left in a folder."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        left = [entry.path for entry in entries if _NAME.fullmatch(entry.name)]
        for name in left:
            with contextlib.suppress(OSError):
                handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW)
                try:
                    if _lock(handle):
                        remove(name)
                finally:
                    os.close(handle)


def remove(name: str) -> None:
    """Remove a file, or a folder with all that is in it, if it is there."""
    if os.path.isdir(name):
        shutil.rmtree(name, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.unlink(name)


def _lock(handle: int) -> bool | None:
    """Whether nobody else has the lock, and we have it now; None where there are no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@contextlib.contextmanager
def filling(folder: Path) -> Iterator[Path]:
    """A folder to fill that takes its place when it is full; nothing is left of a failure.

    One that is there by then stays: another process was first, and theirs is the same. Raises
    WriteError.
    """
    name, handle = "", -1
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        handle, name = reserve(folder, folder=True)
        yield Path(name)
        with contextlib.suppress(OSError):
            os.replace(name, folder)
        if not folder.is_dir():
            raise WriteError(f"{folder}: it cannot take its place")
    except OSError as error:
        raise WriteError(f"{folder}: cannot be written: {error.strerror or error}") from error
    finally:
        if name:
            remove(name)
            os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
