"""Changing programs, completing them, and examples, as clients of the server see them."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

import kb
from kopl import Executor
from kopl_cli.serve.bases import Playground, ServeLimits
from kopl_cli.serve.editing import OPERATIONS, Completers
from kopl_cli.serve.examples import Examples, programs


def edit(client: TestClient, program: Any, **operation: Any) -> dict[str, Any]:
    answer = client.post("/api/edit", json={"program": program, "operation": operation})
    assert answer.status_code == 200, answer.text
    view: dict[str, Any] = answer.json()["view"]
    return view


def complete(client: TestClient, program: Any, hole: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = client.post("/api/complete", json={"program": program, "hole": hole, **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_program_is_written_by_changes_alone(client: TestClient) -> None:
    view = edit(client, None, do="read")
    assert view["text"] == "?" and view["holes"][0]["slot"] == "function"
    view = edit(client, view["draft"], do="function", path=[], function="Find")
    view = edit(client, view["draft"], do="set", path=[], index=0, text="Norway")
    view = edit(client, view["draft"], do="wrap", path=[], function="Relate")
    hole = view["holes"][0]
    assert hole == {"path": [], "slot": "argument", "index": 0}
    found = complete(client, view["draft"], hole, prefix="capit")
    [capital] = [one for one in found["suggestions"] if one["text"] == "capital"]
    assert capital["sets"] == [{"index": 1, "text": "forward"}]
    view = edit(client, view["draft"], do="set", path=[], index=0, text=capital["text"])
    for one in capital["sets"]:
        view = edit(client, view["draft"], do="set", path=[], **one)
    view = edit(client, view["text"], do="insert", path=[], function="QueryName")
    assert view["text"] == 'QueryName(Relate(Find("Norway"), "capital", "forward"))'
    assert view["complete"] and not view["problems"]
    view = edit(client, view["text"], do="delete", path=[0])
    assert view["text"] == 'QueryName(Find("Norway"))'
    view = edit(client, view["text"], do="delete", path=[0], all=True)
    assert view["text"] == "QueryName(?)"
    view = edit(client, view["text"], do="fill", path=[], index=0, function="And")
    view = edit(client, view["text"], do="fill", path=[0], index=1, function="FindAll")
    view = edit(client, view["text"], do="move", path=[0, 0], to=[0, 1])
    assert view["text"] == "QueryName(And(FindAll(), ?))"
    assert [call["function"] for call in view["calls"]] == ["FindAll", None, "And", "QueryName"]


@pytest.mark.parametrize("scope", ["here", "schema"])
def test_completions_say_how_many_there_are(client: TestClient, scope: str) -> None:
    hole = {"path": [], "slot": "argument", "index": 0}
    found = complete(client, "FilterConcept(?, ?)", hole, scope=scope, limit=5)
    assert len(found["suggestions"]) == 5 < found["count"]
    assert found["scope"] == scope
    assert all(one["kind"] == "concept" and one["count"] for one in found["suggestions"])


@pytest.mark.parametrize(
    ("path", "given", "said"),
    [
        ("edit", {"operation": {"do": "jump"}}, "'do' must be one of"),
        ("edit", {"operation": {"do": "delete"}}, "'path' must be a list"),
        ("edit", {"operation": {"do": "delete", "path": [True]}}, "'path' must be a list"),
        ("edit", {"operation": {"do": "delete", "path": [7]}}, "no call at"),
        ("edit", {"operation": {"do": "set", "path": [], "index": "a"}}, "'index' must be"),
        ("edit", {"operation": {"do": "set", "path": [], "index": 0, "text": 3}}, "must be a text"),
        ("edit", {"operation": {"do": "function", "path": []}}, "'function' must be a text"),
        ("edit", {"operation": {"do": "function", "path": [], "function": "Fnd"}}, "mean Find"),
        ("edit", {"program": "Find(", "operation": {"do": "read"}}, "closing parenthesis"),
        ("complete", {"hole": {"path": [], "slot": "hat"}}, "'slot' must be one of"),
        ("complete", {"hole": {"path": [], "slot": "argument", "index": -1}}, "'index' must"),
        ("complete", {"hole": {"path": [], "slot": "argument", "index": 5}}, "no argument 5"),
    ],
)
def test_what_cannot_be_done_is_said(
    client: TestClient, path: str, given: dict[str, Any], said: str
) -> None:
    answer = client.post(f"/api/{path}", json={"program": 'Find("Oslo")'} | given)
    assert answer.status_code in (400, 422)
    error = answer.json()["error"]
    assert said in error["message"]


def test_programs_keep_within_limits(client: TestClient) -> None:
    deep = "Count(" * 150 + "?" + ")" * 150
    assert edit(client, deep, do="read")["complete"] is False
    wide = "FindAll()"
    for _ in range(9):
        wide = f"Or({wide}, {wide})"
    answer = client.post("/api/edit", json={"program": wide, "operation": {"do": "read"}})
    assert answer.status_code == 422
    assert "the limit is" in answer.json()["error"]["message"]


def test_every_operation_is_described(client: TestClient) -> None:
    text = client.get("/api/openapi.json").text
    assert all(name in text for name in OPERATIONS)


# --- examples ---------------------------------------------------------------------------------


def test_examples_are_of_many_kinds_and_the_same_for_the_same_seed(client: TestClient) -> None:
    found = client.get("/api/examples", params={"seed": 3, "count": 5}).json()["examples"]
    assert len(found) == 5
    assert len({one["about"] for one in found}) >= 4
    executor = Executor(kb.load("world"))
    for one in found:
        assert one["question"]
        assert set(one["answers"]) <= set(executor.denote(one["program"]))
    other = Playground(ServeLimits())
    other.add(kb.load("world"), "world")
    again = other.part(Examples).of(other.base(None), 3, 5)
    assert [one.to_json() for one in again] == found


def test_programs_stand_for_questions_where_a_knowledge_base_yields_none() -> None:
    builder = kb.Builder()
    builder.add_concept("city", "city")
    for number, name in enumerate(("Aaa", "Bbb", "<b>Ccc</b>")):
        builder.add_entity(name, name, ["city"])
        builder.add_attribute(name, "height", kb.Quantity(number + 1, "metre"))
    builder.add_fact("Aaa", "near", "Bbb")
    small = builder.build()
    playground = Playground(ServeLimits())
    base = playground.add(small, "small")
    found = playground.part(Examples).of(base, 0, 6)
    assert found
    made = [*programs(base, playground.part(Completers).of(base), 0)]
    assert made and all(one.question is None and one.answers for one in made)


def test_an_empty_knowledge_base_has_no_examples() -> None:
    playground = Playground(ServeLimits())
    base = playground.add(kb.Builder().build(), "empty")
    assert playground.part(Examples).of(base, 0, 6) == []
