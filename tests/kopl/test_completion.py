"""What is suggested in holes of programs: that it is there, leads to something, and comes fast."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kb
from kopl import Executor, LimitError, Limits
from kopl.completion import Completer, Suggestion
from kopl.denotation import Located, Outcome
from kopl.drafts import HOLE, Draft, EditError, Slot, read_draft
from kopl.functions import AND, FUNCTIONS
from kopl.program import Call, post_order
from tests.kopl.strategies import documents
from tests.kopl.test_drafts import drafts


@cache
def world() -> Completer:
    return Completer(Executor(kb.load("world")))


def suggested(text: str, slot: Slot, typed: str = "", **options: Any) -> list[Suggestion]:
    return world().complete(read_draft(text), slot, typed, **options).suggestions


def texts(
    text: str, index: int, typed: str = "", path: tuple[int, ...] = (), **o: Any
) -> list[str]:
    return [one.text for one in suggested(text, Slot(path, "argument", index), typed, **o)]


def put(draft: Draft, slot: Slot, one: Suggestion) -> Draft:
    """The draft with a suggestion in the place for which it was made."""
    if slot.kind == "argument":
        for index, text in ((slot.index, one.text), *one.sets):
            draft = draft.with_argument(slot.path, index, text)
        return draft
    if slot.kind == "wrap":
        return draft.wrapped(slot.path, one.text)
    path = slot.path if slot.kind == "function" else (*slot.path, slot.index)
    return draft.with_function(path, one.text)


def leads_to_nothing(executor: Executor, draft: Draft, slot: Slot, one: Suggestion) -> str | None:
    """The call that a suggestion makes whole and that gives nothing; None where there is none."""
    new = put(draft, slot, one)
    path = slot.path if slot.kind != "input" else (*slot.path, slot.index)
    shared: dict[Call, Outcome] = {}
    call = new.at(path)
    if not call.is_whole or call.problems():
        return None
    outcome = executor.outcome(call.call(), shared)
    if not len(outcome):
        return str(call)
    above = new.at(path[:-1]) if path else HOLE
    if above.function is AND and above.is_whole and not above.problems():
        other = executor.outcome(above.inputs[1 - path[-1]].call(), shared)
        if len(other) and not len(executor.outcome(above.call(), shared)):
            return str(above)
    return None


def every_slot(draft: Draft) -> list[Slot]:
    """All places that can be completed, written ones too."""
    found = []
    for call, path in zip(post_order(draft), draft.paths(), strict=True):
        found += [Slot(path, "function"), Slot(path, "wrap")]
        found += [Slot(path, "argument", index) for index in range(len(call.arguments))]
        found += [Slot(path, "input", index) for index in range(len(call.inputs))]
    return found


@settings(max_examples=150, deadline=None)
@given(documents(), drafts(), st.data())
def test_nothing_suggested_leads_to_an_empty_set(
    document: dict[str, Any], draft: Draft, data: st.DataObject
) -> None:
    executor = Executor(kb.from_kqapro(document))
    completer = Completer(executor)
    for slot in data.draw(st.permutations(every_slot(draft)))[:4]:
        typed = data.draw(
            st.sampled_from(["", "", "5", "1998", "6.5 m", "1998-02", "2001", "a", "x"])
        )
        found = completer.complete(draft, slot, typed, limit=50)
        names = [(one.text, one.sets) for one in found.suggestions]
        assert len(set(names)) == len(names) <= found.count
        for one in found.suggestions:
            assert leads_to_nothing(executor, draft, slot, one) is None, (str(draft), slot, one)


@settings(max_examples=60, deadline=None)
@given(documents(), drafts(), st.data())
def test_what_leads_to_something_is_suggested(
    document: dict[str, Any], draft: Draft, data: st.DataObject
) -> None:
    """The other way round, for arguments that name items of the knowledge base."""
    base = kb.from_kqapro(document)
    executor = Executor(base)
    completer = Completer(executor)
    slots = [slot for slot in every_slot(draft) if slot.kind == "argument"]
    for slot in slots[:3]:
        call = draft.at(slot.path)
        assert call.function is not None
        kind = call.function.arguments[slot.index][1]
        there = {
            "RELATION": base.relations,
            "KEY": base.attribute_keys,
            "QUALIFIER_KEY": base.qualifier_keys,
            "DIRECTION": ["forward", "backward"],
            "OPERATOR": ["=", "!=", "<", ">"],
            "CONCEPT": base.names_of_kind("concept"),
        }.get(kind.name, [])
        found = {one.text for one in completer.complete(draft, slot, limit=100).suggestions}
        for text in there:
            new = draft.with_argument(slot.path, slot.index, text)
            whole = new.at(slot.path)
            if not text or not whole.is_whole or new.problems():
                continue
            outcome = executor.outcome(whole.call(), {})
            if len(outcome) and len(slot.path) == 0:
                assert text in found, (str(new), found)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_leads_to_an_empty_set_over_world(seed: int) -> None:
    """Programs grown by suggestions alone never come to nothing."""
    chance = random.Random(seed)
    completer = world()
    executor = completer.executor
    for _ in range(12):
        draft = HOLE
        for _ in range(25):
            slots = [*draft.slots()]
            if not slots:
                if draft.size > 8 or FUNCTIONS[draft.function.name].output.name not in (  # type: ignore[union-attr]
                    "ENTITIES",
                    "FACTS",
                    "VALUES",
                ):
                    break
                slots = [Slot((), "wrap")]
            slot = slots[0]
            found = completer.complete(draft, slot, limit=20).suggestions
            if slot.kind == "function":
                found = [one for one in found if one.text == "Find"]
            if not found:  # what was chosen above it does not fit what was then chosen below
                assert any(one.size > 1 for one in draft.inputs)
                break
            for one in found:
                assert leads_to_nothing(executor, draft, slot, one) is None, (str(draft), slot, one)
            draft = put(draft, slot, chance.choice(found))
        assert draft.size > 1


# --- what comes -------------------------------------------------------------------------------


def test_names_come_by_how_they_begin_and_by_what_they_are_nearly() -> None:
    assert texts("Find(?)", 0, "norw")[0] == "Norway"
    assert "Düsseldorf" in texts("Find(?)", 0, "dussel")
    assert "Norway" in texts("Find(?)", 0, "Norwya")
    assert texts("Find(?)", 0)[:2] == ["United States", "China"]
    found = suggested("Find(?)", Slot((), "argument"), "burma")
    assert ("Myanmar", "Burma") in [(one.text, one.also) for one in found]


def test_relations_are_those_of_the_things_here_with_their_direction() -> None:
    found = suggested('Relate(Find("Oslo"), ?, ?)', Slot((), "argument"), limit=100)
    by_text = {(one.text, one.sets): one for one in found}
    capital = by_text["capital", ((1, "backward"),)]
    assert (capital.kind, capital.count, capital.example) == ("relation", 1, "Norway")
    assert ("capital", ((1, "forward"),)) not in by_text
    forward = suggested('Relate(Find("Oslo"), ?, "forward")', Slot((), "argument"), limit=100)
    assert "capital" not in {one.text for one in forward}
    assert not any(one.sets for one in forward)
    assert texts('Relate(Find("Oslo"), "capital", ?)', 1) == ["backward"]
    everything = suggested(
        'Relate(Find("Oslo"), ?, "forward")', Slot((), "argument"), scope="schema", limit=200
    )
    assert "capital" in {one.text for one in everything}


def test_keys_have_values_of_the_type_and_units_are_those_of_the_key() -> None:
    numbers = texts("FilterNum(FindAll(), ?, ?, ?)", 0, limit=200)
    assert "population" in numbers and "date of birth" not in numbers
    assert "population" not in texts("FilterYear(FindAll(), ?, ?, ?)", 0, limit=200)
    found = suggested('FilterNum(FindAll(), "area", ?, ">")', Slot((), "argument", 1), "12345")
    assert [(one.text, one.kind) for one in found] == [("12345 square kilometre", "unit")]
    assert texts('FilterNum(FindAll(), "area", ?, ">")', 1, "99999999999") == []
    assert texts('FilterNum(FindAll(), "area", "0 square kilometre", ?)', 2) == ["=", "!=", ">"]
    [later] = suggested(
        'FilterYear(FindAll(), "date of independence", ?, "<")', Slot((), "argument", 1), "2345"
    )
    assert (later.text, later.kind) == ("2345", "value")
    values = texts(
        'FilterStr(FilterConcept(FindAll(), "country"), "ISO 3166-1 alpha-2 code", ?)', 1, "no"
    )
    assert values[0] == "NO"
    years = texts('FilterYear(FindAll(), "date of independence", ?, "=")', 1, "190")
    assert years[0].isdigit() and years[0].startswith("190")


def test_qualifiers_are_those_of_the_facts_here() -> None:
    carried = 'Relate(Find("Norway"), "head of state", "forward")'
    assert texts(f"QFilterYear({carried}, ?, ?, ?)", 0) == ["start time"]
    assert texts(f"QFilterStr({carried}, ?, ?)", 0) == ["position held"]
    assert texts(f'QFilterStr({carried}, "position held", ?)', 1) == ["King"]
    assert texts(f'QFilterYear({carried}, "start time", "1991", ?)', 2) == ["="]
    between = 'Find("Norway"), Find("Harald V")'
    assert texts(f"QueryRelationQualifier({between}, ?, ?)", 0) == ["head of state"]


def test_the_other_side_is_looked_at() -> None:
    border = 'Relate(Find("Norway"), "shares border with", "forward")'
    names = texts(f"And({border}, Find(?))", 0, path=(1,))
    assert sorted(names) == ["Finland", "Russia", "Sweden"]
    assert texts(f"And({border}, Find(?))", 0, "qqqq", path=(1,)) == []
    assert texts(f"QueryRelation(Find(?), {border})", 0, "qqqq", path=(0,)) == []
    functions = suggested(f'And(Find("Oslo"), {border})', Slot((), "function"))
    assert "Or" in {one.text for one in functions}
    back = suggested(f'Or(Find("Oslo"), {border})', Slot((), "function"))
    assert "And" not in {one.text for one in back}


def test_functions_type_on_both_sides_and_can_go_on() -> None:
    within = {one.text for one in suggested("QFilterStr(?, ?, ?)", Slot((), "input"))}
    assert {"Relate", "FilterNum"} <= within and "Find" not in within
    around = {one.text for one in suggested('Find("Oslo")', Slot((), "wrap"))}
    assert {"Relate", "QueryName", "Count", "And", "QueryAttr"} <= around
    assert not {"QFilterStr", "VerifyNum", "Find"} & around
    inner = {one.text for one in suggested('Count(Find("Oslo"))', Slot((0,), "wrap"))}
    assert "QueryAttr" not in inner and "Relate" in inner
    nothing = {one.text for one in suggested('Find("no such thing")', Slot((), "wrap"))}
    assert "Relate" not in nothing
    assert texts('VerifyNum(QueryAttr(Find("Norway"), ?), ?, ?)', 0, path=(0,), limit=100).count(
        "area"
    )
    first = suggested("?", Slot((), "function"))
    assert first[0].text == "Find" and first[0].doc


def test_a_function_that_does_not_fit_stands_for_no_other() -> None:
    place = Slot((), "wrap")
    assert [one.text for one in suggested('Find("Oslo")', place, "Realte")] == ["Relate"]
    assert suggested('Find("Oslo")', place, "QFilterY") == []


def test_places_that_are_not_there_are_refused() -> None:
    for slot in (Slot((), "argument", 3), Slot((2,), "function"), Slot((), "input", 1)):
        with pytest.raises(EditError):
            world().complete(read_draft('Find("Oslo")'), slot)


def test_the_limits_of_the_executor_hold() -> None:
    bounded = Completer(Executor(kb.load("world"), limits=Limits(ids=100)))
    draft = read_draft('Relate(Relate(FindAll(), "country", "forward"), ?, ?)')
    with pytest.raises(LimitError, match="the limit is 100"):
        bounded.complete(draft, Slot((), "argument"))
    assert bounded.complete(read_draft('Relate(Find("Oslo"), ?, ?)'), Slot((), "argument")).count


def test_wanted_sets_are_sets() -> None:
    outcome = world().executor.outcome(read_draft("FindAll()").call(), {})
    assert isinstance(outcome, Located)
    found = world().complete(read_draft("And(FindAll(), ?)"), Slot((), "input", 1))
    assert "FindAll" in {one.text for one in found.suggestions}
