"""Questions that a knowledge base does not answer."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from generation import generate
from generation.unanswerable import KINDS, Unanswerable, patterns
from kb import Builder, KnowledgeBase, KoplError, Year, load
from kopl.example import BareQuestion, Example, read_questions, write_examples
from kopl.text import read
from kopl_cli import main


@cache
def world() -> tuple[KnowledgeBase, list[Example]]:
    kb = load("world")
    from generation.blocks import Options

    return kb, list(generate(kb, 80, 3, options=Options(profile="people", sparql=False)))


@cache
def made() -> list[BareQuestion]:
    kb, examples = world()
    return list(Unanswerable(kb, 5).questions(examples, 250))


def test_every_kind_is_made_in_about_its_share() -> None:
    counts = Counter(one.outside for one in made())
    assert set(counts) == set(KINDS) and sum(counts.values()) == 250
    for kind, share in patterns().shares.items():
        assert abs(counts[kind] / 2.5 - share) < 12, counts


def test_the_same_seed_gives_the_same_questions() -> None:
    kb, examples = world()
    again = [one.question for one in Unanswerable(kb, 5).questions(examples, 250)]
    assert again == [one.question for one in made()]
    others = [one.question for one in Unanswerable(kb, 6).questions(examples, 50)]
    assert len({*others} & {*again}) < 10
    assert len({one.casefold() for one in again}) == len(again)


def test_an_invented_name_is_no_name_that_there_is() -> None:
    from random import Random

    kb, _ = world()
    maker, random = Unanswerable(kb), Random(2)
    norway = int(kb.named("Norway")[0])
    names = [name for _ in range(60) if (name := maker.invented(norway, random))]
    assert len(names) > 30
    for name in names:
        assert not len(kb.named(name)) and name != "Norway"


def test_no_pattern_says_what_is_no_list() -> None:
    lists = {"name", "first", "second", *patterns().lists}
    every = [one for group in patterns().patterns.values() for one in group]
    every += [one for group in patterns().lists.values() for one in group]
    assert {name for text in every for name in re.findall(r"<(\w+)>", text)} <= lists
    for one in made():
        assert "<" not in one.question and one.question.strip()


def test_what_is_near_to_what_there_is_is_asked_of_such_things_alone() -> None:
    kb, examples = world()
    every = list(Unanswerable(kb, 4, noise=0.0).questions(examples, 600))
    near = re.compile(r"(?i)when did .* die\?|.* married to\?")
    found = [one for one in every if near.match(one.question)]
    assert found and all(one.outside == "schema" for one in found)
    assert all("<name>" in text for group in patterns().near for text in group["questions"])
    # Where deaths are known, nobody is told that they are not.
    builder = Builder()
    builder.add_concept("person", "person")
    for number in range(9):
        builder.add_entity(f"p{number}", f"Anna Berg{'abcdefghi'[number]}", ["person"])
        builder.add_attribute(f"p{number}", "date of birth", Year(1800 + number))
        builder.add_attribute(f"p{number}", "date of death", Year(1870 + number))
    known = builder.build()
    program = read('QueryAttr(Find("Anna Berga"), "date of birth")')
    asked = [Example("When was Anna Berga born?", program, "1800")]
    texts = [one.question for one in Unanswerable(known, 1, noise=0.0).questions(asked, 150)]
    assert not [text for text in texts if re.search(r"\bdie\?", text)]
    assert [text for text in texts if re.match(r"Who (?:taught|did) Anna Berga", text)]


def test_a_false_premise_is_about_something_that_exists_and_finds_nothing() -> None:
    kb, examples = world()
    maker = Unanswerable(kb, 1, noise=0.0)
    plain = [one.question for one in maker.questions(examples, 200) if one.outside == "premise"]
    assert len(plain) > 20
    known = {one.question for one in examples}
    assert not known & set(plain)


def test_questions_that_name_nothing_give_none() -> None:
    kb, _ = world()
    with pytest.raises(KoplError, match="no question names an entity"):
        list(Unanswerable(kb).questions([], 3))


def test_a_question_keeps_why_it_has_no_answer() -> None:
    one = BareQuestion("Capital of Atlantis?", id="7", outside="entity")
    assert one.to_json() == {"id": "7", "question": "Capital of Atlantis?", "outside": "entity"}
    assert BareQuestion.from_json(one.to_json()) == one


# --- the command ---------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "asked.jsonl"
    given = [
        "generate",
        "--kb",
        "world",
        "--profile",
        "people",
        "-n",
        "40",
        "-s",
        "2",
        "--no-sparql",
        "-q",
    ]
    assert main([*given, "--unanswerable", "0.25", "-o", str(file)]) == 0
    asked = list(read_questions(file))
    outside = [one for one in asked if isinstance(one, BareQuestion)]
    assert len(asked) == 40 and len(outside) == 10 and asked[30:] == outside
    assert all(one.outside in KINDS for one in outside)
    capsys.readouterr()
    assert main([*given, "--unanswerable", "0.25", "-o", "-"]) == 0
    assert capsys.readouterr().out == file.read_text("utf-8")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--unanswerable", "1"], "some questions must have answers"),
        (["--unanswerable", "0.5", "--format", "csv"], "JSON lines only"),
        (["--unanswerable", "0.5", "--shard", "1/2"], "neither --shard nor"),
    ],
)
def test_what_the_command_refuses(
    given: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["generate", "--kb", "world", "-n", "10", "-o", str(tmp_path / "asked"), *given]) != 0
    )
    assert told in " ".join(capsys.readouterr().err.split())


def test_a_run_takes_them_from_its_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    from kopl_cli.calibration import questions_for_silence
    from kopl_cli.training_questions import OUTSIDE, make
    from parsers.settings import Settings

    kb, examples = world()
    write_examples(file := tmp_path / "data.jsonl", [*examples, *made()[:30]])
    (folder := tmp_path / "run").mkdir()
    make(kb, Settings(data=str(file)), folder)
    assert "without answers: 30 questions" in capsys.readouterr().out
    assert list(read_questions(folder / OUTSIDE)) == list(made()[:30])
    answerable, outside = questions_for_silence(folder, kb, 40, 1)
    assert len(answerable) == 8 and list(outside[:30]) == list(made()[:30]) and len(outside) == 40
    write_examples(file, [*examples, BareQuestion("What is it?")])
    with pytest.raises(KoplError, match=r"question 81: .*'outside' does not say why"):
        make(kb, Settings(data=str(file)), folder)
