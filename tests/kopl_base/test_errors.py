"""Numbers of things in messages."""

from __future__ import annotations

import pytest

from kopl_base.errors import counted


@pytest.mark.parametrize(
    ("number", "several", "written"),
    [(0, "", "0 cells"), (1, "", "1 cell"), (1, "many", "1 cell"), (2, "many", "2 many")],
)
def test_numbers_of_things(number: int, several: str, written: str) -> None:
    assert counted(number, "cell", several) == written
