"""A training whose time ends before its epochs: the schedule ends with the time."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kb import KnowledgeBase
from kopl.example import Example
from tests.parsers.conftest import quick


class Machine:
    """A clock on which every step takes some seconds, and every predicted question some."""

    def __init__(self, step: float, question: float = 0.0) -> None:
        self.step, self.question, self.now = step, question, 0.0

    def seconds(self) -> float:
        return self.now

    def drives(self, trainer: Any) -> list[tuple[float, float]]:
        """Let a trainer run on it; gives (loss, rate) of each step once it runs."""
        found: list[tuple[float, float]] = []
        steps, predict = trainer.step, trainer.model.predict

        def step(*arguments: Any) -> Any:
            self.now += self.step
            done = steps(*arguments)
            found.append((done.loss, done.rate))
            return done

        def predicted(questions: Any, **options: Any) -> Any:
            self.now += self.question * len(questions)
            return predict(questions, **options)

        trainer.step, trainer.model.predict = step, predicted
        return found


def started(
    folder: Path, machine: Machine, kb: KnowledgeBase, examples: list[Example], *changes: str,
    scored: int = 0,
) -> tuple[Any, list[tuple[float, float]]]:  # fmt: skip
    from parsers.training import begin

    settings = quick("pointer", "kopl", "epochs=8", "warm_up=4", "dropout=0.2", *changes)
    trainer = begin(
        folder, settings, kb, examples, examples[:10], clock=machine, scored=scored
    )  # 7 batches an epoch, 56 in all
    return trainer, machine.drives(trainer)


def test_a_budget_that_all_epochs_fit_into_changes_nothing(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path
) -> None:
    runs = []
    for name, minutes in (("free", 0), ("bound", 1.25)):
        machine = Machine(1.0, 0.01)
        trainer, steps = started(
            tmp_path / name, machine, small, small_examples, f"minutes={minutes}"
        )
        assert trainer.run() and not trainer.stopped
        assert not (tmp_path / name / "schedule.jsonl").exists()
        runs.append(steps)
    assert runs[0] == runs[1] and len(runs[0]) == 56


@pytest.mark.parametrize("minutes", [0.25, 0.5, 0.8])
def test_the_rate_ends_its_way_as_the_time_ends(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path,
    minutes: float, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Steps of a second, validation of a second an epoch, and three seconds to score."""
    machine = Machine(1.0, 0.1)
    trainer, steps = started(
        tmp_path / "run", machine, small, small_examples, f"minutes={minutes}", scored=30
    )
    assert trainer.run()
    limit = 60 * minutes
    assert machine.now <= limit - 3 * 0.9 and machine.now > limit * 0.75 - 3
    rates = [rate for _, rate in steps]
    assert rates[-1] < 0.15 and max(rates) > 0.6
    assert all(one >= other - 1e-9 for one, other in pairwise(rates[4:]))
    done = f"{trainer.epochs:.3g} of 8 epochs by training.minutes ({minutes:g})"
    assert trainer.stopped == f"stopped after {done}"
    assert 0 < trainer.epochs < 8 and len(steps) == trainer.progress.step
    told = capsys.readouterr().out
    assert "epochs fit into training.minutes" in told
    assert (tmp_path / "run" / "best.safetensors").exists()
    last = json.loads((tmp_path / "run" / "history.jsonl").read_text().splitlines()[-1])
    assert last["step"] == len(steps) and last["epoch"] == pytest.approx(trainer.epochs, abs=1e-3)


def test_a_very_slow_machine_trains_all_the_same(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path
) -> None:
    """A step takes longer than all: there is one, and weights that can be asked."""
    trainer, steps = started(tmp_path / "run", Machine(900.0), small, small_examples, "minutes=1")
    assert trainer.run() and len(steps) == 1
    assert (tmp_path / "run" / "best.safetensors").exists()


def test_half_of_the_time_is_for_the_training(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path
) -> None:
    """Where making the questions took all of it."""
    machine = Machine(1.0)
    machine.now = 100.0
    trainer, steps = started(tmp_path / "run", machine, small, small_examples, "minutes=1")
    assert trainer.run() and 25 <= len(steps) <= 31


@pytest.mark.parametrize("kind", ["interrupt", "kill"])
def test_a_bound_training_is_resumed_exactly(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path, kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """By its saved state, and by the plans that were made after it where it was killed."""
    from parsers import training

    changes = ["minutes=0.6", "checkpoint=0.0001"]
    whole, all_steps = started(tmp_path / "whole", Machine(1.0), small, small_examples, *changes)
    assert whole.run()
    trainer, steps = started(tmp_path / "run", Machine(1.0), small, small_examples, *changes)
    step = trainer.step

    def stopping(*arguments: Any) -> Any:
        if len(steps) == 19 and kind == "kill":
            raise SystemExit
        trainer._stop = len(steps) == 18 and kind == "interrupt"
        if len(steps) == 16 and kind == "kill":
            monkeypatch.setattr(trainer, "_save", lambda: None)  # what follows is lost
        return step(*arguments)

    trainer.step = stopping
    if kind == "kill":
        with pytest.raises(SystemExit):
            trainer.run()
    else:
        assert not trainer.run()
    machine = Machine(1.0)
    again = training.go_on(
        tmp_path / "run", small, small_examples, small_examples[:10], clock=machine
    )
    done = again.progress.step
    assert done == (16 if kind == "kill" else 19)
    rest = machine.drives(again)
    assert again.run()
    assert steps[:done] + rest == all_steps


def test_going_on_without_a_limit(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path
) -> None:
    """The epochs that are left follow, at the rates that they would have had."""
    from kopl_base.errors import SettingsError
    from parsers import training
    from parsers.checkpoint import read_run

    trainer, steps = started(tmp_path / "run", Machine(1.0), small, small_examples, "minutes=0.4")
    assert trainer.run() and trainer.stopped
    own = trainer.settings
    with pytest.raises(SettingsError, match=r"training.batch must stay .*training.minutes"):
        training.resumed(own, {"batch": "4"})
    settings = training.resumed(own, {"training.minutes": "0"})
    parts = small_examples, small_examples[:10]
    machine = Machine(1.0)
    same = training.go_on(tmp_path / "run", small, *parts, clock=Machine(1.0))
    assert same.run() and same.progress.step == len(steps)  # its time has passed
    again = training.go_on(tmp_path / "run", small, *parts, clock=machine, settings=settings)
    rest = machine.drives(again)
    assert again.run() and not again.stopped
    assert len(steps) + len(rest) == 56
    rates = [rate for _, rate in rest]
    assert rates[0] == pytest.approx(1 - len(steps) / 56) and rates[-1] < 0.05
    assert read_run(tmp_path / "run")[0].training.minutes == 0


def test_the_clock_counts_work_not_waiting(torch: Any) -> None:
    import subprocess
    import sys
    import time

    from kopl_base.training.clock import Clock, cores

    clock = Clock(torch.device("cpu"), 1)
    time.sleep(0.3)
    assert clock.seconds() < 0.2
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
    worked = clock.seconds()
    assert 0.2 <= worked < 0.5
    code = "import time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: pass"
    subprocess.run([sys.executable, "-S", "-c", code], check=True)
    assert clock.seconds() - worked > 0.4 / cores() * 0.9


def test_what_fits() -> None:
    from kopl_base.training.clock import Work

    work = Work(steps=100, epoch=10, batch=8, validated=20, scored=100)
    # 100 s of steps, ten validations of 2 s and 10 s of scoring.
    assert work.fitting(100, 1.0, 0.0) == 68  # not yet known: 0.125 s a question
    assert work.fitting(131, 1.0, 0.1) == 100
    assert work.fitting(128, 1.0, 0.1) == 100  # less than 2 % are missing
    assert work.fitting(72, 1.0, 0.1) == 50  # with a validation at the end
    assert work.fitting(5, 1.0, 0.1) == 0
    assert work.fitting(1e9, 0.0, 0.0) == 100


KILLED = """
import os, signal, sys
from pathlib import Path
import torch
from kb import load
from kopl.example import read_examples
from parsers import training
from parsers.settings import Settings

torch.set_num_threads(1)
folder = Path(sys.argv[1])
settings = Settings.from_json((folder / "wanted.json").read_text())
train = list(read_examples(folder / "all.jsonl"))
trainer = training.begin(folder / "killed", settings, load(settings.kb), train, train[:5])
step = trainer.step

def killing(items, done, *others):
    if done == 11:  # in the second of seven batches' epochs, four steps behind its begin
        os.kill(os.getpid(), signal.SIGKILL)
    return step(items, done, *others)

trainer.step = killing
trainer.run()
"""


def test_a_killed_training_goes_on_in_the_middle_of_the_epoch(
    torch: Any, trained: Path, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path
) -> None:
    """With dropout; the weights and the history are those of an unbroken run."""
    import signal
    import subprocess
    import sys

    from kopl.example import write_examples
    from parsers.training import begin, go_on

    settings = quick(
        "pointer", "kopl", f"kb={trained.parent / 'small.kopl'}", "epochs=3", "dropout=0.3",
        "forget=0.2", "checkpoint=0.00001",
    )  # fmt: skip
    write_examples(tmp_path / "all.jsonl", small_examples)
    (tmp_path / "wanted.json").write_text(settings.to_json())
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=root, check=False)
    assert done.returncode == -signal.SIGKILL
    again = go_on(tmp_path / "killed", small, small_examples, small_examples[:5])
    assert (again.progress.epoch, again.progress.batch) == (1, 4)
    assert again.run()
    whole = begin(tmp_path / "whole", settings, small, small_examples, small_examples[:5])
    assert whole.run()
    for name, tensor in whole.model.network.state_dict().items():
        assert torch.equal(tensor, again.model.network.state_dict()[name]), name
    kept = [
        [json.loads(line) for line in (tmp_path / name / "history.jsonl").read_text().splitlines()]
        for name in ("whole", "killed")
    ]
    for record in (*kept[0], *kept[1]):
        del record["seconds"], record["examples a second"]
    assert kept[0] == kept[1] and len(kept[0]) == 3


def test_fewer_questions_are_made_where_all_would_take_too_long() -> None:
    from kopl_cli.training_time import Making

    told: list[str] = []
    making = Making(20_000, 500, 2, 420, 0.4 * 420, told.append, lambda: 0.0)
    kept = blocks = 0
    while kept < making.count:
        kept, blocks = kept + 500, blocks + 1
        making(kept, 20.0, 10.0)  # 10 s a block with two workers
    assert making.count == kept == 7500 and making.count % 500 == 0
    assert 10 + 10 * blocks <= 0.4 * 420
    assert told[0] == (
        "making 7,500 of 20,000 questions, as all would take 6.8 of training.minutes (7)"
    )
    assert not any("7,500 of" in line for line in told[1:])


def test_all_questions_are_made_where_there_is_time() -> None:
    from kopl_cli.training_time import Making

    for limit, share in ((0.0, 0.0), (420.0, 168.0)):
        told: list[str] = []
        wall = iter([0.0, 12.0])  # twice as long as the work: others use the machine, too
        making = Making(20_000, 500, 2, limit, share, told.append, wall.__next__)
        for block in range(40):
            making(500 * (block + 1), 6.0, 0.0)
        assert making.count == 20_000
        assert len(told) == 1 and "making 20,000 questions: about 228 s more" in told[0]


def test_what_takes_seconds_is_not_told() -> None:
    from kopl_cli.training_time import Making

    told: list[str] = []
    making = Making(1000, 500, 1, 0.0, 0.0, told.append, lambda: 0.0)
    making(500, 4.0, 9.0)
    making(1000, 4.0, 9.0)
    assert told == []


def test_scoring_shrinks_with_the_time() -> None:
    from kopl_cli.training_time import ASKING_COST, Scoring

    whole = Scoring(300, 300, 250, 2)
    assert whole.cost == 2 * 600 + 250 * ASKING_COST
    assert whole.within(1e9, 0.1) == whole.within(1.0, 0.0) == whole
    for seconds in (800.0, 500.0, 330.0):
        less = whole.within(seconds, 0.1)
        assert less.cost * 0.1 <= seconds and less.asking < whole.asking
    assert whole.within(330.0, 0.1).tested == 300  # calibrating gives way first
    assert whole.within(60.0, 0.1).tested < 300  # the least of each costs more
    assert whole.within(0.0, 0.1) == Scoring(20, 20, 20, 2)
    assert Scoring(7, 5, 5).within(0.0, 1.0) == Scoring(7, 5, 5)


def test_what_follows_leaves_time_to_train() -> None:
    from kopl_base.training.clock import Work

    work = Work(steps=100, epoch=10, batch=8, validated=0, scored=1000)
    assert work.fitting(40, 1.0, 0.1) == 0
    assert work.fitting(40, 1.0, 0.1, 10.0) == 30


def test_each_decoding_counts_as_scoring(tmp_path: Path) -> None:
    from kopl_cli.train import scoring_of
    from parsers.settings import read_settings

    (tmp_path / "test.jsonl").write_text("{}\n" * 30)
    one, both = (
        scoring_of(tmp_path, read_settings(None, [f"decoding={way}", "pointer.masked=false"]), 20)
        for way in ("constrained", "both")
    )
    assert (one.tested, one.fitted, one.asking) == (30, 20, 20)
    assert both.cost - one.cost == 50


def test_the_best_epoch_is_one_of_the_settings(torch: Any, tmp_path: Path) -> None:
    """Whatever epochs were cut by time, and gone on with."""
    from kopl_cli.train import _chosen
    from parsers.settings import read_settings

    shares = {0.5: 0.1, 1: 0.2, 2: 0.3, 3: 0.4}
    for step, (epoch, share) in enumerate(shares.items()):
        record = {"epoch": epoch, "step": step, "loss": 1, "accuracy": 0, "validation": share}
        with (tmp_path / "history.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")
    told = _chosen(tmp_path, read_settings(None, ["epochs=3"]), 50)
    assert told.startswith("best epoch: 3 of 3, by execution accuracy")


def test_a_run_that_goes_on_stays_in_its_folder(torch: Any) -> None:
    from kopl_base.errors import SettingsError
    from parsers.settings import read_settings
    from parsers.training import resumed

    settings = read_settings(None, ["output=runs/a"])
    with pytest.raises(SettingsError, match=r"move the folder to runs/b and go on with --resume"):
        resumed(settings, {"output": "runs/b"})
    with pytest.raises(SettingsError, match="what may change") as refused:
        resumed(settings, {"seed": "9"})
    assert "output" not in str(refused.value)


def test_what_a_training_tells_fits_the_terminal() -> None:
    from kopl_base.errors import wrapped

    path = "/a/long/path/" + "x" * 90
    lines = wrapped(f"{'words of a line ' * 12} {path}").splitlines()
    assert lines[-1].strip() == path and all(len(line) <= 80 for line in lines[:-1])


def test_questions_of_both_profiles_are_made(tmp_path: Path) -> None:
    from kb import load
    from kopl_cli.training_questions import generated
    from parsers.settings import Settings

    settings = Settings(profile="people", questions=40, other_profile=0.25, seed=7, noise=0.5)
    found = generated(load("world"), settings, tmp_path)
    seeds = [str(example.id).split("-")[0] for example in found]
    assert (seeds.count("7"), seeds.count("8"), len(found)) == (30, 10, 40)
    # Noise is for what people ask.
    assert {seed for seed, one in zip(seeds, found, strict=True) if "noise" in one.extra} == {"7"}
    assert not list(tmp_path.iterdir())


def test_the_shares_of_profiles_stay_where_there_is_little_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kb import load
    from kopl_base.training.clock import Clock
    from kopl_cli import training_questions
    from parsers.settings import Settings

    made: list[tuple[int, str, float]] = []

    def half(
        kb: object, settings: object, folder: object, count: int, profile: str,
        seconds: tuple[float, float], noise: float = 0.0,
    ) -> tuple[list[int], float]:  # fmt: skip
        made.append((count, profile, seconds[1]))
        return [0] * (count // 2), 30.0

    class Still(Clock):
        def seconds(self) -> float:
            return 0.0

    monkeypatch.setattr(training_questions, "made", half)
    settings = Settings(profile="people", questions=1000, other_profile=0.2).changed(
        {"training.minutes": 5}
    )
    found = training_questions.generated(load("world"), settings, tmp_path, Still(None, 1))
    assert len(found) == 450
    assert made == [(800, "people", 0.8 * 120), (100, "kqapro", 90.0)]
