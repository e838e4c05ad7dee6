"""Decoding guided by execution: calls that find nothing are not gone on with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest

from kb import Builder, KnowledgeBase, Quantity
from kopl.answer_forms import Asking, Exists
from kopl.example import Example
from kopl.executor import Executor
from kopl.program import post_order
from kopl.text import read
from parsers.constrain.rerank import PartialRuns, by_evidence, plausible
from parsers.languages import Prediction
from parsers.linking import Linker
from parsers.names import with_related
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
                [found] = decoder.best([example.asked], 3, [runs] if guided else ())
                for written in found:
                    assert written.program is not None
                    calls = post_order(written.program)
                    counts[guided] += any(runs.finds_nothing(call) for call in calls)
    assert counts[False] > 0
    assert counts[True] == 0


def test_the_second_search_comes_only_where_the_best_finds_nothing(
    torch: Any, small: KnowledgeBase, small_examples: list[Example]
) -> None:
    from parsers.registry import model_class

    runs, more = PartialRuns(Executor(small)), 0
    for seed in (2, 3, 6):  # some of them write what says nothing
        torch.manual_seed(seed)
        model: Any = model_class("pointer").create(quick("pointer", "kopl"), small, small_examples)
        questions = [example.question for example in small_examples[::4]]
        alone = model.predict(questions, beams=3)
        for without, guided in zip(
            alone, model.predict(questions, beams=3, guided=True), strict=True
        ):
            if runs.says_nothing(without[0].program):
                assert set(map(str, without)) <= set(map(str, guided))
                more += len(guided) > len(without)
            else:
                assert guided == without
    assert more


@pytest.mark.parametrize(
    ("program", "nothing"),
    [
        ('Count(Relate(Find("Norway"), capital, forward))', False),
        # Norway is no capital, and no country has one that is a country: this was hardly asked.
        ('Count(Relate(Find("Norway"), capital, backward))', True),
        ('Count(FilterConcept(Relate(Find("Norway"), capital, forward), country))', True),
        ('Count(And(Relate(Find("Norway"), capital, forward), Find("Peru")))', True),
        ('Count(And(Relate(Find("Norway"), capital, forward), Find("Norway")))', True),
        # But Lima is a city, as capitals are; and Norway is simply not so large.
        ('Count(And(Relate(Find("Norway"), capital, forward), Find("Lima")))', False),
        ('Count(FilterNum(Find("Norway"), area, "1e9 square kilometre", ">"))', False),
        ('Count(FilterConcept(Find("Norway"), city))', False),
        ('VerifyYear(QueryAttr(Find("Norway"), inception), "1906", "=")', False),
        ('VerifyYear(QueryAttr(Find("Oslo"), inception), "1906", "=")', True),
        ('VerifyYear(QueryAttr(Find("Norway"), inception), "1905", "=")', False),
        ('QueryAttr(Find("Norway"), colour)', True),
    ],
)
def test_what_says_nothing(small: KnowledgeBase, program: str, nothing: bool) -> None:
    assert PartialRuns(Executor(small)).says_nothing(read(program)) is nothing


ONE, SEVERAL = Asking(), Asking(several=True)
CAPITAL = 'QueryName(Relate(Find("Norway"), capital, forward))'
COUNTRIES = "QueryName(FilterConcept(FindAll(), country))"
CITIES = "QueryName(FilterConcept(FindAll(), city))"
NOTHING = 'QueryAttr(Find("Norway"), colour)'
NO_CITY = 'Count(And(Relate(Find("Norway"), capital, forward), Find("Lima")))'
NO_COUNTRY = 'Count(And(Relate(Find("Norway"), capital, forward), Find("Peru")))'
YES = Asking(Exists())


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        # One answer is preferred where one is asked for, unless it is far less probable.
        ([(0.5, COUNTRIES, ONE), (0.2, CAPITAL, ONE)], [CAPITAL, COUNTRIES]),
        ([(0.5, COUNTRIES, ONE), (0.02, CAPITAL, ONE)], [COUNTRIES, CAPITAL]),
        # Not where several are asked for.
        ([(0.5, COUNTRIES, SEVERAL), (0.4, CAPITAL, ONE)], [COUNTRIES, CAPITAL]),
        ([(0.5, CAPITAL, SEVERAL), (0.4, COUNTRIES, SEVERAL)], [COUNTRIES, CAPITAL]),
        # A model that does not say what is asked: one answer, as before.
        ([(0.5, COUNTRIES, None), (0.02, CAPITAL, None)], [CAPITAL]),
        ([(0.5, COUNTRIES, None), (0.4, CITIES, None)], [COUNTRIES]),
        # What finds nothing goes; a "no" of what nothing is known of comes behind the others.
        ([(0.9, NOTHING, ONE), (0.02, CAPITAL, ONE)], [CAPITAL]),
        ([(0.9, NOTHING, ONE)], [NOTHING]),
        ([(0.9, NO_COUNTRY, YES), (0.02, CAPITAL, ONE)], [CAPITAL, NO_COUNTRY]),
        ([(0.9, NO_CITY, YES), (0.3, CAPITAL, ONE)], [NO_CITY, CAPITAL]),
    ],
)  # fmt: skip
def test_what_is_asked_decides(
    small: KnowledgeBase, given: list[tuple[float, str, Asking | None]], kept: list[str]
) -> None:
    executor = Executor(small)
    predictions = [
        Prediction(text, math.log(probability), read(text), None, asking)
        for probability, text, asking in given
    ]
    found = by_evidence(
        predictions, lambda one: executor.run(one.program or ""), PartialRuns(executor)
    )
    assert [one.prediction.text for one in found.kept] == kept
    assert {one.prediction.text for one in (*found.kept, *found.dropped)} == {
        text for _, text, _ in given
    }


def test_values_of_one_thing_by_year_are_one_answer(tiny: KnowledgeBase) -> None:
    """A population is asked for: the area is a poorer reading, though it has one value."""
    executor = Executor(tiny)
    readings = ['QueryAttr(Find("France"), population)', 'QueryAttr(Find("France"), area)']
    predictions = [
        Prediction(text, math.log(probability), read(text), None, ONE)
        for text, probability in zip(readings, (0.6, 0.3), strict=True)
    ]
    found = by_evidence(
        predictions, lambda one: executor.run(one.program or ""), PartialRuns(executor)
    )
    assert [one.prediction.text for one in found.kept] == readings
    # Values of several things are several answers still.
    assert not PartialRuns(executor).is_series(
        read("QueryAttr(FilterConcept(FindAll(), city), area)")
    )


def test_names_that_a_name_may_be_short_for() -> None:
    builder = Builder()
    builder.add_concept("c", "thing")
    for name, facts, aliases in (
        ("Victoria", 0, []), ("Lake Victoria", 1, []), ("Victoria Falls", 2, []),
        ("Great Lake", 3, ["Victoria lake"]), ("Victorian era", 9, []), ("Michigan", 0, []),
        ("Lake Michigan", 1, []),
    ):  # fmt: skip
        builder.add_entity(name, name, ["c"], aliases=aliases)
        for number in range(facts):
            builder.add_attribute(name, f"key {number}", Quantity(1))
    names = Linker(builder.build()).names
    # What the question says comes first, then what most is known of.
    assert names.related("Victoria", "How deep is Lake Victoria?") == [
        "Lake Victoria", "Great Lake", "Victoria Falls",
    ]  # fmt: skip
    assert names.related("Lake Victoria", "?") == ["Victoria"]
    assert names.related("Lake", "?")[:1] == ["Great Lake"]
    program = read('SelectBetween(Find("Victoria"), Find("Michigan"), area, greater)')
    found = list(with_related(program, names, "Is Lake Victoria larger than Lake Michigan?"))
    assert 'Find("Lake Victoria"), Find("Lake Michigan")' in str(found[-1])
    assert len(found) == 3 + 1 + 1


@dataclass(frozen=True)
class One:
    """A prediction."""

    log_probability: float


def test_what_is_far_less_probable_takes_no_place() -> None:
    predictions = [One(-1.0), One(-1.0 - math.log(99)), One(-1.0 - math.log(101)), One(-0.5)]
    assert plausible(predictions) == [predictions[3], predictions[0]]
    assert plausible(predictions[:3]) == predictions[:2]
    assert plausible([]) == []
