"""Conversions of queries: operator trees, first-order text, SPARQL, KoPL; and their refusals."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from cqa.answering.answer import answers
from cqa.errors import FormulaError, QueryError
from cqa.graphs.from_kb import INSTANCE_OF, graph_from_kb
from cqa.graphs.graph import Graph, from_triples
from cqa.graphs.names import Names
from cqa.notation.kopl import from_kopl, to_kopl
from cqa.notation.sparql import read_sparql, write_sparql
from cqa.notation.text import read_text, write_text
from cqa.notation.trees import from_tree
from cqa.query import Atom, Conjunction, Constant, Query, Variable, is_safe
from cqa.types.efo1 import types as efo1_types
from cqa.types.tree import anchor, project, read_formula
from kb.store import KnowledgeBase
from kopl.denotation import Located
from kopl.executor import Executor
from kopl.functions import AND, FILTER_CONCEPT, FIND, FIND_ALL, OR, QUERY_NAME, RELATE
from kopl.program import Call
from kopl.sparql.errors import QueryReadError
from kopl_base.errors import KoplError
from tests.cqa.random_queries import (
    ENTITIES,
    RELATIONS,
    random_query,
    random_tree,
    random_triples,
)

F, G, X, Y = (Variable(name) for name in ("f", "g", "x", "y"))

# Names that text and IRIs have to take care of.
NAMES = ["Norway", "exists", "x", "a b", '"quoted" \\', "/m/0?x", "12"]
RELATION_NAMES = ["borders", "place of birth", "¬likes (not)"]


@pytest.fixture(scope="module")
def named() -> Graph:
    rows = np.array(random_triples(Random(3)), np.int32)
    return from_triples(
        [rows], ("train",), entities=Names.of(NAMES), relations=Names.of(RELATION_NAMES)
    )


def queries(count: int) -> list[Query]:
    """Random queries of both families."""
    random = Random(count)
    graphs = [random_query(random) for _ in range(count)]
    return graphs + [from_tree(random_tree(random, 2)) for _ in range(count // 2)]


# --- operator trees ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ("(p,(p,(e)))", "∃x1. r1(s1,x1) ∧ r2(x1,?f1)"),
        ("(i,(n,(p,(e))),(p,(e)))", "¬r1(s1,?f1) ∧ r2(s2,?f1)"),
        ("(i,(n,(p,(p,(e)))),(p,(e)))", "r3(s2,?f1) ∧ ¬(∃x1. r1(s1,x1) ∧ r2(x1,?f1))"),
        ("(d,(p,(e)),(u,(p,(e)),(p,(e))))", "r1(s1,?f1) ∧ ¬r2(s2,?f1) ∧ ¬r3(s3,?f1)"),
        ("(n,(i,(n,(p,(e))),(n,(p,(e)))))", "r1(s1,?f1) ∨ r2(s2,?f1)"),
        ("(n,(n,(p,(e))))", "r1(s1,?f1)"),
        ("(n,(i,(p,(e)),(p,(e))))", "¬(r1(s1,?f1) ∧ r2(s2,?f1))"),
        (
            "(p,(u,(p,(e)),(p,(e))))",
            "(∃x1. r1(s1,x1) ∧ r3(x1,?f1)) ∨ (∃x1. r2(s2,x1) ∧ r3(x1,?f1))",
        ),
    ],
)
def test_trees_as_text(formula: str, text: str) -> None:
    found = write_text(from_tree(read_formula(formula)))
    assert found.replace("x1_2", "x1") == text  # of two disjuncts each has its own


def test_every_efo1_type_is_safe() -> None:
    assert all(is_safe(from_tree(tree)) for tree in efo1_types())


def test_a_complement_that_nothing_bounds_is_not_safe() -> None:
    assert not is_safe(from_tree(read_formula("(n,(p,(e)))")))


def test_tree_refusals() -> None:
    with pytest.raises(QueryError, match="an anchor stands alone"):
        from_tree(anchor(3))
    tree = project(anchor(1), 0)
    for _ in range(13):
        tree = type(tree)("i", (tree, read_formula("(u,(p,(e)),(p,(e)))")))
    with pytest.raises(QueryError, match="8192 disjuncts"):
        from_tree(tree)


# --- first-order text -------------------------------------------------------------------------


@pytest.mark.parametrize("ascii", [False, True])
def test_text_round_trip(named: Graph, ascii: bool) -> None:
    links = named.full("train")
    for query in queries(300):
        for graph in (None, named):
            text = write_text(query, graph, ascii=ascii)
            again = read_text(text, graph)
            # A negated union is read as two negations; from then on the text stays.
            text = write_text(again, graph, ascii=ascii)
            assert write_text(read_text(text, graph), graph, ascii=ascii) == text
            assert again.free == query.free
            assert np.array_equal(answers(again, links), answers(query, links)), text


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("exists x. r(a,x) & !s(x,?y)", "∃x. r(a,x) ∧ ¬s(x,?y)"),
        ("EXISTS(a,?y)", "EXISTS(a,?y)"),
        ("not not r(a,?y)", "r(a,?y)"),
        ("r(a,?y) && (s(b,?y) || ~t(c,?y))", "(r(a,?y) ∧ s(b,?y)) ∨ (r(a,?y) ∧ ¬t(c,?y))"),
        ("¬(r(a,?y) ∨ s(a,?y)) ∧ t(a,?y)", "¬r(a,?y) ∧ ¬s(a,?y) ∧ t(a,?y)"),
        ("∃?x. r(a,?x) ∧ s(x,?y)", "∃x_2. r(a,x_2) ∧ s(x_2,?y)"),
        ("∃x y. r(x,y) ∧ s(y,?z)", "∃x, y. r(x,y) ∧ s(y,?z)"),
        ("∃x. r(a,x) ∧ ∃x. s(x,?y)", "∃x, x_2. r(a,x) ∧ s(x_2,?y)"),
        ("?b, ?a: r(?a,?b)", "?b, ?a: r(?a,?b)"),
        ("?a, ?b: r(?a,?b)", "r(?a,?b)"),
        # For every x: no x without a link.
        ("t(a,?y) ∧ ¬∃x. ¬r(x,?y) ∧ s(x,b)", "t(a,?y) ∧ ¬(∃x. ¬r(x,?y) ∧ s(x,b))"),
        ("t(a,?y) ∧ ¬∃x. ¬r(x,?y)", "t(a,?y) ∧ ¬(∃x. ¬r(x,?y))"),
        ("'it''s'", None),
        ("r('it\\'s', ?y)", 'r("it\'s",?y)'),
        ("3(12,?y)", "2(?y,12)"),
        ("r(?y,?y)", "r(?y,?y)"),
    ],
)
def test_readings(text: str, same: str | None) -> None:
    if same is None:
        with pytest.raises(FormulaError):
            read_text(text)
        return
    assert write_text(read_text(text)) == same


def test_names_of_a_graph(named: Graph) -> None:
    query = read_text('∃z. "place of birth"(Norway,z) ∧ ¬borders(z,?y) ∧ borders(?y,"12")', named)
    atoms = query.disjuncts[0].atoms
    assert [atom.relation for atom in atoms] == [2, 0, 0]
    assert atoms[0].head == Constant(0) and atoms[2].tail == Constant(6)
    assert read_text("3(2,?y)", named).disjuncts[0].atoms == (Atom(3, Constant(2), Variable("y")),)


MALFORMED = [
    ("", "character 1: a relation, 'exists', 'not' or '(' was expected, not the end"),
    ("r(a,?y", "character 7: ')' was expected, not the end"),
    ("r(a ?y)", "character 5: ',' was expected, not '?y'"),
    ("r(a,?y) s(b,?y)", "character 9: 'and', 'or' or the end was expected, not 's'"),
    ("r(a,?y) &", "character 10: a relation"),
    ("∃. r(a,?y) ∧", "character 13: a relation"),
    ("∃x r(x,?y)", "character 5: a variable or '.' was expected"),
    ("∃x,x. r(x,?y)", "character 4: x is quantified twice"),
    ("r(a,,?y)", "character 5: a variable or a constant was expected, not ','"),
    ('r("a,?y)', "character 3: '\"' was not expected; is a quote missing?"),
    ("?x: r(a,?y)", "?x stands before the colon only"),
    ("?x, ?x: r(a,?x)", "a free variable is listed twice"),
    ("?x: r(?x,?y)", "?y is not before the colon"),
    ("(" * 300 + "r(a,?y)", "nested deeper than 150"),
    ("!" * 300 + "r(a,?y)", "nested deeper than 150"),
    ("r(a,?y) $", "character 9: '$' was not expected"),
]


@pytest.mark.parametrize(("text", "message"), MALFORMED)
def test_malformed_text(text: str, message: str) -> None:
    with pytest.raises(FormulaError) as caught:
        read_text(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("border(Norway,?y)", "character 1: the graph has no relation 'border'; did you mean"),
        ("borders(Norwy,?y)", "character 9: the graph has no entity 'Norwy'; did you mean"),
        ("99(Norway,?y)", "character 1: the graph has no relation 99"),
        ("borders(99,?y)", "character 9: the graph has no entity 99"),
    ],
)
def test_names_that_the_graph_lacks(named: Graph, text: str, message: str) -> None:
    with pytest.raises(FormulaError) as caught:
        read_text(text, named)
    assert message in str(caught.value)


def test_text_of_nothing() -> None:
    with pytest.raises(QueryError, match="says nothing"):
        write_text(Query((F,), (Conjunction(()),)))
    with pytest.raises(QueryError, match="a free variable stands in no atom"):
        write_text(Query((F, G), (Conjunction((Atom(0, Constant(1), F),)),)))


def test_variables_of_inner_scopes_stay_apart() -> None:
    inner = Query((F,), (Conjunction((Atom(2, X, F),)),))
    query = Query((F,), (Conjunction((Atom(0, X, F),), (inner,)),))
    assert write_text(query) == "∃x. 0(x,?f) ∧ ¬(∃x_2. 2(x_2,?f))"


# --- SPARQL -----------------------------------------------------------------------------------


def test_sparql_round_trip(named: Graph) -> None:
    plain = from_triples([named.triples() // np.array([1, 2, 1], np.int32)], ("train",),
                         entity_count=ENTITIES, relation_count=RELATIONS)  # fmt: skip
    for query in queries(300):
        for graph in (plain, named):
            text = write_sparql(query, graph, base="http://x/")
            again = read_sparql(text, graph, base="http://x/")
            text = write_sparql(again, graph, base="http://x/")
            twice = read_sparql(text, graph, base="http://x/")
            assert write_sparql(twice, graph, base="http://x/") == text
            links = graph.full("train")
            assert np.array_equal(answers(again, links), answers(query, links)), text


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("<e1> <r0> ?f", "0(1,?f)"),
        ("<e1> <r0> ?x . ?x <r1> ?f", "∃x. 0(1,x) ∧ 2(x,?f)"),
        ("<e1> <r0> ?x ; <r1> ?f . ?f <r0> ?x", None),
        ("<e1> <r0> ?f MINUS { ?f <r1> <e2> }", "0(1,?f) ∧ ¬2(?f,2)"),
        ("<e1> <r0> ?f . MINUS { ?x <r1> <e2> } .", "0(1,?f)"),
        ("<e1> <r0> ?f FILTER NOT EXISTS { ?f <r1> ?y }", "0(1,?f) ∧ ¬(∃y. 2(?f,y))"),
        ("<e1> <r0> ?f . filter not exists { ?x <r1> <e2> }", "0(1,?f) ∧ ¬(∃x. 2(x,2))"),
        ("{ <e1> <r0> ?f } UNION { ?f <r1> <e2> }", "0(1,?f) ∨ 2(?f,2)"),
        (
            "<e1> <r0> ?f { ?f <r1> <e2> } UNION { ?f <r1> <e3> }",
            "(0(1,?f) ∧ 2(?f,2)) ∨ (0(1,?f) ∧ 2(?f,3))",
        ),
        (
            "<e1> <r0> ?f MINUS { { ?f <r1> <e2> } UNION { ?f <r1> <e3> } }",
            "0(1,?f) ∧ ¬2(?f,2) ∧ ¬2(?f,3)",
        ),
    ],
)
def test_sparql_readings(pattern: str, text: str | None) -> None:
    query = read_sparql(f"SELECT ?f WHERE {{ {pattern} }}")
    if text is None:
        assert len(query.disjuncts[0].atoms) == 3
    else:
        assert write_text(query) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT ?f WHERE { <e1> ?p ?f }", "a relation must be an IRI"),
        ("SELECT ?f WHERE { <e1> <r0> ?f . ?f <r1> 'a' }", "only entities can stand"),
        ("SELECT ?f WHERE { <e1> <r0> ?f } LIMIT 3", "LIMIT say nothing of a set"),
        ("SELECT ?f ?f WHERE { <e1> <r0> ?f }", "selected twice"),
        ("SELECT (COUNT(?f) AS ?n) WHERE { <e1> <r0> ?f }", "only variables can be selected"),
        ("SELECT ?f WHERE { <e1> <r0> ?f FILTER (?f = <e2>) }", "this FILTER is not a part"),
        ("SELECT ?f WHERE { <e1> <r0> ?f OPTIONAL { ?f <r1> ?x } }", "OPTIONAL is not a part"),
        ("SELECT ?f WHERE { <x1> <r0> ?f }", "<x1> is no entity"),
        ("SELECT ?f WHERE { <e1> <r0> ?f MINUS <e2> }", "line 1, column 38"),
        ("SELECT ?f WHERE { <e1> <r0> ?f FILTER NOT EXISTS", "the query ends too early"),
    ],
)
def test_sparql_refusals(text: str, message: str) -> None:
    with pytest.raises((QueryError, QueryReadError)) as caught:
        read_sparql(text)
    assert message in str(caught.value)


def test_sparql_of_types_and_of_complements() -> None:
    with pytest.raises(QueryError, match="ground it"):
        write_sparql(from_tree(read_formula("(p,(e))")))
    with pytest.raises(QueryError, match="no positive atom"):
        write_sparql(Query((F,), (Conjunction((Atom(0, Constant(1), F, False),)),)))


# --- KoPL -------------------------------------------------------------------------------------


def _random_program(kb: KnowledgeBase, random: Random, depth: int) -> Call:
    """A program of the set part whose relations start where facts do."""
    kind = random.choice(("relate", "relate", "concept", "and", "or", "all")) if depth else "relate"
    if kind == "all":
        concept = random.choice(kb.names_of_kind("concept"))
        return Call(FILTER_CONCEPT, (Call(FIND_ALL),), (concept,))
    if kind == "concept":
        concept = random.choice(kb.names_of_kind("concept"))
        return Call(FILTER_CONCEPT, (_random_program(kb, random, depth - 1),), (concept,))
    if kind in ("and", "or"):
        sides = tuple(_random_program(kb, random, depth - 1) for _ in range(2))
        return Call(AND if kind == "and" else OR, sides)
    fact = kb.relational_fact(random.randrange(len(kb.relational)))
    forward = random.random() < 0.5
    start = kb.name_of(kb.node(fact.head if forward else fact.tail))
    below = Call(FIND, (), (start,))
    if depth and random.random() < 0.4:
        below = _random_program(kb, random, depth - 1)
    return Call(RELATE, (below,), (fact.relation, "forward" if forward else "backward"))


def _check_programs(kb: KnowledgeBase, count: int) -> tuple[int, int]:
    graph, executor, random = graph_from_kb(kb), Executor(kb), Random(1)
    links = graph.full()
    converted = back = 0
    for _ in range(count):
        program = _random_program(kb, random, 2)
        located = executor.outcome(program, {})
        assert isinstance(located, Located)
        expected = located.ids
        try:
            query = from_kopl(program, graph, kb)
        except QueryError:
            continue
        converted += 1
        found = answers(query, links)[:, 0]
        assert np.array_equal(found, expected), str(program)
        assert from_kopl(Call(QUERY_NAME, (program,)), graph, kb) == query
        try:
            again = to_kopl(query, graph, kb)
        except QueryError:
            continue
        back += 1
        located = executor.outcome(again, {})
        assert isinstance(located, Located) and np.array_equal(located.ids, expected)
    return converted, back


def test_programs_locate_the_answers(tiny: Any) -> None:
    converted, back = _check_programs(tiny, 400)
    assert converted > 300 and back > 200


@pytest.fixture(scope="module")
def world() -> KnowledgeBase:
    import kb

    return kb.load("world")


@pytest.fixture(scope="module")
def world_graph(world: KnowledgeBase) -> Graph:
    return graph_from_kb(world)


def test_programs_of_the_world(world: KnowledgeBase) -> None:
    converted, back = _check_programs(world, 100)
    assert converted > 80 and back > 60


def test_a_question_of_the_world(world: KnowledgeBase, world_graph: Graph) -> None:
    graph = world_graph
    program = (
        'FilterConcept(And(Relate(Find("Norway"), "shares border with", "forward"),'
        ' Relate(Find("Finland"), "shares border with", "forward")), "sovereign state")'
    )
    query = from_kopl(program, graph, world)
    names = {world.name_of(node) for node in answers(query, graph.full())[:, 0].tolist()}
    assert names == {"Sweden", "Russia"}
    assert INSTANCE_OF in write_text(query, graph)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ('Count(Find("Norway"))', "Count is outside the set part"),
        ('Relate(FindAll(), "capital", "forward")', "FindAll stands below FilterConcept only"),
        ('Find("Norway")', "may locate 'Norway' itself"),
        ('Relate(Find("Norwy"), "capital", "forward")', "nothing named 'Norwy'; did you mean"),
        ('Relate(Find("Norway"), "capitol", "forward")', "no relation 'capitol'; did you mean"),
        ('FilterConcept(FindAll(), "Norway")', "no concept 'Norway'"),
        ('And(Find("Norway"), Find("Sweden"))', "no entity in common"),
    ],
)
def test_programs_that_are_no_queries(
    world: KnowledgeBase, world_graph: Graph, program: str, message: str
) -> None:
    with pytest.raises(KoplError) as caught:
        from_kopl(program, world_graph, world)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("r(?x,?y)", "one free variable"),
        ("r(N,?y) ∧ ¬r(?y,N)", "no negation"),
        ("∃x. r(N,x) ∧ r(x,?y) ∧ s(x,?y)", "no cycles and no parallel edges"),
        ("r(N,?y) ∧ r(?y,?y)", "in relation to itself"),
        ("∃x. r(x,?y)", "FindAll has entities only"),
        ("∃x. r(N,?y) ∧ r(N,x)", "no connection"),
        ('∃x. r(N,?y) ∧ "instance of"(x,?y)', "not for concepts"),
        ('∃x. r(N,?y) ∧ "instance of"(?y,x)', "no variable for one"),
    ],
)
def test_queries_that_are_no_programs(
    world: KnowledgeBase, world_graph: Graph, text: str, message: str
) -> None:
    graph = world_graph
    assert graph.entities is not None
    norway = graph.entities[int(world.named("Norway")[0])]
    for short, name in (("r(", "shares border with"), ("s(", "continent")):
        text = text.replace(short, f'"{name}"(')
    text = text.replace("N", f'"{norway}"')
    with pytest.raises(QueryError) as caught:
        to_kopl(read_text(text, graph), graph, world)
    assert message in str(caught.value)
