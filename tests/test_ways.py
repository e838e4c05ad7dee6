"""Counting the calls of a way through the packages."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.ways import count, measure


def module(name: str, text: str, **others: object) -> Any:
    """A module of that name that is nowhere but here."""
    made = ModuleType(name)
    made.__dict__.update(others)
    exec(text, made.__dict__)
    return made


LOWER = """
def three():
    yield 1
    yield 2
    yield 3

def negative(number):
    return -number

class Held:
    @property
    def numbers(self):
        return [number for number in three()]
"""
UPPER = """
def numbers():
    return sorted(Held().numbers, key=negative) + [number for number in [1]]

def twice():
    return [*numbers(), *map(lambda number: number, numbers())]
"""


def test_functions_of_ours_count_once_whoever_calls_them() -> None:
    lower: Any = module("kb.lower", LOWER)
    others = {"negative": lower.negative, "Held": lower.Held}
    upper = module("kopl.upper", UPPER, **others)
    found = count(upper.twice)
    # Twice: the property, the generator, and what negates each of its three numbers.
    assert found.calls["kb.lower"] == 2 * (1 + 1 + 3)
    # Four numbers go through the lambda; comprehensions do not count.
    assert found.calls["kopl.upper"] == 1 + 2 + 4
    assert set(found.calls) == {"kb.lower", "kopl.upper"}
    assert found.crossing == 2 * (1 + 3) and found.share == 8 / 17
    elsewhere: Any = module("elsewhere", UPPER, **others)
    assert set(count(elsewhere.twice).calls) == {"kb.lower"}


def test_a_way_is_counted_alike_whenever_it_is_warm(tmp_path: Path) -> None:
    first, second = measure("load", tmp_path), measure("load", tmp_path)
    assert first == second
    assert "kb.values" in first.calls
    assert 0 < first.share < 1 and min(first.calls.values()) > 0
