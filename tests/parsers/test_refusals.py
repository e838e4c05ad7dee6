"""When a parser says that it does not know, and why."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from kb import KnowledgeBase, KoplError
from kopl.example import Asked, BareQuestion, Example, write_examples
from kopl.text import read
from kopl_cli import main
from parsers.evaluation.coverage import SelectiveRisk
from parsers.evaluation.runs import calibrate_refusals, calibrate_refusals_elsewhere
from parsers.languages import Prediction
from parsers.linking import Linker, Mentions
from parsers.parser import Parser
from parsers.refusals import KINDS
from parsers.refusals.classifier import Classifier
from parsers.refusals.evidence import FEATURES, Evidencer, Tried
from parsers.refusals.premises import Premise, Premises
from parsers.refusals.refusal import (
    Refusal,
    missing_name,
    of_premise,
    refusal_of,
    unknown_name,
)
from parsers.refusals.silence import (
    CLASSES,
    FILE,
    FILE_ELSEWHERE,
    RefusalError,
    asking_more,
    in_other_words,
    kind_of,
    least_confidence,
)
from parsers.refusals.wording import Wording, items_of
from parsers.tokens import Question

ROOT = Path(__file__).parents[2]
OUTSIDE = {
    "entity": ("Vargonia", "Melbistan", "Quorland", "Uptoria", "Zenthia", "Hobbitania"),
    "schema": ("favourite pizza", "shoe size", "weather forecast", "mayor", "cheapest hotel"),
    "none": ("thanks a lot", "hello there", "good night then", "never mind", "ok bye"),
}
TALK = ("thanks a lot", "hello there", "good night then", "never mind", "ok bye", "well done")


def outside() -> list[BareQuestion]:
    """Questions without an answer about the small knowledge base."""
    found = [
        BareQuestion(f"What is the {item} of {name}?", outside="entity")
        for name in OUTSIDE["entity"] for item in ("capital", "area")
    ]  # fmt: skip
    found += [
        BareQuestion(f"What is the {item} of {name}?", outside="schema")
        for item in OUTSIDE["schema"] for name in ("Norway", "Peru")
    ]  # fmt: skip
    return found + [BareQuestion(text, outside="none") for text in TALK]


@pytest.fixture(scope="module")
def run(
    trained: Path, small_examples: list[Example], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A run that was fitted to be silent."""
    folder = tmp_path_factory.mktemp("silent") / "run"
    shutil.copytree(trained, folder)
    for part in ("train", "valid"):
        write_examples(folder / f"{part}.jsonl", small_examples)
    parser = Parser.load(folder)
    calibrate_refusals(folder, parser, small_examples, outside(), 4)
    return folder


@pytest.fixture(scope="module")
def parser(run: Path) -> Parser:
    return Parser.load(run)


def test_what_is_known_is_answered_and_the_rest_refused_with_its_reason(
    parser: Parser, small_examples: list[Example]
) -> None:  # fmt: skip
    asked = [parser.ask(one.question)[0] for one in small_examples]
    assert sum(one.refused is None for one in asked) > 0.8 * len(asked)
    kinds = [(one.outside, parser.ask(one.question)[0].refused) for one in outside()]
    assert sum(refused is not None for _, refused in kinds) > 0.8 * len(kinds)
    fitting = sum(refused is not None and refused.kind == kind for kind, refused in kinds)
    assert fitting > 0.7 * len(kinds)


def test_a_refusal_says_what_nothing_is_called(parser: Parser) -> None:
    [answer] = parser.ask("What is the capital of Vargonia?")
    assert answer.refused is not None and answer.refused.kind == "entity"
    assert "'Vargonia'" in answer.refused.message and answer.text is None
    assert answer.refused.to_json()["kind"] in KINDS and answer.answers == ()


def test_least_confidence(parser: Parser) -> None:
    [all_said] = parser.ask("What is the capital of Vargonia?", least_confidence=0)
    assert all_said.refused is None
    [nothing_said] = parser.ask("What is the capital of Norway?", least_confidence=1)
    assert nothing_said.refused is not None
    [said] = parser.ask("What is the capital of Norway?")
    assert said.text == "Oslo" and said.confidence == said.sure
    with pytest.raises(ValueError, match="least_confidence"):
        parser.ask("What is the capital of Norway?", least_confidence=2)


def test_only_what_was_fitted_is_refused(parser: Parser) -> None:
    question = "What is the capital of Vargonia?"
    assert parser.ask(question, guided=False)[0].refused is None
    assert parser.ask(question, constrained=False)[0].refused is None


def test_the_command_refuses(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question = "What is the capital of Vargonia?"
    assert main(["ask", "--run", str(run), question]) == 1
    out = capsys.readouterr().out
    assert out.startswith("I do not know: nothing in the knowledge base is called 'Vargonia'")
    assert main(["ask", "--run", str(run), "--json", question]) == 1
    refused = json.loads(capsys.readouterr().out)["refused"]
    assert refused["kind"] == "entity" and "Vargonia" in refused["message"]
    assert isinstance(refused["near"], list)
    main(["ask", "--run", str(run), "--json", "--least-confidence", "0", question])
    assert "refused" not in json.loads(capsys.readouterr().out)
    for text in ("2", "abc"):
        with pytest.raises(SystemExit):
            main(["ask", "--run", str(run), "--least-confidence", text, question])
        assert f"from 0 to 1 was expected, not '{text}'" in capsys.readouterr().err


def test_a_file_of_questions(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    file = tmp_path / "asked.jsonl"
    texts = ("What is the capital of Vargonia?", "What is the capital of Norway?")
    file.write_text("".join(json.dumps({"question": one}) + "\n" for one in texts))
    assert main(["ask", "--run", str(run), "--questions", str(file), "--json"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["refused"]["kind"] == "entity" and "refused" not in second


def test_a_run_of_before_refuses_nothing(trained: Path) -> None:
    [answer] = Parser.load(trained).ask("What is the capital of Vargonia?")
    assert answer.refused is None and answer.sure is None


@pytest.fixture
def kept(run: Path) -> Iterator[Path]:
    """The file of the run, put back afterwards."""
    text = (run / FILE).read_text()
    yield run / FILE
    (run / FILE).write_text(text)


def test_a_damaged_file_is_told_and_one_for_other_weights_passed_over(
    run: Path, kept: Path
) -> None:  # fmt: skip
    read_back = json.loads(kept.read_text())
    kept.write_text(json.dumps({**read_back, "weights": "others"}))
    assert Parser.load(run).silence is None
    kept.write_text(json.dumps({**read_back, "format": 0}))
    assert Parser.load(run).silence is None
    for damaged in ("{", json.dumps({**read_back, "classifier": {}})):
        kept.write_text(damaged)
        with pytest.raises(KoplError, match="damaged"):
            Parser.load(run).ask("What is the capital of Norway?")


def test_too_few_questions_are_told(
    run: Path, parser: Parser, small_examples: list[Example]
) -> None:  # fmt: skip
    with pytest.raises(KoplError, match="too few"):
        calibrate_refusals(run, parser, small_examples[:3], outside(), 4)


# --- the parts -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def evidencer(small: KnowledgeBase, small_examples: list[Example]) -> Evidencer:
    linker = Linker(small)
    from parsers.actions import Actions

    mentions = Mentions(Actions.of(small).entries, linker)
    return Evidencer(linker, mentions, Wording.of(small_examples, linker))


def tried(program: str, said: tuple[str, ...], log: float = -0.1) -> Tried:
    tree = read(program)
    return Tried(Prediction(str(tree), log, tree), said)


def test_words_go_with_items(evidencer: Evidencer) -> None:
    wording = evidencer.wording
    assert wording.knows("capital") and not wording.knows("pizza") and not wording.knows("norway")
    assert ("relation", "capital") in dict(wording.telling("capital"))
    again = Wording.from_json(json.loads(json.dumps(wording.to_json())))
    assert (
        again.counts == wording.counts
        and again.telling("capital")[0][0] == (wording.telling("capital")[0][0])
    )
    program = read('QueryName(Relate(Find("Norway"), capital, forward))')
    assert ("relation", "capital") in items_of(program)


def test_evidence_of_names_and_words(evidencer: Evidencer) -> None:
    best = tried('QueryName(Relate(Find("Norway"), capital, forward))', ("Oslo",))
    right = evidencer.of("What is the capital of Norway?", [best], best)
    typo = evidencer.of("What is the captial of Norwey?", [best], best)
    other = evidencer.of("What is the capital of Vargonia?", [best], best)
    pizza = evidencer.of("What is the best pizza of Norway?", [best], best)
    assert right.values["name fit"] == 1 and not right.unknown and not right.unsupported
    assert 0.8 < typo.values["name fit"] < 1 and typo.values["misspelt"] > 0
    assert typo.values["least support"] == right.values["least support"]
    assert other.values["name fit"] < 0.74
    assert [other.question.words[at] for at in other.unknown] == ["Vargonia"]
    assert pizza.unsupported == [("relation", "capital")]
    assert "pizza" in [pizza.question.words[at] for at in pizza.unknown]
    assert list(right.values) and {*right.values} == {*FEATURES}


def test_evidence_of_other_languages(evidencer: Evidencer) -> None:
    best = tried('QueryName(Relate(Find("Peru"), capital, forward))', ("Lima",))
    german = evidencer.of("Was ist die Hauptstadt von Peru?", [best], best)
    russian = evidencer.of("Какая столица у Peru?", [best], best)
    assert german.values["other language"] > 0 and german.values["common share"] < 0.5
    assert russian.values["other script"] > 0.5


def kind(
    evidencer: Evidencer, question: str, best: Tried, *others: Tried, of: int = 1
) -> str:  # fmt: skip
    """The reason to refuse a question where a class is by far the likeliest."""
    found = evidencer.of(question, [best, *others], best)
    shares = np.full(len(CLASSES), 0.05)
    shares[of] = 0.6
    outside = dict(zip(CLASSES[2:], shares[2:].tolist(), strict=True))
    premise = Premises(evidencer).of(question, [best, *others], best, found, outside)
    called = missing_name(found, evidencer)
    return kind_of(found, shares, [best, *others], best, called, premise is not None)


def test_two_readings_are_told_apart_from_a_wrong_one(evidencer: Evidencer) -> None:
    first = tried('QueryAttr(Find("Norway"), area)', ("1",), -0.7)
    second = tried('QueryAttr(Find("Norway"), population)', ("2",), -0.8)
    unlikely = tried('QueryAttr(Find("Norway"), population)', ("2",), -5.0)
    question = "How big is Norway for the zorbing?"
    assert kind(evidencer, question, first, second) == "ambiguous"
    assert kind(evidencer, question, first, unlikely) == "schema"


def test_the_reason_is_what_was_found(evidencer: Evidencer) -> None:
    best = tried('QueryName(Relate(Find("Norway"), capital, forward))', ())
    assert kind(evidencer, "What is the capital of Vargonia?", best) == "entity"
    assert kind(evidencer, "What is the capital of Norway?", best) == "premise"
    assert kind(evidencer, "What is the cheapest pizza in Norway?", best) == "schema"
    assert kind(evidencer, "What is the capital of vargonia?", best) == "entity"
    assert kind(evidencer, "Who is the king of vargonia?", best) == "entity"
    # What finds nothing was misread where its words are not those of the question.
    area = tried('QueryAttr(Find("Norway"), area)', ())
    assert kind(evidencer, "What is the capital of Norway?", area) != "premise"
    assert kind(evidencer, "well done then", best) == "none"
    assert kind(evidencer, "Какая столица у Peru?", best) == "language"


def test_nothing_is_denied_that_is_there(evidencer: Evidencer, small: KnowledgeBase) -> None:
    def told(question: str, kind: str, program: str) -> Refusal:
        best = tried(program, ())
        if kind == "premise":
            return of_premise(Premise(nothing=best), best, evidencer.linker)
        return refusal_of(
            kind, evidencer.of(question, [best], best), [best], best, evidencer.linker
        )

    text = "What was the area of Norway in 1850?"
    year = 'QueryAttrUnderCondition(Find("Norway"), area, "point in time", "1850")'
    found = told(text, "premise", year).message
    assert "there is no" not in found and "no 'area' of 'Norway' is as" in found
    lacking = told(text, "premise", 'QueryAttr(Find("Norway"), population)')
    assert "there is no 'population' of 'Norway'" in lacking.message
    king = of_premise(Premise(kind="king"), tried(year, ("Olaf",)), evidencer.linker)
    assert king.message.endswith("Olaf is no 'king'")
    apart = of_premise(Premise(apart=("Norway", "Lima")), tried(year, ()), evidencer.linker)
    assert apart.message.endswith("no fact here is about 'Norway' and 'Lima'")
    for text in ("capital", "Capitals?"):
        item = told(text, "schema", 'QueryName(Relate(Find("Norway"), capital, forward))')
        assert item.kind == "unsure" and "no relation" not in item.message


def test_every_kind_is_told_in_the_documentation() -> None:
    told = (ROOT / "docs" / "parsers.md").read_text("utf-8").split("## Silence")[1]
    assert all(f"| `{kind}` |" in told for kind in KINDS)


def test_slips_of_the_pen_are_read_as_the_model_reads_them(evidencer: Evidencer) -> None:
    best = tried('QueryName(Relate(Find("Norway"), capital, forward))', ("Oslo",))
    mended = {"What is the capitla of Norrway?": "What is the capital of Norway?"}
    reader = Evidencer(
        evidencer.linker, evidencer.mentions, evidencer.wording,
        lambda text: Question.of(mended.get(text, text)),
    )  # fmt: skip
    slip, right = (reader.of(text, [best], best) for text in next(iter(mended.items())))
    assert slip.values == right.values and slip.values["name fit"] == 1
    assert slip.written.words[3] == "capitla"


def test_other_words_stand_outside_of_names(evidencer: Evidencer) -> None:
    best = tried('QueryName(Relate(Find("Norway"), capital, forward))', ("Oslo",))
    evidence = evidencer.of("What is the capital of Norway?", [best], best)
    texts = {in_other_words(evidence, evidencer.wording, Random(seed)) for seed in range(20)}
    assert "What is the latipac of Norway?" in texts
    assert all(text.startswith("What is the ") and text.endswith(" of Norway?") for text in texts)


def test_what_asks_for_more_is_wrong_with_the_same_program(evidencer: Evidencer) -> None:
    best = tried('QueryName(Relate(Find("Norway"), capital, forward))', ("Oslo",))
    other = tried('QueryAttr(Find("Peru"), area)', ("1",))
    evidence = evidencer.of("What is the capital of Norway?", [best], best)
    more = evidencer.of("What is the area of Peru?", [other], other)
    texts = {asking_more(evidence, more, Random(seed)) for seed in range(60)}
    assert "What is the capital of Norway and Peru?" in texts
    assert "What is the capital of both Norway and Peru?" in texts
    assert "What is the capital and area of Norway?" in texts
    assert "What is the capital of Norway and what is the area of Peru?" in texts
    told = ("names beside not used", "items beside not used", "asks again", "names not used")
    for text in texts:
        found = evidencer.of(text, [best], best)
        assert any(found.values[name] for name in told), text


def test_the_classifier() -> None:
    random = np.random.Generator(np.random.Philox(3))
    vectors = random.uniform(-1, 1, (400, 2)) * [1, 100]
    labels = np.where(vectors[:, 0] > 0.3, 2, (vectors[:, 1] > 0).astype(np.int64))
    found = Classifier.fit(vectors, labels, ("no", "yes", "other"), ridge=1e-4)
    shares = found.probabilities(vectors)
    assert np.allclose(shares.sum(1), 1) and (shares.argmax(1) == labels).mean() > 0.9
    again = Classifier.from_json(json.loads(json.dumps(found.to_json())))
    assert np.allclose(again.probabilities(vectors), shares, atol=1e-3)
    with pytest.raises(ValueError, match="shape"):
        Classifier.from_json({**found.to_json(), "mean": [0.0], "deviation": [1.0]})


def test_least_confidence_by_hand() -> None:
    sure = np.array([0.9, 0.8, 0.7, 0.2])
    right = np.array([True, True, False, False])
    assert 0.7 < least_confidence(sure, right, ~right) <= 0.8
    assert least_confidence(sure, np.ones(4, bool), np.zeros(4, bool)) == 0.5


def test_a_name_is_only_missed_where_there_is_one(evidencer: Evidencer) -> None:
    best = tried('QueryName(Relate(Find("Norway"), capital, forward))', ("Oslo",))
    near = tried('QueryName(Relate(Find("Norway"), capital, forward))', ("Oslo",))
    assert unknown_name(evidencer.of("What is the capital of Norway?", [best], best)) == ""
    assert unknown_name(evidencer.of("What is the capital of Nordwey?", [near], near)) == "Nordwey"
    # A name that there is, but not in the program, is not what is missed.
    assert unknown_name(evidencer.of("What is the capital of Norway and Peru?", [best], best)) == ""
    zero = tried('QueryAttr(Find("Norway"), area)', ("0 square kilometre",))
    assert evidencer.of("What is the area of Norway?", [zero], zero).values["zero"] == 1
    assert evidencer.of("What is the area of Norway?", [best], best).values["zero"] == 0


def test_another_schema_is_not_judged(parser: Parser) -> None:
    assert parser.silence is not None and parser.silence.knows_schema()
    bare = replace(parser.silence.wording, base={})
    parser.silence.wording, kept = bare, parser.silence.wording
    try:
        assert not parser.silence.knows_schema()
    finally:
        parser.silence.wording = kept


def test_on_another_schema_goes_what_was_fitted_on_such_ones(
    run: Path, small_examples: list[Example], tmp_path: Path
) -> None:  # fmt: skip
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    known = Parser.load(folder).silence
    assert known is not None
    text = json.loads((folder / FILE).read_text("utf-8"))
    items = text["wording"]["items"]  # as if training had none of the schema
    text["wording"]["items"] = [[kind, f"old {name}", share] for kind, name, share in items]
    (folder / FILE).write_text(json.dumps(text), "utf-8")
    assert Parser.load(folder).silence is None
    asked: list[Asked] = [*small_examples, *outside()]
    parts = [(Parser.load(folder), asked[part::2]) for part in range(2)]
    found = calibrate_refusals_elsewhere(folder, parts, 4)
    assert found.fitted.answerable == len(small_examples) and found.fitted.outside == len(outside())
    parser = Parser.load(folder)
    assert parser.silence is not None and parser.silence.least == pytest.approx(found.least)
    kinds = [parser.ask(one.question)[0].refused for one in outside()]
    assert sum(one is not None for one in kinds) > 0.8 * len(kinds)
    right = [parser.ask(one.question)[0].refused is None for one in small_examples]
    assert sum(right) > 0.6 * len(right)


def test_what_knows_nothing_elsewhere_is_not_fitted(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    with pytest.raises(RefusalError, match="answered rightly"):
        calibrate_refusals_elsewhere(folder, [(Parser.load(folder), outside())], 4)
    assert not (folder / FILE_ELSEWHERE).exists()
    (folder / FILE).unlink()
    with pytest.raises(RefusalError, match="first"):
        calibrate_refusals_elsewhere(folder, [(Parser.load(folder), outside())], 4)


def test_questions_elsewhere_are_the_same_again(run: Path, tmp_path: Path) -> None:
    from kb import load
    from kopl_cli.calibration import ELSEWHERE, questions_elsewhere
    from parsers.checkpoint import read_run

    number = ELSEWHERE[0]
    kb, settings = load(f"invented:{number}"), read_run(run)[0]
    found = questions_elsewhere(tmp_path, kb, settings, number, 30)
    assert sum(isinstance(one, Example) for one in found) == 30 and len(found) == 60
    assert found == questions_elsewhere(tmp_path, kb, settings, number, 30)
    assert not list(tmp_path.iterdir())


# --- what silence gains --------------------------------------------------------------------------


def test_risk_and_coverage_by_hand() -> None:
    found = SelectiveRisk.of([0.9, 0.3, 0.6, 0.6], [True, False, True, False])
    assert [(one.coverage, one.confidence) for one in found.points] == [
        (0.25, 0.9), (0.75, 0.6), (1.0, 0.3),
    ]  # fmt: skip
    assert [one.risk for one in found.points] == pytest.approx([0, 1 / 3, 1 / 2])
    assert found.area == pytest.approx((0 + 2 / 3 + 1 / 2) / 4)
    # Of four pairs of a right and a wrong one, three are in order and one is a tie.
    assert found.auroc == pytest.approx(3.5 / 4)
    assert found.at(0.5) == found.points[1] and found.at(1) == found.points[2]
    assert found.to_json()["risk by coverage"][0]["risk"] == 0


def test_risk_of_none_and_of_all_alike() -> None:
    assert SelectiveRisk.of([], []) == SelectiveRisk(None, None, ())
    assert SelectiveRisk.of([0.5, 0.4], [True, True]).auroc is None
    with pytest.raises(ValueError, match="1 confidences, but 2 outcomes"):
        SelectiveRisk.of([0.5], [True, False])
    many = SelectiveRisk.of([n / 500 for n in range(500)], [n > 99 for n in range(500)])
    assert len(many.points) <= 100 and many.points[-1].coverage == 1
    assert many.auroc == 1.0 and many.points[-1].risk == pytest.approx(0.2)


def test_an_evaluation_goes_by_what_ask_goes_by(
    run: Path, small_examples: list[Example], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    """Guided as asking is, confidences are those of the refusals; the report draws the curve."""
    page = tmp_path / "report.html"
    wrong = [replace(one, answer="Nowhere") for one in small_examples[:3]]
    write_examples(file := tmp_path / "asked.jsonl", [*wrong, *small_examples[3:20]])
    given = ["eval", str(run), "--data", str(file), "--execution-guided"]
    assert main([*given, "--html", str(page), "--json"]) == 0
    [scored] = json.loads(capsys.readouterr().out)["runs"]
    selective = scored["selective"]
    assert 0 <= selective["auroc"] <= 1 and selective["risk by coverage"][-1]["coverage"] == 1
    assert selective["risk by coverage"][-1]["risk"] >= 0.15
    assert "Risk and coverage" in page.read_text()
    assert main(given) == 0
    assert "right against wrong" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("question", "program", "left"),
    [
        ("What was the area of Norway in 1990?", 'QueryAttr(Find("Norway"), "area")', ["1990"]),
        ("which cities are not in Norway", 'FilterConcept(FindAll(), "city")', ["not"]),
        ("cities that aren't in Norway", 'FilterConcept(FindAll(), "city")', ["aren't"]),
        ("Which cities don’t lie there?", 'FilterConcept(FindAll(), "city")', ["don’t"]),
        ("isn't Oslo a city", 'FilterConcept(Find("Oslo"), "city")', []),
        ("What was it in 1905?", 'FilterYear(FindAll(), "founded", "1905", "=")', []),
    ],
)
def test_what_a_program_leaves_out_is_not_answered(
    evidencer: Evidencer, question: str, program: str, left: list[str]
) -> None:
    tried = Tried(Prediction(program, -0.01, read(program)), ("8",))
    assert evidencer.of(question, [tried], tried).left_out == left


def test_what_questions_would_wait_for_is_made_before(run: Path) -> None:
    parser = Parser.load(run)
    parser.prepare()
    assert parser.silence is not None
    evidencer = parser.silence.evidencer
    assert "_by_letter" in vars(evidencer) and "_words" in vars(evidencer.called)
