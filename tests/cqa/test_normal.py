"""The nine forms: the worked example, what they keep, and what they may use."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from cqa.errors import QueryError
from cqa.types.normal import FORMS, binary, disjuncts, fits, flatten, to_form
from cqa.types.tree import Tree, anchor, nodes, operators, project, read_formula
from tests.cqa.trees import PUBLISHED, WORKED, Triples, meaning, trees, triples

EXAMPLE = read_formula("(i,(n,(u,(p,(e)),(p,(p,(e))))),(p,(e)))")


@pytest.mark.parametrize("form", FORMS)
def test_worked_example(form: str) -> None:
    expected = WORKED.get(form, EXAMPLE.formula)
    assert to_form(EXAMPLE, form).formula == expected
    assert to_form(EXAMPLE, form, "paper").formula == PUBLISHED.get(form, expected)


@settings(deadline=None)
@given(trees(), triples)
def test_forms_have_the_same_answers(tree: Tree, facts: Triples) -> None:
    answers = meaning(tree, facts)
    for form in FORMS:
        for compat in (None, "paper"):
            assert meaning(to_form(tree, form, compat), facts) == answers, form


@given(trees(), triples)
def test_binary_and_flat_have_the_same_answers(tree: Tree, facts: Triples) -> None:
    answers = meaning(tree, facts)
    assert meaning(binary(tree), facts) == answers
    assert meaning(flatten(binary(tree)), facts) == answers
    assert operators(binary(tree)) <= set("epiun")


@given(trees("piunI", grounded=False))
def test_forms_use_their_operators(tree: Tree) -> None:
    for form in FORMS.values():
        made = to_form(tree, form.name)
        if operators(made) & set("n") and form.system in ("epiud", "epIUd", "epIUD"):
            # Complements that no positive set stands beside.
            assert any(node.op == "n" for node in nodes(binary(tree)))
            made = _without_lone_complements(made)
        assert fits(made, form.system), form


def _without_lone_complements(tree: Tree) -> Tree:
    """The tree with complements taken for their operands, none of which a set stands beside."""
    if tree.op in "iI":
        assert len({_is_complement(operand) for operand in tree.operands}) == 1
    operands = tuple(_without_lone_complements(operand) for operand in tree.operands)
    if tree.op == "n":
        return operands[0]
    return Tree(tree.op, operands, tree.relation, tree.entity)


def _is_complement(tree: Tree) -> bool:
    return tree.op == "n" or (tree.op == "i" and all(map(_is_complement, tree.operands)))


@given(trees("piun", grounded=False))
def test_disjunctive_form(tree: Tree) -> None:
    form = to_form(tree, "DNF")
    assert to_form(form, "DNF") == form
    for part in disjuncts(form):
        assert "u" not in operators(part)
        for node in nodes(part):
            if node.op == "n":
                assert node.operands[0].op in "pe"


@given(trees())
def test_forms_do_not_depend_on_order(tree: Tree) -> None:
    turned = _turned(tree)
    for form in FORMS:
        assert to_form(turned, form) == to_form(tree, form)


def _turned(tree: Tree) -> Tree:
    operands = [_turned(operand) for operand in tree.operands]
    if tree.op in "iuIU":
        operands.reverse()
    return Tree(tree.op, tuple(operands), tree.relation, tree.entity)


def test_relations_and_anchors_are_carried_along() -> None:
    one, other = project(anchor(1), 10), project(anchor(2), 20)
    tree = project(Tree("u", (one, other)), 30)
    assert to_form(tree, "DNF") == Tree("u", (project(one, 30), project(other, 30)))
    negated = Tree("i", (project(anchor(3), 40), Tree("n", (tree,))))
    assert to_form(negated, "DNF+IUD") == Tree(
        "D", (project(anchor(3), 40), project(one, 30), project(other, 30))
    )


def test_projection_does_not_pass_intersection() -> None:
    tree = read_formula("(p,(i,(p,(e)),(p,(e))))")
    assert to_form(tree, "DNF") == tree


def test_more_anchors_with_differences() -> None:
    tree = read_formula("(i,(i,(p,(e)),(n,(p,(e)))),(i,(p,(p,(e))),(n,(p,(p,(e))))))")
    assert to_form(tree, "DNF+IUD").formula == ("(D,(i,(p,(e)),(p,(p,(e)))),(p,(e)),(p,(p,(e))))")
    assert to_form(tree, "DNF+IUd").formula == (
        "(d,(d,(i,(p,(e)),(p,(p,(e)))),(p,(e))),(p,(p,(e))))"
    )


def test_large_disjunctive_forms_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cqa.types.normal.MAX_DISJUNCTS", 100)
    branch = Tree("u", (project(anchor()), project(anchor())))
    tree = branch
    for _ in range(5):
        tree = Tree("i", (tree, branch))
    assert len(disjuncts(to_form(tree, "DNF"))) == 64
    for _ in range(20):
        tree = Tree("i", (tree, branch))
    with pytest.raises(QueryError, match="more than 100 disjuncts"):
        to_form(tree, "DNF")


def test_unknown_forms_and_systems() -> None:
    with pytest.raises(QueryError, match="there is no form 'CNF'; the forms are Original, DM"):
        to_form(EXAMPLE, "CNF")
    with pytest.raises(QueryError, match="compat is 'paper' or nothing"):
        to_form(EXAMPLE, "DNF", "papers")
    with pytest.raises(QueryError, match="no operator system 'epid'"):
        fits(EXAMPLE, "epid")
