"""The command answer, and queries in any notation."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from cqa.answering.answer import answers
from cqa.errors import QueryError
from cqa.graphs.files import save
from cqa.graphs.from_kb import graph_from_kb
from cqa.graphs.graph import Graph, from_triples
from cqa.graphs.names import Names
from cqa.graphs.readers import read_graph
from cqa.notation.reading import examples, read_query
from cqa.notation.sparql import write_sparql
from cqa.notation.text import write_text
from cqa.notation.trees import from_tree
from cqa.sampling.sample import Sample
from cqa.types.betae import to_tuples
from cqa.types.efok_text import write_formula
from cqa.types.grounded import write_json
from cqa.types.tree import Tree
from kb import Builder, write_lines
from kopl_base.errors import KoplError
from kopl_cli.cqa import answer as command_answer
from tests.cqa.small_benchmark import (
    run,
)


@pytest.fixture
def family(tmp_path: Path) -> Path:
    """A graph with names: Ann and Bob known, Cid's link missing; a negation that a link refutes."""
    for split, facts in (
        ("train", ["Ann\tparent of\tBob", "Bob\tparent of\tDan", "Bob\tknows\tEve"]),
        ("valid", ["Bob\tparent of\tEve"]),
        ("test", ["Ann\tparent of\tCid", "Cid\tparent of\tDan", "Cid\tparent of\tFay",
                  "Ann\tknows\tEve"]),
    ):  # fmt: skip
        (tmp_path / f"{split}.txt").write_text("\n".join(facts) + "\n")
    return tmp_path


GRANDCHILD = 'exists x. "parent of"(Ann,x) & "parent of"(x,?y)'


def test_answers_are_named_and_marked(family: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command_answer, "--graph", str(family), GRANDCHILD) == 0
    assert capsys.readouterr().out == "Dan\teasy\nEve\teasy\nFay\thard\n"
    assert run(command_answer, "--graph", str(family), GRANDCHILD, "--count") == 0
    assert capsys.readouterr().out == "Dan\teasy\t2\nEve\teasy\t1\nFay\thard\t1\n"
    assert run(command_answer, "--graph", str(family), GRANDCHILD, "--observed") == 0
    assert capsys.readouterr().out == "Dan\nEve\n"
    assert run(command_answer, "--graph", str(family), GRANDCHILD, "--split", "valid") == 0
    assert capsys.readouterr().out == "Dan\teasy\nEve\thard\n"
    assert run(command_answer, "--graph", str(family), GRANDCHILD, "--limit", "1") == 0
    told = capsys.readouterr()
    assert told.out == "Dan\teasy\n" and "2 more answers are not shown" in told.err


def test_answers_that_the_full_graph_takes_back(
    family: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = '"parent of"(Bob,?y) & !knows(Ann,?y)'
    assert run(command_answer, "--graph", str(family), query) == 0
    told = capsys.readouterr()
    assert told.out == "Dan\teasy\n"
    assert "1 answer of the observed graph is not on the full graph" in told.err


def test_answers_as_json(family: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = '"parent of"(Ann,?x) & "parent of"(?x,?y)'
    assert run(command_answer, "--graph", str(family), query, "--json", "--count") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["notation"] == "first-order text"
    assert (found["free"], found["count"]) == (["x", "y"], 4)
    shown = [(*one["names"], one["kind"], one["matches"]) for one in found["answers"]]
    assert shown == [
        ("Bob", "Dan", "easy", 1), ("Bob", "Eve", "easy", 1),
        ("Cid", "Dan", "hard", 1), ("Cid", "Fay", "hard", 1),
    ]  # fmt: skip
    assert found["lost"] == []


def test_a_question_without_variables_is_true_or_not(
    family: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for query, shown in (
        ("knows(Bob,Eve)", "yes\teasy\n"),
        ("knows(Ann,Eve)", "yes\thard\n"),
        ("knows(Eve,Ann)", "no\n"),
    ):
        assert run(command_answer, "--graph", str(family), query) == 0
        assert capsys.readouterr().out == shown


def with_names(graph: Graph) -> Graph:
    """The graph with names that a text has to quote and an IRI to escape."""
    named = Names.of([f"node {n}" for n in range(40)]), Names.of([f"link {n}" for n in range(4)])
    return Graph(graph.links, graph.splits, *named)


def test_the_examples_of_messages_run_on_the_graph_at_hand(
    graph: Graph, family: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one_link = from_triples([np.array([(0, 0, 1)])], ("train",))
    numbers = read_graph(family)
    odd = ["12", "e12", 'quo"ted', "back\\slash", "<x> y", "é, ∃"]
    numbers = Graph(numbers.links, numbers.splits, Names.of(odd[:6]), Names.of(odd[3:5]))
    for known in (graph, with_names(graph), one_link, read_graph(family), numbers):
        for notation, example in examples(known).items():
            read = read_query(example, known)
            assert read.notation == notation
            assert len(answers(read.query, known.full(known.splits[-1]))), example
    with pytest.raises(QueryError) as caught:
        read_query("what is this", read_graph(family))
    shown = re.search(r"SPARQL: (SELECT .*?\}); first-order text: (.*)", str(caught.value))
    assert shown is not None
    for text in shown.groups():
        assert run(command_answer, "--graph", str(family), text) == 0
        assert capsys.readouterr().out


def test_a_graph_without_links_has_examples(graph: Graph) -> None:
    nothing = from_triples([np.empty((0, 3), np.int32)], ("train",), entity_count=1,
                           relation_count=1)  # fmt: skip
    with pytest.raises(QueryError, match="known notations are"):
        read_query("what is this", nothing)


def test_sparql_that_cannot_be_read_is_told_as_sparql(graph: Graph) -> None:
    for text in ("SELECT (COUNT(?x) AS ?n) WHERE { ?x <r0> ?y }", "SELECT (?x AS ?y) WHERE {}"):
        with pytest.raises(QueryError, match="only variables can be selected"):
            read_query(text, graph)


def test_every_notation_gives_the_same_query(graph: Graph, trees: list[Sample]) -> None:
    named = with_names(graph)
    seen = set()
    for one in trees:
        assert isinstance(one.query, Tree)
        query = from_tree(one.query)
        texts = [write_json(one.query), repr(to_tuples(one.query)), write_text(query, ascii=True)]
        texts += [write_text(query, named), write_sparql(query, named)]
        if all(not disjunct.without for disjunct in query.disjuncts):
            texts.append(write_formula(query))
        expected = answers(query, graph.full()).tolist()
        for text in texts:
            named_text = "node" in text
            for known in (named,) if named_text else (graph, named):
                read = read_query(text, known)
                assert answers(read.query, graph.full()).tolist() == expected, text
                seen.add(read.notation)
    assert seen == {
        "JSON of an operator tree", "BetaE tuple", "EFOk formula", "SPARQL", "first-order text",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the query is empty; known notations are, by example, JSON of an operator tree: "),
        ("(p,(e))", "this formula is a query type: it has no relations and no anchors"),
        ("2i1p", "2i1p is the name of a query type"),
        ("(r1(s1,e1))&(r2(e1,f1))", "this EFOk formula is a query type"),
        ("('e', ('r',))", "this BetaE tuple is a query type: a relation is missing"),
        ("(3, (900,))", "there is no relation 900; the graph has the numbers 0 to 7"),
        ("(50, (1,))", "there is no entity 50"),
        (f"0({'9' * 5000},?y)", "the graph has no entity '999"),
        (f"{'9' * 5000}(1,?y)", "the graph has no relation '999"),
        (f"({'9' * 5000}, (1,))", "first-order text"),
        ("(0(1,e1))&(2(e1,f1)", r"character 20: '\)' was expected, not the end"),
        ('{"o": "p"}', 'an object with "o" and "a" was expected'),
        ("{", "not JSON"),
        ("SELECT ?x WHERE { ?x <r0> }", "line 1"),
        ("SELECT ?x WHERE { <e1> <r90> ?x }", "there is no relation 180"),
        ("likes(1,?x)", "read as first-order text: character 1: the graph has no relation 'likes'"),
        ("what is this", "first-order text: .*known notations are, by example"),
        ("exists x. 0(x,?y) & !1(?z,?y)", "the variable 'z' stands in no positive atom"),
    ],
)
def test_what_is_in_no_notation(text: str, message: str, tmp_path: Path, graph: Graph) -> None:
    with pytest.raises(KoplError, match=message):
        found = read_query(text, graph)
        answers(found.query, graph.full())


LANDS = (("Aland", "Bland"), ("Aland", "Cland"), ("Bland", "Cland"), ("Cland", "Dland"))


@pytest.fixture
def lands(tmp_path: Path) -> tuple[Path, Path]:
    """A knowledge base, and its graph with a fact of each relation in test."""
    builder = Builder()
    builder.add_concept("c", "land")
    for number, name in enumerate(("Aland", "Bland", "Cland", "Dland")):
        builder.add_entity(f"l{number}", name, ["c"])
    number_of = {"Aland": "l0", "Bland": "l1", "Cland": "l2", "Dland": "l3"}
    for head, tail in LANDS:
        builder.add_fact(number_of[head], "borders", number_of[tail])
    kb_file, folder = tmp_path / "kb.jsonl", tmp_path / "graph"
    kb = builder.build()
    write_lines(kb, kb_file)
    save(graph_from_kb(kb, shares=(1, 0, 1), seed=1), folder)
    return kb_file, folder


def test_kopl_is_read_with_its_knowledge_base(
    lands: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    kb_file, folder = lands
    program = 'QueryName(Relate(Relate(Find("Aland"), "borders", "forward"), "borders", "forward"))'
    options = ["--graph", str(folder), program]
    assert run(command_answer, *options, "--kb", str(kb_file), "--hardness", "--show") == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "∃x. borders(l0,x) ∧ borders(x,?f1)"
    rows = [line.split("\t") for line in shown[1:]]
    assert [row[0] for row in rows] == ["Cland", "Dland"]
    assert all((row[1] == "easy") == (row[2] == "trivial") for row in rows)
    assert {row[2] for row in rows} <= {"trivial", "1p", "2p"}
    with pytest.raises(KoplError, match="this is KoPL"):
        run(command_answer, *options)
    with pytest.raises(KoplError, match="another knowledge base"):
        run(command_answer, *options, "--kb", "world")


def test_an_unsafe_query_is_told_what_to_do(
    family: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = '∃x. "parent of"(Ann,x) ∧ ¬knows(x,?y)'
    with pytest.raises(QueryError) as caught:
        run(command_answer, "--graph", str(family), query)
    message = str(caught.value)
    assert "the variable 'y' stands in no positive atom" in message
    assert "add an atom that binds it" in message and "--universe" in message
    assert run(command_answer, "--graph", str(family), query, "--universe") == 0
    assert capsys.readouterr().out
    # What the message advises first works, too.
    assert run(command_answer, "--graph", str(family), query + ' ∧ ∃z. "parent of"(z,?y)') == 0


def test_hardness_is_told_in_json(
    lands: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    kb_file, folder = lands
    query = "borders(l0,?y)"
    options = ["--kb", str(kb_file), "--hardness", "--json"]
    assert run(command_answer, "--graph", str(folder), query, *options) == 0
    answers = json.loads(capsys.readouterr().out)["answers"]
    assert [answer["names"] for answer in answers] == [["Bland"], ["Cland"]]
    for answer in answers:
        assert answer["reduces to"] == ("trivial" if answer["kind"] == "easy" else "1p")


def test_a_variable_may_be_any_entity_when_asked(
    family: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = 'exists x. "parent of"(Ann,x) & !"parent of"(x,?y)'
    with pytest.raises(KoplError, match="no positive atom"):
        run(command_answer, "--graph", str(family), query)
    assert run(command_answer, "--graph", str(family), query, "--universe", "--observed") == 0
    # Of Ann's children Bob alone is known: all but his children, Dan and Eve.
    names = set(capsys.readouterr().out.split())
    assert {"Ann", "Bob", "Cid", "Fay"} <= names
    assert not {"Dan", "Eve"} & names
