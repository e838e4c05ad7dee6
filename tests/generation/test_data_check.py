"""``kopl data check``: what is wrong with a question set is found, with its place."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from generation.blocks import generate
from generation.check import Checker
from generation.formats import examples_or_errors
from kb import KnowledgeBase, write_lines
from kopl.example import Example, write_examples
from kopl.executor import Executor
from kopl.sparql.ast import write
from kopl.sparql.from_kopl import translate
from kopl.text import read
from kopl_cli import main


def example(program: str, answer: str | None, query_of: str | None = None, id: str = "") -> Example:
    """An example whose query is that of another program, or of the same."""
    query, _ = translate(read(query_of or program))
    return Example("a question?", read(program), answer, id=id or None, sparql=write(query))


CAPITAL = 'QueryName(Relate(Find("{}"), "capital", "forward"))'
AMBER, BRIGHT = CAPITAL.format("Arlen"), CAPITAL.format("Borovia")
MEMBERS = 'QueryName(Relate(Find("Blue Circle"), "member of", "backward"))'

GOOD = [
    example(AMBER, "Amber"),
    example('Count(FilterConcept(FindAll(), "city"))', "8"),
    # The same quantity, written in another way.
    example('QueryAttr(Find("Arlen"), "area")', "12500.0 square kilometre"),
    example('VerifyNum(QueryAttr(Find("Arlen"), "area"), "1 square kilometre", ">")', "yes"),
    replace(example(AMBER, None), sparql=None),
]

# example, then kinds with and without running the queries
BAD: list[tuple[Example, list[str], list[str]]] = [
    (
        example(AMBER, "Bright"),
        ["answer of the program", "answer of the query"],
        ["answer of the program"],
    ),
    (
        example(AMBER, "Amber", BRIGHT),
        ["answer of the query", "program and query"],
        [],
    ),
    (
        example(AMBER, "Bright", BRIGHT),
        ["answer of the program", "program and query"],
        ["answer of the program"],
    ),
    (example(AMBER, None, BRIGHT), ["program and query"], []),
    # Several answers are not the stored one, though it is among them.
    (
        example(MEMBERS, "Borovia"),
        ["answer of the program", "answer of the query"],
        ["answer of the program"],
    ),
    (replace(GOOD[0], sparql="SELECT ?e WHERE { ?e <pred:name>"), ["query"], ["query"]),
    (replace(GOOD[0], sparql="SELECT ?e ?f WHERE { ?e <a> ?f . }"), ["query"], []),
    (replace(GOOD[0], program=read('Count(Find("a", "b"))')), ["program"], ["program"]),
    (
        replace(GOOD[0], program=read('Count(FilterNum(FindAll(), "area", "big", ">"))')),
        ["program"],
        ["program"],
    ),
]


@pytest.fixture(scope="module")
def engine(lands: KnowledgeBase) -> Any:
    pytest.importorskip("pyoxigraph", reason="queries run on Oxigraph")
    from kopl.sparql.engines import embedded
    from kopl.sparql.evaluate import SparqlExecutor

    executor = SparqlExecutor(embedded("oxigraph-memory", lands), kb=lands)
    yield executor
    executor.close()


def kinds(checker: Checker, one: Example) -> list[str]:
    return [problem.kind for problem in checker.check([("line 1", one)])]


@pytest.mark.parametrize("one", GOOD)
def test_what_agrees(one: Example, lands: KnowledgeBase, engine: Any) -> None:
    assert kinds(Checker(Executor(lands)), one) == []
    checker = Checker(Executor(lands), engine)
    assert kinds(checker, one) == []
    assert checker.summary.bad == 0


@pytest.mark.parametrize(("one", "run", "unrun"), BAD)
def test_what_does_not(
    one: Example, run: list[str], unrun: list[str], lands: KnowledgeBase, engine: Any
) -> None:
    assert kinds(Checker(Executor(lands)), one) == unrun
    assert kinds(Checker(Executor(lands), engine), one) == run


def test_generated_examples_agree(lands: KnowledgeBase, engine: Any) -> None:
    checker = Checker(Executor(lands), engine)
    made = ((f"item {n}", one) for n, one in enumerate(generate(lands, 40, 8)))
    assert [problem.message for problem in checker.check(made)] == []
    assert checker.summary.examples == checker.summary.answers == 40
    assert checker.summary.queries == checker.summary.queries_run


@pytest.fixture
def lands_file(lands: KnowledgeBase, tmp_path: Path) -> str:
    path = tmp_path / "lands.jsonl"
    write_lines(lands, path)
    return str(path)


def test_command(lands_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyoxigraph", reason="queries run on Oxigraph")
    source = tmp_path / "set.jsonl"
    write_examples(source, GOOD)
    arguments = ["data", "check", str(source), "--kb", lands_file]
    assert main([*arguments, "--engine", "oxigraph-memory"]) == 0
    assert capsys.readouterr().out == (
        "5 examples: 5 programs run, 4 queries read, 4 run, 4 answers compared\nall agree\n"
    )
    with source.open("a", encoding="utf-8") as file:
        file.write("oh\n{}\n")
        file.write(json.dumps(example(AMBER, "Bright", BRIGHT, id="x-1").to_json()) + "\n")
    assert main(arguments) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("line 6: not read: not JSON")
    assert lines[1] == "line 7: not read: not an example: there is no 'question'"
    assert lines[2] == (
        "line 8 (x-1): answer of the program: stored is 'Bright', the program gives 'Amber'"
    )
    assert lines[-3:] == ["  not read: 2", "  answer of the program: 1", "3 examples with problems"]
    assert main([*arguments, "--engine", "oxigraph-memory", "--json"]) == 1
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found[2] == {
        "kind": "answer of the program", "place": "line 8", "id": "x-1",
        "message": "stored is 'Bright', the program gives 'Amber'",
    }  # fmt: skip
    assert found[-1]["examples with problems"] == 3
    assert found[-1]["problems"] == {
        "not read": 2, "answer of the program": 1, "program and query": 1,
    }  # fmt: skip


def test_a_folder_and_a_missing_file(
    lands_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "parts"
    write_examples(folder / "train.jsonl", GOOD[:1])
    write_examples(folder / "test.jsonl", [example(AMBER, "Bright")])
    assert main(["data", "check", str(folder), "--kb", lands_file]) == 1
    out = capsys.readouterr().out
    assert out.startswith("test.jsonl, line 1: answer of the program")
    assert main(["data", "check", str(tmp_path / "no.jsonl"), "--kb", lands_file]) == 2
    assert "no.jsonl: there is no such file or folder" in capsys.readouterr().err


def test_published_examples_are_read(kopl_data: Path, lands: KnowledgeBase) -> None:
    """Programs are well-typed and queries read; the answers are of another knowledge base."""
    checker = Checker(Executor(lands))
    found = checker.check(examples_or_errors(kopl_data / "kqapro" / "gold_30.jsonl"))
    assert {problem.kind for problem in found} <= {"answer of the program"}
    assert checker.summary.programs == checker.summary.queries == 30
