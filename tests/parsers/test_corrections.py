"""Corrections of a run: their lines, the file, what is said, programs that give an answer."""

from __future__ import annotations

import json
import multiprocessing
import shutil
from pathlib import Path
from typing import Any

import pytest

from kb import Builder, KnowledgeBase
from kopl.answer_forms import Exists
from kopl.example import Example, write_examples
from kopl.executor import Executor
from kopl.text import read
from kopl_base.errors import ReadError
from kopl_cli import main
from parsers.answer_search import Search, same_or_alias
from parsers.corrections import (
    FILE,
    Correction,
    CorrectionError,
    Predicted,
    append,
    checkable,
    correct,
    learnable,
    newest,
    read_corrections,
    remove,
)
from parsers.linking import Linker
from parsers.parser import Parser

AREA = 'QueryAttr(Find("Norway"), "area")'
KILOMETRES = ("323802 square kilometre",)


def correction(question: str = "How big is Norway?", **others: Any) -> Correction:
    fields: dict[str, Any] = {
        "verdict": "corrected", "program": read(AREA), "answers": KILOMETRES,
        "predicted": Predicted('QueryAttr(Find("Norway"), "code")', ("NO",), None, 0.25),
        "author": "Ann", "time": "2026-11-22T19:08:45Z",
        "fingerprints": {"kb": "1f", "run": "2e"},
    }  # fmt: skip
    return Correction(question, **(fields | others))


def test_a_line_is_read_back_and_is_a_line_of_a_question_set(tmp_path: Path) -> None:
    asked = read('Count(FilterConcept(Find("Norway"), "country"))')
    several = [
        correction(),
        correction("Is it one?", program=asked, answers=("yes",), form=Exists()),
        correction("Which codes?", answers=("NO", "SE"), verdict="right", note="both"),
        correction("Hm?", verdict="unclear", program=None, answers=()),
        correction("Big?", verdict="wrong data", truth=("4 square kilometre",)),
    ]
    path = tmp_path / FILE
    for one in several:
        append(path, one)
    assert read_corrections(path) == several
    for line, one in zip(path.read_text("utf-8").splitlines(), several, strict=True):
        if one.program is not None:
            found = Example.from_json(json.loads(line))
            assert (found.program, found.answer_form) == (one.program, one.form)
            assert (found.answers or (found.answer,)) == one.answers


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"verdict": "wrong"}, "the verdict is 'wrong'"),
        ({"program": None}, "needs a program"),
        ({"verdict": "unclear"}, "has no program"),
    ],
)
def test_a_verdict_fits_its_program(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        correction(**changes)


def test_the_newest_of_a_question_wins(tmp_path: Path) -> None:
    path = tmp_path / FILE
    for answer, question in (("1", "How big?"), ("2", "Where?"), ("3", "How  big?")):
        append(path, correction(question, answers=(answer,)))
    assert [one.answers for one in newest(read_corrections(path))] == [("3",), ("2",)]
    assert len(list(checkable(path))) == 2


def test_what_was_said_is_taken_back_and_may_be_said_anew(tmp_path: Path) -> None:
    path = tmp_path / FILE
    append(path, correction("Where?"))
    append(path, correction("How big?"))
    append(path, correction("How  big?", answers=("2",)))
    id = correction("How big?").id
    assert remove(path, id, author="Bo").answers == ("2",)
    assert [one.question for one in newest(read_corrections(path))] == ["Where?"]
    assert [one.question for one in learnable(path)] == ["Where?"]
    assert [place for place, _ in checkable(path)] == ["line 1"]
    assert len(path.read_text("utf-8").splitlines()) == 4  # nothing is lost
    assert read_corrections(path)[-1].author == "Bo"
    for one in (id, "0123456789ab"):
        with pytest.raises(CorrectionError, match="no correction"):
            remove(path, one)
    append(path, correction("How big?", answers=("3",)))
    assert {one.question: one.answers for one in newest(read_corrections(path))} == {
        "Where?": KILOMETRES, "How big?": ("3",)
    }  # fmt: skip


def test_what_is_learnt_of_corrections(tmp_path: Path) -> None:
    from kopl_cli.training_questions import _parted

    path = tmp_path / FILE
    append(path, correction("Where?", answers=("1",)))
    append(path, correction("Hm?", verdict="unclear", program=None, answers=()))
    append(path, correction("Who?", verdict="not in the knowledge base", program=None, answers=()))
    append(path, correction("Where?", answers=("2",)))
    examples, outside = _parted(str(path))
    assert [(one.question, one.answer) for one in examples] == [("Where?", "2")]
    assert [(one.question, one.outside) for one in outside] == [("Who?", "schema")]


@pytest.mark.parametrize(
    ("left", "kept"),
    [
        (b'{"question": "How b', 1),  # a process was killed
        (json.dumps(correction("Where?").to_json()).encode(), 2),  # an editor left the end out
        (b"", 1),
    ],
)
def test_a_line_is_added_behind_whole_lines(tmp_path: Path, left: bytes, kept: int) -> None:
    path = tmp_path / FILE
    path.write_bytes(left)
    append(path, correction())
    assert len(read_corrections(path)) == kept
    assert path.read_bytes().endswith(b"\n")


def test_a_torn_line_that_is_taken_away_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / FILE
    append(path, correction())
    assert not caplog.messages
    with path.open("a") as file:
        file.write('{"question": "How b')
    append(path, correction("Where?"))
    [message] = caplog.messages
    assert str(path) in message and message.endswith('{"question": "How b')


def test_a_malformed_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / FILE
    append(path, correction())
    with path.open("a") as file:
        file.write('{"question": "Where?", "verdict": "right"}\n')
    with pytest.raises(ReadError, match=r"line 2: not a correction: the verdict 'right' needs"):
        read_corrections(path)
    places = [(place, isinstance(item, ReadError)) for place, item in checkable(path)]
    assert places == [("line 2", True), ("line 1", False)]


def _add(path: str, name: int) -> None:
    for number in range(40):
        append(Path(path), correction(f"question {name} {number} {'long ' * 2000}"))


def test_several_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / FILE
    context = multiprocessing.get_context("fork")
    several = [context.Process(target=_add, args=(str(path), name)) for name in range(4)]
    for one in several:
        one.start()
    for one in several:
        one.join()
    assert len(newest(read_corrections(path))) == 160


# --- programs for an answer ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def linker(small: KnowledgeBase) -> Linker:
    return Linker(small)


@pytest.mark.parametrize(
    ("question", "answers", "program"),
    [
        ("how much land does norway cover", KILOMETRES, AREA),
        ("Which town rules Mali?", ("Bamako",),
         'QueryName(Relate(Find("Mali"), "capital", "forward"))'),
        ("Of which country is Lima the main town?", ("Peru",),
         'QueryName(Relate(Find("Lima"), "capital", "backward"))'),
        ("Since when does Suva rule Fiji?", ("1970",),
         'QueryRelationQualifier(Find("Fiji"), Find("Suva"), "capital", "start time")'),
        ("How many of a country are there?", ("8",),
         'Count(FilterConcept(FindAll(), "country"))'),
        ("Is it Peru or Chad that is larger?", ("Peru",),
         'SelectBetween(Find("Peru"), Find("Chad"), "area", "greater")'),
        ("Which country is widest?", ("Peru",),
         'SelectAmong(FilterConcept(FindAll(), "country"), "area", "largest")'),
        ("the area of where Oslo governs", KILOMETRES,
         'QueryAttr(Relate(Find("Oslo"), "capital", "backward"), "area")'),
    ],
)  # fmt: skip
def test_programs_are_found_for_an_answer(
    question: str, answers: tuple[str, ...], program: str, small: KnowledgeBase, linker: Linker
) -> None:
    executor = Executor(small)
    search = Search(question, linker, executor)
    found = search.giving(answers)
    assert search.ended
    assert read(program) in [one.program for one in found]
    assert all(tuple(executor.run(one.program).denotation) == answers for one in found)
    assert [one.order for one in found] == sorted(one.order for one in found)


def test_yes_and_no_are_found_by_answer_forms(small: KnowledgeBase, linker: Linker) -> None:
    executor = Executor(small)
    capital = 'Count(And(Relate(Find("Norway"), "capital", "forward"), Find("Oslo")))'
    found = Search("Is Oslo where Norway is ruled from?", linker, executor).giving(["yes"])
    assert (read(capital), Exists()) in [(one.program, one.form) for one in found]
    found = Search("Is Lima where Norway is ruled from?", linker, executor).giving(["no"])
    assert read(capital.replace("Oslo", "Lima")) in [one.program for one in found]


def test_a_search_is_bounded(small: KnowledgeBase, linker: Linker) -> None:
    search = Search("How large is Norway?", linker, Executor(small))
    assert search.giving(["Oslo"], tried=1, seconds=60) == []
    assert (search.tried, search.ended) == (1, False)
    assert len(search.giving(KILOMETRES, most=1)) == 1
    assert search.ended
    nowhere = Search("How large is it?", linker, Executor(small))
    assert nowhere.names == [] and nowhere.giving(KILOMETRES) == []


def test_an_answer_may_be_an_alias() -> None:
    builder = Builder()
    builder.add_concept("country", "country")
    builder.add_concept("city", "city")
    builder.add_entity("nl", "The Netherlands", ["country"], aliases=["Netherlands", "Holland"])
    builder.add_entity("a", "Amsterdam", ["city"])
    builder.add_fact("nl", "capital", "a")
    kb = builder.build()
    search = Search("Which country is ruled from Amsterdam?", Linker(kb), Executor(kb))
    back = read('QueryName(Relate(Find("Amsterdam"), "capital", "backward"))')
    for answer in ("Netherlands", "Holland", "The Netherlands"):
        assert back in [one.program for one in search.giving([answer])]
    assert not search.giving(["Nether"])
    given = ["Amsterdam", "The Netherlands"]
    assert same_or_alias(kb, ["Holland", "Amsterdam"], given)
    assert not same_or_alias(kb, ["Holland", "Netherlands"], given)
    assert not same_or_alias(kb, ["Holland"], given)


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def run(trained: Path, tmp_path: Path, small_examples: list[Example]) -> Path:
    folder = tmp_path / "run"
    shutil.copytree(trained, folder)
    for part, some in (("train", small_examples), ("valid", small_examples[:12])):
        write_examples(folder / f"{part}.jsonl", some)
    write_examples(folder / "test.jsonl", small_examples[12:24])
    return folder


def kept(run: Path) -> list[Correction]:
    return read_corrections(run / FILE)


def test_a_program_is_right_or_corrects(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question = "What is the area of Norway?"
    assert main(["correct", "--run", str(run), question, AREA, "--author", "Ann"]) == 0
    assert main(["correct", "--run", str(run), question, 'QueryAttr(Find("Norway"), code)']) == 0
    first, second = kept(run)
    assert (first.verdict, first.answers, first.author) == ("right", KILOMETRES, "Ann")
    assert (second.verdict, second.answers) == ("corrected", ("NO",))
    assert second.predicted is not None and second.predicted.answers == KILOMETRES
    assert len(first.fingerprints["run"]) == 64 and first.time.endswith("Z")
    assert "kopl learn" in capsys.readouterr().out


def test_a_program_may_stand_behind_the_options(run: Path) -> None:
    question = "What is the area of Norway?"
    assert main(["correct", "--run", str(run), question, "--author", "Ann", AREA]) == 0
    assert main(["correct", question, "--run", str(run), AREA, "--note", "n"]) == 0
    assert [(one.program, one.note) for one in kept(run)] == [(read(AREA), ""), (read(AREA), "n")]


def test_an_answer_offers_programs(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["correct", "--run", str(run), "how much land does norway cover"]
    asked += ["--answer", KILOMETRES[0]]
    assert main(asked) == 1
    assert not kept(run)
    said = capsys.readouterr()
    assert AREA in said.out and "--choose" in said.err
    assert main([*asked, "--choose", "1"]) == 0
    assert kept(run)[0].program == read(AREA)
    assert main([*asked, "--choose", "99"]) == 2
    assert main([*asked[:-1], "seven"]) == 1
    assert "no program was found" in capsys.readouterr().err


def test_what_has_no_program(run: Path) -> None:
    for verdict in ("unclear", "not-in-kb"):
        assert main(["correct", "--run", str(run), "Who am I?", "--verdict", verdict]) == 0
    assert [one.verdict for one in kept(run)] == ["unclear", "not in the knowledge base"]
    assert [one.verdict for one in newest(kept(run))] == ["not in the knowledge base"]


def test_a_verdict_is_taken_back(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["correct", "--run", str(run), "Who am I?"]
    assert main([*asked, "--verdict", "unclear"]) == 0
    assert main([*asked, "--remove"]) == 0
    assert "taken back" in capsys.readouterr().out
    assert newest(kept(run)) == []
    assert main([*asked, "--remove"]) == 2
    assert main([*asked, AREA, "--remove"]) == 2
    assert "give the QUESTION alone" in capsys.readouterr().err


def test_wrong_data(run: Path) -> None:
    asked = ["correct", "--run", str(run), "What is the area of Norway?"]
    assert main([*asked, "--verdict", "wrong-data", "--answer", "385207 square kilometre"]) == 0
    [one] = kept(run)
    assert (one.program, one.truth) == (read(AREA), ("385207 square kilometre",))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "give the PROGRAM"),
        ([AREA, "--answer", "7"], "the program gives 323802"),
        ([AREA, "--choose", "1"], "--choose takes one"),
        (["--verdict", "right", "--answer", "7"], "leave out --answer"),
        ([AREA, "--verdict", "unclear"], "has no program"),
        ([AREA, "--answer-form", "exists"], "needs a program that ends in Count"),
        ([AREA, "--answer-form", "perhaps"], "exists or is=NAME"),
        (["Fnd()"], "Fnd"),
        (["--answer", " "], "an --answer is empty"),
        (["--verdict", "unclear", AREA], "has no program"),
        (
            ['QueryAttr(Find("Norwy"), "area")'],
            "call 0: the knowledge base has no entity or concept 'Norwy'; did you mean 'Norway'",
        ),
        (
            ['QueryAttr(Find("Norway"), "aera")'],
            "call 1: the knowledge base has no key 'aera'; did you mean 'area'",
        ),
        (
            ['QueryName(Relate(Find("Norway"), "capitl", "forward"))'],
            "call 1: the knowledge base has no relation 'capitl'; did you mean 'capital'",
        ),
        (
            ['Count(FilterConcept(FindAll(), "contry"))', "--verdict", "corrected"],
            "call 1: the knowledge base has no concept 'contry'; did you mean 'country'",
        ),
        (
            ['QueryName(Relate(Find("Norway"), "capital", "forward"))', "--answer-form", "is=Olso"],
            "answer form: the knowledge base has no entity or concept 'Olso'",
        ),
    ],
)
def test_what_contradicts_itself(
    more: list[str], message: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["correct", "--run", str(run), "What is the area of Norway?", *more]) == 2
    assert message in capsys.readouterr().err
    assert not kept(run)


def test_a_program_that_names_what_there_is_not_is_refused(run: Path) -> None:
    parser = Parser.load(run)
    with pytest.raises(CorrectionError, match="no relation 'capitl'"):
        correct(parser, "Norway?", 'QueryName(Relate(Find("Norway"), "capitl", "forward"))')
    assert not kept(run)


def test_data_check_reads_corrections(
    run: Path, small: KnowledgeBase, capsys: pytest.CaptureFixture[str]
) -> None:
    kb = json.loads((run / "parser.json").read_text("utf-8"))["kb"]
    path = run / FILE
    append(path, correction(answers=("7 square kilometre",)))
    append(path, correction("Who am I?", verdict="unclear", program=None, answers=()))
    assert main(["data", "check", str(path), "--kb", kb]) == 1
    assert "stored is '7 square kilometre'" in capsys.readouterr().out
    append(path, correction())
    with path.open("a") as file:
        file.write('{"question": "How b')
    assert main(["data", "check", str(path), "--kb", kb]) == 1
    assert "line 4: not read: not JSON" in capsys.readouterr().out
    append(path, correction())
    assert main(["data", "check", str(path), "--kb", kb]) == 0
    assert "1 example: 1 program run" in capsys.readouterr().out
