"""Seq2seq as it is run on devices, on a tiny BART and one CPU: compiled, in bfloat16, launched."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kb import KnowledgeBase
from kopl.example import Example, write_examples
from tests.parsers.conftest import quick
from tests.parsers.test_models import losses


@pytest.mark.parametrize("language", ["kopl", "sparql"])
def test_bfloat16_stops_and_goes_on(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path, language: str
) -> None:
    """Its losses are those of an unbroken run, and near those of float32."""
    from parsers.training import begin, go_on

    data = (small_examples[:32], small_examples[:1])
    common = ("epochs=2", "batch=16", "validation=1")
    exact = losses(begin(tmp_path / "a", quick("seq2seq", language, *common), small, *data))
    coarse = quick("seq2seq", language, *common, "precision=bfloat16")
    whole = losses(begin(tmp_path / "b", coarse, small, *data))
    assert whole == pytest.approx(exact, rel=0.05) and whole != exact
    first = losses(begin(tmp_path / "c", coarse, small, *data), stop_after=3)
    assert first + losses(go_on(tmp_path / "c", small, *data)) == whole


def test_compiled_it_learns_the_same(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The losses are those of the plain network, up to rounding.

    The graphs are captured as for any device; they run as they are, for making code of them takes
    most of a minute on one core.
    """
    from parsers.models.seq2seq.model import Seq2SeqModel
    from parsers.training import begin

    graphs: list[int] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(len(inputs))
        return graph.forward

    def compiled(self: Any) -> None:
        self.network.inner.compile(dynamic=True, backend=backend)

    items = small_examples[:8]
    for name, change in (("a", "compile=false"), ("b", "compile=true")):
        monkeypatch.setattr(Seq2SeqModel, "compile", compiled)
        settings = quick("seq2seq", "kopl", "batch=8", "hidden=16", change)
        trainer = begin(tmp_path / name, settings, small, items, items[:1])
        found = [trainer.step(trainer.train, 0, 9).loss]
        if name == "a":
            plain = found
            assert not graphs
    assert graphs and found == pytest.approx(plain, rel=1e-4)


def test_accelerate_launches_two_processes(
    torch: Any, small: KnowledgeBase, small_examples: list[Example], trained: Path, tmp_path: Path
) -> None:
    """They take the steps of one process, and only the first one prints."""
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    from parsers.training import begin

    data = (small_examples[:16], small_examples[16:20])
    files = [tmp_path / f"{part}.jsonl" for part in ("train", "valid")]
    for file, part in zip(files, data, strict=True):
        write_examples(file, part)
    common = ["epochs=2", "batch=8", "longest=48"]
    assert begin(tmp_path / "1", quick("seq2seq", "kopl", *common), small, *data).run()
    sets = [
        "model=seq2seq", "seed=3", "seq2seq.dropout=0", "name=", "hidden=64", "layers=1", "heads=4",
        "vocabulary=600", "new_learning_rate=0.004", "validation=8", "threads=1", "device=cpu",
        "plots=false", *common, f"kb={trained.parent / 'small.kopl'}", f"train={files[0]}",
        f"valid={files[1]}", f"output={tmp_path / '2'}",
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2",
         "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no",
         "--main_process_port", "0", "-m", "kopl", "train",
         *(part for change in sets for part in ("--set", change))],
        capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("best epoch: ") == 1
    one, two = (
        [json.loads(line) for line in (tmp_path / name / "history.jsonl").read_text().splitlines()]
        for name in ("1", "2")
    )
    assert [record["loss"] for record in one] == pytest.approx(
        [record["loss"] for record in two], rel=1e-3
    )
