"""Tables of evaluations, by type, by group and by hardness."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pytest

from cqa.errors import QueryError
from cqa.evaluation.evaluation import (
    evaluate,
)
from cqa.evaluation.judging import Reductions
from cqa.evaluation.published import PUBLISHED
from cqa.evaluation.reasoner import RandomReasoner, exact
from cqa.evaluation.tables import METRICS, Table, tabulate, title, write
from cqa.graphs.graph import Graph
from cqa.query import Query
from cqa.sampling.sample import Sample
from cqa.types.registry import types
from cqa.types.tree import Tree
from tests.cqa.small_benchmark import (
    Fixed,
    answer_rows,
    sample,
)


def cells(table: Table, **key: object) -> dict[str, object]:
    """The row of a table with these values."""
    rows = [dict(zip(table.headings, row, strict=True)) for row in table.rows]
    (found,) = [row for row in rows if all(row[name] == value for name, value in key.items())]
    return found


def test_the_group_table_has_the_published_counts() -> None:
    # One query of each type, never really asked.
    made = []
    for row in types("efok", space="paper"):
        width = len(row.query.free)  # type: ignore[union-attr]
        answers = answer_rows([[0] * width], width)
        none = answer_rows([], width)
        made.append(Sample(row.id, row.formula, row.query, none, answers, none))  # type: ignore[union-attr]
    table = tabulate([evaluate(_Zero(), made, 3)])
    count = {
        (row[0], row[1], row[2], row[3]): dict(zip(table.headings, row, strict=True))["types"]
        for row in table.rows
    }
    assert count[1, 2, 2, "multi"] == 40 and count[2, 2, 1, "cyclic"] == 8
    assert count[1, "all", 1, "SDAG"] == 2 + 6 + 8
    assert count[2, 2, "all", "all"] == 282 and count[1, "all", "all", "all"] == 251
    assert count["all", "all", "all", "all"] == 741


class _Zero:
    def scores(self, query: Query | Tree) -> Any:
        """Nothing is better than anything else."""
        return np.zeros((1 if isinstance(query, Tree) else len(query.free), 3))


def test_tables_by_group_of_operator_trees(graph: Graph, trees: list[Sample]) -> None:
    found = evaluate(RandomReasoner(40), trees, 40)
    table = tabulate([found], published="efo1-qa")
    assert table.headings[:5] == ("anchors", "depth", "types", "queries", "answers")
    row = cells(table, anchors=2, depth=1)
    own = [r.all for r in found.types if r.type in ("2i", "2in", "2u")]
    assert row["types"] == 3 and row["queries"] == 18
    assert row["MRR"] == pytest.approx(100 * sum(part.metrics["mrr"] for part in own) / 3)
    assert row["MRR LogicE DNF+IU (published)"] == 15.86
    everything = cells(table, anchors="all")
    assert everything["MRR"] == pytest.approx(100 * found.metrics["mrr"])
    assert everything["MRR BetaE DM (published)"] == 8.48


def test_tables_by_type_beside_published_results(trees: list[Sample]) -> None:
    found = evaluate(RandomReasoner(40), trees, 40)
    table = tabulate([found], "type", metrics=["mrr"], published="fb15k-237+")
    assert cells(table, type="pi")["MRR QTO (published)"] == 6.1  # 1p2i there
    assert cells(table, type="pi")["names"] == "1p2i"
    assert cells(table, type="2in")["MRR QTO (published)"] is None
    assert cells(table, type="all")["queries"] == len(trees)


def test_several_runs_stand_side_by_side(graph: Graph, trees: list[Sample]) -> None:
    one = evaluate(exact(graph), trees, 40, name="exact")
    other = evaluate(RandomReasoner(40), [s for s in trees if s.type != "1p"], 40, name="chance")
    table = tabulate([one, other, other], "type")
    row = cells(table, type="1p")
    assert row["MRR exact"] == 100.0 and row["MRR chance"] is None
    mine = next(r.all.metrics["mrr"] for r in other.types if r.type == "2p")
    assert cells(table, type="2p")["MRR chance"] == pytest.approx(100 * mine)
    assert "MRR chance (2)" in table.headings and "HIT@3 exact" not in table.headings


def test_the_table_by_hardness(graph: Graph, trees: list[Sample]) -> None:
    found = evaluate(RandomReasoner(40), trees, 40, labels=Reductions(graph))
    table = tabulate([found], "hardness")
    row = cells(table, **{"type": "2p", "reduces to": "1p"})
    part = next(r.reduced["1p"] for r in found.types if r.type == "2p")
    assert row["answers"] == part.answers
    assert row["MRR"] == pytest.approx(100 * part.metrics["mrr"])
    every = [r.reduced["1p"].metrics["mrr"] for r in found.types if "1p" in r.reduced]
    mean_row = cells(table, **{"type": "all", "reduces to": "1p"})
    assert mean_row["MRR"] == pytest.approx(100 * sum(every) / len(every))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "anchor"}, "no table by 'anchor'; choose of type, group, hardness"),
        ({"by": "hardness"}, "the evaluation was made without hardness"),
        ({"metrics": ["mr"]}, "there is no metric 'mr'; choose of mrr, "),
        ({"published": "efo2"}, "there are no published results 'efo2'"),
        ({"published": "nell995+"}, "results nell995. are by type, not by group"),
    ],
)
def test_tables_that_there_are_not(options: Any, message: str) -> None:
    found = evaluate(Fixed(1, 0), [sample("a", "0(1,f1)", [], [0])], 2)
    with pytest.raises(QueryError, match=message):
        tabulate([found], **options)


def test_a_metric_that_no_query_has_is_an_empty_column() -> None:
    found = evaluate(Fixed(1, 0), [sample("a", "0(1,f1)", [], [0])], 2)
    table = tabulate([found], "type", metrics=["joint_mrr", "mrr"])
    assert table.headings[-2:] == ("joint MRR", "MRR")
    assert cells(table, type="a")["joint MRR"] is None and cells(table, type="a")["MRR"] == 100.0


def test_a_table_as_text_csv_and_markdown() -> None:
    table = Table(("type", "queries", "MRR"), (("2|u", 3, 12.34567), ("all", 10, None)))
    assert write(table) == "type  queries    MRR\n2|u         3  12.35\nall        10\n"
    assert list(csv.reader(io.StringIO(write(table, "csv")))) == [
        ["type", "queries", "MRR"],
        ["2|u", "3", "12.3457"],
        ["all", "10", ""],
    ]
    assert write(table, "markdown") == (
        "| type | queries |   MRR |\n"
        "| ---- | ------: | ----: |\n"
        "| 2\\|u |       3 | 12.35 |\n"
        "| all  |      10 |       |\n"
    )
    with pytest.raises(QueryError, match="no format 'html' of tables"):
        write(table, "html")


def test_metrics_have_titles() -> None:
    titles = [title(metric) for metric in METRICS]
    assert titles[:5] == ["MRR", "HIT@1", "HIT@3", "HIT@10", "RA-Oracle"]
    assert "joint HIT@10" in titles and titles[-1] == "entailment"


def test_published_results_are_of_rows_that_tables_have() -> None:
    for columns in PUBLISHED.values():
        for column in columns:
            assert column.metric in METRICS and column.values
    fit = [column for column in PUBLISHED["efok-cqa"] if column.title == "FIT"]
    assert [value for column in fit for value in column.values.values()] == [
        65.8, 54.7, 51.5, 44.9, 43.7, 57.5, 47.0, 54.3, 29.2, 6.4,
    ]  # fmt: skip
