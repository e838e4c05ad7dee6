"""Queries as text: read and written without loss, errors that name the place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopl.sparql.ast import (
    Apply,
    Ask,
    Compare,
    Filter,
    Group,
    Iri,
    Literal,
    Select,
    Triple,
    Union,
    Var,
    apart,
    quoted,
    renamed,
    write,
)
from kopl.sparql.errors import QueryReadError
from kopl.sparql.reader import read, with_prologue

E = Var("e")


def test_gold_queries_are_written_as_they_were_read(kopl_data: Path) -> None:
    lines = (kopl_data / "kqapro" / "gold_30.jsonl").read_text("utf-8").splitlines()
    for line in lines:
        query = json.loads(line)["sparql"]
        assert write(read(query)) == query


QUERIES = [
    'SELECT DISTINCT ?e WHERE { ?e <pred:name> "a" . }',
    "SELECT (COUNT(DISTINCT ?e) AS ?count) WHERE { ?e <r> ?f . }",
    "ASK { { ?e <a> ?f . } UNION { ?e <b> ?f . } UNION { ?e <c> ?f . } }",
    "SELECT ?e WHERE { [ <pred:fact_h> ?e ; <pred:fact_r> <r> ] <q> ?x ; <s> ?y . }",
    "SELECT ?e WHERE { ?e <r> ?v . FILTER ( (?v < 5) || ((?v = -5) && !BOUND(?e)) ) . }",
    "SELECT ?e WHERE { ?e <r> ?v . OPTIONAL { ?v <pred:year> 1998 . } }",
    "SELECT ?e WHERE { { SELECT ?e (MAX(?v) AS ?x) WHERE { ?e <r> ?v . } GROUP BY ?e"
    " HAVING ( COUNT(DISTINCT ?v) = 2 ) ORDER BY DESC(COUNT(?v)) ?e LIMIT 1 } ?e <s> ?x . }",
    'SELECT ?p WHERE { ?e ?p ?f . FILTER ( !STRSTARTS(STR(?p), "pred:") ) . }',
    'SELECT ?e WHERE { ?e <r> "2007-06-27"^^xsd:date . ?e <s> "7"^^<http://x/y> . }',
    "SELECT ?e WHERE { { { ?e <r> ?f . } UNION { ?e <s> ?f . } } ?e <t> ?g . }",
    "ASK { BIND ( 1 AS ?side ) }",
    "ASK { ?f <reifies> <<( ?h <r> ?t )>> . }",
    "ASK { }",
]


@pytest.mark.parametrize("text", QUERIES)
def test_what_is_read_is_written(text: str) -> None:
    if "{ { ?e <r> ?f . } UNION" in text:
        assert isinstance(read(text).where.elements[0], Group)
    assert write(read(text)) == text
    assert read(write(read(text), base="http://x/"), base="http://x/") == read(text)


def test_other_ways_to_write_the_same() -> None:
    short = """
        # a comment <http://x#y>
        BASE <http://x/> prefix k: <http://k/>
        select distinct $e where {
          ?e k:name 'a\\u0041', '''b''' ; a <thing> ; <http://x/r> +7 .
          filter(?e<5&&"x"!=?e) filter(?e in)
        }
    """.replace("filter(?e in)", "")
    query = read(short)
    assert isinstance(query, Select) and query.distinct
    assert query.where == Group(
        (
            Triple(E, Iri("http://k/name"), Literal("aA")),
            Triple(E, Iri("http://k/name"), Literal("b")),
            Triple(E, Iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), Iri("thing")),
            Triple(E, Iri("r"), Literal("7", "http://www.w3.org/2001/XMLSchema#integer")),
            read('ASK { FILTER(?e<5&&"x"!=?e) }').where.elements[0],
        )
    )


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("SELECT ?e WHERE { ?e <r> ?f", "ends too early"),
        ("SELECT ?e WHERE {\n  ?e <r> ?f . MINUS { ?e <s> ?f } }", "MINUS is not in the subset"),
        ("SELECT ?e WHERE {\n  ?e nonsense ?f }", "line 2, column 6"),
        ("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }", "CONSTRUCT"),
        ("SELECT (COUNT(*) AS ?n) { ?x <a> ?c }", "is not read here; count a variable"),
        ("SELECT * { ?x <a> ?y }", "SELECT .+ is not"),
        ("SELECT ?x { ?x <a>/<b> ?y }", "a property path"),
        ("SELECT ?x { ?x <a>* ?y }", "a property path"),
        ("SELECT ?x { ?x (<a>|<b>) ?y }", "a property path"),
        ("SELECT ?x { ?x ^<a> ?y }", "a property path"),
        ("SELECT ?x { ?x <a> ?y FILTER (?y + 1 > 2) }", "arithmetic"),
        ("SELECT ?x { ?x <a> ?y } ORDER BY ?y OFFSET 3", "OFFSET is not"),
        ("SELECT ?x { ?x <a> ?y FILTER NOT EXISTS { ?x <b> ?z } }", "NOT is not"),
        ("SELECT ?x { ?x <a> ?y FILTER (?y IN (1)) }", "IN is not"),
        ("SELECT ?x { ?x <a> ?y } GROUP BY (STR(?x))", "an expression is not"),
        ("SELECT (GROUP_CONCAT(?x) AS ?y) { ?x <a> ?y }", "GROUP_CONCAT is not"),
        ("SELECT ?x { ?x <a> _:b }", "a blank node"),
        ("SELECT ?x { ?x <a> [] }", "a blank node"),
        ("INSERT DATA { <a> <b> <c> }", "INSERT is an update"),
        ("DELETE WHERE { ?s ?p ?o }", "line 1, column 1"),
        ('ASK { ?e <r> "a"@en }', "literals with a language"),
        ('ASK { ?e <r> "a\\q" }', "no escape"),
        ('ASK { ?e <r> "a\\uD800" }', "is no character"),
        ("ASK { ?e k:r ?f }", "prefix 'k'"),
        ("", "ends too early"),
    ],
)
def test_malformed_queries(text: str, part: str) -> None:
    with pytest.raises(QueryReadError, match="(?s).*" + part.replace("(", "\\(")):
        read(text)


texts = st.text(max_size=20) | st.lists(
    st.sampled_from(['"', "'", "\\", "u0041", "U", "\n", "\r", "<", ">", "}", "#", "é", "\0"])
).map("".join)


@given(texts)
def test_every_text_survives_as_a_literal(text: str) -> None:
    query = Ask(Group((Triple(E, Iri("r"), Literal(text)),)))
    assert read(write(query)) == query
    assert "\n" not in write(query) and "\r" not in write(query)


@given(texts)
def test_a_literal_ends_where_it_ends(text: str) -> None:
    inside = quoted(text)[1:-1]
    assert '"' not in inside.replace("\\\\", "").replace('\\"', "")


def test_what_cannot_be_an_iri_is_not_written() -> None:
    with pytest.raises(ValueError, match="cannot stand in a query"):
        write(Ask(Group((Triple(E, Iri("a> <b"), E),))))


def test_absolute_iris_and_the_prefix() -> None:
    query = read('ASK { ?e <r> "5"^^xsd:double . ?e <pred:name> ?f . }')
    assert write(query, base="http://x/", prologue=True) == (
        "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
        'ASK { ?e <http://x/r> "5"^^xsd:double . ?e <pred:name> ?f . }'
    )
    assert write(read("ASK { ?e <r> ?f . }"), prologue=True) == "ASK { ?e <r> ?f . }"


def test_a_base_of_ones_own_stands_before_the_prefix() -> None:
    """Virtuoso refuses BASE behind PREFIX."""
    text = with_prologue("BASE <http://a/> ASK { ?e <r> ?f }", "http://b/")
    assert text.startswith("BASE <http://a/> PREFIX xsd:")
    assert with_prologue("ASK { }", "http://b/").startswith("BASE <http://b/> PREFIX xsd:")
    assert with_prologue("ASK { }", None).startswith("PREFIX xsd:")


def test_queries_that_differ_in_names_only() -> None:
    one, other = read("ASK { ?a <r> ?b . ?b <s> ?c . }"), read("ASK { ?x <r> ?c . ?c <s> ?b . }")
    assert renamed(one) == renamed(other)
    assert renamed(one) != renamed(read("ASK { ?a <r> ?b . ?a <s> ?c . }"))


def test_variables_of_different_alternatives_are_different() -> None:
    query = apart(read("ASK { { ?e <r> ?x . } UNION { ?e <s> ?x . } ?e <t> ?y . }"))
    union = query.where.elements[0]
    assert isinstance(union, Union)
    first, second = (branch.elements[0] for branch in union.branches)
    assert isinstance(first, Triple) and isinstance(second, Triple)
    assert first.subject == second.subject == E and first.object != second.object


def test_conditions_keep_their_brackets() -> None:
    text = "ASK { FILTER ( !(?a = ?b) ) . }"
    query = read(text)
    condition = query.where.elements[0]
    assert isinstance(condition, Filter)
    assert write(query) == text
    nested = Compare("=", Apply("STR", (E,)), Literal("x"))
    assert "STR(?e) = " in write(Ask(Group((Filter(nested),))))


def test_deeply_nested_queries() -> None:
    """What is nested deeper than any program is refused, with no end of the process."""
    for depth in (290, 5000):
        text = "SELECT ?e WHERE " + "{ " * depth + '?e <pred:name> "a" ' + "} " * depth
        union = "ASK " + "{ { ?e <r> ?f } UNION " * depth + "{ ?e <s> ?f } " + "} " * depth
        negated = "ASK { FILTER(" + "!" * depth + "BOUND(?e)) }"
        for query in (text, union, negated):
            if depth == 290:
                assert read(query)
                continue
            with pytest.raises(QueryReadError, match="more than 300"):
                read(query)
