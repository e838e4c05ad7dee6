"""Paraphrases by a model: a question set in, a question set out, and going on after a stop."""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from generation.paraphrase.filters import Filters, rejecting
from generation.paraphrase.model import Reply, Request
from generation.paraphrase.model_run import ModelReport, ParaphrasePlan, run
from generation.paraphrase.prompt import read_prompt
from kopl.example import Example, read_examples, write_examples
from kopl.text import read
from kopl_base.chat import AskError
from kopl_base.errors import KoplError, ReadError, WriteError
from kopl_cli import main
from tests.generation.paraphrase_server import (
    Answer,
    Server,
    chat,
    good,
    land,
    model,
    server,
)  # fmt: skip

__all__ = ["server"]

COUNT = 12
PROMPT = read_prompt("{canonical}")


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    program = 'QueryAttr(Find("Land {}"), "area")'
    write_examples(path, [
        Example(f"What is the area of Land {n}?", read(program.format(n)), str(n), id=f"g-{n}")
        for n in range(COUNT)
    ])  # fmt: skip
    return path


def plan(source: Path, **options: Any) -> ParaphrasePlan:
    # What texts mean is tested elsewhere; here they only tell the replies apart.
    options.setdefault("filters", Filters(judges=0, names="reject", meaning="ignore"))
    return ParaphrasePlan(source, options.pop("prompt", PROMPT), **options)


# --- good replies -------------------------------------------------------------------------------


def test_replies_in_the_order_of_the_questions(
    questions: Path, tmp_path: Path, server: Server
) -> None:
    outs = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for out, workers in zip(outs, (1, 6), strict=True):
        report = run(plan(questions, count=3, seed=4), model(server, workers=workers), out)
        assert (report.asked, report.given, report.failed) == (36, 36, 0)
        assert report.kept + report.reasons.total() == 36
        assert not list(tmp_path.glob("*.part*"))
    assert outs[0].read_bytes() == outs[1].read_bytes()
    assert 1 < server.most_at_once <= 6
    made = list(read_examples(outs[0]))
    lands = [one.question.split(",")[0].split()[-1] for one in made]
    assert lands == sorted(lands, key=int) and len(set(lands)) == COUNT
    assert made[0].id == "g-0" and made[0].canonical == "What is the area of Land 0?"
    assert made[0].extra["paraphrase"] == {"model": "my-model", "reply": 0}
    body = server.asked[0]
    assert set(body) == {"model", "messages", "seed", "temperature"}
    assert (body["model"], body["temperature"]) == ("my-model", 0.5)
    assert len({body["seed"] for body in server.asked}) == 36
    assert {0 <= body["seed"] < 1 << 31 for body in server.asked} == {True}
    run(plan(questions, count=3, seed=5), model(server), outs[1])
    assert outs[0].read_bytes() != outs[1].read_bytes()


def test_the_command(
    questions: Path, tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    server.play = lambda body, _: chat(
        "It is large." if "Land 3?" in str(body["messages"][-1]) else
        f"How large is Land {str(body['messages'][-1]).split('Land ')[1].split('?')[0]}?"
    )  # fmt: skip
    out, rejected = tmp_path / "out.jsonl", tmp_path / "rejected.jsonl"
    monkeypatch.setenv("MY_KEY", "secret-1\n")
    assert main([
        "paraphrase", "model", str(questions), "-o", str(out), "--endpoint", f"{server.url}/v1/",
        "--model", "m", "--key-from", "MY_KEY", "-n", "2", "--concurrency", "3",
        "--set", "max_tokens=60", "--set", "temperature=null", "--rejected", str(rejected),
    ]) == 0  # fmt: skip
    assert capsys.readouterr().err == (
        "kopl: kept 11 of 24 paraphrases, of 11 questions (twice 11, no question 2)\n"
    )
    assert {headers["Authorization"] for headers in server.headers} == {"Bearer secret-1"}
    assert set(server.paths) == {"/v1/chat/completions"}
    assert set(server.asked[0]) == {"model", "messages", "seed", "max_tokens"}
    assert [m["role"] for m in server.asked[0]["messages"]] == [
        "system", "user", "assistant", "user"
    ]  # fmt: skip
    left = [json.loads(line) for line in rejected.read_text("utf-8").splitlines()]
    assert {one["reason"] for one in left if one["id"] == "g-3"} == {"no question"}
    assert len(list(read_examples(out))) == 11


def test_poor_replies_are_counted(questions: Path, tmp_path: Path, server: Server) -> None:
    texts: dict[str, Answer] = {
        "Land 0": chat("How large is it?"),
        "Land 1": chat(""),
        "Land 2": chat(None),
        "Land 3": chat("What is the area of Land 3"),
        "Land 4": chat("<think>Hm, Land 4</think>\n\nSure:\n**How large is land 4?**"),
        "Land 5": chat("How large is Land 5, in square", finish_reason="length"),
        "Land 6": chat([{"type": "text", "text": "How large is "}, {"text": "Land 6?"}]),  # type: ignore[arg-type]
    }
    server.play = lambda body, number: texts.get(land(body)) or good(body, number)
    out, rejected = tmp_path / "out.jsonl", tmp_path / "rejected.jsonl"
    with rejecting(rejected) as reject:
        report = run(plan(questions), model(server), out, reject=reject)
    assert report.reasons == {
        "a name or value is missing": 1, "empty": 2, "too near to the question": 1, "cut short": 1,
    }  # fmt: skip
    kept = {one.id: one.question for one in read_examples(out)}
    assert kept["g-4"] == "How large is land 4?" and kept["g-6"] == "How large is Land 6?"
    assert len(kept) == COUNT - 5


# --- stopping and going on ----------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 4])
def test_a_stopped_run_goes_on(
    questions: Path, tmp_path: Path, server: Server, workers: int
) -> None:
    whole, out = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    run(plan(questions, count=2), model(server), whole)
    broken = {"Land 4", "Land 9"}
    server.play = lambda body, n: (500, {}, b"") if land(body) in broken else good(body, n)
    server.asked.clear()
    reports = []
    for _ in range(20):
        before = len(server.asked)
        try:
            reports.append(
                run(plan(questions, count=2), model(server, workers=workers, retries=0), out,
                    resume=before > 0)
            )  # fmt: skip
            break
        except AskError as error:
            assert "status 500" in str(error) and "go on with --resume" in str(error)
            assert not out.exists()
            assert len(server.asked) > before
            part = (tmp_path / "out.jsonl.part").read_text("utf-8").splitlines()
            assert f"has {len(part)} replies" in str(error)
            if before:
                broken.pop()
    assert len(reports) == 1 and not broken
    assert out.read_bytes() == whole.read_bytes()
    asked = Counter((land(body), body["seed"]) for body in server.asked)
    assert {key for key, count in asked.items() if count > 1} <= {
        key for key in asked if key[0] in ("Land 4", "Land 9")
    }
    assert not list(tmp_path.glob("*.part*"))


class Scripted:
    """A model that is no server: it says what it is told to, or raises."""

    name, batch, workers = "scripted", 1, 1

    def __init__(self, stop_at: int | None = None, named: str = "scripted") -> None:
        self.asked, self.stop_at, self.settings = 0, stop_at, {"model": named}

    def ask(self, requests: Sequence[Request], stop: threading.Event) -> list[Reply | AskError]:
        if self.asked == self.stop_at:
            raise KeyboardInterrupt
        self.asked += 1
        content = requests[0].messages[0]["content"]
        return [Reply(f"How large is {land({'messages': [{'content': content}]})}?")]


def test_an_interrupted_run_goes_on(questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(plan(questions), Scripted(5), out)
    part = tmp_path / "out.jsonl.part"
    assert len(part.read_bytes().splitlines()) == 5
    with part.open("ab") as file:
        file.write(b'{"key": "torn')
    with pytest.raises(WriteError, match="a stopped run is there; --resume goes on with it"):
        run(plan(questions), Scripted(), out)
    # Other filters are no other run: nothing that was asked depends on them.
    far = Filters(judges=0, distance=0.9, meaning="ignore")
    report = run(plan(questions, filters=far), Scripted(), out, resume=True)
    assert (report.asked, report.given, report.kept) == (COUNT - 5, COUNT, 0)
    with pytest.raises(WriteError, match="is complete; there is no stopped run to go on with"):
        run(plan(questions), Scripted(), out, resume=True)


def test_a_run_of_other_settings_does_not_go_on(questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(plan(questions), Scripted(2), out)
    with pytest.raises(ReadError, match="the stopped run had another seed: 0, not 1"):
        run(plan(questions, seed=1), Scripted(), out, resume=True)
    with pytest.raises(ReadError, match="the stopped run had another prompt"):
        run(plan(questions, prompt=read_prompt("x {canonical}")), Scripted(), out, resume=True)
    other = Scripted(named="other")
    with pytest.raises(ReadError, match="another model: 'scripted', not 'other'"):
        run(plan(questions), other, out, resume=True)
    part = tmp_path / "out.jsonl.part"
    kept = part.read_bytes()
    for damage, message in ((b"{}\n", "line 1: cannot go on with it: 'key'"),
                            (kept + b"]\n", "line 3: cannot go on with it")):  # fmt: skip
        part.write_bytes(damage)
        with pytest.raises(ReadError, match=message):
            run(plan(questions), Scripted(), out, resume=True)
        assert part.read_bytes() == damage
    (tmp_path / "out.jsonl.part.json").write_text("[]", "utf-8")
    with pytest.raises(ReadError, match="not the state of a run"):
        run(plan(questions), Scripted(), out, resume=True)


def test_more_replies_are_asked_for_alone(questions: Path, tmp_path: Path) -> None:
    """A run that goes on with a larger -n asks for what is missing."""
    out = tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(plan(questions, count=1), Scripted(4), out)
    report = run(plan(questions, count=2), Scripted(), out, resume=True)
    assert report.asked == 2 * COUNT - 4


def test_keeping_going(
    questions: Path, tmp_path: Path, server: Server, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(logging.getLogger("kb"), "propagate", True)
    out = tmp_path / "out.jsonl"
    broken = {"Land 4": (400, b"too long"), "Land 7": (500, b"")}

    def play(body: dict[str, Any], number: int) -> Answer:
        status, content = broken.get(land(body), (0, b""))
        return (status, {}, content) if status else good(body, number)

    server.play = play
    report = run(plan(questions, keep_going=True), model(server, retries=1), out)
    assert report.reasons == {"no reply": 2} and report.failed == 2
    assert "2 replies could not be had" in caplog.text and "--resume asks for them" in caplog.text
    assert len(list(read_examples(out))) == COUNT - 2
    broken.clear()
    report = run(plan(questions), model(server), out, resume=True)
    assert (report.asked, report.kept) == (2, COUNT)
    assert len(list(read_examples(out))) == COUNT and not list(tmp_path.glob("*.part*"))
    server.play = lambda body, number: (401, {}, b"")
    with pytest.raises(AskError, match="status 401"):  # no other question would fare better
        run(plan(questions, keep_going=True), model(server), tmp_path / "b.jsonl")
    assert not list(tmp_path.glob("b.jsonl*"))  # nothing came, so there is nothing to go on with
    assert main(["paraphrase", "model", str(questions), "-o", str(tmp_path / "c.jsonl"),
                 "--endpoint", server.url, "--model", "m"]) == 2  # fmt: skip
    assert "KOPL_API_KEY" in capsys.readouterr().err


def test_a_reply_that_fits_every_question_is_none(tmp_path: Path) -> None:
    path, out = tmp_path / "q.jsonl", tmp_path / "out.jsonl"
    programs = [f'Count(FilterConcept(FindAll(), "{c}"))' for c in ("river", "lake", "lake")]
    write_examples(path, [
        Example(f"How many of {n} are there?", read(text), id=str(n))
        for n, text in enumerate(programs)
    ])  # fmt: skip

    class Helpless(Scripted):
        def ask(self, requests: Sequence[Request], stop: threading.Event) -> list[Reply | AskError]:
            river = "of 0" in requests[0].messages[0]["content"]
            said = "Sorry, I cannot help." if river or requests[0].seed % 2 else "Count the lakes!"
            return [Reply(said)]

    report = run(plan(path, count=8), Helpless(), out)
    assert report.reasons["the same for different questions"] >= 9
    # Two wordings of one program may have a paraphrase in common.
    assert [(one.id, one.question) for one in read_examples(out)] == [
        ("1", "Count the lakes!"), ("2", "Count the lakes!")
    ]  # fmt: skip


def test_one_question_in_two_examples_is_asked_once(tmp_path: Path) -> None:
    path, out = tmp_path / "q.jsonl", tmp_path / "out.jsonl"
    program = read('QueryAttr(Find("Land 1"), "area")')
    question = "What is the area of Land 1?"
    write_examples(path, [Example(question, program, id=id) for id in ("a", "b")])
    scripted = Scripted()
    assert run(plan(path), scripted, out).kept == 2
    assert scripted.asked == 1


def test_a_malformed_set_is_found_before_anything_is_asked(questions: Path, tmp_path: Path) -> None:
    with questions.open("a", encoding="utf-8") as file:
        file.write("{}\n")
    scripted = Scripted()
    with pytest.raises(ReadError, match=f"line {COUNT + 1}"):
        run(plan(questions), scripted, tmp_path / "out.jsonl")
    assert scripted.asked == 0 and not list(tmp_path.glob("out*"))


def test_where_nothing_can_be_written(questions: Path, tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="no ordinary file"):
        run(plan(questions), Scripted(), tmp_path)
    (tmp_path / "out.jsonl.part").mkdir()
    with pytest.raises(WriteError, match=r"out\.jsonl\.part: cannot be written"):
        run(plan(questions), Scripted(), tmp_path / "out.jsonl")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--endpoint", "http://h"], "--endpoint needs --model NAME"),
        (["--endpoint", "http://h", "--model", "m", "-o", "-"], "--output names a file"),
        (["--local", "x", "--model", "m"], "--model names a model behind an --endpoint"),
        (["--endpoint", "http://h", "--model", "m", "--set", "a"], "write FIELD=JSON"),
        (["--endpoint", "http://h", "--model", "m", "--set", "a=b"], "write FIELD=JSON"),
        (["--endpoint", "http://h", "--model", "m", "--set", "n=2"], "n is not yours to set"),
        (["--endpoint", "h", "--model", "m"], "'h' is no address"),
        (["--endpoint", "http://h", "--model", "m", "--prompt", "none.txt"], "cannot be read"),
        (["--endpoint", "http://h", "--model", "m", "--edit-distance", "2"], "from 0 to 1, not 2"),
    ],
)
def test_wrong_arguments(
    arguments: list[str], message: str, questions: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    out = tmp_path / "out.jsonl"
    assert main(["paraphrase", "model", str(questions), "-o", str(out), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("out*"))


def test_a_report_is_what_it_says() -> None:
    report = ModelReport(questions=1, given=3, kept=1)
    report.reasons["empty"] += 2
    assert str(report) == "kept 1 of 3 paraphrases, of 1 question (empty 2)"
    assert isinstance(AskError("x"), KoplError)
