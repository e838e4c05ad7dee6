"""The base of the toolkit's errors, those of files, and what their messages need."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from functools import cached_property


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


class SettingsError(KoplError):
    """A setting that does not exist or has a value of the wrong form."""

    kind = "settings"


def counted(number: int, one: str, several: str = "") -> str:
    """A number of things, as people write it.

    >>> counted(1, "question"), counted(2, "question")
    ('1 question', '2 questions')
    >>> counted(1, "query was run", "queries were run")
    '1 query was run'
    """
    return f"{number} {one if number == 1 else several or one + 's'}"


def wrapped(text: str) -> str:
    """What is to be told, in lines of 80 columns; paths and other long words stay whole."""
    return textwrap.fill(
        text, 80, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


# What it counts that a part of a longer name is like a text, where the whole is not.
_OF_A_PART = 0.9


class Comparable:
    """Names made ready for `near_names`, once for many texts."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(names)

    @cached_property
    def plain(self) -> list[str]:
        """The names in small letters, signs left out."""
        from rapidfuzz import utils

        return [utils.default_process(name) for name in self.names]


def near_names(
    text: str, names: Iterable[str] | Comparable, limit: int = 3, cutoff: float = 70
) -> list[str]:
    """The names nearest to a text in spelling, best first (similarity from 0 to 100).

    First come those that are the text but for a few letters, then longer ones that hold it, as
    "Barack Obama" for "Obama"; a name that is a small piece of the text counts little.
    """
    from rapidfuzz import distance, fuzz, process, utils

    listed = names if isinstance(names, Comparable) else Comparable(names)
    wanted = utils.default_process(text)
    found: set[str] = set()
    for scorer in (fuzz.ratio, fuzz.WRatio):
        hits = process.extract(
            wanted, listed.plain, scorer=scorer, limit=limit * 4, score_cutoff=cutoff
        )
        found.update(listed.names[at] for _, _, at in hits)

    def rank(name: str) -> tuple[float, int, float, str]:
        plain = utils.default_process(name)
        letters = distance.OSA.normalized_similarity(wanted, plain)
        whole = (fuzz.ratio(wanted, plain) + 100 * letters) / 2  # another letter, or two exchanged
        # WRatio is generous to short names inside of long texts.
        share = min(1.0, len(plain) / max(1, len(wanted)))
        score = max(whole, _OF_A_PART * share * fuzz.WRatio(wanted, plain))
        begins = distance.Prefix.similarity(wanted, plain)
        return (-round(score), -begins, -fuzz.ratio(text, name), name)

    return sorted(found, key=rank)[:limit]
