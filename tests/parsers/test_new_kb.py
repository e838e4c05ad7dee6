"""A run on a knowledge base that it was not trained on: its schema goes by its names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kb import Builder, KnowledgeBase, write_snapshot
from kopl.example import Example, write_examples
from kopl.executor import Executor
from kopl.program import post_order
from kopl.text import read

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def other() -> KnowledgeBase:
    """Countries, in part the same, with keys that the small knowledge base does not have."""
    builder = Builder()
    builder.add_concept("country", "country")
    builder.add_concept("island", "island")
    for at, name in enumerate(("Norway", "Peru", "Laos", "Malta")):
        builder.add_entity(name, name, ["country" if name != "Malta" else "island"])
        builder.add_attribute(name, "postal code", f"{at}0{at}0")
        builder.add_attribute(name, "national motto", f"Onward {name}")
    builder.add_fact("Malta", "trades with", "Peru")
    return builder.build()


@pytest.fixture(scope="module")
def questions(other: KnowledgeBase) -> list[Example]:
    """Questions in the form of the small ones, for keys that these do not have."""
    executor = Executor(other)
    found = []
    for name in ("Norway", "Peru", "Laos", "Malta"):
        for key in ("postal code", "national motto"):
            tree = read(f'QueryAttr(Find("{name}"), "{key}")')
            found.append(Example(f"What is the {key} of {name}?", tree, executor.run(tree).answer))
    return found


def test_only_what_the_other_one_has_is_named(
    trained: Path, other: KnowledgeBase, questions: list[Example]
) -> None:
    from parsers.parser import Parser

    parser = Parser.load(trained, other, new_kb=True)
    assert parser.is_moved
    keys = {*other.attribute_keys, *other.qualifier_keys}
    for question in questions:
        [answer] = parser.ask(question.question, guided=False)
        assert answer.program is not None
        for call in post_order(answer.program):
            for (name, _), text in zip(call.function.arguments, call.arguments, strict=True):
                if name == "key":
                    assert text in keys
                elif name == "relation":
                    assert text == "trades with"
                elif name in ("name", "concept"):
                    assert len(other.named(text))


def test_weights_of_what_both_have_are_taken_over(trained: Path, other: KnowledgeBase) -> None:
    from parsers.checkpoint import restore, restore_anywhere

    old: Any = restore_anywhere(trained, other)
    new: Any = restore(trained, other, new_kb=True)
    tables = old.tables()["actions.weight"], new.tables()["actions.weight"]
    for text in ("function: Count", "concept: country", "<begin>"):
        rows = [
            model.network.actions.weight[table.index(text)]
            for model, table in zip((old, new), tables, strict=True)
        ]
        assert rows[0].equal(rows[1])
    own = new.network.actions.weight[tables[1].index("key: postal code")]
    assert not own.any()
    assert new.network.joined.weight.equal(old.network.joined.weight)


def test_a_run_on_its_own_knowledge_base_is_not_moved(trained: Path, small: KnowledgeBase) -> None:
    from parsers.parser import Parser

    assert not Parser.load(trained, small, new_kb=True).is_moved


def test_the_scripts_ask_for_the_option(
    trained: Path, other: KnowledgeBase, questions: list[Example], tmp_path: Path
) -> None:
    kb, data = tmp_path / "other.koplkb", tmp_path / "questions.jsonl"
    write_snapshot(other, kb)
    write_examples(data, questions)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120
        )

    score = ["eval.py", str(trained), "--data", str(data), "--kb", str(kb), "--json"]
    refused = run(*score)
    assert refused.returncode != 0 and "--new-kb" in refused.stderr
    done = run(*score, "--new-kb")
    assert done.returncode == 0, done.stderr
    [report] = json.loads(done.stdout)["runs"]
    assert report["questions"] == len(questions)
    assert "another knowledge base" in done.stdout
    asked = ["-m", "kopl", "ask", "--run", str(trained), "--kb", str(kb), questions[0].question]
    assert "--new-kb" in run(*asked).stderr
    assert "program: " in run(*asked, "--new-kb").stdout
    alone = run("eval.py", str(trained), "--new-kb")
    assert alone.returncode == 2 and "--kb" in alone.stderr
