"""Evaluations of reasoners: the figures, saved runs, and sampled queries at size."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from cqa.errors import QueryError
from cqa.evaluation.evaluation import Evaluation, described, evaluate, limited, mean
from cqa.evaluation.files import from_json, read_evaluation, to_json, write_evaluation
from cqa.evaluation.judging import Reductions
from cqa.evaluation.reasoner import RandomReasoner, exact, observed
from cqa.graphs.graph import Graph
from cqa.query import Query
from cqa.sampling.kinds import kinds
from cqa.sampling.run import Plan, stream
from cqa.sampling.sample import Sample
from cqa.types.betae import from_tuples
from cqa.types.efok_text import read_formula
from cqa.types.normal import FORMS
from cqa.types.registry import efo1_types
from cqa.types.tree import Tree
from cqa.types.tree import read_formula as read_tree
from cqa.vocabularies import TIES
from kopl_base.errors import KoplError, ReadError
from tests.cqa.small_benchmark import (
    Fixed,
    graph_samples,
    sample,
)

DATA = os.environ.get("KOPL_DATA")


@pytest.fixture(scope="module")
def graphs() -> list[Sample]:
    """Queries of some of EFOk's types."""
    return graph_samples()


def test_means_are_over_answers_then_queries_then_types() -> None:
    samples = [
        sample("a", "0(1,f1)", [], [0, 1]),  # ranks 1 and 1
        sample("a", "0(2,f1)", [], [3]),  # rank 4
        sample("b", "0(3,f1)", [0], [2]),  # rank 2
    ]
    found = evaluate(Fixed(9, 8, 7, 6), samples, 4, name="fixed")
    one, other = found.types
    assert (one.all.queries, one.all.answers) == (2, 3)
    assert one.all.metrics["mrr"] == (1 + 1 / 4) / 2
    assert other.all.metrics["mrr"] == 1 / 2
    assert found.metrics["mrr"] == (5 / 8 + 1 / 2) / 2
    # Of the first type no query has easy answers.
    assert "entailment" not in one.all.metrics and found.metrics["entailment"] == 1.0


def test_a_mean_is_over_those_that_have_the_metric() -> None:
    assert mean([{"mrr": 1.0}, {"mrr": 0.0, "ra_oracle": 0.5}, {}]) == {
        "mrr": 0.5,
        "ra_oracle": 0.5,
    }


@pytest.mark.parametrize("ties", TIES)
def test_the_exact_reasoner_is_always_right(
    graph: Graph, trees: list[Sample], graphs: list[Sample], ties: str
) -> None:
    # Nothing that is no answer is tied with one, so that ties make no difference.
    for samples in (trees, graphs):
        found = evaluate(exact(graph), samples, graph.entity_count, ties=ties)
        for result in found.types:
            assert set(result.all.metrics.values()) == {1.0}, result
            assert "mrr" in result.all.metrics or "joint_mrr" in result.all.metrics


def test_the_observed_reasoner_entails_and_ranks_the_hard_by_chance(
    graph: Graph, trees: list[Sample], graphs: list[Sample]
) -> None:
    reasoner = observed(graph)
    for samples in (trees, graphs):
        found = evaluate(reasoner, samples, graph.entity_count)
        assert all(r.all.metrics.get("entailment", 1.0) == 1.0 for r in found.types)
    for one in trees:
        # Hard answers score 0, as do all non-answers but those that the full graph takes back.
        easy, hard, lost = (set(part[:, 0].tolist()) for part in (one.easy, one.hard, one.lost))
        others = graph.entity_count - len((easy - lost) | hard)
        rank = 1 + len(lost) + (others - len(lost)) / 2
        found = evaluate(reasoner, [one], graph.entity_count)
        assert found.metrics["mrr"] == pytest.approx(1 / rank)
        assert found.metrics["hit@10"] == (rank <= 10)
        optimistic = evaluate(reasoner, [one], graph.entity_count, ties="optimistic")
        # What makes optimistic ties meaningless: 1.0 for no knowledge at all.
        assert optimistic.metrics["mrr"] == pytest.approx(1 / (1 + len(lost)))


def test_published_metrics_leave_queries_out(graph: Graph, graphs: list[Sample]) -> None:
    two = [one for one in graphs if one.hard.shape[1] == 2]
    found = evaluate(RandomReasoner(40), two, 40, compat="paper")
    left = [
        one
        for one in two
        if not all(set(one.hard[:, at].tolist()) - set(one.easy[:, at].tolist()) for at in (0, 1))
    ]
    assert found.left_out == len(left) > 0
    assert sum(result.all.queries for result in found.types) == len(two)


def test_what_hard_answers_reduce_to(graph: Graph, trees: list[Sample]) -> None:
    labels = Reductions(graph)
    found = evaluate(RandomReasoner(40), trees, 40, labels=labels)
    for result in found.types:
        assert sum(part.answers for part in result.reduced.values()) == result.all.answers
    by_type = {result.type: result for result in found.types}
    assert set(by_type["1p"].reduced) == {"1p"}
    assert set(by_type["2p"].reduced) <= {"1p", "2p"} and "1p" in by_type["2p"].reduced
    # One query: the mean over its answers is that over the parts, weighed by their answers.
    one = next(s for s, names in zip(trees, labels(trees), strict=True) if len(set(names)) > 1)
    (result,) = evaluate(RandomReasoner(40), [one], 40, labels=labels).types
    parts = result.reduced.values()
    total = sum(part.metrics["mrr"] * part.answers for part in parts)
    assert total / result.all.answers == pytest.approx(result.all.metrics["mrr"])


def test_a_better_reasoner_stands_above_chance(graph: Graph, trees: list[Sample]) -> None:
    chance = evaluate(RandomReasoner(40), trees, 40).metrics
    assert 0 < chance["mrr"] < 0.5 and chance["hit@1"] <= chance["hit@3"] <= chance["hit@10"]


class Many:
    """A reasoner that takes many queries at a time, and may give another number of scores."""

    def __init__(self, more: int = 0) -> None:
        self._more = more
        self.calls = 0

    def scores(self, query: Query | Tree) -> Any:
        """Never asked."""
        raise AssertionError

    def scores_of(self, queries: list[Query | Tree]) -> Any:
        """Chance."""
        self.calls += 1
        chance = RandomReasoner(40)
        return [chance.scores(query) for query in (queries * 2)[: len(queries) + self._more]]


def test_a_reasoner_may_take_many_queries_at_a_time(trees: list[Sample]) -> None:
    reasoner = Many()
    found = evaluate(reasoner, trees, 40, name="chance")
    assert found == evaluate(RandomReasoner(40), trees, 40, name="chance")
    assert reasoner.calls == 1
    for more, word in ((-1, "fewer"), (1, "more")):
        with pytest.raises(QueryError, match=rf"gave {word} scores than there are queries \(84\)"):
            evaluate(Many(more), trees, 40)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([], "there is no query to evaluate on"),
        ([sample("a", "0(1,f1)", [], [4])], r"query 1 \(a\): the answer 4 is no entity"),
        ([sample("a", "0(1,f1)", [1, 2], [3, 2])], r"query 1 \(a\): the answer 2 is listed twice"),
        (
            [sample("b", "(0(1,f1))&(0(f1,f2))", [[1, 3]], [[1, 3]])],
            r"query 1 \(b\): the answer 1, 3 is listed twice",
        ),
        (
            [sample("a", "0(1,f1)", [], [1]), sample("a", "(0(1,f1))&(0(f1,f2))", [], [[1, 1]])],
            r"query 2 \(a\): the type is .* here and r1\(s1,f1\) before",
        ),
        (
            [sample("b", "(0(1,f1))&(0(f1,f2))", [], [[1, 1]])],
            r"query 1 \(b\): the reasoner gave an array of shape \(1, 4\); \(2, 4\) was expected",
        ),
    ],
)
def test_what_cannot_be_evaluated(samples: list[Sample], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        evaluate(Fixed(1, 2, 3, 4), samples, 4)


def test_a_type_is_described_by_its_formula() -> None:
    query = read_formula("(0(5,e1))&((2(5,f1))&(4(e1,f1)))")  # the constant stands twice
    group, names = described("", "(r1(s1,e1))&((r2(s2,f1))&(r3(e1,f1)))", query)
    assert dict(group) == {"free": 1, "constants": 2, "existential": 1, "topology": "SDAG"}
    assert names[0] == "pi"
    group, _ = described("", "not a formula", query)
    assert dict(group)["constants"] == 1
    # Whatever the form of the query is, anchors and depth are those of the type.
    tree = from_tuples(((5, (0,)), (6, (1, 2)), (-1,)))
    assert described("type0003", "(u,(p,(e)),(p,(p,(e))))", tree) == (
        (("anchors", 2), ("depth", 2)),
        (),
    )


@pytest.mark.parametrize("form", FORMS)
def test_a_type_is_grouped_alike_in_every_form(form: str) -> None:
    for row, shown in list(zip(efo1_types(), efo1_types(form), strict=True))[::7]:
        tree = read_tree(shown.formula)
        group, _ = described(row.id, shown.formula, tree)
        assert group == (("anchors", row.anchors), ("depth", row.depth))
    # The id of another type does not make it one.
    assert described("type0300", "(p,(e))", read_tree("(p,(e))"))[0] == (
        ("anchors", 1),
        ("depth", 1),
    )


def test_only_the_first_queries_of_each_type() -> None:
    samples = [sample(kind, "0(1,f1)", [], [n]) for n, kind in enumerate("aabab")]
    assert [int(one.hard[0, 0]) for one in limited(samples, 1)] == [0, 2]


# --- saved runs -------------------------------------------------------------------------------


def test_a_saved_run_is_read_back(graph: Graph, trees: list[Sample], tmp_path: Path) -> None:
    found = evaluate(RandomReasoner(40), trees, 40, labels=Reductions(graph), ties="pessimistic")
    write_evaluation(tmp_path / "run.json", found)
    assert read_evaluation(tmp_path / "run.json") == found
    assert json.loads((tmp_path / "run.json").read_text())["metrics"] == found.metrics


def _changed(**changes: object) -> Any:
    found = evaluate(Fixed(1, 0), [sample("a", "0(1,f1)", [], [0])], 2)
    return {**to_json(found), **changes}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "no report of an evaluation"),
        ({}, "KeyError: 'version'"),
        (_changed(version=3), "a report of version 3; 1 and 2 are known"),
        (_changed(ties="best"), "there are no 'best' ties"),
        (_changed(types=[{}]), "KeyError"),
        (_changed(types=3), "TypeError"),
    ],
)
def test_what_is_no_saved_run(value: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(KoplError, match=message):
        from_json(value)
    path = tmp_path / "run.json"
    path.write_text(json.dumps(value))
    with pytest.raises(ReadError, match=rf"run.json: .*{message}"):
        read_evaluation(path)


def test_a_file_that_is_no_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ReadError, match=r"run\.json: not JSON.*evaluate --format json"):
        read_evaluation(tmp_path / "run.json")
    with pytest.raises(ReadError, match="a folder; a report of"):
        read_evaluation(tmp_path)


# --- at size ----------------------------------------------------------------------------------


@pytest.mark.skipif(DATA is None, reason="KOPL_DATA does not name the folder of benchmark data")
def test_queries_of_fb15k237(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from cqa.graphs.readers import read_graph

    graph = read_graph(Path(str(DATA)) / "fb15k237")
    found = list(stream(Plan(tuple(kinds(["2p", "pin", "(r1(s1,f1))&(r2(f1,f2))"])), 20), graph))
    best = evaluate(exact(graph), found, graph.entity_count)
    assert set(best.metrics.values()) == {1.0}
    known = evaluate(observed(graph), found, graph.entity_count).metrics
    assert known["entailment"] == 1.0 and known["hit@10"] == 0.0
    chance: Evaluation = evaluate(RandomReasoner(graph.entity_count), found, graph.entity_count)
    assert chance.metrics["hit@10"] < 0.05
