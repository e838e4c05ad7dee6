"""Paraphrases by people: task files, what comes back in them, the filters, the command."""

from __future__ import annotations

import base64
import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generation.paraphrase.filters import Candidate, Filters, Rejected, Report, example_of, sift
from generation.paraphrase.originals import Original, originals
from generation.paraphrase.responses import Responses, Vote, read_responses
from generation.paraphrase.tasks import JUDGING, WRITING
from generation.splits import WAYS, split
from kopl.diagram import chart
from kopl.example import Example, read_examples, write_examples
from kopl.text import read
from kopl_base.errors import KoplError
from kopl_cli import main

QUESTIONS = [
    Example(
        "Which country has Oslo for a capital?",
        read('QueryName(Relate(Find("Oslo"), "capital", "backward"))'),
        answer="Norway", choices=("Norway", "Chad"), id="5-1-10", type="QueryName",
        sparql="SELECT 1", canonical="What is the country whose capital is Oslo?",
        extra={"hops": 1},
    ),
    Example(
        "How many countries have more than 300,000 square kilometres?",
        read('Count(FilterNum(FindAll(), "area", "300000 square kilometre", ">"))'),
        answer="-5", id="5-1-11",
    ),
    Example("=1+1?", read('QueryAttr(Find("=1+1"), "sum")'), id="5-1-12"),
    Example("Who leads Chad?", read('QueryName(Relate(Find("Chad"), "head", "forward"))')),
]  # fmt: skip


@pytest.fixture
def questions(tmp_path: Path) -> str:
    path = tmp_path / "questions.jsonl"
    write_examples(path, QUESTIONS)
    return str(path)


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill(path: Path, to: Path, rows: dict[int, dict[str, str]], separator: str = ",") -> str:
    """A task table as a person saves it: some rows filled in, separators and marks as wanted."""
    old = table(path)
    with to.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, list(old[0]), delimiter=separator, lineterminator="\r\n")
        out.writeheader()
        out.writerows(row | rows.get(number, {}) for number, row in enumerate(old))
    return str(to)


# --- tasks --------------------------------------------------------------------------------------


def test_a_table_of_tasks(questions: str, tmp_path: Path) -> None:
    out = tmp_path / "out" / "tasks.csv"
    arguments = ["paraphrase", "export", questions, "-o", str(out)]
    assert main([*arguments, "--pictures", str(tmp_path / "out" / "charts")]) == 0
    rows = table(out)
    assert list(rows[0]) == list(WRITING)
    assert [row["task"] for row in rows[:3]] == ["id 5-1-10", "id 5-1-11", "id 5-1-12"]
    assert rows[0]["canonical"] == QUESTIONS[0].canonical
    assert rows[0]["question"] == QUESTIONS[0].question
    assert rows[1]["canonical"] == rows[1]["question"] == QUESTIONS[1].question
    assert [row["keep"] for row in rows] == ["Oslo", "300,000 square kilometres", "'=1+1", "Chad"]
    # What spreadsheets would take for a formula is text; a number is none.
    assert rows[2]["question"] == "'=1+1?" and rows[1]["answer"] == "-5"
    assert all(row["paraphrase"] == row["confusing"] == row["annotator"] == "" for row in rows)
    for row, example in zip(rows, QUESTIONS, strict=True):
        assert read(row["program"]) == example.program
        picture = (out.parent / row["chart"]).read_text("utf-8")
        assert picture == chart(example.program)


def test_tasks_for_label_studio(questions: str, tmp_path: Path) -> None:
    out = tmp_path / "tasks.json"
    assert main(["paraphrase", "export", questions, "-o", str(out)]) == 0
    tasks = json.loads(out.read_text("utf-8"))
    assert [set(task) for task in tasks] == [{"data"}] * 4
    for task, example in zip(tasks, QUESTIONS, strict=True):
        kind, _, picture = task["data"]["chart"].partition(",")
        assert kind == "data:image/svg+xml;base64"
        assert base64.b64decode(picture).decode() == chart(example.program)
    config = ElementTree.parse(tmp_path / "tasks.xml").getroot()
    check_config(config, tasks[0]["data"])


def check_config(config: ElementTree.Element, data: dict[str, Any]) -> None:
    """Every control is of an object, and every object shows a field of the tasks."""
    objects = {tag.attrib["name"]: tag for tag in config if "value" in tag.attrib and "name" in
               tag.attrib}  # fmt: skip
    for tag in objects.values():
        assert data[tag.attrib["value"].removeprefix("$")]
    controls = [tag for tag in config if "toName" in tag.attrib]
    assert len(controls) == 2
    assert all(tag.attrib["toName"] in objects for tag in controls)


def test_no_questions(tmp_path: Path) -> None:
    empty = tmp_path / "none.jsonl"
    empty.write_text("", "utf-8")
    for name in ("tasks.csv", "tasks.json"):
        assert main(["paraphrase", "export", str(empty), "-o", str(tmp_path / name)]) == 0
    assert json.loads((tmp_path / "tasks.json").read_text("utf-8")) == []
    assert table(tmp_path / "tasks.csv") == []


def test_ids() -> None:
    made = [one.id for one in originals(QUESTIONS)]
    assert made[:3] == ["5-1-10", "5-1-11", "5-1-12"] and made[3].startswith("q-")
    assert [one.id for one in originals(reversed(QUESTIONS))] == made[::-1]
    assert [one.id for one in originals([*QUESTIONS, *QUESTIONS])] == made
    with pytest.raises(KoplError, match="two questions have the id '5-1-10'"):
        list(originals([QUESTIONS[0], Example("x?", QUESTIONS[1].program, id="5-1-10")]))


# --- the whole way ------------------------------------------------------------------------------


def test_from_tasks_to_questions_by_tables(
    questions: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks, judging, out = tmp_path / "t.csv", tmp_path / "j.csv", tmp_path / "out.jsonl"
    loose = ["--names", "warn", "--meaning", "ignore"]
    main(["paraphrase", "export", questions, "-o", str(tasks)])
    first = fill(tasks, tmp_path / "anna.csv", {
        0: {"paraphrase": "Of  which land is Oslo\nthe capital?"},
        1: {"paraphrase": "What is the number of countries larger than 300,000 km²?"},
        2: {"confusing": "x"},
    })  # fmt: skip
    second = fill(tasks, tmp_path / "some.csv", {
        0: {"paraphrase": "Oslo is the seat of government of what?", "annotator": "bert"},
        2: {"paraphrase": "What do you get for =1+1 then?", "annotator": "bert"},
        3: {"paraphrase": "Who is at the head of Tchad?", "annotator": "bert"},
    }, separator=";")  # fmt: skip
    capsys.readouterr()
    assert main(["paraphrase", "export", questions, "-o", str(judging),
                 "--judge", first, second, *loose]) == 0  # fmt: skip
    assert "kept 4 of 5 paraphrases" in capsys.readouterr().err
    rows = table(judging)
    assert list(rows[0]) == list(JUDGING)
    assert [row["worker"] for row in rows] == ["anna", "bert", "anna", "bert"]
    assert rows[0]["paraphrase"] == "Of which land is Oslo the capital?"
    votes = []
    for number, judge in enumerate(["anna", "cora", "dirk", "emil", "fred", "gina"]):
        answers = {0: ("yes", "5"), 1: ("no" if number > 2 else "yes", "4"), 2: ("Yes", "2"),
                   3: ("y", "3,5")}  # fmt: skip
        filled = {at: {"same": s, "fluency": f, "judge": judge} for at, (s, f) in answers.items()}
        votes.append(fill(judging, tmp_path / f"{judge}-votes.csv", filled))
    rejected = tmp_path / "rejected.jsonl"
    assert main(["paraphrase", "import", questions, first, second, *votes, "-o", str(out), *loose,
                 "--rejected", str(rejected)]) == 0  # fmt: skip
    told = capsys.readouterr().err
    assert "kept 2 of 5 paraphrases, of 2 questions" in told
    assert "1 question left out as confusing; 1 kept without all names" in told
    left = [json.loads(line) for line in rejected.read_text("utf-8").splitlines()]
    assert [(one["reason"], one["annotator"]) for one in left] == [
        ("another meaning", "bert"), ("not fluent", "anna"), ("a confusing question", "bert"),
    ]  # fmt: skip
    kept = list(read_examples(out))
    assert [one.question for one in kept] == [
        "Of which land is Oslo the capital?", "Who is at the head of Tchad?"
    ]  # fmt: skip
    one = kept[0]
    # anna's vote on her own paraphrase does not count.
    assert one.extra == {
        "hops": 1,
        "paraphrase": {"annotator": "anna", "votes": 5, "different": 0, "fluency": 5.0},
    }
    assert one.id == "5-1-10" and one.canonical == QUESTIONS[0].canonical
    assert (one.program, one.answer, one.choices, one.sparql, one.type) == (
        QUESTIONS[0].program, "Norway", ("Norway", "Chad"), "SELECT 1", "QueryName",
    )  # fmt: skip
    assert kept[1].canonical == "Who leads Chad?"
    assert kept[1].extra["paraphrase"]["missing"] == ["Chad"]
    assert main(["paraphrase", "import", questions, first, second, *votes, "-o", str(out), *loose,
                 "--names", "reject"]) == 0  # fmt: skip
    assert "a name or value is missing 1" in capsys.readouterr().err
    # The votes alone say what was written, too.
    assert main(["paraphrase", "import", questions, *votes, "-o", str(out), *loose]) == 0
    assert [one.question for one in read_examples(out)] == [one.question for one in kept]


def annotation(person: object, **given: object) -> dict[str, Any]:
    """As Label Studio exports one."""
    kinds = {"paraphrase": "textarea", "fluency": "rating"}
    inner = {"textarea": "text", "choices": "choices", "rating": "rating"}
    result = []
    for name, value in given.items():
        kind = kinds.get(name, "choices")
        content = value if kind == "rating" else [value]
        result.append({"id": "x1", "from_name": name, "to_name": "canonical", "type": kind,
                       "origin": "manual", "value": {inner[kind]: content}})  # fmt: skip
    return {"id": 9, "completed_by": person, "result": result, "was_cancelled": False,
            "ground_truth": False, "lead_time": 4.2}  # fmt: skip


def annotated(path: Path, annotations: dict[int, list[dict[str, Any]]]) -> str:
    """The export of Label Studio for a task file."""
    tasks = json.loads(path.read_text("utf-8"))
    for number, task in enumerate(tasks):
        task |= {"id": number + 700, "annotations": annotations.get(number, []), "drafts": [],
                 "predictions": [], "project": 1}  # fmt: skip
    out = path.with_name(f"export-{path.name}")
    out.write_text(json.dumps(tasks), "utf-8")
    return str(out)


def test_from_tasks_to_questions_by_label_studio(
    questions: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks, judging, out = tmp_path / "t.json", tmp_path / "j.json", tmp_path / "out.jsonl"
    main(["paraphrase", "export", questions, "-o", str(tasks)])
    text = "Of which land is Oslo the capital?"
    cancelled = annotation(5) | {"was_cancelled": True}
    written = annotated(tasks, {
        0: [annotation(3, paraphrase=text), annotation(4, paraphrase=text.lower()), cancelled,
            annotation({"id": 6, "email": "f@x"}, paraphrase="Oslo heads?")],
        1: [annotation(3, confusing="confusing")],
    })  # fmt: skip
    assert main(["paraphrase", "export", questions, "-o", str(judging), "--judge", written,
                 "--meaning", "ignore"]) == 0  # fmt: skip
    assert "kept 2 of 3 paraphrases, of 1 question (twice 1)" in capsys.readouterr().err
    made = json.loads(judging.read_text("utf-8"))
    assert [task["data"]["worker"] for task in made] == ["3", "f@x"]
    check_config(ElementTree.parse(tmp_path / "j.xml").getroot(), made[0]["data"])
    votes = annotated(judging, {
        0: [annotation(n, same="yes", fluency=4 + n % 2) for n in range(10, 15)],
        1: [annotation(n, same="no" if n < 13 else "yes", fluency=5) for n in range(10, 15)],
    })  # fmt: skip
    assert main(["paraphrase", "import", questions, written, votes, "-o", str(out),
                 "--meaning", "ignore"]) == 0  # fmt: skip
    told = capsys.readouterr().err
    assert "twice 1" in told and "another meaning 1" in told and "1 task skipped" in told
    (example,) = read_examples(out)
    assert example.question == text
    assert example.extra["paraphrase"] == {
        "annotator": "3", "votes": 5, "different": 0, "fluency": 4.4
    }  # fmt: skip


# --- what cannot be read ------------------------------------------------------------------------

HEAD = "task,canonical,paraphrase,worker,same,fluency,judge\n"
ONE = {"question_id": "5-1-10", "canonical": "c", "paraphrase": "p", "worker": "w"}

MALFORMED: list[tuple[str, str | Callable[[], object], str]] = [
    ("a.csv", "", 'line 1: a table of paraphrases has a column "task"'),
    ("a.csv", "question,paraphrase\n", 'line 1: a table of paraphrases has a column "task"'),
    ("a.csv", "task,paraphrase,same\n", 'line 1: a table of paraphrases has a column "task"'),
    ("a.csv", 'task,paraphrase\nid 1,"a', "not CSV"),
    ("a.csv", "task,paraphrase\nid 1,a,b\n", "line 2: the row has more cells"),
    ("a.csv", "task,paraphrase\n,a\n", 'line 2: the cell "task" is empty'),
    ("a.csv", "task,paraphrase,confusing\nid 1,a,maybe\n", "\"confusing\" is yes or no, not 'may"),
    ("a.csv", HEAD + "id 1,c,p,w,yes,6,j\n",
     "line 2: \"fluency\" is a number from 1 to 5, not '6'"),
    ("a.csv", HEAD + "id 1,c,p,w,yes,good,j\n", "\"fluency\" is a number from 1 to 5, not 'good'"),
    ("a.csv", HEAD + "id 1,c,p,w,yes,nan,j\n", "\"fluency\" is a number from 1 to 5, not 'nan'"),
    ("a.csv", HEAD + "id 1,c,p,w,,4,j\n", 'a judged row needs "paraphrase", "same" and "fluency"'),
    ("a.csv", HEAD + "id 1,c,p,w,perhaps,4,j\n", "\"same\" is yes or no, not 'perhaps'"),
    ("a.txt", "", "paraphrases are read from .csv (a table) and .json"),
    ("a.json", "[1]", "item 0: not a task of Label Studio: export as JSON, not as JSON-MIN"),
    ("a.json", '[{"id": 1, "canonical": "c"}]', "export as JSON, not as JSON-MIN"),
    ("a.json", '[{"data": {}}]', 'the task has no "question_id"'),
    ("a.json", lambda: [{"data": ONE}], 'no list "annotations": export as JSON'),
    ("a.json", lambda: [{"data": ONE, "annotations": [1]}], "an annotation must be an object"),
    ("a.json", lambda: [{"data": ONE, "annotations": [{}]}], 'an annotation has no list "result"'),
    ("a.json", lambda: [{"data": ONE, "annotations": [{"result": [{}]}]}],
     "a result needs a value"),
    ("a.json", lambda: [{"data": ONE, "annotations": [annotation(1, same="yes")]}],
     'an annotation needs both "same" and "fluency"'),
    ("a.json", lambda: [{"data": ONE, "annotations": [annotation(1, same="yes", fluency="4")]}],
     "a result of 'fluency' is '4'"),
    ("a.json", lambda: [{"data": ONE, "annotations": [annotation(1, same="yes", fluency=9)]}],
     '"fluency" is a number from 1 to 5, not 9'),
    ("a.json", lambda: [{"data": ONE, "annotations": [annotation(1, paraphrase=5)]}],
     "a result of 'paraphrase' is [5]"),
    ("a.json", lambda: [{"data": {"question_id": "1"}, "annotations":
     [annotation(1, same="yes", fluency=4)]}], 'a judged task needs "paraphrase" and "worker"'),
    ("a.json", "[", "the file ends too early"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), MALFORMED)
def test_malformed(
    name: str, content: str | Callable[[], object], message: str, questions: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path, out = tmp_path / name, tmp_path / "out.jsonl"
    path.write_text(content if isinstance(content, str) else json.dumps(content()), "utf-8")
    assert main(["paraphrase", "import", questions, str(path), "-o", str(out)]) == 2
    told = capsys.readouterr().err
    assert message in told and str(path) in told
    assert not out.exists()


def test_responses_about_other_questions(
    questions: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "anna.csv", tmp_path / "out.jsonl"
    arguments = ["paraphrase", "import", questions, str(path), "-o", str(out), "--judges", "0",
                 "--meaning", "ignore"]  # fmt: skip
    path.write_text("task,paraphrase\nid nine,Where is that?\n", "utf-8")
    assert main(arguments) == 2
    assert "the responses are about others: nine" in capsys.readouterr().err
    path.write_text("task,paraphrase\nnine,What?\n5-1-10,Oslo heads which land?\n", "utf-8")
    assert main(arguments) == 0
    assert "1 question not in the set, but paraphrased: nine" in capsys.readouterr().err
    capsys.readouterr()
    assert [example.id for example in read_examples(out)] == ["5-1-10"]
    path.write_text("task,canonical,paraphrase\nid 5-1-10,Who is Oslo?,Oslo is who?\n", "utf-8")
    assert main(arguments) == 2
    assert "was another one when it was paraphrased: 'Who is Oslo?'" in capsys.readouterr().err


def test_nothing_was_judged(
    questions: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "anna.csv", tmp_path / "out.jsonl"
    path.write_text("task,paraphrase\n5-1-10,Oslo heads which land?\n5-1-11,\n", "utf-8")
    assert main(["paraphrase", "import", questions, str(path), "-o", str(out),
                 "--meaning", "ignore"]) == 0  # fmt: skip
    told = capsys.readouterr().err
    assert "kept 0 of 1 paraphrase" in told and "--judges N asks for fewer votes" in told
    assert "1 task skipped or left empty" in told


def test_two_tables_of_one_name_are_two_people(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "votes.csv").write_text(HEAD + "id 1,c,p,w,yes,4,\n", "utf-8")
    paths = [tmp_path / folder / "votes.csv" for folder in ("a", "b")]
    found = read_responses(paths)
    assert sorted(found.votes["1", "p"]) == sorted(map(str, paths))
    assert sorted(read_responses(paths[:1]).votes["1", "p"]) == ["votes"]


@pytest.mark.parametrize(
    "start", ["", "\ufeff", "sep=;\n", "\ufeffsep=;\r\n"], ids=["plain", "mark", "sep", "both"]
)
def test_tables_of_spreadsheets(start: str, tmp_path: Path) -> None:
    path = tmp_path / "anna.csv"
    path.write_bytes(f'{start}task;paraphrase\r\nid 1;"a;\r\nb"\r\n;\r\nid 2\r\n'.encode())
    found = read_responses([path])
    assert [(one.id, one.text, one.worker) for one in found.paraphrases.values()] == [
        ("1", "a; b", "anna")
    ]
    assert found.skipped == 1


# --- filters ------------------------------------------------------------------------------------

OSLO = Original("5-1-10", QUESTIONS[0])


def sifted(
    texts: list[str], filters: Filters, votes: tuple[Vote, ...] = ()
) -> tuple[list[Example], list[Rejected], Report]:
    report, rejected = Report(), list[Rejected]()
    candidates = [Candidate(text, {}, votes) for text in texts]
    passed = [example_of(OSLO, p) for p in sift(OSLO, candidates, filters, report, rejected.append)]
    assert report.given == len(texts) == report.kept + report.reasons.total() + report.review
    assert report.kept == len(passed) and report.kept + len(rejected) == len(texts)
    assert report.review == sum(one.review for one in rejected)
    return passed, rejected, report


def test_reasons() -> None:
    texts = [
        "", " \n", "What is the country whose capital is OSLO ?", "Whose capital is it?",
        "which country has Oslo for a capital", "Of which land is Oslo the capital?",
        "Of which land is “Oslo” the capital?", "of  which land is oslo the capital?",
    ]  # fmt: skip
    strict = Filters(judges=0, names="reject")
    passed, rejected, _ = sifted(texts, strict)
    near, lost = "too near to the question", "a name or value is missing"
    assert [one.reason for one in rejected] == ["empty", "empty", near, lost, near, "twice"]
    assert rejected[3].missing == ("Oslo",)
    assert [one.question for one in passed] == [texts[5], texts[6]]
    assert passed[0].id == "5-1-10" and passed[1].id is not None
    assert passed[1].id.startswith("5-1-10#")
    passed, rejected, report = sifted(["Whose capital is it?"], Filters(judges=0))
    assert not passed and report.doubts == {lost: 1} and rejected[0].missing == ("Oslo",)
    passed, _, report = sifted(["Whose capital is it?"], Filters(judges=0, names="warn"))
    assert passed[0].extra["paraphrase"] == {"missing": ["Oslo"]} and report.warned == 1
    passed, _, report = sifted(["Whose capital is it?"], Filters(judges=0, names="ignore"))
    assert passed[0].extra["paraphrase"] == {} and report.warned == 0


def test_a_name_does_not_make_wordings_alike() -> None:
    """Nor do two that only swap names differ: what is free to change is compared."""
    program = read('QueryRelation(Find("A"), Find("{}"))'.replace("{}", "B" * 60))
    one = Original("1", Example(f"How is A related to {'B' * 60}?", program))
    assert one.distance(f"How is {'B' * 60} related to A?") == 0
    assert one.distance(f"What links A and {'B' * 60}?") > 0.4


@pytest.mark.parametrize(
    ("same", "fluency", "reason"),
    [
        ("yyyyy", "33333", ""),
        ("nnyyy", "33333", ""),
        ("nnnyy", "55555", "another meaning"),
        ("nnnyyyyyyy", "5555555555", "another meaning"),
        ("yyyyy", "33332", "not fluent"),
        ("yyyyy", "15333", ""),
        ("yyyy", "5555", "too few votes"),
        ("", "", "too few votes"),
    ],
)
def test_votes(same: str, fluency: str, reason: str) -> None:
    """The paper's thresholds: more than two of five, below 3."""
    votes = tuple(
        Vote(str(n), s == "y", float(f)) for n, (s, f) in enumerate(zip(same, fluency, strict=True))
    )
    _, rejected, _ = sifted(["Of which land is Oslo the capital?"], Filters(), votes)
    assert [one.reason for one in rejected] == ([reason] if reason else [])


VOTES = st.lists(st.tuples(st.booleans(), st.integers(1, 5)), max_size=8)


@given(VOTES, st.integers(0, 6), st.integers(0, 4), st.integers(1, 5))
def test_votes_against_the_rule_written_out(
    given_votes: list[tuple[bool, int]], judges: int, different: int, fluency: int
) -> None:
    votes = tuple(Vote(str(n), same, f) for n, (same, f) in enumerate(given_votes))
    filters = Filters(judges=judges, different=different, fluency=fluency)
    passed, _, _ = sifted(["Of which land is Oslo the capital?"], filters, votes)
    enough = len(votes) >= judges
    meant = [same for same, _ in given_votes].count(False) <= different
    fluent = not votes or sum(f for _, f in given_votes) >= fluency * len(votes)
    assert bool(passed) == (enough and meant and fluent)


@pytest.mark.parametrize(
    "wrong",
    [{"distance": 1.1}, {"distance": -1}, {"fluency": 6}, {"judges": -1}, {"different": -1},
     {"confusing": 0}, {"names": "maybe"}, {"distance": float("nan")}, {"meaning": "no"}],
)  # fmt: skip
def test_thresholds_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(KoplError):
        Filters(**wrong)


def test_confusing_needs_as_many_workers_as_set(
    questions: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "out.jsonl"
    path.write_text(
        "task,paraphrase,confusing,annotator\n5-1-10,Oslo heads which land?,,a\n5-1-10,,yes,b\n"
        "5-1-10,,yes,b\n", "utf-8",
    )  # fmt: skip
    arguments = ["paraphrase", "import", questions, str(path), "-o", str(out), "--judges", "0",
                 "--meaning", "ignore"]  # fmt: skip
    assert main(arguments) == 0
    assert "a confusing question 1" in capsys.readouterr().err
    assert main([*arguments, "--confusing", "2"]) == 0
    assert "kept 1 of 1" in capsys.readouterr().err


@pytest.mark.parametrize("by", WAYS)
def test_paraphrases_of_a_question_stay_on_one_side_of_a_split(by: str) -> None:
    made: list[Example] = []
    for n in range(60):
        program = f'Find("{n}")'
        for k in range(n % 5):
            program = f'Relate({program}, "r{k}", "forward")'
        root = "Count" if n % 3 else "QueryName"
        question = Example(f"What is {n}?", read(f"{root}({program})"), f"a{n % 20}", id=f"s-{n}")
        original, report = Original(f"s-{n}", question), Report()
        candidates = [Candidate(f"{word} would you call {n}?") for word in ("How", "What", "Who")]
        filters = Filters(judges=0, names="reject", meaning="ignore")
        made += [example_of(original, p) for p in sift(original, candidates, filters, report)]
    assert len({one.id for one in made}) == len(made) == 180
    places: dict[object, set[int]] = {}
    for at, part in enumerate(split(made, seed=3, by=by)):
        assert part
        for one in part:
            for mark in (one.program, one.canonical, one.question, (one.id or "").split("#")[0]):
                places.setdefault(mark, set()).add(at)
    assert all(len(parts) == 1 for parts in places.values())


def test_empty_responses() -> None:
    assert read_responses([]) == Responses()
    assert Responses().ids() == set()


def test_a_text_counts_once() -> None:
    text = "Of which land is Oslo the capital?"
    again = [text, text, text.lower(), text.removesuffix("?"), f" {text} ", f"{text}?"]
    passed, rejected, _ = sifted(again, Filters(judges=0))
    assert [one.question for one in passed] == [text]
    assert [one.reason for one in rejected] == ["twice"] * 5


def test_a_text_is_for_review_once() -> None:
    text = "Whose capital is it?"
    passed, rejected, report = sifted([text, text, text.upper()], Filters(judges=0))
    assert not passed and report.review == 1
    assert [(one.reason, one.review) for one in rejected] == [
        ("a name or value is missing", True), ("twice", False), ("twice", False),
    ]  # fmt: skip
