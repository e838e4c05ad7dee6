"""Results, traces, limits, batches, hints and flow charts."""

from __future__ import annotations

import json
import time

import pytest

from kb import KnowledgeBase
from kopl.diagram import dot, mermaid
from kopl.errors import ExecutionError, LimitError, ParseError, TypingError
from kopl.executor import Executor, Limits
from kopl.text import read

BORDERS = 'Relate(Find("France"), "shares border with", "forward")'


def test_result(tiny: KnowledgeBase) -> None:
    result = Executor(tiny).run(
        "QueryName(Relate(Find(France), capital))".replace("al)", "al, forward)")
    )
    assert (result.denotation, result.answer, result.state) == (["Paris"], "Paris", "unique")
    assert result.ms > 0
    assert set(result.to_json()) == {"denotation", "answer", "state", "ms"}


@pytest.mark.parametrize(
    ("program", "state", "answer"),
    [
        ("Find(nobody)", "empty", None),
        ("Or(Find(France), Find(Berlin))", "several", None),
        ("Find(Paris)", "unique", "Paris"),
    ],
)
def test_state_counts_strings(tiny: KnowledgeBase, program: str, state: str, answer: str) -> None:
    result = Executor(tiny).run(program)
    assert (result.state, result.answer) == (state, answer)


def test_trace(tiny: KnowledgeBase) -> None:
    result = Executor(tiny).run(
        f"Count(QFilterNum({BORDERS}, length, 400 kilometre, >))", trace=True
    )
    assert result.trace is not None
    assert [step.text for step in result.trace] == [
        "Find('France')",
        "Relate(#0, 'shares border with', 'forward')",
        "QFilterNum(#1, 'length', '400 kilometre', '>')",
        "Count(#2)",
    ]
    assert [step.shown for step in result.trace] == [["France"], ["Germany"], ["Germany"], ["1"]]


def test_trace_is_capped(tiny: KnowledgeBase) -> None:
    trace = Executor(tiny).run("FindAll()", trace=2).trace
    assert trace is not None
    assert (trace[0].count, len(trace[0].shown)) == (6, 2)


def test_batch_goes_on_after_a_bad_program(tiny: KnowledgeBase) -> None:
    found = list(
        Executor(tiny).run_many(
            ["Count(FindAll())", "Fnd(x)", "Count(Count(FindAll()))", "Count(FindAll())"]
        )
    )
    assert [type(r).__name__ for r in found] == ["Result", "ParseError", "TypingError", "Result"]
    assert found[0].denotation == found[3].denotation == ["6"]  # type: ignore[union-attr]


def test_batch_shares_equal_calls(tiny: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    from kopl import executor
    from kopl.meaning import MEANINGS

    calls: list[str] = []
    meanings = {
        name: lambda *a, _m=meaning, _n=name: (calls.append(_n), _m(*a))[1]
        for name, meaning in MEANINGS.items()
    }
    monkeypatch.setattr(executor, "MEANINGS", meanings)
    list(Executor(tiny).run_many([f"Count({BORDERS})", f"QueryName({BORDERS})"]))
    assert calls.count("Relate") == 1 and calls.count("Find") == 1


def test_limits(tiny: KnowledgeBase) -> None:
    with pytest.raises(LimitError, match="call 0: it gives 6 ids; the limit is 5"):
        Executor(tiny, limits=Limits(ids=5)).run("Count(FindAll())")
    with pytest.raises(LimitError, match="longer than"):
        Executor(tiny, limits=Limits(seconds=1e-9)).run("Count(FindAll())")
    with pytest.raises(LimitError, match="3 calls deep; the limit is 2"):
        Executor(tiny, limits=Limits(depth=2)).run("Count(And(FindAll(), FindAll()))")


def test_a_long_program_stops_in_time(tiny: KnowledgeBase) -> None:
    text = "FindAll()"
    for _ in range(12):
        text = f"And({text}, {text})"
    begin = time.perf_counter()
    with pytest.raises(LimitError, match="took longer"):
        Executor(tiny, limits=Limits(seconds=0.001)).run(text)
    assert time.perf_counter() - begin < 5


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("VerifyNum(QueryAttr(Find(France), population), 5, >)", "exactly one value, found 2"),
        ("VerifyNum(QueryAttr(Find(nobody), population), 5, >)", "exactly one value, found 0"),
        ("SelectBetween(Find(France), FindAll(), area, less)", "must be one entity, found 6"),
        ("SelectBetween(Find(France), Find(Germany), population, less)", "needs one quantity"),
        ("SelectAmong(Find(Berlin), area, largest)", "two or more"),
        ("SelectAmong(FindAll(), area, largest)", "one unit"),
        ("SelectAmong(FindAll(), population, largest)", "one quantity for each entity"),
    ],
)
def test_strict_errors_name_the_call(tiny: KnowledgeBase, program: str, message: str) -> None:
    with pytest.raises(ExecutionError, match=message) as caught:
        Executor(tiny, strict=True).run(program)
    assert caught.value.call == read(program).size - 1
    Executor(tiny).run(program)


@pytest.mark.parametrize(
    ("program", "hint"),
    [
        ("Find(Frence)", "no entity or concept 'Frence'; did you mean 'France'"),
        ("FilterConcept(FindAll(), cuntry)", "no concept 'cuntry'; did you mean 'country'"),
        ("FilterConcept(FindAll(), Berlin)", "no concept 'Berlin'"),
        ("Relate(FindAll(), capitel, forward)", "no relation 'capitel'; did you mean 'capital'"),
        ("QueryAttr(FindAll(), populaton)", "no key 'populaton'; did you mean 'population'"),
        ("QueryAttr(FindAll(), length)", "no key 'length'"),
        ("FilterNum(FindAll(), area, 5 square kilometer, =)", "did you mean 'square kilometre'"),
        ("QueryAttrUnderCondition(FindAll(), area, lenght, 5)", "qualifier key 'lenght'"),
    ],
)  # fmt: skip
def test_hints(tiny: KnowledgeBase, program: str, hint: str) -> None:
    result = Executor(tiny).run(program)
    assert result.denotation == []
    assert any(hint in found for found in result.hints), result.hints


@pytest.mark.parametrize("name", ["FindAll", "findall", "FINDALL", "findAll"])
def test_hints_name_the_call_that_was_meant(tiny: KnowledgeBase, name: str) -> None:
    (hint,) = Executor(tiny).run(f"Find({name})").hints
    assert hint.endswith(f"no entity or concept {name!r}; is the call FindAll() meant?")
    with pytest.raises(TypingError, match=rf"{name!r} is a text here, the call is FindAll\(\)"):
        Executor(tiny).run(f"Count({name})")


def test_no_hints_for_what_is_known(tiny: KnowledgeBase) -> None:
    assert Executor(tiny).run(f"Count({BORDERS})").hints == []


def test_unknown_look_ups_change_nothing(tiny: KnowledgeBase) -> None:
    executor = Executor(tiny)
    before = executor.denote("FindAll()")
    for program in ("Find(x1)", "Relate(FindAll(), x2, forward)", "QueryAttr(FindAll(), x3)"):
        executor.run(program)
    assert executor.denote("FindAll()") == before
    assert "x2" not in tiny.relations and "x3" not in tiny.keys


def test_errors_have_kinds(tiny: KnowledgeBase) -> None:
    kinds = {ParseError: "parse", TypingError: "type", ExecutionError: "execution",
             LimitError: "limit"}  # fmt: skip
    assert all(error.kind == kind for error, kind in kinds.items())


def test_mermaid(tiny: KnowledgeBase) -> None:
    program = read('QueryName(Find("a \\"b\\" <c>"))')
    assert mermaid(program) == (
        'flowchart TD\n    n0["Find<br/>a #34;b#34; #60;c#62;"]\n    n1["QueryName"]\n'
        "    n0 --> n1\n"
    )
    traced = Executor(tiny).run("QueryName(Find(France))", trace=True)
    assert '["QueryName<br/>1: France"]' in mermaid(traced.program, traced.trace)


def test_dot(tiny: KnowledgeBase) -> None:
    text = dot(read('And(Find("a \\"b\\""), FindAll())'))
    assert 'n0 [label="Find\\na \\"b\\""];' in text
    assert "n0 -> n2;" in text and "n1 -> n2;" in text
    traced = Executor(tiny).run("FindAll()", trace=True)
    assert "6: Berlin, France, Germany, …" in dot(traced.program, traced.trace)


def test_result_is_json(tiny: KnowledgeBase) -> None:
    json.dumps(Executor(tiny).run("FindAll()").to_json())
