"""EFO-1's enumeration against the published figures, and against a naive one over texts."""

from __future__ import annotations

import pytest

from cqa.errors import QueryError
from cqa.types.efo1 import (
    by_anchors_and_depth,
    by_disjuncts,
    differing,
    distinct,
    has_negation,
    has_union,
    raw_count,
    types,
)
from cqa.types.normal import FORMS, fits, to_form
from cqa.types.tree import arrange, operators, read_formula


def naive(depth: int, anchors: int, negation: bool) -> list[str]:
    """The rules word by word, duplicates and all."""
    found = ["(p,(e))"] if depth >= 1 and anchors == 1 else []
    if depth < 2:
        return found
    for f in naive(depth - 1, anchors, False):
        found.append(f"(p,{f})")
        if negation:
            found.append(f"(n,{f})")
    for k in range(1, anchors):
        for f in naive(depth, k, False):
            for g in naive(depth, anchors - k, True):
                found.append("(i,{},{})".format(*sorted((f, g))))
            for g in naive(depth, anchors - k, False):
                found.append("(u,{},{})".format(*sorted((f, g))))
    return found


@pytest.mark.parametrize(("anchors", "depth"), [(1, 1), (1, 5), (2, 4), (3, 1), (3, 2), (3, 3)])
def test_rules_word_by_word(anchors: int, depth: int) -> None:
    texts = [text for k in range(1, anchors + 1) for text in naive(depth, k, False)]
    assert raw_count(anchors, depth) == len(texts)
    made = [tree.formula for tree in types(anchors, depth)]
    assert len(made) == len(set(made))
    assert set(made) == set(texts)


def test_four_anchors_word_by_word() -> None:
    texts = [text for k in range(1, 5) for text in naive(3, k, False)]
    assert (len(texts), len(set(texts))) == (12_909, 3_779)
    assert {tree.formula for tree in types(4, 3)} == set(texts)


def test_table_2() -> None:
    assert len(types()) == 301
    assert raw_count() == 633
    assert by_anchors_and_depth(types()) == {
        (1, 1): 1, (1, 2): 1, (1, 3): 1,
        (2, 1): 3, (2, 2): 10, (2, 3): 13,
        (3, 1): 12, (3, 2): 91, (3, 3): 169,
    }  # fmt: skip


def test_negation_union_and_disjuncts() -> None:
    assert sum(map(has_negation, types())) == 148
    assert sum(not has_union(tree) for tree in types()) == 135
    assert by_disjuncts(types()) == {1: 129, 2: 139, 3: 33}


@pytest.mark.parametrize(
    ("form", "count"),
    [
        ("Original", 301), ("DM", 301), ("DM+I", 266), ("Original+d", 301), ("DNF", 248),
        ("DNF+d", 239), ("DNF+IU", 196), ("DNF+IUd", 196), ("DNF+IUD", 196),
    ],
)  # fmt: skip
def test_distinct_formulas(form: str, count: int) -> None:
    assert distinct(types(), form) == count


def test_published_difference_keeps_nine_complements() -> None:
    assert distinct(types(), "DNF+d", "paper") == 248
    left = [tree for tree in types() if "n" in operators(to_form(tree, "DNF+d", "paper"))]
    assert len(left) == 9


def test_table_14() -> None:
    expected = (57, 132, 15, 90, 75, 148, 256, 223, 181, 84)
    assert tuple(differing(types()).values()) == expected


@pytest.mark.parametrize("form", FORMS)
def test_forms_keep_to_their_systems(form: str) -> None:
    for tree in types():
        made = to_form(tree, form)
        assert fits(made, FORMS[form].system)
        assert arrange(made) == made
        assert read_formula(made.formula) == made


def test_limits() -> None:
    for anchors, depth in ((0, 3), (3, 0)):
        with pytest.raises(QueryError, match="1 or more"):
            types(anchors, depth)
    for anchors, depth in ((9, 3), (10**9, 3), (3, 100)):
        with pytest.raises(QueryError, match="too many types"):
            types(anchors, depth)
    with pytest.raises(QueryError, match="the depth is 150 at most"):
        types(1, 151)
    assert len(types(1, 150)) == 150
    assert len(types(10**9, 1)) == 1
    assert [tree.depth for tree in types(1, 30)] == list(range(1, 31))
