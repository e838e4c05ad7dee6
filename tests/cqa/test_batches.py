"""Queries of one form answered together: as they are answered one by one, and by brute force."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import cqa.answering.join
import cqa.answering.search
import cqa.answering.template
import cqa.answering.walk
import cqa.graphs.links
from cqa.answering.answer import answers_among, evaluate, evaluate_batch
from cqa.answering.semiring import SEMIRINGS, Semiring
from cqa.answering.template import (
    Batch,
    Template,
    abstracted,
    as_query,
    batches,
    compiled,
    template_of,
)
from cqa.errors import QueryError
from cqa.graphs.graph import from_triples
from cqa.graphs.links import Links
from cqa.query import Atom, Conjunction, Constant, Query, Variable, is_safe
from cqa.types import betae
from tests.cqa.brute import Brute, Triple, tree_set
from tests.cqa.random_queries import (
    ENTITIES,
    RELATIONS,
    random_complement,
    random_query,
    random_triples,
)

X, F, G = Variable("x"), Variable("f"), Variable("g")


def links_of(triples: list[Triple], random: Random | None = None) -> Links:
    """The links of triples; weighted alike in both directions where something random is given."""
    rows = np.array(triples, np.int32).reshape(-1, 3)
    sizes = {"entity_count": ENTITIES, "relation_count": RELATIONS}
    links = from_triples([rows], ("train",), **sizes).full("train")
    if random is None:
        return links
    weights = np.zeros(len(links.tails))
    for relation in range(0, links.relation_count, 2):
        heads, tails = links.pairs(relation)
        drawn = [random.choice((0.0, 0.25, 0.5, 1.0)) for _ in heads]
        weights[links.find(relation, heads, tails)] = drawn
        weights[links.find(relation + 1, tails, heads)] = drawn
    return links.weighted(weights)


def drawn(template: Template, count: int, random: Random) -> Batch:
    """Queries of a template with any numbers, some of them alike."""
    numbers = np.zeros((count, len(template.relations) + len(template.entities)), np.int64)
    for columns, bound in ((template.relations, 2 * RELATIONS), (template.entities, ENTITIES)):
        for column in columns:
            numbers[:, column] = [random.randrange(bound) for _ in range(count)]
    return Batch(template, numbers, range(count))


def query_of(batch: Batch, number: int) -> Query:
    """One of its queries."""
    row = batch.numbers[number].tolist()
    return as_query(batch.template.filled(dict(enumerate(row))))


@pytest.fixture(params=["whole", "parted", "without tables"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries a few at once, steps of a few rows, and look-ups without tables."""
    if request.param == "parted":
        monkeypatch.setattr(cqa.answering.walk, "AT_ONCE", 7)
        monkeypatch.setattr(cqa.answering.search, "BLOCK", 15)
        monkeypatch.setattr(cqa.answering.join, "BLOCK", 3)
    elif request.param == "without tables":
        monkeypatch.setattr(cqa.graphs.links, "CACHE_BYTES", 0)


@pytest.mark.usefixtures("sizes")
def test_query_graphs_by_brute_force() -> None:
    filled = 0
    for seed in range(120):
        random = Random(seed)
        triples = random_triples(random)
        links, brute = links_of(triples), Brute(triples, ENTITIES)
        batch = drawn(template_of(random_query(random)), random.choice((2, 5, 20)), random)
        found = evaluate_batch(batch, links)
        assert len(found) == len(batch)
        for number in range(len(batch)):
            query = query_of(batch, number)
            rows = [tuple(row) for row in found[number].tuples.tolist()]
            assert rows == brute.answers(query), (seed, query)
            filled += bool(rows)
    assert filled > 400


@pytest.mark.usefixtures("sizes")
def test_operator_trees_with_complements_anywhere() -> None:
    unsafe = 0
    for seed in range(150):
        random = Random(seed)
        triples = random_triples(random)
        template = template_of(random_complement(random))
        unsafe += not is_safe(template.query)
        batch = drawn(template, 6, random)
        found = evaluate_batch(batch, links_of(triples), universe=True)
        for number in range(len(batch)):
            tree = template.filled(dict(enumerate(batch.numbers[number].tolist())))
            expected = sorted(tree_set(tree, triples, ENTITIES))  # type: ignore[arg-type]
            assert found[number].tuples[:, 0].tolist() == expected, (seed, tree)
    assert unsafe > 30


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("semiring", SEMIRINGS.values(), ids=lambda semiring: semiring.name)
def test_values_are_those_of_each_query(semiring: Semiring) -> None:
    valued = 0
    for seed in range(60):
        random = Random(seed)
        links = links_of(random_triples(random), random)
        batch = drawn(template_of(random_query(random)), random.choice((2, 12)), random)
        found = evaluate_batch(batch, links, semiring)
        for number in range(len(batch)):
            query = query_of(batch, number)
            own = evaluate(query, links, semiring)
            assert found[number].tuples.tolist() == own.tuples.tolist(), (seed, query)
            assert (found[number].values is None) == (own.values is None)
            if own.values is not None:
                assert found[number].values == pytest.approx(own.values), (seed, query)
                valued += len(own)
    assert semiring.plus is None or valued > 500


def test_some_rows_are_answers() -> None:
    for seed in range(100):
        random = Random(seed)
        triples = random_triples(random)
        query = random_query(random)
        links = links_of(triples)
        rows = {tuple(random.randrange(ENTITIES) for _ in query.free) for _ in range(20)}
        given = np.array(sorted(rows), np.int32)
        found = [tuple(row) for row in answers_among(query, links, given).tolist()]
        assert found == [row for row in Brute(triples, ENTITIES).answers(query) if row in rows]


# --- templates ------------------------------------------------------------------------------------


def path(relations: tuple[int, ...], anchor: int) -> Query:
    """Two hops from an anchor."""
    first, second = relations
    return Query((F,), (Conjunction((Atom(first, Constant(anchor), X), Atom(second, X, F))),))


def test_queries_of_one_form_share_a_template() -> None:
    queries = [path((0, 2), 3), Query((F,), (Conjunction((Atom(1, Constant(4), F),)),))]
    queries += [path((5, 1), 0)]
    paths, alone = batches(queries)
    assert (list(paths.own), list(alone.own)) == ([0, 2], [1])
    assert paths.numbers.tolist() == [[0, 3, 2], [5, 0, 1]]
    assert [query_of(paths, number) for number in (0, 1)] == [queries[0], queries[2]]
    assert abstracted(path((2, 2), 1))[0] is paths.template
    tree = betae.from_tuples((3, (0, 2)))
    assert batches([tree])[0].template.filled({0: 2, 1: 0, 2: 3}) == tree


def test_few_templates_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cqa.answering.template, "MAX_TEMPLATES", 1)
    first = abstracted(path((0, 2), 3))[0]
    assert abstracted(path((1, 1), 0))[0] is first
    new = Variable("a name that nothing else has")
    abstracted(Query((new,), (Conjunction((Atom(1, Constant(4), new),)),)))
    assert abstracted(path((0, 2), 3))[0] is not first


def test_compiled_queries() -> None:
    links = links_of([(0, 0, 1), (1, 1, 2), (1, 1, 3)])
    assert evaluate(compiled(path((0, 2), 0)), links).tuples.tolist() == [[2], [3]]
    with pytest.raises(QueryError, match="some relation or constant is no number"):
        compiled(betae.named("2p"))
    with pytest.raises(QueryError, match="there is no entity 9; the graph has the numbers 0 to 6"):
        evaluate(compiled(path((0, 2), 9)), links)


def test_refusals_name_the_first_query() -> None:
    links = links_of([(0, 0, 1)])
    (wrong,) = batches([path((0, 2), 3), path((0, 7), 3), path((0, 2), 9)])
    with pytest.raises(QueryError, match="there is no relation 7; the graph has the numbers 0 to"):
        evaluate_batch(wrong, links)
    negated = Query((F,), (Conjunction((Atom(0, Constant(1), F, False),)),))
    (unsafe,) = batches([negated, negated])
    with pytest.raises(QueryError, match="'f' stands in no positive atom"):
        evaluate_batch(unsafe, links)
    assert len(evaluate_batch(unsafe, links, universe=True).tuples) == 2 * ENTITIES
    (asked,) = batches([path((0, 2), 3), path((0, 2), 4)])
    with pytest.raises(QueryError, match="needs links with weights"):
        evaluate_batch(asked, links, SEMIRINGS["fewest missing"])


def test_a_product_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries are parted first; then the one that is too large alone is refused."""
    monkeypatch.setattr(cqa.answering.join, "MAX_ROWS", 5)
    links = links_of([(0, 0, tail) for tail in range(3)] + [(1, 0, 0)])
    pairs = [
        Query((F, G), (Conjunction((Atom(0, Constant(a), F), Atom(0, Constant(b), G))),))
        for a, b in ((0, 1), (1, 0), (1, 1))
    ]
    assert len(evaluate_batch(batches(pairs)[0], links).tuples) == 7
    pairs.append(Query((F, G), (Conjunction((Atom(0, Constant(0), F), Atom(0, Constant(0), G))),)))
    with pytest.raises(QueryError, match="a product of 3 and 3 matches"):
        evaluate_batch(batches(pairs)[0], links)


def test_empty_graphs_and_batches() -> None:
    links = links_of([])
    (batch,) = batches([path((0, 2), 3), path((0, 2), 4)])
    assert evaluate_batch(batch, links).starts.tolist() == [0, 0, 0]
    none = Batch(batch.template, batch.numbers[:0], [])
    assert evaluate_batch(none, links).tuples.shape == (0, 1)
