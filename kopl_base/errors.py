"""The base of the toolkit's errors, and those of files."""

from __future__ import annotations


class KoplError(Exception):
    """Base of every error that the toolkit raises for bad input.

    ``kind`` is the word that the command line prints for it.
    """

    kind = "error"


class ReadError(KoplError):
    """A file that cannot be read as what it should be; names the file and the place in it."""

    kind = "read"

    def __init__(self, message: str, *, place: str = "", source: str = "") -> None:
        self.message, self.place, self.source = message, place, source
        super().__init__(": ".join(part for part in (source, place, message) if part))


class WriteError(KoplError):
    """A file that cannot be written; what was there before is unchanged."""

    kind = "write"
