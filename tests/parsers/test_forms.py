"""What questions ask of a program: one thing, several, yes or no; learnt and predicted with it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kb import KnowledgeBase, write_snapshot
from kopl.answer_forms import ASKED, PLAIN, Asking, Exists, Is, words_behind
from kopl.errors import ParseError
from kopl.example import Example
from kopl.executor import Executor
from kopl.functions import FUNCTIONS
from kopl.text import read, read_asked, write_asked
from kopl.typecheck import check
from kopl.types import Kind
from kopl_cli import main
from parsers.actions import FUNCTION, Actions, Draft, FreeDraft, outcome
from parsers.constrain import kopl_constraint
from parsers.linking import Linker, unsaid
from parsers.steps import steps_of
from parsers.tokens import Question
from tests.parsers.conftest import COUNTRIES, quick
from tests.parsers.constrain_support import decoded, table_of

NAMES = list(COUNTRIES)[:5]


def asked(kb: KnowledgeBase) -> list[Example]:
    """Questions with yes or no over sets and names, lists, and such as ask for one thing."""
    executor = Executor(kb)
    found = []

    def add(question: str, program: str, **told: Any) -> None:
        tree = read(program)
        answer = None if "answers" in told else told.pop("answer", executor.run(tree).answer)
        found.append(Example(question, tree, answer, **told))

    for at, name in enumerate(NAMES):
        capital, _, year = COUNTRIES[name]
        other = NAMES[(at + 1) % len(NAMES)]
        for subject, answer in ((name, "yes"), (other, "no")):
            add(f"Is {capital} the capital of {subject}?",
                f'Count(And(Relate(Find("{subject}"), capital, forward), Find("{capital}")))',
                answer=answer, answer_form=Exists())  # fmt: skip
        larger = f'SelectBetween(Find("{name}"), Find("{other}"), area, greater)'
        tree = executor.run(larger)
        add(f"Is {name} larger than {other}?", larger,
            answer="yes" if tree.answer == name else "no", answer_form=Is(name))  # fmt: skip
        add(f"Which is larger, {name} or {other}?", larger)
        countries = f'FilterConcept(FilterYear(FindAll(), inception, {year}, "="), country)'
        names = tuple(executor.run(f"QueryName({countries})").denotation)
        add(f"Which countries were founded in {year}?", f"QueryName({countries})", answers=names)
        add(f"How many countries were founded in {year}?", f"Count({countries})")
        add(f"What is the capital of {name}?",
            f'QueryName(Relate(Find("{name}"), capital, forward))')  # fmt: skip
    return found


# --- the actions of the pointer model ------------------------------------------------------------


def test_what_is_asked_comes_back_from_its_steps(small: KnowledgeBase) -> None:
    actions, linker = Actions.of(small), Linker(small)
    for example in asked(small):
        question = Question.of(example.question)
        draft = Draft(question, linker)
        for step in steps_of(example.program, question, actions, linker, example.asking):
            assert step.allowed == actions.allowed(draft) and step.slot == draft.slot
            draft.take(actions.entries[step.action] if step.action >= 0 else step.token)
        assert draft.done
        ended: Any = outcome(draft)
        assert (ended.program, ended.asking) == (example.program, example.asking)


def test_no_form_is_allowed_that_does_not_fit(small: KnowledgeBase) -> None:
    """Drafts that go on at random: behind a program only what is asked of its output, once."""
    actions, linker = Actions.of(small), Linker(small)
    question, seen = Question.of("Norway and 1960 or 5 Peru"), set()
    for seed in range(1500):
        rng, draft = random.Random(seed), Draft(question, linker)
        for _ in range(40):
            allowed = [actions.entries[number] for number in actions.allowed(draft)]
            words = {text for slot, text in allowed if slot == FUNCTION and text in ASKED}
            if words:
                [last] = draft.prefix.ready
                assert words == set(words_behind(last.type))
                seen |= {(word, draft.ready[-1].function.name) for word in words}
            if draft.asking is not None and draft.function is None:
                assert allowed == [(FUNCTION, "")]
            draft.take(rng.choice([*allowed, *draft.tokens()]))
            if draft.done:
                break
    assert ("exists", "Count") in seen and ("is", "QueryName") in seen
    assert {name for word, name in seen if word == "exists"} == {"Count"}
    assert not any(name.startswith("Verify") for _, name in seen)


def test_a_free_draft_says_what_does_not_fit(small: KnowledgeBase) -> None:
    draft = FreeDraft(Question.of("Norway"), Linker(small))
    draft.take((FUNCTION, "FindAll"))
    with pytest.raises(ParseError, match="'exists' is not asked of a set of entities"):
        draft.take((FUNCTION, "exists"))


def test_actions_of_before_say_nothing_of_what_is_asked(small: KnowledgeBase) -> None:
    actions = Actions.of(small, asked=())
    assert not actions.asked and Actions.of(small).asked == ASKED
    draft = Draft(Question.of("Norway"), Linker(small))
    draft.take((FUNCTION, "FindAll"))
    draft.take((FUNCTION, "Count"))
    assert actions.allowed(draft) == (0,)
    assert [Actions.of(small).entries[n] for n in Actions.of(small).allowed(draft)] == [
        (FUNCTION, ""), (FUNCTION, "exists"),
    ]  # fmt: skip


# --- texts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["byte-level", "unigram"])
def test_texts_say_only_what_fits_their_program(small: KnowledgeBase, kind: str) -> None:
    pytest.importorskip("tokenizers")
    texts = [write_asked(example.program, example.asking) for example in asked(small)]
    _, table = table_of(kind, small, [*FUNCTIONS, *texts, "0 1 2 3 4 5 6 7 8 9 - ."])
    constraint = kopl_constraint(small, table, asked=True)
    plain, seen = kopl_constraint(small, table), set()
    for seed in range(600):
        text = table.text(decoded(constraint, random.Random(seed)))
        program, asking = read_asked(text)
        check(program)
        seen.add((*asking.words[:1], program.function.name))
        assert plain.accepts(text) is (asking == PLAIN)
        if isinstance(asking.form, Is):
            assert len(small.named(asking.form.name))
    said = {word for word, *_ in seen if word in ASKED}
    assert said == set(ASKED), said
    for example in asked(small):
        assert constraint.accepts(write_asked(example.program, example.asking))


def test_texts_are_read_back(small: KnowledgeBase) -> None:
    from parsers.languages import KoplLanguage, NotWritableError, Outline

    language = KoplLanguage(small)
    for example in asked(small):
        prediction = language.read(language.gold(example))
        assert (prediction.program, prediction.asking) == (example.program, example.asking)
        outline = Outline.of(example.program, example.asking)
        assert outline.read() == (example.program, example.asking)
    names = read("QueryName(FindAll())")
    marked = Asking(Is("a <arg> b \\"))
    assert read_asked(write_asked(names, marked)) == (names, marked)
    for text, message in (
        ("FindAll <func> exists", "'exists' is not asked of a set of entities"),
        ("FindAll <func> Count <func> several", "'several' is not asked of a number"),
        ("FindAll <func> is", "'is' says nothing"),
        ("exists", "exists"),
    ):
        found = language.read(text)
        assert found.program is None and message in str(found.error)
    area = Example("?", read('QueryAttr(Find("Norway"), area)'), "yes", answer_form=Is("5"))
    with pytest.raises(NotWritableError, match="'is' is not asked of attribute values"):
        language.gold(area)
    language.says_asking = False
    [listed] = [one for one in asked(small) if one.answers][:1]
    assert language.read(language.gold(listed)).asking is None


def test_words_behind_functions(small: KnowledgeBase) -> None:
    """What the recurrent network may write: only what fits, and then the end."""
    from parsers.models.decoding_constraints import ArgumentConstraint, FunctionConstraint

    texts = ["", *FUNCTIONS, *ASKED]
    by_kind = {kind: [1] for kind in Kind}
    constraint = FunctionConstraint(texts, by_kind)
    for names, words in (
        (["FindAll", "Count"], {"exists"}),
        (["FindAll", "QueryName"], {"several", "is"}),
        (["FindAll", "QueryAttr"], {"several"}),
        (["FindAll", "FindAll"], set()),
        (["FindAll", "Count", "exists"], set()),
    ):  # fmt: skip
        state = constraint.start()
        for name in names:
            state = constraint.advance(state, texts.index(name))
        allowed = {texts[number] for number in constraint.allowed(state)}
        assert allowed & set(ASKED) == words
        assert names[-1] != "exists" or allowed == {""}
    old = FunctionConstraint(["", *FUNCTIONS], by_kind)
    state = old.advance(old.advance(old.start(), 1), texts.index("Count"))
    assert len(ArgumentConstraint("is", by_kind).allowed(0)) == 1
    assert ArgumentConstraint("exists", by_kind).allowed(0).tolist() == [0]
    assert old.allowed(state).tolist() == [0]


# --- models --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def forms(
    torch: Any, small: KnowledgeBase, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """The folder of a run of a model that learnt the questions by heart, when asked for."""
    from parsers.training import begin

    folder = tmp_path_factory.mktemp("forms")
    write_snapshot(small, folder / "small.kopl")

    def run(model: str) -> Path:
        found = folder / model
        if not found.exists():
            chosen = quick(model, "kopl", f"kb={folder / 'small.kopl'}")
            examples = asked(small)
            assert begin(found, chosen, small, examples, examples[:8]).run()
        return found

    return run


@pytest.mark.parametrize("model", ["pointer", "rnn", "seq2seq"])
def test_what_is_asked_is_learnt(
    forms: Callable[[str], Path], small: KnowledgeBase, model: str
) -> None:
    from parsers.evaluation.accuracy import evaluate
    from parsers.parser import Parser

    parser, examples = Parser.load(forms(model)), asked(small)
    right = same = 0
    for example in examples:
        [answer] = parser.ask(example.question)
        right += answer.answers == (example.answers or (example.answer,))
        same += answer.prediction.asking == example.asking
    assert right >= 0.9 * len(examples) and same >= 0.9 * len(examples)
    assert evaluate(parser.model, examples, []).accuracy >= 0.9


def test_a_prediction_is_read_by_its_own_form(small: KnowledgeBase) -> None:
    """As `kopl ask` reads it; that of a model which says no form, by the question's."""
    from parsers.evaluation.accuracy import Report
    from parsers.evaluation.judging import judge
    from parsers.languages import KoplLanguage, Prediction

    language = KoplLanguage(small)
    [example] = [one for one in asked(small) if one.answer_form == Exists()][:1]
    verdicts = {}
    for asking in (Asking(Exists()), PLAIN, None):
        prediction = Prediction("", 0.0, example.program, None, asking)
        judged = judge(example, prediction, language)
        verdicts[asking] = judged.verdict
        [*notes] = Report([judged], frozenset()).notes()
        assert any("1 question wants yes or no" in note for note in notes) is (asking is None)
    assert verdicts == {Asking(Exists()): "right", PLAIN: "wrong answer", None: "right"}


def test_the_command_says_yes_and_no(
    forms: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["ask", "--run", str(forms("pointer"))]
    capsys.readouterr()
    assert main([*command, "Is Lima the capital of Peru?"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("answer: yes  (") and "yes where that is one or more; it is 1" in out
    assert main([*command, "--trace", "Is Oslo the capital of Sweden?"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("answer: no  (") and "one or more; it is 0" in out and "#4\t" in out
    assert main([*command, "Is Norway larger than Sweden?"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("answer: no  (") and "yes where that is Norway; it is Sweden" in out
    assert main([*command, "--json", "Is Oslo the capital of Norway?"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["answer"], found["answers"], found["denotation"]) == ("yes", ["yes"], ["1"])
    assert found["answer_form"] == "exists" and found["several"] is False


def test_several_answers_are_an_answer(
    forms: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["ask", "--run", str(forms("pointer"))]
    capsys.readouterr()
    assert main([*command, "Which countries were founded in 1960?"]) == 0
    assert capsys.readouterr().out.startswith("answers: Chad; Ivory Coast; Mali  (")
    assert main([*command, "--json", "Which countries were founded in 1960?"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["answers"] == ["Chad", "Ivory Coast", "Mali"] and found["several"] is True


def test_no_is_not_said_of_names_that_are_not_there(
    forms: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    from parsers.parser import Parser

    parser = Parser.load(forms("pointer"))
    [known] = parser.ask("Is Oslo the capital of Swedn?")
    assert known.answers == ("no",) and not known.unnamed
    [answer] = parser.ask("Is Oslo the capital of Qwxzzt?")
    capsys.readouterr()
    assert answer.result is not None and answer.form == Exists()
    assert answer.answers == () and answer.text is None and len(answer.unnamed) == 1
    assert main(["ask", "--run", str(forms("pointer")), "Is Oslo the capital of Qwxzzt?"]) == 1
    assert capsys.readouterr().out.startswith("answer: none: the question does not say '")


def test_which_names_a_question_nearly_says(small: KnowledgeBase) -> None:
    program = read('Count(And(Find("Papua New Guinea"), Find("Norway")))')
    question = "is papua new guinae in norwy"
    assert unsaid(program, question, small) == ["Papua New Guinea", "Norway"]
    assert unsaid(program, question, small, ["Peru"], nearly=True) == ["Peru"]


def test_a_run_of_before_says_nothing_of_what_is_asked(
    torch: Any, small: KnowledgeBase, small_examples: list[Example]
) -> None:
    """On another knowledge base, too; nor does one that learns of none."""
    from parsers.registry import model_class

    kind = model_class("pointer")
    model: Any = kind.create(quick(), small, asked(small))
    assert model.actions.asked == ASKED
    assert all(one.asking is not None for one in model.predict(["capital of Norway"], beams=4)[0])
    state = model.state()
    state["actions"] = [one for one in state["actions"] if one[1] not in ASKED]
    old: Any = kind.restore(quick(), small, state, Path())
    for one in (old, old.moved(), kind.create(quick(), small, small_examples)):
        found = one.predict(["What is the capital of Norway?"], beams=4)[0]
        assert found and all(written.asking is None for written in found)


def test_examples_say_what_is_asked(small: KnowledgeBase) -> None:
    kinds = {example.asking for example in asked(small) if not isinstance(example.asking.form, Is)}
    assert kinds == {PLAIN, Asking(several=True), Asking(Exists())}
    for asking in (*kinds, Asking(Is("Oslo"))):
        assert Asking.of_words(asking.words) == asking
    with pytest.raises(ValueError, match="says nothing"):
        Asking.of_words(["is"])
