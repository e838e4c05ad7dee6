"""Training link predictors, what a run leaves on disk, and what is said of it."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from safetensors.torch import load_file

from cqa.graphs.graph import Graph, from_triples
from cqa.graphs.names import Names
from cqa.models import checkpoint
from cqa.models.checkpoint import export, load_run, located, write_run
from cqa.models.links import training
from cqa.models.links.evaluation import evaluate_links
from cqa.models.links.training import go_on, small_data, train
from cqa.models.settings import Settings, model_class, read_settings
from kopl_base.errors import SettingsError, WriteError
from kopl_base.training.checkpoint import CheckpointError
from kopl_base.training.optimizer import TrainingError
from kopl_cli.common import configs_folder
from tests.cqa.models.worlds import grid
from tests.cqa.small_graph import parts, small_graph

# What learns the fifty places of the grid by heart in a second or two.
BY_HEART: dict[str, list[str]] = {
    "complex": ["rank=16", "regularizer=0.01", "relation_weight=0.5"],
    "distmult": [
        "rank=32", "regularizer=0", "init=0.1", "loss=sampled", "candidates=30", "batch=16",
        "learning_rate=0.3", "epochs=20",
    ],
    "transe": ["rank=32", "loss=full", "learning_rate=0.05"],
    "rotate": ["rank=16", "candidates=20", "learning_rate=0.05"],
}  # fmt: skip


def settings_of(name: str, *pairs: str) -> Settings:
    """Settings of a small training on the processor."""
    first = [f"model={name}", "device=cpu", "batch=32", "rank=4", "training.checkpoint=0"]
    return read_settings(None, [*first, *pairs])


@pytest.mark.parametrize("name", BY_HEART)
def test_a_graph_is_learnt_by_heart(name: str, tmp_path: Path) -> None:
    graph = grid()
    done = train(
        settings_of(name, *BY_HEART[name], "batch=8", "epochs=12"), graph, tmp_path / "run"
    )
    assert done.finished and not done.reports and not done.stopped
    model = load_run(tmp_path / "run", graph)
    assert evaluate_links(model, graph, "train").mrr > 0.95
    assert not any(one.requires_grad for one in model.parameters())
    # Its float16 export says the same in half of the space.
    size = export(tmp_path / "run", tmp_path / "small", graph)
    weights = load_file(tmp_path / "small" / "best.safetensors")
    assert {one.dtype for one in weights.values()} == {torch.float16}
    assert size < 0.6 * (tmp_path / "run" / "best.safetensors").stat().st_size + 2000
    small = load_run(tmp_path / "small", graph)
    assert evaluate_links(small, graph, "train").mrr > 0.95
    heads = torch.arange(50)
    torch.testing.assert_close(small.scores(3, heads), model.scores(3, heads), atol=0.05, rtol=0.02)


def same_weights(one: Path, other: Path, name: str = "last") -> bool:
    """Whether two runs have the same weights to the last bit."""
    found = [load_file(folder / f"{name}.safetensors") for folder in (one, other)]
    return all(torch.equal(found[0][key], found[1][key]) for key in found[0])


@pytest.mark.parametrize("name", ["complex", "rotate"])
def test_going_on_is_exact(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = small_graph()
    pairs = ["epochs=3", "loss=sampled", "candidates=7"]
    whole = train(settings_of(name, *pairs), graph, tmp_path / "whole")
    step = training.LinkTrainer.step

    def interrupted(self: training.LinkTrainer, *given: Any) -> Any:
        if given[1] == 5:  # in the middle of an epoch
            signal.raise_signal(signal.SIGINT)
        return step(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(training.LinkTrainer, "step", interrupted)
        stopped = train(settings_of(name, *pairs), graph, tmp_path / "parts")
    assert not stopped.finished and not stopped.reports
    done = go_on(tmp_path / "parts", graph)
    assert done.finished and done.reports == whole.reports
    assert same_weights(tmp_path / "whole", tmp_path / "parts")
    again = train(settings_of(name, *pairs), graph, tmp_path / "again")
    assert same_weights(tmp_path / "whole", tmp_path / "again")
    assert again.reports == whole.reports
    train(settings_of(name, *pairs, "seed=2"), graph, tmp_path / "other")
    assert not same_weights(tmp_path / "whole", tmp_path / "other")


def test_parts_of_batches_change_nothing(tmp_path: Path) -> None:
    graph = small_graph()
    for part in (0, 5):
        pairs = ["epochs=2", f"part={part}", "relation_weight=0.3", "init=0.3"]
        train(settings_of("complex", *pairs), graph, tmp_path / str(part))
    found = [load_file(tmp_path / part / "last.safetensors") for part in ("0", "5")]
    for name in found[0]:
        torch.testing.assert_close(found[0][name], found[1][name], atol=1e-4, rtol=1e-3)


def test_what_is_said_of_a_training(tmp_path: Path) -> None:
    graph = small_graph()
    done = train(settings_of("complex", "epochs=1", "learning_rate=0"), graph, tmp_path / "run")
    lines = list(done.lines())
    assert list(done.reports) == ["valid", "test"]
    assert lines[0].startswith(f"valid, {2 * graph.counts['valid']} links: MRR ")
    assert "most frequent tails: MRR" in lines[1]
    text = " ".join(" ".join(lines).split())
    assert "below 1000 little but the most frequent tails can be learnt" in text
    assert "its figures mean little" in text
    assert "on test the model is no better than the relation's most frequent tails" in text
    history = json.loads((tmp_path / "run" / "history.jsonl").read_text().splitlines()[0])
    assert history["validation"] == pytest.approx(done.reports["valid"][0].mrr, abs=1e-4)


def test_what_makes_a_graph_too_small() -> None:
    triples = np.array([(n % 60, 0, (7 * n + n // 60) % 60) for n in range(2000)])
    rare = np.array([(0, 1, 1), (1, 2, 2)])
    graph = from_triples([np.concatenate([triples, rare]), triples[:0], triples[:0]],
                         entity_count=61)  # fmt: skip
    found = small_data(graph)
    assert found[0].startswith("2 of 3 relations have fewer than 10 links in train")
    assert found[1].startswith("1 of 61 entities have no link in train")
    assert [one.split(";")[0] for one in found[2:]] == [
        "valid has 0 links", "test has 0 links"
    ]  # fmt: skip
    empty = from_triples([triples[:0]] * 3, entity_count=5, relation_count=1)
    with pytest.raises(TrainingError, match="no links in train: there is nothing to learn"):
        train(settings_of("complex"), empty, Path("never"), distributed=_alone())


def _alone() -> Any:
    from kopl_base.training.distributed import Distributed

    class Silent(Distributed):
        def first(self, make: Any) -> Any:
            """Nothing: no folder is made."""

    return Silent(torch.device("cpu"))


def test_validation_takes_some_links() -> None:
    graph = small_graph()
    every = training.chosen_triples(graph, 0, 1)
    some = training.chosen_triples(graph, 5, 1)
    assert len(some) == 5 < len(every)
    assert {tuple(one) for one in some.tolist()} < {tuple(one) for one in every.tolist()}
    assert np.array_equal(some, training.chosen_triples(graph, 5, 1))


# --- runs that do not fit -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of ComplEx on the small graph."""
    folder = tmp_path_factory.mktemp("links") / "run"
    train(settings_of("complex", "epochs=1"), small_graph(), folder)
    return folder


def other_graph(kind: str) -> Graph:
    """A graph that is the small one but for something."""
    arrays = [np.array(part, np.int32) for part in parts()]
    if kind == "links":
        arrays[2] = arrays[2][1:]
    return from_triples(
        arrays,
        entity_count=17 if kind == "entities" else 16,
        relation_count=6 if kind == "relations" else 5,
        entities=Names.of([f"e{n}" for n in range(16)]) if kind == "names" else None,
    )


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("entities", "it has 16 entities, the graph here 17"),
        ("relations", "it has 5 relations, the graph here 6"),
        ("names", "its entities or relations have other names"),
        ("links", "its links are others"),
    ],
)
def test_another_graph(run: Path, kind: str, message: str) -> None:
    with pytest.raises(CheckpointError, match=f"trained on another graph: {message}"):
        load_run(run, other_graph(kind))
    with pytest.raises(CheckpointError, match=message):
        go_on(run, other_graph(kind))
    if kind == "links":
        model = model_class("complex").load(run, other_graph(kind), other_links=True)
        assert model.entity_count == 16


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("best.safetensors", "damaged", "the weights are damaged"),
        ("settings.json", "{", "the run is damaged"),
        ("settings.json", "{}", "no model is named"),
        ("settings.json", '{"model": "komplex"}', "did you mean complex"),
        ("graph.json", "{}", "the run is damaged"),
        ("graph.json", '{"format": 0}', "another format"),
        ("graph.json", '{"format": 1, "entities": "x", "relations": 1, "names": "", "links": ""}',
         "the run is damaged: entities is"),
        ("graph.json", None, "not a run: No such file"),
        ("best.safetensors", None, "there are no weights yet"),
    ],
)  # fmt: skip
def test_damaged_runs(run: Path, tmp_path: Path, file: str, text: str | None, message: str) -> None:
    for path in run.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    if text is None:
        (tmp_path / file).unlink()
    else:
        (tmp_path / file).write_text(text)
    with pytest.raises(CheckpointError, match=message):
        load_run(tmp_path, small_graph())


def test_weights_of_other_sizes(run: Path, tmp_path: Path) -> None:
    graph = small_graph()
    model = load_run(run, graph)
    write_run(tmp_path / "run", model, settings_of("complex", "rank=5"), graph)
    with pytest.raises(CheckpointError, match=r"entities is 16×8 there, but 16×10 in the network"):
        load_run(tmp_path / "run", graph)


def test_runs_are_replaced_as_a_whole(run: Path, tmp_path: Path) -> None:
    graph = small_graph()
    settings, model = settings_of("complex"), load_run(run, graph)
    target = tmp_path / "run"
    write_run(target, model, settings, graph)
    with torch.no_grad():
        model.entities += 1
    write_run(target, model, settings, graph)
    assert torch.equal(load_run(target, graph).entities, model.entities)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    with torch.no_grad():
        model.entities[3] = 1e6
    with pytest.raises(WriteError, match="16 bits cannot hold entities; write it with 32"):
        write_run(target, model, settings, graph, half=True)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine")
    with pytest.raises(WriteError, match="something other than a run is there"):
        write_run(tmp_path / "other", model, settings, graph)


def test_runs_of_a_hub(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub")
    asked: list[tuple[str, list[str]]] = []

    def download(name: str, allow_patterns: list[str]) -> str:
        asked.append((name, allow_patterns))
        if name == "nobody/nothing":
            raise OSError("404: no such repository")
        return str(run)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert load_run("someone/complex-small", small_graph()).entity_count == 16
    assert asked == [
        ("someone/complex-small", [checkpoint.SETTINGS, checkpoint.GRAPH, checkpoint.WEIGHTS])
    ]
    with pytest.raises(CheckpointError, match="the hub does not give one: OSError: 404"):
        located("nobody/nothing")
    for name in ("runs/of/mine", "mine", Path("some/one")):
        with pytest.raises(CheckpointError, match="there is no such run; train one"):
            located(name)
    assert len(asked) == 2


def test_settings_that_must_stay(run: Path, tmp_path: Path) -> None:
    graph = small_graph()
    for path in run.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    with pytest.raises(CheckpointError, match=r"other settings: training.learning_rate \(was 0.1"):
        go_on(tmp_path, graph, {"learning_rate": 0.2})
    done = go_on(tmp_path, graph, {"epochs": 2})
    assert done.finished
    assert json.loads((tmp_path / "settings.json").read_text())["training"]["epochs"] == 2
    (tmp_path / "resume.pt").unlink()
    with pytest.raises(CheckpointError, match="there is nothing to resume"):
        go_on(tmp_path, graph)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (["model=komplex"], "model must be one of complex, .*did you mean complex"),
        (["rnak=3"], "there is no setting 'rnak'; did you mean .*rank"),
        (["rank=0"], r"complex\.rank must be at least 1, not 0"),
        (["rank=many"], "rank must be of type int, not 'many'"),
        (["loss=hinge"], "loss must be one of full, sampled, not 'hinge'"),
        (["regularizer=-1"], "regularizer must be at least 0, not -1"),
        (["model=transe", "complex.rank=3"], "there is no setting 'complex.rank'"),
        (["graph=a", "kb=b"], "give either graph or kb"),
        (["output="], "output must name a folder"),
        (["device=gpu"], "device must be auto, cpu, cuda"),
        (["training.validation=-1"], "training.validation must be at least 0"),
    ],
)  # fmt: skip
def test_wrong_settings(pairs: list[str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_settings(None, pairs)


def test_settings_are_read_again() -> None:
    settings = settings_of("rotate", "rank=7", "optimizer=adagrad")
    assert Settings.from_json(settings.to_json()) == settings
    assert settings.own.rank == 7 and settings.training.optimizer == "adagrad"
    assert settings.by_name()["rotate"]["candidates"] == 500


def test_a_processor_without_bfloat16(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = small_graph()
    monkeypatch.setattr(training, "bfloat16", lambda: False)
    pairs = ["epochs=1", "init=0.3"]
    train(settings_of("complex", *pairs, "precision=bfloat16"), graph, tmp_path / "short")
    assert "no products of bfloat16: computing with float32" in capsys.readouterr().out
    train(settings_of("complex", *pairs), graph, tmp_path / "long")
    assert same_weights(tmp_path / "short", tmp_path / "long")


def test_shipped_configs_are_read() -> None:
    folder = configs_folder() / "cqa"
    names = ("complex", "complex-sampled", "complex-1000", "distmult", "transe", "rotate")
    for name in names:
        settings = read_settings(folder / f"{name}.yaml")
        assert settings.model == name.split("-")[0] and settings.output == f"runs/{name}"
    assert read_settings(folder / "complex-1000.yaml").own.relation_weight == 4
