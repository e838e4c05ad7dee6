"""LinkSearch over a link predictor: equal to all assignments, one after the other."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
import torch

from cqa.models.links.rows import CALIBRATIONS, Rows
from cqa.models.search.graph import reading_order
from cqa.models.search.search import LinkSearch
from cqa.models.search.settings import SETTINGS, SearchSettings
from cqa.notation.trees import from_tree
from cqa.query import Query, ground
from cqa.types.efok_text import read_formula
from cqa.types.registry import betae_types, efo1_types, graph_types
from cqa.types.tree import Tree
from tests.cqa.models.small_predictor import Brute, Table, small_graph
from tests.cqa.random_queries import ENTITIES, RELATIONS, random_query, random_tree

CLOSE = {"rtol": 1e-4, "atol": 1e-6}


def made(settings: SearchSettings, seed: int, symmetric: bool = False) -> tuple[LinkSearch, Brute]:
    """A search over a random predictor, and what tries out all assignments."""
    graph = small_graph(seed)
    rows = Rows(Table(seed, symmetric), settings.calibration, graph.view("train"), graph.observed())
    every = torch.arange(ENTITIES)
    table = np.stack([rows.rows(r, every).double().numpy() for r in range(2 * RELATIONS)])
    brute = Brute(table, settings.t_norm, settings.t_conorm, settings.negation)
    return LinkSearch(rows, settings), brute


def filled(shape: Tree, random: Random) -> Tree:
    """A query of a type with random relations and anchors."""
    if shape.op == "e":
        return Tree("e", entity=random.randrange(ENTITIES))
    relation = random.randrange(2 * RELATIONS) if shape.op == "p" else None
    return Tree(shape.op, tuple(filled(one, random) for one in shape.operands), relation)


def filled_graph(query: Query, random: Random) -> Query:
    """A query graph with random relations and constants."""
    relations = {name: random.randrange(2 * RELATIONS) for name in query.relations}
    return ground(query, relations, {s: random.randrange(ENTITIES) for s in query.constants})


# SearchSettings that follow every candidate.
EXACT = {
    "sigmoid": SearchSettings(CALIBRATIONS["sigmoid"]),
    "minimum": SearchSettings(CALIBRATIONS["minmax"], t_norm="minimum", t_conorm="maximum"),
    "hybrid": SearchSettings(CALIBRATIONS["minmax-observed"], t_conorm="maximum"),
    "qto": SETTINGS["qto"],
    "fit": replace(SETTINGS["fit"], cut=None, unions="inner"),
}


@pytest.mark.parametrize("name", EXACT)
def test_trees_have_the_value_of_their_operators(name: str) -> None:
    search, brute = made(EXACT[name], 3)
    random = Random(name)
    types = [*betae_types(), *random.sample(efo1_types(), 25)]
    queries = [filled(one.tree, random) for one in types for _ in range(2)]
    queries += [random_tree(random) for _ in range(20)]
    random.shuffle(queries)
    for query, found in zip(queries, search.scores_of(queries), strict=True):
        expected = [brute.tree(query, at) for at in range(ENTITIES)]
        np.testing.assert_allclose(found.scores[0], expected, **CLOSE, err_msg=str(query))


@pytest.mark.parametrize("name", ["sigmoid", "minimum"])
@pytest.mark.parametrize("seed", range(30))
def test_random_query_graphs_have_the_value_of_their_best_assignment(name: str, seed: int) -> None:
    settings = EXACT[name]
    # A symmetric table and a value for each link by itself: no direction of reading can matter.
    settings = replace(settings, calibration=CALIBRATIONS["sigmoid"])
    search, brute = made(settings, seed, symmetric=True)
    query = random_query(Random(seed))
    _check(search, brute, query)


def _check(search: LinkSearch, brute: Brute, query: Query) -> None:
    expected = brute.rows(query)
    found = search.scores(query)
    if len(query.disjuncts) == 1 or len(query.free) == 1 or brute.conorm == "maximum":
        for at in range(len(query.free)):
            others = tuple(n for n in range(len(query.free)) if n != at)
            best = expected.max(axis=others)
            np.testing.assert_allclose(found.scores[at], best, **CLOSE, err_msg=str(query))
    if len(query.free) > 1:
        assert found.tuples is not None
        rows, scores = found.tuples.tuples, found.tuples.scores
        values = np.array([expected[tuple(row)] for row in rows.tolist()])
        np.testing.assert_allclose(scores, values, **CLOSE)
        best = np.sort(expected, axis=None)[::-1]
        count = min(search.settings.tuples, int((best > 0).sum()))
        if len(query.disjuncts) == 1:
            np.testing.assert_allclose(scores[:count], best[:count], **CLOSE)


@pytest.mark.parametrize("free", [1, 2])
def test_efok_types_have_the_value_of_their_best_assignment(free: int) -> None:
    settings = replace(EXACT["sigmoid"], tuples=10)
    search, brute = made(settings, 8, symmetric=True)
    random = Random(free)
    types = [one for one in graph_types() if one.free == free]
    by_topology = {t: [o for o in types if o.topology == t] for t in ("SDAG", "multi", "cyclic")}
    for rows in by_topology.values():
        for one in random.sample(rows, 8):
            _check(search, brute, filled_graph(one.query, random))


@pytest.mark.parametrize("name", ["qto", "fit", "hybrid"])
def test_a_tree_as_a_query_graph_has_the_same_values(name: str) -> None:
    search, brute = made(EXACT[name], 5)
    random = Random(name)
    types = [*betae_types(), *random.sample(efo1_types(), 15)]
    for one in types:
        if "u" in one.tree.formula:
            continue
        tree = filled(one.tree, random)
        expected = [brute.tree(tree, at) for at in range(ENTITIES)]
        found = search.scores(from_tree(tree)).scores[0]
        np.testing.assert_allclose(found, expected, **CLOSE, err_msg=str(tree))


def test_a_negated_link_does_not_lead_to_all_entities() -> None:
    # Read through the negated link, e2 could be anything, and each entity would need a row.
    names = "r1(s1,e1)", "r2(s2,f1)", "r3(e1,f1)", "!(r4(e1,e2))", "r5(e2,f1)"
    query = read_formula("&".join(f"({name})" for name in names))
    order = reading_order(query.disjuncts[0], query.free)
    assert [variable.name for variable in order] == ["e1", "f1", "e2"]
