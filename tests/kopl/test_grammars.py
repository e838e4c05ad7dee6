"""Grammars for decoding: what they accept is what types and names what there is."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pytest

from kb import KnowledgeBase
from kb.values import ValueReadError, read_quantity, read_time
from kopl.grammars import FORMS, grammar
from kopl.patterns import number, time
from kopl_base.errors import KoplError


def _reads(read: object, text: str) -> bool:
    try:
        read(text)
    except ValueReadError:
        return False
    return True


def test_the_pattern_of_times_has_all_days_that_exist_and_no_others() -> None:
    pattern = re.compile(time().regex())
    day = date(1895, 1, 1)
    while day.year < 1906:
        for text in (day.isoformat(), f"-{day.isoformat()}", f"{day.year}/{day.month}/{day.day}"):
            assert pattern.fullmatch(text), text
        day += timedelta(1)
    years = ["0", "00", "0000", "000000000000", "4", "04", "100", "0400", "1900", "2000", "2023"]
    years += ["2024", "999999999999", "100000000", "20000", "8", "12", "123456789004"]
    for year in [*years, *(f"-{year}" for year in years)]:
        for rest in ("", "-02-29", "-2-28", "/2/29", "-02/29", "-13-01", "-04-31", "-00-01", "-1"):
            text = year + rest
            assert bool(pattern.fullmatch(text)) == _reads(read_time, text), text


@pytest.mark.parametrize(
    "text",
    [
        "5",
        "-0.5",
        "+5.",
        ".5",
        "1e9",
        "1E-09",
        "1,000",
        "nan",
        ".",
        "e5",
        "5.5.5",
        "",
        "1_0",
        "--1",
    ],
)
def test_the_pattern_of_numbers(text: str) -> None:
    assert bool(re.fullmatch(number().regex(), text)) == _reads(read_quantity, text)


@pytest.mark.parametrize("form", FORMS)
def test_what_cannot_be_a_grammar(tiny: KnowledgeBase, form: str) -> None:
    with pytest.raises(KoplError, match="no entity or concept 'Pariss'; did you mean 'Paris'"):
        grammar(tiny, form, ["Pariss"])
    with pytest.raises(KoplError, match="at least 1 call deep, not 0"):
        grammar(tiny, form, depth=0)
    with pytest.raises(KoplError, match="no grammar 'ebnf'; the forms are lark, gbnf, json-schema"):
        grammar(tiny, "ebnf")
