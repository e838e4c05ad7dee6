"""Cells of CSV files that people open: a spreadsheet must not take a text for a formula.

Such a text gets an apostrophe in front, which spreadsheets pass over; reading takes it away again.
"""

from __future__ import annotations

import re

# What begins a formula, also behind white space and in full width; a number with a sign is none.
_FORMULA = r"(?:[\t\r\n]|\s*(?:[=@＝＠＋－]|[+-](?![\d.]*\Z)))"
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
