"""Statistics: counts that can be checked by eye, tables, plots and the command."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from generation.plots import write_plots
from generation.stats import (
    FIRST_WORDS,
    OTHER,
    PAPER,
    PAPER_TYPES,
    SHARES,
    Figures,
    Statistics,
    rows_of,
    short_rows,
)
from kopl.example import Example, write_examples
from kopl.text import read
from kopl.traits import ASKING
from kopl_base.errors import KoplError
from kopl_cli import main

FEW = [
    Example("What is it?", read('QueryName(Find("A"))'), "A", sparql="ASK { ?e a ?c . }"),
    Example('"What" is that thing?', read('QueryAttr(Find("A"), "k")'), "5 metre"),
    Example(
        "how many",
        read('Count(And(Relate(Relate(Find("A"), "r", "forward"), "s", "forward"), FindAll()))'),
        "5 metre",
    ),
    Example("Which?", read('SelectAmong(FilterConcept(FindAll(), "c"), "k", "largest")'), None),
]


def test_by_eye() -> None:
    found = Statistics.of(FEW, trained={"A"})
    assert found.measures() == {
        "questions": 4,
        "mean question words": (3 + 4 + 2 + 1) / 4,
        "mean calls": (2 + 2 + 6 + 3) / 4,
        "share with four calls": 0.0,
        "share with more than ten calls": 0.0,
        "mean SPARQL tokens": 7.0,
        "share multi-hop": 0.5,
        "share with five hops or more": 0.0,
        "different answers": 2,
        "share of answers never in training": 2 / 3,
    }
    shown = found.to_json()
    assert shown["types"]["QueryName"] == shown["types"]["Count"] == 0.25
    assert shown["types"]["Verify"] == 0
    assert shown["locating"]["multi-hop"] == 0.25
    assert shown["functions"]["Find"] == 0.75
    assert list(shown["functions"])[:2] == ["Find", "FindAll"]
    assert shown["hops"] == {0: 1, 1: 1, 2: 2}
    assert shown["top answers"] == {"5 metre": 2, "A": 1}
    assert shown["first words"] == {"what": 2, "how": 1, "which": 1}


def test_lengths_at_the_bounds() -> None:
    def chain(calls: int) -> Example:
        program = 'Find("A")'
        for _ in range(calls - 2):
            program = f'Relate({program}, "r", "forward")'
        return Example("q", read(f"QueryName({program})"))

    found = Statistics.of(map(chain, (4, 6, 7, 10, 11))).measures()
    assert found["share with four calls"] == 1 / 5
    assert found["share with more than ten calls"] == 1 / 5
    assert found["share with five hops or more"] == 3 / 5
    assert found["share multi-hop"] == 1


def test_nothing() -> None:
    found = Statistics.of([])
    assert found.measures()["questions"] == 0
    assert found.measures()["mean calls"] is None
    assert "mean calls" not in found.to_json()
    _, rows = rows_of({"none": found})
    assert ("questions", "0", "117970") in rows


def test_memory_is_bounded() -> None:
    """First words that are all different do not pile up."""
    program = read("FindAll()")

    def many() -> Iterator[Example]:
        for number in range(FIRST_WORDS + 50):
            yield Example(f"word{number} and more", program)

    found = Statistics.of(many())
    assert len(found.first_words) == FIRST_WORDS + 1
    assert found.first_words[OTHER] == 50


def test_answers_can_be_bounded() -> None:
    """Beyond the bound answers are counted, not kept; those that are kept stay exact."""
    program = read('QueryName(Find("A"))')
    texts = ["a", "b", "a", "c", "d", "a", "b", "c"]
    found = Statistics.of([Example("q", program, text) for text in texts])
    bounded = Statistics(trained={"a"}, bound=2)
    examples = [Example("q", program, text) for text in texts]
    assert list(bounded.counting(examples)) == examples
    assert bounded.answers == {"a": 3, "b": 2} and bounded.unlisted == 3
    assert found.measures()["different answers"] == 4
    measures = bounded.measures()
    assert measures["different answers"] is None  # nobody knows
    assert measures["share of answers never in training"] == 5 / 8
    assert bounded.to_json()["top answers"] == {"a": 3, "b": 2}


def test_figures_are_all_that_is_counted() -> None:
    """What a worker hands over, as it is sent to another process, gives the same statistics."""
    found = Statistics()
    for one in FEW:
        found.count(pickle.loads(pickle.dumps(Figures.of(one))))
    assert found == Statistics.of(FEW)


def test_a_short_account() -> None:
    rows = short_rows(Statistics.of(FEW))
    table = {row[0]: row[1:] for row in rows}
    assert table["questions"] == ("4", "117970")
    assert table["type SelectBetween"] == ("0.00%", "about 12%")
    assert table["type SelectAmong"] == ("25.00%", "4.6%")
    assert table["top answers"] == ("5 metre 50.0%, A 25.0%", "")
    assert table["first words"] == ("what 50.0%, how 25.0%, which 25.0%", "")
    assert not any(name.startswith("programs with") for name in table)
    assert short_rows(Statistics())[-1] == ("first words", "", "")


def test_the_shares_are_those_that_are_generated() -> None:
    """The generator aims at what its results are put beside."""
    assert {name: pytest.approx(share / 100) for name, share in SHARES.items()} == PAPER_TYPES
    assert sorted(PAPER_TYPES) == sorted(ASKING)


def test_the_paper_is_beside() -> None:
    headings, rows = rows_of({"train": Statistics.of(FEW), "test": Statistics.of(FEW, set())})
    assert headings == ("", "train", "test", "KQA Pro")
    table = {row[0]: row[1:] for row in rows}
    assert table["mean calls"] == ("3.25", "3.25", "4.79")
    assert table["share of answers never in training"] == ("", "100.00%", "30.00%")
    assert table["type Count"] == ("25.00%", "25.00%", "11.5%")
    assert table["type Verify"] == ("0.00%", "0.00%", "about 12%")
    assert set(PAPER) == set(Statistics.of(FEW).measures())
    assert sum(PAPER_TYPES.values()) == pytest.approx(1, abs=0.01)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, train = tmp_path / "set.jsonl", tmp_path / "other.json"
    write_examples(source, FEW)
    train.write_text(json.dumps([FEW[0].to_json(published=True)]), "utf-8")
    assert main(["stats", str(source), "--json", "--train", str(train)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["share of answers never in training"] == 2 / 3
    assert main(["stats", str(source)]) == 0
    out = capsys.readouterr().out
    assert "mean calls\t3.25\t4.79\n" in out and "first word\twhat\t50.00%\n" in out


def test_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each part has its column; new answers are those that the folder's train does not have."""
    write_examples(tmp_path / "train.jsonl", FEW[:1])
    write_examples(tmp_path / "test.jsonl", FEW[1:])
    assert main(["stats", str(tmp_path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert list(shown) == ["train", "test"]
    assert shown["test"]["share of answers never in training"] == 1
    assert "share of answers never in training" not in shown["train"]


def test_plots(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    odd = [*FEW, Example("Odd?", FEW[0].program, "$a_1$ ^ \\frac", sparql=" x" * 5000)]
    paths = write_plots(Statistics.of(odd), tmp_path / "new")
    assert [path.name for path in paths] == ["hops.png", "lengths.png", "types.png", "answers.png"]
    first = [path.read_bytes() for path in paths]
    assert all(content.startswith(b"\x89PNG") for content in first)
    write_plots(Statistics.of(odd), tmp_path / "new")
    assert [path.read_bytes() for path in paths] == first
    assert write_plots(Statistics(), tmp_path / "empty")


def test_plots_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(KoplError, match=r"install it with: pip install .*\[plots\]"):
        write_plots(Statistics.of(FEW), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_published_questions(kopl_data: Path) -> None:
    """A sample of KQA Pro is near the figures of the paper, so that they are counted alike."""
    from generation.formats import open_examples

    found = Statistics.of(open_examples(kopl_data / "kqapro" / "gold_30.jsonl")).measures()
    for name in ("mean question words", "mean calls", "mean SPARQL tokens"):
        figure = found[name]
        assert figure is not None
        assert figure == pytest.approx(PAPER[name], rel=0.35)
