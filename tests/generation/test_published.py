"""KQA Pro's files as they were published, over the years: read, typed, run, their queries read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generation.conversion import convert
from generation.formats import open_examples, open_parts
from kb import KnowledgeBase, write_kqapro
from kb.kqapro import Spelling
from kopl.example import Example
from kopl.functions import FUNCTIONS
from kopl.program import post_order
from kopl.sparql.ast import write
from kopl.sparql.from_kopl import translate
from kopl.text import read, to_json
from kopl_cli import main

# Programs over the knowledge base of these tests with their answers; every function is in one.
PROGRAMS = {
    'QueryName(Relate(Find("Arlen"), "capital", "forward"))': "Amber",
    'Count(FilterConcept(FindAll(), "city"))': "8",
    'Count(Or(FilterStr(FindAll(), "country code", "AR"), FilterStr(FindAll(), "country code",'
    ' "BO")))': "2",
    'QueryName(And(FilterNum(FilterConcept(FindAll(), "country"), "area", "12500 square kilometre",'
    ' "="), FilterDate(FindAll(), "date of independence", "1900-01-03", "=")))': "Arlen",
    'QueryName(FilterConcept(FilterYear(FindAll(), "inception", "1200", "="), "city"))': "Amber",
    'QueryName(FilterConcept(Relate(QFilterNum(Relate(Find("Borovia"), "shares border with",'
    ' "backward"), "length", "100 kilometre", "="), "capital", "forward"), "city"))': "Amber",
    'Count(QFilterYear(Relate(Find("Northern League"), "member of", "backward"), "start time",'
    ' "1962", "="))': "1",
    'Count(QFilterDate(Relate(Find("Anna Berg"), "head of state", "backward"), "start time",'
    ' "2001-01-09", "="))': "1",
    'Count(QFilterStr(Relate(Find("Anna Berg"), "head of state", "backward"), "title",'
    ' "president"))': "1",
    'QueryAttr(Find("Arlen"), "country code")': "AR",
    'QueryAttrUnderCondition(Find("Arlen"), "population", "point in time", "2010")': "1000003",
    'QueryRelation(Find("Arlen"), Find("Anna Berg"))': "head of state",
    'SelectAmong(FilterConcept(FindAll(), "country"), "area", "smallest")': "Arlen",
    'SelectBetween(Find("Arlen"), Find("Borovia"), "area", "greater")': "Borovia",
    'VerifyStr(QueryAttr(Find("Arlen"), "country code"), "AR")': "yes",
    'VerifyNum(QueryAttr(Find("Arlen"), "area"), "1 square kilometre", "<")': "no",
    'VerifyYear(QueryAttr(Find("Bright"), "inception"), "1237", "=")': "yes",
    'VerifyDate(QueryAttr(Find("Arlen"), "date of independence"), "1900-01-03", "!=")': "no",
    'QueryAttrQualifier(Find("Arlen"), "population", "1000003", "point in time")': "2010",
    'QueryRelationQualifier(Find("Arlen"), Find("Amber"), "capital", "start time")': "1905",
}


def item(program: str, number: int) -> dict[str, Any]:
    """An object as the present release has it."""
    query, _ = translate(read(program), "data")
    answer = PROGRAMS[program]
    return {
        "question": f"question {number}?",
        "choices": [answer, *(f"choice {n}" for n in range(9))],
        "program": to_json(read(program), published=True),
        "sparql": write(query),
        "answer": answer,
    }


@pytest.fixture(params=["A", "B"])
def published(request: pytest.FixtureRequest, lands: KnowledgeBase, tmp_path: Path) -> Path:
    """A folder as it is downloaded; with B, an earlier release with other names."""
    folder, spelling = tmp_path / "KQAPro", request.param
    of: Spelling = spelling
    folder.mkdir()
    write_kqapro(lands, folder / "kb.json", spelling=of)
    items = [item(program, number) for number, program in enumerate(PROGRAMS)]
    parts = {"train": items[:14], "val": items[14:], "test": items[:3]}
    for name, own in parts.items():
        if spelling == "B":
            rewritten = [{"rewrite": i["question"], "text": "machine's", **i} for i in own]
            own = [{k: v for k, v in i.items() if k != "question"} for i in rewritten]
        if name == "test":
            own = [{k: i[k] for k in ("question", "rewrite", "choices") if k in i} for i in own]
        (folder / f"{name}.json").write_text(json.dumps(own), "utf-8")
    return folder


def test_all_functions_are_in_them() -> None:
    used = {call.function.name for text in PROGRAMS for call in post_order(read(text))}
    assert used == set(FUNCTIONS)


def test_they_are_examples(published: Path) -> None:
    """Train and val are of one type; a test of questions alone is left out."""
    parts = {name: list(examples) for name, examples in open_parts(published).items()}
    assert {name: len(own) for name, own in parts.items()} == {"train": 14, "valid": 6}
    old = "rewrite" in json.loads((published / "train.json").read_text("utf-8"))[0]
    for number, (text, one) in enumerate(
        zip(PROGRAMS, parts["train"] + parts["valid"], strict=True)
    ):
        assert one.question == f"question {number}?"
        assert one.canonical == ("machine's" if old else None)
        assert one.program == read(text)
        assert one.answer == PROGRAMS[text] and one.answer in one.choices
        assert one.sparql and not one.extra


def test_all_of_them_agree(published: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every program is typed and run, every query read and run, every answer compared."""
    pytest.importorskip("pyoxigraph", reason="queries run on Oxigraph")
    arguments = ["data", "check", str(published), "--kb", str(published / "kb.json")]
    assert main([*arguments, "--engine", "oxigraph-memory"]) == 0
    assert capsys.readouterr().out == (
        "20 examples: 20 programs run, 20 queries read, 20 run, 20 answers compared\nall agree\n"
    )
    # One of them is altered.
    train = json.loads((published / "train.json").read_text("utf-8"))
    train[3]["answer"] = "Borovia"
    train[5]["program"][-1]["function"] = "Count"
    (published / "train.json").write_text(json.dumps(train), "utf-8")
    assert main(arguments) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("train.json, item 3: answer of the program: stored is 'Borovia'")
    assert out[1].startswith("train.json, item 5: answer of the program: stored is 'Amber'")
    assert out[-1] == "2 examples with problems"


def test_the_earliest_name(tmp_path: Path) -> None:
    """In the first files the question is called text."""
    first = item('Count(FilterConcept(FindAll(), "city"))', 0)
    first["text"] = first.pop("question")
    (tmp_path / "train.json").write_text(json.dumps([first]), "utf-8")
    (one,) = open_examples(tmp_path)
    assert one.question == "question 0?" and one.canonical is None and not one.extra
    # Where there is a question, a text is another tool's.
    both = Example.from_json({**first, "question": "q"})
    assert both.question == "q" and both.extra == {"text": "question 0?"}


def test_old_files_become_new_ones(published: Path, tmp_path: Path) -> None:
    convert(published, tmp_path / "new", "kqapro")
    found = json.loads((tmp_path / "new" / "train.json").read_text("utf-8"))
    assert [list(one) for one in found] == [
        ["question", "choices", "program", "sparql", "answer"]
    ] * 14
    assert found == [item(program, number) for number, program in enumerate(PROGRAMS)][:14]
