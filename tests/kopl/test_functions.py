"""The declarations, and that everything which should follow them does."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

from kopl.builder import Expression, find, find_all
from kopl.functions import FUNCTIONS, SPELLINGS
from kopl.meaning import MEANINGS
from kopl.program import post_order
from kopl.text import read
from kopl.typecheck import check
from kopl.types import CHOICES, Kind
from kopl_cli.functions import explain, page

SKILLS = {"multi-hop", "qualifier", "comparison", "logical", "count", "verify", None}


def test_there_are_27() -> None:
    assert len(FUNCTIONS) == 27
    assert set(SPELLINGS) == {*FUNCTIONS, "What"}


def test_the_grammar_lists_exactly_the_declared_functions() -> None:
    grammar = resources.files("kopl").joinpath("grammar.lark").read_text("utf-8")
    listed = re.search(r"FUNCTION\.\d+: /\(([^)]*)\)", grammar)
    assert listed
    names = listed[1].split("|")
    assert sorted(names) == sorted(SPELLINGS)
    # The first alternative that matches wins: a longer name must come before its own beginning,
    # unless what follows (a parenthesis) tells them apart.
    for name in names:
        assert read(f"{name}({', '.join('x' for _ in range(3))})").function is SPELLINGS[name]


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda f: f.name)
def test_declaration_is_complete(function: object) -> None:
    from kopl.functions import Function

    assert isinstance(function, Function)
    assert function.doc.endswith(".")
    assert function.skill in SKILLS
    assert function.name in MEANINGS
    assert function.name in {call.function.name for call in post_order(read(function.example))}
    check(read(function.example))
    assert function.signature in explain(function)
    assert f"## {function.name}\n" in page()
    # Its few words say every argument once.
    said = [word.name for word in function.phrase([None] * len(function.arguments)) if word.name]
    assert sorted(said) == sorted(name for name, _ in function.arguments)


def test_calls_in_few_words() -> None:
    def words(text: str) -> list[str | None]:
        call = read(text)
        return [word.text for word in call.function.phrase(call.arguments)]

    assert words("FilterNum(FindAll(), area, 5, >)") == ["area", ">", "5"]
    assert words("Relate(FindAll(), capital, backward)") == ["\N{LEFTWARDS ARROW}", "capital"]
    assert words("FilterConcept(FindAll(), river)") == ["only", "river"]
    assert FUNCTIONS["Relate"].phrase(["capital", None])[0] == (None, "direction")


def test_every_kind_of_argument_is_used_and_choices_type() -> None:
    used = {kind for function in FUNCTIONS.values() for _, kind in function.arguments}
    assert used == set(Kind)
    assert set(CHOICES) <= used


def test_examples_have_answers_on_world() -> None:
    from kb import load
    from kb.load import bundled
    from kopl.executor import Executor

    path = bundled("world")
    assert path is not None and path.is_file()
    executor = Executor(load("world"))
    for function in FUNCTIONS.values():
        result = executor.run(function.example)
        assert result.denotation and result.denotation != ["no"], function.name
        assert not result.hints, function.name


def test_the_documentation_page_is_up_to_date() -> None:
    written = Path(__file__).parents[2] / "docs" / "functions.md"
    assert written.read_text("utf-8") == page(), (
        "run: kopl functions --markdown > docs/functions.md"
    )


def test_every_function_is_a_method_of_the_builder() -> None:
    methods = {name for name in dir(Expression(find_all().program)) if not name.startswith("__")}
    snake = {
        re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        for name, function in FUNCTIONS.items()
        if function.inputs
    }
    assert {name.removesuffix("_") for name in methods} >= snake


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (find("A").relate("r").query_name(), 'QueryName(Relate(Find("A"), "r", "forward"))'),
        (find("A").relate("r", "backward"), 'Relate(Find("A"), "r", "backward")'),
        (find_all().filter_num("k", 5.0, op="<"), 'FilterNum(FindAll(), "k", "5", "<")'),
        (find_all().filter_year("k", 1998), 'FilterYear(FindAll(), "k", "1998", "=")'),
        (find("A").and_(find("B")).count(), 'Count(And(Find("A"), Find("B")))'),
        (find("A").select_between(find("B"), "k", "less"),
         'SelectBetween(Find("A"), Find("B"), "k", "less")'),
        (find("A").query_attr_under_condition("k", "q", "v"),
         'QueryAttrUnderCondition(Find("A"), "k", "q", "v")'),
    ],
)  # fmt: skip
def test_builder(built: Expression, text: str) -> None:
    assert str(built) == text
    assert built == Expression(read(text))


def test_builder_takes_values() -> None:
    from kb import Date, Quantity

    assert '"5.5 metre"' in str(find_all().filter_num("k", Quantity(5.5, "metre")))
    assert '"1998-02-03"' in str(find_all().filter_date("k", Date(1998, 2, 3), ">"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: find("A").relate(), "Relate needs 'relation'"),
        (lambda: find("A").relate("r", "up"), "forward or backward"),
        (lambda: find("A").relate("r", "forward", "x"), "does not take 'x'"),
        (lambda: find("A").relate("r", relation="r"), "twice"),
        (lambda: find("A").and_("B"), "expects a program as input, found 'B'"),
        (lambda: find("A").count().count(), "found a number"),
        (lambda: find("A").filter_num("k", object()), "must be a text or a value"),
    ],
)
def test_builder_errors(wrong: object, message: str) -> None:
    from kopl.errors import TypingError

    with pytest.raises(TypingError, match=re.escape(message)):
        wrong()  # type: ignore[operator]


def test_builder_unknown_method() -> None:
    with pytest.raises(AttributeError, match="no function for the method 'fly'"):
        find("A").fly()
