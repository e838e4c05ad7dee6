"""The forms of verbs, by a table that was written by hand."""

from __future__ import annotations

import pytest

from generation import verbs
from tests.generation.english_table import VERBS


@pytest.mark.parametrize(("base", "third", "past", "participle"), VERBS)
def test_forms(base: str, third: str, past: str, participle: str) -> None:
    assert verbs.third_person(base) == third
    assert verbs.base_of(third) == base
    assert verbs.past(base) == past
    assert verbs.participle(base) == participle


@pytest.mark.parametrize(
    ("base", "gerund"),
    [("follow", "following"), ("replace", "replacing"), ("win", "winning"), ("lie", "lying"),
     ("see", "seeing"), ("visit", "visiting"), ("refer", "referring"), ("own", "owning")],
)  # fmt: skip
def test_gerund(base: str, gerund: str) -> None:
    assert verbs.gerund(base) == gerund


def test_words_that_are_verbs_and_others() -> None:
    assert verbs.by_third()["sells"].base == "sell"
    assert verbs.by_past()["drafted"].base == "draft"
    assert verbs.by_participle()["seen"].base == "see"
    assert verbs.by_gerund()["excluding"].base == "exclude"
    assert verbs.by_participle()["located"].state and not verbs.by_participle()["killed"].state
    for noun in ("parents", "siblings", "characters", "symptoms", "members"):
        assert noun not in verbs.by_third() or verbs.rather_noun(noun)
