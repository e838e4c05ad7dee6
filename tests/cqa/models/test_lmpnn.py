"""LMPNN: plans read as graphs, messages by hand, gradients, learning, several free variables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from cqa.errors import QueryError
from cqa.evaluation.plan import compiled
from cqa.graphs.graph import Graph
from cqa.models.checkpoint import load_run, write_run
from cqa.models.embed.lmpnn import Lmpnn, LmpnnSettings, message_graphs, multiplied
from cqa.models.settings import Settings, model_class, read_settings
from cqa.notation.text import read_text
from cqa.query import Query
from kopl_base.training.checkpoint import CheckpointError, read_state, read_weights, write_weights
from tests.cqa.models.graph_models import (
    queries_of,
    random_graph,
    stream_of,
    train_mrr,
    trainer,
    tree,
)

SMALL = LmpnnSettings(hidden=32)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return random_graph()


def model_of(graph: Graph, width: int = 8, settings: LmpnnSettings = SMALL) -> Lmpnn:
    torch.manual_seed(0)
    vectors = torch.randn(graph.entity_count + 2 * graph.relation_count, width)
    return Lmpnn(settings, graph, vectors[: graph.entity_count], vectors[graph.entity_count :])


def text(given: str, graph: Graph) -> Query:
    return read_text(given, graph)


def test_products_are_of_complex_numbers() -> None:
    state, vector = torch.randn(2, 3, 8)
    numbers = torch.complex(*state.chunk(2, -1)), torch.complex(*vector.chunk(2, -1))
    for conjugate in (False, True):
        product = numbers[0] * (numbers[1].conj() if conjugate else numbers[1])
        found = multiplied(state, vector, conjugate)
        torch.testing.assert_close(torch.complex(*found.chunk(2, -1)), product)


def test_a_plan_is_read_as_the_graph_it_came_from(graph: Graph) -> None:
    [found] = message_graphs(compiled(tree("pni", [1, 2], [1, 2, 3]), "DNF+IU"))
    assert sum(edge.sign < 0 for edge in found.edges) == 1
    negated = next(edge for edge in found.edges if edge.sign < 0)
    assert negated.target == found.free[0] and negated.source not in found.anchors
    assert (len(found.anchors), len(found.edges), found.nodes, found.depth) == (2, 3, 4, 2)
    first, second = message_graphs(compiled(tree("up", [1, 2], [1, 2, 3]), "DNF+IU"))
    assert (first.nodes, second.nodes, first.depth) == (3, 3, 2)
    cycle = "exists x. exists y. 0(1,x) & 1(x,y) & 2(x,?f) & 3(y,?f)"
    [found] = message_graphs(compiled(text(cycle, graph)))
    assert (len(found.edges), found.nodes, found.depth) == (4, 4, 2)


def test_messages_by_hand(graph: Graph) -> None:
    model = model_of(graph, 4)
    query = tree("2in", [1, 2], [3, 4])
    plan = compiled(query, "DNF+IU")
    [state] = model.states(plan, torch.tensor([[1, 2]]), torch.tensor([[3, 4]]))
    plus, minus = (
        torch.view_as_complex(torch.stack(model.entities[one].chunk(2), -1).contiguous())
        * torch.view_as_complex(torch.stack(model.relations[two].chunk(2), -1).contiguous())
        for one, two in ((2, 4), (1, 3))  # the formula has the negated part first
    )
    told = plus - minus
    told = torch.cat([told.real, told.imag]) + 0.1 * model.free
    torch.testing.assert_close(state[0], model.update(told))
    cosine = torch.nn.functional.cosine_similarity(state, model.entities)
    torch.testing.assert_close(model.logits(state)[0], cosine / 0.05)
    some = torch.tensor([[7, 9]])
    torch.testing.assert_close(model.logits(state, some)[0], cosine[some[0]] / 0.05)


TYPES = ("1p", "2p", "2i", "3i", "pi", "ip", "2u", "up", "2in", "pni")


@pytest.mark.parametrize("name", TYPES)
def test_a_batch_is_what_each_query_is_alone(graph: Graph, name: str) -> None:
    model = model_of(graph)
    queries = [tree(name, [n, n + 5, n + 9], [n % 8, (n + 3) % 8, n % 7]) for n in range(4)]
    for query, scored in zip(queries, list(model.scores_of(queries)), strict=True):
        np.testing.assert_allclose(scored.scores, model.scores(query).scores, atol=1e-4)


def test_the_order_of_operands_does_not_matter(graph: Graph) -> None:
    model = model_of(graph)
    for kind in ("2i", "2u"):
        one = model.scores(tree(kind, [1, 2], [3, 4])).scores
        np.testing.assert_allclose(one, model.scores(tree(kind, [2, 1], [4, 3])).scores, atol=1e-4)


def test_two_free_variables_are_read_together(graph: Graph) -> None:
    model = model_of(graph)
    scores = model.scores(text("exists x. 0(1,x) & 1(x,?f) & 2(?f,?g)", graph)).scores
    assert scores.shape == (2, graph.entity_count)
    turned = model.scores(text("exists x. 0(1,x) & 1(x,?g) & 2(?g,?f)", graph)).scores
    # Free variables are in the order in which the text has them.
    np.testing.assert_allclose(scores, turned, atol=1e-4)
    other = model.scores(text("exists x. 0(1,x) & 1(x,?f) & 3(?f,?g)", graph)).scores
    # What links the free variables tells the first of the second, too.
    assert np.abs(scores[0] - other[0]).max() > 1e-3


def test_a_union_below_the_root_is_refused(graph: Graph) -> None:
    model = model_of(graph)
    with pytest.raises(QueryError, match="union below its root"):
        model.states(compiled(tree("up", [1, 2], [1, 2, 3])), *torch.zeros(2, 1, 3).long())


def test_each_parameter_gets_a_gradient(graph: Graph) -> None:
    model = model_of(graph)
    queries = queries_of(graph, {"1p": 60, "2p": 30, "2in": 10})
    stream = stream_of(model, queries, len(queries))
    model.train()(stream.collate(stream.draw(0))).loss.backward()
    assert {name for name, _ in model.named_parameters()} >= {"free", "existential"}
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and bool((parameter.grad != 0).any()), name
    assert not model.entities.requires_grad and not model.relations.requires_grad


def test_a_small_graph_is_memorised(graph: Graph, tmp_path: Path) -> None:
    model = model_of(graph, 64, LmpnnSettings(hidden=256))
    queries = queries_of(graph, {"1p": 200, "2p": 60, "2i": 60})
    assert min(train_mrr(model, queries).values()) < 0.5
    assert trainer(tmp_path / "run", model, queries, 60, 2e-3).run()
    assert min(train_mrr(model, queries).values()) > 0.95


def test_a_training_goes_on_where_it_stopped(graph: Graph, tmp_path: Path) -> None:
    queries = queries_of(graph, {"1p": 60, "2p": 20})
    whole = model_of(graph)
    trainer(tmp_path / "whole", whole, queries, 2, 1e-2).run()
    trainer(tmp_path / "parts", model_of(graph), queries, 1, 1e-2).run()
    again = model_of(graph)
    training = trainer(tmp_path / "parts", again, queries, 2, 1e-2)
    training.resume(read_state(tmp_path / "parts" / "resume.pt"))
    training.run()
    for name, parameter in whole.state_dict().items():
        assert torch.equal(parameter, again.state_dict()[name]), name
    write_weights(again, tmp_path / "weights.safetensors")
    fresh = model_of(graph)
    read_weights(fresh, tmp_path / "weights.safetensors")
    query = tree("2p", [3], [1, 2])
    assert np.array_equal(fresh.scores(query).scores, again.scores(query).scores)


def written(folder: Path, settings: Settings, graph: Graph) -> Path:
    """A new model of the settings as a run."""
    torch.manual_seed(0)
    model = model_class(settings.model).create(settings, graph)
    write_run(folder, model, settings, graph)
    return folder


def test_a_run_has_the_predictor_with_it(graph: Graph, tmp_path: Path) -> None:
    complex_ = Settings.of("complex").changed({"complex.rank": "4"})
    predictor = written(tmp_path / "complex", complex_, graph)
    own = {"lmpnn.predictor": str(predictor), "lmpnn.hidden": "16"}
    run = written(tmp_path / "lmpnn", Settings.of("lmpnn").changed(own), graph)
    vectors = load_run(predictor, graph)
    predictor.rename(tmp_path / "elsewhere")
    model = load_run(run, graph)
    assert isinstance(model, Lmpnn)
    assert torch.equal(model.entities, vectors.entities)
    assert torch.equal(model.relations, vectors.relations)
    assert model.update[0].out_features == 16


def test_what_is_no_predictor_is_refused(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"name its run in lmpnn\.predictor"):
        Lmpnn.create(Settings.of("lmpnn"), graph)
    other = written(tmp_path / "other", Settings.of("distmult"), graph)
    settings = Settings.of("lmpnn").changed({"lmpnn.predictor": str(other)})
    with pytest.raises(CheckpointError, match="a run of complex, not of distmult"):
        Lmpnn.create(settings, graph)


CONFIGS = Path(__file__).parents[3] / "configs" / "cqa"


@pytest.mark.parametrize("name", ["lmpnn", "lmpnn-gpu", "gnn-qe", "gnn-qe-gpu"])
def test_the_shipped_settings_are_read(name: str) -> None:
    settings = read_settings(CONFIGS / f"{name}.yaml")
    assert settings.model == name.removesuffix("-gpu")
    # The published sizes are the defaults.
    assert (settings.own == Settings.of(settings.model).own) == name.endswith("-gpu")
