"""Operator trees: formulas, JSON, BetaE's tuples and names."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given

from cqa.errors import FormulaError, QueryError
from cqa.types.betae import BETAE, HARDNESS, from_tuples, named, names, to_tuples
from cqa.types.grounded import from_json, to_json, write_json
from cqa.types.tree import (
    MAX_HEIGHT,
    Tree,
    anchor,
    arrange,
    joined,
    nodes,
    operators,
    order,
    project,
    read_formula,
)
from tests.cqa.trees import trees

PI = "(i,(p,(e)),(p,(p,(e))))"

# BetaE's structures as its pickles have them: `query_structure` -> task.
STRUCTURES = {
    "1p": ("e", ("r",)),
    "2p": ("e", ("r", "r")),
    "3p": ("e", ("r", "r", "r")),
    "2i": (("e", ("r",)), ("e", ("r",))),
    "3i": (("e", ("r",)), ("e", ("r",)), ("e", ("r",))),
    "ip": ((("e", ("r",)), ("e", ("r",))), ("r",)),
    "pi": (("e", ("r", "r")), ("e", ("r",))),
    "2in": (("e", ("r",)), ("e", ("r", "n"))),
    "3in": (("e", ("r",)), ("e", ("r",)), ("e", ("r", "n"))),
    "inp": ((("e", ("r",)), ("e", ("r", "n"))), ("r",)),
    "pin": (("e", ("r", "r")), ("e", ("r", "n"))),
    "pni": (("e", ("r", "r", "n")), ("e", ("r",))),
    "2u": (("e", ("r",)), ("e", ("r",)), ("u",)),
    "up": ((("e", ("r",)), ("e", ("r",)), ("u",)), ("r",)),
    "2u-DM": ((("e", ("r", "n")), ("e", ("r", "n"))), ("n",)),
    "up-DM": ((("e", ("r", "n")), ("e", ("r", "n"))), ("n", "r")),
    "4p": ("e", ("r", "r", "r", "r")),
    "5p": ("e", ("r", "r", "r", "r", "r")),
    "4i": (("e", ("r",)), ("e", ("r",)), ("e", ("r",)), ("e", ("r",))),
}


@given(trees(grounded=False))
def test_formula_round_trip(tree: Tree) -> None:
    assert read_formula(tree.formula) == tree
    assert read_formula(" " + " , ".join(tree.formula.split(","))) == tree


def test_shape_of_a_formula() -> None:
    tree = read_formula(PI)
    assert (tree.anchors, tree.depth, tree.height) == (2, 2, 4)
    assert operators(tree) == {"e", "p", "i"}
    assert [node.op for node in nodes(tree)] == ["i", "p", "e", "p", "p", "e"]
    assert not tree.grounded
    assert str(tree) == PI


def test_either_letter_for_two_and_more() -> None:
    two, three = "(p,(e)),(p,(e))", "(p,(e)),(p,(e)),(p,(e))"
    for narrow, wide in ("iI", "uU", "dD"):
        assert read_formula(f"({wide},{two})").formula == f"({narrow},{two})"
        assert read_formula(f"({narrow},{three})").formula == f"({wide},{three})"


@given(trees(grounded=False))
def test_operands_are_sorted_as_ascii(tree: Tree) -> None:
    for node in nodes(arrange(tree)):
        formulas = [operand.formula for operand in node.operands]
        if node.op in "iuIU":
            assert formulas == sorted(formulas)
        elif node.op == "D":
            assert formulas[1:] == sorted(formulas[1:])


@given(trees())
def test_sorting_is_one_for_all_orders(tree: Tree) -> None:
    def turned(node: Tree) -> Tree:
        operands = [turned(operand) for operand in node.operands]
        if node.op in "iuIU":
            operands.reverse()
        elif node.op == "D":
            operands[1:] = operands[:0:-1]
        return Tree(node.op, tuple(operands), node.relation, node.entity)

    assert arrange(turned(tree)) == arrange(tree)
    assert arrange(tree).formula == arrange(tree.abstract).formula


def test_names_sort_after_numbers() -> None:
    labels: list[int | str | None] = ["b", 10, None, "a", 9]
    branches = sorted((anchor(label) for label in labels), key=order)
    assert [branch.entity for branch in branches] == [None, 9, 10, "a", "b"]


MALFORMED = [
    ("", "the formula is empty"),
    ("  ", "the formula is empty"),
    ("p,(e)", "character 1: '(' was expected, not 'p'"),
    ("(x,(e))", "character 2: an operator (e p n i u d I U D) was expected, not 'x'"),
    ("(p(e))", "character 3: ',' or ')' was expected, not '('"),
    ("(p,e)", "character 4: '(' was expected, not 'e'"),
    ("(p,(e)", "character 7: the formula ends too early; p from character 2 is open"),
    ("(p,", "character 4: the formula ends too early; p from character 2 is open"),
    ("(", "character 2: the formula ends too early"),
    ("(p,(e)))", "character 8: the formula ended before ')'"),
    ("(p,(e))(p,(e))", "character 8: the formula ended before '('"),
    ("(p)", "character 2: p takes 1 operand, not 0"),
    ("(e,(e))", "character 2: e takes no operand, not 1"),
    ("(i,(p,(e)))", "character 2: i takes 2 operands, not 1"),
    ("(I,(p,(e)))", "character 2: I takes 3 operands or more, not 1"),
    ("(p,(n,(e),(e)))", "character 5: n takes 1 operand, not 2"),
    ("(p," * 300 + "(e)", "character 602: nested deeper than 200 operators"),
]


@pytest.mark.parametrize(("text", "message"), MALFORMED)
def test_malformed_formulas(text: str, message: str) -> None:
    with pytest.raises(FormulaError) as caught:
        read_formula(text)
    assert str(caught.value) == message


def test_trees_that_are_none() -> None:
    with pytest.raises(QueryError, match="no operator 'x'"):
        Tree("x")
    with pytest.raises(QueryError, match="u takes 2 operands, not 1"):
        Tree("u", (anchor(),))
    with pytest.raises(QueryError, match="only p has a relation"):
        Tree("n", (anchor(),), relation=3)
    with pytest.raises(QueryError, match="over nothing"):
        joined("i", [])
    tree = anchor()
    with pytest.raises(QueryError, match="nested deeper"):
        for _ in range(MAX_HEIGHT):
            tree = project(tree)


@given(trees())
def test_pickled_trees_are_equal(tree: Tree) -> None:
    copy = pickle.loads(pickle.dumps(tree))
    assert copy == tree and hash(copy) == hash(tree) and copy.formula == tree.formula


@given(trees())
def test_json_round_trip(tree: Tree) -> None:
    assert from_json(to_json(tree)) == tree
    assert from_json(write_json(tree)) == tree


def test_json_as_published() -> None:
    text = '{"o": "p", "a": [[12], {"o": "p", "a": [[7], {"o": "e", "a": [345]}]}]}'
    tree = project(project(anchor(345), 7), 12)
    assert write_json(tree) == text
    bare = {"o": "p", "a": [12, {"o": "p", "a": [7, {"o": "e", "a": 345}]}]}
    inner = '{"o": "p", "a": [[7], "{\\"o\\": \\"e\\", \\"a\\": [345]}"]}'
    for other in (text, bare, {"o": "p", "a": [[12], inner]}):
        assert from_json(other) == tree
    one = {"o": "e", "a": [1]}
    assert from_json({"o": "D", "a": [one, one]}).op == "d"


MALFORMED_JSON = [
    ("{", "not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
    ([], 'an object with "o" and "a" was expected, not []'),
    ({"o": "x", "a": []}, "there is no operator 'x'; choose of e p n i u d I U D"),
    ({"o": [], "a": []}, "there is no operator []; choose of e p n i u d I U D"),
    ({"o": "e", "a": [True]}, "a: an id (a number from 0) was expected, not True"),
    ({"o": "e", "a": [1, 2]}, "a: an id (a number from 0) was expected, not [1, 2]"),
    ({"o": "e", "a": -1}, "a: an id (a number from 0) was expected, not -1"),
    ({"o": "i", "a": 5}, "a: a list was expected, not 5"),
    ({"o": "p", "a": [[1]]}, "a: p takes a relation and one input, not 1 things"),
    ({"o": "i", "a": [{"o": "e", "a": 1}]}, "a: i takes 2 or more, not 1 inputs"),
    ({"o": "n", "a": []}, "a: n takes 1, not 0 inputs"),
    (
        {"o": "p", "a": [[1], {"o": "p", "a": ["x", {"o": "e", "a": 1}]}]},
        "a[1].a[0]: an id (a number from 0) was expected, not 'x'",
    ),
    (
        {"o": "n", "a": [{"o": "e"}]},
        "a[0]: an object with \"o\" and \"a\" was expected, not {'o': 'e'}",
    ),
]


@pytest.mark.parametrize(("value", "message"), MALFORMED_JSON)
def test_malformed_json(value: object, message: str) -> None:
    with pytest.raises(FormulaError) as caught:
        from_json(value)
    assert str(caught.value) == message


def test_json_nested_without_end() -> None:
    deep: object = {"o": "e", "a": 1}
    for _ in range(300):
        deep = {"o": "n", "a": [deep]}
    with pytest.raises(FormulaError, match="nested deeper"):
        from_json(deep)
    with pytest.raises(FormulaError, match="nested deeper"):
        from_json('{"o":"n","a":[' * 100_000)


def test_only_grounded_trees_have_json() -> None:
    with pytest.raises(FormulaError, match="p lacks a relation"):
        to_json(project(anchor(3)))
    with pytest.raises(FormulaError, match="e lacks an entity"):
        to_json(project(anchor(), 3))


@pytest.mark.parametrize("name", STRUCTURES)
def test_structures_of_betae(name: str) -> None:
    tree = named(name)
    assert from_tuples(STRUCTURES[name]) == tree
    assert to_tuples(tree) == STRUCTURES[name]
    assert names(tree)[0] == ("2u" if name == "2u-DNF" else name)


def test_structures_cover_betae() -> None:
    assert len(BETAE) == 14 and STRUCTURES.keys() >= BETAE.keys()


def test_grounded_structures() -> None:
    query = ((7, (12, 3)), (9, (4, -2)))
    tree = from_tuples(query)
    assert tree.formula == named("pin").formula
    assert tree.operands[0].operands[0] == project(anchor(9), 4)
    assert to_tuples(tree) == query
    union = (((7, (12,)), (9, (4,)), (-1,)), (5,))
    assert from_tuples(union) == project(
        Tree("u", (project(anchor(7), 12), project(anchor(9), 4))), 5
    )
    assert to_tuples(from_tuples(union)) == union
    # Of branches that are alike, each keeps its place.
    alike = ((9, (4,)), (7, (12,)), (8, (1,)))
    assert to_tuples(from_tuples(alike)) == alike
    assert to_tuples(from_tuples((*alike, (-1,)))) == (*alike, (-1,))
    numbers = ((np.int64(7), (np.int64(12), np.int32(3))), (9, (4, np.int64(-2))))
    assert from_tuples(numbers) == tree


@given(trees("pniuIU"))
def test_tuples_round_trip(tree: Tree) -> None:
    try:
        structure = to_tuples(tree)
    except QueryError as error:
        assert "(e) alone" in str(error)
        return
    again = from_tuples(structure)
    assert to_tuples(again) == structure
    assert sorted(map(order, _leaves(again))) == sorted(map(order, _leaves(tree)))


def _leaves(tree: Tree) -> list[Tree]:
    return [Tree("e", entity=node.entity) for node in nodes(tree) if node.op == "e"]


MALFORMED_TUPLES = [
    ("e", "a tuple of two parts or more was expected, not 'e'"),
    ((), "a tuple of two parts or more was expected, not ()"),
    (("e", ()), "[1]: a relation or a negation was expected"),
    (("x", ("r",)), "[0]: 'e', an entity or a tuple was expected, not 'x'"),
    (("e", ("r", "x")), "[1][1]: 'r', 'n', a relation or -2 was expected, not 'x'"),
    ((5, (1, -3)), "[1][1]: 'r', 'n', a relation or -2 was expected, not -3"),
    ((True, (1,)), "[0]: 'e', an entity or a tuple was expected, not True"),
    ((("e", ("r",)), ("u",)), "a union takes two parts or more"),
    (
        (("e", ("r",)), ("e", ("r",)), 5),
        "[2]: a tuple of two parts or more was expected, not 5",
    ),
    (
        (("e", ("r",)), (("e", ("r",)), ("q", ("r",)))),
        "[1][1][0]: 'e', an entity or a tuple was expected, not 'q'",
    ),
]


@pytest.mark.parametrize(("value", "message"), MALFORMED_TUPLES)
def test_malformed_tuples(value: object, message: str) -> None:
    with pytest.raises(FormulaError) as caught:
        from_tuples(value)
    assert str(caught.value) == message


def test_trees_without_tuples() -> None:
    branch = project(anchor())
    with pytest.raises(QueryError, match="no difference"):
        to_tuples(Tree("d", (branch, branch)))
    with pytest.raises(QueryError, match="some relations or anchors are missing"):
        to_tuples(project(anchor(3)))


def test_names_of_the_hardness_paper() -> None:
    for other, name in HARDNESS.items():
        assert named(other) == named(name)
        assert names(named(name)) == (name, other)
    assert named("2nu1p").formula == "(i,(n,(p,(p,(e)))),(p,(e)))"


def test_names_do_not_depend_on_brackets() -> None:
    turned = "(i,(p,(e)),(i,(p,(e)),(i,(p,(e)),(p,(e)))))"
    assert names(read_formula(turned)) == ("4i",)
    assert names(read_formula("(I,(p,(e)),(p,(e)),(p,(e)))")) == ("3i",)
    assert names(read_formula("(d,(p,(e)),(p,(p,(e))))")) == ("pni", "2nu1p")
    assert names(read_formula("(u,(p,(p,(e))),(p,(p,(e))))")) == ("up-DNF",)
    assert names(read_formula("(u,(p,(e)),(p,(p,(e))))")) == ()
    assert names(named("7p")) == ("7p",) and names(named("9i")) == ("9i",)


@pytest.mark.parametrize("name", ["", "0p", "1i", "ppp", "2x", "100p", "2I"])
def test_unknown_names(name: str) -> None:
    with pytest.raises(QueryError, match="there is no query type named"):
        named(name)
