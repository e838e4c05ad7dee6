"""Balanced benchmarks on a small graph: counts, caps, what is in them, workers, resuming."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from cqa.answering.answer import answers
from cqa.balanced.benchmarks import ABOUT, QUERIES, TYPES, BenchmarkPlan, run
from cqa.formats.json_lines import read_lines
from cqa.graphs.files import save
from cqa.graphs.graph import Graph, from_triples
from cqa.hardness.hardness import Hardness, reducible
from cqa.sampling.graphs import meaningful
from cqa.sampling.options import SamplingError
from cqa.types.registry import by_name
from kopl_base.errors import KoplError, ReadError, WriteError
from kopl_cli.cqa import benchmark as command_benchmark
from tests.cqa.small_benchmark import small_world


def a_graph(entities: int = 300, relations: int = 12, triples: int = 2400) -> Graph:
    """A random graph; every fourth triple is missing."""
    random = Random(1)
    rows = sorted(
        {
            (random.randrange(entities), random.randrange(relations), random.randrange(entities))
            for _ in range(triples)
        }
    )
    random.shuffle(rows)
    fourth = len(rows) // 4
    parts = [np.array(some, np.int32).reshape(-1, 3) for some in (rows[fourth:], [], rows[:fourth])]
    return from_triples(parts, entity_count=entities, relation_count=relations)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return a_graph()


SMALL = ("2p", "3p", "1p2i", "2u1p", "2in1p", "2nu1p")
PLAN = BenchmarkPlan(SMALL, pairs=8, seed=3, share=0.6)


@pytest.fixture(scope="module")
def built(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "small"
    outcomes = run(PLAN, graph, folder)
    assert all(not outcome.short for outcome in outcomes.values())
    return folder


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """The objects of a benchmark."""
    return [json.loads(line) for line in (folder / QUERIES).read_text().splitlines()]


def test_every_category_is_full(built: Path) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for line in lines_of(built):
        counts[line["type"], line["reduces_to"]] += len(line["hard"])
    assert counts == {
        (name, category): 8
        for name, categories in {
            "2p": ["1p", "itself"], "3p": ["1p", "2p", "itself"],
            "1p2i": ["1p", "2i", "2p", "itself"], "2u1p": ["1p", "itself"],
            "2in1p": ["1p", "itself"], "2nu1p": ["itself"],
        }.items()
        for category in categories
    }  # fmt: skip
    about = json.loads((built / ABOUT).read_text())
    assert about["content"]["3p"]["pairs"] == {"1p": 8, "2p": 8, "itself": 8}
    assert not (built / "unfinished").exists()


def test_pairs_are_what_they_are_filed_under(built: Path, graph: Graph) -> None:
    samples = list(read_lines(built / QUERIES))
    labels = Hardness(graph).label([s.query for s in samples], [s.hard for s in samples])
    for number, (sample, line) in enumerate(zip(samples, lines_of(built), strict=True)):
        for kind in labels.of(number):
            assert kind is not None
            assert ("itself" if kind.full else kind.name) == line["reduces_to"]
        full = answers(sample.graph, graph.full())
        assert sample.full.tolist() == full.tolist()
        observed = answers(sample.graph, graph.observed())
        assert not np.isin(sample.hard, observed).any()
        assert meaningful(sample.graph, graph.full(), len(full))


def test_no_relation_or_anchor_too_often(graph: Graph, tmp_path: Path) -> None:
    run(BenchmarkPlan(("2p", "2i"), pairs=60, share=0.25), graph, tmp_path / "out")
    samples = list(read_lines(tmp_path / "out" / QUERIES))
    for name in ("2p", "2i"):
        own = [sample for sample in samples if sample.type == name]
        uses: Counter[tuple[str, int]] = Counter()
        for sample in own:
            for what, numbers in (("r", sample.relations), ("a", sample.anchors)):
                uses.update({(what, number): len(sample.hard) for number in numbers})
        assert max(uses.values()) <= 0.25 * sum(len(sample.hard) for sample in own)


def test_caps_hold_where_a_category_stays_short(tmp_path: Path) -> None:
    """Nothing of 2p is of full inference here: no two missing links follow one another."""
    train = [(n, r, n + 40) for n in range(40) for r in range(8)]
    test = [(n + 40, 8 + n % 8, n + 80) for n in range(40)]
    parts = [np.array(some, np.int32).reshape(-1, 3) for some in (train, [], test)]
    graph = from_triples(parts, entity_count=120, relation_count=16)
    found = run(BenchmarkPlan(("2p",), pairs=40, share=0.3), graph, tmp_path / "out")["2p"]
    assert found.short.keys() >= {"itself"} and found.pairs["1p"] > 0
    assert found.relation <= 0.3 and found.anchor <= 0.3


def test_caps_that_cannot_hold(tmp_path: Path) -> None:
    graph = a_graph(40, 2, 200)
    with pytest.raises(SamplingError, match="2p: no choice of queries keeps every relation"):
        run(BenchmarkPlan(("2p",), pairs=20, share=0.1), graph, tmp_path / "out")


def test_workers_make_no_difference(graph: Graph, built: Path, tmp_path: Path) -> None:
    run(PLAN, graph, tmp_path / "two", workers=2)
    assert (tmp_path / "two" / QUERIES).read_bytes() == (built / QUERIES).read_bytes()
    run(BenchmarkPlan(SMALL[:1], 8, seed=4, share=0.6), graph, tmp_path / "other")
    assert lines_of(tmp_path / "other") != [x for x in lines_of(built) if x["type"] == "2p"]


def test_resume(graph: Graph, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "out"
    from cqa.balanced.journal import Journal

    save_, calls = Journal.save, []

    def stop(self: Journal, *given: Any) -> None:
        save_(self, *given)
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "save", stop)
    with pytest.raises(KeyboardInterrupt):
        run(PLAN, graph, folder)
    monkeypatch.undo()
    assert not (folder / QUERIES).exists()
    with pytest.raises(WriteError, match="holds a stopped run; go on with --resume"):
        run(PLAN, graph, folder)
    with pytest.raises(ReadError, match=r"had another seed: 3, not 4; .* or remove .*unfinished$"):
        run(BenchmarkPlan(SMALL, 8, seed=4, share=0.6), graph, folder, resume=True)
    # A line that was cut off is made again.
    with (folder / "unfinished" / "2p.jsonl").open("a") as file:
        file.write('{"query": {"o"')
    run(PLAN, graph, folder, resume=True)
    assert (folder / QUERIES).read_bytes() == (built / QUERIES).read_bytes()
    with pytest.raises(WriteError, match="has a benchmark already"):
        run(PLAN, graph, folder, resume=True)


def test_damaged_journal(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cqa.balanced.benchmarks.capped", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(BenchmarkPlan(("2p",), 2, share=1), graph, tmp_path)
    path = tmp_path / "unfinished" / "2p.jsonl"
    path.write_text('{"query": 3}\n' + path.read_text())
    with pytest.raises(ReadError, match=r"2p.jsonl: line 1: no line of a stopped run"):
        run(BenchmarkPlan(("2p",), 2, share=1), graph, tmp_path, resume=True)
    settings = tmp_path / "unfinished" / "settings.json"
    for damaged in ("{", "[]", "null", "5"):
        settings.write_text(damaged)
        with pytest.raises(ReadError, match="not the settings of a run; remove"):
            run(BenchmarkPlan(("2p",), 2, share=1), graph, tmp_path, resume=True)
    # What is left of another run is not mixed with this one.
    settings.unlink()
    for resume in (False, True):
        with pytest.raises(WriteError, match=r"a stopped run without its settings\.json; remove"):
            run(BenchmarkPlan(("2p",), 2, seed=1, share=1), graph, tmp_path, resume=resume)


def test_query_graphs(graph: Graph, tmp_path: Path) -> None:
    """Two free variables, parallel edges and a negated edge."""
    kinds = ("(r1(s1,f1))&(r2(f1,f2))", "(r1(s1,f1))&((!(r2(f1,f2)))&(r3(f1,f2)))")
    found = run(BenchmarkPlan(kinds, pairs=6, share=1), graph, tmp_path / "out")
    assert found[kinds[0]].pairs == {"1p": 6, "itself": 6}
    samples = list(read_lines(tmp_path / "out" / QUERIES))
    assert {sample.hard.shape[1] for sample in samples} == {2}
    labels = Hardness(graph).label([s.query for s in samples], [s.hard for s in samples])
    for number, line in enumerate(lines_of(tmp_path / "out")):
        assert {k and ("itself" if k.full else k.name) for k in labels.of(number)} == {
            line["reduces_to"]
        }


def test_published_types() -> None:
    categories = {
        name: [kind.name for kind in reducible(by_name(name).tree)]  # type: ignore[union-attr]
        for name in TYPES
    }
    assert len(TYPES) == 16 and {"4p", "4i"} <= set(TYPES)
    for name in ("1p", "2in", "2nu1p"):
        assert categories[name] == [name]
    assert categories["4i"] == ["1p", "2i", "3i", "4i"]
    assert categories["2pi1pn"] == ["1p", "2pi1pn"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pairs": 0}, "are 1 or more"),
        ({"share": 0.0}, "a share lies above 0 and is at most 1, not 0.0"),
        ({"types": ("2p", "2p")}, "different ones"),
        ({"types": ("2q",)}, "no query type named '2q'"),
        ({"types": ("type0016",)}, "write efo1:type0016 or efok:type0016"),
        ({"types": ("efok:type9999",)}, "efok has no type 'type9999'"),
        ({"types": ("(n,(p,(e)))",)}, "no match of this type has a link that may be missing"),
        ({"types": ("2i",), "pairs": 1}, "2i: 20% of 2 pairs is less than one; ask for more pairs"),
        ({"split": "train"}, "no missing links for queries of 'train'"),
        ({"split": "late"}, "no missing links for queries of 'late'"),
    ],
)
def test_wrong_plans(graph: Graph, tmp_path: Path, change: dict[str, Any], message: str) -> None:
    settings: dict[str, Any] = {"types": ("2p",), "pairs": 2}
    with pytest.raises(KoplError, match=message):
        run(BenchmarkPlan(**(settings | change)), graph, tmp_path / "out")


def command(graph: Graph, folder: Path, benchmark: str, kind: str) -> int:
    """Save a graph and run the command on it."""
    save(graph, folder / "graph")
    parser = argparse.ArgumentParser()
    command_benchmark.add_arguments(parser)
    options = ["--types", kind, "--pairs", "4", "--share", "1", "--graph", str(folder / "graph")]
    return command_benchmark.run(
        parser.parse_args([benchmark, *options, "-o", str(folder / "out")])
    )


def test_command(graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(graph, tmp_path, "fb15k237+", "2p") == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == ["2p\t1p\t4\t4", "2p\titself\t4\t4"]
    assert "the published one has 272,115 / 17,526 / 20,438" in printed.err


def test_a_saved_graph_has_its_split_already(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(small_world(), tmp_path, "icews18+", "1p") == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == ["1p\titself\t4\t4"]
    assert "the published one has 213,304 / 25,048 / 24,689" in printed.err


def test_icews18_is_split_by_time(kopl_data: Path, tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    command_benchmark.add_arguments(parser)
    given = parser.parse_args(
        ["icews18+", "--graph", str(kopl_data / "icews18"), "-o", str(tmp_path / "out"),
         "--types", "2p", "2i", "--pairs", "20", "--share", "0.5"]
    )  # fmt: skip
    assert command_benchmark.run(given) == 0
    about = json.loads((tmp_path / "out" / ABOUT).read_text())
    assert "'train': 213304" in about["graph"]
