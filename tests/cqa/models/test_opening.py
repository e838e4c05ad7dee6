"""Reasoners of learned models: what searches a predictor, and what answers by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cqa.evaluation.evaluation import evaluate
from cqa.graphs.graph import Graph
from cqa.models.checkpoint import write_run
from cqa.models.opening import open_reasoner, reasoner_of
from cqa.models.reasoner import BatchReasoner
from cqa.models.search.reasoners import CqdCo, Qto, SearchModel
from cqa.models.settings import REASONERS, Settings, model_class
from cqa.vocabularies import SEARCHES
from kopl_base.errors import KoplError
from tests.cqa.models.fuzzy import ENTITIES, Fuzzy
from tests.cqa.small_benchmark import small_world, tree_samples


@pytest.fixture(scope="module")
def world() -> Graph:
    """A small graph."""
    return small_world()


@pytest.fixture(scope="module")
def runs(world: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs with new weights: of a link predictor and of a model of queries."""
    folder = tmp_path_factory.mktemp("runs")
    torch.manual_seed(1)
    for name, pairs in (("complex", {"complex.rank": "4"}), ("gqe", {"gqe.d": "4"})):
        settings = Settings.of(name).changed(pairs)
        write_run(folder / name, model_class(name).create(settings, world), settings, world)
    return folder


def test_the_rows_of_a_predictor_are_searched(world: Graph, runs: Path) -> None:
    run = str(runs / "complex")
    assert isinstance(open_reasoner(run, world), Qto)
    assert isinstance(open_reasoner(run, world, search="cqd-co"), CqdCo)
    pairs = ["cqd-beam.beam=3", "cqd-beam.t_norm=minimum"]
    shorter = ["search.beam=3", "search.t_norm=minimum"]
    found = open_reasoner(run, world, "valid", search="cqd-beam", pairs=pairs)
    assert isinstance(found, SearchModel)
    given = found.options
    assert (given.beam, given.t_norm, given.split) == (3, "minimum", "valid")
    by_name = open_reasoner("cqd-beam", world, pairs=[*pairs, f"cqd-beam.predictor={run}"])
    samples = tree_samples()[::5]
    own = open_reasoner(run, world, search="cqd-beam", pairs=shorter)
    assert evaluate(by_name, samples, 40, name="x") == evaluate(own, samples, 40, name="x")


def test_what_answers_by_itself_is_not_searched(world: Graph, runs: Path) -> None:
    found = open_reasoner(str(runs / "gqe"), world)
    assert type(found).__name__ == "Gqe"
    with pytest.raises(KoplError, match="gqe answers queries itself"):
        open_reasoner(str(runs / "gqe"), world, search="qto")
    with pytest.raises(KoplError, match=r"gqe\.d: the settings of a run are those"):
        open_reasoner(str(runs / "gqe"), world, pairs=["gqe.d=3"])
    made = reasoner_of(Fuzzy(), world)
    assert isinstance(made, BatchReasoner) and made.entity_count == world.entity_count
    own = BatchReasoner(Fuzzy(), ENTITIES)
    assert reasoner_of(own, world) is own
    with pytest.raises(KoplError, match="int has neither scores of queries nor operators"):
        reasoner_of(3, world)


@pytest.mark.parametrize(
    ("name", "search", "pairs", "message"),
    [
        ("complex", None, [], "the model complex must be trained before it is asked"),
        ("complex", "beam", [], "there is no search 'beam'; choose of cqd-beam, cqd-hybrid, qto"),
        ("qto", None, [], r"give the folder of its run, as in qto\.predictor=runs/complex"),
        ("qto", "fit", [], "a search is over a run; qto is the name of a model"),
        ("qto", None, ["qto.beams=3"], "qto.beams"),
        ("no-such-run", None, [], "there is no such run"),
    ],
)
def test_what_cannot_be_opened(
    world: Graph, name: str, search: str | None, pairs: list[str], message: str
) -> None:
    with pytest.raises(KoplError, match=message):
        open_reasoner(name, world, search=search, pairs=pairs)


def test_all_searches_are_offered() -> None:
    own = [n for n in REASONERS.names() if not getattr(model_class(n), "needs_training", True)]
    assert set(SEARCHES) == {n for n in own if hasattr(model_class(n).own_settings, "predictor")}
