"""``kopl generate`` as a user calls it."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from kopl.example import read_examples
from kopl_cli import main


def test_to_a_file(lands_file: str, tmp_path: Path) -> None:
    out = tmp_path / "questions.jsonl"
    assert main(["generate", "--kb", lands_file, "-n", "20", "--seed", "3", "-o", str(out)]) == 0
    examples = list(read_examples(out))
    assert len(examples) == 20
    assert all(example.answer and example.type for example in examples)


def test_to_standard_output(lands_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--kb", lands_file, "-n", "5", "-o", "-"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [set(json.loads(line)) for line in lines] == [
        {
            "id", "question", "canonical", "program", "sparql", "answer", "choices", "type",
            "strategies", "skills", "hops",
        }
    ] * 5  # fmt: skip


def test_statistics_after_a_run(
    lands_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are those that `kopl stats` prints of the file; standard output stays clean."""
    out = tmp_path / "q.csv"
    arguments = ["generate", "--kb", lands_file, "-n", "30", "--verify", "0"]
    assert main([*arguments, "-o", str(out)]) == 0
    shown = capsys.readouterr()
    assert shown.out == "" and "\nkopl: kept 30 of " in shown.err
    assert main(["stats", str(out)]) == 0
    printed = capsys.readouterr().out.splitlines()
    lines = [line for line in shown.err.splitlines() if line.count("\t") == 2]
    assert {line.split("\t")[0] for line in lines} >= {
        "questions", "mean calls", "share multi-hop", "type Count", "top answers", "first words",
    }  # fmt: skip
    # The commonest ones stand in lines of their own there.
    figures = {line for line in lines if not line.startswith(("top ", "first words"))}
    assert len(figures) > 10 and figures <= set(printed)
    for quiet in ("-q", "--quiet"):
        assert main([*arguments, quiet, "-o", str(out)]) == 0
        assert capsys.readouterr().err.startswith("kopl: kept 30 of ")
    assert main([*arguments, "-o", "-"]) == 0
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 30 and "questions\t30\t117970" in shown.err


def test_names_that_read_doubtfully(
    lands_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["generate", "-n", "2", "--verify", "0", "-o", "-"]
    assert main([*arguments, "--kb", lands_file]) == 0
    first = capsys.readouterr().err.splitlines()[0]
    assert re.fullmatch(
        r"kopl: \d+ of 29 names of the knowledge base read doubtfully in questions; to look at"
        rf" them: kopl lexicon init {re.escape(lands_file)} -o words.yaml",
        first,
    )
    words = tmp_path / "words.yaml"
    assert main(["lexicon", "init", lands_file, "-o", str(words)]) == 0
    assert words.read_text("utf-8").count("todo:") == int(first.split()[1])
    capsys.readouterr()
    assert main([*arguments, "--kb", lands_file, "--lexicon", str(words)]) == 0
    assert f"kopl lexicon check {lands_file} {words}" in capsys.readouterr().err
    read = "".join(line for line in words.open(encoding="utf-8") if "todo:" not in line)
    # A direction that nobody wants to have words of its own is said so.
    alone = r"(?m)^(    (?!forward).*\n|  \S.*\n)(?=    backward:)"
    words.write_text(re.sub(alone, r"\1    forward: none\n", read), "utf-8")
    assert main([*arguments, "--kb", lands_file, "--lexicon", str(words)]) == 0
    assert "doubtfully" not in capsys.readouterr().err
    assert main([*arguments, "--kb", lands_file, "--quiet"]) == 0
    assert "doubtfully" not in capsys.readouterr().err
    assert main([*arguments, "--kb", "world"]) == 0
    assert "doubtfully" not in capsys.readouterr().err


def test_standard_output_takes_lines(lands_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["generate", "--kb", lands_file, "-n", "3", "-o", "-"]
    for more in (["--format", "csv"], ["--ray"], ["--format", "parquet"], ["--workers", "2"]):
        assert main([*arguments, *more]) == 2
        assert "standard output takes JSON lines" in capsys.readouterr().err
    assert main([*arguments, "--resume"]) == 2
    shown = capsys.readouterr()
    assert "--resume goes on with a file" in shown.err and shown.out == ""


@pytest.mark.parametrize(
    "text",
    ["Count", "Count=", "=3", "Count=0", "Count=101", "Count=nan", "Count=3,", "Count=3,Count=4"],
)
def test_wrong_shares(text: str, lands_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["generate", "--kb", lands_file, "-n", "3", "-o", "-", "--shares", text])
    assert caught.value.code == 2
    assert "--shares" in capsys.readouterr().err


def test_shares_of_types_that_no_rule_makes(
    lands_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    begin = ["generate", "--kb", lands_file, "-n", "3", "-o", "-", "--shares"]
    assert main([*begin, "Coun=3"]) == 2
    assert "'Coun'; the types are QueryName, Count" in capsys.readouterr().err
    assert main([*begin, "Count=60,Verify=50"]) == 2
    assert "110 percent" in capsys.readouterr().err


def test_a_share_of_100_means_all(lands_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    begin = ["generate", "--kb", lands_file, "-n", "20", "-o", "-", "-q", "--shares"]
    assert main([*begin, "Count=100"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {json.loads(line)["type"] for line in lines} == {"Count"}


def test_the_rules_of_the_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "generation.md").read_text("utf-8")
    block = re.search(r"```\n(@include kqapro.scfg\n@share Neighbours.+?)```", page, re.S)
    assert block
    rules = tmp_path / "own.scfg"
    rules.write_text(block[1], "utf-8")
    begin = ["generate", "--kb", "world", "-n", "20", "-o", "-", "--rules", str(rules)]
    assert main(begin) == 0
    shown = capsys.readouterr()
    items = [json.loads(line) for line in shown.out.splitlines()]
    assert Counter(item["type"] for item in items) == {"Neighbours": 14, "Sameness": 6}
    assert {item["answer"] for item in items if item["type"] == "Sameness"} == {"yes", "no"}
    assert "type Neighbours" in shown.err
    rules.write_text(block[1] + "@share Capitol 3\n", "utf-8")
    assert main(begin) == 2
    assert "line 11" in (said := capsys.readouterr().err) and "Capitol" in said


def test_errors(lands_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "my.scfg"
    rules.write_text("ROOT[Count] -> Count(E)\n  | how many?\n", "utf-8")
    out = tmp_path / "questions.jsonl"
    arguments = ["generate", "--kb", lands_file, "-o", str(out)]
    assert main([*arguments, "-n", "5", "--rules", str(rules)]) == 2
    assert "line 1: there is no rule for E" in capsys.readouterr().err
    rules.write_text("ROOT[Count] -> Count(Find($name))\n  | how many {name}?\n", "utf-8")
    assert main([*arguments, "-n", "1000", "--rules", str(rules)]) == 2
    assert "different questions, not 1000" in capsys.readouterr().err
    assert not out.exists()
    with pytest.raises(SystemExit):
        main([*arguments, "-n", "0"])


def test_far_more_workers_than_cores_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out.jsonl")
    assert main(["generate", "--kb", "world", "-n", "5", "-o", out, "--workers", "100000"]) == 2
    assert "gain nothing" in capsys.readouterr().err
