"""The few-shot parser with a trained one beside it: who answers, and what each counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from kb import KnowledgeBase
from kopl.example import Example
from kopl.text import read
from kopl_base.errors import SettingsError
from tests.parsers.llm_server import Server, chat, made_run, replying, server

pytest.importorskip("torch", reason="PyTorch is not installed (extra 'train')")
pytest.importorskip("httpx", reason="httpx is not installed (extra 'endpoints')")

from parsers.models.llm.beside import Beside, Readings
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


def test_elsewhere_the_language_model_answers_first(
    run: Run, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.play = lambda *_: chat(LIMA)
    parser = run("llm.sure=1")
    reading(monkeypatch, parser, {AREA: 0.5, OSLO: 0.2})
    best, second, third = parser.ask(NORWAY, top=3, least_confidence=0)
    assert len(server.asked) == 1
    assert [one.prediction.text for one in (best, second, third)] == [
        str(read(text)) for text in (LIMA, AREA, OSLO)
    ]
    # A reply, and one vote more than there are; the trained one's votes count by half, and its
    # second program has a half of what the first leaves.
    shares = [one.probability for one in (best, second, third)]
    assert shares == pytest.approx([1 / 2, 0.5 * 0.5 / 2, 0.5 * 0.25 / 2])


def test_where_both_answer_the_same_it_is_surer(
    run: Run, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.play = lambda *_: chat(OSLO)
    parser = run("llm.sure=1")
    reading(monkeypatch, parser, {AREA: 0.5, OSLO: 0.2})
    best, _ = parser.ask(NORWAY, top=2, least_confidence=0)
    assert (best.text, best.probability) == ("Oslo", pytest.approx((1 + 0.5 * 0.25) / 2))


@pytest.mark.parametrize("reply", ["I do not know.", LIMA.replace("capital", "twin")])
def test_where_the_language_model_finds_nothing_the_trained_one_answers(
    run: Run, server: Server, monkeypatch: pytest.MonkeyPatch, reply: str
) -> None:
    server.play = lambda *_: chat(reply)
    parser = run("llm.sure=1", "llm.repairs=0")
    reading(monkeypatch, parser, {OSLO: 0.5, AREA: 0.2})
    best, second = parser.ask(NORWAY, top=2, least_confidence=0)
    assert (best.text, best.probability) == ("Oslo", pytest.approx(0.5))
    assert second.probability == pytest.approx(0.2)


def test_where_the_trained_one_says_nothing_the_language_model_answers(
    run: Run, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Beside, "read", lambda self, question: Readings(()))
    server.play = lambda body, _: chat(OSLO)
    [answer] = run().ask(NORWAY, least_confidence=0)
    assert answer.text == "Oslo" and answer.probability == pytest.approx(1 / 2)


def test_candidates_are_what_answers_and_count_as_they_are_sure(run: Run) -> None:
    parser = run("llm.sure=1")
    model = parser.model
    assert isinstance(model, LlmModel)
    readings = Beside(model.own.beside, parser.kb, 1.0).read("What is the area of Mali?")
    first, *others = readings.candidates()
    assert first.weight == readings.confidence and first.says == ("1240192 square kilometre",)
    assert sum(one.weight for one in others) <= (1 - first.weight) / 2 + 1e-9


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    settings = read_settings(None, ["model=llm", f"llm.beside={tmp_path}"])
    with pytest.raises(SettingsError, match=r"llm\.beside: there is no run of a trained parser"):
        LlmModel.check(settings)
