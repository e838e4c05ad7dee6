"""Grounded trees as EFO-1-QA writes them in JSON, against a reader and a writer of its forms."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cqa.errors import FormulaError
from cqa.formats.json_lines import from_line, to_line
from cqa.types.grounded import from_json, to_json, write_json
from cqa.types.normal import FORMS, to_form
from cqa.types.registry import efo1_types
from cqa.types.tree import Tree, nodes, read_formula
from tests.cqa.brute import tree_set
from tests.cqa.published_efo1 import answers, grounded, parsed, written
from tests.cqa.small_graph import ENTITIES, full
from tests.cqa.trees import trees

# Each form, and those that the published table has otherwise.
WAYS: list[tuple[str, str | None]] = [(form, None) for form in FORMS]
WAYS += [(form, "paper") for form in ("DNF+d", "DNF+IUd", "DNF+IUD")]


@pytest.mark.parametrize(("form", "compat"), WAYS)
def test_a_reader_of_the_form_reads_every_type(form: str, compat: str | None) -> None:
    random = Random(form)
    for row in efo1_types():
        query = grounded(row.tree, random)
        formula = parsed(to_form(row.tree, form, compat).formula)
        text = write_json(to_form(query, form, compat))
        assert answers(formula, json.loads(text)) == tree_set(query, full(), ENTITIES), row.id


@pytest.mark.parametrize(("form", "compat"), WAYS)
def test_every_type_is_read_as_the_writer_of_the_form_wrote_it(
    form: str, compat: str | None
) -> None:
    random = Random(form)
    numbers = iter(lambda: random.randrange(10), None)
    for row in efo1_types(form, compat):
        given, tree = written(parsed(row.formula), numbers)
        found = from_json(given)
        assert found == from_json(json.dumps(given)) == _lettered(tree)
        assert found.formula == read_formula(row.formula).formula


def _lettered(tree: Tree) -> Tree:
    """A tree with d for a D of two."""
    operands = tuple(map(_lettered, tree.operands))
    op = "d" if tree.op == "D" and len(operands) == 2 else tree.op
    return Tree(op, operands, tree.relation, tree.entity)


# --- either spelling --------------------------------------------------------------------------


@given(trees(), st.randoms(use_true_random=False))
def test_either_spelling_is_read(tree: Tree, random: Any) -> None:
    assert from_json(_spelled(to_json(tree), random.choice)) == tree


def _spelled(given: Any, choose: Callable[[list[Any]], Any]) -> Any:
    """An object in some of the ways in which files write it."""
    op, inputs = given["o"], given["a"]
    if op == "e":
        return {"o": op, "a": choose([inputs, inputs[0]])}
    if op == "n":
        below = _spelled(inputs, choose)
        return {"o": op, "a": choose([below, [below], json.dumps(below), [json.dumps(below)]])}
    if op == "p":
        below = _spelled(inputs[1], choose)
        return {
            "o": op,
            "a": [choose([inputs[0], inputs[0][0]]), choose([below, json.dumps(below)])],
        }
    operands = [_spelled(part, choose) for part in inputs]
    return {
        "o": choose([op.lower(), op.upper()]),
        "a": [choose([o, json.dumps(o)]) for o in operands],
    }


@settings(max_examples=50)
@given(trees())
def test_lines_and_texts_round_trip(tree: Tree) -> None:
    assert from_json(write_json(tree)) == tree
    for node in nodes(tree):
        shown = to_json(node)
        assert shown["o"] == node.op.replace("I", "i").replace("U", "u")
        assert isinstance(shown["a"], dict if node.op == "n" else list)


ONE = {"o": "e", "a": [1]}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"o": "n", "a": []}, "a: n takes 1, not 0 inputs"),
        ({"o": "n", "a": [ONE, ONE]}, "a: n takes 1, not 2 inputs"),
        ({"o": "n", "a": 5}, 'a: an object with "o" and "a" was expected, not 5'),
        ({"o": "n", "a": None}, 'a: an object with "o" and "a" was expected, not None'),
        ({"o": "n", "a": "x"}, "a: not JSON: Expecting value: line 1 column 1 (char 0)"),
        ({"o": "n", "a": {"o": "e"}}, 'a: an object with "o" and "a" was expected, not {'),
        (
            {"o": "n", "a": {"o": "p", "a": [[1], {"o": "n", "a": {"o": "e", "a": []}}]}},
            "a.a[1].a.a: an id (a number from 0) was expected, not []",
        ),
        ({"o": "I", "a": [ONE]}, "a: I takes 2 or more, not 1 inputs"),
        ({"o": "U", "a": {"o": "e", "a": [1]}}, "a: a list was expected, not {'o': 'e', 'a': [1]}"),
    ],
)  # fmt: skip
def test_malformed_complements_and_multiple_operators(value: object, message: str) -> None:
    with pytest.raises(FormulaError) as caught:
        from_json(value)
    assert str(caught.value).startswith(message)


def test_complements_nested_without_end() -> None:
    with pytest.raises(FormulaError, match="nested deeper"):
        from_json('{"o":"n","a":' * 100_000)
    deep: object = ONE
    for _ in range(300):
        deep = {"o": "n", "a": deep}
    with pytest.raises(FormulaError, match="nested deeper"):
        from_json(deep)


def test_lines_as_published() -> None:
    query = {
        "o": "i",
        "a": [{"o": "n", "a": {"o": "p", "a": [[2], ONE]}}, {"o": "p", "a": [[4], ONE]}],
    }
    line = {
        "type": "2in",
        "formula": "(i,(n,(p,(e))),(p,(e)))",
        "query": query,
        "easy": [],
        "hard": [3],
    }
    sample = from_line(json.dumps(line))
    assert json.loads(to_line(sample)) == line
