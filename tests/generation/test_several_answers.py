"""Questions with several answers, or with yes and no read from a count or a name."""

from __future__ import annotations

import csv
import json
import logging
from itertools import islice
from pathlib import Path

import pytest

from generation.blocks import Maker, Options
from generation.check import Checker
from generation.conversion import convert, write_kqapro
from generation.formats import open_examples
from generation.paraphrase.originals import originals
from generation.paraphrase.tasks import write_tasks
from generation.rules_file import read_grammar
from generation.splits import assign
from kb import KnowledgeBase, load
from kopl.answer_forms import Exists, Is, answer_of
from kopl.answers import same_answers
from kopl.example import Example, read_examples, write_examples
from kopl.executor import Executor
from kopl.text import read, write_nested
from kopl_base.errors import KoplError, ReadError
from parsers.evaluation.judging import judge
from parsers.languages import KoplLanguage, Prediction

LIST = Example(
    "which countries border Norway?",
    read('QueryName(Relate(Find("Norway"), "shares border with", "forward"))'),
    answers=("Finland", "Russia", "Sweden"),
    id="list",
)
YES = Example(
    "Is Oslo the capital of Norway?",
    read('Count(And(Relate(Find("Norway"), "capital", "forward"), Find("Oslo")))'),
    "yes",
    ("yes", "no"),
    id="yes",
    answer_form=Exists(),
)
NO = Example(
    "Is the Danube longer than the Amazon?",
    read('SelectBetween(Find("Danube"), Find("Amazon"), "length", "greater")'),
    "no",
    ("yes", "no"),
    id="no",
    answer_form=Is("Danube"),
)
PLAIN = Example(
    "capital of Norway?",
    read('QueryName(Relate(Find("Norway"), "capital", "forward"))'),
    "Oslo",
    id="plain",
)
ALL = [LIST, YES, NO, PLAIN]


def test_a_file_keeps_them(tmp_path: Path) -> None:
    write_examples(tmp_path / "a.jsonl", ALL)
    assert list(read_examples(tmp_path / "a.jsonl")) == ALL


@pytest.mark.parametrize("name", ["b.csv", "b.parquet"])
def test_tables_keep_them(tmp_path: Path, name: str) -> None:
    write_examples(tmp_path / "a.jsonl", ALL)
    convert(tmp_path / "a.jsonl", tmp_path / name)
    assert list(open_examples(tmp_path / name)) == ALL


def test_the_published_form_leaves_them_out_and_counts_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert write_kqapro(tmp_path / "val.json", ALL) == 1
    assert [item["question"] for item in json.loads((tmp_path / "val.json").read_text())] == [
        PLAIN.question
    ]
    assert "3 questions with several answers" in caplog.text


@pytest.mark.parametrize(
    ("field", "value"),
    [("answers", "Oslo"), ("answers", [1]), ("answer_form", "yes"), ("answer_form", {"is": 1})],
)
def test_a_malformed_field_is_named(tmp_path: Path, field: str, value: object) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({**YES.to_json(), field: value}))
    with pytest.raises(ReadError, match=r"line 1"):
        list(read_examples(tmp_path / "a.jsonl"))


def test_a_name_is_no_answer_form_of_a_count(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({**YES.to_json(), "answer_form": {"is": "1"}}))
    with pytest.raises(ReadError, match="names or values, not a number"):
        list(read_examples(tmp_path / "a.jsonl"))


def test_people_see_all_answers_of_a_task(tmp_path: Path) -> None:
    write_tasks(tmp_path / "tasks.csv", originals([LIST]))
    (task,) = csv.DictReader((tmp_path / "tasks.csv").open(encoding="utf-8-sig"))
    assert task["answer"] == "; ".join(LIST.answers)


def test_a_form_says_nothing_of_a_program_that_it_cannot_read() -> None:
    assert answer_of(["yes"], Exists(), read('VerifyStr(QueryAttr(Find("A"), "k"), "v")')) == [
        "yes"
    ]
    assert answer_of(["Oslo"], Exists(), PLAIN.program) == ["Oslo"]
    assert answer_of(["0"], Exists(), YES.program) == ["no"]


def test_checking_reads_them_as_the_example_says() -> None:
    checker = Checker(Executor(load("world")))
    assert [list(checker.faults(example)) for example in ALL] == [[], [], [], []]
    assert list(checker.faults(Example("?", LIST.program, answers=("Sweden",))))
    assert list(checker.faults(Example("?", YES.program, "no", answer_form=Exists())))


def test_an_evaluation_compares_them_as_the_example_says() -> None:
    language = KoplLanguage(load("world"))

    def verdict(example: Example, program: Example) -> str:
        prediction = Prediction(write_nested(program.program), -0.1, program.program)
        return judge(example, prediction, language).verdict

    assert [verdict(example, example) for example in ALL] == ["right"] * 4
    assert verdict(LIST, PLAIN) == "wrong answer"
    assert verdict(YES, PLAIN) == "wrong answer"
    assert verdict(NO, YES) == "wrong answer"


def test_answers_are_compared_in_any_order() -> None:
    assert same_answers(["a", "1 metre"], ["1.0 metre", "a"])
    assert not same_answers(["a", "a"], ["a", "b"])
    assert not same_answers(["a"], ["a", "a"])


def test_a_set_with_lists_is_split_by_its_answers() -> None:
    numbers = assign([LIST, YES, NO, PLAIN, LIST], 1, (1, 1, 1), "answers")
    assert len(numbers) == 5 and numbers[0] == numbers[4]


def test_a_profile_that_there_is_none_of_is_named() -> None:
    with pytest.raises(KoplError, match="the profiles are kqapro, people"):
        Maker(load("world"), options=Options(profile="peopel"))


def test_a_name_to_choose_is_claimed_of_two_things(lands: KnowledgeBase) -> None:
    """As often the one that is not chosen."""
    rules = """\
ROOT[Verify = is $answer] -> SelectBetween(X, X', $key, $op)
    | is it {answer} that has the {op} {key}, {X} or {X'}?
X -> Find($name)
    | {name}
"""
    maker = Maker(lands, grammar=read_grammar(rules), options=Options(sparql=False))
    made = list(islice(maker.block(1, 0), 20))
    assert {example.answer for example in made} == {"yes", "no"}
    for example in made:
        assert isinstance(example.answer_form, Is)
        given = {one.arguments[0] for one in example.program.inputs}
        assert example.answer_form.name in given
