"""The scores of hand-made predictions, every figure worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from kb import KnowledgeBase
from kopl.example import Example
from kopl.text import read
from parsers.evaluation import evaluate
from parsers.evaluation.judging import Verdict, hops_of, judge, length_of, skills_of
from parsers.languages import KoplLanguage, OutputLanguage, Prediction, SparqlLanguage

AREA = 'QueryAttr(Find("Norway"), area)'
CAPITAL = 'QueryName(Relate(Find("Norway"), capital, forward))'
COUNTRIES = "QueryName(FilterConcept(FindAll(), country))"
COUNT = "Count(FilterConcept(FindAll(), country))"
VERIFY = 'VerifyStr(QueryAttr(Find("Norway"), code), SE)'
SINCE = 'QueryRelationQualifier(Find("Norway"), Find("Oslo"), capital, "start time")'
LARGER = 'SelectBetween(Find("Norway"), Find("Peru"), area, greater)'


class Told:
    """A model that predicts what it is told: texts for each question, the first the best."""

    def __init__(self, language: OutputLanguage, texts: Mapping[str, Sequence[str]]) -> None:
        self.language, self.texts = language, texts
        self.asked: list[tuple[int, bool]] = []

    def predict(
        self, questions: Sequence[str], *, beams: int = 1, constrained: bool = True,
        guided: bool = False,
    ) -> list[list[Prediction]]:  # fmt: skip
        self.asked.append((beams, constrained))
        return [
            [written(self.language, text, -float(n + 1)) for n, text in enumerate(self.texts[one])]
            for one in questions
        ]


def written(language: OutputLanguage, text: str, log_probability: float = -1.0) -> Prediction:
    """A prediction of a program in the nested spelling, typed or not, or of any other text."""
    if "(" not in text:
        return language.read(text, log_probability)
    return language.of_program(read(text), log_probability)


def asks(program: str, answer: str | None, question: str = "?") -> Example:
    return Example(question, read(program), answer)


@pytest.fixture(scope="module")
def language(small: KnowledgeBase) -> OutputLanguage:
    return KoplLanguage(small)


@pytest.mark.parametrize(
    ("predicted", "verdict", "right", "published"),
    [
        (AREA, "right", True, True),
        ('QueryAttr(Find("Sweden"), area)', "wrong answer", False, False),
        (COUNTRIES, "several answers", False, False),
        ('QueryAttr(Find("Norway"), motto)', "no answer", False, False),
        ("Find Find", "did not parse", False, False),
        ("", "did not parse", False, False),
        ("Count(Count(FindAll()))", "did not type", False, False),
        ('FilterNum(FindAll(), area, many, ">")', "did not type", False, False),
    ],
)
def test_how_predictions_end(
    language: OutputLanguage, predicted: str, verdict: Verdict, right: bool, published: bool
) -> None:
    found = judge(asks(AREA, "323802 square kilometre"), written(language, predicted), language)
    assert (found.verdict, found.right, found.published) == (verdict, right, published)
    assert found.parses == (verdict != "did not parse")
    assert found.types == (verdict not in ("did not parse", "did not type"))
    assert found.runs == (found.denotation is not None) == (found.error is None)


def test_what_fails_when_it_runs_is_counted_apart(small: KnowledgeBase) -> None:
    from kopl.executor import Executor, Limits

    language = KoplLanguage(small)
    language.executor = Executor(small, limits=Limits(ids=1))
    found = judge(asks(COUNT, "8"), written(language, COUNT), language)
    assert found.verdict == "did not run"
    assert (found.parses, found.types, found.runs) == (True, True, False)
    assert found.error is not None and found.error.startswith("limit: ")


@pytest.mark.parametrize("answer", ["yes", "no"])
@pytest.mark.parametrize("failed", ["Count(Count(FindAll()))", "nothing", ""])
def test_a_failed_program_scores_nothing_on_verify(
    language: OutputLanguage, answer: str, failed: str
) -> None:
    found = judge(asks(VERIFY, answer), written(language, failed), language)
    assert (found.right, found.published) == (False, False)


def test_the_two_rules(language: OutputLanguage) -> None:
    """A year equals a day in it by the published rule only; several answers count by it, too."""
    day = judge(asks(SINCE, "1905-06-07"), written(language, SINCE), language)
    assert (day.verdict, day.published) == ("wrong answer", True)
    first = language.executor.run(COUNTRIES).denotation[0]
    several = judge(asks(COUNTRIES, first), written(language, COUNTRIES), language)
    assert (several.verdict, several.published, several.count) == ("several answers", True, 8)


def test_without_a_stored_answer_the_gold_program_is_run(language: OutputLanguage) -> None:
    assert judge(asks(COUNT, None), written(language, COUNT), language).right
    none = judge(asks(COUNTRIES, None), written(language, COUNTRIES), language)
    assert (none.gold, none.right, none.published) == (None, False, False)
    broken = judge(asks("Count(Count(FindAll()))", None), written(language, COUNT), language)
    assert (broken.gold, broken.right) == (None, False)


def test_exact_match_strict_and_up_to_order(language: OutputLanguage) -> None:
    gold = "Count(And(FilterConcept(FindAll(), country), FilterConcept(FindAll(), city)))"
    other = "Count(And(FilterConcept(FindAll(), city), FilterConcept(FindAll(), country)))"
    example = asks(gold, "0")
    for predicted, strict, form in ((gold, True, True), (other, False, True), (COUNT, False, False),
                                    ("", False, False)):  # fmt: skip
        found = judge(example, written(language, predicted), language)
        assert (found.same_program, found.same_form) == (strict, form)


def test_queries_match_by_their_programs_or_by_their_texts(small: KnowledgeBase) -> None:
    language = SparqlLanguage(small)
    example = asks(CAPITAL, "Oslo")
    gold = language.gold(example)
    assert judge(example, language.read(gold), language).same_program
    # Even where reading it back gives another program, or none.
    bare = Prediction(gold, 0.0, read(COUNT))
    assert judge(example, bare, language).same_program
    assert not judge(example, replace(bare, text="SELECT"), language).same_program
    unread = judge(example, language.read("SELECT"), language)
    assert (unread.verdict, unread.same_program) == ("did not parse", False)


def test_columns() -> None:
    assert skills_of(asks(CAPITAL, "Oslo"), {"Lima"}) == {"multi-hop", "zero-shot"}
    assert skills_of(asks(CAPITAL, None), {"Lima"}) == {"multi-hop"}
    assert skills_of(asks(CAPITAL, None), {"Lima"}, "Oslo") == {"multi-hop", "zero-shot"}
    assert skills_of(asks(CAPITAL, "Oslo"), set()) == {"multi-hop"}
    # Relate 1; two attributes and a comparison 3; an attribute and a comparison 2.
    assert [hops_of(asks(one, "")) for one in (CAPITAL, LARGER, VERIFY)] == ["others", "2-3", "2-3"]
    # The paper's example, who of a player and his father is taller: a Relate, an attribute on
    # each side, a comparison.
    father = 'SelectBetween(Find(J), Relate(Find(J), father, forward), height, "greater")'
    assert hops_of(asks(father, "")) == "4-5"
    assert [length_of(asks(one, "")) for one in (AREA, CAPITAL, father)] == ["1-3", "1-3", "4-6"]
    for size, hops, length in ((7, "6-7", "7-9"), (9, "8-9", "10-12"), (10, "others", "10-12"),
                               (12, "others", "13 or more")):  # fmt: skip
        chain = "FindAll()"
        for _ in range(size):
            chain = f"Relate({chain}, r, forward)"
        example = asks(chain, "")
        assert (hops_of(example), length_of(example)) == (hops, length)


def test_a_report_by_hand(language: OutputLanguage) -> None:
    """Six questions, two of them right."""
    examples = [
        asks(AREA, "323802 square kilometre", "area"),
        asks(CAPITAL, "Oslo", "capital"),
        asks(COUNT, "8", "count"),
        asks(VERIFY, "no", "verify"),
        asks(SINCE, "1905", "since"),
        asks(LARGER, "Peru", "larger"),
    ]
    model = Told(language, {
        "area": [AREA],  # right
        "capital": ['QueryName(Relate(Find("Sweden"), capital, forward))'],  # Stockholm
        "count": ["Count(Count(FindAll()))"],  # does not type
        "verify": ["no"],  # does not parse
        "since": [SINCE],  # right
        "larger": [COUNTRIES],  # several
    })  # fmt: skip
    advanced: list[int] = []
    report = evaluate(model, examples, ["Oslo", "Peru", "no"], advanced.append)
    assert [one.example.question for one in report.judged] == [one.question for one in examples]
    assert (advanced, model.asked) == ([6], [(1, True)])
    assert report.accuracy == pytest.approx(2 / 6)
    assert report.verdicts() == {
        "right": 2, "wrong answer": 1, "several answers": 1, "no answer": 0,
        "did not parse": 1, "did not type": 1, "did not run": 0,
    }  # fmt: skip
    shares = {name: (share.count, share.of) for name, share in report.shares().items()}
    assert shares == {
        "parses": (5, 6), "types": (4, 6), "runs": (4, 6), "one answer": (3, 6),
        "same program": (2, 6), "same program up to order": (2, 6),
    }  # fmt: skip
    table = report.table()
    counted = {
        part: {column: (share.count, share.of) for column, share in columns.items()}
        for part, columns in table.parts.items()
    }
    assert counted == {
        "skills": {
            "multi-hop": (0, 2), "qualifier": (1, 1), "comparison": (0, 1), "logical": (0, 0),
            "count": (0, 1), "verify": (0, 1),
            "zero-shot": (2, 3),  # the answers "323802 square kilometre", "8" and "1905"
        },
        # One attribute, one relation, none, 2, one qualifier, 3 hops.
        "hops": {"2-3": (0, 2), "4-5": (0, 0), "6-7": (0, 0), "8-9": (0, 0), "others": (2, 4)},
        "length": {"1-3": (2, 6), "4-6": (0, 0), "7-9": (0, 0), "10-12": (0, 0),
                   "13 or more": (0, 0)},
    }  # fmt: skip
    # The first country is Norway, not Peru.
    assert report.table("published").overall.count == 2
    as_json = report.to_json()
    assert as_json["accuracy"]["default"]["skills"]["logical"]["share"] is None
    assert as_json["accuracy"]["default"]["skills"]["zero-shot"]["share"] == pytest.approx(2 / 3)
    assert report.notes() == []


def test_choice_by_execution(language: OutputLanguage) -> None:
    """The first of the beam that has one answer; the least faulty one where none has."""
    bad, empty = "Count(Count(FindAll()))", 'QueryAttr(Find("Norway"), motto)'
    examples = [asks(AREA, "323802 square kilometre", "a"), asks(VERIFY, "no", "b")]
    model = Told(language, {"a": [bad, COUNTRIES, AREA, COUNT], "b": [bad, empty]})
    plain = evaluate(model, examples, (), beams=4)
    assert [one.verdict for one in plain.judged] == ["did not type"] * 2
    guided = evaluate(model, examples, (), beams=4, guided=True, constrained=False)
    assert [one.verdict for one in guided.judged] == ["right", "no answer"]
    assert guided.judged[0].prediction.log_probability == -3
    assert model.asked == [(4, True), (4, False)]


def test_a_model_that_writes_nothing(language: OutputLanguage) -> None:
    model = Told(language, {"a": []})
    for guided in (False, True):
        [one] = evaluate(model, [asks(VERIFY, "no", "a")], (), guided=guided).judged
        assert (one.verdict, one.prediction.probability) == ("did not parse", 0.0)


def test_notes(language: OutputLanguage, monkeypatch: pytest.MonkeyPatch) -> None:
    from kopl.sparql.errors import MissingPackageError

    model = Told(language, {"a": [COUNT]})
    report = evaluate(model, [asks(COUNTRIES, None, "a")], ())
    assert report.notes()[0].startswith("1 question stores no answer")

    def missing(prediction: Prediction) -> None:
        raise MissingPackageError("pip install pyoxigraph")

    monkeypatch.setattr(language, "run", missing)
    report = evaluate(model, [asks(COUNT, "8", "a")], ())
    assert report.judged[0].verdict == "did not run"
    assert "pip install pyoxigraph" in report.notes()[0]


def test_a_line_of_a_predictions_file(language: OutputLanguage) -> None:
    line = judge(asks(COUNT, "8"), written(language, COUNTRIES), language).to_json()
    assert line["verdict"] == "several answers" and line["answers"] == 8
    assert line["gold"] == 'Count(FilterConcept(FindAll(), "country"))'
    assert (line["right"], line["skills"], line["hops"], line["length"]) == (
        False, ["multi-hop", "count"], 0, 3,
    )  # fmt: skip
    unread = judge(asks(COUNT, "8"), written(language, "x"), language).to_json()
    assert unread["program"] is None and unread["error"].startswith("parse: ")


def test_nothing_is_sure_of_a_question_that_is_not_read() -> None:
    from parsers.languages import nothing

    found = nothing("the question has no words")
    assert found.probability == 0 and found.program is None
    assert "no words" in str(found.error)
