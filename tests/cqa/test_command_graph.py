"""``kopl cqa graph``: graphs of knowledge bases and in other forms, saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cqa.graphs.from_kb import INSTANCE_OF
from cqa.graphs.readers import read_graph
from kb import Builder, write_lines
from kopl_base.errors import ReadError
from kopl_cli import main


@pytest.fixture
def kb_file(tmp_path: Path) -> Path:
    builder = Builder()
    builder.add_concept("c", "city")
    for n in range(20):
        builder.add_entity(f"e{n}", f"City {n}", ["c"])
    for n in range(20):
        builder.add_fact(f"e{n}", "near", f"e{(n + 1) % 20}")
        builder.add_fact(f"e{n}", "far from", f"e{(n + 7) % 20}")
    path = tmp_path / "kb.jsonl"
    write_lines(builder.build(), path)
    return path


def test_a_knowledge_base_becomes_a_graph(kb_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "graph"
    shares = ["--shares", "6,2,2", "--seed", "3"]
    assert main(["cqa", "graph", "--kb", str(kb_file), "-o", str(out), *shares]) == 0
    graph = read_graph(out)
    assert sum(graph.counts.values()) == 60  # 40 facts, 20 instances
    assert graph.counts["valid"] > 0
    assert graph.counts["test"] > 0
    assert graph.relation_name(2) == INSTANCE_OF


def test_concepts_are_left_out_when_asked(kb_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "graph"
    assert main(["cqa", "graph", "--kb", str(kb_file), "-o", str(out), "--no-concepts"]) == 0
    assert sum(read_graph(out).counts.values()) == 40


def test_a_graph_in_another_form_is_saved(tmp_path: Path) -> None:
    source, out = tmp_path / "facts.tsv", tmp_path / "graph"
    source.write_text("a\tr\tb\nb\tr\tc\n", "utf-8")
    assert main(["cqa", "graph", "--graph", str(source), "-o", str(out)]) == 0
    assert read_graph(out).entity_count == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--graph", "nowhere"], "no such file"),
        (["--kb", "world", "--shares", "1,0"], "three numbers"),
        (["--kb", "world", "--graph", "x"], "not allowed with"),
        (["--graph", "x", "--shares", "9,0,1"], "--shares is for --kb"),
        (["--graph", "x", "--by", "time", "--seed", "1"], "--by is for --kb"),
        (["--kb", "world", "--format", "tsv"], "--format is for --graph"),
    ],
)
def test_what_is_refused(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(["cqa", "graph", *options, "-o", str(tmp_path / "x")])
    except SystemExit as stop:
        status = int(stop.code or 0)
    assert status == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("action", [["sample", "--types", "1p", "-n", "1"], ["benchmark", "own"]])
def test_far_more_workers_than_cores_are_refused(
    action: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["cqa", *action, "--graph", "x", "-o", str(tmp_path / "x"), "--workers", "100000"])
    assert "gain nothing" in capsys.readouterr().err


def test_arrays_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    path = tmp_path / "objects.npz"
    np.savez(path, train=np.array([["a", "b", None]], dtype=object))
    with pytest.raises(ReadError, match="the array train cannot be read: Object arrays"):
        read_graph(path)
    path = tmp_path / "damaged.npz"
    np.savez(path, train=np.zeros((50, 3), np.int64))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ReadError, match="the array train cannot be read: Bad CRC-32"):
        read_graph(path)
