"""What a paraphrase says otherwise than its question: one wrong thing at a time, and right ones."""

from __future__ import annotations

import importlib
import json
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from generation.paraphrase.answer_forms import asked
from generation.paraphrase.filters import Candidate, Filters, Report, examined, sift
from generation.paraphrase.originals import Knowledge, Original
from generation.paraphrase.responses import Vote
from generation.paraphrase.surface import surface_fault
from generation.paraphrase.vocabulary import stem, vocabulary
from kb import Builder
from kopl.answer_forms import Is
from kopl.example import Example, read_examples, write_examples
from kopl.text import read
from kopl_base.errors import KoplError
from kopl_cli import main

# Beside the script stands the folder of its questions, which a type checker takes for the module.
benchmark: Any = importlib.import_module("benchmarks.paraphrases")

AMONG = Example(
    "Which republic with more than 5,000,000 inhabitants has the longest coastline?",
    read(
        'SelectAmong(FilterConcept(FilterNum(FindAll(), "population", "5000000", ">"), "republic"),'
        ' "coastline length", "largest")'
    ),
    "Chile",
)
COUNT = Example(
    "How many airports did not open in 1990?",
    read('Count(FilterConcept(FilterYear(FindAll(), "date of opening", "1990", "!="), "airport"))'),
    "4",
)
WHEN = Example(
    "When was the element of tantalum-167 discovered by Anders Ekeberg?",
    read(
        'QueryRelationQualifier(Relate(Find("tantalum-167"), "isotope of", "forward"),'
        ' Find("Anders Ekeberg"), "discoverer or inventor", "point in time")'
    ),
    "1802",
)
VERIFY = Example(
    "Is the area of Norway smaller than 300,000 square kilometres?",
    read('VerifyNum(QueryAttr(Find("Norway"), "area"), "300000 square kilometre", "<")'),
    "no",
)
CAPITAL = Example(
    "For the country whose capital is Oslo, what is its birth rate?",
    read('QueryAttr(Relate(Find("Oslo"), "capital", "backward"), "birth rate")'),
    "9.5 per thousand",
)
LEADER = Example(
    "Who is the head of state of Norway?",
    read('QueryName(Relate(Find("Norway"), "head of state", "forward"))'),
    "Harald V",
)


def found(example: Example, text: str, **options: Any) -> str:
    """Why a text is not kept, with a question mark where people are to look at it; "" if it is."""
    options = {"judges": 0, "names": "reject", "distance": 0.0} | options
    one = examined(Original("1", example), text, Filters(**options))
    return one.reason + ("" if one.certain else "?")


WRONG = [
    (AMONG, "Which republic with less than 5,000,000 people has the longest coast?",
     "a comparison goes the other way"),
    (AMONG, "Of the republics with over 5 million inhabitants, whose coastline is shortest?",
     "a comparison goes the other way"),
    (AMONG, "Which republic with at least 5 million people has the longest coastline?",
     "the bound itself is taken in"),
    (AMONG, "Which republic with more than 5 million people has a coastline?",
     "a comparison is lost?"),
    (AMONG, "Which non-republic with more than 5 million people has the longest coastline?",
     "a negation is added"),
    (AMONG, "Which republic without more than 5 million people has the longest coastline?",
     "a negation is added"),
    (AMONG, "Which republic with over 5 million people besides Chile has the longest coastline?",
     "a negation is added"),
    (AMONG, "Which landlocked republic of over 5 million people has the longest coastline?",
     "?"),
    (AMONG, "In Europe, which republic of over 5 million people has the longest coastline?",
     "a name is added"),
    (AMONG, "Which republic with over 5 million people had the longest coastline in 2019?",
     "a number is added"),
    (AMONG, "Which republic with over 6 million people has the longest coastline?",
     "a name or value is missing"),
    (AMONG, "How many republics with over 5 million people have the longest coastline?",
     "another form of answer"),
    (AMONG, "Has any republic with over 5 million people the longest coastline?",
     "another form of answer"),
    (AMONG, "Which republic with over 5 million people has the longest railway?",
     "?"),
    (COUNT, "How many airports opened in 1990?", "a negation is lost"),
    (COUNT, "Which airports did not open in 1990?", "another form of answer"),
    (WHEN, "When did tantalum-167 discover the element of Anders Ekeberg?",
     "names in each other's places"),
    (WHEN, "When was the element of Anders Ekeberg discovered by tantalum-167?",
     "names in each other's places"),
    (WHEN, "Who discovered the element of tantalum-167, if not Anders Ekeberg?",
     "another form of answer"),
    (CAPITAL, "What is the birth rate of Oslo?", "a condition may be lost?"),
    (AMONG, "What is the longest coastline length of a republic with over 5 million inhabitants?",
     "another form of answer"),
    (WHEN, "When was the element of tantalum-167 criticised by Anders Ekeberg?",
     "?"),
    (VERIFY, "Is Norway larger than 300,000 square kilometres?", "a comparison goes the other way"),
    (VERIFY, "Is the area of Norway smaller than 300,000 square miles?",
     "a name or value is missing"),
    (VERIFY, "How large is Norway, smaller than 300,000 square kilometres?",
     "another form of answer"),
    (LEADER, "Who is the head of government of Norway?", "?"),
    (LEADER, "Who is not the head of state of Norway?", "a negation is added"),
    (LEADER, "Quel est le chef de l'État de la Norway ?", "another language"),
    (LEADER, "Wer ist das Oberhaupt von Norway und wie heißt es?", "another language"),
    (LEADER, "¿Quién es el jefe de Norway?", "another language"),
    (LEADER, "<script>Who is the head of state of Norway?</script>", "markup or code"),
    (LEADER, "Who is the head of state of Norway?'; DROP TABLE x; --", "markup or code"),
    (LEADER, "Sure, here is the question: Who leads Norway?", "words around the question"),
    (LEADER, "Who leads Norway? I kept the name.", "more than one question"),
    (LEADER, "Who leads Norway? Who leads it?", "more than one question"),
    (LEADER, "Harald V leads Norway.", "no question"),
    (LEADER, "Who leads Nor\x00way?", "a control or invisible character"),
    (LEADER, "Who leads \u202eNorway?", "a control or invisible character"),
    (LEADER, "Who leads\u200b Norway?", "a control or invisible character"),
    (LEADER, "Who l\u0435ads Norway?", "letters of another script"),
    (LEADER, "Who leads Norway" + "?" * 10_000_000, "far too long"),
    (LEADER, "Norway?", "too short"),
]  # fmt: skip

RIGHT = [
    (AMONG, "Of all republics with over 5 million people, which has the most coast?"),
    (AMONG, "which republic of more than 5000000 people has the longest shore"),
    (COUNT, "How many airports opened in some year other than 1990?"),
    (COUNT, "What's the number of airports that didn't open in 1990?"),
    (WHEN, "In what year did Anders Ekeberg discover the element of tantalum-167?"),
    (WHEN, "When did Anders Ekeberg first find the element that tantalum-167 belongs to?"),
    (VERIFY, "Does Norway cover less than 300,000 km²?"),
    (VERIFY, "Can you tell me whether Norway is smaller than 300,000 square kilometers?"),
    (CAPITAL, "What is the rate of births in the country with Oslo as its capital?"),
    (LEADER, "Which person rules the country of Norway?"),
    (LEADER, "Tell me who Norway's head of state is."),
]


@pytest.mark.parametrize(("example", "text", "reason"), WRONG, ids=range(len(WRONG)))
def test_wrong_ones(example: Example, text: str, reason: str) -> None:
    """A reason that is a question mark stands for any doubt: which one, the words decide."""
    given = found(example, text)
    assert given.endswith("?") if reason == "?" else given == reason


@pytest.mark.parametrize(("example", "text"), RIGHT, ids=range(len(RIGHT)))
def test_right_ones(example: Example, text: str) -> None:
    assert found(example, text) == ""


@pytest.mark.parametrize("example", [AMONG, COUNT, WHEN, VERIFY, LEADER])
def test_a_question_says_what_it_says(example: Example) -> None:
    assert found(example, example.question) == ""
    assert found(example, example.question, distance=0.1) == "too near to the question"


def test_nothing_is_compared_where_nobody_asks_for_it() -> None:
    assert found(LEADER, "Who is not the head of state of Norway?", meaning="ignore") == ""


def test_an_answer_form_asks_for_yes_or_no() -> None:
    program = read('SelectBetween(Find("Elbe"), Find("Rhine"), "length", "greater")')
    yes = Example("Is the Rhine longer than the Elbe?", program, "yes", answer_form=Is("Rhine"))
    assert found(yes, "Which river is longer, the Rhine or the Elbe?") == "another form of answer"
    which = Example("Which is longer, the Rhine or the Elbe?", program, "Rhine")
    assert found(which, "Is the Elbe or the Rhine the longer one?") == ""
    assert found(which, "Is the Rhine long?", names="ignore") == "another form of answer"


def test_a_long_text_takes_no_time() -> None:
    """Nothing reads what is far too long; what is nearly too long is read in linear time."""
    original = Original("1", LEADER)
    begun = time.process_time()
    for text in ("1. " * 5_000_000, "<think>" * 1_000_000, "Norway " * 2_000_000):
        assert examined(original, text, Filters(judges=0)).reason == "far too long"
    assert time.process_time() - begun < 0.5
    for text in ("not " * 49, "1. " * 66, "Norway " * 28, "(" * 199, "a-" * 99):
        begun = time.process_time()
        assert examined(original, text, Filters(judges=0)).reason
        assert time.process_time() - begun < 0.5


def test_characters_and_marks_of_the_question_may_stand() -> None:
    known = "Who composed Ja, vi_elsker [dette] in Северный?"
    assert surface_fault("Who wrote the music of Ja, vi_elsker [dette] in Северный?", known) == ""
    assert surface_fault("Who wrote the music of Ja {vi} elsker?", known) == "markup or code"
    assert surface_fault("What's the area (km²) of β-land, in €?", "area of land, in euro") == ""


def test_aliases_and_lexicon() -> None:
    build = Builder()
    build.add_concept("c", "country")
    build.add_entity("e", "United Kingdom", ["c"], aliases=["UK", "Great Britain"])
    kb = build.build()
    program = read('QueryName(Relate(Find("United Kingdom"), "head of state", "forward"))')
    example = Example("Who is the head of state of the United Kingdom?", program, "Charles III")
    strict = Filters(judges=0, names="reject")
    text = "Who is at the head of the UK?"
    assert examined(Original("1", example), text, strict).missing == ("United Kingdom",)
    known = Original("1", example, Knowledge(kb=kb))
    assert not examined(known, text, strict).reason


def test_judges_decide_what_is_doubtful() -> None:
    text = "Who is the kingpin of Norway?"
    votes = tuple(Vote(str(n), same=True, fluency=5) for n in range(3))
    original, filters = Original("1", LEADER), Filters(judges=3)
    for given, kept, doubts in ((votes, 1, 0), ((), 0, 0)):
        report = Report()
        assert len(list(sift(original, [Candidate(text, {}, given)], filters, report))) == kept
        assert report.review == doubts
    report = Report()
    assert not list(sift(original, [Candidate(text)], Filters(judges=0), report))
    assert report.doubts == {"it may ask something else": 1}
    assert "1 for review (it may ask something else 1)" in str(report)
    passed = list(sift(original, [Candidate(text)], Filters(judges=0), report, doubtful=True))
    assert passed[0].doubt.startswith("it may ask something else: kingpin")
    wrong = Candidate("Who is not the head of state of Norway?", {}, votes)
    assert not list(sift(original, [wrong], filters, Report()))


def test_a_parser_may_doubt() -> None:
    read_as = {"Who leads Norway?": "QueryAttr(…)"}
    rejected: list[Any] = []
    kept = sift(
        Original("1", LEADER), [Candidate("Who leads Norway?"), Candidate("Who runs Norway?")],
        Filters(judges=0), Report(), rejected.append, lambda _, text: read_as.get(text, ""),
    )  # fmt: skip
    assert [one.candidate.text for one in kept] == ["Who runs Norway?"]
    (one,) = rejected
    assert one.review and (one.reason, one.detail) == (
        "the parser reads another program", "QueryAttr(…)"
    )  # fmt: skip


def test_review_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is doubtful comes as tasks; those that somebody passes are kept."""
    questions, out = tmp_path / "q.jsonl", tmp_path / "out.jsonl"
    review, rejected = tmp_path / "review.csv", tmp_path / "rejected.jsonl"
    write_examples(questions, [LEADER])
    id = next(iter(json.loads(line) for line in questions.read_text("utf-8").splitlines()))
    assert id["question"] == LEADER.question
    written = tmp_path / "anna.csv"
    main(["paraphrase", "export", str(questions), "-o", str(tmp_path / "t.csv")])
    task = (tmp_path / "t.csv").read_text("utf-8-sig").splitlines()[1].split(",")[0]
    written.write_text(
        f"task,paraphrase\n{task},Who is the kingpin of Norway?\n{task},Who rules Norway?\n"
        f"{task},Who is no head of state of Norway?\n",
        "utf-8",
    )
    arguments = ["paraphrase", "import", str(questions), str(written), "-o", str(out)]
    assert main([*arguments, "--judges", "0", "--review", str(review),
                 "--rejected", str(rejected)]) == 0  # fmt: skip
    told = capsys.readouterr().err
    assert "kept 1 of 3" in told and "1 for review (it may ask something else 1)" in told
    left = [json.loads(line) for line in rejected.read_text("utf-8").splitlines()]
    assert [one.get("review", False) for one in left] == [True, False]
    rows = review.read_text("utf-8-sig").splitlines()
    assert len(rows) == 2 and "it may ask something else: kingpin" in rows[1]
    head, row = rows[0].split(","), rows[1]
    assert head[-4:] == ['"same"', '"fluency"', '"judge"', '"comment"']
    empty = ',"","","",""'
    assert row.endswith(empty)
    review.write_text(f"{rows[0]}\n{row.removesuffix(empty)},yes,5,bert,\n", "utf-8")
    assert main(["paraphrase", "import", str(questions), str(review), "-o", str(out),
                 "--judges", "1"]) == 0  # fmt: skip
    assert [one.question for one in read_examples(out)] == ["Who is the kingpin of Norway?"]


def test_a_trained_run_doubts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command asks the parser of --run what each paraphrase means."""
    pytest.importorskip("torch")
    from parsers import parser

    class Reads:
        """Reads every question as one about a head of state."""

        def ask(self, question: str, top: int) -> list[Any]:
            if "rules" in question:
                raise KoplError("it has no words for that")
            return [SimpleNamespace(program=LEADER.program)]

    def load(folder: str, kb: str | None = None) -> Reads:
        assert folder == "my-run"
        return Reads()

    monkeypatch.setattr(parser.Parser, "load", load)
    path, out, review = tmp_path / "q.jsonl", tmp_path / "out.jsonl", tmp_path / "review.csv"
    write_examples(path, [replace(LEADER, id="1"), replace(CAPITAL, id="2")])
    (tmp_path / "anna.csv").write_text(
        "task,paraphrase\n1,Who leads Norway?\n1,Who rules the country of Norway?\n"
        "2,What is the rate of births in the country with Oslo as its capital?\n",
        "utf-8",
    )
    assert main(["paraphrase", "import", str(path), str(tmp_path / "anna.csv"), "-o", str(out),
                 "--judges", "0", "--run", "my-run", "--review", str(review)]) == 0  # fmt: skip
    assert "2 for review (the parser reads another program 2)" in capsys.readouterr().err
    assert [one.question for one in read_examples(out)] == ["Who leads Norway?"]
    told = review.read_text("utf-8-sig")
    assert "another program: none: it has no words for that" in told
    assert "another program: QueryName(Relate(Find(" in told


# --- words --------------------------------------------------------------------------------------


def test_the_words_are_consistent() -> None:
    words = vocabulary()
    assert not words.sets["negations"] & set(words.directions)
    assert not words.sets["slight"] - words.sets["narrowing"]
    assert all(direction in ("more", "less") for direction in words.vague.values())
    assert {stem(w) for w in ("bigger", "decays", "decaying", "decayed")} == {"bigger", "decay"}
    assert stem("countries") == stem("country") and stem("produces") == stem("producing")


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("is oslo large?", {"polar"}),
        ("do you know when oslo was founded?", {"time"}),
        ("could you tell me if oslo is large?", {"polar"}),
        ("in which year was it?", {"time"}),
        ("what time zone is oslo in?", {"open"}),
        ("take oslo: how many live there?", {"count"}),
        ("give the number of people in oslo", {"imperative", "counting"}),
        ("why is oslo large?", {"reason"}),
        ("oslo, which is large, lies in norway, but is it old?", {"polar"}),
        ("of oslo and bergen, which is larger?", {"open"}),
        ("how often was oslo founded?", {"frequency"}),
        ("oslo population", {"unknown"}),
        ("oslo was founded in what year?", {"time", "unknown"}),
    ],
)
def test_forms(text: str, forms: set[str]) -> None:
    assert asked(text) == forms


# --- the benchmark ------------------------------------------------------------------------------


def test_the_sets_are_as_the_data_card_says() -> None:
    right = list(benchmark.goods())
    assert len(right) == 300 and len({source.text for _, source in right}) == 300
    assert {part for part, _ in right} == {"dev", "test"}
    wrong = list(benchmark.hostile(right, 10))
    assert Counter(one.kind for _, one in wrong) == dict.fromkeys(
        dict.fromkeys(one.kind for _, one in wrong), 10
    )
    assert len({one.kind for _, one in wrong}) == 10
    again = list(benchmark.hostile(right, 10))
    assert [one.text for _, one in again] == [one.text for _, one in wrong]
    assert all(one.text != one.source.text for _, one in wrong)


def test_wrong_ones_are_not_kept_and_right_ones_are(capsys: pytest.CaptureFixture[str]) -> None:
    filters = Filters(judges=0, names="reject")
    right = list(benchmark.goods())
    kept = [not examined(source.original, source.text, filters).reason for _, source in right]
    assert sum(kept) >= 0.88 * len(kept)
    wrong = [one for _, one in benchmark.hostile(right, 20)]
    passed = Counter(
        one.kind for one in wrong if not examined(one.source.original, one.text, filters).reason
    )
    assert passed.total() <= 0.03 * len(wrong)
