"""Runs beside each other: intervals that hold, paired tests, and what cannot be compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cqa.errors import QueryError
from cqa.evaluation import comparison
from cqa.evaluation.comparison import compare, comparison_table
from cqa.evaluation.evaluation import Evaluation, Part, TypeResult, evaluate
from cqa.evaluation.files import write_evaluation
from cqa.evaluation.judging import Reductions
from cqa.evaluation.reasoner import RandomReasoner, observed
from cqa.graphs.graph import Graph
from cqa.sampling.sample import Sample
from kopl_cli.cqa import compare as command
from tests.cqa.small_benchmark import run


def made(name: str, *types: list[float], mark: int = 1) -> Evaluation:
    """A run with these numbers of queries, type by type."""
    results = []
    for at, values in enumerate(types):
        each = {"mrr": np.array(values, np.float64)}
        part = Part(len(values), len(values), {"mrr": float(np.nanmean(values))}, each, None)
        group = (("anchors", 1), ("depth", 1 + at))
        results.append(TypeResult(f"t{at}", "(p,(e))", (), group, part, {}, mark))
    return Evaluation(name, "realistic", None, tuple(results))


def test_means_are_over_queries_then_types() -> None:
    one, other = made("a", [0.0, 1.0], [1.0]), made("b", [0.5, 1.0], [1.0])
    rows = compare([one, other])
    assert [dict(row.key)["type"] for row in rows] == ["t0", "t1", "all"]
    assert [row.figures[0].mean for row in rows] == [0.5, 1.0, 0.75]
    assert [row.differences[0].mean for row in rows] == [0.25, 0.0, 0.125]
    assert [row.queries for row in rows] == [2, 1, 3]
    grouped = compare([one, other], "group")
    assert grouped[1].key == (("anchors", 1), ("depth", 2))


@pytest.mark.parametrize("many", [comparison.MANY, 20])
def test_intervals_hold_the_mean_as_often_as_they_say(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "MANY", many)
    monkeypatch.setattr(comparison, "DRAWS", 300)
    monkeypatch.setattr(comparison, "TURNS", 300)
    random = np.random.default_rng(many)
    held = small = 0
    for seed in range(200):
        one = made("a", *random.random((2, 60)).tolist())
        # Of the same distribution: the test finds a difference one time in twenty.
        other = made("b", *random.random((2, 60)).tolist())
        row = compare([one, other], seed=seed)[-1]
        held += row.figures[0].low <= 0.5 <= row.figures[0].high
        small += row.differences[0].p <= 0.05
    assert 178 <= held <= 199
    assert 2 <= small <= 20


def test_a_difference_that_is_there_is_found() -> None:
    random = np.random.default_rng(0)
    values = random.random(400)
    one, other = made("a", values.tolist()), made("b", (values + 0.02).tolist())
    # Far less than the spread of the queries, but the same on each.
    row = compare([one, other])[0]
    assert row.figures[0].high > row.figures[1].low
    assert row.differences[0].p < 0.001 and row.differences[0].low > 0
    same = compare([one, one])[0].differences[0]
    assert (same.mean, same.p) == (0.0, 1.0)
    assert compare([one, other], seed=3) == compare([one, other], seed=3)


def test_queries_without_the_metric_do_not_count() -> None:
    nan = float("nan")
    one, other = made("a", [0.5, nan, 0.1]), made("b", [0.7, 0.9, nan])
    row = compare([one, other])[0]
    assert (row.figures[0].mean, row.figures[1].mean) == (0.3, pytest.approx(0.8))
    assert row.differences[0].mean == pytest.approx(0.2)


def test_other_queries_are_not_paired() -> None:
    one = made("a", [0.5, 0.1])
    for other in (made("b", [0.5, 0.1], mark=2), made("b", [0.5])):
        assert compare([one, other])[0].differences == (None,)
    table = comparison_table(compare([one, made("a", [0.1], mark=2)]), ["a", "a"], "mrr")
    assert table.headings == (
        "type", "queries", "MRR a", "95 %", "MRR a (2)", "95 %", "a (2) above a", "95 %", "p",
    )  # fmt: skip
    assert table.rows[0][-3:] == (None, "", "")


def test_what_cannot_be_compared() -> None:
    one = made("a", [0.5])
    bare = replace(one, types=(replace(one.types[0], all=Part(1, 1, {"mrr": 0.5})),))
    for runs, by, metric, message in (
        ([one], "type", "mrr", "two runs at least"),
        ([one, bare], "type", "mrr", "no figures of single queries; make it again"),
        ([one, one], "name", "mrr", "there is no table by 'name'"),
        ([one, one], "type", "best", "there is no metric 'best'"),
        ([one, one], "type", "hit@10", r"no run has the metric hit@10"),
        ([one, one], "hardness", "mrr", "no run tells what its answers reduce to"),
    ):
        with pytest.raises(QueryError, match=message):
            compare(runs, by, metric)


def test_the_command(
    graph: Graph, trees: list[Sample], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = Reductions(graph)
    for name, reasoner in (("chance", RandomReasoner(40)), ("known", observed(graph))):
        found = evaluate(reasoner, trees, 40, name=name, labels=labels)
        write_evaluation(tmp_path / name, found)
    files = str(tmp_path / "chance"), str(tmp_path / "known")
    assert run(command, *files, "--metric", "entailment", "--format", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] == ["chance", "known"]
    last = told["rows"][-1]
    assert last["figures"][1] == {"mean": 1.0, "low": 1.0, "high": 1.0}
    assert last["differences"][0]["p"] < 0.01
    assert run(command, *files, "--by", "hardness", "--name", "A", "--name", "B") == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].split()[:5] == ["type", "reduces", "to", "queries", "MRR"]
    assert any(line.split()[:2] == ["2p", "1p"] for line in out)
    with pytest.raises(Exception, match="1 names for 2 runs"):
        run(command, *files, "--name", "A")
