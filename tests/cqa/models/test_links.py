"""Link predictors: scores by hand, losses against plain ones, what is learnt by heart."""

from __future__ import annotations

import cmath
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch import Tensor

from cqa.errors import QueryError
from cqa.graphs.graph import Graph
from cqa.models.links.bilinear import Bilinear, ComplEx
from cqa.models.links.distance import Distance
from cqa.models.links.evaluation import LinkReport, baseline, evaluate_links
from cqa.models.links.network import LinkModel, RowBatch
from cqa.models.links.predictor import FrequentTails, LinkPredictor, in_blocks
from cqa.models.links.training import RowData
from cqa.models.settings import Settings, model_class
from kopl_base.errors import SettingsError
from tests.cqa.models.worlds import grid
from tests.cqa.small_graph import full, small_graph

NAMES = ("complex", "distmult", "transe", "rotate")


def made(name: str, graph: Graph, seed: int = 3, **changes: Any) -> LinkModel:
    """A new model of a graph."""
    torch.manual_seed(seed)
    settings = Settings.of(name).changed({"rank": 3, "init": 0.5, **changes})
    found: LinkModel = model_class(name).create(settings, graph)
    return found


def batch_of(graph: Graph, candidates: int = 0, pairs: bool = True) -> RowBatch:
    """All rows of train as one batch."""
    data = RowData(graph.view("train"), 1, candidates, pairs)
    [items] = data.epoch(0, len(data))
    return data.collate(items)


def score(name: str, head: list[float], relation: list[float], tail: list[float]) -> float:
    """A score in two dimensions, by the formula of the model's paper."""
    if name == "distmult":
        return sum(h * r * t for h, r, t in zip(head, relation, tail, strict=True))
    if name == "transe":
        return -sum(abs(h + r - t) for h, r, t in zip(head, relation, tail, strict=True))
    h, t = ([complex(x[n], x[n + 2]) for n in range(2)] for x in (head, tail))
    if name == "complex":
        w = [complex(relation[n], relation[n + 2]) for n in range(2)]
        return sum((h[n] * w[n] * t[n].conjugate()).real for n in range(2))
    return -sum(abs(h[n] * cmath.exp(1j * relation[n]) - t[n]) for n in range(2))


@pytest.mark.parametrize("name", NAMES)
def test_scores_in_two_dimensions(name: str) -> None:
    model = made(name, small_graph(), rank=2)
    entities, relations = model.entities.tolist(), model.relations.tolist()
    found = model.scores(5, torch.tensor([4, 0]))
    expected = [[score(name, entities[h], relations[5], t) for t in entities] for h in (4, 0)]
    torch.testing.assert_close(found, torch.tensor(expected), atol=1e-5, rtol=1e-5)
    assert isinstance(model, LinkPredictor) and not found.requires_grad
    # One head at a time, and each tail beside its query, give the same.
    for row, head in zip(found, (4, 0), strict=True):
        torch.testing.assert_close(model.scores(5, torch.tensor([head]))[0], row)
    own = model.queries(model.entities[[4]], model.relations[[5]])
    torch.testing.assert_close(model.beside(own, model.entities[[7]])[0], found[0, 7])


@pytest.mark.parametrize("name", ["complex", "distmult"])
def test_relations_are_scored_as_tails_are(name: str) -> None:
    model = made(name, small_graph())
    assert isinstance(model, Bilinear)
    by_relation = model.relation_queries(model.entities[[2]], model.entities[[9]])
    found = (by_relation @ model.relations.T)[0]
    expected = [model.scores(r, torch.tensor([2]))[0, 9] for r in range(model.relation_count)]
    torch.testing.assert_close(found, torch.stack(expected))
    told = torch.tensor([4, 1])
    pair = model.entities[[2, 2]], model.entities[[9, 9]]
    loss = model.relation_losses(*pair, told)
    torch.testing.assert_close(loss, torch.nn.functional.cross_entropy(
        found.expand(2, -1), told, reduction="sum"
    ))  # fmt: skip


def plain_loss(model: LinkModel, graph: Graph) -> tuple[Tensor, list[bool]]:
    """The cross-entropies of all triples of train, one by one, and which rows are right."""
    links, losses, right = graph.view("train"), [], []
    for relation in range(links.relation_count):
        for head in links.heads_of(relation).tolist():
            queries = model.queries(model.entities[[head]], model.relations[[relation]])
            [logits] = model.against(queries, model.entities)
            tails = links.row(relation, head).tolist()
            losses += [-torch.log_softmax(logits, 0)[tail] for tail in tails]
            right.append(int(logits.argmax()) in tails)
    return torch.stack(losses).sum(), right


@pytest.mark.parametrize("name", NAMES)
def test_losses_of_rows_are_those_of_their_triples(name: str) -> None:
    graph = small_graph()
    model = made(name, graph, regularizer=0, relation_weight=0, loss="full")
    expected, right = plain_loss(model, graph)
    expected.backward()  # type: ignore[no-untyped-call]
    slopes = [one.grad.clone() for one in model.parameters()]
    batch = batch_of(graph)
    order = torch.argsort(batch.relations * graph.entity_count + batch.heads)
    # Candidates that are all entities make the sampled loss the full one.
    every = replace(batch, candidates=torch.randperm(graph.entity_count))
    for given in (batch, every):
        model.zero_grad()
        loss, found = model(given)
        loss.backward()
        torch.testing.assert_close(loss, expected)
        assert found[order].tolist() == right
        for one, slope in zip(model.parameters(), slopes, strict=True):
            torch.testing.assert_close(one.grad, slope, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_sampled_losses_stand_for_the_full_one(name: str) -> None:
    graph = small_graph()
    model = made(name, graph, regularizer=0, loss="sampled", init=0.1)
    data = RowData(graph.view("train"), 1, candidates=6)
    losses = []
    for epoch in range(40):
        [items] = data.epoch(epoch, len(data))
        losses.append(float(model(data.collate(items)).loss.detach()))
    assert np.mean(losses) == pytest.approx(plain_loss(model, graph)[0].item(), rel=0.05)
    assert len(set(losses)) > 30  # other candidates for each batch


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("candidates", [0, 5])
def test_parts_of_a_batch_add_up(name: str, candidates: int) -> None:
    graph = small_graph()
    weight = 0.5 if name in ("complex", "distmult") else 0
    model = made(name, graph, regularizer=0.1, relation_weight=weight)
    batch = batch_of(graph, candidates, bool(weight))
    whole = model(batch)
    parts = [model(batch.rows(at)) for at in torch.arange(len(batch.heads)).split(7)]
    torch.testing.assert_close(sum(one.loss for one in parts), whole.loss, rtol=1e-5, atol=1e-3)
    assert torch.equal(torch.cat([one.right for one in parts]), whole.right)
    whole.loss.backward()
    assert all(bool((one.grad != 0).any(1).all()) for one in model.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_a_batch_alone_lead_to_the_same_weights(name: str) -> None:
    graph = small_graph()
    data = RowData(graph.view("train"), 1, candidates=3)
    weights = []
    for sparse in (False, True):
        model = made(name, graph, loss="sampled", regularizer=0.1, init=0.3)
        model.sparse = sparse
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
        for items in data.epoch(0, 4):
            optimizer.zero_grad()
            model(data.collate(items)).loss.backward()
            assert model.entities.grad is not None and model.entities.grad.is_sparse is sparse
            optimizer.step()
        weights.append(model.entities.detach())
    torch.testing.assert_close(weights[0], weights[1])


def test_cubes_are_those_of_moduli() -> None:
    graph = small_graph()
    batch = batch_of(graph, pairs=False)
    losses = [
        float(made("complex", graph, regularizer=weight)(batch).loss.detach()) for weight in (0, 2)
    ]
    model = made("complex", graph)
    vectors = [torch.complex(*one.chunk(2, -1)).abs() for one in model.parameters()]
    cubes = [(one**3).sum(1) for one in vectors]
    rows = batch.row_of
    expected = cubes[0][batch.heads[rows]] + cubes[1][batch.relations[rows]] + cubes[0][batch.tails]
    assert losses[1] - losses[0] == pytest.approx(2 * float(expected.sum()), rel=1e-4)


def test_products_of_bfloat16_lead_the_same_way() -> None:
    graph = grid()
    model = made("complex", graph, rank=16, regularizer=0)
    batch = batch_of(graph, pairs=False)
    slopes = []
    for precise in (False, True):
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=precise):
            loss, _ = model(batch)
        loss.backward()
        assert loss.dtype == torch.float32
        slopes.append(torch.cat([one.grad.flatten() for one in model.parameters()]))
    assert not torch.equal(*slopes)
    assert torch.nn.functional.cosine_similarity(*slopes, dim=0) > 0.999


# --- ranks --------------------------------------------------------------------------------------


def plain_ranks(model: LinkPredictor, graph: Graph, split: str) -> list[float]:
    """The ranks of both directions of a split's triples, one by one."""
    known = {(h, 2 * r, t) for h, r, t in full()} | {(t, 2 * r + 1, h) for h, r, t in full()}
    ranks = []
    for relation in range(graph.links.relation_count):
        for head, tail in zip(
            *(x.tolist() for x in graph.view(split).pairs(relation)), strict=True
        ):
            row = model.scores(relation, torch.tensor([head]))[0].tolist()
            others = [s for e, s in enumerate(row) if (head, relation, e) not in known]
            better, same = (sum(f(s) for s in others) for f in (row[tail].__lt__, row[tail].__eq__))
            ranks.append(1 + better + same / 2)
    return ranks


def test_ranks_are_filtered_by_all_splits() -> None:
    graph = small_graph()
    for model in (made("complex", graph), FrequentTails(graph.view("train"))):
        ranks = plain_ranks(model, graph, "test")
        found = evaluate_links(model, graph, "test")
        assert found.links == len(ranks) == 2 * graph.counts["test"]
        assert found.mrr == pytest.approx(np.mean([1 / rank for rank in ranks]))
        for most, share in found.hits.items():
            assert share == pytest.approx(np.mean([rank <= most for rank in ranks]))
    assert baseline(graph, "test") == found
    assert "HITS@10" in str(found)


def test_scores_that_are_alike_count_half() -> None:
    graph = small_graph()
    model = made("complex", graph)
    with torch.no_grad():
        model.entities.zero_()
    found = evaluate_links(model, graph, "valid")
    triples = graph.triples("valid")
    sizes = [
        graph.entity_count - len(graph.links.row(relation, head))
        for h, r, t in triples.tolist()
        for head, relation in ((h, r), (t, r + 1))
    ]
    assert found.mrr == pytest.approx(np.mean([1 / (1 + size / 2) for size in sizes]))
    assert LinkReport.of(torch.empty(0)) == LinkReport(0, 0.0, {1: 0.0, 3: 0.0, 10: 0.0})


def test_frequent_tails_count_links() -> None:
    graph = small_graph()
    predictor = FrequentTails(graph.view("train"))
    found = predictor.scores(3, torch.tensor([0, 1, 2]))
    tails = [h for h, r, t in full() if r == 1 and t in graph.view("train").row(2, h)]
    assert found.shape == (3, 16) and torch.equal(found[0], found[2])
    assert found[0].tolist() == np.bincount(tails, minlength=16).tolist()
    with pytest.raises(QueryError, match="no directed relation 10; the numbers end below 10"):
        predictor.scores(10, torch.tensor([0]))


def test_blocks_bound_the_memory() -> None:
    model = made("complex", small_graph())
    heads = torch.arange(10)
    blocks = list(in_blocks(model, 2, heads, numbers=3 * 16))
    assert [len(scores) for _, scores in blocks] == [3, 3, 3, 1]
    torch.testing.assert_close(torch.cat([scores for _, scores in blocks]), model.scores(2, heads))


def test_a_relation_that_is_not_there() -> None:
    with pytest.raises(QueryError, match="no directed relation -1"):
        made("rotate", small_graph()).scores(-1, torch.tensor([0]))


@pytest.mark.parametrize("name", ["transe", "rotate"])
def test_distances_have_no_relation_prediction(name: str) -> None:
    assert issubclass(model_class(name), Distance) and not issubclass(model_class(name), ComplEx)
    with pytest.raises(SettingsError, match="relation_weight must be 0: distances do not predict"):
        Settings.of(name).changed({"relation_weight": 1})
