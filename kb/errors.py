"""What can go wrong with a knowledge base, besides what can go wrong with any file."""

from __future__ import annotations

from kopl_base.errors import KoplError, ReadError


class SnapshotError(ReadError):
    """A snapshot that is damaged, cut short or of another version."""

    kind = "snapshot"


class ValueReadError(KoplError, ValueError):
    """A text or JSON value that is not a value of the type asked for."""

    kind = "type"
