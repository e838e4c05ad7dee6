"""Programs on the page: values call by call, facts behind them, queries, files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from kb import Builder
from kopl_cli.serve.bases import Playground
from kopl_cli.serve.programs import FORMS
from tests.serve.conftest import client_of

CAPITAL = 'QueryName(Relate(Find("Norway"), "capital", "forward"))'


def run(client: TestClient, program: Any, **more: Any) -> dict[str, Any]:
    """What a program gives."""
    reply = client.post("/api/run", json={"program": program, **more})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def test_every_call_shows_its_values(client: TestClient) -> None:
    found = run(client, CAPITAL, evidence=True)
    assert found["answer"]["answers"] == ["Oslo"] and found["answer"]["state"] == "unique"
    assert [step["state"] for step in found["steps"]] == ["ok"] * 3
    assert found["steps"][0]["values"] == [{"text": "Norway", "id": "country-NO", "kind": "entity"}]
    [fact] = found["evidence"]["facts"]
    assert fact["text"].startswith("Norway | capital | Oslo") and fact["call"] == 1
    assert found["evidence"]["minimal"] and found["error"] is None


def test_a_program_with_holes_runs_as_far_as_it_is_whole(client: TestClient) -> None:
    found = run(client, 'QueryName(Relate(Find("Norway"), ?, "forward"))')
    assert [step["state"] for step in found["steps"]] == ["ok", "waiting", "waiting"]
    assert found["answer"] is None and not found["view"]["complete"]
    draft = found["view"]["draft"]
    draft["inputs"][0]["arguments"][0] = "capital"
    assert run(client, draft)["answer"]["answers"] == ["Oslo"]


def test_steps_that_cannot_change_are_left_out(client: TestClient) -> None:
    program = 'Count(Or(Find("Oslo"), Relate(Find("Norway"), "capital", "forward")))'
    found = run(client, program, **{"from": [0, 1]})
    assert [step["path"] for step in found["steps"]] == [[0, 1, 0], [0, 1], [0], []]


@pytest.mark.parametrize(
    ("program", "form", "said"),
    [
        ('Count(Relate(Find("Norway"), "capital", "forward"))', "exists", ["yes"]),
        ('Count(Relate(Find("Oslo"), "capital", "forward"))', "exists", ["no"]),
        ('QueryName(Relate(Find("Norway"), "capital", "forward"))', {"is": "Oslo"}, ["yes"]),
        ('QueryName(Relate(Find("Norway"), "capital", "forward"))', {"is": "Bergen"}, ["no"]),
        # A form that says nothing of such a program leaves what it denotes.
        ('QueryName(Relate(Find("Norway"), "capital", "forward"))', "exists", ["Oslo"]),
        ('Count(Relate(Find("Norway"), "capital", "forward"))', {"is": "Oslo"}, ["1"]),
    ],
)
def test_an_answer_is_read_as_yes_or_no(
    client: TestClient, program: str, form: Any, said: list[str]
) -> None:
    assert run(client, program, form=form)["answer"]["answers"] == said


def test_a_form_that_is_none_is_told(client: TestClient) -> None:
    reply = client.post("/api/run", json={"program": "Count(FindAll())", "form": {"was": "Oslo"}})
    assert reply.status_code == 400
    assert reply.json()["error"]["field"] == "form"


def test_why_nothing_was_found(client: TestClient) -> None:
    why = run(client, 'QueryName(Relate(Find("Norwayy"), "capital", "forward"))')["why_empty"]
    assert (why["number"], why["path"], why["near"][0]) == (0, [0, 0], "Norway")
    why = run(client, 'Count(Relate(Find("Norway"), "capital", "backward"))')["why_empty"]
    assert why["number"] == 1 and why["near"][0] == "capital (forward)"


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ('FilterNum(Find("Norway"), "population", "9", "=")', r"has population [0-9]+"),
        (
            'FilterNum(FilterConcept(FindAll(), "country"), "population", "9e12", ">")',
            r"has population [0-9]+ to 1[0-9]{9}",
        ),
        (
            'FilterNum(Find("Norway"), "highest elevation", "9 mile", ">")',
            "has highest elevation 2469 metre",
        ),
        (
            'QueryAttrUnderCondition(Find("Norway"), "population", "point in time", "1850")',
            r"has population with point in time 19[0-9]{2}",
        ),
        (
            'QFilterYear(Relate(Find("Norway"), "head of state", "forward"), "start time", "1800",'
            ' "=")',
            "has start time 1991-01-17",
        ),
        (
            'FilterStr(FilterConcept(FindAll(), "country"), "ISO 3166-1 alpha-2 code", "NORW")',
            "has ISO 3166-1 alpha-2 code .*NO",
        ),
    ],
)
def test_other_values_are_told_where_only_the_value_is_not_there(
    client: TestClient, program: str, message: str
) -> None:
    why = run(client, program)["why_empty"]
    assert re.search(f"^its input {message}", why["message"]), why["message"]
    assert len(why["message"]) < 250 and "growth" not in why["message"]


def test_what_does_not_type_is_told_at_its_call(client: TestClient) -> None:
    found = run(client, 'Count(FilterNum(Find("Norway"), "area", "much", ">"))')
    assert found["error"]["kind"] == "type" and found["error"]["call"] == 1
    assert found["answer"] is None
    reply = client.post("/api/run", json={"program": "Count(Nothing("})
    assert reply.status_code == 422 and reply.json()["error"]["kind"] == "parse"


@pytest.fixture
def small() -> Iterator[TestClient]:
    """A client over a knowledge base that engines load at once."""
    builder = Builder()
    builder.add_concept("c", "place")
    for id, name in (("n", "Norway"), ("o", "Oslo")):
        builder.add_entity(id, name, ["c"])
    builder.add_fact("n", "capital", "o")
    made = Playground()
    made.add(builder.build(), "small")
    yield client_of(made)
    made.close()


def test_another_engine_gives_the_answer(small: TestClient) -> None:
    pytest.importorskip("pyoxigraph")
    assert run(small, CAPITAL, engine="oxigraph")["answer"]["answers"] == ["Oslo"]


def facts(client: TestClient, program: str, path: list[int], **value: str) -> dict[str, Any]:
    """What ``/api/facts`` answers."""
    reply = client.post("/api/facts", json={"program": program, "path": path, **value})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def test_the_facts_behind_a_value(client: TestClient) -> None:
    program = 'Count(Relate(Find("Norway"), "shares border with", "forward"))'
    found = facts(client, program, [0], text="Sweden")
    [fact] = found["facts"]
    assert (fact["subject"], fact["relation"], fact["value"]) in [
        ("Norway", "shares border with", "Sweden")
    ]
    assert fact["call"] == 1 and found["count"] == 1
    program = 'QueryAttr(Find("Norway"), "area")'
    [area] = run(client, program)["answer"]["answers"]
    found = facts(client, program, [], text=area)
    assert [fact["key"] for fact in found["facts"]] == ["area"]


def test_facts_have_the_numbers_of_the_whole_program(client: TestClient) -> None:
    part = 'Relate(Find("Norway"), "capital", "forward")'
    found = facts(client, f'Count(Or(Find("Rome"), {part}))', [0, 1], text="Oslo")
    assert [fact["call"] for fact in found["facts"]] == [2]


def test_a_value_that_the_call_does_not_give(client: TestClient) -> None:
    given = {"program": CAPITAL, "path": [0], "text": "Rome"}
    assert client.post("/api/facts", json=given).status_code == 404
    del given["text"]
    assert client.post("/api/facts", json=given).json()["error"]["field"] == "text"


def translate(client: TestClient, **given: Any) -> Any:
    """What ``/api/translate`` answers."""
    return client.post("/api/translate", json=given)


@pytest.mark.parametrize("style", ["exact", "data"])
def test_programs_become_queries_and_come_back(client: TestClient, style: str) -> None:
    query = translate(client, program=CAPITAL, to="sparql", style=style).json()["text"]
    assert translate(client, query=query, to="kopl").json()["text"] == CAPITAL


def test_the_reason_why_there_is_no_translation(client: TestClient) -> None:
    reply = translate(client, query="SELECT ?x WHERE { ?x ?y ?z OPTIONAL { ?x ?q ?r } }", to="kopl")
    assert reply.status_code == 422 and reply.json()["error"]["message"]
    reply = translate(client, program=CAPITAL, to="sparql", style="wikidata")
    assert reply.status_code == 422 and "--properties" in reply.json()["error"]["to_try"]
    assert translate(client, program=CAPITAL, query="x", to="kopl").status_code == 400


def test_queries_only_read(small: TestClient) -> None:
    pytest.importorskip("pyoxigraph")
    client = small
    query = translate(client, program=CAPITAL, to="sparql").json()["text"]
    found = client.post("/api/sparql", json={"query": query}).json()
    assert found["answer"]["answers"] == ["Oslo"] and found["rows"]
    for wrong in (
        "INSERT DATA { <a> <b> <c> }",
        "DROP ALL",
        "SELECT * WHERE { SERVICE <http://127.0.0.1:1/> { ?a ?b ?c } }",
        "SELECT ?a FROM <file:///etc/passwd> WHERE { ?a ?b ?c } LIMIT 1",
        "LOAD <file:///etc/passwd>",
    ):
        reply = client.post("/api/sparql", json={"query": wrong})
        # Of a graph that is not there nothing is found; it is not fetched.
        assert reply.status_code == 422 or not reply.json()["rows"], wrong
        assert client.post(
            "/api/sparql", json={"query": wrong, "engine": "rdflib"}
        ).status_code in (
            422,
            501,
        )


@pytest.mark.parametrize("form", FORMS)
def test_a_program_as_a_file(client: TestClient, form: str) -> None:
    given = {"program": CAPITAL, "form": form, "question": "What is the capital of Norway?"}
    found = client.post("/api/export", json=given).json()
    assert found["name"].startswith("program.") and found["text"]
    if form == "kqapro":
        [item] = json.loads(found["text"])
        assert item["answer"] == "Oslo" and item["program"][-1]["function"] == "What"
    if form == "csv":
        assert found["text"].split() == ["answer", "Oslo"]


def test_a_program_over_its_limits(client: TestClient) -> None:
    deep = 'Find("Norway")'
    for _ in range(310):
        deep = f'Relate({deep}, "shares border with", "forward")'
    reply = client.post("/api/run", json={"program": deep})
    assert reply.status_code == 422 and reply.json()["error"]["kind"] == "limit"


# --- logical queries ------------------------------------------------------------------------------


@pytest.fixture
def reasoning(playground: Playground) -> TestClient:
    """A client of a server that predicts what the whole graph has."""
    playground.reasoner = "exact"
    return client_of(playground)


def test_a_program_as_a_logical_query(reasoning: TestClient) -> None:
    near = 'Relate(Find("Norway"), "shares border with", "forward")'
    program = f'Count(FilterConcept({near}, "country"))'
    found = reasoning.post("/api/query-view", json={"program": program, "limit": 5}).json()
    assert found["program"] == program[6:-1] and found["path"] == [0]
    assert "shares border with" in found["svg"] and "Norway" in found["svg"]
    whole = run(reasoning, f"QueryName({found['program']})")["answer"]["answers"]
    best = [one["text"] for one in found["answers"]]
    assert best == whole, "what has the lowest score of all is no prediction"
    assert {one["kind"] for one in found["answers"]} <= {"known", "predicted"}
    assert reasoning.get("/api/info").json()["can"]["queries"]["yes"]


def test_the_largest_part_that_is_a_query_is_taken(reasoning: TestClient) -> None:
    part = 'Relate(Find("Norway"), "capital", "forward")'
    program = f'QueryAttr(FilterNum({part}, "population", "1", ">"), "population")'
    found = reasoning.post("/api/query-view", json={"program": program}).json()
    assert found["program"] == part and found["path"] == [0, 0]
    reply = reasoning.post("/api/query-view", json={"program": 'QueryAttr(Find("Norway"), "area")'})
    assert reply.status_code == 422 and "no part" in reply.json()["error"]["message"]


def test_without_a_reasoner_there_is_no_such_view(client: TestClient) -> None:
    reply = client.post("/api/query-view", json={"program": CAPITAL})
    assert reply.status_code == 501 and "--reasoner" in reply.json()["error"]["to_try"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT ?x WHERE { ?x foo }", "line 1, column 22"),
        ("INSERT DATA { <a> <b> <c> }", "INSERT is an update"),
        ("nonsense", "SELECT or ASK was expected"),
    ],
)
def test_a_wrong_query_says_the_same_on_both_engines(
    query: str, message: str, client: TestClient
) -> None:
    pytest.importorskip("pyoxigraph")
    for engine in ("kopl", "oxigraph"):
        answer = client.post("/api/sparql", json={"query": query, "engine": engine})
        assert answer.status_code == 422 and message in answer.json()["error"]["message"]
