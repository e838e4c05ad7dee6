"""Tables for people: on a terminal, in a pipe, as text, Markdown, and CSV that they open."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

# A spreadsheet must not take the text of a CSV file for a formula. Such a text gets an apostrophe
# in front, which spreadsheets pass over; reading takes it away again.
#
# Characters that are not seen: controls, marks of format such as U+200B and U+FEFF, blank letters
# and variation selectors. A list of our own, so that no version of Unicode changes what is escaped.
_UNSEEN = (
    "\\x00-\\x1f\\x7f-\\x9f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f"
    "\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0"
    "\\ufff0-\\ufffb\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff"
)
# What begins a formula, also behind white space and what is not seen, and in full width; a number
# with a sign is none.
_FORMULA = rf"(?:[\t\r\n]|[\s{_UNSEEN}]*(?:[=@＝＠＋－]|[+-](?![\d.]*\Z)))"
_TAKEN_FOR_ONE = re.compile(f"'*{_FORMULA}")
_ESCAPED = re.compile(f"'+{_FORMULA}")


def escaped(text: str) -> str:
    """The cell of a text; `unescaped` gives the text back, whatever it is.

    >>> [escaped(text) for text in ("=1+1", "-5", "a", "'=1", "\\n+a")]
    ["'=1+1", '-5', 'a', "''=1", "'\\n+a"]
    """
    return f"'{text}" if _TAKEN_FOR_ONE.match(text) else text


def unescaped(cell: str) -> str:
    """The text of a cell, whether it was escaped or not.

    >>> [unescaped(cell) for cell in ("'=1+1", "-5", "'tis")]
    ['=1+1', '-5', "'tis"]
    """
    return cell[1:] if _ESCAPED.match(cell) else cell


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], file: TextIO | None = None
) -> None:
    """A table on a terminal, tab-separated lines in a pipe; on standard output unless given."""
    file = file or sys.stdout
    if not file.isatty():
        for row in rows:
            print("\t".join(_plain(cell) for cell in row), file=file)
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    Console(file=file).print(table)


def _plain(cell: object) -> str:
    return str(cell).replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def aligned(
    rows: Sequence[Sequence[str]], right: Sequence[bool] | None = None, gap: int = 2
) -> list[str]:
    """The lines of a table in columns; those of numbers, all but the first, go to the right.

    >>> aligned([("type", "share"), ("2i", "0.5")])
    ['type  share', '2i      0.5']
    """
    return [(" " * gap).join(row).rstrip() for row in _padded(rows, right)]


def markdown(
    headings: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[bool] | None = None
) -> str:
    """The text of a table in Markdown; columns go to the right as in `aligned`."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (headings, *rows)]
    first, *others = _padded(cells, right)
    sides = right or [at > 0 for at in range(len(headings))]
    rule = [
        "-" * max(2, len(cell) - 1) + ":" if side else "-" * max(3, len(cell))
        for cell, side in zip(first, sides, strict=True)
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in (first, rule, *others))


def _padded(rows: Sequence[Sequence[str]], right: Sequence[bool] | None) -> list[list[str]]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = right or [at > 0 for at in range(len(widths))]
    return [
        [
            cell.rjust(width) if side else cell.ljust(width)
            for cell, width, side in zip(row, widths, sides, strict=True)
        ]
        for row in rows
    ]


def write_csv(file: TextIO, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table as CSV; texts are escaped, so that no spreadsheet takes one for a formula."""
    writer = csv.writer(file, lineterminator="\n")
    for row in (headings, *rows):
        writer.writerow([escaped(cell) if isinstance(cell, str) else cell for cell in row])
