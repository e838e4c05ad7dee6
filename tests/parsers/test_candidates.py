"""The names that a question may be about, and the grammar that is written for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kb import KnowledgeBase, load
from kopl.grammars import DEPTH, FORMS, grammar
from kopl_cli import grammar as command
from kopl_cli import main
from parsers.linking import Linker, candidates

TINY = str(Path(__file__).parents[1] / "data" / "tiny.json")


@pytest.fixture(scope="module")
def linker() -> Linker:
    return Linker(load("world"))


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("What is the capital of Norway?", "Norway"),
        ("what is the capital of norway", "Norway"),
        ("Who leads the USA?", "United States"),
        ("Which countries border Kazakstan?", "Kazakhstan"),
        ("How long is the Danube?", "Danube"),
        ("Is Georgia in the European Union?", "European Union"),
    ],
)
def test_names_that_a_question_says(linker: Linker, question: str, name: str) -> None:
    assert name in candidates(linker, question)


def test_few_names_in_a_fixed_order(linker: Linker) -> None:
    question = "Do Norway and Swedn share a border?"
    found = candidates(linker, question)
    assert found[0] == "Norway" and "Sweden" in found
    assert len(found) == len(set(found)) < 60
    assert candidates(linker, question, 3) == found[:3]
    assert candidates(linker, "?") == candidates(linker, "") == []


# --- kopl grammar ---------------------------------------------------------------------------------


def written(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["grammar", *arguments]) == 0
    return capsys.readouterr().out


def test_the_command_offers_what_there_is() -> None:
    assert (command.FORMS, command.DEPTH) == (FORMS, DEPTH)


@pytest.mark.parametrize("form", FORMS)
def test_whose_names_the_grammar_has(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, tiny: KnowledgeBase, form: str
) -> None:
    to = ("--to", form, "--kb", TINY)
    assert written(capsys, *to, "--all-names") == grammar(tiny, form)
    listed = tmp_path / "names"
    listed.write_text("Paris\n\nFrance\n", "utf-8")
    assert written(capsys, *to, "--names", str(listed)) == grammar(tiny, form, ["France", "Paris"])
    asked = written(capsys, *to, "--question", "What is the capital of France?", "--depth", "4")
    assert asked == grammar(tiny, form, candidates(Linker(tiny), "capital of France"), 4)
    assert "France" in asked and "LeBron" not in asked
    assert written(capsys, "--to", form) == grammar(None, form)
    output = tmp_path / "grammar"
    assert written(capsys, *to, "--all-names", "-o", str(output)) == ""
    assert output.read_text("utf-8") == grammar(tiny, form)


def test_a_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    schema = json.loads(written(capsys, "--to", "json-schema", "--kb", TINY, "--all-names"))
    assert schema["required"] == ["program"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kb", TINY], "say which names programs may find"),
        (["--question", "Where is Paris?"], "go with --kb"),
        (["--kb", TINY, "--names", "no such file"], "no such file"),
        (["--kb", TINY, "--names", __file__], "the knowledge base has no entity or concept"),
    ],
)
def test_wrong_usage(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    try:
        status = main(["grammar", "--to", "gbnf", *arguments])
    except SystemExit as stopped:
        status = stopped.code
    assert status == 2
    assert message in capsys.readouterr().err
