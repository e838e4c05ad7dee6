"""The command ask: ranked answers, known and predicted, with what supports each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cqa.graphs.files import save
from cqa.graphs.from_kb import graph_from_kb
from cqa.graphs.graph import Graph
from kb import Builder, write_lines
from kopl_base.errors import KoplError
from kopl_cli.cqa import ask as command
from tests.cqa.small_benchmark import run

MODULE = """
from cqa.models.links.predictor import FrequentTails
from cqa.models.search.reasoners import Qto, QtoOptions

def search(graph, split):
    return Qto(QtoOptions(), graph, FrequentTails(graph.view("train")))
"""


@pytest.fixture
def lands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Lands with neighbours and a money, some links of each relation missing."""
    builder = Builder()
    builder.add_concept("c", "land")
    names = [f"{letter}land" for letter in "ABCDEFGH"]
    for number, name in enumerate(names):
        builder.add_entity(f"l{number}", name, ["c"])
    builder.add_concept("m", "money")
    builder.add_entity("m0", "Crown", ["m"])
    for number in range(8):
        builder.add_fact(f"l{number}", "borders", f"l{(number + 1) % 8}")
        builder.add_fact(f"l{number}", "currency", "m0")
    kb_file, folder = tmp_path / "kb.jsonl", tmp_path / "graph"
    kb = builder.build()
    write_lines(kb, kb_file)
    save(graph_from_kb(kb, shares=(3, 0, 1), seed=1), folder)
    (tmp_path / "asked_module.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return kb_file, folder


def test_answers_are_ranked_with_their_support(
    lands: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    kb_file, folder = lands
    query = "exists x. borders(l0,x) & currency(x,?y)"
    given = ("--graph", str(folder), query, "--kb", str(kb_file), "--reasoner")
    pictures = ("--mermaid", "chart", "--svg", "chart.svg")
    assert run(command, *given, "asked_module:search", "--limit", "2", *pictures) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].split() == ["?y", "score"]
    assert out[1].split()[:2] == ["1", "Crown"] and out[1].split()[-1] in ("known", "predicted")
    # The bindings of both variables, then a line for each link.
    assert out[2].strip().startswith("y = Crown, x = ") and "land" in out[2]
    assert [line.split()[0] for line in out[3:5]] in (
        [one, other] for one in ("known", "predicted") for other in ("known", "predicted")
    )
    assert "Aland borders" in out[3]
    assert sum(line.split()[0] == "2" for line in out) == 1
    assert Path("chart").read_text().startswith("flowchart LR\n")
    drawn = Path("chart.svg").read_text()
    assert drawn.startswith("<svg ") and "Crown (y)" in drawn and "borders" in drawn
    assert run(command, *given, "asked_module:search", "--json", "--no-support") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["free"] == ["y"] and len(told["answers"]) == 10
    assert told["answers"][0]["names"] == ["Crown"] and "links" not in told["answers"][0]
    scores = [one["score"] for one in told["answers"]]
    assert scores == sorted(scores, reverse=True)


def test_known_answers_may_be_left_out(
    lands: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = lands[1]
    given = ("--graph", str(folder), "currency(?y,m0)", "--reasoner", "exact", "--json")
    assert run(command, *given) == 0
    every = json.loads(capsys.readouterr().out)["answers"]
    known = [one["names"] for one in every if one["kind"] == "known"]
    assert 0 < len(known) < 8 == sum(one["score"] == 1 for one in every)
    assert run(command, *given, "--new", "--limit", str(8 - len(known))) == 0
    fresh = json.loads(capsys.readouterr().out)["answers"]
    assert all(one["kind"] == "predicted" and one["score"] == 1 for one in fresh)
    for form in ("mermaid", "svg"):
        with pytest.raises(KoplError, match=f"--{form}: the reasoner exact tells of no support"):
            run(command, *given, f"--{form}", "chart")


def test_tuples_are_ranked(lands: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    query = "borders(l0,?x) & currency(?x,?y)"
    given = ("--graph", str(lands[1]), query, "--limit", "3", "--json", "--reasoner")
    assert run(command, *given, "asked_module:search") == 0
    told = json.loads(capsys.readouterr().out)
    assert [len(one["entities"]) for one in told["answers"]] == [2, 2, 2]
    assert set(told["answers"][0]["bindings"]) == {"x", "y"}
    # Chance scores no tuples: those of the best entities come first.
    assert run(command, *given, "random") == 0
    ranked = json.loads(capsys.readouterr().out)["answers"]
    assert len({tuple(one["entities"]) for one in ranked}) == 3
    with pytest.raises(KoplError, match="the query has no free variable to rank"):
        run(command, "--graph", str(lands[1]), "currency(l0,m0)", "--reasoner", "random")


def test_the_graph_of_the_fixture_lacks_links(lands: tuple[Path, Path]) -> None:
    from cqa.graphs.readers import read_graph

    graph: Graph = read_graph(lands[1])
    assert graph.counts["test"] > 0
