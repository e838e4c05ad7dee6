"""The command train: a link predictor of an own knowledge base, a model of queries, going on."""

from __future__ import annotations

from pathlib import Path

import pytest

from cqa.graphs.files import save
from cqa.graphs.from_kb import graph_from_kb
from kb import Builder, load, write_lines
from kopl_base.errors import KoplError
from kopl_cli import train as command_parsers
from kopl_cli.cqa import ask as command_ask
from kopl_cli.cqa import evaluate as command_evaluate
from kopl_cli.cqa import train as command
from tests.cqa.small_benchmark import run, small_world

FEW = ("--set", "training.epochs=2", "--set", "device=cpu")


@pytest.fixture
def graph_folder(tmp_path: Path) -> Path:
    """The small graph."""
    save(small_world(), tmp_path / "graph")
    return tmp_path / "graph"


def test_a_link_predictor_is_trained_and_asked(
    graph_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    given = ("--graph", str(graph_folder), "-o", str(folder), "--set", "complex.rank=4", *FEW)
    assert run(command, *given) == 0
    told = capsys.readouterr().out
    assert f"run: {folder}" in told and "by the relation's most frequent tails" in told
    assert "warning: train has 466 links" in " ".join(told.split())
    asked = ("--graph", str(graph_folder), "--most", "2", "--metric", "mrr")
    assert run(command_evaluate, *asked, "--reasoner", str(folder), "--search", "fit") == 0
    # A second run stands beside the first.
    assert run(command, *given) == 0
    said = capsys.readouterr()
    assert f"run: {folder}-2" in said.out
    assert f"{folder} is not empty; the run goes to {folder}-2" in said.err


def test_a_model_of_queries_is_trained(
    graph_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "own.yaml"
    config.write_text(
        "model: gqe\ngqe:\n  d: 8\ntraining:\n  epochs: 1\n  batch: 16\n"
        "queries:\n  types: 1p 2p 2i\n  steps: 3\n  count: 20\n  valid: 2\n"
    )
    given = ("--graph", str(graph_folder), "--config", str(config), "--set", "device=cpu")
    assert run(command, *given, "-o", str(tmp_path / "run")) == 0
    assert f"--reasoner {tmp_path / 'run'} FILE" in capsys.readouterr().out


def test_a_run_of_a_knowledge_base_says_how_it_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kb = tmp_path / "kb.jsonl"
    builder = Builder()
    builder.add_concept("c", "land")
    for number in range(12):
        builder.add_entity(f"l{number}", f"Land {number}", ["c"])
    for number in range(12):
        builder.add_fact(f"l{number}", "borders", f"l{(number + 1) % 12}")
    write_lines(builder.build(), kb)
    folder = tmp_path / "run"
    given = ("--kb", str(kb), "-o", str(folder), "--set", "complex.rank=4", *FEW)
    assert run(command, *given) == 0
    assert f"evaluate --kb {kb} --reasoner {folder} FILE" in capsys.readouterr().out
    # The base alone is the graph that the run was trained on; split otherwise it is another.
    asked = ("--reasoner", "qto", "--set", f"predictor={folder}", "borders(l0,?x)")
    assert run(command_ask, "--kb", str(kb), *asked, "--limit", "1") == 0
    assert "Land" in capsys.readouterr().out
    save(graph_from_kb(load(kb), seed=5), tmp_path / "other")
    with pytest.raises(KoplError, match=rf"give that graph \(--kb {kb}\)"):
        run(command_ask, "--graph", str(tmp_path / "other"), *asked)
    with pytest.raises(KoplError, match="give --graph DIR, or --kb KB"):
        run(command_ask, *asked)


def test_a_model_that_lacks_its_predictor_leaves_nothing(
    graph_folder: Path, tmp_path: Path
) -> None:
    given = ("--graph", str(graph_folder), "--set", "model=lmpnn", "-o", str(tmp_path / "run"))
    with pytest.raises(KoplError, match="lmpnn needs a trained ComplEx"):
        run(command, *given)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "nothing to learn from: give --graph DIR or --kb KB"),
        (("--graph", "g", "--set", "model=qto"), "qto needs no training"),
        (("--graph", "g", "--config", "cqa/none"), "--config cqa/none: there is no such file"),
        (("--resume", "r", "-o", "x"), "leave out --config and -o"),
    ],
)
def test_what_cannot_be_trained(given: tuple[str, ...], message: str) -> None:
    with pytest.raises(KoplError, match=message):
        run(command, *given)


def test_configs_of_models_are_those_of_the_other_command() -> None:
    with pytest.raises(KoplError, match="--config cqa/none: there is no such file"):
        run(command_parsers, "--config", "cqa/none")


def test_the_other_command_says_what_it_takes() -> None:
    with pytest.raises(KoplError, match="to kopl train: --set graph=DIR or --set kb=KB"):
        run(command_parsers, "--config", "cqa/complex")
    with pytest.raises(KoplError, match="leave out --config"):
        run(command_parsers, "--config", "cqa/complex", "--resume", "run")
