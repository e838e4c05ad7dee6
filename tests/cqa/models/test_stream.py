"""Training queries: sampled, read, kept; the batches drawn from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from cqa.answering.answer import answers
from cqa.formats.samples import write_samples
from cqa.graphs.graph import Graph
from cqa.models.query_sets import QuerySet, betae_counts, load, of_samples, read, sampled
from cqa.models.stream import Draw, StreamOptions, TrainingStream
from cqa.notation.trees import from_tree
from cqa.sampling.kinds import kinds
from cqa.sampling.makers import Plan
from cqa.sampling.options import Options
from cqa.sampling.run import stream as samples_of
from cqa.types.betae import named
from cqa.types.tree import Tree
from kopl_base.errors import ReadError
from kopl_base.training.optimizer import TrainingError
from tests.cqa.small_graph import ENTITIES, small_graph

COUNTS = {"1p": 30, "2p": 40, "2i": 40, "3i": 20, "2in": 20, "pni": 10}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return small_graph()


@pytest.fixture(scope="module")
def queries(graph: Graph) -> QuerySet:
    return sampled(graph, COUNTS, seed=3)


def grounded(tree: Tree, anchors: list[int], relations: list[int]) -> Tree:
    """A type with relations and anchors from left to right, in the order of the formula."""
    if tree.op == "e":
        return Tree("e", entity=anchors.pop(0))
    relation = relations.pop(0) if tree.op == "p" else None
    operands = tuple(grounded(operand, anchors, relations) for operand in tree.operands)
    return Tree(tree.op, operands, relation)


def test_sampled_queries_have_their_answers_on_train(graph: Graph, queries: QuerySet) -> None:
    links = graph.view("train")
    assert [one.name for one in queries.types] == list(COUNTS)
    for one in queries.types:
        assert len(one) == COUNTS[one.name]
        for row in range(len(one)):
            tree = grounded(named(one.name), one.anchors[row].tolist(), one.relations[row].tolist())
            found = answers(from_tree(tree), links)[:, 0]
            assert found.tolist() == one.answers_of(row).tolist()


def test_as_many_queries_as_published_are_asked_for(graph: Graph) -> None:
    links = graph.view("train")
    pairs = sum(len(links.heads_of(relation)) for relation in range(links.relation_count))
    counts = betae_counts(graph)
    assert len(counts) == 10 and counts["1p"] == counts["3i"] == pairs
    assert counts["pni"] == pairs // 10


def test_a_type_with_too_few_queries_is_told(
    graph: Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    found = sampled(graph, {"1p": 10**6, "2i": 50_000})
    assert len(found.types[0]) == betae_counts(graph)["1p"]
    assert f"train has {len(found.types[1])} queries of 2i, not 50000" in capsys.readouterr().out


def test_sets_are_kept_as_arrays(graph: Graph, queries: QuerySet, tmp_path: Path) -> None:
    queries.save(tmp_path / "queries")
    again = load(tmp_path / "queries", graph)
    assert again.mark == queries.mark and repr(again) == repr(queries)
    assert [one.plan.key for one in again.types] == [one.plan.key for one in queries.types]
    with pytest.raises(ReadError, match="is no set of training queries"):
        load(tmp_path, graph)
    other = QuerySet(queries.types, "another")
    other.save(tmp_path / "other")
    with pytest.raises(ReadError, match=r"queries are of another graph \(another\)"):
        load(tmp_path / "other", graph)


@pytest.mark.parametrize("format", ["jsonl", "betae", "efok"])
def test_files_of_others_are_read(graph: Graph, tmp_path: Path, format: str) -> None:
    plan = Plan(tuple(kinds(["2p", "2in"])), 20, 1, "train", Options(most=1000))
    made = list(samples_of(plan, graph))
    path = tmp_path / ("queries.jsonl" if format == "jsonl" else "queries")
    if format != "jsonl":
        path.mkdir()
    write_samples(path, made, format, "train")
    found, expected = read(path, graph), of_samples(made, graph)
    for one in expected.types:
        [same] = [o for o in found.types if sorted(o.starts) and o.path == one.path]
        assert len(same) == len(one) and same.answers.sum() == one.answers.sum()
    assert len(read(path, graph, most=7)) == 14


def test_the_queries_of_query2box_get_answers_of_train(graph: Graph, tmp_path: Path) -> None:
    links = graph.view("train")
    head = int(links.heads_of(0)[0])
    (tmp_path / "train.jsonl").write_text(f'{{"type": "1p", "query": [{head}, [0]]}}\n')
    [one] = read(tmp_path / "train.jsonl", graph).types
    assert one.answers_of(0).tolist() == links.row(0, head).tolist()


def test_each_query_comes_as_often_as_any_other(queries: QuerySet) -> None:
    stream = TrainingStream(queries, ENTITIES, StreamOptions(batch=16, mix="all"), seed=1)
    assert len(stream.epoch(0)) == 10 and len(stream) == 160
    drawn = [d for n in range(3) for d in stream.epoch(n)]
    assert len(drawn) == 30 and all(len(d) == 16 for d in drawn)
    counts: dict[tuple[int, int], int] = {}
    for draw in drawn:
        for pair in zip(draw.types.tolist(), draw.rows.tolist(), strict=True):
            counts[pair] = counts.get(pair, 0) + 1
    assert len(counts) == len(queries) and set(counts.values()) == {3}


def test_chains_have_two_batches_for_each_of_the_others(queries: QuerySet) -> None:
    options = StreamOptions(batch=16, steps=12)
    stream = TrainingStream(queries, ENTITIES, options, seed=1)
    paths = [one.path for one in queries.types]
    assert paths == [True, True, False, False, False, False]
    found = [{paths[kind] for kind in draw.types} for draw in stream.epoch(0)]
    assert found == [{True}, {False}, {True}] * 4
    # The first pass over the 70 chains is over after 70 draws: no query came twice.
    chains = [d for n in range(2) for d in stream.epoch(n) if paths[d.types[0]]][:4]
    seen = [pair for d in chains for pair in zip(d.types.tolist(), d.rows.tolist(), strict=True)]
    assert len(seen) == 64 == len(set(seen))


def same(one: Draw, other: Draw) -> bool:
    return np.array_equal(one.types, other.types) and np.array_equal(one.rows, other.rows)


def test_a_batch_depends_on_the_seed_and_its_step_alone(queries: QuerySet) -> None:
    options = StreamOptions(batch=16, steps=7, negatives=5)
    first, second = (TrainingStream(queries, ENTITIES, options, seed=4) for _ in range(2))
    drawn = [draw for n in range(3) for draw in first.epoch(n)]
    for step in (20, 3, 11, 0):
        own = second.draw(step)
        assert same(own, drawn[step])
        one, other = first.collate(drawn[step]), second.collate(own)
        for name in ("positives", "negatives", "weights", "anchors"):
            assert (getattr(one, name) == getattr(other, name)).all()
    third = TrainingStream(queries, ENTITIES, options, seed=5)
    assert not same(third.draw(0), drawn[0])
    assert drawn[0][0].text.startswith(("1p of entities [", "2p of entities ["))
    assert len(drawn[0][:3]) == 3


def test_batches_have_an_answer_others_and_weights(queries: QuerySet) -> None:
    options = StreamOptions(batch=32, negatives=40, mix="all", dense=True)
    stream = TrainingStream(queries, ENTITIES, options, seed=2)
    chosen = set()
    for draw in stream.epoch(0):
        batch = stream.collate(draw)
        weights = []
        for row in range(32):
            own = queries.types[draw.types[row]]
            at = draw.rows[row]
            found = own.answers_of(at).tolist()
            plan = batch.plans[int(batch.kinds[row])]
            assert batch.anchors[row, : plan.anchors].tolist() == own.anchors[at].tolist()
            assert batch.relations[row, : plan.relations].tolist() == own.relations[at].tolist()
            assert batch.answers[row].nonzero()[:, 0].tolist() == found
            assert int(batch.positives[row]) in found
            if len(found) < ENTITIES:
                assert not set(batch.negatives[row].tolist()) & set(found)
            chosen.add(found.index(int(batch.positives[row])))
            weights.append((4 + len(found)) ** -0.5)
        expected = np.array(weights) / np.mean(weights)
        np.testing.assert_allclose(batch.weights.numpy(), expected, rtol=1e-6)
    assert len(chosen) > 3
    kept = TrainingStream(
        queries, ENTITIES, StreamOptions(batch=32, rejecting=False, weighted=False), seed=2
    )
    batch = kept.collate(kept.draw(0))
    own = [queries.types[0].answers_of(row) for row in kept.draw(0).rows[:1]]
    assert batch.weights.eq(1).all() and not batch.answers.numel() and own
    among = batch.negatives.eq(batch.positives[:, None]).any()
    assert among  # of 16 entities, 128 draws hit an answer


def test_entities_that_a_batch_shares_are_left_out_where_they_are_answers(
    queries: QuerySet,
) -> None:
    options = StreamOptions(batch=32, negatives=12, mix="all", dense=True, shared=True)
    stream = TrainingStream(queries, ENTITIES, options, seed=2)
    batch = stream.collate(stream.draw(3))
    assert batch.pool.entities.shape == (12,) and not batch.negatives.numel()
    assert batch.taken.equal(batch.answers[:, batch.pool.entities]) and batch.taken.any()
    some = batch.rows(torch.tensor([5, 2]))
    assert some.pool.entities.equal(batch.pool.entities)
    assert some.taken.equal(batch.taken[[5, 2]])


def test_what_cannot_be_learnt_from_is_refused(graph: Graph) -> None:
    plan = Plan(tuple(kinds(["(r1(s1,f1))&(r2(f1,f2))"])), 2, 1, "train", Options(most=1000))
    with pytest.raises(TrainingError, match="2 free variables"):
        of_samples(samples_of(plan, graph), graph)
    with pytest.raises(TrainingError, match="no training queries"):
        TrainingStream(QuerySet((), ""), 4, StreamOptions())
    with pytest.raises(TrainingError, match="one type was expected, not the 17 of betae"):
        sampled(graph, {"betae": 3})
