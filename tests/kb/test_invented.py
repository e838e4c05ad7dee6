"""Knowledge bases that are made up: the same for a number, and strange to the bundled one."""

from __future__ import annotations

import pytest

from kb import ReadError, load, read
from kb.invented import invented, number_of
from kb.problems import Problems, check
from kb.values import Date, Quantity, Year

KINDS = ("relation", "key", "concept")


def test_the_same_number_gives_the_same_one() -> None:
    kb = load("invented:3")
    assert kb.fingerprint == invented(3).fingerprint == read("invented:3").fingerprint
    assert len({invented(number).fingerprint for number in range(5)}) == 5
    # Whatever the platform and the version of Python.
    assert kb.fingerprint.startswith("32d773067f9f")


def test_a_name_is_one_with_a_number_only() -> None:
    assert number_of("invented:12") == 12
    for name in ("world", "invented:", "invented:x", "invented:-1", "invented:1.json", "12"):
        assert number_of(name) is None
    with pytest.raises(ReadError):
        load("invented:x")


@pytest.mark.parametrize("number", range(8))
def test_each_has_all_that_questions_ask_about(number: int) -> None:
    kb = invented(number)
    assert 100 < kb.entity_count < 600
    assert len(kb.relational) > 200 and len(kb.literals) > 200 and kb.qualifier_keys
    assert min(len(kb.names_of_kind(kind)) for kind in KINDS) >= 6
    values = {type(fact.value) for node in range(kb.entity_count) for fact in kb.attributes(node)}
    assert Quantity in values and values & {Date, Year}
    problems = Problems(keep_going=True)
    check(kb, problems)
    assert not problems.errors


def test_no_schema_has_a_name_of_the_bundled_one() -> None:
    """So that what is learnt over them says nothing of a part of that one that is left out."""
    world = load("world")
    known = {name.casefold() for kind in KINDS for name in world.names_of_kind(kind)}
    for number in range(40):
        kb = invented(number)
        own = {name.casefold() for kind in KINDS for name in kb.names_of_kind(kind)}
        assert not own & known


def test_many_names_are_of_one_schema_alone() -> None:
    names = [
        {name for kind in KINDS for name in invented(number).names_of_kind(kind)}
        for number in range(6)
    ]
    alone = [own - set().union(*(other for other in names if other is not own)) for own in names]
    assert all(len(one) > 0.5 * len(own) for one, own in zip(alone, names, strict=True))
