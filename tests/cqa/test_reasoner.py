"""Reasoners: their contract, the walk over operators, and the ones that know a graph."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from cqa.answering.answer import answers
from cqa.errors import QueryError
from cqa.evaluation.plan import states, visiting_order
from cqa.evaluation.reasoner import (
    GraphReasoner,
    OperatorReasoner,
    RandomReasoner,
    Scored,
    SetOperators,
    as_reasoner,
    as_scored,
    exact,
    observed,
)
from cqa.evaluation.reasoner import named as reasoner_named
from cqa.graphs.graph import Graph, from_triples
from cqa.notation.text import read_text
from cqa.notation.trees import from_tree
from cqa.query import Conjunction, Query, ground
from cqa.types.betae import BETAE, LONGER, named
from cqa.types.efok_text import read_formula
from cqa.types.normal import FORMS, to_form
from cqa.types.registry import graph_types
from cqa.types.tree import Tree
from cqa.types.tree import read_formula as read_tree
from kopl_base.errors import KoplError
from tests.cqa.random_queries import ENTITIES, RELATIONS, random_tree, random_triples

ROOT = str(Path(__file__).parents[2])


def world(random: Random) -> Graph:
    """A small random graph, a third of it in each split."""
    triples = np.array(random_triples(random), np.int32).reshape(-1, 3)
    marks = np.array([random.randrange(3) for _ in triples])
    parts = [triples[marks == mark] for mark in range(3)]
    return from_triples(parts, entity_count=ENTITIES, relation_count=RELATIONS)


def filled(tree: Tree, random: Random) -> Tree:
    """A type with random relations and anchors."""
    operands = tuple(filled(operand, random) for operand in tree.operands)
    relation = random.randrange(2 * RELATIONS) if tree.op == "p" else None
    entity = random.randrange(ENTITIES) if tree.op == "e" else None
    return Tree(tree.op, operands, relation, entity)


class Trace:
    """Operators that write down what they are asked for."""

    def entity(self, entity: int) -> str:
        return f"e{entity}"

    def project(self, state: str, relation: int) -> str:
        return f"{state}.{relation}"

    def and_(self, states: Sequence[str]) -> str:
        return f"({' & '.join(states)})"

    def or_(self, states: Sequence[str]) -> str:
        return f"({' | '.join(states)})"

    def not_(self, state: str) -> str:
        return f"!{state}"


# --- the walk over operators --------------------------------------------------------------------


def test_a_tree_is_walked_as_it_is_written() -> None:
    tree = filled(read_tree("(D,(p,(e)),(p,(p,(e))),(u,(p,(e)),(n,(p,(e)))))"), Random(0))
    relations = [node.relation for node in _nodes(tree) if node.op == "p"]
    anchors = [node.entity for node in _nodes(tree) if node.op == "e"]
    a, b, c, d, e = relations
    w, x, y, z = anchors
    expected = f"(e{w}.{a} & !e{x}.{c}.{b} & !(e{y}.{d} | !e{z}.{e}))"
    assert states(Trace(), tree) == [expected]


def _nodes(tree: Tree) -> list[Tree]:
    return [tree, *(node for operand in tree.operands for node in _nodes(operand))]


@pytest.mark.parametrize(
    ("formula", "order"),
    [
        ("(1(5,e1))&((2(e1,e2))&(3(e2,f1)))", "e1 e2 f1"),
        # Both are next to a constant; e2 is farther from f1.
        ("(1(5,e1))&((2(6,e2))&((3(e2,e1))&(4(e1,f1))))", "e2 e1 f1"),
        # At equal distance the first to occur comes first.
        ("(1(5,e2))&((2(6,e1))&((3(e2,f1))&(4(e1,f1))))", "e2 e1 f1"),
        # Existential variables before free ones, even where these are next to a constant.
        ("(1(5,f1))&((2(6,e1))&((3(e1,f2))&(4(f1,f2))))", "e1 f1 f2"),
        # What only a free variable leads to is visited after it.
        ("(1(5,f1))&((2(f1,e1))&(3(e1,f2)))", "f1 e1 f2"),
        # The sum over the free variables counts: e1 is 1 + 2 away from them, e2 is 4 + 1.
        (
            "(1(5,e1))&((2(6,e2))&((3(e1,f1))&((4(e2,f2))&((5(e1,e3))&(6(e3,f2))))))",
            "e2 e1 e3 f1 f2",
        ),
    ],
)  # fmt: skip
def test_variables_are_visited_in_the_published_order(formula: str, order: str) -> None:
    query = read_formula(formula)
    found = visiting_order(query.disjuncts[0], query.free)
    assert " ".join(variable.name for variable in found) == order


def test_a_node_projects_from_visited_neighbours_negates_and_intersects() -> None:
    query = read_formula("(1(5,e1))&((!(2(6,f1)))&((3(e1,f1))&(4(f1,e1))))")
    # Towards e1 nothing is visited but the constant; 4 is walked against its direction.
    assert states(Trace(), query) == ["(!e6.2 & e5.1.3 & e5.1.5)"]


def test_states_of_several_free_variables_and_of_disjuncts() -> None:
    query = read_formula("(1(5,f1))&(2(f1,f2))")
    assert states(Trace(), query) == ["e5.1", "e5.1.2"]
    query = read_formula("(1(5,f1))|((2(6,e1))&(3(e1,f1)))")
    assert states(Trace(), query) == ["(e5.1 | e6.2.3)"]


def test_a_negated_part_is_walked_on_its_own() -> None:
    query = read_text("1(5,?x) & !(exists y. 2(6,y) & 3(y,?x))")
    assert states(Trace(), query) == ["(e5.1 & !e6.2.3)"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("exists y. 1(y,?x)", "operators need a constant to start from"),
        ("1(5,?x) & (exists y. 2(y,?z))", "operators need a constant to start from"),
        (
            "1(5,?x) & 2(?x,?y) & !(exists z. 3(?x,z) & 4(z,?y))",
            "a negated part that shares 2 variables",
        ),
        ("r(5,?x)", "the query is not grounded: a relation is the name 'r'"),
        ("1(a,?x)", "the query is not grounded: a constant is the name 'a'"),
    ],
)
def test_queries_that_operators_cannot_answer(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        states(Trace(), read_text(text))


def test_a_tree_without_relations_is_refused() -> None:
    with pytest.raises(QueryError, match="a relation is missing"):
        states(Trace(), Tree("p", (Tree("e", entity=1),)))


# --- operators over sets ------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*BETAE, *LONGER, "2u-DM", "up-DM"])
def test_operators_over_sets_give_the_answers_of_every_named_type(name: str) -> None:
    random = Random(name)
    reasoner_answers = 0
    for _ in range(30):
        graph = world(random)
        tree = filled(named(name), random)
        for links in (graph.full(), graph.observed()):
            reasoner = OperatorReasoner(SetOperators(links))
            expected = answers(from_tree(tree), links, universe=True)[:, 0]
            given: list[Tree | Query] = [tree]
            if "DM" not in name:
                given.append(from_tree(tree))
                given += [to_form(tree, form) for form in FORMS]
            for query in given:
                scores = as_scored(reasoner.scores(query), 1, ENTITIES).scores[0]
                assert set(scores.tolist()) <= {0.0, 1.0}
                assert np.flatnonzero(scores).tolist() == expected.tolist(), query
            reasoner_answers += len(expected)
    assert reasoner_answers > 0


def test_operators_over_sets_give_the_answers_of_random_trees() -> None:
    random = Random(7)
    for _ in range(300):
        links = world(random).full()
        tree = random_tree(random)
        found = OperatorReasoner(SetOperators(links)).scores(tree).scores[0]
        expected = answers(from_tree(tree), links, universe=True)[:, 0]
        assert np.flatnonzero(found).tolist() == expected.tolist(), tree


def test_operators_contain_the_answers_of_every_positive_query_graph() -> None:
    # A walk forgets which source led where, so that it may give more on cycles and multi-edges; it
    # loses nothing of a positive query, and it gives the answers where chains meet in one variable.
    random = Random(3)
    several = 0
    for row in graph_types("paper")[::5]:
        atoms = row.query.disjuncts[0].atoms
        if not all(atom.positive for atom in atoms):
            continue
        graph = world(random)
        query = ground(
            row.query,
            {name: random.randrange(2 * RELATIONS) for name in row.query.relations},
            {name: random.randrange(ENTITIES) for name in row.query.constants},
        )
        found = states(SetOperators(graph.full()), query)
        expected = answers(query, graph.full())
        for at, state in enumerate(found):
            assert state[expected[:, at]].all(), row.formula
        several += len(found) > 1 and len(expected) > 0
    assert several


# --- the contract -------------------------------------------------------------------------------


def test_what_a_reasoner_may_give() -> None:
    assert as_scored([0, 1, 2], 1, 3).scores.tolist() == [[0.0, 1.0, 2.0]]
    assert as_scored(np.ones((2, 3), np.bool_), 2, 3).scores.dtype == np.float64
    assert as_scored(Scored(np.ones((1, 3), np.float32)), 1, 3).scores.dtype == np.float32
    assert as_scored(np.array([-np.inf, 0.0, np.inf]), 1, 3).scores[0, 0] == -np.inf


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros(4), r"an array of shape \(1, 4\); \(2, 3\) was expected"),
        (np.zeros((1, 3)), r"a row for each free variable, a score for each entity"),
        (np.array([["a"] * 3] * 2), "scores of type <U1, not numbers"),
        (np.array([[0, 1, 2], [0, np.nan, 1]]), r"no number \(NaN\) for entity 1"),
    ],
)
def test_what_a_reasoner_may_not_give(given: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        as_scored(given, 2, 3)


class Wide(Trace):
    """Operators with the sixth method."""

    def scores(self, state: str) -> list[float]:
        return [float(len(state)), 0.0]


def test_states_become_scores_by_a_sixth_method() -> None:
    query = read_formula("(1(5,f1))&(2(f1,f2))")
    reasoner: OperatorReasoner[str] = OperatorReasoner(Wide())
    assert reasoner.scores(query).scores.tolist() == [[4.0, 0.0], [6.0, 0.0]]
    plain: OperatorReasoner[str] = OperatorReasoner(Trace())
    with pytest.raises(QueryError, match=r"give them a method scores\(state\)"):
        plain.scores(query)


class OfGraph:
    """A reasoner made of a graph and a split."""

    def __init__(self, graph: Graph, split: str) -> None:
        self.size, self.split = graph.entity_count, split

    def scores(self, query: Query | Tree) -> list[float]:
        """The same for all."""
        return [0.0] * self.size


def test_what_becomes_a_reasoner() -> None:
    graph = world(Random(1))
    made = as_reasoner(OfGraph, graph, "valid")
    assert isinstance(made, OfGraph) and made.split == "valid"
    assert as_reasoner(made, graph, "test") is made
    assert isinstance(as_reasoner(SetOperators(graph.full()), graph, "test"), OperatorReasoner)
    made = as_reasoner(lambda graph, split: SetOperators(graph.full(split)), graph, "test")
    assert isinstance(made, OperatorReasoner)
    for wrong in (3, "text", lambda graph, split: None, lambda graph: made, os.getcwd):
        with pytest.raises(KoplError, match=r"is no reasoner: it needs a method scores\(query\)"):
            as_reasoner(wrong, graph, "test")


def test_reasoners_by_name() -> None:
    graph = world(Random(2))
    query = read_formula("(0(1,e1))&(2(e1,f1))")
    for name, links in (("exact", graph.full()), ("observed", graph.observed())):
        reasoner = reasoner_named(name, graph, "test")
        assert isinstance(reasoner, GraphReasoner)
        found = reasoner.scores(query).scores[0]
        assert np.flatnonzero(found).tolist() == answers(query, links)[:, 0].tolist()
    assert isinstance(reasoner_named("random", graph, "test"), RandomReasoner)
    with pytest.raises(
        KoplError, match="there is no reasoner 'best'; give exact, observed, random"
    ):
        reasoner_named("best", graph, "test")


def test_reasoners_of_a_graph_score_tuples() -> None:
    graph = from_triples(
        [np.array([[0, 0, 1], [1, 0, 2]]), np.array([[0, 0, 2]])], ("train", "test")
    )
    query = read_formula("(0(0,f1))&(0(f1,f2))")
    known = observed(graph).scores(query)
    assert known.scores.tolist() == [[0, 1, 0], [0, 0, 1]]
    assert known.tuples is not None and known.tuples.tuples.tolist() == [[1, 2]]
    assert exact(graph).scores(Query(query.free[:1], (Conjunction(query.disjuncts[0].atoms[:1]),))
                               ).scores.tolist() == [[0, 1, 1]]  # fmt: skip


def test_chance_is_the_same_for_the_same_query_and_seed() -> None:
    one, other = read_formula("1(5,f1)"), read_formula("1(6,f1)")
    first, again = RandomReasoner(50), RandomReasoner(50)
    first.scores(other)
    assert first.scores(one).scores.tolist() == again.scores(one).scores.tolist()
    assert first.scores(one).scores.tolist() != first.scores(other).scores.tolist()
    assert first.scores(one).scores.tolist() != RandomReasoner(50, 1).scores(one).scores.tolist()


def test_chance_hangs_on_no_hash_seed() -> None:
    program = (
        "from cqa.types.efok_text import read_formula;"
        "from cqa.evaluation.reasoner import RandomReasoner;"
        "print(RandomReasoner(5).scores(read_formula('1(5,f1)')).scores.tolist())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": ROOT},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1 and b"0." in found.pop()
