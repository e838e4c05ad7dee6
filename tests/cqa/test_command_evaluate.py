"""The command evaluate, from files to reports."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from cqa import vocabularies
from cqa.balanced.benchmarks import BENCHMARKS
from cqa.evaluation.files import read_evaluation
from cqa.evaluation.published import PUBLISHED
from cqa.formats import samples
from cqa.formats.samples import write_samples
from cqa.graphs import readers
from cqa.graphs.graph import Graph
from cqa.hardness import report as hardness_report
from cqa.sampling.sample import Sample
from cqa.types.betae import BETAE
from kb.load import bundled
from kopl_base.errors import KoplError
from kopl_cli.cqa import evaluate as command_evaluate
from tests.cqa.small_benchmark import run


@pytest.fixture(scope="module")
def folder(graph: Graph, trees: list[Sample], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The graph in BetaE's files, and the queries as JSON lines and as pickles."""
    folder = tmp_path_factory.mktemp("graph")
    for split in graph.splits:
        both = []
        for head, relation, tail in graph.triples(split).tolist():
            both += [f"{head}\t{relation}\t{tail}", f"{tail}\t{relation + 1}\t{head}"]
        (folder / f"{split}.txt").write_text("\n".join(both) + "\n")
    # With names all entities are there, even those that no link has.
    entities = {str(n): f"node{n}" for n in range(40)}
    relations = {str(n): f"{'+-'[n % 2]}link{n // 2}" for n in range(8)}
    (folder / "id2ent.json").write_text(json.dumps(entities))
    (folder / "id2rel.json").write_text(json.dumps(relations))
    write_samples(folder / "queries.jsonl", trees)
    write_samples(folder / "betae", trees, "betae")
    return folder


def test_evaluate_from_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--graph", str(folder), str(folder / "queries.jsonl"))
    report = folder / "exact.json"
    assert (
        run(command_evaluate, *given, "--reasoner", "exact", "--format", "json", "-o", str(report))
        == 0
    )
    assert read_evaluation(report).metrics["mrr"] == 1.0
    assert run(command_evaluate, *given, "--reasoner", "random", "--by", "type", "--format", "csv",
               "--compare", str(report), "--metric", "mrr") == 0  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["type"] for row in rows] == [*BETAE, "all"]
    assert {row["MRR exact"] for row in rows} == {"100.0000"}
    assert all(0 < float(row["MRR random"]) < 100 for row in rows)


def test_evaluate_reads_other_formats_and_tells_of_different_runs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--graph", str(folder), "--reasoner", "observed")
    assert run(command_evaluate, *given, str(folder / "betae"), "--ties", "pessimistic", "--most",
               "2", "--format", "json", "-o", str(folder / "few.json")) == 0  # fmt: skip
    assert read_evaluation(folder / "few.json").queries == 28
    assert run(command_evaluate, *given, str(folder / "betae"), "--by", "hardness", "--format",
               "markdown") == 0  # fmt: skip
    assert capsys.readouterr().out.startswith("| type | reduces to |")
    run(
        command_evaluate,
        *given,
        str(folder / "queries.jsonl"),
        "--compare",
        str(folder / "few.json"),
    )
    told = capsys.readouterr()
    assert "observed was evaluated with ties pessimistic, not realistic" in told.err
    assert "observed was evaluated with queries 28, not 84" in told.err
    assert "MRR observed (2)" in told.out.splitlines()[0]


def test_evaluate_with_a_reasoner_of_a_module(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "my_reasoners.py").write_text(
        "from cqa.evaluation.reasoner import SetOperators\n"
        "def full(graph, split): return SetOperators(graph.full(split))\n"
        "class Inner:\n"
        "    class Best:\n"
        "        def __init__(self, graph, split): self.size = graph.entity_count\n"
        "        def scores(self, query): return range(self.size)\n"
        "    class Worst(Best):\n"
        "        def scores(self, query): return 1 / 0\n"
    )
    (tmp_path / "my_broken.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    given = ("--graph", str(folder), str(folder / "queries.jsonl"), "--metric", "mrr")
    assert run(command_evaluate, *given, "--reasoner", "my_reasoners:full") == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[-1] == "100.00"
    assert run(command_evaluate, *given, "--reasoner", "my_reasoners:Inner.Best") == 0
    for name, message in (
        ("my_missing:x", "the module 'my_missing' cannot be imported .ModuleNotFoundError"),
        ("my_broken:x", "the module 'my_broken' cannot be imported .ZeroDivisionError"),
        (
            "my_reasoners:Inner.Worst",
            r"--reasoner my_reasoners:Inner.Worst: ZeroDivisionError: division by zero"
            r" \(scores in .*my_reasoners.py, line 8\)",
        ),
        ("my_reasoners:none", "there is no 'none' in the module 'my_reasoners'"),
        (
            "my_reasoners",
            "there is no reasoner 'my_reasoners'; give exact, observed, random, the folder",
        ),
    ):
        with pytest.raises(KoplError, match=message):
            run(command_evaluate, *given, "--reasoner", name)


def test_random_takes_any_seed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for seed in ("-1", "1", "-2", "-1"):
        given = ("--graph", str(folder), str(folder / "queries.jsonl"), "--metric", "mrr")
        assert run(command_evaluate, *given, "--reasoner", "random", "--seed", seed) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[3]
    assert len(set(shown)) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--split", "dev"], "--split: the graph has no split 'dev'; it has train, valid, test"),
        (["--format", "json", "--compare", "a.json"], "take it without --compare"),
        (["--compare", "a.json"], "a.json: cannot be read"),
        (["--published", "fb15k-237"], "are by type, not by group"),
        (["--metric", "mr"], "there is no metric 'mr'; choose of mrr"),
        (["-o", "."], "cannot be written: it is no ordinary file"),
    ],
)
def test_evaluate_refuses(folder: Path, arguments: list[str], message: str) -> None:
    given = ("--graph", str(folder), str(folder / "queries.jsonl"), "--reasoner", "exact")
    with pytest.raises(KoplError, match=message):
        run(command_evaluate, *given, *arguments)


def test_what_cannot_be_reported_is_refused_before_the_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("the work began")

    monkeypatch.setattr("cqa.evaluation.reasoner.GraphReasoner.scores", never)
    given = ("--graph", str(folder), str(folder / "queries.jsonl"), "--reasoner", "exact")
    for arguments in (["--metric", "mr"], ["-o", str(folder)], ["--published", "fb15k-237"]):
        with pytest.raises(KoplError):
            run(command_evaluate, *given, *arguments)
    with pytest.raises(AssertionError, match="the work began"):
        run(command_evaluate, *given)


def test_queries_of_another_graph_are_told(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "small.tsv").write_text("a\tr\tb\n")
    with pytest.raises(KoplError, match=r"query 1 \(1p\): "):
        run(command_evaluate, "--graph", str(tmp_path / "small.tsv"), "--split", "train",
            str(folder / "queries.jsonl"), "--reasoner", "exact")  # fmt: skip


def test_every_word_of_an_option_stands_for_something() -> None:
    assert tuple(PUBLISHED) == vocabularies.PUBLISHED_RESULTS
    assert tuple(hardness_report.PUBLISHED) == vocabularies.PUBLISHED_SHARES
    assert tuple(readers.FORMATS) == vocabularies.GRAPH_FORMATS
    assert tuple(samples.WRITERS) == vocabularies.SAMPLE_FORMATS
    assert tuple(samples.READERS) == vocabularies.INPUT_FORMATS
    assert set(vocabularies.GRAPH_FAMILIES) < set(vocabularies.FAMILIES)
    assert (*BENCHMARKS, "own") == vocabularies.BALANCED


def test_evaluate_on_a_knowledge_base_without_queries(capsys: pytest.CaptureFixture[str]) -> None:
    if bundled("world") is None:
        pytest.skip("the bundled knowledge base is not built")
    given = ("--kb", "world", "--reasoner", "random", "--most", "2", "--by", "type")
    assert run(command_evaluate, *given, "--metric", "mrr") == 0
    told = capsys.readouterr()
    assert "no FILE is given: 2 queries of each of BetaE's types" in told.err
    assert [line.split()[0] for line in told.out.splitlines()] == ["type", *BETAE, "all"]


def test_settings_of_what_has_none(folder: Path) -> None:
    given = ("--graph", str(folder), str(folder / "queries.jsonl"), "--reasoner", "exact")
    with pytest.raises(KoplError, match="--reasoner exact has no settings"):
        run(command_evaluate, *given, "--search", "qto")
