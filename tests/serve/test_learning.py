"""Learning on the page: lessons and first trainings, stopped, gone on with, kept."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from kb import KnowledgeBase, load
from kopl.example import Example, write_examples
from kopl.text import read
from kopl_base.packages import install
from kopl_cli.serve import learning
from kopl_cli.serve.bases import Playground, ServedRun, ServeLimits
from kopl_cli.serve.children import is_held
from kopl_cli.serve.learning import Learning, Training
from kopl_cli.serve.reports import mcnemar
from parsers.corrections import FILE, Correction, append, newest, read_corrections
from tests.serve.conftest import client_of

QUESTION = "How much turf has Norway got?"
AREA = 'QueryAttr(Find("Norway"), "area")'
# A lesson that the small network learns in seconds, with many short epochs.
QUICK = ["--each", "4", "--replay", "56", "--set", "learning_rate=0.005", "--set", "threads=1"]
LATE = 240.0  # seconds after which something is wrong, on however busy a machine


def until(holds: Callable[[], Any]) -> Any:
    """What holds at last; fails when it never does."""
    late = time.monotonic() + LATE
    while not (found := holds()):
        assert time.monotonic() < late, "it never came"
        time.sleep(0.1)
    return found


@pytest.fixture
def run(trained: Path, tmp_path: Path, small_examples: list[Example]) -> Path:
    """A run with its questions."""
    folder = tmp_path / "run"
    shutil.copytree(trained, folder)
    write_examples(folder / "train.jsonl", small_examples)
    write_examples(folder / "valid.jsonl", small_examples[:12])
    write_examples(folder / "test.jsonl", small_examples[12:24])
    return folder


def served(run: Path | None, folder: Path, place: Path | str, epochs: int = 12) -> Playground:
    """A playground as ``kopl serve`` begins it."""
    made = Playground(ServeLimits(), None if run is None else ServedRun.of(run), folder=folder)
    made.add(load(place), "small", place=str(place))
    found = made.part(Learning)
    found.options["lesson"] = [*QUICK, "--set", f"epochs={epochs}"]
    found.options["default"] = [
        "--config", "tiny", "--set", "questions=120", "--set", "epochs=1", "--set", "threads=1",
        "--set", "plots=false",
    ]  # fmt: skip
    found.begun()
    return made


def correction() -> Correction:
    return Correction(QUESTION, "corrected", read(AREA), ("323802 square kilometre",))


def place_of(run: Path) -> str:
    return json.loads((run / "parser.json").read_text("utf-8"))["kb"]


@pytest.fixture
def playground(run: Path, tmp_path: Path) -> Iterator[Playground]:
    made = served(run, tmp_path / "playground", place_of(run))
    yield made
    made.close()


def told(playground: Playground) -> dict[str, Any]:
    found = playground.part(Learning).told()
    assert found is not None
    return found


def ended(client: TestClient) -> tuple[list[str], dict[str, Any]]:
    """The names of the events of a training, and the last one's data."""
    names, data = [], {}
    with client.stream("GET", "/api/train/events") as answer:
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            if name == "event":
                names.append(value)
            elif name == "data":
                data = json.loads(value)
    return names, data


# The server of another process, which is killed while it trains.
KILLED = """
    import sys, time
    from pathlib import Path
    from tests.serve.test_learning import served, place_of, Learning
    run, folder = Path(sys.argv[1]), Path(sys.argv[2])
    playground = served(run, folder, place_of(run), epochs=40)
    learning = playground.part(Learning)
    learning.start("lesson", playground.base(None), {})
    while not (learning.told()["stage"].startswith("training")):
        time.sleep(0.05)
    print(learning._child.process.pid, flush=True)
    time.sleep(1000)
"""


def test_a_killed_server_loses_nothing_and_the_lesson_goes_on(run: Path, tmp_path: Path) -> None:
    folder, top = tmp_path / "playground", Path(__file__).parents[2]
    append(run / FILE, correction())
    before = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    server = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(run), str(folder)],
        stdout=subprocess.PIPE, text=True, cwd=top,
    )  # fmt: skip
    assert server.stdout is not None
    trainer = int(server.stdout.readline())
    os.kill(server.pid, signal.SIGKILL)
    server.wait()
    server.stdout.close()
    # The training saves what it has and ends by itself.
    until(lambda: not is_held(folder / "learning.lock"))
    with pytest.raises(ProcessLookupError):
        until(lambda: os.kill(trainer, 0))
    assert len(newest(read_corrections(run / FILE))) == 1
    playground = served(run, folder, place_of(run))
    with client_of(playground) as client:
        job = client.get("/api/info").json()["learning"]
        assert (job["state"], job["resumable"], job["what"]) == ("unfinished", True, "lesson")
        # A correction that is made meanwhile is not lost, either.
        later = {"question": "Norway's seat?", "verdict": "unclear"}
        assert client.post("/api/train", json={"what": "resume"}).status_code == 202
        assert client.post("/api/train", json={"what": "lesson"}).status_code == 409
        assert client.post("/api/train/keep", json={"keep": True}).status_code == 409
        assert client.post("/api/corrections", json=later).status_code == 200
        names, job = ended(client)
        assert names[-1] == "done" and "progress" in names, job
        report = job["report"]
        assert report["corrected"]["n"] == report["corrected"]["after"] == 1
        assert report["held_out"]["n"] == 12 and 0 <= report["held_out"]["p"] <= 1
        [change] = [one for one in report["changed"] if one["question"] == QUESTION]
        assert change["better"] and change["after"] == ["323802 square kilometre"]
        # Nothing is begun before somebody has said what becomes of it.
        assert client.post("/api/train", json={"what": "lesson"}).status_code == 409
        assert client.post("/api/train/keep", json={"keep": True}).json()["kept"]
        assert playground.run is not None and playground.run.folder.name == "lesson-1"
        said = client.post("/api/ask", json={"question": QUESTION}).json()
        assert said["answers"][0]["answer"]["answers"] == ["323802 square kilometre"]
        listed = client.get("/api/corrections").json()
        assert [one["question"] for one in listed["corrections"]] == ["Norway's seat?", QUESTION]
        assert client.post("/api/train/keep", json={"keep": True}).status_code == 404
    now = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    assert {name: one for name, one in now.items() if name != FILE} == {
        name: one for name, one in before.items() if name != FILE
    }
    # After a restart with the old run, the kept one is asked.
    again = served(run, folder, place_of(run))
    assert again.run == playground.run and told(again)["kept"]


def test_a_lesson_is_stopped_and_thrown_away(playground: Playground, run: Path) -> None:
    playground.part(Learning).options["lesson"] = [*QUICK, "--set", "epochs=1000"]
    append(run / FILE, correction())
    with client_of(playground) as client:
        assert client.post("/api/train", json={"what": "lesson"}).status_code == 202
        other = served(run, playground.folder, place_of(run))
        with client_of(other) as second:  # another server on the same folder
            assert second.post("/api/train", json={"what": "lesson"}).status_code == 409
        until(lambda: told(playground)["stage"].startswith("training"))
        assert client.delete("/api/train").status_code == 202
        names, job = ended(client)
        assert (names[-1], job["state"], job["resumable"]) == ("stopped", "stopped", True)
        assert client.delete("/api/train").status_code == 404
        assert client.post("/api/train/keep", json={"keep": True}).status_code == 409
        assert client.post("/api/train/keep", json={"keep": False}).json()["kept"] is False
        assert client.get("/api/train").json() == {"learning": None}
        assert not [*(playground.folder / "runs").iterdir()]
        assert client.post("/api/train", json={"what": "resume"}).status_code == 404


def test_the_first_training(tmp_path: Path) -> None:
    playground = served(None, tmp_path / "playground", "invented:3")
    with client_of(playground) as client:
        program = "Count(FindAll())"
        said = {"question": "How many are there?", "verdict": "corrected", "program": program}
        kept = client.post("/api/corrections", json=said).json()
        assert client.post("/api/train", json={"what": "lesson"}).status_code == 404
        begun = client.post("/api/train", json={"what": "default", "settings": {"seed": 3}})
        assert begun.status_code == 202
        names, job = ended(client)
        assert names[-1] == "done", job
        assert job["report"]["held_out"]["n"] == 12
        assert client.post("/api/train/keep", json={"keep": True}).json()["kept"]
        assert client.get("/api/info").json()["run"]["name"] == "small-1"
        # What was said before there was a run is learnt from now on.
        listed = client.get("/api/corrections").json()["corrections"]
        assert [one["id"] for one in listed] == [kept["id"]]
        assert playground.run is not None
        assert len(read_corrections(playground.run.folder / FILE)) == 1
    again = served(None, tmp_path / "playground", "invented:3")
    assert again.run == playground.run


@pytest.mark.parametrize("has_begun", [True, False])
def test_what_a_killed_server_left_is_gone_on_with_or_thrown_away(
    has_begun: bool, playground: Playground, run: Path
) -> None:
    new = playground.folder.resolve() / "runs" / "lesson-1"
    new.mkdir(parents=True)
    if has_begun:
        (new / "learned.json").write_text("{}")
    noted = asdict(Training("a", "lesson", "small", str(new), str(run), "running"))
    (playground.folder / "learning.json").write_text(json.dumps(noted))
    client = client_of(served(run, playground.folder, place_of(run)))
    job = client.get("/api/info").json()["learning"]
    assert (job["state"], job["resumable"], job["waits"]) == ("unfinished", has_begun, True)
    assert ("gone on with" in job["message"]) == has_begun
    assert client.post("/api/train/keep", json={"keep": False}).json()["kept"] is False
    assert not new.exists() and client.get("/api/train").json() == {"learning": None}


def test_a_training_that_fails_says_why(tmp_path: Path) -> None:
    playground = served(None, tmp_path / "playground", "invented:3")
    playground.part(Learning).options["default"] = ["--set", "epoch=3"]
    with client_of(playground) as client:
        client.post("/api/train", json={"what": "default"})
        names, job = ended(client)
        assert names[-1] == "failed" and "did you mean" in job["message"]
        assert client.post("/api/train/keep", json={"keep": False}).status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"what": "everything"}, 400, "what"), ({"what": "lesson"}, 400, "what"),
        ({"what": "resume"}, 404, "what"),
        ({"what": "default", "settings": {"kb": 3}}, 400, "settings"),
        ({"what": "default", "settings": {"epochs": 0}}, 400, "settings"),
        ({"what": "default", "settings": {"epochs": "3 --set kb=x"}}, 400, "settings"),
        ({"what": "default", "settings": {"minutes": 1e9}}, 400, "settings"),
    ],
)  # fmt: skip
def test_what_is_not_trained(
    body: dict[str, Any], status: int, field: str, playground: Playground
) -> None:
    answer = client_of(playground).post("/api/train", json=body)
    assert (answer.status_code, answer.json()["error"]["field"]) == (status, field)
    assert client_of(playground).get("/api/train/events").status_code == 404


def test_what_is_missing_is_told(playground: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "find_spec", lambda name: None)
    client = client_of(playground)
    answer = client.post("/api/train", json={"what": "default"})
    error = answer.json()["error"]
    assert (answer.status_code, error["kind"]) == (501, "missing")
    assert error["to_try"] == install("train") and install("train") in error["message"]
    can = client.get("/api/info").json()["can"]["train"]
    assert can == {"yes": False, "why": error["message"]}


def test_a_run_of_another_knowledge_base_learns_nothing(
    playground: Playground, small: KnowledgeBase
) -> None:
    playground.add(load("invented:3"), "other", place="invented:3")
    answer = client_of(playground).post("/api/train", json={"what": "lesson", "kb": "other"})
    assert answer.status_code == 400 and answer.json()["error"]["field"] == "kb"


def test_each_knowledge_base_is_asked_with_a_run_for_it(playground: Playground) -> None:
    usual, own = playground.run, playground.base(None)
    other = playground.add(load("invented:3"), "other", place="invented:3")
    assert playground.run_of(other) == playground.run_of(own) == usual
    trained = ServedRun(Path("other-1"), "pointer", other.kb.fingerprint, "invented:3")
    playground.trained[other.kb.fingerprint] = trained
    assert (playground.run_of(other), playground.run_of(own)) == (trained, usual)


@pytest.mark.parametrize(
    ("first", "second", "p"), [(0, 0, 1.0), (0, 5, 0.0625), (3, 3, 1.0), (1, 9, 0.021484375)]
)
def test_mcnemar(first: int, second: int, p: float) -> None:
    assert mcnemar(first, second) == mcnemar(second, first) == pytest.approx(p)
