"""Corrections and the queue, as clients see them."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from kb import KnowledgeBase, load
from kopl.drafts import read_draft
from kopl.example import read_examples
from kopl_cli.serve.bases import Playground, ServedRun, ServeLimits
from kopl_cli.serve.correcting import Corrections
from kopl_cli.serve.queueing import Queues
from parsers.corrections import FILE, learnable, newest, read_corrections
from tests.serve.conftest import client_of

AREA = 'QueryAttr(Find("Norway"), "area")'
CAPITAL = 'Count(And(Relate(Find("Norway"), "capital", "forward"), Find("Oslo")))'
SAID = {"question": "How big is Norway?", "verdict": "corrected", "program": AREA}


@pytest.fixture
def served(small: KnowledgeBase, tmp_path: Path) -> Playground:
    """A small knowledge base without a run."""
    made = Playground(ServeLimits(), folder=tmp_path / "playground")
    made.add(small, "small")
    return made


@pytest.fixture
def client(served: Playground) -> TestClient:
    return client_of(served)


def kept(client: TestClient, **said: Any) -> dict[str, Any]:
    answer = client.post("/api/corrections", json=SAID | said)
    assert answer.status_code == 200, answer.text
    return answer.json()


def listed(client: TestClient, **query: Any) -> list[dict[str, Any]]:
    return client.get("/api/corrections", params=query).json()["corrections"]


def test_a_correction_is_kept_listed_and_taken_back(client: TestClient, served: Playground) -> None:
    predicted = {"program": 'QueryAttr(Find("Norway"), "code")', "answers": ["NO"]}
    first = kept(client, predicted=predicted | {"confidence": 0.25}, author="Ann", note="n")
    assert first["answers"] == ["323802 square kilometre"] and first["author"] == "Ann"
    assert first["before"]["answers"] == ["NO"]
    kept(client, question="Who sells shoes?", verdict="unclear", program=None)
    again = kept(client, program=AREA.replace("area", "code"))
    assert again["id"] == first["id"]
    assert [one["question"] for one in listed(client)] == ["Who sells shoes?", SAID["question"]]
    info = client.get("/api/info").json()
    assert (info["corrections"], info["taught"]) == (2, 1), "what has a program can be learnt"
    gone = client.delete(f"/api/corrections/{first['id']}").json()
    assert gone["removed"] and gone["answers"] == ["NO"]
    assert [one["verdict"] for one in listed(client)] == ["unclear"]
    assert [one["removed"] for one in listed(client, removed=True)] == [False, True]
    assert client.delete(f"/api/corrections/{first['id']}").status_code == 404
    file = served.part(Corrections).file(served.base(None))
    assert len(file.read_text("utf-8").splitlines()) == 4  # nothing is lost
    assert read_corrections(file)[0].fingerprints == {"kb": served.base(None).kb.fingerprint}


def test_right_and_wrong_data_are_said_of_what_was_predicted(client: TestClient) -> None:
    asked = {"question": "Is Oslo Norway's capital?", "program": None}
    predicted = {"program": CAPITAL, "answers": ["yes"], "answer_form": "exists"}
    one = kept(client, **asked, verdict="right", predicted=predicted)
    assert (one["answers"], one["answer_form"]) == (["yes"], "exists")
    asked["program"] = CAPITAL  # the same, said again
    assert kept(client, **asked, verdict="right", predicted=predicted)["answers"] == ["yes"]
    one = kept(client, **asked, verdict="wrong data", predicted=predicted, truth=["no"])
    assert one["truth"] == ["no"]


@pytest.mark.parametrize("verdict", ["right", "wrong data"])
@pytest.mark.parametrize("more", [{"refused": True}, {"refused": {"kind": "unsure"}}, {}])
def test_a_program_that_nobody_saw_is_not_kept(
    verdict: str, more: dict[str, Any], client: TestClient
) -> None:
    predicted = {"program": AREA, "answers": [], "confidence": 0.1} | more
    said = {"question": "How big is Atlantis?", "verdict": verdict, "predicted": predicted}
    answer = client.post("/api/corrections", json=said)
    error = answer.json()["error"]
    assert (answer.status_code, error["field"]) == (400, "program")
    assert "not in the knowledge base" in error["to_try"] and listed(client) == []
    # The refusal itself may be right, and a program that somebody writes.
    one = kept(client, **said | {"verdict": "not in the knowledge base", "program": None})
    assert one["program"] is None and one["before"]["program"] == AREA
    assert kept(client, **said | {"program": AREA})["program"] == AREA


def test_an_answer_that_is_empty_may_be_right(client: TestClient) -> None:
    empty = 'FilterConcept(Find("Norway"), "city")'
    said = {"question": "Which city is Norway?", "program": None, "verdict": "right"}
    predicted = {"program": empty, "answers": []}
    assert kept(client, **said, predicted=predicted)["answers"] == []


def test_nobody_is_named_who_does_not_say_so(client: TestClient) -> None:
    first = kept(client)
    assert first["author"] == ""
    assert client.delete(f"/api/corrections/{first['id']}").json()["author"] == ""


def test_a_program_may_be_a_tree(client: TestClient) -> None:
    tree = read_draft(AREA).to_json()
    assert tree is not None and kept(client, program=tree)["program"] == AREA
    tree["inputs"] = [None]
    answer = client.post("/api/corrections", json=SAID | {"program": tree})
    assert answer.status_code == 422 and len(listed(client)) == 1


@pytest.mark.parametrize(
    ("said", "status", "field", "message"),
    [
        ({"verdict": "wrong"}, 400, "verdict", "one of right"),
        ({"program": None}, 400, "program", "needs a program"),
        ({"verdict": "unclear"}, 400, "program", "without a program"),
        ({"question": " ?"}, 400, "question", "no letter"),
        ({"program": 'QueryAttr(Find("Norwy"), "area")'}, 422, None, "did you mean 'Norway'"),
        ({"program": "Count("}, 422, None, ""),
        ({"answer_form": "exists"}, 422, None, "Count"),
        ({"answer_form": 3}, 400, "answer_form", ""),
        ({"predicted": {"answers": 3}}, 400, "predicted", ""),
        ({"truth": [3]}, 400, "truth", "texts"),
        ({"question": "x" * 3000}, 400, "question", "at most"),
    ],
)
def test_what_cannot_be_kept(
    said: dict[str, Any], status: int, field: str | None, message: str, client: TestClient
) -> None:
    answer = client.post("/api/corrections", json=SAID | said)
    error = answer.json()["error"]
    assert (answer.status_code, error["field"]) == (status, field)
    assert message in error["message"]
    assert listed(client) == []


def _add(folder: str, name: str) -> None:
    from tests.parsers.conftest import COUNTRIES  # noqa: F401 (the same knowledge base)

    made = Playground(ServeLimits(), folder=Path(folder))
    made.add(_KB, "small")
    corrections = made.part(Corrections)
    for number in range(25):
        said = dict.fromkeys(("predicted", "answer_form", "truth", "note", "author"))
        corrections.keep(made.base(None), SAID | said | {"question": f"How big? {name} {number}"})


_KB: Any = None


def test_several_servers_write_one_file(served: Playground) -> None:
    global _KB
    _KB = served.base(None).kb
    context = multiprocessing.get_context("fork")
    several = [context.Process(target=_add, args=(str(served.folder), name)) for name in "ab"]
    for one in several:
        one.start()
    for one in several:
        one.join()
    assert len(served.part(Corrections).newest(served.base(None))) == 50


def test_corrections_come_along_to_the_run(client: TestClient, served: Playground) -> None:
    first = kept(client)
    own = served.part(Corrections).file(served.base(None))
    run = served.folder.parent / "run"
    run.mkdir()
    kb = served.base(None).kb.fingerprint
    served.run = ServedRun(run, "pointer", kb, "small")
    assert [one["id"] for one in listed(client)] == [first["id"]]
    client.delete(f"/api/corrections/{first['id']}")
    kept(client, question="How large is Norway?")
    assert len(read_corrections(run / FILE)) == 3 and len(read_corrections(own)) == 1
    # Another server does not bring back what was taken back.
    other = Playground(ServeLimits(), served.run, folder=served.folder)
    other.add(served.base(None).kb, "small")
    found = other.part(Corrections).newest(other.base(None))
    assert [one.question for one in found] == ["How large is Norway?"]


def test_exports(client: TestClient, tmp_path: Path) -> None:
    kept(client)
    kept(client, question="Who sells shoes?", verdict="unclear", program=None)
    asked = {"program": CAPITAL, "answer_form": "exists", "question": "Is Oslo the capital?"}
    kept(client, **asked)
    predicted = {"program": CAPITAL, "answers": ["yes"], "confidence": 0.5}
    kept(client, question="Hm?", verdict="not in the knowledge base", program=None,
         predicted=predicted)  # fmt: skip
    client.post("/api/queue", json={"questions": ["Where is Suva?", SAID["question"]]})

    def exported(form: str) -> str:
        answer = client.get("/api/corrections/export", params={"form": form})
        assert answer.headers["content-disposition"].startswith("attachment")
        return answer.text

    path = tmp_path / "corrections.jsonl"
    path.write_text(exported("training"), "utf-8")
    assert len(newest(read_corrections(path))) == 4
    assert len([*learnable(path)]) == 3
    path = tmp_path / "corrections.json"
    path.write_text(exported("kqapro"), "utf-8")
    [one] = read_examples(path)  # the others have no program, or an answer form
    assert one.answer == "323802 square kilometre" and len(one.choices) == 10
    assert one.answer in one.choices and one.sparql
    tasks = json.loads(exported("label-studio"))
    assert len(tasks) == 5
    by_question = {one["data"]["question"]: one for one in tasks}
    assert "annotations" not in by_question["Where is Suva?"]
    said = by_question["Hm?"]
    choices = {"choices": ["not in the knowledge base"]}
    assert said["annotations"][0]["result"][0]["value"] == choices
    assert said["predictions"][0]["score"] == 0.5
    assert 'value="wrong data"' in exported("label-studio-interface")


# --- the queue ------------------------------------------------------------------------------------


def test_a_queue_of_questions(client: TestClient, served: Playground) -> None:
    several = ["How big is Norway?", "How big is  Norway?", "Where is Suva?", "?", "Who?"]
    answer = client.post("/api/queue", json={"questions": several})
    assert answer.status_code == 200
    assert (answer.json()["count"], answer.json()["left"]) == (3, 3)
    kept(client, item=answer.json()["items"][0]["id"])
    found = client.get("/api/queue").json()
    assert (found["count"], found["left"], len(found["items"])) == (3, 2, 2)
    judged = client.get("/api/queue", params={"all": True}).json()["items"][-1]
    assert (judged["question"], judged["judged"]) == (SAID["question"], "corrected")
    # Another server has the same, and the verdict.
    other = Playground(ServeLimits(), folder=served.folder)
    other.add(served.base(None).kb, "small")
    assert len(other.part(Queues).of(other.base(None)).waiting()) == 2
    assert client.delete("/api/queue").json()["count"] == 0
    assert len(listed(client)) == 1


def test_questions_are_made_in_the_background(tmp_path: Path) -> None:
    made = Playground(ServeLimits(), folder=tmp_path / "playground")
    made.add(load("invented:3"), "invented", place="invented:3")
    with client_of(made) as client:
        answer = client.post("/api/queue", json={"generate": 5, "seed": 2})
        assert answer.status_code == 202 and answer.json()["generating"]
        again = client.post("/api/queue", json={"generate": 5})
        assert again.status_code == 409
        queue = made.part(Queues).of(made.base(None))
        thread = queue._making
        assert thread is not None
        thread.join()
        found = client.get("/api/queue").json()
        assert (found["count"], found["generating"], found["message"]) == (5, False, None)
        assert len({one["question"] for one in found["items"]}) == 5


def test_readers_get_different_items(client: TestClient) -> None:
    client.post("/api/queue", json={"questions": [f"How big is it, {n}?" for n in range(6)]})

    def got(reader: str) -> list[str]:
        given = {"reader": reader, "limit": 2}
        return [one["id"] for one in client.get("/api/queue", params=given).json()["items"]]

    ann, bo, cy = got("ann"), got("bo"), got("cy")
    assert len({*ann, *bo, *cy}) == 6
    assert got("ann") == ann
    assert len(got("di")) == 2  # rather one that another has than none


def test_the_least_confident_comes_first(
    client: TestClient, served: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    from concurrent.futures import Future

    from kopl_cli.serve.asking import Asker

    sure = {"A?": 0.9, "B?": 0.1, "C?": 0.5}
    asked: list[str] = []

    def submit(self: Asker, base: Any, question: str, **_: Any) -> Future[dict[str, Any]]:
        asked.append(question)
        found: Future[dict[str, Any]] = Future()
        found.set_result({"question": question, "answers": [{"confidence": sure[question]}]})
        return found

    monkeypatch.setattr(Asker, "submit", submit)
    kb = served.base(None).kb.fingerprint
    served.run = ServedRun(served.folder, "pointer", kb, "small")
    client.post("/api/queue", json={"questions": [*sure]})
    thread = served.part(Queues).of(served.base(None))._thread
    if thread is not None:
        thread.join()
    items = client.get("/api/queue").json()["items"]
    assert [one["question"] for one in items] == ["B?", "C?", "A?"]
    assert sorted(asked) == [*sure]
    # Another run is asked anew.
    served.run = ServedRun(served.folder.parent, "pointer", kb, "small")
    sure["B?"] = 0.95
    client.get("/api/queue")
    thread = served.part(Queues).of(served.base(None))._thread
    if thread is not None:
        thread.join()
    items = client.get("/api/queue").json()["items"]
    assert [one["question"] for one in items] == ["C?", "A?", "B?"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400), ({"questions": ["a"], "generate": 3}, 400), ({"questions": [3]}, 400),
        ({"questions": []}, 400), ({"questions": ["a " * 2000]}, 400), ({"generate": 0}, 400),
        ({"generate": 3}, 400),  # it lies in no file
    ],
)  # fmt: skip
def test_what_no_queue_takes(body: dict[str, Any], status: int, client: TestClient) -> None:
    assert client.post("/api/queue", json=body).status_code == status
