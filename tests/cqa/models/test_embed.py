"""Embeddings of queries: operators by hand in two dimensions, batches, gradients, memory."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import log, pi, sin, tanh
from typing import Any, Literal

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch import Tensor, nn
from torch.distributions import Beta, kl_divergence

from cqa.errors import QueryError
from cqa.graphs.graph import Graph, from_triples
from cqa.models.embed.beta import BetaE, BetaSettings
from cqa.models.embed.box import Gqe, GqeSettings, Query2box, Query2boxSettings
from cqa.models.embed.cone import ConE, ConeSettings
from cqa.models.embed.layers import Perceptron
from cqa.models.embed.logic import LogicE, LogicSettings
from cqa.models.embed.newlook import NewLook, NewLookSettings
from cqa.models.model import QueryModel
from cqa.models.plan import logits
from cqa.models.query_sets import sampled
from cqa.models.settings import Settings
from cqa.models.stream import Pool, StreamOptions, TrainingStream
from cqa.models.training import reciprocal_ranks
from cqa.sampling.kinds import kinds
from cqa.sampling.makers import Plan
from cqa.sampling.run import stream as samples_of
from cqa.types.betae import named
from tests.cqa.models.worlds import grid, learn, single_links
from tests.cqa.small_graph import small_graph

# Models of two dimensions, for operators by hand; of some more, to learn.
TINY: dict[str, tuple[type[QueryModel], Any]] = {
    "gqe": (Gqe, GqeSettings(d=2, gamma=12)),
    "query2box": (Query2box, Query2boxSettings(d=2, gamma=12)),
    "betae": (BetaE, BetaSettings(d=2, hidden=3)),
    "logice": (LogicE, LogicSettings(d=1, hidden=3)),
    "logice bounded": (LogicE, LogicSettings(d=2, hidden=3, bounded=True)),
    "cone": (ConE, ConeSettings(d=2, hidden=3, gamma=2)),
    "newlook": (NewLook, NewLookSettings(d=2, hidden=3, groups=2)),
}
NEGATING = ("betae", "logice", "logice bounded", "cone")


def model(name: str, graph: Graph | None = None) -> QueryModel:
    torch.manual_seed(1)
    kind, settings = TINY[name]
    return kind(settings, small_graph() if graph is None else graph).eval()  # type: ignore[call-arg]


def tensor(*rows: Any) -> Tensor:
    return torch.tensor(rows, dtype=torch.float32)


def even(network: Perceptron, bias: float = 0.0) -> None:
    """Let a network give the same for all inputs."""
    for parameter in network.parameters():
        nn.init.zeros_(parameter)
    if bias:
        nn.init.constant_(network.layers[-1].bias, bias)  # type: ignore[arg-type]


# --- operators by hand ---------------------------------------------------------------------------


def test_gqe_by_hand() -> None:
    gqe = model("gqe")
    gqe.entities.data[:3] = tensor([0, 0], [1, 2], [3, -1])
    gqe.relations.data[4] = tensor([1, 1])
    even(gqe.attention)
    moved = gqe.project(gqe.entity(torch.tensor([1])), torch.tensor([4]))
    assert moved.tolist() == [[2, 3]]
    both = gqe.and_([moved, gqe.entity(torch.tensor([0]))])
    assert both.tolist() == [[1, 1.5]]
    assert gqe.logits(both, torch.tensor([[0, 2]])).tolist() == [[12 - 2.5, 12 - 4.5]]
    with pytest.raises(QueryError, match="Gqe has no complement; ask queries without negation"):
        gqe.not_(both)


def test_query2box_by_hand() -> None:
    box = model("query2box")
    box.entities.data[:3] = tensor([0, 0], [1, 2], [4, 2])
    box.relations.data[4], box.offsets.data[4] = tensor([1, 0])[0], tensor([2, -1])[0]
    even(box.attention)
    for part in (box.gate.each, box.gate.all):
        even(part)  # a half of the narrowest offset is left
    first = box.project(box.entity(torch.tensor([1])), torch.tensor([4]))
    assert [one.tolist() for one in first] == [[[2, 2]], [[2, 0]]]
    second = tensor([4, 4]), tensor([1, 3])
    centre, offset = box.and_([first, second])
    assert centre.tolist() == [[3, 3]] and offset.tolist() == [[0.5, 0]]
    found = box.logits((tensor([3, 3]), tensor([0.5, 2])), torch.tensor([[2, 0]]))
    # Entity 2 is 1 away in the first number, of which 0.5 within, and 1 within in the second.
    expected = [12 - 0.5 - 0.02 * 1.5, 12 - (2.5 + 1) - 0.02 * 2.5]
    assert found.tolist()[0] == pytest.approx(expected)


def test_betae_by_hand() -> None:
    beta = model("betae")
    beta.entities.data[0] = tensor([1, 2, -5, 0])[0]
    assert beta.entity(torch.tensor([0])).tolist()[0] == pytest.approx([2, 3, 0.05, 1])
    even(beta.projection, 0.5)
    assert beta.project(tensor([1, 2, 3, 4]), torch.tensor([0])).tolist() == [[1.5] * 4]
    even(beta.attention)
    assert beta.and_([tensor([1, 2, 3, 4]), tensor([3, 2, 1, 8])]).tolist() == [[2, 2, 2, 6]]
    assert beta.not_(tensor([1, 2, 4, 0.5])).tolist() == [[1, 0.5, 0.25, 2]]
    state = tensor([1.5, 0.3, 2, 7], [10, 40, 0.1, 3])
    entities = (beta.entities.detach() + 1).clamp(0.05, 1e9)
    for places in (None, torch.tensor([[3, 0], [5, 5]])):
        own = entities[None] if places is None else entities[places]
        divergence = kl_divergence(Beta(*own.chunk(2, -1)), Beta(*state[:, None].chunk(2, -1))).sum(
            -1
        )
        found = beta.logits(state, places)
        torch.testing.assert_close(found, 60 - divergence, rtol=1e-4, atol=1e-3)


def test_logice_by_hand() -> None:
    logic = model("logice")
    logic.entities.data[0] = tensor([0.25, 0.5])[0]
    even(logic.projection, log(3))  # of 3 to 1
    assert logic.project(tensor([0, 0]), torch.tensor([0])).tolist()[0] == pytest.approx([0.75] * 2)
    even(logic.attention)  # both operands count in full
    found = logic.and_([tensor([0.9, 0.5]), tensor([0.8, 0.3])])
    assert found.tolist()[0] == pytest.approx([0.7, 0])
    assert logic.not_(tensor([0.25, 1])).tolist() == [[0.75, 0]]
    found = logic.logits(tensor([0.5, 0.5]), torch.tensor([[0]]))
    assert found.tolist()[0] == pytest.approx([100 * (0.375 - 0.125)])
    # Whoever gets less attention lacks less.
    weights = tensor([0, 0], [log(2), log(4)])[:, None]
    logic.attention.forward = lambda operands: weights
    found = logic.and_([tensor([0.6, 0.6]), tensor([0.9, 0.9])])
    assert found.tolist()[0] == pytest.approx([1 - 0.5 * 0.4 - 0.1, 1 - 0.25 * 0.4 - 0.1])


def test_logice_with_bounds_by_hand() -> None:
    logic = model("logice bounded")
    logic.entities.data[0] = tensor([0.2, 0.5, 0.5, 1])[0]
    assert logic.entity(torch.tensor([0])).tolist()[0] == pytest.approx([0.2, 0.5, 0.6, 1])
    even(logic.attention)
    found = logic.and_([tensor([0.2, 0.5, 0.6, 1]), tensor([0.9, 0.8, 1, 1])])
    assert found.tolist()[0] == pytest.approx([0.1, 0.3, 0.6, 1])
    # The complement of what is at least 0.2 and at most 0.6 is at least 0.4 and at most 0.8.
    assert logic.not_(tensor([0.2, 0.5, 0.6, 1])).tolist()[0] == pytest.approx([0.4, 0, 0.8, 0.5])


def test_cone_by_hand() -> None:
    cone = model("cone")
    cone.entities.data[0] = tensor([1, -2])[0]
    axis, aperture = cone.entity(torch.tensor([0]))
    assert axis.tolist()[0] == pytest.approx([pi * tanh(1 / 2), -pi * tanh(1)])
    assert aperture.tolist() == [[0, 0]]
    even(cone.projection)
    axis, aperture = cone.project((tensor([1, 1]), tensor([1, 1])), torch.tensor([0]))
    assert axis.tolist() == [[0, 0]] and aperture.tolist()[0] == pytest.approx([pi / 2] * 2)
    even(cone.attention)
    for part in (cone.gate.each, cone.gate.all):
        even(part)
    # Directions that lie on both sides of pi meet there, not at 0.
    axis, aperture = cone.and_(
        [(tensor([0.2, pi - 0.1]), tensor([1, 0.4])), (tensor([0.6, 0.3 - pi]), tensor([2, 3]))]
    )
    assert axis.tolist()[0] == pytest.approx([0.4, 0.1 - pi])
    assert aperture.tolist()[0] == pytest.approx([0.5, 0.2])
    given = tensor([0.5, -0.5]), tensor([1, 2])
    axis, aperture = cone.not_(given)
    assert axis.tolist()[0] == pytest.approx([0.5 - pi, pi - 0.5])
    assert aperture.tolist()[0] == pytest.approx([pi - 1, pi - 2])
    assert given[0].tolist() == [[0.5, -0.5]] and given[1].tolist() == [[1, 2]]


def test_distances_of_cones_by_hand() -> None:
    cone = model("cone")
    cone.scale.data.fill_(3)
    cone.entities.data[0] = 0  # the direction 0
    state = tensor([0.4, 2]), tensor([1, 0.5])
    # 0 is within the first sector, 0.4 from its axis, and 1.5 outside of the second one.
    expected = 2 - 3 * (0.02 * (sin(0.2) + sin(0.25)) + sin(0.75))
    assert cone.logits(state, torch.tensor([[0]])).item() == pytest.approx(expected, rel=1e-4)


def test_newlook_by_hand() -> None:
    graph = from_triples([np.array([[0, 0, 1], [2, 1, 0]])], ("train",), entity_count=4)
    look = model("newlook", graph)
    look.group = torch.tensor([0, 1, 1, 0])
    links = torch.zeros(4, 2, 2, dtype=torch.uint8)
    links[0, 0, 1] = links[1, 1, 0] = links[2, 1, 0] = links[3, 0, 1] = 1
    look.linked = links
    look.entities.data[:2] = tensor([0, 0], [1, 4])
    for part in (look.from_centre, look.from_offset, look.attention, look.difference_attention):
        even(part)
    even(look.projection, 1.0)
    even(look.gate.each)
    even(look.gate.all)
    state = look.project(look.entity(torch.tensor([0])), torch.tensor([0]))
    assert state[0].tolist() == [[1, 1]] and state[2].tolist() == [[0, 1]]
    assert state[1].tolist()[0] == pytest.approx([log(1 + np.e)] * 2)
    first = tensor([0, 0]), tensor([2, 2]), tensor([1, 1])
    second = tensor([2, 4]), tensor([1, 4]), tensor([0, 1])
    centre, offset, groups = look.and_([first, second])
    assert centre.tolist() == [[1, 2]] and offset.tolist() == [[0.5, 1]]
    assert groups.tolist() == [[0, 1]]
    centre, offset, groups = look.difference(first, [second])
    assert centre.tolist() == [[1, 2]] and offset.tolist() == [[1.5, 3]]
    assert groups.tolist() == [[1, 0]]
    found = look.logits((tensor([0, 0]), tensor([2, 1]), tensor([1, 0])), torch.tensor([[1, 0]]))
    # Entity 1 is 1 within the box in the first number, 3 outside and 1 within in the second.
    assert found.tolist()[0] == pytest.approx([24 - 3 - 0.2 * 2 - 0.02, 24])
    with pytest.raises(QueryError, match="no complement, but differences"):
        look.not_(first)


def test_groups_of_newlook_are_linked_by_train_alone() -> None:
    train, test = np.array([[0, 0, 1]]), np.array([[2, 0, 3]])
    graph = from_triples([train, test[:0], test], entity_count=4)
    settings = NewLookSettings(d=2, hidden=3, groups=50)
    look = NewLook(settings, graph)
    assert int(look.linked.sum()) == 2 and look.linked[0, look.group[0], look.group[1]] == 1
    assert look.linked[1, look.group[1], look.group[0]] == 1
    assert (NewLook(settings, graph).group == look.group).all()
    assert not {"group", "linked"} & set(look.state_dict())


# --- what holds of all of them -------------------------------------------------------------------


@cache
def asked() -> list[Any]:
    """Queries of the types of BetaE on the small graph, three of each."""
    plan = Plan(tuple(kinds(["betae"])), 3, 1, "test")
    return list(samples_of(plan, small_graph()))


@pytest.mark.parametrize("name", TINY)
def test_a_batch_is_what_each_query_is_alone(name: str) -> None:
    own = model(name)
    samples = [s for s in asked() if "n" not in s.type or name in (*NEGATING, "newlook")]
    together = [one.scores for one in own.scores_of([s.query for s in samples])]
    for sample, scores in zip(samples, together, strict=True):
        np.testing.assert_allclose(own.scores(sample.query).scores, scores, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", TINY)
def test_all_entities_score_as_some_of_them(name: str) -> None:
    own = model(name)
    state = own.project(own.entity(torch.tensor([3, 4])), torch.tensor([1, 2]))
    state = own.and_([state, own.project(own.entity(torch.tensor([5, 6])), torch.tensor([3, 0]))])
    every = own.logits(state)
    some = torch.tensor([[3, 3, 0], [15, 1, 2]])
    torch.testing.assert_close(own.logits(state, some), every.gather(1, some))
    with torch.inference_mode():
        torch.testing.assert_close(own.logits(state), every)
    assert every.shape == (2, 16)


@pytest.mark.parametrize("name", TINY)
def test_the_order_of_operands_does_not_matter(name: str) -> None:
    own = model(name)
    numbers = [torch.tensor([one, one + 5]) for one in range(3)]
    states = [own.project(own.entity(one), one % 3) for one in numbers]
    expected = own.logits(own.and_(states))
    torch.testing.assert_close(own.logits(own.and_(states[::-1])), expected)
    if name == "newlook":
        first, *taken = states
        expected = own.logits(own.difference(first, taken))  # type: ignore[attr-defined]
        found = own.logits(own.difference(first, taken[::-1]))  # type: ignore[attr-defined]
        torch.testing.assert_close(found, expected)
        other = own.logits(own.difference(taken[0], [first]))  # type: ignore[attr-defined]
        assert not torch.allclose(other, own.logits(own.difference(first, taken[:1])))  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", TINY)
def test_each_parameter_gets_a_gradient(name: str) -> None:
    own = model(name).train()
    types = {"1p": 60, "2p": 60, "2i": 60, "3i": 20}
    if name in (*NEGATING, "newlook"):
        types["2in"] = 40
    queries = sampled(small_graph(), types, seed=1)
    options = StreamOptions(batch=200, negatives=8, mix="all")
    stream = TrainingStream(queries, 16, options, seed=1)
    scores = own(stream.collate(stream.draw(0)))
    assert torch.isfinite(scores.loss) and scores.right.shape == (200,)
    scores.loss.backward()
    for part, parameter in own.named_parameters():
        assert parameter.grad is not None and bool(parameter.grad.abs().sum() > 0), part


@pytest.mark.parametrize("name", TINY)
def test_parameters_that_a_batch_does_not_need_have_gradients_of_zero(name: str) -> None:
    own = model(name)
    queries = sampled(small_graph(), {"1p": 60}, seed=1)
    stream = TrainingStream(queries, 16, StreamOptions(batch=8, negatives=8), seed=1)
    own(stream.collate(stream.draw(0))).loss.backward()
    attention = next(own.attention.parameters())  # type: ignore[union-attr]
    assert attention.grad is not None and not attention.grad.any()


@pytest.mark.parametrize("loss", ["sigmoid", "softmax"])
@pytest.mark.parametrize("name", TINY)
def test_entities_that_a_batch_shares_are_judged_as_those_of_each_query(
    name: str, loss: Literal["sigmoid", "softmax"]
) -> None:
    own = model(name).eval()
    queries = sampled(small_graph(), {"1p": 60, "2i": 60}, seed=1)
    options = StreamOptions(batch=20, negatives=6, mix="all", shared=True, loss=loss)
    stream = TrainingStream(queries, 16, options, seed=1)
    batch = stream.collate(stream.draw(0))
    assert batch.taken.any()
    together = own(batch)
    total = 0.0
    for row in range(20):
        one = batch.rows(torch.tensor([row]))
        rest = one.pool.entities[~one.taken[0]][None]
        nobody = torch.zeros(0, 0, dtype=torch.bool)
        alone = own(replace(one, pool=Pool(rest[0, :0]), taken=nobody, negatives=rest))
        assert bool(alone.right) == bool(together.right[row])
        total += float(alone.loss.detach())
    assert total == pytest.approx(float(together.loss.detach()), rel=1e-4)


@pytest.mark.parametrize("name", NEGATING)
def test_complements_of_complements_are_the_sets(name: str) -> None:
    own = model(name)
    state = own.project(own.entity(torch.tensor([3, 4])), torch.tensor([1, 2]))
    again = own.not_(own.not_(state))
    torch.testing.assert_close(own.logits(again), own.logits(state), rtol=1e-4, atol=1e-4)


def test_a_union_scores_as_the_best_of_its_parts() -> None:
    own = model("gqe")
    sample: Any = next(s for s in asked() if s.type == "2u")
    first, second = sample.query.operands
    parts = np.maximum(own.scores(first).scores, own.scores(second).scores)
    np.testing.assert_allclose(own.scores(sample.query).scores, parts)
    assert logits(own, own.entity(torch.tensor([1]))).shape == (1, 16)


def test_models_without_complements_refuse_them() -> None:
    sample = next(s for s in asked() if s.type == "2in")
    with pytest.raises(QueryError, match="has a negation, and the model has none"):
        model("gqe").scores(sample.query)
    assert named("2in").formula == sample.formula


def test_published_sizes_are_the_defaults() -> None:
    sizes: dict[str, dict[str, Any]] = {
        "betae": {"d": 400, "hidden": 1600, "gamma": 60},
        "logice": {"d": 400, "hidden": 1600, "gamma": 0.375, "bounded": False},
        "cone": {"d": 800, "hidden": 1600, "gamma": 30, "dropout": 0.1},
        "newlook": {"d": 400, "hidden": 1600, "groups": 200, "gamma": 24},
        "query2box": {"d": 400, "gamma": 24},
        "gqe": {"d": 800, "gamma": 24},
    }
    for name, wanted in sizes.items():
        settings = Settings.of(name)
        own = vars(settings.own)
        assert {key: own[key] for key in wanted} == wanted
        training = settings.training
        assert training.batch == 512 and training.schedule == "fifths"
        assert settings.others["queries"].negatives == 128
        steps = training.epochs * settings.others["queries"].steps
        assert steps == (900_000 if name == "cone" else 1_350_000)
        assert training.learning_rate == (5e-5 if name == "cone" else 1e-4)


# --- learning ------------------------------------------------------------------------------------

LEARNING: dict[str, tuple[type[QueryModel], Any, float, int]] = {
    "gqe": (Gqe, GqeSettings(d=32, gamma=6), 0.02, 300),
    "query2box": (Query2box, Query2boxSettings(d=32, gamma=6), 0.02, 400),
    "betae": (BetaE, BetaSettings(d=16, hidden=64, gamma=6), 0.02, 600),
    "logice": (LogicE, LogicSettings(d=16, hidden=64), 0.015, 600),
    "logice bounded": (LogicE, LogicSettings(d=32, hidden=64, bounded=True), 0.01, 800),
    "cone": (ConE, ConeSettings(d=32, hidden=64, gamma=1.5, dropout=0, inside=0.2), 0.002, 500),
    "newlook": (NewLook, NewLookSettings(d=16, hidden=64, groups=10, gamma=6), 0.02, 400),
}


@pytest.mark.parametrize("name", LEARNING)
def test_a_small_graph_is_memorised(name: str, tmp_path: Any) -> None:
    kind, settings, rate, steps = LEARNING[name]
    graph = grid()
    assert graph.entity_count == 50
    torch.manual_seed(1)
    own = kind(settings, graph)  # type: ignore[call-arg]
    links = single_links(graph)
    assert np.mean(reciprocal_ranks(own.eval(), links)) < 0.3
    learn(own, graph, tmp_path, {"1p": 1000, "2i": 100}, steps, learning_rate=rate)
    assert np.mean(reciprocal_ranks(own.eval(), links)) > 0.95
