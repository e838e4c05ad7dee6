"""The file of a run that is under way: a run may be stopped at any time, and another goes on.

What is done lies in ``FILE.part``, line by line and whatever form is wanted in the end. How far it
is, and what must be the same for another run to go on, lies in ``FILE.part.json``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kopl_base.errors import KoplError, ReadError, WriteError
from kopl_base.stream import writing

GO_ON = "go on with --resume"


def check_same(
    before: Mapping[str, Any], now: Mapping[str, Any], source: Path, remove: str
) -> None:
    """Raise ReadError where a stopped run, whose settings ``source`` holds, had other ones.

    ``remove`` is what has to go for another run to begin.
    """
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            raise ReadError(
                f"the stopped run had another {name}: {_shown(before.get(name))}, not"
                f" {_shown(now.get(name))}; give the same, or remove {remove}",
                source=str(source),
            )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


class Unfinished:
    """What a run has of its ``output`` so far.

    ``about`` is what must be the same for another run to go on, ``unit`` what a line holds, in the
    plural. ``kept`` lines are in the file. ``state`` is what `save` wrote last, and None for a run
    that begins; whoever finds one reads what is needed of ``path`` and calls `begin` with the place
    behind it.

    Raises WriteError where a stopped run is in the way, ReadError for one that does not fit.
    """

    def __init__(self, output: Path, about: Mapping[str, Any], unit: str, *, resume: bool) -> None:
        self.output = output
        self.path = output.with_name(f"{output.name}.part")
        self._state_path = output.with_name(f"{output.name}.part.json")
        self._about = json.loads(json.dumps(about))  # as it is read back
        self._unit = unit
        self.kept = self._saved = self.size = 0
        self.state: dict[str, Any] | None = None
        if self._state_path.exists():
            if not resume:
                raise WriteError(
                    f"{self.path}: a stopped run is there; --resume goes on with it, or remove it"
                    f" and {self._state_path.name}"
                )
            self.state = self._read()

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(self._state_path.read_text("utf-8"))
            if not isinstance(found, dict) or not isinstance(found.get("about"), dict):
                raise ValueError("no object with what it is about")
        except (OSError, ValueError, RecursionError) as error:
            raise self.unreadable(error) from None
        check_same(found["about"], self._about, self._state_path, f"it and {self.path.name}")
        if not self.path.exists() and self.output.exists():
            raise ReadError(
                f"the run was complete, and {self.output.name} is there; remove this file",
                source=str(self._state_path),
            )
        return found

    def unreadable(self, error: Exception) -> ReadError:
        """The error for a state that is not what `save` writes."""
        return ReadError(
            f"not the state of a run: {error}; remove it and {self.path.name} to begin anew",
            source=str(self._state_path),
        )

    def read_again(self, size: int, recall: Callable[[str], None], first: int = 0) -> None:
        """Call ``recall`` with each line between two places of the file.

        Raises ReadError where that fails or the lines do not end at the second place.
        """
        try:
            if (found := self.path.stat().st_size) < size:
                raise ValueError(
                    f"something cut it off: it has {found} bytes, and {size} were written"
                )
            with open(self.path, "rb") as file:
                file.seek(max(0, first - 1))
                if first and file.read(1) != b"\n":
                    raise ValueError("no line begins where it is to go on")
                while file.tell() < size:
                    recall(file.readline().decode())
                if file.tell() != size:
                    raise ValueError("its lines do not end where they ended")
        except (OSError, ValueError, KeyError, TypeError, KoplError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ReadError(
                f"cannot go on with it: {reason}; put it back as it was, or remove it and"
                f" {self._state_path.name} to begin anew",
                source=str(self.path),
            ) from None

    def begin(self, size: int = 0, kept: int = 0) -> None:
        """Go on behind so many bytes, which hold so many lines; what follows them is forgotten."""
        self.size, self.kept, self._saved = size, kept, kept
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Without a buffer: what could not be written must not come later.
            self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115 - closed by close()
            self._file.truncate(size)
        except OSError as error:
            raise self._failed(error) from None

    def append(self, text: str, kept: int) -> None:
        """Write so many lines; they are in the file when this returns, or none of them."""
        data = memoryview(text.encode())
        try:
            at = 0
            while at < len(data):
                at += self._file.write(data[at:])
        except (OSError, ValueError) as error:  # ValueError: it was closed
            self._forget()
            raise self._failed(error) from None
        self.size += len(data)
        self.kept += kept

    def save(self, **state: Any) -> None:
        """Note how far the run is; lines that were written before belong to it from now on."""
        try:
            with writing(self._state_path) as file:
                json.dump({"about": self._about, **state}, file, ensure_ascii=False)
        except (OSError, WriteError) as error:
            self.kept = self._saved
            raise self._failed(error) from None
        self._saved = self.kept

    def _forget(self) -> None:
        """Cut off what was begun; where that fails, too, nothing may be written behind it."""
        try:
            self._file.truncate(self.size)
        except (OSError, ValueError):
            self.close()

    def _failed(self, error: Exception) -> WriteError:
        reason = getattr(error, "strerror", None) or str(error)
        has = f"; it has {self.kept} {self._unit}: {GO_ON}" if self.kept else ""
        return WriteError(f"{self.path}: cannot be written: {reason}{has}")

    @property
    def remains(self) -> str:
        """What there is, and how to go on with it."""
        return f"{self.path} has {self.kept} {self._unit}: {GO_ON}"

    def stop(self, error: BaseException | None) -> None:
        """Close the file; it stays, unless it has nothing because of an error of ours."""
        if isinstance(error, KoplError) and not self.kept:
            self.discard()  # no run has anything to go on with
        else:
            self.close()

    def close(self) -> None:
        """Close the file; it stays."""
        with suppress(OSError):
            self._file.close()

    def discard(self) -> None:
        """Remove all that there is of the run, so that nothing stands in another one's way."""
        self.close()
        self.path.unlink(missing_ok=True)
        self._state_path.unlink(missing_ok=True)

    def give(self, write: Callable[[Path], None], *, complete: bool = False) -> None:
        """Let ``write`` make something of what there is so far; the run can still go on."""
        has = f"all {self.kept}" if complete else f"{self.kept}"
        self.close()
        if not self.path.exists():
            raise WriteError(f"{self.path}: is gone; does another run write the same file?")
        try:
            write(self.path)
        except WriteError as error:
            raise WriteError(
                f"{error}; {self.path} has {has} {self._unit}: --resume writes them"
            ) from None

    def finish(self, write: Callable[[Path], None] | None = None) -> None:
        """Let the file take its place, or what ``write`` makes of it; then nothing else is left.

        When ``write`` fails, all stays as it is, to be finished another time.
        """
        if write is None:
            write = self._take_place
        self.give(write, complete=True)
        self.discard()

    def _take_place(self, path: Path) -> None:
        try:
            os.replace(path, self.output)
        except OSError as error:
            raise WriteError(f"{self.output}: cannot be written: {error.strerror}") from None
