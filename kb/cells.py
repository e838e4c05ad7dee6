"""Cells of CSV files that people open: a spreadsheet must not take a text for a formula.

Such a text gets an apostrophe in front, which spreadsheets pass over; reading takes it away again.
"""

from __future__ import annotations

import re

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
