"""Cells that no spreadsheet takes for a formula, and that read back as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopl_base.tables import escaped, unescaped


@given(st.text(alphabet="'=+-@\t\r\n ＝＋－＠5.a\ufeff\u200b"))
def test_every_text_reads_back(text: str) -> None:
    assert unescaped(escaped(text)) == text
    assert escaped(text).lstrip(" \t\r\n\ufeff\u200b")[:1] not in tuple("=@＝＠＋－")


_BLANKS = [
    "",
    " ",
    "\t",
    "\r",
    "\n",
    "\u00a0",
    "\ufeff",
    "\u200b",
    "\u200b \u2060",
    "\u202e",
    "\u00ad",
]


@pytest.mark.parametrize("blank", _BLANKS)
@pytest.mark.parametrize("text", ["=1+1", "@a", "＝1", "＋1", "－1", "＠a", "+a", "-2+3", "- 5"])
def test_what_a_spreadsheet_may_take_for_a_formula(blank: str, text: str) -> None:
    assert escaped(blank + text) == f"'{blank}{text}"
    assert escaped(f"'{text}") == f"''{text}"


@pytest.mark.parametrize("text", ["\ta", "\ra", "\na"])
def test_white_space_at_the_beginning(text: str) -> None:
    assert escaped(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "a=b", "-5", "+5.5", "-", "'tis", " a", "(=1)", "5-3"])
def test_what_no_spreadsheet_takes_for_one(text: str) -> None:
    assert escaped(text) == unescaped(text) == text
