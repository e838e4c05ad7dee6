"""Runs of the sampler: the same bytes whoever makes them, stops and goings on, the command."""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from cqa.formats.samples import read_samples
from cqa.graphs import files as graph_files
from cqa.graphs.graph import Graph, from_triples
from cqa.graphs.inductive import inductive
from cqa.sampling.kinds import kinds
from cqa.sampling.makers import QueryMaker
from cqa.sampling.most import most_queries
from cqa.sampling.options import Options, SamplingError
from cqa.sampling.run import Plan, run, stream
from cqa.sampling.sample import Kind
from cqa.types.tree import read_formula
from kopl_base.errors import KoplError, ReadError, WriteError
from kopl_base.processes import Processes
from kopl_cli.cqa import sample as command_sample
from tests.cqa.brute import Brute
from tests.cqa.small_graph import ENTITIES, full, observed, parts, small_graph

TYPES = ("1p", "2in", "pni", "(r1(s1,f1))&((r2(f1,f2))&(!(r3(s2,f2))))")


def plan_of(count: int = 70, seed: int = 0, **options: object) -> Plan:
    return Plan(tuple(kinds(TYPES)), count, seed, options=Options(most=50, **options))  # type: ignore[arg-type]


class StoppedError(Exception):
    """What stops a run in a test."""


def stop_after(monkeypatch: pytest.MonkeyPatch, blocks: int) -> None:
    """Let the worker fail after so many blocks."""
    left, block = [blocks], QueryMaker.block

    def made(self: QueryMaker, *given: object) -> object:
        if not left[0]:
            raise StoppedError
        left[0] -= 1
        return block(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(QueryMaker, "block", made)


def test_the_same_bytes_for_one_and_two_workers(tmp_path: Path) -> None:
    graph, plan = small_graph(), plan_of(relation_share=0.8, anchor_share=0.4)
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    report = run(plan, graph, one)
    assert run(plan, graph, two, workers=2).kept == report.kept
    assert one.read_bytes() == two.read_bytes()
    assert list(read_samples(one)) == list(stream(plan, graph))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.jsonl", "two.jsonl"]
    run(plan_of(seed=1), graph, two)
    assert one.read_bytes() != two.read_bytes()


@pytest.mark.parametrize("blocks", [0, 1, 2, 3, 5])
def test_a_stopped_run_goes_on(
    blocks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, plan = small_graph(), plan_of(anchor_share=0.4)
    whole, file = tmp_path / "whole.jsonl", tmp_path / "file.jsonl"
    run(plan, graph, whole)
    with monkeypatch.context() as patched:
        stop_after(patched, blocks)
        with pytest.raises(StoppedError):
            run(plan, graph, file)
    assert not file.exists()
    if blocks:
        with pytest.raises(WriteError, match="a stopped run is there; --resume goes on"):
            run(plan, graph, file)
        # What was written after the state was saved is written anew.
        with open(tmp_path / "file.jsonl.part", "a") as part:
            part.write("abc\t{")
    run(plan, graph, file, resume=True)
    assert file.read_bytes() == whole.read_bytes()
    assert not list(tmp_path.glob("*.part*"))


def test_a_stopped_run_of_another_plan_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, file = small_graph(), tmp_path / "file.jsonl"
    with monkeypatch.context() as patched:
        stop_after(patched, 1)
        with pytest.raises(StoppedError):
            run(plan_of(), graph, file)
    other = from_triples([np.array(part, np.int32) for part in parts()[::-1]])
    for plan, given, message in (
        (plan_of(seed=2), graph, "another seed: 0, not 2"),
        (plan_of(count=71), graph, "another number of queries: 70, not 71"),
        (plan_of(relations="links"), graph, "another relations: 'uniform', not 'links'"),
        (plan_of(), other, "another graph"),
        (Plan(tuple(kinds(["2p"])), 70, options=Options(most=50)), graph, "another list of types"),
    ):
        with pytest.raises(ReadError, match=message):
            run(plan, given, file, resume=True)
    state = tmp_path / "file.jsonl.part.json"
    state.write_text("{")
    with pytest.raises(ReadError, match="not the state of a run"):
        run(plan_of(), graph, file, resume=True)


def test_a_damaged_part_is_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, file = small_graph(), tmp_path / "file.jsonl"
    with monkeypatch.context() as patched:
        stop_after(patched, 1)
        with pytest.raises(StoppedError):
            run(plan_of(), graph, file)
    part = tmp_path / "file.jsonl.part"
    text = part.read_bytes()
    longer = text.replace(b'"easy"', b'"easy" ', 1)
    for damaged in (text[:-40], text.replace(b'"easy"', b'"hazy"', 1), longer):
        part.write_bytes(damaged)
        with pytest.raises(ReadError, match="cannot go on with it"):
            run(plan_of(), graph, file, resume=True)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_that_ends_with_its_time_goes_on(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands is in the file, and another run makes it what one run gives."""
    graph, plan = small_graph(), plan_of(anchor_share=0.4)
    whole, file = tmp_path / "whole.jsonl", tmp_path / "file.jsonl"
    run(plan, graph, whole)
    everything = list(read_samples(whole))
    kept = [0]
    for turn in range(2 if workers > 1 else 4):
        # The time is over when it has been looked at twice.
        looks = iter([0.0, 0.0])
        with monkeypatch.context() as patched:
            patched.setattr("kopl_base.runs.monotonic", lambda looks=looks: next(looks, 10.0))
            report = run(plan, graph, file, workers=workers, resume=turn > 0, until=10.0)
        kept.append(report.kept)
        assert report.ended
        assert list(read_samples(file)) == everything[: report.kept]
        assert (tmp_path / "file.jsonl.part").exists()
    assert kept == sorted(kept) and 0 < kept[1] < len(everything) and kept[-1] < len(everything)
    assert workers > 1 or kept[1] < kept[-1]
    with pytest.raises(WriteError, match="a stopped run is there; --resume goes on"):
        run(plan, graph, file)
    report = run(plan, graph, file, workers=workers, resume=True)
    assert not report.ended and file.read_bytes() == whole.read_bytes()
    assert not list(tmp_path.glob("*.part*"))


@pytest.mark.parametrize("format", ["betae", "efo1", "parquet", "efok"])
def test_folders_of_a_run_that_ends_with_its_time(
    format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, plan = small_graph(), Plan(tuple(kinds(["2i", "2in"])), 120)
    whole = list(stream(plan, graph))
    folder = tmp_path / "out"
    for resume, ended in ((False, True), (True, True), (True, False)):
        looks = iter([0.0] * (2 if ended else 99))
        monkeypatch.setattr("kopl_base.runs.monotonic", lambda looks=looks: next(looks, 10.0))
        report = run(plan, graph, folder, format=format, resume=resume, until=10.0)
        assert report.ended == ended and report.kept == len(list(read_samples(folder)))
    assert report.kept == len(whole)


def test_a_file_that_cannot_be_written_when_the_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> None:
        raise WriteError("no space")

    graph, plan, file = small_graph(), plan_of(), tmp_path / "file.jsonl"
    with monkeypatch.context() as patched:
        patched.setattr("cqa.formats.samples.write_samples", fail)
        looks = iter([0.0])
        patched.setattr("kopl_base.runs.monotonic", lambda: next(looks, 10.0))
        with pytest.raises(WriteError, match=r"no space; .*part has .* queries: --resume"):
            run(plan, graph, file, until=10.0)
    assert not file.exists()
    assert run(plan, graph, file, resume=True).kept == len(list(stream(plan, graph)))


def test_types_that_fall_short_are_reported(tmp_path: Path) -> None:
    train, test = np.array([(0, 0, 1), (1, 0, 2)], np.int32), np.array([(2, 0, 3)], np.int32)
    graph = from_triples([train, test], ("train", "test"))
    plan = Plan(tuple(kinds(["1p", "3i"])), 60)
    for workers in (1, 2):
        file = tmp_path / f"{workers}.jsonl"
        report = run(plan, graph, file, workers=workers)
        assert report.short == {"1p": 2, "3i": 0} and report.kept == 2
        assert Counter(sample.type for sample in read_samples(file)) == {"1p": 2}


def test_caps_are_filled_by_further_blocks(tmp_path: Path) -> None:
    """A relation that takes most of the first blocks does not keep a type from being complete."""
    options = Options(most=50, anchor_share=0.15)
    plan = Plan(tuple(kinds(TYPES[1:3])), 60, options=options)
    report = run(plan, small_graph(), tmp_path / "capped.jsonl")
    assert not report.short and report.attempts > 2 * report.kept
    for name in TYPES[1:3]:
        found = [s for s in read_samples(tmp_path / "capped.jsonl") if s.type == name]
        assert len(found) == 60
        assert max(Counter(n for s in found for n in s.anchors).values()) <= 9


def test_numbers_out_of_range(tmp_path: Path) -> None:
    for count, workers in ((0, 1), (-3, 1), (5, 0)):
        with pytest.raises(SamplingError, match="from 1 on was expected"):
            run(plan_of(count=count), small_graph(), tmp_path / "x.jsonl", workers=workers)


def test_a_lost_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is killed ends the run with a message, and the run can go on."""
    submit, left = Processes.submit, [3]

    def kill_one(self: Processes[object], *given: object) -> object:
        left[0] -= 1
        if not left[0]:
            for child in multiprocessing.active_children():
                child.kill()
                child.join()
        return submit(self, *given)

    graph, file = small_graph(), tmp_path / "x.jsonl"
    with monkeypatch.context() as patched:
        patched.setattr(Processes, "submit", kill_one)
        with pytest.raises(SamplingError, match=r"ended from outside; .*x\.jsonl\.part has"):
            run(plan_of(), graph, file, workers=2)
    assert not multiprocessing.active_children()
    run(plan_of(), graph, file, resume=True)
    run(plan_of(), graph, tmp_path / "y.jsonl")
    assert file.read_bytes() == (tmp_path / "y.jsonl").read_bytes()


def test_what_a_worker_raises_is_raised(tmp_path: Path) -> None:
    plan = Plan((Kind("x", "(e)", read_formula("(e)")),), 5)
    with pytest.raises(SamplingError, match="a given entity stands alone"):
        run(plan, small_graph(), tmp_path / "x.jsonl", workers=2)
    assert not multiprocessing.active_children()


# --- inductive splits ---------------------------------------------------------------------------


def big_graph() -> Graph:
    """A random graph of some hundred entities."""
    random = np.random.default_rng(3)
    triples = np.stack(
        [random.integers(0, 300, 3000), random.integers(0, 6, 3000), random.integers(0, 300, 3000)],
        axis=1,
    )
    return from_triples([triples.astype(np.int32)], ("train",))


def test_inductive_split() -> None:
    graph = big_graph()
    found = inductive(graph, 1.75, seed=4)
    known = set(found.entities.tolist())
    everything = {tuple(row) for row in graph.triples().tolist()}
    trained = {tuple(row) for row in found.train.triples().tolist()}
    assert {end for head, _, tail in trained for end in (head, tail)} == known
    news = [set(found.new[split].tolist()) for split in ("valid", "test")]
    assert not news[0] & news[1] and not known & (news[0] | news[1])
    for split, new in zip(("valid", "test"), news, strict=True):
        asked = found.of(split)
        assert asked.splits == ("train", "inference", split)
        assert {tuple(row) for row in asked.triples("train").tolist()} == trained
        seen = {tuple(row) for row in asked.triples("inference").tolist()}
        missing = {tuple(row) for row in asked.triples(split).tolist()}
        assert seen | missing <= everything and not seen & missing
        for head, _, tail in seen | missing:
            assert {head, tail} & new and {head, tail} <= known | new
        assert new == {end for h, _, t in seen for end in (h, t)} & new
        assert 0.10 < len(missing) / len(seen | missing) <= 0.16
        assert len(asked.observed(split)) == len(trained) + len(seen)
        assert abs((len(known) + len(new)) / len(known) - 1.75) < 0.05
    again = inductive(graph, 1.75, seed=4)
    assert np.array_equal(again.test.triples(), found.test.triples())
    assert not np.array_equal(inductive(graph, 1.75, seed=5).entities, found.entities)


def test_queries_on_an_inductive_split() -> None:
    asked = inductive(big_graph()).of("test")
    triples = asked.triples()
    rows = [(h, r // 2, t) for h, r, t in triples.tolist()]
    brute = Brute(rows, 300)
    plan = Plan(tuple(kinds(["2i"])), 5)
    for sample in stream(plan, asked):
        assert [tuple(row) for row in sample.full.tolist()] == brute.answers(sample.graph)


@pytest.mark.parametrize(
    ("ratio", "missing", "message"),
    [
        (1.0, 0.15, "a number above 1"),
        (float("nan"), 0.15, "a number above 1"),
        (1.75, 0.0, "between 0 and 1"),
        (1.75, 1.0, "between 0 and 1"),
        (1e6, 0.15, "the graph is too small"),
    ],
)
def test_inductive_splits_that_cannot_be(ratio: float, missing: float, message: str) -> None:
    with pytest.raises(SamplingError, match=message):
        inductive(big_graph(), ratio, missing=missing)


# --- the command --------------------------------------------------------------------------------


def command(*words: str) -> int:
    parser = argparse.ArgumentParser()
    command_sample.add_arguments(parser)
    return command_sample.run(parser.parse_args(words))


@pytest.fixture
def folder(tmp_path: Path) -> str:
    graph_files.save(small_graph(), tmp_path / "graph")
    return str(tmp_path / "graph")


def test_command(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "q.jsonl")
    words = ("--graph", folder, "--types", "2i", "2p", "-n", "5", "--seed", "3", "--hard", "1-20")
    assert command(*words, "-o", file) == 0
    assert "kopl: 10 queries of 2 types" in capsys.readouterr().err
    assert command(*words, "-o", "-") == 0
    assert capsys.readouterr().out == Path(file).read_text()
    first = json.loads(Path(file).read_text().splitlines()[0])
    assert list(first) == ["type", "formula", "query", "easy", "hard"]
    assert first["type"] == "2i" and first["formula"] == "(i,(p,(e)),(p,(e)))"
    before, after = Brute(observed(), ENTITIES), Brute(full(), ENTITIES)
    for sample in read_samples(file):
        assert [tuple(row) for row in sample.easy.tolist()] == before.answers(sample.graph)
        assert [tuple(row) for row in sample.full.tolist()] == after.answers(sample.graph)


def test_command_writes_every_format(folder: str, tmp_path: Path) -> None:
    given = ("--graph", folder, "--types", "2i", "2in", "-n", "4", "--hard", "1-20")
    command(*given, "-o", str(tmp_path / "q.jsonl"))
    plain = list(read_samples(tmp_path / "q.jsonl"))
    for form in ("betae", "efo1", "efok", "parquet"):
        assert command(*given, "-o", str(tmp_path / form), "--format", form) == 0
        assert len(list(read_samples(tmp_path / form))) == len(plain) == 8


def test_command_tells_what_falls_short(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--graph", folder, "--types", "1p", "-n", "5000", "--hard", "1-20")
    assert command(*words, "-o", str(tmp_path / "q.jsonl")) == 1
    told = capsys.readouterr().err
    assert command(*words, "-o", "-") == 1
    assert "kopl: 1p: " in told and " of 5000 queries" in told
    assert capsys.readouterr().err in told


def test_command_ends_with_its_time(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "q.jsonl"
    words = ("--graph", folder, "--types", "2p", "pni", "-n", "3000", "--hard", "1-20")
    assert command(*words, "-o", str(file), "--minutes", "0.004") == 1
    told = capsys.readouterr().err
    count = len(list(read_samples(file)))
    assert f"the time is over: {count:,} of 6,000 queries are in {file}; --resume goes on" in told
    assert "q.jsonl.part" in told and "queries of 2 types" not in told
    assert command(*words, "-o", str(file), "--minutes", "0.004", "--resume") == 1
    assert len(list(read_samples(file))) >= count
    capsys.readouterr()
    assert command(*words, "-o", "-", "--minutes", "0.004") == 1
    shown = capsys.readouterr()
    lines = len(shown.out.splitlines())
    assert f"the time is over: {lines:,} of 6,000 queries" in shown.err
    assert command(*words[:-3], "2", "--hard", "1-20", "-o", "-", "--minutes", "9") == 0
    assert "time" not in capsys.readouterr().err


@pytest.mark.parametrize("minutes", ["0", "-1", "nan", "inf", "x", ""])
def test_minutes_that_are_no_time(
    minutes: str, folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--graph", folder, "--types", "2i", "-n", "5", "-o", str(tmp_path / "q"))
    with pytest.raises(SystemExit):
        command(*words, f"--minutes={minutes}")
    assert "--minutes" in capsys.readouterr().err


@pytest.mark.parametrize("output", ["-", "q.jsonl"])
def test_command_tells_how_long_it_will_take(
    output: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Without a terminal, too; here any time is a long one."""
    for name in ("LONG", "CALM", "MOMENT"):
        monkeypatch.setattr(f"kopl_base.progress.{name}", 0.0)
    monkeypatch.chdir(tmp_path)
    words = ("--graph", folder, "--types", "2p", "pni", "-n", "300", "--hard", "1-20")
    command(*words, "-o", output)
    told = [line for line in capsys.readouterr().err.splitlines() if "at this pace" in line]
    assert len(told) == 1 and told[0].startswith("kopl: sampling queries will take about ")
    command(*words, "-o", output, "--minutes", "9")
    assert "at this pace" not in capsys.readouterr().err
    assert "--minutes M ends it before" in told[0] and ("--resume" in told[0]) == (output != "-")


def test_no_graph_has_more_queries_than_the_bound() -> None:
    """Against all groundings whose branches differ, on a graph small enough to list them."""
    graph = from_triples([np.array([(0, 0, 1), (1, 0, 2)]), np.array([(0, 1, 2)])],
                         ("train", "test"))  # fmt: skip
    links = graph.full()
    rows = [(int(r), e) for r in range(4) for e in range(3) if len(links.row(r, e))]
    assert len(rows) == len(links.heads) == 6
    for name, count, ordered in (
        ("1p", 6, 6), ("2p", 24, 24), ("2i", 15, 30), ("3i", 20, 120), ("ip", 60, 120),
        ("pi", 144, 144), ("2in", 36, 36), ("3in", 90, 180), ("2u-DM", 15, 30), ("up", 60, 120),
        ("(d,(p,(e)),(p,(e)))", 36, 36), ("(r1(s1,f1))&(r2(s2,f1))", 36, 36),
        ("(r1(s1,e1))&(r2(e1,f1))", 24, 24), ("(r1(s1,f1))&(r2(f1,f2))", 24, 24),
    ):  # fmt: skip
        (kind,) = kinds([name])
        found = [most_queries(kind.shape, links, ordered=way) for way in (False, True)]
        assert found == [count, ordered], name


def test_the_most_that_there_can_be_is_told_before(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--graph", folder, "--types", "1p", "2i", "-n", "161", "--hard", "1-20")
    assert command(*words, "-o", "-") == 1
    assert (
        "1p has at most 146 queries on this graph, not 161; what there is"
        in capsys.readouterr().err
    )


def test_command_inductive(folder: str, tmp_path: Path) -> None:
    graph_files.save(big_graph(), tmp_path / "big")
    words = ("--graph", str(tmp_path / "big"), "--types", "1p", "-n", "5", "--inductive", "1.75")
    saved = tmp_path / "asked"
    assert command(*words, "-o", str(tmp_path / "q.jsonl"), "--save-graph", str(saved)) == 0
    asked = graph_files.load(saved)
    assert asked.splits == ("train", "inference", "test")
    for sample in read_samples(tmp_path / "q.jsonl"):
        (atom,) = sample.graph.disjuncts[0].atoms
        answers = asked.full().row(int(atom.relation), int(atom.head.entity))  # type: ignore[union-attr]
        assert answers.tolist() == sample.full[:, 0].tolist()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--hard", "x"), "--hard: write a range such as 1-100, not 'x'"),
        (("--hard", "1-"), "--hard: write a range"),
        (("--hard", "0"), "0 to 0 is no range"),
        (("--split", "dev"), "the graph has no split 'dev'"),
        (("-o", "-", "--workers", "2"), "leave out --workers"),
        (("-o", "-", "--format", "betae"), "prints JSON lines, not betae"),
        (("-n", "0"), "a number of queries from 1 on"),
        (("-n", "-1"), "a number of queries from 1 on"),
        (("-n", "99999999999999999999"), "can hold; 2i has at most 10,585 on this graph"),
        (("-n", "100000001", "--types", "5i"), "at most 100,000,000 queries of each type"),
        (("--max-answers", "0"), "0 answers are fewer than 1 hard ones"),
        (("--max-answers", "-5"), "-5 answers are fewer"),
        (("--hard", "0-5"), "0 to 5 is no range"),
        (("--hard", "5-1"), "5 to 1 is no range"),
        (("--hard", "9" * 5000), "--hard: write a range"),
        (("--relation-share", "nan"), "a share lies above 0"),
        (("--relation-share", "-1"), "a share lies above 0"),
        (("--anchor-share", "inf"), "a share lies above 0"),
        (("--anchor-share", "0"), "a share lies above 0"),
        (("--inductive", "inf"), "a number above 1"),
        (("--inductive", "-2"), "a number above 1"),
        (("--inductive", "1e308"), "the graph is too small"),
        (("--types", "r1(s1,f1)", "--format", "betae"), "betae holds operator trees only"),
        (("--types", "pni", "--format", "efok"), "efok cannot hold it"),
        (("--form", "XNF"), "there is no form 'XNF'"),
        (("--split", "train", "--format", "efo1"), "train has none"),
        (("--inductive", "0.5"), "a number above 1"),
        (("--graph", "/no/such"), "there is no such file or folder"),
        (("-o", "/dev/null"), "no ordinary file"),
    ],
)
def test_command_refuses(words: tuple[str, ...], message: str, folder: str, tmp_path: Path) -> None:
    given = {"--graph": folder, "--types": "2i", "-n": "2", "-o": str(tmp_path / "q.jsonl")}
    given |= dict(zip(words[::2], words[1::2], strict=True))
    with pytest.raises(KoplError) as caught:
        command(*(word for pair in given.items() for word in pair))
    assert message in str(caught.value)
    assert not list(tmp_path.glob("q.jsonl*"))
