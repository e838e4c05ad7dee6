"""The few-shot parser with a trained one beside it: who answers, what is chosen, what it counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from kb import KnowledgeBase
from kopl.example import Example
from kopl.text import read, write_nested
from kopl_base.errors import SettingsError
from tests.parsers.llm_server import Server, chat, made_run, replying, server

pytest.importorskip("torch", reason="PyTorch is not installed (extra 'train')")
pytest.importorskip("httpx", reason="httpx is not installed (extra 'endpoints')")

from parsers.models.llm.beside import Beside, Readings, alternatives, grammar_of
from parsers.models.llm.model import LlmModel
from parsers.parser import Answer, Parser
from parsers.settings import read_settings

__all__ = ["server"]

NORWAY = "What is the capital of Norway?"
OSLO = 'QueryName(Relate(Find("Norway"), "capital", "forward"))'
LIMA = OSLO.replace("Norway", "Peru")
AREA = 'QueryAttr(Find("Norway"), "area")'
Run = Callable[..., Parser]


def reading(monkeypatch: pytest.MonkeyPatch, parser: Parser, programs: dict[str, float]) -> None:
    """Let the trained parser read every question so, as sure as it says."""
    language = parser.model.language
    found = [language.of_program(read(text), math.log(share)) for text, share in programs.items()]
    answers = tuple(Answer(one, language.run(one), None) for one in found)
    monkeypatch.setattr(Beside, "read", lambda self, question: Readings(answers))


@pytest.fixture
def run(
    tmp_path: Path, small: KnowledgeBase, small_examples: list[Example], server: Server,
    trained: Path,
) -> Run:  # fmt: skip
    """A parser that asks the server, beside one that was trained."""

    def made(*pairs: str) -> Parser:
        pairs = (f"llm.beside={trained}", *pairs)
        return Parser.load(
            made_run(tmp_path / "run", small, small_examples[:-7], server.url, *pairs)
        )

    server.play = replying(small_examples)
    return made


def test_where_the_trained_one_is_sure_it_answers_alone(run: Run, server: Server) -> None:
    [answer] = run("llm.sure=0.5").ask(NORWAY)
    assert answer.text == "Oslo" and answer.probability > 0.5 and not server.asked


def test_elsewhere_the_language_model_is_asked_and_chooses(
    run: Run, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = iter([LIMA, OSLO])
    server.play = lambda body, _: chat(next(replies))
    parser = run("llm.sure=1")
    reading(monkeypatch, parser, {AREA: 0.5, OSLO: 0.2})
    best, second, third = parser.ask(NORWAY, top=3)
    first, last = (body["messages"] for body in server.asked)
    assert last[:-2] == first and last[-2]["content"] == LIMA
    assert last[-1]["content"] == (
        f"These are programs, too:\n{AREA}\n{OSLO}\nWrite the right one of them, on one line."
    )
    # Two replies and one vote more than there are: three votes, and as many for the trained one,
    # whose second program has a half of what the first leaves.
    assert [one.prediction.text for one in (best, second, third)] == [
        str(read(text)) for text in (OSLO, AREA, LIMA)
    ]
    shares = [one.probability for one in (best, second, third)]
    assert shares == pytest.approx([(1 + 3 * 0.25) / 6, 3 * 0.5 / 6, 1 / 6])
    assert third.refused is not None


def test_under_a_grammar_it_can_choose_nothing_else(
    run: Run, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.play = lambda body, _: chat(LIMA)
    parser = run("llm.sure=1", "llm.grammar=llama.cpp")
    reading(monkeypatch, parser, {AREA: 0.5, OSLO: 0.2})
    parser.ask(NORWAY)
    own, choice = server.asked
    assert own["messages"] == choice["messages"] and "Find" in own["grammar"]
    assert choice["grammar"] == (
        'root ::= "QueryAttr(Find(\\"Norway\\"), \\"area\\")"'
        ' | "QueryName(Relate(Find(\\"Norway\\"), \\"capital\\", \\"forward\\"))"\n'
    )


def test_where_the_trained_one_says_nothing_the_language_model_answers(
    run: Run, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Beside, "read", lambda self, question: Readings(()))
    server.play = lambda body, _: chat(OSLO)
    [answer] = run().ask(NORWAY, least_confidence=0)
    assert answer.text == "Oslo" and answer.probability == pytest.approx(1 / 4)
    assert len(server.asked) == 1  # among one program there is nothing to choose


def test_candidates_are_what_answers_and_count_as_they_are_sure(run: Run) -> None:
    parser = run("llm.sure=1")
    model = parser.model
    assert isinstance(model, LlmModel)
    readings = Beside(model.own.beside, parser.kb, 1.0).read("What is the area of Mali?")
    first, *others = readings.candidates()
    assert first.weight == readings.confidence and first.says == ("1240192 square kilometre",)
    assert sum(one.weight for one in others) <= (1 - first.weight) / 2 + 1e-9
    programs = alternatives([first, first, *others])
    assert programs[0] == 'QueryAttr(Find("Mali"), "area")' and len(programs) == len(set(programs))


def test_a_grammar_of_programs_keeps_quotes_and_signs() -> None:
    hard = write_nested(read('QueryAttr(Find("a \\"b\\" \\\\ ü | c"), "k")'))
    assert grammar_of([OSLO, hard]).count('::= "') == 1
    assert '\\\\\\"b\\\\\\"' in grammar_of([hard]) and "ü | c" in grammar_of([hard])


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    settings = read_settings(None, ["model=llm", f"llm.beside={tmp_path}"])
    with pytest.raises(SettingsError, match=r"llm\.beside: there is no run of a trained parser"):
        LlmModel.check(settings)
