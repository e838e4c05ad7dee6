"""Several processes: the same steps as one process, whatever launches them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kb import KnowledgeBase, KoplError
from kopl.example import Example, write_examples
from tests.parsers.conftest import QUICK

ROOT = Path(__file__).parents[2]


def free_port() -> str:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return str(place.getsockname()[1])


def train(processes: int, *arguments: str) -> str:
    """Run train.py as a launcher would: each process is told its rank."""
    return launched(processes, "train.py", *arguments)


def launched(processes: int, *arguments: str) -> str:
    """Run Python with some arguments in as many processes; gives what the first one prints."""
    port, started = free_port(), []
    for rank in range(processes):
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        if processes > 1:
            environment |= {
                "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(processes),
                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
            }  # fmt: skip
        command = [sys.executable, *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, cwd=ROOT, env=environment, text=True, **pipes))
    outputs = [process.communicate(timeout=110) for process in started]
    for process, (_, errors) in zip(started, outputs, strict=True):
        assert process.returncode == 0, errors
    assert all(not output for output, _ in outputs[1:])  # only the first process prints
    return outputs[0][0]


@pytest.mark.parametrize("model", ["pointer", "rnn", "seq2seq"])
def test_two_processes_train_as_one_does(
    torch: Any, tmp_path: Path, trained: Path, small: KnowledgeBase,
    small_examples: list[Example], model: str,
) -> None:  # fmt: skip
    """Whatever is dropped. The last batch has one example: a process has nothing to do."""
    from safetensors.torch import load_file

    from parsers.settings import read_settings
    from parsers.training import begin

    data = [tmp_path / f"{part}.jsonl" for part in ("train", "valid")]
    write_examples(data[0], small_examples[:33])
    write_examples(data[1], small_examples[33:40])
    common = [f"kb={trained.parent / 'small.kopl'}", f"train={data[0]}", f"valid={data[1]}",
              "device=cpu", "threads=1", f"model={model}", *QUICK[model], "dropout=0.3",
              "learning_rate=0.003", "epochs=2", "batch=16", "part=5", "plots=false"]  # fmt: skip
    settings = read_settings(None, common)
    assert begin(tmp_path / "1", settings, small, small_examples[:33], small_examples[33:40]).run()
    changes = [*common, f"output={tmp_path / '2'}"]
    told = train(2, *(part for change in changes for part in ("--set", change)))
    assert "no test questions are set" in told and "execution accuracy" in told
    histories = [
        [json.loads(line) for line in (tmp_path / name / "history.jsonl").read_text().splitlines()]
        for name in ("1", "2")
    ]
    assert [len(history) for history in histories] == [2, 2]
    for one, two in zip(*histories, strict=True):
        assert one["loss"] == pytest.approx(two["loss"], rel=1e-3)
        assert one["accuracy"] == pytest.approx(two["accuracy"], abs=0.05)
    weights = [load_file(tmp_path / name / "last.safetensors") for name in ("1", "2")]
    for name, tensor in weights[0].items():
        assert torch.allclose(tensor, weights[1][name], atol=2e-3), name


def test_the_others_wait_for_the_first_however_long_it_takes(torch: Any) -> None:
    """Longer than torch's own waiting; also where it fails in the end."""
    code = """
import sys, time
from datetime import timedelta
from kopl_base.errors import KoplError
from kopl_base.training.distributed import Distributed

def fail():
    time.sleep(1.5)
    raise KoplError("no questions")

group = Distributed.of("cpu", timeout=timedelta(seconds=1))
made = group.first(lambda: time.sleep(2.5) or 7)
again = group.first(lambda: 8)
try:
    group.first(fail)
except KoplError as error:
    assert "no questions" in str(error)
    group.say(f"{made} {again} {group.totals(group.rank + 1)}")
group.close()
"""
    assert launched(2, "-c", code) == "7 8 [3.0]\n"


@pytest.mark.parametrize(
    ("device", "message"), [("cuda", "there is none here"), ("toaster", "must be auto, cpu")]
)
def test_devices_that_are_not_there(torch: Any, device: str, message: str) -> None:
    from kopl_base.training.distributed import device_of

    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(KoplError, match=message):
        device_of(device)


def test_bfloat16_trains(
    torch: Any, small: Any, small_examples: list[Example], tmp_path: Path
) -> None:
    """On the CPU, where it is slow but the same code; the weights stay float32."""
    from parsers.training import begin
    from tests.parsers.conftest import quick

    settings = quick("seq2seq", "kopl", "precision=bfloat16", "epochs=2", "batch=28")
    trainer = begin(tmp_path / "run", settings, small, small_examples, small_examples[:2])
    assert trainer.run()
    assert {p.dtype for p in trainer.model.network.parameters()} == {torch.float32}
