"""Message passing beside sums that are written out, and GNN-QE: operators, gradients, learning."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch import Tensor

from cqa.graphs.graph import Graph, from_triples
from cqa.models.embed import passing
from cqa.models.embed.nbfnet import GnnQe, GnnQeSettings, Layer, without_answers
from cqa.models.embed.passing import Adjacency
from cqa.models.training import QueryTrainer
from kopl_base.training.checkpoint import read_state, read_weights, write_weights
from tests.cqa.models.graph_models import (
    queries_of,
    random_graph,
    stream_of,
    train_mrr,
    trainer,
    tree,
)

SMALL = GnnQeSettings(width=8, layers=2)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return random_graph()


def listed(graph: Graph) -> list[tuple[int, int, int]]:
    """All links (head, directed relation, tail)."""
    links = graph.view("train")
    return [
        (int(head), relation, int(tail))
        for relation in range(links.relation_count)
        for head, tail in zip(*links.pairs(relation), strict=True)
    ]


def messages(graph: Graph, states: Tensor, scales: Tensor) -> list[list[Tensor]]:
    """What each node takes in: the states of its own links' tails, scaled."""
    found: list[list[Tensor]] = [[] for _ in range(graph.entity_count)]
    for head, relation, tail in listed(graph):
        found[head].append(states[tail] * scales[relation])
    return found


def test_messages_run_from_tails_to_heads(graph: Graph) -> None:
    states, scales = torch.randn(graph.entity_count, 2), torch.randn(2 * graph.relation_count, 2)
    adjacency = Adjacency.of(graph.view("train"))
    sums = adjacency.sums(states, scales)
    low, high = adjacency.extremes(states, scales)
    for node, own in enumerate(messages(graph, states, scales)):
        stacked = torch.stack(own) if own else torch.zeros(1, 2)
        torch.testing.assert_close(sums[node], stacked.sum(0))
        torch.testing.assert_close(low[node], stacked.amin(0))
        torch.testing.assert_close(high[node], stacked.amax(0))
        assert int(adjacency.degrees[node]) == len(own)


def test_links_have_inverses(graph: Graph) -> None:
    adjacency = Adjacency.of(graph.view("train"))
    rows = torch.stack([adjacency.link_nodes, adjacency.link_relations, adjacency.sources])
    inverse = rows[:, adjacency.inverse]
    assert torch.equal(inverse, torch.stack([rows[2], rows[1] ^ 1, rows[0]]))


def test_links_are_left_out(graph: Graph) -> None:
    adjacency = Adjacency.of(graph.view("train"))
    keep = torch.arange(len(adjacency.sources)) % 3 > 0
    kept = adjacency.kept(keep)
    for name in ("link_nodes", "link_relations", "sources"):
        assert torch.equal(getattr(kept, name), getattr(adjacency, name)[keep])
    assert bool((kept.starts.diff() > 0).all())


@pytest.mark.parametrize("aggregation", ["sum", "pna"])
def test_a_layer_is_as_it_is_written(
    graph: Graph, aggregation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    layer = Layer(2, aggregation)
    states, boundary = torch.randn(2, graph.entity_count, 3, 2)
    scales = torch.randn(2 * graph.relation_count, 3, 2)
    whole = layer(states, boundary, scales, Adjacency.of(graph.view("train")))
    degrees = [len(own) + 1 for own in messages(graph, states, scales)]
    mean_log = float(np.log(degrees).mean())
    for node, own in enumerate(messages(graph, states, scales)):
        stacked = torch.stack([*own, boundary[node]])
        aggregate = stacked.sum(0)
        if aggregation == "pna":
            spread = stacked.var(0, correction=0).clamp_min(1e-6).sqrt()
            parts = stacked.mean(0), stacked.amin(0), stacked.amax(0), spread
            features = torch.stack(parts, -1)
            scaler = np.log(degrees[node]) / mean_log
            scaled = features, features * scaler, features / max(scaler, 1e-2)
            aggregate = torch.cat(scaled, -1).flatten(1)
        hidden = layer.linear(torch.cat([states[node], aggregate], -1))
        wanted = states[node] + layer.layer_norm(hidden).relu()
        torch.testing.assert_close(whole[node], wanted, atol=1e-4, rtol=1e-4)
    monkeypatch.setattr(passing, "BLOCK", 7 * states[0].numel())
    with torch.inference_mode():
        parts = layer(states, boundary, scales, Adjacency.of(graph.view("train")))
    torch.testing.assert_close(parts, whole.detach(), atol=1e-5, rtol=1e-5)


def test_links_that_answer_are_left_out_both_ways(graph: Graph) -> None:
    adjacency = Adjacency.of(graph.view("train"))
    links = listed(graph)
    asked = links[0][1]
    head = links[0][0]
    sets = torch.zeros(1, graph.entity_count, dtype=torch.bool)
    sets[0, head] = True
    rest = without_answers(adjacency, sets, torch.tensor([asked]), 1.0)
    arrays = rest.link_nodes, rest.link_relations, rest.sources
    found = set(zip(*(one.tolist() for one in arrays), strict=True))
    gone = {link for link in links if link[:2] == (head, asked)}
    gone |= {(tail, relation ^ 1, own) for own, relation, tail in gone}
    assert gone and found == set(links) - gone


def test_the_operators_by_hand(graph: Graph) -> None:
    model = GnnQe(SMALL, graph)
    one, other = torch.tensor([[0.5, 0.2]]), torch.tensor([[0.1, 1.0]])
    torch.testing.assert_close(model.and_([one, other]), torch.tensor([[0.05, 0.2]]))
    torch.testing.assert_close(model.or_([one, other]), torch.tensor([[0.55, 1.0]]))
    torch.testing.assert_close(model.not_(one), torch.tensor([[0.5, 0.8]]))
    torch.testing.assert_close(model.logits(one), torch.logit(one))
    torch.testing.assert_close(model.logits(one, torch.tensor([[1]])), torch.logit(one)[:, 1:])
    assert model.entity(torch.tensor([3])).nonzero().tolist() == [[0, 3]]
    # Products of small numbers keep their order.
    tiny = torch.tensor([[1e-16, 1e-14, 0.0]])
    assert model.logits(tiny)[0].argsort().tolist() == [2, 0, 1]


def test_a_graph_without_links_has_scores() -> None:
    nothing = np.zeros((0, 3), np.int32)
    graph = from_triples([nothing] * 3, entity_count=5, relation_count=2)
    scores = GnnQe(SMALL, graph).scores(tree("2i", [1, 2], [0, 1])).scores
    assert np.isfinite(scores).all()


TYPES = ("1p", "2p", "2i", "3i", "pi", "ip", "2u", "up", "2in", "pni")


@pytest.mark.parametrize("name", TYPES)
def test_a_batch_is_what_each_query_is_alone(graph: Graph, name: str) -> None:
    torch.manual_seed(0)
    model = GnnQe(SMALL, graph)
    queries = [tree(name, [n, n + 5, n + 9], [n % 8, (n + 3) % 8, n % 7]) for n in range(4)]
    together = list(model.scores_of(queries))
    for query, scored in zip(queries, together, strict=True):
        alone = model.scores(query).scores
        np.testing.assert_allclose(scored.scores, alone, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["2i", "2u"])
def test_the_order_of_operands_does_not_matter(graph: Graph, kind: str) -> None:
    model = GnnQe(SMALL, graph)
    scores = [
        model.scores(tree(kind, list(anchors), list(relations))).scores
        for anchors, relations in (((1, 2), (3, 4)), ((2, 1), (4, 3)))
    ]
    np.testing.assert_allclose(*scores, atol=1e-6)


def test_each_parameter_gets_a_gradient(graph: Graph) -> None:
    torch.manual_seed(0)
    model = GnnQe(GnnQeSettings(width=8, layers=2, joined=True), graph)
    queries = queries_of(graph, {"1p": 400, "2i": 20, "2in": 10})
    stream = stream_of(model, queries, len(queries))
    scores = model.train()(stream.collate(stream.draw(0)))
    scores.loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and bool((parameter.grad != 0).any()), name


def test_a_layer_that_is_made_again_gives_the_same_gradients(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model = GnnQe(GnnQeSettings(width=8, layers=2, dropout=0.0), graph)
    found = []
    for kept in (1 << 24, 0):
        monkeypatch.setattr("cqa.models.embed.nbfnet.KEPT", kept)
        model.zero_grad()
        model.project(model.entity(torch.tensor([1, 2])), torch.tensor([0, 3])).sum().backward()
        found.append([parameter.grad.clone() for parameter in model.parameters()])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_a_small_graph_is_memorised(graph: Graph, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = GnnQe(GnnQeSettings(width=16, layers=2), graph)
    queries = queries_of(graph, {"1p": 200, "2i": 60})
    assert min(train_mrr(model, queries).values()) < 0.5
    assert trainer(tmp_path / "run", model, queries, 7, 1e-2).run()
    assert min(train_mrr(model, queries).values()) > 0.95


def test_a_training_goes_on_where_it_stopped(graph: Graph, tmp_path: Path) -> None:
    queries = queries_of(graph, {"1p": 60, "2p": 20})

    def made(epochs: int, folder: str) -> tuple[GnnQe, QueryTrainer]:
        torch.manual_seed(0)
        model = GnnQe(SMALL, graph)
        return model, trainer(tmp_path / folder, model, queries, epochs, 1e-2)

    whole, training = made(2, "whole")
    training.run()
    _, training = made(1, "parts")
    training.run()
    again, training = made(2, "parts")
    training.resume(read_state(tmp_path / "parts" / "resume.pt"))
    training.run()
    for name, parameter in whole.state_dict().items():
        assert torch.equal(parameter, again.state_dict()[name]), name
    # What is written is read as it was.
    write_weights(again, tmp_path / "weights.safetensors")
    fresh = GnnQe(SMALL, graph)
    read_weights(fresh, tmp_path / "weights.safetensors")
    query = tree("2p", [3], [1, 2])
    assert np.array_equal(fresh.scores(query).scores, again.scores(query).scores)
