"""Programs with holes: read, written, changed and undone, run as far as they are whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kb
from kopl import Executor, Limits, ParseError, TypingError, check, read
from kopl.denotation import Outcome
from kopl.draft_steps import steps
from kopl.drafts import HOLE, Draft, EditError, Path, read_draft
from kopl.errors import LimitError, ProgramError
from kopl.functions import FUNCTIONS
from kopl.program import Call, post_order
from kopl.text import to_nested_json, write_json, write_nested, write_serialised
from tests.kopl.strategies import NAMES, documents, programs

functions = st.sampled_from(sorted(FUNCTIONS))


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    """A program from which some calls and arguments are taken away."""
    draft = Draft.of(draw(programs()))
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.sampled_from(draft.paths()))
        count = len(draft.at(path).arguments)
        if count and draw(st.booleans()):
            draft = draft.with_argument(path, draw(st.integers(0, count - 1)), None)
        else:
            draft = draft.without(path, all=True)
    return draft


def paths_of(draft: Draft) -> st.SearchStrategy[Path]:
    return st.sampled_from(draft.paths())


def valid(draft: Draft) -> None:
    """What holds of every draft: each call has its places, and all it says of itself agrees."""
    calls = list(post_order(draft))
    for call in calls:
        if call.function is None:
            assert call == HOLE
        else:
            assert len(call.inputs) == call.function.arity
            assert len(call.arguments) == len(call.function.arguments)
    assert draft.size == len(calls)
    assert draft.paths()[-1] == ()
    assert [draft.at(path) for path in draft.paths()] == calls
    assert len({*draft.slots()}) == len([*draft.slots()]) == draft.holes
    view = json.loads(json.dumps(draft.view()))
    assert [call["path"] for call in view["calls"]] == [[*path] for path in draft.paths()]
    assert view["complete"] == draft.is_whole == (not view["holes"])


# --- reading and writing ----------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(programs())
def test_a_whole_draft_is_the_program(program: Call) -> None:
    draft = Draft.of(program)
    valid(draft)
    assert draft.is_whole
    assert draft.call() == program
    assert str(draft) == str(program)
    assert not draft.problems()
    for text in (write_nested, write_json, write_serialised):
        assert read_draft(text(program)) == draft
    assert read_draft(to_nested_json(program)) == read_draft(program) == draft


@settings(max_examples=50, deadline=None)
@given(drafts())
def test_text_and_json_bring_a_draft_back(draft: Draft) -> None:
    valid(draft)
    assert read_draft(str(draft)) == draft
    assert read_draft(json.dumps(draft.to_json())) == draft
    assert read_draft(draft.to_json()) == draft
    if draft.holes:
        with pytest.raises(TypingError, match="holes"):
            draft.call()


def test_holes_of_texts_stand_where_they_are_written() -> None:
    draft = read_draft('And(?, Relate(Find(?), "?", ?))')
    assert str(draft) == 'And(?, Relate(Find(?), "?", ?))'
    assert [slot.to_json() for slot in draft.slots()] == [
        {"path": [], "slot": "input", "index": 0},
        {"path": [1, 0], "slot": "argument", "index": 0},
        {"path": [1], "slot": "argument", "index": 1},
    ]
    assert str(read_draft("Relate(capital)")) == 'Relate(?, "capital", ?)'
    assert str(read_draft("What(Find('a'))")) == 'QueryName(Find("a"))'
    assert read_draft(" ? ") == read_draft("") == read_draft(None) == read_draft("null") == HOLE
    assert [slot.to_json() for slot in HOLE.slots()] == [
        {"path": [], "slot": "function", "index": 0}
    ]


@pytest.mark.parametrize(
    ("program", "error", "said"),
    [
        ('Find("a", "b")', TypingError, "Find takes no inputs and 1 textual argument"),
        ('Relate("capital", ?, Find("a"))', ParseError, "the inputs come before"),
        ("Fnd(?)", ParseError, "did you mean Find"),
        ({"function": "Fnd"}, ParseError, "did you mean Find"),
        ({"inputs": [None]}, ParseError, 'needs a "function"'),
        ({"function": "Find", "arguments": [3]}, ParseError, "must be a text"),
        ({"function": "Find", "arguments": {"nam": "a"}}, ParseError, "no argument 'nam'"),
        ({"function": "Count", "inputs": "Find"}, ParseError, "must be a list"),
        ({"function": "Count", "inputs": ["Find"]}, ParseError, "an object"),
        ("{", ParseError, "not JSON"),
        ("Count(" * 300 + "?" + ")" * 300, LimitError, "deep"),
    ],
)
def test_what_is_no_draft_is_refused(program: Any, error: type[ProgramError], said: str) -> None:
    with pytest.raises(error, match=said):
        read_draft(program)


def test_a_deep_object_is_refused() -> None:
    item: dict[str, Any] | None = None
    for _ in range(300):
        item = {"function": "Count", "inputs": [item]}
    with pytest.raises(LimitError, match="deep"):
        read_draft(item)


# --- changes ----------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(drafts(), st.data())
def test_every_change_keeps_a_tree_and_can_be_undone(draft: Draft, data: st.DataObject) -> None:
    path = data.draw(paths_of(draft))
    old = draft.at(path)
    kind = data.draw(st.sampled_from(["argument", "function", "fill", "wrap", "all", "move"]))
    if kind == "argument" and old.arguments:
        index = data.draw(st.integers(0, len(old.arguments) - 1))
        new = draft.with_argument(path, index, data.draw(st.none() | st.sampled_from(NAMES)))
        assert new.with_argument(path, index, old.arguments[index]) == draft
    elif kind == "function":
        new = draft.with_function(path, data.draw(functions))
        assert new.replaced(path, old) == draft
    elif kind == "fill" and old.is_hole and path:
        new = draft.filled(path[:-1], path[-1], data.draw(functions))
        assert new.without(path, all=True) == draft
    elif kind == "wrap":
        name = data.draw(functions.filter(lambda name: FUNCTIONS[name].arity > 0))
        at = data.draw(st.none() | st.integers(0, FUNCTIONS[name].arity - 1))
        new = draft.wrapped(path, name, at)
        assert new.without(path) == draft
    elif kind == "all":
        new = draft.without(path, all=True)
        assert new.at(path) == HOLE
        assert new.replaced(path, old) == draft
    else:
        to = data.draw(paths_of(draft))
        apart = path[: len(to)] != to[: len(path)]
        if not apart:
            with pytest.raises(EditError, match="lies in the other"):
                draft.moved(path, to)
            return
        new = draft.moved(path, to)
        assert new.at(path) == draft.at(to)
        assert new.moved(path, to) == draft
    valid(new)
    assert read_draft(str(new)) == new


@settings(max_examples=30, deadline=None)
@given(drafts(), st.data())
def test_a_function_keeps_what_fits(draft: Draft, data: st.DataObject) -> None:
    path = data.draw(paths_of(draft))
    name = data.draw(functions)
    new = draft.with_function(path, name).at(path)
    assert new.function is FUNCTIONS[name]
    assert not [one for one in new.problems() if one.path == ()]
    assert draft.with_function(path, name).with_function(path, name).at(path) == new


def test_arguments_stay_where_they_mean_the_same() -> None:
    draft = read_draft('FilterNum(FindAll(), "area", "300", ">")')
    assert str(draft.with_function((), "FilterYear")) == 'FilterYear(FindAll(), "area", "300", ">")'
    assert str(draft.with_function((), "FilterStr")) == 'FilterStr(FindAll(), "area", "300")'
    assert str(draft.with_function((), "SelectAmong")) == 'SelectAmong(FindAll(), "area", ?)'
    assert str(draft.with_function((), "Relate")) == "Relate(FindAll(), ?, ?)"
    find = read_draft('Find("city")')
    assert str(find.with_function((), "FilterConcept")) == 'FilterConcept(?, "city")'
    verify = read_draft('VerifyNum(QueryAttr(Find("a"), "area"), "3 metre", "=")')
    assert str(verify.with_function((), "VerifyDate")).endswith('?, "=")')
    both = read_draft('Or(QueryName(Find("b")), Find("a"))')
    assert str(both.with_function((), "Count")) == 'Count(Find("a"))'


def test_changes_that_have_no_place_are_refused() -> None:
    draft = read_draft('Relate(Find("a"), ?, ?)')
    for change in (
        lambda: draft.at((1,)),
        lambda: draft.at((0, 0)),
        lambda: draft.replaced((-1,), HOLE),
        lambda: draft.with_argument((), 2, "a"),
        lambda: draft.without((0,), all=True).with_argument((0,), 0, "a"),
        lambda: draft.filled((), 0, "Find"),
        lambda: draft.wrapped((), "Find"),
        lambda: draft.wrapped((), "And", 2),
        lambda: draft.without((3,)),
        lambda: draft.moved((), (0,)),
    ):
        with pytest.raises(EditError):
            change()
    with pytest.raises(ParseError, match="did you mean Relate"):
        draft.with_function((), "relate")
    assert str(draft.without(())) == 'Find("a")'


@settings(max_examples=50, deadline=None)
@given(drafts(), st.data())
def test_problems_are_those_of_the_type_check(draft: Draft, data: st.DataObject) -> None:
    path = data.draw(paths_of(draft))
    for hole in (*draft.slots(), None):
        if hole is None or hole.kind != "argument":
            draft = draft.replaced(path, Draft.of(data.draw(programs())))
            break
    for slot in [*draft.slots()]:  # the rest, with whatever
        if slot.kind == "argument":
            draft = draft.with_argument(slot.path, slot.index, data.draw(st.sampled_from(NAMES)))
        else:
            place = slot.path if slot.kind == "function" else (*slot.path, slot.index)
            draft = draft.replaced(place, Draft.of(data.draw(programs(depth=1))))
    program, problems = draft.call(), draft.problems()
    try:
        check(program)
    except TypingError as error:
        assert error.message in [problem.message for problem in problems]
        first = next(one for one in problems if one.message == error.message)
        assert draft.paths().index(first.path) == error.call
    else:
        assert not problems


# --- running ----------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(documents(), drafts())
def test_whole_parts_run_and_others_wait(document: dict[str, Any], draft: Draft) -> None:
    executor = Executor(kb.from_kqapro(document))
    found = steps(executor, draft, shown=3)
    assert [step.path for step in found] == draft.paths()
    for step, call in zip(found, draft.calls(), strict=True):
        json.dumps(step.to_json())
        if call is None:
            assert step.state == "waiting"
            continue
        outcome = executor.outcome(call, {})
        assert step.state == ("ok" if len(outcome) else "empty")
        assert step.count == len(outcome)
        assert len(step.values) == min(3, len(outcome))
        below = [executor.outcome(one, {}) for one in call.inputs]
        assert step.became_empty == (not len(outcome) and all(map(len, below)))
        texts = [value.text for value in step.values]
        assert {*texts} <= {*outcome.strings()}
        assert texts[:1] == outcome.strings()[:1]


def test_steps_say_what_failed_and_keep_what_ran() -> None:
    executor = Executor(kb.load("world"), limits=Limits(ids=100))
    shared: dict[Call, Outcome] = {}
    draft = read_draft(
        'And(Relate(Find("Norway"), "capital", "forward"), Relate(FindAll(), "capital", "forward"))'
    )
    found = steps(executor, draft, shared=shared)
    states = {str(draft.at(step.path).function.name): step.state for step in found}  # type: ignore[union-attr]
    assert states["And"] == "waiting"
    error = next(step for step in found if step.state == "error")
    assert error.message is not None and "the limit is 100" in error.message
    [oslo] = found[1].values
    assert oslo.to_json() == {"text": "Oslo", "id": oslo.id, "kind": "entity"}
    again = steps(executor, draft, shared=shared)
    assert [step.ms for step in again if step.state == "ok"] == [0.0, 0.0]
    assert read('Find("Norway")') in shared
    wrong = steps(executor, read_draft('Count(QFilterStr(Find("Norway"), "a", "b"))'))
    assert [step.state for step in wrong] == ["ok", "error", "waiting"]
    empty = steps(executor, read_draft('Count(Relate(Find("Nrway"), "capital", "forward"))'))
    assert [step.became_empty for step in empty] == [True, False, False]
