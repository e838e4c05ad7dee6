"""The command that converts questions of people, its report, and the names as a knowledge base."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from generation.human import GraphSchema, part_of, vocabulary
from generation.human.convert import ConversionCounts
from generation.human.records import from_json
from kb import KnowledgeBase, load
from kopl.example import read_examples
from kopl_cli.human import main
from parsers.actions import Actions

from .human_graphs import CASES, PROOF, lines, write

BAD = {
    "id": "bad", "question": "Is it?", "target": "bool", "graph": [["---"]], "answer": "no",
    "src": ["verify"],
}  # fmt: skip


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "q.jsonl", [*lines(), BAD])
    out, rejected, report = (tmp_path / name for name in ("o.jsonl", "r.jsonl", "c.json"))
    arguments = [str(path), "-o", str(out), "--rejected", str(rejected), "--report", str(report)]
    assert main(arguments) == 0
    examples = list(read_examples(out))
    written = {example.id: example for example in examples}
    for number, (_, question, _, program, answer) in enumerate(CASES):
        example = written[f"case-{number}"]
        assert (example.question, str(example.program)) == (question, program)
        assert example.answer == answer
    assert written["case-9"].extra == {"src": ["qualifier"], "part": part_of("case-9")}
    assert written["case-9"].type == "QualifierLiteral"
    unconverted = [json.loads(line) for line in rejected.read_text("utf-8").splitlines()]
    assert unconverted[-1] == {
        "id": "bad", "question": "Is it?", "src": ["verify"], "part": "train",
        "reason": "malformed graph", "detail": "no clause of 3 or 5 parts: ['---']",
    }  # fmt: skip
    # The proof of relations says nothing of one variable.
    assert {line["reason"] for line in unconverted[:-1]} <= {"clause missing", "no concept"}
    counts = json.loads(report.read_text("utf-8"))
    total = len(CASES) + len(PROOF) + 1
    assert counts["parts"]["all"]["all"] == {"questions": total, "converted": len(examples)}
    assert len(unconverted) == total - len(examples)
    assert sum(reason["all"] for reason in counts["reasons"].values()) == len(unconverted)
    assert counts["reasons"]["malformed graph"]["verify"] == 1
    assert counts["restored"] == 1
    shown = capsys.readouterr().out
    assert f"all\tall\t{total}\t{len(examples)}\t" in shown
    assert "1 program has a clause" in shown


def test_parts_are_disjoint_and_complete(tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", lines())
    found = []
    for part in ("train", "test"):
        out = tmp_path / f"{part}.jsonl"
        assert main([str(path), "-o", str(out), "--part", part]) == 0
        found.append([str(example.id) for example in read_examples(out)])
        assert all(example.extra["part"] == part for example in read_examples(out))
    assert all(found)
    both = tmp_path / "both.jsonl"
    main([str(path), "-o", str(both)])
    assert sorted(found[0] + found[1]) == sorted(str(example.id) for example in read_examples(both))


@pytest.mark.parametrize("ending", ["json", "jsonl", "koplkb"])
def test_the_vocabulary_is_a_knowledge_base(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path / "q.jsonl", lines())
    target = tmp_path / f"names.{ending}"
    assert main([str(path), "-o", str(tmp_path / "o.jsonl"), "--kb-out", str(target)]) == 0
    kb = load(target)
    check_names(kb)
    # Everything that a program needs is among the actions of a parser.
    actions = Actions.of(kb)
    for slot, name in (
        ("key", "motto"), ("relation", "lies in"), ("concept", "canton"),
        ("qualifier key", "for work"),
    ):  # fmt: skip
        assert actions.number(slot, name) is not None


def check_names(kb: KnowledgeBase) -> None:
    assert kb.names_of_kind("concept") == ["canton", "human", "lake", "painter", "prize", "thing"]
    names = kb.names_of_kind("entity")
    assert {"Ada Moss", "Amber Cup", "Grey Lake", "North", "Uri"} <= set(names)
    assert "Night Rain" not in names  # a value of a qualifier
    assert "Ever Up" not in names  # a value of a key
    assert {"guild number", "motto", "area"} <= set(kb.attribute_keys)
    assert {"lies in", "winner"} <= set(kb.relations)
    assert {"for work", "language", "since"} <= set(kb.qualifier_keys)
    assert "painter" not in names


def test_the_vocabulary_does_not_depend_on_the_order() -> None:
    questions = [from_json(item) for item in lines()]
    schema = GraphSchema.of(questions)
    first = vocabulary(questions, schema).fingerprint
    random.Random(5).shuffle(questions)
    assert vocabulary(questions, GraphSchema.of(questions)).fingerprint == first


def test_the_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    path = write(tmp_path / "q.jsonl", lines())
    made = set()
    for seed in ("0", "1"):
        out, names = tmp_path / f"{seed}.jsonl", tmp_path / f"{seed}.koplkb"
        subprocess.run(
            [sys.executable, "-m", "kopl_cli.human", path, "-o", out, "--kb-out", names],
            check=True, capture_output=True, env={"PYTHONHASHSEED": seed, "PATH": ""},
        )  # fmt: skip
        made.add((out.read_bytes(), names.read_bytes()))
    assert len(made) == 1


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("none.jsonl", None, [], "none.jsonl: cannot be opened"),
        ("q.jsonl", "", [], "there are no questions in it"),
        ("q.jsonl", "{", [], "q.jsonl: line 1: not JSON"),
        ("q.jsonl", "{}", [], "q.jsonl: line 1: 'id' must be a text, not None"),
        ("q.jsonl", "{}", ["--kb-out", "names.txt"], "--kb-out must end in .json, .jsonl, .koplkb"),
    ],
)
def test_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str | None,
    options: list[str], message: str,
) -> None:  # fmt: skip
    if text is not None:
        (tmp_path / name).write_text(text, "utf-8")
    out = tmp_path / "o.jsonl"
    assert main([str(tmp_path / name), "-o", str(out), *options]) == 1
    error = capsys.readouterr().err
    assert message in error and error.startswith("python -m kopl_cli.human: ")
    assert not out.exists()


def test_no_file_is_written_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "q.jsonl", lines())
    before = path.read_bytes()
    for options in (["-o", path], ["-o", tmp_path / "o", "--report", tmp_path / "." / "o"]):
        assert main([str(path), *map(str, options)]) == 1
        assert "two of the files are the same one" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [path]


def test_shares_of_nothing() -> None:
    assert list(ConversionCounts().rows()) == []
