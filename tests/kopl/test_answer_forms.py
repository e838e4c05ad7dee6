"""Yes and no as answers of sets and names."""

from __future__ import annotations

from typing import Any

import pytest

from kopl import Executor
from kopl.answer_forms import Exists, Is, answer_of, read_form
from kopl.text import read


@pytest.mark.parametrize(
    ("capital", "answer"), [("Oslo", "yes"), ("Stockholm", "no"), ("Nowhere", "no")]
)
def test_a_count_of_one_or_more_is_yes(tiny_world: Any, capital: str, answer: str) -> None:
    program = read(f'Count(And(Relate(Find("Norway"), "capital", "forward"), Find("{capital}")))')
    denotation = Executor(tiny_world).run(program).denotation
    assert answer_of(denotation, read_form("exists", program)) == [answer]


@pytest.mark.parametrize(
    ("denotation", "answer"),
    [(["Rhine"], "yes"), (["Elbe"], "no"), (["Elbe", "Rhine"], "no"), ([], "no")],
)
def test_a_name_is_yes_where_it_is_the_only_one(denotation: list[str], answer: str) -> None:
    assert answer_of(denotation, Is("Rhine")) == [answer]


def test_without_a_form_the_denotation_stays() -> None:
    assert answer_of(["a", "b"], read_form(None)) == ["a", "b"]


@pytest.mark.parametrize("form", [Exists(), Is("Rhine")])
def test_written_and_read(form: Exists | Is) -> None:
    assert read_form(form.to_json()) == form


@pytest.mark.parametrize("wrong", ["yes", "", 1, [], {}, {"is": 1}, {"is": "a", "or": "b"}, True])
def test_what_is_no_form(wrong: Any) -> None:
    with pytest.raises(ValueError, match="the answer form is"):
        read_form(wrong)


def test_exists_needs_a_count() -> None:
    with pytest.raises(ValueError, match="ends in Count, not in QueryName"):
        read_form("exists", read('QueryName(Find("Norway"))'))


@pytest.fixture(scope="module")
def tiny_world() -> Any:
    """Two countries and their capitals."""
    import kb

    builder = kb.Builder()
    for name in ("Norway", "Oslo", "Sweden", "Stockholm"):
        builder.add_entity(name.lower(), name)
    builder.add_fact("norway", "capital", "oslo")
    builder.add_fact("sweden", "capital", "stockholm")
    return builder.build()
