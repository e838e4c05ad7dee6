"""Asking over HTTP: batches, limits, and what is told of answers, with a parser that is made up."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from kopl.executor import Executor
from kopl.text import read
from kopl_base.errors import KoplError
from kopl_cli.serve import asking, examples, warm_up
from kopl_cli.serve.bases import Base, Playground, ServedRun
from kopl_cli.serve.routes import BusyError

pytest.importorskip("torch", reason="asking needs the extra train")


class Told(KoplError):
    """What a parser may raise."""

    kind = "model"


class Reader:
    """Reads "where is NAME" only; ``gate`` holds it until it is set."""

    def __init__(self, base: Base) -> None:
        self.executor = Executor(base.kb)
        self.gate = threading.Event()
        self.gate.set()
        self.batches: list[list[str]] = []

    def prepare(self) -> None:
        for _ in self.ask_many(["where is Peru"]):
            pass

    def ask_many(self, questions: Sequence[str], **_: Any) -> Iterator[Any]:
        self.gate.wait(60)
        self.batches.append([*questions])
        for question in questions:
            if question == "raise":
                yield Told("it is not to be read")
                continue
            program = read(f'QueryName(Relate(Find("{question[9:]}"), "capital", "forward"))')
            result = self.executor.run(program)
            yield [
                SimpleNamespace(
                    program=program, result=result, error=None, refused=None, confidence=0.75,
                    is_calibrated=True, sure=None, unnamed=(), form=None, read_as=None,
                    answers=tuple(result.denotation), prediction=SimpleNamespace(text=str(program)),
                )
            ]  # fmt: skip


@pytest.fixture
def reader(playground: Playground, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """The parser that is loaded for whatever run."""
    base = playground.base(None)
    made = Reader(base)
    monkeypatch.setattr(asking, "_load", lambda *_: made)
    run = ServedRun(Path("runs/made-up"), "pointer", base.kb.fingerprint, "world")
    monkeypatch.setattr(playground, "run", run)
    yield made
    made.gate.set()


def ask(client: TestClient, question: str, **more: Any) -> Any:
    """What ``/api/ask`` answers."""
    return client.post("/api/ask", json={"question": question, **more})


def test_an_answer_says_how_it_was_found(client: TestClient, reader: Reader) -> None:
    found = ask(client, "where is Norway").json()
    [answer] = found["answers"]
    assert answer["answer"]["answers"] == ["Oslo"] and answer["sure"]
    assert answer["program"]["calls"][0]["arguments"] == ["Norway"]
    assert answer["unsaid"] == ["capital"] or answer["unsaid"] == []
    assert found["why_empty"] is None
    assert client.get("/api/info").json()["run"]["loaded"]


def test_why_an_answer_is_empty(client: TestClient, reader: Reader) -> None:
    why = ask(client, "where is Norwegia").json()["why_empty"]
    assert why["number"] == 0 and why["near"]


def names(playground: Playground, count: int) -> list[str]:
    """So many different names of things that there are; near ones take long to find."""
    kb = playground.base(None).kb
    return sorted({kb.name_of(node) for node in range(10 * count)})[:count]


def test_those_that_wait_together_are_one_batch(
    playground: Playground, client: TestClient, reader: Reader
) -> None:
    reader.gate.clear()
    questions = [f"where is {name}" for name in names(playground, 40)]
    with client, ThreadPoolExecutor(40) as people:
        asked = [people.submit(ask, client, question) for question in questions]
        reader.gate.set()
        replies = [one.result() for one in asked]
    assert [reply.status_code for reply in replies] == [200] * 40
    assert [reply.json()["question"] for reply in replies] == questions
    assert sorted(chain.from_iterable(reader.batches)) == sorted(questions)
    assert max(map(len, reader.batches)) <= asking.TOGETHER
    assert len(reader.batches) < 40


def test_more_than_may_wait_are_refused(playground: Playground, reader: Reader) -> None:
    asker, base = playground.part(asking.Asker), playground.base(None)
    reader.gate.clear()
    most = playground.limits.waiting
    futures, refused = [], 0
    for name in names(playground, most + asking.TOGETHER + 30):
        try:
            futures.append(asker.submit(base, f"where is {name}"))
        except BusyError as error:
            refused += 1
            assert error.status == 503
    assert refused >= 30 and len(futures) >= most
    reader.gate.set()
    assert all(future.result(60)["answers"] for future in futures)


def test_what_is_wrong_with_one_question_is_its_own(client: TestClient, reader: Reader) -> None:
    assert ask(client, "raise").status_code == 422
    assert ask(client, "raise").json()["error"]["kind"] == "model"
    assert ask(client, "where is Norway").status_code == 200


def test_the_same_question_again_needs_no_parser(client: TestClient, reader: Reader) -> None:
    first = ask(client, "where is Sweden").json()
    assert ask(client, "where is Sweden").json() == first
    assert reader.batches.count(["where is Sweden"]) == 1
    ask(client, "where is Sweden", top=2)
    assert reader.batches.count(["where is Sweden"]) == 2


@pytest.mark.parametrize("question", ["", " ", "?!…", "\u200f"])
def test_a_question_without_words(client: TestClient, reader: Reader, question: str) -> None:
    assert ask(client, question).status_code == 422


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "question"),
        ({"question": 1}, "question"),
        ({"question": "a" * 2001}, "question"),
        ({"question": "a", "top": 0}, "top"),
        ({"question": "a", "beams": 1000}, "beams"),
        ({"question": "a", "least": 2}, "least"),
        ({"question": "a", "least": True}, "least"),
        ({"question": "a", "tops": 1}, "tops"),
    ],
)
def test_wrong_fields_are_named(
    client: TestClient, reader: Reader, given: dict[str, Any], field: str
) -> None:
    reply = client.post("/api/ask", json=given)
    assert reply.status_code == 400 and reply.json()["error"]["field"] == field


def test_without_a_run_all_but_asking_works(client: TestClient) -> None:
    reply = ask(client, "where is Norway")
    assert reply.status_code == 501 and "kopl train" in reply.json()["error"]["to_try"]
    assert not client.get("/api/info").json()["can"]["ask"]["yes"]


def test_a_run_that_cannot_be_loaded(
    playground: Playground, client: TestClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    base = playground.base(None)
    run = ServedRun(tmp_path / "gone", "pointer", base.kb.fingerprint, "world")
    monkeypatch.setattr(playground, "run", run)
    reply = ask(client, "where is Norway")
    assert reply.status_code == 501 and "no such run" in reply.json()["error"]["message"]
    can = client.get("/api/info").json()["can"]["ask"]
    assert not can["yes"] and "no such run" in can["why"]


def test_another_run_answers_anew(
    playground: Playground, client: TestClient, reader: Reader
) -> None:
    ask(client, "where is Denmark")
    playground.run = ServedRun(Path("runs/other"), "pointer", "", "world")
    ask(client, "where is Denmark")
    assert reader.batches.count(["where is Denmark"]) == 2
    assert client.get("/api/info").json()["run"]["moved"]


def test_what_waits_is_told_when_the_server_stops(
    reader: Reader, playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "LAST", 0.1)  # the reader is held
    asker, base = playground.part(asking.Asker), playground.base(None)
    reader.gate.clear()
    futures = [asker.submit(base, f"where is {name}") for name in names(playground, 30)]
    playground.close()
    reader.gate.set()
    told = [future.exception(60) for future in futures]
    assert all(error is None or isinstance(error, BusyError) for error in told)
    assert any(told)


def test_what_the_first_visitor_would_wait_for_is_done_before(
    client: TestClient, playground: Playground, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[int, int]] = []
    monkeypatch.setattr(examples, "draw", lambda *given: drawn.append(given[2:]) or [])
    warm_up(playground)
    asked = ask(client, "where is Norway").json()  # behind the one that warms up
    assert asked["answers"][0]["answer"]["answers"] == ["Oslo"]
    [warm, own] = reader.batches
    assert len(warm) == 1 and own == ["where is Norway"]
    assert client.get("/api/examples").status_code == 200 and drawn == [(0, examples.FIRST)]


@pytest.mark.usefixtures("reader")
def test_without_the_package_that_reads_the_run_the_way_is_to_install_it(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "find_spec", lambda name: None)
    reply = ask(client, "where is Norway")
    assert reply.status_code == 501
    error = reply.json()["error"]
    assert "torch" in error["message"] and error["to_try"].startswith("pip install")
