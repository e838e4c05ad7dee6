"""The toolkit's errors: one base class, and what can go wrong with a knowledge base."""

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


class SnapshotError(ReadError):
    """A snapshot that is damaged, cut short or of another version."""

    kind = "snapshot"


class ValueReadError(KoplError, ValueError):
    """A text or JSON value that is not a value of the type asked for."""

    kind = "type"
