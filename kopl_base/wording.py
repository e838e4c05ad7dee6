"""Numbers of things in messages."""

from __future__ import annotations


def counted(number: int, one: str, several: str = "") -> str:
    """A number of things, as people write it.

    >>> counted(1, "question"), counted(2, "question")
    ('1 question', '2 questions')
    >>> counted(1, "query was run", "queries were run")
    '1 query was run'
    """
    return f"{number} {one if number == 1 else several or one + 's'}"
