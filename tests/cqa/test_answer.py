"""Answering: against a brute-force answerer and pyoxigraph on random queries, and by hand.

``KOPL_CQA_DIFFERENTIAL=20000 pytest tests/cqa/test_answer.py -k opinions`` is the long run.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import cqa.answering.join
import cqa.graphs.links
from cqa.answering.answer import answers, count_matches, evaluate
from cqa.answering.semiring import (
    BOOLEAN,
    COUNTING,
    FEWEST_MISSING,
    MAX_MIN,
    MAX_PRODUCT,
    SEMIRINGS,
    SUM_PRODUCT,
    Semiring,
)
from cqa.errors import QueryError
from cqa.graphs.graph import Graph, from_triples, scored
from cqa.graphs.links import Links
from cqa.notation.sparql import triples_of, write_sparql
from cqa.notation.trees import from_tree
from cqa.query import Atom, Conjunction, Constant, Query, Variable, is_safe
from cqa.types.normal import to_form
from kb.rdf.iri import BASE
from kopl_base.errors import KoplError
from tests.cqa.brute import Brute, Triple, tree_set
from tests.cqa.random_queries import (
    ENTITIES,
    RELATIONS,
    random_complement,
    random_query,
    random_tree,
    random_triples,
)

# Pairs of a query and a graph on which three answerers must agree.
PAIRS = int(os.environ.get("KOPL_CQA_DIFFERENTIAL", "5000"))
PER_GRAPH = 5

X, Y, Z, F, G = (Variable(name) for name in ("x", "y", "z", "f", "g"))


def graph_of(triples: list[Triple], entities: int = ENTITIES, relations: int = RELATIONS) -> Graph:
    """The graph of triples, all of them in train."""
    rows = np.array(triples, np.int32).reshape(-1, 3)
    return from_triples([rows], ("train",), entity_count=entities, relation_count=relations)


def rows_of(query: Query, links: Links, **options: bool) -> list[tuple[int, ...]]:
    """The answers as tuples."""
    return [tuple(row) for row in answers(query, links, **options).tolist()]


class Oxigraph:
    """The answers of SPARQL text on the triples of a graph."""

    def __init__(self, graph: Graph) -> None:
        pyoxigraph = pytest.importorskip("pyoxigraph", reason="pip install 'kopl-toolkit[sparql]'")
        self.graph, self.store = graph, pyoxigraph.Store()
        named = ((pyoxigraph.NamedNode(BASE + end) for end in row) for row in triples_of(graph))
        self.store.extend(pyoxigraph.Quad(*row) for row in named)

    def answers(self, query: Query) -> list[tuple[int, ...]]:
        """The answers, sorted."""
        found = self.store.query(write_sparql(query, self.graph, base=BASE))
        cut = len(BASE) + 1  # <http://…/e12>
        return sorted(tuple(int(row[v.name].value[cut:]) for v in query.free) for row in found)


# --- three opinions ---------------------------------------------------------------------------


def test_three_opinions_on_query_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    filled = 0
    for seed in range(PAIRS // 2 // PER_GRAPH):
        random = Random(seed)
        triples = random_triples(random)
        graph = graph_of(triples)
        brute, third = Brute(triples, ENTITIES), Oxigraph(graph)
        for _ in range(PER_GRAPH):
            query = random_query(random)
            found = rows_of(query, graph.full("train"))
            assert found == brute.answers(query), (seed, query)
            assert found == third.answers(query), (seed, query)
            filled += bool(found)
    with capsys.disabled():
        print(f"\n{PAIRS // 2} query graphs agree, {2 * filled / PAIRS:.0%} with answers")
    assert filled > 0.4 * PAIRS // 2


def test_three_opinions_on_operator_trees(capsys: pytest.CaptureFixture[str]) -> None:
    filled = 0
    for seed in range(PAIRS // 2 // PER_GRAPH):
        random = Random(seed)
        triples = random_triples(random)
        graph = graph_of(triples)
        third = Oxigraph(graph)
        for _ in range(PER_GRAPH):
            tree = random_tree(random)
            query = from_tree(tree)
            found = rows_of(query, graph.full("train"))
            expected = [(entity,) for entity in sorted(tree_set(tree, triples, ENTITIES))]
            assert found == expected, (seed, tree)
            assert found == third.answers(query), (seed, tree)
            filled += bool(found)
    with capsys.disabled():
        print(f"\n{PAIRS // 2} operator trees agree, {2 * filled / PAIRS:.0%} with answers")
    assert filled > 0.4 * PAIRS // 2


def test_complements_anywhere() -> None:
    """Trees whose complements nothing bounds, answered as sets of all entities."""
    unsafe = 0
    for seed in range(PAIRS // 5):
        random = Random(seed)
        triples = random_triples(random)
        tree = random_complement(random)
        query = from_tree(tree)
        unsafe += not is_safe(query)
        found = rows_of(query, graph_of(triples).full("train"), universe=True)
        expected = sorted(tree_set(tree, triples, ENTITIES))
        assert found == [(entity,) for entity in expected], (seed, tree)
    assert unsafe > PAIRS // 5 // 4


@pytest.mark.parametrize("form", ["DM", "DM+I", "DNF", "Original+d", "DNF+IUD", "DNF+IUd"])
def test_normal_forms_have_the_same_answers(form: str) -> None:
    random = Random(form)
    triples = random_triples(random)
    links = graph_of(triples).full("train")
    for _ in range(100):
        tree = random_tree(random, 2)
        same = from_tree(to_form(tree, form))
        assert rows_of(same, links, universe=True) == rows_of(from_tree(tree), links), tree


def test_small_blocks_and_no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut into pieces of three rows, without pointers and keys: the same answers."""
    monkeypatch.setattr(cqa.answering.join, "BLOCK", 3)
    monkeypatch.setattr(cqa.graphs.links, "CACHE_BYTES", 0)
    for seed in range(400):
        random = Random(seed)
        triples = random_triples(random)
        query = random_query(random)
        found = rows_of(query, graph_of(triples).full("train"))
        assert found == Brute(triples, ENTITIES).answers(query), (seed, query)


# --- semirings --------------------------------------------------------------------------------


# Semiring, times, plus, one, whether negation is 1 - weight.
OPERATIONS: list[tuple[Semiring, Any, Any, float, bool]] = [
    (COUNTING, operator.mul, operator.add, 1, False),
    (FEWEST_MISSING, operator.add, min, 0, False),
    (MAX_PRODUCT, operator.mul, max, 1, True),
    (MAX_MIN, min, max, 1, True),
    (SUM_PRODUCT, operator.mul, operator.add, 1, True),
]


@pytest.mark.parametrize("operations", OPERATIONS, ids=lambda given: given[0].name)
def test_semirings(operations: tuple[Semiring, Any, Any, float, bool]) -> None:
    semiring, times, plus, one, fuzzy = operations
    filled = 0
    for seed in range(500):
        random = Random(seed)
        triples = random_triples(random)
        missing = {triple for triple in triples if random.random() < 0.4}
        scores = {triple: random.choice((0.25, 0.5, 0.75, 1.0)) for triple in triples}
        query = random_query(random)
        if fuzzy and any(disjunct.without for disjunct in query.disjuncts):
            continue
        links = graph_of(triples).full("train")
        weight: Callable[[Triple], float] = lambda _: 1.0  # noqa: E731
        if semiring is FEWEST_MISSING:
            parts = [[t for t in triples if (t in missing) == held] for held in (False, True)]
            arrays = [np.array(part, np.int32).reshape(-1, 3) for part in parts]
            graph = from_triples(
                arrays, ("train", "test"), entity_count=ENTITIES, relation_count=RELATIONS
            )
            links, weight = graph.priced("test"), lambda t, held=missing: float(t in held)  # type: ignore[misc]
        elif fuzzy:
            weight = scores.__getitem__
            given = np.array(triples, np.int32).reshape(-1, 3)
            links = scored(given, np.array(list(scores.values())), ENTITIES, RELATIONS)
        found = evaluate(query, links, semiring)
        assert found.values is not None
        pairs = zip(found.tuples.tolist(), found.values.tolist(), strict=True)
        values = {tuple(row): value for row, value in pairs}
        expected = Brute(triples, ENTITIES).values(query, weight, times, plus, one, fuzzy)
        expected = {row: value for row, value in expected.items() if value != semiring.zero}
        assert values == pytest.approx(expected), (seed, query)
        filled += bool(values)
    assert filled > 100


def test_every_semiring_is_tested() -> None:
    assert set(SEMIRINGS) == {BOOLEAN.name, *(given[0].name for given in OPERATIONS)}


# --- by hand ----------------------------------------------------------------------------------

# 0 knows 1 and 2; 1 and 2 know 3; 3 knows itself; 2 likes 3.
SMALL = graph_of([(0, 0, 1), (0, 0, 2), (1, 0, 3), (2, 0, 3), (3, 0, 3), (2, 1, 3)], 5, 2)


def one(*atoms: Atom, free: tuple[Variable, ...] = (F,), without: tuple[Query, ...] = ()) -> Query:
    """A query of one conjunction."""
    return Query(free, (Conjunction(atoms, without),))


def c(number: int) -> Constant:
    """A constant."""
    return Constant(number)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (one(Atom(0, c(0), F)), [(1,), (2,)]),
        (one(Atom(1, c(3), F)), [(1,), (2,), (3,)]),
        (one(Atom(0, c(0), X), Atom(0, X, F)), [(3,)]),
        (one(Atom(0, X, F), Atom(2, X, F)), [(3,)]),
        (one(Atom(0, F, F)), [(3,)]),
        (one(Atom(0, F, c(3)), Atom(2, F, c(3), False)), [(1,), (3,)]),
        (one(Atom(0, c(0), F), Atom(0, c(0), c(1))), [(1,), (2,)]),
        (one(Atom(0, c(0), F), Atom(0, c(1), c(0))), []),
        (one(Atom(0, c(0), F), Atom(0, c(1), c(0), False)), [(1,), (2,)]),
        (one(Atom(0, F, G), Atom(2, F, G), free=(G, F)), [(3, 2)]),
        (one(Atom(0, c(0), F), Atom(2, c(2), G), free=(F, G)), [(1, 3), (2, 3)]),
        (one(Atom(0, c(0), c(1)), free=()), [()]),
        (one(Atom(0, X, X), free=()), [()]),
        (one(Atom(2, X, X), free=()), []),
        (one(Atom(0, c(4), F)), []),
        # What is known by something that does not like it.
        (one(Atom(0, X, F), Atom(2, X, F, False)), [(1,), (2,), (3,)]),
        # pni: the negation covers both steps.
        (one(Atom(0, F, c(3)), without=(one(Atom(3, F, X)),)), [(1,), (2,)]),
    ],
)
def test_small_cases(query: Query, expected: list[tuple[int, ...]]) -> None:
    assert rows_of(query, SMALL.full("train")) == expected


def test_counts_matches() -> None:
    two_ways = one(Atom(0, c(0), X), Atom(0, X, F))
    found = count_matches(two_ways, SMALL.full("train"))
    assert found.tuples.tolist() == [[3]]
    assert found.values is not None and found.values.tolist() == [2]


def test_a_union_counts_the_matches_of_its_disjuncts() -> None:
    known, liked = Conjunction((Atom(0, X, F),)), Conjunction((Atom(2, X, F),))
    found = count_matches(Query((F,), (known, liked)), SMALL.full("train"))
    assert found.values is not None
    assert dict(zip(found.tuples[:, 0].tolist(), found.values.tolist(), strict=True)) == {
        1: 1, 2: 1, 3: 4,
    }  # fmt: skip


def test_price_of_an_answer() -> None:
    parts = [np.array(rows, np.int32) for rows in ([(0, 0, 1), (1, 0, 3)], [(0, 0, 2), (2, 0, 3)])]
    graph = from_triples(parts, ("train", "test"))
    query = one(Atom(0, c(0), X), Atom(0, X, F))
    found = evaluate(query, graph.priced("test"), FEWEST_MISSING)
    assert found.values is not None and found.values.tolist() == [0]
    harder = one(Atom(0, c(0), X), Atom(0, X, F), Atom(0, c(2), F))
    found = evaluate(harder, graph.priced("test"), FEWEST_MISSING)
    assert found.values is not None and found.values.tolist() == [1]


def test_answers_do_not_depend_on_the_order_of_atoms() -> None:
    random = Random(5)
    links = graph_of(random_triples(random)).full("train")
    for _ in range(100):
        query = random_query(random)
        (first, *rest) = query.disjuncts
        mixed = list(first.atoms)
        random.shuffle(mixed)
        other = Query(query.free, (*rest, Conjunction(tuple(mixed), first.without)))
        assert rows_of(other, links) == rows_of(query, links)


def test_a_graph_without_triples() -> None:
    links = graph_of([], 3, 1).full("train")
    assert rows_of(one(Atom(0, c(0), F)), links) == []
    assert rows_of(one(Atom(0, F, X)), links) == []
    assert rows_of(one(Atom(0, c(0), F, False)), links, universe=True) == [(0,), (1,), (2,)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (one(Atom(0, c(0), F, False)), "'f' stands in no positive atom"),
        (one(Atom(0, c(0), F), Atom(0, X, F, False)), "'x' stands in no positive atom"),
        (one(Atom(0, c(0), F), free=(F, G)), "'g' stands in no positive atom"),
        (one(Atom(0, c(0), F), without=(one(Atom(0, X, F, False)),)), "'x' stands in no positive"),
        (one(Atom("r1", c(0), F)), "relation 'r1' is not a number"),
        (one(Atom(0, Constant("s1"), F)), "entity 's1' is not a number"),
        (one(Atom(9, c(0), F)), "no relation 9; the graph has the numbers 0 to 3"),
        (one(Atom(0, c(9), F)), "no entity 9; the graph has the numbers 0 to 4"),
        (one(Atom(0, c(-1), F)), "no entity -1"),
        (one(Atom(0, F, F), free=(F, F)), "listed twice"),
        (Query((F,), ()), "one disjunct at least"),
    ],
)
def test_refusals(query: Query, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        answers(query, SMALL.full("train"))


def test_a_semiring_over_links_without_weights() -> None:
    with pytest.raises(QueryError, match="needs links with weights"):
        evaluate(one(Atom(0, c(0), F)), SMALL.full("train"), FEWEST_MISSING)


def test_scores_that_are_refused() -> None:
    twice = np.array([(0, 0, 1), (0, 0, 1)], np.int32)
    with pytest.raises(KoplError, match="a triple is listed twice"):
        scored(twice, np.ones(2), 2, 1)
    with pytest.raises(KoplError, match="1 scores for 2 triples"):
        scored(twice, np.ones(1), 2, 1)


def test_a_product_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cqa.answering.join, "MAX_ROWS", 5)
    apart = one(Atom(1, c(3), F), Atom(1, c(3), G), free=(F, G))
    with pytest.raises(QueryError, match="a product of 3 and 3 matches"):
        answers(apart, SMALL.full("train"))
