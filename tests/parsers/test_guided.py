"""Decoding guided by execution: calls that find nothing are not gone on with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest

from kb import KnowledgeBase
from kopl.example import Example
from kopl.executor import Executor
from kopl.program import post_order
from kopl.text import read
from parsers.constrain.rerank import PartialRuns, plausible
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


def test_no_call_of_what_an_untrained_network_writes_finds_nothing(
    torch: Any, small: KnowledgeBase, small_examples: list[Example]
) -> None:
    """Without guidance such calls are written; with it, never."""
    from parsers.models.pointer.model import Decoder
    from parsers.registry import model_class

    executor = Executor(small)
    counts = {True: 0, False: 0}
    for seed in range(3):
        torch.manual_seed(seed)
        model: Any = model_class("pointer").create(quick("pointer", "kopl"), small, small_examples)
        decoder = Decoder(model.network, model.vocabulary, model.actions, model.linker)
        for example in model.prepare(small_examples[::4])[0]:
            for guided in (True, False):
                runs = PartialRuns(executor)
                [found] = decoder.best([example.asked], 3, runs if guided else None)
                for written in found:
                    calls = post_order(written.program)
                    counts[guided] += any(runs.finds_nothing(call) for call in calls)
    assert counts[False] > 0
    assert counts[True] == 0


def test_the_second_search_comes_only_where_the_best_finds_nothing(
    torch: Any, small: KnowledgeBase, small_examples: list[Example]
) -> None:
    from parsers.registry import model_class

    runs, more = PartialRuns(Executor(small)), 0
    for seed in range(3):
        torch.manual_seed(seed)
        model: Any = model_class("pointer").create(quick("pointer", "kopl"), small, small_examples)
        questions = [example.question for example in small_examples[::4]]
        alone = model.predict(questions, beams=3)
        for without, guided in zip(
            alone, model.predict(questions, beams=3, guided=True), strict=True
        ):
            if runs.finds_nothing(without[0].program):
                assert set(map(str, without)) <= set(map(str, guided))
                more += len(guided) > len(without)
            else:
                assert guided == without
    assert more


@dataclass(frozen=True)
class One:
    """A prediction."""

    log_probability: float


def test_what_is_far_less_probable_takes_no_place() -> None:
    predictions = [One(-1.0), One(-1.0 - math.log(99)), One(-1.0 - math.log(101)), One(-0.5)]
    assert plausible(predictions) == [predictions[3], predictions[0]]
    assert plausible(predictions[:3]) == predictions[:2]
    assert plausible([]) == []
