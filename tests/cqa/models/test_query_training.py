"""Whole trainings of models of queries: runs, going on, time, processes, what is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

import torch

from cqa.graphs import files as graph_files
from cqa.graphs.graph import Graph, from_triples
from cqa.models.checkpoint import load_run, read_run
from cqa.models.links.training import train as train_links
from cqa.models.model import FrequentAnswers
from cqa.models.query_sets import betae_counts, load
from cqa.models.settings import Settings, read_settings
from cqa.models.training import QueryTrainer, begin, by_type, go_on, train
from cqa.sampling.kinds import kinds
from cqa.sampling.makers import Plan
from cqa.sampling.run import stream as samples_of
from kopl_base.errors import SettingsError
from kopl_base.training.checkpoint import CheckpointError
from kopl_base.training.optimizer import StepResult
from tests.conftest import ROOT
from tests.cqa.small_graph import small_graph

QUICK = {
    "query2box.d": 8, "query2box.gamma": 6, "queries.types": "1p 2p 2i=40", "queries.count": 60,
    "queries.valid": 10, "queries.steps": 6, "queries.negatives": 8, "training.batch": 16,
    "training.epochs": 4, "training.learning_rate": 0.02, "output": "x", "threads": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def graph() -> Graph:
    return small_graph()


def settings(**changes: Any) -> Settings:
    return Settings.of("query2box").changed({**QUICK, **changes})


def same(one: Path, other: Path) -> None:
    from safetensors.torch import load_file

    first, second = (load_file(folder / "last.safetensors") for folder in (one, other))
    assert list(first) == list(second)
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name


def test_a_run_is_trained_kept_and_loaded(
    graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = train(settings(), graph, tmp_path / "run")
    assert trained.finished and not trained.stopped
    assert list(trained.reports) == ["1p", "2p", "2i"]
    lines = list(trained.lines())
    assert lines[0] == "valid           MRR  by the relations' most frequent tails"
    assert any("below 1000 little but the most" in " ".join(line.split()) for line in lines)
    assert "MRR" in capsys.readouterr().out
    queries = load(tmp_path / "run" / "queries", graph)
    assert [len(one) for one in queries.types] == [min(60, betae_counts(graph)["1p"]), 60, 40]
    model = load_run(tmp_path / "run", graph)
    assert not model.training and model.network is model
    valid = list(samples_of(Plan(tuple(kinds(["1p"])), 10, 1, "valid"), graph))
    assert by_type(model, valid)["1p"] == pytest.approx(trained.reports["1p"][0])
    assert read_run(tmp_path / "run")[0] == settings()


class Stopping(QueryTrainer):
    stop_after = -1

    def step(self, *arguments: Any) -> StepResult:
        found = super().step(*arguments)
        if self.progress.step + 1 == self.stop_after:
            signal.raise_signal(signal.SIGINT)
        return found


@pytest.mark.parametrize("after", [3, 14])
def test_an_interrupted_training_goes_on_exactly(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    train(settings(), graph, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(Stopping, "stop_after", after)
        patch.setattr("cqa.models.training.QueryTrainer", Stopping)
        stopped = train(settings(), graph, tmp_path / "run")
    assert not stopped.finished and not stopped.reports
    again = go_on(tmp_path / "run", graph)
    assert again.finished
    same(tmp_path / "whole", tmp_path / "run")


def test_what_must_stay_is_told(graph: Graph, tmp_path: Path) -> None:
    train(settings(**{"training.epochs": 1}), graph, tmp_path / "run")
    longer = go_on(tmp_path / "run", graph, {"training.epochs": 2})
    assert longer.finished and read_run(tmp_path / "run")[0].training.epochs == 2
    with pytest.raises(CheckpointError, match=r"queries.negatives \(was 8, is 9\)"):
        go_on(tmp_path / "run", graph, {"queries.negatives": 9})
    valid = tmp_path / "run" / "valid.jsonl"
    valid.write_text("".join(valid.read_text().splitlines(keepends=True)[1:]))
    with pytest.raises(CheckpointError, match="the queries are not those that the training began"):
        go_on(tmp_path / "run", graph, {"training.epochs": 3})
    other = from_triples([graph.triples("train")[:9] // 2], ("train",), entity_count=16)
    with pytest.raises(CheckpointError, match="was trained on another graph"):
        go_on(tmp_path / "run", other)


def test_time_ends_a_training(graph: Graph, tmp_path: Path) -> None:
    trained = train(
        settings(**{"training.minutes": 0.01, "training.epochs": 5000}), graph, tmp_path / "run"
    )
    assert trained.finished and "by training.minutes (0.01)" in trained.stopped
    assert trained.stopped in list(trained.lines())


def test_bfloat16_trains_and_parts_change_little(graph: Graph, tmp_path: Path) -> None:
    half = begin(settings(**{"training.precision": "bfloat16"}), graph, tmp_path / "half")
    assert half.run()
    whole, parts = (
        begin(settings(**{"training.part": part}), graph, tmp_path / str(part)) for part in (0, 5)
    )
    assert whole.run() and parts.run()
    for name, tensor in whole.model.state_dict().items():
        torch.testing.assert_close(tensor, parts.model.state_dict()[name], atol=1e-4, rtol=1e-3)


def test_queries_of_files_and_of_other_runs_are_taken(graph: Graph, tmp_path: Path) -> None:
    first = begin(settings(), graph, tmp_path / "first")
    taken = settings(**{"queries.data": str(tmp_path / "first" / "queries"), "queries.types": "1p"})
    second = begin(taken, graph, tmp_path / "second")
    assert second.stream.queries.mark == first.stream.queries.mark
    own = settings(**{"queries.valid_data": str(tmp_path / "first" / "valid.jsonl")})
    assert begin(own, graph, tmp_path / "third").valid == first.valid
    none = begin(settings(**{"queries.valid": 0}), graph, tmp_path / "fourth")
    assert none.valid == [] and none.told(0) == "no validation queries"


LINKS = {"complex.rank": 4, "training.batch": 32, "training.epochs": 2, "complex.init": 0.3}


@pytest.mark.parametrize(
    ("module", "model", "changes"),
    [("cqa.models.training", "query2box", QUICK), ("cqa.models.links.training", "complex", LINKS)],
    ids=["queries", "links"],
)
def test_several_processes_train_as_one(
    graph: Graph, tmp_path: Path, module: str, model: str, changes: dict[str, Any]
) -> None:
    graph_files.save(graph, tmp_path / "graph")
    (tmp_path / "train.py").write_text(
        "import sys\nfrom pathlib import Path\nfrom cqa.graphs.readers import read_graph\n"
        f"from cqa.models.settings import Settings\nfrom {module} import train\n"
        f"settings = Settings.of({model!r}).changed({{**{changes!r}, 'device': 'cpu'}})\n"
        "train(settings, read_graph(sys.argv[1]), Path(sys.argv[2]))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    for name, launcher in (
        ("one", []),
        ("two", ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]),
    ):
        subprocess.run(
            [sys.executable, *launcher, tmp_path / "train.py", tmp_path / "graph", tmp_path / name],
            env=environment,
            check=True,
            capture_output=True,
            timeout=300,
        )
    from safetensors.torch import load_file

    one, two = (load_file(tmp_path / name / "last.safetensors") for name in ("one", "two"))
    for name, tensor in one.items():
        torch.testing.assert_close(tensor, two[name], atol=1e-4, rtol=1e-3)


def test_the_most_frequent_tails_by_hand() -> None:
    triples = np.array([[0, 0, 3], [1, 0, 3], [2, 0, 4], [0, 1, 4], [1, 1, 4]])
    frequent = FrequentAnswers(from_triples([triples], ("train",), entity_count=5)).reasoner()
    plan = Plan(tuple(kinds(["1p", "2p", "2i", "2in"])), 1, 1, "train")
    for sample in samples_of(plan, from_triples([triples], ("train",), entity_count=5)):
        scores = frequent.scores(sample.query).scores[0]
        assert np.isfinite(scores).all()
    first = next(iter(frequent.blocks_of([_link(2, 0)])))[1][0, 0]
    assert first.argsort(descending=True)[:2].tolist() == [3, 4]
    assert first.exp().tolist()[3] == pytest.approx(2.5 / 4)


def _link(head: int, relation: int) -> Any:
    from cqa.types.tree import Tree

    return Tree("p", (Tree("e", entity=head),), relation)


def test_settings_that_cannot_be_had_are_told(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="model=complex learns from links, not from queries"):
        begin(Settings.of("complex").changed({"output": "x"}), graph, tmp_path / "run")
    with pytest.raises(SettingsError, match=r"queries.types has '2p=x'; a number of queries"):
        settings(**{"queries.types": "2p=x"}).others["queries"].counts(graph)
    with pytest.raises(SettingsError, match=r"queries.types names no type"):
        settings(**{"queries.types": " "}).others["queries"].counts(graph)
    with pytest.raises(SettingsError, match="mix must be one of paths, all"):
        settings(**{"queries.mix": "some"})


@pytest.mark.parametrize("path", sorted((ROOT / "configs" / "cqa").glob("*.yaml")), ids=str)
def test_configs_are_read(path: Path, graph: Graph) -> None:
    found = read_settings(path)
    if "queries" in found.others:
        assert all(len(kinds([name])) == 1 for name in found.others["queries"].counts(graph))


# --- configs for a GPU ---------------------------------------------------------------------------

# Sizes that are no published ones, for a graph of a few entities on a processor.
FEW = {
    "device": "cpu", "threads": 1, "queries.count": 12, "queries.valid": 2, "queries.workers": 1,
    "queries.steps": 2, "queries.negatives": 4, "training.batch": 4, "training.epochs": 4,
    "training.precision": "float32", "training.learning_rate": 0.01,
}  # fmt: skip
NARROW: dict[str, dict[str, Any]] = {
    "gqe": {"gqe.d": 4},
    "query2box": {"query2box.d": 4},
    "betae": {"betae.d": 4, "betae.hidden": 8},
    "logice": {"logice.d": 4, "logice.hidden": 8},
    "cone": {"cone.d": 4, "cone.hidden": 8},
    "newlook": {"newlook.d": 4, "newlook.hidden": 8, "newlook.groups": 3},
    "lmpnn": {"lmpnn.hidden": 8, "training.schedule": "constant", "training.drops": ""},
    "gnn-qe": {"gnn-qe.width": 4, "gnn-qe.layers": 2},
}


@pytest.mark.parametrize("name", NARROW)
def test_a_config_for_a_gpu_is_trained_and_goes_on(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    file = f"{name}-gpu" if name in ("lmpnn", "gnn-qe") else "queries-gpu"
    published = read_settings(ROOT / "configs" / "cqa" / f"{file}.yaml", [f"model={name}"])
    assert published.own == Settings.of(name).own and published.device == "cuda"
    wanted = list(betae_counts(graph))[: 5 if name in ("gqe", "query2box") else 10]
    assert list(published.others["queries"].counts(graph)) == wanted
    few = {**FEW, **NARROW[name]}
    if name == "lmpnn":
        links = Settings.of("complex").changed({"complex.rank": 4, "training.epochs": 1})
        train_links(links, graph, tmp_path / "complex")
        few["lmpnn.predictor"] = str(tmp_path / "complex")
    small = published.changed(few)
    train(small, graph, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(Stopping, "stop_after", 5)
        patch.setattr("cqa.models.training.QueryTrainer", Stopping)
        assert not train(small, graph, tmp_path / "run").finished
    assert go_on(tmp_path / "run", graph).finished
    same(tmp_path / "whole", tmp_path / "run")


@pytest.mark.parametrize(
    ("types", "wrong"), [("1p 2in", "2in"), ("betae", "2in"), ("pin=5", "pin")]
)
def test_types_that_a_model_cannot_answer_are_told_before_any_is_sampled(
    graph: Graph, tmp_path: Path, types: str, wrong: str
) -> None:
    with pytest.raises(SettingsError) as error:
        train(settings(**{"queries.types": types}), graph, tmp_path / "run")
    assert f"queries.types has {wrong}: the query has a negation, and the model has none" == str(
        error.value
    )
    assert not (tmp_path / "run").exists()
