"""What can go wrong with a logical query: its text, or what it asks."""

from __future__ import annotations

from kopl_base.errors import KoplError


class QueryError(KoplError):
    """A query that is not well formed, or one that cannot be had in the form asked for."""

    kind = "query"


class UnsafeQueryError(QueryError):
    """A query some of whose variables no positive atom binds."""


class FormulaError(QueryError):
    """A text that is no formula; ``place`` is the number of the first wrong character, from 1."""

    kind = "parse"

    def __init__(self, message: str, place: int | None = None) -> None:
        self.message, self.place = message, place
        super().__init__(message if place is None else f"character {place}: {message}")
