"""The time left, as a bar tells it."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from kopl_base.progress import Progress, TimeLeft, about


def told(bursts: list[tuple[float, float]], total: float) -> list[tuple[float, float]]:
    """(time, seconds left as told then) behind each of some (time, done)."""
    now = 0.0
    left = TimeLeft(total, lambda: now)
    found = []
    for now, done in bursts:
        left.reach(done)
        if left.seconds is not None:
            found.append((now, left.seconds))
    return found


def test_work_in_bursts_does_not_make_the_time_left_jump() -> None:
    """Two processes give a block each, at nearly the same time, every four seconds."""
    bursts = [(0.0, 0.0)]
    for number in range(50):
        bursts += [
            (4.0 * (number + 1), 200.0 * number + 100),
            (4.0 * (number + 1) + 0.1, 200.0 * number + 200),
        ]
    found = told(bursts, 10_000)
    assert found[-1][1] == pytest.approx(0, abs=5)
    for (before, one), (now, other) in pairwise(found):
        # What is told goes down with the clock, but for a few seconds.
        assert abs((one - other) - (now - before)) < max(3.0, 0.05 * one), now


def test_slower_work_is_told_soon() -> None:
    """Twice as slow from the middle on: half a minute later, most of it is told."""
    bursts = [(float(n), float(n)) for n in range(101)]
    bursts += [(100 + 2.0 * n, 100.0 + n) for n in range(1, 101)]
    found = dict(told(bursts, 200))
    assert found[100.0] == pytest.approx(100, rel=0.05)
    assert found[160.0] > 95  # of 140, and 62 if all had gone on as before
    assert found[290.0] < 20


def test_what_was_done_before_took_no_time() -> None:
    """As of a run that goes on: 9,000 of 10,000 are there at once."""
    found = told([(0.0, 9000.0), (10.0, 9100.0)], 10_000)
    assert found == [(10.0, pytest.approx(90.0))]


def test_the_bar_knows_the_time_left() -> None:
    with Progress("x", 10, shown=False) as bar:
        assert bar.left is None
        bar.reach(2)
        bar.reach(2)
        assert bar.left is None


@pytest.mark.parametrize(
    ("total", "message"),
    [
        (1000, None),
        (9_000, "sampling will take about 15 minutes at this pace; stop it"),
        (90_000_000, "sampling will take about 104 days at this pace; stop it"),
    ],
)
def test_long_work_is_told_once(
    total: int, message: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Ten a second, without a bar: what takes more than ten minutes is told after some seconds."""
    now = 0.0
    with Progress("sampling", total, shown=False, advice="stop it", clock=lambda: now) as bar:
        for step in range(90):
            now = step * 0.5
            bar.advance(5)
            assert step < 10 or bool(caplog.records) == bool(message)
            assert step > 9 or not caplog.records
    assert [record.getMessage() for record in caplog.records] == ([message] if message else [])


def test_nothing_is_told_of_work_without_an_advice(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    with Progress("sampling", 1e9, shown=False, clock=lambda: now) as bar:
        for step in range(3):
            now = 6.0 * step
            bar.advance(5)
        assert bar.left
    assert not caplog.records


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (601, "10 minutes"),
        (7140, "119 minutes"),
        (7300, "2.0 hours"),
        (86_400, "24 hours"),
        (172_000, "48 hours"),
        (172_900, "2.0 days"),
        (1e9, "11,574 days"),
    ],
)
def test_a_time_in_words(seconds: float, text: str) -> None:
    assert about(seconds) == text


def test_a_bar_shows_what_else_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of the percentage; of a training, its loss."""
    monkeypatch.setattr("sys.stderr", io.StringIO())
    monkeypatch.setattr("kopl_base.progress.PATIENCE", 0.0)
    for noted in (True, False):
        with Progress("epoch 1/2", 10, shown=True, noted=noted) as progress:
            progress.reach(5, "loss 0.500")
            screen = Console(file=io.StringIO(), width=100)
            assert progress._bar is not None
            screen.print(progress._bar.drawn.get_renderable())
        shown = screen.file.getvalue()  # type: ignore[attr-defined]
        assert shown.startswith("epoch 1/2") and ("loss 0.500" in shown, "50%" in shown) == (
            noted,
            not noted,
        )


def test_a_program_reads_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "progress.jsonl"
    monkeypatch.setenv("KOPL_PROGRESS", str(file))
    now = 0.0
    with Progress("epoch 1/2", 10, noted=True, clock=lambda: now) as told:
        for done in range(1, 11):
            now = 0.2 * done
            told.reach(done, f"loss {done}")
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [(line["done"], line["ended"]) for line in lines] == [
        (0, False), (3, False), (6, False), (9, False), (10, True)
    ]  # fmt: skip
    assert {line["title"] for line in lines} == {"epoch 1/2"}
    assert lines[-1]["note"] == "loss 10" and lines[-1]["total"] == 10
    with Progress("another process", 3, shown=False) as told:
        told.advance(3)
    assert len(file.read_text("utf-8").splitlines()) == len(lines)


def test_a_file_that_cannot_be_written_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("KOPL_PROGRESS", str(tmp_path))
    with Progress("reading", 3) as told:
        told.advance(3)
    assert len(caplog.messages) == 1 and "cannot be written" in caplog.messages[0]
