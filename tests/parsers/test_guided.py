"""Decoding guided by execution: calls that find nothing are not gone on with."""

from __future__ import annotations

from typing import Any

import pytest

from kb import KnowledgeBase
from kopl.example import Example
from kopl.executor import Executor
from kopl.program import post_order
from kopl.text import read
from parsers.constrain.rerank import PartialRuns
from tests.parsers.conftest import quick


@pytest.mark.parametrize(
    ("program", "nothing"),
    [
        ('Find("Norway")', False),
        ('Find("Atlantis")', True),
        ('QueryAttr(Find("Norway"), area)', False),
        ('QueryAttr(Find("Norway"), colour)', True),
        ('Count(Find("Atlantis"))', False),  # 0 is an answer
        ('FilterNum(FindAll(), area, "many", ">")', True),  # it fails
    ],
)
def test_which_calls_find_nothing(small: KnowledgeBase, program: str, nothing: bool) -> None:
    runs = PartialRuns(Executor(small))
    assert runs.finds_nothing(read(program)) is nothing
    assert runs.finds_nothing(read(program)) is nothing  # remembered


def test_no_call_of_what_an_untrained_model_writes_finds_nothing(
    torch: Any, small: KnowledgeBase, small_examples: list[Example]
) -> None:
    """Without guidance such calls are written; with it, only where nothing else was found."""
    from parsers.models import class_of

    executor = Executor(small)
    counts = {True: 0, False: 0}
    for seed in range(3):
        torch.manual_seed(seed)
        model = class_of("pointer").create(quick("pointer", "kopl"), small, small_examples)
        questions = [example.question for example in small_examples[::4]]
        for guided in (True, False):
            for predictions in model.predict(questions, beams=3, guided=guided):
                runs = PartialRuns(executor)
                for prediction in predictions:
                    calls = post_order(prediction.program)
                    counts[guided] += any(runs.finds_nothing(call) for call in calls)
    assert counts[False] > 0
    assert counts[True] == 0


def test_where_all_finds_nothing_the_beam_is_as_without(trained: Any, small: KnowledgeBase) -> None:
    from parsers.parser import Parser

    model = Parser.load(trained, small).model

    # A model that must begin with a name which has nothing: every way on is empty.
    class Nothing(PartialRuns):
        def finds_nothing(self, call: object) -> bool:
            return True

    patch = pytest.MonkeyPatch()
    patch.setattr("parsers.models.pointer.model.PartialRuns", Nothing)
    try:
        question = ["What is the area of Norway?"]
        assert model.predict(question, beams=3, guided=True) == model.predict(question, beams=3)
    finally:
        patch.undo()
