"""Both rules for comparing answers, on cases worked by hand."""

from __future__ import annotations

import pytest

from kopl.answers import published_equal, published_text, same_answer

# gold, prediction, equal by the default rule, equal by the published rule
CASES = [
    ("LeBron James", "LeBron James", True, True),
    ("LeBron James", "lebron james", False, False),
    ("x", " x ", True, False),
    ("100", "100.0", True, True),
    ("100 metre", "100.0 metre", True, True),
    ("100 metre", "100", False, False),
    ("100 metre", "100 kilometre", False, False),
    ("1e2", "100", True, True),
    ("007", "7", False, True),
    ("007", "007", True, True),
    ("0.5", ".5", True, True),
    ("-0", "0", True, True),
    ("-3.9", "-3", False, True),
    ("3.9", "3", False, False),
    ("0.000001", "0", False, True),
    ("1998", "1998-05-01", False, True),
    ("1998-05-01", "1998-05-01", True, True),
    ("1998-05-01", "1998-05-02", False, False),
    ("1998-05-01", "1998/5/1", True, False),
    ("1998-5-1", "1998-05-01", True, True),
    ("-44", "-44", True, True),
    ("-0044-03-15", "-44-3-15", True, False),
    ("yes", "no", False, False),
    ("nan", "nan", True, True),
    ("inf", "inf", True, True),
    ("", "", True, True),
    ("12 5", "12.0 5", True, True),
]


@pytest.mark.parametrize(("gold", "predicted", "default", "published"), CASES)
def test_rules(gold: str, predicted: str, default: bool, published: bool) -> None:
    assert same_answer(gold, predicted) is default
    assert published_equal(gold, predicted) is published


@pytest.mark.parametrize(
    ("answer", "printed"),
    [
        ("323802 square kilometre", "323802 square kilometre"),
        ("2.5 hour", "2.5 hour"),
        ("12.000001 metre", "12 metre"),
        ("-3.9 degree Celsius", "-3 degree Celsius"),
        ("0.00001234", "1.234e-05"),
        ("0.000001 gram", "0 gram"),
        ("007", "007"),
        ("3.0", "3.0"),
        ("1_000", "1_000"),
        ("1998-06-27", "1998-06-27"),
        ("Oslo", "Oslo"),
        ("", ""),
    ],
)
def test_the_published_spelling(answer: str, printed: str) -> None:
    """Numbers as the published programs print them; strings that look like numbers stay."""
    assert published_text(answer) == printed
    assert published_equal(answer, printed)
