"""The benchmark of hand-written questions: its files, and how answers are counted."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kb import KoplError
from kopl_base.errors import ReadError

# Beside the script stands the folder of its questions, which a type checker takes for the module.
people: Any = importlib.import_module("benchmarks.people")
CATEGORIES = {
    "one-hop", "several", "qualifier", "count", "superlative", "comparison", "yes-no",
    "multi-hop", "dated", "lower-case", "keywords", "imperative", "typo", "synonym", "outside",
}  # fmt: skip
LEAST = {"world": 400, "bookshop": 150, "wd50k": 90}


@pytest.mark.parametrize("name", [*people.SETS, people.LANGUAGES])
def test_every_program_gives_its_answer(name: str) -> None:
    try:
        kb = people.knowledge_base(name)
    except KoplError as error:
        pytest.skip(str(error))
    asked = list(people.questions(people.FOLDER / f"{name}.jsonl"))
    assert list(people.check(kb, asked)) == []


@pytest.mark.parametrize("name", people.SETS)
def test_the_sets_are_as_the_data_card_says(name: str) -> None:
    asked = list(people.questions(people.FOLDER / f"{name}.jsonl"))
    assert len(asked) >= LEAST[name]
    assert len({one.id for one in asked}) == len({one.question for one in asked}) == len(asked)
    assert {one.category for one in asked} <= CATEGORIES
    assert all((one.category == "outside") == (one.outside is not None) for one in asked)
    parts = Counter(one.part for one in asked)
    assert abs(parts["dev"] - parts["test"]) <= 1
    assert 0.07 < sum(one.category == "outside" for one in asked) / len(asked) < 0.15


def test_questions_in_other_languages_are_about_the_world() -> None:
    asked = list(people.questions(people.FOLDER / f"{people.LANGUAGES}.jsonl"))
    assert len({one.question for one in asked}) == len(asked) > 70
    for part in ("dev", "test"):
        found = [one for one in asked if one.part == part]
        assert len({one.category for one in found}) >= 4
        assert 0.2 < sum(one.outside is not None for one in found) / len(found) < 0.4


def line(**changes: Any) -> dict[str, Any]:
    return {
        "id": "a-1", "part": "dev", "writer": "a", "question": "oslo?", "category": "one-hop",
        "programs": ['QueryName(Find("Oslo"))'], "answers": [["Oslo"]],
    } | changes  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"part": "train"}, "must be dev or test"),
        ({"programs": []}, "has programs, or 'outside' says why"),
        ({"outside": "weather"}, "must be one of schema, entity"),
        ({"outside": "schema"}, "has programs, or 'outside' says why"),
        ({"answers": []}, "1 programs, but 0 answers"),
        ({"answer_form": "exists"}, "ends in Count"),
        ({"programs": ["QueryName(Find("]}, "ends too early"),
    ],
)
def test_malformed_lines(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(line()) + "\n" + json.dumps(line(**changes)) + "\n", "utf-8")
    with pytest.raises(ReadError, match=message) as caught:
        list(people.questions(path))
    assert "line 2" in str(caught.value)


def test_a_check_finds_what_is_wrong(tmp_path: Path, tiny: Any) -> None:
    path = tmp_path / "a.jsonl"
    wrong = [
        line(id="a-1", programs=['QueryName(Find("Paris"))'], answers=[["Rome"]]),
        line(id="a-2", programs=['QueryName(Find("Nowhere"))'], answers=[[]]),
        line(id="a-3", programs=["Count(Count(FindAll()))"], answers=[["1"]]),
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in wrong), "utf-8")
    faults = list(people.check(tiny, people.questions(path)))
    assert [fault[:3] for fault in faults] == ["a-1", "a-2", "a-3"]


def asked(**changes: Any) -> Any:
    fields: dict[str, Any] = {
        "id": "a", "question": "?", "category": "several", "part": "dev",
        "programs": ("p", "q"), "form": None, "answers": (("A", "B"), ("2 metre",)),
        "outside": None,
    }  # fmt: skip
    return people.Asked(**{**fields, **changes})


@pytest.mark.parametrize(
    ("denotation", "right"),
    [(["B", "A"], True), (["2.0 metre"], True), (["A"], False), (["A", "A"], False), ([], False)],
)
def test_one_of_the_answers_is_right_in_any_order(denotation: list[str], right: bool) -> None:
    assert asked().accepts(denotation) is right


def test_the_table_counts() -> None:
    outside = asked(category="outside", outside="schema", programs=(), answers=())
    found = [
        people.Outcome(asked(), "right", 0.9, ""), people.Outcome(asked(), "wrong", 0.9, ""),
        people.Outcome(asked(), "empty", 0.8, ""), people.Outcome(asked(), "refused", 0.0, ""),
        people.Outcome(outside, "right", 0.0, ""), people.Outcome(outside, "wrong", 0.1, ""),
    ]  # fmt: skip
    lines = list(people.table(found))
    assert lines[1].split() == ["several", "4", "1", "1", "1", "1", "25.0"]
    assert lines[2].split() == ["answerable", "4", "1", "1", "1", "1", "25.0"]
    assert lines[3].split() == ["outside", "2", "1", "1", "0", "0", "50.0"]
    assert lines[4] == "answered: 2 of 4 answerable ones (50 %)"
    assert lines[-1].startswith("of 2 answers at a confidence of 80% or more, 1 (50 %)")


def test_rewordings_are_of_the_development_part() -> None:
    lines = (people.FOLDER / "rewordings.jsonl").read_text("utf-8").splitlines()
    reworded = {one["id"]: one for one in map(json.loads, lines)}
    asked = {one.id: one for one in people.questions(people.FOLDER / "world.jsonl")}
    assert len(reworded) == len(lines) == 50
    for id, one in reworded.items():
        assert asked[id].part == "dev" and asked[id].outside is None
        assert one["question"] == asked[id].question
        assert len({one["question"], *one["rewordings"]}) == 4
