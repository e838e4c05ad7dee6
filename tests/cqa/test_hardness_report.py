"""Reports of hardness: shares, tables, CSV, pictures, and the command."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pytest

from cqa.formats.json_lines import write_lines
from cqa.graphs.files import save
from cqa.graphs.graph import Graph, from_triples
from cqa.hardness.hardness import Hardness
from cqa.hardness.report import Report, report, table
from cqa.sampling.sample import Sample
from cqa.types.tree import Tree, arrange, project
from kopl_base.errors import KoplError
from kopl_cli.cqa import hardness as command_hardness


def rows(*triples: tuple[int, int, int]) -> np.ndarray[tuple[int, int], np.dtype[np.int32]]:
    """Triples as an array."""
    return np.array(triples, np.int32).reshape(-1, 3)


@pytest.fixture
def graph() -> Graph:
    """0 reaches 1 and 2 by relation 0; 1 reaches 3 to 6 and 2 reaches 7 by relation 1."""
    train = rows((0, 0, 1), (1, 1, 3))
    test = rows((0, 0, 2), (1, 1, 4), (1, 1, 5), (1, 1, 6), (2, 1, 7))
    return from_triples([train, rows(), test], entity_count=8, relation_count=2)


@pytest.fixture
def samples() -> list[Sample]:
    """1p with one hard answer; 2p with three that reduce to 1p and one of full inference; 2u."""
    one = project(Tree("e", entity=0), 0)
    other = project(Tree("e", entity=1), 2)
    none = np.empty((0, 1), np.int32)

    def sample(name: str, query: Tree, easy: list[int], hard: list[int]) -> Sample:
        answers = [np.array(some, np.int32).reshape(-1, 1) for some in (easy, hard)]
        return Sample(name, query.formula, query, answers[0], answers[1], none)

    return [
        sample("1p", one, [1], [2]),
        sample("2p", project(one, 2), [3], [4, 5, 6, 7]),
        sample("2u", arrange(Tree("u", (one, other))), [1, 3], [2, 4, 5, 6]),
    ]


def test_counts_and_shares(graph: Graph, samples: list[Sample]) -> None:
    found = report(samples, Hardness(graph))
    assert found.types == ["1p", "2p", "2u"]
    assert found.columns == ["1p", "itself"]
    assert (found.pairs("2p"), found.share("2p", "1p"), found.share("2p", "itself")) == (4, 75, 25)
    assert table(found) == (
        ["type", "pairs", "1p", "itself"],
        [["1p", "1", "", "100.0"], ["2p", "4", "75.0", "25.0"], ["2u", "4", "", "100.0"]],
    )


def test_easy_answers_are_trivial(graph: Graph, samples: list[Sample]) -> None:
    found = report(samples[:2], Hardness(graph), easy=True)
    assert found.columns == ["trivial", "1p", "itself"]
    assert found.share("2p", "trivial") == 20


def test_what_is_no_answer_is_told_apart(graph: Graph, samples: list[Sample]) -> None:
    found = report(samples[2:], Hardness(graph, compat="paper"))
    assert found.pairs("2u") == 0 and found.share("2u", "no answer") == 100


def test_published_shares_stand_below(graph: Graph, samples: list[Sample]) -> None:
    found = report(samples, Hardness(graph), published="nell995")
    headings, lines = table(found)
    assert headings == ["type", "pairs", "1p", "itself"]
    assert ["", "published", "97.6", "2.4"] in lines
    with pytest.raises(KoplError, match="no published table of 'wn18'; there are fb15k-237, nell"):
        Report("wn18")


def test_many_columns_become_rows(
    graph: Graph, samples: list[Sample], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cqa.hardness.report.WIDEST", 1)
    headings, lines = table(report(samples, Hardness(graph), published="fb15k-237"))
    assert headings == ["type", "reduces to", "pairs", "%", "published"]
    assert lines[:3] == [
        ["1p", "itself", "1", "100.0", ""],
        ["2p", "1p", "3", "75.0", "98.1"],
        ["2p", "itself", "1", "25.0", "1.9"],
    ]


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def files(graph: Graph, samples: list[Sample], tmp_path: Path) -> tuple[str, str]:
    """A folder with the graph, and a file with the queries."""
    save(graph, tmp_path / "graph")
    write_lines(tmp_path / "queries.jsonl", samples)
    return str(tmp_path / "graph"), str(tmp_path / "queries.jsonl")


def run(files: tuple[str, str], *options: str) -> int:
    """Run the command on both."""
    parser = argparse.ArgumentParser()
    command_hardness.add_arguments(parser)
    return command_hardness.run(parser.parse_args([files[1], "--graph", files[0], *options]))


def test_text_on_standard_output(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(files) == 0
    assert capsys.readouterr().out.splitlines() == [
        "type\tpairs\t1p\titself",
        "1p\t1\t\t100.0",
        "2p\t4\t75.0\t25.0",
        "2u\t4\t\t100.0",
    ]


def test_csv(files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        "type,reduces_to,pairs,percent,published",
        "1p,itself,1,100.000,",
        "2p,1p,3,75.000,97.6",
        "2p,itself,1,25.000,2.4",
        "2u,itself,4,100.000,",
    ]
    assert run(files, "--report", "csv", "--published", "nell995") == 0
    assert capsys.readouterr().out.splitlines() == lines
    target = tmp_path / "out.csv"
    assert run(files, "--report", "csv", "--published", "nell995", "-o", str(target)) == 0
    assert target.read_text().splitlines() == lines


def test_png(files: tuple[str, str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    first, second = tmp_path / "one.png", tmp_path / "two.png"
    for target in (first, second):
        assert run(files, "--report", "png", "-o", str(target)) == 0
    assert first.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert first.read_bytes() == second.read_bytes()


def test_labels(files: tuple[str, str], tmp_path: Path) -> None:
    target = tmp_path / "labels.jsonl"
    assert run(files, "--labels", str(target), "--easy", "-o", str(tmp_path / "report")) == 0
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert [line["type"] for line in lines] == ["1p", "2p", "2u"]
    assert lines[1]["reduces_to"] == {"trivial": [3], "1p": [4, 5, 6], "2p": [7]}


@pytest.mark.parametrize(
    ("options", "text", "message"),
    [
        (["--report", "png"], None, "--report png needs a file"),
        ([], "", "holds no queries of test"),
        ([], "{}\n", "line 1.*the field 'type' is missing"),
        (["--split", "late"], None, "no split 'late'; it has train, valid, test"),
        ([], '{"type": "1p", "formula": "(p,(e))", "query": {"o": "p", "a": [[9],'
             ' {"o": "e", "a": [0]}]}, "easy": [], "hard": [1]}\n', "there is no relation 9"),
    ],
)  # fmt: skip
def test_wrong_input(
    files: tuple[str, str], options: list[str], text: str | None, message: str
) -> None:
    if text is not None:
        Path(files[1]).write_text(text)
    with pytest.raises(KoplError, match=message):
        run(files, *options)
