"""The frame of trainings alone, with a network that has nothing to do with parsers."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

import torch
from torch import Tensor, nn

from kopl_base.training.checkpoint import CheckpointError, read_state
from kopl_base.training.clock import Clock
from kopl_base.training.distributed import Distributed
from kopl_base.training.history import History, read_history
from kopl_base.training.loop import TrainingLoop
from kopl_base.training.optimizer import Batch, Scores, StepResult, TrainingError


@dataclass(frozen=True)
class Options:
    batch: int = 8
    part: int = 0
    epochs: int = 4
    minutes: float = 0.0
    checkpoint: float = 0.0
    optimizer: str = "adam"
    learning_rate: float = 0.05
    weight_decay: float = 0.0
    decay: str = "all"
    gradient_norm: float = 1.0
    warm_up: float = 2.0
    schedule: str = "slope"
    falls: tuple[int, ...] = ()
    floor: float = 0.1
    compile: bool = False


@dataclass(frozen=True)
class Point:
    """A number, and whether it is above a half."""

    number: float
    length: int = 1

    @property
    def text(self) -> str:
        return f"point {self.number:.2f}"


@dataclass(frozen=True)
class Points(Batch):
    numbers: Tensor  # B
    above: Tensor  # B, bool


class Threshold(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 1))

    def forward(self, batch: Points) -> Scores:
        scores = self.layers(batch.numbers[:, None])[:, 0]
        loss = nn.functional.binary_cross_entropy_with_logits(
            scores, batch.above.float(), reduction="sum"
        )
        return Scores(loss, (scores > 0) == batch.above)


class Model:
    def __init__(self) -> None:
        self.network: nn.Module = Threshold()

    def collate(self, items: Any) -> Points:
        numbers = torch.tensor([item.number for item in items])
        return Points(len(items), numbers, numbers > 0.5)

    def groups(self) -> list[dict[str, Any]]:
        return [{"params": list(self.network.parameters()), "lr": 0.05}]

    def compile(self) -> None:
        self.network.compile()


class Loop(TrainingLoop):
    stop_after = -1

    def step(self, *arguments: Any) -> StepResult:
        done = super().step(*arguments)
        if self.progress.step + 1 == self.stop_after:
            signal.raise_signal(signal.SIGINT)
        return done

    def validate(self) -> tuple[int, int]:
        self.learner.network.eval()
        with torch.inference_mode():
            right = self.learner.network(self.learner.collate(self.items[: self.validated])).right
        return int(right.sum()), self.validated

    def told(self, share: float) -> str:
        return f"{share:.0%} of {self.validated} points"

    def history(self) -> History:
        return History(self.folder, self.distributed.main)

    def marks(self) -> dict[str, Any]:
        return {"points": len(self.items)}


def loop(folder: Path, **options: Any) -> Loop:
    folder.mkdir(exist_ok=True)
    group = Distributed.of("cpu")
    group.seed(3)
    items = [Point(number / 40) for number in range(40)]
    return Loop(
        folder, Model(), Options(**options), group, items, seed=3, clock=Clock(), validated=20
    )


def test_a_network_is_trained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained = loop(tmp_path / "run", epochs=30)
    assert trained.run() and not trained.stopped
    records = read_history(tmp_path / "run")
    assert len(records) == 30 and records[-1]["loss"] < 0.5 * records[0]["loss"]
    assert records[-1]["validation"] >= 0.9
    assert "of 20 points (best)" in " ".join(capsys.readouterr().out.split())
    assert (tmp_path / "run" / "best.safetensors").exists()


def test_an_interrupted_training_goes_on_exactly(tmp_path: Path) -> None:
    whole = loop(tmp_path / "whole")
    assert whole.run()
    stopped = loop(tmp_path / "run")
    stopped.stop_after = 7  # in the second of four epochs of five batches
    assert not stopped.run() and stopped.progress.batch == 2
    state = read_state(tmp_path / "run" / "resume.pt", ("network", "optimizer", "points"))
    again = loop(tmp_path / "run")
    again.resume(state)
    assert again.run()
    for name, tensor in whole.learner.network.state_dict().items():
        assert torch.equal(tensor, again.learner.network.state_dict()[name]), name
    losses = [[one["loss"] for one in read_history(tmp_path / name)] for name in ("whole", "run")]
    assert losses[0] == losses[1] and len(losses[0]) == 4


def test_parts_of_a_batch_change_no_result(tmp_path: Path) -> None:
    """With dropout, whose masks are those of the whole batch."""
    whole, parts = loop(tmp_path / "whole"), loop(tmp_path / "parts", part=3)
    assert whole.run() and parts.run()
    for name, tensor in whole.learner.network.state_dict().items():
        assert torch.allclose(tensor, parts.learner.network.state_dict()[name], atol=1e-5), name


def test_numbers_that_are_none_stop_it(tmp_path: Path) -> None:
    broken = loop(tmp_path / "run")
    with torch.no_grad():
        next(broken.learner.network.parameters()).fill_(float("nan"))
    with pytest.raises(TrainingError, match=r"the loss became nan at batch 1; .* with: point "):
        broken.run()


def test_a_state_of_another_network_is_refused(tmp_path: Path) -> None:
    trained = loop(tmp_path / "run", epochs=1)
    assert trained.run()
    state = read_state(tmp_path / "run" / "resume.pt")
    state["network"] = {"weight": torch.zeros(2)}
    with pytest.raises(CheckpointError, match="the saved state does not fit the run"):
        loop(tmp_path / "run").resume(state)


def test_rates_fall_to_fifths_and_the_optimizer_begins_anew(tmp_path: Path) -> None:
    def steps(of: Loop) -> list[int]:
        """The steps that Adam has counted at the end of each epoch of five."""
        found = []
        save = of._save
        state = of.optimizer.optimizer.state

        def note() -> None:
            found.append(int(next(iter(state.values()))["step"]))
            save()

        of._save = note
        of.run()
        return found

    trained = loop(tmp_path / "run", schedule="fifths", warm_up=0.0, epochs=4)
    assert steps(trained) == [5, 10, 5, 5]
    [group] = trained.optimizer.optimizer.param_groups
    assert group["lr"] == pytest.approx(0.05 / 25)
    # Going on in the middle does as going on without a stop.
    stopped = loop(tmp_path / "stopped", schedule="fifths", warm_up=0.0, epochs=4)
    stopped.stop_after = 12
    stopped.run()
    again = loop(tmp_path / "stopped", schedule="fifths", warm_up=0.0, epochs=4)
    again.resume(read_state(tmp_path / "stopped" / "resume.pt"))
    assert steps(again) == [5, 5]
    for name, tensor in trained.learner.network.state_dict().items():
        assert torch.equal(tensor, again.learner.network.state_dict()[name]), name
