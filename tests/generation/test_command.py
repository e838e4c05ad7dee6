"""``kopl generate`` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kopl.cli import main
from kopl.example import read_examples


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
